# SPDX-License-Identifier: Apache-2.0
"""Finds ROS packages by name, for `package://NAME/...` and `$(find NAME)`, with and without ROS.

Searched in this order: the folders above the file that are the package or contain it, other packages of the
same repository or workspace, then `AMENT_PREFIX_PATH` and `ROS_PACKAGE_PATH`.
"""

from __future__ import annotations

import functools
import os
import re
import time
from pathlib import Path

from quad_dynamics.model.problems import why_unreadable

_LEVELS_UP = 8  # folders above a file that may be the named package
_LEVELS_DOWN = 5  # levels below a repository
_MOST_FOLDERS = 4000  # maximum number of folders searched in a repository
_KEPT = 5.0  # lifetime of the cached search results [s]
_SKIPPED = ('build', 'install', 'log', 'node_modules', 'meshes')
_NAME = re.compile(rb'<name>\s*([^<\s]+)\s*</name>')
_VARIABLES = ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH')


def package_folders(name: str, file: str) -> list[Path]:
    """Folders that may be a package, the most likely first; those outside ROS exist.

    Args:
        name: name of the package.
        file: path of the file that names it; '' if there is none.
    """
    folders: list[Path] = []
    if file and name and '/' not in name:
        for folder in _above(file):
            if folder.name == name or package_name(folder) == name:
                folders.append(folder)
            if (folder / name / 'package.xml').is_file():
                folders.append(folder / name)
        if not folders:
            folders += _in_repository(name, file)
    for root in _paths('AMENT_PREFIX_PATH'):
        folders.append(root / 'share' / name)
    for root in _paths('ROS_PACKAGE_PATH'):
        folders.append(root if root.name == name else root / name)
        folders += [folder for folder in (_packages_below(str(root), _tick()).get(name),) if folder]
    return folders


def find_package(name: str, file: str) -> Path | None:
    """The folder of a package; None if it is not found."""
    return next((folder for folder in package_folders(name, file) if folder.is_dir()), None)


def places_searched(file: str) -> str:
    """The places that `find_package` searches, for a message."""
    places = [f'the {_LEVELS_UP} folders above {Path(file).name}'] if file else []
    root = _repository(file) if file else None
    if root is not None:
        places.append(f'packages below {root}')
    places += [f'{name}{"" if os.environ.get(name) else " (not set)"}' for name in _VARIABLES]
    return ', '.join(places)


def package_name(folder: Path) -> str:
    """Name in the package.xml of a folder; '' if it has none."""
    manifest = folder / 'package.xml'
    if why_unreadable(manifest, 'a manifest', 1024 * 1024):
        return ''
    try:
        found = _NAME.search(manifest.read_bytes())
    except OSError:
        return ''
    return found.group(1).decode('utf-8', 'replace') if found else ''


def _above(file: str) -> list[Path]:
    return list(Path(os.path.normpath(Path.cwd() / file)).parents[:_LEVELS_UP])


def _repository(file: str) -> Path | None:
    """The repository or workspace of a file; if there is none, the parent folder of its package."""
    above = _above(file)
    for folder in above:
        if (folder / '.git').exists() or folder.name == 'src':
            return folder
    own = next((folder for folder in above if (folder / 'package.xml').is_file()), None)
    return own.parent if own is not None and len(own.parts) > 2 else None


def _in_repository(name: str, file: str) -> list[Path]:
    root = _repository(file)
    if root is None:
        return []
    folder = _packages_below(str(root), _tick()).get(name)
    return [folder] if folder is not None else []


def _tick() -> int:
    return int(time.monotonic() / _KEPT)


@functools.lru_cache(maxsize=16)
def _packages_below(root: str, _time: int) -> dict[str, Path]:
    """Packages below a folder, by name; the nearest one if there are several."""
    found: dict[str, Path] = {}
    level, visited = [Path(root)], 0
    for _ in range(_LEVELS_DOWN + 1):
        below: list[Path] = []
        for folder in level:
            visited += 1
            if visited > _MOST_FOLDERS:
                return found
            name = package_name(folder)
            if name:
                found.setdefault(name, folder)
            else:  # packages are not nested
                below += _subfolders(folder)
        level = below
    return found


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith('.')
                and entry.name not in _SKIPPED
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _paths(variable: str) -> list[Path]:
    return [Path(root) for root in os.environ.get(variable, '').split(os.pathsep) if root]
