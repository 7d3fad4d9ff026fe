# SPDX-License-Identifier: Apache-2.0
"""`python -m force_node --ros-args -p mode:=stand`."""

import sys

from force_node.node import main

sys.exit(main())
