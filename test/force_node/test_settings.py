# SPDX-License-Identifier: Apache-2.0
"""Parameters of force_node that do not go together."""

from __future__ import annotations

import pytest

from force_node.settings import ForceSettings
from quad_dynamics.errors import ArgumentError


def test_multi_array_has_neither_targets_nor_stamps() -> None:
    with pytest.raises(ArgumentError, match=r'feedback is .drive.; expected .node.'):
        ForceSettings(output='float64_multi_array')
    with pytest.raises(ArgumentError, match='lock_step'):
        ForceSettings(output='float64_multi_array', feedback='node', lock_step=True)
