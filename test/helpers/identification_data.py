# SPDX-License-Identifier: Apache-2.0
"""Samples whose truth is known: smooth motions of a robot, and the torques that they take, with noise."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from cases import Case
from cases import model_of as published_model

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ModelWarning
from quad_dynamics.identification.equations.columns import JOINT_KINDS, Columns, make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import Noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.model.inertia import flat_inertia, full_inertia


@dataclass(frozen=True)
class Levels:
    """Standard deviations of white noise on what is measured; all 0: nothing but the truth."""

    q: float = 0.0  # joints [rad]
    u: float = 0.0  # joints [rad/s]
    du: float = 0.0  # joints [rad/s^2]
    tau: float = 0.0  # [N m]
    force: float = 0.0  # [N]
    base: float = 0.0  # accelerations of the base [m/s^2, rad/s^2]; velocities have a tenth of it


QUIET = Levels()
TYPICAL = Levels(q=1e-4, u=2e-3, du=0.05, tau=0.05, force=0.5, base=0.02)


@functools.cache
def robot(name: str) -> Any:
    """A bundled robot or one of example-robot-data (fixed base), its inertia made that of real bodies."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model: Any = published_model(Case(name, False)) if name in ('ur5', 'panda') else qd.load_model(name)
    pi = model.pi.reshape(-1, 10).copy()
    for row in pi:
        row[:] = real_body(row)
    return model.with_pi(pi.ravel())


def real_body(pi: Floats, smallest: float = 0.02) -> Floats:
    """pi (10,) of a real body near one that is none: no eigenvalue of its mass distribution is too small."""
    mass = max(pi[0], 1e-3)
    com = pi[1:4] / mass
    inertia = full_inertia(pi[4:])
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia - mass * np.outer(com, com)
    values, vectors = np.linalg.eigh(spread)
    values = np.maximum(values, max(smallest * values[-1], 1e-7 * mass))
    second = (vectors * values) @ vectors.T + mass * np.outer(com, com)
    return np.concatenate([[mass], mass * com, flat_inertia(np.trace(second) * np.eye(3) - second)])


def changed(model: Any, seed: int, amount: float = 0.2) -> Any:
    """Another robot of the same kind: every body a little different, still real, and other friction.

    The mass distribution S = int r r^T dm of every body becomes A S A^T, with A near 1: consistent again.
    """
    rng = np.random.default_rng(seed)
    pi = model.pi.reshape(-1, 10).copy()
    for row in pi:
        P = pseudo_inertia(row)
        A = np.eye(4) + amount * rng.uniform(-0.5, 0.5, (4, 4))
        # The com moves by centimetres, not by the metre that a plain entry would mean.
        A[:3, 3] *= 0.1
        A[3, :3] *= 0.1
        row[:] = pi_of_pseudo(A @ P @ A.T)
    viscous = np.maximum(model.viscous, 0.02) * rng.uniform(1.2, 2.5, model.nj)
    coulomb = np.maximum(model.coulomb, 0.1) * rng.uniform(0.6, 1.8, model.nj)
    return model.with_pi(pi.ravel()).with_friction(viscous, coulomb)


def pseudo_inertia(pi: Floats) -> Floats:
    """(4, 4) [[S, h], [h^T, m]]: positive definite for a real body."""
    inertia = full_inertia(pi[4:])
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = pi[1:4]
    P[3, 3] = pi[0]
    return P


def pi_of_pseudo(P: Floats) -> Floats:
    """The inverse of `pseudo_inertia`."""
    S = P[:3, :3]
    return np.concatenate([[P[3, 3]], P[:3, 3], flat_inertia(np.trace(S) * np.eye(3) - S)])


def make_samples(
    model_true: Any,
    seed: int,
    seconds: float = 20.0,
    rate: float = 100.0,
    noise: Levels = QUIET,
    feet: bool = True,
    extra: Mapping[str, float] | None = None,
    stribeck_velocity: float = 0.1,
) -> tuple[Samples, Floats]:
    """Samples of a robot in motion, and the truth.

    Args:
        model_true: the robot.
        seed: of motion and noise.
        seconds: length [s].
        rate: of samples [Hz].
        noise: on what is measured.
        feet: whether the forces at the feet are measured; else 0, of a floating base.
        extra: unknowns that a model does not have, such as {'offset': 0.1, 'stribeck': 0.2}: the same for
            all joints.
        stribeck_velocity: of the truth.

    Returns:
        The samples, and x (size,) that they obey.
    """
    rng = np.random.default_rng(seed)
    columns = make_columns(model_true, stribeck_velocity)
    x = columns.prior.copy()
    for kind, value in (extra or {}).items():
        x[columns.slices[kind]] = value
    t = np.arange(round(seconds * rate)) / rate
    q, u, du = smooth_motion(model_true, t, rng)
    samples = Samples(model_true)
    truth = _true_rows(samples, columns, x, t, (q, u, du), rng)
    samples.append(_measured(samples, truth, model_true, noise, feet, rng))
    return samples, x


def equations_of(
    samples: Samples, columns: Columns, levels: Levels, mode: str | None = None, floor: float = 0.01
) -> Equations:
    """Equations with the noise that the samples have, no less than `floor` [N, N m]."""
    model = columns.model
    mode = mode or ('forces' if model.floating_base else 'fixed')
    base = np.full(6 if model.floating_base else 0, max(floor, levels.base * model.total_mass))
    joints = np.full(model.nj, max(floor, levels.tau))
    # Forces that were not measured may be ten times the weight.
    force = 98.1 * model.total_mass if mode == 'projection' else max(levels.force, floor)
    return Equations(samples, columns, mode, Noise(base, joints, force))


def predicted(columns: Columns, x: Floats, q: Floats, u: Floats, du: Floats) -> Floats:
    """(nv,) generalised forces that the equations say the unknowns x need for a motion in the air."""
    model, samples = columns.model, Samples(columns.model)
    parts: dict[str, Any] = {name: np.zeros((1, size)) for name, size in samples.layout.sizes.items()}
    parts |= {'time': [0.0], 'segment': [0.0], 'q': [q], 'u': [u], 'du': [du]}
    parts['sign'] = np.sign(u[None, model.nv - model.nj :])
    mode = 'projection' if model.floating_base else 'fixed'
    Y, y = equations_of(samples, columns, QUIET, mode).raw(samples.layout.join(**parts))
    return np.asarray((Y @ x - y)[0])


# ---------------------------------------------------------------- motion


class _Fourier:
    """Sums of sines for n signals; value and two derivatives are exact."""

    def __init__(self, n: int, amplitude: npt.ArrayLike, rng: np.random.Generator, terms: int = 5) -> None:
        self.w = 2.0 * np.pi * rng.uniform(0.1, 1.5, (terms, n))
        weights = rng.uniform(0.3, 1.0, (terms, n))
        self.a = np.broadcast_to(amplitude, n) * weights / weights.sum(axis=0)
        self.phase = rng.uniform(0.0, 2.0 * np.pi, (terms, n))

    def __call__(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        angle = self.w * t[:, None, None] + self.phase
        s, c = np.sin(angle), np.cos(angle)
        return (
            (self.a * s).sum(axis=1),
            (self.a * self.w * c).sum(axis=1),
            (-self.a * self.w**2 * s).sum(axis=1),
        )


def smooth_motion(model: Any, t: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """q, u, du along smooth paths about the middle of the joints' ranges, or the pose to stand in."""
    low, high = np.maximum(model.q_min, -1.5), np.minimum(model.q_max, 1.5)
    middle = 0.5 * (low + high)
    amplitude = np.minimum(0.45 * (high - low), 1.0)
    if model.floating_base:
        middle = model.standing[7:]
        amplitude = np.full(model.nj, 0.6)
    qj, uj, duj = _Fourier(model.nj, amplitude, rng)(t)
    qj += middle
    if not model.floating_base:
        return qj, uj, duj
    p, v, dv = _Fourier(3, 0.06, rng)(t)
    angles = _Fourier(3, [0.25, 0.25, 0.3], rng)
    quaternion, w = _turn(angles, t)
    h = 1e-5  # [s]; the central difference is exact to 1e-9
    dw = (_turn(angles, t + h)[1] - _turn(angles, t - h)[1]) / (2.0 * h)
    p[:, 2] += model.standing[2]
    return (
        np.concatenate([p, quaternion, qj], axis=1),
        np.concatenate([v, w, uj], axis=1),
        np.concatenate([dv, dw, duj], axis=1),
    )


def _turn(angles: _Fourier, t: Floats) -> tuple[Floats, Floats]:
    """Quaternions and angular velocities in the body frame, of roll, pitch and yaw."""
    a, da, _ = angles(t)
    (sr, sp, sy), (cr, cp, cy) = np.sin(a / 2).T, np.cos(a / 2).T
    quaternion = np.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=1,
    )
    (roll, pitch, _), (dr, dp, dy) = a.T, da.T
    w = np.stack(
        [
            dr - np.sin(pitch) * dy,
            np.cos(roll) * dp + np.sin(roll) * np.cos(pitch) * dy,
            -np.sin(roll) * dp + np.cos(roll) * np.cos(pitch) * dy,
        ],
        axis=1,
    )
    return quaternion, w


# ---------------------------------------------------------------- forces and noise


def _true_rows(
    samples: Samples,
    columns: Columns,
    x: Floats,
    t: Floats,
    motion: tuple[Floats, Floats, Floats],
    rng: np.random.Generator,
) -> Floats:
    """Rows without noise: torques from inverse dynamics, friction from x, forces that carry the base."""
    model, (q, u, du), n = columns.model, motion, len(t)
    sizes = samples.layout.sizes
    uj = u[:, model.nv - model.nj :]
    sign = np.sign(uj)
    force, stance = np.zeros((n, sizes['force'])), np.ones((n, sizes['stance']))
    needed = qd.inverse_dynamics(model, q, u, du)
    kinds = np.stack([x[part] for kind, part in columns.slices.items() if kind in JOINT_KINDS], axis=1)
    tau = needed[:, model.nv - model.nj :] + np.sum(columns.joint_columns(uj, sign) * kinds, axis=2)
    rows = samples.layout.join(
        time=t,
        segment=np.zeros(n),
        q=q,
        u=u,
        du=du,
        tau=tau,
        sign=sign,
        use=np.ones_like(tau),
        force=force,
        stance=stance,
    )
    if not model.floating_base:
        return rows
    J = equations_of(samples, columns, QUIET).foot_jacobians(rows)
    # The forces of least size that carry the base, and some that only strain the legs against each other.
    Jb = np.swapaxes(J[:, :, :6], 1, 2)
    inverse = np.linalg.pinv(Jb)
    inner = _Fourier(force.shape[1], 3.0, rng)(t)[0]
    f = (inverse @ (needed[:, :6] - (Jb @ inner[..., None])[..., 0])[..., None])[..., 0] + inner
    samples.layout.get(rows, 'force')[...] = f
    samples.layout.get(rows, 'tau')[...] -= np.einsum('nkj,nk->nj', J[:, :, 6:], f)
    return rows


def _measured(
    samples: Samples, rows: Floats, model: Any, noise: Levels, feet: bool, rng: np.random.Generator
) -> Floats:
    """Rows with noise."""
    get, nj = samples.layout.get, model.nj
    rows = rows.copy()

    def spoil(name: str, level: float, begin: int = 0, end: int | None = None) -> None:
        part = get(rows, name)[:, begin:end]
        part += level * rng.standard_normal(part.shape)

    for name, level in (('q', noise.q), ('u', noise.u), ('du', noise.du), ('tau', noise.tau)):
        spoil(name, level, begin=get(rows, name).shape[1] - nj)
    if model.floating_base:
        spoil('u', 0.1 * noise.base, end=6)
        spoil('du', noise.base, end=6)
        spoil('force', noise.force)
        if not feet:
            get(rows, 'force')[...] = 0.0
    uj = get(rows, 'u')[:, model.nv - nj :]
    get(rows, 'sign')[...] = np.sign(uj)
    # Near rest the sign of a noisy velocity says nothing.
    get(rows, 'use')[...] = np.abs(uj) > 4.0 * noise.u
    return rows
