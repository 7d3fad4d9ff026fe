# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics inspect`: what it prints and how it exits."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quad_dynamics import __version__
from quad_dynamics.cli import COMMANDS, main
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.model.loading import load_model

BROKEN = """<robot name="broken">
  <link name="root"/>
  <link name="arm"><inertial><mass value="-1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
    iyz="0" izz="1"/></inertial></link>
  <joint name="j" type="revolute"><parent link="root"/><child link="arm"/><axis xyz="0 0 0"/></joint>
</robot>"""


def inspect(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(['inspect', *arguments])
    captured = capsys.readouterr()
    assert captured.err == ''
    return code, captured.out


def test_bundled_robot(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect('mini_cheetah', capsys=capsys)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == (
        "mini_cheetah: floating base 'base_link', 12 joints, 13 bodies, 4 legs, 8.912 kg (nq 19, nv 18)"
    )
    assert '  ├── FL_hip: FL_hip_joint, revolute' in lines
    assert '          └── RR_calf: RR_calf_joint, revolute' in lines
    assert '  │           └── FL_foot: fixed' in lines
    assert (
        '  FL_calf_joint   revolute  y     -2.705  2.705     25.72   27.99     0.01       0.2  9.33' in lines
    )
    assert '  total      8.252    0.66' in lines
    assert '  RL   RL_foot  link         RL_hip_joint, RL_thigh_joint, RL_calf_joint' in lines
    assert 'Contact points (16, from the robot description; m)' in lines
    assert '  base height 0.2815 m' in lines
    assert 'Warnings (1; errors with --strict)' in lines
    assert lines[-1] == '✓ no problems, 1 warning'
    assert '\x1b' not in out, 'no colour into a file'


@pytest.mark.parametrize('name', ['two_link_arm', 'mini_cheetah_leg'])
@pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')
def test_every_joint_and_link_is_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = inspect(name, capsys=capsys)
    model = load_model(name)
    tree = out.split('Joints')[0]
    for link in model.frames:
        assert link in tree
    for joint in model.joint_names:
        assert joint in tree


def test_base_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "fixed base 'base_link', 12 joints, 12 bodies"
        in inspect('mini_cheetah', '--fixed-base', capsys=capsys)[1]
    )
    code, out = inspect('two_link_arm', '--floating-base', capsys=capsys)
    assert code == 1
    assert (
        "link 'base_link' (line 19) is the floating base, but neither it nor a link fixed to it has mass"
        in out
    )


def test_strict(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect('mini_cheetah', '--strict', capsys=capsys)
    assert code == 1
    assert out.startswith('mini_cheetah: 1 problem\n')
    assert 'triangle inequality' in out
    assert inspect('two_link_arm', '--strict', capsys=capsys)[0] == 0


def test_no_doubts_and_no_rotors(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = inspect('two_link_arm', capsys=capsys)
    assert out.splitlines()[-1] == '✓ no problems'
    assert '  total    2.5       -' in out.splitlines()


def test_every_problem_and_doubt_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'broken.urdf'
    path.write_text(BROKEN)
    code, out = inspect(str(path), capsys=capsys)
    assert code == 1
    assert out.splitlines() == [
        f'{path}: 2 problems',
        "  - joint 'j' (line 5): axis is zero (0 0 0); expected a direction",
        "  - link 'arm' (line 3): mass is -1; expected > 0",
        '',
        'Warnings (1; errors with --strict)',
        "  - joints without <limit> are treated as unlimited: joint 'j' (line 5)",
        '',
    ]


def test_description_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'other.yaml'
    path.write_text('quad_dynamics: {floating_base: false, rotors: {joint1: {gear: 5}}}')
    _, out = inspect('two_link_arm', '--description', str(path), capsys=capsys)
    row = next(line for line in out.splitlines() if line.startswith('  joint1 '))
    assert row.split()[-1] == '5'


def test_unknown_robot(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inspect('nobody', capsys=capsys)
    assert code == 1
    assert 'bundled robots: go2, mini_cheetah, mini_cheetah_leg, two_link_arm' in out


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(['inspect', '--help'])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert 'examples:' in out
    assert 'exit code: 0' in out
    assert max(map(len, out.splitlines())) < 100
    examples = out.split('examples:\n')[1].split('\n\n')[0].splitlines()
    assert len(examples) == 6
    column = examples[0].index('a bundled robot')
    for example in examples:
        assert example.startswith('  quad_dynamics inspect ')
        assert example[column - 2 : column] == '  '
        assert example[column] != ' '


def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (['inspect'], ['inspect', 'x', '--fixed-base', '--floating-base'], ['dance']):
        assert main(arguments) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith('error: ')


def test_without_a_command_it_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    assert shown.err.startswith('usage: quad_dynamics')
    for command in COMMANDS:
        assert f'    {command} ' in shown.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(['--version'])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f'quad_dynamics {__version__}\n'


@pytest.mark.parametrize('place', ['import', 'run'])
def test_interrupt_is_130(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if place == 'import':
        monkeypatch.setattr(importlib, 'import_module', interrupt)
    else:
        monkeypatch.setattr('quad_dynamics.cli.inspect_command.load_model', interrupt)
    assert main(['inspect', 'two_link_arm']) == 130
    assert capsys.readouterr() == ('', '')


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='this system has no /dev/full')
@pytest.mark.parametrize('arguments', [['inspect', 'two_link_arm'], ['--help']], ids=['inspect', 'help'])
def test_full_disk(arguments: list[str]) -> None:
    command = [sys.executable, '-m', 'quad_dynamics', *arguments]
    # without buffers argparse itself passes over a help text that cannot be written
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONUNBUFFERED'}
    with Path('/dev/full').open('w') as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    assert done.returncode == 1
    assert done.stderr == 'error: cannot write the output: No space left on device\n'


@pytest.mark.parametrize(
    ('error', 'message'),
    [
        (PermissionError(13, 'Permission denied', '/a/file'), '/a/file: Permission denied'),
        (OSError('libLLVM.so does not load'), 'libLLVM.so does not load'),
    ],
    ids=['file', 'library'],
)
def test_other_errors_of_the_system(
    error: OSError, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr('quad_dynamics.cli.inspect_command.load_model', refuse)
    assert main(['inspect', 'two_link_arm']) == 1
    assert capsys.readouterr().err == f'error: {message}\n'


@pytest.mark.parametrize(('robot', 'code'), [('two_link_arm', 0), ('nobody', 1)])
def test_closed_output(robot: str, code: int) -> None:
    """The exit code tells all the same."""
    command = f'exec "{sys.executable}" -m quad_dynamics inspect {robot} >&-'
    done = subprocess.run(['sh', '-c', command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (code, b'')


def test_as_a_module_and_into_a_closed_pipe() -> None:
    command = [sys.executable, '-m', 'quad_dynamics', 'inspect', 'two_link_arm']
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding='utf-8')
    assert done.returncode == 0
    assert done.stdout.startswith("two_link_arm: fixed base 'base_link', 2 joints")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b''


class Screen(io.StringIO):
    """A terminal that shows colour and has the given encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'dumb')
    assert Terminal(Screen('utf-8')).paint('x', 'red') == 'x'
    monkeypatch.setenv('TERM', 'xterm')
    assert Terminal(Screen('utf-8')).paint('x', 'red') == '\x1b[31mx\x1b[0m'
    assert Terminal(io.StringIO()).paint('x', 'red') == 'x'
    monkeypatch.setenv('NO_COLOR', '1')
    assert Terminal(Screen('utf-8')).paint('x', 'red') == 'x'


def test_bytes_that_are_no_text_do_not_stop_the_report() -> None:
    for encoding, shown in {'utf-8': 'ä?', 'ascii': '??', 'no_such_encoding': '??'}.items():
        screen = Screen(encoding)
        Terminal(screen).line('ä\udcff')
        assert screen.getvalue() == shown + '\n'


def test_tree_in_ascii_where_the_terminal_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('NO_COLOR', '1')
    screen = Screen('ascii')
    Terminal(screen).tree('a', {'a': ['b', 'c'], 'b': ['d'], 'c': [], 'd': []}.__getitem__, str)
    assert screen.getvalue() == '  a\n  |-- b\n  |   `-- d\n  `-- c\n'
