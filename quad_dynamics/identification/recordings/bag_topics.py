# SPDX-License-Identifier: Apache-2.0
"""Selects the relevant topics of a bag, and the readings of their messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_channels import (
    IMU,
    JOINT_STATE,
    ODOMETRY,
    TRAJECTORY,
    WRENCH,
    AllJointsReading,
    ForceReading,
    ImuReading,
    JointReading,
    OdometryReading,
    Reading,
    TrajectoryReading,
)
from quad_dynamics.identification.recordings.bag_estimates import ESTIMATE_READINGS
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.recordings.topics import (
    ESTIMATES,
    Topics,
    find_topic,
    missing_topic,
    namespace_of,
)
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.bag import topic_names

Find = Callable[[str], str | None]

# Topics that can be given by name, and their types.
_KINDS = {
    'joint_states': JOINT_STATE,
    'odom': ODOMETRY,
    'imu': IMU,
    'foot_forces': WRENCH,
    'joint_torques': JOINT_STATE,
    'joint_targets': TRAJECTORY,
    **{name: ' or '.join(ESTIMATE_READINGS[name]) for name in ESTIMATES},
}


def make_readings(
    source: Source, model: Model, topics: Topics, present: Mapping[str, str]
) -> dict[str, Reading]:
    """The readings of all relevant topics of a bag.

    Args:
        source: notes are added to it.
        model: robot.
        topics: names of topics.
        present: types of the topics that have messages.

    Raises:
        ArgumentError: joint_states is missing, or a topic exists several times or has another type.
    """
    states = find_topic(topics.joint_states, present)
    if states is None:
        raise ArgumentError(missing_topic(topics.joint_states, JOINT_STATE, present))
    namespace = namespace_of(states, topics.joint_states)
    made: dict[str, Reading] = {
        states: AllJointsReading(source, states, model, ('position', 'velocity', 'effort'))
    }

    def find(name: str) -> str | None:
        return find_topic(name, present, namespace)

    _check_required(model, topics, present, find)
    if topics.torque != 'effort':
        made |= _command_readings(source, model, topics, find)
    if model.floating_base:
        made |= _base_readings(source, model, topics, present, find)
    for topic, reading in made.items():
        if present[topic] != reading.kind:
            raise ArgumentError(f'topic {topic} has the type {present[topic]}; expected {reading.kind}')
    return made | _estimate_readings(source, model, topics, present, find, made)


def _check_required(model: Model, topics: Topics, present: Mapping[str, str], find: Find) -> None:
    """Check that topics that were given by name exist: there is no fallback.

    Raises:
        ArgumentError: one is missing.
    """
    unknown = [name for name in topics.required if name not in _KINDS]
    if unknown:
        raise ArgumentError(f'required is {unknown[0]!r}; expected one of {", ".join(_KINDS)}')
    for name in topics.named:
        wanted: str = getattr(topics, name)
        each = [wanted]
        if name == 'foot_forces' and model.foot_names:
            each = [f'{wanted}/{foot}' for foot in topic_names(model.foot_names)]
        for topic in each:
            if find(topic) is None:
                raise ArgumentError(
                    f'{missing_topic(topic, _KINDS[name], present)}. Expected the name of one of them, or '
                    f'--topic {name}= to do without'
                )


def _command_readings(source: Source, model: Model, topics: Topics, find: Find) -> dict[str, Reading]:
    """The reading of commands to the drives: those given by name, otherwise the first existing ones."""
    named = [name for name in topics.named if name in ('joint_torques', 'joint_targets')]
    if len(named) > 1:
        raise ArgumentError(
            'joint_torques and joint_targets are both named; expected one of them, which torques follow from'
        )
    torques, targets = find(topics.joint_torques), find(topics.joint_targets)
    if torques is not None and named != ['joint_targets']:
        names = ('target_position', 'target_velocity', 'target_effort')
        return {torques: JointReading(source, torques, model, names)}
    return {} if targets is None else {targets: TrajectoryReading(source, targets, model)}


def _base_readings(
    source: Source, model: Model, topics: Topics, present: Mapping[str, str], find: Find
) -> dict[str, Reading]:
    """The readings that a floating base needs."""
    made: dict[str, Reading] = {}
    odom, imu = find(topics.odom), find(topics.imu)
    if odom:
        made[odom] = OdometryReading(source, odom)
    if imu:
        made[imu] = ImuReading(source, imu)
    if not made:
        missing = missing_topic(topics.odom, ODOMETRY, present)
        raise ArgumentError(f'{missing}; a floating base needs it, or {topics.imu!r}')
    if topics.foot_forces:
        for foot, name in zip(model.foot_names, topic_names(model.foot_names), strict=True):
            if force := find(f'{topics.foot_forces}/{name}'):
                made[force] = ForceReading(source, force, foot, model, topics.force_frame)
    return made


def _estimate_readings(
    source: Source,
    model: Model,
    topics: Topics,
    present: Mapping[str, str],
    find: Find,
    taken: Collection[str],
) -> dict[str, Reading]:
    """The readings of contact flags and accelerations.

    Raises:
        ArgumentError: a topic given by name has another type, or is already used for something else.
    """
    made: dict[str, Reading] = {}
    for name in ESTIMATES if model.floating_base else ('acceleration',):
        topic = find(getattr(topics, name))
        if topic is None:
            continue
        if topic in taken or topic in made:
            raise ArgumentError(f'topic {topic} cannot be {name}: it is read as something else')
        readings, named = ESTIMATE_READINGS[name], topics.is_required(name)
        if present[topic] not in readings:
            problem = f'topic {topic} has the type {present[topic]}; expected {_KINDS[name]}'
            if named:
                raise ArgumentError(problem)
            source.note(f'{problem}; it is not used')
            continue
        made[topic] = readings[present[topic]](source, topic, model)
        made[topic].dispensable = not named
    return made
