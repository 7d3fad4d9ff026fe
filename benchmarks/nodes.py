# SPDX-License-Identifier: Apache-2.0
"""How well the graph of nodes keeps its rates: `make nodes`. Rates, jitter, latency, CPU time, memory.

Everything runs as for a user: `quad_dynamics sim`, and with --page a browser that shows the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

from quad_dynamics.ros.environment import stay_on_this_machine
from quad_dynamics.ros.priority import come_first

RESULTS = Path(__file__).parent / 'node_results.json'
BROWSER = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = ('--headless=new', '--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader')
_PAGE = re.compile(r'open (http://\S+) in a browser')
_SETTLE = 5.0  # delay from standing to the start of the measurement [s]


class Graph:
    """`quad_dynamics sim` as a process, and an open page."""

    def __init__(self, arguments: list[str], page: bool) -> None:
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'quad_dynamics', 'sim', *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._page, self._browser, self._folder = page, None, tempfile.mkdtemp()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = _PAGE.search(line)
            if found and self._page:
                self._open(found[1])

    def _open(self, address: str) -> None:
        program = next(filter(None, map(shutil.which, BROWSER)), None)
        if program is None:
            raise SystemExit('no Chromium was found; run without --page')
        self._browser = subprocess.Popen(
            [program, *FLAGS, f'--user-data-dir={self._folder}', '--remote-debugging-port=0', address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def pids(self) -> dict[str, int]:
        """Process ids of the nodes, by name."""
        found = {'supervisor': self.process.pid}
        for entry in Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / 'stat').read_text().rsplit(')', 1)[1].split()[1])
                    words = (entry / 'cmdline').read_bytes().decode().split('\0')
                except (OSError, IndexError):
                    continue
                if parent == self.process.pid and '-m' in words:
                    found[words[words.index('-m') + 1]] = int(entry.name)
        return found

    def close(self) -> None:
        """Terminate all processes."""
        for process in filter(None, (self._browser, self.process)):
            process.send_signal(signal.SIGTERM)
            process.wait(20.0)
        shutil.rmtree(self._folder, ignore_errors=True)


class Listener:
    """Records arrival times of joint_states, and the diagnostics of the simulator."""

    def __init__(self) -> None:
        stay_on_this_machine()
        import rclpy
        from rclpy.node import Node
        from sensor_msgs.msg import JointState

        from quad_dynamics.ros.qos import COMMAND, CONTROL, STREAM
        from quad_dynamics.ros.subscriptions import make_raw_mailbox

        rclpy.init(args=[])
        node = Node('bench')
        self.states: list[tuple[float, int, int]] = []
        self.said: dict[str, dict[str, str]] = {}
        self.latencies: list[tuple[float, float]] = []
        self.places: list[tuple[float, float, float]] = []
        self._count = 0
        node.create_subscription(JointState, 'joint_states', self._state, STREAM, raw=True)
        node.create_subscription(Odometry, 'odom', self._odom, CONTROL, raw=True)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._hear, COMMAND, raw=True)
        self.box = make_raw_mailbox(node)

    def _state(self, raw: bytes, info: dict[str, int]) -> None:
        stamp = int.from_bytes(raw[4:8], 'little') * 10**9 + int.from_bytes(raw[8:12], 'little')
        self.states.append((time.monotonic(), stamp, info['source_timestamp']))

    def _odom(self, raw: bytes, info: dict[str, int]) -> None:
        self._count += 1
        if self._count % 100 == 0:  # the measurement must not disturb
            p = deserialize_message(raw, Odometry).pose.pose.position
            self.places.append((p.x, p.y, p.z))

    def _hear(self, raw: bytes, info: dict[str, int]) -> None:
        for status in deserialize_message(raw, DiagnosticArray).status:
            self.said[status.name] = {item.key: item.value for item in status.values}
            self.said[status.name]['message'] = status.message
            if status.name == 'sim_node':
                values = self.said['sim_node']
                self.latencies.append((float(values['latency_p50_ms']), float(values['latency_p90_ms'])))

    def listen(self, seconds: float) -> None:
        """Listen for a duration."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.box.wait(min(0.1, max(0.0, deadline - time.monotonic())))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process [s]."""
    words = (Path('/proc') / str(pid) / 'stat').read_text().rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


def memory(pid: int) -> float:
    """Resident memory of a process [MiB]."""
    return (
        int((Path('/proc') / str(pid) / 'statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20
    )


def steal() -> tuple[float, float]:
    """Time stolen by the host, and total time, of all cores."""
    words = [int(word) for word in Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:9]]
    return float(words[7]), float(sum(words))


def measure(graph: Graph, ear: Listener, seconds: float) -> dict[str, float]:
    """Measure the running graph for a duration."""
    pids = graph.pids()
    for kept in (ear.states, ear.places, ear.latencies):
        kept.clear()
    cpu, mem, begin, stolen = (
        {name: cpu_seconds(pid) for name, pid in pids.items()},
        {name: memory(pid) for name, pid in pids.items()},
        time.monotonic(),
        steal(),
    )
    ear.listen(seconds)
    took = time.monotonic() - begin
    taken = np.subtract(steal(), stolen)
    used = {name: 100.0 * (cpu_seconds(pid) - cpu[name]) / took for name, pid in pids.items()}
    arrivals, stamps, sent = np.array(ear.states, dtype=np.float64).T
    published = np.diff(sent) * 1e-6
    intervals = np.diff(arrivals) * 1e3
    places = np.array(ear.places)
    halves = [
        len(half) / (took / 2)
        for half in np.array_split(arrivals, [np.searchsorted(arrivals, begin + took / 2)])
    ]
    latencies = np.array(ear.latencies)
    return {
        'seconds': took,
        'real_time_factor': float((stamps[-1] - stamps[0]) * 1e-9 / (arrivals[-1] - arrivals[0])),
        'joint_states_hz': len(arrivals) / took,
        'joint_states_hz_first_half': halves[0],
        'joint_states_hz_second_half': halves[1],
        **{f'published_p{p}_ms': float(np.percentile(published, p)) for p in (10, 50, 90, 99)},
        **{f'interval_p{p}_ms': float(np.percentile(intervals, p)) for p in (10, 50, 90, 99)},
        'latency_p50_ms': float(np.median(latencies[:, 0])),
        'latency_p90_ms': float(np.median(latencies[:, 1])),
        **{f'cpu_{name}_percent': value for name, value in used.items()},
        'cpu_without_viewer_percent': sum(value for name, value in used.items() if name != 'viewer_node'),
        **{f'memory_{name}_mib': memory(pid) for name, pid in pids.items()},
        **{
            f'memory_growth_{name}_percent': 100.0 * (memory(pid) / mem[name] - 1.0)
            for name, pid in pids.items()
        },
        'base_drift_mm': float(np.ptp(places, axis=0).max() * 1e3),
        'steal_percent': float(100.0 * taken[0] / taken[1]),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, prog='python -m benchmarks.nodes')
    parser.add_argument('--seconds', type=float, default=60.0, help='how long to measure [s]')
    parser.add_argument('--page', action='store_true', help='with the page open in a headless browser')
    parser.add_argument('--output', type=Path, default=RESULTS, help='where to write the results')
    arguments, rest = parser.parse_known_args()
    graph = Graph([*rest, '--port', '0'], arguments.page)
    try:
        ear = Listener()
        deadline = time.monotonic() + 60.0
        while 'hold' not in ear.said.get('force_node', {}).get('message', ''):
            ear.listen(0.2)
            if time.monotonic() > deadline:
                raise SystemExit('the robot did not stand within 60 s')
        ear.listen(_SETTLE)
        come_first()  # measures when messages arrive, not when this process is scheduled
        results = measure(graph, ear, arguments.seconds)
    finally:
        graph.close()
    for name, value in results.items():
        print(f'{name:36} {value:10.3f}')
    arguments.output.write_text(
        json.dumps({name: round(v, 4) for name, v in results.items()}, indent=2) + '\n'
    )
    print(f'written: {arguments.output}')


if __name__ == '__main__':
    main()
