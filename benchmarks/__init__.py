# SPDX-License-Identifier: Apache-2.0
"""Speed, measured against the tools that people use today."""

import sys
from pathlib import Path

# Generated logs are those of the tests.
sys.path.append(str(Path(__file__).parents[1] / 'test' / 'helpers'))
