# SPDX-License-Identifier: Apache-2.0
"""External wrenches, contact points and prescribed joints in every form that they may have."""

from __future__ import annotations

import collections
import types
from typing import Any

import numpy as np
import pytest
from cases import Case, load, model_of
from states import random_state

GO2 = Case('go2', True)


class Subclass(np.ndarray):
    """An array by another name."""


def layouts(x: np.ndarray) -> dict[str, Any]:
    """The same numbers, as the kernels do and do not take them."""
    strided = np.zeros(3 * len(x), dtype=x.dtype)[::3]
    strided[:] = x
    read_only = x.copy()
    read_only.setflags(write=False)
    other = np.dtype(x.dtype, metadata={'unit': 'N'})  # equal, but not the same object
    return {
        'list': x.tolist(),
        'tuple': tuple(x),
        'strided': strided,
        'reversed': x[::-1].copy()[::-1],
        'read_only': read_only,
        'subclass': x.view(Subclass),
        'metadata': x.astype(other),
        'column': np.array([x, x]).T[:, 1],
    }


def calls(qd: Any, model: Any, count: int | None) -> dict[str, Any]:
    """Functions of f_ext."""
    states = [(*random_state(model, seed), np.ones(model.nv)) for seed in range(count or 1)]
    q, u, du, tau = (np.array(x) if count else x[0] for x in zip(*states, strict=True))
    mask = np.arange(model.nv) >= 8
    return {
        'inverse': lambda f: qd.inverse_dynamics(model, q, u, du, f),
        'aba': lambda f: qd.forward_dynamics(model, q, u, tau, f),
        'cholesky': lambda f: qd.forward_dynamics(model, q, u, tau, f, method='cholesky'),
        'hybrid': lambda f: qd.hybrid_dynamics(model, q, u, du, tau, mask, f),
    }


over_calls = pytest.mark.parametrize('name', ['inverse', 'aba', 'cholesky', 'hybrid'])


@over_calls
def test_forms_of_a_wrench(qd: Any, name: str) -> None:
    call = calls(qd, model_of(GO2), None)[name]
    wrench = np.array([1.0, -2.0, 3.0, 4.0, -5.0, 6.0])
    expected = call({'FL_foot': wrench, 'base': wrench})
    for form in [*layouts(wrench).values(), wrench.astype(int), wrench.astype(np.float32)]:
        assert np.array_equal(call({'FL_foot': form, 'base': wrench}), expected)


@over_calls
def test_forms_of_a_mapping(qd: Any, name: str) -> None:
    model = load(GO2.urdf)  # no link is known yet
    call = calls(qd, model, None)[name]
    plain = {'FL_foot': np.arange(6.0), 'RR_foot': -np.ones(6), 'base': np.ones(6)}
    expected = call(plain)
    assert np.array_equal(call(plain), expected)  # known from now on
    assert np.array_equal(call({np.str_(link): wrench for link, wrench in plain.items()}), expected)
    for mapping in (collections.OrderedDict, types.MappingProxyType, collections.UserDict):
        assert np.array_equal(call(mapping(plain)), expected)
    assert np.array_equal(call({}), call(None))


@over_calls
def test_wrenches_of_batches(qd: Any, name: str) -> None:
    model = model_of(GO2)
    one, six = calls(qd, model, 1)[name], calls(qd, model, 6)[name]
    wrench = np.arange(6.0)
    assert np.array_equal(one({'base': wrench}), one({'base': wrench[None]}))
    assert np.array_equal(six({'base': wrench}), six({'base': np.array([wrench] * 6)}))
    for call, bad in ((one, (2, 6)), (six, (5, 6)), (six, (6, 5)), (six, (6, 6, 6))):
        with pytest.raises(qd.ArgumentError, match=r"f_ext\['base'\] has the shape"):
            call({'base': np.zeros(bad)})
    with pytest.raises(qd.ArgumentError, match=r"f_ext\['base'\] has the shape \(1, 6\); expected \(6,\)"):
        calls(qd, model, None)[name]({'base': wrench[None]})


@over_calls
@pytest.mark.parametrize('at', range(6))
def test_wrench_that_is_not_finite(qd: Any, name: str, at: int) -> None:
    call = calls(qd, model_of(GO2), None)[name]
    good, bad = np.ones(6), np.ones(6)
    bad[at] = np.nan
    with pytest.raises(
        qd.ArgumentError, match=rf"f_ext\['FR_foot'\]\[{at}\] is nan; expected a finite number"
    ):
        call({'FL_foot': good, 'FR_foot': bad})


def test_forms_of_a_point(qd: Any) -> None:
    model = load(GO2.urdf)
    q, _, _ = random_state(model, 0)
    offset = np.array([1.0, -2.0, 3.0])
    expected = qd.contact_inertia(model, q, [('FL_foot', offset), ('base', np.zeros(3))])
    for form in [*layouts(offset).values(), offset.astype(int), offset.astype(np.float32)]:
        points = [('FL_foot', form), 'base']
        assert np.array_equal(qd.contact_inertia(model, q, points), expected)
        assert np.array_equal(qd.contact_inertia(model, q, tuple(points)), expected)
        assert np.array_equal(qd.contact_inertia(model, q, collections.UserList(points)), expected)
    assert np.array_equal(expected, expected.T)
    for link in ('FL_foot', 'base'):
        with pytest.raises(qd.ArgumentError, match=f"offset on '{link}'"):
            qd.contact_inertia(model, q, [(link, None)])
        with pytest.raises(qd.ArgumentError, match=f"offset on '{link}' has the shape"):
            qd.contact_inertia(model, q, ['FR_foot', (link, np.zeros(2))])
        with pytest.raises(qd.ArgumentError, match=rf"offset on '{link}'\[1\] is inf"):
            qd.contact_inertia(model, q, ['FR_foot', (link, np.array([0.0, np.inf, 0.0]))])


def test_points_of_names_alone(qd: Any) -> None:
    model = load(GO2.urdf)
    q, _, _ = random_state(model, 0)
    feet = list(model.foot_names)
    first = qd.contact_inertia(model, q, feet)  # not known yet
    assert np.array_equal(qd.contact_inertia(model, q, feet), first)
    assert np.array_equal(qd.contact_inertia(model, q, [(foot, np.zeros(3)) for foot in feet]), first)
    # one point alone, or in a batch, gives the same block
    assert np.array_equal(qd.contact_inertia(model, q, feet[2:3]), first[6:9, 6:9])
    # beside itself, in another order of factors
    twice = qd.contact_inertia(model, q, [feet[1]] * 2)[:3, 3:]
    np.testing.assert_allclose(twice, first[3:6, 3:6], rtol=0.0, atol=1e-14 * np.abs(first).max())
    assert np.array_equal(qd.contact_inertia(model, np.array([q, q]), feet)[1], first)


def test_forms_of_a_mask(qd: Any) -> None:
    model = model_of(GO2)
    q, u, du = random_state(model, 0)
    mask = np.arange(model.nv) % 2 == 1
    mask[:6] = False
    for tau in (np.arange(18.0), np.arange(12.0)):
        expected = qd.hybrid_dynamics(model, q, u, du, tau, mask)
        assert np.array_equal(expected[0][mask], du[mask])  # bit for bit
        whole = np.concatenate([np.zeros(18 - len(tau)), tau])
        assert np.array_equal(expected[1][~mask], whole[~mask])
        for form in layouts(mask).values():
            found = qd.hybrid_dynamics(model, q, u, du, tau, form)
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        batch = qd.hybrid_dynamics(model, *(np.array([x, x]) for x in (q, u, du, tau)), mask)
        assert all(np.array_equal(a[1], b) for a, b in zip(batch, expected, strict=True))


@pytest.mark.parametrize('row', range(6))
def test_base_that_is_prescribed_in_part(qd: Any, row: int) -> None:
    model = model_of(GO2)
    q, u, du = random_state(model, 0)
    for mask in (np.arange(18) == row, np.arange(18) != row):
        with pytest.raises(qd.ArgumentError, match='expected all True or all False'):
            qd.hybrid_dynamics(model, q, u, du, np.zeros(18), mask)


def test_factored_dynamics_of_impossible_bodies(qd: Any) -> None:
    """LDLT takes over in the kernel, also in the middle of a batch and with external wrenches."""
    model = model_of(GO2)
    pi = model.pi.copy().reshape(-1, 10)
    pi[3, [4, 6, 9]] = -0.5
    bad = model.with_pi(pi.ravel(), check=False)
    states = [(*random_state(model, seed)[:2], np.ones(12)) for seed in range(3)]
    q, u, tau = (np.array(x) for x in zip(*states, strict=True))
    f_ext = {'FL_foot': np.arange(6.0)}
    expected = qd.forward_dynamics(bad, q, u, tau, f_ext)
    with pytest.warns(qd.FactorizationWarning, match='LLT failed at row'):
        found = qd.forward_dynamics(bad, q, u, tau, f_ext, method='cholesky')
    # two algorithms for an indefinite matrix
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())
    with pytest.warns(qd.FactorizationWarning, match='LLT failed at row') as caught:
        single = qd.forward_dynamics(bad, q[1], u[1], tau[1], f_ext, method='cholesky')
    assert caught[0].filename == __file__
    np.testing.assert_allclose(single, found[1], rtol=0.0, atol=1e-10 * np.abs(expected).max())
    nothing = model.with_pi(np.zeros(len(model.pi)), check=False).without_rotors()
    with pytest.raises(qd.ArgumentError, match='singular'):
        qd.forward_dynamics(nothing, q[0], u[0], tau[0], method='cholesky')
