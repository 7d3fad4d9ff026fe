# SPDX-License-Identifier: Apache-2.0
"""Legs of two joints, which cannot move their feet sideways: whole-body control, footholds, and a trot."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from plain_quadruped import two_joint_quadruped
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.api.controller import controller_terms
from quad_dynamics.api.drives import gravity_norm, resting_pose
from quad_dynamics.control.skid_steering import SkidSteering
from quad_dynamics.control.whole_body import Tasks, WholeBodyControl, even_forces, stepping_direction
from quad_dynamics.planning.arc import turned
from quad_dynamics.planning.footholds import in_plane
from quad_dynamics.planning.stance_geometry import stance_geometry


def load(source: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model(source, floating_base=True)


@pytest.fixture(scope='module')
def solo() -> Any:
    return load(robots_folder() / 'solo_description/robots/solo.urdf')


def test_which_robots_cannot_step_sideways(solo: Any) -> None:
    assert stepping_direction(solo) == pytest.approx(0.0, abs=1e-6)
    assert stepping_direction(load(two_joint_quadruped(0.5 * math.pi))) == pytest.approx(0.5 * math.pi)
    assert stepping_direction(load(two_joint_quadruped(0.3))) == pytest.approx(0.3)
    assert stepping_direction(load('go2')) is None


@pytest.mark.parametrize('down', [(True, False, False, True), (True, True, True, True)])
def test_the_ground_holds_feet_that_joints_do_not(solo: Any, down: tuple[bool, ...]) -> None:
    """A body that should go to the left can do so only by rolling, for its feet stay where they are."""
    control, q, feet = WholeBodyControl(solo), resting_pose(solo), np.array(down)
    normal, weight = np.array([0.0, 0.0, 1.0]), solo.total_mass * gravity_norm(solo)
    tasks = Tasks(
        np.array([0.5, 0.5, 0.0]),
        np.zeros(3),
        np.zeros((4, 3)),
        feet,
        np.eye(3),
        np.full(4, 2.0 * weight),
        even_forces(weight, feet, normal),
        np.zeros(solo.nj),
        np.full(solo.nj, -100.0),
        np.full(solo.nj, 100.0),
    )
    found = control.solve(controller_terms(solo, q, np.zeros(solo.nv)), np.eye(3), tasks, 0.6)
    assert found is not None
    for k in np.flatnonzero(feet).tolist():
        wanted = control.base_jacobians[k] @ found.du[:6]
        joints = np.array(solo.legs[k].joint_indices)
        # a foot that joints hold against the base, but for sideways: there the base must not move it
        assert abs(wanted[1]) < 2e-3
        held = wanted + np.linalg.pinv(np.asarray(control.leg_inverse(k), dtype=float)) @ found.du[6 + joints]
        assert np.abs(held[[0, 2]]).max() < 1e-6
    assert found.du[1] == pytest.approx(-q[2] * found.du[3], abs=5e-3)  # the base rolls about the feet
    # the joints do not feel forces sideways: they are those of the motion, which the robot cannot choose
    assert found.forces[:, 1].sum() == pytest.approx(
        solo.total_mass * float(qd.com_jacobian(solo, q)[1] @ found.du), abs=1e-6
    )


def test_footholds_in_the_plane_of_the_leg_keep_the_line_between_two_feet() -> None:
    yaw, slope = 0.4, 1.3
    c, s = math.cos(yaw), math.sin(yaw)
    ahead, left = np.array([c, s]), np.array([-s, c])
    place = 0.3 * ahead + 0.2 * left
    plane = 0.7 * ahead + 0.15 * left
    found = np.array(in_plane(tuple(place), tuple(plane), yaw, slope, 0.25))
    assert found @ left == pytest.approx(0.15)
    # on the line of this slope through the place
    assert (found - place) @ ahead == pytest.approx(slope * ((found - place) @ left))
    far = np.array(in_plane(tuple(place + left), tuple(plane), yaw, slope, 0.25))
    assert far @ left == pytest.approx(0.15)
    assert far @ ahead == pytest.approx(0.3 - 0.25)


@pytest.mark.slow
@pytest.mark.parametrize('velocity', [0.3, -0.3])
def test_a_robot_with_legs_of_two_joints_trots(solo: Any, velocity: float) -> None:
    walker = qd.Walker(solo)
    assert walker.command(velocity, 0.0, 0.0)
    assert not walker.command(velocity, 0.1, 0.0)
    assert walker.command(velocity, 0.0, 0.1)
    assert not walker.command(velocity, 0.0, 3.0)
    assert walker.target[2] == pytest.approx(walker.largest_command[2])
    push = {'delta_v': 0.2, 'heading': 1.0, 'duration': 0.1}
    events = [
        {'at': 0, 'gait': 'trot'},
        {'at': 0.5, 'cmd_vel': [velocity, 0, 0]},
        {'at': 3.0, 'push': push},
    ]
    scenario = {'robot': solo, 'duration': 6.0, 'measure_from': 1.0, 'events': events}
    run = qd.run_scenario({'scenario': scenario}, seed=1)
    assert not run.row['fell']
    assert run.row['v_error_mean'] < 0.05
    assert math.degrees(run.row['roll_rms']) < 3.0
    assert math.degrees(run.row['pitch_rms']) < 5.0


# ---------------------------------------------------------------- turning


def test_forces_that_make_feet_slide_are_internal_until_they_slide() -> None:
    """With the lateral forces of feet that stick, they neither push nor turn the robot."""
    robot = load(two_joint_quadruped())
    skid = SkidSteering(stance_geometry(robot), 0.0)
    places = np.array([[0.2, 0.1, -0.3], [0.2, -0.1, -0.3], [-0.2, 0.1, -0.3], [-0.2, -0.1, -0.3]])
    down = np.array([True, False, False, True])
    forces = skid.forces(0.0, places, down, 10.0, 0.0, (0.5, 0.5), 0.5)
    assert not forces[1:3].any()
    assert forces[0, 0] < 0.0  # the left foot is pushed back by the ground: the robot turns to the left
    assert forces.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    lateral = forces[:, 0] * places[:, 1] / places[:, 0]  # which keeps it from turning
    total = np.hypot(forces[down, 0], lateral[down])
    assert total == pytest.approx(0.8 * 0.5 * 10.0)  # the share of friction that they begin with
    # feet that do not slide push more and more
    for step in range(1, 200):
        more = skid.forces(0.002 * step, places, down, 10.0, 0.0, (0.5, 0.0), 0.5)
    assert abs(more[0, 0]) > 2.0 * abs(forces[0, 0])
    assert not skid.forces(1.0, places, down, 10.0, 0.0, (0.0, 0.3), 0.5).any()


def test_friction_of_feet_that_slide_as_they_should_does_not_turn_the_robot() -> None:
    robot = load(two_joint_quadruped(0.5 * math.pi))
    skid, yaw = SkidSteering(stance_geometry(robot), 0.5 * math.pi), 0.7
    for x, y in ((0.2, 0.15), (-0.2, 0.15), (0.1, -0.2)):
        place = np.array(turned((x, y), yaw + 0.5 * math.pi))
        velocity = np.array(skid.velocity((place[0], place[1]), yaw, -0.4))
        assert place[0] * velocity[1] - place[1] * velocity[0] == pytest.approx(0.0, abs=1e-12)
        sideways = turned((velocity[0], velocity[1]), -yaw - 0.5 * math.pi)[1]
        assert sideways == pytest.approx(-0.4 * x)  # what a robot that turns asks for
    assert skid.velocity((0.2, 0.1), yaw, 0.0) == (0.0, 0.0, 0.0)
    assert skid.stance(10.0)[0] == 1.0
    assert skid.stance(10.0)[1] < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(('yaw', 'rate'), [(0.0, 0.5), (0.5 * math.pi, -0.4)])
def test_a_robot_with_legs_of_two_joints_trots_and_turns(yaw: float, rate: float) -> None:
    """Along x, or along y where the file has y ahead."""
    robot = load(two_joint_quadruped(yaw))
    ahead = [0.4, 0.0, 0.0] if yaw == 0.0 else [0.0, 0.4, 0.0]
    walker = qd.Walker(robot)
    assert walker.largest_command[0 if yaw else 1] == 0.0
    assert walker.command(*ahead)
    events = [
        {'at': 0, 'gait': 'trot'},
        {'at': 0.5, 'cmd_vel': ahead},
        {'at': 3.0, 'cmd_vel': [0.0, 0.0, rate]},
    ]
    scenario = {'robot': robot, 'duration': 6.0, 'measure_from': 1.5, 'events': events}
    run = qd.run_scenario({'scenario': scenario}, seed=1)
    assert not run.row['fell']
    assert run.row['v_error_mean'] < 0.05
    assert run.row['yaw_error_mean'] < 0.05
    assert math.degrees(run.row['roll_rms']) < 3.0
    assert math.degrees(run.row['pitch_rms']) < 3.0
