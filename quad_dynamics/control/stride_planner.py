# SPDX-License-Identifier: Apache-2.0
"""Makes motion plans for a walking robot: requests to the motion planner, and their timing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.control.body_reference import BodyReference
from quad_dynamics.control.plan_follower import PlanFollower
from quad_dynamics.control.robot_view import RobotView
from quad_dynamics.control.stepping import Stepping
from quad_dynamics.control.walker_report import Counts
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.planning.com_problem import ComSettings, ComState
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.foothold_planner import FootholdSettings
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.motion_plan import ComSpline, MotionPlan
from quad_dynamics.planning.planner import MotionPlanner, PlanRequest
from quad_dynamics.planning.stance_geometry import StanceGeometry
from quad_dynamics.planning.support_sequence import contact_schedule

# Time constant with which the initial state of plans moves from the last plan to the measured state [s]; and
# the largest difference, in l and sqrt(g l).
_LEAK, _FARTHEST, _FASTEST = 0.3, 0.05, 0.1
_AHEAD = 0.3  # look-ahead of plans in the ramp of the command, in strides
# Time for which the last plan is kept if no new one is found: at most a stride of a trot, in sqrt(l / g).
_HOLD = 2.3


class StridePlanner:
    """Makes one plan per period, and keeps the last one if there is no new one."""

    def __init__(
        self,
        geometry: StanceGeometry,
        order: Sequence[int],
        steps: Stepping,
        body: BodyReference,
        ground: Ground,
        settings: WalkerSettings,
    ) -> None:
        """Prepare the motion planner.

        Args:
            geometry: of the robot.
            order: which leg each is: 0 front left, 1 front right, 2 rear left, 3 rear right.
            steps: its legs.
            body: reference of its body.
            ground: below it.
            settings: of walking.
        """
        self._geometry, self._steps, self._body, self._ground = geometry, steps, body, ground
        self._order, self._optimised = order, (ComSettings(), FootholdSettings())
        self._motion = MotionPlanner(geometry, order, *self._optimised)
        self.change(settings)
        self.reset()

    def change(self, settings: WalkerSettings) -> None:
        """Change settings; existing plans are kept."""
        com = ComSettings(
            n_ineq=settings.n_ineq,
            lambda_lin=settings.lambda_lin,
            lambda_quad=settings.lambda_quad,
            iterations=settings.plan_iterations,
            mu=settings.mu,
            time_limit=settings.plan_time_limit or None,
        )
        optimised = com, FootholdSettings(capture_gain=settings.capture_gain)
        if optimised != self._optimised:
            self._motion, self._optimised = MotionPlanner(self._geometry, self._order, *optimised), optimised

    def reset(self) -> None:
        """Restart."""
        self._number, self._solved_at = -1, -math.inf

    @property
    def hold(self) -> float:
        """Time for which the last plan is kept if no new one is found [s]."""
        return min(self._steps.clock.period, _HOLD / self._geometry.rate)

    def is_due(self, time: float, period: float) -> bool:
        """Whether a time is the first in its period; periods are the same in all processes."""
        number = math.floor(time / period + 1e-6)
        found, self._number = number != self._number, number
        return found

    def make(
        self,
        view: RobotView,
        phase: str,
        gait: str,
        lead: float,
        follower: PlanFollower,
        settings: WalkerSettings,
        counts: Counts,
    ) -> MotionPlan | None:
        """The plan for a view; None if none has been found for the time `hold`.

        Args:
            view: current view.
            phase: 'walk', 'stop' or 'stand'.
            gait: its name.
            lead: time until the first lift-off is allowed [s].
            follower: of plans.
            settings: of walking.
            counts: to be updated.
        """
        counts.plans += 1
        if phase == 'stand':
            return self._still(view, gait)
        found = self._motion.plan(self._request(view, phase, gait, lead, follower, settings), follower.plan)
        if found is not None:
            self._solved_at = view.time
            return found
        counts.plan_failures += 1
        last = follower.plan
        if last is not None and view.time - self._solved_at < self.hold:
            counts.kept_plans += 1
            return replace(last, time=view.time, yaw=self._body.yaw)
        return None

    def _still(self, view: RobotView, gait: str) -> MotionPlan:
        """The plan to stay above the feet; swing feet touch down."""
        steps, body, ground = self._steps, self._body, self._ground
        contacts = contact_schedule(steps.clock, steps.down, 'stand', view.time)
        place = steps.support(body.yaw, 'stand')
        assert place is not None
        p = np.array([*place, ground.height_at(*place) + body.high])
        ends, rest = np.array([p, p]), np.zeros((2, 3))
        return MotionPlan(
            view.time,
            'stand',
            gait,
            (body.command[0], body.command[1], body.command[2]),
            ComSpline.from_knots(np.array([contacts.times[0], contacts.times[-1]]), ends, rest, rest),
            body.yaw,
            contacts,
            steps.footholds,
            contacts.down * (self._geometry.weight / np.maximum(contacts.down.sum(axis=1), 1)[:, None]),
            ground.normal.copy(),
        )

    def _request(
        self,
        view: RobotView,
        phase: str,
        gait: str,
        lead: float,
        follower: PlanFollower,
        settings: WalkerSettings,
    ) -> PlanRequest:
        """The request to the motion planner."""
        steps, body, geometry = self._steps, self._body, self._geometry
        clock, legs = steps.clock, range(len(steps.legs))
        soles = view.feet.copy()
        soles[:, 2] -= geometry.radius
        command = body.command_after(_AHEAD * clock.period)
        return PlanRequest(
            view.time,
            phase,
            gait,
            self._stance(gait, command[2]),
            command,
            body.correction.at(command),
            view.com.copy(),
            view.velocity,
            self._start(view, follower, settings.plan_period),
            body.yaw,
            view.state.q[:3] + geometry.hips @ view.R_WB.T,
            soles,
            self._contacts(view.time, phase, lead),
            np.array([lead + clock.time_to_touchdown(k) for k in legs]),
            np.array([clock.next_stance_time(k) for k in legs]),
            self._ground,
            (steps.lean[0], steps.lean[1]),
            body.high,
            steps.swing_share,
        )

    def _stance(self, gait: str, wz: float) -> tuple[float, float]:
        """Factors of the distances of the feet from their centre."""
        (x, y), skid = GAITS[gait].stance, self._steps.skid
        if skid is None:
            return x, y
        shorter = skid.stance(wz)
        return shorter[0] * x, shorter[1] * y

    def _start(self, view: RobotView, follower: PlanFollower, period: float) -> ComState:
        """Initial state of a plan: between the measured state and that of the last plan.

        If all plans started at the measured state, each would reset the tracking error, and only planning
        would correct deviations. If all started at the state of the last plan, plans would ignore them.
        """
        p, v = view.com.copy(), view.velocity
        if follower.plan is None:
            return ComState(p, v)
        wanted_p, wanted_v, a = follower.reference(view.time)
        keep = math.exp(-period / _LEAK)
        p += _limited(keep * (wanted_p - p), _FARTHEST * self._geometry.length)
        return ComState(p, v + _limited(keep * (wanted_v - v), _FASTEST * self._geometry.speed), a)

    def _contacts(self, time: float, phase: str, lead: float) -> ContactSchedule:
        """Contact schedule of a stride; all feet are in contact until the first lift-off."""
        down = self._steps.down
        found = contact_schedule(self._steps.clock, down, phase, time + lead)
        if not lead:
            return found
        times, flags = np.append(time, found.times), np.vstack([np.ones_like(down), found.down])
        if found.down[0].all():
            times, flags = np.delete(times, 1), np.delete(flags, 1, axis=0)
        return ContactSchedule(times, flags)


def _limited(vector: Floats, most: float) -> Floats:
    """A vector, limited in length."""
    length = float(np.linalg.norm(vector))
    return vector if length <= most else vector * (most / length)
