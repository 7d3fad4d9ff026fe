# SPDX-License-Identifier: Apache-2.0
"""Bodies whose inertia needs mass outside of their geometry.

Mass inside an interval [a, b] with its centre at c has a variance of at most (b - c) (c - a) (Bhatia and
Davis, A better bound on the variance, 2000). A body with a larger variance along an axis of its box has mass
outside of the box: a payload that sticks out, or base accelerations or forces that are not those of this
robot. Physical consistency and limits of masses and centres of mass do not exclude that.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.solvers.link_extents import link_extents
from quad_dynamics.identification.solvers.pseudo_inertia import pseudo_inertia
from quad_dynamics.identification.solvers.solution import Solution

_TOLERANCE = 1.2  # on lengths: boxes are rough
_DIAGONAL = [4, 6, 9]  # Ixx, Iyy, Izz in the parameters of a body
_SHOWN = 4  # number of bodies that are named


def outside_geometry(solution: Solution) -> list[str]:
    """Warning about bodies whose inertia certainly needs mass outside of their geometry.

    A body counts only if all of its 95 % interval does, because inertia that the data hardly determine is no
    evidence; and only if its inertia in the URDF fits into the geometry better.

    Args:
        solution: to check.
    """
    columns = solution.columns
    pi = solution.part('pi').reshape(-1, 10)
    free = solution.free[columns.slices['pi']].reshape(-1, 10)[:, _DIAGONAL].all(axis=1)
    if not free.any():
        return []
    least, most = _least_deviations(solution, pi), _largest_deviations(solution, pi)
    texts = []
    for i in np.flatnonzero(free & (least > _TOLERANCE * most).any(axis=1)):
        k = int(np.argmax(least[i] - _TOLERANCE * most[i]))
        texts.append(
            f'{columns.model.body_names[i]} (along {"xyz"[k]} at least {least[i, k]:.2g} m, where its '
            f'geometry allows {most[i, k]:.2g} m)'
        )
    if not texts:
        return []
    more = f' and {len(texts) - _SHOWN} more' if len(texts) > _SHOWN else ''
    return [
        'the identified inertia needs mass outside of the geometry, by the standard deviation of the mass '
        f'about its centre: {", ".join(texts[:_SHOWN])}{more}. A payload that sticks out explains that, and '
        'so do errors of accelerations, torques or foot forces'
    ]


def _least_deviations(solution: Solution, pi: Floats) -> Floats:
    """(nb, 3) lower ends of the standard deviations of mass about its centre, along each axis [m].

    Sigma_xx = (Iyy + Izz - Ixx) / 2; the errors of all three may add up.
    """
    reach = (solution.high - solution.x)[solution.columns.slices['pi']].reshape(-1, 10)
    return np.nan_to_num(_deviations(pi, 0.5 * reach[:, _DIAGONAL].sum(axis=1, keepdims=True)))


def _largest_deviations(solution: Solution, pi: Floats) -> Floats:
    """(nb, 3) largest standard deviations inside the box of each body, or that of the model if more [m]."""
    columns = solution.columns
    boxes = link_extents(columns.model)
    c = np.clip(pi[:, 1:4] / pi[:, :1], boxes[:, 0], boxes[:, 1])
    inside = np.sqrt((boxes[:, 1] - c) * (c - boxes[:, 0]))
    return np.maximum(inside, _deviations(columns.prior[columns.slices['pi']].reshape(-1, 10)))


def _deviations(pi: Floats, error: Floats | float = 0.0) -> Floats:
    """(nb, 3) standard deviations of mass about its centre, if Sigma of (nb, 10) is smaller by an error."""
    Sigma = np.diagonal(pseudo_inertia(pi)[:, :3, :3], axis1=1, axis2=2) - error
    m, h = pi[:, :1], pi[:, 1:4]
    return np.asarray(np.sqrt(np.maximum(Sigma / m - (h / m) ** 2, 0.0)))
