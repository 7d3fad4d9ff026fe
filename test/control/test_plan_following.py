# SPDX-License-Identifier: Apache-2.0
"""Plans from their state to the robot: when they are due, kept, followed, and what happens without them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from control_loop import robot
from motion_plans import trot
from planned_walk import DT, FollowedWalk, PlannedWalk
from slow_variants import slow_but

from quad_dynamics.control.gait_planner import GaitPlanner
from quad_dynamics.control.lying import lying_pose
from quad_dynamics.control.plan_follower import PlanFollower
from quad_dynamics.control.plan_queue import PlanQueue
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.planning.motion_plan import MotionPlan

MS = 1_000_000
PENDULUM = 0.17  # sqrt(h / g) [s]
STEPPING = [name for name in GAITS if name != 'stand']
SPEED = {'crawl': 0.2, 'bound': 0.4}  # 0.5 for all others [m/s]


@functools.cache
def mini_cheetah() -> Any:
    return robot('mini_cheetah')


def at(time: float, velocity: float = 0.0, q: np.ndarray | None = None) -> RobotState:
    """mini_cheetah as it stands, or otherwise, with the base moving ahead."""
    model = mini_cheetah()
    q = np.array(model.standing) if q is None else q
    u = np.zeros(model.nv)
    u[0] = velocity
    forces = np.zeros((4, 3))
    forces[:, 2] = 0.25 * model.total_mass * 9.81
    return RobotState(time, q, u, forces, np.zeros(model.nj))


def times(begin: float, end: float, dt: float = DT) -> Iterator[float]:
    """Times of states."""
    return (begin + dt * k for k in range(round((end - begin) / dt)))


@pytest.fixture(scope='module')
def shared() -> GaitPlanner:
    return GaitPlanner(mini_cheetah(), WalkerSettings())


@pytest.fixture
def planner(shared: GaitPlanner) -> GaitPlanner:
    """One that has just begun, with a robot that stands."""
    shared.command(0.0, 0.0, 0.0)
    shared.gait = 'trot'
    shared.reset(at(0.0))
    return shared


# ---------------------------------------------------------------- when plans are made


@pytest.mark.parametrize(('period', 'dt'), [(0.02, 0.002), (0.025, 0.004), (0.02, 0.003), (0.01, 0.02)])
def test_the_first_state_of_each_period_is_due(planner: GaitPlanner, period: float, dt: float) -> None:
    """For whoever counts: force_node, which waits for plans, counts in nanoseconds."""
    queue, due, waits = PlanQueue(True, period, 0.0), [], []
    for k in range(200):
        if planner._planning.is_due(k * dt, period):
            due.append(k)
        stamp = queue.waits_for(round(k * dt * 1e9))
        if stamp is not None:
            waits.append(k)
            queue.take(stamp, trot(), stamp)
    assert due == waits
    assert len(due) == min(math.floor(199 * dt / period + 1e-6) + 1, 200)


def test_a_plan_each_period_and_none_between(planner: GaitPlanner) -> None:
    planner.command(0.3, 0.0, 0.0)
    made = [(time, planner.update(at(time))) for time in times(0.0, 0.1)]
    assert [time for time, plan in made if plan is not None] == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08])
    assert planner.counts.plans == 5
    assert planner.counts.plan_failures == 0
    plans = [plan for _, plan in made if plan is not None]
    assert [plan.phase for plan in plans] == ['walk'] * 5
    assert all(plan.gait == 'trot' for plan in plans)


def test_other_settings_reach_the_next_plan(planner: GaitPlanner) -> None:
    """A body that is too fast: feet go ahead of it by a share of its velocity, `capture_gain`."""
    before = planner._settings

    def ahead(**changes: float) -> float:
        planner.reset(at(0.0))
        planner.change(WalkerSettings(**changes))
        planner.command(0.1, 0.0, 0.0)
        plans = [plan for t in times(0.0, 0.1) if (plan := planner.update(at(t, 0.4))) is not None]
        return float(plans[-1].footholds[:, 0].mean())

    try:
        gain = before.capture_gain
        assert ahead(capture_gain=1.5 * gain) > ahead(capture_gain=0.5 * gain) + 0.005
        planner.change(WalkerSettings(mu=0.3, lambda_lin=7.0))
        com = planner._planning._motion._com.settings
        assert (com.mu, com.lambda_lin) == (0.3, 7.0)
    finally:
        planner.change(before)


def fail(planner: GaitPlanner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the motion optimisation find nothing from now on."""
    com = planner._planning._motion._com
    solve = com.solve

    def failing(*given: Any) -> Any:
        return dataclasses.replace(solve(*given), accepted=False, reason='asked for by a test')

    monkeypatch.setattr(com, 'solve', failing)


def test_after_failures_the_last_plan_is_kept_for_a_stride(
    planner: GaitPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.command(0.2, 0.0, 0.0)
    plans = [planner.update(at(time)) for time in times(0.0, 0.2)]
    last = [plan for plan in plans if plan is not None][-1]
    assert last.time == pytest.approx(0.18)
    fail(planner, monkeypatch)
    hold = planner._planning.hold
    assert hold == pytest.approx(planner.steps.clock.period)
    kept, phases = 0, []
    for time in times(0.2, 0.2 + 2.0 * hold):
        plan = planner.update(at(time))
        if plan is None:
            continue
        assert plan.time == time
        if time < last.time + hold:
            kept += 1
            assert plan.phase == 'walk'
            assert plan.com is last.com  # the motion goes on, from its own time on
            assert plan.contacts is last.contacts
        else:
            phases.append(plan.phase)
            # feet come down on the ground, and not deeper with every plan
            assert plan.footholds[:, 2] == pytest.approx(last.footholds[:, 2], abs=1e-6)
    # from then on there are no plans but those to stand
    assert kept > 10
    assert set(phases) <= {'stand'}
    assert planner.counts.kept_plans == kept
    failures = planner.counts.plan_failures
    assert failures > kept
    monkeypatch.undo()
    begin = 0.2 + 2.0 * hold
    plans = [plan for t in times(begin, begin + 1.5) if (plan := planner.update(at(t))) is not None]
    assert plans[-1].phase == 'walk'
    assert planner.counts.plan_failures == failures


@pytest.mark.slow
def test_a_robot_whose_plans_fail_stops_and_walks_on_when_they_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk = PlannedWalk('mini_cheetah')
    walk.command(0.3, 0.0, 0.0)
    walk.run(2.0)
    with monkeypatch.context() as patch:
        fail(walk.walker._planner, patch)
        walk.run(1.5)
        assert np.linalg.norm(walk.sim.u[:2]) < 0.2
        assert walk.walker.counts.plan_failures > 50
    walk.run(1.5)
    assert walk.lowest > 0.9
    assert walk.walker.phase == 'walk'


def test_plans_to_stand_while_the_robot_gets_up(planner: GaitPlanner) -> None:
    model = mini_cheetah()
    q = np.array(model.standing)
    q[7:] = lying_pose(model)[7:]
    q[2] *= 0.5
    planner.command(0.5, 0.0, 0.0)
    plans = [plan for time in times(0.0, 0.1) if (plan := planner.update(at(time, q=q))) is not None]
    assert len(plans) == 5
    for plan in plans:
        assert plan.phase == 'stand'
        assert plan.contacts.down.all()
        assert np.isfinite(plan.com.coefficients).all()
    planner.update(at(0.1))
    assert planner.phase == 'walk'  # it is up


def test_after_a_gap_it_waits_until_the_robot_is_calm(planner: GaitPlanner) -> None:
    planner.command(0.5, 0.0, 0.0)
    for time in times(0.0, 0.1):
        planner.update(at(time))
    assert all(planner.update(at(time, velocity=0.5)) is None for time in times(0.4, 0.6))
    plan = planner.update(at(0.6))
    assert plan is not None
    assert plan.time == 0.6
    # a short gap is nothing
    assert planner.update(at(0.7, velocity=0.5)) is not None


# ---------------------------------------------------------------- which plan is followed


def test_a_plan_counts_from_its_delay_on() -> None:
    follower, zero = PlanFollower(PENDULUM), np.zeros(3)
    first, second = trot(time=1.0), trot(time=1.02, seed=1)
    follower.take(first)
    for now in (1.0, 1.005, 1.0098):
        follower.advance(now, 0.01, zero, zero)
        assert follower.plan is None
        assert follower.age(now) == math.inf
    follower.advance(1.01, 0.01, zero, zero)
    assert follower.plan is first
    assert follower.age(1.013) == pytest.approx(0.013)
    follower.take(second)
    follower.advance(1.028, 0.01, zero, zero)
    assert follower.plan is first
    follower.advance(1.1, 0.01, zero, zero)
    assert follower.plan is second
    # of several that are due, the newest
    third, fourth = trot(time=1.2, seed=2), trot(time=1.22, seed=3)
    follower.take(third)
    follower.take(fourth)
    follower.advance(1.3, 0.01, zero, zero)
    assert follower.plan is fourth


@pytest.mark.parametrize('seed', range(5))
def test_the_shift_along_a_plan_is_bounded_by_its_age(seed: int) -> None:
    """A robot that is elsewhere does not make a plan begin anywhere: only times within its age count."""
    random = np.random.default_rng(seed)
    plan, age = trot(time=1.0, seed=seed), 0.015
    follower = PlanFollower(PENDULUM)
    follower.take(plan)
    follower.advance(1.0 + age, 0.01, random.normal(size=3), random.normal(size=3))
    shifts = np.linspace(-age, age, 4001)
    found = follower.reference(1.2)[0]
    assert np.abs([plan.com.at(1.2 + shift)[0] - found for shift in shifts]).sum(axis=1).min() < 1e-3
    # a robot that is where the plan says is not shifted
    follower.reset()
    follower.take(plan)
    p, v, _ = plan.com.at(1.0 + age)
    follower.advance(1.0 + age, 0.01, p, v)
    assert follower.reference(1.2)[0] == pytest.approx(plan.com.at(1.2)[0], abs=0.02)


def test_a_reset_forgets_all_plans() -> None:
    follower, zero = PlanFollower(PENDULUM), np.zeros(3)
    follower.take(trot(time=1.0))
    follower.advance(1.05, 0.01, zero, zero)
    follower.take(trot(time=1.06))
    follower.reset()
    assert follower.plan is None
    follower.advance(2.0, 0.01, zero, zero)
    assert follower.plan is None


# ---------------------------------------------------------------- what plans do not know yet


def test_what_happened_since_the_state_of_a_plan() -> None:
    follower, v = PlanFollower(PENDULUM), np.array([0.5, -0.2, 0.0])
    assert follower.surprise() == ((0.0, 0.0), (0.0, 0.0))
    follower.take(trot(time=0.02))
    for time in times(0.0, 0.04):  # a body that goes on as it was
        follower.advance(time, 0.01, time * v, v)
    np.testing.assert_allclose(follower.surprise(), 0.0, atol=1e-12)
    # 10 ms of 8 m/s^2 to the left; the plan is of 20 ms before
    for time in times(0.04, 0.052):
        gained = 8.0 * (time - 0.04)
        place = time * v + np.array([0.0, 0.5 * gained * (time - 0.04), 0.0])
        follower.advance(time, 0.01, place, v + np.array([0.0, gained, 0.0]))
    place_error, velocity_error = follower.surprise()
    assert velocity_error == pytest.approx((0.0, 0.08))
    assert place_error == pytest.approx((0.0, 0.0004))
    # a new plan, made for this state, knows of it
    follower.take(trot(time=0.05))
    v = v + np.array([0.0, 0.08, 0.0])
    follower.advance(0.06, 0.01, place + 0.01 * v, v)
    np.testing.assert_allclose(follower.surprise(), 0.0, atol=1e-12)
    follower.reset()
    assert follower.surprise() == ((0.0, 0.0), (0.0, 0.0))


def test_footholds_and_clock_follow_a_push(planner: GaitPlanner) -> None:
    """Without a new plan, as the foothold program would have it; and not beyond what the leg reaches."""
    planner.command(0.3, 0.0, 0.0)
    for time in times(0.0, 0.3):
        planner.update(at(time))
    steps, geometry = planner.steps, planner.geometry
    leg = next(k for k in range(4) if not steps.down[k])
    view = planner.view(at(0.3))

    def goal(dx: float, dv: float) -> np.ndarray:
        steps.surprise = (dx, 0.0), (0.0, dv)
        steps.targets(view, planner.body, planner.ground)
        return steps.footholds[leg].copy()

    planned = goal(0.0, 0.0)
    assert planner.motion_plan is not None
    np.testing.assert_allclose(planned, planner.motion_plan.footholds[leg])
    left = steps.clock.time_to_touchdown(leg)
    ahead = left + WalkerSettings().capture_gain * geometry.pendulum
    np.testing.assert_allclose(goal(0.01, 0.1) - planned, [0.01, 0.1 * ahead, 0.0], atol=1e-9)
    hip = view.com[:2] + np.array(geometry.below[leg])
    assert np.linalg.norm(goal(0.0, 5.0)[:2] - hip) == pytest.approx(geometry.stroke, rel=1e-6)
    # steps are quicker where the body is pushed
    rates = []
    for velocity in (0.3, 1.0, 2.0):
        steps.set_pace(planner._pace(planner.view(at(0.3, velocity))), view)
        rates.append(steps.clock.rate)
    assert rates[0] == 1.0 < rates[1] < rates[2]


# ---------------------------------------------------------------- robots


@pytest.mark.parametrize('gait', slow_but(['pace'], STEPPING))
def test_every_gait_walks(gait: str) -> None:
    walk, speed = PlannedWalk(gait=gait), SPEED.get(gait, 0.5)
    walk.command(speed, 0.0, 0.0)
    walk.run(4.0)
    assert walk.lowest > 0.8
    forward, sideways = walk.velocity(1.5)
    # over 1.5 s, which are not whole strides, the mean is off by a part of the sway
    assert forward == pytest.approx(speed, abs=0.05)
    assert abs(sideways) < 0.05
    counts = walk.walker.counts
    assert counts.plans == 200
    assert counts.plan_failures + counts.stale_plans + counts.failures == 0
    assert counts.touchdowns > 4 * 3.0 / walk.walker.period


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'speed'), [('solo12', 1.0), ('solo12', 1.3), ('anymal_c', 1.1)])
def test_fast_from_the_first_step_on(name: str, speed: float) -> None:
    """The feet that stand first begin below the hips, not ahead: the body must not leave them behind."""
    walk = PlannedWalk(name)
    walk.command(speed, 0.0, 0.0)
    walk.run(1.5)
    assert walk.lowest > 0.9
    # a stretched foot or two may lose the ground for a moment; the body goes on
    assert walk.walker.counts.lost < 3
    assert walk.velocity(0.5)[0] == pytest.approx(speed, rel=0.1)


def test_a_change_of_gait() -> None:
    """Of a robot that follows the plans of somebody else: it gets the gait from there."""
    walk = FollowedWalk()
    walk.command(0.4, 0.0, 0.0)
    walk.run(1.2)
    walk.planner.gait = 'walk'
    walk.run(1.6)
    assert walk.plans[-1].gait == 'walk'
    # the plans of the last stride are those of a gait with two or three feet down
    assert set(walk.plans[-1].contacts.down.sum(axis=1)) == {2, 3}
    assert walk.lowest > 0.9
    assert walk.velocity(0.6)[0] == pytest.approx(0.4, abs=0.08)


def stands_again(walk: FollowedWalk) -> None:
    assert walk.lowest > 0.7, f'it fell: {walk.lowest:.2f} of its height'
    assert walk.tilt < 0.15
    assert np.hypot(*walk.velocity(0.2)) < 0.05
    assert walk.walker.phase == 'stand'


def in_flight(plan: MotionPlan, time: float) -> bool:
    return not plan.contacts.down[plan.contacts.phase(time)].any()


def in_stance(plan: MotionPlan, time: float) -> bool:
    return int(plan.contacts.down[plan.contacts.phase(time)].sum()) == 2


@pytest.mark.parametrize(
    ('gait', 'moment'),
    slow_but(
        [('flying_trot', in_flight)],
        [('trot', in_stance), ('flying_trot', in_flight), ('pace', in_stance), ('walk', in_stance)],
    ),
)
def test_a_planner_that_dies(gait: str, moment: Callable[[MotionPlan, float], bool]) -> None:
    """Whenever that is, the robot does not fall; it stops and stands by itself."""
    walk = FollowedWalk(gait=gait)
    walk.command(0.5, 0.0, 0.0)
    walk.run(1.6)
    assert walk.walker.counts.stale_plans == 0
    assert walk.walker.phase == 'walk'
    for _ in range(200):
        if moment(walk.plans[-1], walk.sim.time):
            break
        walk.run(DT)
    assert moment(walk.plans[-1], walk.sim.time)
    walk.is_alive = False
    walk.run(2.0)
    stands_again(walk)
    assert walk.walker.counts.stale_plans == 1


@pytest.mark.slow
def test_a_planner_that_pauses() -> None:
    """For 0.3 s, longer than the timeout: the robot stops, the planner waits for that, and goes on."""
    walk = FollowedWalk()
    walk.command(0.5, 0.0, 0.0)
    walk.run(1.6)
    walk.is_alive = False
    walk.run(0.3)
    assert walk.walker.counts.stale_plans == 1
    walk.is_alive = True
    walk.run(2.6)
    assert walk.lowest > 0.8
    assert walk.walker.phase == 'walk'
    assert walk.velocity(0.5)[0] == pytest.approx(0.5, abs=0.1)
    assert walk.walker.counts.stale_plans == 1


def test_without_any_plan_it_stands() -> None:
    walk = FollowedWalk()
    walk.is_alive = False
    walk.command(0.5, 0.0, 0.0)
    walk.run(0.5)
    stands_again(walk)
    assert walk.walker.counts.stale_plans == 0
    assert walk.walker.motion_plan is None


@pytest.mark.slow
def test_bit_identical_twice() -> None:
    runs = []
    for _ in range(2):
        walk = FollowedWalk(gait='pace')
        walk.command(0.4, 0.1, 0.3)
        walk.run(1.5)
        runs.append(np.array(walk.q).tobytes())
    assert runs[0] == runs[1]


def test_a_planner_beside_makes_the_plans_that_the_walker_makes() -> None:
    """Bit for bit, from the same states; as long as no foot that is asked to carry loses the ground.

    A planner in another process does not know what feet are asked to carry.
    """
    walk = PlannedWalk()
    planner = GaitPlanner(mini_cheetah(), walk.settings)
    planner.reset(at(0.0))
    compared = 0

    def compare(state: RobotState) -> Any:
        nonlocal compared
        made, setpoint = planner.update(state), update(state)
        own = walk.walker._planner._made
        if made is not None:
            assert own is not None
            assert own.time == made.time == state.time
            assert (own.phase, own.yaw, own.command) == (made.phase, made.yaw, made.command)
            for a, b in zip(_arrays(own), _arrays(made), strict=True):
                assert a.tobytes() == b.tobytes()
            compared += 1
        return setpoint

    update, walk.walker.update = walk.walker.update, compare  # type: ignore[method-assign]
    for law in (walk.walker, planner):
        law.command(0.4, 0.1, 0.3)
    walk.run(1.2)
    assert walk.walker.counts.lost == 0
    assert compared == 60


def _arrays(plan: MotionPlan) -> tuple[np.ndarray, ...]:
    return (
        plan.com.times,
        plan.com.coefficients,
        plan.contacts.times,
        plan.contacts.down,
        plan.footholds,
        plan.forces,
        plan.normal,
    )
