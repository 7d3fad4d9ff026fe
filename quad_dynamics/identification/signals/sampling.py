# SPDX-License-Identifier: Apache-2.0
"""From rows on an even clock to samples: filter all alike, say what counts, keep what is independent."""

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

_AT_LIMIT = 0.99, 1.01  # torque over its limit at which a drive is taken as saturated
_TRIM = 1.5  # periods of the cutoff at the ends of segments that are left out
# A foot that stands so many periods of the cutoff before or after has a part in a filtered row. Where filters
# stop at impacts their whole reach counts, for a foot may be set down without one. Where they run across
# frequent impacts, all feet would stand all the time: what counts there is where most of their weight is.
_STANCE, _STANCE_ACROSS = 1.5, 0.5
_UNKNOWN = 0.05  # of a filtered row that may be made where the direction of friction is unknown
_BAD = 0.01  # of a filtered row that may be made where a torque is wrong
_BAD_SPIKE = 1e-3  # likewise; a spike is short, and may be very high
_SPIKE, _SPIKE_SHARE = 10.0, 0.2  # spike of a torque over its noise, and over its spread
_STOP = 2e-3  # so near to the end of its range a joint may touch it [rad or m]


@dataclass
class Counts:
    """What became of the samples.

    Attributes:
        rows: of the clock.
        samples: that were kept.
        trimmed: rows at the ends of segments, where filters begin.
        segments: segments with samples.
        resting: (nj,) samples that do not count, for the joint does not move.
        saturated: (nj,) likewise, for its drive is at its limit.
        stopped: (nj,) likewise, for it is at the end of its range.
        spikes: (nj,) likewise, for its torque has a spike near by.
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
    """All that is needed to make samples of one recording.

    Attributes:
        grid: its rows.
        motion: of states.
        low_pass: the filter.
        wide: filter of the velocity whose sign is taken, which lets more pass.
        step: every so many rows a sample.
        rest: (nj,) below this velocity the direction of friction is unknown [rad/s or m/s].
        torque_noise: (nj,) standard deviation of the noise of torques [N m or N].
        torque_spread: (nj,) standard deviation of the torques themselves.
        idle: (nj,) joints whose torques are not known.
        frames: of foot forces.
        chunk: rows that are worked on at once.
        across: filters run across impacts.
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
        """Rows on each side from which a filtered row is made, nearly."""
        return _window(self.grid.rate, self.low_pass.cutoff)

    @property
    def stance_window(self) -> int:
        """Rows on each side in which a foot that stands has a part in a filtered row."""
        return int(_STANCE_ACROSS * self.window) if self.across else math.ceil(_STANCE * self.window)


def _window(rate: float, cutoff: float) -> int:
    return math.ceil(rate / cutoff)


def rows_at_end(rate: float, cutoff: float) -> int:
    """Rows at the ends of segments that no samples are made of, without those for delays."""
    return HALF + math.ceil(_TRIM * _window(rate, cutoff))


@dataclass(frozen=True, eq=False)
class Filtered:
    """Filtered rows of a part of a segment, every one of them.

    Attributes:
        begin: row of the grid that the first is.
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


def filtered_parts(plan: Plan) -> Iterator[tuple[Segment, int, int, Filtered]]:
    """All segments in parts: the segment, first row of the part and one after its last, filtered rows.

    Results do not depend on where parts begin: each has as many rows of its neighbours as the filters reach.
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
    """(n, nj) torques that are far from those beside them, for one or two rows."""
    away = np.abs(tau - median_filter(tau, size=(5, 1), mode='nearest'))
    found: Bools = away > np.maximum(_SPIKE * plan.torque_noise, _SPIKE_SHARE * plan.torque_spread)
    return found


def _around(marks: Bools, window: int) -> Bools:
    """Rows that have a mark within the filter's window."""
    near: Bools = maximum_filter1d(marks.astype(np.uint8), 2 * window + 1, axis=0, mode='nearest') > 0
    return near


def make_samples(
    plan: Plan, layout: SampleLayout, delay: float, force_delay: float, number: int, counts: Counts
) -> Iterator[tuple[Floats, Filtered, npt.NDArray[np.int64]]]:
    """Samples of one recording, part by part.

    Args:
        plan: what to do.
        layout: of samples.
        delay: of torques [s].
        force_delay: of foot forces [s].
        number: of the first segment.
        counts: are added up.

    Yields:
        (n, width) samples, and of which filtered rows they are.
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
    for segment, begin, end, part in filtered_parts(plan):
        first, stop = segment.begin + trim, segment.end - trim
        wanted = np.arange(first, stop, plan.step)
        wanted = wanted[(wanted >= begin) & (wanted < end)]
        counts.trimmed += max(min(end, first) - begin, 0) + max(end - max(begin, stop), 0)
        if not len(wanted):
            continue
        if segment is not last:
            counts.segments += 1
            last = segment
        at = wanted - part.begin
        time = np.asarray(segment.start + (wanted - segment.begin) * grid.period, dtype=np.float64)
        which = number + numbers[segment.begin]
        yield _rows(plan, layout, part, at, time, which, delay, force_delay, counts), part, at


def _rows(
    plan: Plan,
    layout: SampleLayout,
    part: Filtered,
    at: npt.NDArray[np.int64],
    time: Floats,
    number: int,
    delay: float,
    force_delay: float,
    counts: Counts,
) -> Floats:
    rate = plan.grid.rate
    late, force_late = delay * rate, force_delay * rate
    resting = part.unknown[at] > _UNKNOWN
    unused = resting | part.saturated[at] | part.stopped[at] | part.spikes[at] | plan.idle
    counts.samples += len(at)
    counts.resting += resting.sum(axis=0)
    counts.saturated += part.saturated[at].sum(axis=0)
    counts.stopped += part.stopped[at].sum(axis=0)
    counts.spikes += part.spikes[at].sum(axis=0)
    return layout.join(
        time=time,
        segment=np.full(len(at), float(number)),
        q=part.q[at],
        u=part.u[at],
        du=part.du[at],
        tau=shifted(part.tau, late, at),
        sign=part.sign[at],
        use=(~unused).astype(np.float64),
        force=shifted(part.force, force_late, at),
        stance=part.stance[at],
        dtau=_rate_of(part.tau, late, at, rate),
        dforce=_rate_of(part.force, force_late, at, rate),
    )


def _rate_of(values: Floats, shift: float, at: npt.NDArray[np.int64], rate: float) -> Floats:
    """(n, k) derivatives of filtered rows, some steps later."""
    return 0.5 * rate * (shifted(values, shift + 1.0, at) - shifted(values, shift - 1.0, at))
