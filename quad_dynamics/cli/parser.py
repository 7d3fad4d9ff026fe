# SPDX-License-Identifier: Apache-2.0
"""The argument parser of all commands: an error is one line, and a typo gets the nearest name."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from quad_dynamics.errors import ArgumentError


class UsageError(ArgumentError):
    """A command line that cannot be run; nothing was started. The exit code is 2."""


class CommandParser(argparse.ArgumentParser):
    """Reports errors in one line, and suggests the nearest command, option or choice."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with a pointer to the help."""
        raise UsageError(f"{message.removeprefix('argument ')}; see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but arguments that are not known end it here, where the options are known."""
        found, extras = super().parse_known_args(args, namespace)
        if extras:
            self.error(self._unknown(extras))
        return found, extras

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is not among the choices. argparse calls it for options and commands alike."""
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        hint = suggestion(str(value), names)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown command '{value}'{hint}; expected one of {', '.join(names)}")
        raise argparse.ArgumentError(action, f"'{value}'{hint}; expected one of {', '.join(names)}")

    def _unknown(self, extras: Sequence[str]) -> str:
        """A phrase about the first argument that is not known."""
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
    """` (did you mean '...'?)` with the known name that is nearest; '' if none is near."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ''
