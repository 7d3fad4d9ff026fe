# SPDX-License-Identifier: Apache-2.0
"""The legs of a robot that walks: which feet are down, where the others go, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quad_dynamics.control.body_reference import BodyReference
from quad_dynamics.control.footholds import foothold, within_reach
from quad_dynamics.control.gait import GaitClock
from quad_dynamics.control.ground import Ground
from quad_dynamics.control.leg_contact import LegContact
from quad_dynamics.control.stance_geometry import StanceGeometry
from quad_dynamics.control.swing import swing_motion
from quad_dynamics.control.walker_report import Counts
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.kernels.whole_body import FOOT_P, FOOT_V, FOOT_W

Floats = npt.NDArray[np.float64]
Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

_CONTACT_SHARE = 0.25  # of a foot's part of the weight, from which on it is down
_SEARCH_SPEED = 0.3  # with which a foot that is late goes down, in sqrt(g l)
_SEARCH_DEPTH = 0.3  # how far it does, in leg lengths
_SWAY_LEAD, _SWAY_RAMP = 0.14, 0.12  # before lift-off and after touch-down a foot counts less [strides]
_MOST_LEAN = 0.1  # by which feet move for a body that leans, in leg lengths
_STROKE = 0.6  # share of the way over which a leg can stand that strides use
_FASTEST = 1.3  # rate of the clock for commands
# Shares of its full length from which on a leg that stands makes the clock go faster, and at which it does so
# by this factor: its foot is lifted before it is stretched.
_STRETCHED, _HURRY = (0.96, 1.0), 2.0


@dataclass(eq=False)
class FootTargets:
    """What the feet should do, each (legs, 3), in world axes; zero velocity where a foot is down.

    Attributes:
        accelerations: of the centres of feet that swing, of the lowest points of those that are down [m/s^2].
        velocity_errors: what their velocities lack [m/s].
        places: of the centres [m].
    """

    accelerations: list[Vec3]
    velocity_errors: list[Vec3]
    places: list[Vec3]


@dataclass(eq=False)
class _Leg:
    """One leg.

    Attributes:
        contact: its state.
        start: where its foot was lifted, or lost the ground [m].
        sole: where its lowest point was last down [m].
        goal: where its centre is down, or comes down [m].
        falling: vertical velocity that it should have [m/s].
    """

    contact: LegContact
    start: Vec3 = (0.0, 0.0, 0.0)
    sole: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    goal: Vec3 = (0.0, 0.0, 0.0)
    falling: float = 0.0


class Stepping:
    """All legs, and their clock.

    Attributes:
        legs: in the order of the model.
        clock: of the gait.
        settings: can be replaced.
    """

    def __init__(self, geometry: StanceGeometry, clock: GaitClock, settings: WalkerSettings) -> None:
        self._geometry, self.clock, self.settings = geometry, clock, settings
        count = len(geometry.below)
        threshold = _CONTACT_SHARE * geometry.weight / count
        self.legs = [_Leg(LegContact(threshold)) for _ in range(count)]
        self._lean = [0.0, 0.0]

    def reset(self, time: float, motions: list[list[float]]) -> None:
        """Begin with all feet on the ground.

        Args:
            time: now [s].
            motions: of the feet, as `foot_motions` writes them.
        """
        self._lean, self.clock.rate = [0.0, 0.0], 1.0
        for leg, (x, y, z, *_), radius in zip(self.legs, motions, self._geometry.radius, strict=True):
            leg.contact.reset(time)
            leg.sole, leg.start, leg.goal = [x, y, z - radius], (x, y, z), (x, y, z)

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """(legs,) which feet can carry."""
        return np.array([leg.contact.is_down for leg in self.legs])

    @property
    def soles(self) -> list[list[float]]:
        """Where the lowest points of the feet were last down [m]."""
        return [leg.sole for leg in self.legs]

    @property
    def fastest(self) -> float:
        """Velocity with which the legs keep up [m/s]."""
        stance = self.clock.gait.duty * self.clock.gait.period * self.clock.unit
        return 2.0 * _FASTEST * _STROKE * self._geometry.stroke / stance

    # ---------------------------------------------------------------- time and contact

    def set_pace(self, command: list[float], q: Floats, R_WB: Floats, feet: Floats) -> None:
        """Let the clock go faster where legs would not reach far enough, or are nearly stretched.

        Args:
            command: (vx, vy, wz) [m/s, m/s, rad/s].
            q: (nq,) configuration.
            R_WB: (3, 3) orientation of the base.
            feet: (legs, 3) centres of the feet [m].
        """
        geometry = self._geometry
        velocity = math.hypot(command[0], command[1]) + abs(command[2]) * geometry.spread
        needed = _FASTEST * velocity / self.fastest
        way = feet - geometry.hips @ R_WB.T - q[:3]
        shares = (np.sqrt(np.einsum('ij,ij->i', way, way)) / geometry.reach).tolist()
        longest = max(
            (s for s, leg in zip(shares, self.legs, strict=True) if leg.contact.is_down), default=0.0
        )
        low, high = _STRETCHED
        stretched = min(max((longest - low) / (high - low), 0.0), 1.0)
        self.clock.rate = min(max(needed, 1.0), _FASTEST) * (1.0 + (_HURRY - 1.0) * stretched)

    def touch(
        self,
        time: float,
        phase: str,
        motions: list[list[float]],
        carried: list[float] | None,
        asked: list[float],
        counts: Counts,
    ) -> None:
        """Bring the contacts of all feet up to date.

        Args:
            time: now [s].
            phase: of the walker: all feet are to be down in 'stand', and none is lifted in 'stop'.
            motions: of the feet, as `foot_motions` writes them.
            carried: measured normal forces [N]; None if nobody measures them.
            asked: normal forces that the feet should carry [N].
            counts: to be brought up to date.
        """
        for k, leg in enumerate(self.legs):
            contact, (x, y, z, *_) = leg.contact, motions[k]
            was_down = contact.is_down
            scheduled = phase == 'stand' or (phase == 'stop' and was_down) or self.clock.is_stance(k)
            progress = 1.0 if scheduled else self.clock.swing_progress(k)
            if carried is None:
                contact.guess(leg.falling, motions[k][FOOT_V + 2])
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
            if contact.is_down:
                leg.sole = [x, y, z - self._geometry.radius[k]]

    # ---------------------------------------------------------------- where the body should be

    def support(self, yaw: float, phase: str) -> Vec2 | None:
        """Where the centre of mass should be above the feet: when standing, and in gaits that sway [m].

        Args:
            yaw: heading [rad].
            phase: of the walker.

        Returns:
            None where the body goes straight.
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
                before, after = (gait.duty - at - _SWAY_LEAD) / _SWAY_RAMP, at / _SWAY_RAMP
                weight = min(max(min(before, after), 0.0), 1.0)
                sx, sy, total = sx + weight * leg.sole[0], sy + weight * leg.sole[1], total + weight
            if total > 1e-6:
                x, y = x + gait.sway * (sx / total - x), y + gait.sway * (sy / total - y)
        c, s = math.cos(yaw), math.sin(yaw)
        mx, my = self._geometry.middle
        return x - c * mx + s * my, y - s * mx - c * my

    def adapt_lean(self, R_WB: Floats, normal: Floats, yaw: float, dt: float) -> None:
        """Let the feet go where the body leans, so that it does not lean on average.

        Args:
            R_WB: (3, 3) orientation of the base.
            normal: (3,) of the ground.
            yaw: heading [rad].
            dt: [s].
        """
        length = self._geometry.length
        lean = R_WB[:2, 2] - normal[:2]
        c, s = math.cos(yaw), math.sin(yaw)
        most, gain = _MOST_LEAN * length, self.settings.lean_gain * length * dt
        ahead, aside = float(c * lean[0] + s * lean[1]), float(c * lean[1] - s * lean[0])
        self._lean[0] = min(max(self._lean[0] + gain * ahead, -most), most)
        self._lean[1] = min(max(self._lean[1] + gain * aside, -most), most)

    # ---------------------------------------------------------------- what the feet should do

    def targets(
        self,
        time: float,
        com: Vec2,
        velocity: Vec2,
        yaw: float,
        body: BodyReference,
        ground: Ground,
        motions: list[list[float]],
    ) -> FootTargets:
        """What the feet should do now.

        Args:
            time: now [s].
            com: x and y of the centre of mass [m].
            velocity: of the centre of mass along x and y [m/s].
            yaw: heading [rad].
            body: where the body should go.
            ground: below the feet.
            motions: of the feet, as `foot_motions` writes them.
        """
        settings, clock, geometry = self.settings, self.clock, self._geometry
        kp, kd = settings.swing_stiffness * geometry.rate**2, settings.swing_damping * geometry.rate
        stop = settings.contact_damping * geometry.rate
        targets = FootTargets([], [], [])
        for k, leg in enumerate(self.legs):
            motion = motions[k]
            p, v = motion[FOOT_P : FOOT_P + 3], motion[FOOT_V : FOOT_V + 3]
            if leg.contact.is_down:
                leg.goal, leg.falling = (p[0], p[1], p[2]), 0.0
                slow = _sliding(motion, geometry.radius[k], ground.normal)
                targets.accelerations.append((stop * slow[0], stop * slow[1], stop * slow[2]))
                targets.velocity_errors.append(slow)
                targets.places.append(leg.goal)
                continue
            if leg.contact.state == 'swing':
                leg.goal = self._next_foothold(k, com, velocity, yaw, body, ground)
                place, speed, acceleration = swing_motion(
                    clock.swing_progress(k),
                    clock.swing_time,
                    leg.start,
                    leg.goal,
                    settings.step_height * geometry.length,
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
        """Position and velocity of a foot that feels for the ground below it."""
        speed, deepest = _SEARCH_SPEED * self._geometry.speed, _SEARCH_DEPTH * self._geometry.length
        depth = min(speed * (time - leg.contact.since), deepest)
        x, y, z = leg.start
        return (x, y, z - depth), (0.0, 0.0, -speed if depth < deepest else 0.0)

    def _next_foothold(
        self, k: int, com: Vec2, velocity: Vec2, yaw: float, body: BodyReference, ground: Ground
    ) -> Vec3:
        """Where the centre of a foot that swings comes down [m]."""
        settings, clock, geometry = self.settings, self.clock, self._geometry
        left = (1.0 - clock.swing_progress(k)) * clock.swing_time
        c, s = math.cos(yaw), math.sin(yaw)
        turn = yaw + body.command[2] * (left + 0.5 * clock.stance_time)
        ct, st = math.cos(turn), math.sin(turn)
        bx, by = geometry.below[k]
        lx, ly = self._lean
        below = (com[0] + ct * bx - st * by + c * lx - s * ly, com[1] + st * bx + ct * by + s * lx + c * ly)
        found = foothold(
            below,
            velocity,
            body.com_velocity(yaw),
            left,
            clock.stance_time,
            geometry.pendulum,
            settings.capture_gain,
        )
        hip = (com[0] + c * bx - s * by, com[1] + s * bx + c * by)
        x, y = within_reach(found, hip, min(settings.largest_step * geometry.length, geometry.stroke))
        depth = settings.touchdown_depth * geometry.length
        return x, y, ground.height_at(x, y) + geometry.radius[k] - depth


def _sliding(motion: list[float], radius: float, normal: Floats) -> Vec3:
    """What the lowest point of a foot lacks to be at rest: its velocity, negative [m/s]."""
    x, y, z = (-radius * float(n) for n in normal)
    wx, wy, wz = motion[FOOT_W : FOOT_W + 3]
    vx, vy, vz = motion[FOOT_V : FOOT_V + 3]
    return -(vx + wy * z - wz * y), -(vy + wz * x - wx * z), -(vz + wx * y - wy * x)
