# SPDX-License-Identifier: Apache-2.0
"""The report: one self-contained HTML file with its plots."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from quad_dynamics import __version__
from quad_dynamics.identification.equations.columns import joint_units
from quad_dynamics.identification.equations.modes import MEANINGS
from quad_dynamics.identification.number_text import number, percent, with_std
from quad_dynamics.identification.report.armature import armatures, gear_note
from quad_dynamics.identification.report.facts import (
    added_mass,
    band_line,
    consistent_bodies,
    counts,
    doubts,
    floor_text,
    headline_warnings,
    identified_combinations,
    mass_name,
    merged,
    model_notes,
    not_simulated,
    replay_states,
    same_as,
    short_names,
)
from quad_dynamics.identification.report.parameters_file import plain, settings_data
from quad_dynamics.identification.report.pictures import Picture, make_pictures, shown_on
from quad_dynamics.identification.report.plots import AFTER, BEFORE
from quad_dynamics.identification.report.summary import found_lines, recordings_line
from quad_dynamics.identification.signals.sampling import UNUSED_ROWS
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.validation import Errors, Validation, pooled

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result

_BASE_CAPTION = (
    'Root mean squares of measured minus predicted, and their parts of the RMS measured. Floor: what is left '
    'after a least-squares fit to these very samples, if they are enough for the number of parameters.'
)
_ERRORS_CAPTION = (
    f'{_BASE_CAPTION} Left out: {UNUSED_ROWS}; they are not fitted and do not count in the errors. The last '
    'two columns count them as well.'
)
_POOLED_CAPTION = ' The last line pools the joints: RMS error of all their rows over RMS measured.'
# What simulations beside the log are given, for each mode of the equations with joint rows.
_GIVEN = {
    'fixed': 'torques',
    'forces': 'torques and foot forces, and the base moved as in the log',
    'projection': 'torques and the foot forces that fit best, and the base moved as in the log',
}
_UNIT = re.compile(r'\[[^]]*\]')  # in the title of a column
_TEMPLATE = Path(__file__).with_name('report.html.j2')


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        head: titles of columns.
        rows: cells.
        caption: above it.
        marks: class of each row, '' for none.
        wrapped: index of the column with long text, which is wrapped; -1 if there is none.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ''
    marks: Sequence[str] = field(default=())
    wrapped: int = -1

    def __post_init__(self) -> None:
        # A unit stays on one line.
        object.__setattr__(
            self, 'head', [_UNIT.sub(lambda unit: unit[0].replace(' ', '\u00a0'), each) for each in self.head]
        )
        if not self.marks:
            object.__setattr__(self, 'marks', [''] * len(self.rows))


@dataclass(frozen=True)
class Card:
    """One value at the top of the page."""

    name: str
    value: str
    note: str


def report_text(result: Result, cutoff: float = math.nan, warnings: Sequence[str] = ()) -> str:
    """The report as HTML.

    Args:
        result: of an identification.
        cutoff: of the filters [Hz].
        warnings: to be shown before the results.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding='utf-8'))
    pictures = {
        name: Picture(Markup(each.svg), each.caption) for name, each in make_pictures(result, cutoff).items()
    }
    told = [*doubts(result.validation), *(result.validation.notes if result.validation else ()), *warnings]
    return (
        template.render(
            pictures=pictures, headline=headline_warnings(result), warnings=told, **_content(result)
        )
        + '\n'
    )


def _content(result: Result) -> dict[str, Any]:
    """Everything except the plots."""
    solution, validation = result.solution, result.validation
    samples = len(result.equations.samples)
    compared = result.comparison
    return {
        'title': f'Identification of {solution.columns.model.name}',
        'subtitle': f'from {recordings_line(result)}: {samples} samples; {MEANINGS[result.equations.mode]}; '
        f'method: {solution.method}',
        'version': __version__,
        'quantities': 'Torques' if result.equations.mode != 'base' else 'Forces on the base',
        'before': BEFORE,
        'after': AFTER,
        'cards': _cards(result),
        'shown_on': shown_on(result),
        'held_out': validation is not None and validation.held_out,
        'errors': None if validation is None else errors_table(validation.errors),
        'replay': None if validation is None else _replay_table(validation),
        'replay_text': '' if validation is None else _replay_text(validation),
        'found': found_lines(solution),
        'armature': _armature_table(solution),
        'legs': None if validation is None else _legs_table(validation),
        'missing': result.missing,
        'signals': result.signals.text(result.validation_signals),
        'choices': merged(solution.choices),
        'model_notes': model_notes(solution.columns.model),
        'compare': None
        if compared is None
        else Table(
            compared.head,
            compared.rows,
            f'Errors on {short_names(compared.on)}. {same_as(validation)}',
            wrapped=len(compared.head) - 1,
        ),
        'unknowns': _unknowns_table(solution),
        'combinations': _combinations_table(solution),
        'independent': len(solution.combinations),
        'recordings': _recordings_table(result),
        'settings': yaml.safe_dump(
            plain(settings_data(result.settings)), sort_keys=False, default_flow_style=None
        ),
    }


# ---------------------------------------------------------------- figures at the top


def _cards(result: Result) -> list[Card]:
    solution, validation = result.solution, result.validation
    cards = []
    if validation is not None:
        whole = pooled(validation.errors)
        before, after, _ = whole.relative
        band = validation.band
        cards.append(
            Card(
                'Error of the base force' if whole.name == 'base force' else f'Torque error, {whole.name}',
                f'{percent(before)} -> {percent(after)}',
                f'of the RMS measured, on {short_names(validation.on)}; {floor_text(whole)}; '
                f'over all rows {percent(whole.every[0])} -> {percent(whole.every[1])}'
                + (f'; {band_line(band)}' if band is not None else ''),
            )
        )
        cards += _base_card(validation)
    mass_before, mass_after = solution.moving_masses
    added = added_mass(solution)
    where = ''
    if added is not None:
        place = ', '.join(f'{x + 0.0:.3f}' for x in np.round(added.position, 3))
        where = f'base: {added.mass:+.3f} kg, as if at ({place}) m'
    cards.append(
        Card(
            mass_name(solution).capitalize(),
            f'{number(mass_before)} -> {number(mass_after)} kg',
            where or 'links and their rotors',
        )
    )
    identified, free, _ = counts(solution)
    cards.append(Card('Identified', f'{identified} of {free}', 'free parameters are determined by the data'))
    good, bodies = consistent_bodies(solution)
    cards.append(Card('Physically consistent', f'{good} of {bodies}', 'bodies have a positive mass density'))
    if validation is not None and validation.replay is not None:
        again = validation.replay
        judged = int(again.judged.sum())
        note = f'joints end closer to the log when simulated for {1e3 * again.window:.0f} ms'
        cards.append(Card('Simulation', f'{int(again.closer.sum())} of {judged}', note))
    return cards


def _base_card(validation: Validation) -> list[Card]:
    """The error of the base force, if it is measured, beside that of the joints."""
    errors = validation.errors
    if pooled(errors).name in errors.names or 'base force' not in errors.names:
        return []
    i = errors.names.index('base force')
    if not math.isfinite(errors.measured[i]):
        return []
    before, after = (float(errors.relative(values)[i]) for values in (errors.before, errors.after))
    rms = f'{number(errors.before[i], 3)} -> {number(errors.after[i], 3)} {errors.units[i]}'
    note = f'{rms}; of the RMS measured, on {short_names(validation.on)}'
    return [Card('Error of the base force', f'{percent(before)} -> {percent(after)}', note)]


# ---------------------------------------------------------------- tables


def errors_table(errors: Errors) -> Table:
    """Torque errors, before and after."""
    before, after = errors.relative(errors.before), errors.relative(errors.after)
    rows = [
        (
            name,
            errors.units[i],
            number(errors.measured[i], 3),
            number(errors.before[i], 3),
            percent(before[i]),
            number(errors.after[i], 3),
            percent(after[i]),
            number(errors.floor[i], 3),
            str(errors.samples[i]),
            percent(errors.left_out[i]),
            percent(errors.relative_every[0, i]),
            percent(errors.relative_every[1, i]),
        )
        for i, name in enumerate(errors.names)
    ]
    head = ['row', 'unit', 'RMS measured', 'error before', '', 'error after', '', 'floor', 'samples']
    head += ['left out', 'all rows, before', 'after']
    whole = pooled(errors)
    if whole.name in errors.names:  # without joints there is nothing to pool
        return Table(head, rows, _BASE_CAPTION)
    rms, relative = [number(x, 3) for x in whole.rms], [percent(x) for x in whole.relative]
    last = (whole.name, whole.unit, '', rms[0], relative[0], rms[1], relative[1], rms[2], '')
    rows.append((*last, percent(whole.left_out), percent(whole.every[0]), percent(whole.every[1])))
    return Table(head, rows, _ERRORS_CAPTION + _POOLED_CAPTION, [*[''] * (len(rows) - 1), 'sum'])


def _replay_text(validation: Validation) -> str:
    again = validation.replay
    if again is None:
        return not_simulated(validation)
    return (
        f'From states of the log, the joints were simulated for {1e3 * again.window:.0f} ms with the logged '
        f'{_GIVEN[validation.equations.mode]}. The table shows how far they were from the log at the end '
        '(RMS), with the model before and after. A joint is closer if its position or velocity ends closer, '
        'and neither ends farther by more than 2 %:'
    )


def _replay_table(validation: Validation) -> Table | None:
    again = validation.replay
    if again is None:
        return None
    states = replay_states(again)
    rows = [
        (
            name,
            *(number(1e3 * x, 3) for x in again.position[:, i]),
            *(number(x, 3) for x in again.velocity[:, i]),
            states[i],
            str(again.windows[i]),
        )
        for i, name in enumerate(again.joints)
    ]
    model = validation.equations.columns.model
    angle, speed = joint_units(model, 'mrad', 'mm'), joint_units(model, 'rad/s', 'm/s')
    head = (
        'joint',
        f'position before [{angle}]',
        'after',
        f'velocity before [{speed}]',
        'after',
        '',
        'windows',
    )
    return Table(head, rows, '', ['worse' if each.any() else '' for each in again.farther.T])


def _legs_table(validation: Validation) -> Table | None:
    if not validation.spreads:
        return None
    rows = [
        (s.name, s.unit, number(s.mean, 3), number(s.spread, 2), number(s.expected, 2))
        for s in validation.spreads
    ]
    caption = (
        'Legs compared. Legs that are built alike should agree; a spread far beyond what the noise explains '
        'is a leg that differs, or a parameter that is not to be trusted.'
    )
    return Table(('quantity', 'unit', 'mean', 'spread of the legs', 'expected from noise'), rows, caption)


def _armature_table(solution: Solution) -> Table | None:
    found = armatures(solution)
    if not any(each.free for each in found):
        return None
    rows = [
        (
            each.joint,
            each.unit,
            number(each.before, 3),
            with_std(each.after, each.std),
            'as before' if not each.free else 'yes' if each.identified else 'with the prior',
            f'{each.gear:g}' + (' (assumed)' if each.gear_assumed else ''),
            number(each.rotor_inertia, 3),
        )
        for each in found
    ]
    head = ('joint', 'unit', 'armature before', 'after ± std', 'identified', 'gear', 'rotor inertia [kg m^2]')
    note = gear_note(solution)
    caption = 'Armature at the joint: gear² times the inertia of the rotor about its axis.'
    return Table(head, rows, f'{caption} N{note[1:]}.' if note else caption)


def _unknowns_table(solution: Solution) -> Table:
    columns = solution.columns
    at = np.flatnonzero(solution.free)
    rows = [
        (
            columns.names[i],
            columns.units[i],
            number(columns.prior[i]),
            with_std(solution.x[i], solution.std[i]),
            f'[{number(solution.low[i], 3)}, {number(solution.high[i], 3)}]',
            'yes' if solution.identified[i] else 'with the prior',
        )
        for i in at
    ]
    marks = ['' if solution.identified[i] else 'dim' for i in at]
    head = ('parameter', 'unit', 'before', 'after ± std', '95 % interval', 'identified')
    return Table(head, rows, 'Inertia is about the origin of the frame of the link.', marks)


def _combinations_table(solution: Solution) -> Table:
    found = identified_combinations(solution)
    rows = [(c.text, c.unit, number(c.prior), with_std(c.value, c.std)) for c in found]
    return Table(('combination', 'unit', 'before', 'after ± std'), rows)


def _recordings_table(result: Result) -> Table:
    others = () if result.validation_signals is None else result.validation_signals.sources
    rows = [(name, 'identification', sha256) for name, sha256 in result.sources]
    rows += [(source.name, 'validation', source.sha256) for source in others]
    return Table(('recording', 'used for', 'SHA-256'), rows, wrapped=2)
