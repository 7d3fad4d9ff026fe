# SPDX-License-Identifier: Apache-2.0
"""`python -m sim_node --ros-args ...` runs the node."""

import sys

from sim_node.node import main

sys.exit(main())
