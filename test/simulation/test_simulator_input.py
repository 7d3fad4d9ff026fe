# SPDX-License-Identifier: Apache-2.0
"""Bad input of the simulator: an error that names the culprit, and nothing changed; and divergence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simple_robots as robots

NJ, NQ, NV = 12, 19, 18


@pytest.fixture
def sim(qd: Any) -> Any:
    """A Mini Cheetah in the middle of things."""
    simulator = qd.Simulator(robots.quadruped('mini_cheetah'), latency=1.5e-3)
    simulator.reset()
    simulator.command(q=simulator.model.standing[7:], kp=60.0, kd=2.0)
    simulator.apply_force('base_link', np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), 0.1)
    for _ in range(20):
        simulator.step()
    return simulator


def spoilt(values: np.ndarray, index: int, value: float) -> np.ndarray:
    """A copy with one bad entry."""
    copy = values.copy()
    copy[index] = value
    return copy


def refused(qd: Any, sim: Any, call: Callable[[], Any], *culprits: str) -> None:
    """The call raises ArgumentError with the culprits' names, and the simulator goes on as before."""
    before = sim.snapshot()
    with pytest.raises(qd.ArgumentError) as caught:
        call()
    text = str(caught.value)
    for culprit in culprits:
        assert culprit in text, text
    assert sim.snapshot() == before
    after = _next_state(sim)
    sim.restore(before)
    assert np.array_equal(_next_state(sim), after)


def _next_state(sim: Any) -> np.ndarray:
    sim.step()
    return np.concatenate([sim.q, sim.u])


# ---------------------------------------------------------------- torques, commands, forces, states

STEPS = {
    'nan': (spoilt(np.zeros(NJ), 3, np.nan), ('tau',)),
    'infinite': (spoilt(np.zeros(NJ), 0, np.inf), ('tau',)),
    'short': (np.zeros(NJ - 1), ('tau', '12')),
    'long': (np.zeros(NJ + 6), ('tau', '12')),
    'batch': (np.zeros((2, NJ)), ('tau',)),
    'column': (np.zeros((NJ, 1)), ('tau',)),
    'number': (1.0, ('tau',)),
    'text': (['a'] * NJ, ('tau',)),
    'complex': (np.zeros(NJ, dtype=complex), ('tau',)),
    'objects': (np.array([None] * NJ), ('tau',)),
    'ragged': ([[1.0], [1.0, 2.0]], ('tau',)),
    'nan32': (spoilt(np.zeros(NJ, dtype=np.float32), 3, np.nan), ('tau',)),
}


@pytest.mark.parametrize('case', STEPS)
def test_bad_torque(qd: Any, sim: Any, case: str) -> None:
    tau, culprits = STEPS[case]
    refused(qd, sim, lambda: sim.step(tau), *culprits)


@pytest.mark.parametrize('kind', ['list', 'float32', 'int', 'strided', 'big_endian', 'read_only'])
def test_other_kinds_of_numbers_are_fine(qd: Any, sim: Any, kind: str) -> None:
    tau = np.arange(NJ, dtype=float) - 3.0
    before = sim.snapshot()
    sim.step(tau)
    expected = sim.snapshot()
    sim.restore(before)
    strided = np.zeros(2 * NJ)
    strided[::2] = tau
    frozen = tau.copy()
    frozen.setflags(write=False)
    given = {
        'list': tau.tolist(),
        'float32': tau.astype(np.float32),
        'int': tau.astype(np.int64),
        'strided': strided[::2],
        'big_endian': tau.astype('>f8'),
        'read_only': frozen,
    }
    sim.step(given[kind])
    assert sim.snapshot() == expected


COMMANDS = {
    'tau': {'tau': spoilt(np.zeros(NJ), 2, np.nan)},
    'q': {'q': np.zeros(NQ), 'kp': 1.0},
    'qd': {'qd': spoilt(np.zeros(NJ), 2, np.inf), 'kd': 1.0},
    'kp': {'kp': -1.0, 'q': np.zeros(NJ)},
    'kd': {'kd': spoilt(np.zeros(NJ), 5, -0.1)},
    'kp is given without q': {'kp': np.ones(NJ)},
    'q is given, but kp is 0': {'q': np.zeros(NJ), 'kd': 1.0},
    'qd is given, but kd is 0': {'qd': np.zeros(NJ), 'kp': 1.0, 'q': np.zeros(NJ)},
    'kp is ': {'kp': 10**400, 'q': np.zeros(NJ)},
    'kd has shape': {'kd': np.ones(NJ - 1)},
    'tau has masked values': {'tau': np.ma.MaskedArray(np.zeros(NJ), [True] * NJ)},
}


@pytest.mark.parametrize('culprit', COMMANDS)
def test_bad_command(qd: Any, sim: Any, culprit: str) -> None:
    refused(qd, sim, lambda: sim.command(**COMMANDS[culprit]), culprit)


@pytest.mark.parametrize('seed', range(8))
def test_commands_of_any_type_are_the_same(sim: Any, seed: int) -> None:
    """Arrays of numbers are read by a kernel, all else is converted first."""
    rng = np.random.default_rng(seed)
    kp, kd = float(rng.integers(0, 2) * 20), [3.0, 2, np.full(NJ, 0.5)][seed % 3]
    q = rng.normal(size=NJ) if kp else None
    tau, qd = (rng.normal(size=NJ) if rng.random() < 0.5 else None for _ in range(2))
    before = sim.snapshot()
    sim.command(tau=tau, q=q, qd=qd, kp=kp, kd=kd)
    expected = sim.snapshot()
    values = {'tau': 0.0 if tau is None else tau, 'qd': 0.0 if qd is None else qd, 'kp': kp, 'kd': kd}
    for name, value in sim.current_command.items():
        if value is not None:
            np.testing.assert_array_equal(value, np.broadcast_to(q if name == 'q' else values[name], NJ))
    listed = {
        name: None if value is None else np.broadcast_to(value, NJ).tolist()
        for name, value in {'tau': tau, 'q': q, 'qd': qd, 'kp': kp, 'kd': kd}.items()
    }
    sim.restore(before)
    sim.command(**listed)
    assert sim.snapshot() == expected


@pytest.mark.parametrize('culprit', COMMANDS)
def test_bad_command_of_a_run(qd: Any, sim: Any, culprit: str) -> None:
    refused(qd, sim, lambda: sim.run(qd.JointCommand(**COMMANDS[culprit]), 0.01), culprit)


FORCES = {
    'unknown': (('no_such_link', np.zeros(6), 0.1), ('no_such_link',)),
    'link': ((3, np.zeros(6), 0.1), ('link',)),
    'nan': (('base_link', spoilt(np.zeros(6), 1, np.nan), 0.1), ('wrench',)),
    'size': (('base_link', np.zeros(3), 0.1), ('wrench',)),
    'text': (('base_link', ['a'] * 6, 0.1), ('wrench',)),
    'backwards': (('base_link', np.ones(6), -0.1), ('duration',)),
    'endless': (('base_link', np.ones(6), np.nan), ('duration',)),
    'duration': (('base_link', np.ones(6), '1'), ('duration',)),
}


@pytest.mark.parametrize('case', FORCES)
def test_bad_force(qd: Any, sim: Any, case: str) -> None:
    arguments, culprits = FORCES[case]
    refused(qd, sim, lambda: sim.apply_force(*arguments), *culprits)


def standing() -> np.ndarray:
    return robots.quadruped('mini_cheetah').standing.copy()


STATES = {
    'q_nan': ({'q': lambda: spoilt(standing(), 2, np.nan)}, 'q'),
    'q_size': ({'q': lambda: standing()[:-1]}, 'q'),
    'q_batch': ({'q': lambda: np.stack([standing()] * 2)}, 'q'),
    'quaternion': ({'q': lambda: spoilt(standing(), 6, 0.3)}, 'q'),
    'u_nan': ({'u': lambda: spoilt(np.zeros(NV), 7, np.nan)}, 'u'),
    'u_size': ({'u': lambda: np.zeros(NQ)}, 'u'),
    'u_text': ({'u': lambda: 'fast'}, 'u'),
}


@pytest.mark.parametrize('method', ['reset', 'set_state'])
@pytest.mark.parametrize('case', STATES)
def test_bad_state(qd: Any, sim: Any, case: str, method: str) -> None:
    arguments, culprit = STATES[case]
    made = {key: value() for key, value in arguments.items()}
    refused(qd, sim, lambda: getattr(sim, method)(**made), culprit)


@pytest.mark.parametrize('seed', [-1, 1.5, 'one'], ids=['negative', 'fraction', 'word'])
def test_bad_seed(qd: Any, sim: Any, seed: Any) -> None:
    refused(qd, sim, lambda: sim.reset(seed=seed), 'seed')


@pytest.mark.parametrize('method', ['reset', 'set_state'])
@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
def test_start_deep_inside_the_ground(qd: Any, contact: str, method: str) -> None:
    """An error that names the deepest point, rather than an explosion."""
    simulator = qd.Simulator(robots.quadruped('mini_cheetah'), contact=contact)
    q = standing()
    q[2] -= 0.15
    refused(qd, simulator, lambda: getattr(simulator, method)(q=q), 'foot', 'ground')


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
def test_start_a_little_inside_the_ground(qd: Any, contact: str) -> None:
    """What is allowed comes out quietly: no faster than a fall from the depth, and all in a second."""
    simulator = qd.Simulator(robots.quadruped('mini_cheetah'), contact=contact)
    q = standing()
    q[2] -= 0.004
    simulator.reset(q)
    simulator.command(q=q[7:], kp=60.0, kd=2.0)
    log = simulator.run(None, 1.0)
    assert np.abs(log.u[:, 2]).max() < np.sqrt(2.0 * 9.81 * 0.004)
    # a spring gives way under the weight: K z^(3/2) is a quarter of it; half as much again for the posture
    depth = (simulator.model.total_mass * 9.81 / 4.0 / 5e5) ** (2.0 / 3.0)
    assert simulator.contact_distances.min() > (-1e-4 if contact == 'impulse' else -1.5 * depth)


# ---------------------------------------------------------------- run and snapshots


@pytest.mark.parametrize('duration', [-1.0, np.nan, np.inf, 'long', None])
def test_bad_duration(qd: Any, sim: Any, duration: Any) -> None:
    refused(qd, sim, lambda: sim.run(None, duration), 'duration')


@pytest.mark.parametrize('log_every', [0, -1, 1.5, 'often'])
def test_bad_log_every(qd: Any, sim: Any, log_every: Any) -> None:
    refused(qd, sim, lambda: sim.run(None, 0.01, log_every=log_every), 'log_every')


RUBBISH = {
    'text': 'full speed',
    'size': np.zeros(3),
    'nan': np.full(NJ, np.nan),
    'mapping': {'tau': np.zeros(NJ)},
    'number': 1.0,
    'state': np.zeros(NV),
}


@pytest.mark.parametrize('case', RUBBISH)
def test_controller_returns_rubbish(qd: Any, sim: Any, case: str) -> None:
    refused(qd, sim, lambda: sim.run(lambda _: RUBBISH[case], 0.01), 'controller')


def test_controller_returns_a_bad_command(qd: Any, sim: Any) -> None:
    refused(qd, sim, lambda: sim.run(lambda _: qd.JointCommand(tau=np.zeros(2)), 0.01), 'controller', 'tau')


def test_controller_is_none_of_these(qd: Any, sim: Any) -> None:
    refused(qd, sim, lambda: sim.run(np.zeros(NJ), 0.01), 'controller')


def test_controller_raises(qd: Any, sim: Any) -> None:
    """Its own error comes through, and the simulator can go on."""

    def controller(simulator: Any) -> None:
        if simulator.time > 0.0245:
            raise KeyError('mine')

    with pytest.raises(KeyError, match='mine'):
        sim.run(controller, 1.0)
    assert sim.time == pytest.approx(0.025)
    sim.step()
    assert np.all(np.isfinite(sim.q))
    assert len(sim.run(None, 0.01).time) == 10


def test_bad_snapshot(qd: Any, sim: Any) -> None:
    good = sim.snapshot()
    for bad in (b'', b'rubbish', good[:-1], good + b'x', good[:40], b'x' + good[1:], 'text', None, 3):
        refused(qd, sim, lambda bad=bad: sim.restore(bad), 'snapshot')


def test_snapshot_of_another_simulator(qd: Any, sim: Any) -> None:
    """Of another robot, another terrain, another time step."""
    others = (
        qd.Simulator(robots.quadruped('go2'), latency=1.5e-3),
        qd.Simulator(sim.model, latency=1.5e-3, dt=5e-4),
        qd.Simulator(sim.model, latency=1.5e-3, terrain='slope'),
        qd.Simulator(sim.model, latency=1.5e-3, contact='spring_damper'),
        qd.Simulator(sim.model, latency=2.5e-3),
        qd.Simulator(sim.model, latency=1.5e-3, mu=0.7),
    )
    for other in others:
        refused(qd, sim, lambda other=other: sim.restore(other.snapshot()), 'snapshot')


def test_flipped_bits_of_a_snapshot(qd: Any, sim: Any) -> None:
    """Damage is refused, or the simulator says so when it steps; it never goes on with nonsense."""
    good = sim.snapshot()
    rng = np.random.default_rng(0)
    for _ in range(200):
        bad = bytearray(good)
        bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
        try:
            sim.restore(bytes(bad))
            sim.step()
        except (qd.ArgumentError, qd.SimulationDiverged):
            continue
        assert np.all(np.isfinite(sim.q))
        assert np.all(np.isfinite(sim.u))
    sim.restore(good)
    assert sim.snapshot() == good


# ---------------------------------------------------------------- settings

SETTINGS = {
    'dt': [-1e-3, 0.0, np.nan, np.inf, '1 ms', True],
    'mu': [-0.1, np.nan],
    'restitution': [-0.1, 1.1, np.nan],
    'contact': ['magnetic', 3],
    'friction': ['square'],
    'integrator': ['euler'],
    'joint_friction': ['sometimes'],
    'max_sweeps': [0, 1.5],
    'tolerance': [0.0, -1e-6],
    'correction': [-0.1, 1.1],
    'stiffness': [0.0, -1.0],
    'damping': [-1.0],
    'substeps': [0, 2.5],
    'latency': [-1e-3, np.nan],
    'gravity': [(0.0, 0.0), (0.0, 0.0, np.nan), 'down'],
    'seed': [-1, 0.5],
    'energy_limit': [0.0],
    'joint_limits': ['yes'],
}


@pytest.mark.parametrize(
    ('name', 'value'), [(name, value) for name, values in SETTINGS.items() for value in values], ids=str
)
def test_bad_setting(qd: Any, name: str, value: Any) -> None:
    with pytest.raises(qd.ArgumentError, match=name):
        qd.Simulator(robots.quadruped('mini_cheetah'), **{name: value})


def test_unknown_setting(qd: Any) -> None:
    with pytest.raises((qd.ArgumentError, TypeError), match='viscosity'):
        qd.Simulator(robots.quadruped('mini_cheetah'), viscosity=3.0)


def test_rk4_is_for_free_motion(qd: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='rk4'):
        qd.Simulator(robots.quadruped('mini_cheetah'), integrator='rk4')


@pytest.mark.parametrize('model', ['mini_cheetah', None, 3])
def test_no_model(qd: Any, model: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='model'):
        qd.Simulator(model)


@pytest.mark.parametrize('terrain', ['moon', 'nowhere/ground.yaml', 3, {'shapes': [{'sphere': {}}]}], ids=str)
def test_unknown_terrain(qd: Any, terrain: Any) -> None:
    culprit = {'moon': 'moon', 'nowhere/ground.yaml': 'ground.yaml'}.get(str(terrain), '(?i)terrain|sphere')
    with pytest.raises(qd.ArgumentError, match=culprit):
        qd.Simulator(robots.quadruped('mini_cheetah'), terrain=terrain)


@pytest.mark.parametrize('hole', [np.nan, np.inf])
def test_height_map_with_holes(qd: Any, hole: float, tmp_path: Path) -> None:
    from quad_dynamics.terrain.terrain import HeightMap

    heights = np.zeros((5, 6))
    heights[2, 3] = hole
    with pytest.raises(qd.ArgumentError, match='heights'):
        HeightMap(heights, 0.1)
    np.save(tmp_path / 'holes.npy', heights)
    with pytest.raises(qd.ArgumentError, match='heights'):
        HeightMap(str(tmp_path / 'holes.npy'), 0.1)


def test_friction_of_a_shape_below_zero(qd: Any) -> None:
    from quad_dynamics.terrain.terrain import Plane

    with pytest.raises(qd.ArgumentError, match='mu'):
        Plane(mu=-0.1)


# ---------------------------------------------------------------- divergence


def diverge(qd: Any, simulator: Any, steps: int = 20_000) -> Any:
    """Step until it is noticed; every state before is finite."""
    for _ in range(steps):
        try:
            simulator.step()
        except qd.SimulationDiverged as error:
            return error
        assert np.all(np.isfinite(simulator.q))
        assert np.all(np.isfinite(simulator.u))
    raise AssertionError(f'it did not diverge in {steps} steps')


def assert_last_good(error: Any, simulator: Any) -> None:
    """The error carries the state in which the simulator still is."""
    assert np.all(np.isfinite(error.q))
    assert np.all(np.isfinite(error.u))
    assert np.array_equal(error.q, simulator.q)
    assert np.array_equal(error.u, simulator.u)
    assert error.time == simulator.time
    assert isinstance(error, RuntimeError)


def test_stiff_springs_diverge(qd: Any) -> None:
    model = robots.quadruped('mini_cheetah')
    simulator = qd.Simulator(
        model, contact='spring_damper', substeps=1, stiffness=1e9, damping=1e7, joint_friction='none'
    )
    q = model.standing.copy()
    q[2] += 0.02
    simulator.reset(q)
    error = diverge(qd, simulator)
    assert_last_good(error, simulator)
    assert 'substeps' in str(error)
    simulator.reset()  # and it can be used again
    simulator.command(q=model.standing[7:], kp=60.0, kd=2.0)
    assert np.all(np.isfinite(simulator.q))


def test_wild_gains_diverge(qd: Any) -> None:
    model = robots.quadruped('go2')
    simulator = qd.Simulator(model, motor_limits=False, joint_limits=False)
    simulator.reset()
    simulator.command(q=model.standing[7:] + 0.1, kp=1e7, kd=1e5)
    error = diverge(qd, simulator)
    assert_last_good(error, simulator)
    assert 'gain' in str(error)


def test_runaway_energy(qd: Any) -> None:
    simulator = qd.Simulator(robots.ball(), contact='none', gravity=(0.0, 0.0, 0.0), energy_limit=100.0)
    simulator.reset(u=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    simulator.apply_force('ball', np.array([1000.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 1.0)
    error = diverge(qd, simulator)
    assert_last_good(error, simulator)
    # 100 J/kg is 14.14 m/s; 1 m/s a step: 13 or 14 steps
    assert 13.0 <= error.u[0] <= 15.0


def test_divergence_in_a_run(qd: Any) -> None:
    """The compiled loop notices as well, and what was logged before is kept."""
    simulator = qd.Simulator(robots.ball(), contact='none', gravity=(0.0, 0.0, 0.0), energy_limit=100.0)
    simulator.apply_force('ball', np.array([1000.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 1.0)
    with pytest.raises(qd.SimulationDiverged) as caught:
        simulator.run(None, 1.0)
    assert_last_good(caught.value, simulator)
    assert 0.0 < caught.value.time < 0.02
