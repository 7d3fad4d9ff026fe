# SPDX-License-Identifier: Apache-2.0
"""force_node: joint states in, joint torques out.

It answers every message on `joint_states`; `Supervisor` (quad_dynamics/control/modes) decides how.
"""

from __future__ import annotations

import time
from typing import Any

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from force_node.outputs import EstimateOutput, make_output
from force_node.plan_input import PlanInput
from force_node.report import Report
from force_node.settings import ForceSettings
from quad_dynamics.control.modes.names import WHOLE_BODY
from quad_dynamics.control.modes.supervisor import Supervisor
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.cdr import JointReader
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.pacing import sharpen_timers
from quad_dynamics.ros.priority import Priority
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND, CONTROL
from quad_dynamics.ros.sensors import Sensors
from quad_dynamics.ros.state_node import StateNode, silence_text

# Between two commands while there are no joint states [s].
_SILENT_PERIOD = 0.02


class ForceNode(StateNode[ForceSettings]):
    """The node."""

    _report: Report

    def __init__(self) -> None:
        """Read the parameters, load the robot, and make everything ready for the first joint states.

        Raises:
            QuadDynamicsError: the parameters or the robot are invalid.
        """
        super().__init__('force_node', ForceSettings)
        self.supervisor = Supervisor(self.model, self.settings, self.diagnostics.fault)
        self.output = make_output(self.node, self.model, self.settings)
        self._estimates = EstimateOutput(self.node, self.model, self.settings)
        self.box = make_mailbox(self.node, self.diagnostics.error)
        self.sensors = Sensors(self.node, self.model, self.settings, self.diagnostics)
        self._make_inputs()
        self._report = Report(self)
        self._parameters.on_change(self._change)
        self._next_silent = 0.0
        self.priority = Priority(False)

    def _make_inputs(self) -> None:
        node = self.node
        names = self.model.joint_names
        self._commands = JointReader(names, (), 'joint_commands')
        node.create_subscription(JointState, 'joint_commands', self._take_command, CONTROL, raw=True)
        node.create_subscription(JointTrajectory, 'joint_targets', self._take_targets, COMMAND)
        self._listen_to_velocities(self.supervisor.velocity)
        self.plans: PlanInput | None = None
        if self.settings.planner == 'external':
            self.plans = PlanInput(node, self.model, self.settings, self.sensors, self.diagnostics)
        node.create_service(Trigger, '~/recover', self._recover)

    # ---------------------------------------------------------------- the loop

    def spin(self, stop: StopFlag) -> None:
        """Answer joint states until asked to stop."""
        sharpen_timers()
        self._run(stop, _SILENT_PERIOD, f"controlling '{self.model.name}' in mode {self.supervisor.mode}")

    def _make_safe(self, error: Exception) -> None:
        self._send(self.supervisor.lacks(f'an answer: {error}'), None, 0)

    def close(self) -> None:
        """Leave the robot damped, and release all resources."""
        self.priority.want(False)
        # In lock-step nothing moves without us, and nothing may be sent that depends on when we stop.
        if self.node.context.ok() and not self.settings.lock_step:
            self._send(self.supervisor.damped(), None, 0)
        self.node.destroy_node()

    def turn(self, seconds: float) -> None:
        """Wait for messages up to a time, and answer them."""
        self.box.wait(seconds)
        if self.sensors.is_new:
            self._answer()
        elif not self.settings.lock_step:
            self._watch()
        self._tell()

    def _answer(self) -> None:
        sensors, inputs = self.sensors, self.sensors.inputs
        missing = inputs.missing
        if missing and self.settings.lock_step:
            return  # the rest is on its way
        stamp = inputs.joint_stamp
        if self._waits_for_plan(stamp):
            return
        sensors.is_new = False
        if missing:
            self._send(self.supervisor.lacks(missing), None, stamp)
            return
        state = inputs.state()
        jumps = self.supervisor.jumps
        self._follow(stamp)
        self._send(self.supervisor.update(state), state, stamp)
        self._report.answered(time.monotonic() - sensors.arrived)
        if self.settings.lock_step:
            inputs.forget()
        if self.supervisor.jumps != jumps:
            self.node.get_logger().info(f'restarting: {self.supervisor.last_jump}')
            if self.plans is not None:
                self.plans.queue.restart(stamp)
        if self._estimates.is_due(stamp):
            self._estimates.publish(self.supervisor.estimator.forces(), state.q, stamp)

    def _waits_for_plan(self, stamp_ns: int) -> bool:
        """Whether to wait for the plan that a state needs; in lock-step only."""
        if self.plans is None or not self.settings.lock_step:
            return False
        return self.plans.must_wait(stamp_ns) and self.supervisor.mode == WHOLE_BODY

    def _follow(self, stamp_ns: int) -> None:
        """Pass on the plan that is valid from a state on, if it has changed."""
        plan = None if self.plans is None else self.plans.queue.next(stamp_ns)
        if plan is not None:
            self.supervisor.follow(plan)

    def _watch(self) -> None:
        """Damp while there are no joint states."""
        if self.sensors.watch.silence(time.monotonic()):
            self.box.poll()  # a long trajectory may have delayed taking pending ones
            if self.sensors.is_new:
                self._answer()
                return
        now = time.monotonic()
        silence = self.sensors.watch.silence(now)
        if silence and now >= self._next_silent:
            self._next_silent = now + 0.9 * _SILENT_PERIOD
            self._send(self.supervisor.lacks(silence_text(silence)), None, 0)

    def _send(self, setpoint: Setpoint, state: RobotState | None, stamp_ns: int) -> None:
        """Publish a setpoint for a state, or for an unknown one."""
        if self.settings.feedback == 'node':
            setpoint = self.supervisor.as_torque(setpoint, state)
        self.output.publish(setpoint, stamp_ns)

    # ---------------------------------------------------------------- topics, services, parameters

    def _take_command(self, raw: bytes) -> None:
        sample = self._commands.read(raw)
        if not sample.arrays:
            raise ArgumentError('joint_commands has no numbers; expected effort, position or velocity')
        self.supervisor.command(sample.get('effort'), sample.get('position'), sample.get('velocity'))

    def _take_targets(self, message: Any) -> None:
        self.supervisor.targets(message)

    def _recover(self, request: Any, response: Any) -> Any:
        response.success, response.message = self.supervisor.recover()
        self.node.get_logger().info(f'recover: {response.message}')
        return response

    def _change(self, new: ForceSettings, old: ForceSettings) -> None:
        self.supervisor.change(new)
        self.sensors.change(new)
        self._estimates.period_ns = round(1e9 / new.estimate_rate)
        self.settings = new
        if new.mode != old.mode:
            self.node.get_logger().info(f'mode {new.mode}')
