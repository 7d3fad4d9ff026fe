# SPDX-License-Identifier: Apache-2.0
"""The graph of nodes, defined once for the launch files and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.control.modes.names import MODES, STAND, WHOLE_BODY
from quad_dynamics.control.walker_settings import PLANNERS
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import nearest, param
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.parameters.yaml_numbers import load_yaml
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.ros.environment import share_folder
from quad_dynamics.ros.node_spec import PACKAGE, NodeSpec
from quad_dynamics.ros.process import CLOSING
from quad_dynamics.simulation.settings import CONTACTS

_ROBOT = ('robot', 'xacro_args')  # what all nodes have in common
CONTROLLERS = ('force_node', 'none')
RECORDER = 'quad_dynamics_recorder'  # name of the node that `quad_dynamics record` is
NODES = ('sim_node', 'force_node', 'planner_node', 'viewer_node', 'identification')  # of this package
PLANNER_NODE = 'external'  # what the parameter `planner` of force_node calls it
# Parameters of nodes that name frames, and those of sim_node that they follow.
_FRAMES = {
    'force_node': {'world_frame': 'odom_frame', 'base_frame': 'base_frame', 'frame_prefix': 'frame_prefix'},
    'planner_node': {'world_frame': 'odom_frame', 'base_frame': 'base_frame'},
    'identification': {'world_frame': 'odom_frame', 'base_frame': 'base_frame'},
    'viewer_node': {'world_frame': 'odom_frame'},
    'robot_state_publisher': {'frame_prefix': 'frame_prefix'},
}


@dataclass(frozen=True)
class GraphOptions(ParameterSet):
    """Options of the graph."""

    robot: str = param('mini_cheetah', 'bundled robot, or path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    sim_robot: str = param(
        '',
        'robot to simulate, if it differs from the model of the other nodes; with the same joints and feet',
    )
    contact: str = param('auto', 'contact model', choices=CONTACTS)
    terrain: str = param('flat', 'name of a terrain, or path of a YAML file')
    initial_pose: str = param('lying', 'initial pose of the robot', choices=('lying', 'standing'))
    controller: str = param(
        'force_node', 'node that commands torques; none: your own node, on joint_torques', choices=CONTROLLERS
    )
    mode: str = param(STAND, 'mode of force_node', choices=MODES)
    walk: bool = param(False, 'get up, stand, and walk on cmd_vel: mode whole_body of force_node')
    gait: str = param('trot', 'gait', choices=tuple(GAITS))
    planner: str = param(
        PLANNER_NODE,
        'planner for walking; external: planner_node, in its own process; others: inside force_node',
        choices=PLANNERS,
    )
    real_time_factor: float = param(
        1.0, 'simulated time over wall time; 0: as fast as possible', unit='-', low=0.0, high=1000.0
    )
    lock_step: bool = param(False, 'advance one control period per command: bit-identical runs')
    noise: str = param('none', 'sensor errors', choices=('none', 'typical'))
    seed: int = param(0, 'random seed of all noise', low=0, high=2**63 - 1)
    headless: bool = param(False, 'no viewer and no RViz')
    viewer: bool = param(True, 'serve the page in the browser')
    host: str = param('127.0.0.1', 'address of the page; other than loopback, anyone can open it')
    port: int = param(8080, 'port of the page; 0: a free one', low=0, high=65535)
    rviz: bool = param(False, 'start rviz2 if it is installed')
    record: str = param('', 'folder of a bag to record; empty: do not record')
    storage: str = param('mcap', 'format of the bag', choices=('mcap', 'sqlite3'))
    record_duration: float = param(
        0.0, 'duration of the bag, in simulated time with lock-step; 0: until the end', unit='s', low=0.0
    )
    identification: bool = param(False, 'start the identification node (~/start, ~/stop)')
    excitation: str = param(
        '', 'bag of `quad_dynamics excite` that identification sends to force_node on ~/start'
    )
    bag: str = param(
        '', 'recording to identify the robot from; nothing is simulated, and identification starts at once'
    )
    output: str = param('identified', 'folder of the identification results, one subfolder per result')
    namespace: str = param('', 'namespace of all nodes, for several robots')
    use_sim_time: bool = param(True, 'robot_state_publisher and RViz use /clock')
    params_file: str = param('', 'YAML file with node parameters; empty: config/sim.yaml')


def graph(given: Mapping[str, Any], extra: Mapping[str, Mapping[str, Any]] | None = None) -> list[NodeSpec]:
    """The processes to start.

    Args:
        given: options, by the names in `GraphOptions`; for the others the nodes use their own defaults.
        extra: more parameters of nodes, by the name of the node.

    Raises:
        ArgumentError: an unknown option or an invalid value.
    """
    options = GraphOptions.from_dict(given)
    if options.walk:
        given = _walking(options, given)
        options = GraphOptions.from_dict(given)
    _check_extra(extra or {})
    if options.controller == 'none':
        _check_no_force_node(given, extra or {})
    path = _parameter_file(options)
    in_file = file_parameters(path, 'sim_node')
    if 'robot' not in given and in_file.get('robot'):  # one robot for all nodes
        given = {**{name: in_file[name] for name in _ROBOT if in_file.get(name)}, **given}
        options = GraphOptions.from_dict(given)
    make = _Maker(options, given, path, extra or {}, 'wait_for_commands' not in in_file)
    if options.bag:
        _check_bag_alone(options)
        return [make.identification()]
    specs = [make.sim_node()]
    if options.controller == 'force_node':
        specs.append(make.force_node())
        if make.has_planner:
            specs.append(make.planner_node())
    if options.viewer and not options.headless:
        specs.append(make.viewer_node())
    if options.identification:
        specs.append(make.identification())
    if options.record:
        specs.append(make.recorder())
    specs += make.of_ros()
    return specs


class _Maker:
    """Creates the processes from the options."""

    def __init__(
        self,
        options: GraphOptions,
        given: Mapping[str, Any],
        file: Path,
        extra: Mapping[str, Mapping[str, Any]],
        waits: bool,
    ) -> None:
        self.options, self.given, self.file, self.extra, self.waits = options, given, file, extra, waits
        self.planner = self._planner()
        self.has_planner = options.controller == 'force_node' and self.planner == PLANNER_NODE

    def _planner(self) -> str:
        """The planner; '' for the default of force_node."""
        of_force_node = {**file_parameters(self.file, 'force_node'), **self.extra.get('force_node', {})}
        if 'planner' in self.given or 'planner' not in of_force_node:
            is_asked = 'planner' in self.given or self.options.mode == WHOLE_BODY
            return self.options.planner if is_asked else ''
        return str(of_force_node['planner'])

    def _node(
        self, name: str, parameters: Mapping[str, Any], files: Sequence[Path] = (), needed: bool = True
    ) -> NodeSpec:
        return NodeSpec(
            executable=name,
            module=name,
            namespace=self.options.namespace,
            parameters={**self._frames(name), **parameters, **self.extra.get(name, {})},
            files=[self.file, *files],
            remappings=self._tf(),
            needed=needed,
        )

    def _frames(self, node: str) -> dict[str, Any]:
        """Frame names of sim_node, unless the parameter file gives the node others."""
        own = file_parameters(self.file, node)
        of_sim = {**file_parameters(self.file, 'sim_node'), **self.extra.get('sim_node', {})}
        names = _FRAMES.get(node, {})
        return {
            ours: of_sim[theirs] for ours, theirs in names.items() if theirs in of_sim and ours not in own
        }

    def _chosen(self, *names: str) -> dict[str, Any]:
        """Those of the named options that were given."""
        return {name: getattr(self.options, name) for name in names if name in self.given}

    def sim_node(self) -> NodeSpec:
        options = self.options
        names = ('contact', 'terrain', 'initial_pose', 'real_time_factor', 'lock_step', 'seed')
        parameters = self._chosen(*_ROBOT, *names)
        if options.sim_robot:
            # Readers of robot_description must not see the simulated robot.
            parameters |= {'robot': options.sim_robot, 'publish_description': False}
            if not options.sim_robot.endswith('.xacro'):
                parameters.pop('xacro_args', None)
        if self.waits:
            parameters['wait_for_commands'] = True
        if options.lock_step:
            partners = ['force_node'] if options.controller == 'force_node' else []
            partners += ['planner_node'] if self.has_planner else []
            partners += [RECORDER] if options.record else []
            if partners:
                parameters['lock_step_partners'] = partners
        if not self.state_publisher().lack:
            parameters['publish_description'] = False
        noisy = [share_folder() / 'config' / 'typical_sensors.yaml'] if options.noise == 'typical' else []
        return self._node('sim_node', parameters, noisy)

    def force_node(self) -> NodeSpec:
        parameters = self._chosen(*_ROBOT, 'mode', 'gait', 'lock_step')
        return self._node('force_node', {**parameters, **({'planner': self.planner} if self.planner else {})})

    def planner_node(self) -> NodeSpec:
        parameters = self._chosen(*_ROBOT, 'gait', 'lock_step')
        # Without it the robot stands, but lock-step does not start.
        return self._node('planner_node', parameters, needed=self.options.lock_step)

    def viewer_node(self) -> NodeSpec:
        return self._node('viewer_node', self._chosen(*_ROBOT, 'host', 'port'), needed=False)

    def identification(self) -> NodeSpec:
        parameters = self._chosen(*_ROBOT, 'excitation', 'bag', 'output')
        if self.options.bag:
            parameters['autostart'] = True
        return self._node('identification', parameters)

    def recorder(self) -> NodeSpec:
        options = self.options
        # After it was killed, it continues in another folder.
        arguments = ['record', '-o', options.record, '--next', '--storage', options.storage]
        arguments += ['--namespace', options.namespace] if options.namespace else []
        arguments += ['--sim-time'] if options.lock_step else []
        arguments += ['--duration', str(options.record_duration)] if options.record_duration else []
        return NodeSpec(
            PACKAGE,
            module=PACKAGE,
            arguments=arguments,
            is_node=False,
            needed=options.lock_step,  # which does not start without it
            patience=CLOSING,
        )

    def of_ros(self) -> list[NodeSpec]:
        """Nodes of a ROS installation: robot_state_publisher and, if requested, rviz2."""
        specs = []
        if not self.state_publisher().lack:
            specs.append(self.state_publisher(_urdf(self.options.robot, self.options.xacro_args)))
        if self.options.rviz and not self.options.headless:
            config = str(share_folder() / 'rviz' / 'sim.rviz')
            # A user who closes its window does not want it back.
            specs.append(self._foreign('rviz2', self._clock(), arguments=['-d', config], respawn=False))
        return specs

    def state_publisher(self, urdf: str = '') -> NodeSpec:
        parameters = {'robot_description': urdf, **self._clock(), **self._frames('robot_state_publisher')}
        return self._foreign('robot_state_publisher', parameters)

    def _foreign(self, name: str, parameters: Mapping[str, Any], **rest: Any) -> NodeSpec:
        """A node of another package with the same name as its package."""
        return NodeSpec(
            name,
            name,
            namespace=self.options.namespace,
            parameters=parameters,
            remappings=self._tf(),
            needed=False,
            **rest,
        )

    def _tf(self) -> list[tuple[str, str]]:
        """Remap /tf in a namespace: frames of several robots have the same names."""
        return [('/tf', 'tf'), ('/tf_static', 'tf_static')] if self.options.namespace else []

    def _clock(self) -> dict[str, Any]:
        return {'use_sim_time': self.options.use_sim_time}


def _walking(options: GraphOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the mode that `walk` implies."""
    if 'mode' in given and options.mode != WHOLE_BODY:
        raise ArgumentError(f'walk is true, but mode is {options.mode!r}; expected {WHOLE_BODY!r} or no mode')
    return {**given, 'mode': WHOLE_BODY}


def _check_extra(extra: Mapping[str, Any]) -> None:
    for name in extra:
        if name not in NODES:
            raise ArgumentError(
                f"unknown node '{name}'{nearest(name, NODES)}; expected one of {', '.join(NODES)}"
            )


def _check_bag_alone(options: GraphOptions) -> None:
    for name in ('record', 'excitation', 'sim_robot'):
        if getattr(options, name):
            raise ArgumentError(f'bag and {name} are mutually exclusive: with a bag, nothing is simulated')


def _check_no_force_node(given: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    names = {'walk': given.get('walk'), **{name: name in given for name in ('mode', 'gait', 'planner')}}
    for what, is_given in {**names, 'a parameter of force_node': 'force_node' in extra}.items():
        if is_given:
            raise ArgumentError(
                f'{what} is given, but controller is none, so there is no force_node; expected one of the two'
            )


def _parameter_file(options: GraphOptions) -> Path:
    path = Path(options.params_file) if options.params_file else share_folder() / 'config' / 'sim.yaml'
    if not path.is_file():
        raise ArgumentError(f'params_file: {path} not found; expected a YAML file with parameters')
    return path.absolute()


def file_parameters(path: Path, node: str) -> dict[str, Any]:
    """The parameters of a node in a file, by dotted names; the node itself reports errors of the file."""
    try:
        data = load_yaml(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    found: dict[str, Any] = {}
    for key, value in data.items() if isinstance(data, dict) else ():
        parameters = value.get('ros__parameters') if isinstance(value, dict) else None
        if isinstance(parameters, dict) and str(key).split('/')[-1] in ('**', node):
            found |= _dotted(parameters)
    return found


def _dotted(nested: Mapping[Any, Any], prefix: str = '') -> dict[str, Any]:
    """Nested mappings of parameters, flattened to dotted names as in ROS."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f'{prefix}{key}'
        flat |= _dotted(value, f'{name}.') if isinstance(value, Mapping) else {name: value}
    return flat


def _urdf(robot: str, xacro_args: str) -> str:
    """The robot as URDF text, for robot_state_publisher."""
    import warnings

    from quad_dynamics.errors import ModelWarning
    from quad_dynamics.model.loading import load_model
    from quad_dynamics.model.xacro_files import parse_xacro_args

    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # the nodes say it
        return load_model(robot, xacro_args=parse_xacro_args(xacro_args)).to_urdf()
