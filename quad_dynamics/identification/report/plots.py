# SPDX-License-Identifier: Apache-2.0
"""Pictures of a report, as SVG text: the same input gives the same text, bit for bit."""

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

from quad_dynamics.identification.report.traces import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

# Measured, before, after: of Okabe and Ito's colours, which everybody can tell apart.
MEASURED, BEFORE, AFTER = '#333333', '#E69F00', '#0072B2'
_WIDTH = 10.4  # of a page [inches]
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
    """How figures look; identifiers inside of their SVG text follow from the name."""
    return {**_STYLE, 'svg.hashsalt': f'quad_dynamics {name}'}


@contextmanager
def picture(name: str, height: float, width: float = _WIDTH) -> Iterator[tuple[Figure, list[str]]]:
    """A figure to draw on; its SVG text is in the list afterwards.

    Args:
        name: of the picture, different from all others on the page: names inside of it are made from it.
        height: [inches].
        width: [inches].
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    made: list[str] = []
    with mpl.rc_context(_style(name)):
        figure = Figure(figsize=(width, height), layout='constrained')
        yield figure, made
        stream = io.StringIO()
        figure.savefig(stream, format='svg', metadata={'Date': None, 'Creator': None}, transparent=True)
    text = stream.getvalue()
    text = text[text.index('<svg') :]
    # The browser sizes it; the fonts are those of the page.
    for size in ('width', 'height'):
        text = re.sub(rf'(<svg [^>]*?) {size}="[^"]*"', r'\1', text, count=1)
    text = re.sub(r"font(-family)?: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r'font\1: \2sans-serif', text)
    text = re.sub(r'<metadata>.*?</metadata>\s*', '', text, flags=re.DOTALL)
    # A hundredth of a point is finer than any screen.
    made.append(re.sub(r' (?:d|x|y)="[^"]*"', lambda match: re.sub(r'(\.\d\d)\d+', r'\1', match[0]), text))


def _shape(k: int, most: int) -> tuple[int, int]:
    """Lines and columns of k pictures, at most so many side by side."""
    columns = min(most, max(k, 1))
    return -(-k // columns), columns


def _first(grid: npt.NDArray[np.object_], k: int) -> list[Axes]:
    """The first k places of a grid; the others are hidden."""
    places: list[Axes] = list(grid.ravel())
    for axes in places[k:]:
        axes.set_visible(False)
    return places[:k]


def draw_torques(traces: Traces) -> str:
    """Measured and predicted torques over a few seconds, one picture for each row."""
    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with picture('torques', 1.65 * lines + 0.5) as (figure, made):
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            axes.plot(traces.time, traces.before[:, i], color=BEFORE, label='predicted before', linewidth=1.0)
            axes.plot(traces.time, traces.measured[:, i], color=MEASURED, label='measured', linewidth=1.3)
            axes.plot(traces.time, traces.after[:, i], color=AFTER, label='predicted after', linewidth=1.0)
            axes.set_title(f'{traces.names[i]} [{traces.units[i]}]')
            axes.margins(x=0.0)
            axes.locator_params(axis='y', nbins=4)
        _label_bottom(grid, k, 'time [s]')
        _legend(figure, grid[0, 0])
    return made[0]


def draw_residuals(traces: Traces) -> str:
    """RMS of residuals over the whole recording, one picture for each row."""
    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with picture('residuals', 1.35 * lines + 0.5) as (figure, made):
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            for values, colour, label in (
                (traces.bin_before, BEFORE, 'before'),
                (traces.bin_after, AFTER, 'after'),
            ):
                axes.fill_between(
                    traces.bin_time,
                    values[:, i],
                    color=colour,
                    alpha=0.85,
                    linewidth=0.0,
                    label=label,
                    step='post',
                )
            axes.set_title(f'{traces.names[i]} [{traces.units[i]}]')
            axes.margins(x=0.0)
            axes.set_ylim(bottom=0.0)
            axes.locator_params(axis='y', nbins=3)
        _label_bottom(grid, k, 'time [s]')
        _legend(figure, grid[0, 0])
    return made[0]


def draw_histograms(traces: Traces) -> str:
    """Distribution of residuals, one picture for each row."""
    k = len(traces.names)
    lines, columns = _shape(k, 6)
    with picture('histograms', 1.45 * lines + 0.4) as (figure, made):
        grid = figure.subplots(lines, columns, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            edges = traces.edges[:, i]
            axes.stairs(
                traces.counts_before[:, i], edges, fill=True, color=BEFORE, alpha=0.55, label='before'
            )
            axes.stairs(traces.counts_after[:, i], edges, color=AFTER, linewidth=1.3, label='after')
            axes.set_title(f'{traces.names[i]} [{traces.units[i]}]', fontsize=7.5)
            axes.set_yticks([])
            axes.spines['left'].set_visible(False)
            axes.grid(False)
            axes.locator_params(axis='x', nbins=4)
            axes.margins(x=0.0)
        _legend(figure, grid[0, 0])
    return made[0]


def draw_spectrum(traces: Traces, cutoff: float) -> str:
    """Power of torques and residuals over frequency; '' where no stretch was long enough.

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
        axes.set_xlabel('frequency [Hz]')
        axes.set_ylabel('power, mean of rows\n[(N m)²/Hz]')
        axes.margins(x=0.0)
        axes.legend(loc='lower left', ncols=2)
    return made[0]


def save_residuals(traces: Traces, path: str | os.PathLike[str]) -> None:
    """Draw measured and predicted torques of a few seconds, and residuals, into a file.

    Args:
        traces: what to draw; before and after are the same.
        path: of the picture; its ending says which kind. It is overwritten.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    k = len(traces.names)
    lines, columns = _shape(k, 3)
    with mpl.rc_context(_style('residual')):
        figure = Figure(figsize=(_WIDTH, 1.8 * lines + 0.5), layout='constrained')
        grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for i, axes in enumerate(_first(grid, k)):
            residual = traces.measured[:, i] - traces.before[:, i]
            axes.fill_between(traces.time, residual, color=BEFORE, alpha=0.5, linewidth=0.0, label='residual')
            axes.plot(traces.time, traces.measured[:, i], color=MEASURED, label='measured')
            axes.plot(traces.time, traces.before[:, i], color=AFTER, label='predicted')
            axes.set_title(f'{traces.names[i]} [{traces.units[i]}]')
            axes.margins(x=0.0)
        _label_bottom(grid, k, 'time [s]')
        _legend(figure, grid[0, 0])
        kind = Path(path).suffix.lstrip('.').lower()
        figure.savefig(path, dpi=130, metadata={'Date': None} if kind == 'svg' else None)


def _label_bottom(grid: npt.NDArray[Any], k: int, label: str) -> None:
    """Name the x axis of the lowest picture of each column."""
    lines, columns = grid.shape
    for c in range(columns):
        low = max((r for r in range(lines) if r * columns + c < k), default=None)
        if low is not None:
            grid[low, c].set_xlabel(label)
            grid[low, c].tick_params(labelbottom=True)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside upper right', ncols=len(labels))
