# SPDX-License-Identifier: Apache-2.0
"""`python -m sim_node --ros-args ...` runs the node; so does the command `sim_node`."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import Runnable, run_node


def main() -> int:
    """Run the node."""
    return run_node(_make, usage=_usage)


def _make() -> Runnable:
    # Here, when signals are handled already: the imports take a second.
    from sim_node.node import SimNode

    return SimNode()


def _usage() -> str:
    from quad_dynamics.ros.node_help import node_help
    from sim_node.settings import SimNodeSettings

    return node_help('sim_node', SimNodeSettings)


if __name__ == '__main__':
    sys.exit(main())
