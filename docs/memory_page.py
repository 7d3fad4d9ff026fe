# SPDX-License-Identifier: Apache-2.0
"""Writes docs/memory.md: the records that the kernels keep in memory, from their declarations.

`make docs` runs it; a test compares.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

import quad_dynamics.kernels.all  # noqa: F401 (declares the records)
from quad_dynamics.compiler.records import RECORDS, Constant, Field, Record

PAGE = Path(__file__).parent / 'memory.md'
_INTRODUCTION = """\
# Records of the kernels

Written by `docs/memory_page.py` from the declarations; `make docs` writes it anew.

Kernels store their data in 64-bit words: float64 for numbers, int64 for the type `Int` and for references.
The place of a field is the number of words before it in the record. `Vec3` and the like are tuples of numbers
(`quad_dynamics/compiler/types.py`). `Name[n]` is a reference to n records or numbers elsewhere in the same
array. Kernels only read the fields that are marked as constant. `quad_dynamics/compiler/records.py` explains
how records are declared and used.
"""


def page() -> str:
    """The text of the page."""
    chosen = [one for one in RECORDS.values() if one.__module__.startswith('quad_dynamics.')]
    return '\n'.join([_INTRODUCTION, *(_section(one) for one in chosen)])


def _section(record: type[Record]) -> str:
    module = record.__module__.removeprefix('quad_dynamics.').replace('.', '/')
    lines = [
        f'## {record.__name__}',
        '',
        f'{inspect.cleandoc(record.__doc__ or "")}',
        '',
        f'{record.words} words, declared in `{module}.py`.',
        '',
        '| place | field | type | unit | meaning |',
        '|---|---|---|---|---|',
        *map(_row, record.fields),
        '',
    ]
    return '\n'.join(lines)


def _row(field: Field[object]) -> str:
    kind = f'{field.kind.name}, constant' if isinstance(field, Constant) else field.kind.name
    cells = (str(field.offset), f'`{field.name}`', kind, field.unit, field.meaning)
    return f'| {" | ".join(cell.replace("|", "&#124;") for cell in cells)} |'


def main() -> int:
    """Write the page, or say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true', help='only say whether the page is current')
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding='utf-8')
        return 0
    current = PAGE.is_file() and PAGE.read_text(encoding='utf-8') == page()
    if not current:
        print(f'{PAGE.name} is not as the code; run `make docs`')
    return int(not current)


if __name__ == '__main__':
    sys.exit(main())
