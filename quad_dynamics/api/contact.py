# SPDX-License-Identifier: Apache-2.0
"""Response of the robot to forces on its links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.links import Point, converted_offsets, points_of_links
from quad_dynamics.api.validation import States, not_a_model, packed_form, vector
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.contact_inertia import ROWS
from quad_dynamics.kernels.contact_inertia import contact_inertia as _contact_inertia
from quad_dynamics.kernels.contact_inertia import contact_propagators as _propagators
from quad_dynamics.kernels.contact_inertia import directional_inertia as _directional
from quad_dynamics.kernels.contact_inertia import unit_response as _unit_response
from quad_dynamics.model.model import Model

# Beyond this condition number, the link counts as unable to move in some direction.
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
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    links, offsets = points_of_links(packed, points)
    rows = ROWS * len(links)
    work: Floats = empty(packed.group * len(links))
    G: Floats = empty((rows, rows))
    if not _contact_inertia.run(packed.address, 0, q, links, offsets, 0, work, G):
        return G
    offsets = converted_offsets(points, offsets)
    s = States(model, q=q)
    G = s.empty(rows, rows)
    s.run(_contact_inertia, s['q'], links, offsets, 0, work, G)
    return G


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
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a zero direction.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    frame = packed.frame(link, 'link')
    work: Floats = empty(packed.nv)
    inverse: Floats = empty(1)
    if not _directional.run(packed.address, 0, q, frame, offset, direction, work, inverse):
        return inverse[0]  # type: ignore[no-any-return]
    place = _checked_place(link, offset, direction)
    s = States(model, q=q)
    inverse = s.empty(1)
    s.run(_directional, s['q'], frame, *place, work, inverse)
    return inverse.T[0]  # type: ignore[no-any-return]


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
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    links = (packed.frame(frame),)
    s = States(model, q=q)
    inverse = s.empty(6, 6)
    s.run(_contact_inertia, s['q'], links, None, 1, empty(2 * packed.group), inverse)
    if inverse.size and np.max(np.linalg.cond(inverse)) > _SINGULAR:
        rank = int(np.min(np.linalg.matrix_rank(inverse, rtol=1.0 / _SINGULAR)))
        raise ArgumentError(
            f"link '{frame}' can move in only {rank} directions in this configuration; expected 6"
        )
    inertia = np.asarray(np.linalg.inv(inverse), dtype=np.float64)
    return (inertia + np.swapaxes(inertia, -1, -2)) / 2.0


def unit_response(
    model: Model, q: npt.ArrayLike, link: str, offset: npt.ArrayLike, direction: npt.ArrayLike
) -> Floats:
    """Acceleration M^-1 J^T f due to a unit force on a link, by the matrices Q and W.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        link: name of the link.
        offset: (3,) point of application in the link's frame [m].
        direction: (3,) in world axes; it is normalised.

    Returns:
        (nv,) or (N, nv) du per unit force.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a zero direction.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    frame = packed.frame(link, 'link')
    work: Floats = empty(packed.nv + packed.nj * (6 + packed.nj))
    du: Floats = empty(packed.nv)
    if not _unit_response.run(packed.address, 0, q, frame, offset, direction, work, du):
        return du
    place = _checked_place(link, offset, direction)
    s = States(model, q=q)
    du = s.empty(packed.nv)
    s.run(_unit_response, s['q'], frame, *place, work, du)
    return du


@dataclass(frozen=True, eq=False)
class ContactPropagators:
    """Propagation of forces from link to link, in world axes with the origin at the base.

    In a batch, everything has a leading axis.

    Attributes:
        S: (nj, 6) motion [v; w] of each joint at unit speed.
        U: (nj, 6) articulated inertia times S, with the rotor's coupling.
        d_inv: (nj,) 1/d, where d is S . U plus the rotor's own inertia.
        Q: (nj, nj) and W (nj, 6): qdd = Q (d_inv * t) + W a_b for a force that contributes t at the joints
            and accelerates the base with a_b.
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


def _checked_place(link: str, offset: npt.ArrayLike, direction: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Point of application and direction of a force, as arrays (3,) for the kernels.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, a zero direction.
    """
    d = vector('direction', direction, 3)
    if not d.any():
        raise ArgumentError('direction has length 0; expected a nonzero vector in world axes')
    return vector(f"offset on '{link}'", offset, 3), d
