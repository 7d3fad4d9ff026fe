# SPDX-License-Identifier: Apache-2.0
"""sim_node and force_node as processes, and a node in this process that listens and interferes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.context import Context
from rclpy.node import Node

from quad_dynamics.ros.environment import ros_environment
from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.qos import COMMAND, STREAM

ROOT = Path(__file__).resolve().parents[2]


def start(module: str, *parameters: str) -> subprocess.Popen[str]:
    """Run a node as a process, with parameters such as `mode:=stand`."""
    arguments = [word for parameter in parameters for word in ('-p', parameter)]
    return subprocess.Popen(
        [sys.executable, '-m', module, '--ros-args', *arguments],
        cwd=ROOT,
        env=ros_environment() | {'PYTHONWARNINGS': 'ignore'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Graph:
    """Both nodes, and what is heard of them.

    Attributes:
        diagnostics: the newest of each node, as a dictionary with `level` and `message`.
    """

    def __init__(self, sim: Sequence[str] = (), force: Sequence[str] = ()) -> None:
        self.processes = {'sim_node': start('sim_node', *sim), 'force_node': start('force_node', *force)}
        self._context = Context()
        rclpy.init(context=self._context)
        self.node = Node('listener', context=self._context)
        self.box = make_mailbox(self.node)
        self.diagnostics: dict[str, dict[str, Any]] = {}
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnose, COMMAND)

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        self.output = {name: process.communicate(timeout=20)[0] for name, process in self.processes.items()}
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)
        if error[0] is not None:
            print(*self.output.values(), sep='\n---\n')

    def _diagnose(self, message: Any) -> None:
        for status in message.status:
            values = {item.key: item.value for item in status.values}
            self.diagnostics[status.name] = {'level': ord(status.level), 'message': status.message, **values}

    @property
    def force(self) -> dict[str, Any]:
        """Diagnostics of force_node."""
        return self.diagnostics.get('force_node', {})

    def faults(self, kind: str) -> int:
        """How often force_node has seen such a fault."""
        return int(self.force.get(f'faults.{kind}', 0))

    def wait(self, until: Callable[[], Any], seconds: float, what: str) -> float:
        """Wait until something is the case; return how long it took [s]."""
        begin = time.monotonic()
        while not until():
            if time.monotonic() - begin > seconds:
                raise AssertionError(f'{what}: not within {seconds:g} s; {self.diagnostics}')
            for name, process in self.processes.items():
                assert process.poll() is None, f'{name} has died'
            self.box.wait(0.02)
        return time.monotonic() - begin

    def spin(self, seconds: float) -> None:
        """Listen for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.box.wait(end - time.monotonic())

    def listen(self, kind: Any, topic: str) -> list[Any]:
        """A list to which all messages of a topic are added, with their times of arrival."""
        heard: list[Any] = []
        self.node.create_subscription(kind, topic, lambda m: heard.append((time.monotonic(), m)), STREAM)
        return heard

    def call(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service."""
        client = self.node.create_client(kind, name)
        self.wait(client.service_is_ready, 5.0, f'service {name}')
        future = client.call_async(request)
        self.wait(future.done, 5.0, f'answer of {name}')
        self.node.destroy_client(client)
        return future.result()

    def set_mode(self, mode: str) -> Any:
        """Set the parameter `mode` by its service."""
        value = ParameterValue(type=4, string_value=mode)
        request = SetParameters.Request(parameters=[Parameter(name='mode', value=value)])
        return self.call(SetParameters, 'force_node/set_parameters', request).results[0]

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a node."""
        os.kill(self.processes[name].pid, number)
