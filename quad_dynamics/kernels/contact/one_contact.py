# SPDX-License-Identifier: Apache-2.0
"""The impulse of one contact while all others are fixed.

Let b be the velocity of the contact without its own impulse p, minus the target, and D its Delassus block.
Then either b + D p = 0 (sticking), or friction is at its limit and opposite to the sliding velocity
(sliding), or p = 0 (opening). At its limit, friction grows with the normal impulse, and on an inclined leg it
also acts on the normal velocity. Both are therefore solved together; otherwise they could amplify each other.
If that fails, for instance because a leg jams, the contact gets an impulse without friction, and Newton's
method finds the solution.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number, Upper3, Vec3
from quad_dynamics.kernels.contact.constraints import add_contact, contact_velocity
from quad_dynamics.kernels.simulation.scene import Contact, Scene

_NEWTON_STEPS = 20
_TURNS = 2  # iterations of the direction of friction
_LOCAL_SHARE = 0.01  # fraction of the tolerance to which one contact is solved
# A leg jams if the effect of the normal impulse is less than this fraction of that without friction.
_JAMMED = 0.02


@routine
def settle_contact(scene: Scene, contact: Contact, y: Numbers, cone: Int) -> Number:
    """Update the impulse of one contact while the others are fixed; returns the change of its velocity."""
    v = contact_velocity(scene, contact, y)
    old = contact.impulse
    new = stick(contact, v, old)
    mu = contact.mu
    largest = mu * new[0]
    fits = new[0] >= 0.0 and contact.inverse[0] > 0.0
    if cone != 0:
        fits = fits and new[1] * new[1] + new[2] * new[2] <= largest * largest
    else:
        fits = fits and abs(new[1]) <= largest and abs(new[2]) <= largest
    # a contact that can open does, even if friction could jam it
    b = free_velocity(contact, v, old)
    if b[0] >= 0.0:
        new = (0.0, 0.0, 0.0)
    elif not fits:
        new = slide(contact.inertia, b, old, mu, cone, scene.settings.tolerance)
    change = (new[0] - old[0], new[1] - old[1], new[2] - old[2])
    add_contact(scene, contact, change, y)
    contact.impulse = new
    D = contact.inertia
    return max(abs(change[0]) * D[0], abs(change[1]) * D[3], abs(change[2]) * D[5])


@formula
def stick(contact: Contact, v: Vec3, old: Vec3) -> Vec3:
    """The impulse that makes the contact stick: old - D^-1 (v - target)."""
    i, r = contact.inverse, (v[0] - contact.target, v[1], v[2])
    return (
        old[0] - (i[0] * r[0] + i[1] * r[1] + i[2] * r[2]),
        old[1] - (i[1] * r[0] + i[3] * r[1] + i[4] * r[2]),
        old[2] - (i[2] * r[0] + i[4] * r[1] + i[5] * r[2]),
    )


@formula
def free_velocity(contact: Contact, v: Vec3, old: Vec3) -> Vec3:
    """The velocity of a contact without its own impulse, minus the target."""
    D = contact.inertia
    return (
        v[0] - contact.target - (D[0] * old[0] + D[1] * old[1] + D[2] * old[2]),
        v[1] - (D[1] * old[0] + D[3] * old[1] + D[4] * old[2]),
        v[2] - (D[2] * old[0] + D[4] * old[1] + D[5] * old[2]),
    )


@subroutine
def slide(D: Upper3, b: Vec3, old: Vec3, mu: Number, cone: Int, tolerance: Number) -> Vec3:
    """The impulse of a sliding contact."""
    if not D[0] > 0.0:
        return (0.0, 0.0, 0.0)
    if not mu > 0.0:
        return (-b[0] / D[0], 0.0, 0.0)
    if cone != 0:
        found, p = slide_along(D, b, old, mu, tolerance)
    else:
        found, p = try_faces(D, b, mu)
    return p if found else (-b[0] / D[0], 0.0, 0.0)


@routine
def slide_along(D: Upper3, b: Vec3, old: Vec3, mu: Number, tolerance: Number) -> tuple[Bool, Vec3]:
    """Alternate friction and normal impulse, from the old direction of friction; whether they converge."""
    nn, n1, n2, d11, d12, d22 = D
    x, y = old[1], old[2]
    if x == 0.0 and y == 0.0:
        x, y = -b[1], -b[2]
    normal = max(old[0], 0.0)
    at_limit = True
    last, change = 0.0, 0.0
    for _ in range(_TURNS):
        size = math.sqrt(x * x + y * y)
        stiff, rest = nn, b[0] + n1 * x + n2 * y
        if at_limit and size > 0.0:
            stiff, rest = nn + mu * (n1 * x + n2 * y) / size, b[0]
        if stiff <= _JAMMED * nn:
            return False, (0.0, 0.0, 0.0)
        before, x_before, y_before = normal, x, y
        normal = max(-rest / stiff, 0.0)
        x, y = most_dissipative_friction(b[1] + n1 * normal, b[2] + n2 * normal, d11, d12, d22, mu * normal)
        at_limit = x * x + y * y >= (1.0 - 1e-9) * (mu * normal) ** 2
        last = change
        change = max(abs(normal - before) * nn, abs(x - x_before) * d11, abs(y - y_before) * d22)
        if change <= _LOCAL_SHARE * tolerance:
            break
    # if it converges, a few more sweeps will finish
    return change <= last, (normal, x, y)


@routine
def try_faces(D: Upper3, b: Vec3, mu: Number) -> tuple[Bool, Vec3]:
    """Try all faces and edges of the pyramid: each tangent slides one way, the other way, or sticks."""
    for face in range(9):
        sx, sy = float(face // 3 - 1), float(face % 3 - 1)
        if sx == 0.0 and sy == 0.0:
            continue
        good, p = on_face(D, b, mu, sx, sy)
        if good:
            return True, p
    return False, (0.0, 0.0, 0.0)


@routine
def on_face(D: Upper3, b: Vec3, mu: Number, sx: Number, sy: Number) -> tuple[Bool, Vec3]:
    """The impulse with friction at its limit where a sign is given, sticking elsewhere; whether it holds."""
    nn, n1, n2, d11, d12, d22 = D
    # p = normal * w + t * e, where e is the tangent that sticks, if there is one
    wx, wy = mu * sx, mu * sy
    stiff = nn + n1 * wx + n2 * wy
    if sx != 0.0 and sy != 0.0:
        if stiff <= _JAMMED * nn:
            return False, (0.0, 0.0, 0.0)
        normal, t = -b[0] / stiff, 0.0
        x, y = wx * normal, wy * normal
    else:
        if sx == 0.0:
            cross_n, cross_w, dd, bt = n1, n1 + d12 * wy, d11, b[1]
        else:
            cross_n, cross_w, dd, bt = n2, n2 + d12 * wx, d22, b[2]
        # stiff normal + cross_n t = -b0;  cross_w normal + dd t = -bt
        determinant = stiff * dd - cross_n * cross_w
        if determinant <= _JAMMED * nn * dd:
            return False, (0.0, 0.0, 0.0)
        normal = (-b[0] * dd + cross_n * bt) / determinant
        t = (-stiff * bt + cross_w * b[0]) / determinant
        if sx == 0.0:
            x, y = t, wy * normal
        else:
            x, y = wx * normal, t
    if normal < 0.0 or abs(t) > mu * normal:
        return False, (0.0, 0.0, 0.0)
    v1, v2 = b[1] + n1 * normal + d11 * x + d12 * y, b[2] + n2 * normal + d12 * x + d22 * y
    if sx * v1 > 0.0 or sy * v2 > 0.0:
        return False, (0.0, 0.0, 0.0)
    return True, (normal, x, y)


@routine
def most_dissipative_friction(
    b1: Number, b2: Number, d11: Number, d12: Number, d22: Number, largest: Number
) -> tuple[Number, Number]:
    """Friction of a sliding contact: the impulse x with |x| <= largest that dissipates most.

    It minimises x . D x / 2 + b . x, where b is the velocity without x. On the boundary, (D + g 1) x = -b:
    friction is opposite to the sliding velocity, whose magnitude is g |x|. In the principal axes of D this is
    a scalar equation for g, which Newton's method solves from below.
    """
    if largest <= 0.0:
        return 0.0, 0.0
    # eigenvalues e1 >= e2 and the first axis (c, s)
    half = 0.5 * (d11 - d22)
    root = math.sqrt(half * half + d12 * d12)
    e1 = 0.5 * (d11 + d22) + root
    e2 = max(0.5 * (d11 + d22) - root, 0.0)
    if root > 0.0:
        s, c = d12, root + half
        if half < 0.0:
            s, c = root - half, d12
        length = math.sqrt(s * s + c * c)
        s, c = s / length, c / length
    else:
        s, c = 0.0, 1.0
    p, q = c * b1 + s * b2, c * b2 - s * b1
    # a lower bound of g
    size = math.sqrt(p * p + q * q)
    g = max(size / largest - e1, 0.0)
    if e1 + g <= 0.0:
        return 0.0, 0.0
    for _ in range(_NEWTON_STEPS):
        x1 = -p / (e1 + g)
        x2 = -q / (e2 + g) if e2 + g > 0.0 else 0.0
        length2 = x1 * x1 + x2 * x2
        if g == 0.0 and length2 <= largest * largest:
            break
        slope = x1 * x1 / (e1 + g) + (x2 * x2 / (e2 + g) if e2 + g > 0.0 else 0.0)
        length = math.sqrt(length2)
        step = (length - largest) / largest * length2 / slope
        g += step
        if not abs(step) > 1e-14 * (e1 + g):
            break
    x1 = -p / (e1 + g)
    x2 = -q / (e2 + g) if e2 + g > 0.0 else 0.0
    length = math.sqrt(x1 * x1 + x2 * x2)
    if length > largest:
        x1, x2 = x1 * (largest / length), x2 * (largest / length)
    return c * x1 - s * x2, s * x1 + c * x2
