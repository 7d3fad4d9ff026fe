# SPDX-License-Identifier: Apache-2.0
"""Inertial parameters pi = [m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] about the frame's origin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats

_FLAT_TO_FULL = [0, 1, 3, 1, 2, 4, 3, 4, 5]
_FULL_TO_FLAT = [0, 1, 4, 2, 5, 8]

# A body whose smallest principal moment is below this fraction of its largest counts as singular.
SINGULAR = 1e-10
# Relative error by cancellation when the inertia is shifted from the origin to the com.
_SHIFT_ERROR = 1e-14


def full_inertia(flat: npt.ArrayLike) -> Floats:
    """Symmetric matrices (..., 3, 3) of (..., 6) [xx, xy, yy, xz, yz, zz]."""
    values = np.asarray(flat, dtype=np.float64)
    return values[..., _FLAT_TO_FULL].reshape(*values.shape[:-1], 3, 3)


def flat_inertia(full: Floats) -> Floats:
    """The inverse of `full_inertia`."""
    return np.asarray(full.reshape(*full.shape[:-2], 9)[..., _FULL_TO_FLAT])


def steiner(mass: npt.ArrayLike, p: Floats) -> Floats:
    """Inertia (..., 3, 3) of point masses (...) at p (..., 3) about the origin: m (|p|^2 1 - p p^T)."""
    squares = np.sum(p * p, axis=-1, keepdims=True)[..., None]
    unit_mass = squares * np.eye(3) - p[..., :, None] * p[..., None, :]
    return np.asarray(np.asarray(mass)[..., None, None] * unit_mass)


def pi_of(mass: float, com: Floats, inertia_com: Floats) -> Floats:
    """Inertial parameters (10,) of a mass [kg] at com (3,) [m] with inertia (3, 3) about it [kg m^2]."""
    return np.concatenate(([mass], mass * com, flat_inertia(inertia_com + steiner(mass, com))))


def about_com(pi: Floats) -> tuple[Floats, Floats, Floats]:
    """Mass (n,), com (n, 3) and inertia about the com (n, 3, 3) of parameters (n, 10); no mass may be 0."""
    mass = pi[:, 0]
    com = pi[:, 1:4] / mass[:, None]
    return mass, com, full_inertia(pi[:, 4:]) - steiner(mass, com)


def rotation_of_rpy(rpy: Sequence[float]) -> Floats:
    """R = Rz(yaw) Ry(pitch) Rx(roll): rpy in URDF are rotations about the fixed axes x, y, z."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def principal_moments(inertia_com: Floats) -> Floats:
    """Eigenvalues (..., 3), ascending, of symmetric matrices (..., 3, 3)."""
    return np.asarray(np.linalg.eigvalsh(inertia_com), dtype=np.float64)


def implausible_bodies(pi: Floats) -> list[tuple[int, str]]:
    """Find the rows of pi (n, 10) that are not physically consistent.

    Returns:
        (row, what is wrong) for each of them: mass not positive, or inertia about the com not positive
        definite.
    """
    found = [(int(i), f'mass is {pi[i, 0]:g}; expected > 0') for i in np.flatnonzero(pi[:, 0] <= 0.0)]
    good = np.flatnonzero(pi[:, 0] > 0.0)
    # Extreme ratios overflow to inf or nan; they fail the comparison below, as they should.
    with np.errstate(all='ignore'):
        inertia_com = about_com(pi[good])[2]
        usable = np.isfinite(inertia_com).all(axis=(1, 2), keepdims=True)
        moments = principal_moments(np.where(usable, inertia_com, 0.0))
        floor = np.maximum(
            SINGULAR * moments[:, 2], _SHIFT_ERROR * np.abs(pi[good][:, [4, 6, 9]]).sum(axis=1)
        )
        bad = ~(moments[:, 0] > floor)
    for i, w in zip(good[bad], moments[bad], strict=True):
        shown = ', '.join(f'{value:.3g}' for value in w)
        found.append(
            (
                int(i),
                f'inertia about the com is not positive definite (principal moments {shown} kg m^2; '
                'expected all > 0)',
            )
        )
    return sorted(found)
