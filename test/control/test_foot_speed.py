# SPDX-License-Identifier: Apache-2.0
"""How fast a robot may walk before its joints are too slow, and that it does not fall beyond that."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slow_variants import slow_but

import quad_dynamics as qd
from quad_dynamics.control.foot_speed import FootSpeeds, foot_speeds
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.planning.stance_geometry import stance_geometry


def slowed(folder: Path, factor: float) -> Any:
    """go2 with joints that are slower by a factor."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        text = qd.load_model('go2').to_urdf()
        text = re.sub(r'velocity="([\d.]+)"', lambda m: f'velocity="{factor * float(m[1])}"', text)
        file = folder / f'go2_{factor}.urdf'
        file.write_text(text)
        return qd.load_model(file)


def speeds(model: Any, step_height: float = 0.2) -> FootSpeeds:
    """In the trot, at the normal pace."""
    return foot_speeds(model, stance_geometry(model), GAITS['trot'], step_height, 2.0, lambda velocity: 1.0)


def test_slower_joints_ask_for_lower_steps_and_slower_walks(tmp_path: Path) -> None:
    fast, slow, slower = (speeds(slowed(tmp_path, factor)) for factor in (1.0, 0.5, 0.25))
    assert fast.step_height == 0.2
    # the speed for lifting a foot is proportional to the height, but for what the leg bends meanwhile
    assert slower.step_height == pytest.approx(0.5 * slow.step_height, rel=0.05)
    assert (slow.most < fast.most).all()
    assert (slower.most < slow.most).all()


def test_joints_without_limits_are_never_too_slow(tmp_path: Path) -> None:
    found = speeds(slowed(tmp_path, 1e6))
    assert found.step_height == 0.2
    assert min(found.alone) > 1e3
    assert found.share(1.0, 0.5, 1.0) < 1e-3


def test_shares_are_proportional_and_count_the_fastest_foot(tmp_path: Path) -> None:
    found = speeds(slowed(tmp_path, 0.5))
    share = found.share(0.3, 0.1, 0.2)
    assert found.share(0.6, 0.2, 0.4) == pytest.approx(2.0 * share)
    assert found.share(0.0, 0.0, 0.0) == 0.0
    assert [found.share(*(most * axis)) for most, axis in zip(found.alone, np.eye(3), strict=True)] == (
        pytest.approx(np.ones(3), abs=0.02)  # left and right feet are not exactly mirrored
    )
    # turning makes the feet of one side faster
    assert found.share(0.3, 0.0, 0.5) > found.share(0.3, 0.0, 0.0)


@pytest.mark.slow
def test_joint_speeds_are_those_of_a_walk() -> None:
    """Joints of a robot that trots are about as fast as was foreseen."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = qd.load_model('go2')
    velocity = 0.8
    scenario = {
        'robot': model,
        'duration': 4.0,
        'events': [{'at': 0, 'gait': 'trot'}, {'at': 0.5, 'cmd_vel': [velocity, 0, 0]}],
    }
    run = qd.run_scenario({'scenario': scenario}, seed=1)
    joint_speeds = np.abs(run.traces.u[run.traces.t > 2.0, 6:]) / model.velocity_limit
    # share 1 stands for 1.1 of the limits; impacts and noise make single samples faster
    foreseen = 1.1 * speeds(model).share(velocity, 0.0, 0.0)
    assert np.percentile(joint_speeds.max(axis=1), 98) == pytest.approx(foreseen, rel=0.3)


@pytest.mark.parametrize('factor', slow_but([0.15], [0.25, 0.15]))
def test_a_robot_with_slow_joints_is_limited_and_does_not_fall(tmp_path: Path, factor: float) -> None:
    """Without the limit it falls within 2 s."""
    model = slowed(tmp_path, factor)
    walker = qd.Walker(model)
    assert not walker.command(2.0, 1.0, 3.0)
    vx, vy, wz = walker.target
    most = walker.largest_command
    assert 0.1 < vx < 0.6 * most[0]  # as it turns, too
    assert vy / vx == pytest.approx(most[1] / most[0])
    assert walker.command(*(0.99 * v for v in walker.target))
    assert wz < qd.Walker(slowed(tmp_path, 1.0)).largest_command[2]
    events = [{'at': 0, 'gait': 'trot'}, {'at': 0.5, 'cmd_vel': [2.0, 1.0, 3.0]}]
    run = qd.run_scenario({'scenario': {'robot': model, 'duration': 4.0, 'events': events}}, seed=1)
    assert not run.row['fell']
    assert math.degrees(run.row['roll_rms']) < 3.0
