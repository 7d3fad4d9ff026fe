# SPDX-License-Identifier: Apache-2.0
"""Robots get up from the ground and stand, in closed loop with the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from control_loop import ROBOTS, drive, lying_simulator, robot, state_of
from slow_variants import slow_but

from quad_dynamics.control.damping import Damping
from quad_dynamics.control.gains import default_gains
from quad_dynamics.control.guard import Guard, base_tilt
from quad_dynamics.control.lying import lying_pose
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.stand import StandUp
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.settings import SensorSettings
from quad_dynamics.simulation.simulator import Simulator


def get_up(sim: Any, guard: bool = False, settings: ControlSettings | None = None) -> Any:
    """Three seconds of getting up, with noise."""
    law = StandUp(sim.model, settings)
    law.start(state_of(sim, noisy=True))
    log = drive(sim, law, 3.0, noisy=True, guard=Guard(sim.model, settings) if guard else None)
    assert law.finished
    assert (np.abs(log['tau']) <= sim.model.effort_limit + 1e-9).all()
    return law, log


def assert_stands(sim: Any, height: float) -> None:
    # springs of contact give way by 9 mm below the heaviest; drives by the friction that feet are held with
    assert sim.q[2] == pytest.approx(height, abs=0.01 * height + 5e-3)
    assert np.abs(sim.u).max() < 0.02
    joints = np.abs(sim.q[7:] - sim.model.standing[7:]).max()
    assert joints < 0.06


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('name', slow_but(['mini_cheetah', 'solo12'], ROBOTS))
def test_gets_up_within_three_seconds_and_does_not_drift(name: str, contact: str) -> None:
    sim = lying_simulator(robot(name), contact=contact)
    law, _ = get_up(sim, guard=True)
    assert_stands(sim, sim.model.standing[2])
    before = sim.q
    # the setpoint of a robot that holds hardly changes: the one that is in force stays
    last = law.update(state_of(sim))
    minute = 60.0 if name in ('mini_cheetah', 'anymal_b') else 10.0
    sim.run(JointCommand(last.tau, last.q, last.qd, *default_gains(sim.model)), minute, 1000, progress=False)
    assert np.linalg.norm(sim.q[:3] - before[:3]) < 1e-3


@pytest.mark.parametrize('limit', [0.7, 2.0])
def test_gets_up_within_slow_velocity_limits(limit: float) -> None:
    """Robots with hobby servos: the rise takes as long as the limits of the file require."""
    model = robot('mini_cheetah')._replace(velocity_limit=np.full(12, limit))
    sim = lying_simulator(model, sensors=SensorSettings())
    law, guard = StandUp(model), Guard(model)
    law.start(state_of(sim))
    log = drive(sim, law, 3.0 + 5.0 / limit, guard=guard)
    assert law.finished
    assert_stands(sim, model.standing[2])
    fastest = np.abs(log['u'][:, 6:]).max()
    assert 0.3 * limit < fastest < limit  # it uses them, and does not exceed them


def test_times_follow_from_the_velocity_limits() -> None:
    """The largest velocity of the targets is half of the limit, or the times are those that are set."""
    model, settings = robot('mini_cheetah'), ControlSettings(rise_time=1.5)
    sim = lying_simulator(model)
    state = state_of(sim)
    for limit, bound in ((1.0, True), (15.0, False)):
        law = StandUp(model._replace(velocity_limit=np.full(12, limit)), settings)
        law.start(state)
        fastest, end = 0.0, 0.0
        for t in np.arange(0.0, 12.0, 0.01):
            moved = type(state)(state.time + t, state.q, state.u, None, state.tau)
            fastest = max(fastest, np.abs(law.update(moved).qd).max())
            end = end if law.finished else float(t)
        if bound:
            assert fastest == pytest.approx(0.5 * limit, rel=0.02)
            assert end > 3.0
        else:
            assert fastest < 0.5 * limit
            assert end == pytest.approx(
                0.8 * np.abs(law._folded - state.q[7:]).max() / 2.0 + 1.5 + 0.125, abs=0.25
            )


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
@pytest.mark.parametrize('name', slow_but(['mini_cheetah'], ['mini_cheetah', 'hyq']))
def test_gets_up_on_a_slope(name: str, contact: str) -> None:
    sim = lying_simulator(robot(name), slope=np.radians(10.0), contact=contact)
    law, _ = get_up(sim)
    assert base_tilt(sim.q) == pytest.approx(np.radians(10.0), abs=0.02)
    before = sim.q
    drive(sim, law, 2.0, noisy=True)
    assert np.linalg.norm(sim.q[:3] - before[:3]) < 1e-3


@pytest.mark.parametrize(
    'name', slow_but(['mini_cheetah'], ['mini_cheetah', 'go1', 'anymal_c', 'hyq', 'solo12'])
)
def test_gets_up_after_it_sank(name: str) -> None:
    """The pose in which a robot lies whose controller died while it stood."""
    model = robot(name)
    sim = Simulator(model, latency=2e-3)
    drive(sim, Damping(model), 3.0, every=1000)
    assert sim.q[2] < 0.6 * model.standing[2]
    get_up(sim, guard=True)
    assert_stands(sim, model.standing[2])


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('name', ['mini_cheetah', 'anymal_b'])
def test_gets_up_with_its_legs_anywhere(name: str, seed: int) -> None:
    model = robot(name)
    rng = np.random.default_rng(seed)
    q = np.array(model.standing)
    q[7:] = np.clip(q[7:] + rng.uniform(-0.4, 0.4, model.nj), model.q_min, model.q_max)
    q[2] += 0.15
    sim = Simulator(model, latency=2e-3)
    sim.reset(q)
    drive(sim, Damping(model), 1.5)
    assert base_tilt(sim.q) < 0.7  # it did not fall over, which is another subject
    get_up(sim, guard=True)
    assert_stands(sim, model.standing[2])


def test_a_standing_robot_stays_where_it_is() -> None:
    model = robot('mini_cheetah')
    sim = Simulator(model)
    law = StandUp(model)
    law.start(state_of(sim))
    assert law.phase == 'rise'
    log = drive(sim, law, 2.0)
    assert np.abs(log['q'][:, 2] - model.standing[2]).max() < 2e-3


def test_phases_follow_each_other_and_targets_are_smooth() -> None:
    model = robot('mini_cheetah')
    sim = lying_simulator(model)
    law = StandUp(model)
    state = state_of(sim)
    law.start(state)
    phases, targets = [], []
    for k in range(1500):
        moved = type(state)(state.time + 2e-3 * k, state.q, state.u, None, state.tau)
        setpoint = law.update(moved)
        phases.append(law.phase)
        targets.append((setpoint.q, setpoint.qd, setpoint.tau))
    order = [phase for k, phase in enumerate(phases) if k == 0 or phase != phases[k - 1]]
    assert order == ['fold', 'rise', 'hold']
    q, qd, tau = (np.array(column) for column in zip(*targets, strict=True))
    assert np.abs(q[0] - state.q[7:]).max() < 1e-9
    # velocities are those of the positions: midpoint rule, whose error is the jerk times h^2 / 12
    assert np.abs(np.diff(q, axis=0) / 2e-3 - 0.5 * (qd[1:] + qd[:-1])).max() < 0.02
    assert np.abs(np.diff(tau, axis=0)).max() < 0.02 * model.total_mass * 9.81


@pytest.mark.parametrize('share', [0.7, 1.1])
def test_stands_at_the_height_that_is_set(share: float) -> None:
    sim = lying_simulator(robot('mini_cheetah'))
    get_up(sim, settings=ControlSettings(stand_height=share))
    assert sim.q[2] == pytest.approx(share * sim.model.standing[2], abs=3e-3)


def test_a_height_out_of_reach_is_an_error(qd: Any) -> None:
    with pytest.raises(qd.ArgumentError, match=r'stand_height is 1\.2.*misses its place'):
        StandUp(robot('a1'), ControlSettings(stand_height=1.2))


def test_a_robot_that_cannot_stand_is_named(qd: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='two_link_arm cannot stand up'):
        StandUp(qd.load_model('two_link_arm'))


# ---------------------------------------------------------------- lying


@pytest.mark.parametrize('name', ROBOTS)
def test_lies_on_the_ground_and_stays_there(name: str) -> None:
    model = robot(name)
    q = lying_pose(model)
    assert (q[7:] >= model.q_min).all()
    assert (q[7:] <= model.q_max).all()
    assert q[3:7].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert q[2] < 0.55 * model.standing[2]
    sim = Simulator(model)
    sim.reset(q)
    sim.step()
    assert sim.contact_distances.min() == pytest.approx(0.0, abs=1e-9)
    assert (sim.contact_distances < 0.03).sum() >= 4
    log = drive(sim, Damping(model), 0.5, every=1000)
    assert np.abs(log['u'][:, :3]).max() < 0.15  # it does not jump
    assert np.abs(log['u'][-1, :3]).max() < 0.06  # the base is at rest, or sinks by itself
    assert log['q'][-1, 2] < q[2] + 1e-3


def test_lying_needs_a_floating_base(qd: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='two_link_arm cannot lie'):
        lying_pose(qd.load_model('two_link_arm'))
