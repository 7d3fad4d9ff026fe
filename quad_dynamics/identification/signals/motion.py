# SPDX-License-Identifier: Apache-2.0
"""From measured rows to configuration, velocity and acceleration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.signals.base_motion import angular_motion, rate_of, rotate
from quad_dynamics.identification.signals.filters import HALF, LowPass, blend, derivative
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.model.model import Model


@dataclass(frozen=True, eq=False)
class Fusion:
    """How positions and measured velocities of some columns are fused.

    Attributes:
        corner: (k,) below it velocities come from positions, above it from measured velocities [rad/s];
            infinite: only from positions; 0: only measured.
        lag: (k,) delay of measured velocities [s].
    """

    corner: Floats
    lag: Floats

    @staticmethod
    def positions(k: int) -> Fusion:
        """Velocities from positions alone."""
        return Fusion(np.full(k, np.inf), np.zeros(k))


@dataclass(frozen=True, eq=False)
class Moved:
    """Positions, velocities and accelerations; the first row belongs to row HALF."""

    p: Floats
    v: Floats
    a: Floats


def differentiate(p: Floats, v: Floats | None, fusion: Fusion, period: float, low_pass: LowPass) -> Moved:
    """Filtered velocities and accelerations of signals, with or without measured velocities.

    Args:
        p: (n, k).
        v: (n, k) measured velocities; None: there are none.
        fusion: how they are combined.
        period: between rows [s].
        low_pass: filter. It is applied first: at the ends of the rows, the noise of a derivative would be
            large.
    """
    p, v = low_pass(p), None if v is None else low_pass(v)
    inner = slice(HALF, len(p) - HALF)
    slow_v, slow_a = derivative(p, period), derivative(p, period, 2)
    if v is None or not np.any(np.isfinite(fusion.corner)):
        return Moved(p[inner], slow_v, slow_a)
    first, second = derivative(v, period), derivative(v, period, 2)
    fast_v = v[inner] + fusion.lag * first + 0.5 * fusion.lag**2 * second
    fast_a = first + fusion.lag * second
    rate = 1.0 / period
    corner = fusion.corner
    return Moved(p[inner], blend(slow_v, fast_v, corner, rate), blend(slow_a, fast_a, corner, rate))


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """Settings for the computation of motion from rows.

    Attributes:
        model: robot.
        joints: of positions and velocities of the joints.
        base: of position and quaternion of the base (7 columns).
        imu: (3,) position of the IMU in the base's frame [m]; None: odometry is used.
    """

    model: Model
    joints: Fusion
    base: Fusion
    imu: Floats | None

    def reach(self, rate: float) -> int:
        """Rows after which the impulse response is negligible, before the low-pass filter."""
        corners = np.concatenate([self.joints.corner, self.base.corner])
        finite = corners[np.isfinite(corners) & (corners > 0.0)]
        slowest = float(finite.min()) if len(finite) else math.inf
        return 2 * HALF + math.ceil(28.0 * rate / slowest)


@dataclass(frozen=True, eq=False)
class States:
    """Filtered states of the rows from HALF to n - HALF.

    Attributes:
        q: (n, nq).
        u: (n, nv).
        du: (n, nv).
    """

    q: Floats
    u: Floats
    du: Floats


def states(grid: Grid, rows: Floats, plan: MotionPlan, low_pass: LowPass) -> States:
    """Filtered states of rows.

    Args:
        grid: of the rows.
        rows: (n, width).
        plan: settings.
        low_pass: filter.
    """
    v = grid.get(rows, 'velocity') if 'velocity' in grid else None
    joints = differentiate(grid.get(rows, 'position'), v, plan.joints, grid.period, low_pass)
    q, u, du = joints.p, joints.v, joints.a
    inner = slice(HALF, len(rows) - HALF)
    if 'acceleration' in grid:
        du = low_pass(grid.get(rows, 'acceleration'))[inner]
    if plan.model.floating_base:
        base = _from_odometry if plan.imu is None else _from_imu
        base_q, base_u, base_du = base(grid, rows, plan, low_pass)
        if 'base_acceleration' in grid:
            base_du = low_pass(world_acceleration(grid, rows))[inner]
        q, u, du = np.hstack([base_q, q]), np.hstack([base_u, u]), np.hstack([base_du, du])
    return States(q, u, du)


def base_signals(grid: Grid, rows: Floats) -> tuple[Floats, Floats]:
    """(n, 7) position and quaternion of the base from odometry, and (n, 7) their measured derivatives."""
    base = grid.get(rows, 'base')
    quaternion = base[:, 3:7] / np.linalg.norm(base[:, 3:7], axis=1, keepdims=True)
    v = rotate(quaternion, base[:, 7:10])
    return np.hstack([base[:, :3], quaternion]), np.hstack([v, rate_of(quaternion, base[:, 10:13])])


def _from_odometry(
    grid: Grid, rows: Floats, plan: MotionPlan, low_pass: LowPass
) -> tuple[Floats, Floats, Floats]:
    p, v = base_signals(grid, rows)
    moved = differentiate(p, v, plan.base, grid.period, low_pass)
    p, v, a = moved.p, moved.v, moved.a
    quaternion, w, dw = angular_motion(p[:, 3:], v[:, 3:], a[:, 3:])
    return np.hstack([p[:, :3], quaternion]), np.hstack([v[:, :3], w]), np.hstack([a[:, :3], dw])


def world_acceleration(grid: Grid, rows: Floats) -> Floats:
    """(n, 6) recorded acceleration of the base: of its origin in world axes, and angular in base axes."""
    quaternion, a = base_signals(grid, rows)[0][:, 3:], grid.get(rows, 'base_acceleration')
    return np.hstack([rotate(quaternion, a[:, :3]), a[:, 3:]])


def imu_signals(grid: Grid, rows: Floats) -> tuple[Floats, Floats]:
    """(n, 4) quaternion of the base from an IMU, and (n, 4) its derivative from the gyroscope."""
    imu = grid.get(rows, 'imu')
    quaternion = imu[:, :4] / np.linalg.norm(imu[:, :4], axis=1, keepdims=True)
    return quaternion, rate_of(quaternion, imu[:, 4:7])


def _from_imu(grid: Grid, rows: Floats, plan: MotionPlan, low_pass: LowPass) -> tuple[Floats, Floats, Floats]:
    """States from an IMU. Position and velocity are unknown; nothing depends on them, and they are 0."""
    place = plan.imu
    assert place is not None
    p, v = imu_signals(grid, rows)
    fusion = Fusion(plan.base.corner[3:], plan.base.lag[3:])
    moved = differentiate(p, v, fusion, grid.period, low_pass)
    quaternion, w, dw = angular_motion(moved.p, moved.v, moved.a)
    inner = slice(HALF, len(rows) - HALF)
    a = low_pass(rotate(p, grid.get(rows, 'imu')[:, 7:10]))[inner] + plan.model.gravity
    # acceleration of the base's origin: without the effect of rotation at the IMU
    a = a - rotate(quaternion, np.cross(dw, place) + np.cross(w, np.cross(w, place)))
    zero = np.zeros((len(a), 3))
    return np.hstack([zero, quaternion]), np.hstack([zero, w]), np.hstack([a, dw])
