# SPDX-License-Identifier: Apache-2.0
"""Small vector algebra for the kernels: 3-vectors, rotations and symmetric matrices as tuples of numbers.

Tuples are kept in registers, so nothing is allocated. Every formula accepts floats and lanes. A 3 x 3 matrix
is a tuple of 9, row by row; a symmetric one a tuple of 6: xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import formula
from quad_dynamics.compiler.types import Address, Int, Mat3, Number, Quat, Sym3, Vec3


@formula
def vector3(x: Address, at: Int) -> Vec3:
    """The vector x[at : at + 3]."""
    return x[at], x[at + 1], x[at + 2]


@formula
def matrix3(x: Address, at: Int) -> Mat3:
    """The matrix x[at : at + 9], row by row."""
    return tuple(x[at + k] for k in range(9))


@formula
def columns(R: Mat3) -> tuple[Vec3, Vec3, Vec3]:
    """The three columns of a matrix."""
    return (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])


@formula
def add(a: Vec3, b: Vec3) -> Vec3:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@formula
def sym_sum(a: Sym3, b: Sym3) -> Sym3:
    """a + b of symmetric matrices."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]


@formula
def mat_sum(a: Mat3, b: Mat3) -> Mat3:
    """a + b of matrices."""
    return tuple(a[i] + b[i] for i in range(9))


@formula
def sub(a: Vec3, b: Vec3) -> Vec3:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@formula
def scale(a: Vec3, s: Number) -> Vec3:
    """a s."""
    return a[0] * s, a[1] * s, a[2] * s


@formula
def dot(a: Vec3, b: Vec3) -> Number:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@formula
def cross(a: Vec3, b: Vec3) -> Vec3:
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@formula
def rotate(R: Mat3, a: Vec3) -> Vec3:
    """R a."""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@formula
def unrotate(R: Mat3, a: Vec3) -> Vec3:
    """R^T a."""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@formula
def transpose(R: Mat3) -> Mat3:
    """R^T."""
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


@formula
def matmul(P: Mat3, T: Mat3) -> Mat3:
    """P T, row by row."""
    return (
        P[0] * T[0] + P[1] * T[3] + P[2] * T[6],
        P[0] * T[1] + P[1] * T[4] + P[2] * T[7],
        P[0] * T[2] + P[1] * T[5] + P[2] * T[8],
        P[3] * T[0] + P[4] * T[3] + P[5] * T[6],
        P[3] * T[1] + P[4] * T[4] + P[5] * T[7],
        P[3] * T[2] + P[4] * T[5] + P[5] * T[8],
        P[6] * T[0] + P[7] * T[3] + P[8] * T[6],
        P[6] * T[1] + P[7] * T[4] + P[8] * T[7],
        P[6] * T[2] + P[7] * T[5] + P[8] * T[8],
    )


@formula
def sym_mul(J: Sym3, a: Vec3) -> Vec3:
    """J a, with J symmetric (6)."""
    return (
        J[0] * a[0] + J[1] * a[1] + J[3] * a[2],
        J[1] * a[0] + J[2] * a[1] + J[4] * a[2],
        J[3] * a[0] + J[4] * a[1] + J[5] * a[2],
    )


@formula
def sym_rotate(R: Mat3, J: Sym3) -> Sym3:
    """R J R^T, symmetric (6)."""
    x = sym_mul(J, (R[0], R[1], R[2]))
    y = sym_mul(J, (R[3], R[4], R[5]))
    z = sym_mul(J, (R[6], R[7], R[8]))
    return (
        R[0] * x[0] + R[1] * x[1] + R[2] * x[2],
        R[3] * x[0] + R[4] * x[1] + R[5] * x[2],
        R[3] * y[0] + R[4] * y[1] + R[5] * y[2],
        R[6] * x[0] + R[7] * x[1] + R[8] * x[2],
        R[6] * y[0] + R[7] * y[1] + R[8] * y[2],
        R[6] * z[0] + R[7] * z[1] + R[8] * z[2],
    )


@formula
def inertia_mul(m: Number, h: Vec3, J: Sym3, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
    """Momentum [l; k] of a rigid inertia (mass, first moment, inertia about the origin) at [v; w]."""
    l = add(scale(v, m), cross(w, h))
    k = add(sym_mul(J, w), cross(h, v))
    return l, k


@formula
def quat_to_rot(x: Number, y: Number, z: Number, w: Number) -> Mat3:
    """Rotation matrix (9) of a quaternion x y z w, which need not be normalised."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w),
        s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w),
        s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


@formula
def quat_mul(a: Quat, b: Quat) -> Quat:
    """a b of quaternions x y z w (Hamilton)."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )
