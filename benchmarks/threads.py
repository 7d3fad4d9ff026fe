# SPDX-License-Identifier: Apache-2.0
"""Two threads against one: speed-up for the same work, divided between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import quad_dynamics as qd

STATES = 4000  # of one batch
BATCHES = 8
SIMULATORS = 4
SECONDS = 10.0  # simulated time of each simulator [s]

Jobs = Sequence[Callable[[], object]]


def batched_aba() -> Jobs:
    """Batches of forward dynamics, all on one model."""
    model, rng = qd.load_model('go2'), np.random.default_rng(0)
    q = np.array([qd.random_configuration(model, rng) for _ in range(STATES)])
    u, tau = rng.normal(size=(2, STATES, model.nv))
    return [lambda: qd.forward_dynamics(model, q, u, tau)] * BATCHES


def batched_simulation() -> Jobs:
    """Simulators of one model, each with a robot that falls and stands."""
    model, jobs = qd.load_model('go2'), []
    for k in range(SIMULATORS):
        sim = qd.Simulator(model)
        q = sim.q
        q[2] += 0.02 * k
        gains = {'kp': 60.0, 'kd': 2.0}
        command = qd.JointCommand(q=q[7:], qd=np.zeros(model.nj), **gains)
        jobs.append(_run(sim, q, command))
    return jobs


def _run(sim: qd.Simulator, q: np.ndarray, command: qd.JointCommand) -> Callable[[], object]:
    def run() -> None:
        sim.reset(q)
        sim.run(command, SECONDS, log_every=100, progress=False)

    return run


def measure(rounds: int) -> dict[str, float]:
    """Ratio of the best times of `rounds` with one and with two threads, interleaved."""
    results = {}
    for name, jobs in (('aba_two_threads', batched_aba()), ('sim_two_threads', batched_simulation())):
        times = np.array([[_time(jobs, threads) for threads in (1, 2)] for _ in range(rounds)])
        one, two = times.min(axis=0)
        results[name] = float(one / two)
    return results


def _time(jobs: Jobs, threads: int) -> float:
    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        for future in [pool.submit(job) for job in jobs]:
            future.result()
        return time.perf_counter() - start


if __name__ == '__main__':
    for key, ratio in measure(10).items():
        print(f'{key:20} {ratio:.2f}')
