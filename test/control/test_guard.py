# SPDX-License-Identifier: Apache-2.0
"""The last check: nothing that is out of limits passes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from control_loop import robot

from quad_dynamics.api.drives import motor_limits
from quad_dynamics.control.gains import default_gains
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.control.state import RobotState

STRANGE = [0.0, -0.0, 5e-324, -2.2e-308, 1e-300, 1.0, -40.0, 1e6, -1e30, 1e300, -1.7976931348623157e308]


def state(model: Any, **changes: Any) -> RobotState:
    """The robot at rest in its standing pose, but for the changes."""
    values = {'time': 1.0, 'q': np.array(model.standing), 'u': np.zeros(model.nv)}
    values |= {'foot_forces': np.zeros((4, 3)), 'tau': np.zeros(model.nj), **changes}
    return RobotState(**values)


def random_states(model: Any, rng: np.random.Generator, n: int) -> RobotState:
    """Joints anywhere in their range and beyond, at any speed up to twice the limit."""
    q, u = np.repeat(model.standing[None], n, axis=0), np.zeros((n, model.nv))
    span = np.where(np.isfinite(model.q_max), model.q_max, 3.0)
    q[:, 7:] = rng.uniform(-1.1, 1.1, (n, model.nj)) * span
    u[:, 6:] = rng.uniform(-2.0, 2.0, (n, model.nj)) * np.minimum(model.velocity_limit, 100.0)
    return RobotState(0.0, q, u, None, np.zeros((n, model.nj)))


def random_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary numbers, numbers of all sizes, and strange ones."""
    kind = rng.integers(0, 3, shape)
    wild = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-320.0, 308.0, shape)
    return np.choose(kind, [rng.normal(scale=30.0, size=shape), wild, rng.choice(STRANGE, shape)])


@pytest.mark.parametrize('given', ['tau', 'tau, qd', 'tau, q', 'tau, q, qd'])
@pytest.mark.parametrize('name', ['mini_cheetah', 'a1', 'solo12'])
def test_no_random_command_passes_a_limit(name: str, given: str) -> None:
    """In all, 100,000 commands for each robot."""
    model, n = robot(name), 25_000
    rng = np.random.default_rng([len(given), model.nj])
    share = 0.8
    guard = Guard(model, ControlSettings(torque_share=share))
    kp, kd = default_gains(model)
    seen = random_states(model, rng, n)
    numbers = {key: random_numbers(rng, (n, model.nj)) for key in given.split(', ')}
    with np.errstate(over='raise', invalid='raise'):
        out = guard.limit(Setpoint(**numbers), seen)
    q_j, qd_j = seen.q[:, 7:], seen.u[:, 6:]
    drives = np.zeros((n, model.nj))
    if out.q is not None:
        assert (out.q >= np.maximum(model.q_min, -1e6)).all()
        assert (out.q <= np.minimum(model.q_max, 1e6)).all()
        drives += kp * (out.q - q_j)
    if out.q is not None or out.qd is not None:
        drives += kd * ((0.0 if out.qd is None else out.qd) - qd_j)
    total = out.tau + drives
    # adding and taking away again what the drives give rounds
    rounding = 1e-12 * (1.0 + np.abs(drives))
    effort, stall, slope = motor_limits(model)
    assert (np.abs(total) <= share * effort + rounding).all()
    assert (total <= np.maximum(stall - slope * qd_j, 0.0) + rounding).all()
    assert (total >= np.minimum(-stall - slope * qd_j, 0.0) - rounding).all()
    # outward, at and beyond the end of the range; faster, at and beyond the largest velocity
    assert (total <= rounding)[(q_j >= model.q_max) | (qd_j >= model.velocity_limit)].all()
    assert (total >= -rounding)[(q_j <= model.q_min) | (qd_j <= -model.velocity_limit)].all()


def test_one_command_is_limited_as_many_are() -> None:
    model = robot('mini_cheetah')
    guard, rng = Guard(model), np.random.default_rng(3)
    seen = random_states(model, rng, 200)
    tau, q, qd = (random_numbers(rng, (200, 12)) for _ in range(3))
    many = guard.limit(Setpoint(tau, q, qd), seen)
    for i in range(200):
        alone = RobotState(0.0, seen.q[i], seen.u[i], None, seen.tau[i])
        one = guard.limit(Setpoint(tau[i], q[i], qd[i]), alone)
        assert np.array_equal(one.tau, many.tau[i])
        assert np.array_equal(one.q, many.q[i])


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('field', ['tau', 'q', 'qd'])
def test_what_is_not_finite_is_refused_by_name(qd: Any, field: str, bad: float) -> None:
    model = robot('mini_cheetah')
    values = {'tau': np.zeros(12), 'q': np.zeros(12), 'qd': np.zeros(12)}
    values[field][7] = bad
    with pytest.raises(qd.ArgumentError, match=f'{field} of RL_thigh_joint is .*expected a finite number'):
        Guard(model).limit(Setpoint(**values), state(model))


def test_a_good_command_passes_unchanged() -> None:
    model = robot('mini_cheetah')
    rng = np.random.default_rng(0)
    tau, q = rng.normal(size=12), model.standing[7:] + 0.01 * rng.normal(size=12)
    down = np.ones(4, dtype=bool)
    out = Guard(model).limit(Setpoint(tau, q, np.zeros(12), down), state(model))
    assert np.abs(out.tau - tau).max() < 1e-12
    assert np.array_equal(out.q, q)
    assert out.feet_down is down


def test_torque_fades_towards_a_limit() -> None:
    model = robots.wheel(0.02, limits=(-1.0, 1.0), effort=10.0)
    guard = Guard(model, ControlSettings(fade_angle=0.1))
    where = np.array([0.85, 0.9, 0.95, 1.0, 1.05])
    outward = [guard.limited_torque(np.array([10.0]), np.array([q]), np.zeros(1))[0] for q in where]
    assert outward == pytest.approx([10.0, 10.0, 5.0, 0.0, 0.0])
    inward = [guard.limited_torque(np.array([-10.0]), np.array([q]), np.zeros(1))[0] for q in where]
    assert inward == pytest.approx([-10.0] * 5)


# ---------------------------------------------------------------- states


def test_a_good_state() -> None:
    model = robot('mini_cheetah')
    assert Guard(model).check_state(state(model)) == ''


def changed(values: Any, index: Any, value: float) -> np.ndarray:
    values = np.array(values, dtype=float)
    values[index] = value
    return values


def test_bad_states_are_named() -> None:
    model = robot('mini_cheetah')
    guard, q, u = Guard(model), np.array(model.standing), np.zeros(18)
    tilted = q.copy()
    tilted[3:7] = [np.sin(0.65), 0.0, 0.0, np.cos(0.65)]
    cases = {
        'q of FL_calf_joint is nan': {'q': changed(q, 9, np.nan)},
        'q[2] of the base is inf': {'q': changed(q, 2, np.inf)},
        'u of FR_hip_joint is inf': {'u': changed(u, 9, np.inf)},
        'tau of RR_calf_joint is nan': {'tau': changed(np.zeros(12), 11, np.nan)},
        'force on RL_foot is -inf': {'foot_forces': changed(np.zeros((4, 3)), (2, 1), -np.inf)},
        'time is nan': {'time': np.nan},
        'fallen: tilt 1.3 rad': {'q': tilted},
        'RL_hip_joint moves at -70 rad/s; expected at most 60': {'u': changed(u, 12, -70.0)},
        'RR_calf_joint is at -2.9 rad; expected -2.81 to 2.81': {'q': changed(q, 18, -2.9)},
    }
    for expected, change in cases.items():
        assert guard.check_state(state(model, **change)) == expected
    assert guard.check_state(state(model, foot_forces=None)) == ''


@pytest.mark.parametrize('count', [2, 13])
def test_a_wrong_number_of_gains(qd: Any, count: int) -> None:
    with pytest.raises(qd.ArgumentError, match=f'kp has {count} numbers; expected none, one, or 12'):
        Guard(robot('mini_cheetah'), ControlSettings(kp=(1.0,) * count))


def test_gains_of_the_settings() -> None:
    from quad_dynamics.control.gains import drive_gains

    model = robot('mini_cheetah')
    kp, kd = drive_gains(model, ControlSettings(kp=(20.0,), kd=tuple(range(12))))
    assert kp.tolist() == [20.0] * 12
    assert kd.tolist() == list(range(12))
    assert np.array_equal(drive_gains(model, ControlSettings())[0], default_gains(model)[0])


def test_all_settings_are_declared() -> None:
    """Each with a meaning; those of numbers with bounds."""
    for name, declared in ControlSettings.parameters().items():
        assert declared.meaning
        bounded = max(declared.low, declared.above) > -np.inf
        assert bounded or declared.kind != 'number', name


def test_the_docs_have_the_table_of_settings() -> None:
    from pathlib import Path

    page = Path(__file__).parents[2] / 'docs' / 'control.md'
    assert ControlSettings.table() in page.read_text()
