# SPDX-License-Identifier: Apache-2.0
"""Offsets of torques and gravity are not both free where the motion does not tell them apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import identification_worlds as worlds
import numpy as np
import pytest
from identification_data import TYPICAL, equations_of, make_samples, robot

import quad_dynamics as qd
from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.pipeline import IdentifySettings, Result, identify
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.separability import Trade, find_trade, gravity_rows
from quad_dynamics.identification.solvers.solve import solve

SMALL = worlds.draw(72)  # an arm that moves by little, with friction that depends on the load
FEW = IdentifySettings(hold_out=False)


def identified(world: Any, robot: Any, folder: Path, settings: IdentifySettings = FEW) -> Result:
    return identify([worlds.make_log(world, robot, folder / 'log.npz')], robot.model, settings)


def held(result: Result) -> list[str]:
    """What is said of offsets and gravity that are held; viscous friction may be, too."""
    texts = [text for text in result.solution.choices if ': held, for this motion does not tell' in text]
    return [text for text in texts if not text.startswith('viscous friction of ')]


def static_error(result: Result, robot: Any) -> float:
    """Error of the torques of gravity and offsets over all poses, relative: what another motion would see."""
    solution, rng = result.solution, np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (64, robot.true.nj))
    found = np.array([qd.gravity(solution.model(), each) for each in q]) + solution.part('offset')
    true = np.array([qd.gravity(robot.true, each) for each in q]) + robot.sensors.offset
    return float(np.sqrt(np.mean((found - true) ** 2) / np.mean(true**2)))


def test_offsets_that_gravity_stands_for_are_held(tmp_path: Path) -> None:
    """With both free, offsets of 20 % were found where there is 1 %, and static torques were 39 % off."""
    arm = worlds.make_robot(SMALL)
    result = identified(SMALL, arm, tmp_path)
    [text] = held(result)
    assert text.startswith('offset of ')
    assert 'uncertain by' in text
    assert 'Move these joints farther' in text
    offsets = result.solution.columns.slices['offset']
    assert not result.solution.free[offsets].any()
    assert not result.solution.x[offsets].any()
    assert static_error(result, arm) < 0.1


def test_gravity_is_held_where_it_cannot_explain_the_offsets(tmp_path: Path) -> None:
    """Offsets as large as gravity itself: no plausible arm has such torques without them."""
    arm = worlds.make_robot(SMALL)
    offset = np.array([1.5, -1.5]) * arm.size
    arm = replace(arm, sensors=replace(arm.sensors, offset=offset))
    result = identified(SMALL, arm, tmp_path)
    [text] = held(result)
    assert text.startswith('mean torque of gravity of ')
    assert 'held-out errors would be' in text
    assert result.solution.free[result.solution.columns.slices['offset']].all()
    assert result.solution.part('offset') == pytest.approx(offset, rel=0.15)


def test_nothing_is_held_that_was_asked_for(tmp_path: Path) -> None:
    arm = worlds.make_robot(SMALL)
    settings = IdentifySettings(hold_out=False, free=('inertia', 'friction', 'offset'))
    assert not held(identified(SMALL, arm, tmp_path, settings))


@pytest.mark.parametrize('size', [0.02, 1.0], ids=['small_motion', 'large_motion'])
def test_the_column_of_an_offset_that_inertia_leaves(size: float) -> None:
    """Against a least-squares fit of the column itself."""
    model = robot('two_link_arm')
    columns = make_columns(model)
    samples, _ = make_samples(model, 0, 10.0, 100.0)
    rows = samples.all()
    q = samples.layout.get(rows, 'q')
    q[...] = 0.4 + size * (q - q.mean(axis=0))
    for name in ('u', 'du'):
        samples.layout.get(rows, name)[...] *= size
    moved = type(samples)(model)
    moved.append(rows)
    normal = equations_of(moved, columns, TYPICAL).accumulate()[0]
    freedom = make_freedom(columns)
    scales = friction_scales(columns)
    found = find_trade(normal, freedom, np.where(np.isfinite(scales), scales, 1.0), scales)
    root = np.linalg.svd(normal.YtY, hermitian=True)
    Y = np.sqrt(root.S)[:, None] * root.Vh
    own, left = Y[:, columns.slices['offset']], []
    for column in own.T:
        pi = Y[:, columns.slices['pi']]
        fit = pi @ np.linalg.lstsq(pi, column, rcond=1e-6)[0]
        left.append(float(np.linalg.norm(column - fit) / np.linalg.norm(column)))
    expected = [name for name, each in zip(model.joint_names, left, strict=True) if each < 0.05]
    assert list(found.joints if found else ()) == expected
    assert bool(expected) == (size < 1.0)


def test_offsets_that_are_known_are_not_held() -> None:
    """However much they trade with gravity: clean data tell them apart."""
    model = robot('two_link_arm')
    columns = make_columns(model)
    samples, _ = make_samples(model, 0, 10.0, 100.0)
    normal = equations_of(samples, columns, TYPICAL).accumulate()[0]
    scales = friction_scales(columns)
    assert find_trade(normal, make_freedom(columns), 1e-3 * scales, scales) is None


def test_rows_of_gravity_are_mean_torques() -> None:
    model = robot('two_link_arm')
    columns = make_columns(model)
    samples, _ = make_samples(model, 0, 10.0, 100.0)
    normal: NormalEquations = equations_of(samples, columns, TYPICAL).accumulate()[0]
    part = columns.slices['offset']
    offsets = np.arange(part.start, part.stop)
    trade = Trade(offsets, np.ones(model.nj), model.joint_names)
    scales = friction_scales(columns)
    rows = gravity_rows(normal, make_freedom(columns), trade, scales) * 2e-3 * scales[offsets, None]
    q, u, du = (samples.layout.get(samples.all(), name) for name in ('q', 'u', 'du'))
    used = samples.layout.get(samples.all(), 'use') > 0.0
    tau = qd.inverse_dynamics(model.with_friction(*np.zeros((2, model.nj))), q, u, du)
    mean = [float(tau[used[:, j], j].mean()) for j in range(model.nj)]
    assert rows[:, columns.slices['pi']] @ model.pi == pytest.approx(mean, rel=0.02)


def test_good_motion_holds_nothing() -> None:
    model = robot('mini_cheetah_leg')
    columns = make_columns(model)
    samples, truth = make_samples(model, 3, 20.0, 100.0, extra={'offset': 0.1})
    equations = equations_of(samples, columns, TYPICAL)
    solution = solve(equations.accumulate(5), equations, columns, make_freedom(columns))
    part = columns.slices['offset']
    assert solution.free[part].all()
    assert solution.x[part] == pytest.approx(truth[part], abs=0.03)
