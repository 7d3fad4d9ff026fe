# SPDX-License-Identifier: Apache-2.0
"""Plain terminal output: tables, trees, and colour where the terminal supports it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

_CODES = {'bold': '1', 'dim': '2', 'red': '31', 'green': '32', 'yellow': '33'}


class Terminal:
    """Writes to a stream, with colour and box characters if it supports them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        # sys.stdout is None if it was closed; the exit code still reports the result.
        self.stream: TextIO = stream or sys.stdout or io.StringIO()
        plain = 'NO_COLOR' in os.environ or os.environ.get('TERM') == 'dumb'
        self.colour = self.stream.isatty() and not plain
        self.unicode = _can_encode(self.stream, '├└│─✓')
        self._encoding = (getattr(self.stream, 'encoding', None) or 'utf-8') if self.unicode else 'ascii'

    def paint(self, text: str, style: str) -> str:
        """The text in a style: bold, dim, red, green or yellow."""
        return f'\x1b[{_CODES[style]}m{text}\x1b[0m' if self.colour else text

    def line(self, text: str = '') -> None:
        """Write one line."""
        # File names may contain bytes that are not valid text.
        self.stream.write(text.encode(self._encoding, 'replace').decode(self._encoding) + '\n')

    def heading(self, text: str) -> None:
        """Write a heading after an empty line."""
        self.line()
        self.line(self.paint(text, 'bold'))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Write a table.

        Args:
            head: titles of the columns.
            rows: cells.
            right: indices of the columns that are aligned to the right.
        """
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

        def join(row: Sequence[str]) -> str:
            cells = [
                cell.rjust(w) if i in right else cell.ljust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            return '  ' + '  '.join(cells).rstrip()

        self.line(self.paint(join(head), 'dim'))
        for row in rows:
            self.line(join(row))

    def tree(self, root: str, children: Callable[[str], Sequence[str]], label: Callable[[str], str]) -> None:
        """Draw a tree.

        Args:
            root: name of its root.
            children: names of the children of a name.
            label: what to write for a name.
        """
        tee, corner, bar = ('├── ', '└── ', '│   ') if self.unicode else ('|-- ', '`-- ', '|   ')
        stack: list[tuple[str, str, str]] = [(root, '', '')]
        while stack:
            name, branch, indent = stack.pop()
            self.line(f'  {branch}{label(name)}')
            below = list(children(name))
            for i, child in reversed(list(enumerate(below))):
                last = i == len(below) - 1
                stack.append((child, indent + (corner if last else tee), indent + ('    ' if last else bar)))


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, 'encoding', None) or 'utf-8')
    except (UnicodeEncodeError, LookupError):
        return False
    return True
