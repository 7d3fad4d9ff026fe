# SPDX-License-Identifier: Apache-2.0
"""Every way to break a URDF that we know of, each with the exact words it is refused with."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest

from quad_dynamics.errors import ModelError, ModelWarning
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.meshes import MeshError, find_mesh

MASS = (
    '<inertial><origin xyz="0 0 0.1"/><mass value="2"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
)
GOOD = f"""\
<robot name="good">
  <link name="base">{MASS}</link>
  <link name="arm">{MASS}
    <visual><geometry><mesh filename="package://good/meshes/arm.stl"/></geometry></visual>
    <collision><geometry><box size="1 2 3"/></geometry></collision>
  </link>
  <link name="tool"/>
  <joint name="elbow" type="revolute">
    <parent link="base"/><child link="arm"/><origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/><dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/></joint>
</robot>
"""
ELBOW = "joint 'elbow' (line 8)"
ARM = "link 'arm' (line 3)"
NO_MASS = 'but neither it nor a link fixed to it has mass; expected an <inertial> with mass > 0'
LOOP = '<joint name="back" type="fixed"><parent link="tool"/><child link="base"/></joint>\n</robot>'
ENTITIES = '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<robot'
LINK_MASS = f'<link name="arm">{MASS}'


def links(old: str, new: str) -> tuple[str, str]:
    """Change something of the arm's <inertial> only."""
    return LINK_MASS, LINK_MASS.replace(old, new)


# id: (text to replace, its replacement, problems expected)
CASES: dict[str, tuple[str, str, list[str]]] = {
    # ---- XML
    'broken_xml': ('</robot>', '', ['invalid XML: no element found: line 14, column 0']),
    'mismatched_tag': (
        '</joint>\n</robot>',
        '</link>\n</robot>',
        ['invalid XML: mismatched tag: line 12, column 77'],
    ),
    'entity_bomb': (
        '<robot',
        ENTITIES,
        [
            'line 1: document type declarations (<!DOCTYPE) are rejected, because entities can fill '
            'the memory or '
            'read files'
        ],
    ),
    'external_entity': (
        '<robot',
        '<!DOCTYPE r SYSTEM "file:///etc/passwd">\n<robot',
        [
            'line 1: document type declarations (<!DOCTYPE) are rejected, because entities can fill '
            'the memory or '
            'read files'
        ],
    ),
    'undeclared_entity': (
        '<link name="tool"/>',
        '<link name="&x;"/>',
        ['invalid XML: undefined entity: line 7, column 2'],
    ),
    'endless_nesting': (
        '<link name="tool"/>',
        '<link name="tool">' + '<a>' * 100 + '</a>' * 100 + '</link>',
        ['line 7: elements are nested more than 64 deep'],
    ),
    'not_a_robot': (GOOD, '<sdf version="1.7"/>', ['the root element is <sdf>; expected <robot>']),
    'empty_robot': (GOOD, '<robot name="r"></robot>', ['the robot has no <link>']),
    # ---- names
    'link_without_name': (
        '<link name="tool"/>',
        '<link name="tool"/><link/>',
        ['the link in line 7 has no name'],
    ),
    'joint_without_name': ('<joint name="mount" ', '<joint ', ['the joint in line 12 has no name']),
    'duplicate_link': (
        '<link name="tool"/>',
        '<link name="tool"/>\n<link name="tool"/>',
        ["2 links are named 'tool' (lines 7, 8); expected one"],
    ),
    'duplicate_joint': (
        'name="mount"',
        'name="elbow"',
        ["2 joints are named 'elbow' (lines 8, 12); expected one"],
    ),
    # ---- tree
    'unknown_parent': (
        '<parent link="arm"/>',
        '<parent link="am"/>',
        ["joint 'mount' (line 12): parent link 'am' does not exist; did you mean 'arm'?"],
    ),
    'unknown_child': (
        '<child link="tool"/>',
        '<child link="tol"/>',
        ["joint 'mount' (line 12): child link 'tol' does not exist; did you mean 'tool'?"],
    ),
    'foreign_parent': (
        '<parent link="arm"/>',
        '<parent link="xyz"/>',
        ["joint 'mount' (line 12): parent link 'xyz' does not exist; the robot has: arm, base, tool"],
    ),
    'no_parent': ('<parent link="base"/>', '', [f'{ELBOW} has no <parent>; expected one']),
    'two_children': (
        '<child link="arm"/>',
        '<child link="arm"/><child link="tool"/>',
        [f'{ELBOW} has 2 <child>; expected one'],
    ),
    'parent_names_no_link': ('<parent link="base"/>', '<parent/>', [f'{ELBOW}: <parent> names no link']),
    'two_roots': (
        '<link name="tool"/>',
        '<link name="tool"/><link name="stray"/>',
        ["the robot has 2 root links (not the child of any joint): 'base', 'stray'; expected one"],
    ),
    'loop': (
        '</robot>',
        LOOP,
        ["the links form a loop: 'arm' -> 'tool' -> 'base' -> 'arm'; expected a tree"],
    ),
    'joint_to_itself': (
        '<child link="tool"/>',
        '<child link="arm"/>',
        [
            "link 'arm' is the child of two joints, 'elbow' and 'mount'; expected one (closed loops "
            'are not supported)',
            "the robot has 2 root links (not the child of any joint): 'base', 'tool'; expected one",
        ],
    ),
    'two_parent_joints': (
        '</robot>',
        '<joint name="second" type="fixed"><parent link="base"/><child link="tool"/></joint></robot>',
        [
            "link 'tool' is the child of two joints, 'mount' and 'second'; expected one (closed "
            'loops are not '
            'supported)'
        ],
    ),
    # ---- joint types
    'floating_joint': (
        'type="revolute"',
        'type="floating"',
        [
            f"{ELBOW} has the unsupported type 'floating'; expected one of revolute, continuous, "
            f'prismatic, fixed; '
            'for a free base remove this joint and load with floating_base=True (--floating-base)'
        ],
    ),
    'planar_joint': (
        'type="revolute"',
        'type="planar"',
        [
            f"{ELBOW} has the unsupported type 'planar'; expected one of revolute, continuous, "
            f'prismatic, fixed'
        ],
    ),
    'unknown_joint_type': (
        'type="revolute"',
        'type="hinge"',
        [f"{ELBOW} has the unknown type 'hinge'; expected one of revolute, continuous, prismatic, fixed"],
    ),
    'no_joint_type': (
        ' type="revolute"',
        '',
        [f'{ELBOW} has no type; expected one of revolute, continuous, prismatic, fixed'],
    ),
    'mimic_without_joint': ('<axis', '<mimic/><axis', [f'{ELBOW}: <mimic> names no joint']),
    # ---- masses
    'moving_body_without_mass': (
        LINK_MASS,
        '<link name="arm">',
        [f"{ARM} moves with joint 'elbow', {NO_MASS}"],
    ),
    'negative_mass': (*links('value="2"', 'value="-2"'), [f'{ARM}: mass is -2; expected > 0']),
    'zero_mass_with_inertia': (
        *links('value="2"', 'value="0"'),
        [f'{ARM}: mass is 0, but the inertia is not; expected mass > 0'],
    ),
    'no_mass_element': (
        *links('<mass value="2"/>', ''),
        [f'{ARM}: <inertial> has no <mass>; expected <mass value="..."/>'],
    ),
    'no_mass_value': (
        *links('<mass value="2"/>', '<mass/>'),
        [f'{ARM}: mass has no value; expected a finite number'],
    ),
    'no_inertia': (
        *links('<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>', ''),
        [f'{ARM}: <inertial> has no <inertia>; expected <inertia ixx="..." .../>'],
    ),
    'no_iyy': (*links(' iyy="0.1"', ''), [f'{ARM}: inertia has no iyy; expected a finite number']),
    'indefinite_inertia': (
        *links('ixy="0"', 'ixy="0.3"'),
        [
            f'{ARM}: inertia is not positive definite '
            '(principal moments -0.2, 0.1, 0.4 kg m^2; expected all > 0)'
        ],
    ),
    'negative_inertia': (
        *links('izz="0.1"', 'izz="-0.1"'),
        [
            f'{ARM}: inertia is not positive definite '
            '(principal moments -0.1, 0.1, 0.1 kg m^2; expected all > 0)'
        ],
    ),
    # ---- numbers
    'word_for_a_number': (
        *links('value="2"', 'value="heavy"'),
        [f"{ARM}: mass value is 'heavy'; expected a finite number"],
    ),
    'nan': (*links('value="2"', 'value="nan"'), [f"{ARM}: mass value is 'nan'; expected a finite number"]),
    'infinity': ('lower="-1"', 'lower="-inf"', [f"{ELBOW}: limit lower is '-inf'; expected a finite number"]),
    'overflow': (
        'lower="-1"',
        'lower="-1e999"',
        [f"{ELBOW}: limit lower is '-1e999'; expected a finite number"],
    ),
    'python_number': (
        *links('value="2"', 'value="2_0"'),
        [f"{ARM}: mass value is '2_0'; expected a finite number"],
    ),
    'absurd_mass': (
        *links('value="2"', 'value="1e300"'),
        [f"{ARM}: mass value is '1e300'; expected a magnitude of at most 1e+09"],
    ),
    'two_numbers': (
        '<origin xyz="0 0 1"',
        '<origin xyz="0 1"',
        [f"{ELBOW}: origin xyz is '0 1'; expected 3 finite numbers"],
    ),
    'four_numbers': (
        'rpy="0 0 0"',
        'rpy="0 0 0 1"',
        [f"{ELBOW}: origin rpy is '0 0 0 1'; expected 3 finite numbers"],
    ),
    'no_number': ('rpy="0 0 0"', 'rpy=""', [f"{ELBOW}: origin rpy is ''; expected 3 finite numbers"]),
    'xacro_left_over': (
        'lower="-1"',
        'lower="${min}"',
        ["this looks like xacro: expand it first (line 10 has '${min}')"],
    ),
    'xacro_mesh': (
        'package://good/meshes/arm.stl',
        '$(find good)/meshes/arm.stl',
        ["this looks like xacro: expand it first (line 4 has '$(find good)/meshes/arm.stl')"],
    ),
    'xacro_element': (
        '<link name="tool"/>',
        '<link name="tool"/><xacro:leg name="FL"/>',
        ['this looks like xacro: expand it first (line 7 has <xacro:leg>)'],
    ),
    # ---- joints
    'zero_axis': (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 0 0"/>',
        [f'{ELBOW}: axis is zero (0 0 0); expected a direction'],
    ),
    'axis_without_xyz': (
        '<axis xyz="0 1 0"/>',
        '<axis/>',
        [f'{ELBOW}: axis has no xyz; expected 3 finite numbers'],
    ),
    'limits_exchanged': (
        'lower="-1"',
        'lower="4"',
        [f'{ELBOW}: limit lower 4 is above upper 1; expected lower <= upper'],
    ),
    'negative_velocity': (
        'velocity="2"',
        'velocity="-2"',
        [f'{ELBOW}: limit velocity is -2; expected a number >= 0'],
    ),
    'negative_effort': (
        'effort="3"',
        'effort="-3"',
        [f'{ELBOW}: limit effort is -3; expected a number >= 0'],
    ),
    'negative_damping': (
        'damping="0.1"',
        'damping="-1"',
        [f'{ELBOW}: dynamics damping is -1; expected a number >= 0'],
    ),
    'negative_friction': (
        'friction="0.2"',
        'friction="-1"',
        [f'{ELBOW}: dynamics friction is -1; expected a number >= 0'],
    ),
    'two_limits': (
        '<limit',
        '<limit lower="0" upper="1" velocity="1" effort="1"/><limit',
        [f'{ELBOW} has 2 <limit>; expected at most one'],
    ),
    'nothing_can_move': (
        'type="revolute"',
        'type="fixed"',
        [
            'the robot has no movable joint and its base is fixed, so nothing can move; expected a '
            'movable joint, or '
            'floating_base=True (--floating-base)'
        ],
    ),
    # ---- shapes and paths
    'two_shapes': (
        '<box size="1 2 3"/>',
        '<box size="1 2 3"/><sphere radius="1"/>',
        [f'{ARM}: collision: <geometry> must contain exactly one shape; found <box>, <sphere>'],
    ),
    'unknown_shape': (
        '<box size="1 2 3"/>',
        '<cone size="1 2 3"/>',
        [f'{ARM}: collision: unknown geometry <cone>; expected box, cylinder, sphere, capsule or mesh'],
    ),
    'negative_size': ('size="1 2 3"', 'size="1 -2 3"', [f'{ARM}: collision: box has the negative size -2']),
}

UNUSABLE = 'invalid paths (1), so that meshes or textures are missing: '
COSMETIC = 'errors of visuals and materials (1), which affect neither dynamics nor contact: '
ALIKE = 'identical elements that are given several times (1): '
VISUAL = '<visual><geometry><mesh filename="package://good/meshes/arm.stl"/></geometry></visual>'
# What changes neither dynamics nor contact. id: (text to replace, its replacement, end of the one doubt)
HARMLESS: dict[str, tuple[str, str, list[str]]] = {
    'mesh_leaves_package': (
        'package://good/meshes/arm.stl',
        'package://good/../../etc/passwd',
        [
            f"{ARM}: visual: mesh path 'package://good/../../etc/passwd' "
            "leaves the package 'good'; expected a path inside it"
        ],
    ),
    'mesh_leaves_package_encoded': (
        'package://good/meshes/arm.stl',
        'package://good/%2e%2e/%2E./x',
        [
            f"{ARM}: visual: mesh path 'package://good/%2e%2e/%2E./x' "
            "leaves the package 'good'; expected a path inside it"
        ],
    ),
    'mesh_of_no_package': (
        'package://good/meshes/arm.stl',
        'package://../etc/passwd',
        [
            f"{ARM}: visual: mesh path 'package://../etc/passwd' names no package; expected "
            f'package://NAME/path'
        ],
    ),
    'mesh_absolute': (
        'package://good/meshes/arm.stl',
        '/etc/passwd',
        [
            f"{ARM}: visual: mesh path '/etc/passwd' is an absolute path outside the robot's "
            f'package; expected '
            'package://NAME/path'
        ],
    ),
    'mesh_file_url': (
        'package://good/meshes/arm.stl',
        'file:///etc/passwd',
        [
            f"{ARM}: visual: mesh path 'file:///etc/passwd' is an absolute path outside the robot's "
            f'package; expected '
            'package://NAME/path'
        ],
    ),
    'mesh_relative_outside': (
        'package://good/meshes/arm.stl',
        '../../secret.stl',
        [
            f"{ARM}: visual: mesh path '../../secret.stl' "
            "leaves the robot's package; expected a path inside it"
        ],
    ),
    'mesh_from_the_net': (
        'package://good/meshes/arm.stl',
        'http://example.com/a.stl',
        [
            f"{ARM}: visual: mesh path 'http://example.com/a.stl' has the unsupported scheme http:; expected "
            f'package://, model:// '
            'or a relative path'
        ],
    ),
    'texture_outside': (
        '</robot>',
        '<material name="m"><texture filename="/etc/passwd"/></material></robot>',
        [
            "the robot: material 'm': texture path '/etc/passwd' is an absolute path outside the "
            "robot's package; "
            'expected package://NAME/path'
        ],
    ),
    'visual_without_geometry': (VISUAL, '<visual/>', [f'{COSMETIC}{ARM}: visual has no <geometry>']),
    'mesh_without_file': (
        ' filename="package://good/meshes/arm.stl"',
        '',
        [f'{COSMETIC}{ARM}: visual: mesh has no filename'],
    ),
    'unknown_shape_of_a_visual': (
        '<mesh filename="package://good/meshes/arm.stl"/>',
        '<cone/>',
        [
            f'{COSMETIC}{ARM}: visual: unknown geometry <cone>; '
            'expected box, cylinder, sphere, capsule or mesh'
        ],
    ),
    'no_number_in_a_visual': (
        VISUAL,
        VISUAL.replace('<geometry>', '<origin xyz="0 0 up"/><geometry>'),
        [f"{COSMETIC}{ARM}: visual: origin xyz is '0 0 up'; expected 3 finite numbers"],
    ),
    'colour': (
        '</robot>',
        '<material name="m"><color rgba="1 0 0"/></material></robot>',
        [f"{COSMETIC}the robot: material 'm' rgba is '1 0 0'; expected 4 finite numbers"],
    ),
    'two_materials': (
        VISUAL,
        VISUAL.replace('</visual>', '<material name="a"/><material name="b"/></visual>'),
        ['visuals with more than one <material>, on 1 of the links; the first is used: arm'],
    ),
    'two_materials_of_a_collision': (
        '<collision>',
        '<collision><material name="a"/><material name="b"/>',
        ['collisions with more than one <material>, on 1 of the links; the first is used: arm'],
    ),
    'two_origins_of_a_visual': (
        VISUAL,
        VISUAL.replace('<geometry>', '<origin xyz="1 0 0"/><origin xyz="2 0 0"/><geometry>'),
        ['visuals with more than one <origin>, on 1 of the links; the first is used: arm'],
    ),
    'the_same_axis_twice': (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 1 0"/> <axis xyz="0 1 0"/>',
        [f'{ALIKE}<axis> in {ELBOW}'],
    ),
    'two_inertials_alike': (LINK_MASS, LINK_MASS + MASS, [f'{ALIKE}<inertial> in {ARM}']),
    'singular_moving_body': (
        *links('izz="0.1"', 'izz="0"'),
        ['links with singular inertia, like a point mass or a rod: arm'],
    ),
    'unknown_attribute': (
        'effort="3"',
        'effort="3" current="5"',
        ['unknown attributes (1) are ignored: current of <limit>'],
    ),
    'misspelt_attribute': (
        'xyz="0 0 1"',
        'xzy="0 0 1"',
        ['unknown attributes (1) are ignored: xzy of <origin> (meant: xyz?)'],
    ),
    'robot_without_name': (
        '<robot name="good">',
        '<robot name=" ">',
        ["the robot has no name; using 'robot'"],
    ),
    'late_declaration': (
        '<robot name="good">',
        '<!-- by me -->\n \n<?xml version="1.0" encoding="utf-8"?>\n<robot name="good">',
        ['the XML declaration is not at the start of the file; it was ignored'],
    ),
    'comment_in_a_comment': (
        '<link name="tool"/>',
        '<!-- <!-- a -- b --> <link name="tool"/> <!--- --->',
        ['comments contain two dashes, which XML forbids; they were accepted'],
    ),
}


def problems_of(text: str, **options: object) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.simplefilter('ignore', ModelWarning)
        with pytest.raises(ModelError) as caught:
            load_model(text, **options)  # type: ignore[arg-type]
    return caught.value.problems


def test_the_good_robot_is_good() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        model = load_model(GOOD, strict=True)
    assert model.joint_names == ('elbow',)
    assert model.total_mass == 2.0


@pytest.mark.parametrize('case', HARMLESS)
def test_doubtful(case: str) -> None:
    """It loads, with one line that says what; strict mode refuses it; nothing of the file is lost."""
    old, new, (expected,) = HARMLESS[case]
    assert GOOD.count(old) == 1 or old == '</robot>', 'the case must change exactly one place'
    text = GOOD.replace(old, new)
    with pytest.warns(ModelWarning) as caught:
        model = load_model(text)
    (doubt,) = model.warnings
    assert doubt in (expected, UNUSABLE + expected)
    assert str(caught[0].message) == f'URDF text: {doubt}'
    assert problems_of(text, strict=True) == (f'{doubt} (an error in strict mode)',)
    assert model.to_urdf() == text
    changed = model.with_pi(2.0 * model.pi, check=False).with_friction(viscous=[0.5])
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        again = load_model(changed.to_urdf())
    assert (again.pi == changed.pi).all()
    assert (again.viscous == changed.viscous).all()


@pytest.mark.parametrize('case', CASES)
def test_malformed(case: str) -> None:
    old, new, expected = CASES[case]
    assert GOOD.count(old) == 1 or old == '</robot>', 'the case must change exactly one place'
    assert problems_of(GOOD.replace(old, new)) == tuple(expected)


ABSOLUTE = "is an absolute path outside the robot's package; expected package://NAME/path"
ELSEWHERE = 'which denotes another folder; expected package://, model:// or a relative path'
SCHEME = 'expected package://, model:// or a relative path'
MESHES = {
    'file:/etc/passwd': ABSOLUTE,
    'FILE:etc/passwd': ABSOLUTE,
    ' file:/etc/passwd': ABSOLUTE,
    'file%3A/etc/passwd': ABSOLUTE,
    'C:/secret.stl': ABSOLUTE,
    'data:model/stl;base64,AA': f'has the unsupported scheme data:; {SCHEME}',
    'javascript:alert(1)': f'has the unsupported scheme javascript:; {SCHEME}',
    'package:good/../../x': "leaves the package 'good'; expected a path inside it",
    '~/secret.stl': f'starts with ~, {ELSEWHERE}',
    '%7Eroot/secret.stl': f'starts with ~, {ELSEWHERE}',
    '$HOME/secret.stl': f'starts with $, {ELSEWHERE}',
}


@pytest.mark.parametrize('path', MESHES)
def test_mesh_path_is_not_followed(path: str) -> None:
    text = GOOD.replace('package://good/meshes/arm.stl', path)
    (problem,) = problems_of(text, strict=True)
    expected = f"{UNUSABLE}{ARM}: visual: mesh path '{path}' {MESHES[path]}"
    assert problem == f'{expected} (an error in strict mode)'
    with pytest.warns(ModelWarning):
        assert load_model(text).warnings == (expected,)
    with pytest.raises(MeshError) as caught:
        find_mesh(path, '')
    assert str(caught.value) == MESHES[path]


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 30


BARE_ARM = GOOD.replace(LINK_MASS, '<link name="arm">')
# id: (text to replace, its replacement, whether the missing mass of the arm is certain)
BROKEN_TREES: dict[str, tuple[str, str, bool]] = {
    'two_roots': ('<link name="tool"/>', '<link name="tool"/><link name="stray"/>', True),
    'duplicate_joint': ('name="mount"', 'name="elbow"', True),
    'duplicate_base': ('<link name="base">', '<link name="base"/><link name="base">', True),
    'unknown_parent': ('<parent link="base"/>', '<parent link="torso"/>', True),
    'loose_link_without_mass': ('<parent link="arm"/>', '<parent link="xyz"/>', True),
    'duplicate_arm': ('<link name="arm">', '<link name="arm"/><link name="arm">', False),
    'duplicate_tool': ('<link name="tool"/>', f'<link name="tool"/><link name="tool">{MASS}</link>', False),
    'loose_mass': (
        '<joint name="mount" type="fixed"><parent link="arm"/>',
        f'<link name="hand">{MASS}</link>'
        '<joint name="wrist" type="fixed"><parent link="tool"/><child link="hand"/></joint>'
        '<joint name="mount" type="fixed"><parent link="am"/>',
        False,
    ),
    'child_of_two': (
        '</robot>',
        '<joint name="second" type="fixed"><parent link="base"/><child link="arm"/></joint></robot>',
        False,
    ),
    'fixed_child_of_two': (
        '</robot>',
        '<joint name="second" type="fixed"><parent link="base"/><child link="tool"/></joint></robot>',
        False,
    ),
    'loop': ('</robot>', LOOP, False),
}


@pytest.mark.parametrize('case', BROKEN_TREES)
def test_masses_are_checked_without_a_tree(case: str) -> None:
    old, new, certain = BROKEN_TREES[case]
    assert BARE_ARM.count(old) == 1
    whole = problems_of(GOOD.replace(old, new))
    assert len(whole) == 1, 'no follow-up errors'
    bare = problems_of(BARE_ARM.replace(old, new))
    assert bare == (*whole, f"{ARM} moves with joint 'elbow', {NO_MASS}") if certain else bare == whole


def test_masses_of_fixed_links_count_without_a_tree() -> None:
    text = BARE_ARM.replace('<link name="tool"/>', f'<link name="tool">{MASS}</link><link name="stray"/>')
    assert len(problems_of(text)) == 1


def test_noise_of_a_moving_body_is_an_error() -> None:
    """A point mass on the axis of its joint: no torque, or any, would move it."""
    noise = '<inertia ixx="0" ixy="0" ixz="2.4e-35" iyy="0" iyz="0" izz="0"/>'
    inertia = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
    arm = LINK_MASS.replace(inertia, noise).replace('xyz="0 0 0.1"', 'xyz="0 0 0"')
    (problem,) = problems_of(GOOD.replace(LINK_MASS, arm))
    assert problem.startswith(f"{ARM} moves with joint 'elbow', but its inertia about the com")


def test_many_unknown_links_are_told_at_once() -> None:
    joints = ''.join(
        f'<joint name="j{i}" type="fixed"><parent link="{i}_{"x" * 90}"/><child link="tool"/></joint>'
        for i in range(1500)
    )
    links = ''.join(f'<link name="{"x" * 90}_{i}"/>' for i in range(1500))
    start = time.perf_counter()
    problems_of(GOOD.replace('</robot>', f'{links}{joints}</robot>'))
    assert time.perf_counter() - start < 10.0  # 1 s; near names for each would take minutes


def test_all_problems_at_once() -> None:
    text = (
        GOOD.replace('value="2"', 'value="-2"')
        .replace('lower="-1"', 'lower="x"')
        .replace('axis xyz="0 1 0"', 'axis xyz="0 0 0"')
    )
    problems = problems_of(text)
    assert problems == (
        f'{ELBOW}: axis is zero (0 0 0); expected a direction',
        f"{ELBOW}: limit lower is 'x'; expected a finite number",
        "link 'base' (line 2): mass is -2; expected > 0",
        f'{ARM}: mass is -2; expected > 0',
    )


def test_message_has_every_problem_and_the_source() -> None:
    with pytest.raises(ModelError) as caught:
        load_model(GOOD.replace('value="2"', 'value="-2"'))
    assert str(caught.value).startswith('URDF text: 2 problems:\n  - link ')
    assert all(problem in str(caught.value) for problem in caught.value.problems)


def test_floating_base_without_mass() -> None:
    text = GOOD.replace(f'<link name="base">{MASS}</link>', '<link name="base"/>')
    assert load_model(text, floating_base=False).total_mass == 2.0
    assert problems_of(text, floating_base=True) == (f"link 'base' (line 2) is the floating base, {NO_MASS}",)


def test_huge_text_is_refused() -> None:
    text = GOOD.replace('</robot>', '<!--' + 'x' * (33 * 1024 * 1024) + '--></robot>')
    assert problems_of(text) == (f'the text has {len(text)} characters; expected at most {32 * 1024 * 1024}',)


def test_too_many_elements_are_refused() -> None:
    text = GOOD.replace('</robot>', '<a/>' * 300_000 + '</robot>')
    assert problems_of(text) == ('the text has more than 200000 elements',)


def test_too_many_links_are_refused() -> None:
    text = GOOD.replace('</robot>', '<link name="x"/>' * 3000 + '</robot>')
    assert problems_of(text) == ('the robot has 3003 links; expected at most 2000',)


def test_long_chain_does_not_recurse() -> None:
    n = 1900
    links = ''.join(f'<link name="l{i}">{MASS}</link>' for i in range(n))
    joints = ''.join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(n - 1)
    )
    model = load_model(f'<robot name="chain">{links}{joints}</robot>')
    assert model.nj == n - 1
    assert list(model.parents) == list(range(-1, n - 2))


# ---- files


def test_invalid_utf8_file(tmp_path: Path) -> None:
    path = tmp_path / 'r.urdf'
    path.write_bytes(GOOD.encode().replace(b'good', b'g\xff\xfed', 1))
    with pytest.raises(ModelError, match=r'byte 14 is not valid UTF-8; is this a text file\?'):
        load_model(path)


@pytest.mark.parametrize(
    ('raw', 'message'),
    [
        (b'\x7fELF\x02\x01\x00\xff', 'byte 7 is not valid UTF-8; is this a text file?'),
        (b'solid cube\0\0\0', 'character 10 is NUL; is this a text file?'),
        (b'\xff\xfe<', 'byte 2 is not valid UTF-16; is this a text file?'),
        (b'', 'the file is empty'),
        (b'\xef\xbb\xbf \n\t\r\n', 'the file is empty'),
    ],
    ids=['binary', 'nul', 'half_a_character', 'empty', 'white_space'],
)
@pytest.mark.parametrize('suffix', ['urdf', 'urdf.xacro'])
def test_files_without_text(tmp_path: Path, suffix: str, raw: bytes, message: str) -> None:
    path = tmp_path / f'r.{suffix}'
    path.write_bytes(raw)
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert caught.value.problems == (message,)


def test_file_with_xacro_is_told_its_name(tmp_path: Path) -> None:
    path = tmp_path / 'r.urdf'
    path.write_text(GOOD.replace('lower="-1"', 'lower="${min}"').replace('upper="1"', 'upper="${max}"'))
    with pytest.raises(ModelError) as caught:
        load_model(path)
    (problem,) = caught.value.problems
    assert problem == "this looks like xacro: rename it to .xacro (line 10 has '${min}')"


def test_what_only_resembles_xacro_loads() -> None:
    """Expanded files may keep the namespace, and extensions have a language of their own."""
    text = GOOD.replace('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
    text = text.replace(
        '</robot>', '<gazebo><plugin filename="${GZ}/x.so">$(arg x)</plugin></gazebo></robot>'
    )
    assert load_model(text, strict=True).nj == 1


def test_utf16_and_latin1_files(tmp_path: Path) -> None:
    path = tmp_path / 'r.urdf'
    for encoding in ('utf-16', 'iso-8859-1'):
        path.write_bytes(
            f'<?xml version="1.0" encoding="{encoding}"?>\n{GOOD}'.replace('good', 'Käfer').encode(encoding)
        )
        model = load_model(path)
        assert model.name == 'Käfer'
        assert load_model(model.to_urdf()).name == 'Käfer'
        assert 'encoding="utf-8"' in model.to_urdf()


def test_missing_file() -> None:
    with pytest.raises(ModelError, match='no such file or bundled robot; bundled robots: go2, mini_cheetah'):
        load_model('no_such_robot')


@pytest.mark.parametrize(
    'name',
    ['mini-cheetah', 'MINI_CHEETAH', 'minicheeta', 'robots/mini_cheetah.urdf', 'mini_cheetah.urdf.xacro'],
)
def test_near_miss_of_a_bundled_name(name: str) -> None:
    with pytest.raises(ModelError, match=r'did you mean .mini_cheetah.\? bundled robots: go2, mini_'):
        load_model(name)


@pytest.mark.parametrize('name', ['', 'x' * 5000, 'a\0b'], ids=['empty', 'long', 'nul'])
def test_impossible_names(name: str) -> None:
    with pytest.raises(ModelError, match='no such file'):
        load_model(name)


def test_mesh_paths_of_a_file(tmp_path: Path) -> None:
    """Inside the package everything goes, absolute paths too; outside nothing does."""
    folder = tmp_path / 'my_robot' / 'urdf'
    folder.mkdir(parents=True)
    (tmp_path / 'my_robot' / 'package.xml').write_text('<package/>')
    path = folder / 'r.urdf'
    inside = [
        '../meshes/a.stl',
        'a.stl',
        f'{tmp_path}/my_robot/meshes/a.stl',
        f'file://{tmp_path}/my_robot/a.stl',
    ]
    outside = [
        '../../a.stl',
        f'{tmp_path}/other/a.stl',
        f'file://{tmp_path}/my_robot/../a.stl',
        '..\\..\\a.stl',
    ]
    for mesh in inside:
        path.write_text(GOOD.replace('package://good/meshes/arm.stl', mesh))
        assert load_model(path).nj == 1
    for mesh in outside:
        path.write_text(GOOD.replace('package://good/meshes/arm.stl', mesh))
        with pytest.raises(ModelError, match='package'):
            load_model(path, strict=True)
        with pytest.raises(MeshError, match='package'):
            find_mesh(mesh, str(path))


def test_mesh_beside_a_lone_file(tmp_path: Path) -> None:
    """A file in a folder that is no package, such as Downloads, reaches only what is beside it."""
    path = tmp_path / 'r.urdf'
    path.write_text(GOOD.replace('package://good/meshes/arm.stl', 'meshes/arm.stl'))
    assert load_model(path).nj == 1
    path.write_text(GOOD.replace('package://good/meshes/arm.stl', '../secret.stl'))
    with pytest.raises(ModelError, match="leaves the robot's package"):
        load_model(path, strict=True)
    (tmp_path.parent / 'secret.stl').write_text('')
    with pytest.raises(MeshError, match="leaves the robot's package"):
        find_mesh('../secret.stl', str(path))


# ---- doubts

# id: (text to replace, its replacement, the warning)
DOUBTS: dict[str, tuple[str, str, str]] = {
    'triangle': (
        *links('izz="0.1"', 'izz="0.3"'),
        'the inertia of some links violates the triangle inequality, which is physically impossible; it is '
        'used unchanged (largest principal moment over the sum of the others; at most 1 for a real body): '
        'arm (1.500)',
    ),
    'massless': (
        '<link name="tool"/>',
        '<link name="tool"><inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" '
        'iyz="0" izz="0"/>'
        '</inertial></link>',
        'links with mass 0 and inertia 0 are treated as massless: tool',
    ),
    'point_mass': (
        '<link name="tool"/>',
        '<link name="tool"><inertial><mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" '
        'iyz="0" izz="0"/>'
        '</inertial></link>',
        'links with singular inertia, like a point mass or a rod: tool',
    ),
    'rounding_noise': (  # a point mass that an exporter turned
        '<link name="tool"/>',
        '<link name="tool"><inertial><mass value="1.3"/><inertia ixx="0" ixy="0" ixz="2.4e-35" iyy="0" '
        'iyz="0" izz="0"/></inertial></link>',
        'links with singular inertia, like a point mass or a rod: tool',
    ),
    'long_axis': (
        '<axis xyz="0 1 0"/>',
        '<axis xyz="0 2 0"/>',
        f'joint axes that are not unit vectors were normalised: {ELBOW} (length 2)',
    ),
    'no_limit': (
        '<limit lower="-1" upper="1" velocity="2" effort="3"/>',
        '',
        f'joints without <limit> are treated as unlimited: {ELBOW}',
    ),
    'no_bounds': (
        'lower="-1" upper="1" ',
        '',
        f'joints whose <limit> has neither lower nor upper are treated as unlimited: {ELBOW}',
    ),
    'no_lower': (
        'lower="-1" ',
        '',
        f'joints whose <limit> lacks lower or upper, which defaults to 0 as specified by URDF: {ELBOW}',
    ),
    'no_effort': (
        ' effort="3"',
        '',
        f'joints whose <limit> lacks effort are treated as unlimited in effort: {ELBOW}: limit',
    ),
    'zero_effort': (
        'effort="3"',
        'effort="0"',
        f'joints whose effort limit is 0, so that they cannot be used: {ELBOW}: limit',
    ),
    'zero_velocity': (
        'velocity="2"',
        'velocity="0"',
        f'joints whose velocity limit is 0 are treated as unlimited in velocity: {ELBOW}: limit',
    ),
    'misspelt': (
        '<link name="tool"/>',
        '<link name="tool"><inertail/></link>',
        "unknown elements were ignored: <inertail> in link 'tool' (line 7) (meant: <inertial>?)",
    ),
    'mimic_of_nobody': (
        '<axis',
        '<mimic joint="nobody"/><axis',
        f'mimic joints are treated as independent joints: {ELBOW} '
        "(mimics 'nobody', which is not another joint of the robot)",
    ),
    'mimic_of_itself': (
        '<axis',
        '<mimic joint="elbow"/><axis',
        f'mimic joints are treated as independent joints: {ELBOW} '
        "(mimics 'elbow', which is not another joint of the robot)",
    ),
    'mimic': (
        '<joint name="mount" type="fixed">',
        '<joint name="mount" type="continuous"><mimic joint="elbow"/>',
        "mimic joints are treated as independent joints: joint 'mount' (line 12)",
    ),
}


@pytest.mark.parametrize('case', DOUBTS)
def test_doubt_warns_once_and_strict_refuses(case: str) -> None:
    old, new, expected = DOUBTS[case]
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    if case == 'mimic':
        text = text.replace('<link name="tool"/>', f'<link name="tool">{MASS}</link>')
    with pytest.warns(ModelWarning) as caught:
        model = load_model(text)
    assert model.warnings == (expected,)
    assert [str(warning.message) for warning in caught] == [f'URDF text: {expected}']
    assert caught[0].filename == __file__, 'the warning must point at the line that loads the model'
    assert problems_of(text, strict=True) == (f'{expected} (an error in strict mode)',)


def test_many_links_one_warning() -> None:
    text = GOOD.replace('izz="0.1"', 'izz="0.3"')
    with pytest.warns(ModelWarning) as caught:
        load_model(text)
    assert len(caught) == 1
    assert 'base (1.500), arm (1.500)' in str(caught[0].message)
