# SPDX-License-Identifier: Apache-2.0
"""`python -m force_node --ros-args ...` runs the node; so does the command `force_node`."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import Runnable, run_node


def main() -> int:
    """Run the node."""
    return run_node(_make, usage=_usage)


def _make() -> Runnable:
    # Here, when signals are handled already: the imports take a second.
    from force_node.node import ForceNode

    return ForceNode()


def _usage() -> str:
    from force_node.settings import ForceSettings
    from quad_dynamics.ros.node_help import node_help

    return node_help('force_node', ForceSettings)


if __name__ == '__main__':
    sys.exit(main())
