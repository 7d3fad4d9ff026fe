# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch quad_dynamics sim.launch.py`: the robot lies, gets up, and stands.

`--show-args` lists what can be chosen, such as robot:=path/to/robot.urdf contact:=spring_damper rviz:=true.
With walk:=true it walks as cmd_vel says.
"""

from launch import LaunchDescription

from quad_dynamics.ros.launching import sim_description


def generate_launch_description() -> LaunchDescription:
    """Called by `ros2 launch`."""
    return sim_description()
