# SPDX-License-Identifier: Apache-2.0
"""The status of the nodes in one line, from their diagnostics."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from quad_dynamics.ros.environment import stay_on_this_machine

_SILENT = 1.5  # time without diagnostics after which a node does not report [s]


class Status:
    """Listens to /diagnostics in a thread, as a context manager."""

    def __init__(self, namespace: str = '', has_force_node: bool = True) -> None:
        """Prepare to listen.

        Args:
            namespace: of the nodes.
            has_force_node: whether force_node is among them.
        """
        self._has_force_node = has_force_node
        self._prefix = f'{namespace.strip("/")}/' if namespace.strip('/') else ''
        self._heard: dict[str, tuple[float, str, dict[str, str]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Status:
        stay_on_this_machine()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(2.0)

    def node(self, name: str) -> dict[str, str]:
        """The latest values of a node, with its `message`; {} if it does not report."""
        heard, message, values = self._heard.get(f'{self._prefix}{name}', (0.0, '', {}))
        return {**values, 'message': message} if time.monotonic() - heard < _SILENT else {}

    def simulated_time(self) -> float:
        """Simulated time [s], extrapolated from the last diagnostics of sim_node; 0 if it does not report."""
        heard, _, values = self._heard.get(f'{self._prefix}sim_node', (0.0, '', {}))
        age = time.monotonic() - heard
        if age > _SILENT or not values:
            return 0.0
        pace = 0.0 if values.get('paused') == 'True' else float(values.get('real_time_factor', 0.0))
        return float(values.get('time', 0.0)) + (pace * age if pace > 0.0 else 0.0)

    def line(self) -> str:
        """The status of all nodes in one line."""
        sim, force = self.node('sim_node'), self.node('force_node')
        parts = []
        if 'compiling' in sim:
            parts.append(f'sim_node: {sim["message"]}')
        elif sim:
            factor = float(sim.get('real_time_factor', 'nan'))
            parts += [f't {float(sim.get("time", "nan")):.1f} s', f'x{factor:.2f}', sim['message']]
        else:
            parts.append(self._silent('sim_node'))
        if force:
            rate = force.get('joint_states_hz')
            parts += [f'joint_states {float(rate):.0f} Hz'] if rate else []
            parts.append(f'force_node: {force["message"]}')
        elif self._has_force_node:
            parts.append(self._silent('force_node'))
        return ' | '.join(parts)

    def _silent(self, name: str) -> str:
        return f'{name} {"does not report" if f"{self._prefix}{name}" in self._heard else "is starting"}'

    def _listen(self) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from rclpy.signals import SignalHandlerOptions

        from quad_dynamics.ros.mailbox import make_mailbox
        from quad_dynamics.ros.qos import COMMAND

        context = rclpy.Context()
        rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
        node = Node(
            'quad_dynamics_status', context=context, enable_rosout=False, start_parameter_services=False
        )
        try:
            node.create_subscription(DiagnosticArray, '/diagnostics', self._take, COMMAND)
            box = make_mailbox(node)
            while not self._stop.is_set():
                box.wait(0.2)
        finally:
            node.destroy_node()
            context.try_shutdown()

    def _take(self, message: Any) -> None:
        for status in message.status:
            values = {item.key: item.value for item in status.values}
            self._heard[status.name] = time.monotonic(), status.message, values
