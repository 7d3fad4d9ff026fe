# SPDX-License-Identifier: Apache-2.0
"""Validation of the motion of the base: velocities against the pose, and forces against accelerations.

These comparisons also show time stamps that are scaled: derivatives depend on time, measured velocities and
forces do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.checks import FASTEST, SLOWEST, SURE
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.signals.agreement import (
    MOVES,
    Agreement,
    LaggedSums,
    filtered_pairs,
    lagged_sums,
)
from quad_dynamics.identification.signals.base_motion import multiply, rotate
from quad_dynamics.identification.signals.filters import HALF, LowPass, derivative, noise_level
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.quantities import Quantities
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.stance import world_forces
from quad_dynamics.model.model import Model

LINEAR, _ANGULAR = slice(7, 10), slice(10, 13)  # the twist in the columns of odometry
_WINDOW = 10.0  # time that is processed at once [s]
_HIGHEST = (15.0, 5.0, 2.0)  # cutoffs of the comparison of velocities [Hz]; the lower ones if poses are noisy
_SLOW = 8.0  # the same for accelerations [Hz]
_LEAST = {'linear': 2e-3, 'angular': 4e-3}  # RMS velocity of a base that moves [m/s, rad/s]
_TWIST = 0.1  # relative error of velocities without a note
_TURNED = 0.03  # relative difference of vectors in world and base axes above which they can be told apart
_BETTER = 2.0  # ratio of what is left by both axes, from which they are told apart
# Share of the velocity that the pose must explain before a small or negative factor is certain; and shares
# that it leaves unexplained in base axes, and in axes that are turned, from which these are others.
_EXPLAINED, _OTHER_AXES, _SAME_AXES = 0.5, 0.3, 0.1
_DEGREES = 180.0 / np.pi
_LIGHTEST, _HEAVIEST = 0.4, 2.5  # accepted mass from forces and accelerations, relative to the model
_SHARED = 0.5  # share of the forces that accelerations must explain before they are compared
_ACCELERATED = 0.02  # RMS acceleration from which forces are compared [m/s^2]
_GRAVITY = 3.0  # accepted error of the mean specific force [m/s^2]


@dataclass(frozen=True)
class _Compared:
    """One measured velocity: 'linear' or 'angular', its agreement in base axes, and whether others fit."""

    kind: str
    base: Agreement
    world: bool
    turned: bool

    @property
    def factor(self) -> float:
        return self.base.low

    @property
    def wrong(self) -> bool:
        """Whether the factor is outside the accepted range, whichever of both signals is noisy."""
        found = self.base
        if found.low >= SLOWEST - SURE * found.error:
            return found.low > FASTEST + SURE * found.error
        return found.high < SLOWEST and found.left < 1.0 - _EXPLAINED

    def told(self) -> str:
        of = 'position' if self.kind == 'linear' else 'orientation'
        return f'{self.kind} velocity is {self.factor:.3g} times the derivative of the {of}'


def refuse_base(
    source: Source, grid: Grid, model: Model, chosen: Quantities, settings: SignalSettings, cutoff: float
) -> None:
    """Check the measured motion of the base.

    Args:
        source: recording; notes are added to it.
        grid: its rows.
        model: robot.
        chosen: quantities that are used.
        settings: of signals.
        cutoff: of the motion [Hz].

    Raises:
        ArgumentError: velocities are not the derivatives of the pose, forces do not accelerate the base as it
            moves, or an IMU does not measure gravity.
    """
    ignored = settings.velocity == 'positions'
    if chosen.base and ignored:
        source.note('measured velocities of the base are ignored; its pose is differentiated')
    if chosen.base == 'imu':
        _refuse_gravity(source, grid, model)
        if not ignored:
            _refuse_gyro(source, grid, cutoff)
    elif chosen.base == 'odom':
        if not ignored:
            _refuse_twist(source, grid, cutoff)
        if chosen.forces:
            _refuse_scaled_time(source, grid, model, cutoff)


def _refuse_twist(source: Source, grid: Grid, cutoff: float) -> None:
    """Check that the twist of odometry is the derivative of its pose, in base axes.

    Args:
        source: recording; a note is added if they differ slightly, or if the twist is zero throughout.
        grid: its rows, with odometry.
        cutoff: of the motion [Hz].

    Raises:
        ArgumentError: it is not; with the ratio and likely causes.
    """
    topic = source.named('odom')
    found = []
    for kind in ('linear', 'angular'):
        if not is_measured(grid, 'base', LINEAR if kind == 'linear' else _ANGULAR):
            source.note(f'{topic}: the {kind} velocity is zero throughout; the pose is differentiated')
        elif one := _compare(grid, 'base', kind, cutoff):
            found.append(one)
    _refuse(source, topic, found)
    off = [one.told() for one in found if abs(one.factor - 1.0) > _TWIST + one.base.error]
    if off:
        source.note(
            f'{topic}: {"; ".join(off)}; the pose is differentiated instead. Expected 1: the twist is in the '
            'axes of the base (nav_msgs/Odometry)'
        )


def _refuse_gravity(source: Source, grid: Grid, model: Model) -> None:
    """Check that the mean specific force of an IMU is that of gravity.

    Raises:
        ArgumentError: it is not: gravity was removed, or the unit, a sign or an axis is wrong.
    """
    windows = grid.windows(round(_WINDOW * grid.rate))
    imus = (grid.get(rows, 'imu') for _, _, _, rows in windows)
    total = sum(rotate(imu[:, :4], imu[:, 7:10]).sum(axis=0) for imu in imus)
    mean = np.asarray(total) / max(len(grid), 1)
    if np.linalg.norm(mean + model.gravity) > _GRAVITY:
        raise ArgumentError(
            f'{source.name}: {source.named("imu")}: the mean acceleration is {np.round(mean, 2).tolist()} '
            f'm/s^2 in world axes; expected about {np.round(-model.gravity, 2).tolist()}: the specific force '
            'in m/s^2, with gravity, in the axes of the IMU'
        )


def _refuse_gyro(source: Source, grid: Grid, cutoff: float) -> None:
    """Check that the angular velocity of an IMU is the derivative of its orientation.

    Raises:
        ArgumentError: it is not; with the ratio and likely causes.
    """
    topic = source.named('imu')
    if not is_measured(grid, 'imu', slice(4, 7)):
        source.note(f'{topic}: the angular velocity is zero throughout; the orientation is differentiated')
    elif one := _compare(grid, 'imu', 'angular', cutoff):
        _refuse(source, topic, [one])


def _refuse_scaled_time(source: Source, grid: Grid, model: Model, cutoff: float) -> None:
    """Check that foot forces accelerate the base as it moves, up to the error of the mass.

    Only vertically: horizontal forces depend on the axes of the sensors.

    Raises:
        ArgumentError: they differ so much that time stamps, or forces, must be scaled.
    """

    def vectors(rows: Floats) -> tuple[Floats, Floats]:
        acceleration = derivative(grid.get(rows, 'base')[:, 2:3], grid.period, 2)
        force = world_forces(grid, rows, model, source.force_frames)[HALF : len(rows) - HALF, 2::3]
        return acceleration[None], force.sum(axis=1, keepdims=True) / model.total_mass

    low_pass = LowPass(min(cutoff, _SLOW), 4, grid.rate)
    sums = lagged_sums(filtered_pairs(grid, vectors, low_pass, centred=True), low_pass)
    if not sums:
        return
    found = sums[0].agreement(0)
    if found.size < _ACCELERATED or found.left > _SHARED or found.low < 0.0:
        return
    if found.low - SURE * found.error > _HEAVIEST or found.high < _LIGHTEST:
        raise ArgumentError(
            f'{source.name}: vertical foot forces change by {found.low:.3g} times the mass of the model '
            f'times the acceleration of {source.named("odom")}; expected 1. Time stamps may be scaled (the '
            'ratio is the square of their scale), or forces may have another unit; check the rate of the '
            'joint states'
        )


def _compare(grid: Grid, name: str, kind: str, cutoff: float) -> _Compared | None:
    """Compare a measured velocity with the derivative of the pose; None if the base does not move."""
    for highest in _HIGHEST:
        low_pass = LowPass(min(cutoff, highest), 4, grid.rate)
        pairs = filtered_pairs(grid, lambda rows: _velocities(grid, rows, name, kind), low_pass)
        sums = lagged_sums(pairs, low_pass)
        if not sums:
            return None
        if _moves(grid, name, kind, sums[0], low_pass):
            return _compared(kind, sums[0])
    return None


def _compared(kind: str, sums: LaggedSums) -> _Compared:
    """The factor of a measured velocity, and the axes in which it is given."""
    # Axes are told apart at any lag: with another sign, or after half a period, vectors may look turned.
    base, world, turned = sums.agreement(0, False), sums.agreement(1, False), sums.turned(0)
    differ = sums.apart(0, 1) > _TURNED and base.left - world.left > SURE / np.sqrt(sums.free) * base.left
    in_world = differ and world.low > 0.0 and world.left < 0.5 and base.left > _BETTER * world.left
    other = base.left > _OTHER_AXES and turned.left < _SAME_AXES and not in_world
    return _Compared(kind, sums.agreement(0), bool(in_world), bool(other))


def _velocities(grid: Grid, rows: Floats, name: str, kind: str) -> tuple[Floats, Floats]:
    """Derivatives of the pose in base and in world axes (2, n, 3), and the measured velocity (n, 3)."""
    values = grid.get(rows, name)
    inner = slice(HALF, len(rows) - HALF)
    first = 3 if name == 'base' else 0
    quaternion = values[:, first : first + 4]
    q = quaternion[inner] / np.linalg.norm(quaternion[inner], axis=1, keepdims=True)
    inverse = q * np.array([-1.0, -1.0, -1.0, 1.0])
    if kind == 'linear':
        v = derivative(values[:, :3], grid.period)
        return np.stack([rotate(inverse, v), v]), values[inner, 7:10]
    rate = derivative(quaternion, grid.period)
    in_base, in_world = 2.0 * multiply(inverse, rate)[:, :3], 2.0 * multiply(rate, inverse)[:, :3]
    measured = values[inner, 10:13] if name == 'base' else values[inner, 4:7]
    return np.stack([in_base, in_world]), measured


def _moves(grid: Grid, name: str, kind: str, sums: LaggedSums, low_pass: LowPass) -> bool:
    """Whether the derivative of the pose is more than its noise."""
    first = 3 if name == 'base' else 0
    columns, gain = (slice(0, 3), 1.0) if kind == 'linear' else (slice(first, first + 4), 2.0)
    levels, count = 0.0, 0
    for _, _, _, rows in grid.windows(round(_WINDOW * grid.rate)):
        levels += len(rows) * float(np.sum((gain * noise_level(grid.get(rows, name)[:, columns])) ** 2))
        count += len(rows)
    noise = levels / max(count, 1) * low_pass.slope_noise
    square = float(sums.xx[len(sums.lags) // 2, 0, 0]) / sums.count
    return square > max(MOVES**2 * noise, _LEAST[kind] ** 2)


def is_measured(grid: Grid, name: str, columns: slice) -> bool:
    """Whether columns of a quantity were measured: they are not zero throughout."""
    windows = grid.windows(round(_WINDOW * grid.rate))
    return any(bool(np.any(grid.get(rows, name)[:, columns])) for _, _, _, rows in windows)


def _refuse(source: Source, topic: str, found: list[_Compared]) -> None:
    """Raise an error about velocities in the wrong axes, or with a wrong factor."""
    start, end = f'{source.name}: {topic}: ', '--velocity positions ignores the measured velocities'
    if world := [one.kind for one in found if one.world]:
        raise ArgumentError(
            f'{start}the {" and the ".join(world)} velocity {_verb(world)} given in world axes: only there '
            'it is the derivative of the pose; expected the axes of the base, as in nav_msgs/Odometry and '
            f'sensor_msgs/Imu. {end}'
        )
    if turned := [one.kind for one in found if one.turned and not one.wrong]:
        raise ArgumentError(
            f'{start}the {" and the ".join(turned)} velocity {_verb(turned)} not the derivative of the pose, '
            'but would be in axes that are turned: those of another link or sensor; expected the axes of the '
            f'base. {end}'
        )
    if wrong := [one for one in found if one.wrong]:
        raise ArgumentError(
            f'{start}the {"; the ".join(one.told() for one in wrong)}; expected 1. {_causes(wrong, found)}. '
            f'If pose and time stamps are right, {end}'
        )


def _verb(words: list[str]) -> str:
    return 'is' if len(words) == 1 else 'are'


def _causes(wrong: list[_Compared], found: list[_Compared]) -> str:
    """Likely causes of wrong factors."""
    factors = [one.factor for one in found]
    if any(one.kind == 'angular' and abs(one.factor / _DEGREES - 1.0) < 0.3 for one in wrong):
        return 'It looks like degrees per second; expected rad/s'
    if all(one.factor < SLOWEST - 1.0 for one in wrong):
        return 'Its sign is wrong, or it is that of the world relative to the base'
    same = len(factors) == 1 or abs(factors[0] - factors[1]) < 0.1 * abs(factors[0])
    if same and len(wrong) == len(found):
        both = ' by the same factor' if len(found) == 2 else ''
        return f'Time stamps may be scaled{both}, and then accelerations are wrong, too; or the unit is wrong'
    return 'Its unit may be wrong, or it may be given in another frame'
