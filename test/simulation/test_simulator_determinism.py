# SPDX-License-Identifier: Apache-2.0
"""Same seed and inputs, same bits: in one process, in another, and after a snapshot in the middle."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simple_robots as robots

CONTACTS = ('impulse', 'spring_damper')
over_contacts = pytest.mark.parametrize('contact', CONTACTS)
over_robots = pytest.mark.parametrize('name', ['mini_cheetah', 'go2'])


def make(contact: str, name: str = 'mini_cheetah', **options: Any) -> Any:
    """A simulator with everything that has a memory: latency, noise, friction."""
    import quad_dynamics as qd

    model = robots.quadruped(name)
    given = {'latency': 2.5e-3, 'sensors': qd.SensorSettings.typical(), 'mu': 0.4, 'restitution': 0.2}
    sim = qd.Simulator(model, contact=contact, **(given | options))
    q = sim.q
    q[2] += 0.02
    q[3:7] = robots.quaternion_about([0.6, 0.0, 0.8], 0.1)
    sim.reset(q, np.linspace(-0.5, 0.5, model.nv))
    return sim


def drive(sim: Any, first: int, last: int) -> bytes:
    """Steps with commands, pushes and sensor feedback; returns a digest of all that can be seen."""
    digest = hashlib.sha256()
    for k in range(first, last):
        readings = sim.sensors()
        if k % 3 == 0:
            wave = 0.05 * np.sin(0.1 * k + np.arange(sim.model.nj))
            tau = 0.01 * readings.joint_velocity
            sim.command(tau=tau, q=sim.model.standing[7:] + wave, kp=60.0, kd=2.0)
        if k % 40 == 10:
            sim.apply_force('FL_foot', np.array([3.0, -2.0, 1.0, 0.1, 0.2, 0.3]), 0.0153)
        sim.step()
        parts = [sim.q, sim.u, sim.tau, sim.acceleration, sim.foot_forces, sim.contact_forces]
        parts += [np.array([sim.time, sim.sweeps, sim.residual, sim.substeps])]
        parts += [np.asarray(value) for value in vars(readings).values()]
        for part in parts:
            digest.update(np.ascontiguousarray(part, dtype=float).tobytes())
    return digest.digest()


@over_contacts
@over_robots
def test_two_simulators(contact: str, name: str) -> None:
    assert drive(make(contact, name), 0, 200) == drive(make(contact, name), 0, 200)


@over_contacts
def test_reset_forgets_everything(contact: str) -> None:
    sim = make(contact)
    q, u = sim.q, sim.u
    first = drive(sim, 0, 120)
    sim.reset(q, u)
    assert sim.time == 0.0
    assert drive(sim, 0, 120) == first


def digest_elsewhere(contact: str, **environment: str) -> str:
    """What drive gives in a new process."""
    folder = Path(__file__).parent
    paths = [str(folder), str(folder.parent / 'helpers')]
    script = (
        f'import sys; sys.path[:0] = {paths!r}\n'
        'from test_simulator_determinism import drive, make\n'
        f'print(drive(make({contact!r}), 0, 150).hex())\n'
    )
    found = subprocess.run(
        [sys.executable, '-c', script],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@over_contacts
@pytest.mark.slow
def test_another_process(contact: str) -> None:
    assert digest_elsewhere(contact) == drive(make(contact), 0, 150).hex()


@pytest.mark.slow
def test_compiled_and_loaded_kernels_agree(tmp_path: Path) -> None:
    """The process that compiles a kernel runs the very code that later ones load."""
    folder = str(tmp_path / 'kernels')
    first = digest_elsewhere('impulse', QUAD_DYNAMICS_CACHE_DIR=folder)
    assert first == digest_elsewhere('impulse', QUAD_DYNAMICS_CACHE_DIR=folder)


@over_contacts
@over_robots
@pytest.mark.parametrize('middle', [0, 1, 12, 53, 117])  # 12 and 53 while a push acts
def test_snapshot_in_the_middle(contact: str, name: str, middle: int) -> None:
    """What follows is the same, in the same simulator, in a new one, and twice from the same bytes."""
    sim = make(contact, name)
    drive(sim, 0, middle)
    kept = sim.snapshot()
    assert isinstance(kept, bytes)
    rest = drive(sim, middle, 160)
    sim.restore(kept)
    assert drive(sim, middle, 160) == rest
    other = make(contact, name)
    drive(other, 0, 7)
    other.restore(kept)
    assert other.snapshot() == kept
    assert drive(other, middle, 160) == rest


@over_contacts
def test_snapshot_keeps_the_seed(contact: str) -> None:
    sim = make(contact)
    sim.reset(seed=5)
    drive(sim, 0, 20)
    kept = sim.snapshot()
    rest = drive(sim, 20, 60)
    other = make(contact)
    other.restore(kept)
    assert drive(other, 20, 60) == rest


@over_contacts
def test_taking_a_snapshot_changes_nothing(contact: str) -> None:
    plain, watched = make(contact), make(contact)
    drive(plain, 0, 60)
    for k in range(60):
        watched.snapshot()
        drive(watched, k, k + 1)
    assert watched.snapshot() == plain.snapshot()


def test_seeds_differ(qd: Any) -> None:
    """The seed is of the noise alone: another one, other readings and the same motion."""
    sim = qd.Simulator(robots.quadruped('mini_cheetah'), sensors=qd.SensorSettings.typical(), seed=1)
    readings = []
    for seed in (1, 2, None):
        sim.reset(seed=seed)
        for _ in range(5):
            sim.step()
        readings.append((sim.q, sim.sensors().joint_position, sim.truth().joint_position))
    assert np.array_equal(readings[0][0], readings[1][0])
    assert not np.array_equal(readings[0][1], readings[1][1])
    assert np.array_equal(readings[0][1], readings[2][1])  # None: the seed of the settings
    assert np.array_equal(readings[0][2], readings[1][2])


def test_readings_do_not_depend_on_who_reads(qd: Any) -> None:
    """Reading twice, or not at all, changes neither later readings nor the motion."""
    first, second = make('impulse'), make('impulse')
    for k in range(30):
        first.step()
        second.step()
        first.sensors()
        if k % 7 == 0:
            first.sensors()
    a, b = first.sensors(), second.sensors()
    for name, value in vars(a).items():
        assert np.array_equal(value, getattr(b, name)), name
    assert np.array_equal(first.q, second.q)


@over_contacts
def test_set_state_goes_on(contact: str) -> None:
    """set_state to the very state changes nothing that moves on; to another one, it is there."""
    sim = make(contact)
    drive(sim, 0, 50)
    time, q = sim.time, sim.q
    q[2] += 0.1
    sim.set_state(q=q)
    assert sim.time == time
    assert np.allclose(sim.q, q, rtol=0.0, atol=1e-15)
    u = np.zeros(sim.model.nv)
    sim.set_state(u=u)
    assert np.array_equal(sim.u, u)
    other = make(contact)
    drive(other, 0, 50)
    other.set_state(q=q, u=u)
    assert drive(other, 50, 80) == drive(sim, 50, 80)


@over_contacts
def test_run_is_stepping(qd: Any, contact: str) -> None:
    """The compiled loop, a controller and single steps go the same way."""
    command = qd.JointCommand(q=robots.quadruped('mini_cheetah').standing[7:], kp=60.0, kd=2.0)
    ends = []
    for way in ('steps', 'loop', 'controller', 'parts'):
        sim = make(contact)
        if way == 'steps':
            sim.command(q=command.q, kp=60.0, kd=2.0)
            for _ in range(100):
                sim.step()
        elif way == 'parts':
            sim.run(command, 0.037)
            sim.run(None, 0.063)
        else:
            log = sim.run(command if way == 'loop' else lambda _: command, 0.1, log_every=10)
            assert np.array_equal(log.q[-1], sim.q)
            assert np.array_equal(log.u[-1], sim.u)
            assert len(log.time) == 10
            assert np.allclose(log.time, np.arange(1, 11) * 0.01, rtol=1e-12)
        ends.append(sim.snapshot())
    assert len(set(ends)) == 1, [hashlib.sha256(end).hexdigest()[:8] for end in ends]


@pytest.mark.parametrize('height_map', [False, True], ids=['boxes', 'and_a_height_map'])
def test_a_run_among_many_boxes_ends_as_its_steps(qd: Any, height_map: bool) -> None:
    """In a run, points far from the ground are not looked at; at its end, all distances are exact."""
    places = [(0.3 * i, 0.3 * j, 0.02 * (i + 2 * j) % 0.05) for i in range(-2, 3) for j in range(-2, 3)]
    boxes = [{'shape': 'box', 'size': [0.25, 0.25, 0.1], 'position': list(place)} for place in places]
    heights = 0.02 * np.random.default_rng(3).random((20, 20))
    bumps = [{'shape': 'height_map', 'heights': heights, 'spacing': 0.1}] if height_map else []
    ends = []
    for way in ('run', 'steps'):
        sim = make('impulse', terrain=['flat', *bumps, *boxes])
        q = sim.q
        q[2], q[3:7] = q[2] + 0.4, robots.quaternion_about([1.0, 0.0, 0.0], 2.5)
        sim.reset(q)
        if way == 'run':
            sim.run(None, 0.5)
        else:
            touched, farthest = False, 0.0
            for _ in range(500):
                before = sim.q
                sim.step()
                touched |= bool(sim.contact_forces.any())
                farthest = max(farthest, sim.contact_distances.max())
            assert np.allclose(sim.contact_distances, sim.distances(before)[0], atol=1e-12)
            assert touched
            assert farthest > 0.3
        ends.append(sim.snapshot())
    assert ends[0] == ends[1]


def test_set_state_forgets_what_the_solver_learned(qd: Any) -> None:
    """After set_state, what follows depends on the state alone, not on which sweeps were harmful before."""
    sim, other = (qd.Simulator(robots.quadruped('anymal_c')) for _ in range(2))
    for history in (sim, other):
        history.set_state(u=np.full(sim.model.nv, 0.1))
    q, u = sim.q, sim.u
    sim._scene.counters['skips'], sim._scene.counters['refined'] = 5, 1e-9
    sim.set_state(q, u)
    assert sim.snapshot() == other.snapshot()


@pytest.mark.parametrize('seed', [0], ids=['seed0'])
def test_a_snapshot_keeps_what_the_solver_learned(qd: Any, seed: int) -> None:
    """A limp fall, continued from a step in which sweeps are being skipped."""
    sim, other = (qd.Simulator(robots.quadruped('anymal_c')) for _ in range(2))
    rng = np.random.default_rng(seed)
    q = sim.q
    q[2], q[3:7] = q[2] + 0.3, robots.quaternion_about([0.6, 0.8, 0.0], rng.uniform(1.0, 3.0))
    sim.reset(q)
    for _ in range(2000):
        sim.step()
        if sim._scene.counters['skips'] == 6:
            break
    else:
        pytest.fail('no sweeps were harmful')
    other.restore(sim.snapshot())
    for _ in range(200):
        sim.step()
        other.step()
    assert sim.snapshot() == other.snapshot()


def test_what_is_handed_out_is_a_copy(qd: Any) -> None:
    sim = make('impulse')
    drive(sim, 0, 20)
    before = sim.snapshot()
    for name in ('q', 'u', 'tau', 'acceleration', 'foot_forces', 'contact_forces', 'contact_distances'):
        array = getattr(sim, name)
        if array.flags.writeable:
            array[...] = 123.0
    assert sim.snapshot() == before
