# SPDX-License-Identifier: Apache-2.0
"""Settings for making samples of a recording: filters, fusion of velocities, thresholds of rest."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.identification.signals.base_motion import imu_place
from quad_dynamics.identification.signals.even_log import EvenLog
from quad_dynamics.identification.signals.filters import LowPass
from quad_dynamics.identification.signals.motion import Fusion, MotionPlan, base_signals, imu_signals
from quad_dynamics.identification.signals.sampling import Plan
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.velocity_check import VelocityCheck, check_velocities
from quad_dynamics.model.model import Model

_SAMPLES_PER_CUTOFF = 3.0  # samples per period of the cutoff
_REST_NOISE = 3.0  # standard deviations of velocity below which its sign is unknown
_LEAST_REST = 2e-3  # lower bound of this threshold, relative to the RMS velocity
STILL = 1e-3  # a smaller RMS velocity may be caused by encoder steps [rad/s or m/s]
# Cutoff of the velocity whose sign is used, relative to that of the filter, and to the rate.
_WIDER, _WIDEST = 3.0, 0.4
_CLEAR = 0.01  # noise of that velocity relative to its root mean square


def make_plan(
    log: EvenLog, model: Model, settings: SignalSettings, cutoff: float
) -> tuple[Plan, VelocityCheck | None]:
    """The plan of a recording, and the quality of its measured joint velocities.

    Args:
        log: recording.
        model: robot.
        settings: of signals.
        cutoff: of the low-pass filter [Hz].
    """
    grid = log.grid
    low_pass = LowPass(cutoff, settings.order, grid.rate)
    joints, fusion = None, Fusion.positions(model.nj)
    if 'velocity' in grid:
        joints = check_velocities(
            grid, lambda rows: (grid.get(rows, 'position'), grid.get(rows, 'velocity')), low_pass
        )
        fusion = joints.fusion(cutoff)
    wide = _wide_cutoff(log, cutoff)
    rest = np.maximum(_REST_NOISE * log.spectrum.velocity_noise_below(wide), _LEAST_REST * log.speed)
    rest[log.speed < STILL] = np.inf
    if settings.rest_velocity is not None:
        rest = np.full(model.nj, settings.rest_velocity)
    wanted = settings.sample_rate or _SAMPLES_PER_CUTOFF * cutoff
    imu = imu_place(model, settings).p if log.chosen.base == 'imu' else None
    plan = Plan(
        grid=grid,
        motion=MotionPlan(model, fusion, _base_fusion(log, settings, low_pass), imu),
        low_pass=low_pass,
        wide=LowPass(wide, settings.order, grid.rate),
        step=max(1, math.floor(grid.rate / wanted + 1e-9)),
        rest=np.maximum(rest, 1e-9),
        torque_noise=log.spectrum.torque_noise,
        torque_spread=log.spread,
        idle=log.largest == 0.0,
        frames=log.source.force_frames,
        chunk=max(1, round(settings.chunk * grid.rate)),
        across=log.stance.across,
    )
    return plan, joints


def _base_fusion(log: EvenLog, settings: SignalSettings, low_pass: LowPass) -> Fusion:
    """How positions and velocities of the base are fused: of its position and its quaternion."""
    grid = log.grid
    if log.chosen.base and settings.velocity == 'positions':
        return Fusion.positions(7)
    if log.chosen.base == 'odom':
        check = check_velocities(grid, lambda rows: base_signals(grid, rows), low_pass, (3, 4))
        return check.fusion(low_pass.cutoff)
    if log.chosen.base == 'imu':
        turning = check_velocities(grid, lambda rows: imu_signals(grid, rows), low_pass, (4,))
        fusion = turning.fusion(low_pass.cutoff)
        # an IMU does not measure the position
        return Fusion(np.r_[np.full(3, np.inf), fusion.corner], np.r_[np.zeros(3), fusion.lag])
    return Fusion.positions(0)


def _wide_cutoff(log: EvenLog, cutoff: float) -> float:
    """Cutoff of the velocity whose sign is used [Hz]: as high as noise allows, to keep reversals sharp."""
    high = _WIDEST * log.grid.rate
    low = min(_WIDER * cutoff, high)
    for wide in np.geomspace(high, low, 20):
        noise = log.spectrum.velocity_noise_below(float(wide))
        if np.median(noise / np.maximum(log.speed, 1e-300)) < _CLEAR:
            return float(wide)
    return low
