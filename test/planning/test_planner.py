# SPDX-License-Identifier: Apache-2.0
"""The motion planner: contacts, footholds, the path pi, sway of pace and bound, planned forces."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from closeness import assert_close
from control_loop import robot
from plan_requests import PLACE, TIME, clock_at, request, standing

from quad_dynamics.planning.com_problem import ComProblem
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.footholds import speed_at_change
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.planner import MotionPlanner, PlanRequest
from quad_dynamics.planning.stance_geometry import StanceGeometry, stance_geometry

STEPPING = sorted(name for name in GAITS if name != 'stand')
STRIDES = (0.0, 0.13, 0.48, 0.77)
UP = np.array([0.0, 0.0, 1.0])


@functools.cache
def geometry() -> StanceGeometry:
    return stance_geometry(robot('mini_cheetah'))


@functools.cache
def planner() -> MotionPlanner:
    return MotionPlanner(geometry(), range(4))


def plan(asked: PlanRequest, previous: MotionPlan | None = None) -> MotionPlan:
    made = planner().plan(asked, previous)
    assert made is not None, planner().result
    return made


def problem_of(asked: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> ComProblem:
    """The motion optimisation that a request leads to."""
    seen: list[ComProblem] = []
    one = planner()
    solve = one._com.solve

    def spy(problem: ComProblem, previous: Any) -> Any:
        seen.append(problem)
        return solve(problem, previous)

    monkeypatch.setattr(one._com, 'solve', spy)
    one.plan(asked, None)
    return seen[0]


# ---------------------------------------------------------------- plans of all gaits


@pytest.mark.parametrize('stride', STRIDES)
@pytest.mark.parametrize('gait', STEPPING)
def test_a_plan_of_every_gait(gait: str, stride: float) -> None:
    """Finite, one stride long, from the state of the robot on, with the contacts of the clock."""
    asked = request(geometry(), gait, stride, (0.3, 0.05, 0.2))
    made, clock = plan(asked), clock_at(geometry(), gait, stride)
    for name in ('footholds', 'forces', 'normal'):
        assert np.isfinite(getattr(made, name)).all(), name
    assert np.isfinite(made.com.coefficients).all()
    assert (made.time, made.phase, made.gait, made.command) == (TIME, 'walk', gait, asked.command)
    assert made.com.times[0] == TIME
    assert made.end - TIME == pytest.approx(clock.period, rel=1e-12)
    assert made.contacts.times[-1] == pytest.approx(made.end, abs=1e-12)
    p, v, _ = made.com.at(TIME)
    assert_close(p, asked.com, 1e-9, 'begin')
    assert_close(v, asked.velocity, 1e-9, 'velocity at the begin')
    shortest = 0.03 * clock.period  # phases that are shorter than 0.02 strides are merged
    for time in np.arange(0.01, 0.99, 0.02) * clock.period:
        ahead = time / clock.period
        wanted = [clock.is_stance(leg, ahead) for leg in range(4)]
        edges = [abs(time - at) for leg in range(4) for at in clock.changes(leg, 2.0 * clock.period)]
        if min(edges) > shortest:
            assert made.contacts.down[made.contacts.phase(TIME + time)].tolist() == wanted


@pytest.mark.parametrize('speed', [0.0, 0.5, 3.0])
@pytest.mark.parametrize('gait', STEPPING)
def test_footholds_are_within_reach(gait: str, speed: float) -> None:
    """Of the hips where they will be at touch-down; those of feet that stay are where the feet are.

    At 3 m/s the robot would like to step farther than its legs are long. The optimisation of the motion may
    find nothing then, so it is not asked.
    """
    asked = request(geometry(), gait, 0.2, (speed, 0.0, 0.0))
    soles = planner()._plan_footholds(asked, None, np.array([*PLACE, 0.0]))
    assert planner().footholds_solved
    assert_close(soles[:, 2], np.zeros(4), 1e-9, 'height', 1.0)
    for leg, left in enumerate(asked.time_left):
        hip = asked.hips[leg] + left * asked.velocity
        centre = soles[leg] + geometry().radius[leg] * UP
        # the polygon of reach is within the circle of the leg at 0.93 of its full length
        assert np.linalg.norm(centre - hip) <= 0.93 * geometry().reach[leg] + 1e-9
    still = dataclasses.replace(asked, time_left=np.array([math.inf, 0.1, 0.1, math.inf]))
    soles = planner()._plan_footholds(still, None, np.array([*PLACE, 0.0]))
    assert_close(soles[[0, 3]], asked.feet[[0, 3]], what='feet that stay')


def test_footholds_of_a_plan_are_those_of_centres_of_feet() -> None:
    made = plan(request(geometry(), 'trot', 0.1, (0.3, 0.0, 0.0)))
    assert_close(made.footholds[:, 2], np.array(geometry().radius), 1e-9, 'height')


def test_a_failed_motion_optimisation_gives_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    one, asked = planner(), request(geometry(), 'trot')
    plan(asked)
    found = one.result
    assert found is not None
    failed = dataclasses.replace(found, accepted=False, reason='test')
    monkeypatch.setattr(one._com, 'solve', lambda *_: failed)
    assert one.plan(asked, None) is None
    assert one.result is failed


# ---------------------------------------------------------------- the path pi


@pytest.mark.parametrize('stride', STRIDES)
@pytest.mark.parametrize('command', [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (-0.3, 0.2, 0.0)])
@pytest.mark.parametrize('gait', STEPPING)
def test_at_the_commanded_velocity_the_path_begins_at_the_centre_of_mass(
    gait: str, command: tuple[float, float, float], stride: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(geometry(), gait, stride, command)
    path = problem_of(asked, monkeypatch).path
    # Footholds expect a body that is faster when it changes feet than on average; this one is not, so feet
    # come down by that much behind: by all of it at most.
    pendulum, speed = geometry().pendulum, math.hypot(command[0], command[1])
    faster = speed_at_change(clock_at(geometry(), gait, stride).stance_time, pendulum) - 1.0
    slack = 0.8 * pendulum * faster * speed + 1e-3
    # they also expect it to sway, and this one does not
    sway = np.abs(planner().sway_velocities(asked)).max(axis=0)
    away = np.abs(path.start.p[:2] - PLACE)
    assert (away < slack + 0.5 * pendulum * sway).all()
    assert path.start.p[2] == pytest.approx(geometry().com_height, abs=1e-9)
    assert path.start.v[:2] == pytest.approx(command[:2], abs=1e-12)
    horizon = clock_at(geometry(), gait, stride).period
    way = path.end.p - path.start.p
    assert way == pytest.approx((horizon * command[0], horizon * command[1], 0.0), abs=1e-9)


@pytest.mark.parametrize('yaw', [0.0, 0.7, -2.5])
@pytest.mark.parametrize('away', [(0.0, 0.0), (0.02, -0.03)])
def test_standing_the_path_is_over_the_middle_of_the_feet(
    away: tuple[float, float], yaw: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the centre of mass is now."""
    asked = standing(geometry(), (PLACE[0] + away[0], PLACE[1] + away[1]), yaw)
    path = problem_of(asked, monkeypatch).path
    assert_close(path.start.p, np.array([*PLACE, geometry().com_height]), 1e-9, 'begin')
    assert_close(path.end.p, path.start.p, 1e-9, 'end')
    assert not path.start.v.any()


def test_the_path_turns_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(geometry(), 'trot', 0.1, (0.4, 0.0, 1.5))
    path = problem_of(asked, monkeypatch).path
    turn = 1.5 * clock_at(geometry(), 'trot', 0.1).period
    angles = [math.atan2(state.v[1], state.v[0]) for state in (path.start, path.end)]
    assert angles[1] - angles[0] == pytest.approx(turn)
    way = path.end.p - path.start.p
    assert math.atan2(way[1], way[0]) == pytest.approx(angles[0] + 0.5 * turn)


@pytest.mark.parametrize('command', [(0.8, 0.0, 1.0), (-0.5, 0.3, 0.7), (0.0, 0.4, -1.2)])
def test_in_a_turn_the_feet_are_where_a_pendulum_needs_them(command: tuple[float, float, float]) -> None:
    """The acceleration of a pendulum, g / h times its distance from the feet, is that of the turn."""
    asked = request(geometry(), 'trot', 0.1, command)
    feet = np.array([*planner().outward(asked), 0.0])
    vx, vy, wz = command
    acceleration = np.cross([0.0, 0.0, wz], [vx, vy, 0.0])
    assert_close(-feet * geometry().g / asked.height, acceleration, 1e-12, 'acceleration')


def test_the_path_is_on_the_inner_side_of_the_feet(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(geometry(), 'trot', 0.1, (0.8, 0.0, 1.0))
    starts = []
    for share in (1.0, 0.0):
        with monkeypatch.context() as patch:
            out = planner().outward(asked)
            patch.setattr(MotionPlanner, 'outward', lambda *_, s=share, o=out: (s * o[0], s * o[1]))
            starts.append(problem_of(asked, monkeypatch).path.start.p)
    # the footholds of half of the feet move outwards by as much as the path moves inwards
    inwards = (starts[0] - starts[1])[1]
    assert 0.0 < inwards < 0.8 * asked.height / geometry().g


# ---------------------------------------------------------------- sway


def orbit_speed(distance: float, time: float, pendulum: float) -> float:
    """Velocity at the change of feet of a pendulum that goes to and fro over two feet.

    It is at `distance` from the foot that carries at both ends of a stance that lasts `time`. Integrated, not
    in closed form: x'' = x / pendulum^2 from the middle of the stance, where it is at rest, for half of it.
    """
    n = 20000
    dt, x, v = 0.5 * time / n, 1.0, 0.0
    for _ in range(n):  # leapfrog
        v += 0.5 * dt * x / pendulum**2
        x += dt * v
        v += 0.5 * dt * x / pendulum**2
    return distance * v / x


@pytest.mark.parametrize('stride', [0.02, 0.15, 0.3, 0.62, 0.9])
@pytest.mark.parametrize(('gait', 'axis'), [('pace', 1), ('bound', 0)])
def test_sway_is_that_of_a_pendulum_over_two_feet(gait: str, axis: int, stride: float) -> None:
    """Always the same for the same feet, wherever in the stride the plan is made."""
    asked, one = request(geometry(), gait, stride), geometry()
    found = planner().sway_velocities(asked)
    clock = clock_at(one, gait, stride)
    # the time on two feet: that in which the other two are in the air, unless all are
    alone = clock.swing_time if clock.swing_time < clock.stance_time else clock.stance_time
    for leg in range(4):
        distance = GAITS[gait].stance[axis] * abs(one.below[leg][axis] - one.middle[axis])
        # phases shorter than 0.02 strides are merged with their neighbours
        expected = orbit_speed(distance, alone, one.pendulum)
        side = math.copysign(1.0, one.below[leg][axis] - one.middle[axis])
        assert found[leg, axis] == pytest.approx(side * expected, rel=0.07), leg
        assert found[leg, 1 - axis] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize('stride', STRIDES)
@pytest.mark.parametrize('gait', ['trot', 'flying_trot', 'crawl', 'pronk'])
def test_no_sway_over_diagonal_feet_or_more_than_two(gait: str, stride: float) -> None:
    found = planner().sway_velocities(request(geometry(), gait, stride))
    assert_close(found, np.zeros((4, 2)), 1e-9, 'sway', 1.0)


# ---------------------------------------------------------------- forces


@pytest.mark.parametrize('gait', STEPPING)
def test_planned_forces_sum_to_the_load(gait: str) -> None:
    """In the middle of each phase they are what accelerates the body, and none pulls or is in the air."""
    made = plan(request(geometry(), gait, 0.1, (0.3, 0.0, 0.0)))
    one, contacts = geometry(), made.contacts
    assert made.forces.shape == contacts.down.shape
    assert (made.forces >= 0.0).all()
    assert not made.forces[~contacts.down].any()
    for k, (begin, end) in enumerate(zip(contacts.times[:-1], contacts.times[1:], strict=True)):
        _, _, a = made.com.at(0.5 * float(begin + end))
        load = one.weight * (1.0 + a[2] / one.g) if contacts.down[k].any() else 0.0
        assert made.forces[k].sum() == pytest.approx(load, rel=1e-9, abs=1e-9)


def test_planned_forces_know_where_feet_come_down() -> None:
    """A foot that has come down where its foothold is carries there: two feet share by their levers."""
    asked = request(geometry(), 'trot', 0.1, (0.4, 0.0, 0.0))
    made = plan(asked)
    one, contacts = geometry(), made.contacts
    for k, down in enumerate(contacts.down):
        stepped = (~contacts.down[:k]).any(axis=0)
        places = np.where(stepped[:, None], made.footholds, asked.feet)[down][:, :2]
        if len(places) != 2:
            continue
        p, _, a = made.com.at(0.5 * float(contacts.times[k] + contacts.times[k + 1]))
        zmp = (p - (p[2] / (a[2] + one.g)) * (a + one.g * UP))[:2]
        line = places[1] - places[0]
        lever = min(max(float((zmp - places[0]) @ line / (line @ line)), 0.0), 1.0)
        forces = made.forces[k, down]
        assert forces[1] / forces.sum() == pytest.approx(lever, abs=1e-6)


def test_a_lead_before_the_first_lift_off() -> None:
    """All feet are down for the lead; the plan is longer by it."""
    clock = clock_at(geometry(), 'trot', 0.02)
    lead, asked = 0.2, request(geometry(), 'trot', 0.02)
    contacts = asked.contacts
    led = ContactSchedule(
        np.append(TIME, contacts.times + lead), np.vstack([np.ones(4, dtype=np.bool_), contacts.down])
    )
    made = plan(dataclasses.replace(asked, contacts=led, time_left=asked.time_left + lead))
    assert made.end - TIME == pytest.approx(clock.period + lead)
    assert made.forces[0] == pytest.approx(np.full(4, 0.25 * geometry().weight), rel=0.5)
