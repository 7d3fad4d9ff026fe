# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics demo identify`: what is hidden, what is recorded, and what is found."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from chromium import find_chromium
from report_pages import panels_of, report_browser
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

import quad_dynamics as qd
from quad_dynamics.cli import main
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.demo.comparison import Finding, friction_findings, payload_findings
from quad_dynamics.identification.demo.compiling import compiled_meanwhile
from quad_dynamics.identification.demo.experiment import Experiment
from quad_dynamics.identification.demo.secret import make_secret
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.excitation.excitation_bag import Trajectory
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.kernels.simulation.simulate import simulate

STORE = get_typestore(Stores.ROS2_JAZZY)


def robot(name: str = 'mini_cheetah', **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model(name, **options)


# ---------------------------------------------------------------- the secret


def test_a_seed_is_one_secret() -> None:
    first, again, other = (make_secret(robot(), seed) for seed in (3, 3, 4))
    for name in ('mass', 'place', 'viscous', 'coulomb'):
        assert np.array_equal(getattr(first, name), getattr(again, name))
        assert not np.any(np.equal(getattr(first, name), getattr(other, name)))


@pytest.mark.parametrize('name', ['mini_cheetah', 'go2'])
def test_the_robot_can_carry_it(name: str) -> None:
    """A payload of a few percent between the hips; friction of all joints that drives can overcome."""
    model = robot(name)
    for seed in range(20):
        secret = make_secret(model, seed)
        assert 0.04 <= secret.mass / model.total_mass <= 0.07
        hips = np.abs(model.joint_p[[leg.joint_indices[0] for leg in model.legs], :2]).max(axis=0)
        assert (np.abs(secret.place[:2]) < hips).all()
        assert (secret.viscous > 0.01).all()
        assert (secret.coulomb > 0.05).all()
        assert (secret.coulomb + 10.0 * secret.viscous < 0.2 * model.effort_limit).all()


def test_the_payload_is_a_cube() -> None:
    """Total mass, first moment and inertia of the trunk are those of trunk and cube together."""
    model = robot()
    secret = make_secret(model, 0)
    change = secret.hidden_in(model).pi[:10] - model.pi[:10]
    grid = (np.arange(40) + 0.5) / 40 - 0.5
    points = secret.edge * np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3) + secret.place
    x, y, z = points.T
    moments = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    expected = secret.mass * np.array([1.0, *points.mean(axis=0), *(m.mean() for m in moments)])
    # a grid of 40 points on each edge has 1 - 1 / 40^2 of the inertia of a cube
    assert np.allclose(change, expected, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize(
    ('option', 'value', 'message'),
    [
        ('--robot', 'two_link_arm', "'two_link_arm' has a fixed base; expected a robot that stands on legs"),
        ('--duration', '0.5', 'duration is 0.5; expected a number from 1 to 600 [s]'),
    ],
)
def test_what_cannot_be_is_refused(
    option: str, value: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / 'out'
    assert main(['demo', 'identify', option, value, '--no-open', '--output', str(output)]) == 1
    assert message in capsys.readouterr().err
    assert not output.exists()


def test_a_robot_that_falls_is_said(tmp_path: Path) -> None:
    """A motion that lifts two legs at once."""
    model = robot()
    rest = np.tile(model.standing[7:], (2, 1))
    folded = rest.copy()
    folded[1, :6] += np.tile([0.0, 0.8, -0.6], 2)
    zero = np.zeros_like(rest)
    motion = Trajectory(model.joint_names, np.array([0.1, 0.4]), folded, zero, zero)
    with pytest.raises(ArgumentError, match=r'failed to follow the motion at .* s: '):
        Experiment(make_secret(model, 0).hidden_in(model), model, 0).record(motion, tmp_path / 'bag')


# ---------------------------------------------------------------- what was found


def test_findings_hold_what_was_hidden_and_found() -> None:
    model = robot()
    secret, columns = make_secret(model, 1), make_columns(model)
    x = columns.prior.copy()
    x[columns.slices['pi']] = secret.hidden_in(model).pi
    x[columns.slices['viscous']], x[columns.slices['coulomb']] = secret.viscous, 1.1 * secret.coulomb
    free = np.ones(len(x), dtype=bool)
    free[columns.slices['coulomb'].start] = False
    std = 0.01 * np.abs(x)
    solution = Solution(columns, x, free, free, std, x - 2.0 * std, x + 2.0 * std)
    mass, *place = payload_findings(secret, solution)
    assert math.isclose(mass.hidden, mass.found)
    assert np.allclose([one.found for one in place], 1e3 * secret.place)
    assert all(one.inside for one in (mass, *place))
    friction = friction_findings(secret, solution)
    assert [one.inside for one in friction] == [True] * 12 + [False] * 12
    kept = friction[12]  # not free: no interval
    assert kept.low == kept.high == kept.found
    assert friction[5].name == f'{model.joint_names[5]} viscous'


def test_the_interval_of_the_place_is_never_too_narrow() -> None:
    """Against places from masses and moments that are drawn with errors of any correlation."""
    model = robot()
    secret, columns = make_secret(model, 1), make_columns(model)
    x = columns.prior.copy()
    x[columns.slices['pi']] = secret.hidden_in(model).pi
    std = np.zeros(len(x))
    std[0], std[1] = 0.02, 1e-3
    free = np.ones(len(x), dtype=bool)
    half = 1.96 * std
    found = payload_findings(secret, Solution(columns, x, free, free, std, x - half, x + half))[1]
    rng = np.random.default_rng(0)
    for correlation in (-1.0, -0.5, 0.0, 0.5, 1.0):
        a, b = rng.standard_normal((2, 10_000))
        mass = secret.mass + std[0] * a
        h = secret.mass * secret.place[0] + std[1] * (correlation * a + math.sqrt(1.0 - correlation**2) * b)
        place = 1e3 * h / mass
        assert np.mean((place > found.low) & (place < found.high)) > 0.94


# ---------------------------------------------------------------- all of it


@pytest.fixture(scope='module')
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of a short demonstration: on all feet only, for five seconds."""
    folder = tmp_path_factory.mktemp('demo') / 'out'
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('quad_dynamics.cli.terminal.Terminal.line', lambda self, text='': lines.append(text))
        patch.setattr(webbrowser, 'open', lambda address: lines.append(f'opened {address}') or True)
        options = ['--duration', '5', '--swing', '0', '--output', str(folder), '--seed', '2']
        assert main(['demo', 'identify', *options]) == 0
    return folder, '\n'.join(lines)


@pytest.mark.slow
def test_it_finds_what_was_hidden(shown: tuple[Path, str]) -> None:
    """As far as five seconds can tell; docs/identification.md has the figures of a whole demonstration."""
    folder, output = shown
    secret = make_secret(robot(), 2)
    hidden = yaml.safe_load((folder / 'hidden.yaml').read_text())
    assert hidden['payload']['mass [kg]'] == secret.mass
    assert list(hidden['Coulomb friction [N m]'].values()) == secret.coulomb.tolist()
    found = robot(str(folder / 'identified' / 'mini_cheetah.urdf'))
    assert abs(found.total_mass - robot().total_mass - secret.mass) < 0.03 * secret.mass
    assert np.allclose(found.coulomb, secret.coulomb, rtol=0.15)
    assert re.search(r'payload mass +kg +0 +0\.\d{4} +0\.\d{4} +\S+ to \S+ +[+-]\d+\.\d % +inside', output)
    count = re.search(r'(\d+) of 28 hidden values lie inside their 95 % interval', output)
    assert count is not None
    # 95 % of 28 are 26.6; five or more outside have a probability of 1 %
    assert int(count[1]) >= 24
    outside = re.findall(r'is outside its interval', output)
    assert len(outside) == 28 - int(count[1])
    assert f'opened {(folder / "identified" / "report.html").as_uri()}' in output


@pytest.mark.slow
def test_bags_do_not_tell_the_secret(shown: tuple[Path, str]) -> None:
    folder, _ = shown
    for name in ('run', 'other_run'):
        with Reader(folder / name) as reader:
            topics = {one.topic for one in reader.connections}
            assert not [topic for topic in topics if 'ground_truth' in topic]
            [chosen] = [one for one in reader.connections if one.topic == '/robot_description']
            [(_, _, raw)] = reader.messages([chosen])
        described = robot(STORE.deserialize_cdr(raw, 'std_msgs/msg/String').data)
        assert np.allclose(described.pi, robot().pi)
        assert np.allclose(described.coulomb, robot().coulomb)


@pytest.mark.slow
def test_every_plot_of_its_report_is_filled(shown: tuple[Path, str], tmp_path: Path) -> None:
    report = shown[0] / 'identified' / 'report.html'
    if not find_chromium():
        pytest.skip('no Chromium is installed')
    with report_browser(tmp_path / 'profile') as browser:
        panels = panels_of(report, browser)
    assert len(panels) > 20
    assert [f'{panel.figure}: {panel.title}' for panel in panels if not panel.filled] == []


def test_finding_knows_whether_it_is_inside() -> None:
    assert Finding('m', 'kg', 0.0, 1.0, 1.2, 0.9, 1.5).inside
    assert not Finding('m', 'kg', 0.0, 1.0, 1.2, 1.1, 1.3).inside


def test_kernels_are_compiled_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the cache on disk afterwards; a process that is left early does not stay behind."""
    started: list[Any] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, 'Popen', lambda *a, **b: started.append(start(*a, **b)) or started[-1])
    with compiled_meanwhile() as wait:
        wait()
    assert started[0].returncode == 0
    assert simulate.load(announce=False) is False  # nothing had to be compiled
    with compiled_meanwhile():
        pass
    assert started[1].returncode is not None
    monkeypatch.setattr(sys, 'executable', str(tmp_path / 'none'))
    with compiled_meanwhile() as wait:
        wait()
