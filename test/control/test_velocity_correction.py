# SPDX-License-Identifier: Apache-2.0
"""The correction of the commanded velocity: an integral for one command, a model for several."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quad_dynamics.control.velocity_correction import VelocityCorrection

SPEED, RATE = 1.7, 5.8  # of a robot with legs of 0.29 m
DT, GAIN = 0.002, 2.3

Vec3 = tuple[float, float, float]


@pytest.mark.parametrize('command', [(0.0, 0.0, 0.0), (0.8, -0.3, 0.0), (-0.5, 0.2, 1.5)])
def test_is_an_integral_of_the_error_while_the_command_is_constant(command: Vec3) -> None:
    correction = VelocityCorrection(SPEED, RATE)
    rng, total = np.random.default_rng(1), np.zeros(2)
    for _ in range(200):
        x, y = rng.normal(0.1, 0.1, 2).tolist()
        correction.wait((0.0, 0.0, 0.0), DT)
        correction.adapt(command, (x, y), DT * GAIN)
        total += DT * GAIN * np.array([x, y])
    assert correction.at(command) == pytest.approx(total.tolist(), rel=1e-12)


def drifts(correction: VelocityCorrection | None, seed: int, spans: int) -> list[float]:
    """Mean error of a robot in the second after each of several random commands.

    It reaches 95 % of the velocity, drifts sideways in turns, and follows changes with a lag of 0.15 s.
    Without a `VelocityCorrection`, a plain integral corrects it.
    """
    rng = np.random.default_rng(seed)
    v, integral, before = np.zeros(2), np.zeros(2), np.zeros(3)
    errors: list[float] = []
    for _ in range(spans):
        command = rng.uniform([-1.0, -0.4, -1.2], [1.0, 0.4, 1.2])
        found = []
        for k in range(1000):
            change = (command - before) / DT if k == 0 else np.zeros(3)
            error = command[:2] - v
            if correction is None:
                integral += DT * GAIN * error
                wanted = command[:2] + integral
            else:
                correction.wait(change.tolist(), DT)
                correction.adapt(command.tolist(), (float(error[0]), float(error[1])), DT * GAIN)
                wanted = command[:2] + correction.at(command.tolist())
            reached = 0.95 * wanted + np.array([0.0, -0.04 * wanted[0] * command[2]])
            v += DT / 0.15 * (reached - v)
            found.append(error)
        before = command
        errors.append(float(np.linalg.norm(np.mean(found[500:], axis=0))))
    return errors


@pytest.mark.parametrize('seed', range(5))
def test_learns_what_depends_on_the_command(seed: int) -> None:
    own, plain = drifts(VelocityCorrection(SPEED, RATE), seed, 15), drifts(None, seed, 15)
    assert np.mean(own[5:]) < 0.4 * np.mean(plain[5:])
    assert np.mean(own[5:]) < 0.006  # without any correction it is 0.03


def test_does_not_learn_from_the_lag_behind_a_change() -> None:
    changed, calm = VelocityCorrection(SPEED, RATE), VelocityCorrection(SPEED, RATE)
    changed.wait((1.0 / DT, 0.0, 0.0), DT)  # a step of 1 m/s
    command, gains = (1.0, 0.0, 0.0), []
    for _ in range(500):
        before, quick = changed.at(command)[0], calm.at(command)[0]
        for one in (changed, calm):
            one.wait((0.0, 0.0, 0.0), DT)
            one.adapt(command, (0.01, 0.0), DT * GAIN)
        gains.append((changed.at(command)[0] - before) / (calm.at(command)[0] - quick))
    assert gains[0] < 0.01
    assert gains[-1] == pytest.approx(1.0, abs=0.01)
    assert np.argmax(np.array(gains) > 0.5) * DT == pytest.approx(
        0.8 / RATE * math.log(1.0 / SPEED / 0.05), rel=0.05
    )


def test_is_limited_and_can_be_reset() -> None:
    correction = VelocityCorrection(SPEED, RATE)
    for _ in range(10_000):
        correction.adapt((0.5, 0.1, 0.3), (1.0, -1.0), DT * GAIN)
    for command in ((0.5, 0.1, 0.3), (5.0, 5.0, 9.0), (-5.0, 5.0, -9.0)):
        assert max(map(abs, correction.at(command))) <= 0.15 * SPEED
    correction.reset()
    assert correction.at((0.5, 0.1, 0.3)) == (0.0, 0.0)
