# SPDX-License-Identifier: Apache-2.0
"""The life of a node's process: start, signals, end."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Protocol

from quad_dynamics.errors import QuadDynamicsError

# Set by whoever starts nodes as children: the id of the process that they must not outlive.
PARENT_VARIABLE = 'QUAD_DYNAMICS_PARENT'
_PR_SET_PDEATHSIG = 1
# Exit code of a node that nobody depends on and that cannot work here; starting it again would not help.
CANNOT_SERVE = 3


class Runnable(Protocol):
    """A node that `run_node` runs."""

    def spin(self, stop: StopFlag) -> None:
        """Work until `stop()` is true."""

    def close(self) -> None:
        """Give everything back."""


class StopFlag:
    """True once the process has been asked to end; a second Ctrl-C ends it at once."""

    def __init__(self, patience: float = math.inf) -> None:
        """Nobody has asked yet.

        Args:
            patience: the process ends so long after it was asked, whatever it is doing then [s].
        """
        self._asked, self._patience = False, patience

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._asked

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Ask to stop; also a signal handler."""
        if self._asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self._asked and math.isfinite(self._patience):
            timer = threading.Timer(self._patience, os._exit, (0,))
            timer.daemon = True
            timer.start()
        self._asked = True


def run_node(
    make: Callable[[], Runnable],
    argv: Sequence[str] | None = None,
    patience: float = math.inf,
    usage: Callable[[], str] | None = None,
) -> int:
    """Run a node until it is asked to end (SIGINT, SIGTERM, or the death of the process that started it).

    Args:
        make: makes the node; what it raises about its parameters ends the process with exit code 2.
        argv: arguments of the process with its name; None: those of the interpreter.
        patience: how long it may take to end [s].
        usage: text for `--help`, which starts nothing; None where the command line prints its own.

    Returns:
        exit code: 0 ended as asked, 2 wrong parameters.
    """
    # What starts may be compiling, which no handler interrupts; nothing of it must be ended in order yet.
    _handle_signals(signal.SIG_DFL)
    words = list(sys.argv if argv is None else argv)
    if usage is not None and (own := own_arguments(words)):
        return _answer(own, usage)
    if not _die_with_parent():
        return 0
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine

    try:
        require_ros()
        stay_on_this_machine()
    except QuadDynamicsError as error:
        print(f'error: {error}', file=sys.stderr, flush=True)
        return 2
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    try:
        rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # a file of parameters that is no YAML, a name that is none
        print(f'error: {error}', file=sys.stderr, flush=True)
        return 2
    try:
        return _run(make, patience)
    finally:
        rclpy.try_shutdown()


def own_arguments(words: Sequence[str]) -> list[str]:
    """The arguments of a process that are not for ROS: those outside of `--ros-args ... --`."""
    own, of_ros = [], False
    for word in words[1:]:
        if word == '--ros-args':
            of_ros = True
        elif of_ros:
            of_ros = word != '--'
        else:
            own.append(word)
    return own


def _answer(own: Sequence[str], usage: Callable[[], str]) -> int:
    """Print help where it is asked for; refuse other arguments, which rclpy would silently ignore."""
    if '-h' in own or '--help' in own:
        print(usage(), end='', flush=True)
        return 0
    print(
        f"error: unknown argument '{own[0]}'; parameters are given as --ros-args -p name:=value, and --help "
        'lists them',
        file=sys.stderr,
        flush=True,
    )
    return 2


def _run(make: Callable[[], Runnable], patience: float) -> int:
    stop = StopFlag(patience)
    try:
        node = make()
    except QuadDynamicsError as error:
        print(f'error: {error}', file=sys.stderr, flush=True)
        return 2
    # In place of rclpy's own: it would shut down the context in the middle of a step.
    _handle_signals(stop.ask)
    try:
        node.spin(stop)
    finally:
        node.close()
    return 0


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _die_with_parent() -> bool:
    """Ask the kernel for SIGTERM when the parent that is named in the environment dies; False: it is dead."""
    parent = os.environ.get(PARENT_VARIABLE, '')
    if not parent.isdigit():
        return True
    end_with_parent()
    return os.getppid() == int(parent)


def end_with_parent() -> None:
    """Let the kernel send SIGTERM to this process when its parent dies, where it is a Linux."""
    if sys.platform.startswith('linux'):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
