# SPDX-License-Identifier: Apache-2.0
"""Kinematics, momentum and operational-space quantities against Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, PUBLISHED, Case, model_of, pinocchio_of
from closeness import assert_close
from states import random_state

over_all = pytest.mark.parametrize('case', ALL, ids=str)


def some_frames(model: Any, seed: int) -> list[str]:
    """The root, the last body, and three more links, merged ones among them."""
    names = sorted(model.frames)
    chosen = np.random.default_rng(seed).choice(len(names), size=min(3, len(names)), replace=False)
    return [model.base_name, model.body_names[-1], *(names[int(k)] for k in chosen)]


@over_all
def test_every_frame_pose(qd: Any, case: Case) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, _, _ = random_state(model, 0)
    for name in model.frames:
        for actual, expected in zip(qd.frame_pose(model, q, name), pin.frame_pose(q, name), strict=True):
            assert_close(actual, expected, what=name)


@over_all
def test_frame_velocity_and_jacobian(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    for name in some_frames(model, seed):
        assert_close(qd.frame_velocity(model, q, u, name), pin.frame_velocity(q, u, name), what=name)
        assert_close(qd.frame_jacobian(model, q, name), pin.frame_jacobian(q, name), what=name)


@over_all
def test_frame_bias_acceleration(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    for name in some_frames(model, seed):
        expected = pin.frame_bias_acceleration(q, u, name)
        # cancellation: a frame on the axes has no bias; its scale is still that of |u|^2 times a metre
        scale = max(float(np.abs(expected).max()), 1e-3 * float(u @ u))
        assert_close(qd.frame_bias_acceleration(model, q, u, name), expected, what=name, scale=scale)


@over_all
def test_center_of_mass(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, _, _ = random_state(model, seed)
    assert_close(qd.center_of_mass(model, q), pin.center_of_mass(q), what='com')
    assert_close(qd.com_jacobian(model, q), pin.com_jacobian(q), what='Jacobian')


@over_all
def test_centroidal_momentum(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.centroidal_momentum_matrix(model, q), pin.centroidal_momentum_matrix(q), what='A_G')
    assert_close(qd.centroidal_momentum(model, q, u), pin.centroidal_momentum(q, u), what='momentum')
    assert_close(qd.centroidal_bias(model, q, u), pin.centroidal_bias(q, u), what='bias')


@over_all
def test_contact_inertia(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, _, _ = random_state(model, seed)
    offsets = np.random.default_rng(seed).uniform(-0.3, 0.3, (4, 3))
    movable = [name for name in sorted(model.frames) if model.frames[name].body >= 0]
    points = list(zip((movable * 4)[:: max(1, len(movable) // 2)][:4], offsets, strict=False))
    assert_close(qd.contact_inertia(model, q, points), pin.contact_inertia(q, points))


@pytest.mark.parametrize('case', [c for c in PUBLISHED if c.floating_base], ids=str)
def test_operational_space_inertia(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, _, _ = random_state(model, seed)
    frame = model.body_names[-1]
    J = pin.frame_jacobian(q, frame)
    inverse = J @ np.linalg.solve(pin.mass_matrix(q), J.T)
    # Lambda is the inverse of a matrix of condition number up to 1e6, whose rounding it multiplies
    rel = max(1e-9, 1e-14 * float(np.linalg.cond(inverse)))
    assert_close(qd.operational_space_inertia(model, q, frame), np.linalg.inv(inverse), rel=rel)


@pytest.mark.parametrize('case', ALL[::5], ids=str)
def test_integrate_and_difference(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    for dt in (1e-4, 0.1, 1.0):
        q1 = qd.integrate(model, q, u, dt)
        expected = pin.integrate(q, u, dt)
        if model.floating_base and q1[3:7] @ expected[3:7] < 0.0:
            expected[3:7] *= -1.0  # the same attitude
        assert_close(q1, expected, what=f'integrate over {dt} s')
        assert_close(qd.difference(model, q, q1), pin.difference(q, q1), what=f'difference over {dt} s')
