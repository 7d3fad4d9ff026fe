# SPDX-License-Identifier: Apache-2.0
"""The shapes of a terrain. They are solid, immutable, and validated at construction.

Positions are in the world, angles in radians. `mu` and `restitution` are the contact parameters of a shape;
None: those of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.memory.packing import rotation_to_axis
from quad_dynamics.model.inertia import rotation_of_rpy
from quad_dynamics.model.urdf import Vector3
from quad_dynamics.terrain import terrain_checks as checks
from quad_dynamics.terrain.terrain_checks import Check, WrongValueError, show
from quad_dynamics.terrain.terrain_heights import read_heights

_SURFACE: dict[str, Check] = {
    'mu': checks.optional(checks.number(low=0.0, what='a friction coefficient of at least 0')),
    'restitution': checks.optional(checks.number(low=0.0, high=1.0, what='a restitution from 0 to 1')),
}
_LENGTH = checks.number(above=0.0, what='a number above 0')


@dataclass(frozen=True)
class Shape:
    """Common base of all shapes.

    Attributes:
        mu: friction coefficient [-].
        restitution: ratio of the speeds after and before an impact [-].
    """

    checks: ClassVar[Mapping[str, Check]] = _SURFACE

    _: KW_ONLY
    mu: float | None = None
    restitution: float | None = None

    def __post_init__(self) -> None:
        self._keep({field.name: getattr(self, field.name) for field in fields(self)})

    def _keep(self, values: Mapping[str, Any]) -> None:
        kept, problems = type(self).check(values)
        if problems:
            raise checks.error_of(type(self).__name__, problems)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @classmethod
    def check(cls, values: Mapping[str, Any], where: str = '') -> tuple[dict[str, Any], list[str]]:
        """Validate the arguments of a shape.

        Args:
            values: by the name of the argument.
            where: prefix of the name in messages.

        Returns:
            The values to keep, and a message for each invalid one.
        """
        kept, problems = {}, []
        for name, value in values.items():
            try:
                kept[name] = cls.checks[name](value)
            except WrongValueError as wrong:
                problems.append(f'{where}{name} is {show(value)}; expected {wrong}')
        return kept, problems

    def parts(self) -> tuple[Plane | Box | HeightMap, ...]:
        """The simple shapes that it consists of."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plane(Shape):
    """The half space below a plane. Its slope is given either by a normal, or by roll and pitch.

    Attributes:
        normal: (3,) points out of the ground; it is normalised.
        roll: rotation of the level plane about x [rad].
        pitch: rotation about y [rad]; if positive, the plane descends towards +x.
        point: (3,) any point of the plane [m].
    """

    checks: ClassVar[Mapping[str, Check]] = {
        'normal': checks.optional(checks.direction),
        'roll': checks.number(),
        'pitch': checks.number(),
        'point': checks.vector,
        **_SURFACE,
    }

    normal: Vector3 | None = None
    roll: float = 0.0
    pitch: float = 0.0
    point: Vector3 = (0.0, 0.0, 0.0)

    @classmethod
    def check(cls, values: Mapping[str, Any], where: str = '') -> tuple[dict[str, Any], list[str]]:
        """As for all shapes; in addition, a normal and angles are mutually exclusive."""
        kept, problems = super().check(values, where)
        if kept.get('normal') is not None and (kept.get('roll') or kept.get('pitch')):
            problems.append(f'{where}normal is given together with roll or pitch; expected one or the other')
        return kept, problems

    @property
    def R_WS(self) -> Floats:
        """Axes of the plane; the third is its normal."""
        if self.normal is None:
            return rotation_of_rpy((self.roll, self.pitch, 0.0))
        R_WS: Floats = rotation_to_axis(np.array([self.normal]))[0]
        return R_WS

    def parts(self) -> tuple[Plane]:
        """Itself."""
        return (self,)


@dataclass(frozen=True)
class Box(Shape):
    """A box.

    Attributes:
        size: (3,) lengths of its edges [m].
        position: (3,) position of its centre [m].
        rpy: (3,) rotations about the fixed axes x, y, z, as in a URDF [rad].
    """

    checks: ClassVar[Mapping[str, Check]] = {
        'size': checks.lengths,
        'position': checks.vector,
        'rpy': checks.vector,
        **_SURFACE,
    }

    size: Vector3
    position: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)

    @property
    def R_WS(self) -> Floats:
        """Axes of the box."""
        return rotation_of_rpy(self.rpy)

    def parts(self) -> tuple[Box]:
        """Itself."""
        return (self,)


@dataclass(frozen=True)
class Stairs(Shape):
    """Stairs that ascend along their x axis, and optionally descend after the landing.

    Every step is a box that extends below all higher ones, so there are no seams between steps.

    Attributes:
        rise: height of a step [m].
        run: depth of a step [m].
        steps: number of risers.
        width: width of the stairs [m].
        position: (3,) at the foot of the first riser, in the middle of the width [m].
        yaw: direction in which they ascend, from the world's x axis [rad].
        landing: depth of the highest step [m]; None: same as the others.
        down: whether they descend again.
    """

    checks: ClassVar[Mapping[str, Check]] = {
        'rise': _LENGTH,
        'run': _LENGTH,
        'steps': checks.count,
        'width': _LENGTH,
        'position': checks.vector,
        'yaw': checks.number(),
        'landing': checks.optional(_LENGTH),
        'down': checks.flag,
        **_SURFACE,
    }

    rise: float
    run: float
    steps: int
    width: float = 1.0
    position: Vector3 = (0.0, 0.0, 0.0)
    yaw: float = 0.0
    landing: float | None = None
    down: bool = False

    def parts(self) -> tuple[Box, ...]:
        """One box for each step, the lowest and longest first."""
        landing = self.run if self.landing is None else self.landing
        return tuple(self._step(k, landing + (self.steps - 1) * self.run) for k in range(self.steps))

    def _step(self, k: int, end: float) -> Box:
        """The box of step k, of stairs whose landing ends at `end`."""
        start, height = k * self.run, (k + 1) * self.rise
        if self.down:
            end += (self.steps - 1 - k) * self.run
        middle, (x, y, z) = 0.5 * (start + end), self.position
        place = (x + middle * math.cos(self.yaw), y + middle * math.sin(self.yaw), z + 0.5 * height)
        size, rpy = (end - start, self.width, height), (0.0, 0.0, self.yaw)
        return Box(size, place, rpy, mu=self.mu, restitution=self.restitution)


@dataclass(frozen=True, eq=False)
class HeightMap(Shape):
    """The solid below a surface that is bilinear between the points of a grid. It has no bottom.

    Attributes:
        heights: (rows, columns) above `position` [m]; heights[0, 0] is at the lowest x and y, columns run
            along x, rows along y. The constructor also accepts the path of a .npy file or a grayscale .png
            image, whose values range from 0 (black) to 1 (white) and whose first row has the highest y.
        spacing: distance between neighbouring points [m].
        position: (3,) of the middle of the grid, at height zero [m].
        yaw: rotation about the vertical [rad].
    """

    checks: ClassVar[Mapping[str, Check]] = {
        'heights': read_heights,
        'spacing': _LENGTH,
        'position': checks.vector,
        'yaw': checks.number(),
        'scale': checks.number(),
        'offset': checks.number(),
        **_SURFACE,
    }

    heights: Floats | npt.ArrayLike | str
    spacing: float
    position: Vector3 = (0.0, 0.0, 0.0)
    yaw: float = 0.0
    scale: InitVar[float] = 1.0
    offset: InitVar[float] = 0.0

    def __post_init__(self, scale: float, offset: float) -> None:
        """Validate everything, and store the heights as offset + scale * value.

        Args:
            scale: [m] per unit of the values.
            offset: height of the value zero [m].
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        self._keep({**values, 'scale': scale, 'offset': offset})

    def _keep(self, values: Mapping[str, Any]) -> None:
        super()._keep(values)
        heights = self.__dict__.pop('offset') + self.__dict__.pop('scale') * self.grid
        heights.flags.writeable = False
        object.__setattr__(self, 'heights', heights)

    @property
    def grid(self) -> Floats:
        """The heights as an array."""
        return np.asarray(self.heights)

    @property
    def half(self) -> tuple[float, float]:
        """Half lengths along x and y [m]."""
        rows, columns = self.grid.shape
        return 0.5 * (columns - 1) * self.spacing, 0.5 * (rows - 1) * self.spacing

    @property
    def R_WS(self) -> Floats:
        """Axes of the map."""
        return rotation_of_rpy((0.0, 0.0, self.yaw))

    def parts(self) -> tuple[HeightMap]:
        """Itself."""
        return (self,)

    def _key(self) -> tuple[Any, ...]:
        place = (self.spacing, self.position, self.yaw, self.mu, self.restitution)
        return (*place, self.grid.shape, self.grid.tobytes())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, HeightMap) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.grid.flags.writeable = False  # pickling loses this flag


SHAPES: Mapping[str, type[Plane | Box | Stairs | HeightMap]] = {
    'plane': Plane,
    'box': Box,
    'stairs': Stairs,
    'height_map': HeightMap,
}
