# SPDX-License-Identifier: Apache-2.0
"""A controller of your own: joint states in, torques out; the robot gets up and stands.

    quad_dynamics sim --controller none     (or: ros2 launch quad_dynamics sim.launch.py controller:=none)
    python examples/stand_controller.py     in another terminal; for another robot, name it

It works in free running and in lock-step (`--lock-step`, `lock_step:=true`), for it answers every message.
"""

import sys

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState

import quad_dynamics as qd

RISE = 1.5  # time to get up [s]


class StandController(Node):
    """Leads the joints from where they are to the standing pose."""

    def __init__(self, robot: str) -> None:
        super().__init__('stand_controller')
        model = qd.load_model(robot)
        still, weight = np.zeros(model.nv), model.total_mass * 9.81
        feet = {foot: [0, 0, weight / len(model.foot_names), 0, 0, 0] for foot in model.foot_names}
        torques = qd.inverse_dynamics(model, model.standing, still, still, f_ext=feet)[-model.nj :]
        self.q = dict(zip(model.joint_names, model.standing[-model.nj :], strict=True))
        self.tau = dict(zip(model.joint_names, torques, strict=True))  # that carry the standing robot
        self.begin = self.last = np.zeros(0)
        self.start = 0.0
        self.torques = self.create_publisher(JointState, 'joint_torques', 10)
        self.create_subscription(JointState, 'joint_states', self.answer, 10)

    def answer(self, state: JointState) -> None:
        """Answer a state with torques, and with targets that the drives follow with their gains."""
        q = np.array(state.position)
        now = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        if self.last.shape != q.shape or np.abs(q - self.last).max() > 0.3:  # the first one, or after a reset
            self.begin, self.start = q, now
        self.last = q
        s = min((now - self.start) / RISE, 1.0)
        way = np.array([self.q[name] for name in state.name]) - self.begin
        command = JointState(name=state.name)
        command.header.stamp = state.header.stamp  # lock-step goes on when its state is answered
        command.position = (self.begin + s * s * (3.0 - 2.0 * s) * way).tolist()
        command.velocity = (6.0 * s * (1.0 - s) / RISE * way).tolist()
        command.effort = [s * self.tau[name] for name in state.name]
        self.torques.publish(command)


def main() -> None:
    """Run until Ctrl-C."""
    rclpy.init()
    try:
        rclpy.spin(StandController(sys.argv[1] if len(sys.argv) > 1 else 'mini_cheetah'))
    except (KeyboardInterrupt, Exception):
        if rclpy.ok():  # otherwise Ctrl-C has ended it, perhaps in the middle of an answer
            raise


if __name__ == '__main__':
    main()
