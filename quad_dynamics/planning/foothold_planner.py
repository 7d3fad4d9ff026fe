# SPDX-License-Identifier: Apache-2.0
"""Footholds of all legs by a quadratic program.

Bellicoso, Jenelten, Gehring, Hutter, "Dynamic Locomotion Through Online Nonlinear Motion Optimization for
Quadrupedal Robots" (RA-L 2018), section on foothold optimisation. The unknowns are the coordinates p of all
footholds in the ground plane, in axes C: x along the heading, y to the left. The cost of a leg is

    w_def / 2 |p - p_def|^2 + w_vel / 2 |p - p_vel|^2 + w_con / 2 |p - p_last|^2 - (w_def + w_vel) k d . p

* p_def: below the hip at touch-down, in the default stance.
* p_vel: below the hip in the middle of the stance, so that the hip passes symmetrically over the foot at the
  commanded velocity v_c; the body moves along the arc of the commanded turn.
* p_last: the foothold of the last plan. Directly after a touch-down this is still the position of the foot.
* d = sqrt(h / g) (v - c v_c - v_s): the inverted pendulum. A body that is too fast is caught by longer steps.
  c is explained in `footholds`; v_s is the sway velocity of the query.

The pendulum term is linear, and scaled by the weights of the references, so that k is its gain whatever they
are: without inequalities, footholds converge to (w_def p_def + w_vel p_vel) / (w_def + w_vel) + k d. The
continuity term delays them but does not shift them.

The inequalities: a foothold is within a polygon around the projection of its hip at touch-down, whose corners
are at the reach of the leg; left feet stay to the left of right feet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import daqp
import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.planning.arc import arc, decay_integral, turned
from quad_dynamics.planning.footholds import SWING_SHARE, speed_at_change
from quad_dynamics.planning.stance_geometry import StanceGeometry

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]

_FREE = 1e30  # no bound
_SOLVED = 1  # exit flag of daqp
_INSIDE = 0.999  # largest required lateral distance of two feet, relative to their combined reach


@dataclass(frozen=True)
class FootholdSettings(ParameterSet):
    """Settings of the foothold planner."""

    default_weight: float = param(
        0.02, 'weight of the default stance, w_def', unit='-', above=0.0, high=100.0
    )
    velocity_weight: float = param(
        1.0, 'weight of the commanded velocity, w_vel', unit='-', low=0.0, high=100.0
    )
    continuity_weight: float = param(
        0.25, 'weight of the last footholds, w_con', unit='-', low=0.0, high=100.0
    )
    capture_gain: float = param(
        0.8,
        'share of the offset to the capture point that is added to footholds, k',
        unit='-',
        low=0.0,
        high=2.0,
    )
    corners: int = param(8, 'corners of the polygon that a leg can reach', low=3, high=32)
    stretch: float = param(0.93, 'share of its full length that a leg may use', unit='-', above=0.0, high=1.0)
    smallest_reach: float = param(
        0.1, 'minimum radius of the polygon, in leg lengths', unit='-', above=0.0, high=1.0
    )
    lateral_gap: float = param(
        0.4,
        'minimum lateral distance of left and right feet, relative to that of the default stance',
        unit='-',
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, eq=False)
class FootholdQuery:
    """The input of the foothold planner, in world axes.

    Attributes:
        com: (3,) the centre of mass [m].
        velocity: (3,) its velocity; the vertical component is not used [m/s].
        yaw: heading [rad].
        command: (vx, vy, wz) of the base in the heading frame [m/s, m/s, rad/s].
        hips: (legs, 3) the first joints of the legs [m].
        time_left: (legs,) until the next touch-down of each foot; a foot for which it is infinite stays in
            the default stance [s].
        stance_time: (legs,) duration of the stance after that [s].
        normal: (3,) of the ground.
        point: (3,) of the ground [m].
        feet: (legs, 3) current positions of the feet [m]; None to ignore them.
        down: (legs,) which feet are in contact; None to ignore it.
        previous: (legs, 3) last planned footholds; a row of nan, or None, if there is none [m].
        offset: (x, y) in the heading frame by which the default stance is shifted [m].
        stance: (x, y) factors of the distances of the feet from their centre in the default stance.
        sway: (legs, 2) velocity in the heading frame, in addition to the commanded one, that the body should
            have at the touch-down of each foot; None: none [m/s].
        settling: time constant with which the velocity of the body is assumed to converge to the commanded
            one; infinity: it is constant [s].
        swing_share: as in `speed_at_change`.
    """

    com: Floats
    velocity: Floats
    yaw: float
    command: Vec3
    hips: Floats
    time_left: Floats
    stance_time: Floats
    normal: Floats
    point: Floats
    feet: Floats | None = None
    down: Bools | None = None
    previous: Floats | None = None
    offset: Vec2 = (0.0, 0.0)
    stance: Vec2 = (1.0, 1.0)
    sway: Floats | None = None
    settling: float = math.inf
    swing_share: float = SWING_SHARE


@dataclass(frozen=True, eq=False)
class FootholdResult:
    """The result of the planner.

    Attributes:
        footholds: (legs, 3) in the ground plane, where the lowest points of the feet touch down [m].
        is_solved: False if the program failed; footholds are then those without inequalities, clipped to the
            reach.
        iterations: of the solver.
    """

    footholds: Floats
    is_solved: bool
    iterations: int


class FootholdPlanner:
    """The foothold planner of one robot. It is stateless between calls."""

    def __init__(
        self, geometry: StanceGeometry, order: Sequence[int], settings: FootholdSettings | None = None
    ) -> None:
        """Prepare the matrices.

        Args:
            geometry: of the robot.
            order: which leg each is: 0 front left, 1 front right, 2 rear left, 3 rear right.
            settings: None for the defaults.
        """
        self.settings = settings or FootholdSettings()
        self._geometry, legs, corners = geometry, len(order), self.settings.corners
        self._pairs = [(list(order).index(left), list(order).index(left + 1)) for left in (0, 2)]
        self._longest = (self.settings.stretch * geometry.reach).tolist()
        self._hip_heights = (geometry.base_height + geometry.hips[:, 2]).tolist()
        self._smallest = self.settings.smallest_reach * geometry.length
        self._gaps = [
            self.settings.lateral_gap * (geometry.below[left][1] - geometry.below[right][1])
            for left, right in self._pairs
        ]
        # normals of the polygons' sides
        angles = (np.arange(corners) + 0.5) * 2.0 * math.pi / corners
        self._sides = np.column_stack((np.cos(angles), np.sin(angles)))
        self._inner = math.cos(math.pi / corners)
        self._n_sides = legs * corners
        rows = self._n_sides + 2 * len(self._pairs)
        self._A, self._H = np.zeros((rows, 2 * legs)), np.zeros((2 * legs, 2 * legs))
        for leg in range(legs):
            self._A[leg * corners : (leg + 1) * corners, 2 * leg : 2 * leg + 2] = self._sides
        self._low, self._high = np.full(rows, -_FREE), np.full(rows, _FREE)

    def plan(self, query: FootholdQuery) -> FootholdResult:
        """Footholds of all legs.

        Raises:
            ArgumentError: a value is not finite.
        """
        frame = _Frame(query)
        weights, linear, optimum = self._cost(query, frame)
        centres, reaches = self._reach(query, frame)
        if not (np.isfinite(linear).all() and np.isfinite(centres).all()):
            raise ArgumentError(
                f'com {query.com}, velocity {query.velocity}, hips {query.hips.tolist()} or another input of '
                'the foothold planner is not finite; expected finite numbers'
            )
        self._H.flat[:: len(linear) + 1] = weights
        inner = self._inner * reaches
        self._high[: self._n_sides] = (centres @ self._sides.T + inner[:, None]).ravel()
        self._keep_apart(query, frame, centres, inner)
        x, _, flag, info = daqp.solve(self._H, linear, self._A, self._high, self._low)
        is_solved = flag == _SOLVED and bool(np.isfinite(x).all())
        places = np.asarray(x).reshape(-1, 2) if is_solved else _clipped(optimum, centres, inner)
        return FootholdResult(frame.to_world(places), is_solved, int(info['iterations']))

    def _cost(self, query: FootholdQuery, frame: _Frame) -> tuple[Floats, Floats, Floats]:
        """Diagonal of the Hessian, linear cost, and optimum without inequalities, (legs, 2)."""
        settings, geometry = self.settings, self._geometry
        w_def, w_vel = settings.default_weight, settings.velocity_weight
        previous = None if query.previous is None else frame.in_plane(query.previous).tolist()
        wz, v_c = query.command[2], geometry.com_velocity(*query.command)
        sway = [[0.0, 0.0]] * len(frame.time_left) if query.sway is None else query.sway.tolist()
        reach = settings.capture_gain * geometry.pendulum
        weights, linear, optimum = [], [], []
        for leg, (left, stance) in enumerate(zip(frame.time_left, frame.stance_time, strict=True)):
            factor = speed_at_change(stance, geometry.pendulum, query.swing_share)
            v, along = _prediction(frame.velocity, v_c, wz, left, query.settling)
            below = self._below(leg, query.stance)
            over = arc(v_c, wz, left, left + 0.5 * stance)
            begin = turned(below, wz * left)
            middle = turned(below, wz * (left + 0.5 * stance))
            faster = (v[0] - factor * v_c[0] - sway[leg][0], v[1] - factor * v_c[1] - sway[leg][1])
            capture = turned(faster, wz * left)
            wanted = [
                w_def * (along[i] + begin[i] + query.offset[i])
                + w_vel * (along[i] + over[i] + middle[i] + query.offset[i])
                + (w_def + w_vel) * reach * capture[i]
                for i in range(2)
            ]
            wanted_x, wanted_y = frame.onto_plane(wanted[0], wanted[1])
            weight = w_def + w_vel
            if previous is not None and not math.isnan(previous[leg][0]):
                weight += settings.continuity_weight
                wanted_x += settings.continuity_weight * previous[leg][0]
                wanted_y += settings.continuity_weight * previous[leg][1]
            weights += [weight, weight]
            linear += [-wanted_x, -wanted_y]
            optimum.append((wanted_x / weight, wanted_y / weight))
        return np.array(weights), np.array(linear), np.array(optimum)

    def _below(self, leg: int, stance: Vec2) -> Vec2:
        """Default position of a foot, from the centre of mass in the heading frame [m]."""
        (x, y), (mx, my) = self._geometry.below[leg], self._geometry.middle
        return mx + stance[0] * (x - mx), my + stance[1] * (y - my)

    def _reach(self, query: FootholdQuery, frame: _Frame) -> tuple[Floats, Floats]:
        """Hips at touch-down, projected along the normal, (legs, 2); and radii of the polygons, (legs,)."""
        wz, v_c = query.command[2], self._geometry.com_velocity(*query.command)
        centres, reaches = [], []
        cx, cy = frame.com
        hips = frame.in_plane(query.hips).tolist()
        heights = frame.heights(query.hips).tolist()
        for leg, (left, longest) in enumerate(zip(frame.time_left, self._longest, strict=True)):
            dx, dy = frame.onto_plane(*_prediction(frame.velocity, v_c, wz, left, query.settling)[1])
            x, y = turned((hips[leg][0] - cx, hips[leg][1] - cy), wz * left)
            centres.append((cx + dx + x, cy + dy + y))
            # of the hip above the centre of its foot; a robot in flight is lower at touch-down
            height = min(heights[leg], self._hip_heights[leg]) - self._geometry.radius[leg]
            # there is no root if the hip is higher than the leg length
            reaches.append(math.sqrt(max(longest**2 - height**2, self._smallest**2)))
        return np.array(centres), np.array(reaches)

    def _keep_apart(self, query: FootholdQuery, frame: _Frame, centres: Floats, inner: Floats) -> None:
        """Write the rows that keep left feet to the left of right feet.

        Both footholds of a pair are kept apart, and so is the foothold that comes first from the other foot
        if that is in contact. A distance beyond the reach of the legs is shortened, so that there is a
        solution.
        """
        row = self._n_sides
        feet = None if query.feet is None or query.down is None else frame.in_plane(query.feet).tolist()
        middle, radius = centres.tolist(), inner.tolist()
        for (left, right), gap in zip(self._pairs, self._gaps, strict=True):
            times = frame.time_left[left], frame.time_left[right]
            x, y = turned((0.0, 1.0), 0.5 * query.command[2] * (times[0] + times[1]))
            self._A[row, 2 * left : 2 * left + 2] = x, y
            self._A[row, 2 * right : 2 * right + 2] = -x, -y
            apart = x * (middle[left][0] - middle[right][0]) + y * (middle[left][1] - middle[right][1])
            self._low[row] = min(gap, apart + _INSIDE * (radius[left] + radius[right]))
            first, other, side = (left, right, 1.0) if times[0] <= times[1] else (right, left, -1.0)
            x, y = turned((0.0, side), query.command[2] * frame.time_left[first])
            self._A[row + 1] = 0.0
            self._A[row + 1, 2 * first : 2 * first + 2] = x, y
            self._low[row + 1] = -_FREE
            if feet is not None and query.down is not None and query.down[other]:
                farthest = x * middle[first][0] + y * middle[first][1] + _INSIDE * radius[first]
                self._low[row + 1] = min(x * feet[other][0] + y * feet[other][1] + gap, farthest)
            row += 2


class _Frame:
    """The ground plane in axes C: x along the heading, y to the left; its origin is below the CoM.

    Attributes:
        com: the centre of mass, projected along the normal [m].
        velocity: of the centre of mass in the heading frame [m/s].
        time_left: as in the query, 0 if it is infinite [s].
        stance_time: likewise [s].
    """

    def __init__(self, query: FootholdQuery) -> None:
        c, s = math.cos(query.yaw), math.sin(query.yaw)
        nx, ny, nz = (float(n) for n in query.normal)
        px, py, pz = (float(p) for p in query.point)
        x, y, z = (float(p) for p in query.com)
        self._normal = query.normal
        self._origin = np.array([x, y, pz - (nx * (x - px) + ny * (y - py)) / nz])
        a, b = c * nx + s * ny, c * ny - s * nx  # the normal in the heading frame
        q = math.sqrt(b * b + nz * nz)
        e, f = -a * b / q, nz / q  # y components of both axes in the heading frame
        self._axes = np.array(
            [[c * q - s * e, -s * f], [s * q + c * e, c * f], [-nz * a / q, -b / q]]
        )  # (3, 2)
        # a step of (x, y) in the heading frame is one of (x m00, x m10 + y m11) along the plane
        self._m00, self._m10, self._m11 = 1.0 / q, a * b / (nz * q), q / nz
        high = z - float(self._origin[2])
        self.com = (-high * nz * a / q, -high * b / q)
        vx, vy = float(query.velocity[0]), float(query.velocity[1])
        self.velocity = (c * vx + s * vy, c * vy - s * vx)
        times = np.asarray(query.time_left).tolist(), np.asarray(query.stance_time).tolist()
        stays = [math.isinf(left) or math.isinf(stance) for left, stance in zip(*times, strict=True)]
        self.time_left, self.stance_time = (
            [0.0 if stay else time for time, stay in zip(some, stays, strict=True)] for some in times
        )

    def onto_plane(self, x: float, y: float) -> Vec2:
        """A point above or below the plane, given in the heading frame, projected vertically [m]."""
        return self._m00 * x, self._m10 * x + self._m11 * y

    def in_plane(self, points: Floats) -> Floats:
        """(n, 2) points (n, 3) of the world, projected along the normal [m]."""
        return np.asarray((points - self._origin) @ self._axes)

    def heights(self, points: Floats) -> Floats:
        """(n,) distances of points from the plane [m]."""
        return np.asarray((points - self._origin) @ self._normal)

    def to_world(self, places: Floats) -> Floats:
        """(n, 3) world coordinates of points (n, 2) in the plane [m]."""
        return np.asarray(self._origin + places @ self._axes.T)


def _prediction(v: Vec2, v_c: Vec2, rate: float, time: float, settling: float) -> tuple[Vec2, Vec2]:
    """Velocity after a time in the body frame, and displacement until then in the current frame [m/s, m]."""
    if math.isinf(settling):
        return v, arc(v, rate, 0.0, time)
    left = math.exp(-time / settling)
    mean = decay_integral(time, settling) / time if time > 1e-9 else 1.0
    later = (v_c[0] + left * (v[0] - v_c[0]), v_c[1] + left * (v[1] - v_c[1]))
    average = (v_c[0] + mean * (v[0] - v_c[0]), v_c[1] + mean * (v[1] - v_c[1]))
    return later, arc(average, rate, 0.0, time)


def _clipped(places: Floats, centres: Floats, radii: Floats) -> Floats:
    """The nearest points within circles."""
    away = places - centres
    distance = np.maximum(np.hypot(away[:, 0], away[:, 1]), 1e-12)
    return np.asarray(centres + away * np.minimum(radii / distance, 1.0)[:, None])
