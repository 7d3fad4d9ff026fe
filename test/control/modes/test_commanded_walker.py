# SPDX-License-Identifier: Apache-2.0
"""Mode whole_body: commands, their age and their limits, and safety."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simple_robots import pendulum
from slow_variants import slow_but
from supervised_robot import Plant

import quad_dynamics as qd
from quad_dynamics.api.drives import motor_limits
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.modes.supervisor import Supervisor
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.supervision import Supervision
from quad_dynamics.control.walker import Walker
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.velocities import read_velocity


@pytest.fixture(scope='module')
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model('mini_cheetah')


def walking(model: Any, **settings: Any) -> Plant:
    """A robot that stands, in mode whole_body."""
    plant = Plant(model, mode='whole_body', **settings)
    plant.run(0.02)
    assert plant.supervisor.phase == 'stand'
    return plant


def drive(plant: Plant, seconds: float, *velocity: float) -> None:
    """Command a velocity ten times a second."""
    for _ in range(round(seconds / 0.1)):
        plant.supervisor.velocity(*velocity)
        plant.run(0.1)


def test_it_gets_up_and_walks_as_commanded(model: Any) -> None:
    plant = Plant(model, lying=True, mode='whole_body')
    plant.step()
    assert plant.supervisor.phase == 'rise'
    plant.run(2.5)
    assert plant.supervisor.phase == 'stand'
    drive(plant, 1.5, 0.4, 0.0, 0.0)
    assert plant.supervisor.phase == 'walk'
    begin = plant.sim.q[:2].copy()
    drive(plant, 2.0, 0.4, 0.0, 0.0)
    # mean velocity of about five strides
    assert np.linalg.norm(plant.sim.q[:2] - begin) / 2.0 == pytest.approx(0.4, abs=0.04)
    assert not plant.faults
    said = plant.supervisor.details()
    assert (said['gait'], said['vx'], said['commanded']) == ('trot', pytest.approx(0.4), True)
    assert said['solver_failures'] == 0
    assert said['update_us'] > 0.0


@pytest.mark.parametrize(
    'phase', slow_but([0.05], [0.0, 0.05, 0.1, 0.15])
)  # of the gait, whose steps take 0.2 s [s]
@pytest.mark.parametrize('name', slow_but(['go2'], ['mini_cheetah', 'go2']))
def test_without_new_commands_it_stops_within_half_a_second(name: str, phase: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        plant = walking(qd.load_model(name))
    drive(plant, 1.4, 0.5, 0.0, 0.0)
    plant.run(phase)
    plant.supervisor.velocity(0.5, 0.0, 0.0)  # the last one
    plant.run(0.19)
    assert plant.supervisor.details()['commanded']
    assert np.linalg.norm(plant.sim.u[:2]) > 0.35  # it walks at 0.5 m/s, faster and slower within a step
    plant.run(0.02)
    assert not plant.supervisor.details()['commanded']
    plant.run(0.29)  # half a second after the last one
    assert plant.supervisor.details()['vx'] == 0.0
    for _ in range(500):
        assert np.linalg.norm(plant.sim.u[:2]) < 0.16  # it sways in its last steps
        plant.step()
    assert plant.supervisor.phase == 'stand'
    assert np.linalg.norm(plant.sim.u[:2]) < 0.02
    assert not plant.faults


def test_the_age_of_a_command_counts_in_the_time_of_states(model: Any) -> None:
    plant = walking(model, cmd_timeout=0.05)
    plant.supervisor.velocity(0.4, 0.0, 0.0)
    state = plant.state()
    for _ in range(100):  # a simulation that is paused
        plant.supervisor.update(state)
    assert plant.supervisor.details()['commanded']
    plant.run(0.06)
    assert not plant.supervisor.details()['commanded']


def test_a_velocity_that_is_not_finite_is_refused_by_name(model: Any) -> None:
    plant = walking(model)
    drive(plant, 0.5, 0.2, 0.0, 0.0)
    with pytest.raises(ArgumentError, match='wz is nan'):
        plant.supervisor.velocity(0.5, 0.0, np.nan)
    plant.step()
    assert plant.supervisor.details()['vx'] <= 0.2  # as before
    zero = SimpleNamespace(x=0.0, y=0.0, z=0.0)
    bad = SimpleNamespace(linear=SimpleNamespace(x=0.1, y=-np.inf, z=0.0), angular=zero)
    for message in (bad, SimpleNamespace(twist=bad)):
        with pytest.raises(ArgumentError, match=r'cmd_vel: linear.y is -inf; expected a finite number'):
            read_velocity(message)
    good = SimpleNamespace(
        linear=SimpleNamespace(x=1.0, y=2.0, z=9.0), angular=SimpleNamespace(x=9.0, y=9.0, z=3.0)
    )
    assert read_velocity(good) == read_velocity(SimpleNamespace(twist=good)) == (1.0, 2.0, 3.0)


def test_a_huge_velocity_is_limited_and_said(model: Any) -> None:
    plant = walking(model, max_velocity=(0.3, 0.1, 0.1))
    drive(plant, 2.0, 1e9, 0.0, 0.0)
    [kind] = plant.kinds
    assert kind == 'limited_cmd_vel'
    assert 'cmd_vel is (1e+09, 0, 0); limited to (0.49' in plant.faults[0][1]
    said = plant.supervisor.details()
    assert said['vx'] == pytest.approx(said['max_vx'])
    assert not plant.supervisor.faults.latched


def test_velocities_are_for_a_robot_that_walks(model: Any) -> None:
    plant = Plant(model, mode='whole_body')
    with pytest.raises(ArgumentError, match='cmd_vel rejected'):
        plant.supervisor.velocity(0.4, 0.0, 0.0)
    plant.supervisor.velocity(0.0, 0.0, 0.0)  # asks for nothing
    plant.run(0.02)
    plant.supervisor.velocity(0.4, 0.0, 0.0)
    plant.change(mode='stand')
    plant.run(0.02)
    with pytest.raises(ArgumentError, match="cmd_vel received in mode 'stand'; expected mode 'whole_body'"):
        plant.supervisor.velocity(0.4, 0.0, 0.0)
    plant.supervisor.velocity(0.0, 0.0, 0.0)
    plant.change(mode='whole_body')
    plant.run(0.02)
    assert not plant.supervisor.details()['commanded']  # that was before


def test_the_gait_is_a_parameter(model: Any) -> None:
    plant = walking(model, gait='crawl')
    drive(plant, 0.3, 0.1, 0.0, 0.0)
    assert plant.supervisor.details()['gait'] == 'crawl'
    plant.change(gait='trot')
    drive(plant, 1.0, 0.2, 0.0, 0.0)
    assert plant.supervisor.details()['gait'] == 'trot'
    assert plant.supervisor.phase == 'walk'
    assert not plant.faults
    with pytest.raises(ArgumentError, match="gait is 'gallop'"):
        plant.change(gait='gallop')


@pytest.mark.slow
def test_it_walks_without_foot_sensors(model: Any) -> None:
    plant = walking(model)
    measured = plant.state

    def blind(**changes: Any) -> Any:
        return measured(foot_forces=None, **changes)

    plant.state = blind  # type: ignore[method-assign]
    drive(plant, 3.0, 0.3, 0.0, 0.0)
    assert plant.sim.q[0] > 0.4
    assert not plant.faults


def test_a_fall_while_walking_latches_and_damps(model: Any) -> None:
    plant = walking(model)
    drive(plant, 0.6, 0.3, 0.0, 0.0)
    tilted = plant.sim.q
    tilted[3:7] = [np.sin(0.6), 0.0, 0.0, np.cos(0.6)]
    setpoint = plant.supervisor.update(plant.state(q=tilted))
    assert setpoint.q is None
    assert not setpoint.tau.any()
    assert plant.kinds == {'fall'}
    with pytest.raises(ArgumentError, match=r'rejected .fallen'):
        plant.supervisor.velocity(0.3, 0.0, 0.0)


def test_a_robot_without_legs_does_not_walk() -> None:
    with pytest.raises(ArgumentError, match=r"mode is 'whole_body': .* expected a quadruped"):
        Supervisor(pendulum(), ModeSettings(mode='whole_body'))


def test_other_modes_count_on_the_friction_that_they_did() -> None:
    assert ModeSettings().mu == ControlSettings().mu


@pytest.mark.slow
def test_the_same_protection_without_a_node(model: Any) -> None:
    """`Supervision` and `Walker`, as a user of the library has them."""
    faults: list[tuple[str, str]] = []
    walker = Walker(model)
    supervision = Supervision(model, walker, walker.settings, lambda *fault: faults.append(fault))
    plant = Plant(model)
    plant.supervisor = supervision  # type: ignore[assignment]
    walker.command(0.4, 0.0, 0.0)
    plant.run(2.0)
    assert walker.phase == 'walk'
    assert plant.sim.q[0] > 0.3
    effort = motor_limits(model)[0]
    bad = plant.sim.u
    bad[-1] = np.nan
    for i, u in enumerate((bad, plant.sim.u)):
        setpoint = supervision.update(plant.state(u=u, time=plant.sim.time + 1e-6 * i))
        assert supervision.is_damping
        assert not setpoint.tau.any()
    assert [kind for kind, _ in faults] == ['limit']
    assert supervision.recover()[0]
    walker.command(0.0, 0.0, 0.0)
    plant.run(0.5)
    assert walker.phase in ('stand', 'rise')
    total = supervision.total_torque(plant.setpoint, plant.state())
    assert (np.abs(total) <= effort + 1e-8).all()
    supervision.law = None
    plant.step()
    assert supervision.is_damping
