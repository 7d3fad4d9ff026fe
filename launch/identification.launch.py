# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch quad_dynamics identification.launch.py`: a robot with imperfect sensors is identified.

The robot stands. `ros2 service call /identification/start std_srvs/srv/Trigger` begins to record, sends the
excitation to force_node (excitation:=BAG, of `quad_dynamics excite`), and after it the parameters are
identified; without one, `/identification/stop` ends the recording. record:=BAG records everything as well.
sim_robot:=other.urdf simulates another robot than `robot`, which is believed: identification finds what
differs. The other arguments are those of sim.launch.py.

bag:=FOLDER identifies the robot from a recording instead: nothing is simulated, it starts at once, and the
result is in output:=FOLDER and on /identification/summary.
"""

from launch import LaunchDescription

from quad_dynamics.ros.launching import sim_description


def generate_launch_description() -> LaunchDescription:
    """Called by `ros2 launch`."""
    return sim_description(
        {
            'noise': 'typical',
            'headless': True,
            'identification': True,
            'initial_pose': 'standing',
            'mode': 'computed_torque',
        }
    )
