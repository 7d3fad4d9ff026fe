# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a node's process: start, signals, shutdown."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Protocol

from quad_dynamics.errors import QuadDynamicsError, plain_warnings

# Set by the parent of nodes: the id of the process that they must not outlive.
PARENT_VARIABLE = 'QUAD_DYNAMICS_PARENT'
# How long a process may take to shut down [s]. The parent of nodes waits a little longer.
PATIENCE = 5.0
CLOSING = 30.0  # the same for processes that close a bag, which may take a while on a slow disk [s]
_GRACE = 0.5  # more for a process whose interpreter does not answer [s]
# Signals that ask a process to end: Ctrl-C, a supervisor, a terminal that is closed.
_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
WRONG_PARAMETERS = 2  # exit code of a node with invalid parameters
# Exit code of an optional node that cannot run here; restarting it would not help.
CANNOT_SERVE = 3


class Runnable(Protocol):
    """A node that `run_node` runs."""

    def spin(self, stop: StopFlag) -> None:
        """Work until `stop()` is true."""

    def close(self) -> None:
        """Release all resources."""


class StopFlag:
    """True once the process has been asked to stop; asking again has no effect.

    Signals are often repeated: a terminal sends Ctrl-C to all processes of a job, `ros2 launch` sends it to
    the same processes again, and so does `timeout`. The second signal must not interrupt the shutdown that
    the first one has started. The time of the shutdown is bounded: after that, the process exits without it.
    """

    def __init__(self, patience: float = PATIENCE, nothing_to_lose: bool = False) -> None:
        """Not asked to stop yet.

        Args:
            patience: how long the shutdown may take [s]; then the process exits with code 1.
            nothing_to_lose: in that case, exit with code 0 and without a message.
        """
        self._asked, self._patience, self._nothing_to_lose = False, patience, nothing_to_lose

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._asked

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Ask to stop; also a signal handler."""
        if self._asked:
            return
        self._asked = True
        timer = threading.Timer(self._patience, self._give_up)
        timer.daemon = True
        timer.start()
        # The same without the interpreter, whose lock a library may hold forever.
        faulthandler.dump_traceback_later(self._patience + _GRACE, exit=True)

    def _give_up(self) -> None:
        if self._nothing_to_lose:
            os._exit(0)
        text = f'error: shutdown took longer than {self._patience:g} s; unwritten data is lost\n'
        os.write(sys.stderr.fileno(), text.encode())
        os._exit(1)


def run_node(
    make: Callable[[], Runnable],
    argv: Sequence[str] | None = None,
    patience: float = PATIENCE,
    usage: Callable[[], str] | None = None,
    *,
    nothing_to_lose: bool = False,
    starts_at_once: bool = False,
) -> int:
    """Run a node until it is asked to stop (SIGINT, SIGTERM, SIGHUP, or the death of its parent process).

    Args:
        make: creates the node; errors of its parameters end the process with exit code 2.
        argv: arguments of the process with its name; None: those of the interpreter.
        patience: how long the shutdown may take [s].
        usage: text for `--help`, which starts nothing; None if the command line prints its own.
        nothing_to_lose: a shutdown that takes longer is not reported.
        starts_at_once: `make` is fast, so a signal during it is handled afterwards, and files that it has
            begun are finished. Otherwise a signal ends the process at once: it may be compiling for a minute,
            in a call that no Python handler interrupts.

    Returns:
        exit code: 0 stopped as asked, 2 invalid parameters.
    """
    stop, before = StopFlag(patience, nothing_to_lose), _handlers()
    try:
        _handle_signals(stop.ask if starts_at_once else signal.SIG_DFL)
        words = list(sys.argv if argv is None else argv)
        if usage is not None and (own := own_arguments(words)):
            return _answer(own, usage)
        code = _run(make, words, stop) if _die_with_parent() else 0
        if stop() and nothing_to_lose:
            sys.stdout.flush()
            os._exit(code)  # libraries may take seconds to unload
        return code
    finally:
        for number, handler in before.items():
            # A second signal must not kill it during shutdown: the interpreter resets handlers before
            # the process has ended, but not this one.
            signal.signal(number, signal.SIG_IGN if stop() else handler)


def _run(make: Callable[[], Runnable], words: list[str], stop: StopFlag) -> int:
    from quad_dynamics.ros.environment import require_ros, stay_on_this_machine

    try:
        require_ros()
        stay_on_this_machine()
    except QuadDynamicsError as error:
        print(f'error: {error}', file=sys.stderr, flush=True)
        return WRONG_PARAMETERS
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    try:
        # Without rclpy's own handlers: they would shut down the context in the middle of a step.
        rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # a parameter file that is not YAML, or an invalid name
        print(f'error: {error}', file=sys.stderr, flush=True)
        return WRONG_PARAMETERS
    try:
        with plain_warnings():
            return _live(make, stop)
    finally:
        rclpy.try_shutdown()


def own_arguments(words: Sequence[str]) -> list[str]:
    """The arguments of a process that are not for ROS: those outside `--ros-args ... --`."""
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
    """Print help if requested; reject other arguments, which rclpy would silently ignore."""
    if '-h' in own or '--help' in own:
        print(usage(), end='', flush=True)
        return 0
    print(
        f"error: unknown argument '{own[0]}'; set parameters with --ros-args -p name:=value (see --help)",
        file=sys.stderr,
        flush=True,
    )
    return WRONG_PARAMETERS


def _live(make: Callable[[], Runnable], stop: StopFlag) -> int:
    try:
        node = make()
    except (QuadDynamicsError, ModuleNotFoundError) as error:
        print(f'error: {_reason(error)}', file=sys.stderr, flush=True)
        return WRONG_PARAMETERS
    _handle_signals(stop.ask)
    try:
        node.spin(stop)
    finally:
        node.close()
    return 0


def _reason(error: Exception) -> str:
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return str(error)
    from quad_dynamics.ros.environment import module_advice

    return f'module {error.name} is not installed; {module_advice(error.name)}'


def _handlers() -> dict[int, Any]:
    """The current handlers of the signals that stop a process, except a SIGHUP ignored by `nohup`."""
    found = {number: signal.getsignal(number) for number in _ASKING}
    if found[signal.SIGHUP] is signal.SIG_IGN:
        del found[signal.SIGHUP]
    return {number: signal.SIG_DFL if handler is None else handler for number, handler in found.items()}


def _handle_signals(handler: Any) -> None:
    for number in _handlers():
        signal.signal(number, handler)


def _die_with_parent() -> bool:
    """Ask the kernel for SIGTERM when the parent named in the environment dies; False: it is dead."""
    parent = os.environ.get(PARENT_VARIABLE, '')
    if not parent.isdigit():
        return True
    end_with_parent()
    return os.getppid() == int(parent)


def end_with_parent() -> None:
    """Let the kernel send SIGTERM to this process when its parent dies (Linux only)."""
    if sys.platform.startswith('linux'):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
