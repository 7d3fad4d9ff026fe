# SPDX-License-Identifier: Apache-2.0
"""The parts of walking one by one: swing, footholds, clock, contacts, ground, references; and bad input."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from closeness import assert_close, derivative
from control_loop import command, robot, state_of
from simple_robots import turn
from slow_variants import slow_but

from quad_dynamics.api.drives import foot_position
from quad_dynamics.control.body_reference import rotation_vector
from quad_dynamics.control.force_check import ForceCheck
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.leg_contact import LegContact
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.swing import swing_motion
from quad_dynamics.control.walker import Walker
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.footholds import foothold, within_reach
from quad_dynamics.planning.gait import GAITS, GaitClock
from quad_dynamics.planning.ground import Ground
from quad_dynamics.simulation.simulator import Simulator
from quad_dynamics.terrain.terrain import Box, Plane

DT = 0.002  # of the controller [s]
SWING = np.linspace(0.0, 1.0, 101).tolist()

# ---------------------------------------------------------------- swing


@pytest.mark.parametrize('even', [False, True])
@pytest.mark.parametrize('progress', [0.02, 0.1, 0.37, 0.5, 0.8, 0.99])
def test_swing_derivatives(progress: float, even: bool) -> None:
    start, end, duration = (0.1, -0.2, 0.02), (0.3, -0.1, 0.05), 0.23

    def motion(time: float) -> tuple[np.ndarray, np.ndarray]:
        place, speed, _ = swing_motion(progress + time / duration, duration, start, end, 0.07, even)
        return np.array(place), np.array(speed)

    _, speed, acceleration = swing_motion(progress, duration, start, end, 0.07, even)
    # differences of polynomials of the sixth order, with steps of 1 / 1000 of the swing
    assert_close(speed, derivative(lambda t: motion(t)[0], 2e-4), 1e-7, 'velocity')
    assert_close(acceleration, derivative(lambda t: motion(t)[1], 2e-4), 1e-7, 'acceleration')


@pytest.mark.parametrize('even', [False, True])
def test_swing_ends(even: bool) -> None:
    """It begins and ends at rest, without acceleration, and is highest in the middle."""
    start, end = (0.1, -0.2, 0.02), (0.3, -0.1, 0.05)
    for progress, place in ((0.0, start), (1.0, end)):
        found = swing_motion(progress, 0.2, start, end, 0.07, even)
        assert found[0] == pytest.approx(place, abs=1e-15)
        assert found[1] == found[2] == (0.0, 0.0, 0.0)
    assert swing_motion(0.5, 0.2, start, end, 0.07, even)[0] == pytest.approx((0.2, -0.15, 0.105))
    # beyond the end the foot stays where it is
    assert swing_motion(1.2, 0.2, start, end, 0.07, even)[0] == pytest.approx(end)


def test_an_even_swing_is_slower_at_its_fastest() -> None:
    usual, even = (
        max(swing_motion(t, 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.0, even)[1][0] for t in SWING)
        for even in (False, True)
    )
    assert usual == pytest.approx(15.0 / 8.0)
    assert even == pytest.approx(1.0 / (1.0 - 0.15))


# ---------------------------------------------------------------- forces that cannot be


@pytest.mark.parametrize(
    ('forces', 'stands', 'is_good'),
    [
        ((12.0, 8.0, 9.0, 11.0), True, True),
        ((20.0, 20.0, -1.0, -2.0), False, True),
        ((20.0, 20.0, 0.0, -6.0), False, False),
        ((25.0, 10.0, 15.0, 15.0), True, False),
        ((25.0, 10.0, 15.0, 15.0), False, True),
    ],
)
def test_forces_that_cannot_be_are_not_believed(forces: Any, stands: bool, is_good: bool) -> None:
    check = ForceCheck(40.0, 4)
    check.look((-50.0, 10.0, 10.0, 10.0), stands, DT)  # one sample means nothing
    assert check.is_good
    check.reset()
    for _ in range(200):
        check.look(forces, stands, DT)
    assert check.is_good == is_good
    check.look((10.0, 10.0, 10.0, 10.0), stands, 1.0)
    assert check.is_good == is_good
    check.reset()
    assert check.is_good


# ---------------------------------------------------------------- footholds


def pendulum(x: float, v: float, foot: float, time: float, constant: float) -> tuple[float, float]:
    """A linear inverted pendulum after some time: position and velocity."""
    c, s = math.cosh(time / constant), math.sinh(time / constant)
    return foot + (x - foot) * c + constant * v * s, (x - foot) / constant * s + v * c


def test_a_pushed_pendulum_comes_to_rest_above_the_foothold() -> None:
    """With nothing wanted and the whole gain, the foothold is the capture point."""
    constant, v = 0.18, 0.6
    foot = foothold((0.0, 0.0), (v, -v), (0.0, 0.0), 0.0, 0.25, constant, 1.0)
    for i, sign in ((0, 1.0), (1, -1.0)):
        x, speed = pendulum(0.0, sign * v, foot[i], 2.0, constant)
        assert abs(speed) < 1e-4
        assert x == pytest.approx(foot[i], abs=1e-4)


@pytest.mark.parametrize('wanted', [-0.4, 0.0, 0.5, 1.0])
@pytest.mark.parametrize('gain', [0.8, 1.0])
def test_a_pendulum_settles_at_the_wanted_velocity(wanted: float, gain: float) -> None:
    """A free pendulum that steps by the law: it settles near what is wanted, from any velocity."""
    constant, stance = 0.18, 0.22
    for start in (wanted - 0.3, wanted + 0.3):
        x, v, ways = 0.0, start, []
        for _ in range(40):
            foot = foothold((x, 0.0), (v, 0.0), (wanted, 0.0), 0.0, stance, constant, gain)[0]
            begin = x
            x, v = pendulum(x, v, foot, stance, constant)
            ways.append((x - begin) / stance)
        assert abs(ways[-1] - ways[-2]) < 1e-3, 'it has not settled'
        # nothing holds the velocity of a free pendulum, as forces do that of a robot
        assert abs(ways[-1] - wanted) < 0.15 * abs(wanted) + 1e-3


def test_foothold_is_led_by_time_left_and_velocity() -> None:
    at_once = foothold((0.0, 0.0), (0.5, 0.1), (0.5, 0.1), 0.0, 0.2, 0.18, 0.8)
    later = foothold((0.0, 0.0), (0.5, 0.1), (0.5, 0.1), 0.1, 0.2, 0.18, 0.8)
    assert np.subtract(later, at_once) == pytest.approx((0.05, 0.01))
    faster = foothold((0.0, 0.0), (0.7, 0.1), (0.5, 0.1), 0.0, 0.2, 0.18, 0.8)
    assert faster[0] - at_once[0] == pytest.approx(0.2 * 0.8 * 0.18)


def test_within_reach() -> None:
    assert within_reach((1.1, 2.0), (1.0, 2.0), 0.2) == (1.1, 2.0)
    assert within_reach((1.0, 3.0), (1.0, 2.0), 0.2) == pytest.approx((1.0, 2.2))


# ---------------------------------------------------------------- gait


@pytest.mark.parametrize('name', ['trot', 'crawl'])
def test_every_foot_is_down_for_its_duty(name: str) -> None:
    gait, unit = GAITS[name], 0.18
    clock = GaitClock(gait, unit, range(4))
    count, landings = np.zeros(4), [[] for _ in range(4)]
    before = [clock.is_stance(k) for k in range(4)]
    steps = 4000
    for step in range(steps):
        clock.advance(clock.period / 1000.0)
        for k in range(4):
            is_down = clock.is_stance(k)
            count[k] += is_down
            assert (clock.swing_progress(k) == 1.0) == is_down or clock.swing_progress(k) > 0.998
            if is_down and not before[k]:
                landings[k].append((step + 1) / 1000.0 % 1.0)
            before[k] = is_down
    assert np.abs(count / steps - gait.duty).max() < 0.003
    for k, found in enumerate(landings):
        away = (np.array(found) - gait.touchdown[k] + 0.5) % 1.0 - 0.5
        assert np.abs(away).max() < 0.003
    assert clock.stance_time + clock.swing_time == pytest.approx(clock.period)
    assert clock.period == pytest.approx(gait.period * unit)


def test_gaits_are_what_they_are_called() -> None:
    """Diagonal feet trot together; in a crawl, three feet are down at least."""
    clock = GaitClock(GAITS['trot'], 0.18, range(4))
    crawl = GaitClock(GAITS['crawl'], 0.18, range(4))
    for _ in range(1000):
        clock.advance(clock.period / 1000.0)
        crawl.advance(crawl.period / 1000.0)
        assert clock.is_stance(0) == clock.is_stance(3)
        assert clock.is_stance(1) == clock.is_stance(2)
        assert clock.is_stance(0) or clock.is_stance(1)
        assert sum(crawl.is_stance(k) for k in range(4)) >= 3


def test_legs_in_another_order() -> None:
    clock, other = (GaitClock(GAITS['crawl'], 0.18, order) for order in ((0, 1, 2, 3), (3, 1, 0, 2)))
    clock.advance(0.3)
    other.advance(0.3)
    assert [other.phase(k) for k in range(4)] == [clock.phase(k) for k in (3, 1, 0, 2)]


# ---------------------------------------------------------------- contact


class Foot:
    """A foot whose contact is asked every 2 ms.

    Attributes:
        contact: the state machine.
        time: now [s].
    """

    def __init__(self) -> None:
        self.contact, self.time = LegContact(10.0), 0.0

    def run(
        self, seconds: float, force: float, scheduled: bool, progress: float = 1.0, asked: float = 0.0
    ) -> float:
        """Let time pass; returns when the state has first changed, from now, or nan."""
        begin, changed = self.time, math.nan
        while self.time < begin + seconds - 1e-9:
            self.contact.measure(force, asked, progress)
            if self.contact.update(self.time, scheduled, progress, True) and math.isnan(changed):
                changed = self.time - begin
            self.time += DT
        return changed

    def swing(self, force: float = 0.0) -> None:
        """From the ground to the end of a swing."""
        for progress in np.linspace(0.0, 0.55, 60):
            self.run(DT, force, False, float(progress))
        assert self.contact.state == 'swing'


def test_touchdown_in_time() -> None:
    foot = Foot()
    foot.run(0.1, 40.0, True, asked=40.0)
    foot.swing()
    foot.run(2 * DT, 40.0, False, 0.99)
    assert foot.contact.is_down
    foot.run(DT, 40.0, True)
    assert foot.contact.state == 'stance'


def test_early_touchdown_within_5_ms() -> None:
    foot = Foot()
    foot.swing()
    assert foot.run(0.02, 40.0, False, 0.8) <= 0.005
    assert foot.contact.state == 'early'
    assert foot.contact.is_down


def test_a_bump_early_in_the_swing_is_no_touchdown() -> None:
    foot = Foot()
    foot.run(0.02, 0.0, False, 0.1)
    foot.run(0.02, 40.0, False, 0.3)
    assert foot.contact.state == 'swing'


def test_late_touchdown_within_5_ms() -> None:
    foot = Foot()
    foot.swing()
    foot.run(0.03, 0.0, True)
    assert foot.contact.state == 'late'
    assert not foot.contact.is_down
    assert foot.run(0.02, 40.0, True) <= 0.005
    assert foot.contact.state == 'stance'


def test_a_lost_foot_is_noticed_within_5_ms_and_found_again() -> None:
    foot = Foot()
    foot.run(0.2, 40.0, True, asked=40.0)
    assert foot.run(0.02, 0.0, True, asked=40.0) <= 0.005
    assert foot.contact.state == 'lost'
    assert foot.run(0.02, 40.0, True) <= 0.005
    assert foot.contact.state == 'stance'


def test_one_wrong_sample_is_nothing() -> None:
    foot = Foot()
    foot.run(0.2, 40.0, True, asked=40.0)
    assert math.isnan(foot.run(DT, 0.0, True, asked=40.0))
    foot.swing()
    assert math.isnan(foot.run(DT, 40.0, False, 0.8))
    assert foot.contact.state == 'swing'


def test_the_zero_of_a_sensor_is_found() -> None:
    """A sensor that reads 14 N in the air is beyond the threshold, but for its zero."""
    foot = Foot()
    for _ in range(3):
        foot.run(0.1, 54.0, True, asked=40.0)
        foot.contact.state = 'swing'
        foot.swing(14.0)
    assert math.isnan(foot.run(0.02, 14.0, False, 0.8))
    assert foot.run(0.02, 54.0, False, 0.8) <= 0.005


def test_without_sensors() -> None:
    """The schedule, and a foot that stops on its way down."""
    contact = LegContact(10.0)
    contact.update(0.0, False, 0.1, False)
    for k in range(5):
        contact.guess(-0.5, -0.5)
        assert not contact.update(0.1 + DT * k, False, 0.8, False)
    for k in range(2):
        contact.guess(-0.5, 0.0)
        changed = contact.update(0.11 + DT * k, False, 0.8, False)
    assert changed == 'early'
    contact.reset(0.2)
    contact.update(0.2, False, 0.1, False)
    contact.guess(-0.5, -0.5)
    assert contact.update(0.4, True, 1.0, False) == 'stance'


# ---------------------------------------------------------------- ground, references


def test_the_ground_is_the_plane_through_the_feet() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        feet = np.array([[0.2, 0.15], [0.2, -0.15], [-0.2, 0.15], [-0.2, -0.15]])
        feet += rng.normal(scale=0.03, size=(4, 2))
        soles = np.column_stack([feet, 0.2 * rng.normal(scale=0.1, size=4) + 0.3 * feet[:, 0]])
        ground = Ground(0.3, 0.4)
        ground.reset(soles.tolist())
        A = np.column_stack([np.ones(4), feet])
        h, a, b = np.linalg.lstsq(A, soles[:, 2], rcond=None)[0]
        assert ground.slope == pytest.approx((a, b), abs=1e-12)
        assert ground.height_at(0.7, -0.4) == pytest.approx(h + 0.7 * a - 0.4 * b)
        normal = np.array([-a, -b, 1.0]) / np.sqrt(1.0 + a * a + b * b)
        assert_close(ground.normal, normal, what='normal')
        R = np.asarray(ground.axes(0.8))
        assert_close(R.T @ R, np.eye(3), what='axes')
        assert np.linalg.det(R) > 0.0
        assert_close(R[:, 2], normal, what='third axis')
        assert math.atan2(R[1, 0], R[0, 0]) == pytest.approx(0.8, abs=0.1)


def test_feet_in_one_line_show_no_slope() -> None:
    ground = Ground(0.3, 0.4)
    ground.reset([[x, 0.0, 0.1] for x in (-0.2, -0.1, 0.1, 0.2)])
    assert ground.slope == (0.0, 0.0)
    assert ground.height_at(0.0, 0.0) == pytest.approx(0.1)


@pytest.mark.parametrize('angle', [0.0, 1e-12, 1e-6, 0.3, 2.0, 3.1, math.pi - 1e-6])
def test_rotation_vector(angle: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        assert_close(rotation_vector(turn(axis, angle)), angle * axis, 1e-8, 'axis times angle', 1.0)


# ---------------------------------------------------------------- the walker


class Walk:
    """A robot that walks in the simulator.

    Attributes:
        walker: the controller.
        sim: the simulator.
        q: configurations that the controller saw.
        tau: torques that drives give in these states when they get the setpoints.
        commands: that it followed, after their ramps.
    """

    def __init__(self, name: str = 'mini_cheetah', sensors: bool = True, **settings: Any) -> None:
        model = robot(name)
        self.walker, self.sim = Walker(model), Simulator(model, latency=0.004, **settings)
        self.sim.reset()
        self._sensors = sensors
        self._gains = drive_gains(model, self.walker.settings, self.sim.settings.dt)
        self.walker.reset(self._state())
        self.q: list[np.ndarray] = []
        self.tau: list[np.ndarray] = []
        self.commands: list[tuple[float, float, float]] = []

    def _state(self) -> RobotState:
        seen = state_of(self.sim)
        return RobotState(seen.time, seen.q, seen.u, seen.foot_forces if self._sensors else None, seen.tau)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.sim.run(self._turn, seconds, progress=False)

    def _turn(self, sim: Any) -> Any:
        if sim.step_count % 2:
            return None
        state = self._state()
        setpoint = self.walker.update(state)
        self.q.append(state.q)
        kp, kd = self._gains
        drives = setpoint.tau.copy()
        if setpoint.q is not None:
            drives += kp * (setpoint.q - state.q[7:])
        if setpoint.qd is not None:
            drives += kd * (setpoint.qd - state.u[6:])
        self.tau.append(drives)
        assert self.walker.plan is not None
        self.commands.append(self.walker.plan.command)
        return command(setpoint, *self._gains)

    def assert_within_limits(self) -> None:
        """No torque that is not finite, or above its limit."""
        tau = np.array(self.tau)
        assert np.isfinite(tau).all()
        assert (np.abs(tau) <= self.sim.model.effort_limit * (1.0 + 1e-9)).all()


@functools.cache
def a_walker() -> Walker:
    return Walker(robot('mini_cheetah'))


@pytest.mark.parametrize('name', ['vx', 'vy', 'wz'])
@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_a_command_that_is_not_finite_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=f'^{name} is '):
        a_walker().command(**{'vx': 0.0, 'vy': 0.0, 'wz': 0.0, name: value})


def test_a_huge_command_is_limited_and_counted() -> None:
    walk = Walk()
    assert walk.walker.command(0.3, 0.0, 0.0)
    assert walk.walker.counts.clipped == 0
    assert not walk.walker.command(1e9, -1e300, 1e6)
    assert walk.walker.counts.clipped == 1
    walk.run(0.5)
    most = np.array(walk.walker.largest_command)
    assert (np.abs(walk.commands) <= most + 1e-12).all()
    walk.assert_within_limits()


def test_commands_are_followed_by_ramps() -> None:
    """No faster than allowed, and all the way."""
    walk = Walk()
    settings = walk.walker.settings
    length = walk.walker.largest_command[0] ** 2 / settings.max_velocity[0] ** 2 / 9.81
    allowed = np.array(settings.max_acceleration) * [9.81, 9.81, 9.81 / length] * DT
    walk.walker.command(0.4, 0.1, -0.5)
    walk.run(1.5)
    steps = np.abs(np.diff(walk.commands, axis=0))
    assert (steps <= allowed * (1.0 + 1e-6)).all()
    assert walk.commands[-1] == pytest.approx((0.4, 0.1, -0.5))
    begin = len(walk.commands)
    walk.walker.command(0.0, 0.0, 0.0)
    walk.run(2.0)
    assert walk.commands[-1] == pytest.approx((0.0, 0.0, 0.0))
    assert walk.walker.phase == 'stand'
    stops = np.abs(np.diff(walk.commands[begin - 1 :], axis=0))
    allowed = settings.stop_acceleration * np.array([9.81, 9.81, 9.81 / length]) * DT
    assert (stops <= allowed * (1.0 + 1e-6)).all()
    assert stops[0] == pytest.approx(allowed)


def test_trots_without_foot_sensors() -> None:
    walk = Walk(sensors=False)
    walk.walker.command(0.4, 0.0, 0.0)
    walk.run(3.0)
    assert walk.q[-1][2] > 0.8 * walk.walker.standing_height
    assert walk.q[-1][0] - walk.q[0][0] > 0.6
    walk.assert_within_limits()


@pytest.mark.parametrize('gap', slow_but([0.02], [0.02, 0.06]))
def test_legs_that_hit_a_wall(gap: float) -> None:
    """A wall in front of the feet: the robot does not get through, and asks for nothing absurd."""
    model = robot('mini_cheetah')
    front = max(foot_position(model, np.array(model.standing), foot)[0] for foot in model.foot_names)
    wall = Box(size=(0.2, 2.0, 1.0), position=(front + 0.02 + gap + 0.1, 0.0, 0.5))
    walk = Walk(terrain=[Plane(), wall])
    walk.walker.command(0.5, 0.0, 0.0)
    walk.run(3.0)
    walk.assert_within_limits()
    assert np.isfinite(walk.q).all()
    assert walk.q[-1][0] < walk.q[0][0] + 0.3, 'it went through the wall'


def test_bit_identical_twice() -> None:
    runs = []
    for _ in range(2):
        walk = Walk()
        walk.walker.command(0.4, 0.1, 0.3)
        walk.run(2.0)
        runs.append((np.array(walk.q), np.array(walk.tau)))
    assert runs[0][0].tobytes() == runs[1][0].tobytes()
    assert runs[0][1].tobytes() == runs[1][1].tobytes()


@pytest.mark.slow
def test_a_reset_forgets_everything() -> None:
    """The same walker after a reset does what a new one does."""
    walk = Walk()
    walk.walker.command(0.4, 0.1, 0.3)
    walk.run(1.0)
    again = Walk()
    again.walker = walk.walker
    again.walker.command(0.0, 0.0, 0.0)
    again.walker.reset(again._state())
    fresh = Walk()
    for one in (again, fresh):
        one.walker.command(0.3, 0.0, 0.0)
        one.run(1.0)
    assert np.array(again.tau).tobytes() == np.array(fresh.tau).tobytes()
