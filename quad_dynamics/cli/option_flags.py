# SPDX-License-Identifier: Apache-2.0
"""Flags of a command from the declarations of a `ParameterSet`."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from quad_dynamics.parameters.parameter import Parameter
from quad_dynamics.parameters.parameter_set import ParameterSet


def add_flags(
    parser: argparse.ArgumentParser, settings: type[ParameterSet], leave_out: Collection[str] = ()
) -> None:
    """Add a flag for each parameter; flags that are not given are absent from the namespace."""
    for name, declared in settings.parameters().items():
        if name in leave_out:
            continue
        flag, text = f'--{name.replace("_", "-")}', _help(declared)
        if declared.kind == 'flag':
            parser.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text
            )
            continue
        kind: Any = {'number': float, 'integer': int}.get(declared.kind, str)
        metavar = '{' + ','.join(declared.choices) + '}' if declared.choices else name.upper()
        parser.add_argument(flag, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=text)


def given_flags(arguments: argparse.Namespace, settings: type[ParameterSet]) -> dict[str, Any]:
    """The parameters that were given, by name."""
    return {name: getattr(arguments, name) for name in settings.parameters() if hasattr(arguments, name)}


def _help(declared: Parameter) -> str:
    unit = f' [{declared.unit}]' if declared.unit.strip('-') else ''
    default = '' if declared.default in ('', None) else f' (default: {_shown(declared.default)})'
    return f'{declared.meaning}{unit}{default}'.replace('%', '%%')


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:g}' if isinstance(value, float) else str(value)
