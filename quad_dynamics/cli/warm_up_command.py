# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics warm-up`: compile all kernels now."""

from __future__ import annotations

import argparse

HELP = 'compile the dynamics kernels for this machine, so that no later call has to wait'
DESCRIPTION = """\
Compile the dynamics kernels for this machine, once, and keep them.

Without this, each kernel is compiled when it is first called, which takes about a second and is said on
stderr. They are kept in $QUAD_DYNAMICS_CACHE_DIR, else in quad_dynamics in the user's cache directory.

examples:
  quad_dynamics warm-up            in a Dockerfile, or once after installing
  quad_dynamics warm-up --quiet    without a progress bar
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument('--quiet', action='store_true', help='show no progress bar')


def run(arguments: argparse.Namespace) -> int:
    """Compile, and say what was done."""
    from quad_dynamics.compiler.disk_cache import cache_directory
    from quad_dynamics.compiler.registry import KERNELS
    from quad_dynamics.kernels.warm_up import warm_up

    compiled = warm_up(progress=not arguments.quiet)
    print(f'{len(KERNELS)} kernels are ready, {compiled} of them compiled now, kept in {cache_directory()}')
    return 0
