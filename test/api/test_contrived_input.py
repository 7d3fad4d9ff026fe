# SPDX-License-Identifier: Apache-2.0
"""Input that is made to break things: it is refused with a clear message, and the interpreter lives on."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import load

from quad_dynamics.kernels.simulation.scene import ExternalForce, State


@pytest.fixture(scope='module')
def model() -> Any:
    return load('mini_cheetah')


@pytest.fixture
def sim(qd: Any, model: Any) -> Any:
    return qd.Simulator(model)


# ---------------------------------------------------------------- mappings and arrays


class Liar(Mapping[str, Any]):
    """A mapping that counts otherwise than it lists."""

    def __init__(self, length: int) -> None:
        self._items = {'FL_foot': np.ones(6), 'FR_foot': np.ones(6)}
        self._length = length

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._length


@pytest.mark.parametrize('length', [0, 1, 3, 10_000])
def test_mapping_whose_length_is_wrong(qd: Any, model: Any, length: int) -> None:
    q, u = model.standing, np.zeros(18)
    expected = qd.inverse_dynamics(model, q, u, u, dict(Liar(2)))
    assert np.array_equal(qd.inverse_dynamics(model, q, u, u, Liar(length)), expected)
    assert np.isfinite(qd.forward_dynamics(model, q, u, u, Liar(length))).all()


class Shifty:
    """An array-like that is another one at each look."""

    def __init__(self, *arrays: Any) -> None:
        self._arrays = list(arrays)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._arrays.pop(0) if len(self._arrays) > 1 else self._arrays[0]


@pytest.mark.parametrize(
    'q',
    [
        Shifty(np.zeros(3), np.zeros(10**6)),
        np.zeros((0, 19)),
        np.zeros((19, 0)),
        np.zeros((1, 1, 19)),
        np.zeros(19, dtype='>f8'),
        np.zeros(38)[::2],
        np.zeros(19, dtype=[('x', 'f8')]),
        np.zeros(19, dtype=object),
        np.array('2024', dtype='datetime64[Y]'),
        [10**400] * 19,
        np.ma.masked_array(np.zeros(19), mask=[True] * 19),
        memoryview(b'abc'),
        {'q': 1},
        None,
    ],
)
def test_odd_arrays(qd: Any, model: Any, q: Any) -> None:
    """Each is refused, or gives what the plain array gives; most have no unit quaternion."""
    calls: list[Callable[[], Any]] = [
        lambda: qd.mass_matrix(model, q),
        lambda: qd.inverse_dynamics(model, q, np.zeros(18), np.zeros(18)),
        lambda: qd.contact_inertia(model, q, ['FL_foot']),
        lambda: qd.energy(model, q, np.zeros(18)),
        lambda: qd.frame_pose(model, q, 'FL_foot'),
        lambda: qd.regressor(model, q, np.zeros(18), np.zeros(18)),
    ]
    for call in calls:
        try:
            found = call()
        except qd.ArgumentError:
            continue
        assert isinstance(q, np.ndarray)
        assert len(q) == 0
        assert all(np.asarray(part).size == 0 for part in (found if isinstance(found, tuple) else (found,)))


# ---------------------------------------------------------------- models built by hand


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('parents', np.array([5] * 12), 'depth first'),
        ('parents', np.arange(12), 'depth first'),
        ('parents', np.full(12, -7), 'depth first'),
        ('parents', np.full(12, -1.0), 'parents of the model is .* of float64; expected an array'),
        ('joint_names', ('a',), '13 bodies and 1 joints'),
        ('body_names', (), '0 bodies and 12 joints'),
        ('pi', np.zeros(3), r'pi of the model is \(3,\)'),
        ('gravity', [0.0, 0.0, -9.81], 'gravity of the model is list'),
        ('joint_axis', np.zeros((12, 2)), 'joint_axis of the model'),
        ('viscous', np.zeros(11), 'viscous of the model'),
    ],
)
def test_model_built_by_hand(qd: Any, model: Any, field: str, value: Any, message: str) -> None:
    with pytest.raises(qd.ArgumentError, match=message):
        dataclasses.replace(model, **{field: value})


def test_frame_added_by_hand(qd: Any, model: Any) -> None:
    model = dataclasses.replace(model, frames=dict(model.frames))
    good = model.frames['FL_foot']
    for name, changes in {
        'far': {'body': 10**6},
        'below': {'body': -5},
        'fraction': {'body': 1.5},
        'short': {'p': np.zeros(1)},
        'flat': {'R': np.eye(2)},
    }.items():
        model.frames[name] = dataclasses.replace(good, **changes)
        with pytest.raises(qd.ArgumentError, match=f"'{name}' has body"):
            qd.frame_pose(model, model.standing, name)
        with pytest.raises(qd.ArgumentError, match=f"'{name}' has body"):
            qd.inverse_dynamics(model, model.standing, np.zeros(18), np.zeros(18), {name: np.ones(6)})


def test_model_cannot_be_changed(model: Any) -> None:
    for name in ('gravity', 'no_such_thing', 'total_mass'):
        with pytest.raises(AttributeError, match=f"'{name}' of a model cannot be set; .*with_"):
            setattr(model, name, 3.0)
    with pytest.raises(ValueError, match='masked'):
        model.with_gravity(np.ma.masked_array([0.0, 0.0, -9.81], mask=[True, False, False]))


# ---------------------------------------------------------------- snapshots


def edited(
    snapshot: bytes, change: Callable[[np.ndarray, np.ndarray], None], seed: int | None = None
) -> bytes:
    """A snapshot with another state, and with the right checksum."""
    head = len(b'quad_dynamics snapshot 1\n')
    kept, _, old_seed, count = struct.unpack_from('<16s16sQQ', snapshot, head)
    state = np.frombuffer(snapshot[head + 48 :], dtype=np.float64).copy()
    change(state, state.view(np.int64))
    seed = old_seed if seed is None else seed
    checksum = hashlib.sha256(seed.to_bytes(8, 'little') + state.tobytes()).digest()[:16]
    return snapshot[:head] + struct.pack('<16s16sQQ', kept, checksum, seed, count) + state.tobytes()


def test_every_number_of_a_snapshot(qd: Any, model: Any) -> None:
    """Whatever one number of the state becomes: refused, or good for a step; nothing is half restored."""
    sim = qd.Simulator(model, latency=3e-3)
    sim.command(q=sim.q[7:], kp=50.0, kd=2.0)
    sim.apply_force('FL_foot', np.ones(6), 10.0)
    sim.run(None, 0.01, progress=False)
    good = sim.snapshot()
    sim.restore(edited(good, lambda *_: None))
    refused = 0
    for at in range(len(sim._scene.state)):
        for value in (-1, 2**62, np.iinfo(np.int64).min):

            def change(state: np.ndarray, ints: np.ndarray, at: int = at, value: int = value) -> None:
                ints[at] = value

            try:
                sim.restore(edited(good, change))
                sim.step()
            except qd.ArgumentError as error:
                assert 'snapshot was modified' in str(error)
                refused += 1
            except qd.SimulationDiverged:
                pass
            sim.restore(good)
    assert refused > len(sim._scene.state)
    assert sim.snapshot() == good


@pytest.mark.parametrize(
    ('at', 'value', 'message'),
    [
        (State.step.offset, -3, 'the number of steps'),
        (State.step.offset, 2**63 - 1, 'the number of steps'),
        (State.has_gains.offset, 2, 'gains'),
        (State.ldlt_steps.offset, 11, 'LDLT'),
    ],
)
def test_whole_numbers_of_a_snapshot(sim: Any, at: int, value: int, message: str) -> None:
    sim.run(None, 0.01, progress=False)
    good = sim.snapshot()

    def change(state: np.ndarray, ints: np.ndarray) -> None:
        ints[at] = value

    with pytest.raises(ValueError, match=f'snapshot was modified: .*{message}'):
        sim.restore(edited(good, change))
    assert sim.snapshot() == good
    with pytest.raises(ValueError, match='seed'):
        sim.restore(edited(good, lambda *_: None, seed=2**64 - 1))


@pytest.mark.parametrize('lane', [1, 10**12, -(10**12)])
def test_force_of_a_snapshot_on_no_link(sim: Any, lane: int) -> None:
    """The kernel would write there."""
    sim.apply_force('FL_foot', np.ones(6), 1.0)
    at = (sim._scene.forces.ctypes.data - sim._scene.state.ctypes.data) // 8 + ExternalForce.lane.offset

    def change(state: np.ndarray, ints: np.ndarray) -> None:
        ints[at] = lane

    with pytest.raises(ValueError, match='the link of a force'):
        sim.restore(edited(sim.snapshot(), change))


# ---------------------------------------------------------------- the simulator


def test_torques_of_another_float64(qd: Any, sim: Any) -> None:
    """A type with metadata is equal to float64, but the kernels do not know it."""
    sim.step(np.ones(12, dtype=np.dtype('f8', metadata={'unit': 'N m'})))
    assert np.array_equal(sim.tau, np.ones(12))


def test_masked_command(qd: Any, sim: Any) -> None:
    masked = np.ma.masked_array(np.ones(12), mask=[True] + [False] * 11)
    whole = np.ma.masked_array(np.ones(12))
    before = sim.current_command
    for arguments in (
        {'tau': masked},
        {'q': masked, 'kp': 1.0},
        {'q': 0.0, 'kp': masked},
        {'kd': masked, 'qd': 0},
    ):
        with pytest.raises(qd.ArgumentError, match='has masked values'):
            sim.command(**arguments)
    with pytest.raises(qd.ArgumentError, match='has masked values'):
        sim.step(masked)
    assert np.array_equal(before['tau'], sim.current_command['tau'])
    sim.command(tau=whole)  # nothing is masked
    assert np.array_equal(sim.current_command['tau'], np.ones(12))


@pytest.mark.parametrize('duration', [1e308, 1e300, 10**400, 1e18, np.float64(1e200)])
def test_endless_duration(qd: Any, sim: Any, duration: Any) -> None:
    for log_every in (1, 10**18):
        with pytest.raises(qd.ArgumentError, match=r'duration is 1.*; expected at most 1e\+09 s'):
            sim.run(None, duration, log_every=log_every)
    with pytest.raises(qd.ArgumentError, match='duration is 1'):
        sim.apply_force('FL_foot', np.ones(6), duration)
    assert sim.step_count == 0


def test_long_log_that_has_no_room(qd: Any, sim: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='larger log_every'):
        sim.run(None, 1e9)


@pytest.mark.parametrize('log_every', [1, 3])
def test_steps_of_the_controller_are_logged(qd: Any, model: Any, log_every: int) -> None:
    sim, plain = qd.Simulator(model), qd.Simulator(model)

    def controller(one: Any) -> None:
        for _ in range(4):
            one.step()

    log = sim.run(controller, 0.5, log_every=log_every, progress=False)
    expected = plain.run(None, 2.5, log_every=log_every, progress=False)
    assert sim.step_count == 2500
    for name in ('time', 'q', 'u', 'tau', 'foot_forces'):
        assert np.array_equal(getattr(log, name), getattr(expected, name)), name
    assert len(sim.run(None, 0.01, progress=False)) == 10  # and the next log begins anew


@pytest.mark.parametrize(('start', 'every'), [(0, 10), (5, 10), (9, 10), (3, 7), (1, 1000)])
def test_log_has_all_rows_wherever_it_begins(sim: Any, start: int, every: int) -> None:
    for _ in range(start):
        sim.step()
    log = sim.run(None, 0.025, log_every=every, progress=False)
    wanted = [k for k in range(start + 1, start + 26) if k % every == 0]
    assert log.steps.tolist() == wanted


def test_attributes_of_a_simulator(qd: Any, model: Any, sim: Any) -> None:
    with pytest.raises(AttributeError, match=r"'mu' .*cannot be set; .*sim\.settings\.replace\(mu="):
        sim.mu = 0.9
    with pytest.raises(AttributeError, match=r"'q' .*set_state\(q="):
        sim.q = np.zeros(19)
    with pytest.raises(AttributeError, match=r"'max_sweep' .*did you mean 'max_sweeps'"):
        sim.max_sweep = 3
    for name in ('settings', 'model', 'terrain', 'contact_points', 'time', 'step', 'anything'):
        with pytest.raises(AttributeError, match=f"'{name}' of a simulator cannot be set"):
            setattr(sim, name, None)

    class Mine(qd.Simulator):  # type: ignore[misc, name-defined]
        """A user's own simulator may have more."""

        def __init__(self, robot: Any) -> None:
            super().__init__(robot)
            self.note = 'mine'

    mine = Mine(model)
    mine.note = 'still mine'
    with pytest.raises(AttributeError, match="'mu'"):
        mine.mu = 0.9


def test_attributes_of_other_objects(qd: Any, model: Any, sim: Any) -> None:
    objects = [sim.settings, sim.terrain, sim.truth(), qd.JointCommand(), sim.run(None, 0.0), model]
    suite = qd.SensorSuite(model, qd.SensorSettings())
    with pytest.raises(AttributeError, match="'seed' of a SensorSuite cannot be set"):
        suite.seed = 3
    objects += [suite]
    for item in objects:
        with pytest.raises(AttributeError):
            item.no_such_name = 1.0


# ---------------------------------------------------------------- logs


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with some damage: bytes, a cut, a gap, or an edit inside the archive."""
    kind, at = rng.integers(4), int(rng.integers(len(data)))
    if kind == 0:
        some = bytearray(data)
        for place in rng.integers(len(data), size=4):
            some[place] ^= int(rng.integers(1, 256))
        return bytes(some)
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[at + int(rng.integers(1, 300)) :]
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, 'w') as copy:
        victim = rng.choice(archive.namelist())
        for name in archive.namelist():
            content = bytearray(archive.read(name))
            if name == victim:
                for place in rng.integers(min(len(content), 200), size=3):
                    content[place] = int(rng.integers(256))
            copy.writestr(name, bytes(content))
    return out.getvalue()


def test_damaged_logs(qd: Any, sim: Any, tmp_path: Path) -> None:
    path, bad = tmp_path / 'good.npz', tmp_path / 'bad.npz'
    sim.run(None, 0.02, progress=False).save(path)
    data, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(400):
        bad.write_bytes(damaged(data, rng))
        try:
            log = qd.Log.load(bad)
        except qd.ArgumentError as error:
            assert str(error).startswith(f'{bad}: ')
            refused += 1
        else:
            assert log.q.shape == (len(log), 19)
    assert refused > 250  # an edit of numbers inside, with the right checksum, is not damage


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'dt': float('nan')}, 'dt of the log'),
        ({'dt': -1.0}, 'dt of the log'),
        ({'joint_names': 'abcdefghijkl'}, 'names are'),
        ({'joint_names': [1] * 12}, 'names are'),
        ({'imu': {'lnk': 1}}, 'lnk'),
        ({'robot': 3}, 'not a log'),
        ({'version': [1]}, 'version'),
    ],
    ids=str,
)
def test_edited_logs(qd: Any, sim: Any, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / 'run.npz'
    sim.run(None, 0.01, progress=False).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays['about'] = np.array(json.dumps(json.loads(str(arrays['about'])) | changes))
    np.savez(path, **arrays)
    with pytest.raises(qd.ArgumentError, match=message):
        qd.Log.load(path)


@pytest.mark.parametrize('name', ['time', 'q', 'sweeps', 'converged', 'gravity'])
def test_logs_of_other_types(qd: Any, sim: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / 'run.npz'
    sim.run(None, 0.01, progress=False).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays[name] = arrays[name].astype('U5')
    np.savez(path, **arrays)
    with pytest.raises(qd.ArgumentError, match='not a log'):
        qd.Log.load(path)
