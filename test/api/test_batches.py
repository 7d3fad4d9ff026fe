# SPDX-License-Identifier: Apache-2.0
"""A batch gives what a loop over its states gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import SOME, Case, model_of
from public_calls import CALLS, STATES, call, good_arguments, parts
from states import random_state

COUNT = 5


def stacked(model: Any, name: str, count: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Arguments of a batch, and of its states one by one."""
    singles = [good_arguments(model, seed)[name] for seed in range(count)]
    together = dict(singles[0])
    for key in set(together) & set(STATES):
        together[key] = np.array([single[key] for single in singles])
    if 'f_ext' in together:
        for k, single in enumerate(singles):
            single['f_ext'] = {link: (1.0 + k) * wrench for link, wrench in single['f_ext'].items()}
        together['f_ext'] = {
            link: np.array([single['f_ext'][link] for single in singles]) for link in together['f_ext']
        }
    return together, singles


@pytest.mark.parametrize('name', CALLS)
@pytest.mark.parametrize('case', [SOME[0], SOME[3], SOME[1]], ids=str)
def test_batch_is_a_loop(qd: Any, case: Case, name: str) -> None:
    model = model_of(case)
    together, singles = stacked(model, name, COUNT)
    alone = [parts(call(qd, model, name, single)) for single in singles]
    for part, found in enumerate(parts(call(qd, model, name, together))):
        expected = np.array([single[part] for single in alone])
        assert found.shape == expected.shape
        # the same operations, perhaps in another vector width and order: a few ulp of the largest entry
        np.testing.assert_allclose(
            found, expected, rtol=0.0, atol=1e-12 * max(1e-3, np.abs(expected).max(initial=0.0))
        )


@pytest.mark.parametrize('count', [0, 1, 2, 3, 4, 5, 8, 9])
def test_batches_of_any_length(qd: Any, count: int) -> None:
    """Lengths that do not fill a vector of lanes, and none at all."""
    model = model_of(SOME[0])
    states = [random_state(model, seed) for seed in range(count)]
    q = np.array([s[0] for s in states]).reshape(count, model.nq)
    u, du = (np.array([s[k] for s in states]).reshape(count, model.nv) for k in (1, 2))
    tau = qd.inverse_dynamics(model, q, u, du)
    assert tau.shape == (count, model.nv)
    for k in range(count):
        np.testing.assert_allclose(tau[k], qd.inverse_dynamics(model, q[k], u[k], du[k]), rtol=0, atol=1e-10)


def test_one_wrench_for_the_whole_batch(qd: Any) -> None:
    model = model_of(SOME[0])
    states = [random_state(model, seed) for seed in range(3)]
    q, u, du = (np.array(part) for part in zip(*states, strict=True))
    wrench = {model.foot_names[0]: np.arange(6.0)}
    together = qd.inverse_dynamics(model, q, u, du, f_ext=wrench)
    for k in range(3):
        alone = qd.inverse_dynamics(model, q[k], u[k], du[k], f_ext=wrench)
        np.testing.assert_allclose(together[k], alone, rtol=0, atol=1e-10)


def test_lengths_must_agree(qd: Any) -> None:
    model = model_of(SOME[0])
    q, u, du = random_state(model, 0)
    with pytest.raises(qd.ArgumentError, match=r'\bu\b'):
        qd.inverse_dynamics(model, np.array([q, q]), np.array([u, u, u]), np.array([du, du]))
    with pytest.raises(qd.ArgumentError, match=r'\bu\b'):
        qd.inverse_dynamics(model, np.array([q, q]), u, np.array([du, du]))
    wrench = {model.foot_names[0]: np.zeros((3, 6))}
    with pytest.raises(qd.ArgumentError, match='f_ext'):
        qd.inverse_dynamics(model, np.array([q, q]), np.array([u, u]), np.array([du, du]), f_ext=wrench)


@pytest.mark.parametrize('name', CALLS)
@pytest.mark.parametrize(
    'spoil',
    [
        lambda a: a.T.copy(),
        np.ravel,
        lambda a: a[None],
        lambda a: a[:, :, None],
        lambda a: a[:2],
        lambda a: a[0],
    ],
    ids=['transposed', 'flat', 'leading_axis', 'trailing_axis', 'fewer', 'single'],
)
def test_wrong_shape_in_a_batch(qd: Any, name: str, spoil: Any) -> None:
    """The right number of numbers is not enough: they have to stand in the right places."""
    model = model_of(SOME[0])
    arguments, _ = stacked(model, name, COUNT)
    arguments.pop('f_ext', None)
    keys = [key for key in arguments if key in STATES]
    for key in keys:
        spoiled = spoil(arguments[key])
        if len(keys) == 1 and spoiled.ndim in {1, 2} and spoiled.shape[-1] == arguments[key].shape[-1]:
            continue  # a good argument, of another length
        with pytest.raises(qd.ArgumentError, match=rf'\b({"|".join(keys)})\b'):
            call(qd, model, name, arguments | {key: spoiled})
