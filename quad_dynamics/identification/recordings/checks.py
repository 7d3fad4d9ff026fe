# SPDX-License-Identifier: Apache-2.0
"""Validation of recordings; errors name the channel or joint."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import Channel, Source
from quad_dynamics.model.model import Model

_DEGREES = 180.0 / np.pi
_CARRIED = 0.4  # smallest mean share of the weight that the feet carry
# Accepted ratios of velocities to derivatives of positions: filters make them smaller, and in a public log of
# a real robot they are up to 1.16.
SLOWEST, FASTEST = 0.7, 1.25
_SAME_VELOCITY = 0.02  # deviation from 1 up to which measured velocities are used
SURE = 4.0  # standard deviations beyond these limits


def check_channel(name: str, key: str, channel: Channel, last: int | None, start: int, model: Model) -> None:
    """Check the stamps and numbers of a channel.

    Args:
        name: of the recording.
        key: of the channel.
        channel: its next chunk.
        last: previous stamp [ns]; None at the beginning.
        start: stamp of the beginning of the recording [ns].
        model: robot.

    Raises:
        ArgumentError: time goes backwards, a number is not finite, or a contact flag is not in [0, 1].
    """
    stamps = channel.stamps
    before = np.concatenate([[stamps[0] if last is None else last], stamps[:-1]]) if len(stamps) else stamps
    back = np.flatnonzero(stamps < before)
    if len(back):
        i = int(back[0])
        raise ArgumentError(
            f'{name}: time goes backwards: {key} at {_seconds(before[i], start)} is followed by '
            f'{_seconds(stamps[i], start)}; expected growing stamps'
        )
    bad = np.argwhere(~np.isfinite(channel.values))
    if len(bad):
        row, column = map(int, bad[0])
        value = channel.values[row, column]
        raise ArgumentError(
            f'{name}: {key}{_of(key, channel, column, model)} is {value} at {_seconds(stamps[row], start)} '
            f'({len(bad)} such numbers in this chunk); expected finite numbers'
        )
    if key.startswith('contact/') and np.any(odd := np.abs(channel.values[:, 0] - 0.5) > 0.5):
        row = int(np.argmax(odd))
        raise ArgumentError(
            f'{name}: {key} is {channel.values[row, 0]:g} at {_seconds(stamps[row], start)}; expected 1 on '
            'the ground, 0 in the air'
        )


def _seconds(stamp: np.int64, start: int) -> str:
    return f'{(int(stamp) - start) * 1e-9:.6f} s'


def _of(key: str, channel: Channel, column: int, model: Model) -> str:
    """Name of the joint of a column."""
    if key.split('#', 1)[0] in ('position', 'velocity', 'acceleration', 'effort') or key.startswith(
        'target_'
    ):
        return f' of {model.joint_names[(channel.columns or range(model.nj))[column]]}'
    return f' [{column}]'


def check_positions(source: Source, model: Model, low: Floats, high: Floats) -> None:
    """Check positions against the joint limits.

    Args:
        source: recording; a note is added for joints that exceed their limits.
        model: robot.
        low: (nj,) smallest positions.
        high: (nj,) largest.

    Raises:
        ArgumentError: they look like degrees.
    """
    turning = ~model.is_prismatic
    far = turning & ((low < model.q_min - 1.0) | (high > model.q_max + 1.0))
    # positions in degrees would be about inside the limits
    slack = 0.2
    fits = (low / _DEGREES > model.q_min - slack) & (high / _DEGREES < model.q_max + slack)
    huge = turning & (np.maximum(np.abs(low), np.abs(high)) > 8.0 * np.pi) & ~np.isfinite(model.q_max)
    if (np.any(far) and np.all(fits[far])) or (
        np.any(huge) and np.all(fits | ~turning) and not np.any(far & ~fits)
    ):
        i = int(np.argmax(np.where(turning, high - low, 0.0)))
        raise ArgumentError(
            f'{source.name}: positions look like degrees: {model.joint_names[i]} goes from {low[i]:.4g} to '
            f'{high[i]:.4g}, and its range is {model.q_min[i]:.4g} to {model.q_max[i]:.4g} rad; expected '
            'radians'
        )
    outside = (low < model.q_min - 1e-2) | (high > model.q_max + 1e-2)
    for i in map(int, np.flatnonzero(outside)):
        source.note(
            f'{model.joint_names[i]} goes from {low[i]:.4g} to {high[i]:.4g}, out of its range '
            f'{model.q_min[i]:.4g} to {model.q_max[i]:.4g}'
        )


def check_effort(source: Source, model: Model, largest: Floats, commanded: bool) -> None:
    """Check torques.

    Args:
        source: recording; a note is added for joints without torque.
        model: robot.
        largest: (nj,) largest torques.
        commanded: whether they were computed from commands.

    Raises:
        ArgumentError: all torques are always zero.
    """
    what = 'the torque of the commands' if commanded else 'effort'
    if not np.any(largest):
        raise ArgumentError(
            f'{source.name}: {what} of all joints is zero throughout; expected measured torques, or commands '
            'and the gains of the drives (torque: command, kp, kd)'
        )
    for i in map(int, np.flatnonzero(largest == 0.0)):
        source.note(f'{what} of {model.joint_names[i]} is zero throughout; its rows are not used')


def check_forces(source: Source, model: Model, carried: float) -> None:
    """Check that the feet carry the robot.

    Args:
        source: recording; a note is added if they carry much more or less than its weight.
        model: robot.
        carried: mean of the vertical forces relative to the weight; NaN if they were not measured.

    Raises:
        ArgumentError: they pull the robot down, or do not carry it.
    """
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    if carried < -0.3:
        raise ArgumentError(
            f'{source.name}: foot forces pull down with {-carried * weight:.4g} N; expected forces of the '
            f'ground on the feet, which carry about {weight:.4g} N'
        )
    if carried < _CARRIED:
        raise ArgumentError(
            f'{source.name}: foot forces carry {carried * weight:.4g} N of {weight:.4g} N: something else '
            'holds the robot, or it fell; expected a robot on its feet, or --fixed-base for one on a stand'
        )
    if carried < 0.7 or carried > 1.5:
        source.note(f'foot forces carry {carried * weight:.4g} N; the model weighs {weight:.4g} N')


def check_velocity(source: Source, model: Model, factor: Floats, error: Floats) -> None:
    """Check that velocities are the derivatives of positions; a lag and mild filtering are allowed.

    Args:
        source: recording; a note is added if they differ slightly, and positions are differentiated.
        model: robot.
        factor: (nj,) ratio of velocity to derivative of position, at the best lag; NaN for joints that do not
            move.
        error: (nj,) standard deviation of the factor.

    Raises:
        ArgumentError: velocities are not the derivatives of positions; with the joint and the factor.
    """
    known = np.isfinite(factor)
    wrong = known & ((factor > FASTEST + SURE * error) | (factor < SLOWEST - SURE * error))
    if wrong.any():
        raise ArgumentError(_wrong_velocity(source, model, factor, wrong))
    near = [
        f'{model.joint_names[i]} ({factor[i]:.2f})'
        for i in np.flatnonzero(known & (np.abs(factor - 1.0) > _SAME_VELOCITY))
    ]
    if near:
        source.note(
            f'velocities over derivatives of positions are not quite 1 for {", ".join(near)}; positions are '
            f'differentiated there{_scaled_time(factor[known])}'
        )


def _scaled_time(factor: Floats) -> str:
    """Text for velocities of all joints that are off by about the same factor; '' otherwise."""
    middle = float(np.median(factor))
    if len(factor) < 2 or np.ptp(factor) > 0.1 * abs(middle) or abs(middle - 1.0) < 0.05:
        return ''
    return (
        '. It is much the same for all joints: time stamps may be scaled, and then accelerations are wrong, '
        'too; check the rate of the joint states'
    )


def _wrong_velocity(source: Source, model: Model, factor: Floats, wrong: npt.NDArray[np.bool_]) -> str:
    """Error message about velocities that are not the derivatives of positions."""
    known = np.isfinite(factor)
    i = int(np.flatnonzero(wrong)[np.argmax(np.abs(np.log(np.maximum(np.abs(factor[wrong]), 1e-6))))])
    others = int(wrong.sum()) - 1
    more = f' ({others} more {"joint is" if others == 1 else "joints are"} wrong)' if others else ''
    start = (
        f'{source.name}: the velocity of {model.joint_names[i]} is {factor[i]:.3g} times the derivative of '
        f'its position{more}'
    )
    expected = 'expected 1'
    if not factor[known].any():
        expected = 'all velocities are zero, though joints move'
    turns = not model.is_prismatic[i]
    if turns and abs(factor[i] * _DEGREES - 1.0) < 0.3:
        return f'{start}: its positions look like degrees; expected radians'
    if turns and abs(factor[i] / _DEGREES - 1.0) < 0.3:
        expected = 'its velocities look like degrees per second; expected rad/s'
    elif factor[i] < SLOWEST - 1.0:
        expected = 'its sign is wrong'
    elif factor[i] != 0.0:
        expected += _scaled_time(factor[known])
    return (
        f'{start}: {expected}. If positions and time stamps are right, --velocity positions ignores the '
        'measured velocities'
    )
