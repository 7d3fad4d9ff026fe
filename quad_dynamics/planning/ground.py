# SPDX-License-Identifier: Apache-2.0
"""The ground as estimated from the feet, and the control frame C.

The terrain is unknown. A plane z = h + a x + b y is fitted to the last contact positions of the feet. The
frame C has its z axis along the normal of the plane, and its x axis in the plane along the heading.
"""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats

STEEPEST = 0.7  # largest slope that is accepted
_SMALLEST = 1e-4  # spread of the feet, in squared leg lengths, below which no slope is estimated


class Ground:
    """The plane below the feet.

    Attributes:
        height: of the plane at `centre` [m].
        slope: (a, b), its slopes along x and y of the world.
        centre: (x, y) mean position of the feet [m].
        normal: (3,) pointing away from the ground.
    """

    def __init__(self, length: float, smoothing: float) -> None:
        """Start with level ground.

        Args:
            length: of a leg [m].
            smoothing: time constant with which slopes follow the feet [s].
        """
        self._length, self._smoothing = length, smoothing
        self.height, self.slope, self.centre = 0.0, (0.0, 0.0), (0.0, 0.0)
        self.normal: Floats = np.array([0.0, 0.0, 1.0])

    def reset(self, soles: list[list[float]]) -> None:
        """Restart with the positions of the feet."""
        self.update(soles, math.inf)

    def update(self, soles: list[list[float]], dt: float) -> None:
        """Take the last contact positions of the feet.

        Args:
            soles: of each foot: x, y and z of its lowest point [m].
            dt: time since the last call [s].
        """
        n = len(soles)
        x = sum(p[0] for p in soles) / n
        y = sum(p[1] for p in soles) / n
        z = sum(p[2] for p in soles) / n
        xx = xy = yy = xz = yz = 0.0
        for p in soles:
            dx, dy, dz = p[0] - x, p[1] - y, p[2] - z
            xx, xy, yy = xx + dx * dx, xy + dx * dy, yy + dy * dy
            xz, yz = xz + dx * dz, yz + dy * dz
        det = xx * yy - xy * xy
        a, b = 0.0, 0.0
        if det > (_SMALLEST * self._length**2) ** 2:
            a, b = (xz * yy - yz * xy) / det, (yz * xx - xz * xy) / det
        steep = math.hypot(a, b)
        if steep > STEEPEST:
            a, b = a * STEEPEST / steep, b * STEEPEST / steep
        share = 1.0 - math.exp(-dt / self._smoothing)
        a, b = self.slope[0] + share * (a - self.slope[0]), self.slope[1] + share * (b - self.slope[1])
        self.slope, self.centre, self.height = (a, b), (x, y), z
        scale = 1.0 / math.sqrt(1.0 + a * a + b * b)
        self.normal = np.array([-a * scale, -b * scale, scale])

    def height_at(self, x: float, y: float) -> float:
        """Height of the plane [m]."""
        return self.height + self.slope[0] * (x - self.centre[0]) + self.slope[1] * (y - self.centre[1])

    def axes(self, yaw: float) -> Floats:
        """(3, 3) orientation R_WC of the control frame for a heading [rad]."""
        nx, ny, nz = self.normal.tolist()
        c, s = math.cos(yaw), math.sin(yaw)
        # y is the normal crossed with the heading, x completes the frame
        x, y, z = -nz * s, nz * c, nx * s - ny * c
        scale = 1.0 / math.sqrt(x * x + y * y + z * z)
        x, y, z = x * scale, y * scale, z * scale
        return np.array([[y * nz - z * ny, x, nx], [z * nx - x * nz, y, ny], [x * ny - y * nx, z, nz]])
