# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses of declared parameters: checks, mappings, copies with changes, tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import KEY, Parameter, raise_problems, show, unknown

_Set = TypeVar('_Set', bound='ParameterSet')


@dataclass(frozen=True)
class ParameterSet:
    """Base of frozen dataclasses whose fields are declared by `param` and `group`."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            if declared.group is not None and isinstance(value, Mapping):
                value = declared.group._read(value, f'{name}.', problems)
                if value is None:
                    continue
            value, problem = declared.accept(value)
            object.__setattr__(self, name, value)
            if problem:
                problems.append(f'{name} {problem}')
        raise_problems('', problems or self._across())

    def _across(self) -> list[str]:
        """What is wrong with fields that are good each by itself."""
        return []

    @classmethod
    def parameters(cls, prefix: str = '') -> dict[str, Parameter]:
        """All parameters, those of groups as `group.name`."""
        found: dict[str, Parameter] = {}
        for name, declared in declarations(cls).items():
            inner = declared.group.parameters(f'{prefix}{name}.') if declared.group else None
            found |= {f'{prefix}{name}': declared} if inner is None else inner
        return found

    @classmethod
    def table(cls) -> str:
        """All parameters as a table in Markdown."""
        rows = ['| key | default | unit | bounds | meaning |', '|---|---|---|---|---|']
        for name, declared in cls.parameters().items():
            bounds = ', '.join(declared.choices) or declared._bounds.strip()
            cells = f'`{name}`', _cell(declared.default), declared.unit, bounds, declared.meaning
            rows.append(f'| {" | ".join(cells)} |')
        return '\n'.join(rows) + '\n'

    @classmethod
    def from_dict(cls: type[_Set], data: Mapping[str, Any]) -> _Set:
        """Make it from a mapping; keys that are left out take their defaults.

        Raises:
            ArgumentError: everything that is wrong with the mapping.
        """
        problems: list[str] = []
        made = cls._read(data, '', problems)
        raise_problems('', problems)
        assert made is not None
        return made

    @classmethod
    def _read(cls: type[_Set], data: Any, where: str, problems: list[str]) -> _Set | None:
        """As `from_dict`, but it adds what is wrong to the problems, and then returns None."""
        if not isinstance(data, Mapping):
            problems.append(f'{where.rstrip(".") or "the data"} is {show(data)}; expected a mapping')
            return None
        known = declarations(cls)
        before = len(problems)
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in known:
                problems.append(unknown(f'{where.rstrip(".")}: ' if where else '', 'key', key, known))
                continue
            inner = known[key].group
            if inner is not None and not isinstance(value, inner):
                values[key] = inner._read({} if value is None else value, f'{where}{key}.', problems)
                continue
            values[key], problem = known[key].accept(value)
            if problem:
                problems.append(f'{where}{key} {problem}')
        if len(problems) > before:
            return None
        try:
            return cls(**values)
        except ArgumentError as error:  # fields that do not go together
            problems.append(f'{where}{error}')
            return None

    def to_dict(self) -> dict[str, Any]:
        """All values as a mapping of plain values, groups as mappings; `from_dict` reads it."""
        return {name: _plain(getattr(self, name)) for name in declarations(type(self))}

    def replace(self: _Set, **changes: Any) -> _Set:
        """A copy with other values; a mapping for a group changes what it names.

        Raises:
            ArgumentError: an unknown name, or a value that is not good.
        """
        values = {name: getattr(self, name) for name in declarations(type(self))}
        for name, value in changes.items():
            if name not in values:
                raise ArgumentError(unknown('', 'setting', name, values))
            merge = isinstance(values[name], ParameterSet) and isinstance(value, Mapping)
            values[name] = values[name].replace(**value) if merge else value
        return type(self)(**values)


def declarations(cls: type[ParameterSet]) -> dict[str, Parameter]:
    """The declarations of the fields of a class, by name."""
    return {item.name: item.metadata[KEY] for item in fields(cls)}


def _cell(value: Any) -> str:
    """A default value, as YAML would write it."""
    if isinstance(value, tuple):
        return f'[{", ".join(map(_cell, value))}]'
    if value is None or isinstance(value, bool):
        return {None: 'null', True: 'true', False: 'false'}[value]
    return f'{value:g}' if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, ParameterSet):
        return value.to_dict()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(value) if isinstance(value, tuple) else value
