# SPDX-License-Identifier: Apache-2.0
"""Contact inertia, and the responses to unit forces by the propagators chi, Q and W."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, SOME, Case, model_of, plain_of
from closeness import assert_close
from states import random_state

over_all = pytest.mark.parametrize('case', ALL, ids=str)


def contact(model: Any, seed: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A link that moves, an offset in its frame, a unit direction in the world."""
    rng = np.random.default_rng([seed, 7])
    movable = [name for name in sorted(model.frames) if model.frames[name].body >= 0]
    direction = rng.normal(size=3)
    return (
        movable[int(rng.integers(len(movable)))],
        rng.uniform(-0.3, 0.3, 3),
        direction / np.linalg.norm(direction),
    )


@over_all
@pytest.mark.parametrize('seed', [0, 1, 2], ids=['state0', 'state1', 'state2'])
def test_unit_response(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, _, _ = random_state(model, seed)
    link, offset, direction = contact(model, seed)
    expected = plain_of(case).unit_response(q, link, offset, direction)
    assert_close(qd.unit_response(model, q, link, offset, direction), expected)


@over_all
@pytest.mark.parametrize('seed', [0, 1, 2], ids=['state0', 'state1', 'state2'])
def test_directional_inertia(qd: Any, case: Case, seed: int) -> None:
    """1/Lambda = d^T J M^-1 J^T d."""
    model = model_of(case)
    q, _, _ = random_state(model, seed)
    link, offset, direction = contact(model, seed)
    J = plain_of(case).point_jacobian(q, link, offset)
    expected = direction @ J @ plain_of(case).unit_response(q, link, offset, direction)
    assert_close(qd.directional_inertia(model, q, link, offset, direction), expected)


@over_all
def test_contact_inertia_of_several_points(qd: Any, case: Case, seed: int) -> None:
    model, plain = model_of(case), plain_of(case)
    q, _, _ = random_state(model, seed)
    points = [contact(model, seed + k)[:2] for k in range(5)]
    J = np.vstack([plain.point_jacobian(q, *point) for point in points])
    inverse = qd.contact_inertia(model, q, points)
    assert_close(inverse, J @ np.linalg.solve(plain.mass_matrix(q), J.T))
    assert_close(inverse, inverse.T, what='symmetry')


@pytest.mark.parametrize('case', SOME, ids=str)
def test_unit_response_is_what_forward_dynamics_does(qd: Any, case: Case, seed: int) -> None:
    """The difference that a force makes, at any velocity and with any torque."""
    model = model_of(case)
    q, u, tau = random_state(model, seed)
    link, _, direction = contact(model, seed)
    wrench = {link: np.concatenate([direction, np.zeros(3)])}
    with_force = qd.forward_dynamics(model, q, 0.0 * u, 0.0 * tau, f_ext=wrench)
    difference = with_force - qd.forward_dynamics(model, q, 0.0 * u, 0.0 * tau)
    expected = qd.unit_response(model, q, link, np.zeros(3), direction)
    assert_close(difference, expected, scale=float(np.abs(with_force).max()))
