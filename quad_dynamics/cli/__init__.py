# SPDX-License-Identifier: Apache-2.0
"""The command line: `quad_dynamics COMMAND ...`, also as `python -m quad_dynamics COMMAND ...`.

Every command is a module with `HELP` (one line), `DESCRIPTION` (with examples), `add_arguments(parser)` and
`run(arguments) -> int`, the exit code. A new command is one more entry in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from quad_dynamics.errors import QuadDynamicsError

COMMANDS: dict[str, str] = {
    'inspect': 'quad_dynamics.cli.inspect_command',
    'warm-up': 'quad_dynamics.cli.warm_up_command',
}

_DESCRIPTION = """\
Rigid-body dynamics of quadruped robots: from a URDF file to torques, contacts and identified parameters.

'quad_dynamics COMMAND --help' explains a command, with examples.
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = argparse.ArgumentParser(
        prog='quad_dynamics', description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    for name, module_name in COMMANDS.items():
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
    """Run a command and return its exit code: 0 good, 1 problems, 2 wrong usage.

    Args:
        argv: arguments without the program's name; None for those of the process.
    """
    arguments = make_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except QuadDynamicsError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    except BrokenPipeError:
        # `... | head` closed the pipe; without this the interpreter complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
