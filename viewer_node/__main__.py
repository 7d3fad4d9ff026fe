# SPDX-License-Identifier: Apache-2.0
"""`python -m viewer_node --ros-args ...` runs the node; so does the command `viewer_node`."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import CANNOT_SERVE, Runnable, run_node
from viewer_node.serving import CannotServeError, check_viser

# The server of the page may take its time to end; nothing of it is worth waiting for [s].
_PATIENCE = 0.7


def main() -> int:
    """Run the node; returns its exit code, which is CANNOT_SERVE if there can be no page."""
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
    sys.exit(main())
