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
        'bundled robot, or path of a URDF or xacro file; empty: from robot_description, without meshes',
    )
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    host: str = param('127.0.0.1', 'address of the page; 0.0.0.0: open to the whole network')
    port: int = param(8080, 'port of the page; 0: a free one', low=0, high=65535)
    rate: float = param(30.0, 'refresh rate of the scene', unit='Hz', low=1.0, high=60.0, dynamic=True)
    plot_rate: float = param(6.0, 'refresh rate of plots', unit='Hz', low=0.5, high=30.0, dynamic=True)
    plot_duration: float = param(5.0, 'time span of plots', unit='s', low=1.0, high=60.0)
    silence: float = param(
        0.6,
        'time without messages after which the page shows a warning',
        unit='s',
        low=0.1,
        high=60.0,
        dynamic=True,
    )
    patience: float = param(
        3.0, 'longest wait for the answer to a service call', unit='s', low=0.1, high=60.0
    )
    world_frame: str = param('odom', 'frame_id of markers in world axes, besides world and map')
    sim_node: str = param('sim_node', 'name of the simulator node')
    force_node: str = param('force_node', 'name of the node that commands torques')
    planner_node: str = param('planner_node', 'name of the node that plans walking, if there is one')
