# SPDX-License-Identifier: Apache-2.0
"""The references are consistent in themselves and with each other, so that they can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
import reference_mini_cheetah as published
from cases import ALL, FLOATING, SOME, Case, load, model_of, physical_of, pinocchio_of, plain_of
from closeness import DIFFERENCES, assert_close, derivative
from reference_pinocchio import PinocchioReference
from reference_plain import PlainReference
from states import random_state, random_wrenches


@pytest.mark.parametrize('case', ALL, ids=str)
def test_pinocchio_equation_of_motion(case: Case, seed: int) -> None:
    pin = pinocchio_of(case)
    q, u, du = random_state(pin, seed)
    sides = pin.mass_matrix(q) @ du + pin.coriolis_matrix(q, u) @ u + pin.gravity(q)
    assert_close(sides, pin.inverse_dynamics(q, u, du))


@pytest.mark.parametrize('case', SOME, ids=str)
def test_pinocchio_rates_along_a_motion(case: Case, seed: int) -> None:
    """Our du, C and bias terms are those of a motion with constant u on our manifold."""
    pin = pinocchio_of(case)
    q, u, _ = random_state(pin, seed)
    frame = model_of(case).body_names[-1]
    dM = derivative(lambda t: pin.mass_matrix(pin.integrate(q, u, t)))
    N = dM - 2.0 * pin.coriolis_matrix(q, u)
    assert_close(N, -N.T, DIFFERENCES, 'skew symmetry', scale=float(np.abs(dM).max()))
    dJ = derivative(lambda t: pin.frame_jacobian(pin.integrate(q, u, t), frame))
    assert_close(pin.frame_bias_acceleration(q, u, frame), dJ @ u, DIFFERENCES, 'frame bias')
    dA = derivative(lambda t: pin.centroidal_momentum_matrix(pin.integrate(q, u, t)))
    assert_close(pin.centroidal_bias(q, u), dA @ u, DIFFERENCES, 'centroidal bias')
    velocity = derivative(lambda t: pin.frame_pose(pin.integrate(q, u, t), frame)[1])
    assert_close(pin.frame_jacobian(q, frame)[:3] @ u, velocity, DIFFERENCES, 'frame velocity')


@pytest.mark.parametrize('case', ALL, ids=str)
def test_plain_agrees_with_pinocchio(case: Case, seed: int) -> None:
    pin, plain = pinocchio_of(case), plain_of(case)
    q, u, du = random_state(pin, seed)
    f_ext = random_wrenches(sorted(model_of(case).frames), seed)
    assert_close(plain.mass_matrix(q), pin.mass_matrix(q), what='M')
    assert_close(plain.coriolis_matrix(q, u), pin.coriolis_matrix(q, u), what='C')
    assert_close(plain.inverse_dynamics(q, u, du, f_ext), pin.inverse_dynamics(q, u, du, f_ext), what='ID')
    assert_close(plain.energy(q, u), pin.energy(q, u), what='energy')
    assert_close(plain.centroidal_momentum(q, u), pin.centroidal_momentum(q, u), what='momentum')


@pytest.mark.parametrize('case', SOME, ids=str)
def test_mujoco_agrees_with_plain(case: Case, seed: int) -> None:
    model, mujoco = physical_of(case)
    plain = PlainReference(model)
    q, u, _ = random_state(model, seed)
    assert_close(mujoco.mass_matrix(q), plain.mass_matrix(q), what='M')
    assert_close(mujoco.nonlinear_effects(q, u), plain.nonlinear_effects(q, u), what='h')


@pytest.mark.parametrize('case', FLOATING, ids=str)
def test_pinocchio_coriolis_is_free_of_torsion(case: Case, seed: int) -> None:
    """C(u) w - C(w) u is M times the bracket of u and w: for the angular velocities of the base, u x w.

    Together with the skew symmetry of dM/dt - 2C this singles out one C (the Levi-Civita connection, that is
    Christoffel's C where velocities are rates of coordinates), so comparing C entry by entry is fair.
    """
    pin = pinocchio_of(case)
    q, u, w = random_state(pin, seed)
    bracket = np.zeros(pin.nv)
    bracket[3:6] = np.cross(u[3:6], w[3:6])
    C_u, C_w = pin.coriolis_matrix(q, u), pin.coriolis_matrix(q, w)
    scale = float(np.abs(C_u @ w).max())
    assert_close(C_u @ w - C_w @ u, pin.mass_matrix(q) @ bracket, scale=scale)


def test_plain_reproduces_published_mini_cheetah() -> None:
    """Rotors as bodies of their own give all 18 published figures, to the last of their six digits."""
    model = load(published.urdf(), floating_base=True)
    assert list(model.joint_names) == published.joint_names()
    figures = published.figures()
    du = PlainReference(model, published.rotors()).forward_dynamics(figures.q, figures.u, figures.tau)
    # 1 is half of the sixth digit; the published numbers were rounded from float64
    assert figures.mismatch(du).max() <= 1.0
    without = PlainReference(model, []).forward_dynamics(figures.q, figures.u, figures.tau)
    assert figures.mismatch(without).max() > 1e3  # the figures do tell rotors from no rotors


def test_pinocchio_reports_unknown_names() -> None:
    with pytest.raises(AssertionError, match='Pinocchio has'):
        PinocchioReference(published.urdf(), True, ['no_such_joint'])
