# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch quad_dynamics identification.launch.py`: a robot with imperfect sensors, recorded into a bag.

The bag has what identification reads: joint states, torques, odometry and foot forces, with errors of the
size that real sensors have, and beside them the truth. The arguments are those of sim.launch.py; `record`
names the bag, which must not exist.
"""

from launch import LaunchDescription

from quad_dynamics.ros.launching import sim_description


def generate_launch_description() -> LaunchDescription:
    """Called by `ros2 launch`."""
    return sim_description({'noise': 'typical', 'record': 'identification_bag', 'headless': True})
