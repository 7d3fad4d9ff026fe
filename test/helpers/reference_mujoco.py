# SPDX-License-Identifier: Apache-2.0
"""MuJoCo, asked for mass matrix and bias force of a URDF in the conventions of quad_dynamics.

MuJoCo's free joint has the velocity [linear, world axes, of the body frame's origin; angular, body axes], our
u; only the quaternion order (w first) and the order of the joints differ.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path

import mujoco
import numpy as np
from reference_pinocchio import read_urdf

DROPPED = ('visual', 'collision', 'gazebo', 'transmission', 'mujoco', 'material')


def bare_urdf(source: str | Path) -> str:
    """URDF text with nothing but what moves and weighs, and settings that leave it as it is."""
    root = ET.fromstring(read_urdf(source))
    for parent in list(root.iter()):
        for child in [c for c in parent if c.tag in DROPPED]:
            parent.remove(child)
    for link in root.iter(
        'link'
    ):  # MuJoCo attaches the children of a link named "world" to its immobile world
        if link.get('name') == 'world':
            link.set('name', 'renamed_world')
    for joint in root.iter('joint'):
        for end in (*joint.findall('parent'), *joint.findall('child')):
            if end.get('link') == 'world':
                end.set('link', 'renamed_world')
    settings = {
        'fusestatic': 'true',
        'balanceinertia': 'false',
        'boundmass': '0',
        'boundinertia': '0',
        'angle': 'radian',
    }
    ET.SubElement(ET.SubElement(root, 'mujoco'), 'compiler', settings)
    return ET.tostring(root, encoding='unicode')


def physical_urdf(source: str | Path) -> str:
    """URDF text whose inertias MuJoCo accepts: positive, no principal moment above the sum of the others.

    Several published files break this for small links; a multiple of the identity repairs it in any frame.
    All who are compared have to load the repaired text.
    """
    root = ET.fromstring(read_urdf(source))
    for inertial in root.iter('inertial'):
        inertia = inertial.find('inertia')
        if float(inertial.find('mass').get('value')) == 0.0:  # MuJoCo leaves out what has no mass
            continue
        xx, xy, xz, yy, yz, zz = (
            float(inertia.get(key, '0')) for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
        )
        low, middle, high = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        lack = max(high - low - middle, -low)
        if lack > -1e-12:
            for key, value in (('ixx', xx), ('iyy', yy), ('izz', zz)):
                inertia.set(key, repr(float(value + 1.01 * max(lack, 0.0) + 1e-9)))
    return ET.tostring(root, encoding='unicode')


class MujocoReference:
    """One robot in MuJoCo."""

    def __init__(
        self,
        source: str | Path,
        floating_base: bool,
        joint_names: Iterable[str],
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        armature: Sequence[float] | None = None,
    ) -> None:
        """Build from URDF text or path; joint_names gives the order of q_j."""
        spec = mujoco.MjSpec.from_string(bare_urdf(source))
        if floating_base:
            spec.worldbody.first_body().add_freejoint()
        self.model = spec.compile()
        self.model.opt.gravity[:] = gravity
        self.floating_base = floating_base
        joints = [self.model.joint(name) for name in joint_names]
        base = range(6 if floating_base else 0)
        self.iq = [int(joint.qposadr[0]) for joint in joints]
        self.iv = np.array([*base, *(int(joint.dofadr[0]) for joint in joints)], dtype=int)
        assert len(self.iv) == self.model.nv, f'{len(self.iv)} velocities, MuJoCo has {self.model.nv}'
        if armature is not None:
            self.model.dof_armature[self.iv[len(base) :]] = armature
        self.data = mujoco.MjData(self.model)

    def _forward(self, q: np.ndarray, u: np.ndarray | None = None) -> None:
        if self.floating_base:
            self.data.qpos[:3] = q[:3]
            self.data.qpos[3:7] = q[[6, 3, 4, 5]]
        self.data.qpos[self.iq] = q[len(q) - len(self.iq) :]
        self.data.qvel[self.iv] = 0.0 if u is None else u
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(nv, nv) with armature."""
        self._forward(q)
        M, column = np.empty((self.model.nv, self.model.nv)), np.empty(self.model.nv)
        for k, unit in enumerate(np.eye(self.model.nv)):  # the signature of mj_fullM differs between versions
            mujoco.mj_mulM(self.model, self.data, column, unit)
            M[:, k] = column
        return M[np.ix_(self.iv, self.iv)]

    def nonlinear_effects(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(nv,) qfrc_bias: Coriolis, centrifugal and gravity terms."""
        self._forward(q, u)
        return self.data.qfrc_bias[self.iv].copy()

    def total_mass(self) -> float:
        """Mass of all bodies [kg]."""
        return float(self.model.body_mass.sum())
