# SPDX-License-Identifier: Apache-2.0
"""What identification writes: URDF, robot description, parameters; and that nothing is ever overwritten."""

from __future__ import annotations

import dataclasses
import io
import shutil
from pathlib import Path
from typing import Any

import identification_data as data
import identified_robots as robots
import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml
from cases import Case
from closeness import assert_close
from identification_bags import arm_truth, joint_states, write
from reference_rotors import description, random_rotors
from states import random_state

import quad_dynamics as qd
from quad_dynamics.api.drives import motor_limits
from quad_dynamics.cli.identify_summary import print_summary
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.report.armature import armatures, gear_note, srdf_text
from quad_dynamics.identification.report.html_report import report_text
from quad_dynamics.identification.report.output_folder import check_output, write_results
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.report.rotor_output import description_text
from quad_dynamics.identification.report.urdf_output import robot_file_name, write_urdf

CLOSE = {'rtol': 1e-9, 'atol': 1e-14}  # what reloading promises; values below 1e-5 have 1e-14 of rounding


def reloaded(solution: Any, folder: Path, floating_base: bool | None = None) -> Any:
    path, _ = write_urdf(solution, folder)
    text = description_text(solution)
    if text:
        path.with_suffix('.yaml').write_text(text)
    return robots.load(path, floating_base=floating_base)


# ---------------------------------------------------------------- URDF


@pytest.mark.parametrize('name', ['two_link_arm', 'mini_cheetah_leg', 'mini_cheetah'])
def test_reloads_to_the_same_parameters(name: str, tmp_path: Path) -> None:
    model = data.robot(name)
    solution = robots.solved(model, data.changed(model, seed=5))
    again = reloaded(solution, tmp_path)
    assert again.body_names == model.body_names
    np.testing.assert_allclose(again.pi, solution.part('pi'), **CLOSE)
    np.testing.assert_allclose(again.viscous, solution.part('viscous'), **CLOSE)
    np.testing.assert_allclose(again.coulomb, solution.part('coulomb'), **CLOSE)
    np.testing.assert_allclose(again.rotor_inertia, model.rotor_inertia, **CLOSE)
    assert again.foot_names == model.foot_names
    assert again.contact_points == model.contact_points
    assert again.description.motors == model.description.motors


@pytest.mark.parametrize('seed', [0, 1], ids=['seed0', 'seed1'])
def test_fused_links_and_turned_frames(seed: int, tmp_path: Path) -> None:
    """Links that are fixed to a body are part of it once, not twice, and rpy of frames is not forgotten.

    Pinocchio reads the written file as well: dynamics are those of the parameters that were found.
    """
    model = robots.load(robots.TURNED_ARM, floating_base=False)
    solution = robots.solved(model, data.changed(model, seed))
    again = reloaded(solution, tmp_path, floating_base=False)
    np.testing.assert_allclose(again.pi, solution.part('pi'), **CLOSE)

    independent = pin.buildModelFromUrdf(str(tmp_path / 'turned_arm.urdf'))
    scratch, rng = independent.createData(), np.random.default_rng(seed)
    q, u, du = rng.uniform(-1.0, 1.0, (3, 2))
    wanted = qd.inverse_dynamics(solution.model(), q, u, du)
    # Sums of a handful of terms of size 10: some 1e-14.
    np.testing.assert_allclose(pin.rnea(independent, scratch, q, u, du), wanted, rtol=1e-11, atol=1e-12)


def test_order_of_inertia_and_the_point_it_is_about(tmp_path: Path) -> None:
    """pi has Ixx Ixy Iyy Ixz Iyz Izz about the origin; the file's are named, and about the com."""
    model = robots.load(robots.TURNED_ARM, floating_base=False)
    mass, com = 2.0, np.array([0.1, -0.2, 0.3])
    about_com = np.array([[0.05, 0.001, 0.002], [0.001, 0.06, 0.003], [0.002, 0.003, 0.04]])
    about_origin = about_com + mass * (com @ com * np.eye(3) - np.outer(com, com))
    entries = about_origin[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    true = model.with_pi(np.concatenate([[mass], mass * com, entries, model.pi[10:]]))
    write_urdf(robots.solved(model, true), tmp_path)
    body = pin.buildModelFromUrdf(str(tmp_path / 'turned_arm.urdf')).inertias[1]  # an independent reader
    assert body.mass == pytest.approx(mass, rel=1e-12)
    np.testing.assert_allclose(body.lever, com, rtol=1e-12)
    np.testing.assert_allclose(body.inertia, about_com, rtol=1e-9)


def test_meshes_come_along(tmp_path: Path) -> None:
    """A relative path is valid from the new place; one that leads nowhere still lets the robot load."""
    old, new = tmp_path / 'robot' / 'urdf', tmp_path / 'new'
    (tmp_path / 'robot' / 'meshes').mkdir(parents=True)
    old.mkdir()
    new.mkdir()
    (tmp_path / 'robot' / 'meshes' / 'upper.stl').write_bytes(b'solid')
    text = robots.TURNED_ARM.replace('meshes/upper.stl', '../meshes/upper.stl')
    extra = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    text = text.replace(
        '<link name="foot">', '<link name="foot">' + extra.format('../meshes/lost &amp; gone.stl')
    )
    text = text.replace(
        '<link name="sensor">', '<link name="sensor">' + extra.format('package://other/x.stl')
    )
    (old / 'arm.urdf').write_text(text.replace('</robot>', '<!-- <mesh filename="../kept"/> --></robot>'))
    model = robots.load(old / 'arm.urdf', floating_base=False)
    path, missing = write_urdf(robots.solved(model, data.changed(model, 0)), new)
    shutil.rmtree(tmp_path / 'robot')
    assert (new / 'meshes' / 'upper.stl').read_bytes() == b'solid'
    written = path.read_text()
    assert 'filename="meshes/upper.stl"' in written
    assert 'package://other/x.stl' in written
    assert '<mesh filename="../kept"/>' in written  # in a comment
    assert len(missing) == 1
    assert 'lost & gone.stl' in missing[0]
    assert robots.load(path, floating_base=False).nj == 2


def test_names_of_files() -> None:
    assert robot_file_name('my robot/..') == 'my_robot_'
    assert robot_file_name('../..') == '_'
    assert robot_file_name('') == 'robot'


# ---------------------------------------------------------------- rotors


@pytest.mark.parametrize('name', ['mini_cheetah', 'two_link_arm'])
def test_rotors_reload(name: str, tmp_path: Path) -> None:
    """Rotors that the description has, and such that were found where there was none."""
    model = data.robot(name)
    rotor = np.linspace(1e-5, 2e-4, model.nj)
    solution = robots.solved(model, data.changed(model, 1), rotor)
    again = reloaded(solution, tmp_path)
    np.testing.assert_allclose(again.rotor_inertia, rotor, rtol=1e-9)
    np.testing.assert_allclose(again.rotor_gear, solution.columns.model.rotor_gear)
    np.testing.assert_allclose(again.rotor_axis, model.rotor_axis, atol=1e-12)
    assert again.total_mass == pytest.approx(data.changed(model, 1).total_mass, rel=1e-12)


WITH_ROTORS = [
    ('two_link_arm', False),
    ('turned arm', False),
    *((name, floating) for name in ('mini_cheetah', 'go2', 'go2 with rotors') for floating in (False, True)),
]


@pytest.mark.parametrize(('name', 'floating'), WITH_ROTORS)
def test_reloaded_rotors_need_the_torques_of_the_solution(
    name: str, floating: bool, seed: int, tmp_path: Path
) -> None:
    """The files predict what the equations predict: links carry the rotors that spin."""
    source: Any = {'turned arm': robots.TURNED_ARM}.get(name, name)
    described = None
    if name.startswith('go2'):
        source = Case('go2', floating).urdf
        described = description(random_rotors(source, seed) if name != 'go2' else [])
    model = robots.load(source, floating_base=floating, description=described)
    model = model.with_pi(np.concatenate([data.real_body(pi) for pi in model.pi.reshape(-1, 10)]))
    rotor = np.random.default_rng(seed).uniform(1e-5, 2e-3, model.nj)
    solution = robots.solved(model, data.changed(model, seed), rotor)
    again = reloaded(solution, tmp_path, floating_base=floating)
    for state in range(5):
        q, u, du = random_state(model, state)
        found = data.predicted(solution.columns, solution.x, q, u, du)
        assert_close(found, qd.inverse_dynamics(again, q, u, du, friction=True), 1e-9)


def test_a_rotor_that_was_only_mentioned(tmp_path: Path) -> None:
    """The gear of 1 of a described rotor without inertia is known; it is not made 100 and then forgotten."""
    described = {'rotors': {'joint2': {'gear': 1.0, 'mass': 0.1, 'position': [0.5, 0.0, 0.0]}}}
    model = robots.load('two_link_arm', description=described)
    solution = robots.solved(model, data.changed(model, 1), np.array([1e-3, 2e-3]))
    assert solution.columns.model.rotor_gear.tolist() == [100.0, 1.0]
    again = reloaded(solution, tmp_path)
    np.testing.assert_allclose(again.rotor_gear, [100.0, 1.0])
    q, u, du = random_state(model, 0)
    found = data.predicted(solution.columns, solution.x, q, u, du)
    assert_close(found, qd.inverse_dynamics(again, q, u, du, friction=True), 1e-9)


def test_a_motor_keeps_its_gear(tmp_path: Path) -> None:
    """Limits of a motor are before its gear: one of 100 that is only assumed must not multiply them."""
    motor = {'torque_limit': 3.0, 'voltage': 24.0, 'torque_constant': 0.05, 'resistance': 0.2}
    model = robots.load('two_link_arm', description={'motors': {'joint1': motor}})
    solution = robots.solved(model, data.changed(model, 1), np.array([1e-3, 2e-3]))
    np.testing.assert_array_equal(motor_limits(reloaded(solution, tmp_path)), motor_limits(model))
    np.testing.assert_array_equal(motor_limits(solution.model()), motor_limits(model))


def test_rotor_behind_turned_frames(tmp_path: Path) -> None:
    """The spin axis of a rotor is given in the frame of a link that is fixed to the parent body."""
    text = robots.TURNED_ARM.replace(
        '<parent link="upper"/>\n    <child link="lower"/>',
        '<parent link="sensor"/>\n    <child link="lower"/>',
    )
    model = robots.load(text, floating_base=False)
    rotor = np.array([0.001, 0.002])
    again = reloaded(robots.solved(model, data.changed(model, 1), rotor), tmp_path, floating_base=False)
    np.testing.assert_allclose(again.rotor_inertia, rotor, rtol=1e-9)
    np.testing.assert_allclose(again.rotor_axis, model.rotor_axis, atol=1e-12)


# ---------------------------------------------------------------- parameters


def test_parameters_file_has_everything() -> None:
    result = robots.result_of('mini_cheetah')
    read = yaml.safe_load(parameters_text(result))
    solution = result.solution
    assert [item['name'] for item in read['unknowns']] == list(solution.columns.names)
    for i, item in enumerate(read['unknowns']):
        assert item['value'] == solution.x[i]  # in full
        assert item['prior'] == solution.columns.prior[i]
        assert item['unit'] == solution.columns.units[i]
        if item['free']:
            assert item['interval'] == [solution.low[i], solution.high[i]]
            assert item['identified'] == solution.identified[i]
        else:
            assert 'std' not in item
    assert read['recordings'] == [{'name': 'walk_1', 'sha256': 'ab' * 32}]
    assert read['model']['mode'] == 'forces'
    assert read['consistent_bodies'] == {'good': 13, 'all': 13}
    assert len(read['validation']['rms_errors']) == 14
    assert [item['text'] for item in read['combinations']] == ['a.m + 2.00 b.m', 'c.m - 1.00 b.m']
    assert [item['identified'] for item in read['combinations']] == [True, False]
    change = solution.x[0] - solution.columns.prior[0]
    assert read['added_to_base']['mass'] == pytest.approx(change)


@pytest.mark.usefixtures('no_pictures')
def test_validation_recordings_are_reported(tmp_path: Path) -> None:
    """Notes, stamps and hashes of both recordings; what is the same for both is said once."""
    trained, other = (arm_truth(duration=8.0, seed=seed, friction=(0.1, 0.3)) for seed in (0, 1))
    names, stamps = trained.model.joint_names, other.stamps.copy()
    stamps[100:1000:100] = stamps[99:999:100]
    messages = joint_states(trained.stamps, names, trained.q, trained.u, trained.tau)
    run1 = write(tmp_path / 'run1', messages)
    run2 = write(tmp_path / 'run2', joint_states(stamps, names, other.q, 1.08 * other.u, other.tau))
    settings = qd.IdentifySettings(free=('friction',))
    result = qd.identify([run1], trained.model, settings, validate_on=[run2])
    stream = io.StringIO()
    print_summary(Terminal(stream), result)
    write_results(result, tmp_path / 'out')
    page = (tmp_path / 'out' / 'report.html').read_text()
    for text in (stream.getvalue(), page):
        assert f'validation recording {run2}: 8.0 s of joint states' in text
        assert '9 double stamps' in text
        assert 'positions are differentiated there' in text
        assert text.count('low-pass filter: Butterworth') == 1
    note = 'velocities over derivatives of positions are not quite 1'
    assert f'<li>validation recording run2: {note}' in page
    read = yaml.safe_load((tmp_path / 'out' / 'parameters.yaml').read_text())
    assert result.validation_signals is not None
    (report,), (saved,) = result.validation_signals.sources, read['validation']['recordings']
    assert saved['sha256'] == report.sha256 != read['recordings'][0]['sha256']
    assert f'<td>validation</td><td class="wrap">{report.sha256}</td>' in page
    assert saved['clocks']['position']['double_stamps'] == 9
    assert any(text.startswith(note) for text in saved['notes'])


def test_not_a_number_is_null() -> None:
    """NaN is no YAML that others read."""
    text = parameters_text(robots.result_of('mini_cheetah'))
    assert 'nan' not in text.lower()
    assert 'inf,' not in text


# ---------------------------------------------------------------- armature


def with_rotors(name: str, rotor: Any) -> Any:
    """A result in which rotors were found."""
    result = robots.result_of(name)
    model = result.solution.columns.model
    return dataclasses.replace(result, solution=robots.solved(model, model, np.array(rotor)))


@pytest.mark.usefixtures('no_pictures')
def test_armature_is_where_others_read_it(tmp_path: Path) -> None:
    """Pinocchio has it from the SRDF file, MuJoCo from the parameters file."""
    write_results(with_rotors('two_link_arm', [2e-5, 3e-6]), tmp_path / 'out')
    urdf = tmp_path / 'out' / 'two_link_arm.urdf'
    armature = np.array([0.2, 0.03])  # the gear is unknown: 100
    model = pin.buildModelFromUrdf(str(urdf))
    assert pin.loadRotorParameters(model, str(urdf.with_suffix('.srdf')), False)
    np.testing.assert_allclose(model.armature, armature, rtol=1e-12)
    # Ours has the rotors with the parents of their joints as well, which couples joints by armature / gear.
    q = np.array([0.3, -0.8])
    M = pin.crba(model, model.createData(), pin.integrate(model, pin.neutral(model), q))
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(M, qd.mass_matrix(qd.load_model(urdf), q), atol=2.0 * armature.max() / 100.0)

    spec = mujoco.MjSpec.from_file(str(urdf))
    for each in yaml.safe_load(urdf.with_name('parameters.yaml').read_text())['armatures']:
        spec.joint(each['joint']).armature = each['armature']
        assert each['gear_assumed']
        assert each['armature'] == pytest.approx(each['gear'] ** 2 * each['rotor_inertia'])
        assert each['unit'] == 'kg m^2'
    np.testing.assert_allclose(spec.compile().dof_armature, armature, rtol=1e-9)


@pytest.mark.usefixtures('no_pictures')
def test_assumed_gears_are_told() -> None:
    """In all files, and only for joints whose gear is unknown."""
    unknown = with_rotors('two_link_arm', [2e-5, 3e-6])
    words = 'o gear is known of joint1, joint2: 100 is assumed'
    assert words in gear_note(unknown.solution)
    assert words in report_text(unknown)
    assert words in description_text(unknown.solution)
    known = robots.result_of('mini_cheetah').solution
    assert gear_note(known) == ''
    found = armatures(known)
    assert [each.gear for each in found][:3] == pytest.approx([6.0, 6.0, 9.33], rel=1e-3)
    np.testing.assert_allclose([each.after for each in found[:2]], 36.0 * 63e-6, rtol=1e-3)
    assert not any(each.free or each.gear_assumed for each in found)


def test_no_rotor_no_srdf() -> None:
    assert srdf_text(robots.result_of('two_link_arm').solution) == ''


# ---------------------------------------------------------------- the folder


@pytest.mark.slow
def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    result = robots.result_of('two_link_arm')
    first, second = (write_results(result, tmp_path / name) for name in ('a', 'b'))
    assert {path.name for path in first} == {
        'two_link_arm.urdf',
        'two_link_arm.yaml',
        'parameters.yaml',
        'report.html',
    }
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    result = robots.result_of('two_link_arm')
    folder = tmp_path / 'out'
    folder.mkdir()
    (folder / 'precious').write_text('mine')
    with pytest.raises(ArgumentError, match='is not empty'):
        write_results(result, folder)
    assert [path.name for path in tmp_path.rglob('*')] == ['out', 'precious']
    file = tmp_path / 'file'
    file.write_text('')
    with pytest.raises(ArgumentError, match='not a folder'):
        check_output(file)
    with pytest.raises(ArgumentError, match='does not exist'):
        check_output(tmp_path / 'no' / 'such')


@pytest.mark.usefixtures('no_pictures')
def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / 'out').mkdir()
    assert len(write_results(robots.result_of('two_link_arm'), tmp_path / 'out')) == 4


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> str:
        raise OSError('the disk is full')

    monkeypatch.setattr('quad_dynamics.identification.report.output_folder.report_text', fail)
    with pytest.raises(OSError, match='full'):
        write_results(robots.result_of('two_link_arm'), tmp_path / 'out')
    assert list(tmp_path.iterdir()) == []
