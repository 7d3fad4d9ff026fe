# SPDX-License-Identifier: Apache-2.0
"""Geared rotors: mass on the parent, gear^2 J on the joint, and the coupling of the two."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import reference_mini_cheetah as published
from cases import TREES, Case, load, physical_of
from closeness import DIFFERENCES, assert_close, derivative
from reference_mujoco import MujocoReference, physical_urdf
from reference_pinocchio import PinocchioReference
from reference_plain import PlainReference
from reference_rotors import GearedReference, description, random_rotors
from states import random_state, random_wrenches

CASES = [Case('go2', True), Case('anymal_c', True), Case('solo12', False), Case('panda', False), *TREES[:10]]
over_cases = pytest.mark.parametrize('case', CASES, ids=str)


@functools.cache
def setup(case: Case) -> tuple[Any, GearedReference]:
    """A case with random rotors, here and in the reference."""
    rotors = random_rotors(case.urdf, seed=1)
    model = load(case.urdf, floating_base=case.floating_base, description=description(rotors))
    reference = GearedReference(case.urdf, case.floating_base, model.joint_names, rotors)
    reference.full.add_frames(model)
    return model, reference


@over_cases
def test_references_agree(case: Case, seed: int) -> None:
    """The lumped rotors of the model, as discs in the plain reference, are the rotor links of the URDF."""
    model, reference = setup(case)
    plain = PlainReference(model)
    q, u, du = random_state(model, seed)
    assert np.count_nonzero(model.rotor_inertia) == len(reference.gears) > 0
    assert_close(plain.mass_matrix(q), reference.mass_matrix(q), what='M')
    assert_close(plain.coriolis_matrix(q, u), reference.coriolis_matrix(q, u), what='C')
    assert_close(plain.inverse_dynamics(q, u, du), reference.inverse_dynamics(q, u, du), what='ID')


@over_cases
def test_matrices(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, u, _ = random_state(model, seed)
    assert_close(qd.mass_matrix(model, q), reference.mass_matrix(q), what='M')
    assert_close(qd.coriolis_matrix(model, q, u), reference.coriolis_matrix(q, u), what='C')
    assert_close(qd.nonlinear_effects(model, q, u), reference.inverse_dynamics(q, u, 0.0 * u), what='h')
    assert_close(qd.gravity(model, q), reference.inverse_dynamics(q, 0.0 * u, 0.0 * u), what='g')


@over_cases
def test_inverse_and_forward_dynamics(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, u, du = random_state(model, seed)
    f_ext = random_wrenches(sorted(model.frames), seed)
    tau = qd.inverse_dynamics(model, q, u, du, f_ext=f_ext)
    assert_close(tau, reference.inverse_dynamics(q, u, du, f_ext), what='ID')
    for method in ('aba', 'cholesky'):
        assert_close(qd.forward_dynamics(model, q, u, tau, f_ext=f_ext, method=method), du, what=method)
        expected = reference.forward_dynamics(q, u, du)
        assert_close(qd.forward_dynamics(model, q, u, du, method=method), expected, what=method)


@over_cases
def test_energy_and_power(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, u, du = random_state(model, seed)
    kinetic, potential = qd.energy(model, q, u)
    assert_close(kinetic, reference.energy(q, u)[0], what='kinetic')

    def total_energy(t: float) -> float:
        return sum(qd.energy(model, qd.integrate(model, q, u, t), u + t * du))

    power = u @ qd.inverse_dynamics(model, q, u, du)
    scale = abs(kinetic) + abs(potential) + abs(power)
    assert_close(derivative(total_energy), power, DIFFERENCES, what='power', scale=scale)


@pytest.mark.parametrize('case', [c for c in CASES if c.floating_base], ids=str)
def test_momentum_of_spinning_rotors(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, u, _ = random_state(model, seed)
    A = reference.centroidal_momentum_matrix(q)
    assert_close(qd.center_of_mass(model, q), reference.center_of_mass(q), what='com')
    assert_close(qd.energy(model, q, u)[1], reference.energy(q, u)[1], what='potential energy')
    assert_close(qd.centroidal_momentum_matrix(model, q), A, what='A_G')
    assert_close(qd.centroidal_momentum(model, q, u), A @ u, what='momentum')
    assert_close(qd.centroidal_bias(model, q, u), reference.centroidal_bias(q, u), what='bias')
    assert_close(model.total_mass * qd.com_jacobian(model, q), A[:3], what='com Jacobian')


@over_cases
def test_contact_response(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, _, _ = random_state(model, seed)
    rng = np.random.default_rng(seed)
    link, offset, direction = model.body_names[-1], rng.uniform(-0.2, 0.2, 3), np.array([0.6, 0.0, -0.8])
    J = reference.point_jacobian(q, link, offset)
    response = np.linalg.solve(reference.mass_matrix(q), J.T)
    assert_close(qd.unit_response(model, q, link, offset, direction), response @ direction, what='response')
    found = qd.directional_inertia(model, q, link, offset, direction)
    assert_close(found, direction @ J @ response @ direction, what='directional')
    assert_close(qd.contact_inertia(model, q, [(link, offset)]), J @ response, what='contact inertia')


@over_cases
def test_hybrid_dynamics(qd: Any, case: Case, seed: int) -> None:
    model, _ = setup(case)
    q, u, du = random_state(model, seed)
    tau = random_state(model, seed + 10)[2]
    mask = np.random.default_rng(seed).random(model.nv) < 0.5
    mask[: model.nv - model.nj] = seed % 2 == 0
    found = qd.hybrid_dynamics(model, q, u, du, tau, mask)
    expected = PlainReference(model).hybrid_dynamics(q, u, du, tau, mask)
    assert_close(found[0], expected[0], what='du')
    assert_close(found[1], expected[1], what='tau')


@pytest.mark.parametrize('case', CASES[:4], ids=str)  # B of a large robot is large
def test_velocity_products(qd: Any, case: Case, seed: int) -> None:
    model, reference = setup(case)
    q, u, _ = random_state(model, seed)
    B, C = qd.velocity_product_matrices(model, q)
    i, j = np.triu_indices(model.nv, 1)
    expected = reference.inverse_dynamics(q, u, 0.0 * u) - reference.inverse_dynamics(q, 0.0 * u, 0.0 * u)
    assert_close(B @ (u[i] * u[j]) + C @ u**2, expected)


@over_cases
def test_without_rotors(qd: Any, case: Case) -> None:
    model, _ = setup(case)
    q, u, du = random_state(model, 0)
    bare = load(case.urdf, floating_base=case.floating_base)
    found = qd.inverse_dynamics(model.without_rotors(), q, u, du)
    assert np.array_equal(found, qd.inverse_dynamics(bare, q, u, du))


@pytest.mark.parametrize('case', [Case('go2', True), Case('panda', False), TREES[0]], ids=str)
def test_fast_light_rotors_are_armature(qd: Any, case: Case, seed: int) -> None:
    """gear -> infinity with gear^2 J held gives plain armature, which Pinocchio and MuJoCo have."""
    bare, _ = physical_of(case)
    text, gear = physical_urdf(case.urdf), 1e8
    armature = np.random.default_rng(seed).uniform(0.01, 0.2, bare.nj)
    discs = {
        name: {'gear': gear, 'inertia': [float(a / gear**2)] * 3}
        for name, a in zip(bare.joint_names, armature, strict=True)
    }
    model = load(text, floating_base=case.floating_base, description={'rotors': discs})
    pin = PinocchioReference(text, case.floating_base, model.joint_names, armature=armature)
    mujoco = MujocoReference(text, case.floating_base, model.joint_names, armature=armature)
    q, u, du = random_state(model, seed)
    # the coupling that armature leaves out is armature / gear = 2e-9 kg m^2, of entries of 1 kg m^2
    assert_close(qd.mass_matrix(model, q), pin.mass_matrix(q), 1e-8, 'M of Pinocchio')
    assert_close(qd.mass_matrix(model, q), mujoco.mass_matrix(q), 1e-8, 'M of MuJoCo')
    assert_close(qd.inverse_dynamics(model, q, u, du), pin.inverse_dynamics(q, u, du), 1e-7, 'ID')
    assert_close(qd.forward_dynamics(model, q, u, du), pin.forward_dynamics(q, u, du), 1e-7, 'FD')


def test_mini_cheetah_published_figures(qd: Any) -> None:
    """The unit test of the MIT simulator: 18 accelerations, all to the last of their six digits."""
    model = load('mini_cheetah', floating_base=True)
    figures = published.figures()
    for method in ('aba', 'cholesky'):
        du = qd.forward_dynamics(model, figures.q, figures.u, figures.tau, method=method)
        assert figures.mismatch(du).max() <= 1.0, method  # half of the sixth digit


def test_mini_cheetah_is_the_published_robot(qd: Any) -> None:
    """The bundled files against the published numbers, rotors as bodies of their own, in another state."""
    model = load('mini_cheetah', floating_base=True)
    bare = load(published.urdf(), floating_base=True)
    plain = PlainReference(bare, published.rotors())
    q, u, du = random_state(model, 3)
    assert_close(qd.mass_matrix(model, q), plain.mass_matrix(q), what='M')
    assert_close(qd.inverse_dynamics(model, q, u, du), plain.inverse_dynamics(q, u, du), what='ID')
    assert_close(model.total_mass, 8.252 + 0.66, 1e-12)
