# SPDX-License-Identifier: Apache-2.0
"""The planar two-link arm against its closed form (Lagrange)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import load
from closeness import assert_close

M1, L1, LC1, I1 = 1.5, 0.5, 0.25, 0.03125
M2, L2, LC2, I2 = 1.0, 0.4, 0.2, 1.0 / 75.0
G = 9.81
# Two links: a few operations, each rounded at 1e-16.
TOLERANCE = 1e-13


def closed_form(q: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(M, h without gravity, g) of the arm; angles above the horizontal, the second from the first link."""
    c2, h = np.cos(q[1]), M2 * L1 * LC2 * np.sin(q[1])
    # another M11 that is in circulation has 2 l1 lc2 (1 + cos q2): not the kinetic energy of anything
    M11 = I1 + I2 + M1 * LC1**2 + M2 * (L1**2 + LC2**2 + 2.0 * L1 * LC2 * c2)
    M12 = I2 + M2 * (LC2**2 + L1 * LC2 * c2)
    M = np.array([[M11, M12], [M12, I2 + M2 * LC2**2]])
    centrifugal = np.array([-h * (2.0 * u[0] * u[1] + u[1] ** 2), h * u[0] ** 2])
    g2 = M2 * LC2 * G * np.cos(q[0] + q[1])
    return M, centrifugal, np.array([(M1 * LC1 + M2 * L1) * G * np.cos(q[0]) + g2, g2])


@pytest.fixture(scope='module')
def arm() -> Any:
    return load('two_link_arm')


def state(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, 2), rng.normal(scale=3.0, size=2), rng.normal(scale=10.0, size=2)


@pytest.mark.parametrize('seed', range(10))
def test_terms(qd: Any, arm: Any, seed: int) -> None:
    q, u, du = state(seed)
    M, centrifugal, g = closed_form(q, u)
    assert_close(qd.mass_matrix(arm, q), M, TOLERANCE, 'M')
    assert_close(qd.gravity(arm, q), g, TOLERANCE, 'g')
    assert_close(qd.nonlinear_effects(arm, q, u), centrifugal + g, TOLERANCE, 'h')
    assert_close(qd.inverse_dynamics(arm, q, u, du), M @ du + centrifugal + g, TOLERANCE, 'ID')
    for method in ('aba', 'cholesky'):
        expected = np.linalg.solve(M, du - centrifugal - g)
        assert_close(qd.forward_dynamics(arm, q, u, du, method=method), expected, 1e-12, method)


@pytest.mark.parametrize('seed', range(10))
def test_coriolis_matrix(qd: Any, arm: Any, seed: int) -> None:
    q, u, _ = state(seed)
    h = M2 * L1 * LC2 * np.sin(q[1])
    expected = np.array([[-h * u[1], -h * (u[0] + u[1])], [h * u[0], 0.0]])
    assert_close(qd.coriolis_matrix(arm, q, u), expected, TOLERANCE, scale=float(np.abs(u).max()))


@pytest.mark.parametrize('seed', range(3))
def test_configuration_space_form(qd: Any, arm: Any, seed: int) -> None:
    """B(q) [qd1 qd2] + C(q) [qd1^2, qd2^2]."""
    q, _, _ = state(seed)
    h = M2 * L1 * LC2 * np.sin(q[1])
    B, C = qd.velocity_product_matrices(arm, q)
    assert_close(B, [[-2.0 * h], [0.0]], TOLERANCE, 'B', scale=1.0)
    assert_close(C, [[0.0, -h], [h, 0.0]], TOLERANCE, 'C', scale=1.0)


@pytest.mark.parametrize('seed', range(3))
def test_tip_force(qd: Any, arm: Any, seed: int) -> None:
    """A force at the tip asks for J^T F less torque."""
    q, u, du = state(seed)
    force = np.array([3.0, 0.0, -7.0])
    s1, c1, s12, c12 = np.sin(q[0]), np.cos(q[0]), np.sin(q.sum()), np.cos(q.sum())
    J = np.array([[-L1 * s1 - L2 * s12, -L2 * s12], [0.0, 0.0], [L1 * c1 + L2 * c12, L2 * c12]])
    wrench = {'tip': np.concatenate([force, np.zeros(3)])}
    found = qd.inverse_dynamics(arm, q, u, du, f_ext=wrench)
    assert_close(found, qd.inverse_dynamics(arm, q, u, du) - J.T @ force, TOLERANCE, scale=100.0)
    assert_close(qd.frame_jacobian(arm, q, 'tip')[:3], J, TOLERANCE, 'J')
    assert_close(
        qd.frame_pose(arm, q, 'tip')[1], [L1 * c1 + L2 * c12, 0.0, L1 * s1 + L2 * s12], TOLERANCE, 'p'
    )


def test_kinetic_energy_decides_between_the_two_published_matrices(qd: Any, arm: Any) -> None:
    """Turning as one, the arm is a compound pendulum: its inertia is the sum over both links."""
    M = qd.mass_matrix(arm, np.zeros(2))
    assert_close(M[0, 0], I1 + M1 * LC1**2 + I2 + M2 * (L1 + LC2) ** 2, TOLERANCE)
    M = qd.mass_matrix(arm, np.array([0.3, np.pi]))  # folded: the spurious term would be 2 l1 lc2 too much
    assert_close(M[0, 0], I1 + M1 * LC1**2 + I2 + M2 * (L1 - LC2) ** 2, TOLERANCE)
