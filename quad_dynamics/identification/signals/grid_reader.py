# SPDX-License-Identifier: Apache-2.0
"""From a recording to rows on a uniform clock."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.distinct import DistinctRows
from quad_dynamics.identification.recordings.recording import Chunk, Source, joined
from quad_dynamics.identification.signals.base_motion import ImuPlace, imu_place
from quad_dynamics.identification.signals.clock import EvenClock
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.quantities import TARGETS, Quantities, choose_quantities
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.model.model import Model

_PATIENCE = 12  # chunks in which all quantities of a recording must begin
LEAST_ROWS = 3  # of a channel, from which its period is known


def make_grid(
    source: Source, model: Model, settings: SignalSettings, tell: Callable[[str], object] | None = None
) -> tuple[Grid, EvenClock, Quantities]:
    """Resample all used quantities of a recording to one uniform clock.

    Args:
        source: recording.
        model: robot.
        settings: of signals.
        tell: called with the progress of reading.

    Raises:
        ArgumentError: time goes backwards, a number is not finite, or a quantity is missing for some joints.
    """
    clock: EvenClock | None = None
    place: ImuPlace | None = None
    distinct = DistinctRows(source)
    chunks = distinct.chunks()
    for chunk in itertools.chain([_beginning(source, chunks)], chunks):
        if clock is None:
            chosen = choose_quantities(source, model, settings, chunk)
            place = imu_place(model, settings) if chosen.base == 'imu' else None
            used = {key: channel for key, channel in chunk.items() if key in chosen.keys}
            _check_beginning(source, used, distinct)
            clock = EvenClock(source, model, used, settings.gap, chosen.slopes)
            grid = Grid(clock.period, _grid_sizes(clock.sizes, model, chosen))
        for rows, start in clock.rows(chunk):
            grid.append(_converted(rows, clock, grid, chosen, place), start)
        if tell is not None:
            tell(f'{len(grid) * grid.period:.0f} s of {source.name}')
    if clock is None:
        raise ArgumentError(f'{source.name}: holds no messages; expected a recording')
    for rows, start in clock.rows(None):
        grid.append(_converted(rows, clock, grid, chosen, place), start)
    clock.count_repeated(distinct.repeated)
    distinct.note(clock.lines)
    return grid, clock, chosen


def _beginning(source: Source, chunks: Iterator[Chunk]) -> Chunk:
    """The first chunks, until all quantities of the recording have begun."""
    held: list[Chunk] = []
    rows: Counter[str] = Counter()
    for chunk in chunks:
        held.append(chunk)
        rows.update({key: len(channel.stamps) for key, channel in chunk.items()})
        begun = {key.split('#', 1)[0] for key, count in rows.items() if count >= LEAST_ROWS}
        if begun.issuperset(source.promised) or len(held) == _PATIENCE:
            break
    return joined(held)


def _check_beginning(source: Source, first: Chunk, distinct: DistinctRows) -> None:
    """Check that each channel has several stamps.

    Raises:
        ArgumentError: too few messages, or all have the same stamp.
    """
    for key, channel in first.items():
        count, total = len(channel.stamps), len(channel.stamps) + distinct.repeated[key]
        if count < LEAST_ROWS and key.split('#', 1)[0] not in TARGETS:  # commands are held, however few
            raise ArgumentError(
                f'{source.name}: {source.origin(key)} has only {count} distinct time{"s" * (count > 1)} in '
                f'{total} row{"s" * (total > 1)} of {key}; expected at least {LEAST_ROWS}, increasing'
            )


def _grid_sizes(sizes: dict[str, int], model: Model, chosen: Quantities) -> dict[str, int]:
    """Quantities of the grid: torques instead of commands, and space for the stance of feet."""
    left_out = {*TARGETS, *['velocity'] * chosen.slopes}
    kept = {name: size for name, size in sizes.items() if name not in left_out}
    feet = len(model.foot_names) if model.floating_base else 0
    return kept | {'effort': model.nj} | ({'stance': feet} if feet else {})


def _converted(
    rows: Floats, clock: EvenClock, grid: Grid, chosen: Quantities, place: ImuPlace | None
) -> Floats:
    """Rows of the clock as rows of the grid."""
    parts = np.split(rows, np.cumsum(list(clock.sizes.values()))[:-1], axis=1)
    values = dict(zip(clock.sizes, parts, strict=True))
    values['effort'] = chosen.torques(values)
    if place is not None:
        values['imu'] = place.in_base_axes(values['imu'])
    made = np.zeros((len(rows), grid.width))
    for name in grid.sizes:
        if name in values:
            grid.get(made, name)[...] = values[name]
    return made
