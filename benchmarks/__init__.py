# SPDX-License-Identifier: Apache-2.0
"""Benchmarks against widely used tools."""

import sys
from pathlib import Path

# Generated logs come from the helpers of the tests.
sys.path.append(str(Path(__file__).parents[1] / 'test' / 'helpers'))
