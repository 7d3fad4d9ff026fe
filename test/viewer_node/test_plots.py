# SPDX-License-Identifier: Apache-2.0
"""What plots show: the last seconds, round axes, no gaps."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('viser', reason='viser is not installed')
from viewer_node.axis_range import AxisRange
from viewer_node.history import History
from viewer_node.plots import without_gaps


def test_history_keeps_the_last_seconds() -> None:
    history = History(2, duration=5.0, rate=10.0)
    for i in range(1000):
        history.add(0.1 * i, np.array([i, -i]))
    columns = history.columns()
    assert columns.shape == (3, 51)
    assert columns[0, -1] == pytest.approx(99.9)
    assert columns[1, -1] == 999
    assert columns[2, 0] == -949
    assert (np.diff(columns[0]) > 0.0).all()


def test_history_begins_anew_when_time_goes_back_and_waits_when_it_stands() -> None:
    history = History(1, duration=5.0, rate=10.0)
    for time in (1.0, 1.1, 1.1, 1.1, 1.2):
        history.add(time, np.zeros(1))
    assert history.columns().shape == (2, 3)
    history.add(0.5, np.ones(1))
    assert history.columns().tolist() == [[0.5], [1.0]]


def test_history_without_samples() -> None:
    assert History(3, 5.0, 10.0).columns().shape == (4, 0)


@pytest.mark.parametrize('seed', range(10))
def test_axis_holds_everything_and_is_round(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = AxisRange(least=0.1)
    for _ in range(50):
        values = rng.normal(rng.normal(0, 50), 10 ** rng.uniform(-3, 3), 20)
        axis.fit(values)
        assert axis.low <= values.min()
        assert values.max() <= axis.high
        assert axis.high - axis.low < 5.0 * max(np.ptp(values), 0.1)  # and is no wider than it must be


def test_axis_stays_for_as_long_as_it_fits() -> None:
    axis = AxisRange(least=1.0)
    assert axis.fit(np.array([0.0, 10.0]))
    before = axis.low, axis.high
    assert not axis.fit(np.array([0.5, 9.0]))
    assert (axis.low, axis.high) == before
    assert not axis.fit(np.array([np.nan]))
    assert not axis.fit(np.array([]))
    assert axis.fit(np.array([4.9, 5.0, np.nan]))
    assert axis.high - axis.low < 3.0


def test_gaps_are_filled_and_missing_signals_hide() -> None:
    nan = np.nan
    signals = np.array([[1.0, 2.0, 3.0], [nan, 5.0, nan], [nan, nan, nan], [nan, nan, nan]])
    filled = without_gaps(signals)
    assert filled is not None
    assert filled.tolist() == [[1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]
    assert without_gaps(np.full((2, 3), nan)) is None
