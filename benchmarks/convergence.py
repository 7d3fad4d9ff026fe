# SPDX-License-Identifier: Apache-2.0
"""Whether impulse contact converges, penetrates or adds energy: drops, random torques, fields of boxes.

    python -m benchmarks.convergence --seed 3

Fourteen robots fall limp from 0.5 m at random orientation; four get random torques up to their limits; five
stand, trot in place and tumble on fields of boxes of random height. Every step of 1 ms is checked: its
residual, the depth of all contact points after it, and the energy that its impulses add.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import quad_dynamics as qd
from benchmarks.contact import boxes
from benchmarks.dynamics import ROBOTS
from quad_dynamics.simulation.gaits import Trot, hold

FILES: dict[str, str | Path] = {
    'mini_cheetah': 'mini_cheetah',
    'go2': ROBOTS / 'go2_description' / 'urdf' / 'go2.urdf',
    'anymal_c': ROBOTS / 'anymal_c_simple_description' / 'urdf' / 'anymal.urdf',
    'hyq': ROBOTS / 'hyq_description' / 'robots' / 'hyq_no_sensors.urdf',
    'b1': ROBOTS / 'b1_description' / 'urdf' / 'b1.urdf',
    'a1': ROBOTS / 'a1_description' / 'urdf' / 'a1.urdf',
    'go1': ROBOTS / 'go1_description' / 'urdf' / 'go1.urdf',
    'laikago': ROBOTS / 'laikago_description' / 'urdf' / 'laikago.urdf',
    'anymal_b': ROBOTS / 'anymal_b_simple_description' / 'robots' / 'anymal.urdf',
    'anymal_kinova': ROBOTS / 'anymal_b_simple_description' / 'robots' / 'anymal-kinova.urdf',
    'b1_z1': ROBOTS / 'b1_description' / 'urdf' / 'b1-z1.urdf',
    'solo8': ROBOTS / 'solo_description' / 'robots' / 'solo.urdf',
    'solo12': ROBOTS / 'solo_description' / 'robots' / 'solo12.urdf',
    'quadruped': ROBOTS / 'quadruped_description' / 'urdf' / 'quadruped.urdf',
}
DROPS, DROP_STEPS, HEIGHT = 20, 2000, 0.5
TORQUE_ROBOTS, TORQUE_STEPS, TORQUE_EVERY = 4, 100_000, 20  # robots; steps; steps between two torques
BOX_ROBOTS, FIELDS, BOX_STEPS = 5, 20, 1000
TOLERANCE, LARGEST, DEEPEST = 1e-6, 1e-4, 1e-3  # residuals [m/s], depth [m]


@dataclass
class Findings:
    """Results of many steps.

    Attributes:
        steps: their number.
        above: those with a residual above TOLERANCE.
        far_above: those above LARGEST.
        residual: the largest [m/s].
        depth: of the deepest contact point after a step [m].
        deep: steps after which a point was deeper than DEEPEST.
        gain: largest energy that contact added in a step, relative to m g times the standing height.
        notes: where the worst results were.
    """

    steps: int = 0
    above: int = 0
    far_above: int = 0
    residual: float = 0.0
    depth: float = 0.0
    deep: int = 0
    gain: float = -np.inf
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        """A row of a table."""
        return (
            f'| {name} | {self.steps:,} | {self.above} | {self.far_above} | {self.residual:.1e} |'
            f' {1e3 * self.depth:.2f} | {self.deep} | {self.gain:.1e} |'
        )


def watch(sim: qd.Simulator, findings: Findings, steps: int, act: Callable[[int], object], name: str) -> None:
    """Advance by a number of steps, and check each."""
    model, g = sim.model, float(np.linalg.norm(sim.model.gravity))
    scale = model.total_mass * g * float(sim.standing()[2])
    q, u = sim.q, sim.u
    for k in range(steps):
        act(k)
        sim.step()
        residual = sim.residual
        findings.steps += 1
        findings.above += residual > TOLERANCE
        findings.far_above += residual > LARGEST
        findings.residual = max(findings.residual, residual)
        # distances are those before the last step, that is, after the previous one
        depth = -float(sim.contact_distances.min(initial=0.0))
        if depth > DEEPEST:
            findings.deep += 1
            findings.notes.append(f'{name}, step {k - 1}: {1e3 * depth:.2f} mm')
        if residual > TOLERANCE:
            findings.notes.append(f'{name}, step {k}: {residual:.1e} m/s')
        findings.depth = max(findings.depth, depth)
        after_q, after_u = sim.q, sim.u
        # without contact forces, the step is in flight, and its energy change is due to the integrator
        if np.any(np.einsum('ij,ij->i', sim.contact_forces, sim.contact_normals) > 0.0):
            gain = added_energy(model, q, u, sim.tau, after_u, sim.settings.dt) / scale
            if gain > 1e-6:
                findings.notes.append(f'{name}, step {k}: gain {gain:.1e}')
            findings.gain = max(findings.gain, gain)
        q, u = after_q, after_u


def added_energy(
    model: qd.Model, q: np.ndarray, u: np.ndarray, tau: np.ndarray, after: np.ndarray, dt: float
) -> float:
    """Kinetic energy after a step, minus that without contact, joint limits and joint friction [J]."""
    M = qd.mass_matrix(model, q)
    free = u + dt * qd.forward_dynamics(model, q, u, tau)
    return 0.5 * float(after @ M @ after - free @ M @ free)


def nothing(_: int) -> None:
    """Leave the robot limp."""


def drop(sim: qd.Simulator, rng: np.random.Generator) -> None:
    """Place the robot above the ground at random orientation."""
    q = sim.standing()
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[2] = 3.0
    q[2] -= sim.distances(q)[0].min() - HEIGHT
    sim.reset(q)


def stand(sim: qd.Simulator) -> None:
    """Make the robot stand on the highest of the boxes below its feet."""
    q = sim.standing()
    q[2] += 1.0
    q[2] -= sim.distances(q)[0].min()
    sim.reset(q)


def take(sim: qd.Simulator, command: qd.JointCommand) -> None:
    """Apply a command to the drives."""
    sim.command(command.tau, command.q, command.qd, command.kp, command.kd)


def drops(models: dict[str, qd.Model], seed: int) -> Findings:
    """All robots, limp."""
    findings = Findings()
    for i, (name, model) in enumerate(models.items()):
        sim = qd.Simulator(model)
        for k in range(DROPS):
            drop(sim, np.random.default_rng([seed, 1, i, k]))
            watch(sim, findings, DROP_STEPS, nothing, f'drop {name} {k}')
    return findings


def _walker(sim: qd.Simulator, trot: Trot) -> Callable[[int], None]:
    return lambda _: take(sim, trot(sim))


def torques(models: dict[str, qd.Model], seed: int) -> Findings:
    """Random torques up to the limits."""
    findings = Findings()
    for i, (name, model) in enumerate(list(models.items())[:TORQUE_ROBOTS]):
        sim, rng = qd.Simulator(model), np.random.default_rng([seed, 2, i])
        limit = np.where(np.isfinite(model.effort_limit), model.effort_limit, 2.0 * model.total_mass)

        def act(
            k: int, sim: qd.Simulator = sim, rng: np.random.Generator = rng, limit: np.ndarray = limit
        ) -> None:
            if k % TORQUE_EVERY == 0:
                sim.command(tau=limit * rng.uniform(-1.0, 1.0, len(limit)))

        watch(sim, findings, TORQUE_STEPS, act, f'torques {name}')
    return findings


def on_boxes(models: dict[str, qd.Model], seed: int, kind: str) -> Findings:
    """Standing, trotting or tumbling on fields of boxes."""
    findings = Findings()
    for i, (name, model) in enumerate(list(models.items())[:BOX_ROBOTS]):
        for k in range(FIELDS):
            rng = np.random.default_rng([seed, 3, i, k])
            sim, act = qd.Simulator(model, terrain=boxes(rng)), nothing
            if kind == 'tumbling':
                drop(sim, rng)
            else:
                stand(sim)
            if kind == 'standing':
                take(sim, hold(model))
            elif kind == 'trotting':
                act = _walker(sim, Trot(model))
            watch(sim, findings, BOX_STEPS, act, f'{kind} {name} {k}')
    return findings


def main(arguments: list[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--parts', nargs='+', default=['drops', 'torques', 'standing', 'trotting', 'tumbling']
    )
    parser.add_argument('--robots', nargs='+', default=list(FILES), choices=list(FILES))
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        models = {name: qd.load_model(FILES[name]) for name in chosen.robots}
    print('| | steps | above 1e-6 | above 1e-4 | largest [m/s] | deepest [mm] | over 1 mm | energy |')
    print('|---|---:|---:|---:|---:|---:|---:|---:|', flush=True)
    for part in chosen.parts:
        if part == 'drops':
            findings = drops(models, chosen.seed)
        elif part == 'torques':
            findings = torques(models, chosen.seed)
        else:
            findings = on_boxes(models, chosen.seed, part)
        print(findings.row(part), flush=True)
        for note in findings.notes:
            print(f'  {note}')


if __name__ == '__main__':
    main(sys.argv[1:])
