# SPDX-License-Identifier: Apache-2.0
"""The files that `ros2 launch` and RViz read, and, where `launch` is installed, what becomes of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from odd_values import ODD_VALUES

from force_node.settings import ForceSettings
from identification.settings import IdentificationSettings
from planner_node.settings import PlannerSettings
from quad_dynamics import load_model
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros import node_spec
from quad_dynamics.ros.environment import share_folder
from quad_dynamics.ros.graph import GraphOptions
from quad_dynamics.ros.node_spec import NodeSpec
from quad_dynamics.ros.topics import TOPICS
from quad_dynamics.simulation.bag import WORLD_FRAME
from sim_node.settings import SimNodeSettings
from viewer_node.settings import ViewerSettings

pytestmark = pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')

ROOT = Path(__file__).resolve().parents[2]
SETTINGS: dict[str, Any] = {
    'sim_node': SimNodeSettings,
    'force_node': ForceSettings,
    'planner_node': PlannerSettings,
    'viewer_node': ViewerSettings,
    'identification': IdentificationSettings,
}


@pytest.fixture
def no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    """No installation of ROS, whatever this machine has."""
    monkeypatch.setattr(node_spec, 'prefix_of', lambda package: None)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    'file',
    [
        'config/fastdds.xml',
        'config/sim.yaml',
        'config/typical_sensors.yaml',
        'launch/identification.launch.py',
        'launch/sim.launch.py',
        'rviz/sim.rviz',
    ],
)
def test_share_folder_has(file: str) -> None:
    assert (share_folder() / file).is_file()
    shared = re.search(r'^SHARED = (.*)$', (ROOT / 'setup.py').read_text(), re.MULTILINE)
    assert shared is not None
    assert Path(file).parts[0] in ast.literal_eval(shared[1])  # and is installed


@pytest.mark.parametrize('file', sorted((ROOT / 'config').glob('*.yaml')), ids=lambda path: path.name)
def test_configuration_names_parameters(file: Path) -> None:
    for pattern, section in yaml.safe_load(file.read_text()).items():
        node = pattern.removeprefix('/**/')  # in every namespace
        assert pattern == f'/**/{node}'
        SETTINGS[node].from_dict(section['ros__parameters'])


@pytest.mark.parametrize('file', sorted((ROOT / 'launch').glob('*.py')), ids=lambda path: path.name)
def test_launch_files_only_choose_defaults(file: Path) -> None:
    """`launch` is in no registry, so what is in them is tested only where there is a ROS."""
    [function] = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert function.name == 'generate_launch_description'
    [call] = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    assert isinstance(call.func, ast.Name)
    assert call.func.id == 'sim_description'
    GraphOptions.from_dict(ast.literal_eval(call.args[0]) if call.args else {})


# ---------------------------------------------------------------- RViz


def displays(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for display in config.get('Displays', []):
        yield display
        yield from displays(display)


@pytest.fixture(scope='module')
def rviz() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / 'rviz' / 'sim.rviz').read_text())
    return config['Visualization Manager']


def test_rviz_shows_everything_that_it_can(rviz: dict[str, Any]) -> None:
    model = load_model('mini_cheetah')
    shown = {}
    for display in displays(rviz):
        topic = display.get('Topic') or display.get('Description Topic')
        if topic:
            kind = display['Class'].removeprefix('rviz_default_plugins/')
            shown[topic['Value']] = kind, topic['Durability Policy']
    assert shown == {
        'robot_description': ('RobotModel', 'Transient Local'),
        'terrain': ('MarkerArray', 'Transient Local'),
        'markers': ('MarkerArray', 'Volatile'),
        'plan_markers': ('MarkerArray', 'Volatile'),
        'odom': ('Odometry', 'Volatile'),
        **{f'foot_forces/{foot}': ('Wrench', 'Volatile') for foot in model.foot_names},
    }
    for name in shown:
        assert re.sub(r'^foot_forces/.*', 'foot_forces/<foot>', name) in TOPICS
    assert 'rviz_default_plugins/TF' in [display['Class'] for display in displays(rviz)]
    [pose] = [tool for tool in rviz['Tools'] if tool['Class'] == 'rviz_default_plugins/SetInitialPose']
    assert pose['Topic']['Value'] in TOPICS


def test_rviz_knows_our_frames_and_markers(rviz: dict[str, Any]) -> None:
    assert rviz['Global Options']['Fixed Frame'] == WORLD_FRAME
    assert rviz['Views']['Current']['Target Frame'] == load_model('mini_cheetah').base_name
    spaces = {space for display in displays(rviz) for space in display.get('Namespaces', {})}
    files = ('sim_node/markers.py', 'planner_node/outputs.py')
    source = ''.join((ROOT / file).read_text() for file in files)
    assert spaces == set(re.findall(r"_(?:marker|strip)\('(\w+)'", source))


# ---------------------------------------------------------------- with launch


@pytest.fixture
def launching() -> Any:
    reason = 'launch and launch_ros are in no registry of Python packages; a ROS installation has them'
    pytest.importorskip('launch_ros', reason=reason)
    from quad_dynamics.ros import launching

    return launching


def started(launching: Any, given: dict[str, str], defaults: dict[str, Any] | None = None) -> list[Any]:
    """The processes that a launch description starts with some arguments."""
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    context = LaunchContext()
    context.launch_configurations.update(given)
    actions = []
    for entity in launching.sim_description(defaults).entities:
        made = (
            entity.execute(context) if isinstance(entity, (DeclareLaunchArgument, OpaqueFunction)) else None
        )
        actions += made or []
    return actions


def commands(actions: list[Any]) -> dict[str, list[str]]:
    from launch import LaunchContext
    from launch.utilities import perform_substitutions

    found = {}
    for action in actions:
        context = LaunchContext()
        if hasattr(action, '_perform_substitutions'):
            action._perform_substitutions(context)
        words = [perform_substitutions(context, part) for part in action.cmd if not _is_local(part)]
        found[action.process_description.name[0].perform(context)] = words
    return found


def _is_local(part: Any) -> bool:
    """Whether a part of a command is filled in by launch_ros only when the process starts."""
    return any(type(one).__name__ == 'LocalSubstitution' for one in part)


@pytest.mark.usefixtures('no_ros')
def test_description_has_the_options_as_arguments(launching: Any) -> None:
    described = launching.sim_description({'headless': True}).get_launch_arguments()
    assert [argument.name for argument in described] == list(GraphOptions.parameters())
    defaults = {argument.name: argument.default_value[0].text for argument in described}
    assert defaults['headless'] == 'true'
    assert defaults['real_time_factor'] == '1.0'
    assert defaults['record'] == ''


@pytest.mark.usefixtures('no_ros')
def test_description_starts_the_graph(launching: Any) -> None:
    assert list(commands(started(launching, {}))) == ['sim_node', 'force_node', 'viewer_node']
    made = commands(started(launching, {'record': 'bag'}, {'headless': True}))
    assert list(made) == ['sim_node', 'force_node', 'record']
    assert made['record'][1:4] == ['-m', 'quad_dynamics', 'record'] or made['record'][1] == 'record'
    assert list(commands(started(launching, {'headless': 'false'}, {'headless': True}))) == [
        'sim_node',
        'force_node',
        'viewer_node',
    ]


@pytest.mark.usefixtures('no_ros')
def test_description_with_a_bag(launching: Any) -> None:
    made = commands(started(launching, {'bag': 'run'}, {'identification': True, 'noise': 'typical'}))
    assert list(made) == ['identification']


@pytest.mark.usefixtures('no_ros')
def test_arguments_reach_the_graph(launching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are given, even if they are the defaults: a file of parameters may say otherwise."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(launching, 'graph', lambda given: seen.append(given) or [])
    started(launching, {'terrain': 'flat', 'seed': '3', 'real_time_factor': '2', 'viewer': 'False'})
    started(launching, {'ros_namespace': '/herd', 'namespace': 'a'}, {'noise': 'typical'})
    started(launching, {'ros_namespace': '/herd', 'namespace': '/a'})
    assert seen == [
        {'terrain': 'flat', 'seed': 3, 'real_time_factor': 2.0, 'viewer': False},
        {'noise': 'typical', 'namespace': 'herd/a'},
        {'namespace': '/a'},
    ]


@pytest.mark.usefixtures('no_ros')
def test_unknown_arguments_are_refused(launching: Any) -> None:
    with pytest.raises(ArgumentError, match=r"unknown argument 'robt'.*did you mean 'robot'"):
        launching._check_names(['robt:=x'], GraphOptions.parameters())
    launching._check_names(['robot:=x', 'launch-prefix:=nice', 'word'], GraphOptions.parameters())
    with pytest.raises(ArgumentError, match="headless is 'maybe'"):
        started(launching, {'headless': 'maybe'})


@pytest.mark.usefixtures('no_ros')
@pytest.mark.parametrize('value', [one for one in ODD_VALUES if not isinstance(one, list)], ids=repr)
def test_values_stay_as_they_are(launching: Any, value: Any) -> None:
    """Launch writes them into a file for the node. No option is a list."""
    from launch import LaunchContext

    spec = NodeSpec('sim_node', module='sim_node', namespace='a', parameters={'p': value})
    action = launching._Process(spec, {}).start()
    action._perform_substitutions(LaunchContext())
    [(file, is_file)] = action._Node__expanded_parameter_arguments
    assert is_file
    assert yaml.safe_load(Path(file).read_text()) == {'/a/sim_node': {'ros__parameters': {'p': value}}}


class Event:
    """What launch tells of a process that has ended."""

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode


def kinds(actions: list[Any]) -> list[str]:
    return [type(action).__name__ for action in actions]


def test_exit_codes_that_end_the_launch(launching: Any) -> None:
    from launch import LaunchContext

    process = launching._Process(NodeSpec('sim_node', module='sim_node'), {})
    for _ in range(4):
        assert kinds(process.ended(Event(-9), LaunchContext())) == ['LogInfo', 'TimerAction']
    with pytest.raises(ArgumentError, match='sim_node died 5 times within 20 s'):
        process.ended(Event(1), LaunchContext())
    with pytest.raises(ArgumentError, match='sim_node refused to start'):
        process.ended(Event(2), LaunchContext())


def test_what_the_launch_goes_on_without(launching: Any) -> None:
    from launch import LaunchContext

    viewer = launching._Process(NodeSpec('viewer_node', module='viewer_node', needed=False), {})
    assert kinds(viewer.ended(Event(3), LaunchContext())) == ['LogInfo']  # not started again
    assert kinds(viewer.ended(Event(-11), LaunchContext())) == ['LogInfo', 'TimerAction']
    arguments = {'arguments': ['record'], 'is_node': False, 'needed': False}
    recorder = launching._Process(NodeSpec('x', module='x', **arguments), {})
    for code in (0, 1):
        assert kinds(recorder.ended(Event(code), LaunchContext())) == ['LogInfo']
    assert kinds(recorder.ended(Event(-9), LaunchContext())) == ['LogInfo', 'TimerAction']
    closing = LaunchContext()
    closing._set_is_shutdown(True)
    assert viewer.ended(Event(1), closing) == []


@pytest.mark.usefixtures('no_ros')
def test_a_program_that_is_not_installed_is_announced(launching: Any) -> None:
    [sim_node, rviz] = started(launching, {'controller': 'none', 'viewer': 'false', 'rviz': 'true'})
    assert kinds([sim_node, rviz]) == ['Node', 'LogInfo']
    assert 'rviz2 is not installed' in rviz.msg[0].text


@pytest.mark.usefixtures('no_ros')
def test_defaults_of_a_launch_file_are_not_for_nodes_that_are_not_there(launching: Any) -> None:
    defaults = {'mode': 'computed_torque', 'headless': True}
    assert list(commands(started(launching, {'controller': 'none'}, defaults))) == ['sim_node']
    with pytest.raises(ArgumentError, match='mode is given, but controller is none'):
        started(launching, {'controller': 'none', 'mode': 'stand'}, defaults)
