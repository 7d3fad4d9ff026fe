# SPDX-License-Identifier: Apache-2.0
"""A clone of the source tree with an environment of its own, as a new user has it after some minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIB = f'python{sys.version_info.major}.{sys.version_info.minor}'
_OWN = ('__editable__', 'quad_dynamics')  # what an installation of the package itself brings


def clone_source(folder: Path) -> Path:
    """Copy the source tree as it is now; the clone is named as everybody's is."""
    return Path(shutil.copytree(ROOT, folder / 'quad_dynamics', ignore=_not_source))


def _not_source(folder: str, names: list[str]) -> list[str]:
    """What a copy of the source tree leaves out: hidden files, builds, caches and virtual environments."""
    patterns = ['.*', '__pycache__', '*.egg-info', 'build', 'dist', 'install', 'log']
    environments = [name for name in names if (Path(folder) / name / 'pyvenv.cfg').exists()]
    return [*environments, *shutil.ignore_patterns(*patterns)(folder, names)]


def link_environment(clone: Path) -> None:
    """Make .venv as `make env` does up to the package itself, with links in place of downloads."""
    venv = clone / '.venv'
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', str(venv)], check=True)
    here = Path(sys.prefix)
    for folder in (f'lib/{_LIB}/site-packages', 'lib', 'share'):
        (venv / folder).mkdir(parents=True, exist_ok=True)
        for entry in (here / folder).iterdir():
            if entry.name not in (_LIB, 'ament_index') and not entry.name.startswith(_OWN):
                (venv / folder / entry.name).symlink_to(entry)
    (venv / '.locked').touch()


def environment_of_a_new_user(home: Path) -> dict[str, str]:
    """Variables without anything of this environment, but for compiled kernels and the ROS domain."""
    from quad_dynamics.compiler.disk_cache import cache_directory

    # Where this environment keeps its programs is not on the PATH of a new user.
    folders = [one for one in os.environ['PATH'].split(os.pathsep) if not one.startswith(sys.prefix)]
    return {
        'HOME': str(home),
        'LANG': 'C.UTF-8',
        'PATH': os.pathsep.join(folders),
        'PIP_NO_INDEX': '1',
        'QUAD_DYNAMICS_CACHE_DIR': str(cache_directory()),
        'ROS_DOMAIN_ID': os.environ['ROS_DOMAIN_ID'],
    }
