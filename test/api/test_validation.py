# SPDX-License-Identifier: Apache-2.0
"""Corner cases of validation that were wrong once."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from cases import Case, model_of

GO2 = Case('go2', True)


@pytest.fixture
def model() -> Any:
    return model_of(GO2)


def test_quaternions_at_the_tolerance_are_taken_or_refused(qd: Any, model: Any) -> None:
    """Kernel and public function must agree, however the squared length is rounded."""
    rng = np.random.default_rng(0)
    q = model.neutral.copy()
    outcomes = set()
    for _ in range(2000):
        quaternion = rng.normal(size=4)
        length = np.sqrt(1.0 + 1e-3 * (1.0 + rng.uniform(-3e-16, 3e-16)))
        q[3:7] = quaternion / np.linalg.norm(quaternion) * length
        try:
            qd.mass_matrix(model, q)
            outcomes.add('taken')
        except qd.ArgumentError:
            outcomes.add('refused')
    assert outcomes == {'taken', 'refused'}


@pytest.mark.parametrize(('size', 'index', 'joint'), [(12, 2, 2), (12, 7, 7), (18, 8, 2)])
def test_error_names_the_joint_of_a_torque(qd: Any, model: Any, size: int, index: int, joint: int) -> None:
    tau = np.zeros(size)
    tau[index] = np.nan
    with pytest.raises(qd.ArgumentError, match=model.joint_names[joint]):
        qd.forward_dynamics(model, model.neutral, np.zeros(18), tau)


def test_prescribed_joint_without_inertia(qd: Any) -> None:
    """A massless tip has d = 0: nothing may be divided by it where its acceleration is given."""
    arm = model_of(Case('panda', False))
    pi = arm.pi.copy().reshape(-1, 10)
    pi[-1] = 0.0
    light = arm.with_pi(pi.ravel(), check=False)
    rng = np.random.default_rng(0)
    q, u, du = arm.neutral, *rng.normal(size=(2, arm.nv))
    found = qd.hybrid_dynamics(light, q, u, du, np.zeros(arm.nv), np.ones(arm.nv, dtype=bool))[1]
    expected = qd.inverse_dynamics(light, q, u, du)
    assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize('scale', [1e-200, 1.0, 1e200])
def test_length_of_a_direction_does_not_matter(qd: Any, model: Any, scale: float) -> None:
    place = (model, model.neutral, 'FL_foot', np.zeros(3))
    expected = qd.directional_inertia(*place, [0.0, 0.6, 0.8])
    assert np.isclose(qd.directional_inertia(*place, [0.0, 0.6 * scale, 0.8 * scale]), expected, rtol=1e-14)


def test_motion_that_overflows(qd: Any, model: Any) -> None:
    u = np.zeros(18)
    u[3] = 1e300
    assert np.isfinite(qd.integrate(model, model.neutral, u, 1e-3)).all()
    with pytest.raises(qd.ArgumentError, match=r'u \* dt'):
        qd.integrate(model, model.neutral, u, 1e300)
    with pytest.raises(qd.ArgumentError, match='dt'):
        qd.integrate(model, model.neutral, u, 10**400)


@pytest.mark.parametrize('f_ext', [np.zeros(6), [], 0, 'FL_foot'], ids=repr)
def test_external_forces_are_a_dict(qd: Any, model: Any, f_ext: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='f_ext'):
        qd.inverse_dynamics(model, model.neutral, np.zeros(18), np.zeros(18), f_ext=f_ext)


def test_empty_batches(qd: Any, model: Any) -> None:
    q, u = np.empty((0, 19)), np.empty((0, 18))
    wrench = {'FL_foot': np.empty((0, 6))}
    assert qd.inverse_dynamics(model, q, u, u, f_ext=wrench).shape == (0, 18)
    assert qd.forward_dynamics(model, q, u, u, method='cholesky').shape == (0, 18)
    assert qd.contact_inertia(model, q, ['FL_foot']).shape == (0, 3, 3)
    assert qd.contact_inertia(model, model.neutral, []).shape == (0, 0)


@pytest.mark.parametrize(
    'points', [None, 'FL_foot', [['FL_foot', 1, 2]], [(['FL_foot'], np.zeros(3))]], ids=repr
)
def test_bad_points(qd: Any, model: Any, points: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='points'):
        qd.contact_inertia(model, model.neutral, points)


def test_frame_that_is_no_name(qd: Any, model: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='frame'):
        qd.frame_pose(model, model.neutral, ['FL_foot'])


@pytest.mark.parametrize('arguments', [(None,), (3,)], ids=repr)
def test_random_configuration_needs_a_generator(qd: Any, model: Any, arguments: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='rng'):
        qd.random_configuration(model, *arguments)
    for n in (-1, 2.5):
        with pytest.raises(qd.ArgumentError, match=r'\bn\b'):
            qd.random_configuration(model, np.random.default_rng(0), n)
    with pytest.raises(qd.ArgumentError, match='model'):
        qd.random_configuration('go2', np.random.default_rng(0))


def test_masked_values_are_not_read(qd: Any, model: Any) -> None:
    masked = np.ma.masked_array(model.neutral, mask=False)
    assert np.array_equal(qd.gravity(model, masked), qd.gravity(model, model.neutral))
    masked[8] = np.ma.masked
    with pytest.raises(qd.ArgumentError, match='q has masked values'):
        qd.gravity(model, masked)


def test_normal_equations_that_do_not_fit(qd: Any, model: Any) -> None:
    state = (model, model.neutral, *np.zeros((3, 18)))
    plain, more = qd.accumulate_regressor(*state), qd.accumulate_regressor(*state, friction=True)
    with pytest.raises(qd.ArgumentError, match='130 and 154'):
        _ = plain + more
    with pytest.raises(TypeError):
        _ = plain + 1


def test_single_numbers_are_numbers(qd: Any, model: Any) -> None:
    kinetic, potential = qd.energy(model, model.neutral, np.zeros(18))
    inverse = qd.directional_inertia(model, model.neutral, 'FL_foot', np.zeros(3), [0, 0, 1])
    for number in (kinetic, potential, inverse):
        assert isinstance(number, float)


def test_copies_of_a_model_compute_the_same(qd: Any, model: Any) -> None:
    expected = qd.mass_matrix(model, model.neutral)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(qd.mass_matrix(other, model.neutral), expected)
        assert other._packed.address != model._packed.address


def test_kernel_passes_on_errors_of_its_entry(qd: Any, model: Any) -> None:
    """A kernel that gets no address of an arena must not run."""
    from quad_dynamics.kernels.crba import mass_matrix

    M = qd.mass_matrix(model, model.neutral)
    for arguments in (('no address', 0), (model._packed.address, 'no number'), (2**80, 0)):
        with pytest.raises((TypeError, OverflowError)):
            mass_matrix.run(*arguments, model.neutral, M)
    assert mass_matrix.run(model._packed.address, 0, model.neutral, M) == 0
