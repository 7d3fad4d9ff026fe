# SPDX-License-Identifier: Apache-2.0
"""Where compiled kernels are kept, so that each is compiled once per machine.

Numba's own cache looks at the source file of the outermost function only, so that it would serve stale code
after an edit of a function that was inlined from another file, and it writes into the installed package where
it can. Here one file per kernel is kept in the user's cache directory; its name has a hash of all kernel
sources, of the versions of Python and numba, and of the processor, so a stale one is never found.

The directory is $QUAD_DYNAMICS_CACHE_DIR, else `quad_dynamics` in $XDG_CACHE_HOME or ~/.cache, else, where
none of them can be written, a fresh temporary directory, with a warning.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, serialize
from numba.core.compiler import CompileResult

from quad_dynamics.model import layout


class DiskCache(caching._Cache):  # type: ignore[misc]
    """The cache of one kernel, as numba's dispatchers expect it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.missed = False

    @property
    def cache_path(self) -> str:
        """Directory of the cache."""
        return str(cache_directory())

    def path(self, target_context: Any) -> Path:
        """The file of this kernel for this machine and these sources."""
        target = repr(target_context.codegen().magic_tuple())
        key = hashlib.sha256((source_hash() + target).encode()).hexdigest()[:16]
        return cache_directory() / f'{self._name}-{key}.kernel'

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if it is not there (or cannot be read: then it is compiled anew)."""
        target_context.refresh()
        try:
            data = self.path(target_context).read_bytes()
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except (OSError, EOFError, pickle.PickleError, TypeError, ValueError, AttributeError):
            self.missed = True
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled kernel, in one piece: another process sees all of it or nothing."""
        path = self.path(data.target_context)
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, delete=False) as file:
                file.write(serialize.dumps(data._reduce()))
            Path(file.name).replace(path)
        except OSError as error:
            warnings.warn(
                f'compiled kernel {self._name} was not kept in {path.parent}: {error}', stacklevel=2
            )

    def enable(self) -> None:
        """Nothing to do: always on."""

    def disable(self) -> None:
        """Nothing to do: always on."""

    def flush(self) -> None:
        """Nothing to do: nothing is held back."""


@functools.cache
def source_hash() -> str:
    """Hash of everything a compiled kernel depends on, but for the processor."""
    digest = hashlib.sha256(f'{sys.version} {numba.__version__}'.encode())
    for source in [*sorted(Path(__file__).parent.glob('*.py')), Path(layout.__file__)]:
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


@functools.cache
def cache_directory() -> Path:
    """The first of the places named above that can be written; it is made if need be."""
    places = [os.environ.get('QUAD_DYNAMICS_CACHE_DIR')]
    if places[0] is None:
        user = os.environ.get('XDG_CACHE_HOME') or str(Path('~/.cache').expanduser())
        places = [str(Path(user) / 'quad_dynamics')]
    reason = ''
    for place in map(Path, filter(None, places)):
        try:
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
        except OSError as error:
            reason = f'{place}: {error.strerror}'
        else:
            return place
    # A fresh directory, not a fixed name: code is loaded from it, and others may write into /tmp.
    directory = Path(tempfile.mkdtemp(prefix='quad_dynamics-'))
    warnings.warn(
        f'compiled kernels cannot be kept ({reason}); they go to {directory}, '
        'and the next process compiles again. Set QUAD_DYNAMICS_CACHE_DIR to a writable directory.',
        stacklevel=2,
    )
    return directory
