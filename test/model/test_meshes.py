# SPDX-License-Identifier: Apache-2.0
"""Mesh files with numbers of megabytes are refused at once; in an array they would fill the memory."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from quad_dynamics.model.meshes import MeshError, read_vertices

LONG = b'1' * 2_000_000
CORNERS = b'v 0 0 1\nv 0 1 0\nv 1 0 0\n'
FACES = b'f 1 2 3\n' * 5000
WORD = 'is invalid: it has a number of 2000000 characters; expected at most 64'


@pytest.mark.parametrize(
    ('name', 'raw'),
    [
        ('a.obj', CORNERS * 5000 + b'v 0 0 ' + LONG + b'\n' + FACES),
        ('a.obj', CORNERS + b'f 1 2 ' + LONG + b'\n' + FACES),
        ('a.stl', b'solid a\n' + b'vertex 0 0 ' + LONG + b'\n' + b'vertex 0 0 1\n' * 5000),
    ],
    ids=['vertex', 'face', 'stl'],
)
def test_long_word(tmp_path: Path, name: str, raw: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(raw)
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(MeshError) as caught:
        read_vertices(path)
    seconds, most = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value) == WORD
    assert most < 100e6  # an array would take 10 GB
    assert seconds < 20.0  # 0.1 s


def test_long_word_that_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / 'a.obj'
    path.write_bytes(b'# ' + LONG + b'\n' + CORNERS + b'f 1/' + LONG + b' 2 3\n')
    assert read_vertices(path).shape == (3, 3)
