# SPDX-License-Identifier: Apache-2.0
"""Stops: joints that reach the end of their range."""

from __future__ import annotations

from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.trace import apart, fill_zero, load_int, routine, store_int, subroutine
from quad_dynamics.kernels.types import Address, Int, Number
from quad_dynamics.model import layout as L

LIMIT_MARGIN = 1e-3  # a joint this near to its limit takes part [rad, m]


@subroutine
def find_stops(A: Address, S: Address, h: Number) -> Int:
    """List the joints that may reach a limit in this step; returns how many."""
    apart(A)
    if load_int(S, S_.JOINT_LIMITS) == 0:
        return 0
    nj, table, stops = load_int(A, L.NJ), load_int(S, S_.JOINTS), load_int(S, S_.STOPS)
    q = load_int(S, S_.Q) + load_int(A, L.NQ) - nj
    u = load_int(S, S_.U) + load_int(A, L.NV) - nj
    n = 0
    for j in range(nj):
        entry = table + j * S_.JOINT_WORDS
        reach = LIMIT_MARGIN + 2.0 * h * abs(S[u + j])
        if S[q + j] - reach < S[entry + S_.J_LOWEST]:
            list_stop(S, stops + n * S_.STOP_WORDS, j, 1.0, S[q + j] - S[entry + S_.J_LOWEST], h)
            n += 1
        if S[q + j] + reach > S[entry + S_.J_HIGHEST]:
            list_stop(S, stops + n * S_.STOP_WORDS, j, -1.0, S[entry + S_.J_HIGHEST] - S[q + j], h)
            n += 1
    return n


@routine
def list_stop(S: Address, s: Int, joint: Int, sign: Number, distance: Number, h: Number) -> None:
    """A joint near its lower (sign 1) or upper (-1) limit; it may move up to it."""
    fill_zero(S, s, S_.STOP_WORDS)
    store_int(S, s + S_.L_JOINT, joint)
    S[s + S_.L_SIGN] = sign
    S[s + S_.L_DISTANCE] = distance
    S[s + S_.L_TARGET] = -max(distance, 0.0) / h
