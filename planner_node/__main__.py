# SPDX-License-Identifier: Apache-2.0
"""`python -m planner_node --ros-args ...` runs the node; so does the command `planner_node`."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import Runnable, run_node


def main() -> int:
    """Run the node."""
    return run_node(_make, usage=_usage)


def _make() -> Runnable:
    # Here, when signals are handled already: the imports take a second.
    from planner_node.node import PlannerNode

    return PlannerNode()


def _usage() -> str:
    from planner_node.settings import PlannerSettings
    from quad_dynamics.ros.node_help import node_help

    return node_help('planner_node', PlannerSettings)


if __name__ == '__main__':
    sys.exit(main())
