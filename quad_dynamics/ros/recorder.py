# SPDX-License-Identifier: Apache-2.0
"""Records topics into a bag.

One thread receives serialized messages, without converting them to Python objects; another writes. Lost
messages are detected by the sequence numbers of the publishers.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node

from quad_dynamics.bags.cdr_padding import Padding
from quad_dynamics.bags.mcap_storage import Entry
from quad_dynamics.bags.stamp_order import StampedTopic, StampOrder
from quad_dynamics.bags.topics import Topic, define, qos_text, stamp_offset
from quad_dynamics.bags.writers import BagWriter, WriterThread
from quad_dynamics.ros.graph import RECORDER
from quad_dynamics.ros.priority import Priority
from quad_dynamics.ros.recorded_topics import Source, notes, summary
from quad_dynamics.ros.subscriptions import (
    Selection,
    fields_of,
    is_latched,
    make_raw_mailbox,
    matching_qos,
    message_class,
    offer,
    other_publishers,
    subscribe,
    topics_of,
)

# Messages are collected for this time before they are taken: less CPU time per message, little to lose [s].
_NAP = 0.002
_LOOK_EVERY = 0.1  # for new topics [s]
_CHECK_EVERY = 0.5  # for new publishers of known topics [s]
# Ready when no new topic has appeared for this time [s]; the first topic, and those that were named, are
# awaited at most this long [s].
_SETTLED, _PATIENCE = 0.6, 2.0
# A clock that jumps back by more than this was set [ns].
_CLOCK_WAS_SET = 500_000_000
_CLOCK = '/clock'
_DIAGNOSTICS = '/diagnostics'
# A lock-step simulation starts when somebody subscribes to its states. With --sim-time we subscribe to them
# last, when commands have a publisher: at most this long after the start [s].
_GATE, _COMMANDS = '/joint_states', '/joint_torques'
_LONGEST_HOLD = 60.0


@dataclass(frozen=True)
class RecordOptions:
    """What to record, and how.

    Attributes:
        selection: of topics.
        duration: of the recording [s]; None: until it is stopped.
        sim_time: take times and order from the stamps of the messages.
        window: with sim_time, how long messages are buffered for sorting [s of simulated time].
    """

    selection: Selection = field(default_factory=Selection)
    duration: float | None = None
    sim_time: bool = False
    window: float = 1.0


class Recorder:
    """A node that records; run by `run_node`.

    Attributes:
        failed: whether something could not be written; it has been reported.
    """

    def __init__(self, bag: BagWriter, options: RecordOptions) -> None:
        """Make the node.

        Args:
            bag: to write into.
            options: what, and how.
        """
        self._bag, self._options = bag, options
        self.node = Node(RECORDER, start_parameter_services=False, enable_rosout=False)
        self._box = make_raw_mailbox(self.node)
        self._thread = WriterThread(bag)
        self._sources: dict[str, Source] = {}
        self._skipped: set[str] = set()
        self._known_to_bag = 0
        self._batch: list[tuple[int, int, int, int, bytes]] = []
        self._last = self._shift = 0
        self._order = None
        if options.sim_time:
            duration = None if options.duration is None else round(options.duration * 1e9)
            self._order = StampOrder(round(options.window * 1e9), duration)
        self._started = self._changed = time.monotonic()
        self._ready: float | None = None
        self._next_look = self._next_check = 0.0
        self._held: list[tuple[str, str]] = []
        self._told = False
        self.failed = False

    def spin(self, stop: Any) -> None:
        """Record until `stop()` is true, the duration has passed, or writing fails."""
        # Unwritten messages are lost if we are killed. In lock-step, all nodes wait for each other.
        priority = Priority(not self._options.sim_time)
        while not stop() and not self._is_over() and self._thread.error is None:
            self._box.wait(0.02)
            self._hand_over()
            now = time.monotonic()
            if now >= self._next_look:
                self._next_look = now + _LOOK_EVERY
                priority.review()
                self._look_for_topics(now)
            if self._ready is None:
                self._announce(now)
            time.sleep(_NAP)
        priority.want(False)

    def close(self) -> None:
        """Take pending messages, write everything, and print a summary."""
        for _ in range(5):  # what was on its way
            if not self._box.wait(0.02):
                break
            self._hand_over()
        self._hand_over(everything=True)
        self._thread.finish()
        self.node.destroy_node()
        self._finish()

    # ---------------------------------------------------------------- topics

    def _look_for_topics(self, now: float) -> None:
        self._held = []
        for name, kind in topics_of(self.node):
            wanted = self._options.selection.wants(name) or (self._order is not None and name == _CLOCK)
            if name in self._sources or name in self._skipped or not wanted:
                continue
            if self._order is not None and name.endswith(_GATE) and other_publishers(self.node, name):
                self._held.append((name, kind))
            else:
                self._add(name, kind, now)
        self._open_gates(now)
        if now >= self._next_check:
            self._next_check = now + _CHECK_EVERY
            for name, source in self._sources.items():
                self._check(name, source)

    def _open_gates(self, now: float) -> None:
        """Subscribe last to the topics that start a lock-step simulation: it must not start without us."""
        if now - self._changed < _SETTLED:
            return
        for name, kind in self._held:
            commands = name.removesuffix(_GATE) + _COMMANDS
            awaited = self.node.count_subscribers(commands) and not self.node.count_publishers(commands)
            if awaited and now - self._started < _LONGEST_HOLD:
                if now - self._started > _PATIENCE and not self._told:
                    self._told = True
                    _tell(f'{name} will be recorded as soon as {commands} has a publisher')
                continue
            self._add(name, kind, now)
            self._held = [one for one in self._held if one[0] != name]

    def _add(self, name: str, kind: str, now: float) -> None:
        publishers = other_publishers(self.node, name)
        if not publishers:
            return
        found = message_class(kind)
        if found is None:
            self._skipped.add(name)
            _tell(f'{name} is not recorded: its type {kind} is not installed')
            return
        definition, digest = define(kind, fields_of)
        topic = Topic(name, kind, qos_text(map(offer, publishers)), definition, digest)
        source = Source(topic, found, publishers)
        if self._order is not None:
            # Diagnostics follow the wall clock, also in their stamps until a node knows simulated time.
            offset = None if name == _DIAGNOSTICS else stamp_offset(kind, fields_of)
            latched = is_latched(publishers)
            source.ordered = StampedTopic(topic, offset, latched, len(publishers) > 1, name == _CLOCK)
            source.ordered.unwanted = not self._options.selection.wants(name)
        else:
            self._make_known(source)
        self._sources[name] = source
        self._subscribe(source)
        self._changed = now
        if self._ready is not None and self._options.selection.wants(name):
            print(f'also recording {name} ({kind})', flush=True)

    def _make_known(self, source: Source | StampedTopic) -> None:
        """Register a topic with the writer, which numbers topics in the order of registration."""
        self._known_to_bag += 1
        source.number = self._known_to_bag
        self._thread.put(source.topic)

    def _subscribe(self, source: Source) -> None:
        receive = self._receiver(source) if self._order is None else self._ordered_receiver(source)
        source.subscription = subscribe(self.node, source.topic.name, source.kind, receive, source.qos)

    def _check(self, name: str, source: Source) -> None:
        """Adapt to changed publishers: one with a lower quality of service would not be received."""
        publishers = other_publishers(self.node, name)
        source.know(publishers)
        if publishers and matching_qos(publishers) != source.qos:
            source.qos = matching_qos(publishers)
            self.node.destroy_subscription(source.subscription)
            self._subscribe(source)

    def _announce(self, now: float) -> None:
        missing = self._options.selection.missing(self._sources)
        waiting = missing or not self._sources
        if self._held or now - self._changed < _SETTLED or (waiting and now - self._started < _PATIENCE):
            return
        self._ready = now
        count = sum(map(self._options.selection.wants, self._sources))
        print(f'recording {count} topics into {self._bag.folder}', flush=True)
        if missing:
            _tell(f'waiting for {", ".join(missing)}')

    # ---------------------------------------------------------------- messages

    def _receiver(self, source: Source) -> Any:
        """The callback of a topic."""
        see, number = source.numbers.see, source.number

        def receive(raw: bytes, info: dict[str, Any]) -> None:
            sequence = info.get('publication_sequence_number')
            see(sequence)
            received = info['received_timestamp'] or time.time_ns()
            sent = info['source_timestamp'] or received
            self._batch.append((received, number, sent, sequence or 0, raw))

        return receive

    def _ordered_receiver(self, source: Source) -> Any:
        see, order, ordered = source.numbers.see, self._order, source.ordered
        clean = Padding(source.topic.type, fields_of).clean
        assert order is not None
        assert ordered is not None

        def receive(raw: bytes, info: dict[str, Any]) -> None:
            see(info.get('publication_sequence_number'))
            order.add(ordered, clean(raw))

        return receive

    def _hand_over(self, everything: bool = False) -> None:
        """Pass received messages to the writer."""
        if self._order is not None:
            batch = self._in_order(self._order, everything)
        else:
            batch, self._batch = self._batch, []
            batch.sort()
            batch = [self._timed(entry) for entry in batch]
        if batch:
            self._thread.put(batch)

    def _timed(self, entry: Entry) -> Entry:
        """With times that never decrease."""
        log = entry[0] + self._shift
        if log < self._last - _CLOCK_WAS_SET:
            self._shift += self._last - log
        self._last = log = max(entry[0] + self._shift, self._last)
        return (log, *entry[1:])

    def _in_order(self, order: StampOrder, everything: bool) -> list[Entry]:
        batch: list[Entry] = []
        for stamp, ordered, raw in order.release(everything):
            if ordered.unwanted:
                continue
            if not ordered.number:
                # A topic is added to the bag with its first message, not when it was discovered.
                self._thread.put(batch)
                batch = []
                self._make_known(ordered)
            ordered.written += 1
            batch.append((stamp, ordered.number, stamp, ordered.written, raw))
        return batch

    def _is_over(self) -> bool:
        if self._order is not None:
            return self._order.is_over
        end = self._options.duration
        return end is not None and self._ready is not None and time.monotonic() - self._ready >= end

    # ---------------------------------------------------------------- the end

    def _finish(self) -> None:
        lost = {name: one.numbers.lost for name, one in sorted(self._sources.items()) if one.numbers.lost}
        late = 0 if self._order is None else self._order.late
        try:
            self._bag.close(notes(self._options.sim_time, lost, late))
        except Exception as error:  # after an error anything may be wrong with the bag
            self._thread.error = self._thread.error or error
            _tell(f'the bag is unfinished; free disk space and run: quad_dynamics repair {self._bag.folder}')
        if self._thread.error is not None:
            self.failed = True
            _tell(f'error: {_reason(self._thread.error, self._bag)}')
        print(summary(self._bag.contents(), self._bag.folder, lost, self._thread.dropped), flush=True)
        if late:
            _tell(f'{late} messages arrived too late to be sorted; use a longer --window')


def _reason(error: Exception, bag: BagWriter) -> str:
    """The reason why a bag could not be written."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f'{error.filename}: {error.strerror}'
    return f'{bag.folder}: {type(error).__name__}: {error}'


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
