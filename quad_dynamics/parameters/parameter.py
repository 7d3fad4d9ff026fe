# SPDX-License-Identifier: Apache-2.0
"""Parameters that are declared once: default, unit, meaning and bounds stand with the field of a dataclass.

    @dataclass(frozen=True)
    class BallSettings(ParameterSet):
        mass: float = param(0.1, 'of the ball', unit='kg', above=0.0)
        surface: str = param('smooth', 'of the ball', choices=('smooth', 'rough'))

The declaration checks every value, reads and writes mappings, and makes the table of the docs. A node
declares its ROS parameters from `BallSettings.parameters()`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.parameters.parameter_set import ParameterSet

# Where a declaration stands in the metadata of a field.
KEY = 'parameter'


@dataclass(frozen=True)
class Parameter:
    """What is known about one parameter.

    Attributes:
        kind: 'number', 'integer', 'flag', 'choice', 'text', 'vector' (of a fixed size), 'numbers' and
            'texts' (of any size), 'other' or 'group'.
        default: its value where nobody gives one.
        meaning: a few words.
        unit: '' if it has none.
        low: the smallest value that is allowed.
        above: all values must be larger than this.
        high: the largest value that is allowed.
        choices: of a choice.
        aliases: other spellings of choices.
        size: of a vector.
        optional: None is allowed.
        infinite: infinity is allowed.
        check: for 'other': says what is expected if the value is wrong, '' if it is right.
        group: for 'group': the class of the parameters below it.
        dynamic: a node takes new values while it runs.
    """

    kind: str
    default: Any
    meaning: str
    unit: str = ''
    low: float = -math.inf
    above: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    optional: bool = False
    infinite: bool = False
    check: Callable[[Any], str] | None = None
    group: type[ParameterSet] | None = None
    dynamic: bool = False

    @property
    def expected(self) -> str:
        """What a value must be, as a phrase."""
        unit = f' [{self.unit}]' if self.unit.strip('-') else ''
        what = {
            'number': f'a number{self._bounds}{unit}',
            'integer': f'a whole number{self._bounds}{unit}',
            'flag': 'true or false',
            'choice': f'one of {", ".join(map(repr, self.choices))}',
            'text': 'text',
            'vector': f'{self.size} numbers{self._bounds}{unit}',
            'numbers': f'a list of numbers{self._bounds}{unit}',
            'texts': 'a list of strings',
            'group': 'a mapping',
        }.get(self.kind, '')
        return f'{what} or None' if self.optional else what

    @property
    def _bounds(self) -> str:
        lower = f' above {_digits(self.above)}' if self.above > -math.inf else ''
        if self.low > -math.inf:
            lower = f' {"from" if self.high < math.inf else "of at least"} {_digits(self.low)}'
        if self.high == math.inf:
            return lower
        return f'{lower} {"to" if self.low > -math.inf else "of at most"} {_digits(self.high)}'

    def accept(self, value: Any) -> tuple[Any, str]:
        """The value in its plain form, and what is wrong with it: `is ...; expected ...`, or ''."""
        if isinstance(value, (np.ndarray, np.generic)):
            value = value.tolist()
        if value is None and self.optional:
            return None, ''
        if self.kind == 'choice' and isinstance(value, str):
            value = self.aliases.get(value, value)
        if self.kind == 'other':
            expected = self.check(value) if self.check else ''
            kept = deepcopy(value) if isinstance(value, (Mapping, list)) else value
            return kept, f'is {show(value)}; expected {expected}' if expected else ''
        if not self._fits(value):
            infinite = isinstance(value, float) and math.isinf(value)
            expected = self.expected.replace('a number', 'a finite number') if infinite else self.expected
            return value, f'is {show(value)}{nearest(value, self.choices)}; expected {expected}'
        if self.kind == 'number':
            return float(value), ''
        if self.kind in ('vector', 'numbers'):
            return tuple(float(x) for x in value), ''
        return (tuple(value) if self.kind == 'texts' else value), ''

    def _fits(self, value: Any) -> bool:
        if self.kind in ('vector', 'numbers', 'texts'):
            fits = self._in_bounds if self.kind != 'texts' else lambda item: isinstance(item, str)
            right_size = isinstance(value, (list, tuple)) and (
                self.kind != 'vector' or len(value) == self.size
            )
            return right_size and all(map(fits, value))
        if self.kind == 'choice':
            return isinstance(value, str) and value in self.choices
        if self.kind == 'group':
            return self.group is not None and isinstance(value, self.group)
        if self.kind == 'integer':
            return isinstance(value, int) and self._in_bounds(value)
        if self.kind == 'number':
            return self._in_bounds(value)
        return isinstance(value, bool if self.kind == 'flag' else str)

    def _in_bounds(self, value: Any) -> bool:
        # True is an int in Python, but no number.
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if isinstance(value, int) and self.kind != 'integer' and abs(value) > 10**300:
            return False  # more than a float holds
        if not (self.infinite or -math.inf < value < math.inf):
            return False
        return self.low <= value <= self.high and value > self.above


def param(
    default: Any, meaning: str, *, kind: str = '', choices: Iterable[str] = (), size: int = 0, **rest: Any
) -> Any:
    """Declare a field of a `ParameterSet`.

    Args:
        default: value where nobody gives one; None makes the parameter optional.
        meaning: a few words.
        kind: see `Parameter`; by default it follows from the default value and the choices.
        choices: of a choice.
        size: of a vector.
        **rest: other attributes of `Parameter`.
    """
    choices = tuple(choices)
    size = len(default) if isinstance(default, tuple) and kind in ('', 'vector') else size
    if not kind:
        kinds = {bool: 'flag', int: 'integer', float: 'number', str: 'text', tuple: 'vector'}
        kind = 'choice' if choices else kinds[type(default)]
    optional = default is None
    declared = Parameter(kind, default, meaning, choices=choices, size=size, optional=optional, **rest)
    return field(default=default, metadata={KEY: declared})


def group(cls: type[ParameterSet], meaning: str) -> Any:
    """Declare a field that holds another `ParameterSet`."""
    return field(default_factory=cls, metadata={KEY: Parameter('group', None, meaning, group=cls)})


def raise_problems(source: str, problems: Sequence[str]) -> None:
    """Raise an ArgumentError with all problems, if there are any.

    Args:
        source: where they were found, '' for nowhere in particular.
        problems: one sentence for each.
    """
    start = f'{source}: ' if source else ''
    if len(problems) == 1:
        raise ArgumentError(f'{start}{problems[0]}')
    if problems:
        raise ArgumentError('\n  - '.join([f'{start}{len(problems)} problems:', *problems]))


def unknown(start: str, what: str, name: Any, known: Iterable[str]) -> str:
    """A sentence about a name that does not exist, with the nearest one that does."""
    names = list(known)
    return f'{start}unknown {what} {show(name)}{nearest(name, names)}; expected one of {", ".join(names)}'


def nearest(name: Any, known: Iterable[str]) -> str:
    """` (did you mean '...'?)` with the known name that resembles the given one most; '' if none does."""
    close = difflib.get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.5)
    return f' (did you mean {close[0]!r}?)' if close else ''


def show(value: Any) -> str:
    """The value as text that is not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _digits(number: float) -> str:
    return str(number) if isinstance(number, int) else f'{number:g}'
