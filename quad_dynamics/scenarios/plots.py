# SPDX-License-Identifier: Apache-2.0
"""Plots of scenarios: one per run, and one of all runs of a scenario."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.scenarios.measures import averaged, euler_angles, heading_velocity, torque_share
from quad_dynamics.scenarios.results import Row, mean_of
from quad_dynamics.simulation.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quad_dynamics.scenarios.runner import ScenarioRun


_DPI = 110
# What the overview shows: column, factor, unit.
_OVERVIEW = (
    ('v_error_mean', 1.0, 'm/s'),
    ('v_error_rms', 1.0, 'm/s'),
    ('yaw_error_mean', 1.0, 'rad/s'),
    ('roll_rms', 180.0 / math.pi, 'deg'),
    ('pitch_rms', 180.0 / math.pi, 'deg'),
    ('height_error_mean', 1e3, 'mm'),
    ('slip_per_step', 1e3, 'mm'),
    ('torque_share_max', 1.0, '-'),
    ('cost_of_transport', 1.0, '-'),
)
_PLANNED, _ACTUAL = '0.8', COLOURS[0]


def plot_run(run: ScenarioRun, path: str | os.PathLike[str]) -> None:
    """Draw a run: velocity, posture, torques, gait and contact over time.

    Args:
        run: of one seed.
        path: of the plot, which is overwritten.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 11.5), layout='constrained')
    ratios = [1.0, 0.8, 1.0, 0.8, 0.8, 1.2]
    axes: Sequence[Axes] = list(figure.subplots(6, 1, sharex=True, height_ratios=ratios))
    _draw_velocity(axes[0], axes[1], run)
    _draw_posture(axes[2], axes[3], run)
    _draw_torque(axes[4], run)
    _draw_contact(axes[5], run)
    for one in axes:
        _mark_events(one, run)
        one.spines[['top', 'right']].set_visible(False)
        one.set_xlim(0.0, max(float(run.traces.t[-1]), 1e-3))
        one.legend(loc='upper left', bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
    for one in axes[:5]:
        one.grid(alpha=0.3)
    axes[-1].set_xlabel('time [s]')
    row = run.row
    fate = f', fell at {row["fall_time"]:.2f} s' if row['fell'] else ''
    figure.suptitle(f'{row["scenario"]}: {row["robot"]}, {row["contact"]} contact, seed {row["seed"]}{fate}')
    figure.savefig(path, dpi=_DPI)


def _draw_velocity(linear: Axes, turning: Axes, run: ScenarioRun) -> None:
    traces = run.traces
    v = heading_velocity(traces.q, traces.u)
    mean = averaged(v, traces.period)
    names = ('forward', 'left', 'yaw rate')
    for i, axes in enumerate((linear, linear, turning)):
        colour = COLOURS[i % 2]
        axes.plot(traces.t, v[:, i], color=colour, alpha=0.25, linewidth=0.6)
        axes.plot(traces.t, mean[:, i], color=colour, label=f'{names[i]}, mean')
        axes.plot(traces.t, traces.cmd[:, i], color=colour, linestyle='--', label=f'{names[i]}, commanded')
    for axes, values in ((linear, v[:, :2]), (turning, v[:, 2:])):
        _room_for(axes, values)
    linear.set_ylabel('velocity [m/s]')
    turning.set_ylabel('yaw rate [rad/s]')


def _draw_posture(tilt: Axes, height: Axes, run: ScenarioRun) -> None:
    traces = run.traces
    roll, pitch, _ = euler_angles(traces.q)
    for i, (name, angle) in enumerate((('roll', roll), ('pitch', pitch))):
        tilt.plot(traces.t, np.degrees(angle), color=COLOURS[i], linewidth=0.9, label=name)
    _room_for(tilt, np.degrees(np.stack([roll, pitch], axis=1)))
    ground = np.asarray(run.sim.terrain.height(traces.q[:, 0], traces.q[:, 1]))
    height.plot(traces.t, traces.q[:, 2] - ground, color=COLOURS[2], label='above the ground')
    height.axhline(run.height, color='0.4', linestyle='--', linewidth=1.0, label='target')
    low, high = height.get_ylim()
    height.set_ylim(min(low, 0.9 * run.height), max(high, 1.1 * run.height))
    tilt.set_ylabel('angle [deg]')
    height.set_ylabel('base height [m]')


def _draw_torque(axes: Axes, run: ScenarioRun) -> None:
    traces = run.traces
    axes.plot(
        traces.t, torque_share(run.sim.model, traces.tau), color=COLOURS[3], linewidth=0.8, label='largest'
    )
    axes.axhline(1.0, color='0.4', linestyle='--', linewidth=1.0, label='limit')
    axes.set_ylim(0.0, 1.1)
    axes.set_ylabel('torque share [-]')


def _draw_contact(axes: Axes, run: ScenarioRun) -> None:
    """A lane per foot: contact as assumed by the controller above, actual contact forces below."""
    traces, feet = run.traces, run.log.foot_names
    touching = (traces.foot_forces != 0.0).any(axis=2)
    for i in range(len(feet)):
        y = len(feet) - 1 - i
        for flags, low, colour, label in (
            (traces.contact[:, i], 0.5, _PLANNED, 'controller'),
            (touching[:, i], 0.1, _ACTUAL, 'ground force'),
        ):
            bars = _intervals(traces.t, flags)
            axes.broken_barh(bars, (y + low, 0.38), color=colour, label=label if i == 0 else None)
    axes.set_ylim(0.0, len(feet) + 0.6)
    axes.set_yticks([len(feet) - 0.5 - i for i in range(len(feet))], labels=list(feet))
    changes = np.concatenate([[0], 1 + np.flatnonzero(traces.gait[1:] != traces.gait[:-1])])
    room = 0.05 * float(traces.t[-1])  # minimum width, so that names do not overlap
    last = -math.inf
    for k in changes:
        if traces.t[k] - last >= room:
            axes.text(traces.t[k], len(feet) + 0.1, str(traces.gait[k]), fontsize='small')
            last = traces.t[k]


def _intervals(t: Floats, flags: npt.NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Start and duration of the intervals in which a flag is set [s]."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    step = t[1] - t[0] if len(t) > 1 else 0.0
    return [(float(t[a] - step), float(t[b - 1] - t[a] + step)) for a, b in edges.reshape(-1, 2)]


def _mark_events(axes: Axes, run: ScenarioRun) -> None:
    """Pushes and the fall."""
    for event in run.scenario.events:
        if event.push is not None and event.time <= run.traces.t[-1]:
            end = event.time + event.push.duration
            axes.axvspan(event.time, end, color=COLOURS[4], alpha=0.3, linewidth=0.0)
    if run.row['fell']:
        axes.axvline(run.row['fall_time'], color=COLOURS[3], linewidth=1.5)


def _room_for(axes: Axes, values: Floats) -> None:
    """Limit the axis so that single peaks, such as those of a fall, do not compress the rest."""
    low, high = np.percentile(values, [0.5, 99.5])
    lowest, highest = axes.get_ylim()
    margin = 0.5 * (high - low) + 1e-2
    axes.set_ylim(max(lowest, low - margin), min(highest, high + margin))


# ---------------------------------------------------------------- all runs of a scenario


def plot_overview(
    rows: Sequence[Row], expect: Mapping[str, float], path: str | os.PathLike[str], title: str
) -> None:
    """Draw the measures of all runs of a scenario, one point for each seed.

    Args:
        rows: of the runs.
        expect: upper bounds of means, drawn as lines.
        path: of the plot, which is overwritten.
        title: written above.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(11.0, 7.5), layout='constrained')
    panels: Sequence[Axes] = list(figure.subplots(3, 3, sharex=True).ravel())
    seeds = np.array([row['seed'] for row in rows])
    fell = np.array([bool(row['fell']) for row in rows])
    for axes, (name, factor, unit) in zip(panels, _OVERVIEW, strict=True):
        values = factor * np.array([float(row[name]) for row in rows])
        axes.plot(seeds[~fell], values[~fell], 'o', color=COLOURS[0], label='did not fall')
        axes.plot(seeds[fell], values[fell], 'x', color=COLOURS[3], label='fell')
        _line(axes, factor * mean_of(rows, name), {'color': COLOURS[0], 'linewidth': 1.0, 'label': 'mean'})
        bound = factor * expect.get(name, math.nan)
        _line(axes, bound, {'color': COLOURS[1], 'linestyle': '--', 'label': 'expected at most'})
        axes.set_title(f'{name} [{unit}]', fontsize='medium')
        highest = max([x for x in (*values, bound) if not math.isnan(x)], default=0.0)
        axes.set_ylim(0.0, 1.1 * highest or 1.0)
        axes.grid(alpha=0.3)
        axes.spines[['top', 'right']].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in panels[-3:]:
        axes.set_xlabel('seed')
    shown = {str(line.get_label()): line for axes in panels for line in axes.get_lines()}
    figure.legend(
        list(shown.values()), list(shown), loc='outside lower center', ncols=len(shown), frameon=False
    )
    figure.suptitle(f'{title}: {int(fell.sum())} of {len(rows)} fell')
    figure.savefig(path, dpi=_DPI)


def _line(axes: Axes, level: float, look: dict[str, Any]) -> None:
    if not math.isnan(level):
        axes.axhline(level, **look)
