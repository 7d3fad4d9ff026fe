# SPDX-License-Identifier: Apache-2.0
"""The source of the robot on the page: a parameter or a topic. A thread reads its shapes."""

from __future__ import annotations

import queue
import threading
import warnings

from quad_dynamics.errors import ArgumentError, ModelWarning, QuadDynamicsError
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.model import Model
from quad_dynamics.model.xacro_files import parse_xacro_args
from viewer_node.robot_view import BodyMeshes


class RobotSource:
    """Loads robots, and reads their shapes in the background.

    Attributes:
        model: the current robot, None if there is none yet.
    """

    def __init__(self) -> None:
        """Start without a robot."""
        self.model: Model | None = None
        self._description = ''
        self._read: queue.SimpleQueue[tuple[Model, BodyMeshes | Exception]] = queue.SimpleQueue()

    def take_description(self, text: str) -> None:
        """Load a robot from URDF text, unless it is the same as the last one.

        Raises:
            QuadDynamicsError: the URDF is invalid.
        """
        if text != self._description:
            self._description = text
            self.take(load_quietly(text))

    def take(self, model: Model) -> None:
        """Set another robot; its shapes follow later."""
        self.model = model
        threading.Thread(target=self._read_shapes, args=(model,), daemon=True).start()

    def _read_shapes(self, model: Model) -> None:
        try:
            # trimesh and scipy, when the page is there already
            from viewer_node.body_meshes import body_meshes

            self._read.put((model, body_meshes(model)))
        except Exception as error:  # handled by the thread of the node
            self._read.put((model, error))

    def ready(self) -> tuple[Model, BodyMeshes | Exception] | None:
        """The current robot with its shapes, or an error; None if nothing new is ready."""
        while not self._read.empty():
            model, shapes = self._read.get()
            if model is self.model:  # or another one came in the meantime
                return model, shapes
        return None


def load_quietly(source: str, xacro_args: str = '') -> Model:
    """Load a robot without warnings, which the simulator reports."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(source, xacro_args=parse_xacro_args(xacro_args))


def load_chosen(robot: str, xacro_args: str) -> Model:
    """Load the robot that the parameters name.

    Raises:
        ArgumentError: the robot is invalid.
    """
    try:
        return load_quietly(robot, xacro_args)
    except QuadDynamicsError as error:
        raise ArgumentError(f'parameter robot: {error}') from error
