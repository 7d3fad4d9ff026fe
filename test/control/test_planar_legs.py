# SPDX-License-Identifier: Apache-2.0
"""Legs of two joints, which cannot move their feet sideways: whole-body control, footholds, and a trot."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.api.controller import controller_terms
from quad_dynamics.api.drives import gravity_norm, resting_pose
from quad_dynamics.control.whole_body import Tasks, WholeBodyControl, even_forces, steps_ahead_only
from quad_dynamics.planning.footholds import in_plane


@pytest.fixture(scope='module')
def solo() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model(robots_folder() / 'solo_description/robots/solo.urdf', floating_base=True)


def test_which_robots_cannot_step_sideways(solo: Any) -> None:
    assert steps_ahead_only(solo)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert not steps_ahead_only(qd.load_model('go2'))


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
        wanted = control.base_jacobian(k) @ found.du[:6]
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
    assert not walker.command(velocity, 0.0, 0.1)
    assert walker.target == (velocity, 0.0, 0.0)
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
