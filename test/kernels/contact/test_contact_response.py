# SPDX-License-Identifier: Apache-2.0
"""Contact inertia, and the responses to unit forces by the propagators chi, Q and W."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, SOME, Case, model_of, plain_of
from closeness import assert_close
from reference_plain import rotation_of_quaternion
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


def propagate(chi: Any, model: Any, body: int, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take a force [f; m] about the base's origin up the chain: its part at each joint, and what is left."""
    t, joint = np.zeros(model.nj), body - (1 if model.floating_base else 0)
    while joint >= 0:
        t[joint] = chi.S[joint] @ F
        F = chi.chi[joint].T @ F
        joint = int(model.parents[joint])
    return t, F


@over_all
def test_propagators(qd: Any, case: Case, seed: int) -> None:
    """A force with the base held still: qdd = Q t / d; a moving base without a force: qdd = W a_b."""
    model = model_of(case).with_gravity(np.zeros(3))
    q, _, du = random_state(model, seed)
    link, offset, direction = contact(model, seed)
    chi = qd.contact_propagators(model, q)
    R_WL, p_WL = qd.frame_pose(model, q, link)
    arm = R_WL @ offset
    origin = q[:3] if model.floating_base else np.zeros(3)
    F = np.concatenate([direction, np.cross(p_WL + arm - origin, direction)])
    t, left = propagate(chi, model, model.frames[link].body, F)
    base = model.nv - model.nj
    held, rest = np.arange(model.nv) < base, np.zeros(model.nv)
    f_ext = {link: np.concatenate([direction, np.cross(arm, direction)])}
    expected = qd.hybrid_dynamics(model, q, rest, rest, rest, held, f_ext=f_ext)[0]
    assert_close(chi.Q @ (chi.d_inv * t), expected[base:], what='Q')
    if not model.floating_base:
        found = qd.directional_inertia(model, q, link, offset, direction)
        assert_close(found, np.sum(t**2 * chi.d_inv), what='sum of (S . F)^2 / d')
        return
    moved = np.where(held, du, 0.0)
    a_b = np.concatenate([du[:3], rotation_of_quaternion(q[3:7]) @ du[3:6]])
    expected = qd.hybrid_dynamics(model, q, rest, moved, rest, held)[0]
    assert_close(chi.W @ a_b, expected[base:], what='W')
    # what is left at the base pushes the articulated whole: its inverse inertia gives the rest of 1/Lambda
    inverse = np.linalg.inv(qd.operational_space_inertia(model, q, model.base_name))
    found = qd.directional_inertia(model, q, link, offset, direction)
    assert_close(found, np.sum(t**2 * chi.d_inv) + left @ inverse @ left, what='1/Lambda')
