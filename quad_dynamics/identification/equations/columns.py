# SPDX-License-Identifier: Apache-2.0
"""The vector x of unknowns: order, names, and values of the model.

Motor torques and foot forces are linear in x: Y x = S^T tau + J^T (f - bias). So is the effect of small
delays on both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.model import Model

INERTIAL = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
_INERTIAL_UNITS = ('kg', *['kg m'] * 3, *['kg m^2'] * 6)

# Unknowns of a joint, with their units (for a revolute joint). Their columns are
#   viscous: velocity; coulomb: its sign; offset: 1;
#   asymmetric: absolute value of the velocity (different viscous friction backwards);
#   stribeck: sign times exp(-(velocity / stribeck velocity)^2);
#   rotor: axial inertia of the rotor, before the gear.
# Coulomb friction that differs between the two directions is Coulomb friction plus an offset.
JOINT_KINDS = {
    'viscous': 'N m s/rad',
    'coulomb': 'N m',
    'offset': 'N m',
    'asymmetric': 'N m s/rad',
    'stribeck': 'N m',
    'rotor': 'kg m^2',
}
ASSUMED_GEAR = 100.0  # of unknown rotors; only their inertia times its square has an effect
NOT_NEGATIVE = ('viscous', 'coulomb', 'stribeck', 'rotor')


@dataclass(frozen=True, eq=False)
class Columns:
    """The vector x of all unknowns of a robot.

    It contains 10 inertial parameters of each body, those of each joint, and sensor errors.

    Attributes:
        model: robot; its parameters are the prior.
        names: of each unknown, such as 'FL_calf.mcz', 'FL_calf_joint.viscous', 'FL_foot.bias_x'.
        units: of each unknown.
        slices: of each kind of unknown: 'pi', the kinds of joints, 'bias', and 'delay': residual delays of
            torques and forces relative to positions.
        prior: (size,) values of the model: pi of its links without rotors, its friction and rotors; 0 for the
            others.
        known: (size,) added to x before it is multiplied by Y: the inertia of rotors that links carry, except
            for the axial inertia, which is unknown.
        carried: (10 nb, nj) what unit axial inertia of rotors adds to the bodies that carry them.
        stribeck_velocity: [rad/s or m/s].
    """

    model: Model
    names: tuple[str, ...]
    units: tuple[str, ...]
    slices: dict[str, slice]
    prior: Floats
    known: Floats
    carried: Floats
    stribeck_velocity: float

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.names)

    @property
    def armature_scale(self) -> Floats:
        """(nj,) armature of each joint relative to the inertia of its rotor: gear^2."""
        return np.asarray(self.model.rotor_gear**2)

    @property
    def armature_units(self) -> tuple[str, ...]:
        """Unit of the armature of each joint."""
        return tuple('kg' if prismatic else 'kg m^2' for prismatic in self.model.is_prismatic)

    @property
    def n_feet(self) -> int:
        """Number of feet whose forces may be measured; 0 with a fixed base."""
        bias = self.slices['bias']
        return int(bias.stop - bias.start) // 3

    def carry(self, Y: Floats) -> None:
        """Add the motion of the carrying links to columns of rotors that only spin, in place.

        Args:
            Y: (..., size) rows, or sums of rows.
        """
        Y[..., self.slices['rotor']] += Y[..., self.slices['pi']] @ self.carried

    def joint_columns(self, velocity: Floats, sign: Floats) -> Floats:
        """(n, nj, kinds) columns of each joint, in the order of JOINT_KINDS; 0 for rotors.

        Args:
            velocity: (n, nj) of the joints.
            sign: (n, nj) of the velocities, filtered.
        """
        dip = sign * np.exp(-((velocity / self.stribeck_velocity) ** 2))
        parts = (velocity, sign, np.ones_like(sign), np.abs(velocity), dip, np.zeros_like(sign))
        return np.stack(parts, axis=-1)


def joint_units(model: Model, revolute: str, prismatic: str) -> str:
    """Unit of a quantity of all joints, such as 'rad', 'm', or 'rad or m' if the robot has both kinds.

    Args:
        model: robot.
        revolute: unit for a revolute joint.
        prismatic: unit for a prismatic joint.
    """
    units = [prismatic if each else revolute for each in model.is_prismatic]
    return ' or '.join(dict.fromkeys(units)) or revolute


def make_columns(model: Model, stribeck_velocity: float = 0.1) -> Columns:
    """All unknowns of a robot.

    Args:
        model: robot.
        stribeck_velocity: at which the Stribeck column has decayed to 1/e [rad/s or m/s].
    """
    model = _with_gears(model)
    feet = model.foot_names if model.floating_base else ()
    names = [f'{body}.{name}' for body in model.body_names for name in INERTIAL]
    units = list(_INERTIAL_UNITS) * model.nb
    slices = {'pi': slice(0, len(names))}
    for kind, unit in JOINT_KINDS.items():
        slices[kind] = slice(len(names), len(names) + model.nj)
        names += [f'{joint}.{kind}' for joint in model.joint_names]
        units += [
            _of_prismatic(unit) if prismatic and kind != 'rotor' else unit for prismatic in model.is_prismatic
        ]
    slices['bias'] = slice(len(names), len(names) + 3 * len(feet))
    names += [f'{foot}.bias_{axis}' for foot in feet for axis in 'xyz']
    units += ['N'] * (3 * len(feet))
    delays = ['torques.delay', *['forces.delay'] * bool(feet)]
    slices['delay'] = slice(len(names), len(names) + len(delays))
    names += delays
    units += ['s'] * len(delays)
    prior, known = np.zeros(len(names)), np.zeros(len(names))
    carried = model.unit_rotor_pi
    prior[slices['pi']], known[slices['pi']] = model.pi, model.rotor_pi - carried @ model.rotor_inertia
    prior[slices['viscous']], prior[slices['coulomb']] = model.viscous, model.coulomb
    prior[slices['rotor']] = model.rotor_inertia
    return Columns(model, tuple(names), tuple(units), slices, prior, known, carried, stribeck_velocity)


def _with_gears(model: Model) -> Model:
    """The same robot with an assumed gear for each unknown rotor, because motors turn faster than joints."""
    described = {*model.description.rotors, *model.description.motors}
    unknown = (model.rotor_inertia == 0.0) & (model.rotor_gear == 1.0)
    unknown &= [name not in described for name in model.joint_names]
    return (
        model.with_rotors(gear=np.where(unknown, ASSUMED_GEAR, model.rotor_gear)) if unknown.any() else model
    )


def _of_prismatic(unit: str) -> str:
    return unit.replace('N m s/rad', 'N s/m').replace('N m', 'N')
