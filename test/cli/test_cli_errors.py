# SPDX-License-Identifier: Apache-2.0
"""The command line refuses what cannot work before it starts anything, in one line, with the nearest name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quad_dynamics.cli import COMMANDS, main
from quad_dynamics.cli.sim_command import _Screen, _StopWatch
from quad_dynamics.errors import ModelWarning, plain_warnings

pytest.importorskip('rclpy')

TYPOS = [
    (['simulat'], "unknown command 'simulat' (did you mean 'simulate'?)"),
    (['warmup'], "did you mean 'warm-up'?"),
    (['dance'], "unknown command 'dance'; expected one of demo, doctor, "),
    (['sim', '--terain', 'flat'], "unknown option --terain (did you mean '--terrain'?)"),
    (['sim', '--lockstep'], "did you mean '--lock-step'?"),
    (['sim', 'mini_cheetah'], "did you mean '--robot mini_cheetah'?"),
    (['simulate', '--gait', 'trott'], "--gait: 'trott' (did you mean 'trot'?); expected one of stand, trot"),
    (['excite', '--criterium=condition'], "unknown option --criterium (did you mean '--criterion'?)"),
    (['inspect'], "the following arguments are required: FILE; see 'quad_dynamics inspect --help'"),
    (['play', 'bag', '--rate', '-1'], '--rate: -1 is not a number above 0'),
]

REFUSED = [
    (['--robot', 'nobody'], '--robot: nobody: no such file or bundled robot'),
    (['--robot', 'mini_cheetha'], "did you mean 'mini_cheetah'?"),
    (['--robot', 'wrong.urdf'], '--robot: wrong.urdf: '),
    (['--terrain', 'stiars'], "--terrain: unknown terrain 'stiars'; did you mean 'stairs'?"),
    (['--terrain', 'none.yaml'], '--terrain: none.yaml: '),
    (['--contact', 'implse'], "contact is 'implse' (did you mean 'impulse'?)"),
    (['--mode', 'stnd'], "mode is 'stnd' (did you mean 'stand'?)"),
    (['--initial-pose', 'standng'], "did you mean 'standing'?"),
    (['--real-time-factor', '0.01'], 'real_time_factor is 0.01; expected 0'),
    (['--seed', '-1'], 'seed is -1'),
    (['--port', '99999'], 'port is 99999; expected a whole number from 0 to 65535'),
    (['--port', '80x'], "--port: '80x' is not a whole number"),
    (['--host', '192.0.2.1'], '--host 192.0.2.1: '),  # an address that no machine has (RFC 5737)
    (['--namespace', 'a-b'], "--namespace 'a-b': "),
    (['--duration', '-1'], '--duration: -1 is not a number above 0'),
    (['--record', 'there'], '--record: there already exists'),
    (['--record', 'file/bag'], '--record: cannot create file/bag: Not a directory'),
    (['--play', 'nothing'], '--play: nothing not found; expected the folder of a bag'),
    (['--identification', '--excitation', 'nothing'], '--excitation: nothing cannot be read'),
    (['--params-file', 'none.yaml'], 'none.yaml not found'),
    (['--params-file', 'broken.yaml'], '--params-file broken.yaml: '),
    (['--params-file', 'typo.yaml'], "sim_node: unknown parameter 'muu' (did you mean 'mu'?)"),
    (['-p', 'mu'], '-p mu: expected NODE.NAME=VALUE'),
    (['-p', 'sim_node.mu={'], "-p sim_node.mu={: '{' is not valid YAML"),
    (['-p', 'sim_nod.mu=1'], "unknown node 'sim_nod' (did you mean 'sim_node'?)"),
    (['-p', 'sim_node.mu=-1'], 'parameters of sim_node: mu is -1; expected a number of at least 0'),
    (['-p', 'sim_node.dt=fast'], "parameters of sim_node: dt is 'fast'; expected a number above 0"),
    (['-p', 'force_node.rise_tme=2'], "unknown parameter 'rise_tme' (did you mean 'rise_time'?)"),
    (['-p', 'viewer_node.port=-1'], 'parameters of viewer_node: port is -1'),
    (['--headless', '-p', 'viewer_node.rat=1'], "unknown parameter 'rat' (did you mean 'rate'?)"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with some files, as the current one; nothing is left behind in it."""
    (tmp_path / 'there').mkdir()
    (tmp_path / 'file').touch()
    (tmp_path / 'wrong.urdf').write_text('<robot name="wrong"/>')
    (tmp_path / 'broken.yaml').write_text('{a: [')
    (tmp_path / 'typo.yaml').write_text('/**/sim_node:\n  ros__parameters: {dt: 1e-3, muu: 1.0}\n')
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError('a process was started')

    monkeypatch.setattr(subprocess, 'Popen', start)


@pytest.mark.parametrize(('arguments', 'said'), TYPOS, ids=lambda value: ' '.join(value)[:40])
def test_typo_gets_the_nearest(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    [line] = shown.err.splitlines()
    assert line.startswith('error: ')
    assert said in line


@pytest.mark.parametrize(('arguments', 'said'), REFUSED, ids=lambda value: ' '.join(value)[:40])
def test_sim_refuses_before_it_starts_anything(
    arguments: list[str], said: str, folder: Path, no_processes: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['sim', *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    [line] = [text for text in shown.err.splitlines() if not text.startswith('  ')]
    assert line.startswith('error: ')
    assert said in line


def test_a_port_that_is_taken_is_refused(no_processes: None, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        port = other.getsockname()[1]
        for arguments in (['--port', str(port)], ['-p', f'viewer_node.port={port}']):
            assert main(['sim', *arguments]) == 2
            assert f'error: --port {port}: Address already in use' in capsys.readouterr().err


def test_numbers_with_an_exponent_are_numbers() -> None:
    """YAML 1.1 takes 1e-3 for a text; ROS and people do not."""
    from quad_dynamics.cli.sim_checks import checked_graph, read_parameters

    specs = checked_graph({'headless': True}, read_parameters(['sim_node.dt=1e-3']))
    assert specs[0].parameters['dt'] == 1e-3


def test_stop_watch_adds_up_simulated_time() -> None:
    watch = _StopWatch(3.0)
    times = [0.0, 0.5, 1.0, 0.98, 1.2, 0.0, 2.0]  # an estimate that was a bit too large, silence
    assert not any(watch.has_ended(time) for time in times)
    assert not watch.has_ended(0.1)  # a new simulation: 2 s so far
    assert not watch.has_ended(1.0)
    assert watch.has_ended(1.2)
    assert not _StopWatch(None).has_ended(1e9)


def test_status_line_fits_into_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that the terminal breaks cannot be cleared, and would be left there again and again."""
    monkeypatch.setenv('COLUMNS', '20')
    screen = _Screen(verbose=False, quiet=False)
    screen._terminal = True
    screen.show('t 1.0 s | x1.00 | running | and so on')
    assert capsys.readouterr().out == 't 1.0 s | x1.00 | r'


def test_quiet_leaves_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    screen = _Screen(verbose=False, quiet=True)
    screen.tell('starting everything')
    screen.show('running')
    screen.say('record', 'recording 3 topics')
    screen.say('sim_node', '[INFO] hello')
    assert capsys.readouterr().out == ''
    screen.say('sim_node', '[WARN] too late')
    screen.say('', 'sim_node died; restarting it')
    assert capsys.readouterr().out.splitlines() == [
        '[sim_node] [WARN] too late',
        'sim_node died; restarting it',
    ]


def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    numba_errors = pytest.importorskip('numba.core.errors')
    with warnings.catch_warnings():
        warnings.simplefilter('always')
        with plain_warnings():
            for _ in range(2):
                warnings.warn('the feet\n  are wet', ModelWarning, stacklevel=1)
            warnings.warn('loop was not vectorized', numba_errors.NumbaPerformanceWarning, stacklevel=1)
            warnings.warn('use the other one', DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == 'warning: the feet are wet\n'


@pytest.mark.parametrize('command', COMMANDS)
def test_help_has_examples_and_fits(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, '--help'])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f'usage: quad_dynamics {command}' in shown
    assert f'\n  quad_dynamics {command}' in shown.split('examples:')[1]


@pytest.mark.parametrize('redirect', ['| head -n 1', '>&-', '| true'])
def test_output_that_nobody_reads(redirect: str, tmp_path: Path) -> None:
    command = f'{sys.executable} -m quad_dynamics inspect mini_cheetah {redirect}'
    environment = {**os.environ, 'COLUMNS': '20', 'TERM': 'dumb'}
    done = subprocess.run(
        ['bash', '-c', command],
        capture_output=True,
        text=True,
        timeout=60.0,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == ''
