# SPDX-License-Identifier: Apache-2.0
"""Joint drives: commands that arrive late, limits of the motor, and friction of the joint that sticks.

A command is a torque and, where gains are given, a position and a speed to follow. The motor is a DC motor
behind a gear: its current, and with it the torque, is limited by the battery's voltage less the back-EMF.

Coulomb friction is solved for exactly, joint by joint. A joint either slides, and friction F_c acts against
its motion; or it is stuck, and friction is whatever keeps it so, at most F_c. A stuck joint gets an inertia
so large that it does not move; what that inertia takes is its friction. Which joints are stuck is guessed
(those at rest are), the step is solved, and where the guess was wrong it is changed and the step is solved
again: a stuck joint that needs more than F_c slides, and a sliding joint whose speed would change its sign is
stuck. Viscous friction is taken at the end of the step, by the inertia h F_v, so that it is stable for every
time step h.
"""

from __future__ import annotations

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.trace import apart, load_int, routine, subroutine
from quad_dynamics.kernels.tree import base_rows, lane_of
from quad_dynamics.kernels.types import Address, Bool, Int, Number
from quad_dynamics.model import layout as L

# How a joint moves in a step: freely (no Coulomb friction), sliding up or down, or not at all.
FREE, UP, DOWN, STUCK = 0.0, 1.0, -1.0, 2.0

# A joint that is stuck gets this many times its inertia in the neutral pose: J_LOCK.
LOCK = 1e8
# Friction that is above F_c by this share is still taken for F_c: rounding must not change a mode.
_ROUNDING = 1.0 + 1e-9
# A joint is taken for one that will be stuck if this share of F_c could stop it within the step, unless it
# slid the same way before.
_SLOW = 0.01
# From this round on, one joint at a time changes its mode.
_CAREFUL_ROUND = 4
# A joint that changes its mode more often in one step is searched for the share of F_c that stops it, to this
# width.
_MOST_CHANGES = 4.0
_NARROW = 1e-12


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
        mode, entry = FREE, table + j * S_.JOINT_WORDS
        if sticks and S[entry + S_.J_COULOMB] > 0.0:
            mode = UP if S[qd + j] > 0.0 else DOWN
            slow = abs(S[qd + j]) * S[entry + S_.J_LOCK] <= _SLOW * LOCK * h * S[entry + S_.J_COULOMB]
            if slow and not (S[memory + j * S_.MEMORY_WORDS + S_.K_MODE] == mode and S[qd + j] != 0.0):
                mode = STUCK
        S[modes + j] = mode
        for row in range(1, S_.MODE_ROWS):
            S[modes + row * nj + j] = 0.0


@subroutine
def load_joints(A: Address, S: Address, h: Number) -> None:
    """Put torques, friction and inertias of the joints into the arena, for a step of length h."""
    apart(A)
    modes, table, tau = load_int(S, S_.MODES), load_int(S, S_.JOINTS), load_int(S, S_.TAU)
    qd, kind = load_int(S, S_.U) + base_rows(A), load_int(S, S_.JOINT_FRICTION)
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
        changes = modes + S_.M_CHANGES * nj + j
        if S[changes] > _MOST_CHANGES:
            changed += narrow(S, modes + j, nj, speed, S[S_.TOLERANCE])
            continue
        new = mode
        if mode == STUCK:
            # friction is what the large inertia took: lock qd / h
            if abs(speed) * S[entry + S_.J_LOCK] > h * S[entry + S_.J_COULOMB] * _ROUNDING:
                new = UP if speed > 0.0 else DOWN
        elif mode * speed < 0.0:
            new = STUCK
        if new != mode and (changed == 0 or round_ < _CAREFUL_ROUND):
            S[changes] += 1.0
            if S[changes] > _MOST_CHANGES:
                new = UP
                S[modes + S_.M_LOW * nj + j] = DOWN
                S[modes + S_.M_HIGH * nj + j] = UP
            S[modes + j] = new
            changed += 1
    return changed


@routine
def narrow(S: Address, at: Int, nj: Int, speed: Number, tolerance: Number) -> Int:
    """Narrow the share of F_c at which a joint stands still, by false position; returns 1 if it changed."""
    low, high = at + S_.M_LOW * nj, at + S_.M_HIGH * nj
    low_speed, high_speed = at + S_.M_LOW_SPEED * nj, at + S_.M_HIGH_SPEED * nj
    share = S[at]
    slides = (share == UP and speed > 0.0) or (share == DOWN and speed < 0.0)
    if slides or abs(speed) <= 0.01 * tolerance or S[high] - S[low] < _NARROW:
        return 0
    if speed > 0.0:
        S[low], S[low_speed] = share, speed
        S[high_speed] *= 0.5  # so that neither end stays for ever
    else:
        S[high], S[high_speed] = share, speed
        S[low_speed] *= 0.5
    wanted = DOWN  # both ends are looked at first
    if S[low_speed] > 0.0 and S[high_speed] < 0.0:
        wanted = (S[low] * S[high_speed] - S[high] * S[low_speed]) / (S[high_speed] - S[low_speed])
    S[at] = wanted
    return 1


@routine
def any_stuck(A: Address, S: Address) -> Bool:
    """Whether any joint is stuck."""
    modes = load_int(S, S_.MODES)
    found = False
    for j in range(load_int(A, L.NJ)):
        found |= S[modes + j] == STUCK
    return found


@routine
def stop_stuck(A: Address, S: Address) -> None:
    """A stuck joint has no speed at all."""
    nj, modes, v = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.V) + base_rows(A)
    for j in range(nj):
        searched = S[modes + S_.M_CHANGES * nj + j] > _MOST_CHANGES
        if S[modes + j] == STUCK or (searched and abs(S[v + j]) <= S[S_.TOLERANCE]):
            S[v + j] = 0.0
