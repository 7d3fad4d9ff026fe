# SPDX-License-Identifier: Apache-2.0
"""`python -m identification --ros-args ...` runs the node; or start it as a node of the launch file."""

from __future__ import annotations

import sys

from quad_dynamics.ros.process import Runnable, run_node


def main() -> int:
    """Run the node."""
    return run_node(_make, usage=_usage)


def _make() -> Runnable:
    # Here, when signals are handled already: the imports take a second.
    from identification.node import IdentificationNode

    return IdentificationNode()


def _usage() -> str:
    from identification.settings import IdentificationSettings
    from quad_dynamics.ros.node_help import node_help

    return node_help('identification', IdentificationSettings)


if __name__ == '__main__':
    sys.exit(main())
