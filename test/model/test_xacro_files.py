# SPDX-License-Identifier: Apache-2.0
"""xacro files without a ROS installation: packages, arguments, and what is said when they are missing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from quad_dynamics.__main__ import main
from quad_dynamics.errors import ArgumentError, ModelError, ModelWarning
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.meshes import find_mesh
from quad_dynamics.model.packages import find_package
from quad_dynamics.model.xacro_files import format_xacro_args, parse_xacro_args

XMLNS = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
LEG = f"""<robot {XMLNS}>
  <xacro:macro name="leg" params="mass">
    <link name="leg">
      <inertial><mass value="${{mass}}"/>
        <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
      <visual><geometry><mesh filename="file://$(find parts)/meshes/leg.stl"/></geometry></visual>
    </link>
    <joint name="knee" type="continuous"><parent link="base"/><child link="leg"/></joint>
  </xacro:macro>
</robot>"""
ROBOT = f"""<robot name="r" {XMLNS}>
  <xacro:arg name="mass" default="2"/>
  <xacro:include filename="$(find parts)/xacro/leg.xacro"/>
  <link name="base"/>
  <xacro:leg mass="$(arg mass)"/>
</robot>"""


@pytest.fixture(autouse=True)
def _no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'):
        monkeypatch.delenv(name, raising=False)


def package(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / 'package.xml').write_text(f'<package format="3"><name>{name}</name></package>')
    return folder


def make(folder: Path, parts: Path, text: str = ROBOT) -> Path:
    """A robot in a package of its own, and the package with its parts."""
    package(parts, 'parts')
    (parts / 'xacro').mkdir()
    (parts / 'xacro' / 'leg.xacro').write_text(LEG)
    (parts / 'meshes').mkdir()
    (parts / 'meshes' / 'leg.stl').write_text('')
    path = package(folder, 'robot_description') / 'xacro' / 'robot.xacro'
    path.parent.mkdir()
    path.write_text(text)
    return path


def load(path: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        return load_model(path, **options)


def problems_of(path: Path, **options: Any) -> tuple[str, ...]:
    with pytest.raises(ModelError) as caught:
        load_model(path, **options)
    return caught.value.problems


@pytest.mark.parametrize(
    'place', ['parts', 'other_name', 'group/deeper/parts', 'away', 'prefix/share/parts'], ids=str
)
def test_packages_are_found(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the robot's, under a name of its folder, anywhere in the repository, and by the variables."""
    parts = tmp_path / 'repository' / place
    (tmp_path / 'repository' / '.git').mkdir(parents=True)
    if place == 'away':
        parts = tmp_path / 'away' / 'sources' / 'parts'
        monkeypatch.setenv('ROS_PACKAGE_PATH', str(tmp_path / 'away'))
    if place.startswith('prefix'):
        parts = tmp_path / place
        monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'prefix'))
    path = make(tmp_path / 'repository' / 'robots' / 'robot_description', parts)
    model = load(path)
    assert find_package('parts', str(path)) == parts
    assert model.total_mass == 2.0
    # the path of the mesh does not depend on where the package was
    mesh = model.urdf.link('leg').visuals[0].geometry.filename
    assert mesh == 'package://parts/meshes/leg.stl'
    assert find_mesh(mesh, str(path)) == parts / 'meshes' / 'leg.stl'


def test_own_package_by_the_name_of_its_folder(tmp_path: Path) -> None:
    path = make(tmp_path / 'robot_description', tmp_path / 'parts')
    (tmp_path / 'parts' / 'package.xml').unlink()
    own = tmp_path / 'parts' / 'xacro' / 'own.xacro'
    own.write_text(ROBOT)
    assert load(own).total_mass == 2.0
    assert "package 'parts', required by the file, was not found" in problems_of(path)[0]


def test_missing_package_says_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / '.git').mkdir()
    path = make(
        tmp_path / 'a' / 'robot_description', tmp_path / 'parts', ROBOT.replace('find parts', 'find x')
    )
    assert problems_of(path) == (
        "package 'x', required by the file, was not found; searched: the 8 folders above robot.xacro, "
        f'packages below {tmp_path}, AMENT_PREFIX_PATH (not set), ROS_PACKAGE_PATH (not set); put it beside '
        'the package of the file, or add its parent folder to ROS_PACKAGE_PATH',
    )


def test_missing_package_of_a_plugin_does_no_harm(tmp_path: Path) -> None:
    text = ROBOT.replace('</robot>', '<gazebo><p>$(find no_such)/config/x.yaml</p></gazebo></robot>')
    path = make(tmp_path / 'robot_description', tmp_path / 'parts', text)
    with pytest.warns(ModelWarning, match='packages named in the file were not found.*: no_such$'):
        model = load_model(path)
    assert model.total_mass == 2.0
    assert 'package://no_such/config/x.yaml' in model.to_urdf()
    assert 'an error in strict mode' in problems_of(path, strict=True)[0]


def test_arguments(tmp_path: Path) -> None:
    path = make(tmp_path / 'robot_description', tmp_path / 'parts')
    assert load(path, xacro_args={'mass': '3.5'}).total_mass == 3.5
    assert load(path, xacro_args={'mass': 7}).total_mass == 7.0
    assert load(path).total_mass == 2.0, 'arguments of one call are not those of the next'
    assert problems_of(path, xacro_args={'mas': '1', 'x': '2'}) == (
        "the file has no xacro argument 'mas'; did you mean 'mass'? it has: mass",
        "the file has no xacro argument 'x'; it has: mass",
    )


def test_arguments_without_a_value_are_named_together(tmp_path: Path) -> None:
    text = ROBOT.replace('<xacro:arg name="mass" default="2"/>', '').replace(
        '<link name="base"/>', '<link name="base"/><link name="$(arg kind)"/>'
    )
    path = make(tmp_path / 'robot_description', tmp_path / 'parts', text)
    (problem,) = problems_of(path)
    assert problem.startswith('xacro arguments without a value: kind, mass; give a value with --xacro-arg')
    (problem,) = problems_of(path, xacro_args={'kind': 'tool'})
    assert problem.startswith('xacro argument without a value: mass;')


@pytest.mark.parametrize('given', [['mass=3'], {1: 'x'}, {'a b': 'x'}, {'a': None}], ids=str)
def test_arguments_of_a_wrong_kind(tmp_path: Path, given: Any) -> None:
    path = make(tmp_path / 'robot_description', tmp_path / 'parts')
    with pytest.raises(ArgumentError, match='xacro_args'):
        load_model(path, xacro_args=given)


def test_arguments_of_a_file_that_is_no_xacro() -> None:
    with pytest.raises(ArgumentError, match=r'mini_cheetah is not a \.xacro file'):
        load_model('mini_cheetah', xacro_args={'a': 'b'})


def test_arguments_in_one_line() -> None:
    given = {'a': '1', 'b': 'two words', 'c': '', 'd': 'x=y', 'e': "it's"}
    assert parse_xacro_args(format_xacro_args(given)) == given
    assert parse_xacro_args('a:=1 b=2') == {'a': '1', 'b': '2'}
    assert parse_xacro_args('') == {}
    for wrong in ('a', '=1', 'a=1 b', "a='1"):
        with pytest.raises(ArgumentError, match='xacro argument'):
            parse_xacro_args(wrong)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(make(tmp_path / 'robot_description', tmp_path / 'parts'))
    assert main(['inspect', path, '--xacro-arg', 'mass=4.25']) == 0
    assert '4.25 kg' in capsys.readouterr().out
    assert main(['inspect', path, '--xacro-arg', 'mas=4.25']) == 1
    assert "did you mean 'mass'?" in ''.join(capsys.readouterr())
    command = ['simulate', '--robot', path, '--xacro-arg', 'mass=4.25', '--xacro-arg', 'mass=1']
    assert main(command) != 0
    assert '--xacro-arg mass is given twice' in capsys.readouterr().err
    command[-1] = 'oops'
    assert main(command) != 0
    assert "xacro argument 'oops'; expected NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize('command', ['inspect', 'simulate', 'sim', 'identify', 'residual', 'excite'])
def test_every_command_with_a_robot_takes_arguments(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, '--help'])
    assert ended.value.code == 0
    assert '--xacro-arg NAME=VALUE' in capsys.readouterr().out
