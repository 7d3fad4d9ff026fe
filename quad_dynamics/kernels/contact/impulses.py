# SPDX-License-Identifier: Apache-2.0
"""Impulses of contacts and joint constraints: a few sweeps of projected Gauss-Seidel, then Newton's method.

Warm-started with the impulses of the last step, one or two sweeps are often enough (Jourdan, Alart and Jean,
A Gauss-Seidel like algorithm to solve frictional contact problems, 1998); `one_contact` solves a single
contact. Sweeps converge slowly if contacts are coupled through stiff legs, if joints stick, or if several
contacts share a body. After a few sweeps Newton's method therefore takes over: full steps first
(`semismooth_newton`), then a method that converges from farther away (`smoothing_newton`). The residual of
the natural map (`natural_map`) is the convergence criterion of all.

None of them ensures that the impulses add no energy to the robot. Restitution is reduced where they would.
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
from quad_dynamics.kernels.contact.one_contact import free_velocity, settle_contact
from quad_dynamics.kernels.contact.smoothing_newton import (
    ALL_ATTEMPTS,
    FEW_ATTEMPTS,
    FULL_STEPS,
    newton,
    refine,
)
from quad_dynamics.kernels.contact.stops import has_friction_rows
from quad_dynamics.kernels.simulation.drives import any_stuck
from quad_dynamics.kernels.simulation.scene import Scene
from quad_dynamics.kernels.spatial import add, dot, scale
from quad_dynamics.memory.layout import Robot

_FEW = 2  # sweeps before Newton's method takes over
_ONE = 1  # the same if joint friction is among the constraints: sweeps converge slowly with it
_FAR = 1e-3  # if a sweep changes velocities by more than this, Newton's method follows at once [m/s]
# Sweeps are undone if they increase the residual, to more than _HARM. The next _SKIPS solutions then begin
# without sweeps where the residual is at most _NEAR [m/s].
_HARM, _SKIPS, _NEAR = 6e-4, 8, 0.01
_MORE = 50  # sweeps after the first attempts of Newton's method have failed, before all others
_SLOW, _ROUNDING = 1e-3, 1e-13  # margins for velocities [m/s] and for rounding of products, in `is_loss`
_FINE = 1e-12  # deviation of a contact velocity from its target that is rounding [m/s]
# A refinement is useless if it leaves more than the fraction _USELESS of the residual, as for a robot that
# creeps. It is then repeated only where the residual is above _GROWN times what it left, or above
# _GROWN * _CREEP [m/s], and in every step that is a multiple of _AGAIN.
_USELESS, _GROWN, _CREEP, _AGAIN = 0.1, 2.0, 1e-10, 16


@subroutine
def find_impulses(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Find the impulses, which must not add energy; returns whether they meet the tolerance."""
    apart(robot)
    bounces = aim(scene, n_contacts, True)
    converged = solve(robot, scene, n_contacts, n_stops)
    if bounces and work(scene, n_contacts, n_stops) > 0.0:
        converged = limit_restitution(robot, scene, n_contacts, n_stops)
    if not converged:
        # remove the rounding errors that impulses left in y when they grew large and small again
        start(robot, scene, n_contacts, n_stops)
        if not is_loss(scene, n_contacts, n_stops):
            leave_out_friction(robot, scene, n_contacts, n_stops)
    return converged


@routine
def is_loss(scene: Scene, n_contacts: Int, n_stops: Int) -> Bool:
    """Whether the impulses certainly dissipate energy, rounding errors included."""
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
    """Set the targets of the contacts, with or without restitution; returns whether any has a restitution."""
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
    """Kinetic energy added by the impulses: each times the mean of the velocities before and after."""
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
    """Reduce the restitution until the impulses add no energy; returns as `solve`.

    Contacts that each have their own restitution can add energy to a robot of many bodies. Without
    restitution, impulses never do. The work along the straight line between both solutions is a parabola.
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
    """The root below 1 of a parabola with these values at 0, 1/2 and 1; it is positive at 1."""
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
    """Save the impulses while others are tried, as the first (which = 0) or the second of two sets.

    `solve` overwrites the first one.
    """
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
    """Interpolate between the saved impulses: 0 gives the first set, 1 the second."""
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
    """Find the impulses for given targets; returns whether they meet the tolerance.

    Writes the residual and the number of sweeps to the state, if they are the largest of this step. The first
    saved set of impulses is overwritten.
    """
    apart(robot)
    tolerance = scene.settings.tolerance
    state, most = scene.state, scene.settings.max_sweeps
    sweeps, r = sweep_first(robot, scene, n_contacts, n_stops)
    if not r <= tolerance:
        newton(robot, scene, n_contacts, n_stops, FULL_STEPS)
        r = residual(robot, scene, n_contacts, n_stops)
        if not r <= tolerance:
            newton(robot, scene, n_contacts, n_stops, FEW_ATTEMPTS)
            r = residual(robot, scene, n_contacts, n_stops)
        if not r <= tolerance:
            sweeps += sweep_until(scene, n_contacts, n_stops, min(_MORE, most - sweeps), math.inf)
            newton(robot, scene, n_contacts, n_stops, ALL_ATTEMPTS)
            r = residual(robot, scene, n_contacts, n_stops)
    fine = _FINE if state.step % _AGAIN == 0 else max(_FINE, _GROWN * min(state.refined, _CREEP))
    if fine < r <= tolerance and n_contacts + n_stops > 1 and any_stuck(robot, scene):
        coarse = r
        refine(robot, scene, n_contacts, n_stops)
        r = residual(robot, scene, n_contacts, n_stops)
        state.refined = r if r > _USELESS * coarse else 0.0
    state.sweeps = max(state.sweeps, 1.0 * sweeps)
    state.residual = max(state.residual, r)
    return r <= tolerance


@subroutine
def sweep_first(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> tuple[Int, Number]:
    """The sweeps before Newton's method; returns their number and the residual.

    Where a leg nearly jams, a sweep can take the impulses far from a solution that they had almost reached.
    Such sweeps are undone, and the next solutions begin without any. Neither is done while a contact could
    open: a leg that jams may have two solutions, and sweeps find the one in which it leaves the ground.
    """
    apart(robot)
    state, settings = scene.state, scene.settings
    start(robot, scene, n_contacts, n_stops)
    if state.skips > 0:
        state.skips -= 1
        if not any_opens(scene, n_contacts):
            r = residual(robot, scene, n_contacts, n_stops)
            if r <= _NEAR:
                return scene.zero, r
    keep_impulses(scene, n_contacts, n_stops, 0)
    few = min(_ONE if has_friction_rows(scene, n_stops) else _FEW, settings.max_sweeps)
    sweeps = sweep_until(scene, n_contacts, n_stops, few, _FAR)
    r = residual(robot, scene, n_contacts, n_stops)
    if r <= max(settings.tolerance, _HARM):
        return sweeps, r
    exchange_impulses(robot, scene, n_contacts, n_stops)
    before = residual(robot, scene, n_contacts, n_stops)
    if before < r and not any_opens(scene, n_contacts):
        state.skips = _SKIPS
        return sweeps, before
    exchange_impulses(robot, scene, n_contacts, n_stops)
    return sweeps, r


@routine
def any_opens(scene: Scene, n_contacts: Int) -> Bool:
    """Whether any contact that has an impulse would leave the ground without it, all others fixed."""
    found = False
    for i in range(n_contacts):
        contact = scene.contacts[i]
        if contact.impulse[0] > 0.0:
            v = contact_velocity(scene, contact, scene.y)
            found |= free_velocity(contact, v, contact.impulse)[0] >= 0.0
    return found


@routine
def exchange_impulses(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Exchange the impulses with the first saved set."""
    for i in range(n_contacts):
        contact = scene.contacts[i]
        impulse = contact.impulse
        contact.impulse = contact.kept_impulse
        contact.kept_impulse = impulse
    for i in range(n_stops):
        stop = scene.stops[i]
        size = stop.impulse
        stop.impulse = stop.kept_impulse
        stop.kept_impulse = size
    start(robot, scene, n_contacts, n_stops)


@routine
def sweep_until(scene: Scene, n_contacts: Int, n_stops: Int, most: Int, far: Number) -> Int:
    """Sweep until the changes are within the tolerance or above `far`; returns the number of sweeps."""
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
