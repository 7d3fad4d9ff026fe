# SPDX-License-Identifier: Apache-2.0
"""Robots so simple that their motion is known in closed form: URDF texts, and models made of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import reference_mini_cheetah as published
from cases import Case, load, model_of, pinocchio_of
from reference_contact import Point
from reference_pinocchio import PinocchioReference
from reference_rotors import GearedReference, RotorLink


def inertial(mass: float, moments: Sequence[float], com: Sequence[float] = (0.0, 0.0, 0.0)) -> str:
    """The <inertial> of a link, moments about the com."""
    xx, yy, zz = (repr(float(m)) for m in moments)
    xyz = ' '.join(repr(float(c)) for c in com)
    return (
        f'<inertial><origin xyz="{xyz}"/><mass value="{mass!r}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>'
    )


def joint(
    name: str,
    parent: str,
    child: str,
    axis: str,
    *,
    kind: str = 'revolute',
    xyz: str = '0 0 0',
    limits: tuple[float, float] = (-1e3, 1e3),
    effort: float = 1e6,
    damping: float = 0.0,
    friction: float = 0.0,
) -> str:
    """A joint with all that it can have."""
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="{axis}"/>'
        f'<limit lower="{limits[0]!r}" upper="{limits[1]!r}" effort="{effort!r}" velocity="1e6"/>'
        f'<dynamics damping="{damping!r}" friction="{friction!r}"/></joint>'
    )


# ---------------------------------------------------------------- free bodies


def ball_urdf(mass: float = 1.0, radius: float = 0.1) -> str:
    """A solid ball."""
    moment = 0.4 * mass * radius**2
    return (
        f'<robot name="ball"><link name="ball">{inertial(mass, [moment] * 3)}'
        f'<collision><geometry><sphere radius="{radius!r}"/></geometry></collision></link></robot>'
    )


def ball(mass: float = 1.0, radius: float = 0.1) -> Any:
    """A ball that touches with one point, the lowest of its sphere."""
    points = [{'name': 'skin', 'link': 'ball', 'position': [0.0, 0.0, 0.0], 'radius': radius}]
    return load(ball_urdf(mass, radius), floating_base=True, description={'contact_points': points})


def block_urdf(mass: float = 2.0, size: Sequence[float] = (0.4, 0.3, 0.2)) -> str:
    """A homogeneous cuboid about its origin."""
    x, y, z = np.square(size)
    moments = mass / 12.0 * np.array([y + z, x + z, x + y])
    text = ' '.join(repr(float(s)) for s in size)
    return (
        f'<robot name="block"><link name="block">{inertial(mass, moments)}'
        f'<collision><geometry><box size="{text}"/></geometry></collision></link></robot>'
    )


def corners(size: Sequence[float]) -> list[list[float]]:
    """The eight corners of a cuboid about the origin; the four lowest first."""
    half = 0.5 * np.asarray(size, dtype=float)
    signs = [(x, y, z) for z in (-1, 1) for x in (-1, 1) for y in (-1, 1)]
    return [[float(v) for v in half * sign] for sign in signs]


def block(mass: float = 2.0, size: Sequence[float] = (0.4, 0.3, 0.2)) -> Any:
    """A cuboid that touches with its corners."""
    points = [{'link': 'block', 'position': corner} for corner in corners(size)]
    return load(block_urdf(mass, size), floating_base=True, description={'contact_points': points})


# ---------------------------------------------------------------- one joint on the immobile world


def pendulum_urdf(mass: float = 1.0, length: float = 0.5, **options: Any) -> str:
    """A mass on a rod that hangs down at q = 0 and swings about y."""
    moments = [1e-3 * mass * length**2] * 3
    return (
        '<robot name="pendulum"><link name="mount"/>'
        f'<link name="bob">{inertial(mass, moments, (0.0, 0.0, -length))}</link>'
        f'{joint("swing", "mount", "bob", "0 1 0", **options)}</robot>'
    )


def pendulum(mass: float = 1.0, length: float = 0.5, **options: Any) -> Any:
    """A pendulum: inertia 1.001 m l^2, gravity torque -m g l sin q."""
    return load(pendulum_urdf(mass, length, **options), floating_base=False)


def wheel_urdf(moment: float = 0.02, **options: Any) -> str:
    """A balanced wheel about the vertical axis: gravity does nothing to it."""
    return (
        f'<robot name="wheel"><link name="mount"/><link name="disc">{inertial(1.0, [moment] * 3)}</link>'
        f'{joint("spin", "mount", "disc", "0 0 1", **options)}</robot>'
    )


def wheel(moment: float = 0.02, description: dict[str, Any] | None = None, **options: Any) -> Any:
    """A wheel with one joint."""
    return load(wheel_urdf(moment, **options), floating_base=False, description=description)


def cart_urdf(mass: float = 2.0, **options: Any) -> str:
    """A mass on a level rail along x."""
    return (
        f'<robot name="cart"><link name="rail"/><link name="cart">{inertial(mass, [0.01] * 3)}</link>'
        f'{joint("slide", "rail", "cart", "1 0 0", kind="prismatic", **options)}</robot>'
    )


def cart(mass: float = 2.0, **options: Any) -> Any:
    """A cart with one prismatic joint."""
    return load(cart_urdf(mass, **options), floating_base=False)


# ---------------------------------------------------------------- several joints


def chain_urdf(links: int = 5, mass: float = 0.5, length: float = 0.3, **options: Any) -> str:
    """Rods in a row, joints about y and x in turn."""
    rod = inertial(mass, [mass * length**2 / 12.0, mass * length**2 / 12.0, 1e-4], (0.0, 0.0, -0.5 * length))
    parts = [f'<robot name="chain"><link name="link0">{rod}</link>']
    for k in range(1, links):
        axis = '0 1 0' if k % 2 else '1 0 0'
        place = f'0 0 {-length!r}'
        parts.append(f'<link name="link{k}">{rod}</link>')
        parts.append(joint(f'joint{k}', f'link{k - 1}', f'link{k}', axis, xyz=place, **options))
    return ''.join([*parts, '</robot>'])


def chain(links: int = 5, floating: bool = True, length: float = 0.3, **options: Any) -> Any:
    """A chain that touches with the ends of its rods."""
    tips = [{'link': f'link{k}', 'position': [0.0, 0.0, -length]} for k in range(links)]
    description = {'contact_points': [{'link': 'link0'}, *tips]} if floating else None
    text = chain_urdf(links, length=length, **options)
    return load(text, floating_base=floating, description=description)


def sled_urdf(mass: float = 3.0, foot_mass: float = 0.5, **options: Any) -> str:
    """A block that stands on four vertical sliding feet, one below each corner."""
    parts = [f'<robot name="sled"><link name="body">{inertial(mass, [0.05, 0.06, 0.08])}</link>']
    for k, (x, y) in enumerate(((0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15))):
        parts.append(f'<link name="foot{k}">{inertial(foot_mass, [1e-3] * 3)}</link>')
        place = f'{x} {y} -0.2'
        parts.append(joint(f'leg{k}', 'body', f'foot{k}', '0 0 1', kind='prismatic', xyz=place, **options))
    return ''.join([*parts, '</robot>'])


def sled(**options: Any) -> Any:
    """A sled that touches with its feet."""
    feet = [f'foot{k}' for k in range(4)]
    description = {'feet': feet, 'contact_points': [{'link': foot} for foot in feet]}
    return load(sled_urdf(**options), floating_base=True, description=description)


# ---------------------------------------------------------------- poses


def upright(model: Any, height: float, joints: Sequence[float] | None = None) -> np.ndarray:
    """(nq,) base at a height above the origin, level."""
    q = np.concatenate([[0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0], np.zeros(model.nj)])
    if joints is not None:
        q[7:] = joints
    return q


def turn(axis: Sequence[float], angle: float) -> np.ndarray:
    """(3, 3) rotation about a unit axis."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def quaternion_about(axis: Sequence[float], angle: float) -> np.ndarray:
    """X y z w of a rotation about a unit axis."""
    return np.concatenate([np.sin(0.5 * angle) * np.asarray(axis, dtype=float), [np.cos(0.5 * angle)]])


def slope_axis(direction: float) -> np.ndarray:
    """Axis about which a level plane is turned so that it descends towards a direction [rad] from x."""
    return np.array([-np.sin(direction), np.cos(direction), 0.0])


def on_slope(q: np.ndarray, angle: float, direction: float) -> np.ndarray:
    """A pose on the level ground, turned with the ground about the origin."""
    axis = slope_axis(direction)
    a, b = quaternion_about(axis, angle), q[3:7]
    product = np.concatenate(
        [a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), [a[3] * b[3] - a[:3] @ b[:3]]]
    )
    return np.concatenate([turn(axis, angle) @ q[:3], product, q[7:]])


# ---------------------------------------------------------------- quadrupeds, with a reference

QUADRUPEDS = ('mini_cheetah', 'a1', 'go2', 'anymal_c')
# Drives that hold the weight: (kp [N m/rad], kd [N m s/rad]). A torque is held for a step: kd dt must stay
# well below the inertia of the lightest joint (5e-3 kg m^2 for go2), or feet that can give way chatter.
GAINS = {'mini_cheetah': (60.0, 2.0), 'a1': (200.0, 4.0), 'go2': (200.0, 4.0), 'anymal_c': (800.0, 20.0)}


@functools.cache
def quadruped(name: str) -> Any:
    """A bundled robot or one of example-robot-data, floating.

    go2 gets its contact points here: those of its meshes are many and take a second to find.
    """
    if name == 'mini_cheetah':
        return load('mini_cheetah')
    if name != 'go2':
        return model_of(Case(name, True))
    legs = ('FL', 'FR', 'RL', 'RR')
    points = [{'link': 'base', 'position': corner} for corner in corners((0.5, 0.2, 0.12))]
    points += [{'link': f'{leg}_calf', 'radius': 0.02} for leg in legs]
    points += [{'link': f'{leg}_foot', 'radius': 0.023} for leg in legs]
    return load(Case('go2', True).urdf, floating_base=True, description={'contact_points': points})


@functools.cache
def quadruped_reference(name: str) -> Any:
    """The same in Pinocchio; the rotors of the Mini Cheetah from its published figures."""
    if name != 'mini_cheetah':
        return pinocchio_of(Case(name, True))
    model = quadruped(name)
    parents = [link for leg in published.LEGS for link in ('base_link', f'{leg}_hip', f'{leg}_thigh')]
    rotors = [
        RotorLink(
            joint=model.joint_names[k],
            parent=parents[k],
            gear=rotor.gear,
            mass=rotor.mass,
            position=rotor.com,
            axis=rotor.axis,
            axial=published.ROTOR_AXIAL,
            across=published.ROTOR_ACROSS,
        )
        for k, rotor in enumerate(published.rotors())
    ]
    return GearedReference(model.to_urdf(), True, model.joint_names, rotors)


def simple_reference(model: Any) -> PinocchioReference:
    """Pinocchio's version of a model that has no rotors."""
    return PinocchioReference(model.to_urdf(), model.floating_base, model.joint_names)


def points_of(source: Any) -> list[Point]:
    """Contact points of a model's description, or of a simulator, for the reference."""
    points = getattr(source, 'contact_points', None)
    points = source.description.contact_points if points is None else points
    return [Point(p.link, tuple(p.position), p.radius) for p in points]
