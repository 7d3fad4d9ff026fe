# SPDX-License-Identifier: Apache-2.0
"""Motion plans as messages: there and back, as rclpy sees them, and bad ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from motion_plans import FEET, PERIOD, trot

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.ros.plan_messages import PlanWriter
from quad_dynamics.ros.plan_reader import PlanReader

STAMP = 1_000_000_000
EXACT = 1e-12  # rounding of float64 in numbers of order one


class Reader(PlanReader):
    """A reader that remembers what had no other half."""

    def __init__(self) -> None:
        self.unmatched: list[str] = []
        super().__init__(FEET, 'odom', self.unmatched.append)


def sent(plan: MotionPlan, stamp_ns: int = STAMP, frame: str = 'odom') -> tuple[bytes, bytes]:
    return PlanWriter(FEET, frame).write(plan, stamp_ns)


def received(plan: MotionPlan) -> MotionPlan:
    reader, (motion, contacts) = Reader(), sent(plan)
    assert reader.take_motion(motion) is None
    found = reader.take_contacts(contacts)
    assert found is not None
    assert found[0] == STAMP
    return found[1]


def messages(plan: MotionPlan | None = None) -> tuple[Any, Any]:
    """Both messages as rclpy makes them of the bytes."""
    motion, contacts = sent(trot() if plan is None else plan)
    return deserialize_message(motion, MultiDOFJointTrajectory), deserialize_message(
        contacts, JointTrajectory
    )


@pytest.mark.parametrize('slope', [0.0, 0.5], ids=['level', 'sloped'])
@pytest.mark.parametrize('number', range(5))
def test_a_plan_arrives_as_it_was_sent(number: int, slope: float) -> None:
    plan = trot(seed=number, slope=slope)
    found = received(plan)
    assert found.time == plan.time
    assert (found.phase, found.command) == (plan.phase, plan.command)
    assert abs(math.remainder(found.yaw - plan.yaw, 2.0 * math.pi)) < EXACT
    for name in ('footholds', 'forces', 'normal'):
        assert np.abs(getattr(found, name) - getattr(plan, name)).max() < EXACT
    assert (found.contacts.down == plan.contacts.down).all()
    assert np.abs(found.contacts.times - plan.contacts.times).max() < EXACT
    assert found.com.coefficients.shape == plan.com.coefficients.shape
    for time in np.linspace(plan.time - 0.1, plan.end + 0.1, 50):
        for i, (ours, theirs) in enumerate(zip(plan.com.at(time), found.com.at(time), strict=True)):
            # velocities are divided by the length 0.1 s of a segment, accelerations twice: so is rounding
            assert np.abs(ours - theirs).max() < EXACT * 30.0**i


def test_times_are_rounded_to_nanoseconds() -> None:
    plan = trot()
    late = plan.contacts.times + 0.3e-9
    found = received(trot(contacts=ContactSchedule(late, plan.contacts.down)))
    assert np.abs(found.contacts.times - late).max() < 1e-9


@pytest.mark.parametrize(
    ('down', 'phase'),
    [
        ([[1, 1, 1, 1], [1, 1, 1, 1]], 'stand'),
        ([[1, 0, 0, 1], [1, 1, 1, 1]], 'stop'),
        ([[1, 0, 0, 1], [0, 1, 1, 0]], 'walk'),
    ],
)
def test_the_phase_follows_from_the_contacts(down: list[list[int]], phase: str) -> None:
    contacts = ContactSchedule(np.array([1.0, 1.2, 1.4]), np.array(down, dtype=np.bool_))
    assert received(trot(contacts=contacts, forces=np.zeros((2, 4)))).phase == phase


def test_messages_mean_what_standard_tools_expect() -> None:
    plan = trot(slope=0.4)
    motion, contacts = messages(plan)
    assert (motion.header.stamp.sec, motion.header.stamp.nanosec, motion.header.frame_id) == (1, 0, 'odom')
    assert motion.joint_names == ['com', 'control_frame', *FEET]
    # five knots, and accelerations jump at the second and at the fourth
    times = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in motion.points]
    assert np.allclose(np.array(times) / PERIOD, [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0])
    point = motion.points[3]
    com, control, *feet = point.transforms
    p, v, a = plan.com.at(plan.time + 0.5 * PERIOD)
    assert np.allclose([com.translation.x, com.translation.y, com.translation.z], p)
    linear = point.velocities[0].linear
    assert np.allclose([linear.x, linear.y, linear.z], v)
    assert point.velocities[0].angular.z == plan.command[2]
    assert np.allclose(point.accelerations[0].linear.z, a[2])
    assert [foot.translation.x for foot in feet] == plan.footholds[:, 0].tolist()
    assert (point.velocities[1].linear.x, point.velocities[1].linear.y) == plan.command[:2]
    yaw = plan.yaw + 0.5 * PERIOD * plan.command[2]
    assert abs(math.remainder(2.0 * math.atan2(com.rotation.z, com.rotation.w) - yaw, 2.0 * math.pi)) < EXACT
    ground = Ground(0.3, 0.4)
    ground.normal = plan.normal
    turn = control.rotation
    x_axis = [1 - 2 * (turn.y**2 + turn.z**2), 2 * (turn.x * turn.y + turn.w * turn.z)]
    assert np.allclose(x_axis, ground.axes(yaw)[:2, 0], atol=EXACT)
    assert contacts.joint_names == list(FEET)
    assert list(contacts.points[0].positions) == [1.0, 0.0, 0.0, 1.0]
    assert list(contacts.points[0].effort) == plan.forces[0].tolist()
    assert not contacts.points[0].velocities
    assert len(contacts.points) == len(plan.contacts.times)


@pytest.mark.parametrize('frame', ['odom', 'odo', 'odom_', 'robot1/odom'])
def test_frames_of_any_length_and_with_a_prefix(frame: str) -> None:
    """Their length decides where the numbers are aligned."""
    motion, contacts = sent(trot(), frame=frame)
    assert deserialize_message(motion, MultiDOFJointTrajectory).header.frame_id == frame
    reader = PlanReader(FEET, frame.rpartition('/')[2], lambda text: None)
    reader.take_motion(motion)
    assert reader.take_contacts(contacts) is not None


def test_joints_may_come_in_another_order_and_bytes_from_another_writer() -> None:
    plan = trot()
    motion, contacts = messages(plan)
    contacts.joint_names = contacts.joint_names[::-1]
    for point in contacts.points:
        point.positions, point.effort = point.positions[::-1], point.effort[::-1]
        point.velocities = [0.0] * 4  # not needed, but no harm
    reader = Reader()
    reader.take_contacts(serialize_message(contacts))
    found = reader.take_motion(serialize_message(motion))
    assert found is not None
    assert (found[1].contacts.down == plan.contacts.down).all()
    assert (found[1].forces == plan.forces).all()


def test_halves_are_paired_by_their_stamps() -> None:
    reader = Reader()
    pairs = [sent(trot(1.0 + 0.02 * k), STAMP + 20_000_000 * k) for k in range(4)]
    for motion, _ in pairs[:2]:  # as a mailbox takes them: all of one topic, then all of the other
        assert reader.take_motion(motion) is None
    found = [reader.take_contacts(contacts) for _, contacts in pairs[:2]]
    assert [plan and plan[0] for plan in found] == [STAMP, STAMP + 20_000_000]
    assert not reader.unmatched
    assert reader.take_contacts(pairs[2][1]) is None
    reader.take_motion(pairs[3][0])
    assert reader.take_contacts(pairs[3][1]) is not None
    assert reader.unmatched == [
        'contact_plan of 1.040 s has no motion_plan; expected one with the same stamp'
    ]
    for k in range(20):  # nobody sends the other half
        reader.take_motion(sent(trot(), 2 * STAMP + k)[0])
    assert 'motion_plan of 2.000 s has no contact_plan' in reader.unmatched[1]
    assert len(reader.unmatched) == 13
    assert reader.take_contacts(sent(trot(), 2 * STAMP + 19)[1]) is not None


def motion_with(change: Callable[[Any], None]) -> bytes:
    motion, _ = messages()
    change(motion)
    return bytes(serialize_message(motion))


def contacts_with(change: Callable[[Any], None]) -> bytes:
    _, contacts = messages()
    change(contacts)
    return bytes(serialize_message(contacts))


def set_nan(message: Any) -> None:
    message.points[2].transforms[3].translation.y = math.nan


def set_infinite(message: Any) -> None:
    message.points[1].accelerations[0].linear.z = math.inf


def no_quaternion(message: Any) -> None:
    message.points[1].transforms[1].rotation.w += 0.5


def upside_down(message: Any) -> None:
    turn = message.points[1].transforms[1].rotation
    turn.x, turn.y, turn.z, turn.w = 1.0, 0.0, 0.0, 0.0


def go_back(message: Any) -> None:
    message.points[3].time_from_start.nanosec = 1


def three_times(message: Any) -> None:
    message.points[3].time_from_start = message.points[2].time_from_start


def twice_at_first(message: Any) -> None:
    message.points[1].time_from_start = message.points[0].time_from_start


def far_away(message: Any) -> None:
    message.points[-1].time_from_start.sec = 100


def rename(message: Any) -> None:
    message.joint_names[-1] = 'RR_foto'


def name_twice(message: Any) -> None:
    message.joint_names[-1] = message.joint_names[-2]


def other_frame(message: Any) -> None:
    message.header.frame_id = 'base_link'


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        (set_nan, "motion_plan: transforms of 'FR_foot' in point 2 have nan; expected finite numbers"),
        (set_infinite, "motion_plan: accelerations of 'com' in point 1 have inf"),
        (no_quaternion, "the quaternion of 'control_frame' in point 1 has length"),
        (upside_down, "the z axis of 'control_frame' has vertical component -1"),
        (lambda m: m.points[1].velocities.pop(), 'motion_plan: point 1 has 5 velocities; expected 6'),
        (lambda m: m.points.clear(), 'motion_plan has 6 joints and 0 points'),
        (lambda m: m.points.__delitem__(slice(1, None)), 'motion_plan has 1 points; expected 2 to 1000'),
        (go_back, 'time_from_start of point 3 is 1e-09 s; expected more than 0.1 s'),
        (three_times, 'time_from_start of point 3 is 0.1 s; expected more than 0.1 s'),
        (twice_at_first, 'time_from_start of point 1 is 0 s; expected more than 0 s'),
        (far_away, 'time_from_start goes up to 100.4 s; expected at most 60 s'),
        (rename, "motion_plan: unknown joint 'RR_foto' (did you mean 'RR_foot'?)"),
        (name_twice, "motion_plan lacks ['RR_foot']"),
        (other_frame, "motion_plan: header.frame_id is 'base_link'; expected 'odom'"),
    ],
)
def test_bad_motion_plans_are_refused_by_name(change: Callable[[Any], None], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Reader().take_motion(motion_with(change))
    assert text in str(caught.value)


def half_down(message: Any) -> None:
    message.points[2].positions[1] = 0.5


def pulled(message: Any) -> None:
    message.points[2].effort[1] = -3.0


def same_time(message: Any) -> None:
    message.points[2].time_from_start = message.points[1].time_from_start


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        (half_down, "contact_plan: position of 'FR_foot' in point 2 is 0.5; expected 1 for a foot in"),
        (pulled, "contact_plan: effort of 'FR_foot' in point 2 is -3 N; expected at least 0"),
        (same_time, 'contact_plan: time_from_start of point 2 is 0.1 s; expected more than 0.1 s'),
        (lambda m: m.points[0].effort.pop(), 'contact_plan: point 0 has 3 effort; expected 4'),
        (lambda m: m.joint_names.append('tail'), 'contact_plan: point 0 has 4 positions; expected 5'),
    ],
)
def test_bad_contact_plans_are_refused_by_name(change: Callable[[Any], None], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Reader().take_contacts(contacts_with(change))
    assert text in str(caught.value)


def test_damaged_bytes_are_refused() -> None:
    random = np.random.default_rng(0)
    reader = Reader()
    for raw, take in zip(sent(trot()), (reader.take_motion, reader.take_contacts), strict=True):
        for size in (0, 3, 4, 11, 12, 40, len(raw) // 2, len(raw) - 40):
            with pytest.raises(ArgumentError, match=r'truncated|points|joints'):
                take(raw[:size])
        for _ in range(300):  # whatever it is, it is refused or a plan of finite numbers
            broken = bytearray(raw)
            for at in random.integers(4, len(raw), 3):
                broken[at] = random.integers(256)
            try:
                take(bytes(broken))
            except ArgumentError:
                continue
