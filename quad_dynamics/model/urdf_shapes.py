# SPDX-License-Identifier: Apache-2.0
"""Reads <visual>, <collision> and <material>. Errors of visuals are warnings: they do not affect dynamics."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from quad_dynamics.model.mesh_paths import MeshPaths
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import Geometry, Material, Shape
from quad_dynamics.model.urdf_elements import ElementReader, elements, vector3
from quad_dynamics.model.xml_tree import XmlTree

_COSMETIC = 'errors of visuals and materials ({n}), which affect neither dynamics nor contact: {}'
_MOVED = (
    "absolute paths outside the robot's package ({n}); "
    'files in the package with the same path ending are used: {}'
)
_UNUSABLE = 'invalid paths ({n}), so that meshes or textures are missing: {}'


class ShapeReader(ElementReader):
    """Reads shapes that affect contact; `looks` reads the others, and materials."""

    def __init__(self, tree: XmlTree, problems: Problems, mesh_paths: MeshPaths) -> None:
        super().__init__(tree, problems)
        self.mesh_paths = mesh_paths
        self.looks: ShapeReader = LookReader(tree, problems, mesh_paths)

    def shape(self, element: Element, where: str) -> Shape | None:
        """Read a <visual> or <collision>; None if it has no valid geometry."""
        where = f'{where}: {element.tag}'
        origin = self.origin(element, where)
        geometry = self.child(element, 'geometry', where, self.geometry)
        if element.find('geometry') is None:
            self.problems.error(f'{where} has no <geometry>')
        material = self.looks.child(element, 'material', where, self.looks.material)
        if geometry is None:
            return None
        return Shape(geometry, origin, element.get('name', ''), material)

    def geometry(self, element: Element, where: str) -> Geometry | None:
        """Read a <geometry>; None if it is invalid."""
        shapes = list(elements(element))
        if len(shapes) != 1:
            found = ', '.join(f'<{shape.tag}>' for shape in shapes) or 'none'
            self.problems.error(f'{where}: <geometry> must contain exactly one shape; found {found}')
            return None
        shape = shapes[0]
        if shape.tag == 'mesh':
            return self._mesh(shape, where)
        if shape.tag == 'box':
            size = self.numbers(shape, 'size', 3, f'{where}: box')
        elif shape.tag == 'sphere':
            size = self.numbers(shape, 'radius', 1, f'{where}: sphere')
        elif shape.tag in ('cylinder', 'capsule'):
            radius = self.numbers(shape, 'radius', 1, f'{where}: {shape.tag}')
            length = self.numbers(shape, 'length', 1, f'{where}: {shape.tag}')
            size = radius + length if radius and length else None
        else:
            self.problems.error(
                f'{where}: unknown geometry <{shape.tag}>; expected box, cylinder, sphere, capsule or mesh'
            )
            return None
        if size is None:
            return None
        if min(size) < 0.0:
            self.problems.error(f'{where}: {shape.tag} has the negative size {min(size):g}')
            return None
        return Geometry(str(shape.tag), size)

    def _mesh(self, element: Element, where: str) -> Geometry | None:
        filename = element.get('filename')
        if filename is None:
            self.problems.error(f'{where}: mesh has no filename')
            return None
        self._path(filename, f'{where}: mesh path')
        scale: tuple[float, ...] | None = (1.0, 1.0, 1.0)
        if element.get('scale') is not None:
            scale = self.numbers(element, 'scale', 3, f'{where}: mesh')
        return Geometry('mesh', (), filename, vector3(scale or (1.0, 1.0, 1.0)))

    def material(self, element: Element, where: str) -> Material:
        """Read a <material>."""
        where = f"{where}: material '{element.get('name', '')}'"
        color, texture = element.find('color'), element.find('texture')
        rgba = None
        if color is not None:
            values = self.numbers(color, 'rgba', 4, where)
            rgba = (values[0], values[1], values[2], values[3]) if values else None
        filename = '' if texture is None else texture.get('filename', '')
        if filename:
            self._path(filename, f'{where}: texture path')
        return Material(element.get('name', ''), rgba, filename)

    def _path(self, filename: str, where: str) -> None:
        """Report a path that cannot be used as written."""
        problem = self.mesh_paths.problem(filename)
        if not problem:
            return
        if self.mesh_paths.in_own_package(filename) is not None:
            self.problems.warn(_MOVED, filename)
        else:
            self.problems.warn(_UNUSABLE, f'{where} {problem}')


class LookReader(ShapeReader):
    """Reads visuals: all their errors become warnings."""

    def __init__(self, tree: XmlTree, problems: Problems, mesh_paths: MeshPaths) -> None:
        ElementReader.__init__(self, tree, problems.doubting(_COSMETIC))
        self.mesh_paths = mesh_paths
        self.looks = self

    def several(self, element: Element, tag: str, where: str) -> None:
        """Use the first; published files have a <material> for each part of a mesh."""
        link = where.partition("link '")[2].partition("' (line ")[0]
        self.problems.warn(
            f'{element.tag}s with more than one <{tag}>, on {{n}} of the links; the first is used: {{}}',
            link or where,
        )
