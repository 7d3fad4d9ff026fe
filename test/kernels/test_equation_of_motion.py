# SPDX-License-Identifier: Apache-2.0
"""What must hold between the functions of the library, for any robot and state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, FIXED, FLOATING, SOME, Case, load, model_of, plain_of
from closeness import DIFFERENCES, assert_close, derivative
from random_trees import random_tree
from reference_plain import skew
from states import random_state, random_wrenches

over_all = pytest.mark.parametrize('case', ALL, ids=str)
over_some = pytest.mark.parametrize('case', SOME, ids=str)


@pytest.mark.parametrize('tree_seed', range(100, 140))
def test_forward_of_inverse_is_identity(qd: Any, tree_seed: int) -> None:
    tree = random_tree(tree_seed)
    model = load(tree.urdf, floating_base=tree.floating_base)
    q, u, du = random_state(model, tree_seed)
    f_ext = random_wrenches(tree.links, tree_seed)
    tau = qd.inverse_dynamics(model, q, u, du, f_ext=f_ext, friction=True)
    # the inverse of M multiplies the rounding of tau: light tips on long heavy chains, condition up to 1e6
    rel = max(1e-9, 1e-15 * float(np.linalg.cond(qd.mass_matrix(model, q))))
    for method in ('aba', 'cholesky'):
        found = qd.forward_dynamics(model, q, u, tau, f_ext=f_ext, friction=True, method=method)
        assert_close(found, du, rel, what=method)


@over_all
def test_equation_of_motion(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    M, C = qd.mass_matrix(model, q), qd.coriolis_matrix(model, q, u)
    h = qd.nonlinear_effects(model, q, u)
    assert_close(C @ u + qd.gravity(model, q), h, what='C u + g')
    assert_close(M @ du + h, qd.inverse_dynamics(model, q, u, du), what='M du + h')
    assert np.linalg.eigvalsh(M)[0] > 0.0
    assert_close(0.5 * u @ M @ u, qd.energy(model, q, u)[0], what='kinetic energy')


@over_some
def test_rate_of_mass_matrix(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    dM = derivative(lambda t: qd.mass_matrix(model, qd.integrate(model, q, u, t)))
    C = qd.coriolis_matrix(model, q, u)
    # dM/dt = C + C^T says the same as dM/dt - 2C skew-symmetric
    assert_close(C + C.T, dM, DIFFERENCES)


@over_all
def test_coriolis_matrix_is_linear_in_velocity(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, w = random_state(model, seed)
    C = qd.coriolis_matrix(model, q, u + 0.1 * w)
    assert_close(C, qd.coriolis_matrix(model, q, u) + 0.1 * qd.coriolis_matrix(model, q, w))


@pytest.mark.parametrize('case', FLOATING, ids=str)
def test_coriolis_matrix_is_free_of_torsion(qd: Any, case: Case, seed: int) -> None:
    """With the skew symmetry this leaves one C only; see the test of the same name of the reference."""
    model = model_of(case)
    q, u, w = random_state(model, seed)
    bracket = np.zeros(model.nv)
    bracket[3:6] = np.cross(u[3:6], w[3:6])
    C_u_w = qd.coriolis_matrix(model, q, u) @ w
    difference = C_u_w - qd.coriolis_matrix(model, q, w) @ u
    assert_close(difference, qd.mass_matrix(model, q) @ bracket, scale=float(np.abs(C_u_w).max()))


def christoffel_matrix(qd: Any, model: Any, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """C from Christoffel symbols of the first kind, by central differences of M (fixed base)."""
    n = model.nv
    dM = np.stack([derivative(lambda t, e=e: qd.mass_matrix(model, q + t * e)) for e in np.eye(n)], axis=-1)
    # C_ij = sum_k 1/2 (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) u_k
    return 0.5 * (dM @ u + np.einsum('ikj,k->ij', dM, u) - np.einsum('jki,k->ij', dM, u))


@pytest.mark.parametrize('case', FIXED, ids=str)
def test_coriolis_matrix_is_that_of_christoffel(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.coriolis_matrix(model, q, u), christoffel_matrix(qd, model, q, u), DIFFERENCES)


@over_all
def test_mass_matrix_is_sum_over_bodies(qd: Any, case: Case, seed: int) -> None:
    """M = sum J_i^T I_i J_i with our own Jacobians and spatial inertias."""
    model = model_of(case)
    q, _, _ = random_state(model, seed)
    M = np.zeros((model.nv, model.nv))
    for name, pi in zip(model.body_names, model.pi.reshape(-1, 10), strict=True):
        R, _ = qd.frame_pose(model, q, name)
        J = np.kron(np.eye(2), R.T) @ qd.frame_jacobian(model, q, name)
        S = skew(pi[1:4])
        I_O = np.array([[pi[4], pi[5], pi[7]], [pi[5], pi[6], pi[8]], [pi[7], pi[8], pi[9]]])
        M += J.T @ np.block([[pi[0] * np.eye(3), -S], [S, I_O]]) @ J
    assert_close(M, qd.mass_matrix(model, q))


@over_some
def test_power_balance(qd: Any, case: Case, seed: int) -> None:
    """The energy grows by the power of the generalised forces."""
    model = model_of(case)
    q, u, du = random_state(model, seed)

    def total_energy(t: float) -> float:
        return sum(qd.energy(model, qd.integrate(model, q, u, t), u + t * du))

    power = u @ qd.inverse_dynamics(model, q, u, du)
    scale = abs(total_energy(0.0)) + abs(power)
    assert_close(derivative(total_energy), power, DIFFERENCES, scale=scale)


@pytest.mark.parametrize('case', [c for c in ALL if c.floating_base], ids=str)
def test_momentum_balance(qd: Any, case: Case, seed: int) -> None:
    """The centroidal momentum grows by gravity and external wrenches; joint torques are internal."""
    model = model_of(case)
    q, u, tau = random_state(model, seed)
    f_ext = random_wrenches(sorted(model.frames), seed)
    du = qd.forward_dynamics(model, q, u, tau[6:], f_ext=f_ext)
    com = qd.center_of_mass(model, q)
    expected = np.concatenate([model.total_mass * model.gravity, np.zeros(3)])
    for link, wrench in f_ext.items():
        arm = qd.frame_pose(model, q, link)[1] - com
        expected += np.concatenate([wrench[:3], wrench[3:] + np.cross(arm, wrench[:3])])
    A = qd.centroidal_momentum_matrix(model, q)
    rate = A @ du + qd.centroidal_bias(model, q, u)
    # the rate is a small difference of large terms: |A| |du| rounds at 1e-16, du with the condition of M
    scale = max(float(np.abs(expected).max()), float((np.abs(A) @ np.abs(du)).max()))
    assert_close(rate, expected, scale=scale)
    assert_close(A @ u, qd.centroidal_momentum(model, q, u), what='A_G u')
    assert_close(model.total_mass * qd.com_jacobian(model, q), A[:3], what='linear rows')


@over_some
def test_gravity_vector_of_the_model(qd: Any, case: Case, seed: int) -> None:
    """Gravity can point anywhere, and without it nothing pulls."""
    model = model_of(case)
    q, u, du = random_state(model, seed)
    tilted = model.with_gravity(np.array([1.0, -2.0, 3.0]))
    plain = type(plain_of(case))(tilted)
    assert_close(qd.inverse_dynamics(tilted, q, u, du), plain.inverse_dynamics(q, u, du), what='ID')
    tau = qd.inverse_dynamics(tilted, q, u, du)
    assert_close(qd.forward_dynamics(tilted, q, u, tau), du, 1e-8, what='FD')  # 1e-8: condition of M
    assert_close(qd.energy(tilted, q, u), plain.energy(q, u), what='energy')
    assert np.all(qd.gravity(model.with_gravity(np.zeros(3)), q) == 0.0)
    assert_close(
        qd.gravity(model, q), plain_of(case).nonlinear_effects(q, 0.0 * u), what='old model is unchanged'
    )
