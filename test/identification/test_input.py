# SPDX-License-Identifier: Apache-2.0
"""Recordings: bags and tables give the numbers that were written, by name, whatever order and storage."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import identification_bags as bags
import numpy as np
import pytest
from identification_bags import Truth, arm_truth, joint_states, quadruped_truth, write

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.bag_messages import read_batches
from quad_dynamics.identification.recordings.recording import Source, open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.grid_reader import make_grid
from quad_dynamics.identification.signals.signal_settings import SignalSettings


def whole(source: Source) -> dict[str, Any]:
    """All of each channel: stamps and values."""
    parts: dict[str, list[Any]] = {}
    for chunk in source.chunks():
        for key, channel in chunk.items():
            parts.setdefault(key, []).append(channel)
    return {
        key: (
            np.concatenate([one.stamps for one in found]),
            np.concatenate([one.values for one in found]),
            found[0].columns,
        )
        for key, found in parts.items()
    }


def on_grid(source: Source, model: Any, **settings: Any) -> tuple[Any, Any]:
    grid, _, _ = make_grid(source, model, SignalSettings(**settings))
    return grid, grid.read(0, len(grid))


@pytest.fixture(scope='module')
def arm() -> Truth:
    return arm_truth(duration=5.0)


@pytest.fixture(scope='module')
def quadruped() -> Truth:
    return quadruped_truth(duration=2.0)


# ---------------------------------------------------------------- bags


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('bare', [False, True], ids=['folder', 'file'])
def test_a_bag_holds_what_was_written_bit_for_bit(
    tmp_path: Path, arm: Truth, storage: str, bare: bool
) -> None:
    folder = bags.arm_bag(tmp_path / 'bag', arm, storage=storage)
    [file] = [path for path in folder.iterdir() if path.suffix != '.yaml']
    source = open_source(file if bare else folder, arm.model)
    found = whole(source)
    assert set(found) == {'position', 'velocity', 'effort'}
    for key, truth in (('position', arm.q), ('velocity', arm.u), ('effort', arm.tau)):
        stamps, values, columns = found[key]
        np.testing.assert_array_equal(stamps, arm.stamps)
        np.testing.assert_array_equal(values, truth)
        assert columns == ()
    assert source.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert source.notes == []


def test_a_simulated_bag_holds_the_log(tmp_path: Path) -> None:
    model = bags.robot('mini_cheetah')
    sim = qd.Simulator(model)
    sim.reset(model.standing)
    log = sim.run(None, 0.2, progress=False)
    log.to_bag(tmp_path / 'bag')
    found = whole(open_source(tmp_path / 'bag', model))
    np.testing.assert_array_equal(found['position'][1], log.q[:, 7:])
    np.testing.assert_array_equal(found['effort'][1], log.tau)
    np.testing.assert_array_equal(found['base'][1][:, :7], log.q[:, :7])
    np.testing.assert_array_equal(found['base'][1][:, 10:], log.u[:, 3:6])
    for k, foot in enumerate(model.foot_names):
        np.testing.assert_array_equal(found[f'force/{foot}'][1], log.foot_forces[:, k])


def test_the_length_of_segments_changes_nothing(tmp_path: Path, arm: Truth) -> None:
    folder = bags.arm_bag(tmp_path / 'bag', arm)
    whole_, parts = (whole(open_source(folder, arm.model, chunk=s)) for s in (100.0, 0.37))
    for key in whole_:
        np.testing.assert_array_equal(whole_[key][0], parts[key][0])
        np.testing.assert_array_equal(whole_[key][1], parts[key][1])


def test_a_source_can_be_read_again(tmp_path: Path, arm: Truth) -> None:
    source = open_source(bags.arm_bag(tmp_path / 'bag', arm), arm.model)
    first, second = whole(source), whole(source)
    np.testing.assert_array_equal(first['effort'][1], second['effort'][1])


def test_a_bag_without_metadata_is_read_from_its_data(tmp_path: Path, arm: Truth) -> None:
    folder = bags.arm_bag(tmp_path / 'bag', arm)
    (folder / 'metadata.yaml').unlink()
    source = open_source(folder, arm.model)
    np.testing.assert_array_equal(whole(source)['position'][1], arm.q)
    assert 'metadata.yaml is missing' in source.notes[0]


def test_big_endian_messages(tmp_path: Path, arm: Truth) -> None:
    messages = joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u, arm.tau)
    folder = write(tmp_path / 'bag', messages, little=False)
    np.testing.assert_array_equal(whole(open_source(folder, arm.model))['effort'][1], arm.tau)


@pytest.mark.parametrize('seed', range(5))
def test_messages_are_read_as_rosbags_reads_them(seed: int) -> None:
    """Names of all lengths, empty fields, several shapes among each other, both orders of bytes."""
    rng = np.random.default_rng(seed)
    raws, messages = [], []
    for _ in range(30):
        n = int(rng.integers(0, 4))
        names = ['j' * int(rng.integers(0, 9)) + str(i) for i in range(n)]
        fields = {
            field: rng.normal(size=n if rng.random() < 0.7 else 0)
            for field in ('position', 'velocity', 'effort')
        }
        message = bags.make(
            bags.JOINT_STATE,
            header=bags.header(int(rng.integers(0, 2**33)), 'f' * int(rng.integers(0, 9))),
            name=names,
            **fields,
        )
        messages.append(message)
        little = bool(rng.random() < 0.8)
        raws.append(bytes(bags.STORE.serialize_cdr(message, bags.JOINT_STATE, little_endian=little)))
    seen = np.zeros(len(raws), dtype=bool)
    for batch in read_batches(raws, bags.JOINT_STATE):
        for row, i in enumerate(batch.index):
            message = messages[int(i)]
            seen[i] = True
            assert batch.shape.texts['name'] == tuple(message.name)
            assert batch.stamps[row] == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
            for field in ('position', 'velocity', 'effort'):
                found = batch.values[field][row] if field in batch.values else np.empty(0)
                np.testing.assert_array_equal(found, getattr(message, field))
    assert seen.all()


# ---------------------------------------------------------------- names


def test_joints_are_found_by_name_in_any_order_and_among_others(tmp_path: Path, quadruped: Truth) -> None:
    truth, rng = quadruped, np.random.default_rng(3)
    order = rng.permutation(12)
    names = [truth.model.joint_names[i] for i in order]
    extra = np.full((len(truth.t), 1), 77.0)
    q, u, tau = (
        np.hstack([part[:, order[:5]], extra, part[:, order[5:]]])
        for part in (truth.q[:, 7:], truth.u[:, 6:], truth.tau)
    )
    messages = joint_states(truth.stamps, [*names[:5], 'gripper', *names[5:]], q, u, tau)
    found = whole(open_source(write(tmp_path / 'bag', messages + bags.odometry(truth)), truth.model))
    np.testing.assert_array_equal(found['position'][1], truth.q[:, 7:])
    np.testing.assert_array_equal(found['velocity'][1], truth.u[:, 6:])
    np.testing.assert_array_equal(found['effort'][1], truth.tau)


def test_messages_may_hold_a_part_of_the_joints(tmp_path: Path, quadruped: Truth) -> None:
    """Each leg in a message of its own, at times of its own."""
    truth, messages = quadruped, []
    for leg in range(4):
        mine = slice(3 * leg, 3 * leg + 3)
        late = quadruped_truth(duration=2.0, t=truth.t + 3e-4 * leg)
        messages += joint_states(
            late.stamps,
            truth.model.joint_names[mine],
            late.q[:, 7:][:, mine],
            late.u[:, 6:][:, mine],
            late.tau[:, mine],
        )
    messages += joint_states(truth.stamps, ['wheel'], truth.q[:, :1], None, None)
    source = open_source(write(tmp_path / 'bag', messages + bags.odometry(truth)), truth.model)
    grid, rows = on_grid(source, truth.model)
    assert len(grid.segments) == 1
    exact = quadruped_truth(t=grid.segments[0].start + np.arange(len(grid)) * grid.period)
    # Between samples 2 ms apart a polynomial of degree 5 is off by rounding only, for waves of 1 Hz; the
    # ends, where it does not fit, are left out.
    inner = slice(5, -5)
    np.testing.assert_allclose(grid.get(rows, 'position')[inner], exact.q[inner, 7:], atol=1e-9)
    np.testing.assert_allclose(grid.get(rows, 'effort')[inner], exact.tau[inner], atol=1e-7)


@pytest.mark.parametrize('wanted', ['joint_states', '/joint_states', 'robot/joint_states'])
def test_topics_with_and_without_namespace(tmp_path: Path, arm: Truth, wanted: str) -> None:
    topic = '/robot/joint_states' if 'robot' in wanted else '/joint_states'
    folder = bags.arm_bag(tmp_path / 'bag', arm, topic=topic)
    source = open_source(folder, arm.model, Topics(joint_states=wanted))
    assert len(whole(source)['position'][0]) == len(arm.t)


def test_one_namespace_is_found(tmp_path: Path, quadruped: Truth) -> None:
    messages = [
        (ns, f'/dog{topic}', kind, message)
        for ns, topic, kind, message in (
            *bags.quadruped_messages(quadruped),
            *bags.odometry(quadruped),
            *bags.foot_forces(quadruped),
        )
    ]
    messages += [
        (ns, f'/dog/ground_truth{topic}', kind, message)
        for ns, topic, kind, message in bags.quadruped_messages(quadruped)
    ]
    found = whole(open_source(write(tmp_path / 'bag', messages), quadruped.model))
    assert {'position', 'base', *[f'force/{foot}' for foot in quadruped.model.foot_names]} <= set(found)


def test_several_namespaces_are_not_guessed_from(tmp_path: Path, arm: Truth) -> None:
    messages = []
    for robot in ('a', 'b'):
        messages += joint_states(
            arm.stamps, arm.model.joint_names, arm.q, arm.u, arm.tau, f'/{robot}/joint_states'
        )
    folder = write(tmp_path / 'bag', messages)
    with pytest.raises(ArgumentError, match='several times: /a/joint_states, /b/joint_states'):
        open_source(folder, arm.model)
    assert open_source(folder, arm.model, Topics(joint_states='/b/joint_states'))


# ---------------------------------------------------------------- stamps


def test_stamps_that_are_all_zero_give_way_to_times_of_recording(tmp_path: Path, arm: Truth) -> None:
    folder = bags.arm_bag(tmp_path / 'bag', arm, header_stamps=np.zeros(len(arm.t), dtype=np.int64))
    source = open_source(folder, arm.model)
    np.testing.assert_array_equal(whole(source)['position'][0], arm.stamps)
    assert source.notes == ['/joint_states: all stamps are zero; the times of recording are used']


def waiting(truth: Truth, copies: int) -> list[Any]:
    """Messages of a simulation that waits before time begins, and repeats its first state every 20 ms."""
    truth = replace(truth, t=truth.t - 1e-9 * bags.START)  # time begins at zero
    messages = bags.quadruped_messages(truth) + bags.odometry(truth) + bags.foot_forces(truth)
    first = [message for message in messages if message[0] == 0]
    again = [(20_000_000 * k, *rest) for k in range(copies) for _, *rest in first]
    return again + [(stamp + 20_000_000 * copies, *rest) for stamp, *rest in messages]


@pytest.mark.parametrize('copies', [1, 887, 2000])
def test_a_state_that_is_repeated_counts_once(tmp_path: Path, quadruped: Truth, copies: int) -> None:
    """The first state of a simulation has the stamp zero: it does not mean that there are no stamps."""
    model = quadruped.model
    folders = [write(tmp_path / f'{n}', waiting(quadruped, n)) for n in (0, copies)]
    (_, expected), (_, rows) = (on_grid(open_source(one, model, chunk=2.0), model) for one in folders)
    np.testing.assert_array_equal(rows, expected)
    source = open_source(folders[1], model, chunk=2.0)
    on_grid(source, model)
    forces = ', '.join(sorted(f'force/{foot}' for foot in model.foot_names))
    assert source.notes == [
        'rows that repeat the previous one, stamp and values, are not used: '
        f'{copies} of base, effort, {forces}, position, velocity'
    ]


def test_rows_with_the_same_stamp_and_other_values(tmp_path: Path, arm: Truth) -> None:
    stamps = arm.stamps.copy()
    stamps[[700, 1200]] = stamps[[699, 1199]]
    source = open_source(bags.arm_bag(tmp_path / 'bag', arm, header_stamps=stamps), arm.model)
    on_grid(source, arm.model)
    assert source.notes == [
        'rows with the stamp of the previous one, but other values, are not used: 2 of effort, position, '
        'velocity'
    ]


def test_messages_without_a_stamp_among_others(tmp_path: Path, arm: Truth) -> None:
    """Such as those of a driver before its clock is set."""
    stamps = arm.stamps + 1_700_000_000_000_000_000
    stamps[:50] = stamps[800] = stamps[-1] = 0
    source = open_source(bags.arm_bag(tmp_path / 'bag', arm, header_stamps=stamps), arm.model)
    for _ in range(2):  # it may be read several times
        np.testing.assert_array_equal(whole(source)['position'][0], stamps[stamps > 0])
    on_grid(source, arm.model)
    assert source.notes == ['messages without a stamp (zero) are not used: 52 of /joint_states']


def test_a_gap_of_a_day(tmp_path: Path, arm: Truth) -> None:
    stamps = arm.stamps + np.where(arm.t > 2.5, 86_400_000_000_000, 0)
    source = open_source(bags.arm_bag(tmp_path / 'bag', arm, header_stamps=stamps), arm.model)
    grid, rows = on_grid(source, arm.model)
    assert len(rows) == len(arm.t)
    assert [segment.start for segment in grid.segments] == pytest.approx([0.0, 86_402.502])


@pytest.mark.parametrize('late', ['odom', 'joints'])
def test_topics_may_begin_later_than_others(tmp_path: Path, late: str) -> None:
    truth = quadruped_truth(duration=6.0)
    rest = truth.at(slice(1250, None))
    joints, base = (truth, rest) if late == 'odom' else (rest, truth)
    folder = write(tmp_path / 'bag', bags.quadruped_messages(joints) + bags.odometry(base))
    grid, rows = on_grid(open_source(folder, truth.model, chunk=1.0), truth.model)
    np.testing.assert_array_equal(grid.get(rows, 'position'), rest.q[:, 7:])
    np.testing.assert_allclose(grid.get(rows, 'base')[:, :3], rest.q[:, :3], atol=1e-15)
    assert grid.segments[0].start == pytest.approx(2.5 if late == 'odom' else 0.0)


# ---------------------------------------------------------------- forces


@pytest.mark.parametrize('frame', ['odom', 'world', '/map', 'foot'])
def test_forces_in_world_axes_and_in_those_of_a_link(tmp_path: Path, quadruped: Truth, frame: str) -> None:
    from quad_dynamics.identification.signals.stance import world_forces

    messages = bags.quadruped_messages(quadruped) + bags.odometry(quadruped)
    folder = write(tmp_path / 'bag', messages + bags.foot_forces(quadruped, frame))
    source = open_source(folder, quadruped.model)
    grid, rows = on_grid(source, quadruped.model)
    expected = quadruped.force.reshape(len(quadruped.t), -1)
    found = world_forces(grid, rows, quadruped.model, source.force_frames)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


# ---------------------------------------------------------------- torques from commands


def pd_bag(
    tmp_path: Path, arm: Truth, velocity: bool = True, kind: str = 'joint_torques'
) -> tuple[Path, Any]:
    """Commands every 2 ms, and no effort; what drives with kp 40, 30 and kd 2, 1 make of it."""
    kp, kd = np.array([40.0, 30.0]), np.array([2.0, 1.0])
    targets = arm_truth(duration=5.0, seed=9)
    forward = 0.3 * np.cos(arm.t)[:, None] * np.ones(2)
    messages = joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u if velocity else None, None)
    if kind == 'joint_torques':
        messages += joint_states(
            arm.stamps, arm.model.joint_names, targets.q, targets.u, forward, '/joint_torques'
        )
    else:
        forward = 0.0 * forward
        messages += trajectories(arm, targets)
    return write(tmp_path / 'bag', messages), kp * (targets.q - arm.q) + kd * (targets.u - arm.u) + forward


def trajectories(arm: Truth, targets: Truth) -> list[bags.Message]:
    """Each message holds ten points; the last half of them is replaced by the next message."""
    made = []
    point = 'trajectory_msgs/msg/JointTrajectoryPoint'
    for i in range(0, len(arm.t) - 10, 5):
        points = [
            bags.make(
                point,
                positions=np.ascontiguousarray(targets.q[i + k]),
                velocities=np.ascontiguousarray(targets.u[i + k]),
                accelerations=np.empty(0),
                effort=np.empty(0),
                time_from_start=bags.make(
                    'builtin_interfaces/msg/Duration', sec=0, nanosec=int(2_000_000 * k)
                ),
            )
            for k in range(10)
        ]
        message = bags.make(
            bags.TRAJECTORY,
            header=bags.header(arm.stamps[i]),
            joint_names=list(arm.model.joint_names),
            points=points,
        )
        made.append((int(arm.stamps[i]), '/joint_targets', bags.TRAJECTORY, message))
    return made


@pytest.mark.parametrize('kind', ['joint_torques', 'joint_targets'])
@pytest.mark.parametrize('velocity', [True, False], ids=['velocity', 'no_velocity'])
def test_torque_of_a_pd_law_where_effort_is_missing(
    tmp_path: Path, arm: Truth, velocity: bool, kind: str
) -> None:
    folder, tau = pd_bag(tmp_path, arm, velocity, kind)
    source = open_source(folder, arm.model, Topics(kp=(40.0, 30.0), kd=(2.0, 1.0)))
    grid, rows = on_grid(source, arm.model)
    first = round(grid.segments[0].start * 500.0)
    count = min(len(rows), len(tau) - first - 10)
    # Without measured velocities they come from differences over 4 ms: off by (w T)^2 / 6 of waves of 1 Hz.
    np.testing.assert_allclose(
        grid.get(rows, 'effort')[:count], tau[first : first + count], atol=1e-9 if velocity else 5e-3
    )
    assert 'velocity' in grid or not velocity
    [note] = [note for note in source.notes if 'torque was not measured' in note]
    assert 'kp (commanded - measured position) + kd (commanded - measured velocity)' in note


def test_commanded_torques_need_no_gains(tmp_path: Path, arm: Truth) -> None:
    messages = joint_states(arm.stamps, arm.model.joint_names, arm.q, arm.u, None)
    messages += joint_states(arm.stamps, arm.model.joint_names, None, None, arm.tau, '/joint_torques')
    source = open_source(write(tmp_path / 'bag', messages), arm.model)
    grid, rows = on_grid(source, arm.model)
    np.testing.assert_array_equal(grid.get(rows, 'effort'), arm.tau)
    assert source.notes == ['torque was not measured; assumed as commanded effort']


def test_gains_must_fit_the_joints(tmp_path: Path, arm: Truth) -> None:
    folder, _ = pd_bag(tmp_path, arm)
    source = open_source(folder, arm.model, Topics(kp=(1.0, 2.0, 3.0)))
    with pytest.raises(ArgumentError, match='kp has 3 numbers; expected 1, or one for each of 2 joints'):
        on_grid(source, arm.model)


# ---------------------------------------------------------------- tables


def csv(path: Path, columns: dict[str, Any]) -> Path:
    table = np.stack(list(columns.values()), axis=1)
    np.savetxt(path, table, delimiter=',', header=','.join(columns), comments='', fmt='%.17g')
    return path


def csv_columns(truth: Truth) -> dict[str, Any]:
    nj, columns = truth.model.nj, {'time': truth.t}
    for i, name in enumerate(truth.model.joint_names):
        columns[f'{name}.position'] = truth.q[:, len(truth.q[0]) - nj + i]
        columns[f'{name}.velocity'] = truth.u[:, len(truth.u[0]) - nj + i]
        columns[f'{name}.effort'] = truth.tau[:, i]
    return columns


def test_csv_is_as_a_bag(tmp_path: Path, arm: Truth) -> None:
    path = csv(tmp_path / 'log.csv', {'remark': np.zeros(len(arm.t)), **csv_columns(arm)})
    source = open_source(path, arm.model)
    found = whole(source)
    np.testing.assert_array_equal(found['position'][1], arm.q)
    np.testing.assert_array_equal(found['effort'][1], arm.tau)
    np.testing.assert_array_equal(found['effort'][0], arm.stamps - bags.START)
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_npz_and_csv_of_a_quadruped(tmp_path: Path, quadruped: Truth) -> None:
    from scipy.spatial.transform import Rotation

    truth, n = quadruped, len(quadruped.t)
    v = Rotation.from_quat(truth.q[:, 3:7]).inv().apply(truth.u[:, :3])
    base = np.hstack([truth.q[:, :7], v, truth.u[:, 3:6]])
    order = np.random.default_rng(0).permutation(12)
    np.savez(
        tmp_path / 'log.npz',
        time=truth.t,
        position=truth.q[:, 7:][:, order],
        velocity=truth.u[:, 6:][:, order],
        effort=truth.tau[:, order],
        joint_names=np.array(truth.model.joint_names)[order],
        base=base,
        force=truth.force,
        foot_names=np.array(truth.model.foot_names),
    )
    columns = csv_columns(truth)
    fields = ('px', 'py', 'pz', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz')
    columns |= {f'base.{field}': base[:, i] for i, field in enumerate(fields)}
    for k, foot in enumerate(truth.model.foot_names):
        columns |= {f'{foot}.f{axis}': truth.force[:, k, i] for i, axis in enumerate('xyz')}
    csv(tmp_path / 'log.csv', columns)
    for name in ('log.npz', 'log.csv'):
        found = whole(open_source(tmp_path / name, truth.model, chunk=0.7))
        np.testing.assert_array_equal(found['position'][1], truth.q[:, 7:])
        np.testing.assert_array_equal(found['base'][1], base)
        np.testing.assert_array_equal(found['force/RL_foot'][1], truth.force[:, 2])
        assert len(found['effort'][0]) == n


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            'time,joint1.position\n0,0\n',
            r"lacks the columns \['joint2.position'\]; it has \['time', 'joint1.pos",
        ),
        ('time,joint1.position,joint2.position\n', 'holds no numbers'),
        ('time,joint1.position,joint2.position\n0,1\n', 'line 2 has 2 columns; expected 3'),
        ('time,joint1.position,joint2.position\n0,1,x\n', "line 2: could not convert string to float: 'x'"),
        ('t,joint1.position,joint2.position\n0,1,2\n', r"lacks the columns \['time'\]"),
    ],
)
def test_bad_csv(tmp_path: Path, arm: Truth, text: str, message: str) -> None:
    path = tmp_path / 'log.csv'
    path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        list(open_source(path, arm.model).chunks())


def test_bad_npz(tmp_path: Path, arm: Truth) -> None:
    path = tmp_path / 'log.npz'
    path.write_bytes(b'PK\x03\x04 no zip')
    with pytest.raises(ArgumentError, match='cannot be read'):
        open_source(path, arm.model)
    np.savez(path, time=arm.t, position=arm.q, joint_names=['joint1', 'elbow'])
    with pytest.raises(
        ArgumentError, match=r"joint_names lacks the joints \['joint2'\]; it has \['joint1', 'elbow'\]"
    ):
        open_source(path, arm.model)
    np.savez(path, time=arm.t[1:], position=arm.q, joint_names=list(arm.model.joint_names))
    with pytest.raises(ArgumentError, match=r"'position' has the shape \(2500, 2\); expected \(2499, 2\)"):
        open_source(path, arm.model)
    np.savez(path, position=arm.q)
    with pytest.raises(ArgumentError, match="lacks the array 'time'"):
        open_source(path, arm.model)
