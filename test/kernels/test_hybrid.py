# SPDX-License-Identifier: Apache-2.0
"""Hybrid dynamics: some accelerations given, the other ones and the missing forces found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import ALL, SOME, Case, model_of, plain_of
from closeness import assert_close
from states import random_state, random_wrenches


def random_mask(model: Any, seed: int) -> np.ndarray:
    """Joints at random; the base, whose six entries go together, with even odds."""
    rng = np.random.default_rng([seed, 11])
    joints = rng.random(model.nj) < rng.uniform(0.2, 0.8)
    return np.concatenate([np.full(model.nv - model.nj, bool(rng.integers(2))), joints])


@pytest.mark.parametrize('case', ALL, ids=str)
@pytest.mark.parametrize('seed', range(4), ids='mask{}'.format)
def test_random_masks(qd: Any, case: Case, seed: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, seed)
    tau, mask = random_state(model, seed + 10)[2], random_mask(model, seed)
    f_ext = random_wrenches(sorted(model.frames), seed)
    found_du, found_tau = qd.hybrid_dynamics(model, q, u, du, tau, mask, f_ext=f_ext)
    expected_du, expected_tau = plain_of(case).hybrid_dynamics(q, u, du, tau, mask, f_ext)
    assert_close(found_du, expected_du, what='du')
    assert_close(found_tau, expected_tau, what='tau')
    assert np.array_equal(found_du[mask], du[mask])
    assert np.array_equal(found_tau[~mask], tau[~mask])


@pytest.mark.parametrize('case', SOME, ids=str)
def test_extreme_masks(qd: Any, case: Case, seed: int) -> None:
    """All prescribed is inverse dynamics, nothing prescribed is forward dynamics."""
    model = model_of(case)
    q, u, du = random_state(model, seed)
    tau = random_state(model, seed + 10)[2]
    all_given, none_given = np.ones(model.nv, dtype=bool), np.zeros(model.nv, dtype=bool)
    found = qd.hybrid_dynamics(model, q, u, du, tau, all_given, friction=True)[1]
    assert_close(found, qd.inverse_dynamics(model, q, u, du, friction=True), what='tau')
    found = qd.hybrid_dynamics(model, q, u, du, tau, none_given, friction=True)[0]
    assert_close(found, qd.forward_dynamics(model, q, u, tau, friction=True), what='du')


@pytest.mark.parametrize('case', [c for c in SOME if c.floating_base], ids=str)
def test_given_base_motion_needs_the_reaction(qd: Any, case: Case, seed: int) -> None:
    """tau[:6] is f_0, what the environment must supply; inverse dynamics of the motion gives it back."""
    model = model_of(case)
    q, u, du = random_state(model, seed)
    tau = random_state(model, seed + 10)[2]
    mask = np.arange(model.nv) < 6
    found_du, found_tau = qd.hybrid_dynamics(model, q, u, du, tau, mask)
    assert_close(qd.inverse_dynamics(model, q, u, found_du), found_tau)


def test_base_is_prescribed_as_a_whole(qd: Any) -> None:
    model = model_of(SOME[0])
    q, u, du = random_state(model, 0)
    mask = np.zeros(model.nv, dtype=bool)
    mask[2] = True
    with pytest.raises(qd.ArgumentError, match='prescribed'):
        qd.hybrid_dynamics(model, q, u, du, du, mask)
