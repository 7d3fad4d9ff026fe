# SPDX-License-Identifier: Apache-2.0
"""Geared rotors in Pinocchio, which knows none: each is a link of its own on a continuous joint of the URDF.

The rotor's joint turns gear times as fast as the joint it drives, v_full = G u with a constant G, so that
M = G^T M_full G, tau = G^T tau_full, C = G^T C_full G. Nothing of quad_dynamics is used.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reference_pinocchio import PinocchioReference, read_urdf


@dataclass(frozen=True)
class RotorLink:
    """One rotor, symmetric about its axis; position [m] and unit axis in the frame of the joint's parent."""

    joint: str
    parent: str
    gear: float
    mass: float
    position: np.ndarray
    axis: np.ndarray
    axial: float
    across: float

    @property
    def inertia(self) -> np.ndarray:
        """(3, 3) about the com, axes of the parent link [kg m^2]."""
        return self.across * np.eye(3) + (self.axial - self.across) * np.outer(self.axis, self.axis)


def random_rotors(source: str | Path, seed: int, heavy: float = 1.0) -> list[RotorLink]:
    """Rotors for most joints of a URDF, some on axes of their own and some turning backwards."""
    rng, rotors = np.random.default_rng([seed, 23]), []
    for joint in ET.fromstring(read_urdf(source)).findall('joint'):
        if joint.get('type') == 'fixed' or rng.random() < 0.2:
            continue
        axis = rng.normal(size=3)
        gear, axial = rng.uniform(3.0, 12.0) * rng.choice([1.0, -1.0]), heavy * rng.uniform(1e-4, 1e-3)
        rotors.append(
            RotorLink(
                joint=str(joint.get('name')),
                parent=str(joint.find('parent').get('link')),
                gear=float(gear),
                mass=heavy * float(rng.uniform(0.05, 0.5)),
                position=rng.uniform(-0.2, 0.2, 3),
                axis=axis / np.linalg.norm(axis),
                axial=float(axial),
                across=float(axial * rng.uniform(0.5, 1.0)),
            )
        )
    return rotors


def description(rotors: Sequence[RotorLink]) -> dict[str, Any]:
    """The rotors as a robot description of quad_dynamics."""
    items = {}
    for rotor in rotors:
        inertia = rotor.inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        items[rotor.joint] = {
            'gear': rotor.gear,
            'mass': rotor.mass,
            'position': rotor.position.tolist(),
            'axis': rotor.axis.tolist(),
            'inertia': inertia.tolist(),
        }
    return {'rotors': items}


def urdf_with_rotors(source: str | Path, rotors: Sequence[RotorLink]) -> str:
    """URDF text with a link and a continuous joint added for each rotor."""
    root = ET.fromstring(read_urdf(source))
    for rotor in rotors:
        link = ET.SubElement(root, 'link', name=f'{rotor.joint}_rotor_link')
        inertial = ET.SubElement(link, 'inertial')
        ET.SubElement(inertial, 'mass', value=repr(rotor.mass))
        names = {'ixx': (0, 0), 'ixy': (0, 1), 'ixz': (0, 2), 'iyy': (1, 1), 'iyz': (1, 2), 'izz': (2, 2)}
        ET.SubElement(
            inertial, 'inertia', {name: repr(float(rotor.inertia[ij])) for name, ij in names.items()}
        )
        joint = ET.SubElement(root, 'joint', name=f'{rotor.joint}_rotor', type='continuous')
        ET.SubElement(joint, 'origin', xyz=' '.join(repr(float(x)) for x in rotor.position))
        ET.SubElement(joint, 'parent', link=rotor.parent)
        ET.SubElement(joint, 'child', link=f'{rotor.joint}_rotor_link')
        ET.SubElement(joint, 'axis', xyz=' '.join(repr(float(x)) for x in rotor.axis))
    return ET.tostring(root, encoding='unicode')


class GearedReference:
    """A robot with rotors; methods as those of PinocchioReference."""

    def __init__(
        self, source: str | Path, floating_base: bool, joint_names: Sequence[str], rotors: Sequence[RotorLink]
    ) -> None:
        """Build from URDF text or path and the rotors that it has in addition."""
        names = [*joint_names, *(f'{rotor.joint}_rotor' for rotor in rotors)]
        self.full = PinocchioReference(urdf_with_rotors(source, rotors), floating_base, names)
        nv = self.full.base + len(joint_names)
        self.G = np.vstack([np.eye(nv), np.zeros((len(rotors), nv))])
        self.selection = [list(joint_names).index(rotor.joint) for rotor in rotors]
        self.gears = np.array([rotor.gear for rotor in rotors])
        for k, joint in enumerate(self.selection):
            self.G[nv + k, self.full.base + joint] = self.gears[k]
        self.nj = len(joint_names)

    def q_full(self, q: np.ndarray) -> np.ndarray:
        """Q with the angles of the rotors."""
        return np.concatenate([q, self.gears * q[len(q) - self.nj :][self.selection]])

    def mass_matrix(self, q) -> np.ndarray:
        """(nv, nv)."""
        return self.G.T @ self.full.mass_matrix(self.q_full(q)) @ self.G

    def coriolis_matrix(self, q, u) -> np.ndarray:
        """(nv, nv)."""
        return self.G.T @ self.full.coriolis_matrix(self.q_full(q), self.G @ u) @ self.G

    def inverse_dynamics(self, q, u, du, f_ext=None) -> np.ndarray:
        """(nv,)."""
        return self.G.T @ self.full.inverse_dynamics(self.q_full(q), self.G @ u, self.G @ du, f_ext)

    def forward_dynamics(self, q, u, tau, f_ext=None) -> np.ndarray:
        """(nv,) by a dense solve."""
        return np.linalg.solve(self.mass_matrix(q), tau - self.inverse_dynamics(q, u, 0.0 * u, f_ext))

    def energy(self, q, u) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        return self.full.energy(self.q_full(q), self.G @ u)

    def center_of_mass(self, q) -> np.ndarray:
        """(3,); of a floating base only, since rotors on an immobile root count here as moving."""
        return self.full.center_of_mass(self.q_full(q))

    def centroidal_momentum_matrix(self, q) -> np.ndarray:
        """(6, nv), of a floating base only."""
        return self.full.centroidal_momentum_matrix(self.q_full(q)) @ self.G

    def centroidal_bias(self, q, u) -> np.ndarray:
        """(6,), of a floating base only."""
        return self.full.centroidal_bias(self.q_full(q), self.G @ u)

    def point_jacobian(self, q, link: str, offset) -> np.ndarray:
        """(3, nv)."""
        return self.full.point_jacobian(self.q_full(q), link, offset) @ self.G
