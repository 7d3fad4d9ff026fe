# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of the graph, restarts what dies, and ends them all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.environment import ros_environment
from quad_dynamics.ros.graph import NodeSpec, prefix_of
from quad_dynamics.ros.process import end_with_parent

# A process that dies so often within so many seconds is not started again.
_MOST_DEATHS, _WITHIN = 5, 20.0
# Signals that somebody else sends; who lives less than this has not been at work [s].
_OF_OTHERS, _AT_ONCE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP), 0.8
TOO_OFTEN = f'{_MOST_DEATHS} times within {_WITHIN:g} s'
# How long processes may take to end after each signal [s]. Not SIGINT: of that, an interpreter that is just
# starting complains.
_PATIENCE = ((signal.SIGTERM, 4.0), (signal.SIGKILL, 2.0))
WRONG_PARAMETERS = 2  # exit code of a node that refuses to start

Say = Callable[[str, str], None]


class Supervisor:
    """Runs processes.

    Attributes:
        failed: '' or why the graph cannot go on.
        restarts: how often something was started again.
    """

    def __init__(self, specs: Sequence[NodeSpec], say: Say) -> None:
        """Be ready to run processes; `start` starts them.

        Args:
            specs: what to run.
            say: called with the name of a process and a line of its output, or '' and a line of ours.
        """
        self._specs, self._say = specs, say
        self._children: dict[str, _Child] = {}
        self._gone: set[str] = set()
        self.failed = ''
        self.restarts = 0

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {name: child.process.pid for name, child in self._children.items()}

    def has_ended(self, name: str) -> bool:
        """Whether a process that is not started again has ended as it should."""
        return name in self._gone

    def start(self) -> None:
        """Start all processes; from the main thread, for they end when the thread that started them does."""
        for spec in self._specs:
            self._children[_name(spec)] = _Child(spec, self._say)

    def look(self) -> None:
        """Restart what has died, unless it refused to start or dies all the time."""
        for name, child in self._children.items():
            code = child.process.poll()
            if code is None or self.failed:
                continue
            how = _how(code)
            child.finish()
            if code == WRONG_PARAMETERS:
                self.failed = f'{name} refused to start'
            elif not child.spec.respawn:
                self._ended(child, how)
            elif child.deaths.too_many(code):
                self.failed = f'{name} died {TOO_OFTEN}, the last time with {how}'
            else:
                self._say('', f'{name} died ({how}); it is started again')
                self.restarts += 1
                child.restart()

    def _ended(self, child: _Child, how: str) -> None:
        """What is not started again has ended; without a recorder that should be there, nothing goes on."""
        name = _name(child.spec)
        if not child.spec.is_node and child.process.returncode != 0:
            self.failed = f'{name} ended with {how}'
        elif name not in self._gone:
            self._gone.add(name)
            self._say('', f'{name} has ended ({how})')

    def stop(self) -> None:
        """End all processes: kindly first."""
        for number, patience in _PATIENCE:
            alive = [child for child in self._children.values() if child.process.poll() is None]
            for child in alive:
                child.process.send_signal(number)
            deadline = time.monotonic() + patience
            for child in alive:
                try:
                    child.process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self._say('', f'{_name(child.spec)} does not end on {number.name}')
        for child in self._children.values():
            child.finish()


class Deaths:
    """Counts the deaths of a process, but for those by somebody else's signal, unless it comes at once."""

    def __init__(self) -> None:
        """None yet; it lives from now on."""
        self._times: deque[float] = deque(maxlen=_MOST_DEATHS)
        self._born = time.monotonic()

    def too_many(self, code: int) -> bool:
        """Take one more; return whether it dies all the time.

        Args:
            code: exit code; below zero: the signal.
        """
        now = time.monotonic()
        lived, self._born = now - self._born, now
        if -code not in _OF_OTHERS or lived < _AT_ONCE:
            self._times.append(now)
        return len(self._times) == _MOST_DEATHS and now - self._times[0] < _WITHIN


class _Child:
    """One process, and a thread that hands on what it says."""

    def __init__(self, spec: NodeSpec, say: Say) -> None:
        self.spec, self._say = spec, say
        self.deaths = Deaths()
        self.restart()

    def restart(self) -> None:
        # In a session of its own: Ctrl-C reaches the supervisor alone, which then ends all in order.
        self.process = subprocess.Popen(
            command_line(self.spec),
            env=ros_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            start_new_session=True,
            # Our own programs see to it themselves; here it is one call, without threads in between.
            preexec_fn=None if self.spec.module else end_with_parent,  # noqa: PLW1509
        )
        self._reader = threading.Thread(target=self._forward, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def finish(self) -> None:
        """Hand on the last words."""
        self._reader.join(1.0)

    def _forward(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self._say(_name(self.spec), line.rstrip('\n'))


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
    path = installed_program(spec)
    if path is None:
        raise ArgumentError(f'{spec.executable} of {spec.package} is not installed; expected it in a ROS 2')
    return [str(path)]


def installed_program(spec: NodeSpec) -> Path | None:
    """The executable in lib/ of a ROS installation, where `ros2 run` looks; None if there is none."""
    prefix = prefix_of(spec.package)
    path = None if prefix is None else prefix / 'lib' / spec.package / spec.executable
    return path if path is not None and os.access(path, os.X_OK) else None


def _yaml(value: Any) -> str:
    """A value as ROS reads it on a command line: YAML in one line, texts in quotes."""
    if isinstance(value, Mapping):
        raise ArgumentError(f'{value!r} is a mapping; expected a value, a list or a text')
    plain = list(value) if isinstance(value, tuple) else value
    style = '"' if isinstance(value, str) else None
    text = yaml.safe_dump(plain, default_flow_style=True, default_style=style, width=1_000_000)
    return text.removesuffix('\n').removesuffix('...').rstrip('\n')


def _name(spec: NodeSpec) -> str:
    return spec.executable if spec.is_node else spec.arguments[0]


def _how(code: int) -> str:
    return f'signal {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'
