# SPDX-License-Identifier: Apache-2.0
"""Validation of the options of `quad_dynamics sim`, before any process is started."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.cli.parser import UsageError
from quad_dynamics.errors import ArgumentError, ModelWarning, QuadDynamicsError
from quad_dynamics.parameters.parameter_set import ParameterSet
from quad_dynamics.parameters.yaml_numbers import load_yaml
from quad_dynamics.ros.graph import NODES, GraphOptions, file_parameters, graph
from quad_dynamics.ros.node_spec import NodeSpec

Parameters = Mapping[str, Mapping[str, Any]]  # of nodes, by the name of the node


def checked_graph(given: Mapping[str, Any], extra: Parameters) -> list[NodeSpec]:
    """The processes to start, after checking everything that would make them exit at once.

    Args:
        given: options, by the names in `GraphOptions`.
        extra: additional parameters of nodes.

    Raises:
        UsageError: an option is invalid.
    """
    try:
        options = GraphOptions.from_dict(given)
        _check_params_file(options.params_file)
        specs = graph(given, extra)
        values = {spec.executable: _node_settings(spec) for spec in specs if spec.executable in NODES}
        for name in set(extra) - set(values):
            _check(name, extra[name])
            warnings.warn(f'-p {name}.* has no effect: {name} is not started', stacklevel=2)
        _check_namespace(options.namespace)
        _check_values(values, options.sim_robot)
        _check_record(options.record)
        free = _page_port(values, given, extra, specs)
    except QuadDynamicsError as error:
        raise UsageError(str(error)) from error
    return specs if free is None else graph({**given, 'port': free}, extra)


def read_parameters(given: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parameters of nodes from `node.name=value`.

    Raises:
        UsageError: the text has another form.
    """
    found: dict[str, dict[str, Any]] = {}
    for text in given:
        name, equals, value = text.partition('=')
        node, dot, parameter = name.partition('.')
        if not (equals and dot and node and parameter):
            raise UsageError(f'-p {text}: expected NODE.NAME=VALUE, such as sim_node.mu=0.8')
        try:
            found.setdefault(node, {})[parameter] = load_yaml(value)
        except yaml.YAMLError as error:
            raise UsageError(f'-p {text}: {value!r} is not valid YAML; expected a number or text') from error
    return found


def topics_of_bag(folder: str) -> list[str]:
    """The topics of a bag that is to be played.

    Raises:
        UsageError: it cannot be read.
    """
    from quad_dynamics.ros.player import open_bag

    try:
        reader = open_bag(Path(folder))
    except QuadDynamicsError as error:
        raise UsageError(f'--play: {error}') from error
    try:
        return sorted({connection.topic for connection in reader.connections})
    finally:
        reader.close()


def _check_params_file(path: str) -> None:
    if not path or not Path(path).is_file():
        return  # reported by the graph
    try:
        data = load_yaml(Path(path).read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ArgumentError(f'--params-file {path}: {" ".join(str(error).split())}') from error
    if not isinstance(data, dict):
        raise ArgumentError(f'--params-file {path}: expected a mapping of nodes to ros__parameters')


def _node_settings(spec: NodeSpec) -> Any:
    """The settings with which a node will start, from its files and parameters."""
    values: dict[str, Any] = {}
    for path in spec.files:
        values |= file_parameters(path, spec.executable)
    return _check(spec.executable, {**values, **spec.parameters})


def _check(node: str, values: Mapping[str, Any]) -> Any:
    from quad_dynamics.ros.parameters import read_values

    return read_values(node, settings_class(node), values)


def settings_class(node: str) -> type[ParameterSet]:
    """The class with the parameters of a node. It is found by name: the library does not import nodes."""
    module = importlib.import_module(f'{node}.settings')
    [found] = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, ParameterSet) and item.__module__ == module.__name__
    ]
    return found


def _check_namespace(namespace: str) -> None:
    from rclpy.exceptions import InvalidNamespaceException
    from rclpy.validate_namespace import validate_namespace

    if namespace.strip('/'):
        try:
            validate_namespace(f'/{namespace.strip("/")}')
        except InvalidNamespaceException as error:
            reason = str(error).partition(':')[2].strip().splitlines()[0].rstrip(':')
            raise ArgumentError(f"--namespace '{namespace}': {reason}") from error


def _check_likeness(models: Mapping[str, Any]) -> None:
    """Check that the simulated robot has the joints and feet of the model that other nodes use."""
    simulated = models['sim_node']
    for name, model in models.items():
        for what in ('joint_names', 'foot_names'):
            ours, theirs = set(getattr(simulated, what)), set(getattr(model, what))
            if ours != theirs:
                raise ArgumentError(
                    f'--sim-robot: {what.replace("_", " ")} differ from those of {name}: '
                    f'{sorted(ours ^ theirs)}; expected the same'
                )


def _check_values(values: Mapping[str, Any], sim_robot: str) -> None:
    """Load what the nodes will load."""
    from quad_dynamics.identification.excitation.excitation_bag import read_trajectory
    from quad_dynamics.model.loading import load_model
    from quad_dynamics.model.xacro_files import parse_xacro_args
    from quad_dynamics.terrain.terrain import Terrain

    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # the nodes say it
        robots = {name: (node.robot, node.xacro_args) for name, node in values.items() if node.robot}
        models = {}
        for name, (robot, xacro_args) in robots.items():
            if (robot, xacro_args) in models:
                continue
            with _named('--sim-robot' if name == 'sim_node' and sim_robot else '--robot'):
                models[robot, xacro_args] = load_model(robot, xacro_args=parse_xacro_args(xacro_args))
        if sim_robot:
            _check_likeness({name: models[robot] for name, robot in robots.items()})
    if 'sim_node' in values:
        with _named('--terrain'):
            Terrain.load(values['sim_node'].terrain)
    excitation = values['identification'].excitation if 'identification' in values else ''
    if excitation:
        with _named('--excitation'):
            read_trajectory(excitation)


@contextlib.contextmanager
def _named(option: str) -> Any:
    """Prefix errors with the option that they concern."""
    try:
        yield
    except QuadDynamicsError as error:
        raise ArgumentError(f'{option}: {error}') from error


def _check_record(record: str) -> None:
    """Create the folder of the bag and remove it again, which is the only sure test."""
    if not record:
        return
    folder = Path(record).absolute()
    if os.path.lexists(folder):
        raise ArgumentError(f'--record: {record} already exists; expected the name of a new folder')
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    made: list[Path] = []
    try:
        for path in reversed(new):
            path.mkdir()
            made.append(path)
    except OSError as error:
        raise ArgumentError(f'--record: cannot create {record}: {error.strerror}') from error
    finally:
        for path in reversed(made):
            path.rmdir()


def _page_port(
    values: Mapping[str, Any], given: Mapping[str, Any], extra: Parameters, specs: Sequence[NodeSpec]
) -> int | None:
    """0 (choose a free port) if the default port is taken; None if the port can stay.

    Raises:
        ArgumentError: an explicitly chosen port cannot be used.
    """
    if 'viewer_node' not in values:
        return None
    host, port = values['viewer_node'].host, values['viewer_node'].port
    problem = _why_not_free(host, port)
    if not problem:
        return None
    [spec] = [spec for spec in specs if spec.executable == 'viewer_node']
    chosen = (given, extra.get('viewer_node', {}), *(file_parameters(f, 'viewer_node') for f in spec.files))
    if any('port' in source for source in chosen):
        raise ArgumentError(
            f'--port {port}: {problem}; expected a free port, or 0 to choose one automatically'
        )
    if _why_not_free(host, 0):
        raise ArgumentError(f'--host {host}: {problem}; expected an address of this machine')
    return 0


def _why_not_free(host: str, port: int) -> str:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ''
