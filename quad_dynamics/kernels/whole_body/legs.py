# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a leg: the Jacobian of its foot, its bias, and the inverse for the leg's own joints."""

from __future__ import annotations

from quad_dynamics.compiler.arrays import data, item
from quad_dynamics.compiler.trace import formula, routine, square_root
from quad_dynamics.compiler.types import Int, Number, Object, Sym3, Vec3
from quad_dynamics.kernels.controller_terms import DJ_F_U, J_F, V_WF
from quad_dynamics.kernels.spatial import (
    add,
    columns,
    cross,
    dot,
    scale,
    sub,
    sym_mul,
    sym_sum,
    vector3,
)
from quad_dynamics.kernels.whole_body.feet import centre_from_frame
from quad_dynamics.kernels.whole_body.records import BodyTasks, TaskLeg

# A leg is nearly singular if det(J_j J_j^T)^(1/2) is below _SINGULAR; _DAMPING is the damping of its inverse
# at a singularity. Both are relative to the length of the leg.
_SINGULAR, _DAMPING = 0.02, 0.05


@routine
def describe_leg(nv: Int, terms: Object, body: BodyTasks, leg: TaskLeg) -> None:
    """Write the Jacobian of a leg, its bias, its inverse, and the normal of a planar leg."""
    centre = centre_from_frame(terms, leg.foot)
    arm = centre
    if leg.down != 0:  # the lowest point
        _, _, up = columns(body.axes)
        arm = sub(centre, scale(up, leg.foot.radius))
    write_jacobian(nv, terms, leg, arm)
    leg.bias = point_bias(terms, leg, centre, arm)
    invert_leg(nv, body.length, leg)


@routine
def write_jacobian(nv: Int, terms: Object, leg: TaskLeg, arm: Vec3) -> None:
    """(3, nv) Jacobian of the point at `arm` from the origin of the foot's frame."""
    J, at = data(item(terms, J_F)), 6 * nv * leg.foot.frame
    for i in range(nv):
        v = J[at + i], J[at + nv + i], J[at + 2 * nv + i]
        w = J[at + 3 * nv + i], J[at + 4 * nv + i], J[at + 5 * nv + i]
        x, y, z = add(v, cross(w, arm))
        leg.jacobian[i], leg.jacobian[nv + i], leg.jacobian[2 * nv + i] = x, y, z


@routine
def point_bias(terms: Object, leg: TaskLeg, centre: Vec3, arm: Vec3) -> Vec3:
    """dJ/dt u of the point of `write_jacobian`.

    A foot of radius R that rolls on ground with the normal n moves with v = w x R n, so its centre
    accelerates with dw/dt x R n: the offset from the centre to the ground contributes no term quadratic in w.
    """
    at = 6 * leg.foot.frame
    w, bias = vector3(data(item(terms, V_WF)), at + 3), data(item(terms, DJ_F_U))
    turning = cross(w, cross(w, centre))
    return add(add(vector3(bias, at), turning), cross(vector3(bias, at + 3), arm))


@formula
def jacobian_column(nv: Int, leg: TaskLeg, i: Int) -> Vec3:
    """A column of the Jacobian of a leg."""
    J = leg.jacobian
    return J[i], J[nv + i], J[2 * nv + i]


@routine
def invert_leg(nv: Int, length: Number, leg: TaskLeg) -> None:
    """The damped inverse P = J_j^T (J_j J_j^T + lambda)^-1 of a leg, and the normal of a planar leg."""
    gram: Sym3 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for s in range(leg.joint_count):
        gram = sym_sum(gram, outer(jacobian_column(nv, leg, 6 + leg.joints[s].index)))
    if leg.planar != 0:
        # The adjugate of a matrix of rank 2 is l_1 l_2 e e^T. Adding length^2 e e^T makes J_j J_j^T
        # invertible; the inverse is the same within the plane.
        leg.normal = null_vector(adjugate(gram))
        gram = sym_sum(gram, outer(scale(leg.normal, length)))
    size = square_root(max(determinant(gram), 0.0)) / (length * length * length)
    if size < _SINGULAR:
        damping = _DAMPING * length * (1.0 - size / _SINGULAR)
        gram = add_to_diagonal(gram, damping * damping)
    inverse, share = adjugate(gram), 1.0 / determinant(gram)
    for s in range(leg.joint_count):
        joint = leg.joints[s]
        joint.inverse = scale(sym_mul(inverse, jacobian_column(nv, leg, 6 + joint.index)), share)


@formula
def outer(a: Vec3) -> Sym3:
    """a a^T."""
    return a[0] * a[0], a[0] * a[1], a[1] * a[1], a[0] * a[2], a[1] * a[2], a[2] * a[2]


@formula
def add_to_diagonal(S: Sym3, x: Number) -> Sym3:
    """S + x 1."""
    return S[0] + x, S[1], S[2] + x, S[3], S[4], S[5] + x


@formula
def adjugate(S: Sym3) -> Sym3:
    """The adjugate of a symmetric matrix: its inverse times its determinant."""
    xx, xy, yy, xz, yz, zz = S
    return (
        yy * zz - yz * yz,
        xz * yz - xy * zz,
        xx * zz - xz * xz,
        xy * yz - xz * yy,
        xy * xz - xx * yz,
        xx * yy - xy * xy,
    )


@formula
def determinant(S: Sym3) -> Number:
    """The determinant of a symmetric matrix."""
    xx, xy, yy, xz, yz, zz = S
    return xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)


@routine
def null_vector(adjugate: Sym3) -> Vec3:
    """The unit null vector of a symmetric matrix of rank 2; the zero vector at a lower rank.

    All columns of the adjugate are multiples of it; the longest is used.
    """
    xx, xy, yy, xz, yz, zz = adjugate
    e = xx, xy, xz
    if yy >= xx and yy >= zz:
        e = xy, yy, yz
    elif zz >= xx:
        e = xz, yz, zz
    norm = square_root(dot(e, e))
    return scale(e, 1.0 / norm if norm > 0.0 else 0.0)
