# SPDX-License-Identifier: Apache-2.0
"""Logs: their arrays, their files, and ROS 2 bags that are read back number by number."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cases import Case, load, model_of
from closeness import EXACT, assert_close
from rosbags.interfaces import QosDurability, QosHistory, QosReliability
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from states import random_state

from quad_dynamics.errors import ArgumentError
from quad_dynamics.simulation import bag
from quad_dynamics.simulation.log import Log, row_width
from quad_dynamics.simulation.sensors import SensorSuite
from quad_dynamics.simulation.settings import ImuSettings, SensorSettings, SimulatorSettings

ROWS = ['time', 'q', 'u', 'acceleration', 'tau', 'foot_forces', 'sweeps', 'residual', 'substeps', 'converged']
ROWS += ['ldlt', 'iterations']
ARM = Case('panda', False)
FEET = ['FL_foot', 'FR_foot', 'RL_foot', 'RR_foot']


@pytest.fixture(scope='module')
def cheetah() -> Any:
    return load('mini_cheetah')


def rows_of(model: Any, n: int, seed: int = 0, every: int = 1, dt: float = 1e-3) -> np.ndarray:
    """Rows as the simulator writes them, with random numbers."""
    rng = np.random.default_rng([seed, n])
    rows = rng.normal(scale=3.0, size=(n, row_width(model)))
    for k in range(n):
        rows[k, 0] = (k + 1) * every * dt
        rows[k, 1 : 1 + model.nq] = random_state(model, 100 * seed + k)[0]
    rows[:, -6] = rng.integers(0, 100, n)
    rows[:, -4] = rng.integers(1, 9, n)
    rows[:, -3] = rng.integers(0, 2, n)
    rows[:, -2] = rng.integers(0, 3, n)
    rows[:, -1] = rng.integers(0, 20, n)
    return rows


def log_of(model: Any, n: int = 20, seed: int = 0, every: int = 1, **settings: Any) -> Log:
    made = SimulatorSettings(**settings)
    return Log.from_rows(rows_of(model, n, seed, every, made.dt), model, made)


def assert_same(a: Log, b: Log) -> None:
    for name in [*ROWS, 'gravity']:
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype, name
        assert np.array_equal(x, y), name
    for name in ['joint_names', 'foot_names', 'base_name', 'floating_base', 'dt', 'imu']:
        assert getattr(a, name) == getattr(b, name), name


# ---- arrays


@pytest.mark.parametrize('robot', ['cheetah', 'arm'])
def test_rows_become_arrays(robot: str, cheetah: Any, seed: int) -> None:
    model = cheetah if robot == 'cheetah' else model_of(ARM)
    rows = rows_of(model, 5, seed)
    log = Log.from_rows(rows, model, SimulatorSettings(dt=2e-3, gravity=(0, 0, -1)))
    back = [log.time, log.q, log.u, log.acceleration, log.tau, log.foot_forces, log.sweeps, log.residual]
    back += [log.substeps, log.converged, log.ldlt, log.iterations]
    assert np.array_equal(np.hstack([part.reshape(5, -1) for part in back]), rows)
    assert log.q.shape == (5, model.nq)
    assert log.u.shape == log.acceleration.shape == (5, model.nv)
    assert log.tau.shape == (5, model.nj)
    assert log.foot_forces.shape == (5, len(model.foot_names), 3)
    assert log.sweeps.dtype == log.substeps.dtype == np.int64
    assert (log.joint_names, log.foot_names) == (model.joint_names, model.foot_names)
    assert (log.dt, log.gravity.tolist(), len(log)) == (2e-3, [0.0, 0.0, -1.0], 5)
    rows[:] = 0.0
    assert log.time[0] > 0.0  # the rows are the simulator's, to be used again


def test_gravity_of_the_model(cheetah: Any) -> None:
    assert log_of(cheetah.with_gravity([0, 0, -1.62])).gravity.tolist() == [0.0, 0.0, -1.62]


def test_rows_of_another_robot(cheetah: Any) -> None:
    width = row_width(cheetah)
    with pytest.raises(ArgumentError, match=rf'rows has shape \(3, 9\); expected \(n, {width}\)'):
        Log.from_rows(np.zeros((3, 9)), cheetah, SimulatorSettings())


def test_parts(cheetah: Any) -> None:
    log = log_of(cheetah, 50)
    part = log[10:20:2]
    assert np.array_equal(part.q, log.q[10:20:2])
    assert len(part) == 5
    # 3 * 0.001 is not 0.003 in floating point; both ends are in all the same
    assert (log.time[2], log.between(0.003, 0.007).steps.tolist()) == (0.003, [3, 4, 5, 6, 7])
    assert log.between(0.0061, 0.0069).steps.tolist() == []
    assert np.array_equal(part.truth().joint_torque, part.tau)
    with pytest.raises(ArgumentError, match='the index of a log is 3; expected a slice'):
        log[3]  # type: ignore[index]


def test_steps_count_from_the_reset(cheetah: Any) -> None:
    log = log_of(cheetah, 50, every=7, dt=1 / 3000)
    assert log.steps.tolist() == [7 * k for k in range(1, 51)]


# ---- files


@pytest.mark.parametrize('robot', ['cheetah', 'arm'])
def test_save_and_load(robot: str, cheetah: Any, tmp_path: Path, seed: int) -> None:
    model = cheetah if robot == 'cheetah' else model_of(ARM)
    link = model.body_names[-1]
    log = log_of(
        model, 9, seed, sensors={'imu': {'link': link, 'position': (0.1, 0.2, 0.3)}}, gravity=(0, 1, -9)
    )
    path = tmp_path / 'run.npz'
    log.save(path)
    assert list(tmp_path.iterdir()) == [path]
    back = Log.load(path)
    assert_same(log, back)
    assert back.imu == ImuSettings(link=link, position=(0.1, 0.2, 0.3))
    assert back.robot_description == log.robot_description == model.to_urdf()
    # A model that was written and read again has the same frames but for rounding.
    assert_close(back.truth().imu_acceleration, log.truth().imu_acceleration, EXACT)
    assert back.model.joint_names == model.joint_names
    again = tmp_path / 'again'
    back.save(again)
    assert_same(log, Log.load(again))


def test_order_of_joints_survives(tmp_path: Path) -> None:
    """A description that names the feet in another order orders the joints; the URDF does not know it."""
    feet = {name[:2]: name for name in reversed(FEET)}
    plain = load('mini_cheetah')
    model = load(plain.to_urdf(), description={'feet': feet})
    assert model.joint_names != plain.joint_names
    log_of(model, 3).save(tmp_path / 'run.npz')
    assert Log.load(tmp_path / 'run.npz').model.joint_names == model.joint_names


def spoiled(kind: str, path: Path) -> None:
    content = path.read_bytes()
    if kind == 'text':
        path.write_text('time,q\n')
    elif kind == 'empty':
        path.write_bytes(b'')
    elif kind == 'cut':
        path.write_bytes(content[: len(content) // 2])
    elif kind == 'array':
        with path.open('wb') as file:
            np.save(file, np.zeros(3))
    else:
        with np.load(path) as file:
            arrays = dict(file)
        about = json.loads(str(arrays['about']))
        if kind == 'version':
            arrays['about'] = np.array(json.dumps(about | {'version': 99}))
        elif kind == 'lacks':
            del arrays['tau']
        elif kind == 'shape':
            arrays['tau'] = arrays['tau'][:, 1:]
        np.savez(path, **arrays)


@pytest.mark.parametrize('kind', ['text', 'empty', 'cut', 'array', 'version', 'lacks', 'shape', 'none'])
def test_file_that_is_no_log(kind: str, cheetah: Any, tmp_path: Path) -> None:
    path = tmp_path / 'run.npz'
    if kind != 'none':
        log_of(cheetah, 3).save(path)
        spoiled(kind, path)
    expected = {'version': 'has version 99; expected 1', 'none': 'cannot be read: No such file'}
    with pytest.raises(ArgumentError, match=rf'run\.npz: {expected.get(kind, "not a log, or damaged")}'):
        Log.load(path)


# ---- bags


def read_bag(path: Path, store: Stores = Stores.ROS2_JAZZY) -> dict[str, list[tuple[int, Any]]]:
    """Times of recording [ns] and messages of each topic."""
    types = get_typestore(store)
    found: dict[str, list[tuple[int, Any]]] = {}
    with Reader(path) as reader:
        for connection, stamp, data in reader.messages():
            message = types.deserialize_cdr(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp, message))
    return found


def numbers(message: Any) -> list[float]:
    """x, y, z and, where there is one, w."""
    return [getattr(message, name) for name in 'xyzw' if hasattr(message, name)]


def assert_stamps(messages: list[tuple[int, Any]], log: Log, frame: str) -> None:
    assert len(messages) == len(log)
    for (recorded, message), time in zip(messages, log.time, strict=True):
        stamp = message.header.stamp
        assert recorded == stamp.sec * 10**9 + stamp.nanosec == round(time * 1e9)
        assert message.header.frame_id == frame


def assert_sensor_topics(topics: dict[str, Any], prefix: str, log: Log, readings: Any, imu: str) -> None:
    """Every number of joint_states, imu/data and foot_forces is that of the readings."""
    states = topics[f'{prefix}/joint_states']
    assert_stamps(states, log, '')
    for i, (_, message) in enumerate(states):
        assert message.name == list(log.joint_names)
        assert np.array_equal(message.position, readings.joint_position[i])
        assert np.array_equal(message.velocity, readings.joint_velocity[i])
        assert np.array_equal(message.effort, readings.joint_torque[i])
    for k, foot in enumerate(log.foot_names):
        forces = topics[f'{prefix}/foot_forces/{foot}']
        assert_stamps(forces, log, 'odom')
        for i, (_, message) in enumerate(forces):
            assert numbers(message.wrench.force) == readings.foot_forces[i, k].tolist()
            assert numbers(message.wrench.torque) == [0.0, 0.0, 0.0]
    inertial = topics[f'{prefix}/imu/data']
    assert_stamps(inertial, log, imu)
    for i, (_, message) in enumerate(inertial):
        assert numbers(message.orientation) == readings.imu_orientation[i].tolist()
        assert numbers(message.angular_velocity) == readings.imu_angular_velocity[i].tolist()
        assert numbers(message.linear_acceleration) == readings.imu_acceleration[i].tolist()


def assert_covariances(messages: list[tuple[int, Any]], imu: ImuSettings) -> None:
    for _, message in messages:
        for found, deviation in [
            (message.orientation_covariance, imu.orientation_noise),
            (message.angular_velocity_covariance, imu.angular_velocity_noise),
            (message.linear_acceleration_covariance, imu.acceleration_noise),
        ]:
            assert np.array_equal(np.reshape(found, (3, 3)), np.eye(3) * deviation**2)


def assert_odometry(messages: list[tuple[int, Any]], log: Log, qd: Any) -> None:
    assert_stamps(messages, log, 'odom')
    for i, (_, message) in enumerate(messages):
        assert message.child_frame_id == log.base_name
        assert numbers(message.pose.pose.position) == log.q[i, :3].tolist()
        assert numbers(message.pose.pose.orientation) == log.q[i, 3:7].tolist()
        R_WB, _ = qd.frame_pose(log.model, log.q[i], log.base_name)
        linear = numbers(message.twist.twist.linear)
        assert_close(linear, R_WB.T @ log.u[i, :3], 1e-14, 'twist')  # rounding of one rotation
        assert numbers(message.twist.twist.angular) == log.u[i, 3:6].tolist()


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bag_without_sensors(storage: str, cheetah: Any, tmp_path: Path, seed: int, qd: Any) -> None:
    log = log_of(cheetah, 12, seed, sensors={'imu': {'link': 'FL_calf', 'position': (0.1, 0.0, 0.0)}})
    log.to_bag(tmp_path / 'run', storage=storage)
    topics = read_bag(tmp_path / 'run')
    feet = {f'/foot_forces/{name}' for name in FEET}
    others = {'/joint_states', '/joint_torques', '/odom', '/imu/data', '/robot_description'}
    assert set(topics) == feet | others
    assert_sensor_topics(topics, '', log, log.truth(), 'FL_calf')
    assert_covariances(topics['/imu/data'], ImuSettings())
    assert_odometry(topics['/odom'], log, qd)
    assert_stamps(topics['/joint_torques'], log, '')
    for i, (_, message) in enumerate(topics['/joint_torques']):
        assert message.name == list(log.joint_names)
        assert np.array_equal(message.effort, log.tau[i])
        assert len(message.position) == len(message.velocity) == 0
    [(stamp, message)] = topics['/robot_description']
    assert (stamp, message.data) == (round(log.time[0] * 1e9), cheetah.to_urdf())


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bag_with_sensors(storage: str, cheetah: Any, tmp_path: Path, seed: int, qd: Any) -> None:
    log = log_of(cheetah, 12, seed, every=3)
    suite = SensorSuite(cheetah, SensorSettings.typical(), seed)
    log.to_bag(tmp_path / 'run', storage=storage, sensors=suite, clock=True)
    topics = read_bag(tmp_path / 'run')
    measured = suite.measure_all(log.truth(), 3 * np.arange(1, 13))
    assert not np.any(measured.joint_position == log.truth().joint_position)
    assert_sensor_topics(topics, '', log, measured, 'base_link')
    assert_covariances(topics['/imu/data'], suite.settings.imu)
    assert_sensor_topics(topics, '/ground_truth', log, log.truth(), 'base_link')
    assert_covariances(topics['/ground_truth/imu/data'], ImuSettings())
    assert_odometry(topics['/odom'], log, qd)
    assert_odometry(topics['/ground_truth/odom'], log, qd)
    assert np.array_equal([m.effort for _, m in topics['/joint_torques']], log.tau)
    for recorded, message in topics['/clock']:
        assert message.clock.sec * 10**9 + message.clock.nanosec == recorded
    assert [stamp for stamp, _ in topics['/clock']] == [3_000_000 * k for k in range(1, 13)]


def test_bag_of_a_fixed_base(tmp_path: Path) -> None:
    log = log_of(model_of(ARM), 4)
    log.to_bag(tmp_path / 'run')
    topics = read_bag(tmp_path / 'run')
    assert set(topics) == {'/joint_states', '/joint_torques', '/robot_description'}
    assert np.array_equal([m.position for _, m in topics['/joint_states']], log.q)


def test_bag_of_a_log_from_a_file(cheetah: Any, tmp_path: Path) -> None:
    log = log_of(cheetah, 5)
    log.save(tmp_path / 'run.npz')
    log.to_bag(tmp_path / 'a')
    Log.load(tmp_path / 'run.npz').to_bag(tmp_path / 'b')
    a, b = read_bag(tmp_path / 'a'), read_bag(tmp_path / 'b')
    assert a.keys() == b.keys()
    assert a['/robot_description'][0][1].data == b['/robot_description'][0][1].data
    assert np.array_equal(
        [m.effort for _, m in a['/joint_states']], [m.effort for _, m in b['/joint_states']]
    )


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_metadata(storage: str, cheetah: Any, tmp_path: Path) -> None:
    """Version 8, the last one with which Humble can do: quality of service is a text in it."""
    log_of(cheetah, 12).to_bag(tmp_path / 'run', storage=storage)
    text = (tmp_path / 'run' / 'metadata.yaml').read_text()
    about = yaml.safe_load(text)['rosbag2_bagfile_information']
    assert (about['version'], about['storage_identifier']) == (8, storage)
    assert about['message_count'] == 8 * 12 + 1
    assert about['duration']['nanoseconds'] == 11_000_000
    assert about['starting_time']['nanoseconds_since_epoch'] == 1_000_000
    kinds = {}
    for entry in about['topics_with_message_count']:
        topic = entry['topic_metadata']
        kinds[topic['name']] = topic['type']
        assert topic['serialization_format'] == 'cdr'
        latched = topic['name'] == '/robot_description'
        assert entry['message_count'] == (1 if latched else 12)
        assert isinstance(topic['offered_qos_profiles'], str)
        [qos] = yaml.safe_load(topic['offered_qos_profiles'])
        durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
        assert qos['durability'] == durability.value
        assert qos['depth'] == (1 if latched else 10)
        assert qos['history'] == QosHistory.KEEP_LAST.value
        assert qos['reliability'] == QosReliability.RELIABLE.value
    assert kinds == {
        '/robot_description': 'std_msgs/msg/String',
        '/joint_states': 'sensor_msgs/msg/JointState',
        '/joint_torques': 'sensor_msgs/msg/JointState',
        '/imu/data': 'sensor_msgs/msg/Imu',
        '/odom': 'nav_msgs/msg/Odometry',
        **{f'/foot_forces/{foot}': 'geometry_msgs/msg/WrenchStamped' for foot in FEET},
    }


def test_messages_are_those_of_humble(cheetah: Any, tmp_path: Path) -> None:
    """What the definitions of Humble make of the bytes writes the same bytes again."""
    log_of(cheetah, 2).to_bag(tmp_path / 'run', clock=True)
    humble = get_typestore(Stores.ROS2_HUMBLE)
    with Reader(tmp_path / 'run') as reader:
        for connection, _, data in reader.messages():
            message = humble.deserialize_cdr(data, connection.msgtype)
            assert bytes(humble.serialize_cdr(message, connection.msgtype)) == bytes(data), connection.topic


def test_sqlite_has_the_columns_of_humble(cheetah: Any, tmp_path: Path) -> None:
    log_of(cheetah, 2).to_bag(tmp_path / 'run', storage='sqlite3')
    [file] = (tmp_path / 'run').glob('*.db3')
    with sqlite3.connect(file) as database:
        topics = database.execute(
            'SELECT id, name, type, serialization_format, offered_qos_profiles FROM topics'
        ).fetchall()
        stamps = database.execute('SELECT timestamp FROM messages ORDER BY id').fetchall()
    database.close()
    assert len(topics) == 9
    assert stamps == sorted(stamps)


@pytest.mark.parametrize('dt', [1e-3, 5e-4, 1 / 3000, 2e-5])
def test_stamps_do_not_drift(dt: float) -> None:
    """They are the nearest nanosecond of the exact time, for an hour."""
    steps = np.unique(np.geomspace(1, 3600 / dt, 2000).astype(np.int64))
    exact = [round(k * round(dt * 3e9) / 3) for k in steps.tolist()]  # thirds of a nanosecond are enough
    assert bag.nanoseconds(steps * dt).tolist() == exact


def test_rate(cheetah: Any, tmp_path: Path) -> None:
    log = log_of(cheetah, 30, every=2)  # 500 Hz
    for rate, every in [(500, 1), (250.0, 2), (50, 10), (166.67, 3)]:
        log.to_bag(tmp_path / str(rate), rate_hz=rate)
        topics = read_bag(tmp_path / str(rate))
        expected = log[::every]
        means = [log.tau[max(k - every + 1, 0) : k + 1].mean(axis=0) for k in range(0, len(log), every)]
        assert_close([m.effort for _, m in topics['/joint_torques']], means, 1e-14)
        assert_stamps(topics['/odom'], expected, 'odom')
    log[:1].to_bag(tmp_path / 'one', rate_hz=77)
    assert len(read_bag(tmp_path / 'one')['/odom']) == 1


@pytest.mark.parametrize('rate', [1000, 300, 501])
def test_rate_that_the_rows_do_not_have(rate: float, cheetah: Any, tmp_path: Path) -> None:
    message = f'rate_hz is {rate}; expected 500 Hz, the rate of the rows, or a fraction 1/n'
    with pytest.raises(ArgumentError, match=message):
        log_of(cheetah, 30, every=2).to_bag(tmp_path / 'run', rate_hz=rate)
    assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize('rate', [0, -1, float('nan'), float('inf'), True, '50'], ids=repr)
def test_bad_rate(rate: Any, cheetah: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r'rate_hz is .*; expected a number above 0 \[Hz\] or None'):
        log_of(cheetah, 3).to_bag(tmp_path / 'run', rate_hz=rate)


def test_rate_of_uneven_rows(cheetah: Any, tmp_path: Path) -> None:
    log = log_of(cheetah, 10)[np.array([0, 1, 2, 5])]
    with pytest.raises(ArgumentError, match='the rows are not equally spaced; expected None'):
        log.to_bag(tmp_path / 'run', rate_hz=1000)


@pytest.mark.parametrize('kind', ['folder', 'file', 'dangling_link'])
def test_nothing_is_overwritten(kind: str, cheetah: Any, tmp_path: Path) -> None:
    path = tmp_path / 'run'
    if kind == 'folder':
        path.mkdir()
    elif kind == 'file':
        path.write_text('mine')
    else:
        path.symlink_to(tmp_path / 'nothing')
    with pytest.raises(ArgumentError, match='run already exists; expected the path of a new bag'):
        log_of(cheetah, 3).to_bag(path)
    assert kind != 'file' or path.read_text() == 'mine'


def test_failure_leaves_nothing(cheetah: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def fail_later(*arguments: Any) -> None:
        written.append(arguments)
        if len(written) > 1:
            raise OSError('no space left')

    monkeypatch.setattr('quad_dynamics.bags.message_bag._BATCH', 10)
    monkeypatch.setattr('quad_dynamics.bags.mcap_storage.McapStorage.write', fail_later)
    with pytest.raises(OSError, match='no space left'):
        log_of(cheetah, 3).to_bag(tmp_path / 'run')
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_a_bag(cheetah: Any, tmp_path: Path) -> None:
    log = log_of(cheetah, 3)
    with pytest.raises(ArgumentError, match=r"storage is 'sqlite' \(did you mean 'sqlite3'\?\); expected"):
        log.to_bag(tmp_path / 'run', storage='sqlite')
    with pytest.raises(ArgumentError, match='the log is empty; expected at least one row'):
        log[:0].to_bag(tmp_path / 'run')
    assert not (tmp_path / 'run').exists()


def test_names_of_feet_in_topics() -> None:
    names = ['LF_FOOT', 'toe-1', '3rd foot', 'Fuß', 'a b', 'a-b']
    assert bag.topic_names(names) == ['LF_FOOT', 'toe_1', 'foot_3rd_foot', 'Fu_', 'a_b_4', 'a_b_5']
