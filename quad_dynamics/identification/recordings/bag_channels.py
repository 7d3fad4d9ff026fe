# SPDX-License-Identifier: Apache-2.0
"""Converts messages of each kind of topic to channels of a recording."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.bags.cdr_layout import HEAD
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_messages import Batch, read_batches, shape_of
from quad_dynamics.identification.recordings.recording import Channel, Chunk, Source
from quad_dynamics.identification.recordings.topics import WORLD_FRAMES, lacking_joints
from quad_dynamics.model.model import Model

JOINT_STATE = 'sensor_msgs/msg/JointState'
ODOMETRY = 'nav_msgs/msg/Odometry'
IMU = 'sensor_msgs/msg/Imu'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
_SIMULATED = 10**9  # a first stamp below is that of a simulation, whose time begins at zero [ns]


class Reading(abc.ABC):
    """Converts messages of one topic to channels.

    Attributes:
        kind: type of the messages.
        promises: quantities that they always contain.
        source: recording to which they belong; notes are added to it.
        topic: name in the bag.
        dispensable: the topic was not requested; if it is not as expected, it is skipped.
        first_stamp: first stamp of the topic that is not zero [ns]; 0 if there is none, and the times of
            recording are used.
    """

    kind: str
    promises: tuple[str, ...] = ()
    dispensable: bool = False

    def __init__(self, source: Source, topic: str) -> None:
        self.source, self.topic = source, topic
        self.first_stamp = 0
        self.restart()

    def check(self, raws: Sequence[bytes]) -> None:  # noqa: B027
        """Check the first messages.

        Args:
            raws: their bytes.

        Raises:
            ArgumentError: the topic has unexpected content.
        """

    def restart(self) -> None:
        """Start again at the first message."""
        self._begun = False
        self._stamped = False  # a message had a stamp
        self.source.unset.pop(self.topic, None)

    def find_stamp(self, raws: Iterable[bytes]) -> None:
        """Find the first stamp of the topic, and whether it has any.

        Args:
            raws: bytes of all its messages; read up to the first with a stamp.
        """
        messages = iter(raws)
        first = next(messages, None)
        if first is None or not shape_of(first, self.kind).stamped:
            return
        for raw in itertools.chain([first], messages):
            if _has_stamp(raw):
                self.first_stamp = int(read_batches([raw], self.kind)[0].stamps[0])
                return

    def is_unset(self, raw: bytes) -> bool:
        """Whether a message has no stamp, though others have; such messages are counted.

        Simulated time begins at zero: messages with this stamp are valid at the beginning, if the next stamp
        is close to it.
        """
        if not self.first_stamp or _has_stamp(raw):
            self._stamped = True
            return False
        if not self._stamped and self.first_stamp < _SIMULATED:
            return False
        self.source.unset[self.topic] += 1
        return True

    def read(self, received: Ints, raws: Sequence[bytes]) -> Chunk:
        """Channels of some messages, in the order of arrival.

        Args:
            received: (n,) times of recording [ns].
            raws: their bytes.

        Raises:
            ArgumentError: a message is not as expected.
        """
        batches = read_batches(raws, self.kind)
        if not self._begun and not self.first_stamp:
            what = 'all stamps are zero' if batches[0].shape.stamped else 'its messages have no stamps'
            self.source.note(f'{self.topic}: {what}; the times of recording are used')
        self._begun = True
        parts: dict[str, list[tuple[Ints, Channel]]] = {}
        for batch in batches:
            stamps = batch.stamps if self.first_stamp else received[batch.index]
            for key, channel in self.channels(batch, stamps).items():
                parts.setdefault(key, []).append((batch.index, channel))
        return {key: _in_order(found) for key, found in parts.items()}

    @abc.abstractmethod
    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of messages of the same shape."""


def _has_stamp(raw: bytes) -> bool:
    """Whether the stamp of a message with a header is not zero."""
    return any(raw[HEAD : HEAD + 8])


def _in_order(parts: list[tuple[Ints, Channel]]) -> Channel:
    """Messages of several shapes, in the order of arrival."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([index for index, _ in parts]), kind='stable')
    stamps = np.concatenate([channel.stamps for _, channel in parts])
    values = np.concatenate([channel.values for _, channel in parts])
    return Channel(stamps[order], values[order], parts[0][1].columns)


class JointReading(Reading):
    """sensor_msgs/JointState; joints by name, all in one message or distributed over several."""

    kind = JOINT_STATE

    def __init__(self, source: Source, topic: str, model: Model, names: tuple[str, str, str]) -> None:
        super().__init__(source, topic)
        self._model, self._names = model, names
        self._parts: list[tuple[int, ...]] = []

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        names = batch.shape.texts['name']
        columns, places = joints_of(self._model, names)
        if not columns:  # other joints: grippers, wheels
            return {}
        found: Chunk = {}
        for field, key in zip(('position', 'velocity', 'effort'), self._names, strict=True):
            values = batch.values.get(field)
            if values is None:
                continue
            if values.shape[1] != len(names):
                raise ArgumentError(
                    f'a message has {len(names)} joints, but {values.shape[1]} numbers of {field}'
                )
            found[self._key(key, columns)] = Channel(
                stamps, values[:, places], columns if len(columns) < self._model.nj else ()
            )
        return found

    def _key(self, key: str, columns: tuple[int, ...]) -> str:
        """Name of the channel; messages with a subset of the joints are separate channels."""
        if columns not in self._parts:
            self._parts.append(columns)
        number = self._parts.index(columns)
        return f'{key}#{number}' if number else key


class AllJointsReading(JointReading):
    """sensor_msgs/JointState; the messages together contain all joints."""

    def check(self, raws: Sequence[bytes]) -> None:
        """Find all joints in some messages; see `Reading.check`."""
        seen = {name for batch in read_batches(raws, self.kind) for name in batch.shape.texts['name']}
        if missing := self.source.topics.missing(self._model.joint_names, seen):
            raise ArgumentError(lacking_joints(missing, sorted(seen)))


def joints_of(model: Model, names: Sequence[str]) -> tuple[tuple[int, ...], list[int]]:
    """Which joints of the model are among the names, in the model's order, and their positions there.

    Raises:
        ArgumentError: a name occurs twice.
    """
    if len(set(names)) < len(names):
        double = sorted({name for name in names if names.count(name) > 1})
        raise ArgumentError(f'the joints {double} stand twice in a message')
    found = [(i, names.index(name)) for i, name in enumerate(model.joint_names) if name in names]
    return tuple(i for i, _ in found), [place for _, place in found]


class TrajectoryReading(Reading):
    """trajectory_msgs/JointTrajectory; its points become targets at their times."""

    kind = TRAJECTORY

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic)
        self._model = model

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        columns, places = joints_of(self._model, batch.shape.texts['name'])
        if len(columns) < self._model.nj:
            return {}
        points = sum(name.endswith('.time') for name in batch.shape.texts)
        times = np.array([int(batch.shape.texts[f'{k}.time'][0]) for k in range(points)], dtype=np.int64)
        found: Chunk = {}
        fields = {'positions': 'target_position', 'velocities': 'target_velocity', 'effort': 'target_effort'}
        for field, key in fields.items():
            values = [batch.values.get(f'{k}.{field}') for k in range(points)]
            if not points or any(value is None for value in values):
                continue
            table = np.stack([value for value in values if value is not None], axis=1)[:, :, places]
            found[key] = _until_next(stamps[:, None] + times, table)
        return found


def _until_next(times: Ints, table: Floats) -> Channel:
    """Points of trajectories, each valid until the next trajectory begins.

    Args:
        times: (n, points) [ns].
        table: (n, points, nj).
    """
    end = np.append(times[1:, 0], np.iinfo(np.int64).max)
    kept = times < end[:, None]
    return Channel(times[kept], table[kept])


class OdometryReading(Reading):
    """nav_msgs/Odometry."""

    kind = ODOMETRY
    promises = ('base',)

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        return {'base': Channel(stamps, np.hstack([batch.values['pose'], batch.values['twist']]))}


class ImuReading(Reading):
    """sensor_msgs/Imu."""

    kind = IMU
    promises = ('imu',)

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        values = batch.values
        # REP-145: if a quantity is not estimated, the first element of its covariance is -1.
        for field in ('orientation', 'angular_velocity', 'linear_acceleration'):
            if np.any(values[f'{field}_covariance'][:, 0] == -1.0):
                raise ArgumentError(f'{field} is not estimated (covariance -1); expected one')
        fields = ('orientation', 'angular_velocity', 'linear_acceleration')
        return {'imu': Channel(stamps, np.hstack([values[field] for field in fields]))}


class ForceReading(Reading):
    """geometry_msgs/WrenchStamped of one foot."""

    kind = WRENCH

    def __init__(self, source: Source, topic: str, foot: str, model: Model, frame: str) -> None:
        super().__init__(source, topic)
        self._foot, self._model, self._frame = foot, model, frame
        self.promises = (f'force/{foot}',)

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        frame = self._frame or batch.shape.texts['frame_id'][0].strip('/')
        if frame not in self._model.frames:
            frame = frame.rpartition('/')[2]  # frames may have a prefix if the robot is in a namespace
        if frame in WORLD_FRAMES:
            frame = ''
        elif not frame:
            self.source.note(f'{self.topic}: its messages name no frame; taken as in world axes')
        elif frame not in self._model.frames:
            raise ArgumentError(
                f'its frame is {frame!r}; expected {", ".join(WORLD_FRAMES)} or a link of {self._model.name}'
            )
        if self.source.force_frames.setdefault(self._foot, frame) != frame:
            raise ArgumentError(
                f'its frame changes from {self.source.force_frames[self._foot]!r} to {frame!r}'
            )
        return {f'force/{self._foot}': Channel(stamps, batch.values['force'])}
