# SPDX-License-Identifier: Apache-2.0
"""The modes of identification: which rows of the equation of motion are used."""

from __future__ import annotations

AUTO = 'auto'  # selects the mode from robot and recording
MEANINGS = {
    'fixed': 'fixed base',
    'forces': 'floating base, measured forces at the feet',
    'projection': 'floating base, forces at the feet unknown (projected out)',
    'base': 'floating base, rows of the base alone',
}
MODES = tuple(MEANINGS)
