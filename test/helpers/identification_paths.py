# SPDX-License-Identifier: Apache-2.0
"""Motions for logs, good and poor: all joints, one slow motion again and again, one joint, hardly any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.gaits import hold

Path = Callable[[Floats], tuple[Floats, Floats, Floats]]

# The first is good, the others are poor.
FIXED_MOTIONS = ('good', 'slow', 'steps', 'one_joint', 'small')
FLOATING_MOTIONS = ('good', 'trot', 'slow', 'small')


class Waves:
    """Sums of sines about a pose; value and two derivatives are exact.

    Attributes:
        middle: (n,) pose.
        a: (terms, n) amplitudes.
        w: (terms, n) [rad/s].
        phase: (terms, n).
    """

    def __init__(self, middle: Floats, a: Floats, w: Floats, phase: Floats) -> None:
        self.middle, self.a, self.w, self.phase = middle, a, w, phase

    def __call__(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        x = self.w * np.asarray(t)[..., None, None] + self.phase
        s, c = np.sin(x), np.cos(x)
        return (
            self.middle + (self.a * s).sum(axis=-2),
            (self.a * self.w * c).sum(axis=-2),
            (-self.a * self.w**2 * s).sum(axis=-2),
        )


def _random_waves(
    middle: Floats,
    reach: npt.ArrayLike,
    lowest: float,
    highest: float,
    rng: np.random.Generator,
    terms: int = 5,
) -> Waves:
    n = len(middle)
    share = rng.uniform(0.3, 1.0, (terms, n))
    a = np.broadcast_to(reach, n) * share / share.sum(axis=0)
    w = 2.0 * np.pi * rng.uniform(lowest, highest, (terms, n))
    return Waves(middle, a, w, rng.uniform(0.0, 2.0 * np.pi, (terms, n)))


class Steps:
    """From pose to pose by polynomials of order five, with rests in between."""

    def __init__(self, poses: Floats, move: float, rest: float) -> None:
        self.poses, self.move, self.rest = poses, move, rest

    def __call__(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        every = self.move + self.rest
        k = np.floor(t / every).astype(np.int64)
        s = np.clip((t - k * every) / self.move, 0.0, 1.0)[:, None]
        begin = self.poses[k % len(self.poses)]
        way = self.poses[(k + 1) % len(self.poses)] - begin
        return (
            begin + way * s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
            way * 30.0 * s**2 * (1.0 - s) ** 2 / self.move,
            way * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / self.move**2,
        )


def fixed_path(motion: str, model: Any, rng: np.random.Generator) -> Path:
    """A path of the joints of a robot with a fixed base.

    Args:
        motion: one of FIXED_MOTIONS, or 'other': all joints, brisk, to compare with.
        model: robot.
        rng: of everything.
    """
    low, high = np.maximum(model.q_min, -1.5), np.minimum(model.q_max, 1.5)
    half = 0.5 * (high - low)
    middle = 0.5 * (low + high) + 0.3 * half * rng.uniform(-1.0, 1.0, model.nj)
    if motion in ('good', 'other'):
        return _random_waves(middle, np.minimum(0.6 * half, 0.8), 0.1, 1.0, rng)
    if motion == 'small':
        return _random_waves(middle, np.minimum(0.6 * half, 0.05), 0.1, 1.0, rng)
    if motion == 'one_joint':
        moving = np.zeros(model.nj)
        moving[rng.integers(model.nj)] = 1.0
        return _random_waves(middle, np.minimum(0.6 * half, 0.8) * moving, 0.1, 1.0, rng)
    if motion == 'steps':
        poses = middle + np.minimum(0.6 * half, 0.8) * rng.uniform(-1.0, 1.0, (4, model.nj))
        return Steps(poses, 1.5, 0.5)
    # slow: joints go to and fro together
    reach = np.minimum(0.6 * half, rng.uniform(0.15, 0.4, model.nj))
    w = 2.0 * np.pi / rng.uniform(5.0, 8.0) * np.array([[1.0], [2.0]]) * np.ones(model.nj)
    phase = rng.uniform(0.0, 2.0 * np.pi, (2, 1)) + rng.uniform(-0.3, 0.3, (2, model.nj))
    return Waves(middle, reach * np.array([[0.85], [0.15]]), w, phase)


def standing_torques(
    model: Any, motion: str, part: float, rng: np.random.Generator
) -> Callable[[Any], JointCommand]:
    """A controller that moves a quadruped on its feet: up and down, to the sides, it rolls and pitches.

    Args:
        model: what the controller believes of the robot.
        motion: one of FLOATING_MOTIONS but 'trot', or 'other'.
        part: of the usual size.
        rng: of everything.
    """
    still = hold(model)
    assert still.q is not None
    reach, lowest, highest = {'slow': (0.1, 0.1, 0.2), 'small': (0.02, 0.2, 1.0)}.get(
        motion, (0.12, 0.2, 1.2)
    )
    waves = _random_waves(np.zeros(5), part * reach, lowest, highest, rng, terms=3)
    shapes = _shapes(model)

    def law(sim: Any) -> JointCommand:
        q, u, _ = waves(np.array(sim.time))
        return JointCommand(still.tau, still.q + q @ shapes, u @ shapes, still.kp, still.kd)

    return law


def _shapes(model: Any) -> Floats:
    """(5, nj) motions of the joints: height, pitch, roll, to the side, forward."""
    shapes = np.zeros((5, model.nj))
    signs = np.sign(model.standing[7:])
    for i, leg in enumerate(model.legs):
        hip, thigh, calf = leg.joint_indices
        front, left = (1.0 if i < 2 else -1.0), (1.0 if i % 2 == 0 else -1.0)
        for row, part in ((0, 1.0), (1, 0.5 * front), (2, 0.5 * left)):
            shapes[row, thigh], shapes[row, calf] = part * signs[thigh], 2.0 * part * signs[calf]
        shapes[3, hip] = 0.7
        shapes[4, thigh] = signs[thigh]
    return shapes
