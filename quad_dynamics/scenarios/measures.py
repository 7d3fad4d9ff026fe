# SPDX-License-Identifier: Apache-2.0
"""Performance measures of a run: the columns of results.csv, explained in docs/scenarios.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import gravity_norm
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.model.model import Model
from quad_dynamics.scenarios.columns import COLUMNS
from quad_dynamics.scenarios.settings import CONTROL_PERIOD, Scenario
from quad_dynamics.scenarios.traces import Traces
from quad_dynamics.simulation.log import Log
from quad_dynamics.simulation.plots import foot_motion
from quad_dynamics.terrain.terrain import Terrain

_BRIEF = 0.02  # contacts and gaps shorter than this neither begin nor end a stance [s]
_SHORTEST_WAY = 0.1  # shortest distance with a cost of transport [m]


def measure(
    scenario: Scenario,
    log: Log,
    traces: Traces,
    terrain: Terrain,
    height: float,
    fall_time: float,
    failures: int,
) -> dict[str, Any]:
    """The row of a run, by column.

    Args:
        scenario: what was run.
        log: of the simulator.
        traces: of the run, with the same rows.
        terrain: the ground.
        height: target height of the base [m].
        fall_time: NaN if it did not fall [s].
        failures: solves that failed.
    """
    t, model = traces.t, log.model
    late = math.inf if math.isnan(fall_time) else fall_time
    counted = (t > scenario.measure_from + 1e-9) & (t <= late + 1e-9)
    velocity = averaged(heading_velocity(traces.q, traces.u), traces.period)
    error = velocity - traces.cmd
    spans = command_spans(traces.cmd, t, counted, scenario.settle)
    roll, pitch, _ = euler_angles(traces.q)
    ground = np.asarray(terrain.height(traces.q[:, 0], traces.q[:, 1]))
    way = CONTROL_PERIOD * float(np.linalg.norm(velocity[counted, :2], axis=1).sum())
    update = traces.update_us[counted & np.isfinite(traces.update_us)]
    row = {
        'scenario': scenario.name,
        'robot': model.name,
        'contact': scenario.simulator.contact,
        'seed': scenario.seed,
        'fell': int(not math.isnan(fall_time)),
        'fall_time': fall_time,
        'v_error_mean': span_error(error[:, :2], spans),
        'v_error_rms': rms(np.linalg.norm(error[:, :2], axis=1)[spans >= 0]),
        'yaw_error_mean': span_error(error[:, 2:], spans),
        'roll_rms': rms(roll[counted]),
        'pitch_rms': rms(pitch[counted]),
        'height_error_mean': _mean(np.abs(traces.q[:, 2] - ground - height)[counted]),
        'slip_per_step': slip_per_step(log, terrain, counted),
        'torque_share_max': _highest(torque_share(model, traces.tau[counted])),
        'update_us_p50': _percentile(update, 50.0),
        'update_us_p99': _percentile(update, 99.0),
        'solver_failures': failures,
        'distance': way,
        'cost_of_transport': cost_of_transport(model, traces.tau[counted], traces.u[counted], way),
    }
    assert tuple(row) == COLUMNS
    return {name: float(value) if isinstance(value, np.floating) else value for name, value in row.items()}


# ---------------------------------------------------------------- motion of the base


def euler_angles(q: Floats) -> tuple[Floats, Floats, Floats]:
    """Roll, pitch and yaw (n,) of the base, R = Rz(yaw) Ry(pitch) Rx(roll) [rad]."""
    x, y, z, w = q[:, 3:7].T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw


def heading_velocity(q: Floats, u: Floats) -> Floats:
    """(n, 3) velocity of the base in the heading frame: forward, to the left [m/s], yaw rate [rad/s].

    The heading frame has a vertical z axis, and the yaw of the base.

    Args:
        q: (n, nq) configurations.
        u: (n, nv) velocities.
    """
    yaw = euler_angles(q)[2]
    c, s = np.cos(yaw), np.sin(yaw)
    x, y, z, w = q[:, 3:7].T
    # the third row of R_WB times the angular velocity in base axes
    turn = (
        2.0 * (x * z - w * y) * u[:, 3]
        + 2.0 * (y * z + w * x) * u[:, 4]
        + (1.0 - 2.0 * (x * x + y * y)) * u[:, 5]
    )
    return np.stack([c * u[:, 0] + s * u[:, 1], c * u[:, 1] - s * u[:, 0], turn], axis=1)


def averaged(values: Floats, period: Floats) -> Floats:
    """The mean over the period before each row, that row included; over fewer rows at the start.

    Args:
        values: (n, k) at the rate of the controller.
        period: (n,) [s].
    """
    n = len(values)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    ends = np.arange(1, n + 1)
    begins = np.maximum(ends - np.maximum(np.rint(period / CONTROL_PERIOD).astype(np.int64), 1), 0)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins)[:, None])


def command_spans(cmd: Floats, t: Floats, counted: Bools, settle: float) -> npt.NDArray[np.int64]:
    """(n,) index of the span of constant command that a row belongs to; -1: not measured.

    Args:
        cmd: (n, 3) commands.
        t: (n,) end of the control period [s].
        counted: (n,) rows that may count.
        settle: time left out at the start of each span [s].
    """
    if not len(t):
        return np.zeros(0, np.int64)
    changes = np.concatenate([[True], (np.diff(cmd, axis=0) != 0.0).any(axis=1)])
    span = np.cumsum(changes) - 1
    begin = (t[changes] - CONTROL_PERIOD)[span]
    return np.where(counted & (t > begin + settle + 1e-9), span, -1)


def span_error(error: Floats, spans: npt.NDArray[np.int64]) -> float:
    """Magnitude of the mean error of each span, averaged over spans by duration; NaN without spans.

    Args:
        error: (n, k).
        spans: (n,) as `command_spans` returns.
    """
    numbers = np.unique(spans[spans >= 0])
    if not len(numbers):
        return math.nan
    sizes = [float(np.linalg.norm(error[spans == i].mean(axis=0))) for i in numbers]
    return float(np.average(sizes, weights=[np.count_nonzero(spans == i) for i in numbers]))


# ---------------------------------------------------------------- feet and motors


def slip_per_step(log: Log, terrain: Terrain, counted: Bools) -> float:
    """Slip of the feet along the ground per stance; NaN without stances [m]."""
    motion = foot_motion(log, terrain)
    touching = motion.normal_force > 0.0
    way = CONTROL_PERIOD * float(motion.speed[counted].sum())
    stances = sum(count_stances(touching[counted, i]) for i in range(touching.shape[1]))
    return way / stances if stances else math.nan


def count_stances(touching: Bools) -> int:
    """Number of stance phases of a foot.

    Args:
        touching: (n,) at the rate of the controller. Gaps and contacts shorter than 20 ms are ignored.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], touching.astype(np.int8), [0]])))
    begins, ends = edges[::2], edges[1::2]
    if not len(begins):
        return 0
    brief = round(_BRIEF / CONTROL_PERIOD)
    apart = np.concatenate([[True], begins[1:] - ends[:-1] >= brief])
    starts = begins[apart]
    stops = ends[np.concatenate([apart[1:], [True]])]
    return int(np.count_nonzero(stops - starts >= brief))


def torque_share(model: Model, tau: Floats) -> Floats:
    """(n,) largest torque of a motor over its effort limit; NaN where no motor has a limit.

    Args:
        model: robot.
        tau: (n, nj) [N m].
    """
    limited = np.isfinite(model.effort_limit) & (model.effort_limit > 0.0)
    if not limited.any():
        return np.full(len(tau), math.nan)
    return np.asarray((np.abs(tau[:, limited]) / model.effort_limit[limited]).max(axis=1))


def cost_of_transport(model: Model, tau: Floats, u: Floats, way: float) -> float:
    """Positive mechanical work of the motors over weight times distance; NaN below 0.1 m.

    Args:
        model: the true robot.
        tau: (n, nj) torques of the motors [N m].
        u: (n, nv) velocities.
        way: [m].
    """
    if way < _SHORTEST_WAY:
        return math.nan
    work = CONTROL_PERIOD * float(np.maximum(tau * u[:, -model.nj :], 0.0).sum())
    return work / (model.total_mass * gravity_norm(model) * way)


# ---------------------------------------------------------------- statistics of possibly empty data


def rms(values: Floats) -> float:
    """Root mean square; NaN if there are no values."""
    return math.sqrt(float(np.mean(values**2))) if len(values) else math.nan


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _highest(values: Floats) -> float:
    return float(values.max()) if len(values) else math.nan


def _percentile(values: Floats, share: float) -> float:
    return float(np.percentile(values, share)) if len(values) else math.nan
