# SPDX-License-Identifier: Apache-2.0
"""Geared rotors: their contribution to the bodies that carry them and to the joints that they drive.

A rotor is mounted on the joint's PARENT body and rotates n times as fast as the joint. As a rigid part it
adds mass and inertia to the parent (`rotor_pi`); its own rotation adds n^2 I to the joint and couples the
joint's acceleration with that of the parent (the kernels do this from gear, axial inertia and axis).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import Pose, pose_of
from quad_dynamics.model.description import Rotor
from quad_dynamics.model.inertia import full_inertia, pi_of
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import Joint, Origin

# For values with three digits; a rotor that is less round than this is an error in the file.
_ROUNDNESS = 1e-3


@dataclass(frozen=True)
class RotorArrays:
    """As in Model: gear (nj,), inertia (nj,), axis (nj, 3), pi (10 nb,)."""

    gear: Floats
    inertia: Floats
    axis: Floats
    pi: Floats


def rotor_arrays(
    joints: list[Joint],
    rotors: dict[str, Rotor],
    poses: dict[str, Pose],
    carrier: list[int],
    n_bodies: int,
    problems: Problems,
) -> RotorArrays:
    """Collect the rotors of a robot.

    Args:
        joints: the nj movable joints.
        rotors: by joint name.
        poses: pose of each link in its body.
        carrier: (nj) index of each joint's parent body, -1 for an immobile root.
        n_bodies: number of bodies.
        problems: receives rotors that are not symmetric about their spin axis.
    """
    gear, inertia = np.ones(len(joints)), np.zeros(len(joints))
    axis, pi = np.zeros((len(joints), 3)), np.zeros((n_bodies, 10))
    for i, joint in enumerate(joints):
        rotor = rotors.get(joint.name)
        X_BP = poses[joint.parent]
        a_P = _spin_axis(joint, rotor)
        axis[i] = X_BP.R @ a_P
        if rotor is None:
            continue
        X_PR = pose_of(Origin(rotor.position, rotor.rpy))
        I_P = X_PR.R @ full_inertia(rotor.inertia) @ X_PR.R.T
        axial, transverse = _axial_and_transverse(I_P, a_P, joint.name, problems)
        gear[i], inertia[i] = rotor.gear, axial
        if carrier[i] >= 0:
            round_I_B = transverse * np.eye(3) + (axial - transverse) * np.outer(axis[i], axis[i])
            pi[carrier[i]] += pi_of(rotor.mass, (X_BP @ X_PR).p, round_I_B)
    return RotorArrays(gear, inertia, axis, pi.ravel())


def _spin_axis(joint: Joint, rotor: Rotor | None) -> Floats:
    """Unit spin axis (3,) in the joint's parent link frame."""
    if rotor is not None and rotor.axis is not None:
        axis = np.array(rotor.axis)
    else:
        axis = pose_of(joint.origin).R @ np.array(joint.axis)
    return np.asarray(axis / np.linalg.norm(axis))


def _axial_and_transverse(
    inertia: Floats, axis: Floats, joint: str, problems: Problems
) -> tuple[float, float]:
    axial = float(axis @ inertia @ axis)
    transverse = 0.5 * (float(np.trace(inertia)) - axial)
    round_inertia = transverse * np.eye(3) + (axial - transverse) * np.outer(axis, axis)
    miss, size = float(np.abs(inertia - round_inertia).max()), float(np.abs(inertia).max())
    where = f"quad_dynamics.rotors: rotor of joint '{joint}'"
    if miss > _ROUNDNESS * size:
        problems.error(
            f'{where}: inertia is not symmetric about the spin axis ({_show(axis)} in the parent link); '
            f'it deviates by {miss / size:.1%}'
        )
    elif axial < 0.0 or transverse < 0.0:
        problems.error(f'{where}: inertia is negative (axial {axial:g}, transverse {transverse:g} kg m^2)')
    return axial, transverse


def _show(axis: Floats) -> str:
    return ' '.join(f'{value + 0.0:.3g}' for value in axis)
