# SPDX-License-Identifier: Apache-2.0
"""What the page says about the nodes, and what it advises."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from viewer_node.status import Line, Status, advice


def said(name: str, level: int, message: str, **values: str) -> Any:
    """A diagnostic_msgs/DiagnosticArray."""
    items = [SimpleNamespace(key=key, value=value) for key, value in values.items()]
    one = SimpleNamespace(name=name, level=bytes([level]), message=message, values=items)
    return SimpleNamespace(status=[one])


def test_real_time_factor_is_measured_and_begins_anew() -> None:
    status = Status({'sim_node': 'sim_node'})
    assert status.real_time_factor is None
    assert status.simulated is None
    for i in range(100):
        status.tick(0.5 * 0.033 * i, 0.033 * i)
    assert status.real_time_factor == pytest.approx(0.5)
    status.tick(0.0, 3.4)
    assert status.real_time_factor is None
    assert status.lines(3.4) == [Line('0.00 s'), Line('sim_node: no diagnostics yet', 'warning')]


def test_node_that_ends_is_told_from_one_that_has_not_begun() -> None:
    status = Status({'robot/sim_node': 'sim_node'})
    assert status.hear(said('other', 0, 'running'), 10.0) == []
    assert status.hear(said('/robot/sim_node', 0, 'running'), 10.0) == ['sim_node']
    assert status.lines(11.0) == [Line('sim_node: running')]
    assert status.lines(17.0) == [Line('sim_node: no diagnostics for 7 s; is it still running?', 'error')]
    status.hear(said('robot/sim_node', 1, 'no commands: the drives are damping'), 18.0)
    assert status.lines(18.0) == [Line('sim_node: no commands: the drives are damping', 'warning')]


def test_node_that_compiles_is_neither_silent_nor_wrong() -> None:
    status = Status({'sim_node': 'sim_node', 'force_node': 'force_node'})
    status.hear(said('force_node', 0, 'stand hold', mode='stand'), 0.0)
    assert not status.is_compiling(0.0)
    status.hear(said('sim_node', 0, 'compiling simulate', compiling='simulate'), 0.0)
    assert status.is_compiling(5.0)  # a machine that compiles may be late
    assert status.lines(1.0) == [
        Line('sim_node: compiling simulate', 'busy'),
        Line('force_node: stand hold'),
    ]
    status.hear(said('sim_node', 0, 'running'), 6.0)
    assert not status.is_compiling(6.0)


def test_a_node_that_need_not_be_there_is_shown_once_it_has_spoken() -> None:
    names = {'force_node': 'force_node', 'planner_node': 'planner_node'}
    status = Status(names, optional=('planner_node',))
    status.hear(said('force_node', 0, 'stand hold'), 0.0)
    assert status.lines(0.0) == [Line('force_node: stand hold')]
    status.hear(said('planner_node', 0, 'walk (trot)'), 1.0)
    assert status.lines(1.0)[-1] == Line('planner_node: walk (trot)')
    assert status.lines(9.0)[-1] == Line(
        'planner_node: no diagnostics for 8 s; is it still running?', 'error'
    )


def test_advice_after_a_fall_depends_on_how_the_robot_lies() -> None:
    status = Status({'force_node': 'force_node'})
    assert status.latched('force_node', 0.0) == ''
    status.hear(said('force_node', 2, 'damping until ~/recover: fallen', mode='stand', latched='fallen'), 0.0)
    assert status.latched('force_node', 1.0) == 'fallen'
    assert status.latched('force_node', 9.0) == ''  # old news
    for tilt, starts in (
        (3.1, 'The robot lies on its side or back and cannot'),
        (0.2, 'The controller has'),
    ):
        line = advice(tilt)
        assert line.tone == 'advice'
        assert line.text.startswith(starts)
        assert 'initial pose' in line.text
    assert advice(math.nan) == advice(0.0)
