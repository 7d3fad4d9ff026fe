# SPDX-License-Identifier: Apache-2.0
"""The minimum-jerk motion from 0 to 1 (Flash and Hogan 1985), at rest at both ends."""

from __future__ import annotations


def min_jerk(t: float) -> tuple[float, float, float]:
    """Position, velocity and acceleration at the time t of a motion that lasts from 0 to 1.

    Before the motion, the position is 0; after it, 1.
    """
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    if t >= 1.0:
        return 1.0, 0.0, 0.0
    return (
        t**3 * (10.0 - 15.0 * t + 6.0 * t * t),
        30.0 * t * t * (1.0 - t) ** 2,
        60.0 * t * (1.0 - t) * (1.0 - 2.0 * t),
    )
