# SPDX-License-Identifier: Apache-2.0
"""One process of the graph: what to run, and how much depends on it."""

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
        executable: of the package; also the name of the node.
        package: that has it.
        module: of Python that is the same program, '' if there is none.
        namespace: of the node.
        parameters: by name.
        files: YAML files with parameters; those named above come after them.
        arguments: of the program, before those for ROS.
        remappings: of names, from and to.
        is_node: whether it takes arguments for ROS.
        respawn: whether it is started again: a node when it ends, another program when it was killed.
        needed: whether nothing goes on without it.
        patience: how long it may take to end when asked to [s].
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
        """Of the process, for people."""
        return self.executable if self.is_node else self.arguments[0]

    @property
    def program(self) -> Path | None:
        """The executable in lib/ of a ROS installation, where `ros2 run` looks; None if there is none."""
        prefix = prefix_of(self.package)
        path = None if prefix is None else prefix / 'lib' / self.package / self.executable
        return path if path is not None and os.access(path, os.X_OK) else None

    @property
    def lack(self) -> str:
        """'' or what to install: a program of another package that is not here."""
        if self.module or self.program is not None:
            return ''
        return f'{self.executable} is not installed; install it with: {apt_command(self.package)}'


def prefix_of(package: str) -> Path | None:
    """Where a ROS installation has a package, None if it has not."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    except ImportError:
        return None
    try:
        return Path(get_package_prefix(package))
    except (PackageNotFoundError, LookupError, ValueError, OSError):  # OSError: AMENT_PREFIX_PATH is not set
        return None
