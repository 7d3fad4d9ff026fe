# SPDX-License-Identifier: Apache-2.0
"""What the messages about missing packages advise, in every kind of environment."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quad_dynamics.cli import main
from quad_dynamics.errors import RosMissing
from quad_dynamics.ros.environment import module_advice, pip_command, require_ros

WHEELS = 'quad_dynamics[ros]'


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that lets modules be missing, for who looks for them."""
    find = importlib.util.find_spec

    def lack(*names: str) -> None:
        monkeypatch.setattr(
            'importlib.util.find_spec', lambda name, *rest: None if name in names else find(name, *rest)
        )

    monkeypatch.delenv('ROS_DISTRO', raising=False)
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    return lack


def findings(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What doctor says, by the names of its checks."""
    main(['doctor'])
    lines = [line[10:].partition(': ') for line in capsys.readouterr().out.splitlines()]
    return {name: text for name, _, text in lines}


def test_without_any_ros_wheels_are_an_answer(lacking: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lacking('rclpy', 'nav_msgs')
    found = findings(capsys)
    assert WHEELS in found['ROS']
    assert WHEELS in found['messages']
    with pytest.raises(RosMissing, match='source a ROS 2 installation, or install its wheels'):
        require_ros()


@pytest.mark.parametrize('version', ['python3.8', '', f'python3.{sys.version_info.minor}'])
def test_beside_a_sourced_ros_no_wheels_are_advised(
    lacking: Any,
    version: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lacking('rclpy', 'nav_msgs', 'tf2_msgs', 'viser', 'xacro')
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    if version:
        (tmp_path / 'lib' / version / 'site-packages' / 'rclpy').mkdir(parents=True)
    found = findings(capsys)
    assert WHEELS not in ''.join(found.values())
    advice = {
        'python3.8': f'needs python3.8; this is {sys.executable}',
        '': 'has no rclpy: sudo apt install ros-jazzy-rclpy',
    }
    assert advice.get(version, 'source it again') in found['ROS']
    assert found['messages'].endswith('sudo apt install ros-jazzy-nav-msgs')
    assert found['libraries'].endswith('sudo apt install ros-jazzy-xacro')
    assert found['viewer'].endswith("-m pip install 'viser>=1.1,<1.2'")
    with pytest.raises(RosMissing, match='ROS 2 jazzy is sourced'):
        require_ros()


def test_wheels_beside_a_sourced_ros_are_announced(
    lacking: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv('ROS_DISTRO', 'humble')
    monkeypatch.setattr('importlib.metadata.version', lambda name: '7.1')
    assert 'installed beside ROS 2 humble; use an environment without the wheels' in findings(capsys)['ROS']


def test_command_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('sysconfig.get_path', lambda name: str(tmp_path))
    monkeypatch.setattr(sys, 'executable', '/my python/bin/python3')
    plain = "'/my python/bin/python3' -m pip install pycollada 'viser>=1.1,<1.2'"
    assert pip_command('pycollada', 'viser>=1.1,<1.2') == plain
    (tmp_path / 'EXTERNALLY-MANAGED').touch()
    assert pip_command('pycollada', 'viser>=1.1,<1.2') == plain  # a virtual environment
    monkeypatch.setattr(sys, 'prefix', sys.base_prefix)
    forced = plain.replace('install', 'install --break-system-packages')
    assert pip_command('pycollada', 'viser>=1.1,<1.2') == forced


def test_advice_by_module(lacking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_advice('PIL.Image').endswith('-m pip install pillow')
    assert module_advice('sensor_msgs.msg') == f"pip install '{WHEELS}'"
    monkeypatch.setenv('ROS_DISTRO', 'kilted')
    assert module_advice('sensor_msgs.msg') == 'sudo apt install ros-kilted-sensor-msgs'


BLOCK = 'import sys\nfor name in {names}: sys.modules[name] = None\n'


def test_the_graph_needs_nothing_that_only_pip_installs() -> None:
    """`ros2 launch` runs in the Python of the system, which may lack what the nodes have in theirs."""
    script = BLOCK.format(names=('numba', 'llvmlite', 'rosbags', 'viser', 'trimesh', 'collada', 'mcap'))
    script += (
        'from quad_dynamics.ros import deaths, supervisor\nfrom quad_dynamics.ros.graph import _urdf, graph\n'
    )
    script += "graph({'record': 'no_such_bag', 'identification': True})\n_urdf('mini_cheetah', '')\n"
    subprocess.run([sys.executable, '-W', 'ignore', '-c', script], check=True, timeout=60.0)


@pytest.mark.usefixtures('ros_domain')
def test_a_node_without_a_library_says_what_to_install() -> None:
    script = BLOCK.format(names=('numba', 'llvmlite'))
    script += "sys.argv = ['sim_node']\nfrom sim_node.__main__ import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, '-c', script], capture_output=True, text=True, timeout=60.0, check=False
    )
    assert done.returncode == 2, done.stderr
    assert 'is not installed; ' in done.stderr
    assert done.stderr.endswith('-m pip install numba\n')
    assert 'Traceback' not in done.stderr


def test_doctor_without_libraries() -> None:
    script = BLOCK.format(names=('numba', 'llvmlite', 'rosbags'))
    script += "from quad_dynamics.cli import main\nsys.exit(main(['doctor']))"
    done = subprocess.run(
        [sys.executable, '-c', script], capture_output=True, text=True, timeout=60.0, check=False
    )
    assert done.returncode == 1
    assert 'kernels: cannot be checked without' in done.stdout
    assert 'disk: ' in done.stdout
