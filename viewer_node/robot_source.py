# SPDX-License-Identifier: Apache-2.0
"""Where the robot on the page comes from: a parameter or a topic. A thread reads its shapes."""

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
    """Loads robots, and reads their shapes without letting the page wait for it.

    Attributes:
        model: the newest robot, None if there is none yet.
    """

    def __init__(self) -> None:
        """Have no robot yet."""
        self.model: Model | None = None
        self._description = ''
        self._read: queue.SimpleQueue[tuple[Model, BodyMeshes | Exception]] = queue.SimpleQueue()

    def take_description(self, text: str) -> None:
        """Load the robot that a URDF text describes, unless it is the last one again.

        Raises:
            QuadDynamicsError: what is wrong with it.
        """
        if text != self._description:
            self._description = text
            self.take(load_quietly(text))

    def take(self, model: Model) -> None:
        """Have another robot; its shapes come later."""
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
        """The newest robot with its shapes, or what went wrong; None if nothing new is ready."""
        while not self._read.empty():
            model, shapes = self._read.get()
            if model is self.model:  # or another one came in the meantime
                return model, shapes
        return None


def load_quietly(source: str, xacro_args: str = '') -> Model:
    """Load a robot without its warnings: whoever simulates it says what is doubtful."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(source, xacro_args=parse_xacro_args(xacro_args))


def load_chosen(robot: str, xacro_args: str) -> Model:
    """Load the robot that the parameters name.

    Raises:
        ArgumentError: what is wrong with it.
    """
    try:
        return load_quietly(robot, xacro_args)
    except QuadDynamicsError as error:
        raise ArgumentError(f'parameter robot: {error}') from error
