# SPDX-License-Identifier: Apache-2.0
"""Normal equations of a long log, accumulated and solved: speed against Pinocchio's regressor, and memory.

Everything runs in new processes, so that memory is that of the job alone.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio

import quad_dynamics as qd
from quad_dynamics.identification.blas_threads import single_threaded_blas
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.equations.samples import CHUNK, Samples
from quad_dynamics.identification.solvers.consistent import solve_consistent
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.solvers.solve import solve

SAMPLES = (10_000, 1_000_000)
PEER_SAMPLES = 20_000
FOLDS = 8  # of cross-validation
KINDS = ('viscous', 'coulomb')
_PRIOR = 1e-2  # weight


def measure() -> dict[str, float]:
    """Ratio of samples per second, samples per second of both, and growth of memory (ratio)."""
    few, many = (_in_a_process('ours', count) for count in SAMPLES)
    peer = _in_a_process('peer', PEER_SAMPLES)
    return {
        'identification': many['samples_per_s'] / peer['samples_per_s'],
        'identification_samples_per_s': many['samples_per_s'],
        'identification_peer_samples_per_s': peer['samples_per_s'],
        'identification_memory_growth': many['memory_mib'] / few['memory_mib'],
        'identification_memory_mib': many['memory_mib'],
        'identification_solve_s': _in_a_process('whole', SAMPLES[0])['seconds'],
    }


def _in_a_process(who: str, count: int) -> dict[str, float]:
    command = [sys.executable, '-m', 'benchmarks.identification', who, str(count)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def _states(model: Any, count: int, seed: int) -> tuple[Any, ...]:
    """Random configurations, velocities, accelerations and torques."""
    rng = np.random.default_rng(seed)
    q = np.tile(model.neutral, (count, 1))
    q[:, 3:7] = rng.normal(size=(count, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 7:] = rng.uniform(-1.0, 1.0, (count, model.nj))
    u, du = rng.normal(size=(2, count, model.nv))
    return q, u, du, rng.normal(size=(count, model.nj))


def _equations(count: int, kinds: Sequence[str] | None) -> Equations:
    """Equations of a flying robot with 13 links."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model('mini_cheetah')
    samples = Samples(model)
    for seed, begin in enumerate(range(0, count, CHUNK)):
        n = min(CHUNK, count - begin)
        q, u, du, tau = _states(model, n, seed)
        nothing = np.zeros((n, 4))
        samples.append(
            samples.layout.join(
                time=2e-3 * (begin + np.arange(n)),
                segment=np.zeros(n),
                q=q,
                u=u,
                du=du,
                tau=tau,
                sign=np.sign(u[:, 6:]),
                use=np.ones((n, model.nj)),
                force=np.zeros((n, 12)),
                stance=nothing,
            )
        )
    columns = make_columns(model)
    return Equations(samples, columns, 'forces', first_noise(columns, False), kinds)


def run_whole(count: int) -> float:
    """Seconds for everything after the sums: cross-validation, the solution and its intervals.

    As in `qd.identify`, BLAS uses one thread, because its matrices are small.
    """
    equations = _equations(count, None)
    folds = equations.accumulate(FOLDS)
    with single_threaded_blas():
        start = time.perf_counter()
        solve(folds, equations, equations.columns, make_freedom(equations.columns))
        return time.perf_counter() - start


def run_ours(count: int) -> float:
    """Seconds for sums and a physically consistent solution."""
    equations = _equations(count, KINDS)
    columns = equations.columns
    freedom = make_freedom(columns, ('inertia', 'friction'))
    start = time.perf_counter()
    (total,) = equations.accumulate()
    solve_consistent(total, freedom, _PRIOR, friction_scales(columns))
    return time.perf_counter() - start


def run_peer(count: int) -> float:
    """Seconds for the same sums without friction, in a loop over Pinocchio's regressor, and least squares."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model('mini_cheetah')
    robot = pinocchio.buildModelFromXML(model.to_urdf(), pinocchio.JointModelFreeFlyer())
    data = robot.createData()
    q, u, du, joints = _states(model, count, 0)
    tau = np.concatenate([np.zeros((count, 6)), joints], axis=1)
    p = 10 * (robot.njoints - 1)
    start = time.perf_counter()
    YtY, Yty = np.zeros((p, p)), np.zeros(p)
    for i in range(count):
        Y = pinocchio.computeJointTorqueRegressor(robot, data, q[i], u[i], du[i])
        YtY += Y.T @ Y
        Yty += Y.T @ tau[i]
    np.linalg.lstsq(YtY, Yty, rcond=None)
    return time.perf_counter() - start


def main() -> None:
    """Run one job, and print its measurements as JSON."""
    who, count = sys.argv[1], int(sys.argv[2])
    run = {'ours': run_ours, 'peer': run_peer, 'whole': run_whole}[who]
    run(1000)  # compiles, and loads libraries
    seconds = run(count)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({'samples_per_s': count / seconds, 'seconds': seconds, 'memory_mib': memory}))


if __name__ == '__main__':
    main()
