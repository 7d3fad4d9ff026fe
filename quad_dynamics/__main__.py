# SPDX-License-Identifier: Apache-2.0
"""`python -m quad_dynamics`."""

import sys

from quad_dynamics.cli import main

if __name__ == '__main__':
    sys.exit(main())
