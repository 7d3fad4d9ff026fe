# SPDX-License-Identifier: Apache-2.0
"""Logs as ROS 2 bags, written without ROS.

Bags have version 8 of the format. ROS 2 Humble cannot read version 9, which stores quality of service in
another form; newer versions of ROS 2 read both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.bags.message_bag import MessageBag
from quad_dynamics.bags.topics import known_types
from quad_dynamics.bags.writers import check_new
from quad_dynamics.errors import ArgumentError
from quad_dynamics.simulation.odometry import odometry_covariance
from quad_dynamics.simulation.sensors import Readings, SensorSuite
from quad_dynamics.simulation.settings import OdometrySettings, SensorSettings

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model
    from quad_dynamics.simulation.log import Log


WORLD_FRAME = 'odom'


def write_bag(
    log: Log,
    path: str | os.PathLike[str],
    rate_hz: float | None,
    storage: str,
    sensors: SensorSuite | None,
    clock: bool,
    ground_truth: bool = True,
    described: Model | None = None,
) -> None:
    """Write a bag; see `Log.to_bag`."""
    check_new(Path(path), storage)
    if not len(log):
        raise ArgumentError('the log is empty; expected at least one row for a bag')
    rows = log if rate_hz is None else _rows_at(log, rate_hz)
    description = log.robot_description if described is None else described.to_urdf()
    made = _Bag(rows, sensors, clock, description, ground_truth)
    with MessageBag(path, storage, {'dt': repr(log.dt)}) as bag:
        made.write(bag)


def nanoseconds(time: Floats) -> npt.NDArray[np.int64]:
    """Times [s] as integers in nanoseconds."""
    return np.array([round(float(t) * 1e9) for t in time], dtype=np.int64)


def _rows_at(log: Log, rate_hz: float) -> Log:
    """Rows at a distance of `1 / rate_hz`; torques and forces are means since the previous row."""
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, (int, float)) or not 0.0 < rate_hz < np.inf:
        raise ArgumentError(f'rate_hz is {rate_hz!r}; expected a number above 0 [Hz] or None')
    apart = np.diff(log.steps)
    if not len(apart):
        return log
    if np.any(apart != apart[0]):
        raise ArgumentError(f'rate_hz is {rate_hz}, but the rows are not equally spaced; expected None')
    period = int(apart[0]) * log.dt
    every = round(1.0 / (rate_hz * period))
    # A rate such as 333.3 means one third of 1000.
    if every < 1 or abs(every * rate_hz * period - 1.0) > 1e-3:
        raise ArgumentError(
            f'rate_hz is {rate_hz:g}; expected {1.0 / period:g} Hz, the rate of the rows, or a fraction 1/n'
        )
    tau, forces = _means(log.tau, every), _means(log.foot_forces, every)
    return replace(log[::every], tau=tau, foot_forces=forces)


def _means(values: Floats, every: int) -> Floats:
    """Means over blocks of successive rows."""
    last = (len(values) - 1) // every * every
    begins = np.concatenate([[0], np.arange(1, last + 1, every)])
    means: Floats = np.add.reduceat(values[: last + 1], begins, axis=0)
    means[1:] /= every
    return means


class _Bag:
    """Writes the rows of a log as messages."""

    bag: MessageBag

    def __init__(
        self, log: Log, sensors: SensorSuite | None, clock: bool, description: str, ground_truth: bool
    ) -> None:
        self.log, self.clock, self.description, self.ground_truth = log, clock, description, ground_truth
        self.truth = log.truth(None if sensors is None else sensors.settings)
        self.measured = None if sensors is None else sensors.measure_all(self.truth, log.steps)
        self.settings = SensorSettings(imu=log.imu) if sensors is None else sensors.settings
        self.world = WORLD_FRAME if log.floating_base else log.base_name
        self.stamps = nanoseconds(log.time)

    def write(self, bag: MessageBag) -> None:
        """Write all messages in chronological order."""
        self.bag = bag
        latched = self._topic('robot_description', 'std_msgs/msg/String', depth=1, latched=True)
        latched(int(self.stamps[0]), data=self.description)
        exact = SensorSettings()
        if self.measured is None:
            rows = self._sensor_topics('', self.truth, exact)
        else:
            rows = self._sensor_topics('', self.measured, self.settings)
        rows += [self._joint_torques()]
        if self.log.floating_base:
            measured = self.truth if self.measured is None else self.measured
            errors = OdometrySettings() if self.measured is None else self.settings.odometry
            rows += [self._odometry('odom', measured, errors)]
        if self.measured is not None and self.ground_truth:
            rows += self._sensor_topics('ground_truth/', self.truth, exact)
            if self.log.floating_base:
                rows += [self._odometry('ground_truth/odom', self.truth, exact.odometry)]
        if self.clock:
            rows += [self._clock()]
        for i in range(len(self.log)):
            for write_row in rows:
                write_row(i)

    def _topic(self, name: str, kind: str, **qos: Any) -> Callable[..., None]:
        """A function that writes a message, given its time [ns] and its fields."""
        write, message = self.bag.topic(f'/{name}', kind, **qos), known_types().types[kind]
        return lambda stamp, **fields: write(stamp, message(**fields))

    def _stamped(self, name: str, kind: str, frame: str) -> Callable[..., None]:
        """As `_topic`, but for messages with a header, and given the row instead of the time."""
        write, header = self._topic(name, kind), known_types().types['std_msgs/msg/Header']

        def write_row(i: int, **fields: Any) -> None:
            stamp = int(self.stamps[i])
            write(stamp, header=header(stamp=_time(stamp), frame_id=frame), **fields)

        return write_row

    def _sensor_topics(
        self, prefix: str, readings: Readings, settings: SensorSettings
    ) -> list[Callable[[int], None]]:
        topics = [self._joint_states(f'{prefix}joint_states', readings)]
        if self.log.floating_base:
            topics += [self._imu(f'{prefix}imu/data', readings, settings)]
        names = topic_names(self.log.foot_names)
        topics += [self._foot(f'{prefix}foot_forces/{name}', readings, k) for k, name in enumerate(names)]
        return topics

    def _joint_states(self, name: str, readings: Readings) -> Callable[[int], None]:
        write, names = self._stamped(name, 'sensor_msgs/msg/JointState', ''), list(self.log.joint_names)
        return lambda i: write(
            i,
            name=names,
            position=readings.joint_position[i],
            velocity=readings.joint_velocity[i],
            effort=readings.joint_torque[i],
        )

    def _joint_torques(self) -> Callable[[int], None]:
        write, names = self._stamped('joint_torques', 'sensor_msgs/msg/JointState', ''), self.log.joint_names
        none, tau = np.empty(0), np.ascontiguousarray(self.log.tau)
        return lambda i: write(i, name=list(names), position=none, velocity=none, effort=tau[i])

    def _imu(self, name: str, readings: Readings, settings: SensorSettings) -> Callable[[int], None]:
        imu = settings.imu
        frame = self.settings.imu.link or self.log.base_name
        write = self._stamped(name, 'sensor_msgs/msg/Imu', frame)

        def covariance(deviation: float) -> Floats:
            return np.diag([deviation**2] * 3).ravel()

        covariances = {
            'orientation_covariance': covariance(imu.orientation_noise),
            'angular_velocity_covariance': covariance(imu.angular_velocity_noise),
            'linear_acceleration_covariance': covariance(imu.acceleration_noise),
        }
        return lambda i: write(
            i,
            orientation=_quaternion(readings.imu_orientation[i]),
            angular_velocity=_vector(readings.imu_angular_velocity[i]),
            linear_acceleration=_vector(readings.imu_acceleration[i]),
            **covariances,
        )

    def _foot(self, name: str, readings: Readings, k: int) -> Callable[[int], None]:
        write = self._stamped(name, 'geometry_msgs/msg/WrenchStamped', self.world)
        wrench, zero = known_types().types['geometry_msgs/msg/Wrench'], np.zeros(3)
        return lambda i: write(
            i, wrench=wrench(force=_vector(readings.foot_forces[i, k]), torque=_vector(zero))
        )

    def _odometry(self, name: str, readings: Readings, errors: OdometrySettings) -> Callable[[int], None]:
        types, steps = known_types().types, self.log.steps
        write = self._stamped(name, 'nav_msgs/msg/Odometry', self.world)
        pose, twist = types['geometry_msgs/msg/Pose'], types['geometry_msgs/msg/Twist']
        with_covariance = types['geometry_msgs/msg/PoseWithCovariance']
        twist_with_covariance = types['geometry_msgs/msg/TwistWithCovariance']
        point = types['geometry_msgs/msg/Point']

        def write_row(i: int) -> None:
            where, motion = readings.base_pose[i], readings.base_twist[i]
            x, y, z = map(float, where[:3])
            place = pose(position=point(x=x, y=y, z=z), orientation=_quaternion(where[3:]))
            moves = twist(linear=_vector(motion[:3]), angular=_vector(motion[3:]))
            of_pose, of_twist = odometry_covariance(errors, float(steps[i]) * self.log.dt)
            write(
                i,
                child_frame_id=self.log.base_name,
                pose=with_covariance(pose=place, covariance=of_pose),
                twist=twist_with_covariance(twist=moves, covariance=of_twist),
            )

        return write_row

    def _clock(self) -> Callable[[int], None]:
        write = self._topic('clock', 'rosgraph_msgs/msg/Clock')
        return lambda i: write(int(self.stamps[i]), clock=_time(int(self.stamps[i])))


def topic_names(names: Sequence[str]) -> list[str]:
    """Names of feet as parts of topic names: letters, digits and underscores, no leading digit."""
    made = [re.sub(r'\W', '_', name, flags=re.ASCII) for name in names]
    made = [f'foot_{name}' if name[:1].isdigit() else name for name in made]
    return [f'{name}_{i}' if made.count(name) > 1 else name for i, name in enumerate(made)]


def _time(stamp: int) -> Any:
    sec, nanosec = divmod(stamp, 10**9)
    return known_types().types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)


def _vector(v: Floats) -> Any:
    x, y, z = map(float, v)
    return known_types().types['geometry_msgs/msg/Vector3'](x=x, y=y, z=z)


def _quaternion(q: Floats) -> Any:
    x, y, z, w = map(float, q)
    return known_types().types['geometry_msgs/msg/Quaternion'](x=x, y=y, z=z, w=w)
