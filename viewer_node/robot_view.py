# SPDX-License-Identifier: Apache-2.0
"""A robot in the scene of the page.

Every body is a node below its parent, as in the tree of the robot: a joint that moves is one message with
one orientation, and the browser does the forward kinematics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.model import Model

_SEEN = 1e-5  # change of a quaternion or position that can be seen


@dataclass(frozen=True)
class BodyMeshes:
    """The visible shapes of a robot.

    Attributes:
        glb: file content by index of the body; -1 is the immobile root.
        radius: of a ball around the base that contains the robot with its joints at zero [m].
        problems: one message for each mesh that is not shown properly.
        note: a summary of them in one line; '' if there are none.
    """

    glb: dict[int, bytes]
    radius: float
    problems: tuple[str, ...]
    note: str = ''


def safe_name(text: str) -> str:
    """A text that can be one step of a path in the scene."""
    return re.sub(r'[^A-Za-z0-9_.-]', '_', text) or '_'


def quaternions(R: Floats) -> Floats:
    """(n, 4) w x y z of rotations (n, 3, 3)."""
    # The squares of all four components are linear in R; the largest one is safe to divide by.
    xx, yy, zz = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=1)
    a, b, c = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    d, e, f = R[:, 1, 0] + R[:, 0, 1], R[:, 0, 2] + R[:, 2, 0], R[:, 2, 1] + R[:, 1, 2]
    w, x, y, z = squares.T
    rows = np.stack(
        [np.stack(row, axis=1) for row in ((w, a, b, c), (a, x, d, e), (b, d, y, f), (c, e, f, z))], axis=1
    )
    best = rows[np.arange(len(R)), np.argmax(squares, axis=1)]
    return np.asarray(best / np.linalg.norm(best, axis=1, keepdims=True), dtype=np.float64)


def multiply(a: Floats, b: Floats) -> Floats:
    """(n, 4) products of quaternions w x y z."""
    aw, ax, ay, az = a.T
    bw, bx, by, bz = b.T
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=1,
    )


class JointFrames:
    """Poses of the bodies in the frames of their parents."""

    def __init__(self, model: Model) -> None:
        """Take the constants from a model."""
        self._fixed = quaternions(np.asarray(model.joint_R))
        self._p = np.asarray(model.joint_p)
        self._axis = np.asarray(model.joint_axis)
        self._slide = np.einsum('jik,jk->ji', model.joint_R, model.joint_axis) * model.is_prismatic[:, None]
        self._turns = ~np.asarray(model.is_prismatic)

    def poses(self, q_j: Floats) -> tuple[Floats, Floats]:
        """Orientations (nj, 4), w x y z, and positions (nj, 3) [m] for joint positions (nj,)."""
        half = 0.5 * q_j * self._turns
        turn = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * self._axis], axis=1)
        return multiply(self._fixed, turn), self._p + self._slide * q_j[:, None]


class RobotView:
    """The nodes of one robot."""

    def __init__(self, scene: Any, model: Model, glb: dict[int, bytes], path: str) -> None:
        """Add a robot to the scene.

        Args:
            scene: of the server.
            model: the robot.
            glb: what to show of each body, by its index; -1 is the immobile root.
            path: name of the node that will hold it.
        """
        self.model = model
        self._frames = JointFrames(model)
        first = 1 if model.floating_base else 0
        self._base = scene.add_frame(path, show_axes=False)
        self._names = self._node_names(path, first)
        self._joints = []
        wxyz, p = self._frames.poses(np.zeros(model.nj))
        for j in range(model.nj):
            name = self._names[j]
            self._joints.append(scene.add_frame(name, show_axes=False, wxyz=wxyz[j], position=p[j]))
        for body, data in glb.items():
            above = path if body < first else self._names[body - first]
            scene.add_glb(f'{above}/shape', data)
        self._wxyz, self._p = wxyz, p

    def _node_names(self, path: str, first: int) -> list[str]:
        names: list[str] = []
        for j, parent in enumerate(self.model.parents):
            above = names[parent] if parent >= 0 else path
            names.append(f'{above}/{safe_name(self.model.body_names[j + first])}')
        return names

    @property
    def names(self) -> list[str]:
        """Names of the nodes of the joints' child bodies, in the order of the joints."""
        return list(self._names)

    def place(self, p_WB: Floats, wxyz_WB: Floats) -> None:
        """Move the base: position (3,) [m], orientation (4,) w x y z."""
        self._base.position = p_WB
        self._base.wxyz = wxyz_WB

    def bend(self, q_j: Floats) -> None:
        """Move the joints to positions (nj,)."""
        wxyz, p = self._frames.poses(q_j)
        moved = np.abs(wxyz - self._wxyz).max(axis=1, initial=0.0) > _SEEN
        slid = np.abs(p - self._p).max(axis=1, initial=0.0) > _SEEN
        for j in np.flatnonzero(moved):
            self._joints[j].wxyz = wxyz[j]
            self._wxyz[j] = wxyz[j]
        for j in np.flatnonzero(slid):
            self._joints[j].position = p[j]
            self._p[j] = p[j]

    def remove(self) -> None:
        """Take the robot out of the scene."""
        self._base.remove()
