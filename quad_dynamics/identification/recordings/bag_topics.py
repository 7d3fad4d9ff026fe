# SPDX-License-Identifier: Apache-2.0
"""How each topic of a bag that is of use is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_channels import (
    JOINT_STATE,
    ODOMETRY,
    ForceReading,
    ImuReading,
    JointReading,
    OdometryReading,
    Reading,
    TrajectoryReading,
)
from quad_dynamics.identification.recordings.recording import Source
from quad_dynamics.identification.recordings.topics import Topics, find_topic, missing_topic, namespace_of
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.bag import topic_names


def make_readings(
    source: Source, model: Model, topics: Topics, present: Mapping[str, str]
) -> dict[str, Reading]:
    """How to read each topic of a bag that is of use.

    Args:
        source: gets the notes.
        model: robot.
        topics: names of topics.
        present: types of the topics that have messages.

    Raises:
        ArgumentError: joint_states is missing, a topic is there several times, or has another type.
    """
    states = find_topic(topics.joint_states, present)
    if states is None:
        raise ArgumentError(missing_topic(topics.joint_states, JOINT_STATE, present))
    namespace = namespace_of(states, topics.joint_states)
    made: dict[str, Reading] = {
        states: JointReading(source, states, model, ('position', 'velocity', 'effort'))
    }

    def find(name: str) -> str | None:
        return find_topic(name, present, namespace)

    if topics.torque != 'effort':
        if torques := find(topics.joint_torques):
            names = ('target_position', 'target_velocity', 'target_effort')
            made[torques] = JointReading(source, torques, model, names)
        elif targets := find(topics.joint_targets):
            made[targets] = TrajectoryReading(source, targets, model)
    if model.floating_base:
        made |= _base_readings(source, model, topics, present, find)
    for topic, reading in made.items():
        if present[topic] != reading.kind:
            raise ArgumentError(f'topic {topic} has the type {present[topic]}; expected {reading.kind}')
    return made


def _base_readings(
    source: Source,
    model: Model,
    topics: Topics,
    present: Mapping[str, str],
    find: Callable[[str], str | None],
) -> dict[str, Reading]:
    """How to read what a floating base needs."""
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
