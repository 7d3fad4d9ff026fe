# SPDX-License-Identifier: Apache-2.0
"""Validates a model that was not made by `load_model`, since the kernels rely on its sizes and its tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model


def check_model(model: Model) -> None:
    """Validate sizes, types and the order of the joints.

    Raises:
        ArgumentError: the arrays do not describe a tree of these joints.
    """
    nj, nb = len(model.joint_names), len(model.body_names)
    if nb != nj + bool(model.floating_base):
        raise ArgumentError(
            f'the model has {nb} bodies and {nj} joints; expected one body per joint'
            + (', and the base' if model.floating_base else '')
        )
    per_joint = ('q_min', 'q_max', 'velocity_limit', 'effort_limit', 'viscous', 'coulomb')
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys((*per_joint, 'rotor_gear', 'rotor_inertia'), (nj,))
    shapes |= dict.fromkeys(('joint_p', 'joint_axis', 'rotor_axis'), (nj, 3))
    shapes |= dict.fromkeys(('pi', 'rotor_pi'), (10 * nb,))
    shapes |= {'joint_R': (nj, 3, 3), 'gravity': (3,), 'is_prismatic': (nj,), 'parents': (nj,)}
    kinds = {'is_prismatic': 'b', 'parents': 'i'}
    for name, shape in shapes.items():
        value, kind = getattr(model, name), kinds.get(name, 'f')
        if type(value) is not np.ndarray or value.shape != shape or value.dtype.kind != kind:
            found = (
                f'{value.shape} of {value.dtype}' if isinstance(value, np.ndarray) else type(value).__name__
            )
            raise ArgumentError(
                f'{name} of the model is {found}; expected an array {shape}, as from load_model'
            )
    _check_tree(model)


def _check_tree(model: Model) -> None:
    """Check that parents come first, and that the joints of a subtree are consecutive."""
    way = [-1]  # path from the base to the previous joint
    for joint, parent in enumerate(model.parents.tolist()):
        while way and way[-1] != parent:
            way.pop()
        if not way:
            name = model.joint_names[joint]
            raise ArgumentError(
                f"parent {parent} of joint '{name}' is not on the path from the base to the previous joint; "
                'expected joints numbered depth first'
            )
        way.append(joint)
