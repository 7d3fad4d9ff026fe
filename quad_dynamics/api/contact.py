# SPDX-License-Identifier: Apache-2.0
"""What forces on the links do to the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.door import States, packed_form, vector
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.contact_inertia import FORCE_WORDS
from quad_dynamics.kernels.contact_inertia import contact_inertia as _contact_inertia
from quad_dynamics.kernels.contact_inertia import contact_propagators as _propagators
from quad_dynamics.kernels.contact_inertia import unit_response as _unit_response
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

# A contact point: the name of a link, or a link and a position in its frame [m].
Point = str | tuple[str, npt.ArrayLike]

# Beyond this condition number, the links' freedom to move is taken as lost in some direction.
_SINGULAR = 1e12


def contact_inertia(model: Model, q: npt.ArrayLike, points: Sequence[Point]) -> Floats:
    """Operational-space inverse inertia J M^-1 J^T of points, in world axes [1/kg].

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        points: P points: a link's name for its origin, or (link, position in the link's frame (3,) [m]).

    Returns:
        (3 P, 3 P) or (N, 3 P, 3 P), symmetric; rows x, y, z of each point.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    if isinstance(points, str) or not isinstance(points, Sequence):
        raise ArgumentError(f'points is {points!r}; expected a list of links or (link, offset)')
    forces = np.zeros((len(points), 3, FORCE_WORDS))
    for force, point in zip(forces, points, strict=True):
        force[:, :5] = _place(model, point, 'points')
    forces[:, :, 5:8] = np.eye(3)
    return _inverse_inertia(model, q, forces.reshape(-1, FORCE_WORDS))


def directional_inertia(
    model: Model, q: npt.ArrayLike, link: str, offset: npt.ArrayLike, direction: npt.ArrayLike
) -> Floats:
    """1/Lambda of a point in a direction: its acceleration along the direction per force along it [1/kg].

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        link: name of the link.
        offset: (3,) the point in the link's frame [m].
        direction: (3,) in world axes; it is normalised.

    Returns:
        A number, or (N,).

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a direction of length zero.
    """
    force = _unit_force(model, link, offset, direction)
    inverse: Floats = _inverse_inertia(model, q, force).T[0, 0]
    return inverse


def operational_space_inertia(model: Model, q: npt.ArrayLike, frame: str) -> Floats:
    """Operational-space inertia (J M^-1 J^T)^-1 of a link, [linear; angular] in world axes at its origin.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        frame: name of a link.

    Returns:
        (6, 6) or (N, 6, 6), symmetric.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, or a link that cannot move
            in all directions.
    """
    forces = np.empty((6, FORCE_WORDS))
    forces[:, :5] = _place(model, frame, 'frame')
    forces[:, 5:] = np.eye(6)
    inverse = _inverse_inertia(model, q, forces)
    if inverse.size and np.max(np.linalg.cond(inverse)) > _SINGULAR:
        rank = int(np.min(np.linalg.matrix_rank(inverse, rtol=1.0 / _SINGULAR)))
        raise ArgumentError(f"link '{frame}' can move in {rank} directions here; its inertia needs all 6")
    inertia = np.asarray(np.linalg.inv(inverse), dtype=np.float64)
    return (inertia + np.swapaxes(inertia, -1, -2)) / 2.0


def unit_response(
    model: Model, q: npt.ArrayLike, link: str, offset: npt.ArrayLike, direction: npt.ArrayLike
) -> Floats:
    """Acceleration M^-1 J^T f that a unit force on a link causes, by the matrices Q and W.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        link: name of the link.
        offset: (3,) point of action in the link's frame [m].
        direction: (3,) in world axes; it is normalised.

    Returns:
        (nv,) or (N, nv) du per unit force.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a direction of length zero.
    """
    packed = model._packed if type(model) is Model else packed_form(model)
    force = _unit_force(model, link, offset, direction)
    s = States(model, q=q)
    du = s.empty(packed.nv)
    room = np.empty((packed.nj, packed.nj)), np.empty((packed.nj, 6)), np.empty(packed.nv)
    s.run(_unit_response, s['q'], force, *room, du)
    return du


@dataclass(frozen=True, eq=False)
class ContactPropagators:
    """How forces travel from link to link, in world axes with the origin at the base.

    In a batch, everything has a leading axis.

    Attributes:
        S: (nj, 6) motion [v; w] of each joint at unit speed.
        U: (nj, 6) articulated inertia times S, with the rotor's coupling.
        d_inv: (nj,) 1/d, d = S . U and the rotor's own inertia.
        Q: (nj, nj) and W (nj, 6): qdd = Q (d_inv * t) + W a_b for a force that leaves t at the joints and
            moves the base with a_b.
        W: see Q.
    """

    S: Floats
    U: Floats
    d_inv: Floats
    Q: Floats
    W: Floats

    @property
    def chi(self) -> Floats:
        """(nj, 6, 6) propagators 1 - S U^T / d: a_child = chi a_parent at a joint that is free to move."""
        outer: Floats = np.einsum('...ji,...jk,...j->...jik', self.S, self.U, self.d_inv)
        return np.eye(6) - outer


def contact_propagators(model: Model, q: npt.ArrayLike) -> ContactPropagators:
    """The propagators chi and the matrices Q and W of a configuration.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    s = States(model, q=q)
    nj = packed_form(model).nj
    S, U, d_inv, Q, W = s.empty(nj, 6), s.empty(nj, 6), s.empty(nj), s.empty(nj, nj), s.empty(nj, 6)
    s.run(_propagators, s['q'], S, U, d_inv, Q, W)
    return ContactPropagators(S, U, d_inv, Q, W)


# Lane, joint and p_KF among the words of a frame.
_PLACE = np.array([0, 13, 1, 2, 3])


def _place(model: Model, point: Point, argument: str) -> Floats:
    """Where a force acts, as the kernels read it: lane and joint of the body, p_K (3).

    Args:
        model: robot.
        point: the point.
        argument: what an error message calls it.
    """
    try:
        link, offset = (point, None) if isinstance(point, str) else point
    except (TypeError, ValueError) as error:
        expected = 'the name of a link or (link, offset)'
        raise ArgumentError(f'{argument} has {point!r}; expected {expected}') from error
    frame = packed_form(model).frame(link, argument)
    place: Floats = frame[_PLACE]
    if not isinstance(point, str):
        place[2:] += frame[4:13].reshape(3, 3) @ vector(f"offset on '{link}'", offset, 3)  # type: ignore[arg-type]
    return place


def _unit_force(model: Model, link: str, offset: npt.ArrayLike, direction: npt.ArrayLike) -> Floats:
    """A unit force at a point of a link, as the kernels read it: (1, FORCE_WORDS)."""
    d = vector('direction', direction, 3)
    largest = np.abs(d).max()
    if largest == 0.0:
        raise ArgumentError('direction has the length 0; expected a direction in world axes')
    d = d / largest  # so that its square does not overflow
    force: Floats = np.zeros((1, FORCE_WORDS))
    force[0, :5] = _place(model, (link, offset), 'link')
    force[0, 5:8] = d / np.linalg.norm(d)
    return force


def _inverse_inertia(model: Model, q: npt.ArrayLike, forces: Floats) -> Floats:
    s = States(model, q=q)
    r = len(forces)
    G = s.empty(r, r)
    s.run(_contact_inertia, s['q'], forces, np.empty((r, packed_form(model).nv)), G)
    return G
