# SPDX-License-Identifier: Apache-2.0
"""Faults that change neither dynamics nor contact keep no robot from loading; its physics are Pinocchio's."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quad_dynamics as qd
from quad_dynamics.errors import ModelError, ModelWarning
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.meshes import MeshError, find_mesh

pin = pytest.importorskip('pinocchio')


def link(
    name: str, mass: float = 0.0, inertia: str = '', com: str = '0.1 0.02 -0.05', extra: str = ''
) -> str:
    if not mass and not inertia:
        return f'<link name="{name}">{extra}</link>'
    xx, yy, zz = (inertia or f'{0.01 * mass} {0.02 * mass} {0.025 * mass}').split()
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>{extra}</link>'
    )


def joint(name: str, parent: str, child: str, kind: str = 'revolute', rest: str = '') -> str:
    limit = '' if kind in ('fixed', 'floating') else '<limit lower="-2" upper="2" velocity="9" effort="9"/>'
    axis = {'prismatic': '1 0 0'}.get(kind, '0 1 0')
    origin = '' if kind == 'floating' else '<origin xyz="0.2 0.1 -0.3" rpy="0.1 0.2 0.3"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'{origin}<axis xyz="{axis}"/>{rest or limit}</joint>'
    )


def robot(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


def load(text: str | Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(text, **options)


def assert_like_pinocchio(model: Any, text: str, world: bool = False) -> None:
    """Mass matrix and gravity, with joints that are held locked in Pinocchio, too."""
    free = [] if world or not model.floating_base else [pin.JointModelFreeFlyer()]
    other = pin.buildModelFromXML(text, *free)
    q0, base = pin.neutral(other), 6 * model.floating_base
    held = [i for i, name in enumerate(other.names) if i > bool(base) and name not in model.joint_names]
    for i in held:
        at = other.joints[i].idx_q
        q0[at] = np.clip(0.0, other.lowerPositionLimit[at], other.upperPositionLimit[at])
    other = pin.buildReducedModel(other, held, q0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q_j = rng.uniform(-1.0, 1.0, model.nj)
        q, q_pin = np.concatenate([np.array([0.0] * 6 + [1.0])[: base and 7], q_j]), pin.neutral(other)
        columns = list(range(base))
        for name, position in zip(model.joint_names, q_j, strict=True):
            each = other.joints[other.getJointId(name)]
            q_pin[each.idx_q] = position
            columns.append(each.idx_v)
        data = other.createData()
        M = pin.crba(other, data, q_pin)
        M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(columns, columns)]
        np.testing.assert_allclose(qd.mass_matrix(model, q), M, rtol=0.0, atol=1e-12)
        gravity = pin.computeGeneralizedGravity(other, data, q_pin)[columns]
        np.testing.assert_allclose(qd.gravity(model, q), gravity, rtol=0.0, atol=1e-12)


# ---- looks


def test_thirteen_visuals_are_one_line() -> None:
    """As in Unitree's go2."""
    look = (
        '<visual><geometry><sphere radius="0.1"/></geometry>'
        '<material name="a"><color rgba="1 1 1 1"/></material><material name="b"/></visual>'
    )
    names = [f'l{i}' for i in range(13)]
    links = ''.join(link(name, 1.0, extra=look) for name in names)
    joints = ''.join(joint(f'j{i}', f'l{i}', f'l{i + 1}') for i in range(12))
    model = load(robot(links, joints))
    assert model.warnings == (
        'visuals with more than one <material>, on 13 of the links; the first is used: '
        'l0, l1, l2, l3, l4, l5, l6, l7 and 5 more',
    )
    material = model.urdf.link('l3').visuals[0].material
    assert (material.name, material.rgba) == ('a', (1.0, 1.0, 1.0, 1.0))
    with pytest.raises(ModelError, match=r'l11, l12 \(an error in strict mode\)'):
        load(robot(links, joints), strict=True)


def test_absolute_path_of_another_machine(tmp_path: Path) -> None:
    """As in files that were expanded elsewhere; what the package has is meant, nothing else."""
    path = tmp_path / 'dog' / 'urdf' / 'dog.urdf'
    (tmp_path / 'dog' / 'meshes').mkdir(parents=True)
    path.parent.mkdir()
    mesh = tmp_path / 'dog' / 'meshes' / 'arm.stl'
    mesh.write_text('')
    (tmp_path / 'dog' / 'passwd').write_text('')
    for name in ('file:///home/me/ws/install/dog/share/dog/meshes/arm.stl', '/home/me/dog/meshes/arm.stl'):
        shape = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        path.write_text(robot(link('base', 1.0), link('arm', 1.0, extra=shape), joint('j', 'base', 'arm')))
        (doubt,) = load(path).warnings
        assert doubt.startswith("absolute paths outside the robot's package (1); files in the package")
        assert find_mesh(name, str(path)) == mesh
    for name in ('/etc/passwd', '/home/../dog/meshes/arm.stl', '/meshes/../meshes/arm.stl'):
        with pytest.raises(MeshError):
            find_mesh(name, str(path))


# ---- masses


@pytest.mark.parametrize(
    ('mass', 'inertia', 'shown'),
    [(0.0, '1e-4 2e-4 3e-4', 'mass 0, inertia not'), (0.01, '-3.5e-8 3e-8 9e-8', 'moment -3.5e-08 kg m^2')],
    ids=['massless', 'negative'],
)
def test_odd_inertia_of_a_fixed_link(mass: float, inertia: str, shown: str) -> None:
    """As of bolt's feet, and of tiago's antennas."""
    text = robot(
        link('base', 2.0), link('leg', 1.0), link('foot', mass, inertia),
        joint('knee', 'base', 'leg'), joint('ankle', 'leg', 'foot', 'fixed'),
    )  # fmt: skip
    model = load(text)
    (doubt,) = model.warnings
    assert doubt.startswith('links with invalid inertia')
    assert doubt.endswith(f': foot ({shown})')
    assert_like_pinocchio(model, text)
    assert (load(model.to_urdf()).pi == model.pi).all()
    with pytest.raises(ModelError, match='an error in strict mode'):
        load(text, strict=True)
    with pytest.raises(ModelError, match="link 'foot'"):  # it moves now
        load(text.replace('type="fixed"', 'type="revolute"'))


def test_a_large_negative_moment_is_an_error() -> None:
    text = robot(
        link('base', 2.0), link('leg', 1.0), link('foot', 0.1, '-5e-3 5e-3 5e-3'),
        joint('knee', 'base', 'leg'), joint('ankle', 'leg', 'foot', 'fixed'),
    )  # fmt: skip
    with pytest.raises(ModelError, match='inertia is not positive definite'):
        load(text)


def test_a_fixed_base_may_have_any_inertia() -> None:
    """As kuka's iiwa: nothing depends on it."""
    text = robot(link('base', 0.0, '1 1 1'), link('arm', 1.0), joint('j', 'base', 'arm'))
    model = load(text)
    assert 'base (mass 0, inertia not)' in model.warnings[0]
    assert_like_pinocchio(model, text)
    with pytest.raises(ModelError, match='mass is 0, but the inertia is not'):
        load(text, floating_base=True)


def test_links_without_mass_at_the_end_are_held() -> None:
    """As romeo's fingers: their joints are held, everything else moves as before."""
    above_zero = '<limit lower="0.5" upper="1" velocity="1" effort="1"/>'
    text = robot(
        link('base', 2.0), link('arm', 1.0), link('palm', 0.2), link('finger'), link('tip'), link('nail'),
        joint('elbow', 'base', 'arm'), joint('wrist', 'arm', 'palm', 'prismatic'),
        joint('knuckle', 'palm', 'finger', rest=above_zero), joint('end', 'finger', 'tip', 'prismatic'),
        joint('glue', 'tip', 'nail', 'fixed'),
    )  # fmt: skip
    model = load(text)
    assert model.joint_names == ('elbow', 'wrist')
    assert model.warnings == (
        'joints that move only massless links (2) are fixed at the position closest to 0: knuckle, end',
    )
    assert_like_pinocchio(model, text)
    assert model.to_urdf() == text
    # the nail is where Pinocchio has it with the knuckle at 0.5
    other = pin.buildModelFromXML(text)
    q = pin.neutral(other)
    q[other.joints[other.getJointId('knuckle')].idx_q] = 0.5
    data = other.createData()
    pin.framesForwardKinematics(other, data, q)
    X = data.oMf[other.getFrameId('nail')]
    R, p = qd.frame_pose(model, np.zeros(2), 'nail')
    np.testing.assert_allclose(R, X.rotation, atol=1e-12)
    np.testing.assert_allclose(p, X.translation, atol=1e-12)


def test_legs_without_mass_are_refused() -> None:
    """To hold a knee would change what touches the ground."""
    legs = [
        (link(f'{leg}_thigh', 1.0), link(f'{leg}_foot'), joint(f'{leg}_hip', 'base', f'{leg}_thigh'),
         joint(f'{leg}_knee', f'{leg}_thigh', f'{leg}_foot'))
        for leg in ('left', 'right')
    ]  # fmt: skip
    with pytest.raises(ModelError, match="moves with joint 'left_knee', but neither it nor"):
        load(robot(link('base', 5.0), *(part for leg in legs for part in leg)))


@pytest.mark.parametrize('floating', [True, False], ids=['floating', 'fixed'])
def test_point_masses(floating: bool) -> None:
    """As pybullet's laikago: no inertia at all, but the mass matrix is sound."""
    text = robot(
        link('base', 5.0, '0 0 0'), link('a', 1.0, '0 0 0'), link('b', 1.0, '0 0 0'),
        link('c', 1.0, '0 0 0.1'),
        joint('ja', 'base', 'a'), joint('jb', 'a', 'b'), joint('jc', 'base', 'c', 'prismatic'),
    )  # fmt: skip
    model = load(text, floating_base=floating)
    assert model.warnings == ('links with singular inertia, like a point mass or a rod: base, a, b, c',)
    assert_like_pinocchio(model, text)
    q = np.concatenate([[0.0] * 6, [1.0], [0.3, -0.2, 0.1]]) if floating else np.array([0.3, -0.2, 0.1])
    u = np.linspace(-1.0, 1.0, model.nv)
    tau = qd.inverse_dynamics(model, q, u, np.ones(model.nv))
    for method in ('aba', 'cholesky'):
        du = qd.forward_dynamics(model, q, u, tau, method=method)
        np.testing.assert_allclose(du, 1.0, atol=1e-9)
    assert (model.with_pi(model.pi).pi == model.pi).all()
    assert (load(model.to_urdf(), floating_base=floating).pi == model.pi).all()


def test_point_mass_on_its_axis_is_an_error() -> None:
    text = robot(link('base', 1.0), link('a', 1.0, '0 0 0', com='0 0.3 0'), joint('j', 'base', 'a'))
    with pytest.raises(ModelError, match='inertia about the com is not positive definite'):
        load(text)


# ---- the world


def test_a_robot_that_floats_in_a_world() -> None:
    """As Unitree's as2: the world is left out, and the base floats without being told to."""
    text = robot(
        link('world'), link('base', 5.0), link('arm', 1.0),
        joint('free', 'world', 'base', 'floating'), joint('j', 'base', 'arm'),
    )  # fmt: skip
    model = load(text, strict=True)
    assert (model.base_name, model.floating_base, model.nv) == ('base', True, 7)
    assert_like_pinocchio(model, text, world=True)
    assert model.to_urdf() == text
    assert load(text, floating_base=False).nv == 1
    moved = load(text.replace('<child link="base"/>', '<child link="base"/><origin xyz="0 0 1"/>'))
    assert moved.warnings == ('the origin of the floating joint is ignored: world',)


@pytest.mark.parametrize(
    'other',
    [
        link('world', 1.0),
        link('world') + link('post', 1.0) + joint('p', 'world', 'post', 'fixed'),
        link('world') + link('toe', 1.0) + joint('t', 'arm', 'toe', 'floating'),
        link('world', extra='<collision><geometry><box size="9 9 1"/></geometry></collision>'),
    ],
    ids=['mass', 'post', 'toe', 'ground'],
)
def test_other_floating_joints_are_refused(other: str) -> None:
    parts = link('base', 5.0), link('arm', 1.0), joint('free', 'world', 'base', 'floating')
    with pytest.raises(ModelError, match="has the unsupported type 'floating'"):
        load(robot(other, *parts, joint('j', 'base', 'arm')))
