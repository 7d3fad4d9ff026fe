# SPDX-License-Identifier: Apache-2.0
"""Bounding boxes of the bodies of a robot, from meshes and shapes, or from the tree of links."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose
from quad_dynamics.model.link_shapes import inertia_box, moved, read_shapes
from quad_dynamics.model.model import Model
from quad_dynamics.model.urdf import Link

_MARGIN = 0.1  # margin of a box, relative to its longest side
_LEAST = 0.02  # smallest half side [m]


def link_extents(model: Model) -> Floats:
    """(nb, 2, 3) lowest and highest corner of the box of each body, in its frame [m].

    A box contains the visual and collision shapes of all links of its body, the joints of its children, its
    own joint, and its centre of mass in the model. Meshes that cannot be read are skipped. If a link has no
    shape at all, the box of uniform density with its mass and inertia is used.
    """
    points = _tree(model)
    links = {link.name: link for link in model.urdf.links}
    for name, frame in model.frames.items():
        if frame.body >= 0 and name in links:
            balls = moved(_balls(links[name], model.urdf.path), Pose(frame.R, frame.p))
            for sign in (-1.0, 1.0):
                points[frame.body].extend(balls[:, :3] + sign * balls[:, 3:])
    boxes = np.array([(np.min(each, axis=0), np.max(each, axis=0)) for each in points]).reshape(-1, 2, 3)
    centre, half = boxes.mean(axis=1), 0.5 * (boxes[:, 1] - boxes[:, 0])
    half = np.maximum(half + _MARGIN * half.max(axis=1, keepdims=True), _LEAST)
    return np.stack([centre - half, centre + half], axis=1)


def _tree(model: Model) -> list[list[Floats]]:
    """Points of each body: its frame's origin, the joints of its children, and its centre of mass."""
    pi = model.pi.reshape(-1, 10)
    points = [[np.zeros(3)] for _ in range(model.nb)]
    for body, row in enumerate(pi):
        if row[0] > 0.0:
            points[body].append(row[1:4] / row[0])
    first = model.nb - model.nj  # body of the first joint
    for joint, parent in enumerate(model.parents):
        body = parent + first
        if body >= 0:
            points[body].append(model.joint_p[joint])
    return points


def _balls(link: Link, urdf_path: str) -> Floats:
    """(n, 4) balls of all shapes of a link, in its frame; of its inertia if it has no shape."""
    shapes, _ = read_shapes((*link.collisions, *link.visuals), urdf_path)
    return np.concatenate([shape.balls for shape in shapes]) if shapes else inertia_box(link)
