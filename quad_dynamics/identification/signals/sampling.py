# SPDX-License-Identifier: Apache-2.0
"""From rows on a uniform clock to samples: filtering, selection of usable rows, and downsampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d, median_filter

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.equations.samples import SampleLayout
from quad_dynamics.identification.signals.filters import HALF, LowPass
from quad_dynamics.identification.signals.grid import Grid, Segment
from quad_dynamics.identification.signals.interpolation import shifted
from quad_dynamics.identification.signals.motion import MotionPlan, differentiate, states
from quad_dynamics.identification.signals.stance import world_forces
from quad_dynamics.model.model import Model

_AT_LIMIT = 0.99, 1.01  # ratio of torque to its limit at which a drive is considered saturated
_TRIM = 1.5  # periods of the cutoff that are cut off at the ends of segments
# A foot in stance affects filtered rows up to this many periods of the cutoff before or after. If filters
# stop at impacts, their whole reach counts, because a foot may touch down without an impact. If filters run
# across frequent impacts, all feet would be in stance all the time; then only the part with most of the
# filter weight counts.
_STANCE, _STANCE_ACROSS = 1.5, 0.5
_UNKNOWN = 0.05  # share of a filtered row in which the direction of friction may be unknown
_BAD = 0.01  # share of a filtered row in which a torque may be wrong
_BAD_SPIKE = 1e-3  # the same for spikes, which are short and may be very high
_SPIKE, _SPIKE_SHARE = 10.0, 0.2  # spike of a torque relative to its noise, and to its standard deviation
_STOP = 2e-3  # a joint this close to the end of its range may touch it [rad or m]
# Which rows are not used, for summary and report.
UNUSED_ROWS = (
    'rows near rest or of joints that hardly move, at a joint limit, with a saturated motor, near spikes of '
    'the torque, or without a torque'
)


@dataclass
class Counts:
    """Numbers of used and unused samples.

    Attributes:
        rows: of the clock.
        samples: that were kept.
        trimmed: rows at the ends of segments, where filters start.
        segments: number of segments with samples.
        resting: (nj,) samples that are not used because the joint does not move.
        saturated: (nj,) samples that are not used because its drive is saturated.
        stopped: (nj,) samples that are not used because it is at the end of its range.
        spikes: (nj,) samples that are not used because its torque has a spike nearby.
    """

    rows: int = 0
    samples: int = 0
    trimmed: int = 0
    segments: int = 0
    resting: Floats = field(default_factory=lambda: np.zeros(0))
    saturated: Floats = field(default_factory=lambda: np.zeros(0))
    stopped: Floats = field(default_factory=lambda: np.zeros(0))
    spikes: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings for making the samples of one recording.

    Attributes:
        grid: its rows.
        motion: of states.
        low_pass: the filter.
        wide: filter of the velocity whose sign is used, with a higher cutoff.
        step: number of rows per sample.
        rest: (nj,) below this velocity the direction of friction is unknown [rad/s or m/s].
        torque_noise: (nj,) standard deviation of the noise of torques [N m or N].
        torque_spread: (nj,) standard deviation of the torques themselves.
        idle: (nj,) joints whose torques are unknown.
        frames: of foot forces.
        chunk: rows that are processed at once.
        across: whether filters run across impacts.
    """

    grid: Grid
    motion: MotionPlan
    low_pass: LowPass
    wide: LowPass
    step: int
    rest: Floats
    torque_noise: Floats
    torque_spread: Floats
    idle: Bools
    frames: dict[str, str]
    chunk: int
    across: bool = False

    @property
    def model(self) -> Model:
        """The robot."""
        return self.motion.model

    @property
    def window(self) -> int:
        """Rows on each side that affect a filtered row noticeably."""
        return _window(self.grid.rate, self.low_pass.cutoff)

    @property
    def stance_window(self) -> int:
        """Rows on each side in which a foot in stance affects a filtered row."""
        return int(_STANCE_ACROSS * self.window) if self.across else math.ceil(_STANCE * self.window)


def _window(rate: float, cutoff: float) -> int:
    return math.ceil(rate / cutoff)


def rows_at_end(rate: float, cutoff: float) -> int:
    """Rows at the ends of segments that give no samples, without those for delays."""
    return HALF + math.ceil(_TRIM * _window(rate, cutoff))


@dataclass(frozen=True, eq=False)
class Filtered:
    """All filtered rows of a chunk of a segment.

    Attributes:
        begin: index of the first one in the grid.
        q: (n, nq).
        u: (n, nv).
        du: (n, nv).
        tau: (n, nj) with its delay.
        force: (n, 3 feet) with its delay.
        sign: (n, nj).
        stance: (n, feet).
        unknown: (n, nj) share of each row in which the direction of friction is unknown.
        saturated: (n, nj).
        stopped: (n, nj).
        spikes: (n, nj).
    """

    begin: int
    q: Floats
    u: Floats
    du: Floats
    tau: Floats
    force: Floats
    sign: Floats
    stance: Floats
    unknown: Floats
    saturated: Bools
    stopped: Bools
    spikes: Bools


def filtered_chunks(plan: Plan) -> Iterator[tuple[Segment, int, int, Filtered]]:
    """All segments in chunks: the segment, first row of the chunk and one past its last, filtered rows.

    Results do not depend on where chunks begin: each overlaps its neighbours by the reach of the filters.
    """
    grid = plan.grid
    overlap = plan.low_pass.reach + plan.motion.reach(grid.rate) + 2 * plan.window
    for segment, begin, end, rows in grid.windows(plan.chunk, overlap):
        if len(segment) < 2 * HALF + 2 * plan.window + 2:
            continue
        yield segment, begin, end, _filter(plan, rows, max(begin - overlap, segment.begin) + HALF)


def _filter(plan: Plan, rows: Floats, begin: int) -> Filtered:
    grid, model, low_pass = plan.grid, plan.model, plan.low_pass
    inner = slice(HALF, len(rows) - HALF)
    state = states(grid, rows, plan.motion, low_pass)
    measured = grid.get(rows, 'velocity') if 'velocity' in grid else None
    position = grid.get(rows, 'position')
    velocity = differentiate(position, measured, plan.motion.joints, grid.period, plan.wide).v
    position = position[inner]
    tau = grid.get(rows, 'effort')[inner]
    at_limit = np.abs(tau) / np.maximum(model.effort_limit, 1e-300)
    near_stop = (position < model.q_min + _STOP) | (position > model.q_max - _STOP)
    force = stance = np.zeros((len(tau), 0))
    if model.floating_base:
        force = low_pass(world_forces(grid, rows, model, plan.frames)[inner])
        stance = _around(grid.get(rows, 'stance')[inner] > 0.0, plan.stance_window).astype(np.float64)
    return Filtered(
        begin,
        state.q,
        state.u,
        state.du,
        low_pass(tau),
        force,
        low_pass(np.sign(velocity)),
        stance,
        low_pass.share(np.abs(velocity) < plan.rest),
        low_pass.share((at_limit > _AT_LIMIT[0]) & (at_limit < _AT_LIMIT[1])) > _BAD,
        low_pass.share(near_stop) > _BAD,
        low_pass.share(_spikes(tau, plan)) > _BAD_SPIKE,
    )


def _spikes(tau: Floats, plan: Plan) -> Bools:
    """(n, nj) torques that differ much from their neighbours, for one or two rows."""
    away = np.abs(tau - median_filter(tau, size=(5, 1), mode='nearest'))
    found: Bools = away > np.maximum(_SPIKE * plan.torque_noise, _SPIKE_SHARE * plan.torque_spread)
    return found


def _around(marks: Bools, window: int) -> Bools:
    """Rows with a mark within the filter's window."""
    near: Bools = maximum_filter1d(marks.astype(np.uint8), 2 * window + 1, axis=0, mode='nearest') > 0
    return near


def make_samples(
    plan: Plan, layout: SampleLayout, delay: float, force_delay: float, number: int, counts: Counts
) -> Iterator[tuple[Floats, Filtered, npt.NDArray[np.int64]]]:
    """Samples of one recording, chunk by chunk.

    Args:
        plan: settings.
        layout: of samples.
        delay: of torques [s].
        force_delay: of foot forces [s].
        number: of the first segment.
        counts: are updated.

    Yields:
        (n, width) samples, and the filtered rows and indices from which they were taken.
    """
    grid, nj = plan.grid, plan.model.nj
    counts.rows += len(grid)
    for name in ('resting', 'saturated', 'stopped', 'spikes'):
        if not len(getattr(counts, name)):
            setattr(counts, name, np.zeros(nj))
    trim = rows_at_end(grid.rate, plan.low_pass.cutoff)
    trim += math.ceil(max(abs(delay), abs(force_delay)) * grid.rate)
    numbers = {segment.begin: i for i, segment in enumerate(grid.segments)}
    last: Segment | None = None
    for segment, begin, end, chunk in filtered_chunks(plan):
        first, stop = segment.begin + trim, segment.end - trim
        wanted = np.arange(first, stop, plan.step)
        wanted = wanted[(wanted >= begin) & (wanted < end)]
        counts.trimmed += max(min(end, first) - begin, 0) + max(end - max(begin, stop), 0)
        if not len(wanted):
            continue
        if segment is not last:
            counts.segments += 1
            last = segment
        at = wanted - chunk.begin
        time = np.asarray(segment.start + (wanted - segment.begin) * grid.period, dtype=np.float64)
        which = number + numbers[segment.begin]
        yield _rows(plan, layout, chunk, at, time, which, delay, force_delay, counts), chunk, at


def _rows(
    plan: Plan,
    layout: SampleLayout,
    chunk: Filtered,
    at: npt.NDArray[np.int64],
    time: Floats,
    number: int,
    delay: float,
    force_delay: float,
    counts: Counts,
) -> Floats:
    rate = plan.grid.rate
    late, force_late = delay * rate, force_delay * rate
    resting = chunk.unknown[at] > _UNKNOWN
    unused = resting | chunk.saturated[at] | chunk.stopped[at] | chunk.spikes[at] | plan.idle
    counts.samples += len(at)
    counts.resting += resting.sum(axis=0)
    counts.saturated += chunk.saturated[at].sum(axis=0)
    counts.stopped += chunk.stopped[at].sum(axis=0)
    counts.spikes += chunk.spikes[at].sum(axis=0)
    return layout.join(
        time=time,
        segment=np.full(len(at), float(number)),
        q=chunk.q[at],
        u=chunk.u[at],
        du=chunk.du[at],
        tau=shifted(chunk.tau, late, at),
        sign=chunk.sign[at],
        use=(~unused).astype(np.float64),
        force=shifted(chunk.force, force_late, at),
        stance=chunk.stance[at],
        dtau=_rate_of(chunk.tau, late, at, rate),
        dforce=_rate_of(chunk.force, force_late, at, rate),
    )


def _rate_of(values: Floats, shift: float, at: npt.NDArray[np.int64], rate: float) -> Floats:
    """(n, k) derivatives of filtered rows, some steps later."""
    return 0.5 * rate * (shifted(values, shift + 1.0, at) - shifted(values, shift - 1.0, at))
