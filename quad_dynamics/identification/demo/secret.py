# SPDX-License-Identifier: Apache-2.0
"""Hidden parameters of a simulated robot: a payload on its trunk, and friction of its joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.api.drives import typical_friction
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.inertia import pi_of
from quad_dynamics.model.model import Model

# Mass of the payload, relative to that of the robot.
_MASS = (0.04, 0.07)
# Its position: in x and y relative to the distance from the trunk's origin to the hips, in either direction;
# in z upwards, relative to the distance to the hips in x. And its edge length, relative to the same.
_ASIDE, _ABOVE, _EDGE = (0.2, 0.6), (0.2, 0.4), 0.3
# Friction, as a multiple of that in the URDF. Below a few times the usual 0.01 N m s/rad, viscous friction is
# masked by Coulomb friction, and after a minute of motion it is uncertain by more than 5 %.
_VISCOUS, _COULOMB = (2.5, 8.0), (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Secret:
    """Hidden values.

    Attributes:
        mass: of the payload [kg].
        place: (3,) position of its centre of mass in the frame of the trunk [m].
        edge: edge length of the payload, a cube of uniform density [m].
        viscous: (nj,) [N m s/rad].
        coulomb: (nj,) [N m].
    """

    mass: float
    place: Floats
    edge: float
    viscous: Floats
    coulomb: Floats

    def hidden_in(self, model: Model) -> Model:
        """The robot with the payload and this friction."""
        pi = model.pi.copy()
        inertia = self.mass * self.edge**2 / 6.0 * np.eye(3)
        pi[:10] += pi_of(self.mass, self.place, inertia)
        return model.with_pi(pi).with_friction(self.viscous, self.coulomb)


def make_secret(model: Model, seed: int) -> Secret:
    """Hidden values of a size that the robot can carry.

    Args:
        model: a robot that stands on legs.
        seed: the same seed gives the same values.

    Raises:
        ArgumentError: the robot has a fixed base or no legs.
    """
    if not model.floating_base or not model.legs:
        raise ArgumentError(
            f"'{model.name}' has {'no legs' if model.floating_base else 'a fixed base'}; expected a robot "
            'that stands on legs, such as mini_cheetah'
        )
    rng = np.random.default_rng(seed)
    hips = np.abs([model.joint_p[leg.joint_indices[0], :2] for leg in model.legs]).max(axis=0)
    aside = rng.uniform(*_ASIDE, 2) * rng.choice([-1.0, 1.0], 2)
    place = np.array([*(aside * hips), rng.uniform(*_ABOVE) * hips[0]])
    viscous, coulomb = typical_friction(model)
    return Secret(
        mass=float(rng.uniform(*_MASS) * model.total_mass),
        place=place,
        edge=float(_EDGE * hips[0]),
        viscous=viscous * rng.uniform(*_VISCOUS, model.nj),
        coulomb=coulomb * rng.uniform(*_COULOMB, model.nj),
    )
