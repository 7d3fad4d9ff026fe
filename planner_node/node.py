# SPDX-License-Identifier: Apache-2.0
"""planner_node: states and a velocity in, motion plans out.

It handles every message on `joint_states`; `quad_dynamics.control.plan_maker` makes the plans.
"""

from __future__ import annotations

import time

from planner_node.outputs import PlanMarkers, PlanOutput
from planner_node.report import Report
from planner_node.settings import PlannerSettings
from quad_dynamics.control.plan_maker import PlanMaker
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.priority import LOWER_LEVEL, LOWER_SHARE, Priority
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.sample_order import SampleOrder
from quad_dynamics.ros.sensors import Sensors
from quad_dynamics.ros.state_node import StateNode, silence_text

_SILENT_PERIOD = 0.05  # between two looks while there are no joint states [s]
_NAP = 0.0025  # after a state [s]


class PlannerNode(StateNode[PlannerSettings]):
    """The node.

    Attributes:
        waiting_for: why there are no plans; '' if there are.
    """

    _report: Report

    def __init__(self) -> None:
        """Read the parameters, load the robot, and make everything ready for the first state.

        Raises:
            QuadDynamicsError: the parameters or the robot are invalid.
        """
        super().__init__('planner_node', PlannerSettings)
        settings = self.settings
        self.maker = PlanMaker(self.model, settings.for_planning(), self.diagnostics.fault)
        self.output = PlanOutput(self.node, self.model, settings)
        self._markers = PlanMarkers(self.node, self.model, settings)
        self.box = make_mailbox(self.node, self.diagnostics.error)
        self._order = SampleOrder() if settings.lock_step else None
        self.sensors = Sensors(self.node, self.model, settings, self.diagnostics, self._order)
        self._listen_to_velocities(self.maker.velocity)
        self.waiting_for = 'no joint_states yet'
        self._seen = (0, 0.0)  # stamp of the last state [ns], and when it was looked at [s]
        self.priority = Priority(False, LOWER_LEVEL, LOWER_SHARE)
        self._report = Report(self)
        self._parameters.on_change(self._change)

    # ---------------------------------------------------------------- the loop

    def spin(self, stop: StopFlag) -> None:
        """Plan until asked to stop."""
        self._run(stop, _SILENT_PERIOD, f"planning for '{self.model.name}': {self.maker.gait}")

    def close(self) -> None:
        """Release all resources."""
        self.priority.want(False)
        self.node.destroy_node()

    def turn(self, seconds: float) -> None:
        """Wait for messages up to a time, and plan for the states that have arrived."""
        self.box.wait(seconds)
        if self._order is not None:
            while self._order.next():
                self._answer()
        elif self.sensors.is_new:
            self._answer()
            time.sleep(self._nap())
        else:
            self._watch()
        self._tell()

    def _answer(self) -> None:
        sensors, inputs = self.sensors, self.sensors.inputs
        sensors.is_new = False
        missing = inputs.missing
        if missing:
            self._lacks(missing)
            return
        self.waiting_for = ''
        state, stamp = inputs.state(), inputs.joint_stamp
        if self._order is not None:
            inputs.forget()
        begin, jumps = time.monotonic(), self.maker.jumps
        plan = self.maker.update(state)
        if self.maker.jumps != jumps:
            self.node.get_logger().info(f'restarting: {self.maker.last_jump}')
        if plan is not None:
            self.output.publish(plan, stamp)
            self._report.planned(time.monotonic() - begin)
        if self.maker.plan is not None and self._markers.is_due(stamp):
            self._markers.publish(self.maker.plan, state, stamp)

    def _nap(self) -> float:
        """How long to sleep: between two plans, not every state is needed [s]."""
        before, self._seen = self._seen, (self.sensors.inputs.joint_stamp, time.monotonic())
        simulated, elapsed = 1e-9 * (self._seen[0] - before[0]), self._seen[1] - before[1]
        # Where time runs faster than ours, states arrive faster, too.
        return _NAP * min(1.0, elapsed / simulated) if simulated > 0.0 else 0.0

    def _watch(self) -> None:
        """Make no plans while there are no joint states."""
        silence = self.sensors.watch.silence(time.monotonic())
        if silence:
            self._lacks(silence_text(silence))

    def _lacks(self, what: str) -> None:
        """Restart when missing input is back."""
        if not self.waiting_for:
            self.diagnostics.fault('stale', what)
            self.maker.lacks_states()
        self.waiting_for = what

    # ---------------------------------------------------------------- parameters

    def _change(self, new: PlannerSettings, old: PlannerSettings) -> None:
        self.maker.change(new.for_planning())
        self.sensors.change(new)
        self._markers.period_ns = round(1e9 / new.markers_rate)
        self.settings = new
        if new.gait != old.gait:
            self.node.get_logger().info(f'gait {new.gait}')
