# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the dynamics tests share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope='session')
def qd() -> Any:
    """The library."""
    import quad_dynamics

    return quad_dynamics


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over the state seeds 0 and 1, unless the test says otherwise."""
    if 'seed' in metafunc.fixturenames and not any(
        'seed' in mark.args[0] for mark in metafunc.definition.iter_markers('parametrize')
    ):
        metafunc.parametrize('seed', [0, 1], ids=['state0', 'state1'])
