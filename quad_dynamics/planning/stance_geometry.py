# SPDX-License-Identifier: Apache-2.0
"""Lengths of a standing robot, from which walking derives its scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quad_dynamics.api.centroidal import center_of_mass
from quad_dynamics.api.drives import foot_position, gravity_norm, hip_position, leg_length, resting_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.model.leg_kinematics import contact_ball, moving_joints
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

Vec2 = tuple[float, float]

_LONG = 0.93  # usable share of the full length of a leg
_LEAST_STROKE = 0.5  # desired stroke of a leg, in leg lengths
_SHORTEST_STROKE = 0.1  # the same for a robot that cannot be lowered that far
_SAMPLES = 73  # of a joint, for the search of the full length


@dataclass(frozen=True, eq=False)
class StanceGeometry:
    """A robot that stands level, seen from its base.

    Attributes:
        length: of the legs, l: hips above feet in the standing pose [m].
        g: gravity [m/s^2].
        weight: of the robot [N].
        com_height: of the centre of mass above the ground when walking [m].
        base_height: of the base, likewise [m].
        com: (x, y) of the centre of mass from the base [m].
        below: (x, y) standing position of each foot, from the centre of mass [m].
        middle: (x, y) centre of the feet, from the centre of mass [m].
        spread: largest distance of a foot from the centre of mass [m].
        hips: (legs, 3) of the first joints, from the base [m].
        reach: (legs,) largest distances of feet from hips [m].
        stroke: half the distance that the body can move over a stance foot without overextending the leg [m].
        radius: of each foot [m].
        posture: (nj,) joint positions of the standing pose [rad or m].
    """

    length: float
    g: float
    weight: float
    com_height: float
    base_height: float
    com: Vec2
    below: tuple[Vec2, ...]
    middle: Vec2
    spread: float
    hips: Floats
    reach: Floats
    stroke: float
    radius: tuple[float, ...]
    posture: Floats

    @property
    def rate(self) -> float:
        """sqrt(g / l), the scale of rates [1/s]."""
        return math.sqrt(self.g / self.length)

    @property
    def speed(self) -> float:
        """sqrt(g l), the scale of velocities [m/s]."""
        return math.sqrt(self.g * self.length)

    def com_velocity(self, vx: float, vy: float, wz: float) -> Vec2:
        """Velocity of the centre of mass for a velocity of the base, both in the heading frame [m/s].

        Args:
            vx: of the base, forward [m/s].
            vy: to the left [m/s].
            wz: turning to the left [rad/s].
        """
        x, y = self.com
        return vx - wz * y, vy + wz * x

    @property
    def pendulum(self) -> float:
        """Time constant sqrt(h / g) of the body as an inverted pendulum [s]."""
        return math.sqrt(self.com_height / self.g)


def stance_geometry(model: Model, stand_height: float = 1.0) -> StanceGeometry:
    """Measure a robot in its standing pose.

    If the legs are so extended in that pose that they could not step far, the body is lowered.

    Args:
        model: a robot with legs and a standing pose.
        stand_height: height of the hips above the feet, relative to that of the standing pose.
    """
    q = resting_pose(model)
    q[:7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    length, g = leg_length(model), gravity_norm(model)
    radius = tuple(contact_ball(model, leg.foot)[1] for leg in model.legs)
    feet = np.array([foot_position(model, q, leg.foot) for leg in model.legs])
    hips = np.array([hip_position(model, q, leg) for leg in model.legs])
    reach = np.array([full_length(model, leg) for leg in model.legs])
    com = np.asarray(center_of_mass(model, q))
    floor = float(np.mean(feet[:, 2] - np.array(radius)))
    high, longest = float((hips[:, 2] - feet[:, 2]).max()), _LONG * float(reach.min())
    best = math.sqrt(max(longest**2 - (_LEAST_STROKE * length) ** 2, 0.0))
    lowered = max((1.0 - stand_height) * length, high - best)
    stroke = math.sqrt(max(longest**2 - (high - lowered) ** 2, (_SHORTEST_STROKE * length) ** 2))
    below = feet[:, :2] - com[:2]
    return StanceGeometry(
        length,
        g,
        model.total_mass * g,
        float(com[2]) - floor - lowered,
        -floor - lowered,
        (float(com[0]), float(com[1])),
        tuple((float(x), float(y)) for x, y in below),
        (float(below[:, 0].mean()), float(below[:, 1].mean())),
        float(np.linalg.norm(below, axis=1).max()),
        hips,
        reach,
        stroke,
        radius,
        q[7:].copy(),
    )


def full_length(model: Model, leg: Leg) -> float:
    """Largest distance of a foot from its hip that the knee of the leg allows [m].

    The knee is the joint that changes this distance most: the last one, unless an ankle or a wheel follows.
    """
    spans = [_distances(model, leg, joint) for joint in moving_joints(model, leg)]
    return max(spans, key=lambda span: span[1] - span[0])[1]


def _distances(model: Model, leg: Leg, joint: int) -> tuple[float, float]:
    """Smallest and largest distance of a foot from its hip that one joint allows [m]."""
    q = resting_pose(model)
    half = 1.0 if model.is_prismatic[joint] else math.pi  # files may have no limits
    low, high = max(model.q_min[joint], q[7 + joint] - half), min(model.q_max[joint], q[7 + joint] + half)
    found = []
    for angle in np.linspace(low, high, _SAMPLES):
        q[7 + joint] = angle
        way = foot_position(model, q, leg.foot) - hip_position(model, q, leg)
        found.append(float(np.linalg.norm(way)))
    return min(found), max(found)
