# SPDX-License-Identifier: Apache-2.0
"""Collects all problems of a robot file, so that they can be reported at once."""

from __future__ import annotations

import stat
from pathlib import Path

from quad_dynamics.errors import ModelError

# A broken file with a million elements must not produce a message with a million lines.
_MOST_PROBLEMS = 200
_MOST_ITEMS = 8  # listed in a counted warning


class Problems:
    """Errors, and warnings grouped by kind: one line per kind, regardless of the number of links."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._errors: list[str] = []
        self._n_errors = 0
        self._warnings: dict[str, dict[str, None]] = {}

    def error(self, text: str) -> None:
        """Add a problem that prevents a model."""
        self._n_errors += 1
        if len(self._errors) < _MOST_PROBLEMS and text not in self._errors:
            self._errors.append(text)

    def warn(self, kind: str, item: str) -> None:
        """Add a warning.

        Args:
            kind: a sentence with `{}` where the list of items goes. `{n}` is replaced by their number, and
                then only the first are listed.
            item: its subject, e.g. the name of a link.
        """
        items = self._warnings.setdefault(kind, {})
        items[item] = None

    def doubting(self, kind: str) -> Problems:
        """A collector that adds its problems here as warnings, for minor issues.

        Args:
            kind: kind of these warnings, as in `warn`.
        """
        return _Doubts(self, kind)

    @property
    def n_errors(self) -> int:
        """Number of problems so far."""
        return self._n_errors

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line per kind of warning, in order of occurrence."""
        return self._lines(_MOST_ITEMS)

    def _lines(self, most: int | None) -> tuple[str, ...]:
        return tuple(_line(kind, list(items), most) for kind, items in self._warnings.items())

    def raise_errors(self, strict: bool = False) -> None:
        """Raise ModelError if there are errors, or with `strict` warnings.

        Raises:
            ModelError: with every problem.
        """
        problems = list(self._errors)
        hidden = self._n_errors - len(problems)
        if hidden > 0 and len(problems) == _MOST_PROBLEMS:
            problems.append(f'and {hidden} more problems')
        if strict:
            problems.extend(f'{warning} (an error in strict mode)' for warning in self._lines(None))
        if problems:
            raise ModelError(self.source, problems, () if strict else self.warnings)


class _Doubts(Problems):
    """Turns problems into warnings of another collector."""

    def __init__(self, problems: Problems, kind: str) -> None:
        super().__init__(problems.source)
        self._to, self._kind = problems, kind

    def error(self, text: str) -> None:
        self._to.warn(self._kind, text)

    def warn(self, kind: str, item: str) -> None:
        self._to.warn(kind, item)


def _line(kind: str, items: list[str], most: int | None) -> str:
    if '{n}' not in kind:
        return kind.replace('{}', ', '.join(items))
    shown = items[:most]
    more = f' and {len(items) - len(shown)} more' if len(items) > len(shown) else ''
    return kind.replace('{n}', str(len(items))).replace('{}', ', '.join(shown) + more)


def why_unreadable(path: Path, expected: str, most_bytes: int) -> str:
    """The reason why a path cannot be read as a file; '' if it can.

    Only regular files are read: pipes may block, and devices may be endless.

    Args:
        path: path of the file.
        expected: expected kind of file, for the message.
        most_bytes: maximum size.
    """
    try:
        status = path.stat()
    except ValueError:  # a NUL in the path
        return 'no such file'
    except OSError as error:
        return f'cannot be read: {error.strerror}'
    if stat.S_ISDIR(status.st_mode):
        return f'is a directory; expected {expected}'
    if not stat.S_ISREG(status.st_mode):
        return f'is not a regular file; expected {expected}'
    return f'the file is larger than {most_bytes} bytes' if status.st_size > most_bytes else ''
