# SPDX-License-Identifier: Apache-2.0
"""Several threads on one model, and several simulators in threads: the same bits as one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from cases import SOME, Case, model_of
from public_calls import CALLS, STATES, call, good_arguments, parts

THREADS = 4
ROUNDS = 6
# More than `MANY_STATES` of quad_dynamics.api.validation: such batches give the interpreter's lock away.
STATES_OF_A_BATCH = 100


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Results of jobs that start together, each in a thread of its own."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def batch(model: Any, name: str, seed: int) -> dict[str, Any]:
    """Arguments of a call for a batch of different states."""
    singles = [good_arguments(model, seed + k)[name] for k in range(5)]
    arguments = dict(singles[0])
    for key in set(arguments) & set(STATES):
        rows = [singles[k % len(singles)][key] for k in range(STATES_OF_A_BATCH)]
        arguments[key] = np.array(rows)
    return arguments


def bits(result: Any) -> list[bytes]:
    return [part.tobytes() for part in parts(result)]


@pytest.mark.parametrize('name', CALLS)
@pytest.mark.parametrize('case', [SOME[0], SOME[1]], ids=str)
def test_batches_in_threads(qd: Any, case: Case, name: str) -> None:
    """Batches beside batches and beside single states, all on one model."""
    model = model_of(case)
    together = [batch(model, name, 100 * k) for k in range(THREADS)]
    single = good_arguments(model, 7)[name]
    every = [*together, single]
    expected = [bits(call(qd, model, name, arguments)) for arguments in every]

    def job(arguments: dict[str, Any]) -> Callable[[], list[list[bytes]]]:
        return lambda: [bits(call(qd, model, name, arguments)) for _ in range(ROUNDS)]

    for found, wanted in zip(at_once([job(arguments) for arguments in every]), expected, strict=True):
        assert found == [wanted] * ROUNDS


def test_a_batch_lets_other_threads_go_on(qd: Any) -> None:
    """While a long batch is computed, Python code of another thread runs."""
    model = robots.quadruped('go2')
    q = np.tile(model.neutral, (60_000, 1))
    u = np.zeros((len(q), model.nv))
    start = time.perf_counter()
    qd.forward_dynamics(model, q, u, u)
    alone = time.perf_counter() - start
    done, ticks = threading.Event(), 0

    def work() -> None:
        qd.forward_dynamics(model, q, u, u)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(alone / 100.0)
    thread.join()
    assert ticks > 10  # with the lock held, it would be two: before and after


def test_arenas_are_used_again(qd: Any) -> None:
    """A batch takes a free one, so that their number does not grow with the calls."""
    model = robots.quadruped('go2').with_gravity([0.0, 0.0, -9.0])
    q = np.tile(model.neutral, (STATES_OF_A_BATCH, 1))
    for _ in range(5):
        qd.mass_matrix(model, q)
    assert len(model._packed._free) == 1
    at_once([lambda: [qd.mass_matrix(model, q) for _ in range(20)]] * 40)
    assert 1 <= len(model._packed._free) <= 16


def test_a_model_does_not_change(qd: Any) -> None:
    """Of the arena, single calls change the workspace; whatever stands in it, results are the same."""
    model = robots.quadruped('go2')
    arguments = good_arguments(model)
    before = {name: bits(call(qd, model, name, arguments[name])) for name in CALLS}
    after = {name: bits(call(qd, model, name, arguments[name])) for name in reversed(CALLS)}
    assert before == {name: after[name] for name in CALLS}


def fall(contact: str, seed: int) -> Any:
    """A simulator with a state of its own."""
    import quad_dynamics as qd

    model = robots.quadruped('mini_cheetah')
    sim = qd.Simulator(model, contact=contact, mu=0.4)
    q = sim.q
    q[2] += 0.02
    q[3:7] = robots.quaternion_about([0.6, 0.0, 0.8], 0.02 * seed)
    sim.reset(q, np.linspace(-0.5, 0.5, model.nv))
    return sim


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
def test_simulators_in_threads(contact: str) -> None:
    def job(seed: int) -> Callable[[], tuple[bytes, bytes]]:
        def run() -> tuple[bytes, bytes]:
            sim = fall(contact, seed)
            log = sim.run(None, 0.3, progress=False)
            for _ in range(20):
                sim.step()
            return sim.snapshot(), log.q.tobytes()

        return run

    jobs = [job(seed) for seed in range(THREADS)]
    assert at_once(jobs) == [one() for one in jobs]


def test_a_controller_may_use_other_threads() -> None:
    """Callbacks run with the interpreter's lock, and may wait for a thread that simulates."""
    outer, inner = fall('impulse', 1), fall('impulse', 2)
    expected = fall('impulse', 2)
    expected.run(None, 1.0, progress=False)

    def controller(_: Any) -> None:
        thread = threading.Thread(target=lambda: inner.run(None, 0.1, progress=False))
        thread.start()
        thread.join()

    outer.run(controller, 10 * outer.settings.dt, progress=False)
    assert np.array_equal(inner.q, expected.q)
    assert inner.step_count == expected.step_count


def test_one_simulator_in_two_threads() -> None:
    """Steps, commands and forces of another thread wait; nothing is lost and nothing breaks."""
    sim = fall('impulse', 3)
    steps = 40

    def step() -> None:
        for _ in range(steps):
            sim.step()
            sim.command(tau=np.zeros(sim.model.nj))
            sim.apply_force('FL_foot', np.zeros(6), sim.settings.dt)
            time.sleep(1e-3)

    before = sim.step_count
    at_once([lambda: sim.run(None, 0.5, progress=False), step])
    assert sim.step_count == before + steps + round(0.5 / sim.settings.dt)


def test_one_run_at_a_time(qd: Any) -> None:
    sim = fall('impulse', 3)
    thread = threading.Thread(target=lambda: sim.run(None, 2.0, progress=False))
    thread.start()
    while not sim._running.locked() and thread.is_alive():
        time.sleep(1e-4)
    with pytest.raises(qd.ArgumentError, match='run was called'):
        sim.run(None, 0.1, progress=False)
    thread.join()
    assert len(sim.run(None, 0.1, progress=False)) == round(0.1 / sim.settings.dt)
