# SPDX-License-Identifier: Apache-2.0
"""Bags that are still being written, or were never closed: real recorders' files, read meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import identification_bags as bags
import pytest

from quad_dynamics.bags.metadata import data_files
from quad_dynamics.bags.repair import repair
from quad_dynamics.bags.unfinished import is_being_written, is_closed
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import open_source


def age(folder: Path, seconds: float = 60.0) -> None:
    """Let all files be some time old."""
    then = time.time() - seconds
    for file in folder.rglob('*'):
        os.utime(file, (then, then))


def test_a_closed_bag(tmp_path: Path) -> None:
    for storage in ('mcap', 'sqlite3'):
        folder = bags.arm_bag(tmp_path / storage, bags.arm_truth(duration=1.0), storage=storage)
        files = data_files(folder)
        assert is_closed(folder, files)
        assert not is_being_written(folder, files)  # though it is new
        assert not is_being_written(files[0], files)
        with files[0].open('rb'):
            assert not is_being_written(folder, files)  # somebody reads it


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_file_that_somebody_writes(tmp_path: Path, storage: str) -> None:
    """Whatever the recorder, and however old its last message is."""
    folder = bags.arm_bag(tmp_path / 'bag', bags.arm_truth(duration=1.0), storage=storage)
    [file] = data_files(folder)
    age(folder)
    script = 'import sys; file = open(sys.argv[1], "ab"); print("open", flush=True); sys.stdin.read()'
    with subprocess.Popen(
        [sys.executable, '-c', script, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert is_being_written(folder, [file])
        with pytest.raises(ArgumentError, match='bag: is still being written; expected a recording that has'):
            open_source(folder, bags.robot('two_link_arm'))
        with pytest.raises(ArgumentError, match='is still being written'):
            open_source(file, bags.robot('two_link_arm'))
        assert writer.stdin is not None
        writer.stdin.close()
    assert not is_being_written(folder, [file])
    open_source(folder, bags.robot('two_link_arm'))


@pytest.fixture
def unclosed(tmp_path: Path) -> Path:
    """A bag whose metadata still say that it is recorded, as after kill -9 of `quad_dynamics record`."""
    folder = bags.arm_bag(tmp_path / 'bag', bags.arm_truth(duration=2.0), storage='sqlite3')
    description = folder / 'metadata.yaml'
    text = description.read_text()
    assert 'custom_data' in text
    lines = [line for line in text.splitlines() if 'custom_data' not in line]
    lines += ['  custom_data:', '    state: recording']
    description.write_text('\n'.join(lines) + '\n')
    return folder


@pytest.mark.slow
def test_a_recorder_on_another_machine(unclosed: Path) -> None:
    """Nobody here has the file open for long, but it was not closed, and it grows."""
    files = data_files(unclosed)
    assert not is_closed(unclosed, files)
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(0.2):
            with files[0].open('ab') as file:
                file.write(b'\0')

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert is_being_written(unclosed, files)
    finally:
        stop.set()
        writer.join()
    assert not is_being_written(unclosed, files)  # such as one that was just copied


def test_a_recorder_that_was_killed(unclosed: Path) -> None:
    """What there is can be used, and that the end may be missing is said; `repair` makes it whole."""
    age(unclosed)
    source = open_source(unclosed, bags.robot('two_link_arm'))
    assert any('was not closed' in note for note in source.notes)
    repair(unclosed)
    source = open_source(unclosed, bags.robot('two_link_arm'))
    assert not any('was not closed' in note for note in source.notes)
