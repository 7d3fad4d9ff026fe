# SPDX-License-Identifier: Apache-2.0
"""Logs of simulated quadrupeds that trot on the spot or sway on their feet, with a payload on their trunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from identification_bags import (
    JOINT_STATE,
    ODOMETRY,
    TRAJECTORY,
    Message,
    header,
    joint_states,
    make,
    quaternion,
    robot,
    vector,
    write,
)
from scipy.spatial.transform import Rotation

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.recordings.table_reader import ACCELERATION_FIELDS, BASE_FIELDS
from quad_dynamics.simulation.gaits import Trot, hold
from quad_dynamics.simulation.sensors import SensorSuite
from quad_dynamics.simulation.settings import (
    EncoderSettings,
    FootForceSettings,
    JointTorqueSettings,
    SensorSettings,
)

PAYLOAD, PLACE = 1.0, np.array([0.05, 0.02, 0.06])  # [kg], in the frame of the trunk [m]
VISCOUS, COULOMB = 0.05, 0.2  # friction of all joints [N m s/rad, N m]
ACCEL, MULTI_ARRAY = 'geometry_msgs/msg/AccelStamped', 'std_msgs/msg/Float64MultiArray'
ACCEL_WITH_COVARIANCE = 'geometry_msgs/msg/AccelWithCovarianceStamped'
_DT = 1e-3
_SETTLE = 1.0  # before anything is logged [s]
_SWAY = 0.12  # of joints [rad]
_PERIOD = 0.32  # of a stride [s]
# Without bias: that of foot forces is like a mass.
_SENSORS = SensorSettings(
    encoders=EncoderSettings(position_noise=1e-4, velocity_noise=0.01),
    joint_torque=JointTorqueSettings(noise=0.03),
    foot_force=FootForceSettings(noise=1.0),
)


@dataclass(frozen=True, eq=False)
class LeggedLog:
    """What was measured, and what is true.

    Attributes:
        model: what is believed.
        truth: the simulator's log.
        arrays: of an npz table, as measured.
    """

    model: Any
    truth: Any
    arrays: dict[str, Any]

    def save(self, path: Path, *without: str, every: int = 1, **more: Any) -> Path:
        """Write every so many rows as a table, without some of the arrays, and with others."""
        arrays = {name: array for name, array in self.arrays.items() if name not in without} | more
        names = ('joint_names', 'foot_names')
        np.savez(path, **{name: a if name in names else a[::every] for name, a in arrays.items()})
        return path


def write_csv(path: Path, arrays: dict[str, Any]) -> Path:
    """The same table as CSV."""
    joints, feet = arrays['joint_names'], arrays['foot_names']
    base = ['base.' + field for field in (*BASE_FIELDS, *ACCELERATION_FIELDS)]
    kinds = ('position', 'velocity', 'acceleration', 'effort')
    names = ['time', *(f'{joint}.{kind}' for kind in kinds for joint in joints), *base]
    parts = [arrays['time'][:, None], *(arrays[kind] for kind in kinds)]
    parts += [arrays['base'], arrays['base_acceleration'], arrays['contact']]
    names += [f'{foot}.contact' for foot in feet]
    np.savetxt(path, np.hstack(parts), fmt='%.12g', delimiter=',', header=','.join(names), comments='')
    return path


def loaded(model: Any) -> Any:
    """The same robot with friction, and with the payload on its trunk."""
    pi, c = model.pi.copy(), PLACE
    inertia = PAYLOAD * (c @ c * np.eye(3) - np.outer(c, c)) + 1e-3 * np.eye(3)
    order = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    pi[:10] += np.r_[PAYLOAD, PAYLOAD * c, [inertia[i, j] for i, j in order]]
    return model.with_pi(pi).with_friction(np.full(model.nj, VISCOUS), np.full(model.nj, COULOMB))


def _controller(model: Any, motion: str) -> Callable[[Any], Any]:
    """Joints of all legs go to and fro alike, and each of them a little as it likes; and they may trot."""
    still, rng = hold(model), np.random.default_rng(3)
    steps = Trot(model, period=_PERIOD, duty=0.5) if motion == 'trot' else None
    w = 2.0 * np.pi * rng.uniform(0.4, 1.5, (2, model.nj))
    w[0], phase = np.tile(w[0, :3], 4), rng.uniform(0.0, 2.0 * np.pi, (2, model.nj))
    phase[0] = np.tile(phase[0, :3], 4)
    size = np.array([[_SWAY], [0.2 * _SWAY]])

    def command(sim: Any) -> Any:
        x = w * sim.time + phase
        now = still if steps is None else steps(sim)
        q = now.q + np.sum(size * np.sin(x), axis=0)
        qd_ = (0.0 if now.qd is None else now.qd) + np.sum(size * w * np.cos(x), axis=0)
        return replace(now, q=q, qd=qd_)

    return command


def base_acceleration(log: Any) -> Floats:
    """(n, 6) of the base's origin and angular, in base axes."""
    R = Rotation.from_quat(log.q[:, 3:7])
    return np.hstack([R.inv().apply(log.acceleration[:, :3]), log.acceleration[:, 3:6]])


@cache
def legged_log(
    name: str = 'mini_cheetah', motion: str = 'trot', seconds: float = 12.0, contact: str = 'impulse'
) -> LeggedLog:
    """A log at 1 kHz, with the errors of typical sensors, flags of contact and accelerations.

    Args:
        name: of a bundled robot.
        motion: 'trot' or 'sway'.
        seconds: its length [s].
        contact: model of the simulator.
    """
    model = robot(name)
    true = loaded(model)
    sim = qd.Simulator(true, contact=contact, dt=_DT)
    controller = _controller(model, motion)
    sim.run(controller, _SETTLE, progress=False)
    log = sim.run(controller, seconds, progress=False)
    read = SensorSuite(true, _SENSORS, 0, _DT).measure_all(log.truth(), log.steps)
    rng = np.random.default_rng(4)
    arrays = {
        'time': log.time - log.time[0],
        'position': read.joint_position,
        'velocity': read.joint_velocity,
        'effort': read.joint_torque,
        'joint_names': np.array(model.joint_names),
        'base': np.hstack([read.base_pose, read.base_twist]),
        'base_acceleration': base_acceleration(log),
        'acceleration': log.acceleration[:, 6:] + rng.normal(scale=1.0, size=(len(log), model.nj)),
        'force': read.foot_forces,
        'contact': (log.foot_forces[:, :, 2] > 0.0).astype(np.float64),
        'foot_names': np.array(model.foot_names),
    }
    return LeggedLog(model, log, arrays)


def write_bag(
    path: Path,
    arrays: dict[str, Any],
    rename: dict[str, str] | None = None,
    copies: dict[str, str] | None = None,
) -> Path:
    """The same table as a bag with a topic for each quantity, stamped alike, without foot forces.

    Args:
        path: of the bag.
        arrays: of the table.
        rename: other names of topics, and of types where they have another form.
        copies: topics that are copies of others.
    """
    stamps = np.rint(arrays['time'] * 1e9).astype(np.int64)
    joints, feet = arrays['joint_names'].tolist(), arrays['foot_names'].tolist()
    names = (rename or {}).get
    parts = [joint_states(stamps, joints, arrays['position'], arrays['velocity'], arrays['effort'])]
    parts.append([odometry_message(ns, row) for ns, row in zip(stamps, arrays['base'], strict=True)])
    if 'contact' in arrays:
        topic, flags = names('contact', '/foot_contacts'), arrays['contact']
        if names('contact_type') == MULTI_ARRAY:
            parts.append([multi_array_message(ns, row, topic) for ns, row in zip(stamps, flags, strict=True)])
        else:
            parts.append(joint_states(stamps, feet, flags, None, None, topic))
    if 'acceleration' in arrays:
        topic, a = names('acceleration', '/joint_accelerations'), arrays['acceleration']
        if names('acceleration_type') == JOINT_STATE:
            parts.append(joint_states(stamps, joints, None, None, a, topic))
        else:
            parts.append([point_message(ns, joints, row, topic) for ns, row in zip(stamps, a, strict=True)])
    if 'base_acceleration' in arrays:
        topic = names('base_acceleration', '/base_acceleration')
        kind, frame = names('base_acceleration_type', ACCEL), names('frame', '')
        rows = zip(stamps, arrays['base_acceleration'], strict=True)
        parts.append([accel_message(ns, row, topic, kind, frame) for ns, row in rows])
    messages = [message for part in parts for message in part]
    for copy, topic in (copies or {}).items():
        messages += [(ns, copy, kind, what) for ns, name, kind, what in messages if name == topic]
    return write(path, messages)


def odometry_message(ns: int, row: Floats) -> Message:
    """Of a row `base` of a table."""
    pose = make('geometry_msgs/msg/Pose', position=vector(row[:3], 'Point'), orientation=quaternion(row[3:7]))
    twist = make('geometry_msgs/msg/Twist', linear=vector(row[7:10]), angular=vector(row[10:]))
    exact = np.zeros(36)
    message = make(
        ODOMETRY,
        header=header(ns, 'odom'),
        child_frame_id='base',
        pose=make('geometry_msgs/msg/PoseWithCovariance', pose=pose, covariance=exact),
        twist=make('geometry_msgs/msg/TwistWithCovariance', twist=twist, covariance=exact),
    )
    return int(ns), '/odom', ODOMETRY, message


def multi_array_message(ns: int, row: Floats, topic: str) -> Message:
    """Numbers without names, with a layout."""
    dim = make('std_msgs/msg/MultiArrayDimension', label='feet', size=len(row), stride=len(row))
    layout = make('std_msgs/msg/MultiArrayLayout', dim=[dim], data_offset=0)
    message = make(MULTI_ARRAY, layout=layout, data=np.ascontiguousarray(row))
    return int(ns), topic, MULTI_ARRAY, message


def point_message(ns: int, joints: list[str], row: Floats, topic: str) -> Message:
    """A trajectory of one point with accelerations."""
    none = np.empty(0)
    point = make(
        'trajectory_msgs/msg/JointTrajectoryPoint',
        positions=none,
        velocities=none,
        accelerations=np.ascontiguousarray(row),
        effort=none,
        time_from_start=make('builtin_interfaces/msg/Duration', sec=0, nanosec=0),
    )
    message = make(TRAJECTORY, header=header(ns), joint_names=joints, points=[point])
    return int(ns), topic, TRAJECTORY, message


def accel_message(ns: int, row: Floats, topic: str, kind: str, frame: str) -> Message:
    """The acceleration of the base, with a covariance if that is its type."""
    accel = make('geometry_msgs/msg/Accel', linear=vector(row[:3]), angular=vector(row[3:]))
    if kind != ACCEL:
        accel = make('geometry_msgs/msg/AccelWithCovariance', accel=accel, covariance=np.zeros(36))
    return int(ns), topic, kind, make(kind, header=header(ns, frame), accel=accel)
