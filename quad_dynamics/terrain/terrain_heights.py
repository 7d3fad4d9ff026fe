# SPDX-License-Identifier: Apache-2.0
"""Heights of a height map: from an array, a .npy file or a grayscale .png image."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.model.problems import why_unreadable
from quad_dynamics.terrain.terrain_checks import WrongValueError

_MOST_POINTS = 25_000_000
_MOST_BYTES = 16 * _MOST_POINTS
_WHITE = {'I;16': 65535.0, 'I;16B': 65535.0, 'I;16L': 65535.0, 'I': 65535.0}  # 16 bits, by Pillow's name


def read_heights(source: Any) -> Floats:
    """The unscaled values of a map (rows, columns).

    Args:
        source: an array of at least 2 x 2 numbers, or the path of a .npy or .png file.

    Raises:
        WrongValueError: anything else.
    """
    if isinstance(source, (str, os.PathLike)):
        values = _read_file(Path(source))
    elif isinstance(source, np.ma.MaskedArray) and np.any(source.mask):
        raise WrongValueError('no masked values')
    else:
        try:
            values = np.asarray(source)
        except ValueError:
            raise WrongValueError('rows of equal length') from None
    if values.dtype.kind not in 'fiu' or values.ndim != 2:
        raise WrongValueError(
            f'a 2-dimensional array of numbers; it has shape {values.shape} and type {values.dtype}'
        )
    if min(values.shape) < 2 or values.size > _MOST_POINTS:
        raise WrongValueError(f'at least 2 x 2 and at most {_MOST_POINTS} points; it has {_by(values.shape)}')
    heights = np.array(values, dtype=np.float64, order='C')
    holes = np.argwhere(~np.isfinite(heights))
    if len(holes):
        row, column = (int(k) for k in holes[0])
        more = f' and {len(holes) - 1} more' if len(holes) > 1 else ''
        raise WrongValueError(
            f'finite heights; it is {heights[row, column]} at row {row}, column {column}{more}'
        )
    return heights


def _read_file(path: Path) -> npt.NDArray[Any]:
    readers = {'.npy': _read_npy, '.png': _read_png}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise WrongValueError('an array, or a .npy or .png file')
    problem = why_unreadable(path, f'a {path.suffix} file', _MOST_BYTES)
    if problem:
        raise WrongValueError(f'a readable file; {path}: {problem}')
    return reader(path)


def _read_npy(path: Path) -> npt.NDArray[Any]:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise WrongValueError(f'a .npy file with numbers: {" ".join(str(error).split())}') from None
    if not isinstance(values, np.ndarray):  # an archive, regardless of its name
        values.close()
        raise WrongValueError('a .npy file with one array')
    return values


def _read_png(path: Path) -> Floats:
    """Grey values from 0 (black) to 1 (white); the first row of the image is the last of the map."""
    try:
        from PIL import Image
    except ImportError:
        fix = "install it with 'pip install pillow', or store the heights as .npy"
        raise WrongValueError(f'the package pillow to read a .png file; {fix}') from None
    try:
        with warnings.catch_warnings(), Image.open(path, formats=('PNG',)) as image:
            warnings.simplefilter('error', Image.DecompressionBombWarning)
            if image.width * image.height > _MOST_POINTS:
                raise WrongValueError(f'at most {_MOST_POINTS} pixels; it has {_by(image.size)}')
            return np.flipud(_grey_values(image))
    except WrongValueError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Warning) as error:
        raise WrongValueError(f'a PNG image: {" ".join(str(error).split())}') from None


def _grey_values(image: Any) -> Floats:
    white = _WHITE.get(image.mode)
    if white is not None:
        pixels = np.asarray(image, dtype=np.float64)
        transparent = np.asarray(pixels == image.info.get('transparency', -1))
        grey = pixels / white
    else:
        pixels = np.asarray(image.convert('RGBA'))
        transparent = pixels[..., 3] < 255
        if np.any(pixels[..., :3] != pixels[..., :1]):
            raise WrongValueError('a grayscale image; this one has colours')
        grey = pixels[..., 0] / 255.0
    if np.any(transparent):
        y, x = (int(k) for k in np.argwhere(transparent)[0])
        n = np.count_nonzero(transparent)
        raise WrongValueError(
            f'an opaque image; {n} pixels are transparent, the first at row {y}, column {x}'
        )
    return grey


def _by(shape: tuple[int, ...]) -> str:
    return ' x '.join(map(str, shape))
