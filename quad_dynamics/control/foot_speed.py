# SPDX-License-Identifier: Apache-2.0
"""How fast a robot can walk before its joints are too slow for the motion of its feet.

The motion of a foot relative to its hip is that of `swing.py` minus the motion of the body: at a duty factor
of one half, a foot passes its hip 2.75 times as fast as the body moves, and rises at the same time. It is
evaluated by inverse kinematics at many velocities, and the joint speeds are compared with the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from quad_dynamics.api.drives import foot_position, motor_limits
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.swing import swing_motion
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model
from quad_dynamics.planning.gait import Gait
from quad_dynamics.planning.stance_geometry import StanceGeometry

Vec3 = tuple[float, float, float]

_DIRECTIONS = 8
_LEAST, _MOST, _COUNT = 0.05, 1.6, 12  # tested velocities relative to the fastest, and their number
_SAMPLES = 7  # samples of a swing
_ITERATIONS = 5  # of the inverse kinematics
_DAMPING = 0.02  # of the inverse of a leg, in leg lengths
# Largest ratios of joint speeds to their limits: for lifting a foot in place, and in total. Peaks are short,
# and a foot that lags behind for a moment still touches down in time.
_LIFT, _PEAK = 0.5, 1.1
# Ratio for lifting above which feet swing evenly, because the joints cannot reach the step height.
_EVEN = 1.0


@dataclass(frozen=True, eq=False)
class FootSpeeds:
    """Largest velocities at which the body may pass over each foot.

    Attributes:
        step_height: that the joints can follow, at most the desired one, in leg lengths.
        even: whether feet swing evenly, because joints are too slow for the usual motion.
        places: (legs, 2) positions of the feet of a standing robot, from its base [m].
        most: (legs, directions) velocities in evenly spaced directions, from forward to the left; may be
            infinite [m/s].
    """

    step_height: float
    even: bool
    places: Floats
    most: Floats

    @cached_property
    def alone(self) -> Vec3:
        """Largest velocities of the base forward, sideways and turning, each alone [m/s, m/s, rad/s]."""
        x, y, turn = (max(self.share(*axis), self.share(*-axis)) for axis in np.eye(3))
        return _inverse(x), _inverse(y), _inverse(turn)

    def share(self, vx: float, vy: float, wz: float) -> float:
        """Ratio of a velocity to the largest one that the joints can follow; above 1 they are too slow.

        Args:
            vx: of the base, forward [m/s].
            vy: to the left [m/s].
            wz: turning to the left [rad/s].
        """
        worst, count = 0.0, self.most.shape[1]
        for (x, y), most in zip(self.places.tolist(), self.most.tolist(), strict=True):
            ahead, aside = vx - wz * y, vy + wz * x
            at = math.atan2(aside, ahead) / math.tau * count % count
            i = int(at) % count
            part = at - int(at)
            slow = (1.0 - part) / most[i] + part / most[(i + 1) % count]
            worst = max(worst, math.hypot(ahead, aside) * slow)
        return worst


# Results of `foot_speeds`. All of its arguments follow from the model and the parts of the key.
_known: WeakKeyDictionary[Model, dict[tuple[Gait, float, float, float], FootSpeeds]] = WeakKeyDictionary()


def foot_speeds(
    model: Model,
    geometry: StanceGeometry,
    gait: Gait,
    step_height: float,
    fastest: float,
    pace: Callable[[float], float],
) -> FootSpeeds:
    """Evaluate the motion of the feet at many velocities, and find which ones the joints can follow.

    It takes 20 ms, so results are stored with the model.

    Args:
        model: a robot with legs and a standing pose.
        geometry: of the standing robot.
        gait: determines swing and stance times.
        step_height: desired, in leg lengths.
        fastest: velocity at which the reach of the legs suffices [m/s].
        pace: rate of the gait clock at a velocity [m/s].
    """
    key = (gait, geometry.base_height, step_height, fastest)
    known = _known.setdefault(model, {})
    if key in known:
        return known[key]
    on_the_spot = _needed_speeds(model, geometry, [_way(gait, geometry, 0.0, 0.0, step_height, 1.0, False)])
    slow = float(on_the_spot.max())
    height, even = step_height * min(1.0, _LIFT / max(slow, 1e-9)), slow > _EVEN
    speeds = np.linspace(_LEAST, _MOST, _COUNT) * fastest
    ways = []
    for i in range(_DIRECTIONS):
        x, y = math.cos(i * math.tau / _DIRECTIONS), math.sin(i * math.tau / _DIRECTIONS)
        ways += [_way(gait, geometry, v * x, v * y, height, pace(v), even) for v in speeds.tolist()]
    needed = _needed_speeds(model, geometry, ways).reshape(_DIRECTIONS, _COUNT, -1)
    most = np.array(
        [[_crossing(speeds, needed[i, :, k]) for i in range(_DIRECTIONS)] for k in range(len(model.legs))]
    )
    known[key] = found = FootSpeeds(height, even, np.array(geometry.below) + geometry.com, most)
    return found


def _way(
    gait: Gait, geometry: StanceGeometry, vx: float, vy: float, step_height: float, rate: float, even: bool
) -> list[tuple[Vec3, Vec3]]:
    """Positions and velocities of a foot relative to its standing position, in base axes [m, m/s]."""
    period = gait.period / (geometry.rate * rate)
    stance, swing = gait.duty * period, (1.0 - gait.duty) * period
    way: list[tuple[Vec3, Vec3]] = []
    for end in (-0.5, 0.5):
        way.append(((end * stance * vx, end * stance * vy, 0.0), (-vx, -vy, 0.0)))
    for i in range(1, _SAMPLES + 1 if swing > 0.0 else 1):
        progress = i / (_SAMPLES + 1)
        goal = (period * vx, period * vy, 0.0)
        height = step_height * geometry.length
        (x, y, z), (dx, dy, dz), _ = swing_motion(progress, swing, (0.0, 0.0, 0.0), goal, height, even)
        gone = 0.5 * stance + progress * swing
        way.append(((x - gone * vx, y - gone * vy, z), (dx - vx, dy - vy, dz)))
    return way


def _needed_speeds(model: Model, geometry: StanceGeometry, ways: list[list[tuple[Vec3, Vec3]]]) -> Floats:
    """(ways, legs) speed of the fastest joint over its limit, if the foot of a leg follows a path."""
    p, v = np.moveaxis(np.array(ways).reshape(-1, 2, 3), 1, 0)
    _, stall, slope = motor_limits(model)
    with np.errstate(divide='ignore', invalid='ignore'):
        no_load = np.where(slope > 0.0, stall / slope, np.inf)
    fastest = np.fmin(model.velocity_limit, no_load)
    needed = np.zeros((len(p), len(model.legs)))
    for k, leg in enumerate(model.legs):
        x, y = geometry.below[k]
        home = np.array([x + geometry.com[0], y + geometry.com[1], geometry.radius[k] - geometry.base_height])
        speed = _joint_speeds(model, leg, geometry, home + p, v)
        needed[:, k] = np.abs(speed / fastest[list(leg.joint_indices)]).max(axis=1)
    return np.asarray(needed.reshape(len(ways), -1, len(model.legs)).max(axis=1))


def _joint_speeds(model: Model, leg: Leg, geometry: StanceGeometry, p: Floats, v: Floats) -> Floats:
    """(N, joints) speeds of a leg for N positions p and velocities v of its foot relative to the base."""
    q = np.zeros((len(p), model.nq))
    q[:, 6], q[:, 7:] = 1.0, geometry.posture
    joints, damping = np.array(leg.joint_indices), (_DAMPING * geometry.length) ** 2 * np.eye(3)
    for i in range(_ITERATIONS + 1):
        at = foot_position(model, q, leg.foot)
        J_F = frame_jacobian(model, q, leg.foot)[:, :, 6 + joints]
        arm = at - frame_pose(model, q, leg.foot)[1]
        J = J_F[:, :3] + np.cross(J_F[:, 3:], arm[:, :, None], axis=1)
        J_T = np.swapaxes(J, 1, 2)
        inverse = J_T @ np.linalg.inv(J @ J_T + damping)
        if i < _ITERATIONS:
            q[:, 7 + joints] += np.einsum('nij,nj->ni', inverse, p - at)
    return np.asarray(np.einsum('nij,nj->ni', inverse, v))


def _crossing(speeds: Floats, needed: Floats) -> float:
    """The first velocity at which a joint reaches its allowed speed [m/s]."""
    above = np.flatnonzero(needed > _PEAK)
    i = int(above[0]) if len(above) else len(speeds) - 1
    if i == 0 or not len(above):  # outside the tested range
        return _PEAK * float(speeds[i]) * _inverse(float(needed[i]))
    part = (_PEAK - needed[i - 1]) / (needed[i] - needed[i - 1])
    return float(speeds[i - 1] + part * (speeds[i] - speeds[i - 1]))


def _inverse(share: float) -> float:
    return 1.0 / share if share > 0.0 else math.inf
