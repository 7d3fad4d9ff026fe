# SPDX-License-Identifier: Apache-2.0
"""Nodes as real processes, and a probe that listens and talks to them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from quad_dynamics.ros.mailbox import make_mailbox
from quad_dynamics.ros.qos import COMMAND, STREAM

# Far longer than anything takes, on a busy machine too.
PATIENCE = 40.0


class Process:
    """A node as a process of its own; its output is kept."""

    def __init__(self, module: str, *arguments: str, **parameters: Any) -> None:
        command = [sys.executable, '-m', module, *arguments]
        if parameters or not arguments:
            command += ['--ros-args']
            for name, value in parameters.items():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                command += ['-p', f'{name.replace("__", ".")}:={text}']
        environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'QUAD_DYNAMICS_PARENT': str(os.getpid())}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it; its exit code and output."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            output, _ = self.process.communicate(timeout=10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
            raise AssertionError(f'it did not end within 10 s of signal {number}:\n{output}') from None
        return self.process.returncode, output or ''

    def kill(self) -> None:
        """End it as nothing can resist."""
        self.process.kill()
        self.process.communicate()


class Probe:
    """A node of the test itself: hears the state and the diagnostics, calls services, sets parameters.

    Attributes:
        states: (arrival [s], stamp [ns]) of joint_states.
        torques: the same of joint_torques.
        odom: the last message.
        said: by node, the arrival and the values of its last diagnostics, with its `message` and `level`.
    """

    def __init__(self, namespace: str = '') -> None:
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node('probe', context=self.context, namespace=namespace, enable_rosout=False)
        self.box = make_mailbox(self.node)
        self.states: list[tuple[float, int]] = []
        self.torques: list[tuple[float, int]] = []
        self.last_torque = b''
        self.odom: Any = None
        self.said: dict[str, tuple[float, dict[str, str]]] = {}
        self.node.create_subscription(JointState, 'joint_states', self._state, STREAM, raw=True)
        self.node.create_subscription(JointState, 'joint_torques', self._torque, STREAM, raw=True)
        self.node.create_subscription(Odometry, 'odom', self._odom, STREAM)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnostics, COMMAND)

    def _state(self, raw: bytes) -> None:
        self.states.append((time.monotonic(), stamp_of(raw)))

    def _torque(self, raw: bytes) -> None:
        self.torques.append((time.monotonic(), stamp_of(raw)))
        self.last_torque = raw

    def _odom(self, message: Any) -> None:
        self.odom = message

    def _diagnostics(self, message: Any) -> None:
        for status in message.status:
            values = {item.key: item.value for item in status.values}
            values |= {'message': status.message, 'level': str(status.level[0])}
            self.said[status.name] = time.monotonic(), values

    @property
    def height(self) -> float:
        """Of the base [m]."""
        return float(self.odom.pose.pose.position.z)

    def listen(self, seconds: float) -> None:
        """Take what comes for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.box.wait(min(0.05, max(0.0, deadline - time.monotonic())))

    def until(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> float:
        """Listen until something is so; return how long it took [s]."""
        begin = time.monotonic()
        while not condition():
            assert time.monotonic() - begin < seconds, f'{what}: not within {seconds} s; {self.said}'
            self.box.wait(0.02)
        return time.monotonic() - begin

    def value(self, node: str, name: str) -> str:
        """What a node said last of itself; '' if nothing."""
        return self.said.get(node, (0.0, {}))[1].get(name, '')

    def call(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service and wait for its answer."""
        client = self.node.create_client(kind, name)
        try:
            self.until(client.service_is_ready, f'service {name}')
            future = client.call_async(request)
            self.until(future.done, f'answer of {name}')
            return future.result()
        finally:
            self.node.destroy_client(client)

    def trigger(self, name: str) -> Any:
        return self.call(Trigger, name, Trigger.Request())

    def pause(self, on: bool, name: str = 'sim_node/pause') -> Any:
        return self.call(SetBool, name, SetBool.Request(data=on))

    def set(self, node: str, name: str, value: Any) -> Any:
        """Set a parameter; its result, with `successful` and `reason`."""
        message: ParameterMessage = Parameter(name, value=value).to_parameter_msg()
        request = SetParameters.Request(parameters=[message])
        return self.call(SetParameters, f'{node}/set_parameters', request).results[0]

    def publisher(self, kind: Any, topic: str, qos: Any = COMMAND) -> Any:
        """A publisher that somebody has found."""
        made = self.node.create_publisher(kind, topic, qos)
        self.until(lambda: made.get_subscription_count() > 0, f'a subscriber of {topic}')
        return made

    def close(self) -> None:
        self.node.destroy_node()
        self.context.try_shutdown()


@contextlib.contextmanager
def probe(namespace: str = '') -> Iterator[Probe]:
    """A probe that is closed at the end."""
    made = Probe(namespace)
    try:
        yield made
    finally:
        made.close()


def stamp_of(raw: bytes) -> int:
    """Stamp [ns] in the header of a message."""
    return int.from_bytes(raw[4:8], 'little') * 10**9 + int.from_bytes(raw[8:12], 'little')
