# SPDX-License-Identifier: Apache-2.0
"""Vertices of mesh files (STL, OBJ, COLLADA), for uses that need only the convex hull of a mesh.

Only vertices that belong to a face are used: published files have others far outside. Normals, materials and
textures are ignored, so no other file is ever opened. Files are not trusted: sizes are limited, and COLLADA
is parsed without entities. As in RViz, the unit of a COLLADA file is used and its up axis is ignored.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.model.mesh_paths import MeshPaths, package_folder
from quad_dynamics.model.packages import package_folders
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.model.stance import rotation_about
from quad_dynamics.model.xml_tree import XmlError, decode_xml, parse_xml

MOST_BYTES = 256 * 1024 * 1024
_LONGEST_NUMBER = 64  # characters
_MOST_NODES = 10_000  # of a COLLADA scene
_FACE = re.compile(rb'^[ \t]*f[ \t]+([^\r\n]*)', re.MULTILINE)
_FACES = ('triangles', 'polylist', 'polygons', 'tristrips', 'trifans')
_NUMBERS = re.compile(rb'^[ \t]*v(?:ertex)?[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)', re.MULTILINE)


class MeshError(Exception):
    """A mesh cannot be used; the message gives the reason, as the end of a sentence about the file."""


def find_mesh(filename: str, urdf_path: str) -> Path:
    """The file that a path in a URDF refers to.

    A `package://NAME/...` is looked for in the package NAME (see `packages`), then in the URDF's own package,
    regardless of its name. An absolute path of another machine is looked for in the URDF's own package.

    Args:
        filename: as written in the URDF.
        urdf_path: path of the URDF file; '' for text.

    Raises:
        MeshError: there is no such file, or the path leaves the package.
    """
    paths = MeshPaths(urdf_path)
    problem = paths.problem(filename)
    if problem:
        moved = paths.in_own_package(filename)
        if moved is None:
            raise MeshError(problem.removeprefix(f"'{filename}' "))
        return moved
    path = unquote(filename).replace('\\', '/').strip()
    scheme, _, rest = path.partition('://')
    if scheme.lower() in ('package', 'model'):
        name, _, inner = rest.lstrip('/').partition('/')
        folders = package_folders(name, urdf_path)
        folders += [Path(package_folder(urdf_path))] if urdf_path else []
        candidates = [folder / inner for folder in folders]
    else:
        plain = re.sub(r'^file:/*', '/', path, flags=re.IGNORECASE)
        folder = Path(os.path.normpath(Path.cwd() / urdf_path)).parent
        candidates = [Path(os.path.normpath(folder / plain))]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise MeshError('was not found')


def read_vertices(path: Path) -> Floats:
    """Vertices (n, 3) of a mesh file, n > 0; may contain duplicates.

    Raises:
        MeshError: the file cannot be read, is invalid, empty or too large, or has an unsupported format.
    """
    reader = {'.stl': _read_stl, '.obj': _read_obj, '.dae': _read_dae}.get(path.suffix.lower())
    if reader is None:
        raise MeshError('has an unsupported format; expected .stl, .obj or .dae')
    reason = why_unreadable(path, 'a mesh', MOST_BYTES)
    if reason:
        raise MeshError(reason)
    try:
        vertices = reader(path.read_bytes())
    except OSError as error:
        raise MeshError(f'cannot be read: {error.strerror}') from error
    except (ValueError, IndexError, OverflowError, XmlError) as error:
        raise MeshError(f'is invalid: {error}') from error
    if len(vertices) == 0:
        raise MeshError('has no vertices')
    if not np.isfinite(vertices).all():
        raise MeshError('has vertices that are not finite')
    return vertices


def _read_stl(raw: bytes) -> Floats:
    n = int.from_bytes(raw[80:84], 'little') if len(raw) >= 84 else 0
    # Binary files may start with 'solid', too, but contain zero bytes, at the latest in the number of
    # triangles.
    if raw.lstrip()[:5].lower() == b'solid' and b'\0' not in raw[:84]:
        return _text_vertices(raw)
    if len(raw) < 84 + 50 * n or len(raw) < 84:
        raise ValueError(f'{len(raw)} bytes; expected {84 + 50 * n} for {n} triangles')
    triangle = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('attribute', '<u2')])
    corners = np.frombuffer(raw, triangle, n, 84)['corners']
    return np.unique(corners.reshape(-1, 3), axis=0).astype(np.float64)


def _read_obj(raw: bytes) -> Floats:
    vertices = _text_vertices(raw)
    corners = b' '.join(_FACE.findall(raw)).split()
    indices = _as_bytes([corner.partition(b'/')[0] for corner in corners]).astype(np.int64)
    if (indices <= 0).any():  # relative to the position of the face; using all vertices is safe
        return vertices
    return _used(vertices, indices - 1)


def _used(vertices: Floats, indices: Ints) -> Floats:
    """The vertices with these indices, each once; all if there are no faces."""
    if len(indices) == 0:
        return vertices
    unique = np.unique(indices)
    if unique[0] < 0 or unique[-1] >= len(vertices):
        raise ValueError(f'a face refers to vertex {unique[-1] + 1} of {len(vertices)}')
    return vertices[unique]


def _text_vertices(raw: bytes) -> Floats:
    found = _NUMBERS.findall(raw)
    return _as_bytes([number for vertex in found for number in vertex]).astype(np.float64).reshape(-1, 3)


def _as_bytes(words: list[bytes]) -> npt.NDArray[np.bytes_]:
    """Tokens as an array of fixed-length byte strings."""
    longest = max(map(len, words), default=0)
    if longest > _LONGEST_NUMBER:
        raise ValueError(f'it has a number of {longest} characters; expected at most {_LONGEST_NUMBER}')
    return np.array(words, dtype=np.bytes_)


# ---- COLLADA


def _read_dae(raw: bytes) -> Floats:
    """Vertices of all geometries in the scene [m]."""
    root = parse_xml(decode_xml(raw)).root
    by_id = {element.get('id', ''): element for element in root.iter() if isinstance(element.tag, str)}
    unit = next(iter(_below(root, 'asset/unit')), None)
    scale = float(unit.get('meter', '1')) if unit is not None else 1.0
    shown = [
        by_id.get(each.get('url', '').removeprefix('#'))
        for each in _below(root, 'scene/instance_visual_scene')
    ]
    nodes = [node for scene in shown if scene is not None for node in _below(scene, 'node')]
    instances = _instances(nodes, by_id)
    if not instances:  # a library of geometries without a scene
        instances = [(geometry, np.eye(4)) for geometry in _below(root, 'library_geometries/geometry')]
    clouds = [_moved(_positions(geometry, by_id), X) for geometry, X in instances]
    return scale * np.concatenate([np.zeros((0, 3)), *clouds])


def _instances(nodes: list[Element], by_id: dict[str, Element]) -> list[tuple[Element, Floats]]:
    """The geometries below some nodes, with their transforms.

    Nodes may refer to others, and in a broken file to themselves, so their number is limited.
    """
    found: list[tuple[Element, Floats]] = []
    waiting = [(node, np.eye(4)) for node in nodes]
    n_visited = 0
    while waiting:
        n_visited += 1
        if n_visited > _MOST_NODES:
            raise ValueError(f'its scene has more than {_MOST_NODES} nodes')
        node, X = waiting.pop()
        for child in node:
            if _tag(child) in ('matrix', 'translate', 'rotate', 'scale'):
                X = X @ _transform(_tag(child), _floats(child))
        for child in node:
            target = by_id.get(child.get('url', '').removeprefix('#'))
            if _tag(child) == 'node':
                waiting.append((child, X))
            elif _tag(child) == 'instance_node' and target is not None:
                waiting.append((target, X))
            elif _tag(child) == 'instance_geometry' and target is not None:
                found.append((target, X))
    return found


def _transform(tag: str, values: Floats) -> Floats:
    X = np.eye(4)
    if tag == 'matrix':
        return values.reshape(4, 4)
    if tag == 'translate':
        X[:3, 3] = values
    elif tag == 'scale':
        X[:3, :3] = np.diag(values)
    elif np.linalg.norm(values[:3]) > 0.0:
        X[:3, :3] = rotation_about(values[:3] / np.linalg.norm(values[:3]), float(np.radians(values[3])))
    return X


def _positions(geometry: Element, by_id: dict[str, Element]) -> Floats:
    """Vertices of one geometry that are used by its faces."""
    clouds = []
    for mesh in _below(geometry, 'mesh'):
        indices = [_vertex_indices(child) for child in mesh if _tag(child) in _FACES]
        used = np.concatenate([np.zeros(0, dtype=np.int64), *indices])
        for entry in _below(mesh, 'vertices/input'):
            source = by_id.get(entry.get('source', '').removeprefix('#'))
            if entry.get('semantic') == 'POSITION' and source is not None:
                clouds.append(_used(_array(source), used))
    return np.concatenate([np.zeros((0, 3)), *clouds])


def _array(source: Element) -> Floats:
    accessors = _below(source, 'technique_common/accessor')
    stride = max(int(accessors[0].get('stride', '1')), 3) if accessors else 3
    rows = [_floats(array).reshape(-1, stride)[:, :3] for array in _below(source, 'float_array')]
    return np.concatenate([np.zeros((0, 3)), *rows])


def _vertex_indices(faces: Element) -> Ints:
    offsets = {entry.get('semantic'): int(entry.get('offset', '0')) for entry in _below(faces, 'input')}
    stride = 1 + max((int(entry.get('offset', '0')) for entry in _below(faces, 'input')), default=0)
    rows = [np.array((p.text or '').split(), dtype=np.int64) for p in _below(faces, 'p')]
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(row[offsets.get('VERTEX', 0) :: stride] for row in rows)]
    )


def _moved(points: Floats, X: Floats) -> Floats:
    with np.errstate(all='ignore'):  # values that are not finite are reported later
        return np.asarray(points @ X[:3, :3].T + X[:3, 3])


def _floats(element: Element) -> Floats:
    return np.array((element.text or '').split(), dtype=np.float64)


def _tag(element: Element) -> str:
    """Name without a namespace prefix; '' of comments."""
    return element.tag.rpartition(':')[2] if isinstance(element.tag, str) else ''


def _below(element: Element, path: str) -> list[Element]:
    """Elements at a path of names below an element."""
    found = [element]
    for name in path.split('/'):
        found = [child for parent in found for child in parent if _tag(child) == name]
    return found
