# SPDX-License-Identifier: Apache-2.0
"""The columns of results.csv; docs/scenarios.md explains them."""

from __future__ import annotations

COLUMNS = (
    'scenario',
    'robot',
    'contact',
    'seed',
    'fell',
    'fall_time',
    'v_error_mean',
    'v_error_rms',
    'yaw_error_mean',
    'roll_rms',
    'pitch_rms',
    'height_error_mean',
    'slip_per_step',
    'torque_share_max',
    'update_us_p50',
    'update_us_p99',
    'solver_failures',
    'distance',
    'cost_of_transport',
)
TEXTS = ('scenario', 'robot', 'contact')
# Columns that may differ between two runs of the same seed.
WALL_CLOCK = ('update_us_p50', 'update_us_p99')
# Columns that can have an expectation.
EXPECTABLE = ('falls', *(name for name in COLUMNS if name not in (*TEXTS, 'seed', 'fell', 'fall_time')))
