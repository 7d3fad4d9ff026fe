# SPDX-License-Identifier: Apache-2.0
"""Rows and their sums: against plain algebra with every matrix written out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from cases import TREES, Case, load
from closeness import assert_close
from identification_data import QUIET, TYPICAL, Levels, make_samples, predicted, robot
from reference_rotors import GearedReference, RotorLink, description, random_rotors
from states import random_state

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import CLUSTER, Equations, huber_weights
from quad_dynamics.identification.equations.noise import Noise, covariance, first_noise, fit_noise
from quad_dynamics.identification.equations.samples import Samples

CASES = [
    ('mini_cheetah', 'forces'),
    ('mini_cheetah', 'projection'),
    ('mini_cheetah_leg', 'fixed'),
    ('two_link_arm', 'fixed'),
]


def _equations(name: str, mode: str, seed: int, noise: Levels = TYPICAL) -> tuple[Equations, Floats]:
    model = robot(name)
    samples, x = make_samples(model, seed, seconds=4.0, noise=noise, feet=mode == 'forces')
    columns = make_columns(model)
    return Equations(samples, columns, mode, first_noise(columns, mode == 'projection')), x


def _stacked(equations: Equations) -> tuple[Floats, Floats, Floats]:
    """All raw rows, measurements and weights, every matrix written out."""
    rows = equations.samples.all()
    Y, y = equations.raw(rows)
    J = equations.foot_jacobians(rows)
    C = covariance(equations.noise, J, equations.use(rows))
    return Y, y, np.linalg.inv(C)


@pytest.mark.parametrize(('name', 'mode'), CASES)
def test_the_truth_leaves_nothing(name: str, mode: str) -> None:
    equations, x = _equations(name, mode, seed=1, noise=QUIET)
    left = np.concatenate([r for _, r in equations.residuals(x)])
    used = np.concatenate([equations.use(rows) for rows in equations.samples.chunks()]) > 0.0
    assert np.abs(left[used]).max() < 1e-8  # rounding of torques of about 10 N m


@pytest.mark.parametrize('unused', [2, 5])
def test_unknown_forces_are_not_far_off_in_rows_that_are_not_used(unused: int) -> None:
    """On four feet there are 18 rows and 12 forces: with few used rows, these fit anything."""
    equations, x = _equations('mini_cheetah', 'projection', seed=1)
    rows = equations.samples.all()
    equations.samples.layout.get(rows, 'use')[:, :unused] = 0.0
    samples = Samples(equations.columns.model)
    samples.append(rows)
    fewer = Equations(samples, equations.columns, 'projection', equations.noise)
    (usual,) = np.sqrt([np.mean(np.concatenate([r for _, r in equations.residuals(x)]) ** 2)])
    left = np.concatenate([r for _, r in fewer.residuals(x)])
    assert np.sqrt(np.mean(left**2)) < 1.5 * usual


def test_rows_are_inverse_dynamics_and_forces() -> None:
    """The row of a sample, from functions that were checked against Pinocchio elsewhere."""
    equations, _ = _equations('mini_cheetah', 'forces', seed=2)
    model, rows = equations.columns.model, equations.samples.all()[:50]
    get = equations.samples.layout.get
    Y, y = equations.raw(rows)
    moving = np.abs(get(rows, 'sign')).min(axis=1) == 1.0
    expected = qd.inverse_dynamics(model, get(rows, 'q'), get(rows, 'u'), get(rows, 'du'), friction=True)
    ours = Y @ equations.columns.prior + Y @ equations.columns.known
    assert np.abs(ours - expected)[moving].max() < 1e-9
    forces = np.zeros((len(rows), model.nv))
    forces[:, 6:] = get(rows, 'tau')
    for i, foot in enumerate(model.foot_names):
        J = qd.frame_jacobian(model, get(rows, 'q'), foot)[:, :3] * get(rows, 'stance')[:, i, None, None]
        forces += np.einsum('nkv,nk->nv', J, get(rows, 'force')[:, 3 * i : 3 * i + 3])
    assert np.abs(y + Y @ equations.columns.known - forces).max() < 1e-9


def _unknown_rotor(model: Any, i: int, axial: float) -> RotorLink:
    """A rotor of which the description says nothing: a gear of 100, no mass, no inertia across."""
    parent = model.urdf.joint(model.joint_names[i]).parent
    axis = model.frames[parent].R.T @ model.rotor_axis[i]
    return RotorLink(model.joint_names[i], parent, 100.0, 0.0, np.zeros(3), axis, axial, 0.0)


GEARED = [Case('go2', True), Case('anymal_c', True), Case('solo12', False), Case('panda', False), *TREES[:6]]


@pytest.mark.parametrize('known', [True, False], ids=['described', 'unknown'])
@pytest.mark.parametrize('case', GEARED, ids=str)
def test_rows_are_those_of_rotors_that_links_carry(case: Case, known: bool, seed: int) -> None:
    """Rotors that are links of their own in Pinocchio, with another axial inertia than was known."""
    rng = np.random.default_rng(seed)
    rotors = random_rotors(case.urdf, seed) if known else []
    model = load(case.urdf, floating_base=case.floating_base, description=description(rotors))
    columns = make_columns(model)
    x, axial = columns.prior.copy(), rng.uniform(0.3, 3.0, model.nj)
    axial *= np.where(model.rotor_inertia > 0.0, model.rotor_inertia, 1e-5)
    x[columns.slices['rotor']] = axial
    changed = {r.joint: dataclasses.replace(r, axial=axial[model.joint_names.index(r.joint)]) for r in rotors}
    links = [changed.get(n) or _unknown_rotor(model, i, axial[i]) for i, n in enumerate(model.joint_names)]
    q, u, du = random_state(model, seed)
    reference = GearedReference(case.urdf, case.floating_base, model.joint_names, links)
    expected, speed = reference.inverse_dynamics(q, u, du), u[model.nv - model.nj :]
    expected[model.nv - model.nj :] += model.viscous * speed + model.coulomb * np.sign(speed)
    assert_close(predicted(columns, x, q, u, du), expected, 1e-10, 'rows')
    other = columns.model.with_rotors(axial)
    assert_close(qd.inverse_dynamics(other, q, u, du, friction=True), expected, 1e-10, 'model')


@pytest.mark.parametrize('robust', [False, True])
@pytest.mark.parametrize(('name', 'mode'), CASES)
def test_sums_are_those_of_generalised_least_squares(name: str, mode: str, robust: bool) -> None:
    equations, x = _equations(name, mode, seed=3)
    if robust:  # weights belong to whitened rows
        Y, y = equations.whitened(equations.samples.all())
        w = huber_weights(y - Y @ x)
        YtY, Yty = np.einsum('nrp,nr,nrq->pq', Y, w, Y, optimize=True), np.einsum('nrp,nr->p', Y, w * y)
        yty = float(np.sum(w * y * y))
    else:
        Y, y, W = _stacked(equations)
        YtY = np.einsum('nrp,nrs,nsq->pq', Y, W, Y, optimize=True)
        Yty, yty = np.einsum('nrp,nrs,ns->p', Y, W, y, optimize=True), np.einsum('nr,nrs,ns->', y, W, y)
    folds = equations.accumulate(3, x if robust else None)
    ours = folds[0] + folds[1] + folds[2]
    tolerance = 1e-7 if mode == 'projection' else 1e-11  # unknown forces have 1e8 times the variance
    assert np.abs(ours.YtY - YtY).max() < tolerance * np.abs(YtY).max()
    assert np.abs(ours.Yty - Yty).max() < tolerance * np.abs(Yty).max()
    assert ours.yty == pytest.approx(yty, rel=tolerance)


@pytest.mark.parametrize(('name', 'mode'), CASES)
def test_scores_are_sums_over_stretches_of_time(name: str, mode: str) -> None:
    equations, x = _equations(name, mode, seed=4)
    rows = equations.samples.all()
    Y, y = equations.whitened(rows)
    s = np.einsum('nrp,nr->np', Y, y - Y @ x)
    cluster = np.floor(equations.samples.layout.get(rows, 'time') / CLUSTER)
    meat = sum(np.outer(v, v) for v in (s[cluster == k].sum(axis=0) for k in np.unique(cluster)))
    assert np.abs(equations.scores(x) - meat).max() < 1e-7 * np.abs(meat).max()


def test_forces_that_are_unknown_do_not_matter() -> None:
    """A push at feet that stand weighs nothing in the projected equations; it does where forces are known."""
    for mode, low, high in (('projection', 0.0, 0.1), ('forces', 100.0, np.inf)):
        equations, _ = _equations('mini_cheetah', mode, seed=5)
        rows = equations.samples.all()
        J = equations.foot_jacobians(rows)
        f = np.random.default_rng(5).normal(scale=30.0, size=J.shape[:2])
        wrench = np.einsum('nkv,nk->nv', J, f)
        weights = np.linalg.inv(equations.covariance(rows))
        squares = np.einsum('nv,nvw,nw->n', wrench, weights, wrench)  # standard deviations, squared
        assert low <= squares.max() < high


def test_rows_that_do_not_count_do_not_count() -> None:
    equations, _ = _equations('mini_cheetah', 'forces', seed=6)
    layout, rows = equations.samples.layout, equations.samples.all()
    layout.get(rows, 'use')[:, 4] = 0.0
    spoilt = rows.copy()
    layout.get(spoilt, 'tau')[:, 4] += 5.0
    sums = []
    for each in (rows, spoilt):
        samples = Samples(equations.columns.model)
        samples.append(each)
        sums.append(Equations(samples, equations.columns, 'forces', equations.noise).accumulate()[0])
    assert np.abs(sums[0].Yty - sums[1].Yty).max() < 1e-6 * np.abs(sums[0].Yty).max()


def test_sums_depend_neither_on_memory_nor_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    equations, _ = _equations('mini_cheetah', 'forces', seed=7)
    here = equations.accumulate()[0]
    monkeypatch.setattr('quad_dynamics.identification.equations.samples._MOST_IN_MEMORY', 10)
    filed = Samples(equations.columns.model)
    for part in np.array_split(equations.samples.all(), 9):
        filed.append(part)
    there = Equations(filed, equations.columns, 'forces', equations.noise).accumulate()[0]
    assert np.array_equal(here.YtY, there.YtY)
    assert np.array_equal(here.Yty, there.Yty)
    again = equations.accumulate()[0]
    assert np.array_equal(here.YtY, again.YtY)  # threads do not change the order


def test_columns_that_are_not_wanted_are_zero() -> None:
    equations, _ = _equations('mini_cheetah', 'forces', seed=8)
    few = Equations(
        equations.samples, equations.columns, 'forces', equations.noise, kinds=('viscous', 'coulomb')
    )
    full, small = equations.accumulate()[0], few.accumulate()[0]
    wanted = np.concatenate(
        [np.r_[equations.columns.slices[kind]] for kind in ('pi', 'viscous', 'coulomb', 'rotor')]
    )
    rest = np.setdiff1d(np.arange(equations.columns.size), wanted)
    assert np.allclose(small.YtY[np.ix_(wanted, wanted)], full.YtY[np.ix_(wanted, wanted)], rtol=1e-10)
    assert not small.YtY[rest].any()


@pytest.mark.parametrize('mode', ['forces', 'projection'])
def test_the_noise_is_found_from_what_is_left(mode: str) -> None:
    levels = Levels(tau=0.08, force=0.7)
    equations, x = _equations('mini_cheetah', mode, seed=9, noise=levels)
    found = fit_noise(equations, x)
    assert found.joints == pytest.approx(0.08, rel=0.25)  # 400 samples, and outliers are cut
    if mode == 'forces':
        assert found.force == pytest.approx(0.7, rel=0.15)
        assert found.base.max() < 0.3  # nothing but the forces disturbs the base


@pytest.mark.parametrize(
    ('name', 'mode', 'part'),
    [
        ('mini_cheetah', 'fixed', 'floating'),
        ('two_link_arm', 'forces', 'fixed'),
        ('two_link_arm', 'all', 'expected'),
    ],
)
def test_a_mode_that_does_not_fit_is_refused(name: str, mode: str, part: str) -> None:
    model: Any = robot(name)
    columns = make_columns(model)
    with pytest.raises(ArgumentError, match=part):
        Equations(Samples(model), columns, mode, Noise(np.ones(6), np.ones(model.nj), 1.0))
