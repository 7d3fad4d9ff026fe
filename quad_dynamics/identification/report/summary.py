# SPDX-License-Identifier: Apache-2.0
"""A result in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.identification.number_text import number, with_std
from quad_dynamics.identification.report.facts import (
    added_mass,
    consistent_bodies,
    counts,
    identified_combinations,
    mass_name,
    short_names,
)
from quad_dynamics.identification.solvers.solution import Solution

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result


def recordings_line(result: Result) -> str:
    """Names of the recordings."""
    names = [short_names(name) for name, _ in result.sources]
    return ', '.join(names) if len(names) <= 3 else f'{names[0]} and {len(names) - 1} more'


def found_lines(solution: Solution) -> list[str]:
    """The result in a few sentences."""
    identified, free, _ = counts(solution)
    good, bodies = consistent_bodies(solution)
    before, after = solution.moving_masses
    combinations = f'{len(identified_combinations(solution))} of {len(solution.combinations)}'
    lines = [
        f'{free} {"parameter was" if free == 1 else "parameters were"} free; the data determine {identified} '
        f'of them, and {combinations} independent combinations (condition {number(solution.condition, 3)})',
        f'{mass_name(solution)} {number(before)} -> {number(after)} kg; {good} of {bodies} bodies are '
        'physically consistent',
    ]
    added = added_mass(solution)
    if added is not None:
        place = ', '.join(f'{x + 0.0:.3f}' for x in np.round(added.position, 3))
        word = 'more' if added.mass > 0 else 'less'
        size = with_std(abs(added.mass), added.std)
        lines.append(f'the base has {size} kg {word} than the model says, as if at ({place}) m in its frame')
    return lines
