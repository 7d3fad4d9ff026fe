# SPDX-License-Identifier: Apache-2.0
"""The Delassus operator of the working set, G = J M^-1 J^T, as a dense matrix.

Gauss-Seidel sweeps do not need it (see `constraints`), Newton's method does. It is built only for the
*working set*: the contacts and joint constraints that have an impulse, or would be violated without one. The
others get no impulse. After the working set is solved, `list_unknowns` adds the constraints that the solution
violates; none is ever removed, so this terminates.

The workspace (`NewtonWorkspace`) has a capacity of `capacity` unknowns. A contact has three (normal, first
and second tangent), a joint constraint has one.
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, fill_zero, routine, subroutine
from quad_dynamics.compiler.types import LANES, Bool, Int, Number
from quad_dynamics.kernels.contact.constraints import (
    block_product,
    contact_velocity,
    short_product,
    stop_velocity,
    write3,
)
from quad_dynamics.kernels.contact.natural_map import mean_inertia
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, Contact, Scene, Stop
from quad_dynamics.memory.layout import Robot

_OPEN = 1e-14  # a normal impulse that changes its contact velocity by no more than this is rounding [m/s]
_PER_UNKNOWN = 6  # numbers of the blocks of reduced equations, per unknown
# Problems with more unknowns are never solved with G, but with the reduced equations (see `newton_step`).
MOST_DENSE = 64


@routine
def row_length(n: Int) -> Int:
    """Length of a row of a matrix with n columns and a right-hand side: a multiple of LANES."""
    return (n // LANES + 1) * LANES


@routine
def reduced_size(robot: Robot) -> Int:
    """Number of unknowns of the reduced equations: the columns of a row (see `constraints`)."""
    return BASE_COLUMNS + robot.nj


@routine
def reduced_length(m: Int) -> Int:
    """Length of a row of the reduced equations: a block of four joints may begin with the last joint."""
    return row_length(m + LANES)


def workspace_sizes(capacity: int, nj: int) -> dict[str, int]:
    """Sizes of `NewtonWorkspace` for a capacity (a multiple of LANES) and a number of joints."""
    dense = min(capacity, MOST_DENSE + LANES)
    columns = BASE_COLUMNS + nj
    row = ((columns + LANES) // LANES + 1) * LANES  # reduced_length
    return {
        'capacity': capacity,
        'dense': dense * (dense + LANES),
        'blocks': _PER_UNKNOWN * capacity,
        'reduced': columns * row,
        'reduced_row': row,
    }


# ---------------------------------------------------------------- working set


@routine
def forget_unknowns(scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """Empty the working set."""
    for i in range(n_contacts):
        scene.contacts[i].unknown = -1
    for i in range(n_stops):
        scene.stops[i].unknown = -1


@subroutine
def list_unknowns(robot: Robot, scene: Scene, n_contacts: Int, n_stops: Int) -> tuple[Int, Bool]:
    """Add active and violated constraints to the working set; returns its unknowns, and whether any is new.

    Unknowns are renumbered, and their impulses and free velocities are written.
    """
    apart(robot)
    n, added = scene.zero, False
    y = scene.y
    for i in range(n_contacts):
        contact = scene.contacts[i]
        listed = contact.unknown >= 0
        if not listed:
            v = contact_velocity(scene, contact, y)
            if contact.impulse[0] > 0.0 or v[0] < contact.target:
                listed = added = True
        if listed:
            contact.unknown = n
            list_contact(scene, contact, n)
            n += 3
    for i in range(n_stops):
        stop = scene.stops[i]
        listed = stop.unknown >= 0
        if not listed:
            pushes = stop.impulse != 0.0 or stop.lowest < 0.0
            if pushes or stop_velocity(scene, stop, y) < stop.target:
                listed = added = True
        if listed:
            stop.unknown = n
            list_stop(scene, stop, n)
            n += 1
    return n, added


@routine
def count_unknowns(n_contacts: Int, n_stops: Int) -> Int:
    """Upper bound of the number of unknowns."""
    return 3 * n_contacts + n_stops


@routine
def list_contact(scene: Scene, contact: Contact, n: Int) -> None:
    """Write the three unknowns of a contact, from n on."""
    rows, length, newton = contact.rows, scene.row_length, scene.newton
    for k in range(3):
        unknown = newton.unknowns[n + k]
        unknown.row = part(rows, k * length)
        unknown.first = contact.first
        unknown.blocks = contact.blocks
    write3(newton.impulse, n, contact.impulse)
    write3(newton.free_velocity, n, contact.free_velocity)
    newton.free_velocity[n] -= contact.target


@routine
def list_stop(scene: Scene, stop: Stop, n: Int) -> None:
    """Write the unknown of a joint constraint."""
    drive = scene.drives[stop.joint]
    newton = scene.newton
    unknown = newton.unknowns[n]
    unknown.row = stop.row
    unknown.first = drive.first
    unknown.blocks = drive.blocks
    newton.impulse[n] = stop.impulse
    newton.free_velocity[n] = stop.free_velocity - stop.target


@routine
def list_inertias(scene: Scene, n_contacts: Int, n_stops: Int) -> None:
    """inertia = D of each unknown of the working set."""
    to = scene.newton.inertia
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        if k >= 0:
            D = mean_inertia(contact)
            write3(to, k, (D, D, D))
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        if k >= 0:
            to[k] = stop.inertia


@routine
def take_impulses(scene: Scene, n_contacts: Int, n_stops: Int, p: Numbers) -> None:
    """Give the constraints of the working set the impulses p; a contact with a tiny one opens."""
    for i in range(n_contacts):
        contact = scene.contacts[i]
        k = contact.unknown
        impulse = (0.0, 0.0, 0.0)
        if k >= 0 and p[k] * mean_inertia(contact) > _OPEN:
            impulse = (p[k], p[k + 1], p[k + 2])
        contact.impulse = impulse
    for i in range(n_stops):
        stop = scene.stops[i]
        k = stop.unknown
        stop.impulse = p[k] if k >= 0 else 0.0


# ---------------------------------------------------------------- the matrix


@subroutine
def fill_delassus(robot: Robot, scene: Scene, n: Int) -> None:
    """G = J M^-1 J^T of the n unknowns: the dot products of their rows."""
    apart(robot)
    G, length, unknowns = scene.newton.delassus, row_length(n), scene.newton.unknowns
    for i in range(n):
        row, first, blocks = unknowns[i].row, unknowns[i].first, unknowns[i].blocks
        for j in range(i + 1):
            shared = 0
            if first == unknowns[j].first:
                shared = min(blocks, unknowns[j].blocks)
            x = row_product(row, unknowns[j].row, shared)
            G[i * length + j] = x
            G[j * length + i] = x
        fill_zero(G, i * length + n, length - n)


@routine
def row_product(a: Numbers, b: Numbers, blocks: Int) -> Number:
    """Dot product of two rows: the base, and the joints that both have."""
    if blocks == 0:
        return block_product(a, b) + block_product(part(a, LANES), part(b, LANES))
    total = short_product(a, b, part(b, BASE_COLUMNS))
    for k in range(1, blocks):
        at = BASE_COLUMNS + LANES * k
        total += block_product(part(a, at), part(b, at))
    return total


@routine
def multiply(scene: Scene, n: Int, x: Numbers, to: Numbers) -> None:
    """to = G x; x must be padded with zeros from n to a multiple of LANES."""
    G, length = scene.newton.delassus, row_length(n)
    for i in range(n):
        total = 0.0
        for b in range(length // LANES):
            total += block_product(part(part(G, i * length), LANES * b), part(x, LANES * b))
        to[i] = total
