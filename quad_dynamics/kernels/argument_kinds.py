# SPDX-License-Identifier: Apache-2.0
"""Argument declarations that several kernels share (see `quad_dynamics.compiler.arguments`)."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array, each, table, tuple_of
from quad_dynamics.memory.layout import LinkFrame

FRAME = table(lambda: LinkFrame.words)  # of a link, made by `Packed.frame`
FRAMES = each(FRAME)
LINKS = each(FRAME, optional=True)  # links with external wrenches
ITEMS = each(None)  # items that the kernel validates itself
OPTIONAL_ITEMS = each(None, optional=True)

# Results per state.
VECTORS = array(lambda states, nv: states * nv)
MATRICES = array(lambda states, nv: states * nv * nv)

# Terms of one state as written by `controller_terms`, with n feet as frames.
TERMS = tuple_of(
    table(lambda nv: nv * nv),  # M
    table(lambda nv: nv),  # h
    table(lambda n: 3 * n),  # p_WF
    table(lambda n: 9 * n),  # R_WF
    table(lambda n: 6 * n),  # v_WF
    table(lambda n, nv: 6 * n * nv),  # J_F
    table(lambda n: 6 * n),  # dJ_F/dt u
    table(lambda: 3),  # p_WG
    table(lambda nv: 3 * nv),  # J_G
    table(lambda: 3),  # dJ_G/dt u
    table(lambda nv: 6 * nv),  # A_G
    table(lambda: 6),  # dA_G/dt u
)
