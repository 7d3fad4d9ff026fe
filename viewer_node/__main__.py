# SPDX-License-Identifier: Apache-2.0
"""`python -m viewer_node --ros-args ...` runs the node; so does the command `viewer_node`."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import Runnable, run_node

# The server of the page may take its time to end; nothing of it is worth waiting for [s].
_PATIENCE = 0.7


def main() -> int:
    """Run the node."""
    return run_node(_make, patience=_PATIENCE)


def _make() -> Runnable:
    # Here, when signals are handled already: the imports take a second.
    from viewer_node.node import ViewerNode

    return ViewerNode()


if __name__ == '__main__':
    sys.exit(main())
