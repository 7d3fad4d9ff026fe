# SPDX-License-Identifier: Apache-2.0
"""Constraints of one joint: the ends of its range, and dry friction that is solved for with the contacts.

Both are rows with bounds of the impulse p: a limit of the range pushes, 0 <= p; dry friction has
|p| <= h F_c (see `drives` for the joints whose friction needs it). In the kernels, *stop* stands for both.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import apart, fill_zero, load_int, routine, store_int, subroutine
from quad_dynamics.compiler.types import Address, Bool, Int, Number
from quad_dynamics.kernels import scene as S_
from quad_dynamics.model import layout as L

LIMIT_MARGIN = 1e-3  # a joint this near to its limit takes part [rad, m]


@subroutine
def find_stops(A: Address, S: Address, h: Number) -> None:
    """List the joints that may reach a limit in this step."""
    apart(A)
    store_int(S, S_.N_STOPS, load_int(S, S_.NONE))
    look_for_stops(A, S, load_int(S, S_.U), LIMIT_MARGIN, 2.0 * h, h)


@subroutine
def add_stops(A: Address, S: Address, h: Number) -> Int:
    """List the joints that would pass a limit with S[V] and are not listed; returns how many."""
    apart(A)
    listed = load_int(S, S_.N_STOPS)
    look_for_stops(A, S, load_int(S, S_.V), 0.0, h, h)
    return load_int(S, S_.N_STOPS) - listed


@routine
def look_for_stops(A: Address, S: Address, speeds: Int, margin: Number, time: Number, h: Number) -> None:
    """List the joints that may reach a limit within a time, unless they are listed."""
    if load_int(S, S_.JOINT_LIMITS) == 0:
        return
    nj, table = load_int(A, L.NJ), load_int(S, S_.JOINTS)
    q = load_int(S, S_.Q) + load_int(A, L.NQ) - nj
    u = speeds + load_int(A, L.NV) - nj
    for j in range(nj):
        entry = table + j * S_.JOINT_WORDS
        lowest, highest = S[q + j] - S[entry + S_.J_LOWEST], S[entry + S_.J_HIGHEST] - S[q + j]
        if lowest < margin - time * min(S[u + j], 0.0) and not is_listed(S, j, 1.0):
            list_stop(S, j, 1.0, lowest, h)
        if highest < margin + time * max(S[u + j], 0.0) and not is_listed(S, j, -1.0):
            list_stop(S, j, -1.0, highest, h)


@routine
def is_listed(S: Address, joint: Int, sign: Number) -> Bool:
    """Whether the lower (sign 1) or upper (-1) limit of a joint is listed."""
    stops = load_int(S, S_.STOPS)
    found = False
    for i in range(load_int(S, S_.N_STOPS)):
        s = stops + i * S_.STOP_WORDS
        is_limit = not S[s + S_.L_LOW] < 0.0
        found |= is_limit and load_int(S, s + S_.L_JOINT) == joint and S[s + S_.L_SIGN] == sign
    return found


@routine
def list_stop(S: Address, joint: Int, sign: Number, distance: Number, h: Number) -> None:
    """A joint near its lower (sign 1) or upper (-1) limit; it may move up to it."""
    s = new_stop(S, joint, sign)
    S[s + S_.L_DISTANCE] = distance
    S[s + S_.L_TARGET] = -max(distance, 0.0) / h
    S[s + S_.L_HIGH] = math.inf
    memory = load_int(S, S_.MEMORY) + joint * S_.MEMORY_WORDS
    S[s + S_.L_IMPULSE] = max(sign * S[memory + S_.K_STOP], 0.0)


@routine
def list_friction(S: Address, joint: Int, limit: Number, impulse: Number) -> None:
    """Dry friction of a joint, at most `limit` either way, as a constraint beside the contacts."""
    s = new_stop(S, joint, 1.0)
    S[s + S_.L_LOW] = -limit
    S[s + S_.L_HIGH] = limit
    S[s + S_.L_IMPULSE] = impulse


@routine
def new_stop(S: Address, joint: Int, sign: Number) -> Int:
    """An empty entry for a joint at the end of the list."""
    n = load_int(S, S_.N_STOPS)
    s = load_int(S, S_.STOPS) + n * S_.STOP_WORDS
    store_int(S, S_.N_STOPS, n + 1)
    fill_zero(S, s, S_.STOP_WORDS)
    store_int(S, s + S_.L_JOINT, joint)
    S[s + S_.L_SIGN] = sign
    return s


@routine
def has_friction_rows(S: Address, n_stops: Int) -> Bool:
    """Whether dry friction of any joint is among the constraints."""
    found = False
    for i in range(n_stops):
        found |= S[load_int(S, S_.STOPS) + i * S_.STOP_WORDS + S_.L_LOW] < 0.0
    return found


@routine
def keep_joints(A: Address, S: Address) -> None:
    """Keep what the joints did, and what their limits gave, for the next step to start with."""
    nj, modes, memory = load_int(A, L.NJ), load_int(S, S_.MODES), load_int(S, S_.MEMORY)
    for j in range(nj):
        S[memory + j * S_.MEMORY_WORDS + S_.K_MODE] = S[modes + j]
        S[memory + j * S_.MEMORY_WORDS + S_.K_STOP] = 0.0
    for i in range(load_int(S, S_.N_STOPS)):
        s = load_int(S, S_.STOPS) + i * S_.STOP_WORDS
        if not S[s + S_.L_LOW] < 0.0:
            at = memory + load_int(S, s + S_.L_JOINT) * S_.MEMORY_WORDS + S_.K_STOP
            S[at] += S[s + S_.L_SIGN] * S[s + S_.L_IMPULSE]
