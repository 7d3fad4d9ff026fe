# SPDX-License-Identifier: Apache-2.0
"""One time step of the classical Runge-Kutta method of fourth order, for motion without contact.

The quaternion is integrated as four numbers, q' = q w / 2, and brought back to unit length at the end. Motor
torques are constant over the step; friction and gravity follow the state.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, load_int, subroutine
from quad_dynamics.compiler.types import Address, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.drives import guess_modes, load_joints
from quad_dynamics.kernels.fall import accelerate, place_and_move, start_bodies
from quad_dynamics.model import layout as L


@subroutine
def step_runge_kutta(A: Address, S: Address, h: Number) -> Number:
    """Advance q and u by h; returns the kinetic energy before."""
    apart(A)
    nq, nv = load_int(A, L.NQ), load_int(A, L.NV)
    q, u, last_q, last_u = (
        load_int(S, S_.Q),
        load_int(S, S_.U),
        load_int(S, S_.LAST_Q),
        load_int(S, S_.LAST_U),
    )
    rate, total = load_int(S, S_.STAGES), load_int(S, S_.STAGES) + nq + nv
    guess_modes(A, S, h)  # no joint sticks here
    energy = 0.0
    for stage in range(4):
        kinetic = slopes(A, S, rate)
        if stage == 0:
            energy = kinetic
        weight = 2.0 if 0 < stage < 3 else 1.0
        for i in range(nq + nv):
            S[total + i] = weight * S[rate + i] + (S[total + i] if stage > 0 else 0.0)
        reach = 0.5 * h if stage < 2 else h
        at = rate
        if stage == 3:
            reach = h / 6.0
            at = total
        for i in range(nq):
            S[q + i] = S[last_q + i] + reach * S[at + i]
        for i in range(nv):
            S[u + i] = S[last_u + i] + reach * S[at + nq + i]
    if nv > load_int(A, L.NJ):
        s = 1.0 / math.sqrt(S[q + 3] ** 2 + S[q + 4] ** 2 + S[q + 5] ** 2 + S[q + 6] ** 2)
        for k in range(3, 7):
            S[q + k] *= s
    return energy


@subroutine
def slopes(A: Address, S: Address, to: Int) -> Number:
    """S[to : to + nq + nv] = rates of change of q and u; returns the kinetic energy."""
    apart(A)
    nq, nv, nj = load_int(A, L.NQ), load_int(A, L.NV), load_int(A, L.NJ)
    q, u = load_int(S, S_.Q), load_int(S, S_.U)
    place_and_move(A, S)
    energy = start_bodies(A, S)
    load_joints(A, S, 0.0)
    accelerate(A, S, to + nq)
    if nv > nj:
        for k in range(3):
            S[to + k] = S[u + k]
        x, y, z, w = S[q + 3], S[q + 4], S[q + 5], S[q + 6]
        a, b, c = 0.5 * S[u + 3], 0.5 * S[u + 4], 0.5 * S[u + 5]
        S[to + 3] = w * a + y * c - z * b
        S[to + 4] = w * b + z * a - x * c
        S[to + 5] = w * c + x * b - y * a
        S[to + 6] = -(x * a + y * b + z * c)
    for j in range(nj):
        S[to + nq - nj + j] = S[u + nv - nj + j]
    return energy
