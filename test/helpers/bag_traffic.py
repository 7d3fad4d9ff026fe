# SPDX-License-Identifier: Apache-2.0
"""Traffic for the tests of bags, as processes of their own: `python bag_traffic.py steady|simulated ...`.

Every message holds its topic's count in the frame of its header, so that none can be missing unnoticed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOPICS = 8
JOINTS = [f'joint_{i}' for i in range(12)]
TEXT = '<robot name="latched"/>'
Process = subprocess.Popen[str]


# ---------------------------------------------------------------- for tests


def start(*arguments: str) -> Process:
    """Start a process, with the ROS domain of the test; its output goes to pipes."""
    from quad_dynamics.ros.environment import ros_environment

    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *arguments], env=ros_environment(), stdout=pipe, stderr=pipe, text=True
    )


def traffic(*arguments: object) -> Process:
    """Start this module."""
    return start(__file__, *map(str, arguments))


def command(*arguments: object) -> Process:
    """Start a command of `quad_dynamics`."""
    return start('-m', 'quad_dynamics', *map(str, arguments))


def wait_line(process: Process, text: str, timeout: float = 30.0) -> str:
    """Wait for a line of output that begins so; after the timeout the process is killed."""
    assert process.stdout is not None
    seen = []
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        for line in process.stdout:
            if line.startswith(text):
                return line
            seen.append(line)
    finally:
        watchdog.cancel()
    _, errors = process.communicate()
    raise AssertionError(f'no line {text!r}, but {seen}; exit code {process.returncode}: {errors}')


def wait_topics(recorder: Process, count: int) -> None:
    """Wait until a recorder records so many topics."""
    found = int(wait_line(recorder, 'recording').split()[1])
    while found < count:
        wait_line(recorder, 'also recording')
        found += 1
    assert found == count


def stop(process: Process, number: int = signal.SIGINT, timeout: float = 20.0) -> tuple[int, str, str]:
    """Ask a process to end; return its exit code and what it said."""
    if process.poll() is None:
        process.send_signal(number)
    output, errors = process.communicate(timeout=timeout)
    return process.returncode, output, errors


def end_all(processes: Sequence[Process]) -> None:
    """End what a failed test has left."""
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


# ---------------------------------------------------------------- the processes


def _joint_states() -> tuple[Any, int]:
    """The bytes of a JointState, and where its frame, a text of eight characters, begins."""
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    message = JointState(name=JOINTS, position=[0.1] * 12, velocity=[0.2] * 12, effort=[0.3] * 12)
    message.header.frame_id = '#' * 8
    raw = bytearray(serialize_message(message))
    return raw, raw.index(b'#' * 8)


def number_of(raw: bytes) -> int:
    """The count that a message holds."""
    return int(bytes(raw[16:24]))


def _stamp(raw: bytearray, nanoseconds: int) -> None:
    seconds, rest = divmod(nanoseconds, 10**9)
    raw[4:12] = seconds.to_bytes(4, 'little') + rest.to_bytes(4, 'little')


def _wait_until_received(publishers: Sequence[Any]) -> None:
    """Wait until all subscribers have got everything, also what had to be sent again."""
    from rclpy.duration import Duration

    for publisher in publishers:
        assert publisher.wait_for_all_acked(Duration(seconds=10.0))


def steady(rate: float, seconds: float, target: str, listeners: int) -> None:
    """Publish `rate` messages a second on several topics; write when each was sent."""
    import numpy as np
    import rclpy
    from rclpy.node import Node
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    from quad_dynamics.ros.qos import LATCHED, STREAM

    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    node = Node('traffic', start_parameter_services=False, enable_rosout=False)
    node.create_publisher(String, 'description', LATCHED).publish(String(data=TEXT))
    publishers = [node.create_publisher(JointState, f'traffic_{i}', STREAM) for i in range(TOPICS)]
    print('ready', flush=True)
    while not all(one.get_subscription_count() >= listeners for one in publishers) and not asked:
        time.sleep(0.005)
    time.sleep(0.1)
    raw, place = _joint_states()
    total, i = round(rate * seconds), 0
    sent = np.zeros(total, dtype=np.int64)
    begin = time.monotonic()
    print('sending', flush=True)
    while i < total and not asked:
        due = min(int((time.monotonic() - begin) * rate), total)
        for k in range(i, due):
            count, topic = divmod(k, TOPICS)
            sent[k] = now = time.time_ns()
            _stamp(raw, now)
            raw[place : place + 8] = b'%08d' % count
            publishers[topic].publish(bytes(raw))
        i = due
        time.sleep(0.0005)
    np.save(target, sent[:i])
    if not asked:
        _wait_until_received(publishers)
    print('sent', i, flush=True)
    while not asked:
        time.sleep(0.01)


def simulated(steps: int) -> None:
    """Publish as a simulation in lock-step: the first state again and again, then all steps at once."""
    import rclpy
    from geometry_msgs.msg import Twist
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String
    from visualization_msgs.msg import Marker, MarkerArray

    from quad_dynamics.ros.qos import LATCHED

    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    node = Node('traffic', start_parameter_services=False, enable_rosout=False)
    node.create_publisher(String, 'description', LATCHED).publish(String(data=TEXT))
    # Nothing makes it wait for a recorder: it must keep what a busy one has not got yet.
    stream = QoSProfile(depth=3000)
    clock = node.create_publisher(Clock, '/clock', stream)
    states = [node.create_publisher(JointState, f'state_{i}', stream) for i in range(3)]
    markers = node.create_publisher(MarkerArray, 'markers', stream)
    node.create_publisher(Twist, 'silent', stream)
    raw, place = _joint_states()
    shown, tick = MarkerArray(markers=[Marker(id=1)]), Clock()

    def step(k: int) -> None:
        stamp = k * 2_000_000
        _stamp(raw, stamp)
        raw[place : place + 8] = b'%08d' % k
        for one in states:
            one.publish(bytes(raw))
        tick.clock.sec, tick.clock.nanosec = divmod(stamp, 10**9)
        clock.publish(tick)
        if k % 25 == 0:
            shown.markers[0].header.stamp = tick.clock
            markers.publish(shown)

    print('ready', flush=True)
    go = Path(os.environ['BAG_TRAFFIC_GO'])
    while not go.exists() and not asked:
        step(0)
        time.sleep(0.02)
    for k in range(1, steps + 1):
        step(k)
        time.sleep(0.001)
    _wait_until_received([clock, *states, markers])
    print('sent', flush=True)
    while not asked:
        time.sleep(0.01)


if __name__ == '__main__':
    kind, *rest = sys.argv[1:]
    if kind == 'steady':
        steady(float(rest[0]), float(rest[1]), rest[2], int(rest[3]))
    else:
        simulated(*map(int, rest))
    print(json.dumps('end'), flush=True)
