# SPDX-License-Identifier: Apache-2.0
"""The Mini Cheetah from the published numbers of the MIT simulator, and the figures of its unit test.

Written without a look at the bundled URDF, so that the two check each other. Frames are aligned with the
body; upstream turns the hip frame by Rz(pi), so its hip and knee angles (velocities, torques) have the other
sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from reference_plain import Rotor, rotation_of_quaternion, turn

LEGS = ('FL', 'FR', 'RL', 'RR')
GEARS = (6.0, 6.0, 9.33)
ROTOR_MASS, ROTOR_ACROSS, ROTOR_AXIAL = 0.055, 33e-6, 63e-6  # [kg], [kg m^2]
X, Y, Z = np.eye(3)

# Left leg: mass [kg], com [m], (Ixx, Iyy, Izz, Ixy, Ixz, Iyz) about the com [1e-6 kg m^2], axes of the link.
ABAD = 0.54, (0.0, 0.036, 0.0), (381.0, 560.0, 444.0, 58.0, 0.45, 0.95)
# Published in the turned hip frame as com (0, 0.016, -0.02), Ixz 13, Iyz 1.5; Rz(pi) turns these signs over.
HIP = 0.634, (0.0, -0.016, -0.02), (1983.0, 2103.0, 408.0, 245.0, -13.0, -1.5)
KNEE = 0.064, (0.0, 0.0, -0.061), (245.0, 248.0, 6.0, 0.0, 0.0, 0.0)  # diag(6, 248, 245) turned by Ry(pi/2)
BODY = 3.3, (0.0, 0.0, 0.0), (11253.0, 36203.0, 42673.0, 0.0, 0.0, 0.0)


def urdf() -> str:
    """The robot as URDF text, without rotors; feet on fixed joints."""
    lines = ['<robot name="mini_cheetah_published">', _link('body', BODY, 1.0)]
    for leg in LEGS:
        x, y = (0.19 if leg[0] == 'F' else -0.19), (1.0 if leg[1] == 'L' else -1.0)
        for link, data in (('abad', ABAD), ('hip', HIP), ('knee', KNEE)):
            lines.append(_link(f'{leg}_{link}', data, y))
        lines.append(f'<link name="{leg}_tip"/>')
        lines += [
            _joint(leg, 'abad', 'body', (x, 0.049 * y, 0.0), '1 0 0'),
            _joint(leg, 'hip', f'{leg}_abad', (0.0, 0.062 * y, 0.0), '0 1 0'),
            _joint(leg, 'knee', f'{leg}_hip', (0.0, 0.0, -0.209), '0 1 0'),
            _joint(leg, 'tip', f'{leg}_knee', (0.0, 0.004 * y, -0.195), None),
        ]
    return '\n'.join([*lines, '</robot>'])


def _link(name: str, data: tuple, y: float) -> str:
    mass, com, (xx, yy, zz, xy, xz, yz) = data
    values = {'ixx': xx, 'iyy': yy, 'izz': zz, 'ixy': xy * y, 'ixz': xz, 'iyz': yz * y}  # mirrored in y
    inertia = ' '.join(f'{key}="{value * 1e-6!r}"' for key, value in values.items())
    return (
        f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1] * y} {com[2]}"/>'
        f'<mass value="{mass}"/><inertia {inertia}/></inertial></link>'
    )


def _joint(leg: str, link: str, parent: str, xyz: tuple, axis: str | None) -> str:
    kind, axis_element = ('fixed', '') if axis is None else ('continuous', f'<axis xyz="{axis}"/>')
    return (
        f'<joint name="{leg}_{link}_joint" type="{kind}"><origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}"/>'
        f'<parent link="{parent}"/><child link="{leg}_{link}"/>{axis_element}</joint>'
    )


def joint_names() -> list[str]:
    """Joints in our order."""
    return [f'{leg}_{link}_joint' for leg in LEGS for link in ('abad', 'hip', 'knee')]


def rotors() -> list[Rotor]:
    """The twelve rotors as bodies of their own, for joints in the order of joint_names()."""
    result = []
    for k, leg in enumerate(LEGS):
        x, y = (0.125 if leg[0] == 'F' else -0.125), (1.0 if leg[1] == 'L' else -1.0)
        places = ((x, 0.049 * y, 0.0), X), ((0.0, 0.04 * y, 0.0), Y), ((0.0, 0.0, 0.0), Y)
        for j, (place, axis) in enumerate(places):
            inertia = ROTOR_ACROSS * np.eye(3) + (ROTOR_AXIAL - ROTOR_ACROSS) * np.outer(axis, axis)
            result.append(Rotor(3 * k + j, ROTOR_MASS, np.array(place), inertia, axis, GEARS[j]))
    return result


@dataclass(frozen=True)
class Figures:
    """State of the published test in our conventions, its answer as published.

    Attributes:
        q, u, tau: (19,), (18,), (18,), legs FL FR RL RR.
        base_acceleration: (6,) [angular; linear] spatial acceleration in the body frame, gravity included.
        joint_acceleration: (12,) legs FR FL HR HL.
    """

    q: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    base_acceleration: np.ndarray
    joint_acceleration: np.ndarray

    def mismatch(self, du: np.ndarray) -> np.ndarray:
        """(18,) our du against the answer, in units of half its sixth digit: at most 1 if they agree."""
        R_WB, w_B = rotation_of_quaternion(self.q[3:7]), self.u[3:6]
        # the linear part of a spatial acceleration is dv_B/dt; R_WB^T dv_W has w x v_B more
        linear = R_WB.T @ du[:3] - np.cross(w_B, R_WB.T @ self.u[:3])
        answer = np.concatenate([du[3:6], linear, _exchange_legs(du[6:])])
        published = np.concatenate([self.base_acceleration, self.joint_acceleration])
        half_digit = 0.5 * 10.0 ** (np.floor(np.log10(np.abs(published))) - 5.0)
        return np.abs(answer - published) / half_digit


def _exchange_legs(values: np.ndarray) -> np.ndarray:
    """FR FL HR HL <-> FL FR RL RR; hip and knee change sign (Rz(pi) of the hip frame)."""
    return (values.reshape(4, 3)[[1, 0, 3, 2]] * [1.0, -1.0, -1.0]).ravel()


def figures() -> Figures:
    """The published state and answer."""
    # (w, x, y, z) = (.98948063, -.06736233, -.06209712, -.11195691) is the attitude of the body in the world,
    # the product of passive (coordinate) rotations Rx(.123) Rz(.232) Ry(.111): hence the minus signs
    R_WB = turn(X, -0.123) @ turn(Z, -0.232) @ turn(Y, -0.111)
    i = np.arange(1.0, 13.0)
    w_B, v_B = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    return Figures(
        q=np.concatenate([[6.0, 7.0, 8.0], quaternion_of(R_WB), _exchange_legs(i)]),
        u=np.concatenate([R_WB @ v_B, w_B, _exchange_legs(2.0 * i)]),
        tau=np.concatenate([np.zeros(6), _exchange_legs(-3.0 * i)]),
        base_acceleration=np.array([1217.31, -182.793, -171.524, -4.09393, 33.6798, -59.975]),
        joint_acceleration=np.array(
            [
                [-1946.36, -1056.62, -1470.57],
                [-3133.03, -1263.89, -2626.9],
                [-6637.38, -4071.88, -4219.14],
                [-7554.08, -3392.44, -5112.85],
            ]
        ).ravel(),
    )


def quaternion_of(R: np.ndarray) -> np.ndarray:
    """X y z w of a rotation by less than half a turn."""
    w = 0.5 * np.sqrt(1.0 + np.trace(R))
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4.0 * w * w]) / (4.0 * w)
