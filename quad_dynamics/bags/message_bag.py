# SPDX-License-Identifier: Apache-2.0
"""Bags of messages that are generated, not received. Needs no ROS."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rosbags.typesys.store import Typestore

from quad_dynamics.bags.mcap_storage import Entry
from quad_dynamics.bags.topics import Offer, Topic, known_types, qos_text
from quad_dynamics.bags.writers import BagWriter

# Numbers of policies as ROS has them.
_KEEP_LAST, _RELIABLE, _TRANSIENT_LOCAL, _VOLATILE, _AUTOMATIC = 1, 1, 1, 2, 1
_FOREVER = 2**63 - 1  # what ROS writes for an infinite time [ns]
_BATCH = 500  # messages


class MessageBag:
    """A bag that is written at once; a context manager that removes the bag after an error.

    Attributes:
        types: of ROS, to make messages of.
    """

    def __init__(
        self, path: str | os.PathLike[str], storage: str, custom: Mapping[str, str] | None = None
    ) -> None:
        """Make the folder.

        Args:
            path: of the bag, where nothing is yet.
            storage: 'mcap' or 'sqlite3'.
            custom: additional entries of metadata.yaml.

        Raises:
            ArgumentError: the path already exists, or the storage is unknown.
        """
        self._bag = BagWriter(Path(path), storage)
        self._custom = dict(custom or {})
        self._batch: list[Entry] = []
        self.types: Typestore = known_types()

    def __enter__(self) -> MessageBag:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the rest, and the end."""
        try:
            if kind is None:
                self._flush()
                self._bag.close(self._custom)
                return
            self._bag.abandon()
        except BaseException:
            shutil.rmtree(self._bag.folder, ignore_errors=True)
            raise
        shutil.rmtree(self._bag.folder, ignore_errors=True)  # half a bag is of no use

    def topic(
        self, name: str, kind: str, depth: int = 10, latched: bool = False
    ) -> Callable[[int, Any], None]:
        """Add a topic.

        Args:
            name: with its namespace.
            kind: such as 'sensor_msgs/msg/JointState'.
            depth: history depth of its publisher.
            latched: whether late subscribers would receive them.

        Returns:
            a function that writes a message, given its time [ns].
        """
        durability = _TRANSIENT_LOCAL if latched else _VOLATILE
        never = _FOREVER, _FOREVER, _AUTOMATIC, _FOREVER
        qos = qos_text([Offer(_KEEP_LAST, depth, _RELIABLE, durability, *never)])
        store = self.types
        definition, _ = store.generate_msgdef(kind, ros_version=2)
        number = self._bag.add_topic(Topic(name, kind, qos, definition, store.hash_rihs01(kind)))
        count = 0

        def write(stamp: int, message: Any) -> None:
            nonlocal count
            count += 1
            data = bytes(store.serialize_cdr(message, kind))
            self._batch.append((stamp, number, stamp, count, data))
            if len(self._batch) >= _BATCH:
                self._flush()

        return write

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        self._bag.write(batch)
