# SPDX-License-Identifier: Apache-2.0
"""Robot description: what it can say, and how it is refused."""

from __future__ import annotations

import copy
import os
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from closeness import assert_close
from slow_variants import slow_but

from quad_dynamics.api.dynamics import mass_matrix
from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning
from quad_dynamics.model.description import ContactPoint, Motor, StandingPose
from quad_dynamics.model.inertia import full_inertia, rotation_of_rpy, steiner
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.model import Model

EXACT = 1e-13
DOCUMENT = Path(__file__).resolve().parents[2] / 'docs' / 'robot_description.md'
ROTOR = {'gear': 6.0, 'mass': 0.1, 'inertia': [1e-4, 2e-4, 1e-4]}
MOTOR = {'torque_limit': 3.0, 'voltage': 24.0, 'torque_constant': 0.05, 'resistance': 0.2}
JOINTS = 'FL_hip_joint, FL_thigh_joint, FL_calf_joint'


def load(description: Any, name: str = 'mini_cheetah_leg', **options: Any) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(name, description=description, **options)


# id: (description, problems)
REFUSED: dict[str, tuple[Any, list[str]]] = {
    'unknown_key': (
        {'foots': []},
        [
            "quad_dynamics: unknown key 'foots'; known keys are floating_base, feet, "
            'contact_points, rotors, motors, '
            'standing'
        ],
    ),
    'top_is_no_mapping': ({'quad_dynamics': [1]}, ['quad_dynamics: is [1]; expected a mapping']),
    'floating_base': (
        {'floating_base': 'yes'},
        ["quad_dynamics.floating_base is 'yes'; expected true or false"],
    ),
    'unknown_foot': ({'feet': ['FL_fot']}, ["quad_dynamics.feet: the robot has no link 'FL_fot'"]),
    'foot_twice': (
        {'feet': ['FL_foot', 'FL_foot']},
        ["quad_dynamics.feet: a link is named twice in ['FL_foot', 'FL_foot']"],
    ),
    'feet_text': (
        {'feet': 'FL_foot'},
        ["quad_dynamics.feet is 'FL_foot'; expected a list of links, or a mapping from leg names to links"],
    ),
    'point_unknown_link': (
        {'contact_points': [{'link': 'nose'}]},
        ["quad_dynamics.contact_points[0].link: the robot has no link 'nose'"],
    ),
    'point_unknown_key': (
        {'contact_points': [{'link': 'FL_foot', 'radios': 1}]},
        [
            "quad_dynamics.contact_points[0]: unknown key 'radios'; known keys are name, link, "
            'position, radius'
        ],
    ),
    'point_position': (
        {'contact_points': [{'link': 'FL_foot', 'position': [0, 1]}]},
        ['quad_dynamics.contact_points[0].position is [0, 1]; expected 3 finite numbers'],
    ),
    'point_radius': (
        {'contact_points': [{'link': 'FL_foot', 'radius': -1}]},
        ['quad_dynamics.contact_points[0].radius is -1; expected a number >= 0'],
    ),
    'point_names': (
        {'contact_points': [{'link': 'FL_foot', 'name': 'a'}, {'link': 'FL_calf', 'name': 'a'}]},
        ["quad_dynamics.contact_points: two points are named 'a'; expected different names"],
    ),
    'points_mapping': (
        {'contact_points': {}},
        ['quad_dynamics.contact_points is {}; expected a list of mappings'],
    ),
    'rotor_of_nobody': (
        {'rotors': {'knee': ROTOR}},
        [f"quad_dynamics.rotors: 'knee' matches no movable joint; the robot has: {JOINTS}"],
    ),
    'rotor_twice': (
        {'rotors': {'*_calf_joint': {'gear': 1}, 'FL_c*': {'gear': 1}}},
        ["quad_dynamics.rotors: joint 'FL_calf_joint' is matched by both '*_calf_joint' and 'FL_c*'"],
    ),
    'rotor_without_gear': (
        {'rotors': {'FL_calf_joint': {}}},
        ['quad_dynamics.rotors.FL_calf_joint: gear is missing'],
    ),
    'rotor_gear_zero': (
        {'rotors': {'FL_calf_joint': {'gear': 0}}},
        ['quad_dynamics.rotors.FL_calf_joint.gear is 0.0; expected a nonzero ratio'],
    ),
    'rotor_mass': (
        {'rotors': {'FL_calf_joint': ROTOR | {'mass': -1}}},
        ['quad_dynamics.rotors.FL_calf_joint.mass is -1; expected a number >= 0'],
    ),
    'rotor_inertia_count': (
        {'rotors': {'FL_calf_joint': ROTOR | {'inertia': [1, 2]}}},
        [
            'quad_dynamics.rotors.FL_calf_joint.inertia is [1, 2]; expected 3 numbers [xx, yy, zz] '
            'or 6 numbers '
            '[xx, xy, yy, xz, yz, zz]'
        ],
    ),
    'rotor_not_round': (
        {'rotors': {'FL_calf_joint': ROTOR | {'inertia': [2e-4, 1e-4, 1e-4]}}},
        [
            "quad_dynamics.rotors: rotor of joint 'FL_calf_joint': inertia is not symmetric about "
            'the spin axis (0 1 0 in '
            'the parent link); it deviates by 25.0%'
        ],
    ),
    'rotor_negative': (
        {'rotors': {'FL_calf_joint': ROTOR | {'inertia': [1e-4, -1e-4, 1e-4]}}},
        [
            "quad_dynamics.rotors: rotor of joint 'FL_calf_joint': inertia is negative (axial "
            '-0.0001, transverse '
            '0.0001 kg m^2)'
        ],
    ),
    'rotor_axis': (
        {'rotors': {'FL_calf_joint': ROTOR | {'axis': [0, 0, 0]}}},
        ['quad_dynamics.rotors.FL_calf_joint.axis is [0.0, 0.0, 0.0]; expected a nonzero direction'],
    ),
    'rotor_nan': (
        {'rotors': {'FL_calf_joint': ROTOR | {'gear': float('nan')}}},
        ['quad_dynamics.rotors.FL_calf_joint.gear is nan; expected a finite number'],
    ),
    'rotor_true': (
        {'rotors': {'FL_calf_joint': ROTOR | {'gear': True}}},
        ['quad_dynamics.rotors.FL_calf_joint.gear is True; expected a finite number'],
    ),
    'motor_incomplete': (
        {'motors': {'*': {'torque_limit': 3, 'voltage': 24, 'resistance': 1}}},
        ['quad_dynamics.motors.*: torque_constant is missing'],
    ),
    'motor_zero': (
        {'motors': {'FL_calf_joint': MOTOR | {'resistance': 0}}},
        ['quad_dynamics.motors.FL_calf_joint.resistance is 0; expected a number > 0'],
    ),
    'motor_unknown_key': (
        {'motors': {'FL_calf_joint': MOTOR | {'kt': 1}}},
        [
            "quad_dynamics.motors.FL_calf_joint: unknown key 'kt'; known keys are torque_limit, "
            'voltage, torque_constant, '
            'resistance, damping, dry_friction'
        ],
    ),
    'standing_outside_limits': (
        {'standing': {'joints': {'FL_calf_joint': 3}}},
        [
            'quad_dynamics.standing.joints: FL_calf_joint is 3; expected a value within its limits -2.705 to '
            '2.705'
        ],
    ),
    'standing_text': (
        {'standing': {'joints': {'FL_calf_joint': 'bent'}}},
        ["quad_dynamics.standing.joints.FL_calf_joint is 'bent'; expected a finite number"],
    ),
    'standing_list': ({'standing': []}, ['quad_dynamics.standing is []; expected a mapping']),
    'several': (
        {'feet': ['x'], 'motors': 3},
        ["quad_dynamics.feet: the robot has no link 'x'", 'quad_dynamics.motors is 3; expected a mapping'],
    ),
}


@pytest.mark.parametrize('case', REFUSED)
def test_refused(case: str) -> None:
    data, expected = REFUSED[case]
    with pytest.raises(ModelError) as caught:
        load(data)
    assert caught.value.problems == tuple(expected)


def test_mapping_of_tuples_and_arrays() -> None:
    plain = {
        'floating_base': True,
        'feet': ['FL_foot'],
        'contact_points': [{'link': 'FL_foot', 'position': [0.0, 0.5, 0.25], 'radius': 0.5}],
        'rotors': {'FL_calf_joint': {'gear': 6, 'mass': 0.5, 'inertia': [0.25, 0.5, 0.25]}},
        'standing': {'base_height': 0.5, 'joints': {'FL_calf_joint': -1.5}},
    }
    other = {
        'floating_base': np.bool_(True),
        'feet': np.array(['FL_foot']),
        'contact_points': (
            {'link': np.str_('FL_foot'), 'position': (0.0, np.float32(0.5), 0.25), 'radius': np.array(0.5)},
        ),
        'rotors': {
            'FL_calf_joint': {
                'gear': np.int64(6),
                'mass': np.float64(0.5),
                'inertia': np.array([0.25, 0.5, 0.25]),
            }
        },
        'standing': {'base_height': np.float16(0.5), 'joints': {'FL_calf_joint': np.float64(-1.5)}},
    }
    expected = load(plain, 'mini_cheetah').description
    assert load(other, 'mini_cheetah').description == expected
    assert load({'quad_dynamics': other}, 'mini_cheetah').description == expected


@pytest.mark.parametrize('position', [np.zeros(2), np.zeros((3, 1)), np.array([0, 0, np.nan]), (0, 0, 1j)])
def test_wrong_arrays_are_refused(position: Any) -> None:
    with pytest.raises(ModelError, match='expected 3 finite numbers'):
        load({'contact_points': [{'link': 'FL_foot', 'position': position}]})


def test_endless_mapping_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless['feet'] = endless
    with pytest.raises(ModelError, match='the robot has no link'):
        load(endless)


def test_problems_of_urdf_and_description_together() -> None:
    text = load({}).urdf.text.replace('<mass value="0.54"/>', '<mass value="-1"/>')
    with pytest.raises(ModelError) as caught:
        load({'feet': ['x']}, text)
    assert len(caught.value.problems) == 2
    assert caught.value.problems[0].endswith('mass is -1; expected > 0')
    assert caught.value.problems[1] == "quad_dynamics.feet: the robot has no link 'x'"


# ---- files


def test_description_file_beside_the_urdf(tmp_path: Path) -> None:
    urdf = tmp_path / 'leg.urdf'
    urdf.write_text(load({}).urdf.text)
    assert load(None, str(urdf)).rotor_inertia.sum() == 0.0
    (tmp_path / 'leg.yaml').write_text('other_tool: {}\n')
    assert load(None, str(urdf)).rotor_inertia.sum() == 0.0, 'a YAML of somebody else is left alone'
    (tmp_path / 'leg.yaml').write_text(
        yaml.safe_dump({'quad_dynamics': {'rotors': {'FL_calf_joint': ROTOR}}})
    )
    assert load(None, str(urdf)).rotor_gear[2] == 6.0
    assert load({}, str(urdf)).rotor_inertia.sum() == 0.0, 'a description that is given beats the file'


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('a: [1', 'd.yaml: invalid YAML: while parsing a flow sequence'),
        (
            'quad_dynamics: {feet: !!python/name:os.system }',
            'd.yaml: invalid YAML: could not determine a constructor',
        ),
        ('a: &x [1]\nquad_dynamics: {feet: *x}', r'invalid YAML: aliases \(\*name\) are not supported'),
        ('x: 1', "the file has no top key 'quad_dynamics:'"),
        ('- 1', "the file has no top key 'quad_dynamics:'"),
        ('a: \udcff', r'd\.yaml: byte 3 is not valid UTF-8; is this a text file\?'),
    ],
    ids=['broken', 'python_object', 'aliases', 'no_key', 'list', 'bytes'],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / 'd.yaml'
    path.write_bytes(text.encode('utf-8', 'surrogateescape'))
    with pytest.raises(ModelError, match=message):
        load(path)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (
            'quad_dynamics:\n  feet: [FL_foot]\n  rotors:\n    FL_hip_joint:\n      gear: 6\n      gear: 7\n'
            '  "feet": []\n',
            [
                "line 7: the key 'feet' is already in line 2; expected once",
                "line 6: the key 'gear' is already in line 5; expected once",
            ],
        ),
        (
            'quad_dynamics: {}\nquad_dynamics: {}\nquad_dynamics: {}\n',
            [f"line {line}: the key 'quad_dynamics' is already in line 1; expected once" for line in (2, 3)],
        ),
        (
            'quad_dynamics: {standing: {base_height: 1, base_height: 2}}',
            ["line 1: the key 'base_height' is already in line 1; expected once"],
        ),
    ],
    ids=['nested', 'top', 'one_line'],
)
def test_key_twice(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / 'd.yaml'
    path.write_text(text)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert caught.value.problems == tuple(f'{path}: {line}' for line in expected)


def test_name_of_the_file_beside(tmp_path: Path) -> None:
    """Only the endings of robot files are taken off: a version stays."""
    text = load({}).urdf.text
    (tmp_path / 'leg.yaml').write_text('quad_dynamics: {wrong: 1}')
    (tmp_path / 'leg.v2.yaml').write_text('quad_dynamics: {rotors: {FL_calf_joint: {gear: 5}}}')
    for name in ('leg.v2.urdf', 'leg.v2.urdf.xacro', 'leg.v2.xml', 'leg.v2.URDF', 'leg.v2'):
        (tmp_path / name).write_text(text)
        assert load(None, str(tmp_path / name)).rotor_gear[2] == 5.0, name


def test_missing_file_and_wrong_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo('pipe')
    for path, message in {
        'none.yaml': 'cannot be read: No such file or directory',
        '.': 'is a directory; expected a YAML file',
        './pipe': 'is not a regular file; expected a YAML file',
    }.items():
        with pytest.raises(ModelError) as caught:
            load(path)
        assert caught.value.problems == (f'{path}: {message}',)
    with pytest.raises(ArgumentError, match='description has type int; expected a path or a mapping'):
        load(3)


# ---- random edits

STRANGE = (
    None, 1, -1, 0, 1e300, float('nan'), float('inf'), True, 'x', '', [], {}, [1, 2, 3], {'a': 1}, 'FL_foot',
    '*', 'FL_calf_joint', [None] * 3, 10**400, b'x', {1: 2}, {None: None},
)  # fmt: skip


def places(data: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [place for key in keys for place in ((data, key), *places(data[key]))]


@pytest.mark.parametrize('seed', slow_but([0], range(3)), ids=lambda seed: f'seed{seed}')
def test_edited_description(seed: int) -> None:
    """Whatever the YAML holds, the end is a model or our own error."""
    rng = random.Random(seed)
    path = Path(load({}).urdf.path).with_suffix('.yaml')
    outcomes = Counter[str]()
    for _ in range(200):
        data = yaml.safe_load(path.read_text(encoding='utf-8'))
        for _ in range(rng.choice((1, 1, 3))):
            container, key = rng.choice(places(data) or [(data, 'x')])
            if rng.random() < 0.2 and isinstance(container, dict):
                container[rng.choice(('x', 1, None, '*', 'FL_*'))] = copy.deepcopy(container.pop(key, None))
            else:
                container[key] = copy.deepcopy(rng.choice(STRANGE))
        try:
            load(data)
            outcomes['model'] += 1
        except ModelError as error:
            assert all(problem.startswith('quad_dynamics') for problem in error.problems)
            outcomes['error'] += 1
    assert min(outcomes['model'], outcomes['error']) > 5


# ---- what it says


def test_bundled_description() -> None:
    model = load(None, 'mini_cheetah')
    description = model.description
    assert description.floating_base is True
    assert not description.feet_from_tree
    assert len(description.contact_points) == 16
    assert description.contact_points[0] == ContactPoint(
        'body_front_left_top', 'base_link', (0.19, 0.049, 0.05)
    )
    assert description.motors['RR_calf_joint'] == Motor('RR_calf_joint', 3.0, 24.0, 0.05, 0.173)
    assert description.standing == StandingPose(
        None, {f'{leg}_{part}_joint': q for leg in ('FL', 'FR', 'RL', 'RR') for part, q in
               (('hip', 0.0), ('thigh', 0.8), ('calf', -1.6))}
    )  # fmt: skip


def test_full_name_beats_patterns() -> None:
    rotors = {'FL_calf_joint': {'gear': 9.0}, '*': {'gear': 6.0}}
    assert list(load({'rotors': rotors}).rotor_gear) == [6.0, 6.0, 9.0]
    assert list(load({'rotors': dict(reversed(rotors.items()))}).rotor_gear) == [6.0, 6.0, 9.0]


def test_feet_order_and_leg_names() -> None:
    """Who names the feet decides the order of legs and joints."""
    model = load({'feet': {'back': 'RL_foot', 'front': 'FR_foot'}}, 'mini_cheetah')
    assert [leg.name for leg in model.legs] == ['back', 'front']
    assert model.foot_names == ('RL_foot', 'FR_foot')
    assert [model.joint_names[i] for i in model.legs[0].joint_indices] == [
        'RL_hip_joint', 'RL_thigh_joint', 'RL_calf_joint',
    ]  # fmt: skip
    assert model.joint_names.index('RL_hip_joint') < model.joint_names.index('FR_hip_joint')
    none = load({'feet': []}, 'mini_cheetah')
    assert none.legs == ()
    assert not none.floating_base


def test_standing_height_follows_from_the_angles() -> None:
    model = load({'standing': {'joints': {'*_calf_joint': -1.0}}}, 'mini_cheetah')
    assert model.standing is not None
    radius = 0.01  # of the collision sphere, as this description gives no contact points
    assert_close(model.standing[2], 0.209 + 0.195 * np.cos(1.0) + radius, EXACT)
    given = load({'standing': {'base_height': 0.5, 'joints': {}}}, 'mini_cheetah')
    assert given.standing is not None
    assert given.standing[2] == 0.5


# ---- rotors


def test_rotor_arrays_of_the_bundled_robot() -> None:
    model = load(None, 'mini_cheetah')
    assert_close(model.total_mass, 8.252 + 0.66, EXACT)
    assert list(model.rotor_gear[:3]) == [6.0, 6.0, 9.33]
    assert_close(model.rotor_inertia, np.full(12, 63e-6), EXACT, scale=1e-6)
    assert_close(model.rotor_axis[:3], np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]]), EXACT)
    base = model.rotor_pi[:10]
    corners = np.array([[x, y, 0.0] for x in (0.125, -0.125) for y in (0.049, -0.049)])
    expected = sum(steiner(0.055, p) + np.diag([63e-6, 33e-6, 33e-6]) for p in corners)
    assert_close(base[:4], [0.22, 0, 0, 0], EXACT)
    assert_close(full_inertia(base[4:]), expected, EXACT)
    assert_close(
        model.rotor_pi.reshape(-1, 10)[model.body_names.index('FR_hip'), 1:4], [0, -0.0022, 0], EXACT
    )
    assert not model.rotor_pi.reshape(-1, 10)[model.body_names.index('FL_calf')].any()


def test_rotors_on_an_immobile_root_add_to_no_body() -> None:
    model = load(None)
    masses = model.rotor_pi.reshape(-1, 10)[:, 0]
    assert list(masses) == [0.055, 0.055, 0.0]
    assert_close(model.rotor_inertia, np.full(3, 63e-6), EXACT, scale=1e-6)


def test_turned_rotor_on_a_fixed_link_with_its_own_axis() -> None:
    """A bevel gear: the rotor spins about another axis than the joint, on a link merged into its body."""
    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    )
    text = f"""<robot name="r">
      <link name="root">{inertia}</link><link name="plate"/><link name="arm">{inertia}</link>
      <joint name="f" type="fixed"><parent link="root"/><child link="plate"/>
        <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/></joint>
      <joint name="j" type="continuous"><parent link="plate"/><child link="arm"/>
        <origin xyz="0 0 1" rpy="1 0 0"/><axis xyz="0 0 1"/></joint></robot>"""
    rpy, position = (0.4, 0.5, 0.6), np.array([0.1, 0.2, 0.3])
    R_BP, R_PR = rotation_of_rpy((0.1, 0.2, 0.3)), rotation_of_rpy(rpy)
    axis = R_PR @ [0, 0, 1]
    rotor = {
        'gear': -3.0,
        'mass': 2.0,
        'inertia': [1.0, 0.0, 1.0, 0.0, 0.0, 1.5],
        'position': [0.1, 0.2, 0.3],
        'rpy': list(rpy),
    }
    with pytest.raises(ModelError, match='not symmetric about the spin axis'):
        load({'rotors': {'j': rotor}}, text, floating_base=True)
    model = load(
        {'rotors': {'j': rotor | {'axis': [float(a) for a in 2.0 * axis]}}}, text, floating_base=True
    )
    assert model.rotor_gear[0] == -3.0
    assert_close(model.rotor_inertia[0], 1.5, EXACT)
    assert_close(model.rotor_axis[0], R_BP @ axis, EXACT)
    p = np.array([1.0, 2.0, 3.0]) + R_BP @ position
    R = R_BP @ R_PR
    assert_close(model.rotor_pi[:4], np.array([2.0, *(2.0 * p)]), EXACT)
    assert_close(
        full_inertia(model.rotor_pi[4:10]), R @ np.diag([1.0, 1.0, 1.5]) @ R.T + steiner(2.0, p), EXACT
    )
    # without an axis of its own a rotor spins about the joint's axis, turned into the parent body
    plain = load({'rotors': {'j': {'gear': 2}}}, text, floating_base=True)
    assert_close(plain.rotor_axis[0], R_BP @ rotation_of_rpy((1, 0, 0)) @ [0, 0, 1], EXACT)


def test_without_rotors() -> None:
    model = load(None, 'mini_cheetah')
    bare = model.without_rotors()
    assert_close(bare.total_mass, 8.252, EXACT)
    assert not bare.rotor_inertia.any()
    assert not bare.rotor_pi.any()
    np.testing.assert_array_equal(bare.pi, model.pi)
    assert model.rotor_inertia.all()


# ---- the document


def documented_yaml() -> dict[str, Any]:
    """The complete example of the document."""
    text = DOCUMENT.read_text(encoding='utf-8')
    return yaml.safe_load(text.split('```yaml\n')[1].split('```')[0])  # type: ignore[no-any-return]


def test_documented_example_loads() -> None:
    model = load(documented_yaml(), 'mini_cheetah')
    description = model.description
    assert description.rotors
    assert description.motors
    assert description.standing
    assert description.contact_points
    assert len(description.feet) == 4


def test_every_key_is_documented() -> None:
    text = DOCUMENT.read_text(encoding='utf-8')
    for case in ('unknown_key', 'point_unknown_key', 'motor_unknown_key'):
        known = REFUSED[case][1][0].split('known keys are ')[1].split(', ')
        for key in known:
            assert f'`{key}`' in text, key
    for key in ('gear', 'mass', 'inertia', 'position', 'rpy', 'axis', 'base_height', 'joints'):
        assert f'`{key}`' in text, key


def test_with_rotors() -> None:
    """Another inertia counts times the square of the gear, and links carry it; mass and gear stay."""
    model = load(None, 'mini_cheetah')
    other = model.with_rotors(2.0 * model.rotor_inertia)
    carried = np.zeros((13, 10))
    for parent, (x, y, z), J in zip(model.parents, model.rotor_axis, model.rotor_inertia, strict=True):
        carried[parent + 1, 4:] += J * np.array([x * x, x * y, y * y, x * z, y * z, z * z])
    np.testing.assert_allclose(other.rotor_pi - model.rotor_pi, carried.ravel(), rtol=1e-9, atol=1e-18)
    q = model.neutral
    links = mass_matrix(model.without_rotors().with_pi(model.pi + carried.ravel()), q)
    more = mass_matrix(other, q) - mass_matrix(model, q) - (links - mass_matrix(model.without_rotors(), q))
    np.testing.assert_allclose(np.diag(more)[6:], model.rotor_gear**2 * model.rotor_inertia, rtol=1e-9)
    # However large, a rotor that is carried has no negative energy.
    assert np.linalg.eigvalsh(mass_matrix(model.with_rotors(np.full(12, 10.0)), q)).min() > 0.0
    np.testing.assert_array_equal(model.with_rotors().rotor_pi, model.rotor_pi)
    np.testing.assert_array_equal(model.with_rotors(gear=np.full(12, 7.0)).rotor_gear, np.full(12, 7.0))
    with pytest.raises(ArgumentError, match='rotor_inertia'):
        model.with_rotors([1.0])
