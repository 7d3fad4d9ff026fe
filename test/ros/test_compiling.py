# SPDX-License-Identifier: Apache-2.0
"""While kernels are compiled, diagnostics say which; with a kernel that really is compiled."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
from quad_dynamics.compiler import registry
from quad_dynamics.compiler.registry import INT, Kernel
from quad_dynamics.ros.compiling import announce_compiling
from quad_dynamics.ros.status import Status


class Recorder:
    """In place of the diagnostics of a node."""

    def __init__(self) -> None:
        self.said: list[tuple[int, str, dict[str, Any]]] = []

    def publish(self, level: int, message: str, **values: Any) -> None:
        self.said.append((level, message, values))


def slow_to_compile(x: int) -> int:
    return x + 1


def test_diagnostics_say_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('QUAD_DYNAMICS_CACHE_DIR', str(tmp_path))
    monkeypatch.setattr(registry, 'LISTENERS', [])
    recorder = Recorder()
    announce_compiling(recorder)  # type: ignore[arg-type]
    names: list[str] = []
    registry.LISTENERS.append(names.append)
    assert Kernel(slow_to_compile, (INT,)).load(announce=False)
    assert names == ['slow_to_compile', '']
    level, message, values = recorder.said[0]
    assert (level, values) == (0, {'compiling': 'slow_to_compile'})
    assert message == 'compiling slow_to_compile (first start on this machine), 0 s so far'
    count = len(recorder.said)
    time.sleep(0.7)  # longer than from one message to the next
    assert len(recorder.said) == count
    # What is in the cache is not compiled, and nothing is said.
    assert not Kernel(slow_to_compile, (INT,)).load(announce=False)
    assert names == ['slow_to_compile', '']


def test_line_of_the_command_shows_it() -> None:
    status = Status()
    status._heard['sim_node'] = time.monotonic(), 'compiling simulate', {'compiling': 'simulate'}
    assert status.line() == 'sim_node: compiling simulate | force_node is starting'
