# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a point of a link at one state, written to preallocated arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.dynamics import gravity, nonlinear_effects
from quad_dynamics.api.validation import packed_form, vector
from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.registry import Kernel
from quad_dynamics.kernels.frames import frame_jacobian, frame_motion, frame_pose
from quad_dynamics.memory.layout import LinkFrame
from quad_dynamics.model.model import Model


class LinkPoint:
    """A frame with the axes of a link and its origin at a point of the link.

    Each method raises an ArgumentError for a state that is not finite, or of a wrong shape.
    """

    def __init__(self, model: Model, link: str, position: npt.ArrayLike) -> None:
        """Make the frame, and load the kernels.

        Args:
            model: robot.
            link: its name.
            position: (3,) of the point, in axes of the link [m].

        Raises:
            ArgumentError: an unknown link, an invalid position.
        """
        packed = packed_form(model)
        self._model, self._address = model, packed.address
        self._frame = packed.frame(link).copy()
        frame = LinkFrame.array(self._frame)[0]
        frame['position'] += frame['rotation'].reshape(3, 3) @ vector('position', position, 3)
        self._rotation = np.empty((3, 3))
        for kernel in (frame_pose, frame_jacobian, frame_motion):
            kernel.load()

    def write_position(self, q: Floats, out: Floats) -> None:
        """Write the position (3,) in world axes [m]."""
        self._run(frame_pose, (q,), self._rotation, out)

    def write_jacobian(self, q: Floats, out: Floats) -> None:
        """Write the world-aligned Jacobian (6, nv), [linear; angular]."""
        self._run(frame_jacobian, (q,), out)

    def write_motion(self, q: Floats, u: Floats, out: Floats) -> None:
        """Write the velocity [v; w] and the bias acceleration dJ/dt u, (12,)."""
        self._run(frame_motion, (q, u), out)

    def _run(self, kernel: Kernel, state: tuple[Floats, ...], *out: Floats) -> None:
        if kernel.run(self._address, 0, *state, self._frame, *out):
            state = tuple(np.ascontiguousarray(x, dtype=np.float64) for x in state)
            # the public functions report what is wrong
            nonlinear_effects(self._model, *state) if len(state) > 1 else gravity(self._model, state[0])
            kernel.run(self._address, 0, *state, self._frame, *out)
