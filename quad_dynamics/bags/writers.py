# SPDX-License-Identifier: Apache-2.0
"""Writes bags while messages come in. Needs no ROS.

A bag is good at any time: metadata.yaml is there from the start, and the data files lack only their end when
the process is killed. `repair` adds it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from quad_dynamics.bags.mcap_storage import Entry, McapStorage
from quad_dynamics.bags.metadata import (
    COMPLETE,
    RECORDING,
    STATE,
    SUFFIXES,
    Contents,
    metadata,
    write_metadata,
)
from quad_dynamics.bags.sqlite_storage import SqliteStorage
from quad_dynamics.bags.topics import Topic
from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import nearest

# How long messages are gathered for one transaction of SQLite [s].
_GATHERING = {'mcap': 0.0, 'sqlite3': 0.005}


class Storage(Protocol):
    """A data file that is being written."""

    path: Path

    def add_topic(self, topic: Topic) -> int:
        """Make a topic known; return its number."""

    def write(self, batch: Sequence[Entry]) -> None:
        """Write messages; when it returns, the death of the process cannot take them away."""

    def contents(self) -> Contents:
        """What has been written."""

    def close(self) -> None:
        """Write the end of the file."""


STORAGES: Mapping[str, Callable[[Path], Storage]] = {'mcap': McapStorage, 'sqlite3': SqliteStorage}


def check_new(folder: Path, storage: str) -> None:
    """Refuse a bag that cannot be made.

    Raises:
        ArgumentError: there is something already, or there is no such storage.
    """
    if storage not in STORAGES:
        known = nearest(storage, STORAGES)
        raise ArgumentError(f'storage is {storage!r}{known}; expected mcap or sqlite3')
    if os.path.lexists(folder):
        raise ArgumentError(f'{folder} already exists; expected the path of a new bag')


class BagWriter:
    """A bag that is being written: a folder with a data file and metadata.yaml.

    Attributes:
        folder: of the bag.
        custom: what metadata.yaml says besides.
    """

    def __init__(self, folder: Path, storage: str) -> None:
        """Make the folder.

        Args:
            folder: where nothing is yet.
            storage: 'mcap' or 'sqlite3'.

        Raises:
            ArgumentError: there is something already, or there is no such storage.
        """
        check_new(folder, storage)
        folder.mkdir(parents=True)
        self.folder, self.custom = folder, {STATE: RECORDING}
        self._storage_name = storage
        self.gathering = _GATHERING[storage]
        self._storage = STORAGES[storage](folder / f'{folder.name}_0{SUFFIXES[storage]}')
        self._described = -1
        self.describe()

    def add_topic(self, topic: Topic) -> int:
        """Make a topic known; return its number, for `write`."""
        return self._storage.add_topic(topic)

    def write(self, batch: Sequence[Entry]) -> None:
        """Write messages, in the order of their times."""
        self._storage.write(batch)

    def contents(self) -> Contents:
        """What has been written."""
        return self._storage.contents()

    def describe(self) -> None:
        """Write metadata.yaml, if there are new topics since the last time."""
        contents = self._storage.contents()
        if len(contents.topics) == self._described:
            return
        self._described = len(contents.topics)
        # How many messages there are is known at the end only.
        unknown = Contents([(topic, 0) for topic, _ in contents.topics])
        self._write_metadata(unknown)

    def close(self, custom: Mapping[str, str]) -> None:
        """Write the end of the data file, and what the bag holds.

        Args:
            custom: what metadata.yaml says besides.
        """
        self._storage.close()
        self.custom = {STATE: COMPLETE, **custom}
        self._write_metadata(self._storage.contents())

    def abandon(self) -> None:
        """Close the data file; the bag is of no use any more."""
        with contextlib.suppress(OSError):
            self._storage.close()

    def _write_metadata(self, contents: Contents) -> None:
        files = {self._storage.path.name: contents}
        write_metadata(self.folder, metadata(self._storage_name, files, self.custom))


class WriterThread:
    """Writes in a thread of its own, so that a slow disk does not keep anybody from receiving.

    Attributes:
        error: why nothing can be written any more; None if all is well.
        dropped: how many messages were not written because of it.
    """

    def __init__(self, bag: BagWriter) -> None:
        """Start.

        Args:
            bag: no one else may write to it until `finish`.
        """
        self._bag = bag
        self._queue: queue.SimpleQueue[Topic | list[Entry] | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.dropped = self._given = 0
        self._thread = threading.Thread(target=self._run, name='bag writer', daemon=True)
        self._thread.start()

    def put(self, what: Topic | list[Entry]) -> None:
        """Hand over a new topic, or messages of topics that were handed over before."""
        self._queue.put(what)

    def finish(self) -> None:
        """Write what was handed over, and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            items = [self._queue.get()]
            if self._bag.gathering:
                time.sleep(self._bag.gathering)
            with contextlib.suppress(queue.Empty):
                while True:
                    items.append(self._queue.get_nowait())
            going = None not in items
            self._given += sum(len(item) for item in items if isinstance(item, list))
            if self.error is None:
                try:
                    self._write(items)
                    continue
                except Exception as error:  # if the thread died of it, the queue would grow
                    self.error = error
            self.dropped = self._given - self._bag.contents().count

    def _write(self, items: Sequence[Topic | list[Entry] | None]) -> None:
        batch: list[Entry] = []
        for item in items:
            if isinstance(item, Topic):
                # A topic stands before its first message, wherever batches begin.
                self._bag.write(batch)
                batch = []
                self._bag.add_topic(item)
            elif item:
                batch += item
        self._bag.write(batch)
        self._bag.describe()
