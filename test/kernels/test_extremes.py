# SPDX-License-Identifier: Apache-2.0
"""States and robots at the edge: zeros, right angles, many turns, great speed, few joints, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import Case, load, model_of, pinocchio_of
from closeness import assert_close
from random_trees import random_tree
from reference_pinocchio import PinocchioReference
from reference_plain import rotation_of_quaternion
from states import random_state, random_wrenches

CASES = [Case('go2', True), Case('hyq', False), Case('panda', False), Case('ur5', True)]
over_cases = pytest.mark.parametrize('case', CASES, ids=str)


def compare(qd: Any, model: Any, pin: PinocchioReference, state: Any, rel: float = 1e-9) -> None:
    """The three algorithms that everything else is made of."""
    q, u, du = state
    assert_close(qd.inverse_dynamics(model, q, u, du), pin.inverse_dynamics(q, u, du), rel, 'ID')
    assert_close(qd.forward_dynamics(model, q, u, du), pin.forward_dynamics(q, u, du), rel, 'FD')
    assert_close(qd.mass_matrix(model, q), pin.mass_matrix(q), rel, 'M')
    assert_close(qd.coriolis_matrix(model, q, u), pin.coriolis_matrix(q, u), rel, 'C')


@over_cases
def test_rest_at_zero(qd: Any, case: Case) -> None:
    model = model_of(case)
    q = np.zeros(model.nq)
    if model.floating_base:
        q[6] = 1.0
    compare(qd, model, pinocchio_of(case), (q, np.zeros(model.nv), np.zeros(model.nv)))


@over_cases
@pytest.mark.parametrize('quarter', [-4, -3, -2, -1, 1, 2, 3, 4, 5], ids='{}_right_angles'.format)
def test_right_angles(qd: Any, case: Case, quarter: int) -> None:
    model = model_of(case)
    q, u, du = random_state(model, 0)
    q[-model.nj :] = quarter * np.pi / 2.0
    compare(qd, model, pinocchio_of(case), (q, u, du))


@over_cases
@pytest.mark.parametrize('turns', [1.0, -10.0, 1e3, -1e5, 1e9])
def test_many_turns(qd: Any, case: Case, turns: float) -> None:
    """A joint that has turned far: the sine of a large angle is as good as that of a small one."""
    model = model_of(case)
    q, u, du = random_state(model, 1)
    revolute = np.flatnonzero(~model.is_prismatic) + model.nq - model.nj
    q[revolute] += 2.0 * np.pi * turns
    compare(qd, model, pinocchio_of(case), (q, u, du))


@over_cases
@pytest.mark.parametrize('angle', [1e-300, 1e-20, 1e-9, 1e-4, 0.785398, 0.7853981633974484])
def test_small_angles(qd: Any, case: Case, angle: float) -> None:
    model = model_of(case)
    q, u, du = random_state(model, 2)
    q[-model.nj :] = angle * np.where(np.arange(model.nj) % 2, -1.0, 1.0)
    compare(qd, model, pinocchio_of(case), (q, u, du))


@over_cases
@pytest.mark.parametrize('factor', [1e-6, 1e3, 1e6])
def test_any_speed(qd: Any, case: Case, factor: float) -> None:
    model = model_of(case)
    q, u, du = random_state(model, 3)
    compare(qd, model, pinocchio_of(case), (q, factor * u, factor * du))


@pytest.mark.parametrize('tree_seed', range(8))
@pytest.mark.parametrize('joints', [1, 2, 3])
@pytest.mark.parametrize('floating_base', [True, False], ids=['floating', 'fixed'])
def test_few_joints(qd: Any, tree_seed: int, joints: int, floating_base: bool) -> None:
    tree = random_tree(tree_seed, joints=joints, floating_base=floating_base)
    model = load(tree.urdf, floating_base=floating_base)
    pin = PinocchioReference(tree.urdf, floating_base, model.joint_names)
    compare(qd, model, pin, random_state(model, tree_seed))


@pytest.mark.parametrize('shape', ['chain', 'bushy', 'quadruped'])
def test_hundred_joints(qd: Any, shape: str) -> None:
    tree = random_tree(7, joints=100, shape=shape, floating_base=True)
    model = load(tree.urdf, floating_base=True)
    pin = PinocchioReference(tree.urdf, True, model.joint_names)
    # a chain of 100 has a mass matrix of condition 1e7, which forward dynamics cannot but feel
    compare(qd, model, pin, random_state(model, 0), rel=1e-8)


def test_single_free_body(qd: Any) -> None:
    """No joint at all: Newton and Euler."""
    inertia = '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="-0.02" iyz="0.03"/>'
    text = (
        '<robot name="brick"><link name="base"><inertial><origin xyz="0.1 -0.2 0.3"/><mass value="2"/>'
        f'{inertia}</inertial></link></robot>'
    )
    model = load(text, floating_base=True)
    q, u, du = random_state(model, 0)
    pin = PinocchioReference(text, True, [])
    compare(qd, model, pin, (q, u, du))
    force = np.array([1.0, 2.0, 3.0])
    com = q[:3] + rotation_of_quaternion(q[3:7]) @ np.array([0.1, -0.2, 0.3])
    assert_close(qd.center_of_mass(model, q), com)
    wrench = {'base': np.concatenate([force, np.cross(com - q[:3], force)])}  # a force through the com
    with_force = qd.forward_dynamics(model, q, 0.0 * u, 0.0 * u, f_ext=wrench)
    assert_close(qd.com_jacobian(model, q) @ with_force, force / 2.0 + model.gravity)
    assert_close(with_force[3:], np.zeros(3), scale=1.0)


def test_threads_share_a_model(qd: Any) -> None:
    """The kernels' scratch memory belongs to a call, or calls exclude each other."""
    model = model_of(Case('go2', True))
    states = [random_state(model, seed) for seed in range(8)]
    f_ext = random_wrenches(sorted(model.frames), 0)
    expected = [qd.forward_dynamics(model, *state, f_ext=f_ext) for state in states]

    def work(k: int) -> bool:
        return all(
            np.array_equal(qd.forward_dynamics(model, *states[k], f_ext=f_ext), expected[k])
            for _ in range(300)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
