# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertia: the 4x4 matrix that is positive definite exactly for physically consistent bodies.

P = [[Sigma, h], [h^T, m]] with Sigma = integral of r r^T dm = tr(I)/2 1 - I, where I is the inertia about the
frame's origin and h = m c (Wensing, Kim, Slotine: Linear matrix inequalities for physically consistent
inertial parameter identification, RA-L 2018). P is linear in pi.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.model.inertia import full_inertia

# Smallest eigenvalue of Sigma about the com relative to its trace, of a body that was made consistent. A thin
# plate of 1 cm by 20 cm has 0.002; smaller values are errors of the file.
MARGIN = 1e-3
# Below this, a body is inconsistent: files with six digits are not more precise.
_LEAST = 1e-6
# Fraction of the inertia about the origin that is lost when it is shifted to the com.
_SHIFT = 1e-13
# Mass of a body without mass, relative to that of the robot; and its size [m].
_LEAST_MASS = 1e-6
_SIZE = 0.01


def _basis() -> Floats:
    """(10, 4, 4) basis with P = sum of pi[a] basis[a]."""
    E = np.zeros((10, 4, 4))
    E[0, 3, 3] = 1.0
    for k in range(3):
        E[1 + k, k, 3] = E[1 + k, 3, k] = 1.0
    for a, (i, j) in zip(range(4, 10), ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), strict=True):
        if i == j:
            E[a, :3, :3] = 0.5 * np.eye(3)
            E[a, i, i] = -0.5
        else:
            E[a, i, j] = E[a, j, i] = -1.0
    return E


BASIS = _basis()


def pseudo_inertia(pi: npt.ArrayLike) -> Floats:
    """(..., 4, 4) pseudo-inertia of parameters (..., 10)."""
    return np.asarray(np.tensordot(np.asarray(pi, dtype=np.float64), BASIS, axes=1))


def pi_of_pseudo_inertia(P: Floats) -> Floats:
    """(..., 10) parameters of (..., 4, 4): the inverse of `pseudo_inertia`."""
    Sigma = P[..., :3, :3]
    I = np.trace(Sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - Sigma
    flat = I.reshape(*I.shape[:-2], 9)[..., [0, 1, 4, 2, 5, 8]]
    return np.concatenate([P[..., 3, 3, None], P[..., :3, 3], flat], axis=-1)


def margins(pi: Floats) -> Floats:
    """(n,) smallest eigenvalue of Sigma about the com relative to its trace; <= 0: inconsistent body.

    Args:
        pi: (n, 10).

    Returns:
        At most 1/3, which is a ball; -inf without a positive mass.
    """
    result = np.full(len(pi), -np.inf)
    for i, row in enumerate(pi):
        if row[0] > 0.0:
            values = np.linalg.eigvalsh(_sigma_com(row))
            size = float(np.abs(values).sum())
            result[i] = (values[0] - _SHIFT * np.abs(row[[4, 6, 9]]).sum()) / size if size > 0.0 else 0.0
    return result


def inconsistent_bodies(pi: Floats, names: Sequence[str]) -> list[str]:
    """Names of the bodies that are not physically consistent.

    Args:
        pi: (n, 10) or (10 n,).
        names: of the n bodies.
    """
    return [name for name, margin in zip(names, margins(pi.reshape(-1, 10)), strict=True) if not margin > 0.0]


def make_consistent(pi: Floats, names: Sequence[str], total_mass: float) -> tuple[Floats, list[str]]:
    """All bodies made consistent, each changed as little as possible; consistent ones are unchanged.

    Args:
        pi: (n, 10).
        names: of the n bodies.
        total_mass: of the robot, for bodies without mass [kg].

    Returns:
        (n, 10) and a sentence for each body that was changed.
    """
    result, words = np.array(pi), []
    for i, (name, margin) in enumerate(zip(names, margins(pi), strict=True)):
        if margin > _LEAST:
            continue
        result[i] = nearest_consistent(pi[i], total_mass)
        words.append(f"body '{name}': {_fault(pi[i])}; {_change(pi[i], result[i])}")
    return result, words


def nearest_consistent(pi: Floats, total_mass: float = 1.0, margin: float = MARGIN) -> Floats:
    """(10,) a consistent body: same mass and com if possible, and the smallest change of inertia.

    The change is minimal in the sum of squares of Sigma about the com, whose eigenvalues become at least
    `margin` of its trace.

    Args:
        pi: (10,).
        total_mass: of the robot [kg]; a body without mass gets a millionth of it.
        margin: see `margins`.
    """
    mass = float(pi[0])
    if mass <= 0.0:
        mass = _LEAST_MASS * max(total_mass, 1e-3)
        P = np.diag([mass * _SIZE**2] * 3 + [mass])
        return pi_of_pseudo_inertia(P)
    com = pi[1:4] / mass
    values, axes = np.linalg.eigh(_sigma_com(pi))
    if not values[2] > mass * 1e-12:  # a point, or worse: use the size of a pebble
        values = np.full(3, mass * _SIZE**2)
    floor = margin * np.maximum(values, 0.0).sum() / (1.0 - 2.0 * margin)
    values = np.maximum(values, floor + 10.0 * _SHIFT * np.abs(pi[[4, 6, 9]]).sum())
    P = np.empty((4, 4))
    P[:3, :3] = (axes * values) @ axes.T + mass * np.outer(com, com)
    P[:3, 3] = P[3, :3] = pi[1:4]
    P[3, 3] = mass
    return pi_of_pseudo_inertia(P)


def _sigma_com(pi: Floats) -> Floats:
    """(3, 3) Sigma about the com of one body with a mass."""
    I = full_inertia(pi[4:])
    return np.asarray(0.5 * np.trace(I) * np.eye(3) - I - np.outer(pi[1:4], pi[1:4]) / pi[0])


def _fault(pi: Floats) -> str:
    """Text that says why a body is inconsistent."""
    if pi[0] <= 0.0:
        return f'its mass is {pi[0]:g} kg'
    moments = np.linalg.eigvalsh(_inertia_com(pi))
    if moments[2] <= 0.0:
        return 'it has no inertia about its com'
    if moments[0] <= 0.0:
        return f'its inertia about the com is not positive (least principal moment {moments[0]:.3g} kg m^2)'
    ratio = moments[2] / (moments[0] + moments[1])
    return f'inertia violates the triangle inequality (largest moment over sum of the others {ratio:.4g})'


def _change(before: Floats, after: Floats) -> str:
    if before[0] <= 0.0:
        return f'a mass of {after[0]:.2g} kg is assumed before the data'
    moments = [np.linalg.eigvalsh(_inertia_com(pi)) for pi in (before, after)]
    change = np.abs(moments[1] - moments[0]).max()
    return f'the nearest one that can exist is used (principal moments changed by up to {change:.2g} kg m^2)'


def _inertia_com(pi: Floats) -> Floats:
    Sigma = _sigma_com(pi)
    return np.asarray(np.trace(Sigma) * np.eye(3) - Sigma)
