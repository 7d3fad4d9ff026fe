# SPDX-License-Identifier: Apache-2.0
"""The simulated robot: the controller's model, modified by unknown changes."""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.drives import joint_friction, typical_friction
from quad_dynamics.array_types import Floats
from quad_dynamics.model.inertia import pi_of
from quad_dynamics.model.model import Model
from quad_dynamics.scenarios.settings import Payload, Truth


def true_robot(model: Model, truth: Truth) -> Model:
    """The simulated robot.

    The scale of the masses does not apply to the payload, nor to its share.

    Args:
        model: the controller's model; it has the link of the payload.
        truth: how the simulated robot differs.

    Raises:
        ArgumentError: the masses are not physically consistent.
    """
    pi = truth.mass_scale * model.pi + _payload(model, truth.payload)
    return model.with_pi(pi).with_friction(*_friction(model, truth))


def payload_link(model: Model, payload: Payload) -> str:
    """Name of the link that carries the payload; `base` is the base link, whatever its name."""
    if payload.link is None or (payload.link == 'base' and 'base' not in model.frames):
        return model.base_name
    return payload.link


def _payload(model: Model, payload: Payload) -> Floats:
    """(10 nb,) inertial parameters that are added."""
    added = np.zeros_like(model.pi)
    frame = model.frames[payload_link(model, payload)]
    own = model.pi[10 * frame.body : 10 * frame.body + 10]
    mass = payload.share * own[0] if payload.share is not None else payload.mass or 0.0
    if mass:
        place = own[1:4] / own[0]
        if payload.position is not None:
            place = frame.p + frame.R @ np.array(payload.position)
        added[10 * frame.body : 10 * frame.body + 10] = pi_of(float(mass), place, np.zeros((3, 3)))
    return added


def _friction(model: Model, truth: Truth) -> tuple[Floats, Floats]:
    """Viscous and Coulomb friction (nj,) of the joints, without that of their motors, which is unchanged."""
    found = []
    for own, total, usual in zip(
        (model.viscous, model.coulomb), joint_friction(model), typical_friction(model), strict=True
    ):
        wanted = np.where(total > 0.0, total, usual) if truth.friction == 'typical' else total
        found.append(np.maximum(truth.friction_scale * wanted - (total - own), 0.0))
    return found[0], found[1]
