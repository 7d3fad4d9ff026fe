# SPDX-License-Identifier: Apache-2.0
"""Messages of a robot's own estimator: contact flags and accelerations.

There are no standard messages for contact flags and joint accelerations. Common messages with named values
are used: JointState with one value for each name, JointTrajectory with one point. A Float64MultiArray has
neither names nor a stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_channels import (
    JOINT_STATE,
    TRAJECTORY,
    AllJointsReading,
    Reading,
    joints_of,
)
from quad_dynamics.identification.recordings.bag_messages import Batch, read_batches
from quad_dynamics.identification.recordings.recording import Channel, Chunk, Source
from quad_dynamics.identification.recordings.topics import lacking_joints
from quad_dynamics.model.model import Frame, Model

ACCEL = 'geometry_msgs/msg/AccelStamped'
ACCEL_WITH_COVARIANCE = 'geometry_msgs/msg/AccelWithCovarianceStamped'
MULTI_ARRAY = 'std_msgs/msg/Float64MultiArray'

_FIELDS = ('position', 'velocity', 'effort')


def _only_field(batch: Batch) -> Floats:
    """(n, names) the values of a JointState that has one for each name.

    Raises:
        ArgumentError: several fields are filled, or none, or one of them partly.
    """
    filled = [field for field in _FIELDS if field in batch.values]
    if len(filled) != 1:
        raise ArgumentError(
            f'a message has {" and ".join(filled) or "no numbers"}; expected one number for each name, in '
            f'one of {", ".join(_FIELDS)}'
        )
    values, names = batch.values[filled[0]], batch.shape.texts['name']
    if values.shape[1] != len(names):
        raise ArgumentError(f'a message has {len(names)} names, but {values.shape[1]} numbers')
    return values


class ContactReading(Reading):
    """sensor_msgs/JointState with feet as names: 1 on the ground, 0 in the air, in any one field."""

    kind = JOINT_STATE

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic)
        self._feet = model.foot_names

    def check(self, raws: Sequence[bytes]) -> None:
        """Find feet in some messages; see `Reading.check`."""
        batches = read_batches(raws, self.kind)
        names = sorted({name for batch in batches for name in batch.shape.texts['name']})
        if not set(names) & set(self._feet):
            raise ArgumentError(f'has the names {names}; expected feet: {list(self._feet)}')
        for batch in batches:
            _only_field(batch)
        self.promises = tuple(f'contact/{foot}' for foot in self._feet if foot in names)

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        names, flags = batch.shape.texts['name'], _only_field(batch)
        return {
            f'contact/{foot}': Channel(stamps, flags[:, [names.index(foot)]])
            for foot in self._feet
            if foot in names
        }


class ContactArrayReading(Reading):
    """std_msgs/Float64MultiArray: like `ContactReading`, in the order of the feet."""

    kind = MULTI_ARRAY

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic)
        self._feet = model.foot_names
        self.promises = tuple(f'contact/{foot}' for foot in self._feet)

    def check(self, raws: Sequence[bytes]) -> None:
        """Check the number of values of some messages; see `Reading.check`."""
        for batch in read_batches(raws, self.kind):
            self._flags(batch)
        self.source.note(f'{self.topic}: taken in the order of the feet: {", ".join(self._feet)}')

    def _flags(self, batch: Batch) -> Floats:
        """(n, feet) flags."""
        flags = batch.values.get('data', np.zeros((len(batch.index), 0)))
        if flags.shape[1] != len(self._feet):
            raise ArgumentError(
                f'has {flags.shape[1]} numbers in a message; expected one for each of the feet '
                f'{list(self._feet)}'
            )
        return flags

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        flags = self._flags(batch)
        return {f'contact/{foot}': Channel(stamps, flags[:, [i]]) for i, foot in enumerate(self._feet)}


class AccelerationReading(AllJointsReading):
    """sensor_msgs/JointState with the joint accelerations in any one field."""

    promises = ('acceleration',)

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic, model, ('acceleration', 'acceleration', 'acceleration'))

    def check(self, raws: Sequence[bytes]) -> None:
        """Find all joints, with one value each; see `Reading.check`."""
        super().check(raws)
        for batch in read_batches(raws, self.kind):
            _only_field(batch)

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        _only_field(batch)
        return super().channels(batch, stamps)


class AccelerationPointReading(Reading):
    """trajectory_msgs/JointTrajectory of one point: the accelerations of all joints."""

    kind = TRAJECTORY
    promises = ('acceleration',)

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic)
        self._model = model

    def check(self, raws: Sequence[bytes]) -> None:
        """Find all joints in each of some messages; see `Reading.check`."""
        for batch in read_batches(raws, self.kind):
            self._table(batch)

    def _table(self, batch: Batch) -> tuple[Floats, tuple[int, ...]]:
        """(n, joints) accelerations, and which joints these are; empty: all."""
        names = batch.shape.texts['name']
        columns, places = joints_of(self._model, names)
        present = [self._model.joint_names[i] for i in columns]
        if missing := self.source.topics.missing(self._model.joint_names, present):
            raise ArgumentError(lacking_joints(missing, names))
        values = batch.values.get('0.accelerations')
        if values is None or '1.time' in batch.shape.texts or values.shape[1] != len(names):
            raise ArgumentError(
                'a message has no point, several, or other numbers than joints; expected one point with an '
                'acceleration of each joint'
            )
        return values[:, places], columns if len(columns) < self._model.nj else ()

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        values, columns = self._table(batch)
        later = int(batch.shape.texts['0.time'][0])
        return {'acceleration': Channel(stamps + later, values, columns)}


class BaseAccelerationReading(Reading):
    """geometry_msgs/AccelStamped: linear, of the base origin, and angular; in base axes, without gravity."""

    kind = ACCEL
    promises = ('base_acceleration',)

    def __init__(self, source: Source, topic: str, model: Model) -> None:
        super().__init__(source, topic)
        self._frames = model.frames

    def check(self, raws: Sequence[bytes]) -> None:
        """Check the frames of some messages; see `Reading.check`."""
        for batch in read_batches(raws, self.kind):
            self._check_frame(batch)

    def _check_frame(self, batch: Batch) -> None:
        """Check that its frame is that of the base."""
        frame = batch.shape.texts['frame_id'][0].strip('/')
        if not frame:
            self.source.note(f'{self.topic}: its messages name no frame; taken as in the axes of the base')
            return
        found = self._frames.get(frame) or self._frames.get(frame.rpartition('/')[2])
        if found is None or not _is_base(found):
            base = [name for name, each in self._frames.items() if _is_base(each)]
            raise ArgumentError(
                f'has the frame {frame!r}; expected the base, {" or ".join(base)}: the '
                'acceleration of its origin, in its axes'
            )

    def channels(self, batch: Batch, stamps: Ints) -> Chunk:
        """Channels of a batch of messages."""
        self._check_frame(batch)
        return {'base_acceleration': Channel(stamps, batch.values['accel'])}


class BaseAccelerationWithCovarianceReading(BaseAccelerationReading):
    """geometry_msgs/AccelWithCovarianceStamped: the same; the covariance is not used."""

    kind = ACCEL_WITH_COVARIANCE


def _is_base(frame: Frame) -> bool:
    """Whether a frame is that of the floating base."""
    return frame.body == 0 and not np.any(frame.p) and np.array_equal(frame.R, np.eye(3))


# Readings of each topic, by message type.
ESTIMATE_READINGS: Mapping[str, Mapping[str, Callable[[Source, str, Model], Reading]]] = {
    'contact': {JOINT_STATE: ContactReading, MULTI_ARRAY: ContactArrayReading},
    'acceleration': {TRAJECTORY: AccelerationPointReading, JOINT_STATE: AccelerationReading},
    'base_acceleration': {
        ACCEL: BaseAccelerationReading,
        ACCEL_WITH_COVARIANCE: BaseAccelerationWithCovarianceReading,
    },
}
