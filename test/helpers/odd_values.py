# SPDX-License-Identifier: Apache-2.0
"""Values of parameters that are easily read as something else, or broken by quoting."""

from __future__ import annotations

import math
from typing import Any

ODD_VALUES: list[Any] = [
    '',
    ' ',
    'true',
    '1.5',
    'null',
    '~',
    'a path/with: spaces #and "quotes"',
    "it's",
    'C:\\back\\slash',
    'first\nsecond\tthird',
    'ä µ 機',
    '[a, b]',
    '$(ls) `ls` $HOME * ;',
    '-p',
    '!tag &anchor *alias %',
    'x' * 300,
    True,
    False,
    3,
    -4,
    2**62,
    0.1,
    1.0,
    -2.5e-12,
    1e30,
    math.pi,
    [1.0, 2.5],
    [1, 2],
    ['a', '', 'b c'],
    [True, False],
]
