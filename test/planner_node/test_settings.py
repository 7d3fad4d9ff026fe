# SPDX-License-Identifier: Apache-2.0
"""Parameters of planner_node."""

from __future__ import annotations

import warnings

from cases import load

from planner_node.settings import PlannerSettings
from quad_dynamics.control.plan_maker import PlanMaker


def test_no_clock_limits_plans_in_lock_step_also_after_a_change() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = load('mini_cheetah')
    settings = PlannerSettings(lock_step=True)
    assert settings.plan_time_limit > 0.0
    maker = PlanMaker(model, settings.for_planning(), lambda *fault: None)
    maker.change(settings.replace(gait='walk', mu=0.3).for_planning())
    com, _ = maker._planner._planning._optimised
    assert com.mu == 0.3
    assert com.time_limit is None
    assert PlannerSettings().for_planning() == PlannerSettings()
