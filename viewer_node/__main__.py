# SPDX-License-Identifier: Apache-2.0
"""`python -m viewer_node --ros-args -p port:=8080`."""

import sys

from viewer_node.node import main

sys.exit(main())
