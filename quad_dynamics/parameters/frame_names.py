# SPDX-License-Identifier: Apache-2.0
"""Names of frames in messages; without ROS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def frame_problems(settings: Any, names: Iterable[str]) -> list[str]:
    """What is wrong with names of frames.

    Args:
        settings: that has them as attributes.
        names: of the attributes.
    """
    problems = []
    for name in names:
        value = getattr(settings, name)
        if value.startswith('/') or value != value.strip():
            problems.append(f'{name} is {value!r}; expected no leading slash and no surrounding spaces')
        elif name in ('odom_frame', 'world_frame') and not value:
            problems.append(f"{name} is ''; expected the name of a frame, such as 'odom'")
    return problems


def is_frame(found: str, expected: str) -> bool:
    """Whether a frame of a message is the one of this name; a robot in a namespace may prefix its frames."""
    found = found.lstrip('/')
    return found == expected or found.endswith(f'/{expected}')
