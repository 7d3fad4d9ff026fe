# SPDX-License-Identifier: Apache-2.0
"""Contact against MuJoCo with default settings and tuned for speed: means, and the slowest hundred steps.

Robots stand, are pushed, trot on the spot, and fall limp on flat ground and among boxes, in time steps of
1 ms and in one thread. Each motion is timed in one call, and in blocks of a hundred steps; the best of
several rounds is reported. A trot is a Python loop: new joint targets for the drives, then a step. Both sides
start in the same state. The motions then differ, because MuJoCo's contact is soft.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

import quad_dynamics as qd
from benchmarks.dynamics import GO2, ROBOTS
from benchmarks.mujoco_peer import Peer
from benchmarks.simulation import trot_targets
from quad_dynamics.terrain.terrain import Box, Plane, Terrain

FILES = {
    'go2': GO2,
    'mini_cheetah': 'mini_cheetah',
    'anymal_c': ROBOTS / 'anymal_c_simple_description' / 'urdf' / 'anymal.urdf',
    'hyq': ROBOTS / 'hyq_description' / 'robots' / 'hyq_no_sensors.urdf',
}
CASES = ('stand', 'stand_spring', 'push', 'trot', 'fall', 'boxes')
BLOCK, BLOCKS = 100, 20  # steps that are timed at once, and number of consecutive blocks
SEEDS = 8  # number of falls
SETTLE = 1000  # steps until the robot stands
KP, KD = 7.0, 0.2  # per kg of the robot [N m/rad, N m s/rad]


@dataclass
class Case:
    """One robot in one situation, with MuJoCo as default and tuned.

    Attributes:
        name: of the robot and the situation.
        runs: ours, MuJoCo default, MuJoCo tuned: functions that restart, and that advance by a number of
            steps.
        means: (3,) best times so far of all steps in one call, per step [us].
        blocks: (3, blocks) the same of consecutive blocks.
        unconverged: share of our steps above the tolerance.
    """

    name: str
    runs: list[tuple[Callable[[], object], Callable[[int], object]]]
    means: np.ndarray
    blocks: np.ndarray
    unconverged: float

    def run_round(self) -> None:
        """Time all three once, all steps in one call and block by block."""
        for i, (start, advance) in enumerate(self.runs):
            start()
            self.means[i] = min(self.means[i], _time(advance, BLOCK * BLOCKS))
            start()
            for block in range(BLOCKS):
                self.blocks[i, block] = min(self.blocks[i, block], _time(advance, BLOCK))


def _time(advance: Callable[[int], object], steps: int) -> float:
    """Mean time of one step [us]."""
    begin = time.perf_counter_ns()
    advance(steps)
    return (time.perf_counter_ns() - begin) * 1e-3 / steps


def cases(robot: str, kind: str) -> list[Case]:
    """A situation of a robot; for falls, several times with different seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model(FILES[robot])
    if kind in ('fall', 'boxes'):
        return [_falling(robot, kind, model, seed) for seed in range(SEEDS)]
    return [_standing(robot, kind, model)]


def _standing(robot: str, kind: str, model: qd.Model) -> Case:
    sim = qd.Simulator(model, contact='spring_damper' if kind == 'stand_spring' else 'impulse')
    kp, kd = KP * model.total_mass, KD * model.total_mass
    sim.command(q=sim.q[7:], kp=kp, kd=kd)
    peers = [Peer(sim, kp, kd), Peer(sim, kp, kd, tuned=True, feet_only=True)]
    for peer in peers:
        peer.put(sim.q)
        peer.rollout(sim.standing()[7:], SETTLE)
    for _ in range(SETTLE):
        sim.step()
    push = 3.0 * model.total_mass if kind == 'push' else 0.0
    if push:
        sim.apply_force(model.base_name, [0.0, push, 0.0, 0.0, 0.0, 0.0], 0.2)
    name = f'{robot}_{kind}'
    if kind == 'trot':
        return _trot_case(name, sim, peers, kp, kd)
    return _case(name, sim, peers, sim.standing()[7:], push)


def _falling(robot: str, kind: str, model: qd.Model, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    sim = qd.Simulator(model, terrain=boxes(rng) if kind == 'boxes' else 'flat')
    q = sim.standing()
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[2] = 3.0
    q[2] -= sim.distances(q)[0].min() - 0.5
    sim.reset(q)
    peers = [Peer(sim, 0.0, 0.0, drives=False, tuned=tuned) for tuned in (False, True)]
    for peer in peers:
        peer.put(q)
    return _case(f'{robot}_{kind}', sim, peers, np.zeros(model.nj), 0.0)


def boxes(rng: np.random.Generator) -> Terrain:
    """Boxes of random height, side by side with gaps, on a plane."""
    edge, shapes = 0.25, [Plane()]
    for i in range(-5, 5):
        for j in range(-5, 5):
            height = float(rng.uniform(0.01, 0.1))
            middle = ((i + 0.5) * edge, (j + 0.5) * edge, 0.5 * height)
            shapes.append(Box((0.9 * edge, 0.9 * edge, height), position=middle))
    return Terrain(shapes)


def _case(name: str, sim: qd.Simulator, peers: list[Peer], control: np.ndarray, push: float) -> Case:
    """Ours by `run`, MuJoCo by `rollout`; both record all states."""
    begin, dt = sim.snapshot(), sim.settings.dt
    log = sim.run(None, BLOCK * BLOCKS * dt, progress=False)
    runs: list[tuple[Callable[[], object], Callable[[int], object]]] = [
        (lambda: sim.restore(begin), lambda steps: sim.run(None, steps * dt, progress=False))
    ]
    for peer in peers:
        peer.data.xfrc_applied[1, 1] = push
        runs.append(_peer_run(peer, control))
    late = float((~log.converged).mean())
    return Case(name, runs, np.full(3, np.inf), np.full((3, BLOCKS), np.inf), late)


def _trot_case(name: str, sim: qd.Simulator, peers: list[Peer], kp: float, kd: float) -> Case:
    """Lift diagonal legs in turn: a Python loop over time steps, with new targets for the drives in each."""
    targets = trot_targets(sim.standing()[7:], sim.settings.dt, BLOCK * BLOCKS)
    begin, unconverged = sim.snapshot(), 0
    for wanted in targets:
        sim.command(q=wanted, kp=kp, kd=kd)
        sim.step()
        unconverged += not sim.converged

    def ours(steps: int) -> None:
        first = sim.step_count - started
        for wanted in targets[first : first + steps]:
            sim.command(q=wanted, kp=kp, kd=kd)
            sim.step()

    sim.restore(begin)
    started = sim.step_count
    runs: list[tuple[Callable[[], object], Callable[[int], object]]] = [(lambda: sim.restore(begin), ours)]
    runs += [_peer_trot(peer, targets) for peer in peers]
    late = unconverged / len(targets)
    return Case(name, runs, np.full(3, np.inf), np.full((3, BLOCKS), np.inf), late)


def _peer_trot(peer: Peer, targets: np.ndarray) -> tuple[Callable[[], object], Callable[[int], object]]:
    state, model, data = peer.state(), peer.model, peer.data
    started = data.time

    def advance(steps: int) -> None:
        first = round((data.time - started) / model.opt.timestep)
        control = data.ctrl
        for wanted in targets[first : first + steps]:
            control[:] = wanted
            mujoco.mj_step(model, data)

    return lambda: peer.set_state(state), advance


def _peer_run(peer: Peer, control: np.ndarray) -> tuple[Callable[[], object], Callable[[int], object]]:
    state = peer.state()
    return lambda: peer.set_state(state), lambda steps: peer.rollout(control, steps)


def measure(rounds: int, tell: Callable[[str], object]) -> dict[str, float]:
    """All robots and situations; results by name, ratios to MuJoCo default and tuned."""
    results: dict[str, float] = {}
    for robot in FILES:
        for kind in CASES:
            found = cases(robot, kind)
            for _ in range(rounds):
                for case in found:
                    case.run_round()
            ours, peer, tuned = np.mean([case.means for case in found], axis=0)
            worst = np.max([case.blocks for case in found], axis=(0, 2))
            name = f'contact_{robot}_{kind}'
            results[name], results[f'{name}_tuned'] = peer / ours, tuned / ours
            results[f'{name}_ns'], results[f'{name}_worst_ns'] = 1e3 * ours, 1e3 * worst[0]
            results[f'{name}_unconverged'] = float(np.mean([case.unconverged for case in found]))
            late = 100.0 * results[f'{name}_unconverged']
            tell(
                f'{name:32} {ours:7.2f} {peer:7.2f} {tuned:7.2f} {peer / ours:7.2f} {tuned / ours:7.2f}'
                f'   {worst[0]:7.1f} {worst[1]:7.1f} {worst[2]:7.1f}   {late:.3f}'
            )
    return results
