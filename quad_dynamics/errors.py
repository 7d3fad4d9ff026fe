# SPDX-License-Identifier: Apache-2.0
"""All exceptions and warnings of the library, and how the command line prints warnings.

Every exception derives from `QuadDynamicsError` and also from the built-in class it is a kind of, so that
`except ValueError` keeps working.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO


class QuadDynamicsError(Exception):
    """Base class of every exception that this library raises on purpose."""


class ModelError(QuadDynamicsError, ValueError):
    """A file or text is not a valid model; lists all problems, not only the first.

    Attributes:
        source: where the model came from (a path, a bundled name, or 'URDF text').
        problems: one message per problem.
        warnings: one line per kind of warning.
    """

    def __init__(self, source: str, problems: Sequence[str], warnings: Sequence[str] = ()) -> None:
        # All arguments go to the base class so that the exception can be pickled between processes.
        super().__init__(source, tuple(problems), tuple(warnings))
        self.source = source
        self.problems: tuple[str, ...] = tuple(problems)
        self.warnings: tuple[str, ...] = tuple(warnings)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f'{self.source}: {self.problems[0]}'
        lines = '\n'.join(f'  - {problem}' for problem in self.problems)
        return f'{self.source}: {len(self.problems)} problems:\n{lines}'


class ArgumentError(QuadDynamicsError, ValueError):
    """An invalid argument of a public function: wrong shape, not finite, or an unknown name."""


class ModelWarning(UserWarning):
    """A model could be built, but its file is questionable; `strict=True` makes this an error."""


class FactorizationWarning(UserWarning):
    """A mass matrix is not positive definite, so that LLT failed and LDLT was used instead."""


class SimulationDiverged(QuadDynamicsError, RuntimeError):  # noqa: N818 (what happened, not an error in a call)
    """A simulation has diverged; the simulator is back in its last valid state.

    Attributes:
        time: of the last valid state [s].
        q: (nq,) its configuration.
        u: (nv,) its velocity.
        log: the log of `run` up to then, None from `step`.
    """

    def __init__(self, message: str, time: float, q: Any, u: Any) -> None:
        super().__init__(message, time, q, u)
        self.time, self.q, self.u = time, q, u
        self.log: Any = None

    def __str__(self) -> str:
        return str(self.args[0])


class RosMissing(QuadDynamicsError, RuntimeError):  # noqa: N818 (what is the case, not an error in a call)
    """ROS, or another requirement of the nodes, is not installed."""


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning once, as a line `warning: ...` on stderr, without file, line number and source code.

    For the command line. Warnings for developers (deprecations, numba's hints) are not printed.
    """
    seen: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = ' '.join(str(message).split())
        for_developers = issubclass(category, (DeprecationWarning, FutureWarning, ResourceWarning))
        if text in seen or for_developers or category.__module__.partition('.')[0] == 'numba':
            return
        seen.add(text)
        if sys.stderr is not None:
            print(f'warning: {text}', file=file or sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
