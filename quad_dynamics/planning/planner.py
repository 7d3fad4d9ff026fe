# SPDX-License-Identifier: Apache-2.0
"""Plans a stride ahead: footholds, and the motion of the centre of mass above them.

Bellicoso, Jenelten, Gehring, Hutter, "Dynamic Locomotion Through Online Nonlinear Motion Optimization for
Quadrupedal Robots" (RA-L 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.arc import arc, decay_integral, turned
from quad_dynamics.planning.com_planner import ComPlanner, ComResult
from quad_dynamics.planning.com_problem import (
    ComProblem,
    ComSettings,
    ComState,
    ReferencePath,
    SupportPhase,
)
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.foothold_planner import FootholdPlanner, FootholdQuery, FootholdSettings
from quad_dynamics.planning.footholds import SWING_SHARE
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.motion_plan import ComSpline, MotionPlan
from quad_dynamics.planning.planned_forces import planned_forces
from quad_dynamics.planning.stance_geometry import StanceGeometry
from quad_dynamics.planning.support_sequence import has_stepped, support_polygons

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

# Time constant with which the velocity is assumed to converge to the commanded one, in sqrt(h / g).
_SETTLING = 3.0


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """The input of a plan, in world axes.

    Attributes:
        time: current time [s].
        phase: 'walk', 'stop' or 'stand'.
        gait: its name.
        stance: (x, y) factors of the distances of the feet from their centre.
        command: (vx, vy, wz) of the base in the heading frame [m/s, m/s, rad/s].
        correction: (x, y) velocity in addition to the command, with which the body moves as commanded
            [m/s].
        com: (3,) centre of mass [m].
        velocity: (3,) of the centre of mass [m/s].
        start: initial state of the centre of mass in the plan.
        yaw: desired heading [rad].
        hips: (legs, 3) first joints [m].
        feet: (legs, 3) lowest points of the feet [m].
        contacts: over the horizon.
        time_left: (legs,) until the next touch-down of each foot; infinity if it stays in contact [s].
        stance_time: (legs,) duration of the stance after that [s].
        ground: below the feet.
        offset: (x, y) in the heading frame by which footholds are shifted [m].
        height: desired height of the centre of mass above the ground [m].
        swing_share: as in `speed_at_change`.
    """

    time: float
    phase: str
    gait: str
    stance: Vec2
    command: Vec3
    correction: Vec2
    com: Floats
    velocity: Floats
    start: ComState
    yaw: float
    hips: Floats
    feet: Floats
    contacts: ContactSchedule
    time_left: Floats
    stance_time: Floats
    ground: Ground
    offset: Vec2
    height: float
    swing_share: float = SWING_SHARE

    @property
    def wanted(self) -> Vec3:
        """(vx, vy, wz) of the plan, including `correction` [m/s, m/s, rad/s]."""
        vx, vy, wz = self.command
        return vx + self.correction[0], vy + self.correction[1], wz


class MotionPlanner:
    """Plans motions of one robot. Plans do not depend on earlier calls; only their results are stored.

    Attributes:
        result: of the last motion optimisation.
        footholds_solved: whether the last foothold program was solved.
    """

    def __init__(
        self,
        geometry: StanceGeometry,
        order: Sequence[int],
        com: ComSettings | None = None,
        footholds: FootholdSettings | None = None,
    ) -> None:
        """Prepare the tables.

        Args:
            geometry: of the robot.
            order: which leg each is: 0 front left, 1 front right, 2 rear left, 3 rear right.
            com: settings of the motion optimisation.
            footholds: settings of the foothold optimisation.
        """
        self._geometry = geometry
        self._com, self._footholds = ComPlanner(com), FootholdPlanner(geometry, order, footholds)
        self._radii = np.array(geometry.radius)
        self.result: ComResult | None = None
        self.footholds_solved = True

    def plan(self, request: PlanRequest, previous: MotionPlan | None) -> MotionPlan | None:
        """A plan; None if the motion optimisation found no acceptable one.

        Args:
            request: its input.
            previous: the current plan.
        """
        ground, contacts = request.ground, request.contacts
        point = np.array([*ground.centre, ground.height])
        soles = self._plan_footholds(request, previous, point)
        polygons = support_polygons(contacts, request.feet, soles, ground.normal, point)
        problem = ComProblem(
            tuple(map(SupportPhase, contacts.durations.tolist(), polygons)),
            request.start,
            self._path(request, soles),
            point,
            ground.normal,
            self._geometry.com_height,
            self._geometry.g,
            request.time,
        )
        self.result = found = self._com.solve(problem, None if previous is None else previous.com)
        if not found.accepted or found.spline is None:
            return None
        footholds = soles.copy()
        footholds[:, 2] += self._radii
        return MotionPlan(
            request.time,
            request.phase,
            request.gait,
            request.command,
            found.spline,
            request.yaw,
            contacts,
            footholds,
            self._forces(found.spline, request, soles),
            ground.normal.copy(),
            found.zmp_slack,
            found.solve_time,
        )

    def _forces(self, com: ComSpline, request: PlanRequest, soles: Floats) -> Floats:
        """(phases, legs) planned normal forces [N]."""
        geometry, contacts = self._geometry, request.contacts
        places = np.where(has_stepped(contacts)[:, :, None], soles, request.feet)
        mass = geometry.weight / geometry.g
        return planned_forces(com, contacts, places, mass, geometry.g, request.ground.normal)

    # ---------------------------------------------------------------- footholds

    def _plan_footholds(self, request: PlanRequest, previous: MotionPlan | None, point: Floats) -> Floats:
        """(legs, 3) next touch-down positions of the soles, or their current contacts [m]."""
        stays = np.isinf(request.time_left)
        if stays.all():
            return request.feet.copy()
        last = None
        if previous is not None:
            last = previous.footholds.copy()
            last[:, 2] -= self._radii
        out = self.outward(request)
        found = self._footholds.plan(
            FootholdQuery(
                request.com,
                request.velocity,
                request.yaw,
                request.wanted,
                request.hips,
                request.time_left,
                request.stance_time,
                request.ground.normal,
                point,
                request.feet,
                request.contacts.down[0],
                last,
                (request.offset[0] + out[0], request.offset[1] + out[1]),
                request.stance,
                self.sway_velocities(request),
                _SETTLING * self._geometry.pendulum,
                request.swing_share,
            )
        )
        self.footholds_solved = found.is_solved
        return np.where(stays[:, None], request.feet, found.footholds)

    def outward(self, request: PlanRequest) -> Vec2:
        """Displacement of the feet from the centre of mass that a turn requires, in the heading frame [m].

        The body accelerates towards the centre of the turn by wz x v. So the zero-moment point and the feet
        are on the outer side of the centre of mass, by h / g times that.
        """
        vx, vy, wz = request.command
        share = request.height / self._geometry.g
        return share * wz * vy, -share * wz * vx

    def sway_velocities(self, request: PlanRequest) -> Floats:
        """(legs, 2) velocity that the body should have at each touch-down, in addition to the commanded one.

        If the centre of mass is not between two stance feet, as in pace and bound, it falls away from them
        like an inverted pendulum: towards the other feet, which touch down in time to push it back. In the
        heading frame [m/s].
        """
        contacts, geometry = request.contacts, self._geometry
        found = np.zeros((len(request.feet), 2))
        mx, my = geometry.middle
        for leg in range(len(request.feet)):
            lands = next((k for k in _landings(contacts, leg)), None)
            before = None if lands is None else _last_support(contacts, lands)
            if before is None:
                continue
            feet = [geometry.below[k] for k in np.flatnonzero(contacts.down[before])]
            if len(feet) > 2:
                continue
            rate = 1.0 / geometry.pendulum
            full = self._support_time(request, before)
            speed = rate * math.tanh(0.5 * rate * full)
            x = request.stance[0] * (sum(p[0] for p in feet) / len(feet) - mx)
            y = request.stance[1] * (sum(p[1] for p in feet) / len(feet) - my)
            found[leg] = -speed * x, -speed * y
        return found

    def _support_time(self, request: PlanRequest, phase: int) -> float:
        """Duration of a phase, including the part before now [s].

        A stride ends as it began, so that part appears again at the end of the horizon.
        """
        contacts = request.contacts
        found = float(contacts.durations[phase])
        if phase == 0 and len(contacts.down) > 1 and (contacts.down[0] == contacts.down[-1]).all():
            found += float(contacts.durations[-1])
        return min(found, float(request.stance_time[contacts.down[phase]].min()))

    # ---------------------------------------------------------------- the path

    def _path(self, request: PlanRequest, soles: Floats) -> ReferencePath:
        """The path pi: along the commanded arc, from the mean centre of the feet as seen from the body.

        The mean is over the horizon and over all feet: stance feet, and swing feet that move to their
        footholds at constant velocity (`_place`). The displacement of the body until then is subtracted.
        """
        geometry, contacts, ground = self._geometry, request.contacts, request.ground
        velocity, wz = geometry.com_velocity(*request.wanted), request.command[2]
        begin, horizon = float(contacts.times[0]), float(contacts.times[-1] - contacts.times[0])
        mx, my = geometry.middle
        stride = arc(velocity, wz, 0.0, horizon, request.yaw)
        out = turned(self.outward(request), request.yaw)
        x, y = -out[0], -out[1]
        for k, duration in enumerate(contacts.durations.tolist()):
            time = float(contacts.times[k]) - begin + 0.5 * duration
            dx, dy = self._way(request, velocity, time)
            yaw = request.yaw + wz * time
            c, s = math.cos(yaw), math.sin(yaw)
            places = [_place(request, soles[leg], leg, time, stride) for leg in range(len(soles))]
            cx, cy = sum(p[0] for p in places) / len(places), sum(p[1] for p in places) / len(places)
            share = duration / horizon
            x += share * (cx - dx - c * mx + s * my)
            y += share * (cy - dy - s * mx - c * my)
        dx, dy = stride
        return ReferencePath(
            _state((x, y), request.yaw, velocity, ground, request.height),
            _state((x + dx, y + dy), request.yaw + wz * horizon, velocity, ground, request.height),
        )

    def _way(self, request: PlanRequest, velocity: Vec2, time: float) -> Vec2:
        """World displacement of the body until a time, as its velocity converges to the command [m]."""
        dx, dy = arc(velocity, request.command[2], 0.0, time, request.yaw)
        wanted = turned(velocity, request.yaw)
        tau = _SETTLING * self._geometry.pendulum
        rest = decay_integral(time, tau)
        vx, vy = float(request.velocity[0]), float(request.velocity[1])
        return dx + rest * (vx - wanted[0]), dy + rest * (vy - wanted[1])


def _state(place: Vec2, yaw: float, velocity: Vec2, ground: Ground, high: float) -> ComState:
    """A state of the path, at a height above the ground."""
    v = turned(velocity, yaw)
    slope = ground.slope[0] * v[0] + ground.slope[1] * v[1]
    return ComState(np.array([*place, ground.height_at(*place) + high]), np.array([*v, slope]))


def _landings(contacts: ContactSchedule, leg: int) -> list[int]:
    """Phases that begin with the touch-down of a foot."""
    down = contacts.down[:, leg]
    return [k for k in range(1, len(down)) if down[k] and not down[k - 1]]


def _last_support(contacts: ContactSchedule, phase: int) -> int | None:
    """The last phase before another one in which a foot is in contact; None if there is none."""
    return next((k for k in range(phase - 1, -1, -1) if contacts.down[k].any()), None)


def _place(request: PlanRequest, sole: Floats, leg: int, time: float, stride: Vec2) -> Vec2:
    """Position of a foot at a time from now; swing feet move at constant velocity [m].

    It moves to its foothold, where it touches down within the horizon or later; if it lifts off again within
    the horizon, it moves on by a stride.
    """
    contacts = request.contacts
    x, y = float(request.feet[leg, 0]), float(request.feet[leg, 1])
    now = float(contacts.times[0])
    air = contacts.times[:-1][~contacts.down[:, leg]] - now
    if not len(air) or time <= air[0]:
        return x, y
    # a late foot touches down before its next touch-down by the clock
    landings = [float(contacts.times[k]) - now for k in _landings(contacts, leg)]
    left = min([float(request.time_left[leg]), *landings])
    if math.isinf(left):
        return x, y
    to_x, to_y = float(sole[0]), float(sole[1])
    if time < left:
        share = (time - float(air[0])) / max(left - float(air[0]), 1e-6)
        return x + share * (to_x - x), y + share * (to_y - y)
    again = air[air > left]
    if not len(again) or time <= again[0]:
        return to_x, to_y
    horizon = float(contacts.times[-1]) - now
    share = (time - float(again[0])) / max(left + horizon - float(again[0]), 1e-6)
    return to_x + share * stride[0], to_y + share * stride[1]
