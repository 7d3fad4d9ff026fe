# SPDX-License-Identifier: Apache-2.0
"""Joint drives: commands that arrive late, limits of the motor, and friction of the joint that sticks.

A command is a torque and, where gains are given, a position and a speed to follow. The motor is a DC motor
behind a gear: its current, and with it the torque, is limited by the battery's voltage less the back-EMF.

Coulomb friction is solved for exactly, joint by joint. A joint either slides, and friction F_c acts against
its motion; or it is stuck, and friction is whatever keeps it so, at most F_c. A stuck joint gets an inertia
so large that it does not move; what that inertia takes is its friction. Which joints are stuck is guessed
(those at rest are), the step is solved, and where the guess was wrong it is changed and the step is solved
again: a stuck joint that needs more than F_c slides, and a sliding joint whose speed would change its sign is
stuck. A joint for which neither fits gets no mode: its friction becomes a constraint like those of the
contacts, and is solved for with them (`stops.list_friction`). There are only so many joints, so this ends.
Viscous friction is taken at the end of the step, by the inertia h F_v, so that it is stable for every
time step h.
"""

from __future__ import annotations

from quad_dynamics.compiler.trace import apart, load_int, routine, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.stops import list_friction
from quad_dynamics.kernels.tree import base_rows, clear_torques, lane_of
from quad_dynamics.model import layout as L

# How a joint moves in a step: freely (no Coulomb friction), sliding up or down, or not at all.
FREE, UP, DOWN, STUCK = 0.0, 1.0, -1.0, 2.0
# A joint whose friction was solved for counts up from SOLVED; until FORGET, that is how the next step begins.
SOLVED, FORGET = 3.0, 19.0

# A joint that is stuck gets this many times its inertia in the neutral pose: J_LOCK.
LOCK = 1e8
# Friction that is above F_c by this share is still taken for F_c: rounding must not change a mode.
_ROUNDING = 1.0 + 1e-9
# Friction above this share of F_c that was solved for is F_c.
_AT_LIMIT = 1.0 - 1e-9
# A joint is taken for one that will be stuck if this share of F_c could stop it within the step, unless it
# slid the same way before.
_SLOW = 0.01
# From this round on, friction of a joint whose mode is wrong is solved for together with the contacts; before
# it, that of a joint whose mode is wrong for the second time.
_CAREFUL_ROUND = 4


# ---------------------------------------------------------------- torques


@subroutine
def give_torques(A: Address, S: Address) -> None:
    """Torques of the motors in this step, to S[TAU]; they are constant over the step."""
    apart(A)
    nj = load_int(A, L.NJ)
    state, tau, command = load_int(S, S_.STATE), load_int(S, S_.TAU), load_int(S, S_.COMMAND)
    gains = load_int(S, state + S_.HAS_GAINS)
    length = load_int(S, S_.QUEUE_LENGTH)
    if length == 0:
        for j in range(nj):
            S[tau + j] = wanted_torque(A, S, command, j, gains)
    else:
        delay_command(A, S, nj, length)
    if load_int(S, S_.MOTOR_LIMITS) != 0:
        qd = load_int(S, S_.U) + base_rows(A)
        table = load_int(S, S_.JOINTS)
        for j in range(nj):
            S[tau + j] = limit_torque(S, table + j * S_.JOINT_WORDS, S[tau + j], S[qd + j])


@routine
def wanted_torque(A: Address, S: Address, command: Int, j: Int, gains: Int) -> Number:
    """What a command asks of joint j: tau + kp (q - q_j) + kd (qd - qd_j)."""
    nj = load_int(A, L.NJ)
    torque = S[command + S_.COMMAND_TAU * nj + j]
    if gains != 0:
        q = S[load_int(S, S_.Q) + load_int(A, L.NQ) - nj + j]
        qd = S[load_int(S, S_.U) + base_rows(A) + j]
        torque += S[command + S_.COMMAND_KP * nj + j] * (S[command + S_.COMMAND_Q * nj + j] - q)
        torque += S[command + S_.COMMAND_KD * nj + j] * (S[command + S_.COMMAND_QD * nj + j] - qd)
    return torque


@routine
def delay_command(A: Address, S: Address, nj: Int, length: Int) -> None:
    """Put the command into the queue, and take the one that arrives now.

    If the latency is no multiple of the time step, a command arrives within a step: the torque is the mean
    over it.
    """
    tau, command, queue = load_int(S, S_.TAU), load_int(S, S_.COMMAND), load_int(S, S_.QUEUE)
    step, words = load_int(S, load_int(S, S_.STATE) + S_.STEP), S_.COMMAND_ROWS * nj
    newest = queue + (step % length) * words
    for i in range(words):
        S[newest + i] = S[command + i]
    delay, share = load_int(S, S_.DELAY), S[S_.DELAY_SHARE]
    # a row of the queue that was never written is zero: no torque
    now = queue + ((step - delay + length) % length) * words
    before = queue + ((step - delay - 1 + length) % length) * words
    for j in range(nj):
        torque = (1.0 - share) * wanted_torque(A, S, now, j, 1)
        if share > 0.0:
            torque += share * wanted_torque(A, S, before, j, 1)
        S[tau + j] = torque


@routine
def limit_torque(S: Address, entry: Int, torque: Number, qd: Number) -> Number:
    """What the motor can give: within the torque-speed line, then within the largest torque."""
    back = S[entry + S_.J_SLOPE] * qd
    stall, effort = S[entry + S_.J_STALL], S[entry + S_.J_EFFORT]
    torque = min(max(torque, -stall - back), stall - back)
    return min(max(torque, -effort), effort)


# ---------------------------------------------------------------- friction


@subroutine
def guess_modes(A: Address, S: Address, h: Number) -> None:
    """What joints do in this step, as it looks at its beginning."""
    apart(A)
    nj, modes, table = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.JOINTS)
    qd, memory = load_int(S, S_.U) + base_rows(A), load_int(S, S_.MEMORY)
    sticks = load_int(S, S_.JOINT_FRICTION) == S_.STICKING_FRICTION
    for j in range(nj):
        mode, entry, last = FREE, table + j * S_.JOINT_WORDS, memory + j * S_.MEMORY_WORDS
        S[modes + S_.M_CHANGES * nj + j] = 0.0
        if sticks and S[entry + S_.J_COULOMB] > 0.0:
            if S[last + S_.K_MODE] >= SOLVED:
                S[modes + S_.M_CHANGES * nj + j] = S[last + S_.K_MODE]
                list_friction(S, j, h * S[entry + S_.J_COULOMB], S[last + S_.K_FRICTION])
            else:
                mode = UP if S[qd + j] > 0.0 else DOWN
                if is_slow(S, entry, S[qd + j], _SLOW * h) and not (
                    S[last + S_.K_MODE] == mode and S[qd + j] != 0.0
                ):
                    mode = STUCK
        S[modes + j] = mode


@routine
def is_slow(S: Address, entry: Int, speed: Number, time: Number) -> Bool:
    """Whether dry friction alone would stop a joint within a time, in the neutral pose."""
    return abs(speed) * S[entry + S_.J_LOCK] <= LOCK * time * S[entry + S_.J_COULOMB]


@subroutine
def load_joints(A: Address, S: Address, h: Number) -> None:
    """Put torques, friction and inertias of the joints into the arena, for a step of length h."""
    apart(A)
    modes, table, tau = load_int(S, S_.MODES), load_int(S, S_.JOINTS), load_int(S, S_.TAU)
    qd, kind = load_int(S, S_.U) + base_rows(A), load_int(S, S_.JOINT_FRICTION)
    clear_torques(A)
    for j in range(load_int(A, L.NJ)):
        entry, lane = table + j * S_.JOINT_WORDS, lane_of(A, j)
        inertia, torque = S[entry + S_.J_INERTIA], S[tau + j]
        mode, speed = S[modes + j], S[qd + j]
        if kind == S_.STICKING_FRICTION:
            if mode == STUCK:
                # the inertia alone would keep the speed: it is taken away as well
                inertia += S[entry + S_.J_LOCK]
                torque -= S[entry + S_.J_LOCK] / h * speed
            else:
                inertia += h * S[entry + S_.J_VISCOUS]
                torque -= S[entry + S_.J_VISCOUS] * speed + mode * S[entry + S_.J_COULOMB]
        elif kind == S_.EXPLICIT_FRICTION:
            torque -= explicit_friction(S, entry, speed)
        A[lane + L.TAU] = torque
        A[lane + L.ROTOR_KK] = inertia


@routine
def explicit_friction(S: Address, entry: Int, speed: Number) -> Number:
    """F_v qd + F_c sgn(qd)."""
    sign = 1.0 if speed > 0.0 else (-1.0 if speed < 0.0 else 0.0)
    return S[entry + S_.J_VISCOUS] * speed + S[entry + S_.J_COULOMB] * sign


@subroutine
def change_modes(A: Address, S: Address, h: Number, round_: Int) -> Int:
    """Change the modes that the solved step S[V] contradicts; returns how many."""
    apart(A)
    nj, modes, table = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.JOINTS)
    v = load_int(S, S_.V) + base_rows(A)
    changed = 0
    for j in range(nj):
        mode, speed = S[modes + j], S[v + j]
        entry = table + j * S_.JOINT_WORDS
        limit = h * S[entry + S_.J_COULOMB]
        new = mode
        if mode == STUCK:
            # friction is what the large inertia took: lock qd / h
            if abs(speed) * S[entry + S_.J_LOCK] > limit * _ROUNDING:
                new = UP if speed > 0.0 else DOWN
        elif mode * speed < 0.0:
            new = STUCK
        if new != mode:
            if round_ >= _CAREFUL_ROUND or S[modes + S_.M_CHANGES * nj + j] > 0.0:
                list_friction(S, j, limit, -limit * (mode if new == STUCK else new))
                new = FREE
            S[modes + S_.M_CHANGES * nj + j] += 1.0
            S[modes + j] = new
            changed += 1
    return changed


@subroutine
def solve_all_friction(A: Address, S: Address, h: Number) -> Int:
    """Solve for the friction of all joints with the contacts; returns how many had a mode until now."""
    apart(A)
    nj, modes, table = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.JOINTS)
    v = load_int(S, S_.V) + base_rows(A)
    changed = 0
    for j in range(nj):
        mode = S[modes + j]
        if mode != FREE:
            limit = h * S[table + j * S_.JOINT_WORDS + S_.J_COULOMB]
            if mode == STUCK:
                mode = S[v + j] * S[table + j * S_.JOINT_WORDS + S_.J_LOCK] / limit  # the share that it took
            list_friction(S, j, limit, -limit * min(max(mode, -1.0), 1.0))
            S[modes + j] = FREE
            changed += 1
    return changed


@routine
def has_dry_friction(A: Address, S: Address) -> Bool:
    """Whether any joint can be stuck."""
    found = False
    for j in range(load_int(A, L.NJ)):
        found |= S[load_int(S, S_.JOINTS) + j * S_.JOINT_WORDS + S_.J_COULOMB] > 0.0
    return found and load_int(S, S_.JOINT_FRICTION) == S_.STICKING_FRICTION


@routine
def any_stuck(A: Address, S: Address) -> Bool:
    """Whether any joint is stuck."""
    modes = load_int(S, S_.MODES)
    found = False
    for j in range(load_int(A, L.NJ)):
        found |= S[modes + j] == STUCK
    return found


@routine
def stop_stuck(A: Address, S: Address, h: Number) -> None:
    """A stuck joint has no speed at all; one whose friction was solved for is stuck if that is below F_c."""
    nj, modes, v = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.V) + base_rows(A)
    for i in range(load_int(S, S_.N_STOPS)):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        if S[s + S_.L_LOW] < 0.0:
            j, impulse = load_int(S, s + S_.L_JOINT), S[s + S_.L_IMPULSE]
            S[load_int(S, S_.MEMORY) + j * S_.MEMORY_WORDS + S_.K_FRICTION] = impulse
            # the impulse is known to the tolerance only: one at the limit may be just below it
            slides = abs(impulse) >= _AT_LIMIT * S[s + S_.L_HIGH] or abs(S[v + j]) > S[S_.TOLERANCE]
            sure = slides and not is_slow(S, load_int(S, S_.JOINTS) + j * S_.JOINT_WORDS, S[v + j], h)
            steps = max(S[modes + S_.M_CHANGES * nj + j], SOLVED) + 1.0  # since it was solved for anew
            if steps < FORGET and not sure:
                S[modes + j] = steps
            elif slides:
                S[modes + j] = DOWN if impulse > 0.0 else UP
            else:
                S[modes + j] = STUCK
            if not slides:
                S[v + j] = 0.0
    for j in range(nj):
        if S[modes + j] == STUCK:
            S[v + j] = 0.0
