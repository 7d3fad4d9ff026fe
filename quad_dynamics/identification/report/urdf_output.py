# SPDX-License-Identifier: Apache-2.0
"""Writes the corrected URDF to a folder, with copies of its meshes that have relative paths."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.sax.saxutils import escape, unescape

from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.mesh_paths import package_folder
from quad_dynamics.model.meshes import MeshError, find_mesh

_COMMENT = re.compile(r'(<!--.*?-->)', re.DOTALL)
_MESH = re.compile(r'(<(?:mesh|texture)\b[^>]*?\bfilename\s*=\s*)("[^"]*"|\'[^\']*\')')
_SHOWN = 3  # number of missing meshes that are named
_MESH_FOLDER = 'meshes'
_BESIDE = ('.mtl', '.png', '.jpg', '.jpeg')  # extensions of files that a mesh may need


def robot_file_name(name: str) -> str:
    """The name of a robot as a file name, without an extension."""
    return re.sub(r'[^\w.-]', '_', name, flags=re.ASCII).strip('.') or 'robot'


def write_urdf(solution: Solution, folder: Path) -> tuple[Path, list[str]]:
    """Write the corrected robot to a folder.

    Loading it gives the same inertial parameters and friction. `package://` paths are unchanged if the
    package can be found independently of the original location of the file; meshes with all other paths are
    copied.

    Args:
        solution: to write.
        folder: must exist.

    Returns:
        The path of the URDF, and a note about meshes that were not found.
    """
    model = solution.columns.model
    missing: list[str] = []
    text = _COMMENT.split(solution.model().to_urdf())
    moved = _Meshes(model.urdf.path, folder, missing)
    for i in range(0, len(text), 2):  # every second part is a comment
        text[i] = _MESH.sub(moved.replace, text[i])
    path = folder / f'{robot_file_name(model.name)}.urdf'
    path.write_text(''.join(text), encoding='utf-8')
    return path, _missing_note(list(dict.fromkeys(missing)))


def _missing_note(names: list[str]) -> list[str]:
    """One note about all meshes that were not found."""
    if not names:
        return []
    more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
    return [f'meshes were not found: {", ".join(names[:_SHOWN])}{more}; the new URDF has the same paths']


class _Meshes:
    """Copies meshes, and returns their new paths."""

    def __init__(self, urdf_path: str, folder: Path, missing: list[str]) -> None:
        self.urdf_path, self.folder, self.missing = urdf_path, folder, missing
        self.package = Path(package_folder(urdf_path)) if urdf_path else None

    def replace(self, match: re.Match[str]) -> str:
        quoted = match.group(2)
        name = unescape(quoted[1:-1], {'&quot;': '"', '&apos;': "'"})
        new = self._moved(name)
        return match.group(1) + quoted[0] + escape(new, {'"': '&quot;', "'": '&apos;'}) + quoted[0]

    def _moved(self, name: str) -> str:
        """The path of a mesh in the new file."""
        if self.package is None or not name.strip():
            return name
        if re.match(r'(package|model):', name, re.IGNORECASE) and _found(name, '') is not None:
            return name
        source = _found(name, self.urdf_path)
        if source is None:
            # Nothing to copy; but a path that leads out of the new folder would make loading fail.
            if re.match(r'(package|model):', name, re.IGNORECASE):
                return name
            self.missing.append(name)
            return f'{_MESH_FOLDER}/{Path(name).name}'
        inside = source.is_relative_to(self.package)
        relative = source.relative_to(self.package) if inside else Path(_MESH_FOLDER) / source.name
        if relative.parts[0] != _MESH_FOLDER:
            relative = Path(_MESH_FOLDER) / relative
        target = self.folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        for each in (source, *(source.with_suffix(ending) for ending in _BESIDE)):
            if each.is_file():
                shutil.copyfile(each, target.with_suffix(each.suffix))
        return relative.as_posix()


def _found(name: str, urdf_path: str) -> Path | None:
    try:
        return find_mesh(name, urdf_path)
    except MeshError:
        return None
