# SPDX-License-Identifier: Apache-2.0
"""`python -m viewer_node --ros-args ...` runs the node; so does the command `viewer_node`."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from quad_dynamics.ros.process import CANNOT_SERVE, Runnable, run_node
from viewer_node.serving import CannotServeError, check_viser

# Time for the server of the page to stop; nothing is lost if it takes longer [s].
_PATIENCE = 2.0


def main() -> NoReturn:
    """Run the node, and exit the process without cleanup.

    On a busy machine the interpreter needs seconds to stop the threads of the server and to unload large
    libraries, and the process would be killed as one that hangs.
    """
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or a pipe that nobody reads
            stream.flush()
    os._exit(code)


def _run() -> int:
    """Run the node; returns its exit code, which is CANNOT_SERVE if the page cannot be served."""
    try:
        return run_node(_make, patience=_PATIENCE, usage=_usage, nothing_to_lose=True)
    except CannotServeError as error:
        print(f'viewer_node: {error}', file=sys.stderr, flush=True)
        return CANNOT_SERVE


def _make() -> Runnable:
    check_viser()
    # Here, when signals are handled already: the imports take a second.
    from viewer_node.node import ViewerNode

    return ViewerNode()


def _usage() -> str:
    from quad_dynamics.ros.node_help import node_help
    from viewer_node.settings import ViewerSettings

    return node_help('viewer_node', ViewerSettings)


if __name__ == '__main__':
    main()
