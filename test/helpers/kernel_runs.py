# SPDX-License-Identifier: Apache-2.0
"""Calls that run every kernel on small robots; compiled, or interpreted where that is asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import simple_robots as simple
import whole_body_problems as whole
from cases import Case, load, model_of
from identification_data import make_samples
from public_calls import CALLS, call, good_arguments, parts
from random_trees import random_tree

import quad_dynamics as qd
from quad_dynamics.api.contact import contact_propagators
from quad_dynamics.api.factorization import factorize, solve_all
from quad_dynamics.compiler.interpreter import INTERPRETED, UNWRITTEN
from quad_dynamics.compiler.registry import KERNELS
from quad_dynamics.control.robot_view import Viewer
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.whole_body import WholeBodyControl
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise

Run = Callable[[], Any]


def robots() -> dict[str, Any]:
    """Small robots of every kind: bases, rotors, sliding joints, branches, no joint at all."""
    return {
        'go2': model_of(Case('go2', True)),
        'mini_cheetah': load('mini_cheetah'),
        'two_link_arm': load('two_link_arm'),
        'floating_tree': load(random_tree(1, joints=7).urdf, floating_base=True),
        'fixed_tree': load(random_tree(3, joints=5).urdf, floating_base=False),
        'cart': simple.cart(),
    }


def fresh(model: Any) -> Any:
    """The same robot with a workspace that nothing was written to."""
    return model.with_gravity(model.gravity)


def dynamics() -> Iterator[tuple[str, Run]]:
    """All public functions of states, on all robots; single and in a batch."""
    for robot, model in robots().items():
        arguments = good_arguments(model)
        for name in CALLS:
            yield f'{robot}/{name}', lambda m=model, n=name, a=arguments: call(qd, fresh(m), n, a[n])
        far = dict(arguments['forward_dynamics:aba'])
        far['q'] = far['q'].copy()
        far['q'][-1] = 2e5  # beyond the range of our own sine
        yield f'{robot}/far', lambda m=model, a=far: qd.forward_dynamics(fresh(m), **a)
        state = arguments['inverse_dynamics']
        batch = {key: np.array([value, value, value]) for key, value in state.items()}
        yield f'{robot}/batch', lambda m=model, a=batch: qd.inverse_dynamics(fresh(m), **a)
        tau = np.ones((3, model.nv))
        yield f'{robot}/accumulate', lambda m=model, a=batch, t=tau: sums(fresh(m), a, t)
        yield f'{robot}/propagators', lambda m=model, q=state['q']: propagators(fresh(m), q)


def propagators(model: Any, q: np.ndarray) -> Any:
    """How forces travel."""
    found = contact_propagators(model, q)
    return tuple(getattr(found, name) for name in ('S', 'U', 'd_inv', 'Q', 'W'))


def sums(model: Any, state: dict[str, Any], tau: np.ndarray) -> Any:
    """Normal equations of a few samples."""
    weights = np.linspace(0.0, 1.0, model.nv)
    found = qd.accumulate_regressor(model, **state, tau=tau, friction=True, rotors=True, weights=weights)
    return found.YtY, found.Yty, found.yty


def algebra() -> Iterator[tuple[str, Run]]:
    """Factorizations, and the distance to the ground."""
    rng = np.random.default_rng(1)
    B = rng.normal(size=(5, 5))
    good, bad = B @ B.T, B + B.T
    yield 'factorize', lambda: factorize(good).solve(np.ones((5, 2)))
    yield 'solve_all', lambda: solve_all(np.array([good, good]), np.ones((2, 5)))
    yield 'solve_indefinite', lambda: solve_all(bad, np.ones(5))
    for shape in ('flat', 'stairs'):
        p = rng.uniform(-1.0, 1.0, (6, 3))
        yield f'terrain/{shape}', lambda s=shape, p=p: qd.Terrain.load(s).distance(p, 0.02)


def controllers() -> Iterator[tuple[str, Run]]:
    """Whole-body control with some feet in the air."""
    for name in ('go2', 'mini_cheetah'):
        model = whole.robot(name)
        for feet in ('diagonal', 'three', 'all'):
            yield f'whole_body/{name}/{feet}', lambda m=model, n=name, f=feet: whole_body(m, n, f)


def whole_body(model: Any, name: str, feet: str) -> Any:
    """Solution, and the motion of the feet."""
    rng = np.random.default_rng(3)
    q, u = whole.state(model, rng)
    tasks = whole.random_tasks(model, rng, whole.FEET[feet])
    solution = whole.solve(qd, name, q, u, tasks, WholeBodyControl(model))
    view = Viewer(model).view(RobotState(0.0, q, u, None, np.zeros(model.nj)))
    return solution.tau, solution.du, solution.forces, np.array(view.motions)


def equations() -> Iterator[tuple[str, Run]]:
    """Whitened equations, plain and robust, and scores."""
    for name, mode in (('mini_cheetah', 'forces'), ('mini_cheetah', 'projection'), ('two_link_arm', 'fixed')):
        yield f'equations/{name}/{mode}', lambda n=name, m=mode: whitened(n, m)


def whitened(name: str, mode: str) -> Any:
    """Sums over few samples."""
    model = load(name)
    samples, x = make_samples(model, 1, seconds=4.0, feet=mode == 'forces')
    columns = make_columns(model)
    made = Equations(samples, columns, mode, first_noise(columns, mode == 'projection'))
    rows = made._gather(samples.all()[:2])
    return made._sums.add(rows, None), made._sums.add(rows, x), made._sums.scores(rows, x, 1.1 * x)


SIMULATIONS: dict[str, dict[str, Any]] = {
    'impulse': {},
    'pyramid': {'friction': 'pyramid', 'restitution': 0.3, 'latency': 2.5e-3},
    'cholesky': {'forward_dynamics': 'cholesky'},
    'stairs': {'terrain': 'stairs', 'mu': 0.4},
    'springs': {'contact': 'spring_damper'},
    'euler_springs': {'contact': 'spring_damper', 'substeps': 4},
    'rk4': {'contact': 'none', 'integrator': 'rk4', 'joint_friction': 'explicit'},
    'no_contact': {'contact': 'none'},
}


def simulations() -> Iterator[tuple[str, Run]]:
    """Few steps of every kind: on the ground, and after a fall onto it."""
    for robot, model in robots().items():
        for kind, settings in SIMULATIONS.items():
            if kind in ('no_contact', 'rk4') or model.floating_base:
                yield f'sim/{robot}/{kind}', lambda m=model, s=settings: simulate(m, s)


def simulate(model: Any, settings: dict[str, Any]) -> Any:
    """A robot that is commanded, pushed and logged."""
    sim = qd.Simulator(model, **settings)
    nj = model.nj
    if model.floating_base:
        sim.reset(sim.q, np.r_[0.3, 0.2, -1.0, 0.5, 0.0, 0.3, np.linspace(-1.0, 1.0, nj)])
    sim.apply_force(model.body_names[-1], np.array([3.0, -2.0, 1.0, 0.1, 0.2, 0.3]), 2.5e-3)
    sim.command(tau=np.full(nj, 0.1), q=sim.q[-nj:] if nj else np.zeros(0), kp=20.0, kd=0.5)
    sim.step()
    sim.step(np.linspace(-0.5, 0.5, nj))
    log = sim.run(None, 2 * sim.settings.dt, progress=False)
    return sim.q, sim.u, sim.tau, sim.acceleration, sim.contact_forces, log.q, log.u


def runs() -> Iterator[tuple[str, Run]]:
    """Everything."""
    for part in (algebra, dynamics, controllers, equations, simulations):
        yield from part()


def results(only: str = '') -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All results by name, and the reports of what failed."""
    found, failed = {}, {}
    for name, run in runs():
        if not name.startswith(only):
            continue
        try:
            values = parts(run())
        except Exception:
            failed[name] = traceback.format_exc()
            continue
        for k, value in enumerate(values):
            found[f'{name}/{k}'] = value
            if INTERPRETED and value.dtype == np.float64 and np.any(value.view(np.int64) == UNWRITTEN):
                failed[name] = f'part {k} of the result is not written everywhere'
    return found, failed


def kernels_that_ran() -> set[str]:
    """Names of the kernels that were used."""
    return {name for name, kernel in KERNELS.items() if kernel.run != kernel._load_and_run}


def save(file: str | Path, only: str) -> None:
    """Write all results to a file, and print the reports of what failed."""
    numbers, reports = results(only)
    for name, report in reports.items():
        print(f'{name}:\n{report}')
    np.savez(file, **numbers, failed=sorted(reports))
