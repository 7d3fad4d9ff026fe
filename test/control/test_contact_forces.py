# SPDX-License-Identifier: Apache-2.0
"""Forces on the feet that balance the base, and the torques that belong to them, against Pinocchio."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from cases import Case, model_of, pinocchio_of
from closeness import assert_close
from control_loop import drive, robot, state_of

from quad_dynamics.control.contact_detector import ContactDetector
from quad_dynamics.control.contact_forces import (
    foot_points,
    pyramid_edges,
    torques_and_forces,
)
from quad_dynamics.control.gravity import GravityCompensation
from quad_dynamics.control.state import RobotState
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator

CASES = [Case('a1', True), Case('anymal_b', True), Case('hyq', True)]
WIDE = 100.0  # friction that limits nothing but the direction


def standing_state(model: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state near standing, tilted and in motion."""
    rng = np.random.default_rng([seed, model.nv])
    q = np.array(model.standing)
    tilt = rng.normal(scale=0.1, size=3)
    q[3:7] = [*(0.5 * tilt), 1.0] / np.sqrt(1.0 + 0.25 * tilt @ tilt)
    q[7:] += rng.normal(scale=0.1, size=model.nj)
    return q, rng.normal(scale=0.3, size=model.nv), rng.normal(scale=0.5, size=model.nv)


def pinocchio_jacobian(case: Case, q: np.ndarray) -> np.ndarray:
    """(12, nv) of the lowest points of the feet, from Pinocchio's Jacobians of their links."""
    model, reference = model_of(case), pinocchio_of(case)
    spheres = {point.link: point for point in model.contact_points}
    rows = []
    for foot in model.foot_names:
        J = reference.frame_jacobian(q, foot)
        R, _ = reference.frame_pose(q, foot)
        r = R @ np.array(spheres[foot].position) - [0.0, 0.0, spheres[foot].radius]
        rows.append(J[:3] + np.array([np.cross(w, r) for w in J[3:].T]).T)
    return np.vstack(rows)


@pytest.mark.parametrize('case', CASES, ids=str)
def test_jacobian_of_the_feet(case: Case, seed: int) -> None:
    model = model_of(case)
    q, _, _ = standing_state(model, seed)
    assert_close(foot_points(model).jacobian(q, range(4)), pinocchio_jacobian(case, q))


@pytest.mark.parametrize('case', CASES, ids=str)
def test_forces_and_torques_fulfil_the_equation_of_motion(case: Case, seed: int) -> None:
    """All rows of M du + h = S^T tau + J^T f, every term from Pinocchio; and no smaller forces do."""
    model, reference = model_of(case), pinocchio_of(case)
    q, u, du = standing_state(model, seed)
    tau, forces = torques_and_forces(model, q, u, du, range(4), WIDE)
    J = pinocchio_jacobian(case, q)
    wanted = reference.mass_matrix(q) @ du + reference.nonlinear_effects(q, u)
    assert_close(np.concatenate([np.zeros(6), tau]) + J.T @ forces.ravel(), wanted)
    smallest = np.linalg.pinv(J[:, :6].T) @ wanted[:6]
    assert_close(forces.ravel(), smallest, rel=1e-8)


@pytest.mark.parametrize('mu', [0.0, 0.2, 0.6])
@pytest.mark.parametrize('feet', [c for k in range(5) for c in itertools.combinations(range(4), k)], ids=str)
def test_forces_stay_within_friction_and_finite(feet: tuple[int, ...], mu: float) -> None:
    model = robot('mini_cheetah')
    rng = np.random.default_rng([len(feet), *feet])
    for scale in (0.0, 1.0, 20.0, 1e6):
        q, u, du = standing_state(model, int(rng.integers(100)))
        du = scale * rng.normal(size=model.nv)
        forces = torques_and_forces(model, q, u, du, feet, mu)[1]
        assert np.isfinite(forces).all()
        others = [i for i in range(4) if i not in feet]
        assert not forces[others].any()
        # the pyramids are inside the cones; rounding of forces of any size
        room = mu * forces[:, 2] - np.linalg.norm(forces[:, :2], axis=1)
        assert (forces[:, 2] >= 0.0).all()
        assert (room >= -1e-6 * np.abs(forces).max(initial=1.0)).all()


def test_pyramid_gives_what_is_nearest() -> None:
    """Against brute force: no forces on a fine grid of the cone's edge are nearer to the wanted balance."""
    model = robot('mini_cheetah')
    q, still = np.array(model.standing), np.zeros(18)
    du = still.copy()
    du[0] = 6.0  # more than friction allows: 0.3 * 9.81
    forces = torques_and_forces(model, q, still, du, range(4), 0.3)[1]
    points = foot_points(model)
    A = points.jacobian(q, range(4))[:, :6].T * points.row_scale[:, None]
    b = np.asarray(robots_wanted(model, q, du))[:6] * points.row_scale
    found = np.linalg.norm(A @ forces.ravel() - b)
    rng = np.random.default_rng(0)
    edges = pyramid_edges(points.up, 0.3)
    tries = rng.exponential(8.0, (20000, 4, 4)) * rng.integers(0, 2, (20000, 4, 4))
    others = np.einsum('nij,jk->nik', tries, edges).reshape(20000, 12)
    assert found <= np.linalg.norm(others @ A.T - b, axis=1).min() + 1e-6
    assert forces[:, 0].sum() > 0.9 * 0.3 * forces[:, 2].sum()  # all that friction gives


def robots_wanted(model: Any, q: np.ndarray, du: np.ndarray) -> np.ndarray:
    from quad_dynamics.api.dynamics import inverse_dynamics

    return inverse_dynamics(model, q, np.zeros(model.nv), du)


def test_a_bad_state_is_named(qd: Any) -> None:
    model = robot('mini_cheetah')
    q, still = np.array(model.standing), np.zeros(18)
    q[8] = np.nan
    with pytest.raises(qd.ArgumentError, match='FL_thigh_joint'):
        torques_and_forces(model, q, still, still, range(4), 0.5)


def test_feet_do_not_chatter() -> None:
    """A force that jumps between nothing and the weight at every tick counts; one that is gone does not."""
    model = robot('mini_cheetah')
    detector = ContactDetector(model)
    full = np.tile([0.0, 0.0, model.total_mass * 9.81 / 4.0], (4, 1))
    q, u, tau = np.array(model.standing), np.zeros(18), np.zeros(12)
    for k in range(100):
        state = RobotState(2e-3 * k, q, u, full * (k % 2), tau)
        assert detector.update(state, 0.1) == (0, 1, 2, 3)
    for k in range(100, 200):
        lifted = full * np.array([1.0, 0.0, 1.0, 1.0])[:, None]
        feet = detector.update(RobotState(2e-3 * k, q, u, lifted, tau), 0.1)
    assert feet == (0, 2, 3)
    back = detector.update(RobotState(0.0, q, u, lifted, tau), 0.1)  # the simulation was reset
    assert back == (0, 1, 2, 3)


# ---------------------------------------------------------------- gravity compensation


@pytest.mark.parametrize('name', ['mini_cheetah', 'a1', 'anymal_c', 'hyq'])
def test_gravity_compensation_holds_a_standing_robot(name: str) -> None:
    model = robot(name)
    sim = Simulator(model, latency=2e-3, sensors=SensorSettings.typical())
    drive(sim, GravityCompensation(model), 1.5, noisy=True)
    # in the first two milliseconds there is no torque at all, and then damping alone
    assert sim.q[2] == pytest.approx(model.standing[2], abs=0.01 * model.standing[2])
    assert np.abs(sim.u).max() < 0.02
    weight = model.total_mass * 9.81
    assert sim.foot_forces[:, 2].sum() == pytest.approx(weight, rel=1e-3)


def test_gravity_compensation_of_a_fixed_base(qd: Any) -> None:
    arm = qd.load_model('two_link_arm')
    state = RobotState(0.0, np.array([0.3, -0.4]), np.zeros(2), None, np.zeros(2))
    assert_close(GravityCompensation(arm).update(state).tau, qd.gravity(arm, state.q))


def test_without_feet_on_the_ground_the_legs_are_held() -> None:
    model = robots.quadruped('mini_cheetah')
    sim = Simulator(model)
    law = GravityCompensation(model)
    state = state_of(sim)
    for k in range(200):
        lifted = RobotState(2e-3 * k, state.q, state.u, np.zeros((4, 3)), state.tau)
        setpoint = law.update(lifted)
    from quad_dynamics.api.dynamics import gravity

    assert_close(setpoint.tau, gravity(model, state.q)[6:])
    assert not setpoint.feet_down.any()
