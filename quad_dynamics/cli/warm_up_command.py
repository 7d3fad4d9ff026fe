# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics warm-up`: compile all kernels now."""

from __future__ import annotations

import argparse

HELP = 'compile all kernels for this machine ahead of time'
DESCRIPTION = """\
Compile all kernels for this machine and cache them.

Otherwise each kernel is compiled when it is first called, which takes about a second and prints a line on
stderr. The cache is $QUAD_DYNAMICS_CACHE_DIR, or quad_dynamics in the user's cache directory.

examples:
  quad_dynamics warm-up            in a Dockerfile, or once after installing
  quad_dynamics warm-up --quiet    without a progress bar
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument('--quiet', action='store_true', help='no progress bar')


def run(arguments: argparse.Namespace) -> int:
    """Compile, and report how many kernels were compiled."""
    from quad_dynamics.compiler.disk_cache import cache_directory
    from quad_dynamics.compiler.registry import KERNELS
    from quad_dynamics.kernels.warm_up import warm_up

    compiled = warm_up(progress=not arguments.quiet)
    print(f'{len(KERNELS)} kernels are ready in {cache_directory()}; {compiled} of them were compiled now')
    return 0
