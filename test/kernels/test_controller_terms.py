# SPDX-License-Identifier: Apache-2.0
"""All terms of a controller in one call: against Pinocchio, finite differences, and the single functions."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from cases import ALL, SOME, Case, load, model_of, pinocchio_of
from closeness import DIFFERENCES, assert_close, derivative
from reference_rotors import GearedReference, description, random_rotors
from states import random_state

GO2 = Case('go2', True)


def some_links(model: Any) -> list[str]:
    """The root, the last body, and merged links."""
    return [model.base_name, model.body_names[-1], *sorted(model.frames)[:: max(1, len(model.frames) // 3)]]


@pytest.mark.parametrize('case', ALL, ids=str)
def test_every_term_against_pinocchio(qd: Any, case: Case, seed: int) -> None:
    model, pin = model_of(case), pinocchio_of(case)
    q, u, _ = random_state(model, seed)
    links = some_links(model)
    terms = qd.controller_terms(model, q, u, links)
    assert_close(terms.M, pin.mass_matrix(q), what='M')
    assert_close(terms.h, pin.nonlinear_effects(q, u), what='h')
    for k, link in enumerate(links):
        R, p = pin.frame_pose(q, link)
        assert_close(terms.p_WF[k], p, what=f'position of {link}')
        assert_close(terms.R_WF[k], R, what=f'rotation of {link}')
        assert_close(terms.v_WF[k], pin.frame_velocity(q, u, link), what=f'velocity of {link}')
        assert_close(terms.J_F[k], pin.frame_jacobian(q, link), what=f'Jacobian of {link}')
        # cancellation: a frame on the axes has no bias; its scale is still that of |u|^2 times a metre,
        # and of gravity, which is added and taken away again
        expected = pin.frame_bias_acceleration(q, u, link)
        scale = max(float(np.abs(expected).max()), 1e-3 * float(u @ u), 1.0)
        assert_close(terms.dJ_F_u[k], expected, what=f'bias of {link}', scale=scale)
    assert_close(terms.p_WG, pin.center_of_mass(q), what='centre of mass')
    assert_close(terms.J_G, pin.com_jacobian(q), what='its Jacobian')
    assert_close(terms.A_G, pin.centroidal_momentum_matrix(q), what='A_G')
    bias = pin.centroidal_bias(q, u)
    weight = model.total_mass * 10.0  # added and taken away again
    assert_close(terms.dA_G_u, bias, what='dA_G u', scale=max(float(np.abs(bias).max()), weight))
    assert_close(terms.dJ_G_u, bias[:3] / model.total_mass, what='dJ_G u', scale=10.0)


@pytest.mark.parametrize('case', SOME, ids=str)
def test_biases_are_derivatives(qd: Any, case: Case, seed: int) -> None:
    """dJ/dt u and dA/dt u by differences along the motion, with constant u."""
    model = model_of(case)
    q, u, _ = random_state(model, seed)
    links = some_links(model)
    terms = qd.controller_terms(model, q, u, links)

    def after(t: float) -> Any:
        return qd.controller_terms(model, qd.integrate(model, q, u, t), u, links)

    for found, name in (('dJ_F_u', 'J_F'), ('dJ_G_u', 'J_G'), ('dA_G_u', 'A_G')):
        expected = derivative(lambda t, name=name: getattr(after(t), name) @ u)
        assert_close(getattr(terms, found), expected, rel=DIFFERENCES, what=found)
    assert_close(terms.v_WF[:, :3], derivative(lambda t: after(t).p_WF), rel=DIFFERENCES, what='velocity')
    assert_close(terms.J_G @ u, derivative(lambda t: after(t).p_WG), rel=DIFFERENCES, what='J_G')


@pytest.mark.parametrize('case', [GO2, Case('panda', False), Case('ur5', True)], ids=str)
def test_rotors(qd: Any, case: Case, seed: int) -> None:
    """Geared rotors against Pinocchio, where each is a link of its own."""
    rotors = random_rotors(case.urdf, seed=1)
    model = load(case.urdf, floating_base=case.floating_base, description=description(rotors))
    reference = GearedReference(case.urdf, case.floating_base, model.joint_names, rotors)
    q, u, _ = random_state(model, seed)
    terms = qd.controller_terms(model, q, u)
    assert_close(terms.M, reference.mass_matrix(q), what='M')
    assert_close(terms.h, reference.inverse_dynamics(q, u, 0.0 * u), what='h')
    if case.floating_base:  # the reference counts rotors on an immobile root as moving
        full, G, q_full = reference.full, reference.G, reference.q_full(q)
        assert_close(terms.A_G, full.centroidal_momentum_matrix(q_full) @ G, what='A_G')
        assert_close(terms.dA_G_u, full.centroidal_bias(q_full, G @ u), what='dA_G u')
        assert_close(terms.J_G, full.com_jacobian(q_full) @ G, what='J_G')


@pytest.mark.parametrize('rotors', [False, True], ids=['plain', 'rotors'])
@pytest.mark.parametrize('case', SOME, ids=str)
def test_single_functions_give_the_same(qd: Any, case: Case, rotors: bool, seed: int) -> None:
    options = {'description': description(random_rotors(case.urdf, seed=1))} if rotors else {}
    model = load(case.urdf, floating_base=case.floating_base, **options)
    q, u, _ = random_state(model, seed)
    terms, links = qd.controller_terms(model, q, u), list(model.foot_names)
    assert_close(terms.M, qd.mass_matrix(model, q))
    assert_close(terms.h, qd.nonlinear_effects(model, q, u))
    assert_close(terms.p_WF, np.reshape([qd.frame_pose(model, q, link)[1] for link in links], (-1, 3)))
    assert_close(terms.p_WG, qd.center_of_mass(model, q))
    assert_close(terms.J_G, qd.com_jacobian(model, q))
    assert_close(terms.A_G, qd.centroidal_momentum_matrix(model, q))
    weight = model.total_mass * 10.0  # added and taken away again
    assert_close(terms.dA_G_u, qd.centroidal_bias(model, q, u), scale=weight)


def test_feet_are_the_default(qd: Any) -> None:
    model = model_of(GO2)
    q, u, _ = random_state(model, 0)
    terms, named = qd.controller_terms(model, q, u), qd.controller_terms(model, q, u, model.foot_names)
    assert terms.J_F.shape == (4, 6, 18)
    assert all(np.array_equal(a, b) for a, b in zip(terms, named, strict=True))
    none = qd.controller_terms(model, q, u, [])
    assert none.J_F.shape == (0, 6, 18)
    assert np.array_equal(none.M, terms.M)


@pytest.mark.parametrize('count', [0, 1, 4], ids='{}_frames'.format)
def test_new_arrays_belong_to_the_caller(qd: Any, count: int) -> None:
    """Arrays of one call are apart from those of the next, own their numbers, and are freed with them."""
    model = model_of(GO2)
    q, u, _ = random_state(model, 0)
    frames = sorted(model.frames)[:count]
    terms, others = qd.controller_terms(model, q, u, frames), qd.controller_terms(model, q, u, frames)
    assert type(terms) is type(others)
    for array, other, shape in zip(terms, others, model._packed.term_shapes(count), strict=True):
        assert array.shape == shape
        assert array.dtype == np.float64
        assert array.flags.carray
        assert array.flags.owndata
        assert not np.shares_memory(array, other)
        np.testing.assert_array_equal(array, other)
    kept = [weakref.ref(array) for array in qd.controller_terms(model, q, u, frames)]
    assert [x() for x in kept] == [None] * len(terms)


@pytest.mark.parametrize('count', [None, 3], ids=['single', 'batch'])
def test_results_are_written_to_out(qd: Any, count: int | None) -> None:
    model = model_of(GO2)
    states = [random_state(model, seed)[:2] for seed in range(6)]
    first = [np.array(x[: count or 1]) if count else x[0] for x in zip(*states, strict=True)]
    second = [np.array(x[-count:]) if count else x[-1] for x in zip(*states, strict=True)]
    out = qd.controller_terms(model, *first)
    arrays = [id(array) for array in out]
    for array in out:
        array[...] = np.nan
    assert qd.controller_terms(model, *second, out=out) is out
    assert [id(array) for array in out] == arrays
    expected = qd.controller_terms(model, *second)
    assert all(np.array_equal(a, b) for a, b in zip(out, expected, strict=True))
    as_lists = qd.controller_terms(model, *[x.tolist() for x in first], out=out)
    assert all(
        np.array_equal(a, b) for a, b in zip(as_lists, qd.controller_terms(model, *first), strict=True)
    )


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


@pytest.mark.parametrize(
    'spoil',
    [
        lambda a: a[:0],
        lambda a: a.astype(np.float32),
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[None],
        lambda a: None,
        lambda a: a.tolist(),
        read_only,
    ],
    ids=['empty', 'float32', 'strided', 'batch', 'none', 'list', 'read_only'],
)
@pytest.mark.parametrize('field', range(12))
def test_out_that_does_not_fit(qd: Any, field: int, spoil: Any) -> None:
    """It would be written beyond its end."""
    model = model_of(GO2)
    q, u, _ = random_state(model, 0)
    good = qd.controller_terms(model, q, u)
    name = good._fields[field]
    bad = good._replace(**{name: spoil(good[field])})
    with pytest.raises(qd.ArgumentError, match=rf'out\.{name} is'):
        qd.controller_terms(model, q, u, out=bad)


def test_out_of_another_kind(qd: Any) -> None:
    model = model_of(GO2)
    q, u, _ = random_state(model, 0)
    good = qd.controller_terms(model, q, u)
    short = tuple.__new__(type(good), good[:5])
    for bad in (tuple(good), list(good), 3, good.M, short, tuple.__new__(type(good))):
        with pytest.raises(qd.ArgumentError, match='out'):
            qd.controller_terms(model, q, u, out=bad)
    with pytest.raises(qd.ArgumentError, match=r'out\.p_WF'):
        qd.controller_terms(model, q, u, ['FL_foot'], out=good)
    with pytest.raises(qd.ArgumentError, match=r'out\.M'):
        qd.controller_terms(model, np.array([q, q]), np.array([u, u]), out=good)
    with pytest.raises(qd.ArgumentError, match=r'\bu\b'):  # what is wrong with the state comes first
        qd.controller_terms(model, q, u[:3], out=short)


@pytest.mark.parametrize(
    'frames', ['FL_foot', ['no_such_link'], 3, [3], [['FL_foot']], {'FL_foot': 1}], ids=repr
)
def test_bad_frames(qd: Any, frames: Any) -> None:
    model = model_of(GO2)
    q, u, _ = random_state(model, 0)
    qd.controller_terms(model, q, u, ['FL_foot'])  # known from now on
    with pytest.raises(qd.ArgumentError, match='frames'):
        qd.controller_terms(model, q, u, frames)
