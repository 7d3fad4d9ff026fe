# SPDX-License-Identifier: Apache-2.0
"""The commands `identify` and `residual`, on bags of a simulated arm whose truth is known."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import identification_data as data
import identified_robots as robots
import numpy as np
import pytest
import yaml

import quad_dynamics as qd
from quad_dynamics.cli import main

# Torque sensors whose constant error is another one in each recording would be errors of validation.
NOISE = qd.SensorSettings.typical().replace(joint_torque={'bias': 0.0})


@functools.cache
def truth() -> Any:
    """The arm with other links, and friction that its URDF does not have."""
    return data.changed(data.robot('two_link_arm'), seed=3)


def record(path: Path, seed: int, seconds: float = 12.0, noise_seed: int = 0) -> None:
    """A bag of the true arm along a sum of sines."""
    rng = np.random.default_rng(seed)
    a, phase = rng.uniform(-0.4, 0.4, (2, 4)), rng.uniform(0.0, 6.0, (2, 4))
    w = 2.0 * np.pi * rng.uniform(0.2, 1.5, (2, 4))
    sim = qd.Simulator(truth(), dt=1e-3)
    sim.reset(np.sum(a * np.sin(phase), axis=1))

    def follow(sim: Any) -> Any:
        angle = w * sim.time + phase
        target = np.sum(a * np.sin(angle), axis=1), np.sum(a * w * np.cos(angle), axis=1)
        return qd.JointCommand(np.zeros(2), *target, np.full(2, 80.0), np.full(2, 6.0))

    log = sim.run(follow, seconds)
    log.to_bag(path, rate_hz=500.0, sensors=qd.SensorSuite(truth(), NOISE, noise_seed, 1e-3))


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bags 'a', 'b' (another motion) and 'again' (that of a, with other noise)."""
    folder = tmp_path_factory.mktemp('bags')
    record(folder / 'a', seed=1)
    record(folder / 'b', seed=2)
    record(folder / 'again', seed=1, noise_seed=7)
    return folder


@pytest.fixture(scope='module')
def identified(bags: Path) -> Path:
    """The folder of results from bag a, validated on b."""
    folder = bags / 'out'
    assert identify(bags / 'a', '--validate', bags / 'b', '--output', folder, '--quiet') == 0
    return folder


def identify(*options: Any) -> int:
    return main(['identify', *map(str, options), '--robot', 'two_link_arm'])


# ---------------------------------------------------------------- identify


def test_the_truth_is_found(identified: Path) -> None:
    names = {path.name for path in identified.iterdir()}
    assert {'two_link_arm.urdf', 'parameters.yaml', 'report.html'} <= names
    found = yaml.safe_load((identified / 'parameters.yaml').read_text())
    again = robots.load(identified / 'two_link_arm.urdf')
    # What is asked of viscous and Coulomb friction: 5 %.
    np.testing.assert_allclose(again.viscous, truth().viscous, rtol=0.05, atol=0.002)
    np.testing.assert_allclose(again.coulomb, truth().coulomb, rtol=0.05, atol=0.002)
    assert found['consistent_bodies'] == {'good': 2, 'all': 2}
    for row in found['validation']['rms_errors']:
        assert row['after'] < 0.2 * row['before']
        assert row['after'] < 1.5 * row['floor']
    assert all(joint['closer'] for joint in found['validation']['simulated']['joints'])


def test_the_file_reloads_to_the_parameters(identified: Path) -> None:
    found = yaml.safe_load((identified / 'parameters.yaml').read_text())
    values = {item['name']: item['value'] for item in found['unknowns']}
    again = robots.load(identified / 'two_link_arm.urdf')
    names = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
    wanted = [values[f'{body}.{name}'] for body in again.body_names for name in names]
    np.testing.assert_allclose(again.pi, wanted, rtol=1e-9, atol=1e-12)
    wanted = [values[f'{joint}.viscous'] for joint in again.joint_names]
    np.testing.assert_allclose(again.viscous, wanted, rtol=1e-9)


@pytest.mark.slow
def test_a_second_run_gives_the_same_bytes(identified: Path, bags: Path, tmp_path: Path) -> None:
    """In another process, with another order of hashes."""
    command = [
        sys.executable,
        '-m',
        'quad_dynamics',
        'identify',
        'a',
        '--validate',
        'b',
        '--output',
        'second',
    ]
    environment = {**os.environ, 'PYTHONHASHSEED': '77', 'OMP_NUM_THREADS': '1'}
    first = ['--robot', 'two_link_arm', '--quiet']
    for name in ('a', 'b'):
        shutil.copytree(bags / name, tmp_path / name)
    subprocess.run([*command, *first], check=True, cwd=tmp_path, env=environment, timeout=300.0)
    here = Path.cwd()
    try:
        os.chdir(tmp_path)  # paths of recordings are part of the results
        assert identify('a', '--validate', 'b', '--output', 'third', '--quiet') == 0
    finally:
        os.chdir(here)
    files = sorted(path.name for path in (tmp_path / 'second').iterdir())
    assert files == sorted(path.name for path in identified.iterdir())
    for name in files:
        assert (tmp_path / 'second' / name).read_bytes() == (tmp_path / 'third' / name).read_bytes(), name


def test_summary(bags: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without another recording blocks are held out; without --output nothing is written."""
    before = sorted(bags.iterdir())
    assert identify(bags / 'a', '--free', 'friction,inertia') == 0
    captured = capsys.readouterr()
    assert 'Errors of predicted torques on held-out blocks' in captured.out
    assert re.search(r'joint1 +0 -> 0\.0\d+ ± 0\.\d+', captured.out)
    assert '2 of 2 bodies are physically consistent' in captured.out
    assert 'cutoff' in captured.out
    assert '%|' not in captured.err  # no bar where there is no terminal
    assert sorted(bags.iterdir()) == before


def test_only_what_is_free_changes(bags: Path, tmp_path: Path) -> None:
    out = tmp_path / 'out'
    assert identify(bags / 'a', '--free', 'joint2', '--no-validation', '--quiet', '-o', out) == 0
    again, model = robots.load(out / 'two_link_arm.urdf'), robots.load('two_link_arm')
    np.testing.assert_allclose(again.pi, model.pi, rtol=1e-9)
    assert again.viscous[0] == model.viscous[0]
    assert again.viscous[1] > 0.0
    assert yaml.safe_load((out / 'parameters.yaml').read_text())['validation'] is None


# ---------------------------------------------------------------- what is refused


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith('error: ')
    assert 'Traceback' not in error
    return error


@pytest.mark.parametrize('which', ['a', 'again'])
def test_validation_on_the_training_motion_is_refused(
    which: str, bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'out'
    assert identify(bags / 'a', '--validate', bags / which, '--output', out) == 1
    words = 'is also a training recording' if which == 'a' else 'repeats the training trajectory'
    assert words in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / 'precious').write_text('mine')
    assert identify(bags / 'a', '--output', tmp_path) == 1
    assert 'is not empty' in complaint(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ['precious']


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (['--topic', 'odom'], "--topic is 'odom'; expected NAME=TOPIC"),
        (['--topic', 'odum=/x'], "--topic: unknown name 'odum' (did you mean 'odom'?); expected one of"),
        (['--topic', 'required=odom'], "--topic: unknown name 'required'"),
        (['--topic', 'still=joint1'], "--topic: unknown name 'still'"),
        (['--topic', 'odom=a', '--topic', 'odom=b'], '--topic odom is given more than once'),
        (['--topic', 'kp=a'], "--topic kp is 'a'; expected one number"),
        (['--topic', 'kp=-1'], '--topic: kp is (-1.0,); expected a list of numbers of at least 0'),
        (['--topic', 'effort_scale='], "--topic effort_scale is ''; expected one number, or one per joint"),
        (['--topic', 'effort_scale=nan'], '--topic: effort_scale is (nan,); expected a list of numbers'),
        (['--topic', 'effort_scale=0'], '--topic: effort_scale is [0.0]; expected numbers other than 0'),
        (['--topic', 'effort_scale=1,2,3'], 'effort_scale has 3 numbers; expected 1, or one for each of 2'),
        (['--topic', 'torque=x'], "--topic: torque is 'x'; expected one of 'auto'"),
        (['--topic', 'force_frame=x'], "force_frame is 'x'; expected 'world', or a link of two_link_arm"),
        (['--topic', 'foot_forces=/x'], "has no topic '/x' of geometry_msgs/msg/WrenchStamped"),
        (['--still', 'finger'], "still is 'finger'; expected a joint of ['joint1', 'joint2']"),
        (['--still', ','], "--still is ','; expected names"),
        (['--free', ''], "--free is ''; expected names"),
        (['--imu'], "base is 'imu' (--imu), but the base of two_link_arm is fixed"),
        (['--cutoff', '1e6'], 'cutoff is 1e+06 Hz; expected at most 200 Hz'),
        (['--topic', 'joint_states=nowhere'], 'nowhere'),
        (['--free', 'joint3'], "unknown word 'joint3'"),
        (['--free', 'payload'], 'the base is fixed'),
        (['--mode', 'forces'], "mode is 'forces'"),
        (['--no-validation', '--validate', 'x'], 'are mutually exclusive'),
        (['--tie-legs'], 'leg'),
    ],
)
def test_bad_options(options: list[str], words: str, bags: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert identify(bags / 'a', *options) == 1
    assert words in complaint(capsys)


def test_bad_recordings(bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / 'out'
    assert identify(tmp_path / 'none', '--output', out) == 1
    assert 'none' in complaint(capsys)
    (tmp_path / 'empty').mkdir()
    assert identify(tmp_path / 'empty', '--output', out) == 1
    complaint(capsys)
    assert main(['identify', str(bags / 'a'), '--robot', 'mini_cheetah_leg', '--output', str(out)]) == 1
    assert 'hip_joint' in complaint(capsys)
    assert main(['identify', str(bags / 'a'), '--robot', 'no_robot.urdf']) == 1
    assert 'no_robot.urdf' in complaint(capsys)
    assert not out.exists()


@pytest.mark.parametrize(
    'options',
    [[], ['x'], ['x', '--robot'], ['x', '--robot', 'two_link_arm', '--cutoff', '-3'], ['x', '--mode', 'no']],
)
def test_wrong_usage(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['identify', *options]) == 2
    complaint(capsys)


@pytest.mark.parametrize(
    ('option', 'words'),
    [
        *((f'--mass={x}', f"--mass: '{x}' is not a mass") for x in ('15+-', 'nan', 'inf', '-3', '0', '')),
        *(
            (f'--mass={x}', f"--mass: '{x}' is not a mass")
            for x in ('15+-0', '15+-20', '15+-nan', '15+-1+-2')
        ),
        *(
            (f'--trust={x}', f'--trust: {x} is not a number above 0, up to')
            for x in ('0', 'nan', '-1', '1e9')
        ),
        *((f'--cutoff={x}', f'--cutoff: {x} is not a') for x in ('0', '-1', 'nan', 'inf')),
        *((f'--delay={x}', f'--delay: {x} is not a') for x in ('nan', 'inf', '0.2', '-5')),
        *(
            (f'--folds={x}', f'--folds: {x} is not a whole number from 2 to 100')
            for x in ('0', '1', '-3', '1000')
        ),
        *(
            (f'--stribeck={x}', f'--stribeck: {x} is not a number above 0, up')
            for x in ('0', '-1', 'nan', '1e300')
        ),
        *((f'--{name}=abc', f"--{name}: 'abc' is not a number") for name in ('trust', 'cutoff', 'stribeck')),
        ('--delay=abc', "--delay: 'abc' is not a number"),
        ('--folds=2.5', "--folds: '2.5' is not a whole number"),
    ],
)
def test_odd_numbers(option: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Usage errors that name the option and what is expected, not a function of ours."""
    assert main(['identify', 'x', '--robot', 'two_link_arm', option]) == 2
    assert words in complaint(capsys)


@pytest.mark.parametrize('command', ['identify', 'residual'])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, '--help'])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.count(f'quad_dynamics {command}') >= 3
    assert 'exit code: 0' in text


# ---------------------------------------------------------------- residual


def test_residual(bags: Path, identified: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the model as it was, and of the corrected one: what is left is the floor."""
    bag, shown = str(bags / 'b'), []
    for robot in ('two_link_arm', str(identified / 'two_link_arm.urdf')):
        picture = tmp_path / 'residual.png'
        assert main(['residual', bag, '--robot', robot, '--plot', str(picture)]) == 0
        assert picture.read_bytes().startswith(b'\x89PNG')
        out = capsys.readouterr().out
        shown.append(
            [
                tuple(map(float, row))
                for row in re.findall(r'N m\] +([\d.]+) +([\d.]+) +[\d.]+ % +([\d.]+)', out)
            ]
        )
    assert len(shown[0]) == len(shown[1]) == 2
    for (_, before, _), (_, after, floor) in zip(*shown, strict=True):
        assert after < 0.2 * before
        assert after < 1.5 * floor


def test_residual_refuses(bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for plot, words in (
        (tmp_path / 'no' / 'x.png', 'does not exist'),
        (tmp_path / 'x.nothing', 'expected one of'),
    ):
        assert main(['residual', str(bags / 'b'), '--robot', 'two_link_arm', '--plot', str(plot)]) == 1
        assert words in complaint(capsys)
