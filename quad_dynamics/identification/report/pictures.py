# SPDX-License-Identifier: Apache-2.0
"""All plots of a report, each with a caption that says exactly what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quad_dynamics.identification.equations.columns import JOINT_KINDS
from quad_dynamics.identification.report.facts import short_names
from quad_dynamics.identification.report.parameter_plots import (
    draw_bodies,
    draw_inertial_parameters,
    draw_joint_parameters,
)
from quad_dynamics.identification.report.plots import (
    draw_histograms,
    draw_residuals,
    draw_spectrum,
    draw_torques,
)
from quad_dynamics.identification.report.traces import Traces, gather_traces
from quad_dynamics.identification.signals.sampling import UNUSED_ROWS
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.model import Model

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result


@dataclass(frozen=True)
class Picture:
    """A plot of the page.

    Attributes:
        svg: its text; '' if there is nothing to draw; then the caption gives the reason, or is empty.
        caption: below it.
    """

    svg: str
    caption: str


def make_pictures(result: Result, cutoff: float) -> dict[str, Picture]:
    """All plots of a report by name.

    Args:
        result: of an identification.
        cutoff: of the filters [Hz]; NaN if unknown.
    """
    solution, checked = result.solution, result.validation
    if checked is None:
        shown = gather_traces(result.equations, solution.columns.prior, solution.x)
    else:
        shown = gather_traces(checked.equations, checked.before, checked.after)
    # Held-out blocks are short: residuals over time, and the spectrum, show all samples.
    everything, held_out = shown, False
    if checked is not None and checked.held_out:
        held_out = True
        everything = gather_traces(result.equations, checked.before, checked.after, held_out)
    on = shown_on(result)
    joints = _joints_only(result)
    left_out = UNUSED_ROWS if checked is None else "'left out' in the table"
    return {
        'torques': Picture(draw_torques(shown), _torques_caption(shown, on, left_out) + joints),
        'residuals': Picture(
            draw_residuals(everything), _residuals_caption(everything, on, held_out) + joints
        ),
        'histograms': Picture(draw_histograms(shown), _histograms_caption(shown, on) + joints),
        'spectrum': Picture(
            draw_spectrum(everything, cutoff),
            _spectrum_caption(everything, on, held_out, cutoff)
            + (joints if len(everything.frequency) else ''),
        ),
        'joints': Picture(draw_joint_parameters(solution), _joints_caption(solution)),
        'bodies': Picture(draw_bodies(solution), _bodies_caption(solution.columns.model)),
        'inertial': Picture(draw_inertial_parameters(solution), _inertial_caption(solution)),
    }


def shown_on(result: Result) -> str:
    """Name of the data whose torques and errors are shown."""
    if result.validation is None:
        return 'the training data themselves'
    return 'the held-out blocks' if result.validation.held_out else short_names(result.validation.on)


def _joints_only(result: Result) -> str:
    """What captions say if the equations have rows of the base, which these plots do not show."""
    if result.equations.mode not in ('forces', 'projection'):
        return ''
    return ' Joints only' + ('.' if result.validation is None else '; the table has the errors of the base.')


def _torques_caption(traces: Traces, on: str, left_out: str) -> str:
    n = len(traces.breaks) + 1
    whole = len(traces.time) - len(traces.breaks) == traces.survey.samples
    what = f'{"All" if whole else "From the middle"} of {on}, {traces.seconds:.1f} s, after filtering'
    if n > 1:
        what += f', in {n} segments; dotted lines mark where time between two segments is left out'
    what += '. The closer the blue line is to the grey one, the better.'
    if not traces.used.all():
        what += f' Shaded violet: what is not fitted and does not count in the errors ({left_out}).'
    return what


def _residuals_caption(traces: Traces, on: str, held_out: bool) -> str:
    width = float(np.diff(traces.bin_edges[:2])[0])
    of = 'all training data' if held_out else f'all of {on}'
    text = f'RMS of measured minus predicted values in bins of {width:.2g} s, over {of}; rows that count. '
    if traces.bin_unused.any():
        text += 'Shaded violet: bins in which no row of the joint counts. '
    if held_out:
        text += (
            'The prediction after comes from a second fit that has not seen the held-out blocks. Their inner '
            'part, shaded green, is what the table judges. Their margins, shaded light green, are neither '
            'fitted nor judged, because filters connect them with fitted samples. '
        )
    return (
        text + 'An error that is large in one place only indicates an effect that the model does not include.'
    )


def _histograms_caption(traces: Traces, on: str) -> str:
    return (
        f'How often residuals of which size occur, in {traces.survey.samples} samples of {on}; rows that '
        'count. They should be narrow, and centred at zero.'
    )


def _spectrum_caption(traces: Traces, on: str, held_out: bool, cutoff: float) -> str:
    of = 'the training data' if held_out else on
    if not len(traces.frequency):
        return (
            f'There is no spectrum: the longest segment without a gap has {traces.survey.longest} samples, '
            'too few for one, or too few of its rows count.'
        )
    text = f'Power of measured values and residuals over frequency, of {of}'
    if held_out:
        text += '; after is the second fit that has not seen the held-out blocks'
    text += '. Residuals that do not count are interpolated.' if (traces.share < 1.0).any() else '.'
    return text + (' The dashed line is the cutoff of the filters.' if np.isfinite(cutoff) else '')


def _joints_caption(solution: Solution) -> str:
    columns, free = solution.columns, solution.free
    shown = {kind for kind in JOINT_KINDS if free[columns.slices[kind]].any()}
    what = ['friction'] if shown - {'offset', 'rotor'} else []
    what += [name for kind, name in (('offset', 'offsets'), ('rotor', 'armatures')) if kind in shown]
    of_joints = np.zeros_like(free)
    for kind in JOINT_KINDS:
        of_joints[columns.slices[kind]] = free[columns.slices[kind]]
    text = ' and '.join(filter(None, [', '.join(what[:-1]), *what[-1:]]))
    return f'{text.capitalize()}. {_bars(solution, np.flatnonzero(of_joints))}'


def _bars(solution: Solution, at: npt.NDArray[np.int64]) -> str:
    """What the bars and circles of some free unknowns mean."""
    text = 'Bars are 95 % intervals.'
    if not solution.identified[at].all():
        text += ' The data alone do not determine values with an empty circle; the prior contributes.'
    return text


def _inertial_caption(solution: Solution) -> str:
    at = np.flatnonzero(solution.free[solution.columns.slices['pi']])
    return (
        'Inertial parameters of the bodies that were free, about the origins of their frames. '
        f'{_bars(solution, at)}'
    )


def _bodies_caption(model: Model) -> str:
    pose = 'the pose in which it stands' if model.standing is not None else 'its zero pose'
    return (
        'Each body as the ellipsoid of even density that has its mass and inertia, on the robot in '
        f'{pose}. Crosses are centres of mass.'
    )
