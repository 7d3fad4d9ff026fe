# SPDX-License-Identifier: Apache-2.0
"""Samples of fixed-base arms, as good or bad as a test wants: short, slow, noisy, with unknown effects."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ModelWarning
from quad_dynamics.identification.equations.columns import Columns, make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import Noise
from quad_dynamics.identification.equations.samples import Samples

ARMS = {
    'ur5': 'ur_description/urdf/ur5_robot.urdf',
    'panda': 'panda_description/urdf/panda.urdf',
    'kinova': 'kinova_description/robots/kinova.urdf',
}


@functools.cache
def arm(name: str) -> Any:
    """An arm of example-robot-data, as its file says."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return qd.load_model(str(robots_folder() / ARMS[name]))


@dataclass(frozen=True)
class Motion:
    """How an arm moves and is measured.

    Attributes:
        seconds: length [s].
        amplitude: of each joint, about a random pose [rad or m].
        speed: highest frequency of the motion [Hz].
        noise: standard deviation of torques, as part of their root mean square.
        memory: time over which errors of torques depend on each other [s]; 0 for white noise.
        rate: of samples [Hz].
    """

    seconds: float
    amplitude: float
    speed: float
    noise: float
    memory: float = 0.0
    rate: float = 100.0


@dataclass(frozen=True)
class Unknown:
    """What the arm has and its file has not, the same for all joints relative to their torques."""

    friction: float = 0.1
    offset: float = 0.0
    armature: float = 0.0


def record(model: Any, motion: Motion, unknown: Unknown, seed: int, noise_free: bool = False) -> Samples:
    """Samples of an arm in motion.

    Args:
        model: the true arm.
        motion: how it moves.
        unknown: what it has besides.
        seed: of motion and noise.
        noise_free: measure without noise.
    """
    rng = np.random.default_rng(seed)
    nj, t = model.nj, np.arange(round(motion.seconds * motion.rate)) / motion.rate
    w = 2.0 * np.pi * rng.uniform(0.1, 1.0, (5, nj)) * motion.speed
    a = motion.amplitude * rng.uniform(0.3, 1.0, (5, nj)) / 3.0
    angle = w * t[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, (5, nj))
    low, high = np.maximum(model.q_min, -1.5), np.minimum(model.q_max, 1.5)
    q = (a * np.sin(angle)).sum(axis=1) + 0.5 * (low + high) + 0.3 * (high - low) * rng.uniform(-1.0, 1.0, nj)
    u, du = (a * w * np.cos(angle)).sum(axis=1), (-a * w**2 * np.sin(angle)).sum(axis=1)
    size = torque_scale(model)
    inertia = np.array([np.diag(qd.mass_matrix(model, each)) for each in q[:: max(len(q) // 20, 1)]]).mean(
        axis=0
    )
    tau = qd.inverse_dynamics(model, q, u, du)
    tau = tau + unknown.friction * size * (np.sign(u) + 0.5 * u) + unknown.offset * size
    tau = tau + unknown.armature * inertia * du
    if not noise_free:
        tau = tau + motion.noise * size * coloured(len(t), nj, motion.memory * motion.rate, rng)
    samples = Samples(model)
    nothing = np.zeros((len(t), 0))
    samples.append(
        samples.layout.join(
            time=t,
            segment=np.zeros(len(t)),
            q=q,
            u=u,
            du=du,
            tau=tau,
            sign=np.sign(u),
            use=np.ones_like(tau),
            force=np.zeros((len(t), samples.layout.sizes['force']))
            if samples.layout.sizes['force']
            else nothing,
            stance=np.zeros((len(t), samples.layout.sizes['stance'])),
        )
    )
    return samples


def coloured(n: int, k: int, memory: float, rng: np.random.Generator) -> Floats:
    """(n, k) noise of variance 1 whose values depend on each other over `memory` samples."""
    white = rng.standard_normal((n, k))
    if memory <= 0.0:
        return white
    keep = np.exp(-1.0 / memory)
    for i in range(1, n):
        white[i] = keep * white[i - 1] + np.sqrt(1.0 - keep**2) * white[i]
    return white


@functools.cache
def _torque_scale(model: Any) -> tuple[float, ...]:
    rng = np.random.default_rng(0)
    low, high = np.maximum(model.q_min, -1.5), np.minimum(model.q_max, 1.5)
    q = rng.uniform(low, high, (50, model.nj))
    du = rng.uniform(-5.0, 5.0, q.shape)
    size = np.sqrt(np.mean(qd.inverse_dynamics(model, q, 0.0 * q, du) ** 2, axis=0))
    return tuple(size + 0.03 * size.max())  # no drive is made for the torque of a finger


def torque_scale(model: Any) -> Floats:
    """(nj,) what the drives are made for: root mean square of torques, and a little."""
    return np.array(_torque_scale(model))


def equations_of_arm(samples: Samples, columns: Columns, motion: Motion) -> Equations:
    """With the noise that the samples have."""
    noise = Noise(np.empty(0), np.maximum(motion.noise, 1e-3) * torque_scale(columns.model), 0.0)
    return Equations(samples, columns, 'fixed', noise)


def columns_of(model: Any) -> Columns:
    """All unknowns of an arm."""
    return make_columns(model)
