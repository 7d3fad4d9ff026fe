# SPDX-License-Identifier: Apache-2.0
"""Sensors: the truth against derivatives of the motion, errors against their statistics and guarantees."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cases import FIXED, FLOATING, Case, load, model_of
from closeness import DIFFERENCES, EXACT, assert_close, derivative
from scipy.spatial.transform import Rotation
from states import random_state

from quad_dynamics.errors import ArgumentError
from quad_dynamics.simulation.imu import imu_truth, rotated_back, turned
from quad_dynamics.simulation.noise import NormalStream, WalkStream
from quad_dynamics.simulation.odometry import odometry_covariance, true_odometry
from quad_dynamics.simulation.sensors import Readings, SensorSuite, true_readings
from quad_dynamics.simulation.settings import ImuSettings, SensorSettings

GRAVITY = np.array([0.3, -0.2, -9.81])
# Typical errors of all sensors, and of an odometry.
EVERYTHING = SensorSettings.typical().replace(
    odometry={
        'position_noise': 0.01,
        'position_walk': 0.02,
        'orientation_noise': 0.003,
        'yaw_walk': 0.01,
        'linear_velocity_noise': 0.05,
        'angular_velocity_noise': 0.004,
    }
)
FIELDS = [name for name in Readings.__dataclass_fields__ if name != 'time']
# Samples in the tests of statistics.
N = 20_000
# Deviations from the mean by more than 5 standard errors come once in two million tests.
SIGMAS = 5.0


@pytest.fixture(scope='module')
def cheetah() -> Any:
    return load('mini_cheetah')


def truth_of(model: Any, settings: SensorSettings, seed: int) -> Readings:
    q, u, du = random_state(model, seed)
    rng = np.random.default_rng([seed, 1])
    tau, forces = rng.normal(size=model.nj), rng.normal(scale=50.0, size=(len(model.foot_names), 3))
    return true_readings(model, settings, 0.25, q, u, du, GRAVITY, tau, forces)


def at_rest(model: Any, quaternion: Any = (0.0, 0.0, 0.0, 1.0)) -> Readings:
    q, zero = model.neutral.copy(), np.zeros(model.nv)
    q[3:7] = quaternion
    forces = np.zeros((len(model.foot_names), 3))
    return true_readings(
        model, SensorSettings(), 0.0, q, zero, zero, model.gravity, np.zeros(model.nj), forces
    )


def errors_of(suite: SensorSuite, truth: Readings, field: str, n: int = N) -> np.ndarray:
    """(n, ...) measured less true, of steps 0 to n - 1."""
    return np.array([getattr(suite.measure(truth, k), field) for k in range(n)]) - getattr(truth, field)


def assert_deviation(samples: np.ndarray, expected: float) -> None:
    """The samples, each column by itself, have the mean 0 and the standard deviation expected."""
    n = len(samples)
    assert np.all(np.abs(samples.mean(axis=0)) < SIGMAS * expected / np.sqrt(n))
    # The standard error of a standard deviation is 1 / sqrt(2 n) of it.
    assert np.all(np.abs(samples.std(axis=0) / expected - 1.0) < SIGMAS / np.sqrt(2 * n))


# ---- truth


def test_at_rest(cheetah: Any) -> None:
    truth = at_rest(cheetah)
    assert truth.imu_acceleration.tolist() == [0.0, 0.0, 9.81]
    assert truth.imu_angular_velocity.tolist() == [0.0, 0.0, 0.0]
    assert truth.imu_orientation.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_at_rest_on_its_side(cheetah: Any) -> None:
    turn = Rotation.from_euler('x', 90.0, degrees=True)
    # rounding of one rotation
    assert_close(at_rest(cheetah, turn.as_quat()).imu_acceleration, [0.0, 9.81, 0.0], 1e-15)


def test_free_fall(cheetah: Any) -> None:
    q, u, du = cheetah.neutral, np.zeros(cheetah.nv), np.zeros(cheetah.nv)
    du[:3] = cheetah.gravity
    acceleration, _, _ = imu_truth(cheetah, ImuSettings(position=(0.1, 0.2, 0.3)), q, u, du, cheetah.gravity)
    assert acceleration.tolist() == [0.0, 0.0, 0.0]


def second_derivative(function: Any, h: float) -> Any:
    """Sixth-order central second difference of function(t) at t = 0."""
    terms = [(1, 1.5), (2, -0.15), (3, 1.0 / 90.0)]
    total = -49.0 / 18.0 * function(0.0)
    return (total + sum(c * (function(k * h) + function(-k * h)) for k, c in terms)) / h**2


def imu_place(model: Any, seed: int, of_base: bool) -> ImuSettings:
    rng = np.random.default_rng([seed, 2])
    links = sorted(model.frames)
    link = None if of_base else links[int(rng.integers(len(links)))]
    return ImuSettings(link=link, position=tuple(rng.uniform(-0.3, 0.3, 3)))


@pytest.mark.parametrize('of_base', [True, False], ids=['base', 'link'])
@pytest.mark.parametrize('case', FLOATING + FIXED, ids=str)
def test_imu_is_the_motion_of_its_point(case: Case, of_base: bool, seed: int, qd: Any) -> None:
    """Against differences of positions and rotations along a motion with the given u and du at t = 0."""
    model, (q, u, du) = model_of(case), random_state(model_of(case), seed)
    imu = imu_place(model, seed, of_base)
    link = imu.link or model.base_name

    def pose(t: float) -> tuple[np.ndarray, np.ndarray]:
        # Turning by the vector w t + alpha t^2 / 2 begins with the angular velocity w and its rate alpha.
        return qd.frame_pose(model, qd.integrate(model, q, u * t + du * (0.5 * t**2), 1.0), link)

    def point(t: float) -> np.ndarray:
        R_WF, p_WF = pose(t)
        return p_WF + R_WF @ np.array(imu.position)

    R_WF = pose(0.0)[0]
    acceleration, angular_velocity, orientation = imu_truth(model, imu, q, u, du, GRAVITY)
    # Rounding of positions of 2 m, 1e-15 / h^2 = 1e-9, and truncation h^6 = 1e-18 of eighth derivatives that
    # reach 1e10 at the end of a chain.
    expected = R_WF.T @ (second_derivative(point, 1e-3) - GRAVITY)
    assert_close(acceleration, expected, 1e-7, 'specific force')
    spin = R_WF.T @ derivative(lambda t: pose(t)[0])
    assert_close(angular_velocity, [spin[2, 1], spin[0, 2], spin[1, 0]], DIFFERENCES, 'angular velocity')
    assert_close(Rotation.from_quat(orientation).as_matrix(), R_WF, EXACT, 'orientation')
    assert abs(np.linalg.norm(orientation) - 1.0) < 1e-15  # rounding of the division


@pytest.mark.parametrize('case', [FLOATING[0], FIXED[0]], ids=str)
def test_batch_is_the_single_states(case: Case, seed: int) -> None:
    model = model_of(case)
    settings = SensorSettings(imu=imu_place(model, seed, of_base=False))
    states = [random_state(model, 10 * seed + k) for k in range(4)]
    q, u, du = (np.array(part) for part in zip(*states, strict=True))
    rng = np.random.default_rng(seed)
    tau, forces = rng.normal(size=(4, model.nj)), rng.normal(size=(4, len(model.foot_names), 3))
    rest = q, u, du, GRAVITY, tau, forces
    batch = true_readings(model, settings, np.arange(4.0), *rest)
    for k in range(4):
        one = true_readings(model, settings, float(k), q[k], u[k], du[k], GRAVITY, tau[k], forces[k])
        assert batch.row(k).time == one.time
        for field in FIELDS:
            # sums of a few terms in another order
            assert_close(getattr(batch.row(k), field), getattr(one, field), 1e-12, field)


def test_joints_and_feet_are_what_was_given(cheetah: Any, seed: int) -> None:
    q, u, du = random_state(cheetah, seed)
    tau, forces = np.arange(12.0), np.arange(12.0).reshape(4, 3)
    truth = true_readings(cheetah, SensorSettings(), 0.5, q, u, du, GRAVITY, tau, forces)
    assert np.array_equal(truth.joint_position, q[7:])
    assert np.array_equal(truth.joint_velocity, u[6:])
    assert np.array_equal(truth.joint_torque, tau)
    assert np.array_equal(truth.foot_forces, forces)
    tau[0] = 99.0
    assert truth.joint_torque[0] == 0.0


def test_unknown_link(cheetah: Any) -> None:
    with pytest.raises(ArgumentError, match=r"sensors\.imu\.link .*'head'"):
        SensorSuite(cheetah, SensorSettings(imu={'link': 'head'}))


@pytest.mark.parametrize('seed', [0, 1], ids=['seed0', 'seed1'])
def test_rotations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, turns, v = Rotation.random(50, seed), rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    turns[0] = 0.0
    expected = q * Rotation.from_rotvec(turns)
    made = Rotation.from_quat([turned(a, b) for a, b in zip(q.as_quat(), turns, strict=True)])
    # rounding of products of unit quaternions and matrices
    assert (made.inv() * expected).magnitude().max() < 1e-14
    assert_close(rotated_back(q.as_quat(), v), q.inv().apply(v), 1e-14)
    assert_close(rotated_back(1.01 * q.as_quat(), v), q.inv().apply(v), 1e-14)


# ---- errors: guarantees about streams


def test_perfect_sensors_say_the_truth(cheetah: Any, seed: int) -> None:
    truth = truth_of(cheetah, SensorSettings(), seed)
    read = SensorSuite(cheetah, SensorSettings(), seed).measure(truth, 3)
    for field in FIELDS:
        assert np.array_equal(getattr(read, field), getattr(truth, field)), field
        assert not np.shares_memory(getattr(read, field), getattr(truth, field)), field
    assert read.time == truth.time


def test_every_sensor_has_errors(cheetah: Any, seed: int) -> None:
    truth = truth_of(cheetah, SensorSettings(), seed)
    read = SensorSuite(cheetah, EVERYTHING, seed).measure(truth, 3)
    for field in FIELDS:
        assert np.all(getattr(read, field) != getattr(truth, field)), field


def test_readings_depend_on_the_step_alone(cheetah: Any, seed: int) -> None:
    """In any order, once, twice or not at all, in one suite or in another, the same bits come out."""
    settings = EVERYTHING
    truth = truth_of(cheetah, settings, seed)
    suite = SensorSuite(cheetah, settings, seed)
    first = {k: suite.measure(truth, k) for k in range(600)}
    steps = np.random.default_rng(seed).permutation(600).tolist() * 2
    other = SensorSuite(cheetah, settings, seed)
    for suite_again, order in [(suite, steps), (other, steps[::7])]:
        for k in order:
            again = suite_again.measure(truth, k)
            for field in FIELDS:
                assert np.array_equal(getattr(again, field), getattr(first[k], field)), (field, k)


@pytest.mark.parametrize('group', ['imu', 'encoders', 'joint_torque', 'foot_force', 'odometry'])
def test_sensors_do_not_touch_each_other(cheetah: Any, group: str) -> None:
    typical = EVERYTHING
    truth = truth_of(cheetah, typical, 0)
    alone = SensorSuite(cheetah, SensorSettings(**{group: getattr(typical, group)}), 5)
    together = SensorSuite(cheetah, typical, 5)
    fields = {
        'imu': FIELDS[:3],
        'odometry': ['base_pose', 'base_twist'],
        'encoders': ['joint_position', 'joint_velocity'],
        'joint_torque': ['joint_torque'],
        'foot_force': ['foot_forces'],
    }[group]
    for k in (0, 300):
        a, b = alone.measure(truth, k), together.measure(truth, k)
        for field in FIELDS:
            same = np.array_equal(getattr(a, field), getattr(b, field))
            assert same == (field in fields), (field, k)


def test_other_error_of_the_same_sensor_changes_nothing(cheetah: Any) -> None:
    """Noise is the same with and without a bias and a walk: it differs by what they add."""
    truth = at_rest(cheetah)

    def errors(**imu: float) -> np.ndarray:
        suite = SensorSuite(cheetah, SensorSettings(imu=imu), 3)
        return errors_of(suite, truth, 'imu_acceleration', 300)

    noise, bias, walk = (
        errors(acceleration_noise=0.1),
        errors(acceleration_bias=0.2),
        errors(acceleration_walk=0.3),
    )
    together = errors(acceleration_noise=0.1, acceleration_bias=0.2, acceleration_walk=0.3)
    assert_close(together, noise + bias + walk, 1e-14)  # rounding of the sums with 9.81


def test_measure_all(cheetah: Any, seed: int) -> None:
    settings = EVERYTHING
    suite = SensorSuite(cheetah, settings, seed)
    rows = [truth_of(cheetah, settings, 10 * seed + k) for k in range(3)]
    truth = Readings(**{name: np.array([vars(row)[name] for row in rows]) for name in vars(rows[0])})
    steps = [4, 5, 900]
    read = suite.measure_all(truth, steps)
    for i, k in enumerate(steps):
        one = suite.measure(rows[i], k)
        for field in FIELDS:
            assert np.array_equal(getattr(read, field)[i], getattr(one, field)), field


PROCESS = """
from quad_dynamics.simulation.noise import NormalStream, WalkStream
for stream in (NormalStream, WalkStream):
    print(*(stream(7, 'name', 2).sample(k).tobytes().hex() for k in (0, 255, 1000)))
"""


def test_same_in_another_process() -> None:
    done = subprocess.run([sys.executable, '-c', PROCESS], capture_output=True, text=True, check=True)
    here = [
        s(7, 'name', 2).sample(k).tobytes().hex() for s in (NormalStream, WalkStream) for k in (0, 255, 1000)
    ]
    assert done.stdout.split() == here


def test_walk_is_the_sum_of_its_increments() -> None:
    """Also across the borders of blocks, and when a late sample is asked for first."""
    increments, walk = NormalStream(11, 'w', 3), WalkStream(11, 'w', 3)
    late = walk.sample(5000)
    samples = np.array([walk.sample(k) for k in range(5001)])
    assert samples[0].tolist() == [0.0, 0.0, 0.0]
    assert np.array_equal(samples[-1], late)
    steps = np.array([increments.sample(k) for k in range(5000)])
    # rounding of sums that reach 100
    assert_close(np.diff(samples, axis=0), steps, 1e-13)
    assert np.array_equal(np.cumsum(steps[:100], axis=0), samples[1:101])


@pytest.mark.parametrize(
    ('a', 'b'),
    [((1, 'x'), (2, 'x')), ((1, 'x'), (1, 'y')), ((1, 'x'), (1 + 2**32, 'x')), ((0, 'x'), (2**32, 'x'))],
)
def test_streams_are_independent(a: tuple[int, str], b: tuple[int, str]) -> None:
    n = 4096
    x, y = (np.array([s.sample(k)[0] for k in range(n)]) for s in (NormalStream(*a, 1), NormalStream(*b, 1)))
    # The correlation of n independent pairs has the standard error 1 / sqrt(n).
    assert abs(np.corrcoef(x, y)[0, 1]) < SIGMAS / np.sqrt(n)


def test_samples_of_a_stream_are_independent() -> None:
    stream = NormalStream(3, 'x', 1)
    x = np.array([stream.sample(k)[0] for k in range(N)])
    for lag in (1, 2, 255, 256, 512):  # one block begins every 256 samples
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < SIGMAS / np.sqrt(N - lag), lag


@pytest.mark.parametrize('seed', [-1, True, 1.0, 'x'], ids=repr)
def test_bad_seed(cheetah: Any, seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r'seed is .*; expected a whole number of at least 0'):
        SensorSuite(cheetah, SensorSettings(), seed)


def test_bad_step(cheetah: Any) -> None:
    with pytest.raises(ArgumentError, match='step is -1; expected a whole number of at least 0'):
        SensorSuite(cheetah, SensorSettings(), 0).measure(at_rest(cheetah), -1)


# ---- errors: statistics

NOISES = {
    'imu_acceleration': {'imu': {'acceleration_noise': 0.03}},
    'imu_angular_velocity': {'imu': {'angular_velocity_noise': 0.03}},
    'joint_position': {'encoders': {'position_noise': 0.03}},
    'joint_velocity': {'encoders': {'velocity_noise': 0.03}},
    'joint_torque': {'joint_torque': {'noise': 0.03}},
    'foot_forces': {'foot_force': {'noise': 0.03}},
}


@pytest.mark.parametrize('field', NOISES)
@pytest.mark.parametrize('seed', [0, 1], ids=['seed0', 'seed1'])
def test_noise(cheetah: Any, field: str, seed: int) -> None:
    settings = SensorSettings.from_dict(NOISES[field])
    truth = truth_of(cheetah, settings, seed)
    suite = SensorSuite(cheetah, settings, seed)
    assert_deviation(errors_of(suite, truth, field), 0.03)
    read = suite.measure(truth, 5)
    for other in FIELDS:
        assert np.array_equal(getattr(read, other), getattr(truth, other)) == (other != field), other


@pytest.mark.parametrize('seed', [0, 1], ids=['seed0', 'seed1'])
def test_orientation_noise(cheetah: Any, seed: int) -> None:
    settings = SensorSettings(imu={'orientation_noise': 0.02})
    truth = truth_of(cheetah, settings, seed)
    suite = SensorSuite(cheetah, settings, seed)
    read = np.array([suite.measure(truth, k).imu_orientation for k in range(N)])
    assert np.abs(np.linalg.norm(read, axis=1) - 1.0).max() < 1e-15  # rounding of the division
    turns = Rotation.from_quat(truth.imu_orientation).inv() * Rotation.from_quat(read)
    assert_deviation(turns.as_rotvec(), 0.02)


BIASES = {
    'imu_acceleration': {'imu': {'acceleration_bias': 0.4}},
    'imu_angular_velocity': {'imu': {'angular_velocity_bias': 0.4}},
    'joint_torque': {'joint_torque': {'bias': 0.4}},
    'foot_forces': {'foot_force': {'bias': 0.4}},
}


@pytest.mark.parametrize('field', BIASES)
def test_bias(cheetah: Any, field: str) -> None:
    """Constant in a run, and of the right size over many seeds."""
    settings = SensorSettings.from_dict(BIASES[field])
    truth = truth_of(cheetah, settings, 0)
    found = []
    for seed in range(400):
        suite = SensorSuite(cheetah, settings, seed)
        first = getattr(suite.measure(truth, 0), field)
        found.append(first - getattr(truth, field))
        if seed < 3:
            assert all(np.array_equal(getattr(suite.measure(truth, k), field), first) for k in (1, 777))
    assert_deviation(np.array(found), 0.4)


@pytest.mark.parametrize('dt', [1e-3, 4e-3])
@pytest.mark.parametrize('name', ['acceleration', 'angular_velocity'])
def test_walk(cheetah: Any, name: str, dt: float) -> None:
    """It starts at zero, and its increments over a time step have the deviation walk * sqrt(dt)."""
    settings = SensorSettings(imu={f'{name}_walk': 0.5})
    truth = truth_of(cheetah, settings, 0)
    errors = errors_of(SensorSuite(cheetah, settings, 4, dt), truth, f'imu_{name}')
    assert np.array_equal(errors[0], np.zeros(3))
    assert_deviation(np.diff(errors, axis=0), 0.5 * np.sqrt(dt))


RESOLUTIONS = {
    'joint_position': {'encoders': {'position_resolution': 0.3}},
    'joint_velocity': {'encoders': {'velocity_resolution': 0.3}},
    'joint_torque': {'joint_torque': {'resolution': 0.3}},
    'foot_forces': {'foot_force': {'resolution': 0.3}},
}


@pytest.mark.parametrize('field', RESOLUTIONS)
def test_resolution(cheetah: Any, field: str, seed: int) -> None:
    settings = SensorSettings.from_dict(RESOLUTIONS[field])
    truth = truth_of(cheetah, settings, seed)
    read = getattr(SensorSuite(cheetah, settings, seed).measure(truth, 0), field)
    counts = read / 0.3
    assert np.abs(counts - np.rint(counts)).max() < 1e-12  # rounding of the product with counts up to 500
    assert np.abs(read - getattr(truth, field)).max() <= 0.15 * (1.0 + 1e-12)  # likewise
    assert np.any(read != getattr(truth, field))


def test_noise_comes_before_rounding(cheetah: Any) -> None:
    settings = SensorSettings(joint_torque={'noise': 0.4, 'bias': 0.1, 'resolution': 0.5})
    truth = truth_of(cheetah, settings, 0)
    suite = SensorSuite(cheetah, settings, 0)
    read = np.array([suite.measure(truth, k).joint_torque for k in range(200)])
    assert np.array_equal(np.rint(read / 0.5) * 0.5, read)
    assert all(len(np.unique(column)) > 2 for column in read.T)


def test_fixed_base() -> None:
    model = model_of(FIXED[0])
    truth = truth_of(model, SensorSettings(), 0)
    assert_close(truth.imu_acceleration, -GRAVITY, 1e-15)
    read = SensorSuite(model, SensorSettings.typical(), 0).measure(truth, 1)
    assert read.joint_position.shape == (model.nj,)
    assert read.foot_forces.shape == (len(model.foot_names), 3)


# ---- odometry


def test_rotating_one_vector_is_as_rotating_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
    one_by_one = [rotated_back(a, b) for a, b in zip(q, v, strict=True)]
    assert_close(np.array(one_by_one), rotated_back(q, v), 1e-13)  # rounding of sums of four products


def test_odometry_has_its_velocity_in_the_axes_of_the_base(cheetah: Any, seed: int) -> None:
    q, u = random_state(cheetah, seed)[:2]
    pose, twist = true_odometry(q, u)
    assert np.array_equal(pose, q[:7])
    assert_close(twist[:3], Rotation.from_quat(q[3:7]).inv().apply(u[:3]), 1e-13)
    assert np.array_equal(twist[3:], u[3:6])


def test_odometry_drifts_as_its_covariance_says(cheetah: Any) -> None:
    """Over many seeds, the errors after some time have the covariance that the message tells."""
    steps, dt = 900, 1e-3
    truth = truth_of(cheetah, SensorSettings(), 0)
    base = Rotation.from_quat(truth.base_pose[3:])
    errors = []
    for k in range(400):
        read = SensorSuite(cheetah, EVERYTHING, k, dt).measure(truth, steps)
        turn = (Rotation.from_quat(read.base_pose[3:]) * base.inv()).as_rotvec()  # in the axes of odom
        shift = read.base_pose[:3] - truth.base_pose[:3]
        errors.append([*shift, *turn, *(read.base_twist - truth.base_twist)])
    pose, twist = odometry_covariance(EVERYTHING.odometry, steps * dt)
    expected = np.concatenate([np.diag(pose.reshape(6, 6)), np.diag(twist.reshape(6, 6))])
    # 400 samples tell a variance to 7 %; four times that
    np.testing.assert_allclose(np.mean(np.square(errors), axis=0), expected, rtol=0.28)
    assert np.count_nonzero(pose) == np.count_nonzero(twist) == 6


def test_yaw_drifts_about_the_vertical(cheetah: Any) -> None:
    truth = truth_of(cheetah, SensorSettings(), 1)
    suite = SensorSuite(cheetah, SensorSettings(odometry={'yaw_walk': 0.5}), 7)
    base = Rotation.from_quat(truth.base_pose[3:])
    turn = (Rotation.from_quat(suite.measure(truth, 500).base_pose[3:]) * base.inv()).as_rotvec()
    assert abs(turn[2]) > 0.01
    assert np.abs(turn[:2]).max() < 1e-14  # rounding
    assert np.array_equal(suite.measure(truth, 500).base_pose[:3], truth.base_pose[:3])
