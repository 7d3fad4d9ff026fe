# SPDX-License-Identifier: Apache-2.0
"""Deviation of spring-damper contact with automatic sub-steps from sub-steps of 1 us.

    python -m benchmarks.springs

Robots land on their feet, trot in place, and fall limp at random orientation, twice from the same state: once
with default settings, once with 1,000 sub-steps in each time step of 1 ms, each of which solves the robot.
Falls are chaotic: they are compared for a few milliseconds after the impact.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np

import quad_dynamics as qd
from benchmarks.contact import FILES
from quad_dynamics.simulation.gaits import Trot, hold

FINE = 1000  # sub-steps of the reference
LANDING, TROT, FALL = 0.3, 0.6, 0.04  # duration of the comparison of each motion [s]
FALLS = 10
SPEED = 2.0  # impact speed of a fall [m/s]


@dataclass(frozen=True)
class Errors:
    """Root mean squares over a motion.

    Attributes:
        place: of the base's position [mm].
        joints: of joint angles [mrad].
        speeds: of joint speeds [rad/s].
        forces: of forces on feet, averages over a time step, relative to the weight of the robot.
        substeps: mean number of sub-steps.
    """

    place: float
    joints: float
    speeds: float
    forces: float
    substeps: float


def compare(found: qd.Log, fine: qd.Log, weight: float) -> Errors:
    """The difference between two runs from the same state."""

    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean(x**2)))

    return Errors(
        1e3 * rms(found.q[:, :3] - fine.q[:, :3]),
        1e3 * rms(found.q[:, 7:] - fine.q[:, 7:]),
        rms(found.u[:, 6:] - fine.u[:, 6:]),
        rms(found.foot_forces - fine.foot_forces) / weight,
        float(found.substeps.mean()),
    )


def motion(model: qd.Model, kind: str, seed: int, **settings: object) -> qd.Log:
    """Run one of the motions."""
    sim = qd.Simulator(model, contact='spring_damper', **settings)
    if kind == 'landing':
        q, u = sim.standing(), np.zeros(model.nv)
        q[2] += 0.01
        sim.reset(q, u)
        return sim.run(hold(model), LANDING, progress=False)
    if kind == 'trot':
        return sim.run(Trot(model), TROT, progress=False)
    rng = np.random.default_rng(seed)
    q, u = sim.standing(), np.zeros(model.nv)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[2] = 3.0
    q[2] -= sim.distances(q)[0].min() - 0.005
    u[2] = -SPEED
    u[3:] = rng.normal(size=model.nv - 3)
    sim.reset(q, u)
    return sim.run(None, FALL, progress=False)


def errors(model: qd.Model, kind: str) -> Errors:
    """Errors of a motion; averaged over several falls."""
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    found = [
        compare(motion(model, kind, seed), motion(model, kind, seed, substeps=FINE), weight)
        for seed in range(FALLS if kind == 'fall' else 1)
    ]
    return Errors(*np.mean([list(vars(one).values()) for one in found], axis=0))


def main(arguments: list[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robots', nargs='+', default=list(FILES), choices=list(FILES))
    chosen = parser.parse_args(arguments)
    print('| | base [mm] | joints [mrad] | joints [rad/s] | feet [1/weight] | sub-steps |')
    print('|---|---:|---:|---:|---:|---:|')
    for name in chosen.robots:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', qd.ModelWarning)
            model = qd.load_model(FILES[name])
        for kind in ('landing', 'trot', 'fall'):
            e = errors(model, kind)
            print(
                f'| {name}, {kind} | {e.place:.4f} | {e.joints:.4f} | {e.speeds:.4f} | {e.forces:.5f} |'
                f' {e.substeps:.1f} |',
                flush=True,
            )


if __name__ == '__main__':
    main(sys.argv[1:])
