# SPDX-License-Identifier: Apache-2.0
"""Recordings: bags and tables give the numbers that were written, by name, whatever order and storage."""

from __future__ import annotations

import hashlib
import pickle
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
from quad_dynamics.identification.recordings.topics import TOPICS, Topics
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


HEADER = 'time,joint1.position,joint2.position,joint1.effort,joint2.effort\n'
ROWS = ''.join(f'{0.002 * i:.3f},{np.sin(0.01 * i)},{np.cos(0.01 * i)},1.5,0.5\n' for i in range(1500))


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            'time,joint1.position\n0,0\n',
            r"lacks the columns \['joint2.position'\]; it has \['time', 'joint1.pos",
        ),
        ('', 'has no column names; expected them in the first line'),
        ('\n\n', 'has no column names; expected them in the first line'),
        (HEADER, 'holds no numbers; expected a line for each time'),
        (HEADER + '\n\n', 'holds no numbers; expected a line for each time'),
        (HEADER + '0,1,2,3,4\n', 'time has only 1 distinct time in 1 row of position; expected at least 3'),
        (HEADER + '0,1\n', 'line 2 has 2 columns; expected 5'),
        (HEADER + ROWS + '9,1,2,3,4,5\n', 'line 1502 has 6 columns; expected 5'),
        (HEADER + '0,1,x,3,4\n', "line 2: joint2.position is 'x'; expected a number"),
        (HEADER + '0, ,x,3,4\n', "line 2: joint2.position is 'x'; expected a number"),
        (HEADER + '"0","1","2","3","4"\n', """line 2: time is '"0"'; expected a number"""),
        (HEADER + 'inf,1,2,3,4\n' + ROWS, 'time holds a number that is not finite'),
        (HEADER + '1.7e18,1,2,3,4\n', r'time reaches 1.7e\+18; expected seconds, at most 9e\+09'),
        (HEADER + '0,1,2,3,4\n' * 2000, 'time has only 1 distinct time in 2000 rows'),
        ('t' + HEADER[4:] + ROWS, r"lacks the columns \['time'\]"),
        (HEADER.replace('joint2.effort', 'time') + ROWS, r"has the columns \['time'\] more than once"),
        (HEADER.replace('2.effort', '1.effort') + ROWS, r"has the columns \['joint1.effort'\] more than"),
        (
            (HEADER + ROWS).replace(',', ';'),
            'columns are separated by semicolons; expected commas, and points',
        ),
        ((HEADER + ROWS).replace(',', '\t'), 'columns are separated by tabs; expected commas'),
        (HEADER + ROWS.replace('.', ','), 'line 2 has 10 columns; expected 5, and points in numbers'),
        ((HEADER + ROWS).encode('utf-16'), 'is text in UTF-16.*; expected a CSV file, text in UTF-8'),
        ((HEADER + ROWS).encode('utf-16-le'), 'holds binary data; expected a CSV file'),
        (bytes(range(256)) * 40, 'holds binary data; expected a CSV file, text in UTF-8'),
        (bytes(range(128, 256)) * 40, 'is not text in UTF-8 .*; expected a CSV file'),
        ((HEADER + ROWS).encode() + b'\xe9,1,2,3,4\n', 'is not text in UTF-8 .*; expected a CSV file'),
    ],
)
def test_bad_csv(tmp_path: Path, arm: Truth, text: str | bytes, message: str) -> None:
    path = tmp_path / 'log.csv'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ArgumentError, match=message) as caught:
        on_grid(open_source(path, arm.model), arm.model)
    assert str(caught.value).startswith(f'{path}: ')


def test_other_columns_may_hold_text_and_the_file_a_byte_order_mark(tmp_path: Path, arm: Truth) -> None:
    path = tmp_path / 'log.csv'
    lines = [f'walk,{row}' for row in ROWS.splitlines()]
    path.write_text('\n'.join([f'remark,{HEADER.strip()}', *lines, '']), encoding='utf-8-sig')
    found = whole(open_source(path, arm.model))
    assert found['position'][1].shape == (1500, 2)
    np.testing.assert_array_equal(found['effort'][1], [[1.5, 0.5]] * 1500)


def test_bad_npz(tmp_path: Path, arm: Truth) -> None:
    path = tmp_path / 'log.npz'
    path.write_bytes(b'PK\x03\x04 no zip')
    with pytest.raises(ArgumentError, match='cannot be read'):
        open_source(path, arm.model)
    np.savez(path, position=arm.q)
    with pytest.raises(ArgumentError, match="lacks the array 'time'"):
        open_source(path, arm.model)


def arm_arrays(arm: Truth) -> dict[str, Any]:
    names = np.array(arm.model.joint_names)
    return {'time': arm.t, 'position': arm.q, 'effort': arm.tau, 'joint_names': names}


@pytest.mark.parametrize(
    ('key', 'array', 'message'),
    [
        (
            'joint_names',
            ['joint1', 'elbow'],
            r"joint_names lacks the joints \['joint2'\]; it has \['joint1', 'el",
        ),
        ('joint_names', ['joint1', 'joint1'], r"has the joint_names \['joint1'\] more than once"),
        ('joint_names', [1.0, 2.0], "'joint_names' is an array of float64 .*; expected a list of names"),
        ('joint_names', [['joint1'], ['joint2']], r'of the shape \(2, 1\); expected a list of names'),
        ('time', np.zeros(2499), r"'effort' has|'position' has the shape \(2500, 2\); expected \(2499, 2\)"),
        ('time', np.float64(1.0), r"'time' has the shape \(\); expected \(1,\)"),
        ('time', np.zeros(2500, 'M8[ns]'), r"'time' is an array of datetime64\[ns\]; expected numbers"),
        ('position', np.zeros((2, 2500)), r"'position' has the shape \(2, 2500\); expected \(2500, 2\)"),
        ('position', np.zeros((2500, 2), complex), "'position' is an array of complex128; expected numbers"),
        ('effort', np.full((2500, 2), '1.0'), "'effort' is an array of <U3; expected numbers"),
        ('effort', np.full((2500, 2), None), "its array 'effort' cannot be read .*; expected an npz file"),
        ('effort', np.full((2500, 2), np.nan), 'effort of joint1 is nan'),
    ],
)
def test_bad_arrays(tmp_path: Path, arm: Truth, key: str, array: Any, message: str) -> None:
    np.savez(tmp_path / 'log.npz', **arm_arrays(arm) | {key: np.asarray(array)})
    with pytest.raises(ArgumentError, match=message):
        on_grid(open_source(tmp_path / 'log.npz', arm.model), arm.model)


class _Pickled:
    """Unpickling it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(tmp_path: Path, arm: Truth) -> None:
    """Neither from an array that is used, nor from another one, which does not matter."""
    hostile = np.array([_Pickled(tmp_path / 'opened')], dtype=object)
    np.savez(tmp_path / 'log.npz', **arm_arrays(arm) | {'time': hostile})
    with pytest.raises(ArgumentError, match="its array 'time' cannot be read"):
        open_source(tmp_path / 'log.npz', arm.model)
    np.savez(tmp_path / 'log.npz', **arm_arrays(arm) | {'comment': hostile})
    assert len(whole(open_source(tmp_path / 'log.npz', arm.model))['position'][0]) == 2500
    (tmp_path / 'log.npz').write_bytes(pickle.dumps(hostile[0]))
    with pytest.raises(ArgumentError, match=r'cannot be read .*expected an npz file'):
        open_source(tmp_path / 'log.npz', arm.model)
    assert not (tmp_path / 'opened').exists()


@pytest.mark.parametrize('seed', range(20))
def test_a_damaged_npz(tmp_path: Path, arm: Truth, seed: int) -> None:
    path, rng = tmp_path / 'log.npz', np.random.default_rng(seed)
    np.savez_compressed(path, **arm_arrays(arm))
    content = np.frombuffer(path.read_bytes(), np.uint8).copy()
    if seed % 2:
        content = content[: int(rng.integers(len(content)))]
    else:
        content[rng.integers(len(content), size=30)] = rng.integers(256, size=30)
    path.write_bytes(content.tobytes())
    with pytest.raises(ArgumentError, match='cannot be read'):
        open_source(path, arm.model)


def test_names_may_be_bytes(tmp_path: Path, arm: Truth) -> None:
    np.savez(tmp_path / 'log.npz', **arm_arrays(arm) | {'joint_names': np.array([b'joint1', b'joint2'])})
    assert open_source(tmp_path / 'log.npz', arm.model)


def test_forces_of_other_feet_are_refused(tmp_path: Path, quadruped: Truth) -> None:
    truth = quadruped
    arrays = {'time': truth.t, 'position': truth.q[:, 7:], 'effort': truth.tau, 'force': truth.force}
    arrays |= {'joint_names': np.array(truth.model.joint_names), 'imu': np.zeros((len(truth.t), 10))}
    np.savez(tmp_path / 'log.npz', **arrays, foot_names=np.array(['LF', 'RF', 'LH', 'RH']))
    with pytest.raises(ArgumentError, match=r"foot_names are \['LF', .*; expected those of mini_cheetah"):
        open_source(tmp_path / 'log.npz', truth.model)


def test_files_that_are_none(tmp_path: Path, arm: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('log.csv', 'log.npz', 'log.mcap'):
        (tmp_path / name).mkdir()
        with pytest.raises(ArgumentError, match=r'contains no \*.mcap and no \*.db3'):
            open_source(tmp_path / name, arm.model)
    (tmp_path / 'link.csv').symlink_to(tmp_path / 'nothing.csv')
    with pytest.raises(ArgumentError, match='does not exist'):
        open_source(tmp_path / 'link.csv', arm.model)
    with pytest.raises(ArgumentError, match="has the ending ''; expected the folder of a bag, or a file"):
        open_source('/dev/null', arm.model)

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(Path, 'open', denied)
    for name in ('x.csv', 'x.npz', 'x.mcap', 'x.db3'):
        (tmp_path / name).touch()
        with pytest.raises(ArgumentError, match=rf'{name}: cannot be read \(Permission denied\); expected'):
            open_source(tmp_path / name, arm.model)


# ---------------------------------------------------------------- topics and tables


@pytest.mark.parametrize('name', TOPICS)
@pytest.mark.parametrize('kind', ['csv', 'npz'])
def test_a_topic_that_was_named_cannot_be_in_a_table(
    tmp_path: Path, arm: Truth, name: str, kind: str
) -> None:
    path = tmp_path / f'log.{kind}'
    if kind == 'csv':
        csv(path, csv_columns(arm))
    else:
        np.savez(path, **arm_arrays(arm))
    other: dict[str, Any] = {name: '/wrong'}
    for topics in (Topics(**other), Topics(required=(name,))):
        message = (
            rf'the topic {name}=.* cannot be read from a table, which has no topics.*: the columns .*[\w>]\.'
        )
        with pytest.raises(ArgumentError, match=message):
            open_source(path, arm.model, topics)
    source = open_source(
        path, arm.model, Topics(effort_scale=(2.0,), kp=(1.0,), kd=(1.0,), force_frame='world')
    )
    grid, rows = on_grid(source, arm.model)
    np.testing.assert_allclose(grid.get(rows, 'effort')[5:-5], 2.0 * arm.tau[5:-5])


def test_an_empty_topic_disables_columns(tmp_path: Path, quadruped: Truth) -> None:
    truth = quadruped
    arrays = {'time': truth.t, 'position': truth.q[:, 7:], 'effort': truth.tau, 'force': truth.force}
    arrays |= {'joint_names': np.array(truth.model.joint_names), 'foot_names': truth.model.foot_names}
    arrays |= {'base': np.zeros((len(truth.t), 13)), 'imu': np.zeros((len(truth.t), 10))}
    np.savez(tmp_path / 'log.npz', **arrays)
    found = whole(open_source(tmp_path / 'log.npz', truth.model, Topics(odom='', foot_forces='')))
    assert set(found) == {'position', 'effort', 'imu'}
    with pytest.raises(ArgumentError, match='has neither base nor imu'):
        open_source(tmp_path / 'log.npz', truth.model, Topics(odom='', imu=''))
