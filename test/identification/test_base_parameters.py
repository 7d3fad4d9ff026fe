# SPDX-License-Identifier: Apache-2.0
"""Base parameters against counts of textbooks, Pinocchio's regressor and plain singular values."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, pinocchio_of
from closeness import assert_close
from identification_data import QUIET, equations_of, make_samples, robot

import quad_dynamics as qd
from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.base_parameters import BaseParameters, find_base_parameters
from quad_dynamics.identification.solvers.freedom import make_freedom

# A chain of n revolute joints whose neighbours are not all parallel has 7 n - 4 base parameters, two less if
# the first axis is vertical (Gautier, Khalil: Direct calculation of minimum set of inertial parameters,
# 1990). A planar arm of two links has, of each link, one moment of inertia and two first moments.
COUNTS = {'two_link_arm': 6, 'mini_cheetah_leg': 7 * 3 - 4, 'ur5': 7 * 6 - 4 - 2}


def equations(name: str, seed: int) -> Equations:
    model = robot(name)
    samples, _ = make_samples(model, seed, seconds=5.0)
    return equations_of(samples, make_columns(model), QUIET)


def stacked(equations: Equations) -> Floats:
    """(rows, size) whitened regressor of all samples."""
    return np.concatenate([equations.whitened(rows)[0] for rows in equations.samples.chunks()]).reshape(
        -1, equations.columns.size
    )


def base_of(equations: Equations, groups: set[str]) -> BaseParameters:
    return find_base_parameters(equations.accumulate()[0], make_freedom(equations.columns).only(groups))


@pytest.mark.parametrize('name', COUNTS)
def test_the_count_is_that_of_textbooks(name: str, seed: int) -> None:
    base = base_of(equations(name, seed), {'inertia'})
    assert base.rank == COUNTS[name]
    assert 1.0 <= base.condition < 1e3


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'mini_cheetah', 'panda'])
def test_the_rank_is_that_of_the_stacked_rows(name: str, seed: int) -> None:
    data = equations(name, seed)
    base = base_of(data, {'inertia', 'viscous', 'coulomb', 'offset'})
    Y = stacked(data) @ base.freedom.T
    length = np.linalg.norm(Y, axis=0)
    used = length > 1e-12 * length.max()  # the others are rounding
    values = np.linalg.svd(Y[:, used] / length[used], compute_uv=False)
    assert base.rank == np.count_nonzero(values > 1e-8 * values[0])


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'mini_cheetah', 'ur5'])
def test_combinations_predict_what_all_unknowns_predict(name: str, seed: int) -> None:
    data = equations(name, seed)
    base = base_of(data, {'inertia', 'viscous', 'coulomb'})
    Y = stacked(data) @ base.freedom.T
    # The sums lose half the digits of the rows.
    assert_close(Y[:, base.first] @ base.B, Y, 1e-6)


@pytest.mark.parametrize('name', ['ur5'])
def test_combinations_hold_for_the_regressor_of_pinocchio(name: str, seed: int) -> None:
    """The order of the inertia entries is that of others, too: a swapped pair would break the dependences."""
    reference, model = pinocchio_of(Case(name, False)), robot(name)
    base = base_of(equations(name, seed), {'inertia'})
    rng = np.random.default_rng(seed)
    for _ in range(5):
        q, u, du = rng.uniform(-1.0, 1.0, (3, model.nj))
        Y = reference.regressor(q, u, du, model.body_names)
        assert_close(Y[:, base.first] @ base.B, Y, 1e-6)
        assert_close(Y, qd.regressor(model, q, u, du), 1e-9)


def test_the_calf_of_the_leg_is_regrouped_as_by_hand(seed: int) -> None:
    """The calf turns about y below the thigh: its mass adds to the thigh as if it were at the knee."""
    base = base_of(equations('mini_cheetah_leg', seed), {'inertia'})
    names = base.freedom.names
    knee = robot('mini_cheetah_leg').joint_p[2]
    row = base.B[list(base.first).index(names.index('FL_thigh.mcx'))]
    assert row[names.index('FL_calf.m')] == pytest.approx(knee[0], abs=1e-6)
    combined = base.B @ np.eye(base.freedom.nz)[names.index('FL_calf.m')]
    same = np.zeros(base.freedom.nz)
    # A point mass at the knee, in the frame of the thigh.
    x, y, z = knee
    same[names.index('FL_thigh.m') :][:10] = [
        1.0, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y,
    ]  # fmt: skip
    # Without mcx and mcz of its own, which move with the calf, a mass on the joint's axis is part of the
    # thigh.
    assert_close(combined, base.B @ same, 1e-6)


def test_texts_name_what_belongs_together() -> None:
    base = base_of(equations('two_link_arm', 0), {'inertia'})
    texts = base.texts()
    assert len(texts) == 6
    assert 'link2.Iyy' in texts
    # The second link's mass acts as if it were at its joint, 0.5 m from the first.
    assert 'link1.mcx + 0.5 link2.m' in texts
    assert 'link1.Iyy + 0.25 link2.m' in texts


def test_nothing_is_determined_by_nothing() -> None:
    columns = make_columns(robot('mini_cheetah_leg'))
    nothing = NormalEquations(np.zeros((columns.size, columns.size)), np.zeros(columns.size), 0.0, 0)
    base = find_base_parameters(nothing, make_freedom(columns))
    assert base.rank == 0
    assert base.condition == np.inf
    assert base.texts() == []
