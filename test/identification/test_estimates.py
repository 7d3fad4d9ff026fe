# SPDX-License-Identifier: Apache-2.0
"""Contact flags and accelerations from bags: the same as from tables, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identification_bags import JOINT_STATE, arm_truth, joint_states, write
from legged_logs import ACCEL_WITH_COVARIANCE, MULTI_ARRAY, LeggedLog, legged_log, write_bag

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import Source, joined, open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import Logs

ESTIMATES = ('contact', 'acceleration', 'base_acceleration')
SETTINGS = SignalSettings(cutoff=30.0, delay=0.0)


def log() -> LeggedLog:
    return legged_log(motion='sway', seconds=4.0)


def table(every: int = 5) -> dict[str, Any]:
    """What a log at 200 Hz has, but for foot forces."""
    names = ('joint_names', 'foot_names')
    arrays = {name: array for name, array in log().arrays.items() if name != 'force'}
    return {name: array if name in names else array[::every] for name, array in arrays.items()}


def bag(path: Path, rename: dict[str, str] | None = None, **changes: Any) -> Path:
    return write_bag(path, table() | changes, rename)


def samples_of(source: Source) -> tuple[Any, Logs]:
    logs = Logs([source], log().model, SETTINGS)
    made, _ = logs.samples(30.0, logs.find_delays(30.0))
    return made.all(), logs


@pytest.mark.parametrize(
    'rename',
    [
        {},
        {
            'contact_type': MULTI_ARRAY,
            'acceleration_type': JOINT_STATE,
            'base_acceleration_type': ACCEL_WITH_COVARIANCE,
            'frame': 'robot/body',
        },
        {name: f'/estimator/{name}_log' for name in ESTIMATES},
    ],
    ids=['default_names', 'other_types', 'named'],
)
def test_a_bag_gives_the_same_samples_as_the_table(tmp_path: Path, rename: dict[str, str]) -> None:
    """The stamps are the same: so is every number."""
    np.savez(tmp_path / 'log.npz', **table())
    topics = Topics(**{name: rename[name] for name in ESTIMATES if name in rename})
    if 'frame' in rename:
        rename = rename | {'frame': f'robot/{log().model.body_names[0]}'}
    source = open_source(bag(tmp_path / 'bag', rename), log().model, topics)
    rows, logs = samples_of(source)
    expected, _ = samples_of(open_source(tmp_path / 'log.npz', log().model))
    np.testing.assert_array_equal(rows, expected)
    assert logs.logs[0].stance.method == 'flags'
    assert {'acceleration', 'base_acceleration'} < set(logs.logs[0].grid.sizes)
    text = ' '.join(source.notes)
    unnamed = rename.get('contact_type') == MULTI_ARRAY
    assert ('/foot_contacts: its messages have no stamps; the times of recording are used' in text) == unnamed
    assert ('taken in the order of the feet' in text) == unnamed


def test_estimates_are_left_out_where_their_topics_are_empty(tmp_path: Path) -> None:
    topics = Topics(**dict.fromkeys(ESTIMATES, ''))
    chunk = joined(list(open_source(bag(tmp_path / 'bag'), log().model, topics).chunks()))
    assert set(chunk) == {'position', 'velocity', 'effort', 'base'}


@pytest.mark.parametrize('name', ESTIMATES)
def test_a_name_that_is_not_in_the_bag(tmp_path: Path, name: str) -> None:
    path = bag(tmp_path / 'bag')
    with pytest.raises(ArgumentError, match=f"has no topic '/wrong'.* of .*--topic {name}= to do without"):
        open_source(path, log().model, Topics(**{name: '/wrong'}))


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('contact', 'sensor_msgs/msg/JointState or std_msgs/msg/Float64MultiArray'),
        ('acceleration', 'trajectory_msgs/msg/JointTrajectory or sensor_msgs/msg/JointState'),
        ('base_acceleration', 'geometry_msgs/msg/AccelStamped or '),
    ],
)
def test_a_topic_of_another_type(tmp_path: Path, name: str, expected: str) -> None:
    """Named, it is an error; by its usual name, it may be somebody else's, and is left out."""
    arrays = {key: array for key, array in table().items() if key != name}
    odometry = write_bag(tmp_path / 'bag', arrays)
    with pytest.raises(ArgumentError, match=f'topic /odom cannot be {name}: it is read as something else'):
        open_source(odometry, log().model, Topics(**{name: '/odom'}))
    usual: str = getattr(Topics(), name)
    other = write_bag(tmp_path / 'other', arrays, None, {f'/{usual}': '/odom'})
    with pytest.raises(
        ArgumentError, match=f'topic /{usual} has the type nav_msgs/msg/Odometry; expected {expected}'
    ):
        open_source(other, log().model, Topics(required=(name,)))
    source = open_source(other, log().model)
    assert any(usual in note and note.endswith('it is not used') for note in source.notes)


@pytest.mark.parametrize(
    ('name', 'changes', 'rename', 'words'),
    [
        (
            'contact',
            {'foot_names': np.array(['a', 'b', 'c', 'd'])},
            {},
            r"/foot_contacts: has the names \['a'",
        ),
        (
            'contact',
            {'contact': np.zeros((800, 3))},
            {'contact_type': MULTI_ARRAY},
            '/foot_contacts: has 3 numbers',
        ),
        (
            'base_acceleration',
            {},
            {'frame': 'odom'},
            "/base_acceleration: has the frame 'odom'; expected the",
        ),
    ],
    ids=['feet', 'count', 'frame'],
)
def test_messages_that_mean_something_else(
    tmp_path: Path, name: str, changes: dict[str, Any], rename: dict[str, str], words: str
) -> None:
    path = bag(tmp_path / 'bag', rename, **changes)
    with pytest.raises(ArgumentError, match=words):
        open_source(path, log().model, Topics(required=(name,)))
    source = open_source(path, log().model)
    assert any(note.endswith('it is not used') for note in source.notes)
    assert not any(key.startswith(name) for chunk in source.chunks() for key in chunk)


def test_flags_that_are_forces_are_refused(tmp_path: Path) -> None:
    """Some robots publish raw counts of force sensors in place of flags."""
    path = bag(tmp_path / 'bag', contact=table()['contact'] * 35.0)
    with pytest.raises(ArgumentError, match=r'contact/FL_foot is 35 at .*; expected 1 on the ground, 0 in'):
        Logs([open_source(path, log().model)], log().model)


def test_accelerations_that_are_noise_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=14.0, size=table()['base_acceleration'].shape)
    path = bag(tmp_path / 'bag', base_acceleration=table()['base_acceleration'] + noise)
    with pytest.raises(ArgumentError, match=r'accelerations of the base are mostly noise: below 10 Hz'):
        samples_of(open_source(path, log().model))


def test_flags_of_some_feet_are_not_used(tmp_path: Path) -> None:
    feet = log().arrays['foot_names'][:3]
    path = bag(tmp_path / 'bag', contact=table()['contact'][:, :3], foot_names=feet)
    source = open_source(path, log().model)
    assert Logs([source], log().model).logs[0].stance.method == 'kinematics'
    assert 'contacts of RR_foot were not measured; no contact is used' in source.notes


def arm_messages(**fields: Any) -> tuple[Any, list[Any]]:
    truth = arm_truth(duration=4.0)
    names = truth.model.joint_names
    states = joint_states(truth.stamps, names, truth.q, truth.u, truth.tau)
    numbers = {key: getattr(truth, value) for key, value in fields.items()}
    given = [numbers.get(key) for key in ('position', 'velocity', 'effort')]
    return truth, states + joint_states(truth.stamps, names, *given, topic='/joint_accelerations')


def test_an_arm_has_accelerations_too(tmp_path: Path) -> None:
    truth, messages = arm_messages(velocity='du')
    chunk = joined(list(open_source(write(tmp_path / 'bag', messages), truth.model).chunks()))
    np.testing.assert_array_equal(chunk['acceleration'].values, truth.du)


def test_accelerations_among_other_numbers(tmp_path: Path) -> None:
    """Nobody knows which of them they are."""
    truth, messages = arm_messages(velocity='u', effort='du')
    path = write(tmp_path / 'bag', messages)
    with pytest.raises(
        ArgumentError, match='/joint_accelerations: a message has velocity and effort; expected one'
    ):
        open_source(
            path, truth.model, Topics(acceleration='/joint_accelerations', required=('acceleration',))
        )
    assert 'acceleration' not in next(open_source(path, truth.model).chunks())
