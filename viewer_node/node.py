# SPDX-License-Identifier: Apache-2.0
"""The node: from messages to the page, and from the page to services."""

from __future__ import annotations

import contextlib
import math
import queue
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from quad_dynamics.control.modes.names import WHOLE_BODY
from quad_dynamics.errors import ModelError
from quad_dynamics.ros.diagnostics import OK, WARN, Diagnostics
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND, LATCHED
from viewer_node.page import TITLE, Page
from viewer_node.panel import Action
from viewer_node.push_preview import heading, seen_from
from viewer_node.remote import Remote
from viewer_node.robot_source import RobotSource, load_chosen
from viewer_node.robot_view import BodyMeshes
from viewer_node.server import address_of, start_server, stop_server
from viewer_node.settings import ViewerSettings
from viewer_node.status import Line, Status, advice
from viewer_node.streams import MARKER_TOPICS, Streams, read_marker_array

_IDLE_PERIOD = 0.1  # between two looks for a page [s]
_ASK_PERIOD = 2.0  # between two questions about parameters [s]
_STATUS_PERIOD = 0.25
_RECOVER_DELAY = 0.4  # from a reset until the controller has seen it [s]


class ViewerNode:
    """The node and its page."""

    def __init__(self) -> None:
        """Declare, check, serve.

        Raises:
            QuadDynamicsError: a parameter is invalid, the robot cannot be loaded, or the port is in use.
        """
        self.node = OverridableNode('viewer_node')
        self._parameters = NodeParameters(self.node, ViewerSettings)
        settings = self._parameters.values
        self._diagnostics = Diagnostics(self.node)
        self._mailbox = make_mailbox(self.node, self._on_error)
        model = load_chosen(settings.robot, settings.xacro_args) if settings.robot else None
        self._server = start_server(settings.host, settings.port, TITLE)
        self.page = Page(self._server, settings)
        print(f'viewer: {address_of(self._server)}', flush=True)
        self._streams = Streams(self.node, self._diagnostics.fault)
        nodes = settings.sim_node, settings.force_node, settings.planner_node
        self._remote = Remote(self.node, *nodes, settings.patience, self.page.notify)
        place = self.node.get_namespace().strip('/')
        names = {f'{place}/{name}'.strip('/'): name for name in nodes}
        self._status = Status(names, optional=(settings.planner_node,))
        self._robot = RobotSource()
        self._shape_note = ''
        self._next_status = self._next_plot = self._next_ask = 0.0
        self._recover_at = math.inf
        self._started, self._is_watched = 0.0, False
        self._action: Action | None = None
        self._mode = ''  # of force_node
        self._subscribe(model is None)
        if model is not None:
            self._robot.take(model)

    def _subscribe(self, wants_description: bool) -> None:
        """Subscribe to topics with a low rate."""
        node = self.node
        node.create_subscription(DiagnosticArray, '/diagnostics', self._hear, COMMAND)
        node.create_subscription(MarkerArray, 'terrain', self._take_terrain, LATCHED, raw=True)
        if wants_description:
            node.create_subscription(String, 'robot_description', self._take_description, LATCHED)

    def _on_error(self, error: Exception) -> None:
        self._diagnostics.fault('exception', f'{type(error).__name__}: {error}')

    # ---- robot

    def _take_description(self, message: Any) -> None:
        try:
            self._robot.take_description(message.data)
        except ModelError as error:
            self._diagnostics.fault('bad_description', f'robot_description: {error}')
            self.page.notify('robot_description', str(error), False)

    def _show_robot(self) -> None:
        found = self._robot.ready()
        if found is None:
            return
        model, meshes = found
        if isinstance(meshes, Exception):
            self._on_error(meshes)
            meshes = BodyMeshes({}, 0.5, (f'cannot show the shapes of {model.name}: {meshes}',))
        for problem in meshes.problems:
            self._diagnostics.fault('mesh', problem)
        self._shape_note = meshes.note
        self.page.show_robot(model, meshes)
        self._streams.close()

    # ---- messages that come seldom

    def _take_terrain(self, raw: bytes) -> None:
        for problem in self.page.markers['terrain'].take(read_marker_array(raw), time.monotonic()):
            self._diagnostics.fault('marker', f'terrain: {problem}')

    def _hear(self, message: Any) -> None:
        now = time.monotonic()
        sim, force = self._parameters.values.sim_node, self._parameters.values.force_node
        for short in self._status.hear(message, now):
            words = self._status.words(short, now)
            if words is not None and short == sim and 'paused' in words.values:
                self.page.panel.know_paused(words.values['paused'].lower() == 'true')
            if words is not None and short == force and 'mode' in words.values:
                self._know_controller(words.values)

    def _know_controller(self, values: Mapping[str, str]) -> None:
        """Show the status of force_node."""
        self._mode = values['mode']
        self.page.panel.know_choice('mode', self._mode)
        if self._mode == WHOLE_BODY and 'max_vx' in values:
            x, y, turn = (float(values[name]) for name in ('max_vx', 'max_vy', 'max_wz'))
            self.page.panel.walk.know_limits((x, y, turn))

    def _show_walk(self) -> None:
        """Show the controls of walking while a node follows them; force_node does in one of its modes."""
        names = set(self._remote.walkers())
        values = self._parameters.values
        force, planner = (name.rpartition('/')[2] for name in (values.force_node, values.planner_node))
        walks = force in names and self._mode == WHOLE_BODY
        self.page.show_walk(walks or bool(names - {force, planner}), walks)

    # ---- the loop

    def spin(self, stop: StopFlag) -> None:
        """Refresh the page until asked to stop."""
        while not stop() and rclpy.ok():
            try:
                self._turn()
            except Exception as error:  # whatever it is: it is counted, and the page lives on
                self._on_error(error)
            period = 1.0 / self._parameters.values.rate if self._is_watched else _IDLE_PERIOD
            self._wait(self._started + period - time.monotonic())

    def _turn(self) -> None:
        """Process user actions and messages, and refresh the page."""
        self._started = time.monotonic()
        if self._diagnostics.is_due:  # first, so that it tells of errors in what follows
            self._publish_diagnostics()
        action, self._action = self._action, None
        if action is not None:
            self._act(action)
        self._mailbox.poll()
        self._show_robot()
        self._remote.give_up()
        if self._started >= self._recover_at:
            self._recover_at = math.inf
            self._remote.trigger('recover')
        self._watch()
        if self._is_watched:
            with self._server.atomic():
                self._refresh(self._started)

    def _watch(self) -> None:
        """Keep subscriptions and velocity commands only while a page is open."""
        self._is_watched = self.page.is_open
        if not self._is_watched:
            self._streams.close()
            self._remote.move((0.0, 0.0, 0.0), self._started)
        elif not self._streams.is_open and self.page.robot is not None:
            self._streams.open(self.page.robot.model)

    def _wait(self, seconds: float) -> None:
        """Wait for a time, or until the user does something."""
        with contextlib.suppress(queue.Empty):
            self._action = self.page.panel.actions.get(timeout=max(seconds, 1e-3))

    def _refresh(self, now: float) -> None:
        """Update everything on the page."""
        walk = self.page.panel.walk
        walk.watch(now)
        self._remote.move(walk.velocity, now)  # first: it stops the robot, too
        joints, base = self._streams.joints(), self._streams.base()
        if base is not None:
            self.page.place_robot(*base)
        if joints is not None:
            self.page.bend_robot(joints.arrays['position'])
            self._status.tick(1e-9 * joints.stamp_ns, now)
            self._plot(joints, now)
        problems = []
        for topic in MARKER_TOPICS:
            problems += self.page.markers[topic].take(self._streams.markers(topic), now)
        for problem in problems + self.page.draw(now):
            self._diagnostics.fault('marker', problem)
        if now >= self._next_status:
            self._next_status = now + _STATUS_PERIOD
            self._say(now)
        if now >= self._next_ask:
            self._next_ask = now + _ASK_PERIOD
            self._ask()

    def _plot(self, joints: Any, now: float) -> None:
        plots, base = self.page.plots, self._streams.base()
        if plots is None or self._robot.model is None:
            return
        tau = joints.get('effort')
        height = math.nan if base is None else float(base[0][2])
        tau = np.full(self._robot.model.nj, np.nan) if tau is None else tau
        plots.add(1e-9 * joints.stamp_ns, tau, self._streams.vertical_forces(), height)
        if now >= self._next_plot:
            self._next_plot = now + 1.0 / self._parameters.values.plot_rate
            plots.draw()

    def _say(self, now: float) -> None:
        """Show the status, nodes that do not report, and advice for the user."""
        panel, model, streams = self.page.panel, self._robot.model, self._streams
        lines = self._status.lines(now)
        if self._status.is_compiling(now):
            lines.append(Line('This happens only once and takes about a minute.', 'busy'))
        elif model is None:
            lines.append(Line('no robot yet: waiting for robot_description', 'warning'))
        elif streams.is_open:
            for topic in ('joint_states', 'odom')[: 2 if model.floating_base else 1]:
                age = streams.age(topic)
                if age > self._parameters.values.silence:
                    lines.append(Line(f'no {topic} for {age:.1f} s', 'error'))
        if self._shape_note:
            lines.append(Line(self._shape_note, 'warning'))
        if self._status.latched(self._parameters.values.force_node, now):
            lines.append(advice(self._tilt()))
        panel.say(lines)
        panel.know_layers(self.page.layers)
        self._show_walk()

    def _tilt(self) -> float:
        """Angle between the base and the vertical [rad]; NaN if unknown."""
        base = self._streams.base()
        if base is None:
            return math.nan
        _, x, y, _ = base[1].tolist()
        return math.acos(min(max(1.0 - 2.0 * (x * x + y * y), -1.0), 1.0))

    def _ask(self) -> None:
        panel, values = self.page.panel, self._parameters.values
        self._remote.ask_parameter(
            values.sim_node, 'contact', lambda value: panel.know_choice('contact', value)
        )
        self._remote.ask_parameter(values.force_node, 'mode', lambda value: panel.know_choice('mode', value))

    def _act(self, action: Action) -> None:
        """Do what the user asks for."""
        values, panel = self._parameters.values, self.page.panel
        if action.name == 'steer':
            panel.walk.steer(action.value, time.monotonic())
            return
        if action.name == 'pause':
            self._remote.pause(action.value, lambda: panel.know_paused(action.value))
        elif action.name in ('step', 'recover'):
            self._remote.trigger(action.name)
        elif action.name == 'reset':
            self._remote.trigger('reset', self._recover_soon)
        elif action.name == 'push':
            self._push()
        elif action.name == 'contact':
            self._remote.set_parameter(values.sim_node, 'contact', action.value)
        elif action.name == 'mode':
            self._remote.set_parameter(values.force_node, 'mode', action.value)
        elif action.name == 'gait':
            self._choose_gait(action.value)
        elif action.name == 'show':
            topic, namespace, visible = action.value
            self.page.markers[topic].show(namespace, visible)
        elif action.name == 'look':
            self.page.look_at_robot(action.value)
        self._next_ask = min(self._next_ask, time.monotonic() + 0.3)

    def _choose_gait(self, gait: str) -> None:
        """Set the gait of the planner, and of force_node, which plans if there is no other planner."""
        values = self._parameters.values
        is_planned = self._status.words(values.planner_node, time.monotonic()) is not None
        if is_planned:
            self._remote.set_parameter(values.planner_node, 'gait', gait)
        self._remote.set_parameter(values.force_node, 'gait', gait, is_quiet=is_planned)

    def _recover_soon(self) -> None:
        """After a reset, recover the controller, too, if it has stopped."""
        now = time.monotonic()
        if self._status.latched(self._parameters.values.force_node, now):
            self._recover_at = now + _RECOVER_DELAY

    def _push(self) -> None:
        base = self._streams.base()
        force = self.page.panel.push
        self._remote.push(seen_from(0.0 if base is None else heading(base[1]), force))
        self.page.panel.push_set = -math.inf  # sim_node draws the real one

    def _publish_diagnostics(self) -> None:
        pages = len(self._server.get_clients())
        name = self._robot.model.name if self._robot.model is not None else ''
        self._diagnostics.hardware_id = name
        self._diagnostics.publish(
            WARN if self._diagnostics.counts else OK,
            f'{pages} page{"" if pages == 1 else "s"} open',
            None if self._status.simulated is None else round(1e9 * self._status.simulated),
            pages=pages,
            address=address_of(self._server),
            robot=name,
        )

    def close(self) -> None:
        """Stop the server and release the node."""
        stop_server(self._server)
        self.node.destroy_node()
