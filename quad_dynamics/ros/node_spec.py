# SPDX-License-Identifier: Apache-2.0
"""One process of the graph: what to run, and whether others need it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quad_dynamics.ros.environment import apt_command
from quad_dynamics.ros.process import PATIENCE

PACKAGE = 'quad_dynamics'


@dataclass(frozen=True)
class NodeSpec:
    """One process of the graph.

    Attributes:
        executable: name of the executable, and of the node.
        package: package of the executable.
        module: Python module that is the same program, '' if there is none.
        namespace: of the node.
        parameters: by name.
        files: YAML files with parameters; `parameters` override them.
        arguments: of the program, before those for ROS.
        remappings: of names, from and to.
        is_node: whether it takes ROS arguments.
        respawn: whether to restart it: a node when it exits, another program when it was killed.
        needed: whether everything stops when it is gone.
        patience: how long it may take to shut down [s].
    """

    executable: str
    package: str = PACKAGE
    module: str = ''
    namespace: str = ''
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Path] = ()
    arguments: Sequence[str] = ()
    remappings: Sequence[tuple[str, str]] = ()
    is_node: bool = True
    respawn: bool = True
    needed: bool = True
    patience: float = PATIENCE

    @property
    def name(self) -> str:
        """Name of the process, for messages."""
        return self.executable if self.is_node else self.arguments[0]

    @property
    def program(self) -> Path | None:
        """The executable in lib/ of a ROS installation, where `ros2 run` finds it; None if there is none."""
        prefix = prefix_of(self.package)
        path = None if prefix is None else prefix / 'lib' / self.package / self.executable
        return path if path is not None and os.access(path, os.X_OK) else None

    @property
    def lack(self) -> str:
        """What to install, if a program of another package is missing; else ''."""
        if self.module or self.program is not None:
            return ''
        return f'{self.executable} is not installed; install it with: {apt_command(self.package)}'


def prefix_of(package: str) -> Path | None:
    """Prefix of a package in the ROS installation, None if it is not installed."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    except ImportError:
        return None
    try:
        return Path(get_package_prefix(package))
    except (PackageNotFoundError, LookupError, ValueError, OSError):  # OSError: AMENT_PREFIX_PATH is not set
        return None
