# SPDX-License-Identifier: Apache-2.0
"""The scenarios of config/scenarios: what they hold, and short runs of some of them."""

from __future__ import annotations

from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from reference_pinocchio import robots_folder
from slow_variants import slow_but

import quad_dynamics as qd
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.scenarios.runner import ScenarioRun
from quad_dynamics.scenarios.scenario_file import ScenarioFile
from quad_dynamics.terrain.terrain import Terrain

CONFIG = Path(__file__).parents[2] / 'config'
FILES = sorted((CONFIG / 'scenarios').glob('*.yaml'))

pytestmark = pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')


def scenario(name: str) -> dict[str, Any]:
    """The data of a file, with its terrain as an absolute path."""
    data: dict[str, Any] = yaml.safe_load((CONFIG / 'scenarios' / f'{name}.yaml').read_text())
    simulator = data['scenario']['simulator']
    if 'terrain' in simulator:
        simulator['terrain'] = str(CONFIG / 'scenarios' / simulator['terrain'])
    return data


def short(name: str, duration: float, **keys: Any) -> ScenarioRun:
    """A short run of a file."""
    data = scenario(name)
    data['scenario'] |= {'duration': duration, **keys}
    return qd.run_scenario(data, seed=100)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_files_are_good(path: Path) -> None:
    file = ScenarioFile.load(path)
    assert len(file.seeds) == 10
    assert file.expect['falls'] == 0
    gaits = {event.gait for event in file.draw(file.seeds[0]).events}
    assert gaits - {None} <= set(GAITS)


@pytest.mark.parametrize('path', sorted((CONFIG / 'terrains').glob('*.yaml')), ids=lambda path: path.stem)
def test_terrains_are_level_at_the_start(path: Path) -> None:
    """The robot starts at height zero, above level ground."""
    terrain = Terrain.load(path)
    for x in (-0.4, 0.0, 0.4):
        for y in (-0.3, 0.0, 0.3):
            assert terrain.height(x, y) == pytest.approx(0.0, abs=1e-9)


def test_slopes_are_of_15_degrees() -> None:
    rise = np.tan(np.radians(15.0))
    for name, way, expected in (
        ('slope_up', (1.0, 0.0), rise),
        ('slope_down', (1.0, 0.0), -rise),
        ('slope_across', (0.0, 1.0), rise),
        ('slope_oblique', (np.cos(np.pi / 6.0), np.sin(np.pi / 6.0)), rise),
    ):
        terrain = Terrain.load(CONFIG / 'terrains' / f'{name}.yaml')
        low, high = (terrain.height(r * way[0], r * way[1]) for r in (1.5, 2.5))
        # numbers in the files have four digits
        assert high - low == pytest.approx(expected, abs=1e-3), name


def test_all_changes_of_gait_are_there_once() -> None:
    found = []
    for path in FILES:
        if path.stem.startswith('gait_changes'):
            events = scenario(path.stem)['scenario']['events']
            found += list(pairwise(event['gait'] for event in events if 'gait' in event))
    moving = [gait for gait in GAITS if gait != 'stand']
    assert sorted(found) == sorted(permutations(moving, 2))


def test_a_change_of_gait() -> None:
    """From trot to pace, whose feet come down in another order, while walking."""
    events = [{'at': 0, 'gait': 'trot', 'cmd_vel': [0.25, 0, 0]}, {'at': 1.5, 'gait': 'pace'}]
    run = short('gait_changes_1', 3.5, events=events)
    assert not run.row['fell']
    assert run.traces.gait[-1] == 'pace'
    # in the last second, the feet of one side are down together: feet are FL, FR, RL, RR
    contact = run.traces.contact[-500:]
    assert np.mean(contact[:, 0] == contact[:, 2]) > 0.9
    assert np.mean(contact[:, 0] == contact[:, 3]) < 0.6


@pytest.mark.parametrize('name', slow_but(['slope_down'], ['slope_up', 'slope_down']))
def test_a_slope(name: str) -> None:
    run = short(name, 4.5, events=[{'at': 0, 'gait': 'trot', 'cmd_vel': [0.5, 0, 0]}])
    assert not run.row['fell']
    x, _, z = run.traces.q[-1, :3]
    climbed = (x - 0.8) * np.tan(np.radians(15.0))
    assert climbed > 0.15
    # above the ground as at the start, but for the way in which the robot stands on a slope
    assert abs(z - run.traces.q[0, 2]) == pytest.approx(climbed, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [101, 102, 103, 104])
def test_a_body_on_two_feet_keeps_its_height(seed: int) -> None:
    """A higher centre of mass falls more slowly; plans must not use that until the legs are straight."""
    data = scenario('bound')
    robot = robots_folder() / 'solo_description/robots/solo12.urdf'
    data['scenario'] |= {'robot': str(robot), 'duration': 5.0}
    run = qd.run_scenario(data, seed)
    assert not run.row['fell']
    # with a tenth of the cost of leaving the height band, it rose by a fifth within a second and fell
    assert run.traces.q[:, 2].max() < 1.1 * run.height
