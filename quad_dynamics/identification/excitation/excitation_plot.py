# SPDX-License-Identifier: Apache-2.0
"""Plot of a designed motion: positions, velocities and accelerations of its joints."""

from __future__ import annotations

import os
from pathlib import Path

from quad_dynamics.identification.excitation.excitation_result import Excitation

# Colours of Okabe and Ito, which are safe for colour-blind readers.
_COLOURS = ('#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9', '#000000')


def plot_excitation(excitation: Excitation, path: str | os.PathLike[str]) -> None:
    """Draw a plot (png, pdf or svg); an existing file is overwritten."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 9.0), layout='constrained')
    FigureCanvasAgg(figure)
    shown = (
        ('position', excitation.position),
        ('velocity', excitation.velocity),
        ('acceleration', excitation.acceleration),
    )
    unit = _unit(excitation)
    units = (unit, f'{unit}/s', f'{unit}/s^2')
    panels = figure.subplots(3, 1, sharex=True)
    for axes, (label, values), named in zip(panels, shown, units, strict=True):
        for i, name in enumerate(excitation.joint_names):
            style = ('-', '--', ':')[(i // len(_COLOURS)) % 3]
            colour = _COLOURS[i % len(_COLOURS)]
            axes.plot(excitation.time, values[:, i], style, color=colour, lw=1.0, label=name)
        axes.set_ylabel(f'{label} [{named}]')
        axes.grid(alpha=0.3)
    panels[-1].set_xlabel('time [s]')
    panels[0].set_title(f'{excitation.model.name}: {excitation.criterion}, period {excitation.period:g} s')
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=7, ncols=6, loc='outside lower center')
    # without dates, so that the same motion gives the same file
    kind = Path(path).suffix.lower()
    metadata = {'.svg': {'Date': None}, '.pdf': {'CreationDate': None}}.get(kind, {})
    with mpl.rc_context({'svg.hashsalt': 'quad_dynamics'}):
        figure.savefig(path, metadata=metadata)


def _unit(excitation: Excitation) -> str:
    """Unit of the positions of its joints."""
    model = excitation.model
    slides = [bool(model.is_prismatic[model.joint_names.index(name)]) for name in excitation.joint_names]
    return 'm' if all(slides) else '(rad or m)' if any(slides) else 'rad'
