# SPDX-License-Identifier: Apache-2.0
"""The summary of an identification on the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.identification.equations.columns import INERTIAL, JOINT_KINDS, joint_units
from quad_dynamics.identification.equations.modes import MEANINGS
from quad_dynamics.identification.number_text import number, percent, with_std
from quad_dynamics.identification.report.armature import gear_note, scale_of, unit_of
from quad_dynamics.identification.report.facts import (
    band_line,
    change,
    doubts,
    floor_text,
    headline_warnings,
    merged,
    model_notes,
    not_simulated,
    same_as,
    short_names,
)
from quad_dynamics.identification.report.summary import found_lines, recordings_line
from quad_dynamics.identification.signals.sampling import UNUSED_ROWS
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.validation import Errors, Validation, pooled

if TYPE_CHECKING:
    from quad_dynamics.cli.terminal import Terminal
    from quad_dynamics.identification.baselines.compare import Comparison
    from quad_dynamics.identification.pipeline import Result
    from quad_dynamics.identification.signals.signal_report import SignalReport

_MOST_UNKNOWN = 8  # sentences of what cannot be identified that are shown
_MOST_NAMES = 4  # names of a list that are shown


def print_summary(terminal: Terminal, result: Result) -> None:
    """Write the summary."""
    solution = result.solution
    model = solution.columns.model
    print_warnings(terminal, result)
    terminal.line(terminal.paint(f'Identification of {model.name} from {recordings_line(result)}', 'bold'))
    terminal.line(f'  {MEANINGS[result.equations.mode]}; {len(result.equations.samples)} samples')
    print_signals(terminal, result.signals, result.validation_signals)
    for note in model_notes(model):
        terminal.line('  ' + terminal.paint(f'model: {note}', 'yellow'))
    terminal.heading('Found')
    for line in found_lines(solution):
        terminal.line(f'  {line}')
    _print_joints(terminal, solution)
    _print_bodies(terminal, solution)
    if result.validation is not None:
        print_validation(terminal, result.validation)
    else:
        terminal.line()
        terminal.line(terminal.paint(doubts(None)[0], 'yellow'))
    if solution.choices:
        terminal.heading('Chosen')
        for choice in merged(solution.choices):
            terminal.line(f'  - {shortened(choice, model.joint_names)}')
    if result.missing:
        terminal.heading('Not identifiable from these recordings')
        for line in result.missing[:_MOST_UNKNOWN]:
            terminal.line('  - ' + terminal.paint(line, 'yellow'))
        if len(result.missing) > _MOST_UNKNOWN:
            terminal.line(f'  - and {len(result.missing) - _MOST_UNKNOWN} more, in the report')
    if result.comparison is not None:
        print_comparison(terminal, result.comparison, result.validation)


def print_warnings(terminal: Terminal, result: Result) -> None:
    """Write the reasons why a result should not be used as it is, if there are any."""
    for line in headline_warnings(result):
        terminal.line(terminal.paint(f'warning: {line}', 'red'))


def print_signals(terminal: Terminal, signals: SignalReport, validation: SignalReport | None = None) -> None:
    """Write how the recordings were processed; hashes are only in the files.

    Args:
        terminal: to write to.
        signals: of the recordings.
        validation: of the validation recordings, if there are any.
    """
    for line in signals.text(validation):
        if not line.strip().startswith('sha256'):
            terminal.line(f'  {line}')


def shortened(line: str, names: Sequence[str]) -> str:
    """A line in which only the first few of long lists of joints are named; files have all of them."""
    name = '|'.join(sorted(map(re.escape, names), key=len, reverse=True))

    def cut(found: re.Match[str]) -> str:
        listed = found[0].split(', ')
        return f'{", ".join(listed[:_MOST_NAMES])} and {len(listed) - _MOST_NAMES} more'

    return re.sub(rf'(?:(?:{name}), ){{{_MOST_NAMES},}}(?:{name})', cut, line) if names else line


def _print_joints(terminal: Terminal, solution: Solution) -> None:
    columns = solution.columns
    kinds = [kind for kind in JOINT_KINDS if solution.free[columns.slices[kind]].any()]
    if not kinds:
        return
    shown = ['armature' if kind == 'rotor' else kind for kind in kinds]
    units = [unit_of(solution, kind) for kind in kinds]
    told = ', '.join(f'{name} [{unit}]' for name, unit in zip(shown, units, strict=True))
    terminal.heading(f'Joints: before -> after ± standard deviation; {told}')
    rows = []
    for j, name in enumerate(columns.model.joint_names):
        cells = [name]
        for kind in kinds:
            i, n = columns.slices[kind].start + j, float(scale_of(solution, kind)[j])
            before, after = number(n * columns.prior[i], 3), with_std(n * solution.x[i], n * solution.std[i])
            cells.append(f'{before} -> {after}' if solution.free[i] else f'{before} (held)')
        rows.append(cells)
    terminal.table(('joint', *shown), rows)
    if 'rotor' in kinds:
        terminal.line('  armature: gear^2 times the inertia of the rotor, at the joint')
        if note := gear_note(solution):
            terminal.line('  ' + terminal.paint(note, 'yellow'))


def _print_bodies(terminal: Terminal, solution: Solution) -> None:
    """Write mass and com of the bodies that were free."""
    columns = solution.columns
    free = solution.free[columns.slices['pi']].reshape(-1, 10).any(axis=1)
    if not free.any():
        return
    terminal.heading('Bodies: before -> after; mass [kg], com [m]')
    old, new = (x[columns.slices['pi']].reshape(-1, 10) for x in (columns.prior, solution.x))
    rows = []
    for i in np.flatnonzero(free):
        mass = with_std(new[i, 0], solution.std[10 * i])
        coms = [' '.join(f'{c + 0.0:.4f}' for c in np.round(pi[i, 1:4] / pi[i, 0], 4)) for pi in (old, new)]
        rows.append(
            (columns.model.body_names[i], f'{number(old[i, 0])} -> {mass}', f'{coms[0]} -> {coms[1]}')
        )
    terminal.table(('body', INERTIAL[0], 'com'), rows)


def print_validation(terminal: Terminal, validation: Validation) -> None:
    """Write the results of validation."""
    on = short_names(validation.on)
    what = 'forces on the base' if validation.equations.mode == 'base' else 'torques'
    terminal.heading(f'Errors of predicted {what} on {on} (RMS; % of the RMS measured)')
    print_errors(terminal, validation.errors)
    whole = pooled(validation.errors)
    terminal.line(f'  {whole.name}: {change(whole)}; {floor_text(whole)}')
    if validation.band is not None:
        terminal.line(f'  {band_line(validation.band)}')
    if whole.left_out > 0.0:
        before, after = map(percent, whole.every)
        terminal.line(
            f'  {percent(whole.left_out)} of the rows are left out; over all rows: {before} -> {after}'
        )
        terminal.line(f'  left out: {UNUSED_ROWS}')
    again = validation.replay
    if again is not None:
        unit = joint_units(validation.equations.columns.model, 'mrad', 'mm')
        drift, closer, judged = 1e3 * again.drift, int(again.closer.sum()), int(again.judged.sum())
        terminal.line(
            f'  simulated for {1e3 * again.window:.0f} ms from states of the log: {drift[0]:.2f} -> '
            f'{drift[1]:.2f} {unit} off; {closer} of {judged} joints are closer to the log'
        )
    else:
        terminal.line(f'  {not_simulated(validation)}')
    for note in (*doubts(validation), *validation.notes):
        terminal.line('  ' + terminal.paint(note, 'yellow'))


def print_errors(terminal: Terminal, errors: Errors, after: bool = True) -> None:
    """Write a table of errors.

    Args:
        terminal: to write to.
        errors: what to write.
        after: whether to include the errors after identification.
    """
    relative = [errors.relative(values) for values in (errors.before, errors.after)]
    head = ['row', 'measured', *(('before', '', 'after', '') if after else ('error', '')), 'floor']
    head += ['left out', 'all rows', *([''] if after else [])]
    rows = []
    for i, name in enumerate(errors.names):
        cells = [f'{name} [{errors.units[i]}]', number(errors.measured[i], 3)]
        for k, values in enumerate((errors.before, errors.after)[: 1 + after]):
            cells += [number(values[i], 3), percent(relative[k][i]) if not math.isnan(relative[k][i]) else '']
        cells += [number(errors.floor[i], 3), percent(errors.left_out[i])]
        rows.append([*cells, *(percent(errors.relative_every[k][i]) for k in range(1 + after))])
    whole = pooled(errors)
    if whole.name not in errors.names:
        cells = [f'{whole.name} [{whole.unit}]', '']
        for k in range(1 + after):
            cells += [number(whole.rms[k], 3), percent(whole.relative[k])]
        cells += [number(whole.rms[2], 3), percent(whole.left_out)]
        rows.append([*cells, *(percent(whole.every[k]) for k in range(1 + after))])
    terminal.table(head, rows, right=range(1, len(head)))


def print_comparison(terminal: Terminal, comparison: Comparison, validation: Validation | None) -> None:
    """Write the table of all methods."""
    terminal.heading(f'Methods compared, errors on {short_names(comparison.on)}')
    head, rows = comparison.timed()
    terminal.table(head, rows, right=range(1, len(head) - 1))
    terminal.line(f'  {same_as(validation)}')
