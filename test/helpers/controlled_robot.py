# SPDX-License-Identifier: Apache-2.0
"""A log of a robot under control: encoder noise goes through the controller into motion and torques."""

from __future__ import annotations

from typing import Any

import numpy as np
from identification_data import smooth_motion

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.samples import Samples


def real_gains(model: Any, q: Floats, gains: tuple[float, float]) -> tuple[Floats, Floats]:
    """(nj,) kp and kd for gains in units of the inertia that each joint feels in a pose."""
    felt = np.diag(qd.mass_matrix(model, q))
    return gains[0] * felt, gains[1] * felt


def closed_loop_samples(
    model_true: Any,
    seed: int,
    gains: tuple[float, float],
    encoder: float,
    seconds: float = 20.0,
    rate: float = 100.0,
) -> tuple[Samples, Floats]:
    """Samples of a fixed-base robot that a controller moves by what noisy encoders say.

    The controller is tau = kp (q_ref - q_meas) + kd (u_ref - u_meas), at 1 kHz, u_meas the slope over 4 ms.
    Velocities and accelerations of the samples are central differences of what was measured over 20 ms.

    Args:
        model_true: the robot.
        seed: of motion and noise.
        gains: kp and kd, in units of the inertia that each joint feels [1/s^2, 1/s].
        encoder: standard deviation of each reading [rad].
        seconds: length [s].
        rate: of samples [Hz]; divides 1000.

    Returns:
        The samples, and x (size,) that the robot obeys.
    """
    rng = np.random.default_rng(seed)
    dt, n, nj = 1e-3, round(seconds * 1000), model_true.nj
    q_ref, u_ref, _ = smooth_motion(model_true, np.arange(n) * dt, rng)
    kp, kd = real_gains(model_true, q_ref[0], gains)
    q, u = q_ref[0].copy(), u_ref[0].copy()
    noise = encoder * rng.standard_normal((n, nj))
    measured, tau = np.empty((n, nj)), np.empty((n, nj))
    for k in range(n):
        measured[k] = q + noise[k]
        slope = (measured[k] - measured[max(k - 4, 0)]) / (4 * dt) if k >= 4 else u
        tau[k] = kp * (q_ref[k] - measured[k]) + kd * (u_ref[k] - slope)
        friction = model_true.viscous * u + model_true.coulomb * np.tanh(u / 0.02)
        u = u + dt * qd.forward_dynamics(model_true, q, u, tau[k] - friction)
        q = q + dt * u
    wide = 20  # [ms]; half of the window of the differences
    step = round(1000 / rate)
    at = np.arange(200, n - 200, step)
    velocity = (measured[at + wide] - measured[at - wide]) / (2 * wide * dt)
    acceleration = (measured[at + wide] - 2.0 * measured[at] + measured[at - wide]) / (wide * dt) ** 2
    samples = Samples(model_true)
    rows = samples.layout.join(
        time=at * dt,
        segment=np.zeros(len(at)),
        q=measured[at],
        u=velocity,
        du=acceleration,
        tau=tau[at],
        sign=np.sign(velocity),
        use=np.abs(velocity) > 0.1,
        force=np.empty((len(at), 0)),
        stance=np.empty((len(at), 0)),
    )
    samples.append(rows)
    return samples, make_columns(model_true).prior
