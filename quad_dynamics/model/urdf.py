# SPDX-License-Identifier: Apache-2.0
"""The contents of a URDF file as plain immutable data, in SI units and rad."""

from __future__ import annotations

from dataclasses import dataclass, field

Vector3 = tuple[float, float, float]
Tensor = tuple[float, float, float, float, float, float]  # (xx, xy, yy, xz, yz, zz)

MOVABLE_TYPES = ('revolute', 'continuous', 'prismatic')
JOINT_TYPES = (*MOVABLE_TYPES, 'fixed')


@dataclass(frozen=True)
class Origin:
    """Pose in the parent's frame: `rpy` are rotations about the fixed axes x, y, z in order, R = Rz Ry Rx."""

    xyz: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], pose of the inertial frame (its origin is the com), and inertia about the com [kg m^2].

    Attributes:
        inertia: (ixx, ixy, iyy, ixz, iyz, izz), the order of the inertial parameters.
    """

    mass: float
    origin: Origin
    inertia: Tensor


@dataclass(frozen=True)
class Geometry:
    """A shape.

    Attributes:
        kind: 'box', 'cylinder', 'capsule', 'sphere' or 'mesh'.
        size: (x, y, z) of a box, (radius, length) of a cylinder or capsule, (radius,) of a sphere [m].
        filename: of a mesh, as written in the file.
        scale: of a mesh.
    """

    kind: str
    size: tuple[float, ...] = ()
    filename: str = ''
    scale: Vector3 = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Material:
    """Appearance of a visual. Without colour and texture it refers to the robot's material of that name."""

    name: str
    rgba: tuple[float, float, float, float] | None = None
    texture: str = ''


@dataclass(frozen=True)
class Shape:
    """One <visual> or <collision> of a link."""

    geometry: Geometry
    origin: Origin = Origin()
    name: str = ''
    material: Material | None = None


@dataclass(frozen=True)
class Link:
    """One link.

    Attributes:
        line: line at which it starts in the file.
        has_inertial: whether there is an <inertial>, even one that could not be read.
    """

    name: str
    inertial: Inertial | None = None
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()
    line: int = 0
    has_inertial: bool = False


@dataclass(frozen=True)
class Limit:
    """Bounds of a joint; None if not specified (rad or m; rad/s or m/s; N m or N)."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True)
class Mimic:
    """A joint declared to follow another: q = multiplier * q_other + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """One joint.

    Attributes:
        axis: as written in the file, not normalised; in the child link's frame.
        parent: name of the link above; '' if missing (the file is then rejected).
        child: name of the link below, likewise.
        damping: viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N].
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Origin = Origin()
    axis: Vector3 = (1.0, 0.0, 0.0)
    limit: Limit = Limit()
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    line: int = 0

    @property
    def is_movable(self) -> bool:
        """Whether it has a degree of freedom."""
        return self.type in MOVABLE_TYPES


@dataclass(frozen=True)
class Urdf:
    """A URDF file.

    Attributes:
        name: of the robot.
        links: in document order.
        joints: in document order.
        materials: those defined for the whole robot.
        text: the text that was read; writing a changed robot starts from it, so nothing of the file is lost.
        path: path of the file, '' if it was given as text.
        floating: whether the file declares a floating robot; the world link is omitted.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    materials: tuple[Material, ...] = ()
    text: str = field(default='', repr=False)
    path: str = ''
    floating: bool = False

    def link(self, name: str) -> Link:
        """The link of that name."""
        return next(link for link in self.links if link.name == name)

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        return next(joint for joint in self.joints if joint.name == name)
