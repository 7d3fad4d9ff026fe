# SPDX-License-Identifier: Apache-2.0
"""What force_node is told: samples of sensors that become a state, and joint targets."""

from __future__ import annotations

import warnings
from types import SimpleNamespace as Message
from typing import Any

import numpy as np
import pytest
from reference_plain import rotation_of_quaternion
from simple_robots import pendulum
from supervised_robot import Plant

import quad_dynamics as qd
from quad_dynamics.control.modes.joint_targets import read_targets
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.inputs import Inputs, rotated

MS = 1_000_000


@pytest.fixture(scope='module')
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model('mini_cheetah')


def feed(inputs: Inputs, stamp: int, odom: bool = True, feet: bool = True) -> None:
    nj = 12
    inputs.joints(stamp, np.arange(nj) * 0.1, np.ones(nj), np.full(nj, 2.0))
    if odom:
        inputs.odometry(stamp, np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]), np.arange(6.0))
    for foot in range(4 if feet else 0):
        inputs.foot_force(stamp, foot, np.array([0.0, 0.0, 10.0 * foot]))


def test_samples_become_a_state(model: Any) -> None:
    inputs = Inputs(model, False, 0.1)
    assert inputs.missing == 'no joint_states yet'
    feed(inputs, 5 * MS, odom=False)
    assert inputs.missing == 'no odom yet'
    feed(inputs, 7 * MS)
    state = inputs.state()
    assert state.time == pytest.approx(0.007)
    assert state.q[:7].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]
    assert state.q[7:] == pytest.approx(np.arange(12) * 0.1)
    assert state.foot_forces is not None
    assert state.foot_forces[:, 2].tolist() == [0.0, 10.0, 20.0, 30.0]
    inputs.foot_force(8 * MS, 0, np.full(3, 99.0))
    assert state.foot_forces[0, 2] == 0.0  # a state is not changed by what comes later


def test_forces_in_the_axes_of_feet_are_turned_into_the_world(model: Any, seed: int) -> None:
    """Some feet in their own axes, some in the world's: the state has all in those of the world."""
    rng = np.random.default_rng(seed)
    inputs = Inputs(model, False, 0.1)
    inputs.joints(5 * MS, rng.uniform(-1.0, 1.0, 12), np.zeros(12), np.zeros(12))
    quaternion = rng.standard_normal(4)
    pose = np.array([0.1, 0.2, 0.3, *(quaternion / np.linalg.norm(quaternion))])
    inputs.odometry(5 * MS, pose, np.zeros(6))
    forces = rng.standard_normal((4, 3))
    for foot in range(4):
        inputs.foot_force(5 * MS, foot, forces[foot], in_foot_axes=foot != 1)
    state = inputs.state()
    assert state.foot_forces is not None
    for foot, name in enumerate(model.foot_names):
        R_WF = np.eye(3) if foot == 1 else qd.frame_pose(model, state.q, name)[0]
        np.testing.assert_allclose(state.foot_forces[foot], R_WF @ forces[foot], atol=1e-14)


@pytest.mark.parametrize('seed', range(5), ids=lambda seed: f'seed{seed}')
def test_the_linear_velocity_is_turned_into_the_world(model: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quaternion = rng.standard_normal(4)
    quaternion /= np.linalg.norm(quaternion)
    twist = rng.standard_normal(6)
    inputs = Inputs(model, False, 0.1)
    feed(inputs, MS)
    # sensors send rounded numbers: the length is put right
    inputs.odometry(MS, np.concatenate([np.zeros(3), 1.001 * quaternion]), twist)
    state = inputs.state()
    R_WB = rotation_of_quaternion(quaternion)
    assert state.u[:3] == pytest.approx(R_WB @ twist[:3])
    assert rotated(quaternion.tolist(), twist[:3].tolist()) == pytest.approx(R_WB @ twist[:3])
    assert state.u[3:6].tolist() == twist[3:].tolist()  # in the axes of the base, there and here
    assert np.linalg.norm(state.q[3:7]) == pytest.approx(1.0, abs=1e-15)


def test_old_samples(model: Any) -> None:
    inputs = Inputs(model, False, 0.1)
    feed(inputs, 0)
    feed(inputs, 90 * MS, odom=False, feet=False)
    assert inputs.missing == ''
    assert inputs.feet_measured
    feed(inputs, 110 * MS, odom=False, feet=False)
    assert inputs.missing == 'odom is 0.11 s older than joint_states; expected at most 0.1 s'
    assert not inputs.feet_measured
    feed(inputs, 110 * MS, feet=False)
    assert inputs.missing == ''
    assert inputs.state().foot_forces is None  # nobody measures them any more
    with pytest.raises(ArgumentError, match=r'odom has stamp 0.100 s'):
        inputs.odometry(100 * MS, np.eye(7)[6], np.zeros(6))
    with pytest.raises(ArgumentError, match=r'odom has stamp 9.000 s'):
        inputs.odometry(9000 * MS, np.eye(7)[6], np.zeros(6))
    with pytest.raises(ArgumentError, match=r'odom has stamp 0.100 s'):
        inputs.odometry(100 * MS, np.eye(7)[6], np.zeros(6))  # two that stray, but not in the same way
    inputs.odometry(112 * MS, np.eye(7)[6], np.zeros(6))
    with pytest.raises(ArgumentError, match=r'odom has stamp 0.900 s'):
        inputs.odometry(900 * MS, np.eye(7)[6], np.zeros(6))
    inputs.odometry(904 * MS, np.eye(7)[6], np.zeros(6))  # time has gone on
    assert inputs.odom_stamp == 904 * MS
    with pytest.raises(ArgumentError, match='has length 0; expected a unit quaternion'):
        inputs.odometry(906 * MS, np.zeros(7), np.zeros(6))
    inputs.forget()
    assert inputs.missing == 'no odom yet'


def test_lock_step_waits_for_everything(model: Any) -> None:
    inputs = Inputs(model, True, 0.1)
    feed(inputs, 0)
    assert inputs.missing == ''
    feed(inputs, 2 * MS, odom=False, feet=False)
    assert inputs.missing == 'no odom with this stamp yet'
    feed(inputs, 2 * MS, feet=False)
    assert inputs.missing == f'no foot_forces of {model.foot_names[0]} with this stamp yet'
    feed(inputs, 2 * MS)
    assert inputs.missing == ''
    inputs.forget()
    assert inputs.missing == 'no odom with this stamp yet'


def test_a_fixed_base_needs_joint_states_only() -> None:
    inputs = Inputs(pendulum(), True, 0.1)
    inputs.joints(3 * MS, np.ones(1), np.ones(1), np.ones(1))
    assert inputs.missing == ''
    assert inputs.state().q.tolist() == [1.0]


# ---------------------------------------------------------------- targets


def point(at: float, positions: Any, velocities: Any = (), accelerations: Any = ()) -> Message:
    sec = int(at // 1)
    since = Message(sec=sec, nanosec=round((at - sec) * 1e9))
    return Message(
        positions=positions, velocities=velocities, accelerations=accelerations, time_from_start=since
    )


def trajectory(names: Any, points: Any, start: float = 0.0) -> Message:
    stamp = Message(sec=int(start), nanosec=round(start % 1 * 1e9))
    return Message(header=Message(stamp=stamp), joint_names=list(names), points=points)


def test_some_joints_are_moved_and_the_others_held(model: Any) -> None:
    plant = Plant(model, mode='computed_torque')
    plant.run(0.1)
    here = plant.sim.q[7:]
    names = [model.joint_names[i] for i in (5, 2)]
    goal = here[[5, 2]] + [0.2, 0.2]
    plant.supervisor.targets(trajectory(names, [point(0.5, goal)]))
    plant.step()
    assert plant.supervisor.phase == 'follow'
    plant.run(1.2)
    assert plant.supervisor.phase == 'hold'
    wanted = here.copy()
    wanted[[5, 2]] = goal
    # feet that stand cannot go where these joints would have them: the other joints give way a little
    assert plant.sim.q[7:] == pytest.approx(wanted, abs=0.06)
    assert not plant.faults


def test_a_trajectory_may_begin_later(model: Any) -> None:
    targets = read_targets(
        trajectory(model.joint_names[:1], [point(0.5, [0.1])], start=12.5), model, 12.0, np.zeros(12)
    )
    assert targets.start == 12.5
    assert (
        read_targets(trajectory(model.joint_names[:1], [point(0.5, [0.1])]), model, 12.0, np.zeros(12)).start
        == 12.0
    )


def test_a_late_trajectory_is_joined_on_its_way(model: Any) -> None:
    """Stamped in the past, also when its next point is only 1 ms away: the reference does not jump."""
    plant = Plant(model, mode='computed_torque')
    plant.offset = 10.0
    plant.run(0.1)
    newest = 10.098  # time of the last state
    names, goal = model.joint_names[:1], plant.sim.q[7:8] + 0.2
    late = trajectory(names, [point(0.5, goal), point(0.6, goal)], start=newest - 0.499)
    plant.supervisor.targets(late)
    references = [plant.setpoint.q]
    for _ in range(300):
        references.append(plant.step().q)
    assert plant.supervisor.phase == 'hold'
    assert np.abs(np.diff(references, axis=0)).max() < 2e-3 * 1.0  # 0.2 rad in 0.5 s: at most 0.75 rad/s
    assert references[-1][0] == pytest.approx(goal[0])


def test_a_trajectory_that_has_passed_is_refused(model: Any) -> None:
    names, points = model.joint_names[:1], [point(0.5, [0.1]), point(1.0, [0.2])]
    for start in (11.0, 5.0):
        with pytest.raises(ArgumentError, match=rf'starts at {start:g} s .* all of its points have passed'):
            read_targets(trajectory(names, points, start=start), model, 12.0, np.zeros(12))
    assert read_targets(trajectory(names, points, start=11.25), model, 12.0, np.zeros(12)).start == 11.25
    # one point, at once, with the stamp of the newest state
    at_once = trajectory(names, [point(0.0, [0.1])], start=12.3)
    assert read_targets(at_once, model, 12_300_000_000 * 1e-9, np.zeros(12)).start == pytest.approx(12.3)


@pytest.mark.parametrize(
    ('change', 'expected'),
    [
        ({'joint_names': []}, 'names no joints'),
        ({'joint_names': ['FL_hip_joint', 'FL_hip_jiont']}, "unknown joint 'FL_hip_jiont' .did you mean"),
        ({'joint_names': ['FL_hip_joint', 'FL_hip_joint']}, "'FL_hip_joint' twice"),
        ({'points': []}, 'has 0 points'),
        ({'points': [point(1.0, [0.0])]}, 'point 0 has 1 positions; expected 2'),
        ({'points': [point(1.0, [0.0, 0.0]), point(2.0, [])]}, 'point 1 has 0 positions; expected 2'),
        ({'points': [point(1.0, [0.0, np.nan])]}, "positions of 'FR_hip_joint' in point 0 is nan"),
        ({'points': [point(1.0, [0.0, 50.0])]}, "position of 'FR_hip_joint' in point 0 is 50; expected"),
        ({'points': [point(1.0, [0.0, 0.0], [1.0])]}, 'point 0 has 1 velocities'),
        ({'points': [point(1.0, [0.0, 0.0], [], [1.0, 1.0])]}, 'accelerations without velocities'),
        ({'points': [point(1.0, [0.0, 0.0]), point(1.0, [0.0, 0.0])]}, 'of point 1 is 1 s; expected more'),
        ({'points': [point(-1.0, [0.0, 0.0])]}, 'of point 0 is -1 s; expected at least 0'),
        ({'header': Message(stamp=Message(sec=1_700_000_000, nanosec=0))}, r'starts at 1\.7e\+09 s'),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else '',
)
def test_bad_targets_name_the_culprit(model: Any, change: dict[str, Any], expected: str) -> None:
    message = trajectory(['FL_hip_joint', 'FR_hip_joint'], [point(1.0, [0.1, 0.1])])
    read_targets(message, model, 5.0, np.zeros(12))
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(ArgumentError, match=expected):
        read_targets(message, model, 5.0, np.zeros(12))


def test_targets_in_another_mode_are_refused(model: Any) -> None:
    plant = Plant(model, mode='gravity')
    plant.run(0.01)
    with pytest.raises(ArgumentError, match="joint_targets received in mode 'gravity'"):
        plant.supervisor.targets(trajectory(model.joint_names[:1], [point(1.0, [0.1])]))
