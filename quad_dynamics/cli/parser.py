# SPDX-License-Identifier: Apache-2.0
"""The argument parser of all commands: one-line errors, and suggestions for mistyped names."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from quad_dynamics.errors import ArgumentError


class UsageError(ArgumentError):
    """An invalid command line; nothing was started. The exit code is 2."""


class CommandParser(argparse.ArgumentParser):
    """Reports errors in one line, and suggests the nearest command, option or choice."""

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with a pointer to the help."""
        raise UsageError(f"{message.removeprefix('argument ')}; see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but report unknown arguments here, where the known options are at hand."""
        found, extras = super().parse_known_args(args, namespace)
        if extras:
            self.error(self._unknown(extras))
        return found, extras

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Convert a value. argparse would name the converting function if it does not understand the text."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if not isinstance(error.__context__, (TypeError, ValueError)):
                raise
            result = getattr(action.type, '__annotations__', {}).get('return')
            whole = action.type is int or result in ('int', int)
            kind = 'a whole number' if whole else 'a number'
            raise argparse.ArgumentError(action, f'{arg_string!r} is not {kind}') from error

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Reject values that are not among the choices. argparse calls this for options and commands."""
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        hint = suggestion(str(value), names)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown command '{value}'{hint}; expected one of {', '.join(names)}")
        raise argparse.ArgumentError(action, f"'{value}'{hint}; expected one of {', '.join(names)}")

    def _unknown(self, extras: Sequence[str]) -> str:
        """Describe the first unknown argument."""
        text = extras[0]
        if not text.startswith('-'):
            return f"unexpected argument '{text}'{self._as_robot(text)}"
        name = text.partition('=')[0]
        known = [flag for flag in self._option_string_actions if flag.startswith('--')]
        return f'unknown option {name}{suggestion(name, known)}'

    def _as_robot(self, text: str) -> str:
        takes_robot = '--robot' in self._option_string_actions
        return f" (did you mean '--robot {text}'?)" if takes_robot else ''


def suggestion(name: str, known: Iterable[str]) -> str:
    """` (did you mean '...'?)` with the closest known name; '' if none is close."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ''
