# SPDX-License-Identifier: Apache-2.0
"""An arrow that shows what the button Push would do, while the user sets it up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from viewer_node.colors import PUSH, linear_bytes

Vector = tuple[float, float, float]


def heading(wxyz: Floats) -> float:
    """Yaw of an orientation (4,) w x y z [rad]."""
    w, x, y, z = wxyz.tolist()
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def seen_from(yaw: float, force: Vector) -> Vector:
    """A force given in the heading frame, in world axes [N]."""
    c, s = math.cos(yaw), math.sin(yaw)
    return c * force[0] - s * force[1], s * force[0] + c * force[1], force[2]


class PushPreview:
    """The arrow: it starts at the base and points where the force would."""

    def __init__(self, scene: Any, path: str) -> None:
        """Show nothing yet.

        Args:
            scene: of the server.
            path: name of its node.
        """
        self._scene, self._path = scene, path
        self._handle: Any = None

    def hide(self) -> None:
        """Show nothing."""
        if self._handle is not None:
            self._handle.visible = False

    def show(self, p_WB: Floats, force: Vector, weight: float, radius: float) -> None:
        """Show a force.

        Args:
            p_WB: (3,) where the arrow starts [m].
            force: in axes of the world [N].
            weight: of the robot; a force of this size makes the arrow twice as long as the smallest [N].
            radius: of the robot [m].
        """
        size = math.hypot(*force)
        if size == 0.0:
            self.hide()
            return
        length = 0.5 * radius * (1.0 + size / max(weight, 1e-9))
        points = np.array([[p_WB, p_WB + np.array(force) * (length / size)]])
        if self._handle is None:
            self._handle = self._scene.add_arrows(
                self._path,
                points,
                linear_bytes(np.array([PUSH], dtype=np.uint8)),
                shaft_radius=0.012 * radius,
                head_radius=0.04 * radius,
                head_length=0.12 * radius,
            )
        self._handle.points = points.astype(np.float32)
        self._handle.visible = True
