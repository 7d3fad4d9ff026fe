# SPDX-License-Identifier: Apache-2.0
"""Properties of a robot that URDF cannot express: feet, contact points, rotors, motors, standing pose.

They are read from a YAML file with the top key `quad_dynamics:` (docs/robot_description.md explains every
key), or derived from the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quad_dynamics.model.urdf import Vector3


@dataclass(frozen=True)
class ContactPoint:
    """A point of a link that can touch the ground.

    Attributes:
        name: unique among the points of a robot.
        link: name of the link.
        position: in the link's frame [m].
        radius: radius of the contact sphere about the position [m]; 0 for a point.
    """

    name: str
    link: str
    position: Vector3
    radius: float = 0.0


@dataclass(frozen=True)
class Rotor:
    """The rotor of a motor; it rotates `gear` times as fast as its joint and is carried by the parent link.

    Attributes:
        joint: name of the joint it drives.
        gear: rotor speed over joint speed [-]; negative if it rotates the other way.
        mass: [kg].
        inertia: [kg m^2] about its own com, (xx, xy, yy, xz, yz, zz) in its own frame; symmetric about the
            spin axis.
        position: of its com in the parent link's frame [m].
        rpy: of its frame in the parent link's frame [rad].
        axis: spin axis in the parent link's frame; None is the joint's axis.
    """

    joint: str
    gear: float
    mass: float = 0.0
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    position: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)
    axis: Vector3 | None = None


@dataclass(frozen=True)
class Motor:
    """Electrical limits of a joint's drive.

    Attributes:
        joint: name of the joint.
        torque_limit: before the gear [N m].
        voltage: of the battery [V].
        torque_constant: KT [N m/A].
        resistance: of the winding [Ohm].
        damping: viscous friction of the drive at the joint [N m s/rad]; the simulator adds it to the URDF's.
        dry_friction: Coulomb friction of the drive at the joint [N m]; likewise.
    """

    joint: str
    torque_limit: float
    voltage: float
    torque_constant: float
    resistance: float
    damping: float = 0.0
    dry_friction: float = 0.0


@dataclass(frozen=True)
class StandingPose:
    """Standing pose: height of the base frame above ground [m], joint positions [rad or m] by name."""

    base_height: float | None = None
    joints: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RobotDescription:
    """All properties that are not in the URDF.

    Attributes:
        floating_base: whether the base floats, None if not specified.
        feet: foot links, in leg order.
        leg_names: one per foot, () for automatic names.
        contact_points: the contact points.
        rotors: by name of joint.
        motors: by name of joint.
        standing: None if not specified.
        feet_from_tree: whether the feet were found, not given.
        contact_points_from_tree: whether the contact points were found, not given.
        foot_sources: for each foot at the end of a link (without a foot link): how that end was found,
            'collision', 'visual' or 'inertia'.
    """

    floating_base: bool | None = None
    feet: tuple[str, ...] = ()
    leg_names: tuple[str, ...] = ()
    contact_points: tuple[ContactPoint, ...] = ()
    rotors: dict[str, Rotor] = field(default_factory=dict)
    motors: dict[str, Motor] = field(default_factory=dict)
    standing: StandingPose | None = None
    feet_from_tree: bool = True
    contact_points_from_tree: bool = True
    foot_sources: dict[str, str] = field(default_factory=dict)
