# SPDX-License-Identifier: Apache-2.0
"""Every public function that takes states, with good arguments for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from states import random_state, random_wrenches

METHODS = ('aba', 'cholesky')
# The names of the arguments that are arrays of numbers, with which much can be wrong.
ARRAYS = ('q', 'u', 'du', 'tau', 'q0', 'q1', 'offset', 'direction')
STATES = ('q', 'u', 'du', 'tau', 'q0', 'q1')


def good_arguments(model: Any, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Arguments by name of the call; 'function' or 'function:variant'."""
    q, u, du = random_state(model, seed)
    q1, _, tau = random_state(model, seed + 10)
    frame = model.body_names[-1]
    point = {'link': frame, 'offset': np.array([0.1, 0.2, -0.1]), 'direction': np.array([0.0, 0.6, 0.8])}
    mask = np.arange(model.nv) % 3 == 0
    mask[: model.nv - model.nj] = True
    f_ext = random_wrenches(sorted(model.frames), 3)
    return {
        'inverse_dynamics': {'q': q, 'u': u, 'du': du},
        'inverse_dynamics:all': {'q': q, 'u': u, 'du': du, 'f_ext': f_ext, 'friction': True},
        'forward_dynamics:aba': {'q': q, 'u': u, 'tau': tau, 'f_ext': f_ext, 'friction': True},
        'forward_dynamics:cholesky': {'q': q, 'u': u, 'tau': tau, 'f_ext': f_ext, 'method': 'cholesky'},
        'forward_dynamics:joints': {'q': q, 'u': u, 'tau': tau[-model.nj :]},
        'mass_matrix': {'q': q},
        'coriolis_matrix': {'q': q, 'u': u},
        'gravity': {'q': q},
        'nonlinear_effects': {'q': q, 'u': u},
        'friction_torque': {'u': u},
        'energy': {'q': q, 'u': u},
        'frame_pose': {'q': q, 'frame': frame},
        'frame_velocity': {'q': q, 'u': u, 'frame': frame},
        'frame_jacobian': {'q': q, 'frame': frame},
        'frame_bias_acceleration': {'q': q, 'u': u, 'frame': frame},
        'center_of_mass': {'q': q},
        'com_jacobian': {'q': q},
        'centroidal_momentum_matrix': {'q': q},
        'centroidal_momentum': {'q': q, 'u': u},
        'centroidal_bias': {'q': q, 'u': u},
        'regressor': {'q': q, 'u': u, 'du': du},
        'regressor:all': {'q': q, 'u': u, 'du': du, 'friction': True, 'rotors': True},
        'contact_inertia': {
            'q': q,
            'points': [(frame, point['offset']), (model.body_names[0], point['offset'])],
        },
        'directional_inertia': {'q': q, **point},
        'unit_response': {'q': q, **point},
        'hybrid_dynamics': {
            'q': q,
            'u': u,
            'du': du,
            'tau': tau,
            'prescribed': mask,
            'f_ext': f_ext,
            'friction': True,
        },
        'controller_terms': {'q': q, 'u': u, 'frames': [frame, model.body_names[0]]},
        'controller_terms:feet': {'q': q, 'u': u},
        'velocity_product_matrices': {'q': q},
        'integrate': {'q': q, 'u': u, 'dt': 0.1},
        'difference': {'q0': q, 'q1': q1},
    }


CALLS = [
    'inverse_dynamics',
    'inverse_dynamics:all',
    'forward_dynamics:aba',
    'forward_dynamics:cholesky',
    'forward_dynamics:joints',
    'mass_matrix',
    'coriolis_matrix',
    'gravity',
    'nonlinear_effects',
    'friction_torque',
    'energy',
    'frame_pose',
    'frame_velocity',
    'frame_jacobian',
    'frame_bias_acceleration',
    'center_of_mass',
    'com_jacobian',
    'centroidal_momentum_matrix',
    'centroidal_momentum',
    'centroidal_bias',
    'regressor',
    'regressor:all',
    'contact_inertia',
    'directional_inertia',
    'unit_response',
    'hybrid_dynamics',
    'controller_terms',
    'controller_terms:feet',
    'velocity_product_matrices',
    'integrate',
    'difference',
]


def call(qd: Any, model: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Call a public function by the name of the call."""
    return getattr(qd, name.partition(':')[0])(model, **arguments)


def parts(result: Any) -> list[np.ndarray]:
    """A result as a list of arrays."""
    return [np.asarray(part) for part in result] if isinstance(result, tuple) else [np.asarray(result)]
