# SPDX-License-Identifier: Apache-2.0
"""The legs of a walking robot: contact states, footholds and swing motion."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.whole_body import ANGULAR_VELOCITY, POSITION, VELOCITY
from quad_dynamics.array_types import Floats
from quad_dynamics.control.body_reference import BodyReference
from quad_dynamics.control.leg_contact import LegContact
from quad_dynamics.control.robot_view import RobotView
from quad_dynamics.control.skid_steering import SkidSteering
from quad_dynamics.control.swing import swing_motion
from quad_dynamics.control.walker_report import Counts
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.planning.arc import turned
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.footholds import PLANAR_SWING_SHARE, SWING_SHARE, foothold, in_plane, within_reach
from quad_dynamics.planning.gait import Gait, GaitClock
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.stance_geometry import StanceGeometry

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

_CONTACT_SHARE = 0.25  # force from which on a foot is in contact, relative to its share of the weight
_SEARCH_SPEED = 0.3  # downward velocity of a late foot, in sqrt(g l)
_SEARCH_DEPTH = 0.3  # maximum depth of its search, in leg lengths
_SWAY_LEAD, _SWAY_RAMP = 0.14, 0.12  # before lift-off and after touch-down, a foot has less weight [strides]
_SHORTEST_SWING = 0.05  # shortest swing of a schedule [s]
_MOST_LEAN = 0.1  # largest shift of footholds for a leaning body, in leg lengths
_EXCHANGE = 0.25  # longest step that replaces a step to the side of a planar leg, in leg lengths
_STROKE = 0.6  # share of the stance length of a leg that strides use
_FASTEST = 1.7  # largest rate of the clock for commands
# Length of a stance leg, relative to its full length, from which on the clock runs faster, and at which it is
# faster by this factor: the foot is lifted before the leg is fully extended.
_STRETCHED, _HURRY = (0.96, 1.0), 2.0


@dataclass(eq=False)
class FootTargets:
    """Targets of the feet, each (legs, 3), in world axes.

    Attributes:
        accelerations: of the centres of swing feet, and of the lowest points of stance feet [m/s^2].
        velocity_errors: desired minus measured velocities [m/s].
        places: of the centres [m].
        slides: desired velocities of stance feet: zero, unless they must slide [m/s].
    """

    accelerations: list[Vec3]
    velocity_errors: list[Vec3]
    places: list[Vec3]
    slides: list[Vec3]


@dataclass(eq=False)
class _Leg:
    """One leg.

    Attributes:
        contact: its state.
        start: where its foot lifted off, or lost contact [m].
        sole: last contact position of its lowest point [m].
        goal: position of its centre in contact, or at touch-down [m].
        falling: desired vertical velocity [m/s].
        lifted: time of its last lift-off [s].
        lands: time of its next touch-down by the schedule, if there is one [s].
    """

    contact: LegContact
    start: Vec3 = (0.0, 0.0, 0.0)
    sole: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    goal: Vec3 = (0.0, 0.0, 0.0)
    falling: float = 0.0
    lifted: float = 0.0
    lands: float = 0.0


class Stepping:
    """All legs, and their clock.

    Attributes:
        legs: in the order of the model.
        clock: of the gait.
        settings: can be replaced.
        planned: footholds of the current plan; None: those of `footholds.foothold` [m].
        surprise: (x, y) differences of position [m] and velocity [m/s] of the body from the prediction of the
            plan: see `PlanFollower.surprise`.
        schedule: contacts of an external plan; None: those of the clock.
        lean: (x, y) shift of the footholds in the heading frame, so that the body does not lean [m].
        step_height: in leg lengths: that of the settings, or what the joints can follow.
        even: whether feet swing evenly, because joints are too slow for the usual motion.
        skid: how the robot turns if all legs move their feet only in parallel planes; None if not.
    """

    def __init__(self, geometry: StanceGeometry, clock: GaitClock, settings: WalkerSettings) -> None:
        self._geometry, self.clock, self.settings = geometry, clock, settings
        self.step_height, self.even = settings.step_height, False
        self.skid: SkidSteering | None = None
        count, self._reach = len(geometry.below), geometry.reach.tolist()
        threshold = _CONTACT_SHARE * geometry.weight / count
        self.legs = [_Leg(LegContact(threshold)) for _ in range(count)]
        self.lean = [0.0, 0.0]
        self.planned: list[list[float]] | None = None
        self.surprise: tuple[Vec2, Vec2] = ((0.0, 0.0), (0.0, 0.0))
        self.schedule: ContactSchedule | None = None

    def reset(self, time: float, motions: list[list[float]]) -> None:
        """Start with all feet on the ground.

        Args:
            time: current time [s].
            motions: of the feet, as in a `RobotView`.
        """
        self.lean, self.clock.rate = [0.0, 0.0], 1.0
        if self.skid is not None:
            self.skid.reset(time)
        for leg, (x, y, z, *_), radius in zip(self.legs, motions, self._geometry.radius, strict=True):
            leg.contact.reset(time)
            leg.sole, leg.start, leg.goal = [x, y, z - radius], (x, y, z), (x, y, z)

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """(legs,) which feet can carry load."""
        return np.array([leg.contact.is_down for leg in self.legs])

    @property
    def soles(self) -> list[list[float]]:
        """Last contact positions of the lowest points of the feet [m]."""
        return [leg.sole for leg in self.legs]

    @property
    def footholds(self) -> Floats:
        """(legs, 3) where the centres of the feet are in contact, or will touch down [m]."""
        return np.array([leg.goal for leg in self.legs])

    @property
    def swing_share(self) -> float:
        """Velocity variation of the body, relative to that of a free pendulum."""
        return SWING_SHARE if self.skid is None else PLANAR_SWING_SHARE

    @property
    def fastest(self) -> float:
        """Largest velocity within the reach of the legs [m/s]."""
        return self.fastest_in(self.clock.gait)

    def fastest_in(self, gait: Gait) -> float:
        """Largest velocity within the reach of the legs in a gait [m/s]."""
        stance = gait.duty * gait.period * self.clock.unit
        return 2.0 * _FASTEST * _STROKE * self._geometry.stroke / stance

    def pace(self, gait: Gait, velocity: float) -> float:
        """Rate of the clock at which the reach of the legs suffices for a velocity [m/s]."""
        return min(max(_FASTEST * velocity / self.fastest_in(gait), 1.0), _FASTEST)

    # ---------------------------------------------------------------- time and contact

    def set_pace(self, command: list[float], view: RobotView) -> None:
        """Speed up the clock if the legs would not reach far enough, or are nearly fully extended.

        Args:
            command: (vx, vy, wz) [m/s, m/s, rad/s].
            view: current view.
        """
        geometry = self._geometry
        velocity = math.hypot(command[0], command[1]) + abs(command[2]) * geometry.spread
        hips = (geometry.hips @ view.R_WB.T + view.state.q[:3]).tolist()
        longest = 0.0
        for leg, hip, motion, reach in zip(self.legs, hips, view.motions, self._reach, strict=True):
            if leg.contact.is_down:
                longest = max(longest, math.dist(hip, motion[POSITION]) / reach)
        low, high = _STRETCHED
        stretched = min(max((longest - low) / (high - low), 0.0), 1.0)
        self.clock.rate = self.pace(self.clock.gait, velocity) * (1.0 + (_HURRY - 1.0) * stretched)

    def touch(
        self,
        time: float,
        phase: str,
        motions: list[list[float]],
        carried: list[float] | None,
        asked: list[float],
        counts: Counts,
    ) -> None:
        """Update the contact states of all feet.

        Args:
            time: current time [s].
            phase: of the walker: all feet should be in contact in 'stand', and none is lifted in 'stop'.
            motions: of the feet, as in a `RobotView`.
            carried: measured normal forces [N]; None if they are not measured.
            asked: commanded normal forces of the feet [N].
            counts: to be updated.
        """
        for k, leg in enumerate(self.legs):
            contact, (x, y, z, *_) = leg.contact, motions[k]
            was_down = contact.is_down
            scheduled = phase == 'stand' or (phase == 'stop' and was_down) or self._is_stance(k, time)
            progress = 1.0 if scheduled else self._swing_progress(k, time)
            if carried is None:
                contact.guess(leg.falling, motions[k][VELOCITY][2])
            else:
                contact.measure(carried[k], asked[k], progress)
            changed = contact.update(time, scheduled, progress, carried is not None)
            if changed:
                counts.touchdowns += not was_down and contact.is_down
                counts.early += changed == 'early'
                counts.late += changed == 'late'
                counts.lost += changed == 'lost'
                if not contact.is_down:
                    leg.start = (x, y, z)
                if changed == 'swing':
                    leg.lifted = time
            if contact.is_down:
                leg.sole = [x, y, z - self._geometry.radius[k]]

    def _is_stance(self, k: int, time: float) -> bool:
        """Whether a foot should be in contact, by the schedule of a plan or by the clock."""
        if self.schedule is None:
            return self.clock.is_stance(k)
        down = bool(self.schedule.down[self.schedule.phase(time), k])
        if not down:
            self.legs[k].lands = self.schedule.next_change(k, time)
        return down

    def _swing_progress(self, k: int, time: float) -> float:
        """From 0 at lift-off to 1 at touch-down."""
        if self.schedule is None:
            return self.clock.swing_progress(k)
        leg = self.legs[k]
        return min(max((time - leg.lifted) / self._swing_time(k), 0.0), 1.0)

    def _swing_time(self, k: int) -> float:
        """Duration of the swing of a leg [s]."""
        if self.schedule is None:
            return self.clock.swing_time_of(k)
        leg = self.legs[k]
        lasts = leg.lands - leg.lifted
        return max(lasts, _SHORTEST_SWING) if math.isfinite(lasts) else self.clock.swing_time

    # ---------------------------------------------------------------- reference of the body

    def support(self, yaw: float, phase: str) -> Vec2 | None:
        """Where the centre of mass should be above the feet: when standing, and in gaits that sway [m].

        Args:
            yaw: heading [rad].
            phase: of the walker.

        Returns:
            None if the body moves straight.
        """
        gait = self.clock.gait
        if phase == 'walk' and not gait.sway:
            return None
        x = sum(leg.goal[0] for leg in self.legs) / len(self.legs)
        y = sum(leg.goal[1] for leg in self.legs) / len(self.legs)
        if phase == 'walk':
            sx = sy = total = 0.0
            for k, leg in enumerate(self.legs):
                at = self.clock.phase(k)
                before, after = (self.clock.duty(k) - at - _SWAY_LEAD) / _SWAY_RAMP, at / _SWAY_RAMP
                weight = min(max(min(before, after), 0.0), 1.0)
                sx, sy, total = sx + weight * leg.sole[0], sy + weight * leg.sole[1], total + weight
            if total > 1e-6:
                x, y = x + gait.sway * (sx / total - x), y + gait.sway * (sy / total - y)
        c, s = math.cos(yaw), math.sin(yaw)
        mx, my = self._geometry.middle
        return x - c * mx + s * my, y - s * mx - c * my

    def adapt_lean(self, R_WB: Floats, upward: Floats, yaw: float, dt: float) -> None:
        """Shift the footholds towards the lean of the body, so that it does not lean on average.

        Args:
            R_WB: (3, 3) orientation of the base.
            upward: (3,) desired direction of its z axis.
            yaw: heading [rad].
            dt: [s].
        """
        length = self._geometry.length
        lean = R_WB[:2, 2] - upward[:2]
        c, s = math.cos(yaw), math.sin(yaw)
        most, gain = _MOST_LEAN * length, self.settings.lean_gain * length * dt
        ahead, aside = float(c * lean[0] + s * lean[1]), float(c * lean[1] - s * lean[0])
        self.lean[0] = min(max(self.lean[0] + gain * ahead, -most), most)
        self.lean[1] = min(max(self.lean[1] + gain * aside, -most), most)

    # ---------------------------------------------------------------- foot targets

    def targets(self, view: RobotView, body: BodyReference, ground: Ground) -> FootTargets:
        """The current targets of the feet.

        Args:
            view: current view.
            body: reference of the body.
            ground: below the feet.
        """
        time, yaw, motions = view.time, view.yaw, view.motions
        x, y, _ = view.com.tolist()
        vx, vy, _ = view.velocity.tolist()
        com, velocity = (x, y), (vx, vy)
        settings, geometry = self.settings, self._geometry
        kp, kd = settings.swing_stiffness * geometry.rate**2, settings.swing_damping * geometry.rate
        stop = settings.contact_damping * geometry.rate
        targets = FootTargets([], [], [], [(0.0, 0.0, 0.0)] * len(self.legs))
        for k, leg in enumerate(self.legs):
            motion = motions[k]
            p, v = motion[POSITION], motion[VELOCITY]
            if leg.contact.is_down:
                leg.goal, leg.falling = (p[0], p[1], p[2]), 0.0
                slow = _sliding(motion, geometry.radius[k], ground.normal)
                if self.skid is not None:
                    from_com = (p[0] - com[0], p[1] - com[1])
                    targets.slides[k] = slide = self.skid.velocity(from_com, yaw, body.command[2])
                    slow = (slow[0] + slide[0], slow[1] + slide[1], slow[2])
                targets.accelerations.append((stop * slow[0], stop * slow[1], stop * slow[2]))
                targets.velocity_errors.append(slow)
                targets.places.append(leg.goal)
                continue
            if leg.contact.state == 'swing':
                if self.planned is None:
                    x, y, z = self._next_foothold(k, time, (p[0], p[1]), com, velocity, yaw, body, ground)
                else:
                    x, y, z = self._planned_foothold(k, self.planned[k], time, com, velocity, yaw, ground)
                leg.goal = (x, y, z)
                place, speed, acceleration = swing_motion(
                    self._swing_progress(k, time),
                    self._swing_time(k),
                    leg.start,
                    (x, y, z - settings.touchdown_depth * geometry.length),
                    self.step_height * geometry.length,
                    self.even,
                )
            else:
                place, speed = self._search(leg, time)
                acceleration = (0.0, 0.0, 0.0)
            leg.falling = speed[2]
            slow = (speed[0] - v[0], speed[1] - v[1], speed[2] - v[2])
            targets.accelerations.append(
                (
                    acceleration[0] + kp * (place[0] - p[0]) + kd * slow[0],
                    acceleration[1] + kp * (place[1] - p[1]) + kd * slow[1],
                    acceleration[2] + kp * (place[2] - p[2]) + kd * slow[2],
                )
            )
            targets.velocity_errors.append(slow)
            targets.places.append(place)
        return targets

    def _search(self, leg: _Leg, time: float) -> tuple[Vec3, Vec3]:
        """Position and velocity of a foot that searches for the ground below it."""
        speed, deepest = _SEARCH_SPEED * self._geometry.speed, _SEARCH_DEPTH * self._geometry.length
        depth = min(speed * (time - leg.contact.since), deepest)
        x, y, z = leg.start
        return (x, y, z - depth), (0.0, 0.0, -speed if depth < deepest else 0.0)

    def _next_foothold(
        self,
        k: int,
        time: float,
        foot: Vec2,
        com: Vec2,
        velocity: Vec2,
        yaw: float,
        body: BodyReference,
        ground: Ground,
    ) -> Vec3:
        """Where the centre of a swing foot will touch down [m]."""
        settings, clock, geometry = self.settings, self.clock, self._geometry
        left = (1.0 - self._swing_progress(k, time)) * self._swing_time(k)
        stance = clock.next_stance_time(k)
        c, s = math.cos(yaw), math.sin(yaw)
        turn = yaw + body.command[2] * (left + 0.5 * stance)
        ct, st = math.cos(turn), math.sin(turn)
        bx, by = geometry.below[k]
        lx, ly = self.lean
        below = (com[0] + ct * bx - st * by + c * lx - s * ly, com[1] + st * bx + ct * by + s * lx + c * ly)
        found = foothold(
            below,
            velocity,
            body.com_velocity(yaw),
            left,
            stance,
            geometry.pendulum,
            settings.capture_gain,
            self.swing_share,
        )
        hip = (com[0] + c * bx - s * by, com[1] + s * bx + c * by)
        x, y = within_reach(found, hip, min(settings.largest_step * geometry.length, geometry.stroke))
        if self.skid is not None:
            plane = (foot[0] + velocity[0] * left, foot[1] + velocity[1] * left)
            along = self.skid.along
            most = _EXCHANGE * geometry.length
            x, y = in_plane((x, y), plane, yaw + along, self._slope(k, along), most)
        return x, y, ground.height_at(x, y) + geometry.radius[k]

    def _planned_foothold(
        self,
        k: int,
        planned: list[float],
        time: float,
        com: Vec2,
        velocity: Vec2,
        yaw: float,
        ground: Ground,
    ) -> Vec3:
        """A planned foothold, corrected by the deviation of the body since the plan was made [m].

        It moves as the foothold program would move it: by the deviation of the position, and by that of the
        velocity times the sum of the time to touch-down and `capture_gain` sqrt(h / g). It stays within the
        reach of the leg. The foot of a planar leg is corrected only within its plane.
        """
        geometry, x, y = self._geometry, planned[0], planned[1]
        (dx, dy), (dvx, dvy) = self.surprise
        left = (1.0 - self._swing_progress(k, time)) * self._swing_time(k)
        ahead = left + self.settings.capture_gain * geometry.pendulum
        c, s = math.cos(yaw), math.sin(yaw)
        bx, by = geometry.below[k]
        hip = (com[0] + velocity[0] * left + c * bx - s * by, com[1] + velocity[1] * left + s * bx + c * by)
        reach = max(geometry.stroke, math.hypot(x - hip[0], y - hip[1]))
        move = dx + ahead * dvx, dy + ahead * dvy
        if self.skid is not None:
            forward, _ = turned(move, -yaw - self.skid.along)
            move = turned((forward, 0.0), yaw + self.skid.along)
        to_x, to_y = within_reach((x + move[0], y + move[1]), hip, reach)
        slope = ground.slope
        return to_x, to_y, planned[2] + slope[0] * (to_x - x) + slope[1] * (to_y - y)

    def _slope(self, k: int, along: float) -> float:
        """Ratio of forward to lateral distance of two feet that touch down at the same time.

        The forward direction is given. 0 for feet that touch down alone.
        """
        partner = self.clock.partner(k)
        if partner is None:
            return 0.0
        (x, y), (other_x, other_y) = self._geometry.below[k], self._geometry.below[partner]
        ahead, aside = turned((x - other_x, y - other_y), -along)
        return ahead / aside if abs(aside) > 1e-6 else 0.0


def _sliding(motion: list[float], radius: float, normal: Floats) -> Vec3:
    """Negative velocity of the lowest point of a foot: the velocity error of a foot at rest [m/s]."""
    nx, ny, nz = normal.tolist()
    x, y, z = -radius * nx, -radius * ny, -radius * nz
    wx, wy, wz = motion[ANGULAR_VELOCITY]
    vx, vy, vz = motion[VELOCITY]
    return -(vx + wy * z - wz * y), -(vy + wz * x - wx * z), -(vz + wx * y - wy * x)
