# SPDX-License-Identifier: Apache-2.0
"""Contact points of a robot: from its description, else a few that represent its collision geometry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.model.contact_bodies import Piece, enclosed_in_parent, pieces_of_bodies
from quad_dynamics.model.contact_feet import Foot, belongs_to_foot, foot_balls
from quad_dynamics.model.contact_hull import DIRECTIONS, inner_balls, reduce_balls, support
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.model import Model

# Number of points in addition to those of the feet: MOST_POINTS, or the number per body if that gives more.
MOST_POINTS = 32
MOST_POINTS_EACH_BODY = 2
_SMALLEST, _LARGEST = 1e-6, 1e6  # range of body sizes for which points are chosen [m]
# The tolerance starts at this fraction of the largest body's size, and grows by this factor until it
# suffices.
_FINEST = 0.02
_COARSER = 1.25
_INSIDE = 0.005  # fraction of the size of a body
_TRIES = 3  # steps of the tolerance: the next finer one may need fewer points than this one
_BASE_WEIGHT = 1.5  # weight of the base's tolerance


@dataclass(frozen=True, eq=False)
class ChosenPoints:
    """Contact points, and how well they represent the geometry.

    Attributes:
        points: the contact points.
        tolerances: for each body, the maximum error of its hull in both directions [m]; parts of a body that
            its parent encloses within this tolerance at all joint positions have no points. () if no geometry
            was used.
    """

    points: tuple[ContactPoint, ...]
    tolerances: tuple[float, ...] = ()


def contact_points(model: Model) -> tuple[ContactPoint, ...]:
    """The contact points of a robot.

    They come from the robot description, if it has any; else a few points represent the collision geometry of
    the URDF (docs/robot_description.md); else they are feet and knees, from the tree. The order is base,
    other bodies, legs from the trunk downwards, feet; every foot has a point on its own link.

    Warns:
        ModelWarning: a collision mesh cannot be read; names the file.
    """
    return choose_contact_points(model).points


def choose_contact_points(model: Model) -> ChosenPoints:
    """As `contact_points`, with the resulting tolerances."""
    if not model.description.contact_points_from_tree:
        return ChosenPoints(model.description.contact_points)
    pieces = pieces_of_bodies(model)
    if not any(pieces):
        return ChosenPoints(model.description.contact_points)
    feet = [foot_balls(model, foot, pieces) for foot in model.foot_names]
    most = max(MOST_POINTS, MOST_POINTS_EACH_BODY * model.nb + 2)
    bodies = [_Body(model, i, pieces, feet, most) for i in range(model.nb)]
    found = _choose(bodies, most)
    if found is None:
        return ChosenPoints(model.description.contact_points)
    chosen, tolerances = found
    return ChosenPoints(_named(model, bodies, chosen, feet), tuple(tolerances))


class _Body:
    """The geometry of one body, and the part that its parent never covers.

    It is mirrored so that coordinates are positive on average, and sorted: the bodies of left and right legs
    then become equal, and get mirrored points.
    """

    def __init__(
        self, model: Model, index: int, pieces: list[list[Piece]], feet: list[Foot], most: int
    ) -> None:
        own = pieces[index]
        balls = _stacked([piece.balls for piece in own])
        links = [piece.link for piece in own for _ in piece.balls]
        centres = np.concatenate([np.zeros((0, 3)), *(piece.centres for piece in own)])
        centre_links = [piece.link for piece in own for _ in piece.centres]
        middle = balls[:, :3].mean(axis=0) if own else np.zeros(3)
        self.flip = np.append(np.where(middle < -1e-6, -1.0, 1.0), 1.0)
        outer = _is_outer(balls)
        order = [i for i in _sorting(balls * self.flip) if outer[i]]
        centre_order = _sorting(centres * self.flip[:3])
        self.balls = (balls * self.flip)[order]
        self.centres = (centres * self.flip[:3])[centre_order]
        self.links = [links[i] for i in order] + [centre_links[i] for i in centre_order]
        self.given = _stacked([foot.balls for foot in feet if foot.body == index]) * self.flip
        self.hull = support(self.balls)
        self.inner = inner_balls(self.balls, self.centres)
        above = _parent(model, index)
        self.outside = np.full(len(order), np.inf)
        if above >= 0 and pieces[above] and own:
            hull = support(_stacked([piece.balls for piece in pieces[above]]))
            self.outside = enclosed_in_parent(model, index, balls[order], hull, DIRECTIONS)
        self.depth, self.most = _depth(model, index), most
        self._reduced: dict[float, Floats | None] = {}

    def reduced(self, tolerance: float) -> Floats | None:
        """Few balls for the part that the parent does not enclose; None if too many for any robot."""
        if tolerance not in self._reduced:
            wanted = self.balls[self.outside > tolerance]
            self._reduced[tolerance] = wanted
            if len(wanted) > 0:
                balls = reduce_balls(wanted, self.inner, self.given, tolerance, self.most)
                self._reduced[tolerance] = balls
        return self._reduced[tolerance]

    def placed(self, ball: Floats) -> tuple[str, Floats]:
        """The link that a chosen ball comes from, and the ball in the body's frame."""
        rows = np.concatenate([self.balls[:, :3], self.centres])
        return self.links[int((rows == ball[:3]).all(axis=1).argmax())], ball * self.flip


def _stacked(sets: list[Floats]) -> Floats:
    return np.concatenate([np.zeros((0, 4)), *sets])


def _is_outer(balls: Floats) -> npt.NDArray[np.bool_]:
    """Which balls of a body are not well inside its hull; the others are irrelevant."""
    if len(balls) == 0:
        return np.zeros(0, dtype=np.bool_)
    depths = (support(balls) - balls[:, :3] @ DIRECTIONS.T - balls[:, 3:]).min(axis=1)
    return np.asarray(depths <= _INSIDE * float(np.ptp(balls[:, :3], axis=0).max()))


def _sorting(rows: Floats) -> list[int]:
    """Order of rows by their values, robust to rounding errors."""
    rounded = np.round(rows, 9) + 0.0
    return [int(i) for i in np.lexsort(rounded.T)]


def _parent(model: Model, body: int) -> int:
    """Index of the parent of a body, -1 if it does not move or there is none."""
    if not model.floating_base:
        return int(model.parents[body])
    return -1 if body == 0 else int(model.parents[body - 1]) + 1


def _depth(model: Model, body: int) -> int:
    """Number of bodies above a body."""
    depth = 0
    while (body := _parent(model, body)) >= 0:
        depth += 1
    return depth


def _choose(bodies: list[_Body], most: int) -> tuple[list[Floats], list[float]] | None:
    """Balls of each body and the tolerances with which they were chosen; None if no tolerance is feasible.

    The finest tolerance is sought with which all bodies together need at most `most` balls. The remaining
    balls go to the bodies with the worst tolerance, one depth of the tree at a time, so that equal legs are
    treated equally.
    """
    size = max(
        float((body.hull + support(body.balls, -DIRECTIONS)).max()) for body in bodies if len(body.balls)
    )
    if not _SMALLEST < size < _LARGEST:
        return None
    tolerance = _FINEST * size
    while (chosen := _reduced(bodies, tolerance, most)) is None:
        if tolerance > 10.0 * size:
            return None
        tolerance *= _COARSER
    tolerances = dict.fromkeys(sorted({body.depth for body in bodies}), tolerance)
    open_depths = set(tolerances)
    while open_depths:
        depth = max(open_depths, key=lambda d: (tolerances[d] * (_BASE_WEIGHT if d == 0 else 1.0), -d))
        level = [i for i, body in enumerate(bodies) if body.depth == depth]
        left = most - sum(len(balls) for i, balls in enumerate(chosen) if i not in level)
        finer = _next_finer([bodies[i] for i in level], tolerances[depth], left, _FINEST * size)
        if finer is None:
            open_depths.remove(depth)
            continue
        tolerances[depth], better = finer
        for i, balls in zip(level, better, strict=True):
            chosen[i] = balls
    return chosen, [tolerances[body.depth] for body in bodies]


def _next_finer(
    bodies: list[_Body], tolerance: float, most: int, finest: float
) -> tuple[float, list[Floats]] | None:
    """The next finer tolerance for which `most` balls are enough, and the balls; None if none is near."""
    for _ in range(_TRIES):
        tolerance /= _COARSER
        if tolerance < 0.99 * finest:
            return None
        chosen = _reduced(bodies, tolerance, most)
        if chosen is not None:
            return tolerance, chosen
    return None


def _reduced(bodies: list[_Body], tolerance: float, most: int) -> list[Floats] | None:
    """Balls of each body; None if they are more than `most` in all."""
    chosen: list[Floats] = []
    for body in bodies:
        balls = body.reduced(tolerance)
        if balls is None or len(balls) > most:
            return None
        chosen.append(balls)
        most -= len(balls)
    return chosen


def _named(
    model: Model, bodies: list[_Body], chosen: list[Floats], feet: list[Foot]
) -> tuple[ContactPoint, ...]:
    """The points in their order, with links and names."""
    legs = [[model.joint_names[j] for j in leg.joint_indices] for leg in model.legs]
    leg_of = {joint: i for i, leg in enumerate(legs) for joint in leg}
    first = len(model.body_names) - len(model.joint_names)
    order = sorted(
        range(model.nb), key=lambda i: leg_of.get(model.joint_names[i - first], -1) if i >= first else -2
    )
    points: list[ContactPoint] = []
    for i in order:
        by_link: dict[str, list[Floats]] = {}
        for chosen_ball in chosen[i]:
            link, ball = bodies[i].placed(chosen_ball)
            foot = next((foot for foot in feet if foot.body == i), None)
            if foot is not None and belongs_to_foot(foot, model.frames[foot.link].p, ball):
                link = foot.link
            elif link in model.foot_names:
                # A force on the upper end of a shape of a foot link is not a foot force.
                link = model.body_names[i]
            by_link.setdefault(link, []).append(ball)
        for link, balls in by_link.items():
            points += _points_of(model, link, link, np.array(balls), always_number=True)
    for foot in feet:
        points += _points_of(model, foot.link, foot.link, foot.balls)
    return _unique_names(points)


def _points_of(
    model: Model, name: str, link: str, balls: Floats, always_number: bool = False
) -> list[ContactPoint]:
    frame = model.frames[link]
    points = []
    for i, ball in enumerate(balls):
        x, y, z = (float(v) for v in frame.R.T @ (ball[:3] - frame.p))
        label = f'{name}_{i}' if always_number or len(balls) > 1 else name
        points.append(ContactPoint(label, link, (x, y, z), float(ball[3])))
    return points


def _unique_names(points: list[ContactPoint]) -> tuple[ContactPoint, ...]:
    """Make names unique: links may have names like those of points. Feet keep theirs."""
    taken: set[str] = set()
    result: list[ContactPoint] = []
    for point in reversed(points):
        name = point.name
        while name in taken:
            name += '_'
        taken.add(name)
        result.append(ContactPoint(name, point.link, point.position, point.radius))
    return tuple(reversed(result))
