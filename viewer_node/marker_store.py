# SPDX-License-Identifier: Apache-2.0
"""The current markers: those that were added and neither deleted nor expired."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from viewer_node.markers import Marker

ADD, DELETE, DELETE_ALL = 0, 2, 3
MOST_MARKERS = 10_000


class MarkerStore:
    """Markers of one topic by namespace and id.

    Attributes:
        changed: namespaces that changed since this was emptied.
    """

    def __init__(self, frames: Collection[str]) -> None:
        """Start empty.

        Args:
            frames: accepted frames, all taken as the world frame.
        """
        self._frames = frozenset(frames)
        self._markers: dict[str, dict[int, Marker]] = {}
        self._ends: dict[tuple[str, int], float] = {}
        self.changed: set[str] = set()

    @property
    def namespaces(self) -> list[str]:
        """All namespaces that ever had markers, in alphabetical order."""
        return sorted(self._markers)

    def markers(self, namespace: str) -> list[Marker]:
        """The markers of a namespace, in the order in which they came."""
        return list(self._markers.get(namespace, {}).values())

    def apply(self, markers: Iterable[Marker], now: float) -> list[str]:
        """Take the markers of a message.

        Args:
            markers: to add or delete.
            now: arrival time [s].

        Returns:
            a message for each rejected marker.
        """
        problems = []
        for marker in markers:
            if marker.action == DELETE_ALL:
                self._clear()
            elif marker.action == DELETE:
                self._delete(marker.ns, marker.id)
            elif marker.action != ADD:
                problems.append(f'{marker} has action {marker.action}; expected 0, 2 or 3')
            elif marker.frame.rpartition('/')[2] not in self._frames:  # of a robot with a prefix, too
                problems.append(
                    f"{marker} is in frame '{marker.frame}'; "
                    f'expected one of {", ".join(sorted(filter(None, self._frames)))}'
                )
            elif self._count() >= MOST_MARKERS and marker.id not in self._markers.get(marker.ns, {}):
                problems.append(f'{marker} exceeds the limit of {MOST_MARKERS} markers')
            else:
                self._add(marker, now)
        return problems

    def expire(self, now: float) -> None:
        """Delete expired markers."""
        for key in [key for key, end in self._ends.items() if end <= now]:
            self._delete(*key)

    def _add(self, marker: Marker, now: float) -> None:
        self._markers.setdefault(marker.ns, {})[marker.id] = marker
        self.changed.add(marker.ns)
        if marker.lifetime > 0.0:
            self._ends[marker.ns, marker.id] = now + marker.lifetime
        else:
            self._ends.pop((marker.ns, marker.id), None)

    def _delete(self, namespace: str, number: int) -> None:
        self._ends.pop((namespace, number), None)
        if self._markers.get(namespace, {}).pop(number, None) is not None:
            self.changed.add(namespace)

    def _clear(self) -> None:
        self._ends.clear()
        for namespace, markers in self._markers.items():
            if markers:
                markers.clear()
                self.changed.add(namespace)

    def _count(self) -> int:
        return sum(map(len, self._markers.values()))
