# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and stops: a few sweeps of projected Gauss-Seidel, then Newton's method.

From the impulses of the last step, one or two sweeps are often all that it takes; how they treat one contact
is in `one_contact`. They are slow where contacts pull at each other through stiff legs, and where joints are
stuck or several contacts share a body. So after a few sweeps a Newton method takes over (`smoothing_newton`).
The residual of the natural map (`natural_map`) decides when it is done, whoever found the impulses.

Neither sees what adds energy to the whole, which no contact may do: restitution is taken back where it would.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.contact.constraints import (
    contact_velocity,
    settle_stop,
    start,
    stop_velocity,
)
from quad_dynamics.kernels.contact.natural_map import residual
from quad_dynamics.kernels.contact.one_contact import settle_contact
from quad_dynamics.kernels.contact.smoothing_newton import newton, refine
from quad_dynamics.kernels.contact.stops import has_friction_rows
from quad_dynamics.kernels.simulation.drives import any_stuck
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.kernels.spatial import add, dot, scale
from quad_dynamics.memory.layout import Robot

_FEW = 2  # sweeps before Newton's method takes over
_ONE = 1  # the same where joint friction is among the constraints: sweeps are slow with it
_FAR = 1e-3  # a sweep that changes velocities by more is followed by Newton's method at once [m/s]
_MORE = 50  # sweeps after a quick try of Newton's method that failed, before a thorough one
_SLOW, _ROUNDING = 1e-3, 1e-13  # of velocities [m/s] and of products, to be sure that impulses take energy
_FINE = 1e-12  # velocity of a contact, beside its target, that is rounding [m/s]


@subroutine
def find_impulses(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Find the impulses, which together add no energy; whether they meet the tolerance."""
    apart(robot)
    bounces = aim(scene, n_contacts, True)
    converged = solve(robot, scene, n_contacts, n_stops)
    if bounces and work(scene, n_contacts, n_stops) > 0.0:
        converged = limit_restitution(robot, scene, n_contacts, n_stops)
    if not converged:
        start(
            robot, scene, n_contacts, n_stops
        )  # impulses that grew large and small again left their rounding in y
        if not is_loss(scene, n_contacts, n_stops):
            leave_out_friction(robot, scene, n_contacts, n_stops)
    return converged


@routine
def is_loss(scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Whether the impulses take energy for certain, whatever is lost by rounding."""
    size = 0.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        for k in range(3):
            size += abs(contact.impulse[k]) * (abs(contact.free_velocity[k]) + _SLOW)
    return work(scene, n_contacts, n_stops) + _ROUNDING * size <= 0.0


@subroutine
def leave_out_friction(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Impulses without friction: these always exist, are found, and add no energy."""
    apart(robot)
    aim(scene, n_contacts, False)
    for i in range(n_contacts):
        contact = scene.contacts[i]
        contact.kept_mu = contact.mu
        contact.mu = 0.0
        contact.impulse = (0.0, 0.0, 0.0)
    for i in range(n_stops):
        scene.stops[i].impulse = 0.0
    solve(robot, scene, n_contacts, n_stops)
    for i in range(n_contacts):
        contact = scene.contacts[i]
        contact.mu = contact.kept_mu
    scene.state.residual = residual(robot, scene, n_contacts, n_stops)  # with friction


@routine
def aim(scene: Scene, n_contacts: Int, bounce: Bool) -> Bool:
    """Give the contacts their targets, with or without restitution; whether any has a restitution."""
    found = False
    for i in range(n_contacts):
        contact = scene.contacts[i]
        found |= contact.bounce_target > 0.0
        contact.target = (
            contact.bounce_target if bounce and contact.bounce_target > 0.0 else contact.calm_target
        )
    return found


@routine
def work(scene: Scene, n_contacts: Int, n_stops: Int) -> Number:
    """What the impulses add to the kinetic energy: each times the mean of the velocities before and after."""
    y = scene.y
    total = 0.0
    for i in range(n_contacts):
        contact = scene.contacts[i]
        total += dot(contact.impulse, add(contact.free_velocity, contact_velocity(scene, contact, y)))
    for i in range(n_stops):
        stop = scene.stops[i]
        total += stop.impulse * (stop.free_velocity + stop_velocity(scene, stop, y))
    return 0.5 * total


@subroutine
def limit_restitution(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Take back so much of the restitution that the impulses add no energy; as `solve`.

    Points that leave the ground each with its own restitution can add energy to a robot of many bodies.
    Without any, impulses never do. The work along the straight line between both solutions is a parabola.
    """
    apart(robot)
    keep_impulses(scene, n_contacts, n_stops, 1)
    aim(scene, n_contacts, False)
    converged = solve(robot, scene, n_contacts, n_stops)
    keep_impulses(scene, n_contacts, n_stops, 0)
    none = work(scene, n_contacts, n_stops)
    mix_impulses(robot, scene, n_contacts, n_stops, 0.5)
    half = work(scene, n_contacts, n_stops)
    mix_impulses(robot, scene, n_contacts, n_stops, 1.0)
    full = work(scene, n_contacts, n_stops)
    mix_impulses(robot, scene, n_contacts, n_stops, last_root(none, half, full) if none <= 0.0 else 0.0)
    return converged


@routine
def last_root(none: Number, half: Number, full: Number) -> Number:
    """Where a parabola with these values at 0, 1/2 and 1 is zero, below the end 1 at which it is positive."""
    a, b = 2.0 * none - 4.0 * half + 2.0 * full, 4.0 * half - 3.0 * none - full
    below, above = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (below + above)
        if (a * middle + b) * middle + none > 0.0:
            above = middle
        else:
            below = middle
    return below


@routine
def keep_impulses(scene: Scene, n_contacts: Int, n_stops: Int, which: Int) -> None:
    """Keep the impulses while others are tried, as the first or the second that are kept."""
    for i in range(n_contacts):
        contact = scene.contacts[i]
        if which == 0:
            contact.kept_impulse = contact.impulse
        else:
            contact.other_impulse = contact.impulse
    for i in range(n_stops):
        stop = scene.stops[i]
        if which == 0:
            stop.kept_impulse = stop.impulse
        else:
            stop.other_impulse = stop.impulse


@routine
def mix_impulses(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int, share: Number) -> None:
    """Mix the impulses that are kept: 0 gives the first, 1 the second."""
    for i in range(n_contacts):
        contact = scene.contacts[i]
        one, other = contact.kept_impulse, contact.other_impulse
        contact.impulse = add(scale(one, 1.0 - share), scale(other, share))
    for i in range(n_stops):
        stop = scene.stops[i]
        stop.impulse = (1.0 - share) * stop.kept_impulse + share * stop.other_impulse
    start(robot, scene, n_contacts, n_stops)


@subroutine
def solve(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Find the impulses for given targets; whether they meet the tolerance.

    The residual goes to the state, and the number of sweeps where it is the largest of this step.
    """
    apart(robot)
    tolerance = scene.settings.tolerance
    start(robot, scene, n_contacts, n_stops)
    most = scene.settings.max_sweeps
    few = min(_ONE if has_friction_rows(scene, n_stops) else _FEW, most)
    sweeps = sweep_until(scene, n_contacts, n_stops, few, _FAR)
    r = residual(robot, scene, n_contacts, n_stops)
    if not r <= tolerance:
        newton(robot, scene, n_contacts, n_stops, False)
        r = residual(robot, scene, n_contacts, n_stops)
        if not r <= tolerance:
            sweeps += sweep_until(scene, n_contacts, n_stops, min(_MORE, most - sweeps), math.inf)
            newton(robot, scene, n_contacts, n_stops, True)
            r = residual(robot, scene, n_contacts, n_stops)
    if _FINE < r <= tolerance and n_contacts + n_stops > 1 and any_stuck(robot, scene):
        refine(robot, scene, n_contacts, n_stops)
        r = residual(robot, scene, n_contacts, n_stops)
    state = scene.state
    state.sweeps = max(state.sweeps, 1.0 * sweeps)
    state.residual = max(state.residual, r)
    return r <= tolerance


@routine
def sweep_until(scene: Scene, n_contacts: Int, n_stops: Int, most: Int, far: Number) -> Int:
    """Sweep until changes are within the tolerance, or above `far`; returns how often."""
    contacts, stops, y = scene.contacts, scene.stops, scene.y
    tolerance, cone = scene.settings.tolerance, scene.settings.cone
    for sweeps in range(most):
        change = 0.0
        for i in range(n_contacts):
            change = max(change, settle_contact(scene, contacts[i], y, cone))
        for i in range(n_stops):
            change = max(change, settle_stop(scene, stops[i], y))
        if change <= tolerance or change > far:
            return sweeps + 1
    return most
