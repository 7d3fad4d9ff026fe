# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of the graph, restarts those that die, and stops them all."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.deaths import Deaths, Next
from quad_dynamics.ros.environment import ros_environment
from quad_dynamics.ros.node_spec import NodeSpec
from quad_dynamics.ros.process import end_with_parent

# Processes stop within their patience; this much later they are killed [s].
GRACE = 1.0
_KILLED = 2.0  # how long a killed process may take to be gone [s]

Say = Callable[[str, str], None]


class Supervisor:
    """Runs processes.

    Attributes:
        failed: '' or why the graph cannot continue.
        losses: other processes that failed; the graph continues without them.
        restarts: number of restarts.
    """

    def __init__(self, specs: Sequence[NodeSpec], say: Say) -> None:
        """Prepare to run processes; `start` starts them.

        Args:
            specs: what to run.
            say: called with the name of a process and a line of its output, or '' and a message.
        """
        self._specs, self._say = specs, say
        self._children: dict[str, _Child] = {}
        self._gone: set[str] = set()
        self.failed = ''
        self.losses: list[str] = []
        self.restarts = 0

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {name: child.process.pid for name, child in self._children.items()}

    def has_ended(self, name: str) -> bool:
        """Whether a process that is not restarted has exited normally."""
        return name in self._gone

    def start(self) -> None:
        """Start all processes; from the main thread, since they end with the thread that started them.

        Raises:
            ArgumentError: a required program is not installed.
        """
        for spec in self._specs:
            if spec.lack and not spec.needed:
                self.losses.append(spec.lack)
                self._say('', spec.lack)
            else:
                self._children[spec.name] = _Child(spec, self._say)

    def look(self) -> None:
        """Restart processes that died, unless they rejected their parameters or die repeatedly."""
        for name, child in self._children.items():
            code = child.process.poll()
            if code is None or self.failed or name in self._gone:
                continue
            child.finish()
            what, text = child.deaths.judge(child.spec, code)
            if what is Next.END:
                self.failed = text
                continue
            self._say('', text)
            if what is Next.RESTART:
                self.restarts += 1
                child.restart()
            else:
                self._gone.add(name)
                self.losses += [text] if what is Next.DO_WITHOUT else []

    def stop(self) -> None:
        """Stop all processes, gracefully at first; the time is bounded."""
        alive = [child for child in self._children.values() if child.process.poll() is None]
        begin = time.monotonic()
        for child in alive:
            # Not SIGINT: an interpreter that is just starting would print a traceback.
            child.process.send_signal(signal.SIGTERM)
        for child in alive:
            deadline = begin + child.spec.patience + GRACE
            if not child.has_ended(deadline):
                self._say('', f'{child.spec.name} does not stop; killing it')
                child.process.kill()
                child.has_ended(time.monotonic() + _KILLED)
        for child in self._children.values():
            child.finish()


class _Child:
    """One process, and a thread that forwards its output."""

    def __init__(self, spec: NodeSpec, say: Say) -> None:
        self.spec, self._say = spec, say
        self.deaths = Deaths()
        self.restart()

    def restart(self) -> None:
        # In its own session: Ctrl-C reaches only the supervisor, which then stops all in order.
        self.process = subprocess.Popen(
            command_line(self.spec),
            env=ros_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            start_new_session=True,
            # Our own programs do it themselves; here it is one call, without threads in between.
            preexec_fn=None if self.spec.module else end_with_parent,  # noqa: PLW1509
        )
        self._reader = threading.Thread(target=self._forward, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def has_ended(self, deadline: float) -> bool:
        """Wait for its end until a time of the monotonic clock [s]."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def finish(self) -> None:
        """Forward the remaining output."""
        self._reader.join(1.0)

    def _forward(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self._say(self.spec.name, line.rstrip('\n'))


def command_line(spec: NodeSpec) -> list[str]:
    """The command that runs a process.

    Raises:
        ArgumentError: it is not installed.
    """
    command = [*_program(spec), *spec.arguments]
    if not spec.is_node:
        return command
    command += ['--ros-args', '-r', f'__node:={spec.executable}']
    command += ['-r', f'__ns:=/{spec.namespace.strip("/")}'] if spec.namespace else []
    for old, new in spec.remappings:
        command += ['-r', f'{old}:={new}']
    for path in spec.files:
        command += ['--params-file', str(path)]
    for name, value in spec.parameters.items():
        command += ['-p', f'{name}:={_yaml(value)}']
    return command


def _program(spec: NodeSpec) -> list[str]:
    if spec.module:
        return [sys.executable, '-m', spec.module]
    if spec.program is None:
        raise ArgumentError(spec.lack)
    return [str(spec.program)]


def _yaml(value: Any) -> str:
    """A value for a ROS command line: YAML in one line, with quoted text."""
    if isinstance(value, Mapping):
        raise ArgumentError(f'{value!r} is a mapping; expected a number, text or list')
    plain = list(value) if isinstance(value, tuple) else value
    style = '"' if isinstance(value, str) else None
    text = yaml.safe_dump(plain, default_flow_style=True, default_style=style, width=1_000_000)
    return text.removesuffix('\n').removesuffix('...').rstrip('\n')
