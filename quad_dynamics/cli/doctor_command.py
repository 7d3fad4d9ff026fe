# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics doctor`: check that this machine has what the nodes need."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.ros.environment import apt_command, pip_command, ros_advice, sourced_ros

HELP = 'check this machine for missing requirements'
DESCRIPTION = """\
Check Python, libraries, ROS, network and timers of this machine. Each line shows what was found and, if
there is a problem, how to fix it. The exit code is 1 if a requirement is missing.

examples:
  quad_dynamics doctor
"""

_GOOD, _DOUBTFUL, _BAD = 'ok', 'note', 'missing'
_VISER = 'viser>=1.1,<1.2'
Finding = tuple[str, str]  # level and text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has none."""


def run(arguments: argparse.Namespace) -> int:
    """Check everything; exit code 1 if something is missing."""
    terminal = Terminal()
    colours = {_GOOD: 'green', _DOUBTFUL: 'yellow', _BAD: 'red'}
    worst = 0
    for name, check in CHECKS.items():
        try:
            level, text = check()
        except ModuleNotFoundError as error:
            level, text = _BAD, f'cannot be checked without {error.name}'
        worst |= level == _BAD
        terminal.line(f'{terminal.paint(level.rjust(8), colours[level])}  {name}: {text}')
    return int(worst)


def _python() -> Finding:
    return _GOOD, f'{platform.python_version()} on {platform.system()} {platform.machine()}'


def _libraries() -> Finding:
    needed = {'yaml': 'pyyaml', 'PIL': 'pillow'}
    needed |= {
        name: name for name in ('numpy', 'scipy', 'numba', 'daqp', 'rosbags', 'matplotlib', 'tqdm', 'jinja2')
    }
    lacks = _lacking(needed)
    if lacks:
        packages = [needed[name] for name in lacks]
        return _BAD, f'{", ".join(packages)} cannot be imported; {pip_command(*packages)}'
    if _lacking(['xacro']):
        advice = apt_command('xacro') if sourced_ros() else pip_command('xacro')
        return _BAD, f'xacro cannot be imported; {advice}'
    return _GOOD, f'numpy {importlib.metadata.version("numpy")}, numba {importlib.metadata.version("numba")}'


def _lacking(modules: Iterable[str]) -> list[str]:
    return [name for name in modules if importlib.util.find_spec(name) is None]


def _kernels() -> Finding:
    from quad_dynamics.compiler.disk_cache import cache_directory

    folder = cache_directory()
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        return (
            _DOUBTFUL,
            f'{folder} is not writable: kernels are compiled at every start, which takes a minute',
        )
    return _GOOD, f'compiled kernels are cached in {folder}'


def _ros() -> Finding:
    if _lacking(['rclpy']):
        return _BAD, f'rclpy not found; {ros_advice()}'
    middleware = os.environ.get('RMW_IMPLEMENTATION', 'default middleware')
    ros = sourced_ros() if os.environ.get('ROS_DISTRO') else ''
    try:
        wheel = importlib.metadata.version('ros-rclpy')
    except importlib.metadata.PackageNotFoundError:
        return _GOOD, f'{ros or "rclpy"}, {middleware}'
    if ros:
        return (
            _DOUBTFUL,
            f'wheels (rclpy {wheel}) are installed beside {ros}; use an environment without the wheels',
        )
    return _GOOD, f'wheels, rclpy {wheel}, {middleware}'


def _messages() -> Finding:
    needed = (
        'diagnostic_msgs', 'geometry_msgs', 'nav_msgs', 'rosgraph_msgs', 'sensor_msgs', 'std_msgs',
        'std_srvs', 'trajectory_msgs', 'visualization_msgs',
    )  # fmt: skip
    lacks = _lacking(needed)
    if lacks:
        wheels = "pip install 'quad_dynamics[ros]'"
        advice = apt_command(*lacks) if sourced_ros() else wheels
        return _BAD, f'{", ".join(lacks)} cannot be imported; {advice}'
    if not _lacking(['tf2_msgs']):
        return _GOOD, 'all found'
    if os.environ.get('ROS_DISTRO'):
        return _DOUBTFUL, f'all found except tf2_msgs (no /tf); {apt_command("tf2_msgs")}'
    return _GOOD, 'all found except tf2_msgs, for which there is no wheel (no /tf)'


def _viewer() -> Finding:
    if _lacking(['viser', 'trimesh']):
        return _DOUBTFUL, f'viser not found (no page in the browser); {pip_command(_VISER)}'
    if _lacking(['collada']):
        return _DOUBTFUL, f'pycollada not found (no COLLADA meshes); {pip_command("pycollada")}'
    browsers = [name for name in ('chromium', 'google-chrome', 'firefox') if shutil.which(name)]
    return _GOOD, f'viser {importlib.metadata.version("viser")}' + (f', {browsers[0]}' if browsers else '')


def _network() -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.bind(('127.0.0.1', 0))
        except OSError as error:
            return _BAD, f'cannot use 127.0.0.1 ({error.strerror}), over which nodes communicate'
    domain = os.environ.get('ROS_DOMAIN_ID', '0')
    if not domain.isdigit() or int(domain) > 101:
        return _DOUBTFUL, f'ROS_DOMAIN_ID is {domain!r}; expected a number from 0 to 101'
    return _GOOD, f'loopback, ROS_DOMAIN_ID {domain}'


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1
    if cores < 2:
        return _DOUBTFUL, '1; expected at least 2 to run simulator, controller and viewer in real time'
    return _GOOD, str(cores)


def _timers() -> Finding:
    from quad_dynamics.ros.pacing import Pacer, sharpen_timers

    sharpen_timers()
    pacer, late = Pacer(1e-3), []
    for _ in range(300):
        pacer.wait()
        late.append(time.monotonic() - pacer.deadline)
    p90 = sorted(late)[int(0.9 * len(late))] * 1e6
    if p90 > 300.0:
        return (
            _DOUBTFUL,
            f'a 1 ms loop is {p90:.0f} us late (90th percentile); expected < 300 us: the machine is busy',
        )
    return _GOOD, f'a 1 ms loop is {p90:.0f} us late (90th percentile)'


def _disk() -> Finding:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free / 2**30
    return (_GOOD if free > 1.0 else _DOUBTFUL), f'{free:.1f} GiB free in {folder}'


CHECKS: dict[str, Callable[[], Finding]] = {
    'Python': _python,
    'libraries': _libraries,
    'kernels': _kernels,
    'ROS': _ros,
    'messages': _messages,
    'viewer': _viewer,
    'network': _network,
    'cores': _cores,
    'timers': _timers,
    'disk': _disk,
}
