# SPDX-License-Identifier: Apache-2.0
"""Names of links, wrenches and points as the kernels read them: tuples of frames and of arrays.

The common case takes one dictionary lookup per name here, and the kernels validate the arrays. Arguments that
the kernels reject are converted by `States.wrenches` and `converted_offsets`, which also raise the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import vector
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.memory.packing import Packed


# A contact point: the name of a link, or a link and a position in its frame [m].
Point = str | tuple[str, npt.ArrayLike]

Frames: TypeAlias = tuple[Floats, ...]
Offsets: TypeAlias = tuple[Floats | None, ...] | None

# Frames and wrenches that do not match: kernels reject them, and the slow path raises the error.
_UNRESOLVED: tuple[Frames, tuple[object, ...]] = ((), (None,))


def external_wrenches(packed: Packed, f_ext: object) -> tuple[Frames, tuple[object, ...]]:
    """Frames of the links of f_ext, and their wrenches, which the kernels validate.

    If it is not a dict, or a link is not known yet, the kernel rejects the result.
    """
    if type(f_ext) is not dict:
        return _UNRESOLVED
    try:
        return tuple(map(packed.frames.__getitem__, f_ext)), tuple(f_ext.values())
    except KeyError:
        return _UNRESOLVED


def known_frames(packed: Packed, links: Sequence[str], argument: str) -> Frames:
    """Frames of links, given by name.

    Args:
        packed: robot.
        links: names.
        argument: their name in error messages.

    Raises:
        ArgumentError: not a list of names, or an unknown link.
    """
    if type(links) is list or type(links) is tuple:
        try:
            return tuple(map(packed.frames.__getitem__, links))
        except (KeyError, TypeError):  # not known yet
            pass
    elif isinstance(links, str) or not isinstance(links, Sequence):
        raise ArgumentError(f'{argument} is {links!r}; expected a list of links')
    return tuple(packed.frame(link, argument) for link in links)


def points_of_links(packed: Packed, points: Sequence[Point]) -> tuple[Frames, Offsets]:
    """Frames of the links of points, and the points' positions, unconverted; None if all are origins.

    Raises:
        ArgumentError: not a list of points, or an unknown link.
    """
    if type(points) is list or type(points) is tuple:
        try:
            return tuple(map(packed.frames.__getitem__, points)), None
        except (KeyError, TypeError):  # not known yet, or with a position
            pass
    elif isinstance(points, str) or not isinstance(points, Sequence):
        raise ArgumentError(f'points is {points!r}; expected a list of links or (link, offset)')
    frames: list[Floats] = []
    offsets: list[Floats | None] = []
    for point in points:
        if isinstance(point, str):
            frames.append(packed.frame(point, 'points'))
            offsets.append(None)
            continue
        try:
            link, offset = point
        except (TypeError, ValueError) as error:
            expected = 'the name of a link or (link, offset)'
            raise ArgumentError(f'points has {point!r}; expected {expected}') from error
        frames.append(packed.frame(link, 'points'))
        offsets.append(offset if type(offset) is np.ndarray else _offset(link, offset))
    return tuple(frames), tuple(offsets)


def converted_offsets(points: Sequence[Point], offsets: Offsets) -> Offsets:
    """The result of `points_of_links`, converted for the kernels.

    Raises:
        ArgumentError: a position of a wrong shape, or one that is not finite.
    """
    if offsets is None:
        return None
    return tuple(
        None if offset is None else _offset(point[0], offset)
        for point, offset in zip(points, offsets, strict=True)
    )


def _offset(link: str, offset: npt.ArrayLike) -> Floats:
    return vector(f"offset on '{link}'", offset, 3)
