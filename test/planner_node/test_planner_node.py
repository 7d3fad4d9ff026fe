# SPDX-License-Identifier: Apache-2.0
"""planner_node: plans for states, commands that grow old, faults; and its death while a robot walks."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
from geometry_msgs.msg import Twist
from motion_plans import FEET, trot
from node_processes import PATIENCE, Probe, Process, probe, stamp_of
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

import quad_dynamics as qd
from planner_node.pictures import support_polygons, zmp_path
from planner_node.settings import PlannerSettings
from quad_dynamics.bags.cdr_padding import Padding
from quad_dynamics.control.lying import folded_joints
from quad_dynamics.control.plan_maker import PlanMaker
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.motion_plan import ComSpline
from quad_dynamics.ros.plan_messages import PlanWriter
from quad_dynamics.ros.plan_reader import PlanReader
from quad_dynamics.ros.qos import COMMAND
from quad_dynamics.ros.subscriptions import fields_of

MS = 1_000_000


@pytest.fixture(scope='module')
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model('mini_cheetah')


class Standing:
    """A robot that stands still, and a planner that is told so every 2 ms."""

    def __init__(self, model: Any, **settings: Any) -> None:
        self.faults: list[tuple[str, str]] = []
        self.maker = PlanMaker(model, PlannerSettings(**settings), lambda *fault: self.faults.append(fault))
        self._model, self._q, self.time = model, np.array(model.standing), 0.0
        self.u = np.zeros(model.nv)
        self.plans: list[Any] = []

    def run(self, seconds: float) -> None:
        weight = self._model.total_mass * 9.81 / 4.0
        feet = np.tile([0.0, 0.0, weight], (4, 1))
        for _ in range(round(seconds / 0.002)):
            rest = self.u, feet, np.zeros(self._model.nj)
            plan = self.maker.update(RobotState(self.time, self._q, *rest))
            self.plans += [] if plan is None else [plan]
            self.time = round(self.time + 0.002, 9)

    def move(self, x: float) -> None:
        self._q = self._q.copy()
        self._q[0] += x

    def pose(self, share: float, hips: float) -> None:
        """Legs between folded (share 0) and standing (1), all hips turned sideways [rad]."""
        self._q = self._q.copy()
        self._q[7:] = share * self._model.standing[7:] + (1.0 - share) * folded_joints(self._model)
        self._q[7::3] = hips


@pytest.mark.parametrize(
    ('share', 'hips', 'walks'),
    [(1.0, 0.0, True), (1.0, 0.35, True), (1.0, -0.35, True), (0.6, 0.0, False), (0.0, 0.35, False)],
)
def test_walks_from_any_pose_in_which_the_body_is_up(
    model: Any, share: float, hips: float, walks: bool
) -> None:
    """Feet are not at home where a robot has stopped whose planner died; a robot that lies gets up first."""
    robot = Standing(model)
    robot.pose(share, hips)
    robot.run(0.1)
    for _ in range(5):
        robot.maker.velocity(0.3, 0.0, 0.0)
        robot.run(0.1)
    assert robot.maker.phase == ('walk' if walks else 'stand')
    assert not robot.faults


def test_plans_come_once_in_a_period(model: Any) -> None:
    robot = Standing(model, plan_period=0.02)
    robot.run(0.2)
    times = [plan.time for plan in robot.plans]
    assert times == pytest.approx([0.02 * k for k in range(10)])
    assert robot.maker.plans == 10
    assert robot.plans[-1].phase == 'stand'
    assert robot.plans[-1].contacts.down.all()
    assert not robot.faults


def test_commands_are_followed_limited_and_grow_old(model: Any) -> None:
    robot = Standing(model, cmd_timeout=0.5)
    robot.run(0.02)
    robot.maker.velocity(0.3, 0.0, 0.0)
    robot.run(0.48)
    details = robot.maker.details()
    assert (details['commanded'], details['phase']) == (True, 'walk')
    assert details['vx'] == pytest.approx(0.3)
    assert not robot.plans[-1].contacts.down.all()
    robot.run(0.04)
    assert robot.maker.details()['commanded'] is False
    robot.maker.velocity(99.0, 0.0, 0.0)
    assert robot.faults[-1][0] == 'limited_cmd_vel'
    with pytest.raises(ArgumentError):
        robot.maker.velocity(math.nan, 0.0, 0.0)


def test_a_robot_that_is_put_elsewhere_is_planned_for_anew(model: Any) -> None:
    robot = Standing(model)
    robot.run(0.05)
    robot.maker.velocity(0.3, 0.0, 0.0)
    robot.run(0.02)
    robot.move(3.0)
    robot.run(0.05)
    assert robot.maker.jumps == 1
    assert 'the base jumped by 3 m' in robot.maker.last_jump
    assert robot.maker.details()['commanded'] is False
    assert abs(robot.plans[-1].com.at(robot.time)[0][0] - 3.0) < 0.1
    assert not robot.faults


def test_after_a_gap_nothing_is_planned_for_a_robot_that_still_moves(model: Any) -> None:
    """force_node has let it stop in the meantime, but its feet may be in the air."""
    robot = Standing(model)
    robot.run(0.05)
    robot.maker.velocity(0.3, 0.0, 0.0)
    robot.run(0.1)
    before = len(robot.plans)
    robot.time += 0.5
    robot.u[0] = 0.5
    robot.run(0.1)
    assert len(robot.plans) == before
    assert 'no state for 0.5' in robot.maker.last_jump
    robot.u[0] = 0.0
    robot.run(0.1)
    assert len(robot.plans) >= before + 4
    assert robot.plans[-1].phase == 'stand'  # the command was for another time


def test_what_goes_wrong_is_counted_and_planning_goes_on(model: Any, monkeypatch: Any) -> None:
    robot = Standing(model)
    robot.run(0.05)
    before = len(robot.plans)

    def fail(state: Any) -> None:
        raise ZeroDivisionError('by zero')

    with monkeypatch.context() as patched:
        patched.setattr(robot.maker._planner, 'update', fail)
        robot.run(0.01)
    assert robot.faults == [('exception', 'ZeroDivisionError: by zero')] * 5
    robot.run(0.05)
    assert len(robot.plans) > before


# ---------------------------------------------------------------- what is drawn


def test_support_polygons_are_those_of_the_feet_that_are_down() -> None:
    feet = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])
    down = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=np.bool_)
    plan = trot(
        contacts=ContactSchedule(np.arange(5.0), down),
        forces=np.zeros((4, 4)),
        footholds=feet + np.array([0.5, 0.0, 0.0]),
    )
    first, second, third = support_polygons(plan, feet)
    assert {tuple(p) for p in first[:, :2]} == {(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)}
    assert {tuple(p) for p in second[:, :2]} == {(1.0, 1.0), (-1.0, -1.0)}
    # FR and RL have stepped
    assert {tuple(p) for p in third[:, :2]} == {(1.0, 1.0), (1.5, -1.0), (-0.5, 1.0), (-1.0, -1.0)}


def test_zmp_of_an_accelerated_pendulum_lies_behind_it() -> None:
    """x_zmp = x - h a / g for a centre of mass at the height h; none in free fall."""
    times, a = np.array([1.0, 2.0]), np.array([2.0, 0.0, 0.0])
    p = np.array([[0.0, 0.0, 0.3], [1.0, 0.0, 0.3]])
    v = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    com = ComSpline.from_knots(times, p, v, np.array([a, a]))
    feet = np.zeros((4, 3))
    plan = trot(com=com, normal=np.array([0.0, 0.0, 1.0]))
    path = zmp_path(plan, feet, 10.0, 5)
    assert np.allclose(path[0], [-0.3 * 2.0 / 10.0, 0.0, 0.0])
    assert len(path) == 5
    falling = ComSpline.from_knots(times, p, v, np.tile([0.0, 0.0, -10.0], (2, 1)))
    assert len(zmp_path(trot(com=falling, normal=plan.normal), feet, 10.0, 2)) == 0


# ---------------------------------------------------------------- as processes


def listen(ear: Probe, kind: Any, topic: str, heard: list[Any], raw: bool = False) -> Any:
    """Subscribe; messages are added to a list."""

    def keep(message: Any) -> None:  # rclpy does not take `heard.append`
        heard.append(message)

    return ear.node.create_subscription(kind, topic, keep, COMMAND, raw=raw)


class Walk:
    """Simulator, controller and planner, and a listener that drives."""

    def __init__(self, ear: Probe) -> None:
        self.ear = ear
        self.motions: list[bytes] = []
        self.contacts: list[bytes] = []
        listen(ear, MultiDOFJointTrajectory, 'motion_plan', self.motions, raw=True)
        listen(ear, JointTrajectory, 'contact_plan', self.contacts, raw=True)
        self._velocity = ear.publisher(Twist, 'cmd_vel')

    def command(self, vx: float) -> None:
        message = Twist()
        message.linear.x = vx
        self._velocity.publish(message)

    def drive(self, until: Any, what: str, vx: float = 0.4) -> None:
        """Command a velocity ten times a second until something is so."""
        begin = time.monotonic()
        while not until():
            assert time.monotonic() - begin < PATIENCE, f'{what}; {self.ear.said}'
            self.command(vx)
            self.ear.listen(0.1)

    @property
    def speed(self) -> float:
        v = self.ear.odom.twist.twist.linear
        return math.hypot(v.x, v.y)


@pytest.mark.realtime
def test_a_robot_stands_when_its_planner_stops_or_dies(ros_domain: int) -> None:
    standing = {'initial_pose': 'standing', 'wait_for_commands': True}
    with (
        Process('sim_node', **standing),
        Process('force_node', mode='whole_body', planner='external'),
        Process('planner_node') as planner,
        probe() as ear,
    ):
        walk = Walk(ear)
        ear.until(lambda: int(ear.value('force_node', 'plans') or 0) > 20, 'plans reach force_node')
        _plans_are_of_states(walk)
        _bad_plans_do_no_harm(ear)
        walk.drive(lambda: walk.speed > 0.3, 'it walks')
        assert ear.value('planner_node', 'message').startswith('walk')
        _markers_come_while_somebody_looks(ear, walk)
        os.kill(planner.pid, signal.SIGSTOP)
        walk.drive(lambda: 'no plan for' in ear.value('force_node', 'message'), 'its silence is seen')
        assert ear.value('force_node', 'level') == '1'
        walk.drive(lambda: ear.value('force_node', 'phase') == 'stand' and walk.speed < 0.05, 'it stands')
        os.kill(planner.pid, signal.SIGCONT)
        walk.drive(lambda: walk.speed > 0.3, 'it walks on')
        assert 'no plan' not in ear.value('force_node', 'message')
        planner.kill()  # mid-flight of two feet
        walk.drive(lambda: ear.value('force_node', 'phase') == 'stand' and walk.speed < 0.05, 'it stands')
        assert ear.height > 0.2
        assert ear.value('force_node', 'latched') == ''
        with Process('planner_node'):
            walk.drive(lambda: walk.speed > 0.3, 'it walks with another planner')
            # no velocity for cmd_timeout
            ear.until(lambda: ear.value('planner_node', 'phase') == 'stand', 'the command grows old')
            ear.until(lambda: walk.speed < 0.05, 'it stands')


def _plans_are_of_states(walk: Walk) -> None:
    walk.ear.listen(0.5)
    stamps = {stamp for _, stamp in walk.ear.states}
    assert {stamp_of(raw) for raw in walk.motions[5:-2]} <= stamps
    unmatched: list[str] = []
    reader = PlanReader(FEET, 'odom', unmatched.append)
    for raw in walk.motions[-8:-2]:
        reader.take_motion(raw)
    plans = [plan for raw in walk.contacts[-8:] if (plan := reader.take_contacts(raw)) is not None]
    assert len(plans) >= 5
    assert not unmatched
    assert abs(plans[-1][1].com.at(plans[-1][1].time)[0][2] - walk.ear.height) < 0.1
    assert float(walk.ear.value('planner_node', 'plans_hz')) > 20.0
    assert float(walk.ear.value('planner_node', 'plan_ms_p50')) > 0.0


def _bad_plans_do_no_harm(ear: Probe) -> None:
    """Of another robot, of another time, and without their other half."""
    motion = ear.publisher(MultiDOFJointTrajectory, 'motion_plan')
    contacts = ear.publisher(JointTrajectory, 'contact_plan')
    stamp = ear.states[-1][1]
    for feet, at in (([f'{foot}_x' for foot in FEET], stamp), (FEET, stamp + 10**12)):
        for publisher, raw in zip(
            (motion, contacts), PlanWriter(feet, 'odom').write(trot(), at), strict=True
        ):
            publisher.publish(raw)
    contacts.publish(PlanWriter(FEET, 'odom').write(trot(), stamp + 1)[1])
    ear.until(lambda: int(ear.value('force_node', 'faults.bad_plan') or 0) >= 3, 'they are counted')
    ear.node.destroy_publisher(motion)
    ear.node.destroy_publisher(contacts)
    assert ear.value('force_node', 'phase') == 'stand'


def _markers_come_while_somebody_looks(ear: Probe, walk: Walk) -> None:
    heard: list[Any] = []
    subscription = listen(ear, MarkerArray, 'plan_markers', heard)
    walk.drive(lambda: len(heard) > 3, 'markers come')
    spaces = {marker.ns: marker for marker in heard[-1].markers}
    assert set(spaces) == {'plan_com', 'plan_zmp', 'plan_footholds', 'plan_support'}
    assert len(spaces['plan_footholds'].points) == 4
    assert abs(spaces['plan_com'].points[0].x - ear.odom.pose.pose.position.x) < 0.3
    assert spaces['plan_com'].header.frame_id == 'odom'
    ear.node.destroy_subscription(subscription)


@pytest.mark.realtime
def test_walking_in_lock_step_with_a_planner_is_bit_identical(ros_domain: int) -> None:
    """The command comes before time begins, and does not grow old."""
    lock_step = {'lock_step': True}
    begins = {'initial_pose': 'standing', 'start_paused': True, 'real_time_factor': 0.0}
    partners = '[force_node, planner_node, probe]'

    def run() -> tuple[dict[int, bytes], float]:
        answers: list[bytes] = []
        with (
            Process('sim_node', **lock_step, **begins, lock_step_partners=partners),
            Process('force_node', **lock_step, mode='whole_body', planner='external'),
            Process('planner_node', **lock_step, cmd_timeout=60.0),
            probe() as ear,
        ):
            listen(ear, JointState, 'joint_torques', answers, raw=True)
            walk = Walk(ear)

            def is_commanded() -> bool:
                walk.command(0.4)
                return ear.value('planner_node', 'commanded') == 'True'

            ear.until(is_commanded, 'has a command')
            answers.clear()
            ear.until(lambda: len(answers) >= 10, 'answers the first state with the command')
            ear.pause(False)
            ear.until(lambda: ear.states and ear.states[-1][1] >= 1400 * MS, 'walks for 1.4 s')
            assert ear.value('force_node', 'faults.late_plan') == ''
            return {stamp_of(raw): _numbers(raw) for raw in answers}, float(ear.odom.pose.pose.position.x)

    (first, x), (second, _) = run(), run()
    both = first.keys() & second.keys()
    assert len(both) > 600
    assert x > 0.15
    assert all(first[stamp] == second[stamp] for stamp in both)


def _numbers(raw: bytes) -> bytes:
    """A JointState without what was in memory between its fields."""
    return bytes(Padding('sensor_msgs/msg/JointState', fields_of).clean(raw))
