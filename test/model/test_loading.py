# SPDX-License-Identifier: Apache-2.0
"""Where models come from, how joints, legs and feet are ordered, and the bundled robots."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import reference_mini_cheetah
from closeness import assert_close

from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Model

EXACT = 1e-13
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def load(source: str | Path, **options: object) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(source, **options)  # type: ignore[arg-type]


def robot(*links: str, joints: list[tuple[str, str, str, str]]) -> str:
    """URDF text; joints are (parent, child, type, xyz), named after their child."""
    text = ''.join(f'<link name="{name}">{INERTIAL}</link>' for name in links)
    for parent, child, kind, xyz in joints:
        text += (
            f'<joint name="to_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>'
        )
    return f'<robot name="r">{text}</robot>'


def quadruped(names: dict[str, tuple[float, float]], foot: str = '_foot') -> str:
    """Four two-joint legs at the given places, in the given document order."""
    links, joints = ['trunk'], []
    for name, (x, y) in names.items():
        links += [f'{name}_upper', f'{name}_lower', f'{name}{foot}']
        joints += [
            ('trunk', f'{name}_upper', 'continuous', f'{x} {y} 0'),
            (f'{name}_upper', f'{name}_lower', 'continuous', '0 0 -0.3'),
            (f'{name}_lower', f'{name}{foot}', 'fixed', '0 0 -0.3'),
        ]
    return robot(*links, joints=joints)


PLACES = {'a': (0.3, 0.2), 'b': (0.3, -0.2), 'c': (-0.3, 0.2), 'd': (-0.3, -0.2)}  # FL FR RL RR


@pytest.mark.parametrize('order', list(itertools.permutations('abcd'))[::5], ids=''.join)
def test_legs_are_ordered_by_place_whatever_the_document_says(order: tuple[str, ...]) -> None:
    model = load(quadruped({name: PLACES[name] for name in order}))
    assert model.foot_names == ('a_foot', 'b_foot', 'c_foot', 'd_foot')
    assert [leg.name for leg in model.legs] == ['FL', 'FR', 'RL', 'RR']
    assert model.joint_names == tuple(f'to_{name}_{part}' for name in 'abcd' for part in ('upper', 'lower'))
    assert list(model.parents) == [-1, 0, -1, 2, -1, 4, -1, 6]


def test_feet_without_names_are_the_farthest_links() -> None:
    model = load(quadruped(PLACES, foot='_end'))
    assert model.foot_names == ('a_end', 'b_end', 'c_end', 'd_end')
    assert model.floating_base


def test_foot_is_the_last_link_itself_without_a_foot_link() -> None:
    links = ['trunk', *(f'{n}{i}' for n in PLACES for i in (1, 2))]
    joints = []
    for name, (x, y) in PLACES.items():
        joints += [
            ('trunk', f'{name}1', 'continuous', f'{x} {y} 0'),
            (f'{name}1', f'{name}2', 'continuous', '0 0 -0.3'),
        ]
    assert load(robot(*links, joints=joints)).foot_names == ('a2', 'b2', 'c2', 'd2')


def test_four_fingers_are_no_legs() -> None:
    assert load(quadruped({f'finger_{n}': p for n, p in PLACES.items()}, foot='_tip')).legs == ()


def test_head_keeps_its_place_between_the_legs() -> None:
    text = quadruped({'d': PLACES['d'], 'c': PLACES['c']})
    middle = robot('head', joints=[('trunk', 'head', 'continuous', '0.5 0 0')])
    rest = quadruped({'b': PLACES['b'], 'a': PLACES['a']}).replace(
        f'<link name="trunk">{INERTIAL}</link>', ''
    )
    inner = ''.join(
        part.removeprefix('<robot name="r">').removesuffix('</robot>') for part in (text, middle, rest)
    )
    model = load(f'<robot name="r">{inner}</robot>')
    assert model.joint_names[4] == 'to_head'
    assert model.foot_names == ('a_foot', 'b_foot', 'c_foot', 'd_foot')


def test_shared_spine_joint_belongs_to_no_leg() -> None:
    text = quadruped(PLACES).replace(
        '</robot>',
        f'<link name="rear">{INERTIAL}</link><joint name="spine" type="continuous"><parent link="trunk"/>'
        '<child link="rear"/><origin xyz="-0.1 0 0"/></joint></robot>',
    )
    for leg in 'cd':
        x, y = PLACES[leg]
        text = text.replace(
            f'<parent link="trunk"/><child link="{leg}_upper"/><origin xyz="{x} {y} 0"/>',
            f'<parent link="rear"/><child link="{leg}_upper"/><origin xyz="-0.2 {y} 0"/>',
        )
    model = load(text)
    spine = model.joint_names.index('spine')
    assert [leg.name for leg in model.legs] == ['FL', 'FR', 'RL', 'RR']
    assert all(spine not in leg.joint_indices for leg in model.legs)
    assert all(len(leg.joint_indices) == 2 for leg in model.legs)
    assert model.parents[model.joint_names.index('to_c_upper')] == spine


def test_children_keep_document_order_without_four_legs() -> None:
    text = robot(
        'root',
        'z',
        'a',
        'm',
        joints=[
            ('root', 'z', 'continuous', '0 0 0'),
            ('root', 'a', 'continuous', '0 0 0'),
            ('z', 'm', 'prismatic', '0 0 0'),
        ],
    )
    model = load(text)
    assert model.joint_names == ('to_z', 'to_m', 'to_a')
    assert model.body_names == ('z', 'm', 'a')
    assert list(model.is_prismatic) == [False, True, False]


def test_single_floating_body() -> None:
    model = load('<robot name="brick"><link name="brick">' + INERTIAL + '</link></robot>', floating_base=True)
    assert (model.nj, model.nq, model.nv, model.nb) == (0, 7, 6, 1)
    assert model.joint_R.shape == (0, 3, 3)
    np.testing.assert_array_equal(model.neutral, [0, 0, 0, 0, 0, 0, 1])


def test_neutral_is_within_the_limits() -> None:
    text = robot('root', 'a', joints=[('root', 'a', 'revolute', '0 0 0')])
    text = text.replace('<axis', '<limit lower="0.5" upper="1" effort="1" velocity="1"/><axis')
    np.testing.assert_array_equal(load(text).neutral, [0.5])


@pytest.mark.parametrize(
    ('velocity', 'effort', 'expected'),
    [('0', '0', (np.inf, np.inf)), ('0', '3', (np.inf, 3.0)), ('2', '0', (2.0, 0.0))],
)
def test_limits_of_zero(velocity: str, effort: str, expected: tuple[float, float]) -> None:
    """Exporters write 0 for a limit that nobody gave; a joint with an effort of 0 alone has no motor."""
    limit = f'<limit lower="-1" upper="1" velocity="{velocity}" effort="{effort}"/>'
    text = robot('root', 'a', joints=[('root', 'a', 'revolute', '0 0 0')])
    model = load(text.replace('<axis', f'{limit}<axis'))
    assert (model.velocity_limit[0], model.effort_limit[0]) == expected


def test_axis_is_normalised() -> None:
    text = robot('root', 'a', joints=[('root', 'a', 'continuous', '0 0 0')]).replace(
        '0 1 0"/></joint>', '3 0 4"/></joint>'
    )
    with pytest.warns(ModelWarning, match='normalised'):
        model = load_model(text)
    assert_close(model.joint_axis[0], [0.6, 0.0, 0.8], EXACT)


# ---- sources


def test_source_of_a_wrong_type() -> None:
    with pytest.raises(
        ArgumentError, match='source has type int; expected a bundled name, a path or URDF text'
    ):
        load_model(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="floating_base is 'yes'; expected True, False or None"):
        load_model('two_link_arm', floating_base='yes')  # type: ignore[arg-type]


def test_path_str_and_text_give_the_same(tmp_path: Path) -> None:
    model = load('two_link_arm')
    path = tmp_path / 'arm.urdf'
    path.write_text(model.urdf.text)
    for source in (path, str(path), model.urdf.text, '\n  ' + model.urdf.text):
        np.testing.assert_array_equal(load(source).pi, model.pi)
    assert load(path).urdf.path == str(path)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A pipe that nobody writes to would block for ever."""
    pipe, folder = tmp_path / 'pipe.urdf', tmp_path / 'folder.xacro'
    os.mkfifo(pipe)
    folder.mkdir()
    expected = 'expected a .urdf or .xacro file'
    for path, message in {
        folder: f'is a directory; {expected}',
        pipe: f'is not a regular file; {expected}',
        Path(os.devnull): f'is not a regular file; {expected}',
    }.items():
        with pytest.raises(ModelError) as caught:
            load_model(path)
        assert str(caught.value) == f'{path}: {message}'


def test_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, 'Permission denied')

    path = tmp_path / 'secret.urdf'
    path.write_text('<robot/>')
    for method in ('read_bytes', 'stat'):  # the file, then the folder; root could read both
        monkeypatch.setattr(Path, method, refuse)
        with pytest.raises(ModelError, match=r'secret\.urdf: cannot be read: Permission denied'):
            load_model(path)


def test_xacro(tmp_path: Path) -> None:
    pytest.importorskip('xacro')
    text = robot('root', 'a', joints=[('root', 'a', 'continuous', '0 0 ${2 * height}')])
    text = text.replace(
        '<robot name="r">',
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:property name="height" '
        'value="0.25"/>',
    )
    path = tmp_path / 'R.URDF.XACRO'
    path.write_text(text)
    assert_close(load(path).joint_p[0], [0.0, 0.0, 0.5], EXACT)
    path = tmp_path / 'r.urdf.xacro'
    path.write_text(text)
    assert_close(load(path).joint_p[0], [0.0, 0.0, 0.5], EXACT)
    (tmp_path / 'r.yaml').write_text('quad_dynamics: {floating_base: true}')
    assert load(path).floating_base, 'NAME.yaml lies beside NAME.urdf.xacro'
    path.write_text(text.replace('${2 * height}', '${nothing}'))
    with pytest.raises(ModelError, match='xacro cannot expand the file'):
        load_model(path)


@pytest.mark.parametrize('xyz', ['1e7 0 -0.209', '0 0 0', '1e9 0 0', '0 0 -1e-9'])
def test_absurd_legs_have_a_finite_pose_or_none(xyz: str) -> None:
    text = load('mini_cheetah').urdf.text.replace('xyz="0 0 -0.209"', f'xyz="{xyz}"', 1)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_model(text)
    assert model.standing is None or np.isfinite(model.standing).all()


def test_leg_that_cannot_reach_the_ground_leaves_no_crouch() -> None:
    text = load('mini_cheetah').urdf.text.replace('xyz="0 0 -0.209"', 'xyz="1e7 0 -0.209"', 1)
    assert load(text).standing is None


@pytest.mark.parametrize('scale', [1e-3, 1e3])
def test_crouch_does_not_depend_on_the_size(scale: float) -> None:
    def grown(factor: float) -> Model:
        places = {name: (x * factor, y * factor) for name, (x, y) in PLACES.items()}
        return load(quadruped(places).replace('0 0 -0.3', f'0 0 {-0.3 * factor}'))

    expected, actual = grown(1.0).standing, grown(scale).standing
    assert expected is not None
    assert actual is not None
    assert_close(actual[7:], expected[7:], 1e-4)  # the search ends at an absolute distance of 1e-9 m
    assert_close(actual[2] / scale, expected[2], 1e-4)


def test_xacro_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'xacro', None)
    path = tmp_path / 'r.xacro'
    path.write_text('<robot/>')
    with pytest.raises(
        ModelError, match="requires xacro, which is not installed; install it with 'pip install"
    ):
        load_model(path)


# ---- bundled robots


def test_bundled_names() -> None:
    assert bundled_robots() == ('go2', 'mini_cheetah', 'mini_cheetah_leg', 'two_link_arm')


def test_mini_cheetah_warns_once_about_the_published_thigh() -> None:
    with pytest.warns(ModelWarning) as caught:
        load_model('mini_cheetah')
    assert len(caught) == 1
    assert str(caught[0].message).endswith(
        'FL_thigh (1.044), FR_thigh (1.044), RL_thigh (1.044), RR_thigh (1.044)'
    )


def test_mini_cheetah_is_the_published_one() -> None:
    """Against the other transcription of the same figures, which the reference of the dynamics tests uses."""
    model, other = load('mini_cheetah'), load(reference_mini_cheetah.urdf())
    assert_close(model.pi, other.pi, EXACT)
    assert_close(model.joint_p, other.joint_p, EXACT)
    assert_close(model.joint_R, other.joint_R, EXACT)
    assert_close(model.joint_axis, other.joint_axis, EXACT)
    feet = [model.frames[foot].p for foot in model.foot_names]
    assert_close(feet, [other.frames[f'{leg.name}_tip'].p for leg in model.legs], EXACT)
    assert_close(model.effort_limit[:3], [18.0, 18.0, 27.99], EXACT)
    assert_close(model.velocity_limit[:3], [40.0, 40.0, 25.723], 1e-4)


def test_mini_cheetah_gives_the_published_accelerations() -> None:
    """Rotors as bodies of their own in Pinocchio, tied to their joints by the gear: all digits match."""
    model = load('mini_cheetah')
    reference = pin.buildModelFromXML(model.urdf.text, pin.JointModelFreeFlyer())
    for i, name in enumerate(model.joint_names):
        rotor = model.description.rotors[name]
        frame = reference.frames[reference.getFrameId(model.urdf.joint(name).parent, pin.FrameType.BODY)]
        place = frame.placement * pin.SE3(np.eye(3), np.array(rotor.position))
        joint = reference.addJoint(
            frame.parentJoint, pin.JointModelRevoluteUnaligned(*model.rotor_axis[i]), place, f'rotor_{name}'
        )
        xx, xy, yy, xz, yz, zz = rotor.inertia
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        reference.appendBodyToJoint(joint, pin.Inertia(rotor.mass, np.zeros(3), inertia), pin.SE3.Identity())
    figures = reference_mini_cheetah.figures()
    q, G = pin.neutral(reference), np.zeros((reference.nv, 18))
    q[:7] = figures.q[:7]
    R_WB = pin.Quaternion(q[3:7]).toRotationMatrix()
    G[:3, :3], G[3:6, 3:6] = R_WB.T, np.eye(3)
    for i, name in enumerate(model.joint_names):
        joint = reference.joints[reference.getJointId(name)]
        q[joint.idx_q] = figures.q[7 + i]
        G[joint.idx_v, 6 + i] = 1.0
        G[reference.joints[reference.getJointId(f'rotor_{name}')].idx_v, 6 + i] = model.rotor_gear[i]
    data = reference.createData()
    v = G @ figures.u
    # columns of M by rnea: crba wants the joints of a branch side by side, which added rotors are not
    still = pin.rnea(reference, data, q, 0 * v, 0 * v)
    M = np.array([pin.rnea(reference, data, q, 0 * v, column) - still for column in np.eye(reference.nv)]).T
    bias = np.zeros(reference.nv)
    bias[:3] = -np.cross(figures.u[3:6], R_WB.T @ figures.u[:3])  # dG/dt u
    h = pin.rnea(reference, data, q, v, bias)
    du = np.linalg.solve(G.T @ M @ G, figures.tau - G.T @ h)
    assert figures.mismatch(du).max() < 1.2  # half a unit of the sixth digit, which was rounded


def test_mini_cheetah_leg_is_the_front_left_leg() -> None:
    whole, leg = load('mini_cheetah'), load('mini_cheetah_leg')
    assert leg.joint_names == whole.joint_names[:3]
    assert leg.foot_names == ('FL_foot',)
    assert not leg.floating_base
    np.testing.assert_array_equal(leg.pi, whole.pi[10:40])
    np.testing.assert_array_equal(leg.rotor_pi, whole.rotor_pi[10:40])
    np.testing.assert_array_equal(leg.joint_p[1:], whole.joint_p[1:3])
    np.testing.assert_array_equal(leg.rotor_gear, whole.rotor_gear[:3])


def test_two_link_arm_follows_the_textbook() -> None:
    """The closed form in the comment of the file, with the numbers of the file, against Pinocchio."""
    model = load('two_link_arm')
    reference = pin.buildModelFromXML(model.urdf.text)
    data = reference.createData()
    m1, m2, l1, lc1, lc2, I1, I2, g = 1.5, 1.0, 0.5, 0.25, 0.2, 0.03125, 1.0 * 0.4**2 / 12, 9.81
    rng = np.random.default_rng(0)
    for q, qd, qdd in rng.normal(size=(5, 3, 2)):
        c1, c12, h = np.cos(q[0]), np.cos(q.sum()), m2 * l1 * lc2 * np.sin(q[1])
        M11 = I1 + I2 + m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * np.cos(q[1]))
        M12 = I2 + m2 * (lc2**2 + l1 * lc2 * np.cos(q[1]))
        M22 = I2 + m2 * lc2**2
        tau = [
            M11 * qdd[0]
            + M12 * qdd[1]
            - h * (2 * qd[0] * qd[1] + qd[1] ** 2)
            + (m1 * lc1 + m2 * l1) * g * c1
            + m2 * lc2 * g * c12,
            M12 * qdd[0] + M22 * qdd[1] + h * qd[0] ** 2 + m2 * lc2 * g * c12,
        ]
        q_pin = np.array([c1, np.sin(q[0]), np.cos(q[1]), np.sin(q[1])])  # continuous joints
        assert_close(pin.rnea(reference, data, q_pin, qd, qdd), tau, 1e-12)
