# SPDX-License-Identifier: Apache-2.0
"""The decisions of the supervisor: modes, safe states, jumps, recovery."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from simple_robots import pendulum
from supervised_robot import Plant

from quad_dynamics.api.drives import motor_limits
from quad_dynamics.control.damping import Damping
from quad_dynamics.control.faults import Faults
from quad_dynamics.control.jumps import JumpDetector
from quad_dynamics.control.modes.names import MODES
from quad_dynamics.control.modes.settings import ModeSettings
from quad_dynamics.control.modes.supervisor import Supervisor
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.errors import ArgumentError
from quad_dynamics.ros.stamp_watch import Watch


@pytest.fixture(scope='module')
def model() -> Any:
    import warnings

    import quad_dynamics as qd

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return qd.load_model('mini_cheetah')


def is_damping(setpoint: Any) -> bool:
    return setpoint.q is None and not setpoint.tau.any() and not setpoint.qd.any()


# ---------------------------------------------------------------- modes


def test_stands_up_within_three_seconds_and_stays(model: Any) -> None:
    plant = Plant(model, lying=True)
    plant.run(3.0)
    assert plant.supervisor.phase == 'hold'
    assert plant.height > 0.9 * model.standing[2]
    before = plant.sim.q
    plant.run(0.5)
    assert np.linalg.norm(plant.sim.q[:3] - before[:3]) < 1e-3
    assert not plant.faults
    assert plant.supervisor.jumps == 0


def test_estimated_foot_forces_are_the_measured_ones_when_standing(model: Any) -> None:
    plant = Plant(model)
    plant.run(1.0)
    # 50 time constants of the observer after the last motion; what is left is the way the robot still sinks
    assert plant.supervisor.estimator.forces() == pytest.approx(plant.sim.foot_forces, abs=0.5)


@pytest.mark.parametrize('mode', MODES)
def test_a_change_of_mode_does_not_make_the_torques_jump(model: Any, mode: str) -> None:
    plant = Plant(model, mode='stand')
    plant.run(1.6)
    before = plant.supervisor.total_torque(plant.setpoint, plant.state())
    plant.change(mode=mode)
    setpoint = plant.supervisor.update(plant.state(time=plant.sim.time + 1e-6))
    assert plant.supervisor.mode == mode
    after = plant.supervisor.total_torque(setpoint, plant.state())
    if mode == 'damping':
        assert is_damping(setpoint)  # the safe state, at once
    else:
        # the state is the same, so only the microsecond by which it is later makes a difference
        assert after == pytest.approx(before, abs=1e-3)
    plant.run(0.4)
    assert not plant.supervisor.faults.latched
    if mode in ('gravity', 'stand', 'computed_torque', 'whole_body'):
        assert plant.height > 0.95 * model.standing[2]
    else:
        assert plant.height < 0.9 * model.standing[2]


def test_an_unavailable_mode_is_named(model: Any) -> None:
    fixed = pendulum()
    with pytest.raises(ArgumentError, match=r"parameter mode is 'stand': .* cannot stand up"):
        Supervisor(fixed, ModeSettings(mode='stand'))
    supervisor = Supervisor(fixed, ModeSettings(mode='gravity'))
    with pytest.raises(ArgumentError, match="mode is 'stand'"):
        supervisor.change(ModeSettings(mode='stand'))
    assert supervisor.mode == 'gravity'


@pytest.mark.parametrize('mode', ['gravity', 'computed_torque', 'damping', 'passthrough'])
def test_a_fixed_base_needs_no_odometry(mode: str) -> None:
    model = pendulum()
    plant = Plant(model, mode=mode)
    plant.run(0.1)
    assert not plant.faults
    assert plant.supervisor.is_damping == (mode == 'damping')


def test_settings_that_do_not_suit_the_robot_change_nothing(model: Any) -> None:
    plant = Plant(model)
    plant.run(0.01)
    guard = plant.supervisor.guard
    with pytest.raises(ArgumentError, match='kp has 3 numbers'):
        plant.change(kp=(1.0, 2.0, 3.0), mode='gravity')
    assert plant.supervisor.guard is guard
    assert plant.supervisor.mode == 'stand'


# ---------------------------------------------------------------- what goes wrong


def test_missing_input_damps_and_recovers_by_itself(model: Any) -> None:
    plant = Plant(model)
    plant.run(0.1)
    setpoint = plant.supervisor.lacks('no joint_states for 0.2 s')
    assert is_damping(setpoint)
    assert plant.supervisor.phase == 'waiting'
    for _ in range(10):
        plant.supervisor.lacks('no joint_states for 0.3 s')
    assert plant.faults == [('stale', 'no joint_states for 0.2 s')]  # once, not for each message
    plant.run(0.02)
    assert plant.supervisor.phase == 'rise'
    assert not plant.supervisor.is_damping


def test_a_fall_latches_until_recover(model: Any) -> None:
    plant = Plant(model)
    plant.run(0.05)
    tilted = plant.sim.q
    tilted[3:7] = [np.sin(0.6), 0.0, 0.0, np.cos(0.6)]  # by 1.2 rad
    assert is_damping(plant.supervisor.update(plant.state(q=tilted)))
    assert plant.kinds == {'fall'}
    assert plant.supervisor.phase == 'latched'
    worked, text = plant.supervisor.recover()
    assert not worked
    assert text.startswith('still: fallen')
    assert is_damping(plant.step())  # upright again, but nobody has looked at it
    worked, text = plant.supervisor.recover()
    assert worked
    assert 'fallen' in text
    assert not is_damping(plant.step())
    assert plant.supervisor.recover() == (True, 'nothing was wrong')


@pytest.mark.parametrize('what', ['position', 'velocity'])
def test_a_joint_beyond_its_limit_latches(model: Any, what: str) -> None:
    plant = Plant(model)
    plant.run(0.01)
    q, u = plant.sim.q, plant.sim.u
    if what == 'position':
        q[-1] = model.q_max[-1] + 0.2
    else:
        u[-1] = 2.0 * model.velocity_limit[-1]
    plant.supervisor.update(plant.state(q=q, u=u))
    if what == 'position':  # so far in so short a time is a jump as well
        assert plant.supervisor.jumps == 1
    assert plant.kinds == {'limit'}
    assert model.joint_names[-1] in plant.supervisor.faults.latched


def test_the_safe_state_is_the_one_of_the_library(model: Any) -> None:
    plant = Plant(model, mode='damping')
    for setpoint in (plant.step(), plant.supervisor.damped(), Damping(model).update(None)):
        assert is_damping(setpoint)
    assert isinstance(plant.supervisor._damping, Damping)


def test_nothing_latches_in_damping(model: Any) -> None:
    plant = Plant(model, mode='damping')
    tilted = plant.sim.q
    tilted[3:7] = [1.0, 0.0, 0.0, 0.0]
    assert is_damping(plant.supervisor.update(plant.state(q=tilted)))
    assert not plant.faults


def test_one_exception_passes_and_many_latch(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = Plant(model)
    plant.run(0.1)
    good = StandUp.update

    def bad(self: Any, state: Any) -> Any:
        raise RuntimeError('injected')

    monkeypatch.setattr(StandUp, 'update', bad)
    assert is_damping(plant.step())
    monkeypatch.setattr(StandUp, 'update', good)
    assert not is_damping(plant.step())
    assert plant.faults == [('exception', 'RuntimeError: injected')]
    monkeypatch.setattr(StandUp, 'update', bad)
    for _ in range(1000):
        assert is_damping(plant.step())
    monkeypatch.setattr(StandUp, 'update', good)
    assert is_damping(plant.step())
    assert plant.supervisor.recover() == (True, 'recovered from: RuntimeError: injected')
    assert not is_damping(plant.step())


@pytest.mark.parametrize('where', ['start', 'update', 'limit', 'check_state', 'estimator', 'nan'])
def test_exceptions_anywhere_do_no_harm(model: Any, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    plant = Plant(model)
    supervisor = plant.supervisor
    plant.run(0.01)

    def bad(*arguments: Any) -> Any:
        raise ZeroDivisionError(where)

    law = supervisor._laws['stand']
    owner = {'start': law, 'update': law, 'estimator': supervisor.estimator}.get(where, supervisor.guard)
    if where == 'nan':
        monkeypatch.setattr(law, 'update', lambda state: supervisor.damped().__class__(np.full(12, np.nan)))
    else:
        monkeypatch.setattr(owner, 'update' if where == 'estimator' else where, bad)
    if where == 'start':
        supervisor.lacks('something, so that the law begins anew')
    for _ in range(100):
        setpoint = plant.step()
        assert np.isfinite(setpoint.tau).all()
        if where != 'estimator':  # which is not needed to stand
            assert is_damping(setpoint)
        supervisor.faults.recover()  # so that it is tried again and again
    assert len(plant.faults) >= 100


def test_exceptions_far_apart_do_not_latch() -> None:
    faults = Faults()
    for i in range(100):
        faults.exception(RuntimeError('x'), 0.6 * i)
    assert not faults.latched
    for _ in range(2):
        faults.exception(RuntimeError('y'), 60.0)
    assert faults.latched == 'RuntimeError: y'


# ---------------------------------------------------------------- jumps and pauses


def test_a_reset_begins_anew_and_is_no_fault(model: Any) -> None:
    from quad_dynamics.control.lying import lying_pose

    plant = Plant(model)
    plant.run(1.5)
    assert plant.supervisor.phase == 'hold'
    plant.offset += plant.sim.time
    plant.sim.reset(lying_pose(model))
    plant.step()
    assert plant.supervisor.phase == 'fold'
    assert plant.supervisor.jumps == 1
    assert not plant.faults
    plant.run(3.0)
    assert plant.height > 0.9 * model.standing[2]


def test_what_is_a_jump(model: Any) -> None:
    detector = JumpDetector(model)
    q, zero = model.standing, np.zeros(model.nv)

    def at(time: float, index: int = 0, by: float = 0.0) -> RobotState:
        moved = np.array(q)
        moved[index] += by
        return RobotState(time, moved, zero, None, zero[6:])

    before = at(10.0)
    assert detector.check(before, at(10.0)) == ''
    assert detector.check(before, at(10.002, 7, 0.05)) == ''
    assert 'time went back by 10 s' in detector.check(before, at(0.0))
    assert 'no state for 5 s' in detector.check(before, at(15.0))
    assert model.joint_names[2] in detector.check(before, at(10.002, 9, -0.5))
    assert 'the base jumped by 0.3 m' in detector.check(before, at(10.002, 1, 0.3))
    turned = at(10.002)
    turned.q[3:7] = [0.0, 0.0, np.sin(0.5), np.cos(0.5)]
    assert 'the base jumped by 1 rad' in detector.check(before, turned)
    turned.q[3:7] = -before.q[3:7]
    assert detector.check(before, turned) == ''  # the same orientation


def test_a_repeated_state_has_the_same_answer(model: Any) -> None:
    plant = Plant(model)
    plant.run(0.3)
    state = plant.state()
    first = plant.supervisor.update(state)
    residual = plant.supervisor.estimator.observer.residual.copy()
    for _ in range(100):
        assert plant.supervisor.update(state) is first
    assert np.array_equal(plant.supervisor.estimator.observer.residual, residual)
    plant.run(0.1)
    assert not plant.faults


def test_put_elsewhere_while_paused_begins_anew(model: Any) -> None:
    plant = Plant(model)
    plant.run(1.5)
    q = plant.sim.q
    q[0] += 1.0
    plant.supervisor.update(plant.state())
    plant.supervisor.update(plant.state(q=q))
    assert plant.supervisor.jumps == 1
    assert plant.supervisor.phase == 'rise'


def test_stray_stamps_do_not_count() -> None:
    watch = Watch(0.1)
    second = 10**9
    assert watch.silence(0.0) == float('inf')
    assert watch.accept(5 * second, 0.0)  # the beginning
    assert not watch.accept(5 * second + 2_000_000, 0.002)
    assert not watch.accept(5 * second + 2_000_000, 0.004)  # paused
    with pytest.raises(ArgumentError, match=r'4.500 s'):
        watch.accept(4 * second + second // 2, 0.006)
    with pytest.raises(ArgumentError, match=r'90.000 s'):
        watch.accept(90 * second, 0.006)
    assert watch.silence(0.1) == 0.0
    assert watch.silence(0.2) == pytest.approx(0.196)
    assert watch.accept(0, 0.2)  # a new simulation
    assert watch.silence(0.2) == 0.0


def test_a_hiccup_of_fast_time_is_no_stray() -> None:
    """At 50 times real time, 10 ms without messages are 0.5 s of stamps."""
    watch, ms = Watch(0.1), 10**6
    for k in range(5):
        watch.accept(2 * ms * k, 1e-4 * k)
    with pytest.raises(ArgumentError, match=r'0.508 s, the previous one 0.008 s'):
        watch.accept(508 * ms, 0.0105)
    assert watch.accept(510 * ms, 0.0106)  # time has gone on
    assert not watch.accept(512 * ms, 0.0107)
    # a second publisher, whose time is older: two of it in a row do not count, nor one of each in turn
    for k in range(5):
        with pytest.raises(ArgumentError, match='expected a slightly later stamp'):
            watch.accept((100 + 2 * k) * ms, 0.011 + 1e-4 * k)
    for k in range(5):
        with pytest.raises(ArgumentError, match='expected a slightly later stamp'):
            watch.accept((5000 + 2 * k) * ms, 0.012 + 1e-4 * k)
        assert not watch.accept((514 + 2 * k) * ms, 0.012 + 1e-4 * k)
    # and one that has the time of day
    for k in range(5):
        with pytest.raises(ArgumentError, match='expected a slightly later stamp'):
            watch.accept(1_700_000_000_000 * ms + 2 * k * ms, 0.013 + 1e-4 * k)


def test_the_same_states_give_the_same_setpoints(model: Any) -> None:
    def run() -> bytes:
        plant = Plant(model, lying=True)
        made = []
        for i in range(400):
            if i == 200:
                plant.change(mode='gravity')
            setpoint = plant.step()
            made += [setpoint.tau.tobytes(), plant.supervisor.estimator.forces().tobytes()]
        return b''.join(made)

    assert run() == run()


# ---------------------------------------------------------------- passthrough


def test_commands_grow_old(model: Any) -> None:
    plant = Plant(model, mode='passthrough')
    with pytest.raises(ArgumentError, match='rejected'):
        plant.supervisor.command(np.ones(12), None, None)
    plant.run(0.15)
    assert plant.supervisor.phase == 'no command'
    tau = np.linspace(-1.0, 1.0, 12)
    plant.supervisor.command(tau, None, None)
    assert plant.step().tau == pytest.approx(tau)
    plant.run(0.24)
    assert plant.supervisor.phase == 'command'
    plant.run(0.02)
    assert plant.supervisor.phase == 'no command'
    assert is_damping(plant.step())
    plant.change(mode='gravity')
    with pytest.raises(ArgumentError, match="received in mode 'gravity'; expected mode 'passthrough'"):
        plant.supervisor.command(tau, None, None)


@pytest.mark.slow
def test_random_commands_never_pass_a_limit(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 of them, at random states of moving joints."""
    plant = Plant(model, mode='passthrough')
    supervisor = plant.supervisor
    # what is estimated changes no setpoint, and takes half of the time
    monkeypatch.setattr(supervisor.estimator, 'update', lambda state: None)
    rng = np.random.default_rng(0)
    n, nj = 100_000, model.nj
    base, feet = plant.sim.q[:7], plant.sim.foot_forces
    center, half = 0.5 * (model.q_min + model.q_max), 0.5 * (model.q_max - model.q_min)
    finite = np.isfinite(half)
    center, half = np.where(finite, center, 0.0), np.where(finite, half, 3.0)
    # slow waves over the whole range, and a little beyond: within what a joint can move in 2 ms
    wave = np.sin(1e-3 * np.arange(n)[:, None] * rng.uniform(3.0, 5.0, nj))
    q_j = center + 1.01 * half * wave
    qd_j = model.velocity_limit * rng.uniform(-1.2, 1.2, (n, nj))
    scale = 10.0 ** rng.uniform(-1.0, 4.0, (n, 3, nj))
    command = scale * rng.standard_normal((n, 3, nj))
    which = rng.integers(1, 8, n).tolist()
    total, targets = np.empty((n, nj)), np.zeros((n, 2, nj))
    tau = np.zeros(nj)
    start = time.monotonic()
    for i in range(n):
        state = RobotState(
            2e-3 * i, np.concatenate([base, q_j[i]]), np.concatenate([np.zeros(6), qd_j[i]]), feet, tau
        )
        if i:
            rows = [command[i, k] if which[i] >> k & 1 else None for k in range(3)]
            supervisor.command(*rows)
        setpoint = supervisor.update(state)
        total[i] = supervisor.total_torque(setpoint, state)
        if setpoint.q is not None:
            targets[i, 0] = setpoint.q - np.clip(setpoint.q, model.q_min, model.q_max)
        if setpoint.qd is not None:
            targets[i, 1] = setpoint.qd - np.clip(setpoint.qd, -model.velocity_limit, model.velocity_limit)
    print(f'{n} commands in {time.monotonic() - start:.1f} s')
    assert supervisor.phase == 'command'
    assert not plant.faults
    assert not targets.any()
    effort, stall, slope = motor_limits(model)
    # the torque is made of a difference of numbers up to 1e6, the largest gains times targets
    rounding = 1e-8
    assert (np.abs(total) <= effort + rounding).all()
    assert (total <= np.maximum(stall - slope * qd_j, 0.0) + rounding).all()
    assert (total >= np.minimum(-stall - slope * qd_j, 0.0) - rounding).all()
    # at the end of its range no joint is pushed outward
    assert (total[q_j >= model.q_max] <= rounding).all()
    assert (total[q_j <= model.q_min] >= -rounding).all()
    assert np.abs(total).max() > 0.9 * effort.max()  # and it is no test of zeros
