# SPDX-License-Identifier: Apache-2.0
"""All parameters of the viewer, each declared once."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class ViewerSettings(ParameterSet):
    """Parameters of viewer_node."""

    robot: str = param(
        '',
        'name of a bundled robot or path of its URDF; empty: as robot_description says, without its meshes',
    )
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    host: str = param('127.0.0.1', 'address that the page is served at; 0.0.0.0: for the whole network')
    port: int = param(8080, 'of the page; 0: a free one', low=0, high=65535)
    rate: float = param(30.0, 'at which the scene is refreshed', unit='Hz', low=1.0, high=60.0, dynamic=True)
    plot_rate: float = param(6.0, 'at which plots are refreshed', unit='Hz', low=0.5, high=30.0, dynamic=True)
    plot_duration: float = param(5.0, 'that plots show', unit='s', low=1.0, high=60.0)
    silence: float = param(
        0.6, 'without a message after which the page says so', unit='s', low=0.1, high=60.0, dynamic=True
    )
    patience: float = param(3.0, 'that an answer to a service call may take', unit='s', low=0.1, high=60.0)
    world_frame: str = param('odom', 'frame_id of markers in world axes, beside world and map')
    sim_node: str = param('sim_node', 'name of the node that simulates')
    force_node: str = param('force_node', 'name of the node that commands torques')
    planner_node: str = param('planner_node', 'name of the node that plans how the robot walks, if any does')
