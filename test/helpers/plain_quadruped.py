# SPDX-License-Identifier: Apache-2.0
"""A quadruped as URDF text whose last links are what a test asks for."""

from __future__ import annotations

INERTIA = '<inertia ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"/>'
PLACES = {'FL': (0.2, 0.1), 'FR': (0.2, -0.1), 'RL': (-0.2, 0.1), 'RR': (-0.2, -0.1)}
THIGH = CALF = 0.2  # lengths [m]


def inertial(mass: float, moment: float, z: float = 0.0) -> str:
    """The <inertial> of a link with equal moments."""
    return f'<inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/>{INERTIA.format(moment)}</inertial>'


def solid(geometry: str, xyz: str = '0 0 0', rpy: str = '0 0 0', kind: str = 'collision') -> str:
    """A <collision>, or a <visual>."""
    return f'<{kind}><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{geometry}</geometry></{kind}>'


def joint(name: str, parent: str, child: str, xyz: str, axis: str, kind: str = 'revolute') -> str:
    """A joint with limits."""
    limit = '<limit lower="-2.9" upper="2.9" effort="60" velocity="20"/>' if kind == 'revolute' else ''
    axis = '' if kind == 'fixed' else f'<axis xyz="{axis}"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/>{axis}{limit}</joint>'
    )


def quadruped(calf: str, below: str = '', calf_mass: str = inertial(0.2, 1e-3, -0.1)) -> str:
    """URDF text; 12 kg, legs of 0.2 m + 0.2 m.

    Args:
        calf: shapes of the last link of each leg.
        below: links and joints below it; @ stands for the leg.
        calf_mass: its <inertial>.
    """
    box = solid('<box size="0.4 0.15 0.1"/>')
    text = f'<link name="trunk">{inertial(8.0, 0.08)}{box}</link>'
    for leg, (x, y) in PLACES.items():
        side = 0.05 if y > 0 else -0.05
        text += f'<link name="{leg}_hip">{inertial(0.3, 1e-3)}</link>'
        thigh = solid('<box size="0.03 0.03 0.16"/>', '0 0 -0.1')
        text += f'<link name="{leg}_thigh">{inertial(0.5, 2e-3, -0.05)}{thigh}</link>'
        text += f'<link name="{leg}_calf">{calf_mass}{calf}</link>'
        text += joint(f'{leg}_hip_joint', 'trunk', f'{leg}_hip', f'{x} {y} 0', '1 0 0')
        text += joint(f'{leg}_thigh_joint', f'{leg}_hip', f'{leg}_thigh', f'0 {side} 0', '0 1 0')
        text += joint(f'{leg}_calf_joint', f'{leg}_thigh', f'{leg}_calf', f'0 0 {-THIGH}', '0 1 0')
        text += below.replace('@', leg)
    return f'<robot name="plain">{text}</robot>'


def two_joint_quadruped(yaw: float = 0.0) -> str:
    """URDF text; legs without abduction, and balls as feet.

    Args:
        yaw: of the robot in the frame of its base [rad].
    """
    foot = '<link name="@_foot">' + inertial(0.05, 1e-5) + solid('<sphere radius="0.02"/>') + '</link>'
    text = quadruped('', foot + joint('@_foot_joint', '@_calf', '@_foot', f'0 0 {-CALF}', '', 'fixed'))
    for leg in PLACES:
        text = text.replace(f'name="{leg}_hip_joint" type="revolute"', f'name="{leg}_hip_joint" type="fixed"')
    root = '<link name="root"/><joint name="mount" type="fixed"><parent link="root"/><child link="trunk"/>'
    root += f'<origin rpy="0 0 {yaw}"/></joint>'
    return text.replace('<link name="trunk">', f'{root}<link name="trunk">')


def wheels(radius: float = 0.06, name: str = '@_wheel') -> str:
    """Wheels at the ends of the calves, for `quadruped`."""
    tyre = solid(f'<cylinder radius="{radius}" length="0.03"/>', '0 0.02 0', '1.5707963 0 0')
    link = f'<link name="{name}">{inertial(0.4, 5e-4)}{tyre}</link>'
    return link + joint('@_wheel_joint', '@_calf', name, f'0 0 {-CALF}', '0 1 0', 'continuous')
