# SPDX-License-Identifier: Apache-2.0
"""The zero-moment point, and its region: equations (12) to (17) of the planner.

The planner is that of Bellicoso, Jenelten, Gehring, Hutter, "Dynamic Locomotion Through Online Nonlinear
Motion Optimization for Quadrupedal Robots" (RA-L 2018). The rate of the angular momentum is assumed to be
zero.

With F = g - a and positions from a point of the ground, (12) is n x (p x F) / (n F) = p - F (n p) / (n F):
the intersection of the ground with the line along F through the centre of mass p. When feet push, n F is
negative. So an edge d z + r >= 0 of the support polygon, multiplied by n F, is an inequality with the
opposite sign: (15) has to be <= 0. Here it is multiplied by n (a - g), which is positive:

    c = (d p) n(a - g) - d(a - g) (n p) + r n(a - g) >= 0
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats


def zero_moment_point(p: Floats, a: Floats, normal: Floats, ground_point: Floats, g: float) -> Floats:
    """(..., 3) zero-moment point in the ground plane [m]; not finite if the normal force is zero.

    Args:
        p: (..., 3) centre of mass [m].
        a: (..., 3) its acceleration [m/s^2].
        normal: (3,) of the ground, of length 1.
        ground_point: (3,) a point of the ground [m].
        g: gravity, along -z [m/s^2].
    """
    push = _push(a, g)
    arm = p - ground_point
    with np.errstate(divide='ignore', invalid='ignore'):
        share = (arm @ normal) / (push @ normal)
        return np.asarray(p - share[..., None] * push)


def edge_constraint(p: Floats, a: Floats, d: Floats, r: float, normal: Floats, g: float) -> float:
    """c of one edge [m * m/s^2]: positive if the zero-moment point is inside, d z + r > 0.

    Args:
        p: (3,) centre of mass, from the point of the ground that r belongs to [m].
        a: (3,) its acceleration [m/s^2].
        d: (3,) normal of the edge, inward and along the ground.
        r: offset of the edge [m].
        normal: (3,) of the ground.
        g: gravity, along -z [m/s^2].
    """
    push = _push(a, g)
    return float((d @ p + r) * (normal @ push) - (d @ push) * (normal @ p))


def edge_gradient(
    p: Floats, a: Floats, d: Floats, r: float, normal: Floats, g: float
) -> tuple[Floats, Floats]:
    """Gradients (3,), (3,) of c with respect to p and a: minus (16), which belongs to (15) as written."""
    gamma = edge_matrix(d, normal)
    return -gamma @ _push(a, g), gamma @ p + r * normal


def edge_hessian(d: Floats, normal: Floats) -> Floats:
    """(6, 6) Hessian of c with respect to [p; a].

    (17) has -Gamma^T in the lower left, but a Hessian is symmetric: minus [[0, Gamma], [Gamma^T, 0]]. It is
    indefinite, so a convex program omits it.
    """
    gamma, zero = edge_matrix(d, normal), np.zeros((3, 3))
    return -np.block([[zero, gamma], [gamma.T, zero]])


def edge_matrix(d: Floats, normal: Floats) -> Floats:
    """(3, 3) Gamma = S(S(n)^T d) = n d^T - d n^T of (16)."""
    return np.asarray(np.outer(normal, d) - np.outer(d, normal))


def _push(a: Floats, g: float) -> Floats:
    """(..., 3) force of the ground over mass, a - g [m/s^2]."""
    return np.asarray(a + np.array([0.0, 0.0, g]))
