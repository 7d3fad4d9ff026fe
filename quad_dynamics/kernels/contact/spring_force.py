# SPDX-License-Identifier: Apache-2.0
"""The force of spring-damper contact on a point.

With s = sqrt(depth), the normal force is N = s (K depth - D z'), at least zero, and the tangential force
f_t = s (-K delta - D v_t), at most mu N. delta is the deflection of a bristle between the point and the
ground: it follows v_t while the point sticks, yields so that the force stays mu N while the point slides, and
relaxes with the rate K / D while the point is in the air.

The model is that of Azad and Featherstone, Modeling the contact between a rolling sphere and a compliant
ground plane (2010).
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Number, Vec3
from quad_dynamics.kernels.spatial import add, dot, scale, sub


@routine
def spring_force(
    K: Number,
    D: Number,
    mu: Number,
    depth: Number,
    normal: Vec3,
    v: Vec3,
    delta: Vec3,
    h: Number,
    lead: Number,
) -> tuple[Vec3, Vec3]:
    """Force on a penetrating point with velocity v, and its deflection after a time h.

    The force is that of the deflection after a time `lead`.
    """
    s = math.sqrt(depth)
    sink = dot(normal, v)
    N = max(s * (K * depth - D * sink), 0.0)
    v_t = sub(v, scale(normal, sink))
    delta = sub(delta, scale(normal, dot(normal, delta)))
    f = add(scale(delta, -K * s), scale(v_t, -(D + K * lead) * s))
    size = math.sqrt(dot(f, f))
    if size > mu * N:
        f = scale(f, mu * N / size)
        if D > 0.0 and s > 0.0:
            # the bristle yields: f_t = s (-K delta - D delta')
            rate = scale(add(f, scale(delta, K * s)), -1.0 / (D * s))
            delta = add(delta, scale(rate, h))
    else:
        delta = add(delta, scale(v_t, h))
    return add(scale(normal, N), f), delta
