# SPDX-License-Identifier: Apache-2.0
"""Generated logs are what they claim to be: the truth explains them, the URDF does not."""

from __future__ import annotations

from pathlib import Path

import identification_worlds as worlds
import numpy as np
import pytest
from identification_worlds import World

from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.signals.signals import collect
from quad_dynamics.identification.validation.validation import torque_errors, with_own_bias

KINDS = [
    World(1, 'ur5'),
    World(2, 'go2', motion='steps'),
    World(3, 'mini_cheetah', floating=True, payload=0.1, seconds=6.0),
]


@pytest.mark.parametrize('world', KINDS, ids=str)
def test_the_truth_explains_what_the_urdf_does_not(tmp_path: Path, world: World) -> None:
    """Without a delay and with friction that is linear, nothing is left but noise and what filters lose."""
    robot = worlds.make_robot(world)
    path = worlds.make_log(world, robot, tmp_path / 'log.npz')
    samples, _ = collect([open_source(path, robot.model)], robot.model)
    columns = make_columns(robot.model)
    mode = 'forces' if world.floating else 'fixed'
    equations = Equations(samples, columns, mode, first_noise(columns, False))
    before, truth = columns.prior, robot.truth(columns)
    if world.floating:
        before, truth = (with_own_bias(equations, x) for x in (before, truth))
    errors = torque_errors(equations, before, truth)
    joints = slice(-robot.model.nj, None)
    parts = [
        np.sqrt(np.nanmean(e[joints] ** 2) / np.nanmean(errors.measured[joints] ** 2))
        for e in (errors.before, errors.after)
    ]
    assert parts[0] > 0.05
    assert parts[1] < 0.4 * parts[0]
    if world.floating:
        assert errors.after[0] < 0.05 * 9.81 * robot.true.total_mass  # [N]


def test_a_seed_repeats_a_log(tmp_path: Path) -> None:
    world = worlds.draw(5)
    first, second = (
        dict(np.load(worlds.make_log(world, worlds.make_robot(world), tmp_path / f'{i}.npz')))
        for i in range(2)
    )
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_all_robots_and_kinds_of_logs_are_drawn() -> None:
    drawn = [worlds.draw(seed) for seed in range(200)]
    assert {world.robot for world in drawn} == set(worlds.ROBOTS)
    for kind in ('motion', 'friction', 'effort', 'floating', 'forces'):
        assert len({getattr(world, kind) for world in drawn}) > 1
    assert sum(world.seconds == 60.0 for world in drawn) == 5
    assert sum(world.unit != 1.0 for world in drawn) == 5


def test_friction_depends_on_load_and_follows_a_reversal_late() -> None:
    friction = worlds.make_friction('harmonic', np.ones(1), 0.1, np.random.default_rng(0))
    q = np.concatenate([np.linspace(0.0, 1.0, 1001), np.linspace(1.0, 0.0, 1001)[1:]])[:, None]
    u = np.where(np.arange(len(q)) <= 1000, 1.0, -1.0)[:, None]
    light, heavy = (friction.torque(q, u, np.full_like(u, load)) for load in (0.0, 10.0))
    assert np.all(heavy[500] - light[500] == pytest.approx(10.0 * friction.load))
    assert light[1001] - friction.viscous * u[1001] > 0.0  # just after the reversal
    assert light[1500] - friction.viscous * u[1500] < 0.0
