# SPDX-License-Identifier: Apache-2.0
"""Which plans of another process count, and from when on; and samples in the order of their stamps."""

from __future__ import annotations

import pytest
from motion_plans import trot

from quad_dynamics.control.plan_queue import PlanQueue
from quad_dynamics.errors import ArgumentError

MS = 1_000_000
PLAN = trot()


def queue(lock_step: bool) -> PlanQueue:
    return PlanQueue(lock_step, period=0.02, delay=0.01)


def test_a_plan_counts_when_it_comes() -> None:
    plans = queue(lock_step=False)
    assert plans.next(0) is None
    plans.take(0, PLAN, 2 * MS)
    newer = trot(seed=1)
    plans.take(20 * MS, newer, 20 * MS)
    assert plans.next(20 * MS) is newer  # the older one counts no more
    assert plans.next(22 * MS) is None
    assert (plans.newest, plans.taken) == (20 * MS, 2)
    assert plans.waits_for(10_000 * MS) is None  # nobody waits


def test_in_lock_step_a_plan_counts_from_a_fixed_time_on() -> None:
    plans = queue(lock_step=True)
    for now in range(0, 10, 2):
        assert plans.waits_for(now * MS) is None
    plans.take(0, PLAN, 4 * MS)  # whenever it comes
    assert plans.waits_for(10 * MS) is None
    assert plans.next(8 * MS) is None
    assert plans.next(10 * MS) is PLAN
    assert plans.next(12 * MS) is None


def test_in_lock_step_a_state_waits_for_the_plan_that_counts_there() -> None:
    plans = queue(lock_step=True)
    assert plans.waits_for(0) is None
    assert plans.waits_for(8 * MS) is None
    for _ in range(3):  # it may be asked again and again
        assert plans.waits_for(10 * MS) == 0
    plans.take(0, PLAN, 10 * MS)
    assert plans.waits_for(10 * MS) is None
    assert plans.waits_for(20 * MS) is None
    assert plans.waits_for(28 * MS) is None
    assert plans.waits_for(30 * MS) == 20 * MS
    plans.give_up()
    for now in range(30, 226, 2):  # nobody waits for a planner that has ended
        assert plans.waits_for(now * MS) is None
    plans.take(220 * MS, PLAN, 224 * MS)
    assert plans.waits_for(224 * MS) is None
    assert plans.waits_for(240 * MS) is None
    assert plans.waits_for(250 * MS) == 240 * MS  # it is back


def test_the_first_state_of_a_period_is_the_one_that_is_planned_for() -> None:
    """Whatever the periods are."""
    plans = PlanQueue(True, period=0.025, delay=0.0)
    due = []
    for now in range(0, 100, 4):
        stamp = plans.waits_for(now * MS)
        if stamp is not None:
            due.append(stamp // MS)
            plans.take(stamp, PLAN, now * MS)
    assert due == [0, 28, 52, 76]


def test_time_that_begins_anew_and_a_robot_that_is_elsewhere() -> None:
    plans = queue(lock_step=True)
    plans.waits_for(500 * MS)
    plans.take(500 * MS, PLAN, 500 * MS)
    assert plans.waits_for(0) is None
    assert plans.newest == -1
    assert plans.next(0) is None
    assert plans.waits_for(10 * MS) == 0
    plans.take(0, PLAN, 10 * MS)
    assert plans.next(10 * MS) is PLAN
    plans.take(20 * MS, PLAN, 20 * MS)
    plans.restart(20 * MS)  # its own plan is good
    assert plans.next(30 * MS) is PLAN
    plans.take(40 * MS, PLAN, 42 * MS)
    plans.restart(42 * MS)
    assert plans.next(60 * MS) is None


def test_plans_of_another_time_are_refused() -> None:
    plans = queue(lock_step=False)
    plans.take(1000 * MS, PLAN, 1002 * MS)
    with pytest.raises(ArgumentError, match=r'stamp 1\.000 s, the one before 1\.000 s; expected a later one'):
        plans.take(1000 * MS, PLAN, 1004 * MS)
    with pytest.raises(ArgumentError, match=r'stamp 5\.000 s, joint_states 1\.004 s'):
        plans.take(5000 * MS, PLAN, 1004 * MS)
    assert plans.taken == 1


def test_samples_are_handed_on_stamp_by_stamp() -> None:
    pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
    from quad_dynamics.ros.sample_order import SampleOrder

    def message(stamp: int) -> bytes:
        return b'\x00\x01\x00\x00' + bytes(4) + stamp.to_bytes(4, 'little') + b'...'

    order, seen = SampleOrder(), []
    odom = order.add(lambda raw: seen.append(('odom', raw)))
    joints = order.add(lambda raw: seen.append(('joints', raw)))
    joints(message(1))  # its odometry was sent before we listened
    for stamp in (2, 3, 4):
        odom(message(stamp))
    assert not order.next()
    for stamp in (2, 3):
        joints(message(stamp))
    assert order.next()
    assert seen == [('odom', message(2)), ('joints', message(2))]
    assert order.next()
    assert not order.next()
    assert seen[2:] == [('odom', message(3)), ('joints', message(3))]
    odom(b'short')  # its reader refuses it
    assert seen[-1] == ('odom', b'short')
    odom(message(1))  # time has begun anew
    joints(message(1))
    assert order.next()
    assert seen[-1] == ('joints', message(1))
    for stamp in range(10, 2000):  # nobody sends the rest
        odom(message(stamp))
    assert len(order._waiting) < 600
