# SPDX-License-Identifier: Apache-2.0
"""Selection of the recorded quantities, and torques from commands if none were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import Chunk, Source
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.model.model import Model

TARGETS = ('target_position', 'target_velocity', 'target_effort')


@dataclass(frozen=True, eq=False)
class Quantities:
    """The quantities of a recording that are used.

    Attributes:
        keys: channels.
        base: 'odom', 'imu', or '' for a fixed base.
        forces: feet whose forces were measured.
        contacts: feet whose contact flags are recorded; all of them, or none.
        commanded: whether torques are computed from commands.
        kp: (nj,) gains of the drives.
        kd: (nj,).
        effort_scale: (nj,) factor of measured efforts.
    """

    keys: frozenset[str]
    base: str
    forces: tuple[str, ...]
    contacts: tuple[str, ...]
    commanded: bool
    kp: Floats
    kd: Floats
    effort_scale: Floats

    @property
    def slopes(self) -> bool:
        """Whether velocities are needed for torques, and none were measured."""
        return self.commanded and bool(np.any(self.kd)) and 'velocity' not in self.keys

    def torques(self, values: dict[str, Floats]) -> Floats:
        """(n, nj) measured, or from commands: effort + kp (position - q) + kd (velocity - qd).

        Args:
            values: (n, nj) of quantities, by name.
        """
        if not self.commanded:
            return self.effort_scale * values['effort']
        tau = np.zeros_like(values['position'])
        if 'target_effort' in values:
            tau = tau + values['target_effort']
        if 'target_position' in values:
            tau = tau + self.kp * (values['target_position'] - values['position'])
        if np.any(self.kd) and ('target_position' in values or 'target_velocity' in values):
            wanted = values.get('target_velocity', np.zeros_like(tau))
            tau = tau + self.kd * (wanted - values['velocity'])
        return tau


def choose_quantities(source: Source, model: Model, settings: SignalSettings, first: Chunk) -> Quantities:
    """Select the quantities.

    Args:
        source: recording; notes are added to it.
        model: robot.
        settings: of signals.
        first: chunk of the recording.

    Raises:
        ArgumentError: there are no torques, or no motion of the base.
    """
    present = {key.split('#', 1)[0] for key in first}
    if 'position' not in present:
        raise ArgumentError(f'{source.name}: holds no positions of the joints')
    wanted = {'position', 'velocity', 'acceleration'} & present
    if settings.velocity == 'positions' and 'velocity' in present:
        wanted -= {'velocity'}
        source.note('measured velocities are ignored; positions are differentiated')
    commanded = _commanded(source, present)
    wanted |= set(TARGETS) & present if commanded else {'effort'}
    numbers = (('kp', 0.0), ('kd', 0.0), ('effort_scale', 1.0))
    kp, kd, scale = (np.array(source.topics.of_joints(name, model.nj, usual)) for name, usual in numbers)
    if commanded:
        _check_commands(source, present, kp, kd)
    base = _base(source, model, settings, present)
    wanted |= {'odom': {'base', 'base_acceleration'}, 'imu': {'imu'}, '': set()}[base]
    if base == 'imu' and 'base_acceleration' in present:
        source.note('the acceleration of the base is not used: that of the IMU is')
    forces = _all_feet(source, model, present, 'force', 'measured force')
    wanted |= {f'force/{foot}' for foot in forces}
    contacts = _all_feet(source, model, present, 'contact', 'contact')
    wanted |= {f'contact/{foot}' for foot in contacts}
    keys = frozenset(key for key in first if key.split('#', 1)[0] in wanted)
    _note_unused(source, commanded, scale, model)
    return Quantities(keys, base, forces, contacts, commanded, kp, kd, scale)


def _all_feet(source: Source, model: Model, present: set[str], kind: str, what: str) -> tuple[str, ...]:
    """All feet, if the recording has a quantity for each of them; else none, with a note."""
    if not model.floating_base:
        return ()
    lacking = [foot for foot in model.foot_names if f'{kind}/{foot}' not in present]
    if lacking and len(lacking) < len(model.foot_names):
        source.note(f'{kind}s of {", ".join(lacking)} were not measured; no {what} is used')
    return () if lacking else model.foot_names


def _note_unused(source: Source, commanded: bool, scale: Floats, model: Model) -> None:
    """Add notes about the factor of the efforts of each joint, and about settings that have no effect."""
    if commanded and source.topics.effort_scale:
        source.note('effort_scale is not used: torques are those of commands')
    elif np.any(scale != 1.0):
        each = ', '.join(f'{name}: {x:g}' for name, x in zip(model.joint_names, scale, strict=True))
        source.note(f'efforts are multiplied by {f"{scale[0]:g}" if np.ptp(scale) == 0.0 else each}')
    if not commanded and (source.topics.kp or source.topics.kd):
        source.note('kp and kd are not used: torques were measured; torque=command takes those of commands')


def _commanded(source: Source, present: set[str]) -> bool:
    """Whether torques are computed from commands."""
    torque = source.topics.torque
    if torque == 'effort' and 'effort' not in present:
        raise ArgumentError(f'{source.name}: the joints have no effort, and torque is set to effort')
    if torque == 'command' or 'effort' not in present:
        if not present & set(TARGETS):
            raise ArgumentError(
                f'{source.name}: the joints have no effort, and there are no commands '
                f'({source.topics.joint_torques} or {source.topics.joint_targets}) to compute it from'
            )
        return True
    return False


def _check_commands(source: Source, present: set[str], kp: Floats, kd: Floats) -> None:
    """Check that there are gains for commands of positions or velocities."""
    if 'target_position' in present and not np.any(kp):
        raise ArgumentError(
            f'{source.name}: commands hold positions, but no gains of the drives are given; expected kp and '
            'kd'
        )
    if 'target_velocity' in present and not np.any(kd) and 'target_position' not in present:
        raise ArgumentError(f'{source.name}: commands hold velocities, but kd is not given')
    terms = []
    if 'target_effort' in present:
        terms.append('commanded effort')
    if 'target_position' in present:
        terms.append('kp (commanded - measured position)')
    if np.any(kd) and present & {'target_position', 'target_velocity'}:
        moving = 'commanded' if 'target_velocity' in present else '0'
        terms.append(f'kd ({moving} - measured velocity)')
    source.note(f'torque was not measured; assumed as {" + ".join(terms)}')


def _base(source: Source, model: Model, settings: SignalSettings, present: set[str]) -> str:
    """Source of the motion of the base."""
    if not model.floating_base:
        if settings.base != 'auto':
            raise ArgumentError(
                f'base is {settings.base!r}{" (--imu)" if settings.base == "imu" else ""}, but the base of '
                f'{model.name} is fixed; expected nothing, or --floating-base as well'
            )
        return ''
    there = [name for name, key in (('odom', 'base'), ('imu', 'imu')) if key in present]
    if settings.base == 'auto' and there:
        chosen = there[0]
    elif settings.base in there:
        chosen = settings.base
    else:
        raise ArgumentError(
            f'{source.name}: has {" and ".join(there) or "no motion of the base"}; expected '
            f'{"odom or imu" if settings.base == "auto" else settings.base}'
        )
    named = source.topics.named
    if chosen == 'odom' and 'imu' in there and 'imu' in named and 'odom' not in named:
        source.note('motion of the base from odometry; --imu takes that of the IMU')
    if chosen == 'imu':
        source.note(
            'motion of the base from the IMU: its position and velocity are unknown '
            '(0; no torque depends on them)'
        )
    return chosen
