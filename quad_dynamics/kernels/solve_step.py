# SPDX-License-Identifier: Apache-2.0
"""The velocity after a time step: forces, joint friction, contacts and joint limits together."""

from __future__ import annotations

from quad_dynamics.compiler.trace import apart, load_int, routine, store_int, subroutine
from quad_dynamics.compiler.types import Address, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import (
    number_rows,
    open_contact,
    open_stop,
    respond,
    root_inertias,
    row3,
)
from quad_dynamics.kernels.drives import (
    change_modes,
    guess_modes,
    load_joints,
    solve_all_friction,
    stop_stuck,
)
from quad_dynamics.kernels.fall import add_response, fall, push_body, start_bodies
from quad_dynamics.kernels.impulses import find_impulses
from quad_dynamics.kernels.joint_space import (
    open_factored_contact,
    open_factored_stop,
    respond_by_factor,
)
from quad_dynamics.kernels.stops import add_stops, find_stops, keep_joints

MAX_ROUNDS = 60  # of the search for the joints that are stuck or reach a limit


@subroutine
def solve_step(A: Address, S: Address, h: Number, n_contacts: Int, near: Int) -> Number:
    """S[V] = the velocity after the step; returns the kinetic energy before."""
    apart(A)
    energy, state = 0.0, load_int(S, S_.STATE)
    changed, solved = 0, True
    find_stops(A, S, h)
    guess_modes(A, S, h)
    n_stops = load_int(S, S_.N_STOPS)
    for round_ in range(MAX_ROUNDS):
        n_stops = load_int(S, S_.N_STOPS)
        energy = start_bodies(A, S)
        push_bodies(A, S, near)
        load_joints(A, S, h)
        fall(A, S, h)
        if n_contacts + n_stops > 0:
            open_constraints(A, S, n_contacts, n_stops)
            S[state + S_.RESIDUAL] = 0.0  # that of the last round counts
            solved = find_impulses(A, S, n_contacts, n_stops)
            add_impulses(A, S, load_int(S, S_.Y))
        if solved:
            changed = change_modes(A, S, h, round_) + add_stops(A, S, h)
        else:
            changed = solve_all_friction(A, S, h)
        if changed == 0:
            break
    if changed > 0 or not solved:
        S[state + S_.CONVERGED] = 0.0
    store_int(S, S_.N_STOPS, n_stops)  # what the last round listed anew was not solved
    stop_stuck(A, S, h)
    keep_joints(A, S)
    return energy


@routine
def open_constraints(A: Address, S: Address, n_contacts: Int, n_stops: Int) -> None:
    """Rows, free velocities and inertias of all contacts and stops, when the robot moves with S[V]."""
    contacts, stops = load_int(S, S_.ACTIVE), load_int(S, S_.STOPS)
    number_rows(S, n_contacts, n_stops)
    if load_int(S, S_.FORWARD_DYNAMICS) == S_.CHOLESKY:
        for i in range(n_contacts):
            open_factored_contact(A, S, contacts + i * S_.ACTIVE_WORDS)
        for i in range(n_stops):
            open_factored_stop(A, S, stops + i * S_.STOP_WORDS)
        return
    root_inertias(A)
    for i in range(n_contacts):
        open_contact(A, S, contacts + i * S_.ACTIVE_WORDS)
    for i in range(n_stops):
        open_stop(A, S, stops + i * S_.STOP_WORDS)


@routine
def add_impulses(A: Address, S: Address, y: Int) -> None:
    """S[V] += M^-1 J^T of the impulses in y."""
    to = load_int(S, S_.W)
    if load_int(S, S_.FORWARD_DYNAMICS) == S_.CHOLESKY:
        respond_by_factor(A, S, y, to)
    else:
        respond(A, S, y, to)
    add_response(A, S)


@routine
def push_bodies(A: Address, S: Address, near: Int) -> None:
    """Let the contact forces act."""
    points, active = load_int(S, S_.POINTS), load_int(S, S_.ACTIVE)
    for k in range(near):
        c = active + k * S_.ACTIVE_WORDS
        lane = load_int(S, points + load_int(S, c + S_.A_POINT) * S_.POINT_WORDS + S_.P_LANE)
        push_body(A, lane, row3(S, c + S_.A_PLACE), row3(S, c + S_.A_IMPULSE))
