# SPDX-License-Identifier: Apache-2.0
"""The node: from messages to the page, and from the page to services."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
import warnings
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning, QuadDynamicsError
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.model import Model
from quad_dynamics.model.xacro_files import parse_xacro_args
from quad_dynamics.ros.diagnostics import OK, WARN, Diagnostics
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.node import OverridableNode
from quad_dynamics.ros.parameters import NodeParameters
from quad_dynamics.ros.process import StopFlag
from quad_dynamics.ros.qos import COMMAND, LATCHED
from viewer_node.page import TITLE, Page
from viewer_node.panel import Action
from viewer_node.remote import Remote
from viewer_node.robot_view import BodyMeshes
from viewer_node.server import address_of, start_server, stop_server
from viewer_node.settings import ViewerSettings
from viewer_node.status import Status
from viewer_node.streams import Streams, read_marker_array

_IDLE_PERIOD = 0.1  # between two looks for a page [s]
_ASK_PERIOD = 2.0  # between two questions about parameters [s]
_STATUS_PERIOD = 0.25


class ViewerNode:
    """The node and its page."""

    def __init__(self) -> None:
        """Declare, check, serve.

        Raises:
            QuadDynamicsError: a parameter is wrong, the robot cannot be loaded, or the port is taken.
        """
        self.node = OverridableNode('viewer_node')
        self._parameters = NodeParameters(self.node, ViewerSettings)
        settings = self._parameters.values
        self._diagnostics = Diagnostics(self.node)
        self._mailbox = make_mailbox(self.node, self._on_error)
        model = _load_chosen(settings.robot, settings.xacro_args) if settings.robot else None
        self._server = start_server(settings.host, settings.port, TITLE)
        self.page = Page(self._server, settings)
        print(f'viewer: {address_of(self._server)}', flush=True)
        self._streams = Streams(self.node, self._diagnostics.fault)
        self._remote = Remote(
            self.node, settings.sim_node, settings.force_node, settings.patience, self.page.notify
        )
        place = self.node.get_namespace().strip('/')
        names = {f'{place}/{name}'.strip('/'): name for name in (settings.sim_node, settings.force_node)}
        self._status = Status(names)
        self._meshes: queue.SimpleQueue[tuple[Model, BodyMeshes | Exception]] = queue.SimpleQueue()
        self._model: Model | None = None
        self._description = ''
        self._mesh_problems: tuple[str, ...] = ()
        self._next_status = self._next_plot = self._next_ask = 0.0
        self._started, self._is_watched = 0.0, False
        self._action: Action | None = None
        self._subscribe(model is None)
        if model is not None:
            self._take_model(model)

    def _subscribe(self, wants_description: bool) -> None:
        """Subscribe to what comes seldom."""
        node = self.node
        node.create_subscription(DiagnosticArray, '/diagnostics', self._hear, COMMAND)
        node.create_subscription(MarkerArray, 'terrain', self._take_terrain, LATCHED, raw=True)
        if wants_description:
            node.create_subscription(String, 'robot_description', self._take_description, LATCHED)

    def _on_error(self, error: Exception) -> None:
        self._diagnostics.fault('exception', f'{type(error).__name__}: {error}')

    # ---- robot

    def _take_description(self, message: Any) -> None:
        if message.data == self._description:
            return
        self._description = message.data
        try:
            self._take_model(_load(message.data))
        except ModelError as error:
            self._diagnostics.fault('bad_description', f'robot_description: {error}')
            self.page.notify('robot_description', str(error), False)

    def _take_model(self, model: Model) -> None:
        """Read the meshes of a robot without letting the page wait for it."""
        self._model = model
        threading.Thread(target=self._read_meshes, args=(model,), daemon=True).start()

    def _read_meshes(self, model: Model) -> None:
        try:
            from viewer_node.body_meshes import (
                body_meshes,
            )  # trimesh and scipy, when the page is there already

            self._meshes.put((model, body_meshes(model)))
        except Exception as error:  # shown by the thread of the node
            self._meshes.put((model, error))

    def _show_robot(self) -> None:
        while not self._meshes.empty():
            model, meshes = self._meshes.get()
            if model is not self._model:
                continue  # another robot came in the meantime
            if isinstance(meshes, Exception):
                self._on_error(meshes)
                meshes = BodyMeshes({}, 0.5, (f'shapes of {model.name} cannot be shown: {meshes}',))
            for problem in meshes.problems:
                self._diagnostics.fault('mesh', problem)
            self._mesh_problems = meshes.problems
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
                self.page.panel.know_choice('mode', words.values['mode'])

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
        """Act on what came, from the user and from other nodes, and refresh the page."""
        self._started = time.monotonic()
        if self._diagnostics.is_due:  # first, so that it tells of errors in what follows
            self._publish_diagnostics()
        action, self._action = self._action, None
        if action is not None:
            self._act(action)
        self._mailbox.poll()
        self._show_robot()
        self._remote.give_up()
        self._watch()
        if self._is_watched:
            with self._server.atomic():
                self._refresh(self._started)

    def _watch(self) -> None:
        """Have subscriptions, and command velocities, while and only while somebody looks."""
        self._is_watched = self.page.is_open
        if not self._is_watched:
            self._streams.close()
            self._remote.halt()
        elif not self._streams.is_open and self.page.robot is not None:
            self._streams.open(self.page.robot.model)

    def _wait(self, seconds: float) -> None:
        """Wait, but no longer than until the user does something."""
        with contextlib.suppress(queue.Empty):
            self._action = self.page.panel.actions.get(timeout=max(seconds, 1e-3))

    def _refresh(self, now: float) -> None:
        """Bring everything that the page shows up to date."""
        self._remote.move(self.page.panel.velocity, now)  # first: it stops the robot, too
        joints, base = self._streams.joints(), self._streams.base()
        if base is not None:
            self.page.place_robot(*base)
        if joints is not None:
            self.page.bend_robot(joints.arrays['position'])
            self._status.tick(1e-9 * joints.stamp_ns, now)
            self._plot(joints, now)
        markers = self._streams.fresh('markers')
        problems = self.page.markers['markers'].take(markers, now) if markers is not None else []
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
        if plots is None or self._model is None:
            return
        tau = joints.get('effort')
        height = math.nan if base is None else float(base[0][2])
        tau = np.full(self._model.nj, np.nan) if tau is None else tau
        plots.add(1e-9 * joints.stamp_ns, tau, self._streams.vertical_forces(), height)
        if now >= self._next_plot:
            self._next_plot = now + 1.0 / self._parameters.values.plot_rate
            plots.draw()

    def _say(self, now: float) -> None:
        """Show the status, and who is silent."""
        lines, warnings_ = self._status.lines(now)
        if self._model is None:
            warnings_.append('no robot yet: no robot_description')
        elif self._streams.is_open:
            for topic in ('joint_states', 'odom')[: 2 if self._model.floating_base else 1]:
                age = self._streams.age(topic)
                if age > self._parameters.values.silence:
                    warnings_.append(f'no {topic} for {age:.1f} s')
        if self._mesh_problems:
            more = len(self._mesh_problems) - 1
            lines.append(self._mesh_problems[0] + (f', and {more} more' if more else ''))
        self.page.panel.say(lines, warnings_)
        self.page.panel.know_layers(self.page.layers)

    def _ask(self) -> None:
        panel, values = self.page.panel, self._parameters.values
        self._remote.ask_parameter(
            values.sim_node, 'contact', lambda value: panel.know_choice('contact', value)
        )
        self._remote.ask_parameter(values.force_node, 'mode', lambda value: panel.know_choice('mode', value))

    def _act(self, action: Action) -> None:
        """Do what the user asks for."""
        values, panel = self._parameters.values, self.page.panel
        if action.name == 'pause':
            self._remote.pause(action.value, lambda: panel.know_paused(action.value))
        elif action.name in ('step', 'reset', 'recover'):
            self._remote.trigger(action.name)
        elif action.name == 'push':
            self._push()
        elif action.name == 'contact':
            self._remote.set_parameter(values.sim_node, 'contact', action.value)
        elif action.name == 'mode':
            self._remote.set_parameter(values.force_node, 'mode', action.value)
        elif action.name == 'show':
            topic, namespace, visible = action.value
            self.page.markers[topic].show(namespace, visible)
        self._next_ask = min(self._next_ask, time.monotonic() + 0.3)

    def _push(self) -> None:
        base = self._streams.base()
        w, x, y, z = (1.0, 0.0, 0.0, 0.0) if base is None else base[1].tolist()
        yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        f_x, f_y, f_z = self.page.panel.push
        c, s = math.cos(yaw), math.sin(yaw)
        self._remote.push((c * f_x - s * f_y, s * f_x + c * f_y, f_z))
        self.page.notify('push', f'{math.hypot(f_x, f_y, f_z):.0f} N', True)

    def _publish_diagnostics(self) -> None:
        pages = len(self._server.get_clients())
        self._diagnostics.hardware_id = self._model.name if self._model is not None else ''
        self._diagnostics.publish(
            WARN if self._diagnostics.counts else OK,
            f'{pages} page{"" if pages == 1 else "s"} open',
            None if self._status.simulated is None else round(1e9 * self._status.simulated),
            pages=pages,
            address=address_of(self._server),
            robot=self._model.name if self._model is not None else '',
        )

    def close(self) -> None:
        """End the server, and give the node back."""
        stop_server(self._server)
        self.node.destroy_node()


def _load(source: str, xacro_args: str = '') -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # whoever simulates the robot says what is doubtful
        return load_model(source, xacro_args=parse_xacro_args(xacro_args))


def _load_chosen(robot: str, xacro_args: str) -> Model:
    try:
        return _load(robot, xacro_args)
    except QuadDynamicsError as error:
        raise ArgumentError(f'parameter robot: {error}') from error
