# SPDX-License-Identifier: Apache-2.0
"""Everything between a velocity command and the references of whole-body control.

It ramps the command, decides when to walk and when to stand, runs the gait clock, determines which feet are
in contact, and plans. `Walker` has one, and so has planner_node, which sends its plans to another process.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.body_reference import BodyReference
from quad_dynamics.control.foot_speed import foot_speeds
from quad_dynamics.control.force_check import ForceCheck
from quad_dynamics.control.plan_follower import PlanFollower
from quad_dynamics.control.robot_view import RobotView, Viewer
from quad_dynamics.control.skid_steering import SkidSteering
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.stepping import Stepping
from quad_dynamics.control.stride_planner import StridePlanner
from quad_dynamics.control.walker_report import Counts
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.control.whole_body import stepping_direction
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.legs import LEG_ORDER
from quad_dynamics.model.model import Model
from quad_dynamics.planning.gait import GAITS, GaitClock
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.stance_geometry import stance_geometry

Vec3 = tuple[float, float, float]

_LONGEST_GAP = 0.2  # between two states; longer gaps count as this [s]
_COMMAND_ZERO = 0.01  # commands below this count as zero, in sqrt(g l) and sqrt(g / l)
_CALM = 0.08  # velocity below which the body counts as at rest, in sqrt(g l)
_CAPTURED = 0.25  # distance of the capture point from the centre of the feet at which it starts to walk, in l
_APPROACH, _APPROACH_STRIDES = 'trot', 1.0  # gait of the first steps of some gaits, and number of strides
_LEAD = 0.25  # strides before the first lift-off; with more, the body leaves the feet behind
_QUICKER = 2.0  # weight of a velocity error relative to a command when steps are shortened
_FIRST_STEPS = 1.0  # minimum number of strides
# A robot whose joints are within this distance of the standing pose, and whose base is tilted by less than
# this, does not need to get up first [rad or m, rad].
_AT_HOME, _LEVEL = 0.25, 0.28
_HIGH_ENOUGH = 0.85  # height at which a robot has got up, relative to that of standing


class GaitPlanner:
    """Decides how a quadruped walks at a commanded velocity.

    Attributes:
        geometry: lengths of the robot.
        steps: the legs.
        body: reference of the body.
        ground: the plane below the feet.
        counts: events since the reset.
        phase: 'stand', 'walk' or 'stop'.
        axes: (3, 3) orientation R_WC of the control frame.
    """

    def __init__(self, model: Model, settings: WalkerSettings) -> None:
        """Prepare everything for a robot.

        Raises:
            ArgumentError: the robot does not have four legs, or has no standing pose.
        """
        names = [leg.name for leg in model.legs]
        if not model.floating_base or model.standing is None or sorted(names) != sorted(LEG_ORDER):
            raise ArgumentError(
                f'{model.name} has the legs {names} and {"a" if model.standing is not None else "no"} '
                f'standing pose; expected a quadruped with the legs {list(LEG_ORDER)} that can stand'
            )
        self._settings, self._gait = settings, settings.gait
        self._legs = np.concatenate([leg.joint_indices for leg in model.legs])
        self._foot_of_leg = [model.foot_names.index(leg.foot) for leg in model.legs]
        self._viewer = Viewer(model)
        self.geometry = geometry = stance_geometry(model, settings.stand_height)
        order = [LEG_ORDER.index(name) for name in names]
        clock = GaitClock(GAITS[self._gait], 1.0 / geometry.rate, order)
        self.steps = Stepping(geometry, clock, settings)
        self.ground = Ground(geometry.length, clock.period)
        self.body = BodyReference(geometry, settings)
        self._planning = StridePlanner(geometry, order, self.steps, self.body, self.ground, settings)
        self._made: MotionPlan | None = None
        self._plans = PlanFollower(geometry.pendulum)
        self._force_check = ForceCheck(geometry.weight, len(names))
        self._target: Vec3 = (0.0, 0.0, 0.0)
        self.axes: Floats = np.eye(3)
        self._model = model
        along = stepping_direction(model)
        self.steps.skid = None if along is None else SkidSteering(geometry, along)
        self._find_foot_speeds(settings.step_height)
        self.reset(RobotState(0.0, np.zeros(model.nq), np.zeros(model.nv), None, np.zeros(model.nj)))

    def _find_foot_speeds(self, step_height: float) -> None:
        """Compute what the joints can follow in each gait."""
        steps = self.steps
        self._foot_speeds = {
            name: foot_speeds(
                self._model,
                self.geometry,
                gait,
                step_height,
                steps.fastest_in(gait),
                partial(steps.pace, gait),
            )
            for name, gait in GAITS.items()
        }
        self._set_swing()

    def _set_swing(self) -> None:
        """Set the swing motion that the joints can follow in the current gait."""
        found = self._foot_speeds[self._gait]
        self.steps.step_height, self.steps.even = found.step_height, found.even

    # ---------------------------------------------------------------- commands

    @property
    def gait(self) -> str:
        """Name of the gait; a change does not interrupt the stride of any leg."""
        return self._gait

    @gait.setter
    def gait(self, name: str) -> None:
        if name not in GAITS:
            raise ArgumentError(f'gait is {name!r}; expected one of {", ".join(map(repr, GAITS))}')
        self._gait = name
        if name != 'stand':
            self.steps.clock.change(GAITS[name])
            self._set_swing()

    @property
    def largest_command(self) -> Vec3:
        """Largest velocities that can be commanded, each alone [m/s, m/s, rad/s]."""
        x, y, turn = self._settings.max_velocity
        speed, fastest = self.geometry.speed, self.steps.fastest
        joints = self._foot_speeds[self._gait].alone
        most = (
            min(x * speed, fastest, joints[0]),
            min(y * speed, fastest, joints[1]),
            min(turn * self.geometry.rate, joints[2]),
        )
        skid = self.steps.skid
        if skid is None:
            return most
        # stance feet prevent lateral motion of the base; it turns while they slide
        turn = min(most[2], skid.fastest)
        return (most[0], 0.0, turn) if abs(skid.along) < 0.25 * math.pi else (0.0, most[1], turn)

    @property
    def target(self) -> Vec3:
        """The last command, within its limits [m/s, m/s, rad/s]."""
        return self._target

    def command(self, vx: float, vy: float, wz: float) -> bool:
        """Walk at a velocity in the heading frame from now on.

        Args:
            vx: forward [m/s].
            vy: to the left [m/s].
            wz: turning to the left [rad/s].

        Returns:
            Whether it is within `largest_command`, and the joints are fast enough for the combination;
            otherwise the robot walks more slowly.

        Raises:
            ArgumentError: a value is not finite; the command is unchanged.
        """
        wanted = (float(vx), float(vy), float(wz))
        for name, value in zip(('vx', 'vy', 'wz'), wanted, strict=True):
            if not math.isfinite(value):
                raise ArgumentError(f'{name} is {value}; expected a finite number')
        most = self.largest_command
        x, y, turn = (min(max(v, -m), m) for v, m in zip(wanted, most, strict=True))
        share = self._foot_speeds[self._gait].share(x, y, turn)
        slower = 1.0 if share < 1.0 + 1e-9 else 1.0 / share
        self._target = (slower * x, slower * y, slower * turn)
        within = self._target == wanted
        self.counts.clipped += not within
        return within

    @property
    def walks(self) -> bool:
        """Whether it lifts its feet."""
        return self.phase == 'walk' and self._now >= self._lead_until

    def change(self, settings: WalkerSettings) -> None:
        """Change settings without a restart; the height is kept."""
        if settings.gait != self._settings.gait:
            self.gait = settings.gait
        if settings.step_height != self._settings.step_height:
            self._find_foot_speeds(settings.step_height)
        self.body.change(settings)
        self._planning.change(settings)
        self._settings = self.steps.settings = settings

    # ---------------------------------------------------------------- states

    def reset(self, state: RobotState) -> None:
        """Restart at the time of a state; the next view gives the initial pose."""
        self.counts = Counts()
        self._force_check.reset()
        self.phase = 'stand'
        self._must_begin = True
        self._now, self._walks_since = state.time, -math.inf
        self._plans.reset()
        self._planning.reset()
        self.steps.schedule = self.steps.planned = self._made = None
        self._lead_until = -math.inf
        self._obeys = self._is_up = self._waits = False

    def stands(self, state: RobotState) -> bool:
        """Whether the joints are close to the standing pose, and the base is level."""
        near = np.abs(state.q[7:] - self.geometry.posture)[self._legs].max() < _AT_HOME
        return bool(near and _is_level(state))

    def _is_raised(self, view: RobotView) -> bool:
        """Whether the body is up and at rest, wherever the feet are; else it may still be getting up."""
        if self.stands(view.state):
            return True
        below = self.ground.height_at(float(view.com[0]), float(view.com[1]))
        high = view.com[2] - below > _HIGH_ENOUGH * self.geometry.com_height
        return bool(high and _is_level(view.state) and self._is_calm(*view.velocity))

    def _is_calm(self, *velocity: float) -> bool:
        """Whether a velocity, or its components along the ground, counts as rest [m/s]."""
        return math.hypot(*velocity) < _CALM * self.geometry.speed

    def view(self, state: RobotState) -> RobotView:
        """Quantities derived from a state; only one view is valid at a time.

        Raises:
            ArgumentError: the state is not finite, or has a wrong shape.
        """
        return self._viewer.view(state)

    def advance(self, view: RobotView, asked: list[float]) -> float:
        """Advance to a view: command, phase, clock, contacts, ground, and reference of the body.

        Args:
            view: current view.
            asked: normal forces that were commanded for the feet [N].

        Returns:
            Time that has passed [s].
        """
        if self._must_begin:
            self._begin(view)
        dt = min(max(view.time - self._now, 0.0), _LONGEST_GAP)
        self._now = view.time
        steps, body, ground, state = self.steps, self.body, self.ground, view.state
        if self._settings.planner == 'external':
            self._obey(view)
        leads = self._keep_time(view, dt)
        carried = self._carried(state, dt)
        steps.touch(view.time, 'stand' if leads else self.phase, view.motions, carried, asked, self.counts)
        ground.update(steps.soles, dt)
        body.move(view.com, view.yaw, ground, dt, steps.support(body.yaw, self.phase))
        body.adapt(view.velocity, dt)
        self.axes = ground.axes(body.yaw)
        if self.phase == 'walk':
            steps.adapt_lean(view.R_WB, body.orientation(self.axes)[:, 2], view.yaw, dt)
        self._plan(view)
        return dt

    def _carried(self, state: RobotState, dt: float) -> list[float] | None:
        """Measured normal forces of the feet; None if there are none that can be used [N]."""
        if state.foot_forces is None:
            return None
        carried: list[float] = (state.foot_forces @ self.ground.normal)[self._foot_of_leg].tolist()
        self._force_check.look(carried, self.phase == 'stand', dt)
        if self._force_check.is_good:
            return carried
        self.counts.ignored_forces += 1
        return None

    def _keep_time(self, view: RobotView, dt: float) -> bool:
        """Follow the command, decide the phase, advance the clock; whether the first lift-off is pending."""
        steps, body = self.steps, self.body
        if self._obeys:
            return False
        body.follow(self._wanted(view.time), dt)
        if steps.schedule is not None:  # touch-downs follow the external plan
            return False
        self._decide(view)
        steps.set_pace(self._pace(view), view)
        leads = view.time < self._lead_until
        self._go_over(view.time)
        if self.phase != 'stand' and not leads:
            steps.clock.advance(dt)
        return leads

    def _pace(self, view: RobotView) -> list[float]:
        """The command plus the weighted velocity error, so that steps are quicker after a push."""
        pace = list(self.body.command)
        if self._settings.planner != 'simple' and not self.body.brakes:
            vx, vy = self.body.com_velocity(view.yaw)
            off = math.hypot(view.velocity[0] - vx, view.velocity[1] - vy)
            pace[0] += math.copysign(_QUICKER * off, pace[0])
        return pace

    def _begin(self, view: RobotView) -> None:
        """Start with all feet on the ground."""
        self.steps.reset(view.time, view.motions)
        self.ground.reset(self.steps.soles)
        self.body.reset(view.com, view.yaw)
        self._now, self._must_begin = view.time, False

    # ---------------------------------------------------------------- plans

    @property
    def motion_plan(self) -> MotionPlan | None:
        """The current plan; None if there is none."""
        return self._plans.plan

    def update(self, state: RobotState) -> MotionPlan | None:
        """The plan for a state if one is due, to be followed by another process; else None.

        Raises:
            ArgumentError: the state is not finite, or has a wrong shape.
        """
        self._made = None
        view = self.view(state)
        if state.time - self._now > _LONGEST_GAP and not self._must_begin:
            self.reset(state)
            self._waits = True  # until the follower has stopped the robot
        if self._waits and not self._is_calm(view.velocity[0], view.velocity[1]):
            return None
        self._waits = False
        if not self._is_up:
            self._begin(view)
            self._is_up = self._is_raised(view)
        if self._is_up:
            self.advance(view, [0.0] * len(self._foot_of_leg))
            self.steps.targets(view, self.body, self.ground)  # foot targets, which the balance check uses
            return self._made
        if not self._planning.is_due(view.time, self._settings.plan_period):
            return None
        return self._make(view)

    def follow(self, plan: MotionPlan) -> None:
        """Follow an external plan from now on; only with `planner` 'external'."""
        self._plans.take(plan)

    def _make(self, view: RobotView) -> MotionPlan | None:
        """A plan for a view; None if none has been found for the time `StridePlanner.hold`."""
        lead = max(self._lead_until - view.time, 0.0)
        return self._planning.make(
            view, self.phase, self._gait, lead, self._plans, self._settings, self.counts
        )

    def _plan(self, view: RobotView) -> None:
        """Make plans, and take the reference of the body and the footholds from them."""
        settings, plans = self._settings, self._plans
        self.steps.planned = None
        if settings.planner == 'simple':
            return
        if settings.planner == 'com_splines' and self._planning.is_due(view.time, settings.plan_period):
            self._made = self._make(view)
            if self._made is not None:
                plans.take(self._made)
        if settings.planner == 'com_splines':
            plans.advance(view.time, settings.plan_delay, view.com, view.velocity)
        plan = plans.plan
        if plan is None or self.phase == 'stand' or plan.phase == 'stand':
            return
        if settings.planner == 'external' and not self._obeys:
            return
        if self._lacks_plans(view.time):
            return
        self.body.track(*plans.reference(view.time))
        self.steps.planned = plan.footholds.tolist()
        self.steps.surprise = plans.surprise()

    def _lacks_plans(self, time: float) -> bool:
        """Whether its own plans have failed for so long that it must stop, with simple steps."""
        if self._settings.planner != 'com_splines' or self.phase == 'stand' or self._plans.plan is None:
            return False
        return self._plans.age(time) > self._planning.hold

    def _obey(self, view: RobotView) -> None:
        """Take phase, command and contacts from an external plan, unless it is too old.

        If it is, swing feet touch down as planned, and then this planner takes over: it stops, with its own
        steps if necessary.
        """
        plans, body, steps = self._plans, self.body, self.steps
        plans.advance(view.time, 0.0, view.com, view.velocity)
        plan = plans.plan
        fresh = plan is not None and plans.age(view.time) <= self._settings.plan_timeout
        if fresh and plan is not None:
            self._obeys, self.phase = True, plan.phase
            self._target = plan.command
            body.command, body.change_rate = list(plan.command), [0.0, 0.0, 0.0]
            body.yaw = plan.yaw + plan.command[2] * (view.time - plan.time)
            steps.schedule = plan.contacts
            return
        if self._obeys:
            self._obeys, self._target = False, (0.0, 0.0, 0.0)
            self.counts.stale_plans += 1
            self.phase = 'stop' if self.phase == 'walk' else self.phase
        if steps.schedule is not None and steps.down.all():
            steps.schedule = None

    # ---------------------------------------------------------------- walking or standing

    def _wanted(self, time: float) -> Vec3:
        """The command, or zero if there are no plans to follow it."""
        return (0.0, 0.0, 0.0) if self._lacks_plans(time) else self._target

    def _decide(self, view: RobotView) -> None:
        """Decide whether to walk, to stop, or to stand."""
        geometry, com, velocity = self.geometry, view.com, view.velocity
        x, y, turn = self._wanted(view.time)
        moving = max(math.hypot(x, y) / geometry.speed, abs(turn) / geometry.rate) > _COMMAND_ZERO
        wants = self._gait != 'stand' and (moving or not self._settings.stand_at_zero)
        if self.phase == 'walk':
            ramped = max(map(abs, self.body.command)) < 1e-9
            calm = self._is_calm(velocity[0], velocity[1])
            walked = self._now - self._walks_since > _FIRST_STEPS * self.steps.clock.period
            if not wants and ramped and calm and walked:
                self.phase = 'stop'
        elif wants or self._is_disturbed(com, velocity):
            if self.phase == 'stand':
                self._set_out()
                if self._settings.planner == 'com_splines' and not self._is_disturbed(com, velocity):
                    self._lead_until = self._now + _LEAD * self.steps.clock.period
            self.phase, self._walks_since = 'walk', self._now
        elif self.phase == 'stop' and self.steps.down.all():
            self.phase = 'stand'

    def _set_out(self) -> None:
        """Start to walk. Gaits with a narrower stance start with steps of a trot."""
        clock, gait = self.steps.clock, GAITS[self._gait]
        if gait.duty < 1.0 and gait != clock.gait:
            clock.gait = gait
        if gait.stance != (1.0, 1.0) and self._settings.planner == 'com_splines':
            clock.gait = GAITS[_APPROACH]
        clock.stride = 0.0

    def _go_over(self, time: float) -> None:
        """Change from the first steps to the gait, and back to them if plans fail."""
        clock, gait = self.steps.clock, GAITS[self._gait]
        if gait.duty == 1.0:
            return
        if self._lacks_plans(time):
            clock.change(GAITS[_APPROACH])
        elif time - max(self._walks_since, self._lead_until) > _APPROACH_STRIDES * clock.period:
            clock.change(gait)

    def _is_disturbed(self, com: Floats, velocity: Floats) -> bool:
        """Whether the capture point has left the centre of the feet, so that a step is needed."""
        wanted = self.steps.support(self.body.yaw, 'stand')
        assert wanted is not None
        pendulum = self.geometry.pendulum
        dx = float(com[0] + pendulum * velocity[0]) - wanted[0]
        dy = float(com[1] + pendulum * velocity[1]) - wanted[1]
        return math.hypot(dx, dy) > _CAPTURED * self.geometry.length


def _is_level(state: RobotState) -> bool:
    """Whether the base is hardly tilted."""
    return 2.0 * math.hypot(state.q[3], state.q[4]) < _LEVEL
