# SPDX-License-Identifier: Apache-2.0
"""Errors of predicted torques in the band of the motion.

A high cutoff is good for a fit: it keeps more information. It also keeps more noise of torques and foot
forces, which no model predicts, so errors after filters with different cutoffs are not comparable. Therefore
the errors of the validation are also computed after the strongest filter that keeps the motion itself.
"""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.signals.delay import Delays
from quad_dynamics.identification.signals.signal_report import SignalReport
from quad_dynamics.identification.signals.signals import Logs
from quad_dynamics.identification.validation.held_out import segment_before
from quad_dynamics.identification.validation.validation import BandErrors, Validation, torque_errors
from quad_dynamics.model.model import Model

_NARROWER = 1.5  # smallest ratio of the two cutoffs
_LEAST = 10  # smallest number of samples


def motion_band(validation: Validation, logs: Logs, report: SignalReport) -> BandErrors | None:
    """Errors of a validation in the band of the motion; None if this is the band of the fit, or nearly.

    Args:
        validation: of a solution.
        logs: the recordings of the validation data; the training recordings for held-out blocks.
        report: how the samples of the fit were made.
    """
    cutoff = round(logs.lowest_cutoff, 1)
    if report.cutoff < _NARROWER * cutoff:
        return None
    try:
        samples, _ = logs.samples(cutoff, Delays(report.delay, report.force_delay))
    except ArgumentError:  # segments are too short for this filter
        return None
    own = validation.equations
    if validation.held_out:
        samples = within_blocks(samples, own.samples, own.columns.model)
    if len(samples) < _LEAST:
        return None
    equations = Equations(samples, own.columns, own.mode, own.noise)
    return BandErrors(cutoff, torque_errors(equations, validation.before, validation.after))


def within_blocks(samples: Samples, held: Samples, model: Model) -> Samples:
    """The samples that lie in held-out blocks.

    Args:
        samples: of the same recordings, at other times.
        held: the hold-out set of `hold_out`.
        model: robot.
    """
    get, chosen = samples.layout.get, Samples(model)
    segment, time = (
        np.concatenate([get(rows, name) for rows in held.chunks()]) for name in ('segment', 'time')
    )
    first = np.flatnonzero(np.diff(segment, prepend=-1.0))  # of each block in a segment
    last = np.append(first[1:], len(segment)) - 1
    # Times begin at 0 in each recording; the latest one may have no held-out samples near its end.
    scale = 1.0 + float(max(time.max(), *(get(rows, 'time').max() for rows in samples.chunks())))

    def order(segment: Floats, time: Floats) -> Floats:
        return segment + time / scale

    begins, ends = (order(segment_before(segment[at]), time[at]) for at in (first, last))
    for rows in samples.chunks():
        place = order(get(rows, 'segment'), get(rows, 'time'))
        block = np.maximum(np.searchsorted(begins, place, side='right') - 1, 0)
        chosen.append(rows[(place >= begins[block]) & (place <= ends[block])])
    return chosen
