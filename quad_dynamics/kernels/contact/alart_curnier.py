# SPDX-License-Identifier: Apache-2.0
"""The equations of Alart and Curnier for a contact with a friction cone, and their derivatives.

With D the mean diagonal of the contact's own Delassus block, v its velocity relative to the target,
x = max(D p_n - v_n, 0) and y = D p_t - v_t,

    F_n = D p_n - x,    F_t = D p_t - y min(1, mu x / |y|).

F = 0 is Signorini's condition with Coulomb's law: an open contact (x = 0) has no impulse, a sticking one
(|y| <= mu x) no velocity, and a sliding one friction mu p_n along y, opposite to its velocity. As in
`smooth_projection`, dF = K dp + Q dv.

Alart and Curnier, A mixed formulation for frictional contact problems prone to Newton like solution methods
(1991).
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Mat3, Number, Vec3


@routine
def alart_curnier(D: Number, mu: Number, p: Vec3, v: Vec3) -> tuple[Vec3, Mat3, Mat3]:
    """F, K and Q."""
    x, y1, y2 = D * p[0] - v[0], D * p[1] - v[1], D * p[2] - v[2]
    if not x > 0.0:  # open
        K = (D, 0.0, 0.0, 0.0, D, 0.0, 0.0, 0.0, D)
        Q = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return (D * p[0], D * p[1], D * p[2]), K, Q
    length = math.sqrt(y1 * y1 + y2 * y2)
    if length <= mu * x:  # sticking
        K = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        Q = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
        return v, K, Q
    c1, c2 = y1 / length, y2 / length
    # the change of friction with y: that of its direction
    a = mu * x / length
    A11, A12, A22 = a * c2 * c2, -a * c1 * c2, a * c1 * c1
    F = (v[0], D * p[1] - a * y1, D * p[2] - a * y2)
    K = (0.0, 0.0, 0.0, -D * mu * c1, D * (1.0 - A11), -D * A12, -D * mu * c2, -D * A12, D * (1.0 - A22))
    Q = (1.0, 0.0, 0.0, mu * c1, A11, A12, mu * c2, A12, A22)
    return F, K, Q
