# SPDX-License-Identifier: Apache-2.0
"""Results of scenarios: the file results.csv, and the check of expectations."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quad_dynamics.scenarios.columns import COLUMNS, TEXTS

Row = Mapping[str, Any]


def write_results(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Write results.csv: one row per run with the columns of `COLUMNS`; missing values are empty.

    Args:
        rows: of runs.
        path: of the file, which is overwritten.
    """
    with Path(path).open('w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(COLUMNS)
        writer.writerows([_cell(row[name]) for name in COLUMNS] for row in rows)


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read what `write_results` wrote; NaN where a cell is empty."""
    with Path(path).open(encoding='utf-8', newline='') as file:
        return [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def mean_of(rows: Sequence[Row], name: str) -> float:
    """Mean of a column over the runs without a fall that have a value; NaN if there are none."""
    values = [float(row[name]) for row in rows if not row['fell']]
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def violations(rows: Sequence[Row], expect: Mapping[str, float]) -> list[str]:
    """Violated expectations, one text each.

    Args:
        rows: of all runs of a scenario.
        expect: upper bounds: `falls` of the number of runs with a fall, the names of columns of `mean_of`
            them.
    """
    found = []
    for name, bound in expect.items():
        if name == 'falls':
            fallen = [str(row['seed']) for row in rows if row['fell']]
            if len(fallen) > bound:
                seeds = f'seed{"s" if len(fallen) > 1 else ""} {", ".join(fallen)}'
                found.append(f'falls is {len(fallen)} ({seeds}); expected at most {bound:g}')
            continue
        mean = mean_of(rows, name)
        if math.isnan(mean):
            found.append(f'{name} has no value in a run without a fall; expected at most {bound:g}')
        elif mean > bound:
            found.append(f'{name} is {mean:.4g}; expected at most {bound:g}')
    return found


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return '' if math.isnan(value) else repr(value)
    return str(value)


def _value(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    if name in ('seed', 'fell', 'solver_failures'):
        return int(text)
    return float(text) if text else math.nan
