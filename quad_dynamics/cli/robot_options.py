# SPDX-License-Identifier: Apache-2.0
"""The option `--xacro-arg`, shared by all commands that load a robot."""

from __future__ import annotations

import argparse
import shlex

from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.xacro_files import parse_xacro_args


def add_xacro_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--xacro-arg`."""
    parser.add_argument(
        '--xacro-arg',
        dest='xacro_arg',
        metavar='NAME=VALUE',
        action='append',
        default=[],
        help='argument of the .xacro file; may be repeated',
    )


def xacro_args(arguments: argparse.Namespace) -> dict[str, str]:
    """The xacro arguments that were given, by name.

    Raises:
        ArgumentError: an argument lacks '=', or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in arguments.xacro_arg:
        for name, value in parse_xacro_args(shlex.quote(text)).items():
            if name in found:
                raise ArgumentError(f'--xacro-arg {name} is given twice; expected once')
            found[name] = value
    return found
