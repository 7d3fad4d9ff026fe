# SPDX-License-Identifier: Apache-2.0
"""Whole-body control against the same problem in all its unknowns, and against what physics demands."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import Case, load, pinocchio_of
from closeness import assert_close, derivative
from reference_pinocchio import PinocchioReference
from reference_whole_body import Problem, build, lexicographic, weighted
from slow_variants import slow_but
from whole_body_problems import FEET, MU, ODD_ROBOTS, control, odd_urdf, random_tasks, robot, solve, state

from quad_dynamics.api.drives import resting_pose
from quad_dynamics.control.whole_body import Solution, Tasks, Weights, WholeBodyControl, even_forces
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.leg_kinematics import sole

ROBOTS = ('go2', 'anymal_c', 'solo12')
# Both solvers meet their constraints to 1e-6 or better; residuals of the tasks agree as well as that.
SAME = 1e-6
# Residuals of rows that hold by construction: rounding, times the condition of a leg.
HOLDS = 1e-8


@functools.cache
def reference(name: str) -> PinocchioReference:
    """The same in Pinocchio."""
    if name not in ODD_ROBOTS:
        return pinocchio_of(Case(name, True))
    return PinocchioReference(odd_urdf(name), True, robot(name).joint_names)


def feet_of(model: Any) -> list[tuple[np.ndarray, float]]:
    """Centres of the feet in their links' frames, and their radii."""
    return [sole(model, leg.foot, resting_pose(model)) for leg in model.legs]


def rotation(pin: Any, q: np.ndarray) -> np.ndarray:
    """R_WB."""
    return np.asarray(pin.R_WB(q))


def full(model: Any, solution: Solution, tasks: Tasks) -> np.ndarray:
    """The unknowns x = [du; f] of the reference."""
    return np.concatenate([solution.du, solution.forces[tasks.down].ravel()])


def assert_equation_of_motion(
    qd: Any, model: Any, q: np.ndarray, u: np.ndarray, tasks: Tasks, solution: Solution
) -> None:
    """Accelerations, torques and forces of a solution belong together, by inverse dynamics."""
    wrenches = {}
    for leg, (offset, radius), force in zip(model.legs, feet_of(model), solution.forces, strict=True):
        arm = qd.frame_pose(model, q, leg.foot)[0] @ offset - radius * tasks.axes[:, 2]
        wrenches[leg.foot] = np.concatenate([force, np.cross(arm, force)])
    tau = qd.inverse_dynamics(model, q, u, solution.du, wrenches)
    scale = max(model.total_mass * 9.81, float(np.abs(solution.tau).max()))
    assert_close(tau[6:], solution.tau, HOLDS, 'torques', scale)
    assert_close(tau[:6], np.zeros(6), HOLDS, 'forces on the base', scale)


def make(name: str, seed: int, feet: str, wild: float = 1.0) -> tuple[np.ndarray, np.ndarray, Tasks, Problem]:
    """A random problem, and the reference's."""
    model = robot(name)
    rng = np.random.default_rng([seed, sorted(FEET).index(feet), model.nv])
    q, u = state(model, rng)
    tasks = random_tasks(model, rng, FEET[feet], wild)
    return q, u, tasks, build(model, reference(name), feet_of(model), (q, u), tasks, MU, Weights())


# ---------------------------------------------------------------- the reference


@pytest.mark.parametrize('wild', [0.2, 1.0, 3.0])
@pytest.mark.parametrize('feet', FEET)
@pytest.mark.parametrize('name', ROBOTS)
def test_against_all_unknowns(qd: Any, name: str, feet: str, wild: float, seed: int) -> None:
    """Solutions, levels and torques are those of the whole problem."""
    q, u, tasks, problem = make(name, seed, feet, wild)
    expected = lexicographic(problem)
    solution = solve(qd, name, q, u, tasks)
    if expected.tasks is None:
        assert solution is None
        solution, expected = solve(qd, name, q, u, tasks, feet_only=True), lexicographic(problem, False)
    assert solution is not None, 'no solution found where there is one'
    x = full(robot(name), solution, tasks)
    scale = float(np.linalg.norm(problem.b))
    assert abs(problem.residual(x) - problem.residual(expected.tasks)) < SAME * scale
    weight = robot(name).total_mass * 9.81
    assert_close(x[robot(name).nv :], expected.forces[robot(name).nv :], 1e-4, 'forces', weight)
    T, t = problem.torques
    assert_close(solution.tau, T @ x + t, HOLDS, 'torques')


@pytest.mark.parametrize('feet', FEET)
@pytest.mark.parametrize('name', [*ROBOTS, *ODD_ROBOTS])
def test_equation_of_motion_and_contacts_hold(qd: Any, name: str, feet: str, seed: int) -> None:
    """Whatever the tasks: also for robots with legs of four joints, or with an arm."""
    q, u, tasks, problem = make(name, seed, feet)
    solution = solve(qd, name, q, u, tasks) or solve(qd, name, q, u, tasks, feet_only=True)
    assert solution is not None
    model = robot(name)
    assert_close(problem.E @ full(model, solution, tasks), problem.e, HOLDS, 'rows that must hold')
    assert_equation_of_motion(qd, model, q, u, tasks, solution)


@pytest.mark.parametrize('name', ['go2', 'anymal_c'])
def test_feet_roll(qd: Any, name: str, seed: int) -> None:
    """The lowest point of a round foot accelerates as it should, by differences along the motion."""
    q, u, tasks, _ = make(name, seed, 'all')
    solution = solve(qd, name, q, u, tasks) or solve(qd, name, q, u, tasks, feet_only=True)
    assert solution is not None
    model, du = robot(name), solution.du

    def speeds(t: float) -> np.ndarray:
        later = qd.integrate(model, q, u + 0.5 * t * du, t)
        terms = qd.controller_terms(model, later, u + t * du)
        rows = []
        for leg, (offset, radius) in zip(model.legs, feet_of(model), strict=True):
            frame = model.foot_names.index(leg.foot)
            arm = terms.R_WF[frame] @ offset - radius * tasks.axes[:, 2]
            rows.append(terms.v_WF[frame, :3] + np.cross(terms.v_WF[frame, 3:], arm))
        return np.array(rows)

    assert_close(derivative(speeds), tasks.feet, 1e-6, 'accelerations of the feet', scale=9.81)


# ---------------------------------------------------------------- priorities and weights


@pytest.mark.parametrize('feet', ['diagonal', 'three', 'all'])
@pytest.mark.parametrize('name', ROBOTS)
def test_forces_do_not_disturb_tasks(qd: Any, name: str, feet: str, seed: int) -> None:
    """The level of the forces moves forces, and not the residual of the tasks."""
    q, u, tasks, problem = make(name, seed, feet)
    model = robot(name)
    for wanted in (tasks.forces, tasks.forces + [[30.0, -20.0, 50.0]] * 4):
        chosen = replace(tasks, forces=wanted * tasks.down[:, None])
        solution = solve(qd, name, q, u, chosen)
        alone = lexicographic(problem).tasks
        if solution is None:
            assert alone is None
            continue
        scale = float(np.linalg.norm(problem.b))
        found = problem.residual(full(model, solution, tasks))
        assert abs(found - problem.residual(alone)) < SAME * scale


@pytest.mark.parametrize('name', ROBOTS)
def test_weights_count(qd: Any, name: str, seed: int) -> None:
    """On two feet not every task can be done: the heavier one is, as in the exact solution."""
    q, u, tasks, problem = make(name, seed, 'diagonal')
    tasks = replace(tasks, low=-1e3 * np.ones(robot(name).nj), high=1e3 * np.ones(robot(name).nj))
    model, errors = robot(name), []
    for factor in (1.0, 10.0):
        weights = Weights(com=(1.0, 4.0, 6.0), angular=(factor, 2.0 * factor, factor))
        problem = build(model, reference(name), feet_of(model), (q, u), tasks, MU, weights)
        solution = solve(qd, name, q, u, tasks, control(name, weights))
        expected = lexicographic(problem).forces
        assert solution is not None
        assert_close(solution.du, expected[: model.nv], 1e-4, 'accelerations')
        errors.append(np.linalg.norm(rotation(reference(name), q) @ solution.du[3:6] - tasks.angular))
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize('feet', ['diagonal', 'all'])
@pytest.mark.parametrize('name', ROBOTS)
def test_one_program_with_weights(qd: Any, name: str, feet: str, seed: int) -> None:
    """The variant that is not strict is a plain quadratic program."""
    q, u, tasks, problem = make(name, seed, feet, 0.3)
    solution = solve(qd, name, q, u, tasks, control(name, None, False))
    expected = weighted(problem, 1e-3)
    assert solution is not None
    assert_close(full(robot(name), solution, tasks), expected, 1e-5, 'solution')


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    'count', slow_but([700], [700, 33_400]), ids=['a few problems', 'a third of 100000 problems']
)
@pytest.mark.parametrize('name', ['mini_cheetah', 'go2', 'anymal_c'])
def test_limits_hold_in_random_problems(qd: Any, name: str, count: int) -> None:
    """100,000 in all, feasible or not: any feet down, any state, tasks up to absurd ones."""
    model, law = robot(name), control(name)
    rng = np.random.default_rng([count, model.nj])
    weight, reach, used = model.total_mass * 9.81, np.arange(4), 0
    terms, infeasible = None, 0
    for i in range(count):
        if i % 10 == 0:
            q, u = state(model, rng, 0.8)
            terms = qd.controller_terms(model, q, u, out=terms)
            R_WB = qd.frame_pose(model, q, model.base_name)[0]
        tasks = random_tasks(model, rng, rng.random(4) < 0.6, 10.0 ** rng.uniform(-1.0, 1.0))
        motors = tasks.high
        weak = 10.0 ** rng.uniform(-2.5, 0.0)
        tasks = replace(tasks, low=weak * tasks.low, high=weak * tasks.high)
        found = law.solve(terms, R_WB, tasks, MU)
        if found is None:
            infeasible += 1
            found = law.solve(terms, R_WB, tasks, MU, feet_only=True)
            assert found is not None, f'problem {i}'
            assert not found.within_limits
        else:
            assert found.within_limits
            excess = np.maximum(found.tau - tasks.high, tasks.low - found.tau) / motors
            assert excess.max() < 1e-6, f'problem {i}: torque {excess.max():.2e} above its limit'
        along, across, normal = (found.forces @ tasks.axes).T
        slack = MU / np.sqrt(2.0) * normal - np.maximum(np.abs(along), np.abs(across))
        worst = min(slack.min(), normal.min(), (tasks.most_force - normal).min()) / weight
        assert worst > -1e-6, f'problem {i}: force {-worst:.2e} of the weight outside the pyramid'
        assert not found.forces[reach[~tasks.down]].any(), f'problem {i}: force on a foot in the air'
        used += bool(np.isfinite(found.du).all() and np.isfinite(found.tau).all())
    assert used == count
    assert 0 < infeasible < count, 'expected problems of both kinds'


def test_infeasible_ends_in_the_fall_back(qd: Any) -> None:
    """Torques of which no ground reaction can be the cause: no solution with limits, one without them."""
    model = robot('go2')
    q, u, tasks, _ = make('go2', 0, 'all')
    absurd = replace(tasks, high=0.95 * tasks.low)
    problem = build(model, reference('go2'), feet_of(model), (q, u), absurd, MU, Weights())
    assert lexicographic(problem).tasks is None
    assert solve(qd, 'go2', q, u, absurd) is None
    found = solve(qd, 'go2', q, u, absurd, feet_only=True)
    assert found is not None
    assert not found.within_limits
    assert_equation_of_motion(qd, model, q, u, absurd, found)


# ---------------------------------------------------------------- signs


def quiet_tasks(model: Any, **changes: Any) -> Tasks:
    """Standing still, but for the changes."""
    down = np.ones(4, dtype=np.bool_)
    zero, weight = np.zeros(3), model.total_mass * 9.81
    effort = np.minimum(model.effort_limit, 1e3)
    tasks = Tasks(
        zero, zero, np.zeros((4, 3)), down, np.eye(3), np.full(4, 2.0 * weight),
        even_forces(weight, down, np.array([0.0, 0.0, 1.0])), np.zeros(model.nj), -effort, effort,
    )  # fmt: skip
    return replace(tasks, **changes)


def stand(qd: Any, name: str, **changes: Any) -> tuple[Solution, np.ndarray]:
    """The solution of a robot at rest, and where its feet are about its centre of mass."""
    model = robot(name)
    q, u = resting_pose(model), np.zeros(model.nv)
    solution = solve(qd, name, q, u, quiet_tasks(model, **changes))
    assert solution is not None
    feet = np.array([qd.frame_pose(model, q, leg.foot)[1] for leg in model.legs])
    return solution, feet - qd.center_of_mass(model, q)


@pytest.mark.parametrize('name', [*ROBOTS, 'mini_cheetah'])
def test_signs_of_forces(qd: Any, name: str) -> None:
    """Newton and Euler by hand: m a = sum of f - m g, and a couple turns."""
    mass, up = robot(name).total_mass, np.array([0.0, 0.0, 9.81])
    for axis in range(3):
        for sign in (1.0, -1.0):
            wanted = np.zeros(3)
            wanted[axis] = sign
            found, _ = stand(qd, name, com=wanted)
            assert_close(found.forces.sum(axis=0), mass * (wanted + up), 1e-5, 'sum of forces')
    for sign in (1.0, -1.0):
        found, arms = stand(qd, name, angular=np.array([0.0, 0.0, sign]))
        couple = np.cross(arms, found.forces).sum(axis=0)[2]
        assert couple * sign > 0.0
        found, arms = stand(qd, name, angular=np.array([0.0, sign, 0.0]))  # nose down lifts the rear
        front = arms[:, 0] > 0.0
        lean = found.forces[~front, 2].sum() - found.forces[front, 2].sum()
        still, _ = stand(qd, name)
        assert (lean - still.forces[~front, 2].sum() + still.forces[front, 2].sum()) * sign > 0.0
        found, arms = stand(qd, name, angular=np.array([sign, 0.0, 0.0]))  # to the right: the left lifts
        left = arms[:, 1] > 0.0
        assert (found.forces[left, 2].sum() - found.forces[~left, 2].sum()) * sign > 0.0


@pytest.mark.parametrize('direction', [0, 1, 2])
@pytest.mark.parametrize('name', [*ROBOTS, 'mini_cheetah'])
def test_swing_foot_goes_where_it_should(qd: Any, name: str, direction: int) -> None:
    """Joint accelerations of a leg in the air, as forward kinematics sees them."""
    model = robot(name)
    feet = np.zeros((4, 3))
    feet[1, direction] = 5.0
    found, _ = stand(qd, name, down=np.array([True, False, True, True]), feet=feet)
    assert not found.forces[1].any()
    q, foot = resting_pose(model), model.legs[1].foot
    R, p = qd.frame_pose(model, q, foot)
    offset = feet_of(model)[1][0]
    moved = qd.integrate(model, q, found.du, 1e-6)  # a tiny step along the accelerations
    R1, p1 = qd.frame_pose(model, moved, foot)
    shift = ((p1 + R1 @ offset) - (p + R @ offset)) / 1e-6
    assert_close(shift, feet[1], 1e-3, 'acceleration of the foot')


@pytest.mark.parametrize('feet', FEET)
@pytest.mark.parametrize('name', [*ROBOTS, 'mini_cheetah'])
def test_stretched_legs(qd: Any, name: str, feet: str) -> None:
    """At a singularity everything stays finite, the equation of motion holds, and nothing is enormous."""
    model = robot(name)
    q, u = resting_pose(model), np.zeros(model.nv)
    q[7:] = 0.0
    down = np.array(FEET[feet])
    feet_wanted = np.where(down[:, None], 0.0, 3.0)
    tasks = quiet_tasks(model, down=down, feet=feet_wanted, com=np.array([0.0, 0.0, 1.0]))
    found = solve(qd, name, q, u, tasks) or solve(qd, name, q, u, tasks, feet_only=True)
    assert found is not None
    for values in (found.tau, found.du, found.forces):
        assert np.isfinite(values).all()
    assert np.abs(found.du).max() < 1e4
    assert_equation_of_motion(qd, model, q, u, tasks, found)


def test_a_robot_without_legs_is_refused() -> None:
    with pytest.raises(ArgumentError, match='expected a robot with legs'):
        WholeBodyControl(load('two_link_arm'))
