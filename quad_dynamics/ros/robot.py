# SPDX-License-Identifier: Apache-2.0
"""The robot of a node, from its parameter `robot`."""

from __future__ import annotations

import warnings

from rclpy.node import Node

from quad_dynamics.errors import ArgumentError, ModelWarning, QuadDynamicsError
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Model
from quad_dynamics.model.standing_checks import contact_doubts
from quad_dynamics.model.xacro_files import parse_xacro_args


def load_robot(node: Node, source: str, xacro_args: str = '') -> Model:
    """Load a robot; warnings about it go to the log of the node.

    Args:
        node: of rclpy.
        source: name of a bundled robot, or path of a URDF or xacro file.
        xacro_args: arguments of a xacro file, as `parse_xacro_args` reads them.

    Raises:
        ArgumentError: the robot does not exist or is invalid; lists all problems.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always', ModelWarning)
        try:
            model = load_model(source, xacro_args=parse_xacro_args(xacro_args))
        except QuadDynamicsError as error:
            raise ArgumentError(f'parameter robot: {error}') from error
    if source not in bundled_robots():  # their warnings are known and documented
        for warning in caught:
            node.get_logger().warning(str(warning.message))
        for doubt in contact_doubts(model):
            node.get_logger().warning(f'{source}: {doubt}')
    return model
