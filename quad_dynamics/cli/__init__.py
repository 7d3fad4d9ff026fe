# SPDX-License-Identifier: Apache-2.0
"""The command line: `quad_dynamics COMMAND ...`, also as `python -m quad_dynamics COMMAND ...`.

Every command is a module with `HELP` (one line), `DESCRIPTION` (with examples), `add_arguments(parser)` and
`run(arguments) -> int`, the exit code. A new command is one more entry in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from quad_dynamics import __version__
from quad_dynamics.cli.parser import CommandParser, UsageError
from quad_dynamics.errors import QuadDynamicsError, plain_warnings

COMMANDS: dict[str, str] = {
    'demo': 'quad_dynamics.cli.demo_command',
    'doctor': 'quad_dynamics.cli.doctor_command',
    'excite': 'quad_dynamics.cli.excite_command',
    'identify': 'quad_dynamics.cli.identify_command',
    'inspect': 'quad_dynamics.cli.inspect_command',
    'play': 'quad_dynamics.cli.play_command',
    'record': 'quad_dynamics.cli.record_command',
    'repair': 'quad_dynamics.cli.repair_command',
    'residual': 'quad_dynamics.cli.residual_command',
    'scenario': 'quad_dynamics.cli.scenario_command',
    'sim': 'quad_dynamics.cli.sim_command',
    'simulate': 'quad_dynamics.cli.simulate_command',
    'topics': 'quad_dynamics.cli.topics_command',
    'warm-up': 'quad_dynamics.cli.warm_up_command',
}

_INTERRUPTED = 130  # as shells report Ctrl-C: 128 + SIGINT

_DESCRIPTION = """\
Quadruped robots: from a URDF file to simulation, torques, contacts and identified parameters.

'quad_dynamics COMMAND --help' explains a command, with examples.

examples:
  quad_dynamics doctor                   check the installation
  quad_dynamics inspect mini_cheetah     show a robot; also: inspect path/to/robot.urdf
  quad_dynamics simulate --gait trot     simulate a few seconds, without ROS
  quad_dynamics sim                      run simulator, controller and browser viewer as ROS nodes
"""


def make_parser(chosen: str = '') -> CommandParser:
    """The parser with all commands.

    Args:
        chosen: the command that will be run; the modules of other commands are not imported. '': import all.
    """
    parser = CommandParser(
        prog='quad_dynamics', description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--version', action='version', version=f'quad_dynamics {__version__}')
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title='commands', metavar='COMMAND')
    for name, module_name in COMMANDS.items():
        if chosen in COMMANDS and name != chosen:
            commands.add_parser(name)
            continue
        module = importlib.import_module(module_name)
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success, 1 failure, 2 usage error, 130 interrupted.

    Args:
        argv: arguments without the program's name; None for `sys.argv[1:]`.
    """
    # Matrices are small here, so BLAS threads would only wait for each other. numpy reads this variable when
    # a command first imports it. Identification also limits the threads itself, for callers from Python.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    try:
        with plain_warnings():
            return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # `... | head` has seen enough
        _discard_output()
    except OSError as error:
        _discard_output()
        _complain(_what_failed(error))
    except ImportError as error:  # a dependency is damaged or incomplete
        _complain(f"{str(error).splitlines()[0]}; run 'quad_dynamics doctor' to see what is missing")
    return 1


def _run(argv: Sequence[str]) -> int:
    try:
        parser = make_parser(argv[0] if argv else '')
        arguments = parser.parse_args(argv)
        if arguments.run is None:
            parser.print_help(sys.stderr)
            return 2
        return int(arguments.run(arguments))
    except QuadDynamicsError as error:
        _complain(str(error))
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if sys.stdout is not None:  # None: it was closed before we started
            sys.stdout.flush()


def _what_failed(error: OSError) -> str:
    if error.filename:
        return f'{error.filename}: {error.strerror}'
    # Streams have no file name. Errors without errno, such as of a library that does not load, are complete.
    return f'cannot write the output: {error.strerror}' if error.errno else str(error)


def _complain(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f'error: {text}', file=sys.stderr)


def _discard_output() -> None:
    """Redirect the rest of the output to /dev/null; the interpreter would complain about it at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
