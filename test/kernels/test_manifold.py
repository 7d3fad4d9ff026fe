# SPDX-License-Identifier: Apache-2.0
"""Integration and difference on R^3 x SO(3) x R^nj, and random configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import SOME, Case, model_of
from closeness import assert_close
from reference_plain import rotation_of_quaternion, turn
from states import random_state

over_some = pytest.mark.parametrize('case', SOME, ids=str)
FLOATING = Case('go2', True)


@over_some
def test_round_trip(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q0, q1 = random_state(model, seed)[0], random_state(model, seed + 5)[0]
    step = qd.difference(model, q0, q1)
    arrived = qd.integrate(model, q0, step, 1.0)
    if model.floating_base and arrived[3:7] @ q1[3:7] < 0.0:
        arrived[3:7] *= -1.0  # the same attitude
    assert_close(arrived, q1)
    if model.floating_base:
        assert np.linalg.norm(step[3:6]) <= np.pi + 1e-12  # the short way round


@over_some
def test_difference_of_nothing(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    assert np.abs(qd.difference(model, q, q)).max() < 1e-15
    assert np.abs(qd.integrate(model, q, 0.0 * u, 1.0) - q).max() < 1e-15


@pytest.mark.parametrize('angle', [1e-12, 1e-8, 1e-5, 1e-3, 1.0, 3.0, np.pi - 1e-7])
def test_turns_of_any_size(qd: Any, angle: float) -> None:
    """Small angles lose no digits, large ones go round the circle."""
    model = model_of(FLOATING)
    q, u, _ = random_state(model, 0)
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    u[3:6] = angle * axis
    q1 = qd.integrate(model, q, u, 1.0)
    expected = rotation_of_quaternion(q[3:7]) @ turn(axis, angle)
    assert np.abs(rotation_of_quaternion(q1[3:7]) - expected).max() < 1e-14
    # a quaternion holds an angle to 1e-16; near a half turn, the axis too
    assert np.abs(qd.difference(model, q, q1)[3:6] - angle * axis).max() < 1e-15 + 1e-14 * angle


@pytest.mark.parametrize('dt', [1.0, 10.0, 1000.0])
def test_long_steps(qd: Any, dt: float) -> None:
    model = model_of(FLOATING)
    q, u, _ = random_state(model, 1)
    q1 = qd.integrate(model, q, u, dt)
    w = u[3:6]
    expected = rotation_of_quaternion(q[3:7]) @ turn(w / np.linalg.norm(w), dt * np.linalg.norm(w))
    # the angle dt |w| of some 1e3 rad is itself rounded at 1e-13
    assert np.abs(rotation_of_quaternion(q1[3:7]) - expected).max() < 1e-15 * (10.0 + dt * np.linalg.norm(w))
    assert_close(q1[:3], q[:3] + dt * u[:3])


def test_quaternion_stays_unit(qd: Any) -> None:
    model = model_of(FLOATING)
    q, u, _ = random_state(model, 2)
    for _ in range(2000):
        q = qd.integrate(model, q, u, 0.01)
    assert abs(np.linalg.norm(q[3:7]) - 1.0) < 1e-15 * 10  # each step normalises, so it does not drift


def test_linear_part_is_in_the_world(qd: Any) -> None:
    model = model_of(FLOATING)
    q, u, _ = random_state(model, 3)
    q1 = qd.integrate(model, q, u, 0.5)
    assert_close(q1[:3], q[:3] + 0.5 * u[:3])
    assert_close(q1[7:], q[7:] + 0.5 * u[6:])


def test_opposite_quaternions_are_the_same_attitude(qd: Any) -> None:
    model = model_of(FLOATING)
    q, u, du = random_state(model, 4)
    opposite = q.copy()
    opposite[3:7] *= -1.0
    assert_close(qd.inverse_dynamics(model, opposite, u, du), qd.inverse_dynamics(model, q, u, du), 1e-14)
    assert np.abs(qd.difference(model, q, opposite)).max() < 1e-14


def test_slightly_long_quaternion_is_normalised(qd: Any) -> None:
    """Rounded in a message or a file, say."""
    model = model_of(FLOATING)
    q, u, du = random_state(model, 5)
    long = q.copy()
    long[3:7] *= 1.0 + 1e-5
    assert_close(qd.inverse_dynamics(model, long, u, du), qd.inverse_dynamics(model, q, u, du), 1e-13)
    assert_close(qd.forward_dynamics(model, long, u, du), qd.forward_dynamics(model, q, u, du), 1e-12)
    assert_close(
        qd.frame_pose(model, long, model.foot_names[0])[1],
        qd.frame_pose(model, q, model.foot_names[0])[1],
        1e-13,
    )
    assert abs(np.linalg.norm(qd.integrate(model, long, u, 0.1)[3:7]) - 1.0) < 1e-14


@over_some
def test_random_configuration(qd: Any, case: Case) -> None:
    model = model_of(case)
    draws = [qd.random_configuration(model, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    for q in draws:
        joints = q[-model.nj :]
        assert q.shape == (model.nq,)
        assert np.all(np.isfinite(q))
        assert np.all((joints >= model.q_min) & (joints <= model.q_max))
        if model.floating_base:
            assert abs(np.linalg.norm(q[3:7]) - 1.0) < 1e-14
