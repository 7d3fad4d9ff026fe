# SPDX-License-Identifier: Apache-2.0
"""sim_node: torques in, the simulated robot out.

One thread does everything in each time step: take commands, advance, publish what is due.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from std_srvs.srv import SetBool, Trigger

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.standing_checks import contact_doubts
from quad_dynamics.ros.compiling import announce_compiling
from quad_dynamics.ros.diagnostics import OK, WARN, Crowd, Diagnostics
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.pacing import Pacer, sharpen_timers
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.priority import Priority
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND
from quad_dynamics.ros.robot import load_robot
from sim_node.commands import Commands
from sim_node.markers import Markers
from sim_node.outputs import Outputs
from sim_node.repeats import Repeats
from sim_node.settings import SimNodeSettings
from sim_node.world import World

# Interval of processing everything other than commands: services, parameters, poses, pushes [s].
_POLL = 0.01
# Between two messages of a state that waits for its command in lock-step [s].
_REPEAT_LOCK_STEP = 1.0
# Longest time that answers to copies of the first state may take [s].
_SETTLE = 0.2
# Between two looks for partners before lock-step starts [s].
_LOOK = 0.02
# When joint_states are published after a time step, as a share of its period; the rest is done by then.
_STATE_PHASE = 0.35
# A period that leaves time to sleep [s].
_LEAST_PERIOD = 5e-4


class SimNode:
    """The node."""

    def __init__(self) -> None:
        """Read the parameters, load the robot, and make everything ready for the first time step.

        Raises:
            QuadDynamicsError: the parameters or the robot are invalid.
        """
        self.node = OverridableNode('sim_node')
        self._parameters = NodeParameters(self.node, SimNodeSettings)
        settings = self._parameters.values
        model = load_robot(self.node, settings.robot, settings.xacro_args)
        self._diagnostics = Diagnostics(self.node, model.name)
        announce_compiling(self._diagnostics)
        self.world = World(model, settings)
        self._doubts = contact_doubts(self.world.model)
        self._box = make_mailbox(self.node, self._diagnostics.error)
        self._outputs = Outputs(self.node, self.world)
        self._markers = Markers(self.node, self.world)
        self._commands = Commands(self.node, self.world, self._diagnostics)
        self._outputs.before_joint_states = self._hold
        self._outputs.on_joint_states = self._commands.state_published
        self._parameters.on_change(self._change)
        self._make_inputs()
        self._paused = settings.start_paused
        self._waits = settings.wait_for_commands and not settings.lock_step
        self._pacer = Pacer(self._period(settings))
        self._markers_every = self.world.every(settings.markers_rate, 'markers_rate')
        self._repeats = Repeats(self._outputs.state_topics)
        self._next_poll = 0.0
        self._rate = _Rate(self.world)
        self._priority = Priority(False)
        self._crowd = Crowd(self.node, self._commands.subscription.topic_name, silent_about='force_node')
        self._others = Crowd(self.node, self._outputs.state_topics[0].topic_name)
        self._diagnostics.watch(self._crowd, 'bad_command')
        self._diagnostics.watch(self._others, 'bad_command')

    def _make_inputs(self) -> None:
        node = self.node
        node.create_service(Trigger, '~/reset', self._reset)
        node.create_service(SetBool, '~/pause', self._pause)
        node.create_service(Trigger, '~/step', self._step)
        node.create_subscription(PoseWithCovarianceStamped, 'initialpose', self._place, COMMAND)
        node.create_subscription(WrenchStamped, 'push', self._push, COMMAND)

    # ---------------------------------------------------------------- the loop

    def spin(self, stop: StopFlag) -> None:
        """Simulate until asked to stop."""
        sharpen_timers()
        self._priority.want(self._sleeps(self.world.settings))
        gc.collect()
        gc.freeze()
        self.node.get_logger().info(
            f"simulating '{self.world.model.name}': contact {self.world.sim.settings.contact}, "
            f'time step {self.world.settings.dt * 1e3:g} ms'
        )
        if self.world.settings.lock_step:
            self._wait_for_subscribers(stop)
        self._outputs.publish(everything=True)
        self._pacer.restart()
        while not stop():
            try:
                self._turn(stop)
            except Exception as error:  # whatever it is: the drives damp, and time continues
                self._diagnostics.error(error)
                with contextlib.suppress(ArgumentError):
                    self.world.damp()

    def close(self) -> None:
        """Release all resources."""
        self._priority.want(False)
        self.node.destroy_node()

    def _turn(self, stop: StopFlag) -> None:
        """One time step; when paused or in lock-step, wait first."""
        if self._paused or self._waits:
            self._stand_still()
        elif self.world.settings.lock_step:
            self._turn_in_lock_step(stop)
        else:
            self._pacer.wait(self._take_commands)
            self._advance()
            if time.monotonic() >= self._next_poll:
                self._look_around()

    def _take_commands(self) -> None:
        self._box.take(self._commands.subscription)
        self._commands.watch()

    def _stand_still(self) -> None:
        """Process messages, and repeat the state at intervals, not after each answer."""
        self._box.wait(self._repeats.wait())
        self._waits &= not self._commands.begun
        if self._paused or self._waits:  # no copy may be on its way when time continues
            self._repeat()
        self._report()
        self._pacer.restart()

    def _repeat(self) -> None:
        """Publish copies of the state, if they are due."""
        if self._repeats.is_due():
            self._outputs.publish(everything=True)
            self._markers.publish()
        elif self._repeats.is_alive_due() and self._is_controlled:
            self._outputs.publish_joint_states()

    @property
    def _is_controlled(self) -> bool:
        """Whether a controller waits for joint_states, and not for ever, as in lock-step."""
        return self._commands.begun and not self.world.settings.lock_step

    def _advance(self) -> None:
        problem = self.world.step()
        if problem:
            self._diagnostics.fault('diverged', problem)
        self._outputs.publish()
        if self.world.sim.step_count % self._markers_every == 0:
            self._markers.publish()

    def _hold(self) -> None:
        """Publish joint_states at even intervals, however long the time step and other messages took."""
        if not (self._paused or self._waits or self.world.settings.lock_step):
            self._pacer.hold(_STATE_PHASE)

    def _look_around(self) -> None:
        self._next_poll = time.monotonic() + _POLL
        self._box.poll()
        self._report()

    # ---------------------------------------------------------------- lock-step

    def _wait_for_subscribers(self, stop: StopFlag) -> None:
        """Wait until the controller and all required partners have discovered the topics."""
        partners = self.world.settings.lock_step_partners
        self.node.get_logger().info(f'lock-step: waiting for {", ".join(partners) or "a controller"}')
        while not stop() and not self._is_met(partners):
            self._box.wait(_LOOK)
            self._report()
        # A node that we have discovered may not have discovered us yet.
        deadline = time.monotonic() + 0.5
        while not stop() and time.monotonic() < deadline:
            self._box.wait(_LOOK)
        self._commands.forget()

    def _is_met(self, partners: Sequence[str]) -> bool:
        """Whether these nodes (or any) subscribe to states, and subscribe to or publish commands or plans."""
        node = self.node
        topics = self._outputs.state_topics if partners else self._outputs.state_topics[:1]
        if not all(topic.get_subscription_count() for topic in topics):
            return False
        states, commands = topics[0].topic_name, self._commands.subscription.topic_name
        hearing = {one.node_name for one in node.get_subscriptions_info_by_topic(states)}
        giving = {one.node_name for one in node.get_publishers_info_by_topic(commands)}
        taking = {one.node_name for one in node.get_subscriptions_info_by_topic(commands)}
        plans = node.resolve_topic_name('motion_plan')
        planning = {one.node_name for one in node.get_publishers_info_by_topic(plans)}
        if planning and not node.get_subscriptions_info_by_topic(plans):
            return False
        takes_part = giving | taking | planning
        return bool(giving) and hearing.issuperset(partners) and takes_part.issuperset(partners)

    def _turn_in_lock_step(self, stop: StopFlag) -> None:
        """Wait for the answer to the last state, then advance by one control period."""
        repeat = time.monotonic() + _REPEAT_LOCK_STEP
        while not self._commands.answered(self.world.now_ns):
            self._box.wait(_POLL)
            self._report()
            if stop() or self._paused:
                return
            if time.monotonic() > repeat:  # a controller that started later has not seen it
                self._outputs.publish(everything=True)
                repeat = time.monotonic() + _REPEAT_LOCK_STEP
        if self.world.now_ns == 0:
            self._settle(stop)
        for _ in range(self.world.control_steps):
            self._pacer.wait()
            self._advance()
        if self.world.sim.step_count % self.world.control_steps:  # a step was undone
            self._outputs.publish(everything=True)
        if time.monotonic() >= self._next_poll:
            self._look_around()

    def _settle(self, stop: StopFlag) -> None:
        """Wait until all copies of the first state are answered, or a controller has missed some."""
        deadline = time.monotonic() + _SETTLE
        while not (self._commands.is_settled or stop()) and time.monotonic() < deadline:
            self._box.wait(_POLL)

    # ---------------------------------------------------------------- services and topics

    def _reset(self, request: Any, response: Any) -> Any:
        try:
            self.world.reset()
        except ArgumentError as error:
            response.success, response.message = False, str(error)
            return response
        self._is_elsewhere()
        response.success, response.message = True, f'{self.world.settings.initial_pose}, at rest'
        return response

    def _is_elsewhere(self) -> None:
        """The pose of the robot was reset: discard commands for the old pose."""
        self._commands.forget()
        self._diagnostics.hurry()
        self._outputs.publish(everything=True)
        self._repeats.restart()

    def _pause(self, request: Any, response: Any) -> Any:
        self._paused = bool(request.data)
        self._diagnostics.hurry()
        self._rate.restart()
        self._repeats.restart()
        response.success = True
        response.message = f'{"paused" if self._paused else "running"} at {self.world.now_ns * 1e-9:.3f} s'
        return response

    def _step(self, request: Any, response: Any) -> Any:
        if not self._paused:
            response.success, response.message = (
                False,
                'the simulation is running; expected it to be paused (~/pause)',
            )
            return response
        for _ in range(self.world.control_steps):
            self._advance()
        self._repeats.restart()
        response.success, response.message = True, f'{self.world.now_ns * 1e-9:.3f} s'
        return response

    def _place(self, message: Any) -> None:
        p, turn = message.pose.pose.position, message.pose.pose.orientation
        self.world.place(np.array([p.x, p.y, p.z]), np.array([turn.x, turn.y, turn.z, turn.w]))
        self._is_elsewhere()

    def _push(self, message: Any) -> None:
        f, m = message.wrench.force, message.wrench.torque
        link = self._link(message.header.frame_id)
        wrench = np.array([f.x, f.y, f.z, m.x, m.y, m.z])
        self.world.push(link, wrench)
        self._markers.note_push(link, wrench[:3])
        self._repeats.restart()

    def _link(self, frame: str) -> str:
        """The link named by the frame of a message; '' is the base."""
        world = self.world
        if frame in ('', world.settings.odom_frame, world.base_frame):
            return ''
        return frame.removeprefix(world.settings.frame_prefix)

    def _change(self, new: SimNodeSettings, old: SimNodeSettings) -> None:
        if self.world.change(new) and new.terrain != old.terrain:
            self._markers.publish_terrain()
        if new.sensors != old.sensors:
            self._outputs.change_sensors()
        self._repeats.restart()
        if new.real_time_factor != old.real_time_factor:
            self._pacer.restart(self._period(new))
            self._priority.want(self._sleeps(new))
            self._rate.restart()

    def _sleeps(self, settings: SimNodeSettings) -> bool:
        """Whether the loop keeps real time and sleeps between time steps."""
        keeps_time = settings.real_time_priority and not settings.lock_step
        return keeps_time and self._pacer.period >= _LEAST_PERIOD

    @staticmethod
    def _period(settings: SimNodeSettings) -> float:
        """Wall time between two time steps [s]; 0: none."""
        return settings.dt / settings.real_time_factor if settings.real_time_factor else 0.0

    # ---------------------------------------------------------------- diagnostics

    def _report(self) -> None:
        if not self._diagnostics.is_due:
            return
        self._priority.review()
        world = self.world
        level, message = OK, 'running'
        if self._paused or self._waits:
            message = 'paused' if self._paused else f'waiting for commands on {self._commands.topic}'
        elif world.is_damped:
            level, message = WARN, 'no commands: the drives are damping'
        publishers = self._crowd.count()
        if publishers > 1:
            level = WARN
            message += f'; {publishers} publishers of {self._commands.topic}, expected one'
        simulations = self._others.count()
        if simulations > 1:
            level = WARN
            message += f'; {simulations} publishers of joint_states, expected only this node'
        if self._doubts:
            level = max(level, WARN)
            message += '; contact points are questionable, see contact_doubts'
        self._diagnostics.publish(
            level,
            message,
            world.now_ns,
            time=world.now_ns * 1e-9,
            real_time_factor=self._rate.measure(),
            robot=world.model.name,
            contact=world.sim.settings.contact,
            paused=self._paused,
            damped=world.is_damped,
            commands=self._commands.count,
            latency_p50_ms=self._commands.latency(0.5),
            latency_p90_ms=self._commands.latency(0.9),
            forward_dynamics=world.sim.settings.forward_dynamics,
            ldlt_steps=world.sim.ldlt_steps,
            converged=world.sim.converged,
            residual=world.sim.residual,
            sweeps=world.sim.sweeps,
            iterations=world.sim.iterations,
            backlogs_dropped=self._pacer.dropped,
            real_time_priority=self._priority.is_urgent,
            **({'contact_doubts': '; '.join(self._doubts)} if self._doubts else {}),
        )


class _Rate:
    """Measures simulated time over wall time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.restart()

    def restart(self) -> None:
        """Measure from now on."""
        self._wall, self._simulated = time.monotonic(), self._world.now_ns

    def measure(self) -> float:
        """The factor since the last call."""
        wall, simulated = time.monotonic() - self._wall, (self._world.now_ns - self._simulated) * 1e-9
        self.restart()
        return simulated / wall if wall > 0.0 else 0.0
