# SPDX-License-Identifier: Apache-2.0
"""The node `identification`: records the motion of a robot and identifies its parameters.

Messages are taken in the thread of the node; solving and estimating run in other threads, so that services
and diagnostics always respond. The work itself is in `experiment.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from identification.experiment import FAILED, RECORDING, SOLVING, Experiment
from identification.settings import IdentificationSettings
from identification.subscriptions import Subscriptions
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.excitation_bag import Trajectory, read_trajectory
from quad_dynamics.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND, LATCHED
from quad_dynamics.ros.robot import load_robot

_TURN = 0.02  # longest time in which nothing is looked at [s]
_SILENT = 1.0  # without joint states after which there is no robot [s]
_AFTER = 0.5  # that is recorded after an excitation has ended [s]


class IdentificationNode:
    """The node."""

    def __init__(self) -> None:
        """Read the parameters, load the robot, and check everything that can be checked.

        Raises:
            QuadDynamicsError: the parameters, the robot or the bag are invalid.
        """
        self.node = OverridableNode('identification')
        self._parameters = NodeParameters(self.node, IdentificationSettings)
        self.settings = self._parameters.values
        self.model = load_robot(self.node, self.settings.robot, self.settings.xacro_args)
        self.experiment = Experiment(self.model, self.settings)
        self._excitation = self._read_excitation()
        self.diagnostics = Diagnostics(self.node, self.model.name)
        self.box = make_mailbox(self.node, self.diagnostics.error)
        self._summary = self.node.create_publisher(String, '~/summary', LATCHED)
        self._estimate = self.node.create_publisher(String, '~/estimate', COMMAND)
        self._targets = self.node.create_publisher(JointTrajectory, 'joint_targets', COMMAND)
        self.inputs = Subscriptions(self.node, self.model, self.settings, self.diagnostics)
        self.node.create_service(Trigger, '~/start', self._start)
        self.node.create_service(Trigger, '~/stop', self._stop)
        self._published: dict[str, str] = {'summary': '', 'estimate': ''}
        self._shown = ('', '')
        self._must_start = self.settings.autostart

    def _read_excitation(self) -> Trajectory | None:
        if not self.settings.excitation:
            return None
        found = read_trajectory(self.settings.excitation)
        strange = [name for name in found.joint_names if name not in self.model.joint_names]
        if strange:
            raise ArgumentError(
                f'excitation: {self.settings.excitation} moves {strange}; expected joints of '
                f"'{self.model.name}': {list(self.model.joint_names)}"
            )
        return found

    # ---------------------------------------------------------------- the loop

    def spin(self, stop: StopFlag) -> None:
        """Run until asked to stop."""
        self.node.get_logger().info(f"identification of '{self.model.name}': {self.experiment.progress}")
        while not stop():
            try:
                self.turn(_TURN)
            except Exception as error:  # whatever it is: the node continues
                self.diagnostics.error(error)

    def close(self) -> None:
        """Release all resources."""
        self.experiment.close()
        self.node.destroy_node()

    def turn(self, seconds: float) -> None:
        """Take messages for up to a time, and publish what is new."""
        self.box.wait(seconds)
        experiment = self.experiment
        if self._must_start and not self._unready():
            self._must_start = False
            self._begin()
        if experiment.state == RECORDING and self._is_enough():
            self._finish()
        for name, publisher in (('summary', self._summary), ('estimate', self._estimate)):
            text = getattr(experiment, name)
            if text and text != self._published[name]:
                self._published[name] = text
                publisher.publish(String(data=text))
        if (experiment.state, experiment.progress) != self._shown:
            self._shown = experiment.state, experiment.progress
            self.node.get_logger().info(': '.join(self._shown))
            self.diagnostics.hurry()
        if self.diagnostics.is_due:
            self._report()

    def _is_enough(self) -> bool:
        recording = self.experiment.recording
        assert recording is not None
        wanted = self.settings.duration
        if not wanted and self._excitation is not None:
            wanted = float(self._excitation.time[-1]) + _AFTER
        return recording.seconds >= (min(wanted, self.settings.longest) if wanted else self.settings.longest)

    # ---------------------------------------------------------------- services

    def _start(self, request: Any, response: Any) -> Any:
        return self._answer(response, self._begin)

    def _stop(self, request: Any, response: Any) -> Any:
        return self._answer(response, self._finish)

    def _answer(self, response: Any, work: Any) -> Any:
        try:
            response.message, response.success = work(), True
        except ArgumentError as error:
            response.message, response.success = str(error), False
        self.diagnostics.hurry()
        return response

    def _unready(self) -> str:
        """What is missing for a recording; '' if nothing is."""
        if self.settings.bag:
            return ''
        lacking = [name for name in self._needed() if self._age(name) > _SILENT]
        if lacking:
            return f'no {" and no ".join(lacking)} for {_SILENT:g} s; expected a robot that publishes them'
        if self._excitation is not None and not self._targets.get_subscription_count():
            return 'joint_targets has no subscribers; expected force_node in mode computed_torque'
        return ''

    def _needed(self) -> list[str]:
        if not self.model.floating_base:
            return ['joint_states']
        base = 'odom' if self._age('odom') <= self._age('imu') else 'imu'
        return ['joint_states', base]

    def _age(self, topic: str) -> float:
        return time.monotonic() - self.inputs.heard.get(topic, -np.inf)

    def _begin(self) -> str:
        lacking = self._unready()
        if lacking:
            raise ArgumentError(lacking)
        text = self.experiment.start()
        recording = self.experiment.recording
        if self.experiment.state == RECORDING and recording is not None:
            recording.force_frames = dict(self.inputs.force_frames)
            self.inputs.recording = recording
            if self._excitation is not None:
                self._targets.publish(_message(self._excitation))
                text += f'; excitation of {self._excitation.time[-1]:.1f} s sent'
        return text

    def _finish(self) -> str:
        self.inputs.recording = None
        text, recording = self.experiment.stop(), self.experiment.recording
        if recording is not None and (missing := recording.gaps.sentence()):
            self.node.get_logger().warning(f'the recording has gaps: {missing}')
        return text

    # ---------------------------------------------------------------- diagnostics

    def _report(self) -> None:
        experiment, live = self.experiment, self.experiment.live
        recording = experiment.recording
        level = {FAILED: ERROR}.get(experiment.state, OK)
        counts = {} if recording is None else recording.counts
        gaps = {} if recording is None else recording.gaps.values()
        message = f'{experiment.state}: {experiment.progress}'
        if experiment.state == RECORDING and recording is not None:
            silent = self._age('joint_states')
            lacks = [f'no joint_states for {silent:.1f} s'] if silent > _SILENT else []
            lacks += filter(None, [recording.gaps.sentence()])
            level = WARN if lacks else level
            message = '; '.join([message, *lacks])
        self.diagnostics.publish(
            level,
            message,
            self.inputs.stamp if self.inputs.stamp >= 0 else None,
            robot=self.model.name,
            state=experiment.state,
            progress=experiment.progress,
            recorded_seconds=0.0 if recording is None else recording.seconds,
            results=experiment.results,
            folder=experiment.folder,
            busy=experiment.state == SOLVING,
            estimate='' if live is None else live.message or 'good',
            **{f'messages.{name}': count for name, count in sorted(self.inputs.counts.items())},
            **{f'recorded.{name}': count for name, count in counts.items()},
            **gaps,
        )


def _message(trajectory: Trajectory) -> JointTrajectory:
    points = []
    for i, t in enumerate(trajectory.time):
        point = JointTrajectoryPoint(
            positions=trajectory.position[i].tolist(),
            velocities=trajectory.velocity[i].tolist(),
            accelerations=trajectory.acceleration[i].tolist(),
        )
        stamp = point.time_from_start
        stamp.sec, stamp.nanosec = divmod(round(float(t) * 1e9), 10**9)
        points.append(point)
    return JointTrajectory(joint_names=list(trajectory.joint_names), points=points)
