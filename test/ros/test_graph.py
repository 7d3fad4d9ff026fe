# SPDX-License-Identifier: Apache-2.0
"""The graph of nodes: which processes, with which parameters, on which command lines, and how they end."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
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
from quad_dynamics.ros.deaths import Deaths, Next
from quad_dynamics.ros.environment import share_folder
from quad_dynamics.ros.graph import RECORDER, GraphOptions, graph
from quad_dynamics.ros.node_spec import NodeSpec
from quad_dynamics.ros.supervisor import Supervisor, command_line
from quad_dynamics.simulation.settings import SensorSettings
from sim_node.settings import SimNodeSettings
from viewer_node.settings import ViewerSettings

pytestmark = pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')

SETTINGS: dict[str, Any] = {
    'sim_node': SimNodeSettings,
    'force_node': ForceSettings,
    'planner_node': PlannerSettings,
    'viewer_node': ViewerSettings,
    'identification': IdentificationSettings,
}
# Where an option goes as a parameter of the same name: a value that is not the default, and the nodes.
REACHES: dict[str, tuple[Any, set[str]]] = {
    'robot': ('/tmp/my robots/a: b.urdf', {'sim_node', 'force_node', 'viewer_node'}),
    'xacro_args': ("kind=go1 name='my dog'", {'sim_node', 'force_node', 'viewer_node'}),
    'contact': ('spring_damper', {'sim_node'}),
    'terrain': ('stairs', {'sim_node'}),
    'initial_pose': ('standing', {'sim_node'}),
    'mode': ('gravity', {'force_node'}),
    'gait': ('crawl', {'force_node'}),
    'real_time_factor': (0.5, {'sim_node'}),
    'lock_step': (True, {'sim_node', 'force_node'}),
    'seed': (7, {'sim_node'}),
    'host': ('::1', {'viewer_node'}),
    'port': (0, {'viewer_node'}),
}
# The other options have tests of their own.
CHANGE_THE_GRAPH = {'noise', 'headless', 'viewer', 'rviz', 'record', 'record_duration', 'storage'}
CHANGE_THE_GRAPH |= {
    'sim_robot',
    'walk',
    'planner',
    'controller',
    'namespace',
    'params_file',
    'use_sim_time',
    'identification',
    'excitation',
    'bag',
    'output',
}


def by_name(specs: list[NodeSpec]) -> dict[str, NodeSpec]:
    return {spec.executable: spec for spec in specs}


@pytest.fixture
def no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    """No installation of ROS, whatever this machine has."""
    monkeypatch.setattr(node_spec, 'prefix_of', lambda package: None)


@pytest.fixture
def with_ros(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installation of ROS that has robot_state_publisher and rviz2."""
    installed = {}
    for package in ('robot_state_publisher', 'rviz2'):
        program = tmp_path / 'lib' / package / package
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\n')
        program.chmod(0o755)
        installed[package] = tmp_path
    monkeypatch.setattr(node_spec, 'prefix_of', installed.get)
    return tmp_path


# ---------------------------------------------------------------- options


def test_every_option_is_tested() -> None:
    assert set(REACHES) | CHANGE_THE_GRAPH == set(GraphOptions.parameters())


@pytest.mark.usefixtures('no_ros')
@pytest.mark.parametrize('option', REACHES)
def test_an_option_reaches_its_nodes(option: str) -> None:
    value, nodes = REACHES[option]
    found = {name for name, spec in by_name(graph({option: value})).items() if option in spec.parameters}
    assert found == nodes
    for name in nodes:
        spec = by_name(graph({option: value}))[name]
        assert spec.parameters[option] == value
        assert option in SETTINGS[name].parameters()


@pytest.mark.usefixtures('no_ros')
@pytest.mark.parametrize('option', REACHES)
def test_what_is_not_given_is_left_to_the_nodes_and_their_files(option: str) -> None:
    assert not any(option in spec.parameters for spec in graph({}))
    for name in REACHES[option][1] - {'viewer_node'}:
        assert SETTINGS[name].parameters()[option].default == GraphOptions.parameters()[option].default


@pytest.mark.usefixtures('no_ros')
@pytest.mark.parametrize(
    ('given', 'nodes'),
    [
        ({}, ['sim_node', 'force_node', 'viewer_node']),
        ({'headless': True}, ['sim_node', 'force_node']),
        ({'viewer': False}, ['sim_node', 'force_node']),
        ({'controller': 'none'}, ['sim_node', 'viewer_node']),
        ({'headless': True, 'rviz': True}, ['sim_node', 'force_node']),
        ({'headless': True, 'record': 'bag'}, ['sim_node', 'force_node', 'quad_dynamics']),
        ({'headless': True, 'identification': True}, ['sim_node', 'force_node', 'identification']),
        ({'headless': True, 'walk': True}, ['sim_node', 'force_node', 'planner_node']),
        ({'headless': True, 'mode': 'whole_body'}, ['sim_node', 'force_node', 'planner_node']),
        ({'headless': True, 'walk': True, 'planner': 'simple'}, ['sim_node', 'force_node']),
        ({'headless': True, 'planner': 'external'}, ['sim_node', 'force_node', 'planner_node']),
    ],
)
def test_processes(given: dict[str, Any], nodes: list[str]) -> None:
    assert [spec.executable for spec in graph(given)] == nodes


@pytest.mark.usefixtures('no_ros')
def test_noise_is_that_of_typical_sensors() -> None:
    [_, file] = by_name(graph({'noise': 'typical'}))['sim_node'].files
    given = yaml.safe_load(file.read_text())['/**/sim_node']['ros__parameters']
    assert SimNodeSettings.from_dict(given).sensors == SensorSettings.typical()
    assert len(by_name(graph({'noise': 'typical'}))['force_node'].files) == 1


@pytest.mark.usefixtures('no_ros')
def test_lock_step_waits_for_all_who_take_part() -> None:
    def partners(**given: Any) -> Any:
        return by_name(graph(given))['sim_node'].parameters.get('lock_step_partners')

    assert partners() is None
    assert partners(lock_step=True) == ['force_node']  # the viewer listens while a page is open
    assert partners(lock_step=True, record='bag') == ['force_node', RECORDER]
    assert partners(lock_step=True, walk=True) == ['force_node', 'planner_node']
    assert partners(lock_step=True, controller='none') is None  # any controller
    assert partners(lock_step=True, controller='none', record='bag') == [RECORDER]


@pytest.mark.usefixtures('no_ros')
def test_walking_is_a_mode_of_force_node() -> None:
    for given in ({'walk': True}, {'walk': True, 'mode': 'whole_body'}):
        assert by_name(graph(given))['force_node'].parameters['mode'] == 'whole_body'
    assert 'mode' not in by_name(graph({'walk': False}))['force_node'].parameters
    with pytest.raises(ArgumentError, match="walk is true, but mode is 'stand'; expected 'whole_body'"):
        graph({'walk': True, 'mode': 'stand'})
    with pytest.raises(ArgumentError, match='walk is given, but controller is none'):
        graph({'walk': True, 'controller': 'none'})


@pytest.mark.usefixtures('no_ros')
def test_who_plans_is_said_once(tmp_path: Path) -> None:
    """By the option, by the parameter of force_node, or by its file, in this order."""
    walking = by_name(graph({'walk': True, 'robot': 'go2', 'gait': 'crawl', 'lock_step': True}))
    assert walking['force_node'].parameters['planner'] == 'external'
    expected = {'robot': 'go2', 'gait': 'crawl', 'lock_step': True}
    assert walking['planner_node'].parameters == expected
    assert set(expected) <= set(PlannerSettings.parameters())
    assert 'planner' not in by_name(graph({}))['force_node'].parameters
    assert by_name(graph({'planner': 'simple'}))['force_node'].parameters['planner'] == 'simple'
    chosen = by_name(graph({'walk': True}, {'force_node': {'planner': 'simple'}}))
    assert 'planner_node' not in chosen
    assert chosen['force_node'].parameters['planner'] == 'simple'
    path = tmp_path / 'mine.yaml'
    path.write_text('/**/force_node:\n  ros__parameters: {planner: simple}\n')
    assert 'planner_node' not in by_name(graph({'walk': True, 'params_file': str(path)}))
    both = {'walk': True, 'params_file': str(path), 'planner': 'external'}
    assert by_name(graph(both))['force_node'].parameters['planner'] == 'external'
    with pytest.raises(ArgumentError, match='planner is given, but controller is none'):
        graph({'planner': 'external', 'controller': 'none'})


@pytest.mark.usefixtures('no_ros')
def test_a_robot_stands_without_its_planner() -> None:
    """So nothing ends with it; but lock-step does not begin without it."""
    assert not by_name(graph({'walk': True}))['planner_node'].needed
    assert by_name(graph({'walk': True, 'lock_step': True}))['planner_node'].needed
    deaths = Deaths()
    spec = by_name(graph({'walk': True}))['planner_node']
    what, text = deaths.judge(spec, -9)
    assert (what, text) == (Next.RESTART, 'planner_node died (signal SIGKILL); restarting it')


@pytest.mark.usefixtures('no_ros')
def test_options_of_a_node_that_is_not_started() -> None:
    with pytest.raises(ArgumentError, match='mode is given, but controller is none'):
        graph({'controller': 'none', 'mode': 'stand'})
    with pytest.raises(ArgumentError, match='a parameter of force_node is given, but controller is none'):
        graph({'controller': 'none'}, {'force_node': {'mu': 0.5}})


def test_what_nothing_goes_on_without(with_ros: Path) -> None:
    given = {'rviz': True, 'record': 'bag', 'identification': True}
    needed = [spec.name for spec in graph(given) if spec.needed]
    assert needed == ['sim_node', 'force_node', 'identification']
    in_lock_step = [spec.name for spec in graph({**given, 'lock_step': True}) if spec.needed]
    assert in_lock_step == [*needed, 'record']  # a partner: lock-step does not begin without it


@pytest.mark.usefixtures('no_ros')
def test_a_robot_in_the_file_is_that_of_all_nodes(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.write_text('/**/sim_node:\n  ros__parameters: {robot: two_link_arm, wait_for_commands: false}\n')
    specs = by_name(graph({'params_file': str(file)}))
    assert {spec.parameters['robot'] for spec in specs.values()} == {'two_link_arm'}
    assert 'wait_for_commands' not in specs['sim_node'].parameters
    given = by_name(graph({'params_file': str(file), 'robot': 'mini_cheetah'}))
    assert {spec.parameters['robot'] for spec in given.values()} == {'mini_cheetah'}


@pytest.mark.usefixtures('no_ros')
def test_recorder() -> None:
    spec = by_name(graph({'record': 'my bag', 'storage': 'sqlite3', 'namespace': 'a/b', 'lock_step': True}))
    command = command_line(spec['quad_dynamics'])
    assert command[:4] == [sys.executable, '-m', 'quad_dynamics', 'record']
    options = [*('-o', 'my bag'), '--next', *('--storage', 'sqlite3'), *('--namespace', 'a/b'), '--sim-time']
    assert command[4:] == options
    assert spec['quad_dynamics'].respawn  # if it is killed
    plain = command_line(by_name(graph({'record': 'bag', 'record_duration': 2.0}))['quad_dynamics'])
    assert plain[4:] == ['-o', 'bag', '--next', '--storage', 'mcap', '--duration', '2.0']


@pytest.mark.usefixtures('no_ros')
def test_identification() -> None:
    given = {'identification': True, 'excitation': 'my bag', 'robot': 'two_link_arm'}
    spec = by_name(graph(given, {'identification': {'tie_legs': True}}))['identification']
    assert spec.parameters == {'robot': 'two_link_arm', 'excitation': 'my bag', 'tie_legs': True}
    assert set(spec.parameters) <= set(IdentificationSettings.parameters())


@pytest.mark.usefixtures('no_ros')
def test_identification_from_a_bag() -> None:
    """Alone, whatever else the launch file chooses; it starts by itself."""
    given = {'bag': 'run', 'output': 'found', 'robot': 'go2', 'noise': 'typical', 'mode': 'computed_torque'}
    [spec] = graph({**given, 'identification': True, 'headless': True})
    assert spec.executable == 'identification'
    assert spec.parameters == {'robot': 'go2', 'bag': 'run', 'output': 'found', 'autostart': True}
    assert set(spec.parameters) <= set(IdentificationSettings.parameters())
    for name in ('record', 'excitation', 'sim_robot'):
        with pytest.raises(ArgumentError, match=f'bag and {name} are mutually exclusive'):
            graph({'bag': 'run', name: 'x'})


@pytest.mark.usefixtures('no_ros')
def test_parameters_of_nodes() -> None:
    specs = by_name(graph({'terrain': 'flat'}, {'sim_node': {'mu': 0.9, 'terrain': 'stairs'}}))
    assert specs['sim_node'].parameters['mu'] == 0.9
    assert specs['sim_node'].parameters['terrain'] == 'stairs'
    assert 'mu' not in specs['force_node'].parameters
    with pytest.raises(ArgumentError, match=r"unknown node 'sim'.*did you mean 'sim_node'"):
        graph({}, {'sim': {'mu': 0.9}})


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'robt': 'x'}, "unknown key 'robt'.*did you mean 'robot'"),
        ({'contact': 'sprnig'}, "contact is 'sprnig'.*expected one of"),
        ({'real_time_factor': -1.0}, 'real_time_factor is -1.0; expected'),
        ({'headless': 'maybe'}, "headless is 'maybe'; expected true or false"),
        ({'port': 70_000}, 'port is 70000; expected'),
        ({'params_file': '/no/such.yaml'}, '/no/such.yaml not found'),
    ],
)
def test_wrong_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        graph(given)


@pytest.mark.usefixtures('no_ros')
def test_file_of_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph({})[0].files == [share_folder() / 'config' / 'sim.yaml']
    (tmp_path / 'mine.yaml').write_text('')
    monkeypatch.chdir(tmp_path)
    for spec in graph({'params_file': 'mine.yaml'}):
        assert spec.files == [tmp_path / 'mine.yaml']  # absolute: nodes may run elsewhere


def test_with_an_installation_of_ros(with_ros: Path) -> None:
    specs = by_name(graph({'rviz': True}))
    assert list(specs) == ['sim_node', 'force_node', 'viewer_node', 'robot_state_publisher', 'rviz2']
    assert specs['sim_node'].parameters['publish_description'] is False  # robot_state_publisher does
    urdf = specs['robot_state_publisher'].parameters['robot_description']
    assert load_model(urdf).joint_names == load_model('mini_cheetah').joint_names
    assert specs['robot_state_publisher'].parameters['use_sim_time'] is True
    assert specs['rviz2'].arguments == ['-d', str(share_folder() / 'rviz' / 'sim.rviz')]
    assert not specs['rviz2'].respawn  # who closes the window does not want it back
    command = command_line(specs['rviz2'])
    assert command[0] == str(with_ros / 'lib' / 'rviz2' / 'rviz2')
    assert command.index('-d') < command.index('--ros-args')


def test_programs_that_are_not_installed(with_ros: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ('robot_state_publisher', 'rviz2'):  # in the index, but without their executables
        (with_ros / 'lib' / package / package).unlink()
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    specs = by_name(graph({'rviz': True}))
    assert 'robot_state_publisher' not in specs  # sim_node publishes the description instead
    assert 'publish_description' not in specs['sim_node'].parameters
    advice = 'rviz2 is not installed; install it with: sudo apt install ros-jazzy-rviz2'
    assert specs['rviz2'].lack == advice
    with pytest.raises(ArgumentError, match=advice):
        command_line(specs['rviz2'])
    said: list[str] = []
    supervisor = Supervisor([specs['rviz2']], lambda name, line: said.append(line))
    supervisor.start()
    assert said == supervisor.losses == [advice]
    assert supervisor.pids == {}


@pytest.mark.parametrize('namespace', ['robot1', '/robot1', 'herd/robot1'])
def test_namespace_holds_everything(with_ros: Path, namespace: str) -> None:
    for spec in graph({'namespace': namespace, 'rviz': True}):
        command = command_line(spec)
        assert f'__ns:=/{namespace.strip("/")}' in command
        # frames of two robots have the same names
        assert '/tf:=tf' in command
        assert '/tf_static:=tf_static' in command
    assert not any('__ns' in word or 'tf' in word for word in command_line(graph({})[0]))


# ---------------------------------------------------------------- command lines


def given_on(command: list[str]) -> dict[str, str]:
    """The parameters on a command line, as text."""
    pairs = itertools.pairwise(command)
    rules = [rule.partition(':=') for flag, rule in pairs if flag == '-p']
    return {name: text for name, _, text in rules}


@pytest.mark.parametrize('value', ODD_VALUES, ids=repr)
def test_values_are_yaml_in_one_line(value: Any) -> None:
    text = given_on(command_line(NodeSpec('x', module='x', parameters={'p': value})))['p']
    assert '\n' not in text
    assert yaml.safe_load(text) == value
    assert type(yaml.safe_load(text)) is type(value)


def test_tuples_are_lists_and_mappings_are_refused() -> None:
    text = given_on(command_line(NodeSpec('x', module='x', parameters={'p': (1.0, 2.0), 'e': ()})))
    assert text == {'p': '[1.0, 2.0]', 'e': '[]'}
    with pytest.raises(ArgumentError, match='is a mapping'):
        command_line(NodeSpec('x', module='x', parameters={'p': {'a': 1}}))


def test_values_reach_a_node(ros_domain: int, tmp_path: Path) -> None:
    """Through the parser of ROS, over a file that names the node itself and so is more special."""
    import rclpy
    from rclpy.node import Node

    file = tmp_path / 'a file.yaml'
    file.write_text('/**/n:\n  ros__parameters: {p0: file, of_file: 3}\nn:\n  ros__parameters: {p1: file}\n')
    values = {f'p{i}': value for i, value in enumerate(ODD_VALUES)}
    command = command_line(NodeSpec('n', module='n', parameters=values, files=[file]))
    context = rclpy.Context()
    rclpy.init(args=command[2:], context=context)
    try:
        node = Node('other', context=context, automatically_declare_parameters_from_overrides=True)
        found = {name: node.get_parameter(name).value for name in values}
        assert node.get_name() == 'n'
        assert node.get_parameter('of_file').value == 3
        node.destroy_node()
    finally:
        context.try_shutdown()
    assert {name: list(v) if isinstance(values[name], list) else v for name, v in found.items()} == values


# ---------------------------------------------------------------- the life of processes


def test_deaths_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr('quad_dynamics.ros.deaths.time.monotonic', lambda: now)
    deaths = Deaths()
    for _ in range(20):
        now += 5.1  # the fifth is 20.4 s after the first
        assert not deaths.too_many(1)
    now += 1.0
    assert deaths.too_many(1)


def test_deaths_by_somebody_else_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr('quad_dynamics.ros.deaths.time.monotonic', lambda: now)
    deaths = Deaths()
    for _ in range(20):
        now += 1.0
        assert not deaths.too_many(-signal.SIGKILL)
    for _ in range(4):  # but who never gets to work is given up
        now += 0.1
        assert not deaths.too_many(-signal.SIGKILL)
    assert deaths.too_many(-signal.SIGKILL)
    assert Deaths().too_many(-signal.SIGSEGV) is False


def until(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_to_end(spec: NodeSpec) -> tuple[Supervisor, list[str]]:
    said: list[str] = []
    supervisor = Supervisor([spec], lambda name, line: said.append(f'{name}: {line}'))
    supervisor.start()
    deadline = time.monotonic() + 20.0
    try:
        while time.monotonic() < deadline and not supervisor.failed and not any('exited' in x for x in said):
            supervisor.look()
            time.sleep(0.02)
        supervisor.look()
    finally:
        supervisor.stop()
    return supervisor, said


VIEWER = NodeSpec('viewer_node', module='x', needed=False)
RECORD = NodeSpec('r', module='x', arguments=['record'], is_node=False, needed=False)


@pytest.mark.parametrize(
    ('spec', 'code', 'what', 'text'),
    [
        (NodeSpec('sim_node'), 1, Next.RESTART, 'sim_node died (exit code 1); restarting it'),
        (NodeSpec('sim_node'), 0, Next.RESTART, 'sim_node died (exit code 0); restarting it'),
        (NodeSpec('sim_node'), 2, Next.END, 'sim_node refused to start'),
        (VIEWER, -9, Next.RESTART, 'viewer_node died (signal SIGKILL); restarting it'),
        (VIEWER, 2, Next.DO_WITHOUT, 'viewer_node refused to start; continuing without it'),
        (VIEWER, 3, Next.GO_ON, 'viewer_node cannot run here (see its message); continuing without it'),
        (RECORD, 0, Next.GO_ON, 'record has exited'),
        (RECORD, 1, Next.DO_WITHOUT, 'record exited with exit code 1; continuing without it'),
        (RECORD, -9, Next.RESTART, 'record died (signal SIGKILL); restarting it'),
        (replace(RECORD, needed=True), 2, Next.END, 'record exited with exit code 2'),
    ],
)
def test_what_follows_an_end(spec: NodeSpec, code: int, what: Next, text: str) -> None:
    found, said = Deaths().judge(spec, code)
    assert found is what
    assert said.startswith(text)


def test_what_follows_many_ends() -> None:
    for spec, what in ((NodeSpec('sim_node'), Next.END), (VIEWER, Next.DO_WITHOUT)):
        deaths = Deaths()
        assert [deaths.judge(spec, 1)[0] for _ in range(4)] == [Next.RESTART] * 4
        found, text = deaths.judge(spec, 1)
        assert found is what
        assert text.startswith(f'{spec.name} died 5 times within 20 s, the last time with exit code 1')


@pytest.mark.parametrize(('needed', 'failed'), [(True, 'record exited with exit code 1'), (False, '')])
def test_a_recorder_that_dies(needed: bool, failed: str) -> None:
    spec = replace(RECORD, module='no_such_module', needed=needed)
    supervisor, said = run_to_end(spec)
    assert supervisor.failed == failed
    assert len(supervisor.losses) == (not needed)
    assert supervisor.restarts == 0
    assert any('No module named' in line for line in said)


def test_what_may_end_is_not_started_again() -> None:
    supervisor, said = run_to_end(NodeSpec('rviz2', module='platform', respawn=False, needed=False))
    assert not supervisor.failed
    assert not supervisor.losses
    assert supervisor.restarts == 0
    assert sum('has exited' in line for line in said) == 1


def test_an_end_takes_bounded_time(tmp_path: Path) -> None:
    """One process ignores everything, another is asked only once and then takes its time."""
    (tmp_path / 'deaf.py').write_text(
        'import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint("up", flush=True)\n'
        'time.sleep(60)\n'
    )
    said: list[str] = []
    spec = NodeSpec('deaf', module='deaf', patience=0.2)
    supervisor = Supervisor([spec], lambda name, line: said.append(line))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYTHONPATH', str(tmp_path))
        supervisor.start()
    until(lambda: 'up' in said)
    begin = time.monotonic()
    supervisor.stop()
    assert 1.0 < time.monotonic() - begin < 10.0
    assert said[-1] == 'deaf does not stop; killing it'


NODE = """
import time
from quad_dynamics.ros.process import run_node
class Node:
    def spin(self, stop):
        print('spins', flush=True)
        while not stop():
            time.sleep(0.01)
    def close(self):
        print('closes', flush=True)
        time.sleep({closing})
        print('closed', flush=True)
raise SystemExit(run_node(Node, patience={patience}))
"""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_signals_are_not_heard_twice(ros_domain: int, number: signal.Signals) -> None:
    """As `timeout`, `ros2 launch` and impatient people send them: the end goes on as it began."""
    code = NODE.format(closing=0.5, patience=20.0)
    process = subprocess.Popen(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'spins\n'
    process.send_signal(number)
    assert process.stdout.readline() == 'closes\n'
    while process.poll() is None:  # until the very end of the interpreter
        for again in (number, signal.SIGINT, signal.SIGTERM):
            process.send_signal(again)
        time.sleep(0.01)
    assert process.stdout.read() == 'closed\n'
    assert process.returncode == 0


@pytest.mark.parametrize('holds_the_interpreter', [False, True])
def test_a_node_that_does_not_end_is_ended(ros_domain: int, holds_the_interpreter: bool) -> None:
    code = NODE.format(closing=60.0, patience=0.5)
    if holds_the_interpreter:  # as a library that waits for a lock in C
        code = code.replace('time.sleep(60.0)', '__import__("ctypes").PyDLL(None).sleep(60)')
    process = subprocess.Popen(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'spins\n'
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10.0)
    assert process.returncode == 1
    assert ('Timeout (0:00:01)' if holds_the_interpreter else 'shutdown took longer than 0.5 s') in errors


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_node_that_is_starting_ends_at_once(ros_domain: int, number: signal.Signals) -> None:
    """It may be compiling, for a minute, in a call that no handler in Python interrupts."""
    code = (
        'import time\nfrom quad_dynamics.ros.process import run_node\n'
        "run_node(lambda: (print('starts', flush=True), time.sleep(60.0)))"
    )
    process = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == 'starts\n'
    process.send_signal(number)
    assert process.wait(5.0) == -number


def test_who_has_nothing_to_lose_ends_at_once(ros_domain: int) -> None:
    """Without what the interpreter does at its end, which may hang in libraries."""
    code = NODE.format(closing=0.0, patience=20.0).replace('patience=20.0', 'nothing_to_lose=True')
    code = code.replace('import time', 'import atexit, time\natexit.register(time.sleep, 60.0)')
    process = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == 'spins\n'
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=4.5)
    assert output == 'closes\nclosed\n'
    assert process.returncode == 0


def test_arguments_that_ros_refuses_end_a_node(ros_domain: int, tmp_path: Path) -> None:
    """With the exit code of wrong parameters, for which nobody starts it again, and without a traceback."""
    file = tmp_path / 'broken.yaml'
    file.write_text('a: [b\n')
    command = [sys.executable, '-m', 'sim_node', '--ros-args', '--params-file', str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    assert done.returncode == 2
    assert f"Couldn't parse params file: '--params-file {file}'" in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.fixture
def ros_context(ros_domain: int) -> Iterator[Any]:
    import rclpy

    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    yield context
    context.try_shutdown()


def test_a_number_for_a_list_is_refused_with_a_reason(ros_context: Any) -> None:
    """`ros2 param set /sim_node kp 20`."""
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from quad_dynamics.ros.parameters import NodeParameters, descriptor

    node = Node('sim_node', context=ros_context)
    NodeParameters(node, SimNodeSettings)
    [result] = node.set_parameters([Parameter('kp', value=20)])
    assert not result.successful
    assert result.reason.startswith('kp is 20; expected a list of numbers')
    # One bound alone is no range: ROS would show the largest number there is.
    assert not descriptor(SimNodeSettings.parameters()['mu']).floating_point_range
    node.destroy_node()


def test_another_robot_can_be_simulated_than_is_believed(no_ros: None, tmp_path: Path) -> None:
    given = {'robot': 'mini_cheetah', 'sim_robot': '/tmp/heavy.urdf', 'identification': True}
    specs = by_name(graph(given))
    assert specs['sim_node'].parameters['robot'] == '/tmp/heavy.urdf'
    assert specs['sim_node'].parameters['publish_description'] is False
    for name in ('force_node', 'viewer_node', 'identification'):
        assert specs[name].parameters['robot'] == 'mini_cheetah'


def test_a_simulated_robot_has_the_joints_of_the_believed_one(no_ros: None, tmp_path: Path) -> None:
    from quad_dynamics.cli.parser import UsageError
    from quad_dynamics.cli.sim_checks import checked_graph

    robot = load_model('mini_cheetah')
    heavy = tmp_path / 'heavy.urdf'
    heavy.write_text(robot.with_pi(robot.pi * 1.1).to_urdf())
    assert checked_graph({'sim_robot': str(heavy), 'headless': True}, {})
    other = tmp_path / 'other.urdf'
    other.write_text(robot.to_urdf().replace('FL_hip_joint', 'left_front_joint'))
    with pytest.raises(UsageError, match=r'--sim-robot: joint names differ .*left_front_joint'):
        checked_graph({'sim_robot': str(other), 'headless': True}, {})
    with pytest.raises(UsageError, match='--sim-robot: nobody'):
        checked_graph({'sim_robot': 'nobody', 'headless': True}, {})


def test_nested_parameters_of_files_are_checked_as_ros_reads_them(no_ros: None, tmp_path: Path) -> None:
    from quad_dynamics.cli.parser import UsageError
    from quad_dynamics.cli.sim_checks import checked_graph

    assert checked_graph({'noise': 'typical', 'headless': True}, {})
    path = tmp_path / 'mine.yaml'
    overrides = {'/odom': {'publisher': {'depth': 5}}}
    sensors = {'odometry': {'position_walk': 0.1}}
    parameters = {'sensors': sensors, 'qos_overrides': overrides}
    path.write_text(yaml.safe_dump({'/**/sim_node': {'ros__parameters': parameters}}))
    assert checked_graph({'params_file': str(path), 'headless': True}, {})
    path.write_text(path.read_text().replace('position_walk', 'position_wlk'))
    with pytest.raises(UsageError, match=r"'sensors\.odometry\.position_wlk' \(did you mean"):
        checked_graph({'params_file': str(path), 'headless': True}, {})


def test_frames_of_sim_node_are_those_of_all_nodes(with_ros: Path, tmp_path: Path) -> None:
    path = tmp_path / 'mine.yaml'
    data = {
        '/**/sim_node': {'ros__parameters': {'odom_frame': 'there', 'frame_prefix': 'r1/'}},
        '/**/viewer_node': {'ros__parameters': {'world_frame': 'mine'}},
    }
    path.write_text(yaml.safe_dump(data))
    given = {'params_file': str(path), 'identification': True, 'walk': True}
    specs = by_name(graph(given, {'sim_node': {'base_frame': 'torso'}}))
    frames = {'world_frame': 'there', 'base_frame': 'torso'}
    for name in ('identification', 'planner_node'):
        assert frames.items() <= specs[name].parameters.items()
    assert {**frames, 'frame_prefix': 'r1/'}.items() <= specs['force_node'].parameters.items()
    assert 'world_frame' not in specs['viewer_node'].parameters  # the file says it
    assert specs['robot_state_publisher'].parameters['frame_prefix'] == 'r1/'
    assert not {'world_frame', 'base_frame', 'frame_prefix'} & set(
        by_name(graph({}))['force_node'].parameters
    )
