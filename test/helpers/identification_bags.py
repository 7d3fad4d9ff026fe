# SPDX-License-Identifier: Apache-2.0
"""Recordings with a known truth, for tests of the way from a bag to samples.

Motions are sums of sines with exact derivatives; torques and forces are those of the equation of motion. So
nothing of the truth comes from a simulator with its time steps, and there is no delay but one that is put in.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

import quad_dynamics as qd
from quad_dynamics.array_types import Floats

STORE = get_typestore(Stores.ROS2_JAZZY)
START = 1_000_000_000  # stamp of the beginning [ns]


@cache
def robot(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model(name)


def waves(t: Floats, n: int, seed: int, size: float, lowest: float = 0.2, count: int = 5) -> list[Floats]:
    """(n_t, n) sums of sines up to `size` or so, with their first and second derivatives."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * lowest * np.arange(1, count + 1)
    a, phase = rng.normal(size=(n, count)) / w, rng.uniform(0.0, 2.0 * np.pi, (n, count))
    a *= size / np.sum(np.abs(a), axis=1, keepdims=True)
    x = w * t[:, None, None] + phase
    sums = [a * np.sin(x), a * w * np.cos(x), -a * w * w * np.sin(x)]
    return [part.sum(axis=2) for part in sums]


@dataclass(frozen=True, eq=False)
class Truth:
    """A motion; rows are times."""

    model: Any
    t: Floats
    q: Floats
    u: Floats
    du: Floats
    tau: Floats
    force: Floats  # (n, feet, 3)

    def at(self, rows: Any) -> Truth:
        """Some of the rows."""
        names = ('t', 'q', 'u', 'du', 'tau', 'force')
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    @property
    def stamps(self) -> npt.NDArray[np.int64]:
        return START + np.rint(self.t * 1e9).astype(np.int64)


def arm_truth(
    name: str = 'two_link_arm',
    duration: float = 20.0,
    rate: float = 500.0,
    seed: int = 0,
    size: float = 1.0,
    friction: tuple[float, float] = (0.0, 0.0),
    t: Floats | None = None,
) -> Truth:
    """A fixed-base robot that swings; friction is viscous and Coulomb of all joints."""
    model = robot(name).with_friction(*(np.full(robot(name).nj, f) for f in friction))
    t = np.arange(round(duration * rate)) / rate if t is None else t
    q, u, du = waves(t, model.nj, seed, size)
    limited = np.isfinite(model.q_min) & np.isfinite(model.q_max)
    q[:, limited] += 0.5 * (model.q_min[limited] + model.q_max[limited])
    tau = qd.inverse_dynamics(model, q, u, du)
    # the exact sign, which the library smooths near zero
    tau = tau + friction[0] * u + friction[1] * np.sign(u)
    return Truth(model, t, q, u, du, tau, np.zeros((len(t), 0, 3)))


def quadruped_truth(
    duration: float = 10.0,
    rate: float = 500.0,
    seed: int = 0,
    size: float = 0.2,
    t: Floats | None = None,
    model: Any = None,
) -> Truth:
    """A floating robot that moves and turns; the smallest forces at its feet that make it do so."""
    model = (model or robot('mini_cheetah')).with_friction(np.zeros(12), np.zeros(12))
    t = np.arange(round(duration * rate)) / rate if t is None else t
    p, v, a = waves(t, 3, seed, size)
    (angle, rates, turns), (qj, uj, aj) = waves(t, 3, seed + 1, 2.0 * size), waves(t, 12, seed + 2, size)
    quaternion, w, dw = _turning(angle, rates, turns)
    q = np.hstack([p + np.array([0.0, 0.0, 0.3]), quaternion, qj + model.standing[7:]])
    u, du = np.hstack([v, w, uj]), np.hstack([a, dw, aj])
    wrench = qd.inverse_dynamics(model, q, u, du)
    J = np.concatenate([_contact_jacobian(model, q, foot) for foot in model.foot_names], axis=1)
    force = (np.linalg.pinv(np.swapaxes(J[..., :6], 1, 2)) @ wrench[:, :6, None])[..., 0]
    tau = (wrench - np.einsum('nkv,nk->nv', J, force))[:, 6:]
    return Truth(model, t, q, u, du, tau, force.reshape(len(t), -1, 3))


def _contact_jacobian(model: Any, q: Floats, foot: str) -> Floats:
    """(n, 3, nv) of the lowest point of a foot."""
    [point] = [one for one in model.contact_points if one.link == foot]
    J = qd.frame_jacobian(model, q, foot)
    R, _ = qd.frame_pose(model, q, foot)
    arm = R @ np.array(point.position) - np.array([0.0, 0.0, point.radius])
    return J[:, :3] + np.cross(J[:, 3:], arm[:, :, None], axis=1)


def _turning(angle: Floats, d: Floats, dd: Floats) -> tuple[Floats, Floats, Floats]:
    """Quaternion, angular velocity and acceleration in body axes, of roll, pitch and yaw."""
    from scipy.spatial.transform import Rotation

    r, p, _ = angle.T
    dr, dp, dy = d.T
    ddr, ddp, ddy = dd.T
    sr, cr, sp, cp = np.sin(r), np.cos(r), np.sin(p), np.cos(p)
    w = np.stack([dr - dy * sp, dp * cr + dy * cp * sr, -dp * sr + dy * cp * cr], axis=1)
    dw = np.stack(
        [
            ddr - ddy * sp - dy * cp * dp,
            ddp * cr - dp * sr * dr + ddy * cp * sr - dy * sp * dp * sr + dy * cp * cr * dr,
            -ddp * sr - dp * cr * dr + ddy * cp * cr - dy * sp * dp * cr - dy * cp * sr * dr,
        ],
        axis=1,
    )
    return Rotation.from_euler('ZYX', angle[:, ::-1]).as_quat(), w, dw


# ---------------------------------------------------------------- messages


def stamp_of(ns: int) -> Any:
    sec, nanosec = divmod(int(ns), 10**9)
    return STORE.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)


def header(ns: int, frame: str = '') -> Any:
    return STORE.types['std_msgs/msg/Header'](stamp=stamp_of(ns), frame_id=frame)


def make(kind: str, **fields: Any) -> Any:
    return STORE.types[kind](**fields)


def vector(v: Floats, kind: str = 'Vector3') -> Any:
    x, y, z = map(float, v)
    return make(f'geometry_msgs/msg/{kind}', x=x, y=y, z=z)


def quaternion(q: Floats) -> Any:
    x, y, z, w = map(float, q)
    return make('geometry_msgs/msg/Quaternion', x=x, y=y, z=z, w=w)


JOINT_STATE, ODOMETRY = 'sensor_msgs/msg/JointState', 'nav_msgs/msg/Odometry'
IMU, WRENCH = 'sensor_msgs/msg/Imu', 'geometry_msgs/msg/WrenchStamped'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
Message = tuple[int, str, str, Any]  # time of recording, topic, type, message


def joint_states(
    stamps: Any,
    names: Any,
    position: Floats,
    velocity: Floats | None,
    effort: Floats | None,
    topic: str = '/joint_states',
    header_stamps: Any = None,
) -> list[Message]:
    """Messages of joints; None leaves a field empty."""
    none = np.empty(0)
    return [
        (
            int(stamps[i]),
            topic,
            JOINT_STATE,
            make(
                JOINT_STATE,
                header=header(stamps[i] if header_stamps is None else header_stamps[i]),
                name=list(names),
                position=np.ascontiguousarray(position[i]) if position is not None else none,
                velocity=none if velocity is None else np.ascontiguousarray(velocity[i]),
                effort=none if effort is None else np.ascontiguousarray(effort[i]),
            ),
        )
        for i in range(len(stamps))
    ]


def odometry(truth: Truth, topic: str = '/odom') -> list[Message]:
    """Pose in the world, twist in base axes."""
    from scipy.spatial.transform import Rotation

    v = Rotation.from_quat(truth.q[:, 3:7]).inv().apply(truth.u[:, :3])
    exact = np.zeros(36)
    messages = []
    for i, ns in enumerate(truth.stamps):
        pose = make(
            'geometry_msgs/msg/Pose',
            position=vector(truth.q[i, :3], 'Point'),
            orientation=quaternion(truth.q[i, 3:7] * (1.0 if i % 3 else -1.0)),  # both signs mean the same
        )
        twist = make('geometry_msgs/msg/Twist', linear=vector(v[i]), angular=vector(truth.u[i, 3:6]))
        message = make(
            ODOMETRY,
            header=header(ns, 'odom'),
            child_frame_id='base',
            pose=make('geometry_msgs/msg/PoseWithCovariance', pose=pose, covariance=exact),
            twist=make('geometry_msgs/msg/TwistWithCovariance', twist=twist, covariance=exact),
        )
        messages.append((int(ns), topic, ODOMETRY, message))
    return messages


def imu(truth: Truth, position: Any = (0.0, 0.0, 0.0), known: bool = True) -> list[Message]:
    """An IMU with the axes of the base, at some position in it."""
    from scipy.spatial.transform import Rotation

    R = Rotation.from_quat(truth.q[:, 3:7])
    w, dw, p = truth.u[:, 3:6], truth.du[:, 3:6], np.array(position)
    f = R.inv().apply(truth.du[:, :3] - truth.model.gravity) + np.cross(dw, p) + np.cross(w, np.cross(w, p))
    fine = np.zeros(9)
    unknown = np.r_[-1.0, np.zeros(8)]
    return [
        (
            int(ns),
            '/imu/data',
            IMU,
            make(
                IMU,
                header=header(ns, 'base'),
                orientation=quaternion(truth.q[i, 3:7]),
                orientation_covariance=fine if known else unknown,
                angular_velocity=vector(w[i]),
                angular_velocity_covariance=fine,
                linear_acceleration=vector(f[i]),
                linear_acceleration_covariance=fine,
            ),
        )
        for i, ns in enumerate(truth.stamps)
    ]


def foot_forces(truth: Truth, frame: str = 'odom', delay: float = 0.0) -> list[Message]:
    """Forces in world axes, or in those of each foot's own link ('foot')."""
    messages = []
    for k, foot in enumerate(truth.model.foot_names):
        force = truth.force[:, k]
        if frame == 'foot':
            R, _ = qd.frame_pose(truth.model, truth.q, foot)
            force = (np.swapaxes(R, 1, 2) @ force[..., None])[..., 0]
        for i, ns in enumerate(truth.stamps + round(delay * 1e9)):
            wrench = make('geometry_msgs/msg/Wrench', force=vector(force[i]), torque=vector(np.zeros(3)))
            named = foot if frame == 'foot' else frame
            message = make(WRENCH, header=header(ns, named), wrench=wrench)
            messages.append((int(ns), f'/foot_forces/{foot}', WRENCH, message))
    return messages


def write(path: Path, messages: list[Message], storage: str = 'mcap', little: bool = True) -> Path:
    """A bag of messages, in the order of their times."""
    plugin = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}[storage]
    with Writer(path, version=8, storage_plugin=plugin) as writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=STORE)
            for topic, kind in sorted({(topic, kind) for _, topic, kind, _ in messages})
        }
        for ns, topic, kind, message in sorted(messages, key=lambda one: one[0]):
            raw = bytes(STORE.serialize_cdr(message, kind, little_endian=little))
            writer.write(connections[topic], ns, raw)
    return path


@dataclass(frozen=True)
class Errors:
    """Standard deviations of white noise, and the delay of torques [s]."""

    position: float = 0.0
    velocity: float = 0.0
    torque: float = 0.0
    delay: float = 0.0


TYPICAL = Errors(2e-4, 0.02, 0.05, 0.0)


def arm_bag(path: Path, truth: Truth, errors: Errors | None = None, seed: int = 7, **options: Any) -> Path:
    """A bag of joint states; torques that are late are those of an earlier time, found anew."""
    errors = Errors() if errors is None else errors
    rng, nj = np.random.default_rng(seed), truth.model.nj
    late = options.pop('late', truth)
    position = truth.q[:, -nj:] + errors.position * rng.normal(size=(len(truth.t), nj))
    velocity = truth.u[:, -nj:] + errors.velocity * rng.normal(size=(len(truth.t), nj))
    effort = late.tau + errors.torque * rng.normal(size=(len(truth.t), nj))
    storage = options.pop('storage', 'mcap')
    return write(
        path,
        joint_states(truth.stamps, truth.model.joint_names, position, velocity, effort, **options),
        storage,
    )


def quadruped_messages(truth: Truth) -> list[Message]:
    """Joint states of a quadruped."""
    return joint_states(truth.stamps, truth.model.joint_names, truth.q[:, 7:], truth.u[:, 6:], truth.tau)
