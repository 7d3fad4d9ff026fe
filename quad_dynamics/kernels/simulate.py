# SPDX-License-Identifier: Apache-2.0
"""The kernel of the simulator: many time steps at one call."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, is_none
from quad_dynamics.compiler.registry import ARENA, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import apart, fill_zero, load_int, memory_at, routine, store_int, subroutine
from quad_dynamics.compiler.types import Address, Int, Number, Object
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.constraints import row3, write3
from quad_dynamics.kernels.door import finite_from, good_vector
from quad_dynamics.kernels.drives import give_torques
from quad_dynamics.kernels.impulse_contact import step_impulse
from quad_dynamics.kernels.runge_kutta import step_runge_kutta
from quad_dynamics.kernels.spatial import add, scale
from quad_dynamics.kernels.spring_contact import step_springs
from quad_dynamics.kernels.tree import base_rows
from quad_dynamics.model import layout as L

# What the kernel returns.
GOOD, BAD_TORQUE, NOT_FINITE, TOO_ENERGETIC, TOO_FAST, LOG_FULL = range(6)

# A body that turns farther than this in one step is nowhere that a time step could follow [rad].
LARGEST_TURN = 1.0


@kernel(ARENA, array(lambda: S_.HEADER), INT, OBJECT)
def simulate(A: Address, scene: Object, steps: Int, tau: Object) -> Int:
    """Advance the simulation.

    Args:
        A: arena of the simulator alone.
        scene: see `scene`.
        steps: how many time steps.
        tau: (nj,) joint torques, from now on; None leaves the command as it is.

    Returns:
        GOOD, or what is wrong; the state is then the last good one. LOG_FULL: the log has no row left for the
        next step, which has not begun.
    """
    S = data(scene)
    if not is_none(A, tau):
        if not good_vector(A, 0, load_int(A, L.NJ), tau):
            return BAD_TORQUE
        take_torques(A, S, data(tau))
    for _ in range(steps):
        if load_int(S, S_.LOG) != 0 and load_int(S, S_.LOG_COUNT) >= load_int(S, S_.LOG_ROOM):
            return LOG_FULL
        status = advance(A, S)
        if status != GOOD:
            return status
    return GOOD


@routine
def take_torques(A: Address, S: Address, tau: Address) -> None:
    """Let torques without gains be the command."""
    nj, command = load_int(A, L.NJ), load_int(S, S_.COMMAND)
    fill_zero(S, command, S_.COMMAND_ROWS * nj)
    for j in range(nj):
        S[command + S_.COMMAND_TAU * nj + j] = tau[j]
    store_int(S, load_int(S, S_.STATE) + S_.HAS_GAINS, 0)


@routine
def advance(A: Address, S: Address) -> Int:
    """One time step."""
    dt = S[S_.DT]
    keep_state(S)
    give_torques(A, S)
    if load_int(S, S_.RUNGE_KUTTA) != 0:
        energy = step_runge_kutta(A, S, dt)
    elif load_int(S, S_.CONTACT) == S_.SPRING_DAMPER:
        energy = step_springs(A, S, dt)
    else:
        energy = step_impulse(A, S, dt)
    status = judge(A, S, energy)
    if status != GOOD:
        copy_words(S, load_int(S, S_.KEPT), load_int(S, S_.STATE_LENGTH), load_int(S, S_.STATE))
        return status
    write_results(A, S, dt)
    pass_time(S, dt)
    if load_int(S, S_.LOG) != 0:
        write_log(A, S)
    return GOOD


@routine
def keep_state(S: Address) -> None:
    """Keep the state from before the step; nothing is known about the step yet."""
    state = load_int(S, S_.STATE)
    copy_words(S, state, load_int(S, S_.STATE_LENGTH), load_int(S, S_.KEPT))
    S[state + S_.SWEEPS] = 0.0
    S[state + S_.RESIDUAL] = 0.0
    S[state + S_.SUBSTEPS_DONE] = 1.0
    S[state + S_.CONVERGED] = 1.0
    S[state + S_.LDLT_USED] = 0.0
    S[state + S_.ITERATIONS] = 0.0


@routine
def copy_words(S: Address, start: Int, count: Int, to: Int) -> None:
    """Copy a part of the scene to another place in it."""
    for i in range(count):
        S[to + i] = S[start + i]


@routine
def judge(A: Address, S: Address, energy: Number) -> Int:
    """Whether the step can be believed."""
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    q, u = load_int(S, S_.Q), load_int(S, S_.U)
    if not finite_from(S, q, nq) or not finite_from(S, u, nv):
        return NOT_FINITE
    if not energy <= S[S_.ENERGY_LIMIT] * S[S_.MASS]:
        return TOO_ENERGETIC
    fastest = 0.0
    for i in range(3 if base_rows(A) > 0 else 0, nv):
        fastest = max(fastest, abs(S[u + i]))
    return TOO_FAST if fastest * S[S_.DT] > LARGEST_TURN else GOOD


@routine
def write_results(A: Address, S: Address, dt: Number) -> None:
    """Mean acceleration over the step, and the forces on the feet."""
    u, last_u, to = load_int(S, S_.U), load_int(S, S_.LAST_U), load_int(S, S_.ACCELERATION)
    for i in range(load_int(A, L.NV)):
        S[to + i] = (S[u + i] - S[last_u + i]) / dt
    points, contacts, feet = load_int(S, S_.POINTS), load_int(S, S_.CONTACTS), load_int(S, S_.FOOT_FORCES)
    fill_zero(S, feet, 3 * load_int(S, S_.N_FEET))
    for i in range(load_int(S, S_.N_POINTS)):
        foot = load_int(S, points + i * S_.POINT_WORDS + S_.P_FOOT)
        if foot >= 0:
            impulse = row3(S, contacts + i * S_.CONTACT_WORDS + S_.C_IMPULSE)
            write3(S, feet + 3 * foot, add(row3(S, feet + 3 * foot), scale(impulse, 1.0 / dt)))


@routine
def pass_time(S: Address, dt: Number) -> None:
    """Count the step; external forces have acted for it."""
    state, forces = load_int(S, S_.STATE), load_int(S, S_.FORCES)
    store_int(S, state + S_.STEP, load_int(S, state + S_.STEP) + 1)
    if S[state + S_.LDLT_USED] > 0.0:
        store_int(S, state + S_.LDLT_STEPS, load_int(S, state + S_.LDLT_STEPS) + 1)
    for i in range(S_.MAX_FORCES):
        left = forces + i * S_.FORCE_WORDS + S_.F_LEFT
        S[left] = max(S[left] - dt, 0.0)


@subroutine
def write_log(A: Address, S: Address) -> None:
    """One row of the log, if it is time for one."""
    apart(A)
    every, count = load_int(S, S_.LOG_EVERY), load_int(S, S_.LOG_COUNT)
    state = load_int(S, S_.STATE)
    step = load_int(S, state + S_.STEP)
    if step % every != 0:
        return
    log = memory_at(load_int(S, S_.LOG))
    at = count * load_int(S, S_.LOG_WORDS)
    log[at] = step * S[S_.DT]
    at = copy_out(S, load_int(S, S_.Q), load_int(A, L.NQ), log, at + 1)
    at = copy_out(S, load_int(S, S_.U), load_int(A, L.NV), log, at)
    at = copy_out(S, load_int(S, S_.ACCELERATION), load_int(A, L.NV), log, at)
    at = copy_out(S, load_int(S, S_.TAU), load_int(A, L.NJ), log, at)
    at = copy_out(S, load_int(S, S_.FOOT_FORCES), 3 * load_int(S, S_.N_FEET), log, at)
    log[at] = S[state + S_.SWEEPS]
    log[at + 1] = S[state + S_.RESIDUAL]
    log[at + 2] = S[state + S_.SUBSTEPS_DONE]
    log[at + 3] = S[state + S_.CONVERGED]
    log[at + 4] = S[state + S_.LDLT_USED]
    log[at + 5] = S[state + S_.ITERATIONS]
    store_int(S, S_.LOG_COUNT, count + 1)


@routine
def copy_out(S: Address, start: Int, count: Int, log: Address, to: Int) -> Int:
    """Copy numbers to the log; returns the place after them."""
    for i in range(count):
        log[to + i] = S[start + i]
    return to + count
