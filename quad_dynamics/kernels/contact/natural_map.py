# SPDX-License-Identifier: Apache-2.0
"""Residual of the contact problem: the distance of impulses from a solution, by the natural map.

A contact with impulse p and velocity v relative to its target obeys Signorini's condition and Coulomb's law
if and only if, with the second-order cone K of friction mu,

    p = P_K(p - r (v + mu |v_t| n))        for any r > 0,

where P_K projects onto K and n is the normal (De Saxce and Feng, The bipotential method, 1998: the term
mu |v_t| n turns Coulomb's law, which is not associated, into a projection). A scalar constraint with bounds
obeys p = clip(p - r v, low, high). The residual is the distance between both sides over r, a velocity. It is
zero at a solution and nowhere else. With r = 1 / D, where D is the mean diagonal of the constraint's own
Delassus block, it is at most the remaining velocity error.

For the pyramid, whose tangents have separate limits, p_t = clip(p_t - r v_t, -mu p_n, mu p_n).
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number, Vec3
from quad_dynamics.kernels.contact.constraints import contact_velocity, stop_velocity
from quad_dynamics.kernels.simulation.scene import Contact, Scene
from quad_dynamics.memory.layout import Robot


@subroutine
def residual(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> Number:
    """The largest residual of all contacts and joint constraints, given their impulses and `y` [m/s]."""
    apart(robot)
    contacts, stops, y = scene.contacts, scene.stops, scene.y
    cone = scene.settings.cone
    largest = 0.0
    for i in range(n_contacts):
        contact = contacts[i]
        v = contact_velocity(scene, contact, y)
        D = mean_inertia(contact)
        x = contact_residual(contact.impulse, less_target(contact, v), D, contact.mu, cone, False)
        largest = max(largest, x)
    for i in range(n_stops):
        stop = stops[i]
        speed = stop_velocity(scene, stop, y) - stop.target
        x = stop_residual(stop.impulse, speed, stop.inertia, stop.lowest, stop.highest)
        largest = max(largest, x)
    return largest


@formula
def mean_inertia(contact: Contact) -> Number:
    """D: the mean diagonal of the Delassus block of a contact [1/kg]."""
    D = contact.inertia
    return (D[0] + D[3] + D[5]) * (1.0 / 3.0)


@formula
def less_target(contact: Contact, v: Vec3) -> Vec3:
    """The velocity of a contact minus its target."""
    return v[0] - contact.target, v[1], v[2]


@routine
def contact_residual(p: Vec3, v: Vec3, D: Number, mu: Number, cone: Int, held: Bool) -> Number:
    """The residual of one contact [m/s]; `held`: v_n contains mu |v_t| (see `sliding_speeds`)."""
    if not D > 0.0:
        return 0.0  # it cannot move at all
    x, y, z = D * p[0], D * p[1], D * p[2]
    if cone == 0:
        limit = mu * max(x, 0.0)
        slip = max(abs(y - clip(y - v[1], -limit, limit)), abs(z - clip(z - v[2], -limit, limit)))
        return max(slip, abs(x - max(x - v[0], 0.0)))
    speed2 = v[1] * v[1] + v[2] * v[2]
    raised = v[0]
    if speed2 > 0.0 and not held:
        raised += mu * math.sqrt(speed2)
    a, b, c = x - raised, y - v[1], z - v[2]
    t2 = b * b + c * c
    if a >= 0.0 and t2 <= mu * mu * a * a:
        return math.sqrt(raised * raised + speed2)
    t = math.sqrt(t2)
    if mu * t <= -a:
        return math.sqrt(x * x + y * y + z * z)
    s = (a + mu * t) / (1.0 + mu * mu)
    k = mu * s / t
    return math.sqrt((x - s) ** 2 + (y - k * b) ** 2 + (z - k * c) ** 2)


@routine
def stop_residual(p: Number, v: Number, d: Number, low: Number, high: Number) -> Number:
    """The residual of a scalar constraint with bounds on its impulse [m/s]."""
    if not d > 0.0:
        return 0.0
    return abs(p - clip(p - v / d, low, high)) * d


@routine
def clip(x: Number, low: Number, high: Number) -> Number:
    """Clip x to [low, high]."""
    return min(max(x, low), high)
