# SPDX-License-Identifier: Apache-2.0
"""`forward_dynamics='cholesky'`: the same motion as with articulated bodies, and LDLT where LLT fails."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import SOME, TREES, Case, load, model_of

AGREEMENT = 1e-9  # of q and u after one step [m, rad, m/s, rad/s]
GO2, MINI_CHEETAH = Case('go2', True), 'mini_cheetah'
METHODS = ('aba', 'cholesky')


@functools.cache
def robot(name: str) -> Any:
    """One of the two quadrupeds."""
    return model_of(GO2) if name == 'go2' else load(MINI_CHEETAH)


class Pair:
    """Two simulators that differ in `forward_dynamics` alone."""

    def __init__(self, model: Any, **settings: Any) -> None:
        from quad_dynamics import Simulator

        self.aba, self.cholesky = (Simulator(model, forward_dynamics=name, **settings) for name in METHODS)
        self.sensitive = 0  # steps that rounding decides
        self.stopped = False  # whether a joint has reached its limit

    def step(self) -> float:
        """One step of both from the complete state of the first; returns by how much they then differ."""
        self.cholesky._scene.state[:] = self.aba._scene.state
        self.aba.step()
        self.cholesky.step()
        return difference(self.aba, self.cholesky)

    def run(self, steps: int) -> list[int]:
        """Advance both; returns the steps in which they differ, though rounding does not decide them."""
        differs = []
        for k in range(steps):
            before = self.aba._scene.state.copy()
            if self.step() > AGREEMENT:
                self.sensitive += 1
                if not is_sensitive(self.aba, before):
                    differs.append(k)
            self.stopped |= bool(np.any(self.aba._scene.joint_memory['limit_impulse']))
        return differs


def difference(one: Any, other: Any) -> float:
    """Largest difference of q and u."""
    return max(float(np.abs(one.q - other.q).max()), float(np.abs(one.u - other.u).max()))


def is_sensitive(sim: Any, before: np.ndarray) -> bool:
    """Whether rounding decides the step, whatever the method: velocities that differ by 1e-12 change it.

    The impulses of a body that lies on many points are not unique, and which of them is found depends on the
    last bits; so does whether a joint at the limit of its friction sticks. The simulator is then back in the
    state in which it came.
    """
    after, u = sim._scene.state.copy(), sim.u
    rng, found = np.random.default_rng(0), False
    for scale in (1e-15, 3e-14, 1e-12) * 20:
        sim._scene.state[:] = before
        sim._scene.u[:] += rng.normal(scale=scale, size=len(u))
        sim.step()
        found |= float(np.abs(sim.u - u).max()) > 0.1 * AGREEMENT
    sim._scene.state[:] = after
    return found


def stand(pair: Pair) -> None:
    """Let the drives hold the standing pose."""
    pair.aba.command(q=pair.aba.standing()[7:], kp=100.0, kd=3.0)


def push(pair: Pair) -> None:
    """The same, and a push from the side and from below."""
    stand(pair)
    pair.aba.apply_force(pair.aba.model.base_name, [60.0, 80.0, 30.0, 0.0, 4.0, 1.0], 0.1)


def tumble(pair: Pair) -> None:
    """A fall onto the side, with joints that are held."""
    q = pair.aba.standing()
    q[2] += 0.3
    q[3:7] = np.sin(0.6), 0.0, 0.0, np.cos(0.6)
    pair.aba.reset(q)
    stand(pair)


def collapse(pair: Pair) -> None:
    """Motors without torque: it ends on body, knees and joint limits."""


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('start', [stand, push, tumble, collapse])
@pytest.mark.parametrize('name', [MINI_CHEETAH, 'go2'])
def test_quadruped_moves_alike(name: str, start: Callable[[Pair], None], contact: str) -> None:
    pair = Pair(robot(name), contact=contact)
    start(pair)
    assert pair.run(600) == []
    assert pair.sensitive <= 2
    assert pair.cholesky.ldlt_steps == 0
    assert pair.stopped == (start is collapse)


@pytest.mark.parametrize('name', [MINI_CHEETAH, 'go2'])
def test_runs_stay_together(name: str) -> None:
    """A whole run on its own, with a push: what rounding leaves does not grow while it stands."""
    pair = Pair(robot(name))
    for sim in (pair.aba, pair.cholesky):
        sim.command(q=sim.standing()[7:], kp=100.0, kd=3.0)
        sim.run(None, 0.2, progress=False)
        sim.apply_force(sim.model.base_name, [0.0, 40.0, 0.0, 0.0, 0.0, 0.0], 0.1)
        sim.run(None, 0.8, progress=False)
    assert difference(pair.aba, pair.cholesky) < AGREEMENT
    assert np.abs(pair.aba.foot_forces - pair.cholesky.foot_forces).max() < 1e-6


@pytest.mark.parametrize(
    'settings',
    [
        {'joint_friction': 'explicit'},
        {'friction': 'pyramid', 'restitution': 0.6},
        {'correction': 0.0},
        {'terrain': 'rough', 'dt': 2e-3},
        {'latency': 2.5e-3, 'substeps': 3, 'contact': 'spring_damper'},
    ],
    ids=str,
)
def test_settings_work_with_both(settings: dict[str, Any]) -> None:
    pair = Pair(robot(MINI_CHEETAH), **settings)
    tumble(pair)
    assert pair.run(300) == []


@pytest.mark.parametrize('integrator', ['semi_implicit', 'rk4'])
@pytest.mark.parametrize('case', [*SOME[:5], *TREES[:10]], ids=str)
def test_any_robot_moves_alike(case: Case, integrator: str) -> None:
    """Trees of up to 40 joints, prismatic ones too, fixed and floating."""
    model = model_of(case)
    settings = {'contact': 'none', 'joint_friction': 'none', 'joint_limits': integrator != 'rk4'}
    pair = Pair(model, integrator=integrator, dt=1e-4, **settings)
    rng = np.random.default_rng(1)
    pair.aba.set_state(u=rng.normal(size=model.nv))
    pair.aba.command(tau=rng.normal(size=model.nj))
    pair.aba.apply_force(model.body_names[-1], rng.normal(size=6), 1.0)
    for _ in range(20):
        scale = 1.0 + float(np.abs(pair.aba.acceleration).max()) * 1e-4
        assert pair.step() < AGREEMENT * scale


# ---------------------------------------------------------------- LDLT


def impossible(qd: Any, factor: float = -5.0) -> Any:
    """A mini_cheetah whose last calf has a negative mass: M is indefinite, and regular."""
    model = robot(MINI_CHEETAH)
    pi = model.pi.copy()
    pi[-10:] *= factor
    model = model.with_pi(pi, check=False)
    values = np.linalg.eigvalsh(qd.mass_matrix(model, model.standing))
    assert values[0] < 0.0
    assert np.abs(values).min() > 1e-4
    return model


def test_ldlt_where_llt_fails(qd: Any) -> None:
    """In free fall, with random velocities: as ABA, as NumPy, and counted."""
    model = impossible(qd)
    settings = {'joint_friction': 'none', 'motor_limits': False, 'momentum_correction': False}
    pair = Pair(model, contact='none', **settings)
    rng = np.random.default_rng(0)
    pair.aba.set_state(u=rng.normal(size=model.nv))
    tau = rng.normal(size=model.nj)
    pair.aba.command(tau=tau)
    for k in range(1, 51):
        q, u = pair.aba.q, pair.aba.u
        assert pair.step() < AGREEMENT
        forces = np.concatenate([np.zeros(6), tau]) - qd.nonlinear_effects(model, q, u)
        du = np.linalg.solve(qd.mass_matrix(model, q), forces)
        assert np.abs(pair.cholesky.u - u - 1e-3 * du).max() < AGREEMENT
        assert pair.cholesky.ldlt_steps == 1
        assert pair.aba.ldlt_steps == 0
        assert pair.aba.step_count == k


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('friction', ['stick', 'none'])
def test_ldlt_with_contacts(qd: Any, contact: str, friction: str) -> None:
    """M du = tau - h + J^T f holds with the forces that the contacts report; f pushes, within its cone."""
    model = impossible(qd)
    settings = {'contact': contact, 'joint_friction': friction, 'substeps': 1}
    sim = qd.Simulator(model, forward_dynamics='cholesky', **settings)
    sim.command(q=sim.q[7:], kp=20.0, kd=1.0)
    touched = 0
    for k in range(1, 31):
        q, u = sim.q, sim.u
        sim.step()
        assert sim.ldlt_steps == k or friction == 'stick'  # a calf that is stuck cannot turn the wrong way
        f = sim.contact_forces
        touched += int(np.any(f[:, 2] > 0.0))
        assert np.all(np.linalg.norm(f[:, :2], axis=1) <= 0.5 * f[:, 2] + 1e-9)
        if friction == 'none':
            forces = np.concatenate([np.zeros(6), sim.tau]) - qd.nonlinear_effects(model, q, u)
            forces += sum(jacobian(qd, model, q, p).T @ x for p, x in zip(sim.contact_points, f, strict=True))
            error = qd.mass_matrix(model, q) @ (sim.u - u) / 1e-3 - forces
            assert np.abs(error).max() < 1e-6 * max(1.0, float(np.abs(forces).max()))
    assert touched > 20
    assert sim.ldlt_steps > 10


def jacobian(qd: Any, model: Any, q: np.ndarray, point: Any) -> np.ndarray:
    """(3, nv) of where a contact point touches level ground."""
    R, _ = qd.frame_pose(model, q, point.link)
    x, y, z = R @ np.array(point.position) - [0.0, 0.0, point.radius]
    J = qd.frame_jacobian(model, q, point.link)
    return J[:3] - np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) @ J[3:]


def test_ldlt_is_counted(qd: Any) -> None:
    """In the log for each step; in the simulator since the reset; a snapshot keeps it."""
    sim = qd.Simulator(impossible(qd), contact='none', forward_dynamics='cholesky', joint_friction='none')
    log = sim.run(None, 0.02, progress=False)
    assert log.ldlt.tolist() == [1] * 20
    assert log.ldlt.dtype == np.int64
    assert sim.ldlt_steps == 20
    kept = sim.snapshot()
    sim.reset()
    assert sim.ldlt_steps == 0
    sim.restore(kept)
    assert sim.ldlt_steps == 20
    good = qd.Simulator(robot(MINI_CHEETAH), forward_dynamics='cholesky')
    assert good.run(None, 0.02, progress=False).ldlt.tolist() == [0] * 20


def test_singular_mass_matrix_is_refused(qd: Any) -> None:
    """LDLT cannot help either: the step is refused, and the message says why."""
    model = robot(MINI_CHEETAH).without_rotors()
    pi = model.pi.copy()
    pi[-10:] = 0.0  # a calf of nothing
    sim = qd.Simulator(model.with_pi(pi, check=False), contact='none', forward_dynamics='cholesky')
    before = sim.q
    with pytest.raises(qd.SimulationDiverged, match='mass matrix is not positive definite'):
        sim.step()
    assert np.array_equal(sim.q, before)
    assert sim.ldlt_steps == 0


# ---------------------------------------------------------------- the setting


def test_setting_is_checked(qd: Any) -> None:
    with pytest.raises(qd.ArgumentError, match=r"forward_dynamics is 'llt'; expected .*aba.*cholesky"):
        qd.Simulator(robot(MINI_CHEETAH), forward_dynamics='llt')
    assert 'cholesky' in qd.SimulatorSettings(forward_dynamics='cholesky').to_yaml()


def test_snapshots_are_apart(qd: Any) -> None:
    """A snapshot belongs to its settings, this one included."""
    pair = Pair(robot(MINI_CHEETAH))
    with pytest.raises(qd.ArgumentError, match='settings'):
        pair.aba.restore(pair.cholesky.snapshot())


@pytest.mark.parametrize('method', METHODS)
def test_sweeps_are_within_their_limit(qd: Any, method: str) -> None:
    """The search for stuck joints solves for the contacts many times in a step; no solution takes more."""
    sim = qd.Simulator(robot(MINI_CHEETAH), max_sweeps=1, forward_dynamics=method)
    q = sim.standing()
    q[2] += 0.1
    sim.reset(q)
    log = sim.run(None, 0.5, progress=False)
    assert log.sweeps.max() == 1
    assert log.iterations.max() > 1  # it was not enough in some step, and Newton's method went on
    assert log.converged.all()
