# SPDX-License-Identifier: Apache-2.0
"""Joints of the simulator: limits, friction, rotors, motors, latency, and forces from outside.

Most run on robots with one joint, where the answer is a formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from closeness import assert_close

G, INERTIA = 9.81, 0.02
# A dozen additions of float64 a step, over thousands of steps.
ROUNDING = 1e-10


def run(sim: Any, duration: float, tau: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Steps of a robot with constant torques: (q, u) after each."""
    steps = round(duration / sim.settings.dt)
    q, u = np.empty((steps, sim.model.nq)), np.empty((steps, sim.model.nv))
    for k in range(steps):
        sim.step(tau)
        q[k], u[k] = sim.q, sim.u
    return q, u


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize('dt', [2e-4, 1e-3, 4e-3])
@pytest.mark.parametrize('speed', [0.5, 5.0, 40.0])
@pytest.mark.parametrize('side', [-1.0, 1.0])
def test_limits_hold(qd: Any, speed: float, side: float, dt: float) -> None:
    model = robots.pendulum(limits=(-0.5, 0.7))
    sim = qd.Simulator(model, dt=dt)
    sim.reset(np.zeros(1), np.array([side * speed]))
    q, _ = run(sim, 1.0)
    assert q.max() <= 0.7 + 1e-4
    assert q.min() >= -0.5 - 1e-4
    end = 0.7 if side > 0.0 else -0.5
    if speed > 4.0:  # fast enough to reach it (gravity takes 2 g (1 - cos q) / l)
        assert np.abs(q - end).min() < 2e-3, 'it never came near the limit'


def test_limit_of_a_prismatic_joint(qd: Any) -> None:
    model = robots.cart(limits=(-0.1, 0.2))
    sim = qd.Simulator(model)
    sim.reset()
    q, u = run(sim, 1.0, np.array([20.0]))  # 10 m/s^2: there after 0.2 s, at 2 m/s
    assert q.max() <= 0.2 + 1e-4
    assert_close(q[-1], [0.2], 1e-4, what='rest at the limit')  # 1e-4 of penetration is allowed
    assert abs(u[-1, 0]) < 1e-9
    q, _ = run(sim, 0.1, np.array([-20.0]))
    assert q[-1, 0] < 0.17, 'it must leave the limit: 0.05 m in 0.1 s'


@pytest.mark.parametrize('name', robots.QUADRUPEDS)
@pytest.mark.parametrize('push', [-1.0, 1.0])
def test_limits_of_a_falling_robot(qd: Any, name: str, push: float) -> None:
    """All motors push against the limits, while the robot tumbles on the ground."""
    model = robots.quadruped(name)
    sim = qd.Simulator(model)
    sim.reset()
    q, _ = run(sim, 1.5, push * 0.5 * np.minimum(model.effort_limit, 20.0))
    joints = q[:, 7:]
    assert (joints - model.q_max).max() <= 1e-4
    assert (model.q_min - joints).max() <= 1e-4
    assert (np.abs(joints - model.q_max) < 1e-3).any() or (np.abs(joints - model.q_min) < 1e-3).any()


def test_limits_can_be_left_out(qd: Any) -> None:
    sim = qd.Simulator(robots.cart(limits=(-0.1, 0.2)), joint_limits=False)
    sim.reset()
    q, _ = run(sim, 0.5, np.array([20.0]))
    assert q[-1, 0] > 1.2


# ---------------------------------------------------------------- Coulomb and viscous friction


@pytest.mark.parametrize('share', [0.2, 0.9, 0.999])
def test_friction_holds_a_pendulum_exactly(qd: Any, share: float) -> None:
    """Gravity torque below F_c: not the last bit moves in 10 s."""
    model, angle = robots.pendulum(friction=1.0), np.arcsin(share / (0.5 * G))
    sim = qd.Simulator(model)
    sim.reset(np.array([angle]))
    q, u = run(sim, 10.0)
    assert np.all(q == angle)
    assert np.all(u == 0.0)


@pytest.mark.parametrize('share', [1.001, 1.1, 3.0])
def test_friction_lets_go(qd: Any, share: float) -> None:
    """Gravity torque above F_c: it starts with the difference."""
    model, angle = robots.pendulum(friction=1.0), np.arcsin(share / (0.5 * G))
    sim = qd.Simulator(model)
    sim.reset(np.array([angle]))
    sim.step()
    inertia = 0.25 * 1.001
    assert_close(sim.u, [-1e-3 * (share - 1.0) / inertia], 1e-9, what='speed', scale=1e-3 / inertia)


@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_friction_against_a_motor(qd: Any, sign: float) -> None:
    model = robots.wheel(INERTIA, friction=0.05)
    sim = qd.Simulator(model)
    sim.reset()
    _, u = run(sim, 0.5, np.array([sign * 0.0499]))
    assert np.all(u == 0.0)
    _, u = run(sim, 0.5, np.array([sign * 0.08]))
    assert_close(u[-1], [sign * 0.5 * 0.03 / INERTIA], ROUNDING, what='speed')


@pytest.mark.parametrize('dt', [2.5e-4, 1e-3])
@pytest.mark.parametrize('speed', [-3.0, 3.0001, 0.001])
def test_friction_stops_a_wheel(qd: Any, speed: float, dt: float) -> None:
    """After I w / F_c, having turned I w^2 / (2 F_c); then exactly still, and the sign never changes."""
    model = robots.wheel(INERTIA, friction=0.05)
    sim = qd.Simulator(model, dt=dt)
    sim.reset(np.zeros(1), np.array([speed]))
    q, u = run(sim, 2.0)
    time, angle = INERTIA * abs(speed) / 0.05, INERTIA * speed * abs(speed) / 0.1
    first = int(np.argmax(u[:, 0] == 0.0))
    assert abs((first + 1) * dt - time) <= dt + 1e-9, 'it stops within the step in which it should'
    assert np.all(u[first:] == 0.0)
    assert np.all(q[first:] == q[first])
    assert np.all(u[:first] * speed > 0.0)
    assert abs(q[-1, 0] - angle) <= abs(speed) * dt  # semi-implicit: half a step too little


@pytest.mark.parametrize('damping', [0.01, 0.2])
def test_viscous_decay(qd: Any, damping: float) -> None:
    """e^(-F_v t / I); implicit Euler is off by t dt (F_v / I)^2 / 2, half as much at half the step."""
    rate, errors = damping / INERTIA, []
    time = 2.0 / rate
    for dt in (time / 1000, time / 2000):
        sim = qd.Simulator(robots.wheel(INERTIA, damping=damping), dt=dt)
        sim.reset(np.zeros(1), np.array([3.0]))
        _, u = run(sim, time)
        errors.append(abs(u[-1, 0] - 3.0 * np.exp(-2.0)))
    bound = 0.5 * time * (time / 1000) * rate**2 * 3.0 * np.exp(-2.0)
    assert errors[0] <= 1.1 * bound
    assert errors[1] <= 0.55 * max(errors[0], 1e-12)


def test_viscous_friction_is_stable(qd: Any) -> None:
    """dt F_v / I = 50: explicit Euler would explode, the speed must fall and keep its sign."""
    sim = qd.Simulator(robots.wheel(INERTIA, damping=1000.0))
    sim.reset(np.zeros(1), np.array([3.0]))
    _, u = run(sim, 0.02)
    assert np.all(u >= 0.0)
    assert np.all(np.diff(u[:, 0]) <= 0.0)
    assert u[0, 0] <= 3.0 / 40.0


@pytest.mark.parametrize('dt', [2.5e-4, 1e-3])
def test_both_frictions(qd: Any, dt: float) -> None:
    """Stops after (I / F_v) ln(1 + F_v w / F_c)."""
    viscous, coulomb, speed = 0.02, 0.05, 5.0
    sim = qd.Simulator(robots.wheel(INERTIA, damping=viscous, friction=coulomb), dt=dt)
    sim.reset(np.zeros(1), np.array([speed]))
    q, u = run(sim, 2.0)
    time = INERTIA / viscous * np.log(1.0 + viscous * speed / coulomb)
    angle = INERTIA / viscous * (speed - coulomb / viscous * np.log(1.0 + viscous * speed / coulomb))
    stopped = (int(np.argmax(u[:, 0] == 0.0)) + 1) * dt
    assert abs(stopped - time) <= 3.0 * dt  # first order, rates of 1 /s over 1 s
    assert abs(q[-1, 0] - angle) <= 2.0 * speed * dt
    assert u[-1, 0] == 0.0


def test_explicit_friction(qd: Any) -> None:
    sim = qd.Simulator(robots.wheel(INERTIA, damping=0.02, friction=0.05), joint_friction='explicit')
    sim.reset(np.zeros(1), np.array([-3.0]))
    sim.step()
    assert_close(sim.u, [-3.0 + 1e-3 * (0.02 * 3.0 + 0.05) / INERTIA], 1e-12, what='speed')


def test_no_friction(qd: Any) -> None:
    sim = qd.Simulator(robots.wheel(INERTIA, damping=0.02, friction=0.05), joint_friction='none')
    sim.reset(np.zeros(1), np.array([-3.0]))
    _, u = run(sim, 0.1)
    assert np.all(u == -3.0)


def test_friction_of_the_motor_adds(qd: Any) -> None:
    motor = {'torque_limit': 10.0, 'voltage': 1e3, 'torque_constant': 0.05, 'resistance': 0.1}
    motor |= {'damping': 0.03, 'dry_friction': 0.04}
    model = robots.wheel(INERTIA, {'motors': {'spin': motor}}, friction=0.05, damping=0.02)
    sim = qd.Simulator(model, joint_friction='explicit')
    sim.reset(np.zeros(1), np.array([3.0]))
    sim.step()
    assert_close(sim.u, [3.0 - 1e-3 * (0.05 * 3.0 + 0.09) / INERTIA], 1e-12, what='explicit')
    sim = qd.Simulator(model)
    sim.reset()
    _, u = run(sim, 0.1, np.array([0.0899]))
    assert np.all(u == 0.0)
    sim.step(np.array([0.1]))
    expected = 1e-3 * 0.01 / (INERTIA + 1e-3 * 0.05)  # viscous friction at the end of the step
    assert_close(sim.u, [expected], 1e-3, what='stick')  # or at its beginning: 0.25 % less


@pytest.mark.parametrize('name', ['mini_cheetah'])
@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
def test_a_standing_robot_does_not_creep(qd: Any, name: str, contact: str) -> None:
    model = robots.quadruped(name)
    kp, kd = robots.GAINS[name]
    sim = qd.Simulator(model, contact=contact)
    sim.reset()
    sim.command(q=model.standing[7:], kp=kp, kd=kd)
    run(sim, 3.0)
    q, u = run(sim, 2.0)
    assert np.abs(q - q[0]).max() < 1e-8  # still, but for what sweeps that stop at 1e-6 m/s leave in contacts
    assert np.abs(u).max() < 1e-6


# ---------------------------------------------------------------- rotors and motors


@pytest.mark.parametrize('gear', [6.0, -9.33])
def test_rotor_inertia(qd: Any, gear: float) -> None:
    rotor = {'gear': gear, 'mass': 0.055, 'inertia': [33e-6, 33e-6, 63e-6]}
    sim = qd.Simulator(robots.wheel(INERTIA, {'rotors': {'spin': rotor}}))
    sim.reset()
    _, u = run(sim, 0.1, np.array([0.5]))
    assert_close(u[-1], [0.1 * 0.5 / (INERTIA + gear**2 * 63e-6)], ROUNDING, what='speed')


def motor_torque(wanted: float, speed: float, gear: float = 6.0) -> float:
    """Mini Cheetah's drive: torque 1.5 KT i, back-EMF 2 KT w, at most 24 V over 0.173 Ohm, 3 N m."""
    emf = 2.0 * 0.05 * gear * speed
    volts = min(max(wanted / gear / (1.5 * 0.05) * 0.173 + emf, -24.0), 24.0)
    return gear * min(max(1.5 * 0.05 * (volts - emf) / 0.173, -3.0), 3.0)


def test_motor_line_has_the_published_figures() -> None:
    assert motor_torque(100.0, 28.46) == pytest.approx(18.0)
    assert motor_torque(100.0, 28.48) < 18.0
    assert motor_torque(100.0, 40.0) == pytest.approx(0.0)
    assert motor_torque(100.0, 41.0) < 0.0


@pytest.mark.parametrize('wanted', [-100.0, -17.0, -1.0, 0.0, 5.0, 100.0])
@pytest.mark.parametrize('speed', [-60.0, -41.0, -39.0, -30.0, 0.0, 20.0, 28.4, 28.6, 35.0, 40.0, 42.0])
def test_torque_speed_limit(qd: Any, wanted: float, speed: float) -> None:
    motor = {'torque_limit': 3.0, 'voltage': 24.0, 'torque_constant': 0.05, 'resistance': 0.173}
    description = {'motors': {'spin': motor}, 'rotors': {'spin': {'gear': 6.0}}}
    model = robots.wheel(INERTIA, description)
    sim = qd.Simulator(model)
    sim.reset(np.zeros(1), np.array([speed]))
    sim.step(np.array([wanted]))
    expected = motor_torque(wanted, speed)
    assert_close(sim.tau, [expected], 1e-12, what='torque', scale=18.0)
    assert_close(sim.u, [speed + 1e-3 * expected / INERTIA], 1e-12, what='speed')


@pytest.mark.parametrize('wanted', [-30.0, 30.0])
def test_effort_limit(qd: Any, wanted: float) -> None:
    sim = qd.Simulator(robots.wheel(INERTIA, effort=7.0))
    sim.reset()
    sim.step(np.array([wanted]))
    assert_close(sim.tau, [np.sign(wanted) * 7.0], 1e-15, what='torque')
    sim = qd.Simulator(robots.wheel(INERTIA, effort=7.0), motor_limits=False)
    sim.reset()
    sim.step(np.array([wanted]))
    assert_close(sim.tau, [wanted], 1e-15, what='torque without limits')


def test_limits_of_drives_hold_for_commands(qd: Any) -> None:
    """A PD law asks for 600 N m and gets what the motor has."""
    model = robots.quadruped('mini_cheetah')
    sim = qd.Simulator(model)
    sim.reset()
    sim.command(q=model.standing[7:] + 1.0, kp=600.0, kd=0.0)
    sim.step()
    assert_close(sim.tau, model.effort_limit, 1e-12, what='torque')


def test_command_law(qd: Any) -> None:
    """tau + kp (q - q_j) + kd (qd - qd_j), gains for all or for each joint; a torque of step replaces it."""
    model, rng = robots.quadruped('go2'), np.random.default_rng(0)
    q, u = model.standing, 0.1 * rng.normal(size=model.nv)
    sim = qd.Simulator(model, contact='none', motor_limits=False)
    tau, goal, rate, kp, kd = rng.normal(size=(5, model.nj))
    for gains in ((np.abs(kp), np.abs(kd)), (3.0, 0.5)):
        sim.reset(q, u)
        sim.command(tau=tau, q=goal, qd=rate, kp=gains[0], kd=gains[1])
        sim.step()
        expected = tau + gains[0] * (goal - q[7:]) + gains[1] * (rate - u[6:])
        assert_close(sim.tau, expected, 1e-12, what='torque')
    sim.step(2.0 * tau)
    assert_close(sim.tau, 2.0 * tau, 1e-12, what='torque of the step')


def test_command_stays_in_force_until_reset(qd: Any) -> None:
    model = robots.wheel(INERTIA)
    sim = qd.Simulator(model)
    sim.reset()
    sim.command(tau=np.array([0.3]))
    for _ in range(3):
        sim.step()
        assert_close(sim.tau, [0.3], 1e-15, what='torque')
    sim.reset()
    sim.step()
    assert sim.tau == [0.0]
    assert sim.u == [0.0]


# ---------------------------------------------------------------- latency


@pytest.mark.parametrize('latency', [0.0, 1e-3, 3e-3, 2.5e-3, 0.4e-3, 7.77e-3])
def test_latency_of_a_constant_command(qd: Any, latency: float) -> None:
    """What arrives late by L has given tau (t - L) after t."""
    sim = qd.Simulator(robots.wheel(INERTIA), latency=latency)
    sim.reset()
    sim.command(tau=np.array([0.6]))
    for k in range(1, 21):
        sim.step()
        expected = 0.6 * max(0.0, k * 1e-3 - latency) / INERTIA
        assert_close(sim.u, [expected], 1e-10, what=f'speed after step {k}', scale=0.6)


@pytest.mark.parametrize('latency', [0.0, 2e-3, 2.5e-3, 0.3e-3])
def test_latency_of_changing_torques(qd: Any, latency: float, seed: int) -> None:
    """A torque for each step: the momentum is the integral of the signal, shifted."""
    tau = np.random.default_rng(seed).normal(size=40)
    sim = qd.Simulator(robots.wheel(INERTIA), latency=latency)
    sim.reset()
    edges, total = 1e-3 * np.arange(41), np.concatenate([[0.0], np.cumsum(1e-3 * tau)])
    for k in range(40):
        sim.step(tau[k : k + 1])
        expected = np.interp((k + 1) * 1e-3 - latency, edges, total) / INERTIA
        assert_close(sim.u, [expected], 1e-10, what=f'speed after step {k}', scale=0.1)


def test_latency_does_not_delay_the_measured_state(qd: Any) -> None:
    """kd of a command acts, once it is there, on the speed of now."""
    sim = qd.Simulator(robots.wheel(INERTIA), latency=2e-3)
    sim.reset(np.zeros(1), np.array([1.0]))
    sim.command(kd=0.1)
    speeds = []
    for _ in range(4):
        sim.step()
        speeds.append(float(sim.u[0]))
    assert speeds[:2] == [1.0, 1.0]
    factor = 1.0 - 1e-3 * 0.1 / INERTIA
    assert_close(
        speeds[2:], [factor, factor**2], 1e-4, what='decay'
    )  # 1 / (1 + x) would do as well: x^2 = 2.5e-5


# ---------------------------------------------------------------- forces from outside


@pytest.mark.parametrize('duration', [1e-3, 5e-3, 0.4e-3, 2.3e-3, 1e-5, 0.0123456])
def test_apply_force_gives_its_impulse(qd: Any, duration: float) -> None:
    model = robots.ball(mass=2.0, radius=0.1)
    sim = qd.Simulator(model, contact='none', gravity=(0.0, 0.0, 0.0))
    sim.reset(robots.upright(model, 1.0))
    wrench = np.array([3.0, -2.0, 7.0, 0.01, 0.0, 0.0])
    sim.apply_force('ball', wrench, duration)
    for _ in range(20):
        sim.step()
    assert_close(sim.u[:3], wrench[:3] * duration / 2.0, 1e-12, what='velocity')
    assert_close(
        sim.u[3:], wrench[3:] * duration / 0.008, 1e-12, what='spin'
    )  # about one axis: no gyroscopic part


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper', 'none'])
def test_apply_force_in_the_middle_of_a_run(qd: Any, contact: str) -> None:
    """Forces start when they are applied, and add."""
    model = robots.ball(mass=2.0, radius=0.1)
    sim = qd.Simulator(model, contact=contact, gravity=(0.0, 0.0, 0.0))
    sim.reset(robots.upright(model, 1.0))
    for _ in range(7):
        sim.step()
    assert np.all(sim.u == 0.0)
    sim.apply_force('ball', np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 2.5e-3)
    sim.step()
    assert_close(sim.u[:3], [0.5e-3, 0.0, 0.0], 1e-12, what='first step')
    sim.apply_force('ball', np.array([0.0, 4.0, 0.0, 0.0, 0.0, 0.0]), 0.7e-3)
    for _ in range(5):
        sim.step()
    assert_close(sim.u[:3], [1.25e-3, 1.4e-3, 0.0], 1e-12, what='all')


def test_apply_force_at_a_link(qd: Any, seed: int) -> None:
    """A wrench at the origin of any link, in world axes, is f_ext of forward dynamics."""
    model, rng = robots.quadruped('go2'), np.random.default_rng(seed)
    q, u = model.standing.copy(), rng.normal(size=model.nv)
    q[3:7] = robots.quaternion_about([0.6, 0.0, 0.8], 0.7)
    for link in ('FR_foot', 'base', 'RL_thigh'):
        wrench = 5.0 * rng.normal(size=6)
        sim = qd.Simulator(model, contact='none', joint_limits=False, momentum_correction=False)
        sim.reset(q, u)
        sim.apply_force(link, wrench, 1.0)
        sim.step()
        du = robots.quadruped_reference('go2').forward_dynamics(q, u, np.zeros(model.nv), {link: wrench})
        assert_close(sim.u, u + 1e-3 * du, what=link)
        assert_close(sim.acceleration, du, what='acceleration')
