# SPDX-License-Identifier: Apache-2.0
"""Bags that cannot be used: each is a real file, and each is refused with a sentence that says why."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import identification_bags as bags
import numpy as np
import pytest
from identification_bags import Truth, arm_bag, arm_truth, joint_states, quadruped_truth, write
from rosbags.rosbag2 import Reader
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.topics import Topic
from quad_dynamics.bags.writers import BagWriter
from quad_dynamics.cli.recording_options import add_recording_options, read_topics
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.pipeline import identify
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.even_log import read_log
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import collect


@pytest.fixture(scope='module')
def arm() -> Truth:
    return arm_truth(duration=5.0)


def run(path: Path, model: Any, topics: Topics | None = None, **settings: Any) -> Any:
    return collect([open_source(path, model, topics)], model, SignalSettings(**settings))


def refused(path: Path, model: Any, message: str, topics: Topics | None = None, **settings: Any) -> None:
    """It is refused with this message, which begins with the name of the bag; nothing in it was changed."""
    before = {file: file.read_bytes() for file in [path, *sorted(path.rglob('*'))] if file.is_file()}
    with pytest.raises(ArgumentError, match=message) as caught:
        run(path, model, topics, **settings)
    assert str(caught.value).startswith(str(path))
    assert {file: file.read_bytes() for file in before} == before


def bag(tmp_path: Path, truth: Truth, q: Any = None, u: Any = None, tau: Any = None, **options: Any) -> Path:
    """A bag of joint states, some of them other than the truth."""
    parts = [
        part if given is None else given for part, given in ((truth.q, q), (truth.u, u), (truth.tau, tau))
    ]
    return write(tmp_path / 'bag', joint_states(truth.stamps, truth.model.joint_names, *parts, **options))


# ---------------------------------------------------------------- files


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('kept', [0.0, 0.1, 0.5, 0.99])
def test_truncated(tmp_path: Path, arm: Truth, storage: str, kept: float) -> None:
    folder = arm_bag(tmp_path / 'bag', arm, storage=storage)
    [file] = [path for path in folder.iterdir() if path.suffix != '.yaml']
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content))])
    refused(folder, arm.model, "(cannot be read .* 'quad_dynamics repair' makes bags|holds no messages)")


def test_a_truncated_bag_can_be_repaired_and_used(tmp_path: Path, arm: Truth) -> None:
    folder = arm_bag(tmp_path / 'bag', arm)
    [file] = folder.glob('*.mcap')
    file.write_bytes(file.read_bytes()[: int(0.7 * file.stat().st_size)])
    repair(folder)
    samples, report = run(folder, arm.model)
    assert len(samples) > 0
    assert 2.0 < report.sources[0].duration < 4.5


def test_garbage(tmp_path: Path, arm: Truth) -> None:
    folder = arm_bag(tmp_path / 'bag', arm)
    [file] = folder.glob('*.mcap')
    middle = bytearray(file.read_bytes())
    middle[len(middle) // 2 : len(middle) // 2 + 2000] = b'\xff' * 2000
    file.write_bytes(middle)
    refused(folder, arm.model, 'cannot be read')


def test_empty(tmp_path: Path, arm: Truth) -> None:
    refused(write(tmp_path / 'bag', []), arm.model, 'holds no messages; expected a recording')


def test_an_empty_folder_and_no_folder(tmp_path: Path, arm: Truth) -> None:
    (tmp_path / 'bag').mkdir()
    refused(tmp_path / 'bag', arm.model, r'contains no \*.mcap and no \*.db3')
    refused(tmp_path / 'none', arm.model, 'does not exist; expected a bag')
    (tmp_path / 'log.txt').write_text('hello')
    refused(
        tmp_path / 'log.txt', arm.model, r"has the ending '.txt'; expected the folder of a bag, or a file"
    )


# ---------------------------------------------------------------- topics and joints


def test_missing_topic_lists_what_there_is(tmp_path: Path, arm: Truth) -> None:
    folder = arm_bag(tmp_path / 'bag', arm, topic='/joint_state')
    refused(
        folder,
        arm.model,
        r"has no topic 'joint_states' \(did you mean 'joint_state'\?\) of sensor_msgs/msg/JointState; it has "
        r'/joint_state \(sensor_msgs/msg/JointState\)',
    )


def test_missing_motion_of_the_base(tmp_path: Path) -> None:
    truth = quadruped_truth(duration=2.0)
    folder = write(tmp_path / 'bag', bags.quadruped_messages(truth))
    refused(
        folder,
        truth.model,
        r"has no topic 'odom' .* it has /joint_states .*floating base needs it, or 'imu/data'",
    )
    shutil.rmtree(folder)
    write(folder, bags.quadruped_messages(truth) + bags.imu(truth))
    refused(folder, truth.model, 'has imu; expected odom', base='odom')


def test_imu_without_orientation(tmp_path: Path) -> None:
    truth = quadruped_truth(duration=2.0)
    folder = write(tmp_path / 'bag', bags.quadruped_messages(truth) + bags.imu(truth, known=False))
    refused(folder, truth.model, r'/imu/data: orientation is not estimated \(covariance -1\)')


def test_topic_of_another_type(tmp_path: Path, arm: Truth) -> None:
    messages = [
        (ns, '/joint_states', bags.WRENCH, message)
        for ns, _, _, message in bags.foot_forces(quadruped_truth(duration=0.1))
    ]
    refused(
        write(tmp_path / 'bag', messages),
        arm.model,
        'topic /joint_states has the type geometry_msgs/msg/WrenchStamped; expected sensor_msgs/msg/Joint',
    )


def test_wrong_joints(tmp_path: Path, arm: Truth) -> None:
    folder = write(tmp_path / 'bag', joint_states(arm.stamps, ['shoulder', 'joint2'], arm.q, arm.u, arm.tau))
    refused(folder, arm.model, r"lacks the joints \['joint1'\]; it has \['joint2', 'shoulder'\]")


def test_a_field_with_too_few_numbers(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm, tau=arm.tau[:, :1])
    refused(folder, arm.model, '/joint_states: a message has 2 joints, but 1 numbers of effort')


def test_force_in_an_unknown_frame(tmp_path: Path) -> None:
    truth = quadruped_truth(duration=2.0)
    messages = bags.quadruped_messages(truth) + bags.odometry(truth) + bags.foot_forces(truth, 'sensor_7')
    refused(
        write(tmp_path / 'bag', messages),
        truth.model,
        "its frame is 'sensor_7'; expected odom, world, map or",
    )


# ---------------------------------------------------------------- numbers


def test_time_going_backwards(tmp_path: Path, arm: Truth) -> None:
    stamps = arm.stamps.copy()
    stamps[1000] = stamps[995]
    folder = bag(tmp_path, arm, header_stamps=stamps)
    refused(folder, arm.model, r'time goes backwards: position at 1.998000 s is followed by 1.990000 s')


def test_stamps_that_are_all_the_same(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm, header_stamps=np.full(len(arm.t), 7_000_000_000))
    refused(
        folder,
        arm.model,
        f'/joint_states has only 1 distinct time in {len(arm.t)} rows of position; expected at least 3',
    )


@pytest.mark.parametrize(
    ('scale', 'start', 'message'),
    [
        (1e3, 0.0, 'steps of 2, which looks like milliseconds; expected seconds'),
        (1e6, 1.7e15, 'steps of 2000, which looks like microseconds'),
        (1e9, 1.7e18, 'looks like nanoseconds; expected seconds'),
        (1e9, 0.0, r'steps of 2e\+06, which looks like nanoseconds'),
        (0.0, 3.0, 'time has only 1 distinct time in 2500 rows of position'),
        (np.nan, 0.0, 'time holds a number that is not finite'),
        (1e-3, 1e12, r'time reaches 1e\+12; expected seconds, at most 9e\+09'),
    ],
)
def test_times_of_a_table_that_are_not_seconds(
    tmp_path: Path, arm: Truth, scale: float, start: float, message: str
) -> None:
    time = start + scale * arm.t
    arrays = {'position': arm.q, 'velocity': arm.u, 'effort': arm.tau}
    path = tmp_path / 'table.npz'
    exact = time if np.isnan(scale) else np.rint(time).astype(np.int64) if scale > 1.0 else time
    np.savez(path, time=exact, joint_names=np.array(arm.model.joint_names), **arrays)
    with pytest.raises(ArgumentError, match=message) as caught:
        run(path, arm.model)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_not_a_number(tmp_path: Path, arm: Truth, bad: float) -> None:
    tau = arm.tau.copy()
    tau[1500, 1] = bad
    folder = bag(tmp_path, arm, tau=tau)
    refused(folder, arm.model, f'effort of joint2 is {bad} at 3.000000 s .* expected finite numbers')


def test_effort_all_zero(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm, tau=0.0 * arm.tau)
    refused(
        folder, arm.model, 'effort of all joints is zero throughout; expected measured torques, or commands'
    )


def test_effort_zero_of_one_joint_is_noted_and_not_used(tmp_path: Path, arm: Truth) -> None:
    samples, report = run(bag(tmp_path, arm, tau=arm.tau * [1.0, 0.0]), arm.model)
    assert 'effort of joint2 is zero throughout; its rows are not used' in report.sources[0].notes
    use = samples.layout.get(samples.all(), 'use')
    assert use[:, 0].any()
    assert not use[:, 1].any()


def test_torque_absent(tmp_path: Path, arm: Truth) -> None:
    folder = write(tmp_path / 'bag', joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u, None))
    refused(folder, arm.model, 'the joints have no effort, and there are no commands')
    refused(folder, arm.model, 'the joints have no effort', Topics(torque='effort'))


def test_targets_without_gains(tmp_path: Path, arm: Truth) -> None:
    messages = joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u, None)
    messages += joint_states(arm.stamps, arm.model.joint_names, arm.q, None, None, '/joint_torques')
    folder = write(tmp_path / 'bag', messages)
    refused(
        folder, arm.model, 'commands hold positions, but no gains of the drives are given; expected kp and kd'
    )


def test_degrees(tmp_path: Path) -> None:
    truth = arm_truth('mini_cheetah_leg', duration=5.0, size=0.5)
    degrees = 180.0 / np.pi
    folder = bag(tmp_path, truth, q=degrees * truth.q, u=degrees * truth.u)
    refused(folder, truth.model, 'positions look like degrees: .* rad; expected radians')


@pytest.mark.parametrize('which', ['positions', 'velocities'])
def test_degrees_in_one_place_only(tmp_path: Path, arm: Truth, which: str) -> None:
    """The arm has no limits: only the other quantity tells."""
    degrees = 180.0 / np.pi
    if which == 'positions':
        folder = bag(tmp_path, arm, q=0.2 * degrees * arm.q, u=0.2 * arm.u)
        refused(
            folder,
            arm.model,
            'is 0.0175 times the derivative of its position .*: its positions look like degrees',
        )
    else:
        folder = bag(tmp_path, arm, u=degrees * arm.u)
        refused(folder, arm.model, 'is 57.3 times .* its velocities look like degrees per second')


def test_velocity_of_the_wrong_sign(tmp_path: Path, arm: Truth) -> None:
    refused(
        bag(tmp_path, arm, u=-arm.u),
        arm.model,
        r'is -1 times the derivative of its position \(1 more joint is wrong\): its sign is wrong',
    )


def first_order(values: Any, corner: float, rate: float = 500.0) -> Any:
    """Values behind a first-order low-pass filter, as drives have it."""
    keep = np.exp(-2.0 * np.pi * corner / rate)
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], values, axis=0))


HINT = '--velocity positions ignores the measured velocities'


@pytest.mark.parametrize('factor', [2.0, 0.5, 1.4])
def test_velocities_that_are_no_derivatives(tmp_path: Path, arm: Truth, factor: float) -> None:
    """Of one joint: its name and the factor are said, and how to do without; without them all is well."""
    u = arm.u * np.array([1.0, factor])
    folder = bag(tmp_path, arm, u=u)
    message = (
        f'the velocity of joint2 is {factor:g} times the derivative of its position: expected 1. If .*{HINT}'
    )
    refused(folder, arm.model, message)
    samples, report = run(folder, arm.model, velocity='positions')
    assert report.sources[0].notes == ('measured velocities are ignored; positions are differentiated',)
    u_found = samples.layout.get(samples.all(), 'u')
    assert np.sqrt(np.mean(u_found**2)) == pytest.approx(np.sqrt(np.mean(arm.u**2)), rel=0.1)


@pytest.mark.parametrize('scale', [2.0, 0.5])
def test_time_that_is_scaled(tmp_path: Path, arm: Truth, scale: float) -> None:
    """Stamps that are twice as far apart: accelerations would be wrong by four."""
    folder = bag(tmp_path, replace(arm, t=scale * arm.t))
    message = f'is {scale:g} times the derivative .* much the same for all joints: time stamps may'
    refused(folder, arm.model, message)


def test_velocities_of_zero(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm, u=0.0 * arm.u)
    refused(folder, arm.model, f'is 0 times .*: all velocities are zero, though joints move. .*{HINT}')


def test_velocities_of_other_joints(tmp_path: Path, arm: Truth) -> None:
    refused(
        bag(tmp_path, arm, u=arm.u[:, ::-1]), arm.model, 'times the derivative of its position .*: expected 1'
    )


@pytest.mark.parametrize(
    ('late', 'corner'), [(0.02, 0.0), (0.05, 0.0), (-0.03, 0.0), (0.0, 10.0), (0.0, 4.0), (0.01, 6.0)]
)
def test_late_and_filtered_velocities_are_fine(tmp_path: Path, late: float, corner: float) -> None:
    """Motion of up to 1 Hz; a filter of 4 Hz is 40 ms late and 3 % too small."""
    truth, behind = arm_truth(duration=8.0), arm_truth(t=np.arange(4000) / 500.0 - late)
    u = first_order(behind.u, corner) if corner else behind.u
    samples, _ = run(bag(tmp_path, truth, u=u), truth.model)
    assert len(samples) > 0


@pytest.mark.parametrize('seed', range(4))
def test_noisy_and_coarse_velocities_are_fine(tmp_path: Path, seed: int) -> None:
    """Noise as large as the motion, steps of velocity, and a joint that hardly moves."""
    truth = arm_truth(duration=8.0, seed=seed)
    rng = np.random.default_rng(seed)
    size = np.array([0.3, 4e-3])  # the second joint swings by a few milliradians
    q, u = truth.q * size, truth.u * size
    noisy = np.round((u + 0.5 * rng.normal(size=u.shape)) / 0.05) * 0.05
    folder = bag(tmp_path, truth, q=q + 2e-4 * rng.normal(size=q.shape), u=noisy)
    samples, _ = run(folder, truth.model)
    assert len(samples) > 0


# ---------------------------------------------------------------- motion of the base


@pytest.fixture(scope='module')
def sway() -> Truth:
    """It turns by up to 0.4 rad about each axis."""
    return quadruped_truth(duration=6.0, rate=200.0)


def table(path: Path, truth: Truth, base: Any = None, **arrays: Any) -> Path:
    """A table of a quadruped with odometry and without velocities of joints."""
    made = {'time': truth.t, 'position': truth.q[:, 7:], 'effort': truth.tau}
    made |= {'joint_names': np.array(truth.model.joint_names), 'foot_names': np.array(truth.model.foot_names)}
    np.savez(path, **made | {'base': base_of(truth) if base is None else base} | arrays)
    return path


def base_of(truth: Truth) -> Any:
    """(n, 13) pose in the world, twist in base axes."""
    v = Rotation.from_quat(truth.q[:, 3:7]).inv().apply(truth.u[:, :3])
    return np.hstack([truth.q[:, :7], v, truth.u[:, 3:6]])


def imu_of(truth: Truth) -> Any:
    """(n, 10) orientation, angular velocity, specific force in base axes."""
    force = Rotation.from_quat(truth.q[:, 3:7]).inv().apply(truth.du[:, :3] - truth.model.gravity)
    return np.hstack([truth.q[:, 3:7], truth.u[:, 3:6], force])


def factors(linear: float, angular: float) -> Any:
    return np.r_[np.ones(7), np.full(3, linear), np.full(3, angular)]


@pytest.mark.parametrize(
    ('linear', 'angular', 'message'),
    [
        (2.0, 1.0, 'the linear velocity is 2 times the derivative of the position; expected 1. Its unit'),
        (1.0, 0.5, 'the angular velocity is 0.5 times the derivative of the orientation; expected 1'),
        (1.4, 1.4, 'is 1.4 times .* is 1.4 times .* Time stamps may be scaled by the same factor'),
        (1.0, 57.3, 'is 57.3 times .* It looks like degrees per second; expected rad/s'),
        (-1.0, -1.0, 'is -1 times .* Its sign is wrong'),
    ],
)
def test_a_twist_that_is_no_derivative(
    tmp_path: Path, sway: Truth, linear: float, angular: float, message: str
) -> None:
    """The topic, the factor and likely causes are told, and how to do without; then the pose is used."""
    path = table(tmp_path / 'log.npz', sway, base_of(sway) * factors(linear, angular))
    refused(path, sway.model, f': base: .*{message}.*{HINT}')
    samples, report = run(path, sway.model, velocity='positions')
    assert any('velocities of the base are ignored' in note for note in report.sources[0].notes)
    u = samples.layout.get(samples.all(), 'u')[:, :3]
    assert np.sqrt(np.mean(u**2)) == pytest.approx(np.sqrt(np.mean(sway.u[:, :3] ** 2)), rel=0.2)


def test_the_topic_of_a_wrong_twist_is_named(tmp_path: Path, sway: Truth) -> None:
    moved = replace(sway, u=sway.u * np.where(np.arange(18) < 3, 2.0, 1.0))
    messages = bags.quadruped_messages(sway) + bags.odometry(moved, '/dog/odom')
    topics = Topics(odom='/dog/odom')
    refused(write(tmp_path / 'bag', messages), sway.model, ': /dog/odom: the linear velocity is 2', topics)


@pytest.mark.parametrize(
    ('kinds', 'message'),
    [
        (('linear', 'angular'), 'the linear and the angular velocity are given in world axes: only there'),
        (('linear',), 'the linear velocity is given in world axes'),
        (('angular',), 'the angular velocity is given in world axes'),
    ],
)
@pytest.mark.parametrize('late', [0, 20])
def test_a_twist_in_world_axes(
    tmp_path: Path, sway: Truth, kinds: tuple[str, ...], message: str, late: int
) -> None:
    base, R = base_of(sway), Rotation.from_quat(sway.q[:, 3:7])
    for kind in kinds:
        columns = slice(7, 10) if kind == 'linear' else slice(10, 13)
        base[:, columns] = R.apply(base[:, columns])
    base[:, 7:] = np.roll(base[:, 7:], late, axis=0)
    path = table(tmp_path / 'log.npz', sway, base)
    refused(path, sway.model, f'{message}.*expected the axes of the base.*{HINT}')


def test_a_twist_in_the_axes_of_a_camera(tmp_path: Path, sway: Truth) -> None:
    """z forwards, x to the right."""
    order = [0, 1, 2, 3, 4, 5, 6, 8, 9, 7, 11, 12, 10]
    base = base_of(sway)[:, order] * np.r_[np.ones(7), -1.0, -1.0, 1.0, -1.0, -1.0, 1.0]
    path = table(tmp_path / 'log.npz', sway, base)
    refused(
        path, sway.model, 'velocity are not the derivative of the pose, but would be in axes that are tur'
    )


def test_a_twist_that_is_not_filled_in_is_not_used(tmp_path: Path, sway: Truth) -> None:
    path = table(tmp_path / 'log.npz', sway, base_of(sway) * factors(0.0, 0.0))
    samples, report = run(path, sway.model)
    for kind in ('linear', 'angular'):
        note = f'base: the {kind} velocity is zero throughout; the pose is differentiated'
        assert note in report.sources[0].notes
    assert np.abs(samples.layout.get(samples.all(), 'u')[:, :3]).max() > 0.1


def odometry_errors(base: Any, which: str, rng: np.random.Generator) -> Any:
    """Odometry with errors that sensors have."""
    made, n = base.copy(), len(base)
    if which == 'noise':
        made[:, :3] += 2e-3 * rng.normal(size=(n, 3))
        turn = Rotation.from_rotvec(2e-3 * rng.normal(size=(n, 3)))
        made[:, 3:7] = (Rotation.from_quat(made[:, 3:7]) * turn).as_quat()
        made[:, 7:] += 0.1 * rng.normal(size=(n, 6))
    elif which == 'noisy twist':
        made[:, 7:] += 0.5 * rng.normal(size=(n, 6))
    elif which == 'drift':
        made[:, :3] += np.cumsum(2e-4 * rng.normal(size=(n, 3)), axis=0)
    elif which == 'jumps':  # a map that is corrected every second
        made[:, :3] += np.repeat(np.cumsum(0.02 * rng.normal(size=(n // 200, 3)), axis=0), 200, axis=0)
    elif which == 'slow':  # 40 Hz, held
        made = made[np.arange(n) // 5 * 5]
    elif which in ('late', 'early'):
        made[:, 7:] = np.roll(made[:, 7:], 20 if which == 'late' else -20, axis=0)
    return made


@pytest.mark.parametrize('size', [0.2, 0.02, 2e-3, 1e-5])
@pytest.mark.parametrize('which', ['none', 'noise', 'noisy twist', 'drift', 'jumps', 'slow', 'late', 'early'])
def test_odometry_with_errors_is_fine(tmp_path: Path, size: float, which: str) -> None:
    """Whether the base moves much or hardly at all."""
    truth = quadruped_truth(duration=6.0, rate=200.0)
    still = quadruped_truth(duration=6.0, rate=200.0, size=size)
    base = odometry_errors(base_of(still), which, np.random.default_rng(1))
    path = table(tmp_path / 'log.npz', truth, base)
    read_log(open_source(path, truth.model), truth.model, SignalSettings(), None)


@pytest.mark.parametrize('scale', [2.0, 0.5])
@pytest.mark.parametrize('evidence', ['twist', 'gyro', 'forces', 'acceleration'])
def test_scaled_time_without_velocities_of_joints(
    tmp_path: Path, sway: Truth, scale: float, evidence: str
) -> None:
    """Whatever does not depend on time tells it."""
    base, more, settings = base_of(sway) * factors(0.0, 0.0), {}, {}
    message = f'is {scale:g} times the derivative of the orientation.*Time stamps may be scaled'
    if evidence == 'twist':
        base = base_of(sway)
    elif evidence == 'gyro':
        more, settings = {'imu': imu_of(sway)}, {'base': 'imu'}
    elif evidence == 'forces':
        more, message = (
            {'force': sway.force},
            'vertical foot forces change by (4|0.25).* stamps may be scaled',
        )
    else:
        more, message = {'acceleration': sway.du[:, 6:]}, 'accelerations of the joints are (4|0.25).* times'
    path = table(tmp_path / 'log.npz', sway, base, **more)
    run(path, sway.model, **settings)
    path = table(tmp_path / 'log.npz', sway, base, time=scale * sway.t, **more)
    refused(path, sway.model, message, **settings)


@pytest.mark.parametrize(('factor', 'velocity'), [(3.0, 'positions'), (0.0, 'auto'), (0.0, 'positions')])
def test_accelerations_of_the_base_without_a_good_twist(
    tmp_path: Path, sway: Truth, factor: float, velocity: str
) -> None:
    """They are compared with positions if the twist is ignored, or was not filled in."""
    R = Rotation.from_quat(sway.q[:, 3:7])
    more = {'base_acceleration': np.hstack([R.inv().apply(sway.du[:, :3]), R.inv().apply(sway.du[:, 3:6])])}
    base = base_of(sway) * factors(factor, factor)
    run(table(tmp_path / 'log.npz', sway, base, **more), sway.model, velocity=velocity)
    path = table(tmp_path / 'log.npz', sway, base, time=2.0 * sway.t, **more)
    message = 'accelerations of the base are (4|3.9|4.0).* times the derivatives of velocities'
    refused(path, sway.model, message, velocity=velocity)


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ('in g', 'the mean acceleration is .* m/s.2 in world axes; expected about .*9.81.*: the specific'),
        ('without gravity', 'the mean acceleration is .* with gravity'),
        ('sign', 'the mean acceleration is .* with gravity'),
        ('degrees', 'angular velocity is 57.3 times .* It looks like degrees per second'),
        ('world', 'the angular velocity is given in world axes'),
    ],
)
def test_an_imu_with_other_units_or_axes(tmp_path: Path, sway: Truth, wrong: str, message: str) -> None:
    imu, R = imu_of(sway), Rotation.from_quat(sway.q[:, 3:7])
    if wrong == 'in g':
        imu[:, 7:] /= 9.81
    elif wrong == 'without gravity':
        imu[:, 7:] += R.inv().apply(np.array(sway.model.gravity))
    elif wrong == 'sign':
        imu[:, 7:] *= -1.0
    elif wrong == 'degrees':
        imu[:, 4:7] *= 180.0 / np.pi
    else:
        imu[:, 4:7] = R.apply(imu[:, 4:7])
    path = table(tmp_path / 'log.npz', sway, imu=imu)
    refused(path, sway.model, f': imu: .*{message}', base='imu')


@pytest.mark.parametrize('size', [0.2, 2e-3])
def test_an_imu_with_errors_is_fine(tmp_path: Path, sway: Truth, size: float) -> None:
    rng = np.random.default_rng(2)
    imu = imu_of(quadruped_truth(duration=6.0, rate=200.0, size=size))
    turn = Rotation.from_rotvec(2e-3 * rng.normal(size=(len(imu), 3)))
    imu[:, :4] = (Rotation.from_quat(imu[:, :4]) * turn).as_quat()
    imu[:, 4:7] += 0.02 * rng.normal(size=(len(imu), 3)) + 5e-3
    imu[:, 7:] += 0.3 * rng.normal(size=(len(imu), 3)) + 0.1
    path = table(tmp_path / 'log.npz', sway, imu=imu)
    read_log(open_source(path, sway.model), sway.model, SignalSettings(base='imu'), None)


def test_a_validation_recording_without_the_foot_forces_of_the_fit(tmp_path: Path, sway: Truth) -> None:
    measured = table(tmp_path / 'forces.npz', sway, force=sway.force)
    other = quadruped_truth(duration=6.0, rate=200.0, seed=5)
    bare = table(tmp_path / 'bare.npz', other)
    message = r'bare\.npz: contains no foot forces, which the fit uses \(mode forces\).*or --mode projection'
    with pytest.raises(ArgumentError, match=message):
        identify([measured], sway.model, validate_on=[bare])


# ---------------------------------------------------------------- topics that were named


@pytest.fixture(scope='module')
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    truth = quadruped_truth(duration=2.0, rate=200.0)
    messages = (
        bags.quadruped_messages(truth) + bags.odometry(truth) + bags.imu(truth) + bags.foot_forces(truth)
    )
    return truth.model, write(tmp_path_factory.mktemp('walk') / 'bag', messages)


@pytest.mark.parametrize(
    ('name', 'topic', 'kind'),
    [
        ('odom', '/wrong', 'nav_msgs/msg/Odometry'),
        ('odom', 'wrong', 'nav_msgs/msg/Odometry'),
        ('imu', '/wrong', 'sensor_msgs/msg/Imu'),
        ('joint_torques', '/wrong', 'sensor_msgs/msg/JointState'),
        ('joint_targets', '/wrong', 'trajectory_msgs/msg/JointTrajectory'),
    ],
)
def test_a_topic_that_was_named_must_be_there(
    walk: tuple[Any, Path], name: str, topic: str, kind: str
) -> None:
    """Nothing else takes its place: odometry is not replaced by the IMU."""
    message = rf"has no topic '{topic}' .*of {kind}; it has .*/imu/data \(.*/odom \(.*\)\. Expected the name"
    refused(walk[1], walk[0], message, Topics(**{name: topic}))


def test_foot_forces_that_were_named_must_be_there(walk: tuple[Any, Path]) -> None:
    message = (
        "has no topic '/forces/FL_foot' of geometry_msgs.*/foot_forces/FL_foot.* --topic foot_forces= to do"
    )
    refused(walk[1], walk[0], message, Topics(foot_forces='/forces'))


def test_a_topic_that_was_named_as_usual_must_be_there(tmp_path: Path, walk: tuple[Any, Path]) -> None:
    """By its usual name: then it differs from the default only in that it was named."""
    truth = quadruped_truth(duration=2.0, rate=200.0)
    folder = write(tmp_path / 'bag', bags.quadruped_messages(truth) + bags.imu(truth))
    assert open_source(folder, truth.model).promised >= {'imu'}
    message = r"has no topic 'odom' .* or --topic odom= to do without"
    refused(folder, truth.model, message, Topics(required=('odom',)))
    arguments = argparse.ArgumentParser()
    add_recording_options(arguments)
    given = arguments.parse_args(
        ['--robot', 'r', '--topic', 'odom=odom', '--topic', 'kp=2', '--topic', 'imu=']
    )
    assert read_topics(given).named == ['odom']


def test_a_full_name_is_no_other_topic(tmp_path: Path) -> None:
    """/odom is not /dog/odom, though /dog is where the joint states are."""
    truth = quadruped_truth(duration=2.0, rate=200.0)
    messages = [(ns, f'/dog{topic}', kind, message) for ns, topic, kind, message in bags.odometry(truth)]
    messages += [(ns, f'/dog{t}', kind, message) for ns, t, kind, message in bags.quadruped_messages(truth)]
    folder = write(tmp_path / 'bag', messages)
    assert open_source(folder, truth.model)
    assert open_source(folder, truth.model, Topics(joint_states='/dog/joint_states', odom='/dog/odom'))
    assert open_source(folder, truth.model, Topics(joint_states='/dog/joint_states'))
    refused(folder, truth.model, "has no topic '/odom'", Topics(odom='/odom'))


def test_commands_that_were_named_go_first(tmp_path: Path, arm: Truth) -> None:
    """Targets that were named are not replaced by commands of the usual name."""
    messages = joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u, None)
    messages += joint_states(arm.stamps, arm.model.joint_names, arm.q, None, None, '/joint_torques')
    folder = write(tmp_path / 'bag', messages)
    refused(folder, arm.model, "has no topic 'goals' .*JointTrajectory", Topics(joint_targets='goals'))
    both = Topics(joint_torques='/joint_torques', required=('joint_torques', 'joint_targets'))
    refused(folder, arm.model, 'has no topic .*joint_targets', both)


# ---------------------------------------------------------------- too little


def test_standstill(tmp_path: Path, arm: Truth) -> None:
    rng = np.random.default_rng(0)
    shape = arm.q.shape
    folder = bag(
        tmp_path,
        arm,
        q=0.3 + 2e-4 * rng.normal(size=shape),
        u=0.02 * rng.normal(size=shape),
        tau=1.0 + 0.05 * rng.normal(size=shape),
    )
    refused(folder, arm.model, 'no joint moves; nothing can be identified from standstill')


def test_too_short(tmp_path: Path, arm: Truth) -> None:
    refused(bag(tmp_path, arm.at(slice(0, 300))), arm.model, 'is 0.6 s long; expected at least 1 s')
    shutil.rmtree(tmp_path / 'bag')
    refused(
        bag(tmp_path, arm.at(slice(0, 2))), arm.model, '/joint_states has only 2 distinct times in 2 rows'
    )
    shutil.rmtree(tmp_path / 'bag')
    refused(
        bag(tmp_path, arm.at(slice(0, 1))), arm.model, '/joint_states has only 1 distinct time in 1 row of'
    )


def test_rate_too_low(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm_truth(duration=20.0, rate=10.0))
    refused(folder, arm.model, 'joint states come with 10 Hz; expected at least 20 Hz')


def test_gaps_everywhere(tmp_path: Path, arm: Truth) -> None:
    """Every second of the recording lacks its end."""
    folder = bag(tmp_path, arm.at((arm.t % 1.0) < 0.9))
    refused(folder, arm.model, 'has no segment of 2 s without a gap')


def test_topics_that_do_not_overlap(tmp_path: Path) -> None:
    truth = quadruped_truth(duration=4.0)
    messages = bags.quadruped_messages(truth.at(slice(0, 900)))
    messages += bags.odometry(truth.at(slice(1000, None)))
    refused(
        write(tmp_path / 'bag', messages),
        truth.model,
        'is 0 s long; expected at least 1 s in which all topics',
    )


def test_cutoff_beyond_the_rate(tmp_path: Path, arm: Truth) -> None:
    folder = bag(tmp_path, arm)
    with pytest.raises(ArgumentError, match='cutoff is 300 Hz; expected at most 200 Hz'):
        run(folder, arm.model, cutoff=300.0)


def test_no_recordings(arm: Truth) -> None:
    with pytest.raises(ArgumentError, match='there are no recordings'):
        collect([], arm.model)


# ---------------------------------------------------------------- damaged values


def with_crcs(folder: Path, storage: str) -> Path:
    """The same bag, written by our own writer."""
    made = folder.with_name(f'{folder.name}_{storage}')
    with Reader(folder) as reader:
        [connection] = reader.connections
        bag = BagWriter(made, storage)
        number = bag.add_topic(Topic(connection.topic, connection.msgtype))
        bag.write([(stamp, number, stamp, 0, bytes(raw)) for _, stamp, raw in reader.messages()])
        bag.close({})
    return made


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_damaged_values_are_not_used(
    tmp_path: Path, arm: Truth, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CRC notices them; after `repair` the messages near them are left out, and all others are used."""
    monkeypatch.setattr('quad_dynamics.bags.mcap_storage.CHUNK_SIZE', 32768)
    folder = with_crcs(arm_bag(tmp_path / 'bag', arm), storage)
    [file] = [path for path in folder.iterdir() if path.suffix != '.yaml']
    data = bytearray(file.read_bytes())
    at = data.rindex(arm.q[-200].tobytes())
    data[at + 2 : at + 6] = b'\x12\x34\x56\x78'
    file.write_bytes(data)
    refused(folder, arm.model, "CRC of .* does not match.*'quad_dynamics repair' makes bags")
    result = repair(folder)
    assert 50 < result.suspect < 600
    samples, report = run(folder, arm.model)
    assert 'it was damaged and repaired; messages from damaged places are not used' in report.sources[0].notes
    assert 0 < len(samples) < len(arm.t)


def test_hostile_metadata(tmp_path: Path, arm: Truth) -> None:
    folder = arm_bag(tmp_path / 'bag', arm)
    (folder / 'metadata.yaml').write_text('[' * 5000)
    refused(folder, arm.model, 'metadata.yaml is nested too deeply; .* run: quad_dynamics repair')
