# SPDX-License-Identifier: Apache-2.0
"""Reasons why the page cannot be served although the parameters are valid."""

from __future__ import annotations

import importlib
import importlib.metadata
import re

from quad_dynamics.ros.environment import pip_command

REQUIREMENT = 'viser>=1.1,<1.2'
_VERSION = (1, 1)


class CannotServeError(Exception):
    """The page cannot be served, and a restart would not help; the message says what would."""


def check_viser() -> None:
    """Check that viser is installed in a supported version.

    Raises:
        CannotServeError: with the command that installs it.
    """
    try:
        importlib.import_module('viser')
        version = importlib.metadata.version('viser')
    except ImportError as error:  # PackageNotFoundError, too
        is_missing = isinstance(error, ModuleNotFoundError) and error.name in ('viser', None)
        reason = 'viser is not installed' if is_missing else f'viser cannot be imported ({error})'
        raise CannotServeError(_advice(reason)) from error
    numbers = tuple(int(part) for part in re.findall(r'\d+', version)[:2])
    if numbers != _VERSION:
        raise CannotServeError(_advice(f'viser {version} is installed; expected 1.1'))


def _advice(reason: str) -> str:
    return f'no page in the browser: {reason}; install it with: {pip_command(REQUIREMENT)}'


def port_is_taken(host: str, port: int) -> CannotServeError:
    """The error to raise if another program uses the port."""
    return CannotServeError(
        f'no page in the browser: port {port} of {host} is in use; choose another with --port '
        '(launch file: port:=, node: -p port:=), or 0 for any free port'
    )
