# SPDX-License-Identifier: Apache-2.0
"""Plots of a report, as SVG text: the same input gives the same text, bit for bit."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.report.traces import Traces, runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Measured, before, after: colours of Okabe and Ito, which are safe for colour-blind readers.
MEASURED, BEFORE, AFTER = '#333333', '#E69F00', '#0072B2'
WIDTH = 10.4  # of a page [inches]
# The measured line is wide and light, so that a prediction on top of it does not hide it.
MEASURED_WIDE = '#aaaaaa'
# Backgrounds: no samples, rows that are not used, and held-out blocks with their margins.
_EMPTY, _UNUSED, _JUDGED, _MARGIN = '#efefef', '#eadff2', '#c3e3d3', '#e9f5ef'
_LONG_TITLE = 26  # letters of a title that does not fit above a narrow panel
_FEW = 150  # samples of a line up to which each one is marked
_STYLE: dict[str, Any] = {
    'svg.fonttype': 'none',
    'font.family': 'sans-serif',
    'font.sans-serif': ['DejaVu Sans'],
    'font.size': 8.5,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.edgecolor': '#888888',
    'axes.linewidth': 0.7,
    'axes.grid': True,
    'axes.axisbelow': True,
    'axes.titlesize': 9.0,
    'axes.titlelocation': 'left',
    'grid.color': '#e6e6e6',
    'grid.linewidth': 0.6,
    'xtick.color': '#555555',
    'ytick.color': '#555555',
    'legend.frameon': False,
    'lines.linewidth': 1.1,
    'path.simplify': True,
    'path.simplify_threshold': 0.3,
}


def _style(name: str) -> Any:
    """Style of the figures; identifiers in their SVG text are derived from the name."""
    return {**_STYLE, 'svg.hashsalt': f'quad_dynamics {name}'}


@contextmanager
def picture(
    name: str, height: float, width: float = WIDTH, placed: bool = False
) -> Iterator[tuple[Figure, list[str]]]:
    """A figure to draw on; afterwards its SVG text is in the list.

    Args:
        name: of the plot, unique on the page: identifiers in the SVG text are derived from it.
        height: [inches].
        width: [inches].
        placed: whether the caller places all axes; otherwise matplotlib does.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    made: list[str] = []
    # Browsers have other fonts than matplotlib: labels need some space.
    layout = None if placed else ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.09)
    with mpl.rc_context(_style(name)):
        figure = Figure(figsize=(width, height), layout=layout)
        yield figure, made
        stream = io.StringIO()
        figure.savefig(stream, format='svg', metadata={'Date': None, 'Creator': None}, transparent=True)
    text = stream.getvalue()
    text = text[text.index('<svg') :]
    # The browser determines its size; the fonts are those of the page.
    for size in ('width', 'height'):
        text = re.sub(rf'(<svg [^>]*?) {size}="[^"]*"', r'\1', text, count=1)
    text = re.sub(r"font(-family)?: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r'font\1: \2sans-serif', text)
    text = re.sub(r'<metadata>.*?</metadata>\s*', '', text, flags=re.DOTALL)
    # A hundredth of a point is finer than any screen.
    made.append(re.sub(r' (?:d|x|y)="[^"]*"', lambda match: re.sub(r'(\.\d\d)\d+', r'\1', match[0]), text))


def _shape(k: int, most: int) -> tuple[int, int]:
    """Rows and columns of k plots, with a maximum number of columns."""
    columns = min(most, max(k, 1))
    return -(-k // columns), columns


def _first(grid: npt.NDArray[np.object_], k: int) -> list[Axes]:
    """The first k axes of a grid; the others are hidden."""
    places: list[Axes] = list(grid.ravel())
    for axes in places[k:]:
        axes.set_visible(False)
    return places[:k]


def draw_torques(traces: Traces) -> str:
    """Measured and predicted torques over a few seconds, one plot for each row."""
    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with picture('torques', 1.65 * lines + 0.5) as (figure, made):
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            for values, colour, label, width in (
                (traces.measured, MEASURED_WIDE, 'measured', 2.6),
                (traces.before, BEFORE, 'predicted before', 1.0),
                (traces.after, AFTER, 'predicted after', 1.0),
            ):
                _line(axes, traces, values[:, i], color=colour, label=label, linewidth=width)
            _finish_line(axes, traces, i)
        _label_bottom(grid, k, _time_label(traces))
        _legend(figure, grid)
    return made[0]


def draw_residuals(traces: Traces) -> str:
    """RMS of residuals over all samples, one plot for each row; nothing where there are no samples."""
    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with picture('residuals', 1.35 * lines + 0.5) as (figure, made):
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        edges = traces.bin_edges
        for i, axes in enumerate(_first(grid, k)):
            _shade(axes, traces.judged, _JUDGED, 'held out')
            _shade(axes, traces.margins, _MARGIN, 'margin of held out')
            _shade(axes, _bin_spans(traces, traces.bin_empty), _EMPTY, 'no samples')
            _shade(axes, _bin_spans(traces, traces.bin_unused[:, i]), _UNUSED, 'no row counts')
            axes.stairs(traces.bin_before[:, i], edges, fill=True, color=BEFORE, alpha=0.55, label='before')
            # Without a baseline, the line does not drop to zero where there are no samples.
            axes.stairs(
                traces.bin_after[:, i], edges, color=AFTER, linewidth=1.5, baseline=None, label='after'
            )
            axes.set_title(f'{traces.names[i]} [{traces.units[i]}]')
            axes.set_xlim(edges[0], edges[-1])
            axes.set_ylim(bottom=0.0)
            axes.locator_params(axis='y', nbins=3)
            _say_nothing_counts(axes, traces, i)
        several = ', recordings one after another' if traces.survey.recordings > 1 else ''
        _label_bottom(grid, k, f'time{several} [s]')
        _legend(figure, grid)
    return made[0]


def draw_histograms(traces: Traces) -> str:
    """Distribution of residuals, one plot for each row."""
    k = len(traces.names)
    titles = [f'{name} [{unit}]' for name, unit in zip(traces.names, traces.units, strict=True)]
    lines, columns = _shape(k, 6 if max(map(len, titles), default=0) <= _LONG_TITLE else 4)
    with picture('histograms', 1.45 * lines + 0.4) as (figure, made):
        grid = figure.subplots(lines, columns, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            edges = traces.edges[:, i]
            before, after = (
                counts[:, i] if traces.share[i] else np.full(len(counts), np.nan)
                for counts in (traces.counts_before, traces.counts_after)
            )
            axes.stairs(before, edges, fill=True, color=BEFORE, alpha=0.55, label='before')
            axes.stairs(after, edges, color=AFTER, linewidth=1.3, label='after')
            axes.set_title(titles[i], fontsize=7.5)
            axes.set_yticks([])
            axes.spines['left'].set_visible(False)
            axes.grid(False)
            axes.locator_params(axis='x', nbins=4)
            axes.margins(x=0.0)
            if not traces.share[i]:
                axes.set_xticks([])
            _say_nothing_counts(axes, traces, i)
        _legend(figure, grid)
    return made[0]


def draw_spectrum(traces: Traces, cutoff: float) -> str:
    """Power of torques and residuals over frequency; '' if no segment was long enough.

    Args:
        traces: what to draw.
        cutoff: of the filters [Hz]; NaN is not drawn.
    """
    if not len(traces.frequency):
        return ''
    with picture('spectrum', 2.7) as (figure, made):
        axes = figure.subplots()
        looks = (('measured', MEASURED), ('residual before', BEFORE), ('residual after', AFTER))
        for power, (label, colour) in zip(traces.spectrum, looks, strict=True):
            axes.loglog(traces.frequency, np.maximum(power, 1e-16), color=colour, label=label)
        top = float(traces.spectrum.max(initial=1e-12))
        axes.set_ylim(top * 1e-9, top * 3.0)
        if np.isfinite(cutoff):
            axes.axvline(
                cutoff, color='#009E73', linestyle='--', linewidth=1.0, label=f'cutoff {cutoff:.3g} Hz'
            )
        units = ' or '.join(f'({unit})²/Hz' for unit in dict.fromkeys(traces.units))
        axes.set_xlabel('frequency [Hz]')
        axes.set_ylabel(f'power, mean of rows\n[{units}]')
        axes.margins(x=0.0)
        _label_frequencies(axes)
        axes.legend(loc='lower left', ncols=2)
    return made[0]


def _label_frequencies(axes: Axes) -> None:
    """Plain numbers at the frequencies, and few enough powers of ten that their labels do not touch."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.yaxis.set_minor_locator(NullLocator())


def save_residuals(traces: Traces, path: str | os.PathLike[str]) -> None:
    """Draw measured and predicted torques of a few seconds, and residuals, into a file.

    Args:
        traces: what to draw; before and after are the same.
        path: of the plot; its extension determines the format. It is overwritten.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with mpl.rc_context(_style('residual')):
        figure = Figure(figsize=(WIDTH, 1.8 * lines + 0.5), layout='constrained')
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            residual = traces.measured[:, i] - traces.before[:, i]
            axes.fill_between(traces.time, residual, color=BEFORE, alpha=0.5, linewidth=0.0, label='residual')
            _line(axes, traces, traces.measured[:, i], color=MEASURED, label='measured')
            _line(axes, traces, traces.before[:, i], color=AFTER, label='predicted')
            _finish_line(axes, traces, i)
        _label_bottom(grid, k, _time_label(traces))
        _legend(figure, grid)
        kind = Path(path).suffix.lstrip('.').lower()
        figure.savefig(path, dpi=130, metadata={'Date': None} if kind == 'svg' else None)


def _line(axes: Axes, traces: Traces, values: Floats, **look: Any) -> None:
    """One line over time, broken between segments; single samples are visible, too."""
    few = len(traces.time) <= _FEW
    axes.plot(traces.time, values, marker='.' if few else '', markersize=2.2, **look)


def _finish_line(axes: Axes, traces: Traces, i: int) -> None:
    """Title and limits of a line plot, unused rows, and borders of segments."""
    _shade(axes, _unused_spans(traces, i), _UNUSED, 'does not count')
    for place in traces.breaks:
        axes.axvline(float(place), color='#bbbbbb', linestyle=':', linewidth=0.8)
    axes.set_title(f'{traces.names[i]} [{traces.units[i]}]')
    axes.margins(x=0.0 if len(traces.time) > 1 else 0.5)
    axes.locator_params(axis='y', nbins=4)


def _time_label(traces: Traces) -> str:
    return 'time within the segments shown [s]' if len(traces.breaks) else 'time [s]'


def _shade(axes: Axes, spans: Floats, colour: str, label: str) -> None:
    """Shade (m, 2) spans of time."""
    if len(spans):
        axes.broken_barh(
            [(float(begin), float(end - begin)) for begin, end in spans],
            (0.0, 1.0),
            transform=axes.get_xaxis_transform(),
            facecolor=colour,
            linewidth=0.0,
            zorder=0.0,
            label=label,
        )


def _bin_spans(traces: Traces, bins: Bools) -> Floats:
    """(m, 2) spans of some bins of time."""
    begins, ends = runs(bins)
    return np.stack([traces.bin_edges[begins], traces.bin_edges[ends]], axis=1)


def _unused_spans(traces: Traces, i: int) -> Floats:
    """(m, 2) spans of the detailed torques in which a row is not used."""
    begins, ends = runs(~traces.used[:, i])
    half = 0.5 * traces.survey.period
    return np.stack([traces.time[begins] - half, traces.time[ends - 1] + half], axis=1)


def _say_nothing_counts(axes: Axes, traces: Traces, i: int) -> None:
    if traces.share[i] == 0.0:
        axes.set_yticks([])
        axes.text(0.5, 0.5, 'no row counts', transform=axes.transAxes, ha='center', va='center', fontsize=7)


def _label_bottom(grid: npt.NDArray[Any], k: int, label: str) -> None:
    """Label the x axis of the lowest plot of each column."""
    lines, columns = grid.shape
    for c in range(columns):
        low = max((r for r in range(lines) if r * columns + c < k), default=None)
        if low is not None:
            grid[low, c].set_xlabel(label)
            grid[low, c].tick_params(labelbottom=True)


def _legend(figure: Figure, grid: npt.NDArray[np.object_]) -> None:
    """One legend for all plots."""
    found: dict[str, Any] = {}
    for axes in grid.ravel():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc='outside upper right', ncols=len(found))
