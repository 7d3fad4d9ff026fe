# SPDX-License-Identifier: Apache-2.0
"""The topics that force_node publishes: commands for the drives, and estimated foot forces."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from force_node.settings import ForceSettings
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.model.model import Model
from quad_dynamics.ros import messages
from quad_dynamics.ros.cdr import Template
from quad_dynamics.ros.qos import STREAM
from quad_dynamics.simulation.bag import topic_names


class DriveOutput:
    """Setpoints as sensor_msgs/JointState: torques, and targets if there are any.

    Attributes:
        topic: their topic.
        count: number of published messages.
    """

    topic = 'joint_torques'

    def __init__(self, node: Node, model: Model) -> None:
        """Prepare the messages."""
        names = model.joint_names
        self._zero = np.zeros(model.nj)
        self._whole = messages.joint_state(names)
        self._velocity = messages.joint_state(names, ('velocity', 'effort'))
        self._torque = messages.joint_state(names, ('effort',))
        self._publisher = node.create_publisher(JointState, self.topic, STREAM)
        self.count = 0

    def publish(self, setpoint: Setpoint, stamp_ns: int) -> None:
        """Publish a setpoint.

        Args:
            setpoint: to publish; the target velocity is zero if there is a position but no velocity.
            stamp_ns: of the joint states that it answers [ns].
        """
        message = self._torque
        if setpoint.q is not None:
            message = self._whole
            message.numbers['position'][:] = setpoint.q
            message.numbers['velocity'][:] = self._zero if setpoint.qd is None else setpoint.qd
        elif setpoint.qd is not None:
            message = self._velocity
            message.numbers['velocity'][:] = setpoint.qd
        message.numbers['effort'][:] = setpoint.tau
        self._publisher.publish(message.bytes(stamp_ns))
        self.count += 1


class EffortOutput:
    """Torques only, as std_msgs/Float64MultiArray in the order of the model's joints."""

    topic = 'effort_controller/commands'

    def __init__(self, node: Node, model: Model) -> None:
        """Prepare the message."""
        self._template = Template(
            lambda numbers: Float64MultiArray(data=numbers['data'].tolist()), {'data': model.nj}
        )
        self._publisher = node.create_publisher(Float64MultiArray, self.topic, STREAM)
        self.count = 0

    def publish(self, setpoint: Setpoint, stamp_ns: int) -> None:
        """Publish the torques of a setpoint."""
        self._template.numbers['data'][:] = setpoint.tau
        # There is no header: where a stamp would be, an empty layout says 0 and 0.
        self._publisher.publish(self._template.bytes(0))
        self.count += 1


def make_output(node: Node, model: Model, settings: ForceSettings) -> DriveOutput | EffortOutput:
    """The output selected by the settings."""
    return (EffortOutput if settings.output == 'float64_multi_array' else DriveOutput)(node, model)


class EstimateOutput:
    """Estimated forces on the feet, at a rate in the time of the states."""

    def __init__(self, node: Node, model: Model, settings: ForceSettings) -> None:
        """Prepare the messages."""
        self._model, self._in_foot_axes = model, settings.foot_force_frame == 'foot'
        around = settings.world_frame if model.floating_base else f'{settings.frame_prefix}{model.base_name}'
        self._templates = [
            messages.wrench(f'{settings.frame_prefix}{foot}' if self._in_foot_axes else around)
            for foot in model.foot_names
        ]
        self._publishers = [
            node.create_publisher(WrenchStamped, f'foot_forces_estimated/{name}', STREAM)
            for name in topic_names(model.foot_names)
        ]
        self._last = -1
        self.period_ns = round(1e9 / settings.estimate_rate)

    def is_due(self, stamp_ns: int) -> bool:
        """Whether the states have reached the next period."""
        return stamp_ns // self.period_ns != self._last

    def publish(self, forces: Floats, q: Floats, stamp_ns: int) -> None:
        """Publish forces.

        Args:
            forces: (feet, 3) in world axes [N].
            q: (nq,) configuration in which they act.
            stamp_ns: of the state [ns].
        """
        self._last = stamp_ns // self.period_ns
        for foot, (publisher, template) in enumerate(zip(self._publishers, self._templates, strict=True)):
            force = forces[foot]
            if self._in_foot_axes and force.any():
                R_WF, _ = frame_pose(self._model, q, self._model.foot_names[foot])
                force = force @ R_WF
            template.numbers['wrench'][:3] = force
            publisher.publish(template.bytes(stamp_ns))
