# SPDX-License-Identifier: Apache-2.0
"""Which files a URDF may refer to: only files inside a package.

The dynamics never open a mesh, but viewers do; an untrusted robot file must not make them read `/etc/passwd`.
Only the text of the path is checked; nothing is opened, and the mesh need not exist.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

_PACKAGE_SCHEMES = ('package', 'model')
_SCHEME = re.compile(r'([A-Za-z][A-Za-z0-9+.-]+):')  # two characters or more: C: is a drive
_EXPECTED = 'expected package://, model:// or a relative path'
_LEVELS_TO_PACKAGE = 6
_INNER_FOLDERS = ('urdf', 'urdfs', 'xacro', 'robots', 'robot', 'model', 'models', 'description')


def package_folder(urdf_path: str) -> str:
    """Folder that must contain the meshes of a URDF file.

    It is the nearest folder upwards with a `package.xml`. Without one it is the parent of the file's folder
    if that is called `urdf` or similar (`robot/urdf/robot.urdf` beside `robot/meshes`), else the file's own
    folder.
    """
    folder = Path(os.path.normpath(Path.cwd() / urdf_path)).parent
    for candidate in (folder, *folder.parents[:_LEVELS_TO_PACKAGE]):
        if (candidate / 'package.xml').is_file():
            return str(candidate)
    return str(folder.parent if folder.name.lower() in _INNER_FOLDERS else folder)


class MeshPaths:
    """Checks the mesh and texture paths of one URDF."""

    def __init__(self, urdf_path: str) -> None:
        """Find the package of the file.

        Args:
            urdf_path: path of the URDF file; '' for text, which is treated as if it were in a folder `urdf`
                of its package.
        """
        self._folder = os.path.normpath(Path.cwd() / urdf_path / '..') if urdf_path else '/package/urdf'
        self._package = package_folder(urdf_path) if urdf_path else '/package'
        self._has_file = bool(urdf_path)
        self._roots = [self._package] if urdf_path else []
        for variable in ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'):
            roots = os.environ.get(variable, '').split(os.pathsep)
            self._roots += [root for root in roots if root.startswith('/') and root.strip('/')]

    def problem(self, filename: str) -> str:
        """The problem with a path as written in the URDF; '' if there is none."""
        if not filename.strip():
            return 'is empty'
        path = unquote(filename).replace('\\', '/').strip()
        if '\0' in path:
            return f'{filename!r} contains a NUL character'
        scheme = _SCHEME.match(path)
        if scheme is None:
            return self._plain_problem(filename, path)
        kind, rest = scheme.group(1).lower(), path[scheme.end() :]
        if kind in _PACKAGE_SCHEMES:
            return _package_problem(filename, rest)
        if kind == 'file':
            return self._absolute_problem(filename, '/' + rest.lstrip('/'))
        return f"'{filename}' has the unsupported scheme {kind}:; {_EXPECTED}"

    def in_own_package(self, filename: str) -> Path | None:
        """The file that an absolute path of another machine most likely refers to.

        Files that were expanded on another machine contain paths such as /home/somebody/NAME/meshes/leg.stl,
        which means meshes/leg.stl in the package. The longest path ending that exists there is used; the file
        name alone is not enough.
        """
        path = re.sub(r'^file:/*', '/', unquote(filename).replace('\\', '/').strip(), flags=re.IGNORECASE)
        parts = path.split('/')
        if not self._has_file or not re.match(r'/|[A-Za-z]:', path) or '..' in parts or '\0' in path:
            return None
        for i in range(1, len(parts) - 1):
            candidate = Path(self._package, *parts[i:])
            if candidate.is_file():
                return candidate
        return None

    def _plain_problem(self, filename: str, path: str) -> str:
        if path.startswith(('~', '$')):
            return f"'{filename}' starts with {path[0]}, which denotes another folder; {_EXPECTED}"
        if path.startswith('/') or re.match(r'[A-Za-z]:', path):
            return self._absolute_problem(filename, path)
        if _is_inside(f'{self._folder}/{path}', self._package):
            return ''
        return f"'{filename}' leaves the robot's package; expected a path inside it"

    def _absolute_problem(self, filename: str, path: str) -> str:
        if any(_is_inside(path, root) for root in self._roots):
            return ''
        return f"'{filename}' is an absolute path outside the robot's package; expected package://NAME/path"


def _package_problem(filename: str, rest: str) -> str:
    package, _, inner = rest.lstrip('/').partition('/')  # package:///NAME is wrong, but common and harmless
    if package in ('', '.', '..'):
        return f"'{filename}' names no package; expected package://NAME/path"
    depth = 0
    for part in inner.split('/'):
        depth += {'': 0, '.': 0, '..': -1}.get(part, 1)
        if depth < 0:
            return f"'{filename}' leaves the package '{package}'; expected a path inside it"
    return ''


def _is_inside(path: str, folder: str) -> bool:
    path, folder = os.path.normpath(path), os.path.normpath(folder)
    return path.startswith(folder.rstrip('/') + '/')
