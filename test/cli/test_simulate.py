# SPDX-License-Identifier: Apache-2.0
"""The command `simulate`, its picture, and the gaits behind it."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simple_robots as robots

from quad_dynamics.cli import main

WEIGHT = 87.43  # of the Mini Cheetah [N]


def simulate(*options: str) -> int:
    return main(['simulate', *options])


def summary(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert simulate(*options) == 0
    captured = capsys.readouterr()
    return captured.out


# ---------------------------------------------------------------- what it prints


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper', 'spring-damper', 'spring'])
def test_it_stands(contact: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = summary(capsys, '--contact', contact, '--duration', '1')
    assert 'it stands on FL_foot, FR_foot, RL_foot, RR_foot' in out
    share = re.search(r'the feet carry ([\d.]+) % of the weight, ([\d.]+) N', out)
    assert share
    assert float(share[1]) == pytest.approx(100.0, abs=0.1)  # what standing has to show
    assert float(share[2]) == pytest.approx(WEIGHT, abs=0.02)
    assert ('Newton iterations per step' in out) == (contact == 'impulse')
    assert ('sub-steps per step' in out) == (contact != 'impulse')
    assert re.search(r'simulated 1 s in [\d.e-]+ s: [\d.e+]+ times real time', out)
    assert re.search(r'deepest penetration: [\d.]+ mm', out)


def test_it_falls_without_torques(capsys: pytest.CaptureFixture[str]) -> None:
    out = summary(capsys, '--gait', 'none', '--drop', '0.1', '--duration', '1.5')
    assert re.search(r'it fell: .*base_link', out)
    height = re.search(r'base at the end: height ([\d.]+) m', out)
    assert height
    assert 0.0 < float(height[1]) < 0.2  # standing it is 0.28 m


def test_it_trots(capsys: pytest.CaptureFixture[str]) -> None:
    out = summary(capsys, '--gait', 'trot', '--duration', '2')
    assert 'it stands on' in out
    height = re.search(r'base at the end: height ([\d.]+) m, ([\d.]+) m from', out)
    assert height
    assert float(height[1]) == pytest.approx(0.2815, abs=0.01)
    assert float(height[2]) < 0.02  # on the spot


def test_in_the_air(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'nothing touches the ground' in summary(capsys, '--drop', '1', '--duration', '0.1')
    assert 'contact is disabled' in summary(capsys, '--contact', 'none', '--duration', '0.1')


@pytest.mark.parametrize('terrain', ['slope', 'stairs', 'boxes', 'rough'])
def test_terrains(terrain: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Slopes too: the robot is put onto them tilted."""
    assert 'it stands on' in summary(capsys, '--terrain', terrain, '--duration', '1')


@pytest.mark.parametrize('robot', ['two_link_arm', 'mini_cheetah_leg'])
def test_fixed_base(robot: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It has no ground to stand on, unless one asks for it."""
    out = summary(capsys, '--robot', robot, '--duration', '0.2', '--plot', str(tmp_path / 'out.png'))
    assert 'the base is fixed' in out
    assert (tmp_path / 'out.png').is_file()


def test_robot_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A ball: no joints, no feet."""
    path = tmp_path / 'ball.urdf'
    path.write_text(robots.ball_urdf())
    ball = ('--robot', str(path), '--floating-base', '--drop', '0.1', '--duration', '1')
    out = summary(capsys, *ball, '--plot', str(tmp_path / 'out.svg'))
    assert 'touches the ground' in out
    assert 'it fell' not in out
    assert (tmp_path / 'out.svg').read_text().startswith('<?xml')


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate('--quiet', '--duration', '0.1') == 0
    captured = capsys.readouterr()
    assert captured.out == ''
    assert '%' not in captured.err  # no progress bar


# ---------------------------------------------------------------- settings


def test_options_go_before_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / 'sim.yaml'
    path.write_text('simulator: {contact: spring_damper, dt: 5e-4, mu: 0.9}\n')
    out = summary(capsys, '--settings', str(path), '--duration', '0.2')
    assert 'spring-damper contact, time step 0.5 ms' in out
    out = summary(capsys, '--settings', str(path), '--duration', '0.2', '--dt', '0.002')
    assert 'spring-damper contact, time step 2 ms' in out


def test_friction_and_restitution_matter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    slippery = summary(capsys, '--terrain', 'slope', '--mu', '0.05', '--duration', '1')
    moved = re.search(r'([\d.]+) m from the start', slippery)
    assert moved
    assert float(moved[1]) > 0.3  # 0.5 g (sin 15 - 0.05 cos 15) t^2 is 1 m
    path = tmp_path / 'ball.urdf'
    path.write_text(robots.ball_urdf())
    # it falls for 0.20 s
    ball = ('--robot', str(path), '--floating-base', '--drop', '0.2', '--duration', '0.25')
    assert 'nothing touches' in summary(capsys, *ball, '--restitution', '0.8')
    assert 'touches the ground' in summary(capsys, *ball)


def test_gains(capsys: pytest.CaptureFixture[str]) -> None:
    """Without any, the torques that carry the weight balance it for a moment only."""
    out = summary(capsys, '--kp', '0', '--kd', '0', '--drop', '0.05', '--duration', '2')
    assert 'it fell' in out


# ---------------------------------------------------------------- files


def test_results(qd: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plot, log, bag = tmp_path / 'out.png', tmp_path / 'out.npz', tmp_path / 'bag'
    plot.write_text('old')
    options = ('--duration', '0.5', '--plot', str(plot), '--log', str(log), '--bag', str(bag))
    summary(capsys, *options)
    assert plot.read_bytes().startswith(b'\x89PNG')
    loaded = qd.Log.load(log)
    assert len(loaded) == 500
    assert loaded.foot_forces[-1, :, 2].sum() == pytest.approx(WEIGHT, abs=0.1)
    assert (bag / 'metadata.yaml').is_file()
    assert simulate(*options) == 1
    assert 'already exists' in capsys.readouterr().err


def test_log_every(qd: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / 'out.npz'
    summary(capsys, '--duration', '0.5', '--log-every', '10', '--log', str(path))
    assert len(qd.Log.load(path)) == 50


def test_seed_is_that_of_the_noise_in_the_bag(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = tmp_path / 'sim.yaml'
    settings.write_text('simulator: {sensors: {joint_torque: {noise: 1.0}}}\n')
    bags = []
    for name, seed in (('a', '1'), ('b', '1'), ('c', '2')):
        (tmp_path / name).mkdir()
        path = tmp_path / name / 'bag'
        summary(capsys, '--settings', str(settings), '--seed', seed, '--duration', '0.05', '--bag', str(path))
        bags.append(next(path.glob('*.mcap')).read_bytes())
    assert bags[0] == bags[1]
    assert bags[0] != bags[2]


def test_headless(tmp_path: Path) -> None:
    """As a process of its own, with no display and a backend that would need one."""
    environment = {name: value for name, value in os.environ.items() if 'DISPLAY' not in name}
    environment['MPLBACKEND'] = 'TkAgg'
    command = [sys.executable, '-m', 'quad_dynamics', 'simulate', '--duration', '0.1', '--plot', 'out.png']
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'out.png').is_file()


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        (('--robot', 'nobody'), 'no such file or bundled robot'),
        (('--terrain', 'slop'), "did you mean 'slope'"),
        (('--dt', '0'), 'dt is 0'),
        (('--mu', '-1'), 'mu is -1'),
        (('--mu', 'nan'), 'mu is nan'),
        (('--restitution', '2'), 'restitution is 2'),
        (('--seed', '-1'), 'seed is -1'),
        (('--settings', 'nowhere.yaml'), 'nowhere.yaml'),
        (('--plot', 'nowhere/out.png'), 'does not exist'),
        (('--plot', 'out.xyz'), 'png'),
        (('--log', '.'), 'is a folder'),
        (('--bag', '.'), 'already exists'),
        (('--duration', '1e-5'), '0 time steps; expected at least 1'),
        (('--log-every', '10000'), 'expected at least 10000'),
        (('--robot', 'two_link_arm', '--gait', 'trot'), 'quadruped'),
        (('--robot', 'two_link_arm', '--drop', '1'), 'fixed base'),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, tuple) else '',
)
def test_bad_input(
    options: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert simulate(*options) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith('error: ')
    assert captured.out == ''
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    'options',
    [('--contact', 'glue'), ('--gait', 'fly'), ('--duration', '-1'), ('--duration', 'nan'), ('--drop', '-1'),
     ('--kp', 'inf'), ('--log-every', '0'), ('--robot',), ('--fixed-base', '--floating-base')],
    ids=' '.join,
)  # fmt: skip
def test_wrong_usage(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(*options) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('error: ')
    assert options[0] in line
    assert "see 'quad_dynamics simulate --help'" in line


def test_divergence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Says what may help, and shows what led to it."""
    settings = tmp_path / 'sim.yaml'
    settings.write_text('simulator: {motor_limits: false, joint_limits: false, contact: none}\n')
    options = ('--settings', str(settings), '--kp', '1e7', '--kd', '1e4', '--plot', str(tmp_path / 'out.png'))
    assert simulate(*options, '--drop', '1', '--gait', 'trot') == 1
    captured = capsys.readouterr()
    assert 'smaller gains' in captured.err
    assert captured.out == ''
    assert (tmp_path / 'out.png').is_file()


# ---------------------------------------------------------------- gaits and measures


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('name', robots.QUADRUPEDS)
def test_default_gains_let_any_robot_stand(qd: Any, name: str, contact: str) -> None:
    from quad_dynamics.simulation.gaits import hold

    model = robots.quadruped(name)
    sim = qd.Simulator(model, contact=contact)
    log = sim.run(hold(model), 2.0)
    height = sim.standing()[2]
    # springs give way by 4 mm below the heaviest
    assert abs(log.q[-1, 2] - height) < 0.01 * height + 2e-3
    assert np.abs(log.u[-1]).max() < 0.01  # at rest
    # what standing has to show
    assert log.foot_forces[-1, :, 2].sum() == pytest.approx(model.total_mass * 9.81, rel=1e-3)


@pytest.mark.parametrize('dt', [2.5e-4, 1e-3, 5e-3])
def test_default_gains_do_not_shake_a_robot_in_the_air(qd: Any, dt: float) -> None:
    from quad_dynamics.api.drives import default_gains

    model = robots.quadruped('go2')
    kp, kd = default_gains(model, dt)
    sim = qd.Simulator(model, contact='none', dt=dt, gravity=(0.0, 0.0, 0.0))
    q = sim.standing()
    q[7:] += 0.05 * np.resize([1.0, -1.0], model.nj)
    sim.reset(q)
    log = sim.run(qd.JointCommand(q=model.standing[7:], kp=kp, kd=kd), 1.0)
    assert np.abs(log.q[-1, 7:] - model.standing[7:]).max() < 5e-3  # a tenth of where it began


@pytest.mark.parametrize('angle', [0.0, 0.2])
def test_standing_on_a_slope(qd: Any, angle: float) -> None:
    """All feet touch it, the base is parallel to it."""

    model = robots.quadruped('mini_cheetah')
    sim = qd.Simulator(
        model, terrain={'shape': 'plane', 'roll': angle, 'pitch': -0.5 * angle, 'point': [1, 2, 3]}
    )
    q = sim.standing()
    distance, normal = sim.terrain.distance([qd.frame_pose(model, q, foot)[1] for foot in model.foot_names])
    assert np.abs(distance).max() < 1e-6
    R_WB, _ = qd.frame_pose(model, q, model.base_name)
    assert R_WB[:, 2] == pytest.approx(normal[0], abs=1e-9)


def test_slip_is_measured(qd: Any) -> None:
    """A robot that slides on ice: its feet slip as far as its base goes."""
    from quad_dynamics.simulation.gaits import hold
    from quad_dynamics.simulation.plots import foot_motion

    model = robots.quadruped('mini_cheetah')
    sim = qd.Simulator(model, mu=0.0)
    u = np.zeros(model.nv)
    u[:2] = 0.3, 0.4
    sim.reset(u=u)
    log = sim.run(hold(model), 0.5)
    motion = foot_motion(log, sim.terrain)
    # the first row is the first step's, so the way is the whole 0.25 m; legs swing a little
    assert motion.path[-1] == pytest.approx(0.25, rel=0.02)
    assert motion.normal_force[-1].sum() == pytest.approx(WEIGHT, rel=1e-2)
    still = qd.Simulator(model).run(hold(model), 0.5)
    assert foot_motion(still).path[-1].max() < 1e-6


def test_rolling_is_no_slip(qd: Any) -> None:
    """The point that touches counts, not the middle of the foot."""
    from quad_dynamics.simulation.plots import foot_motion

    model = robots.quadruped('go2')
    sim = qd.Simulator(model)
    log = sim.run(None, sim.settings.dt)
    foot = model.foot_names[0]
    point = next(one for one in sim.contact_points if one.link == foot)
    assert point.radius > 0.01
    R_WF, _ = qd.frame_pose(model, log.q[0], foot)
    arm = R_WF @ np.array(point.position) - [0.0, 0.0, point.radius]
    w = np.array([0.0, 3.0, 0.0])
    u = np.linalg.lstsq(qd.frame_jacobian(model, log.q[0], foot), [*np.cross(arm, w), *w], rcond=None)[0]
    rolling = dataclasses.replace(log, u=u[None], foot_forces=np.ones_like(log.foot_forces))
    assert np.linalg.norm(qd.frame_velocity(model, log.q[0], u, foot)[:3]) > 0.03  # 3 rad/s of 1 cm or more
    assert foot_motion(rolling).speed[0, 0] < 1e-9  # rounding


@pytest.mark.parametrize('name', robots.QUADRUPEDS)
def test_everybody_trots(qd: Any, name: str) -> None:
    from quad_dynamics.simulation.gaits import Trot

    model = robots.quadruped(name)
    trot = Trot(model)
    sim = qd.Simulator(model)
    log = sim.run(trot, 8 * trot.period)
    late = log.between(4 * trot.period, 8 * trot.period)
    # each foot is lifted and set down
    share = (late.foot_forces[:, :, 2] > 0.0).mean(axis=0)
    assert np.all((share > 0.4) & (share < 0.9)), share
    assert late.q[:, 2].min() > 0.9 * sim.standing()[2]
    x, y = late.q[:, 3], late.q[:, 4]
    assert (1.0 - 2.0 * (x * x + y * y)).min() > 0.97  # within 14 degrees


def test_trot_refuses(qd: Any) -> None:
    from quad_dynamics.simulation.gaits import Trot

    model = robots.quadruped('mini_cheetah')
    for options, said in (
        ({'duty': 0.3}, 'duty of at least 0.5'),
        ({'period': 0.0}, 'period'),
        ({'height': 1.0}, 'cannot lift'),
        ({'kp': [1.0, 2.0]}, r'shape \(2,\)'),
    ):
        with pytest.raises(qd.ArgumentError, match=said):
            Trot(model, **options)


def test_picture_of_an_empty_log(qd: Any, tmp_path: Path) -> None:
    from quad_dynamics.simulation.plots import plot_run

    log = qd.Simulator(robots.quadruped('mini_cheetah')).run(None, 0.0)
    with pytest.raises(qd.ArgumentError, match='empty'):
        plot_run(log, tmp_path / 'out.png')
