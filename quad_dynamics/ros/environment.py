# SPDX-License-Identifier: Apache-2.0
"""The environment of the nodes: the ROS installation, and discovery between nodes."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from quad_dynamics.errors import RosMissing
from quad_dynamics.ros.process import PARENT_VARIABLE

# Variables that select another transport, peers or profile; then ours is not applied.
_OWN_CHOICE = (
    'FASTRTPS_DEFAULT_PROFILES_FILE',
    'FASTDDS_DEFAULT_PROFILES_FILE',
    'RMW_FASTRTPS_USE_QOS_FROM_XML',
    'FASTDDS_BUILTIN_TRANSPORTS',
    'ROS_DISCOVERY_SERVER',
    'ROS_STATIC_PEERS',
    'CYCLONEDDS_URI',
    'ZENOH_SESSION_CONFIG_URI',
)
# Fast DDS 2 (Humble to Jazzy) reads the first, Fast DDS 3 the second.
_PROFILE_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')
_RANGE_VARIABLE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
_FAST_DDS = ('', 'rmw_fastrtps_cpp', 'rmw_fastrtps_dynamic_cpp')
_RCLPY = 'lib/python3.*/site-packages/rclpy'  # in an installation of ROS
_IN_PIP = {'yaml': 'pyyaml', 'PIL': 'pillow', 'collada': 'pycollada', 'llvmlite': 'numba'}
# With it, the nodes use the profile of the shell, and may talk to other machines.
NETWORK_VARIABLE = 'QUAD_DYNAMICS_NETWORK'


def profile_path() -> Path:
    """The Fast DDS profile that keeps everything on this machine."""
    return share_folder() / 'config' / 'fastdds.xml'


def share_folder() -> Path:
    """Where launch files, configuration and profiles are: the source tree, or share/ of an installation."""
    root = Path(__file__).resolve().parents[2]
    if (root / 'config' / 'fastdds.xml').is_file() and (root / 'package.xml').is_file():
        return root
    candidates = [root.parents[2], Path(sys.prefix)] if len(root.parents) > 2 else [Path(sys.prefix)]
    candidates += [
        Path(prefix) for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix
    ]
    for prefix in candidates:
        if (prefix / 'share' / 'quad_dynamics' / 'config' / 'fastdds.xml').is_file():
            return prefix / 'share' / 'quad_dynamics'
    raise RosMissing(
        f'folder share/quad_dynamics not found below {", ".join(map(str, candidates))}; '
        'reinstall quad_dynamics'
    )


def loopback_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep ROS on this machine; none if the user has chosen otherwise.

    Such a choice is `QUAD_DYNAMICS_NETWORK`, a custom profile or transport, or a discovery range other than
    LOCALHOST. `ROS_LOCALHOST_ONLY=0` is not a choice: the setup files of Humble export it.
    """
    if environment.get(NETWORK_VARIABLE) or any(environment.get(name) for name in _OWN_CHOICE):
        return {}
    if environment.get(_RANGE_VARIABLE, '').upper() not in ('', 'LOCALHOST'):
        return {}
    if environment.get('RMW_IMPLEMENTATION', '') not in _FAST_DDS:
        return {_RANGE_VARIABLE: 'LOCALHOST', 'ROS_LOCALHOST_ONLY': '1'}
    settings = dict.fromkeys(_PROFILE_VARIABLES, str(profile_path()))
    # With LOCALHOST, rmw_fastrtps would add a socket at 0.0.0.0 to what the profile says.
    if environment.get(_RANGE_VARIABLE):
        settings[_RANGE_VARIABLE] = 'SYSTEM_DEFAULT'
    if environment.get('ROS_LOCALHOST_ONLY') == '1':
        settings['ROS_LOCALHOST_ONLY'] = '0'
    return settings


def stay_on_this_machine() -> None:
    """Restrict ROS in this process to loopback; to be called before rclpy is initialised."""
    os.environ.update(loopback_settings(os.environ))


def ros_environment() -> dict[str, str]:
    """The environment of nodes that this process starts."""
    environment = dict(os.environ)
    environment.update(loopback_settings(environment))
    environment[PARENT_VARIABLE] = str(os.getpid())
    environment['PYTHONUNBUFFERED'] = '1'
    environment['OMP_NUM_THREADS'] = environment['OPENBLAS_NUM_THREADS'] = '1'
    return environment


def pip_command(*requirements: str) -> str:
    """The command that installs packages for the current interpreter.

    Args:
        requirements: such as 'viser>=1.1,<1.2'.
    """
    managed = Path(sysconfig.get_path('stdlib')) / 'EXTERNALLY-MANAGED'  # Ubuntu 24.04 and others, PEP 668
    in_venv = sys.prefix != sys.base_prefix
    flag = ['--break-system-packages'] if managed.is_file() and not in_venv else []
    words = [sys.executable, '-m', 'pip', 'install', *flag, *requirements]
    return ' '.join(map(shlex.quote, words))


def sourced_ros() -> str:
    """A name of the ROS 2 installation whose setup file was sourced in this shell, '' if there is none."""
    if os.environ.get('ROS_DISTRO'):
        return f'ROS 2 {os.environ["ROS_DISTRO"]}'
    return 'a ROS 2 installation' if os.environ.get('AMENT_PREFIX_PATH') else ''


def ros_advice() -> str:
    """What to do if rclpy cannot be imported. Wheels must not be installed beside a ROS installation."""
    ros = sourced_ros()
    if not ros:
        return "source a ROS 2 installation, or install its wheels: pip install 'quad_dynamics[ros]'"
    here = f'{sys.version_info.major}.{sys.version_info.minor}'
    prefixes = map(Path, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep))
    found = sorted(path.parent.parent.name for prefix in prefixes for path in prefix.glob(_RCLPY))
    if found and f'python{here}' not in found:
        return f'{ros} is sourced, but needs {found[-1]}; this is {sys.executable} ({here})'
    if found:
        return f'{ros} is sourced, but its rclpy is not on the path of {sys.executable}: source it again'
    return f'{ros} is sourced, but has no rclpy: {apt_command("rclpy")}'


def apt_command(*packages: str) -> str:
    """The command that installs packages of ROS.

    Args:
        packages: by their names in ROS.
    """
    distribution = os.environ.get('ROS_DISTRO', '<distribution>')
    return ' '.join(
        ['sudo apt install', *(f'ros-{distribution}-{one.replace("_", "-")}' for one in packages)]
    )


def module_advice(module: str) -> str:
    """What to do if a module cannot be imported.

    Args:
        module: its name.
    """
    package = module.partition('.')[0]
    if package.endswith(('_msgs', '_srvs', '_interfaces')):
        return apt_command(package) if sourced_ros() else "pip install 'quad_dynamics[ros]'"
    return pip_command(_IN_PIP.get(package, package))


def require_ros() -> None:
    """Raise an error with instructions if rclpy cannot be imported.

    Raises:
        RosMissing: there is no rclpy.
    """
    if importlib.util.find_spec('rclpy') is None:
        raise RosMissing(f'rclpy not found; {ros_advice()}')
