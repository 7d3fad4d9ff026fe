# SPDX-License-Identifier: Apache-2.0
"""Live plots: joint torques, forces on the feet, height of the base."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.model import Model
from viewer_node.axis_range import AxisRange
from viewer_node.colors import LINES
from viewer_node.history import History

_HEIGHT = 176  # of a plot [pixels]; three of them fit on a small screen
_FORCES = 'vertical foot force [N], dashed: estimated'
_ALL = 'all'
_DASHES = ((), (6, 3), (2, 2))  # of the joints of a leg, from the base outward


class Plots:
    """All plots of one robot."""

    def __init__(self, gui: Any, model: Model, duration: float, rate: float) -> None:
        """Add the plots where the GUI is being built.

        Args:
            gui: of the server.
            model: the robot.
            duration: of the shown time span [s].
            rate: highest rate of samples [Hz].
        """
        feet = model.foot_names
        gui.add_html(_legend([leg.name for leg in model.legs]))
        self._torques = History(model.nj, duration, rate)
        self._forces = History(2 * len(feet), duration, rate)
        self._height = History(1, duration, rate)
        weight = 9.81 * model.total_mass
        self._torque_plots, self._choice = self._add_torques(gui, model, weight)
        lines = [_line(f'{foot}', LINES[i % len(LINES)]) for i, foot in enumerate(feet)]
        lines += [
            _line(f'{foot} estimated', LINES[i % len(LINES)], dash=(5, 4)) for i, foot in enumerate(feet)
        ]
        self._force_plot = _Plot(gui, _FORCES, lines, 0.1 * weight) if feet else None
        self._height_plot = None
        if model.floating_base:
            self._height_plot = _Plot(gui, 'height of the base [m]', [_line('base', LINES[0])], 0.02)

    def _add_torques(
        self, gui: Any, model: Model, weight: float
    ) -> tuple[dict[str, tuple[_Plot, list[int]]], Any]:
        """A plot for each leg and one for all joints; only one of them is visible."""
        legs = {leg.name: list(leg.joint_indices) for leg in model.legs}
        groups = {_ALL: list(range(model.nj)), **legs}
        color = {j: LINES[i % len(LINES)] for i, leg in enumerate(legs.values()) for j in leg}
        dash = {j: _DASHES[k % len(_DASHES)] for leg in legs.values() for k, j in enumerate(leg)}
        choice = gui.add_dropdown('torques of', list(groups), initial_value=_ALL)
        plots = {}
        for name, joints in groups.items():
            if not joints:
                continue
            lines = []
            for k, j in enumerate(joints):
                plain = LINES[k % len(LINES)]
                shade, dashes = (color.get(j, plain), dash.get(j, ())) if name == _ALL else (plain, ())
                lines.append(_line(model.joint_names[j].removesuffix('_joint'), shade, dash=dashes))
            plots[name] = _Plot(gui, 'joint torque [N m]', lines, 0.02 * weight, name == _ALL), joints
        return plots, choice

    def add(self, time: float, tau: Floats, forces: Floats, height: float) -> None:
        """Add a sample.

        Args:
            time: simulated [s].
            tau: (nj,) joint torques [N m].
            forces: (2 feet,) vertical, measured and then estimated [N]; NaN where there is none.
            height: of the base [m].
        """
        self._torques.add(time, tau)
        self._forces.add(time, forces)
        self._height.add(time, np.array([height]))

    def draw(self) -> None:
        """Send the visible plots to the browser."""
        for name, (plot, joints) in self._torque_plots.items():
            is_chosen = name == self._choice.value
            if is_chosen:
                plot.draw(self._torques.columns()[[0, *(j + 1 for j in joints)]])
            plot.show(is_chosen)
        if self._force_plot is not None:
            self._force_plot.draw(self._forces.columns())
        if self._height_plot is not None:
            self._height_plot.draw(self._height.columns())


class _Plot:
    """One plot.

    uPlot chooses the axis range; an invisible line that spans the range that we want makes it choose that
    one. It cannot plot NaN: missing values are hidden, see `without_gaps`.
    """

    def __init__(
        self, gui: Any, title: str, lines: list[dict[str, Any]], least: float, visible: bool = True
    ) -> None:
        """Add it.

        Args:
            gui: of the server.
            title: above the plot.
            lines: what `_line` makes.
            least: that the axis covers at least.
            visible: whether it is seen.
        """
        self._range = AxisRange(least)
        axis = {'stroke': '#868e96', 'grid': {'stroke': '#e9ecef', 'width': 1}, 'ticks': {'show': False}}
        self._handle = gui.add_uplot(
            data=(np.array([0.0, 1.0]), *(np.zeros(2) for _ in range(len(lines) + 1))),
            series=({'label': 't [s]'}, *lines, _line('', 'rgba(0, 0, 0, 0)')),
            title=title,
            scales={'x': {'time': False}, 'y': {'auto': True}},
            axes=({**axis, 'size': 26}, {**axis, 'size': 46}),
            legend={'show': False},
            cursor={'show': False},
            height=_HEIGHT,
            padding=(6, 12, 0, 0),
            visible=visible,
        )

    def show(self, visible: bool) -> None:
        """Show or hide it."""
        self._handle.visible = visible

    def draw(self, columns: Floats) -> None:
        """Send data (1 + lines, samples) to the browser."""
        signals = without_gaps(columns[1:])
        if signals is None or columns.shape[1] < 2:
            return
        self._range.fit(signals)
        ends = np.full(columns.shape[1], self._range.low)
        ends[1] = self._range.high
        self._handle.data = (columns[0], *signals, ends)


def without_gaps(signals: Floats) -> Floats | None:
    """Signals (n, samples) without NaN.

    A signal holds its last value over gaps. A signal without any value is hidden behind another one: the
    corresponding row of the other half (measured and estimated signals are the two halves), or any other.

    Returns:
        None if there are no values at all.
    """
    has_values = np.asarray(np.isfinite(signals).any(axis=1))
    if not has_values.any():
        return None
    filled = signals.copy()
    n = len(signals)
    for i in np.flatnonzero(has_values & ~np.isfinite(signals).all(axis=1)):
        good = np.flatnonzero(np.isfinite(signals[i]))
        last = np.searchsorted(good, np.arange(signals.shape[1]), side='right') - 1
        filled[i] = signals[i, good[np.maximum(last, 0)]]
    for i in np.flatnonzero(~has_values):
        partner = (i + n // 2) % n
        filled[i] = filled[partner if has_values[partner] else int(np.argmax(has_values))]
    return filled


def _legend(names: Sequence[str]) -> str:
    """The legend: colours and names."""
    squares = [f'<span style="color:{LINES[i % len(LINES)]}">&#9632;</span>' for i in range(len(names))]
    marks = [f'{square}&nbsp;{html.escape(name)}' for square, name in zip(squares, names, strict=True)]
    return f'<div style="padding:0.5em 0.9em 0 0.9em;font-size:0.9em">{" &emsp; ".join(marks)}</div>'


def _line(label: str, color: str, dash: Sequence[int] = ()) -> dict[str, Any]:
    line: dict[str, Any] = {'label': label, 'stroke': color, 'width': 1.5, 'points': {'show': False}}
    return line | {'dash': tuple(dash)} if dash else line
