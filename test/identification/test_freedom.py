# SPDX-License-Identifier: Apache-2.0
"""Which unknowns are free, and how those of legs belong together."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from cases import FILES, QUADRUPEDS
from closeness import assert_close
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError, ModelWarning
from quad_dynamics.identification.equations.columns import Columns, make_columns
from quad_dynamics.identification.solvers.freedom import SENSORS, make_freedom
from quad_dynamics.identification.solvers.leg_ties import find_leg_ties, pi_map
from quad_dynamics.identification.solvers.pseudo_inertia import inconsistent_bodies, pseudo_inertia


@functools.cache
def model_of(name: str, floating: bool = True) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return qd.load_model(
            str(robots_folder() / FILES[name]) if name in FILES else name, floating_base=floating
        )


@functools.cache
def columns_of(name: str) -> Columns:
    return make_columns(model_of(name))


def free_names(*words: str, tie: bool = False) -> set[str]:
    """Names of what words free, but for errors of sensors, which always may be."""
    freedom = make_freedom(columns_of('mini_cheetah'), words, tie)
    kinds = freedom.only({group for group in freedom.groups if group not in SENSORS or group in words})
    return {freedom.columns.names[i] for i in np.flatnonzero(kinds.free)}


# ---------------------------------------------------------------- words


def test_words_free_what_they_say() -> None:
    columns = columns_of('mini_cheetah')
    assert free_names('inertia') == set(columns.names[:130])
    assert free_names('friction') == set(
        columns.names[columns.slices['viscous'].start : columns.slices['offset'].start]
    )
    assert (
        free_names('trunk')
        == free_names('payload')
        == {name for name in columns.names if name.startswith('base_link.')}
    )
    assert (
        free_names('FL_calf')
        == free_names('FL_foot')
        == {n for n in columns.names if n.startswith('FL_calf.')}
    )
    assert free_names('FL_hip_joint') == {'FL_hip_joint.viscous', 'FL_hip_joint.coulomb'}
    assert free_names('*_calf.m') == {f'{leg}_calf.m' for leg in ('FL', 'FR', 'RL', 'RR')}
    assert free_names('rotor', 'bias') == {n for n in columns.names if n.endswith('.rotor') or '.bias_' in n}


def test_without_words_everything_may_be_free() -> None:
    freedom = make_freedom(columns_of('mini_cheetah'))
    assert freedom.free.all()
    assert {'offset', 'rotor', 'stribeck', 'asymmetric', 'bias'} < freedom.optional
    assert 'viscous' not in make_freedom(columns_of('mini_cheetah'), ['friction']).optional


def test_an_unknown_word_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"'inertias' \(did you mean 'inertia'\?\)"):
        make_freedom(columns_of('mini_cheetah'), ['inertias'])
    with pytest.raises(ArgumentError, match=r"did you mean 'trunk'"):
        make_freedom(columns_of('mini_cheetah'), ['trunc'])
    with pytest.raises(ArgumentError, match='the base is fixed'):
        make_freedom(make_columns(model_of('mini_cheetah', False)), ['trunk'])


@pytest.mark.parametrize('name', ['mini_cheetah', *FILES])
def test_every_prior_is_consistent(name: str) -> None:
    freedom = make_freedom(columns_of(name))
    pi = freedom.x0[freedom.columns.slices['pi']]
    assert not inconsistent_bodies(pi, freedom.columns.model.body_names)
    for body in inconsistent_bodies(
        freedom.columns.prior[freedom.columns.slices['pi']], freedom.columns.model.body_names
    ):
        assert any(f"'{body}'" in note for note in freedom.notes)


# ---------------------------------------------------------------- tied legs


def test_left_and_right_are_mirrored() -> None:
    freedom = make_freedom(columns_of('mini_cheetah'), tie_legs=True).only({'inertia', 'coulomb', 'offset'})
    names = freedom.columns.names
    mirror = np.diag([1.0, 1, -1, 1, 1, -1, 1, 1, -1, 1])  # y changes sign
    for link in ('hip', 'thigh', 'calf'):
        z = [freedom.names.index(f'FL_{link}.m') + k for k in range(10)]
        for leg, expected in (('FR', mirror), ('RR', mirror), ('RL', np.eye(10))):
            first = names.index(f'{leg}_{link}.m')
            assert_close(freedom.T[first : first + 10][:, z], expected, 1e-12)
    k = freedom.names.index('FL_hip_joint.offset')
    assert freedom.T[names.index('FR_hip_joint.offset'), k] == -1.0  # abduction turns the other way
    k = freedom.names.index('FL_hip_joint.coulomb')
    assert freedom.T[names.index('FR_hip_joint.coulomb'), k] == 1.0
    assert freedom.nz == 10 * 4 + 3 * 2


@pytest.mark.parametrize('name', ['mini_cheetah', *(n for n in QUADRUPEDS if n != 'b1')])
def test_a_mirrored_robot_in_a_mirrored_motion_has_mirrored_torques(name: str, seed: int) -> None:
    """Torques of tied legs are equal but for signs, when each hangs from a trunk that is held."""
    model = model_of(name, floating=False)
    rng = np.random.default_rng(seed)
    first = model.legs[0].joint_indices
    pi = np.zeros((model.nb, 10))
    q, u, du = (np.zeros(model.nj) for _ in range(3))
    for joint in first:
        pi[joint] = model.pi.reshape(-1, 10)[joint] * rng.uniform(0.5, 2.0)
        q[joint], u[joint], du[joint] = rng.uniform(-0.7, 0.7, 3)
    for tie in find_leg_ties(model):
        for pair in tie.pairs:
            pi[pair.bodies[1]] = pair.map @ pi[pair.bodies[0]]
    ties = find_leg_ties(model)
    for tie in ties:
        # One mirror for all joints of a leg, that of its first pair whose kinematics hold for all.
        mirror = tie.pairs[0].mirror
        if any(not np.array_equal(pair.mirror, mirror) for pair in tie.pairs):
            continue
        for pair in tie.pairs:
            a, b = pair.joints
            q[b], u[b], du[b] = (pair.sign * each[a] for each in (q, u, du))
        # Without gravity, which the mirror would turn for a trunk that is upside down.
        changed = model.with_pi(pi.ravel(), check=False).with_gravity(mirror @ np.zeros(3)).without_rotors()
        tau = qd.inverse_dynamics(changed, q, u, du)
        for pair in tie.pairs:
            a, b = pair.joints
            assert tau[b] == pytest.approx(pair.sign * tau[a], abs=1e-9 * np.abs(tau).max())


def test_a_map_of_parameters_turns_the_body(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    pi = rng.standard_normal(10)
    big = np.eye(4)
    big[:3, :3] = M
    assert_close(pseudo_inertia(pi_map(M) @ pi), big @ pseudo_inertia(pi) @ big.T, 1e-12)


def test_legs_that_differ_are_refused_by_name() -> None:
    text = model_of('mini_cheetah').to_urdf()
    # The knee of one leg a centimetre lower.
    place = text.index('name="RR_calf_joint"')
    origin = text.index('-0.209', place)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        other = qd.load_model(text[:origin] + '-0.219' + text[origin + 6 :], floating_base=True)
    with pytest.raises(ArgumentError, match=r"'RR' is no copy of 'FL'.*RR_calf_joint"):
        make_freedom(make_columns(other), (), tie_legs=True)


def test_an_arm_has_no_legs_to_tie() -> None:
    with pytest.raises(ArgumentError, match='has 0 legs'):
        make_freedom(make_columns(model_of('ur5', False)), (), tie_legs=True)


def test_what_is_tied_to_a_free_one_is_free() -> None:
    assert free_names('RR_calf', tie=True) == {n for n in columns_of('mini_cheetah').names if '_calf.' in n}
