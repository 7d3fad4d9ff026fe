# SPDX-License-Identifier: Apache-2.0
"""Timing of two functions against each other on a machine under load."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Calls:
    """A function and the arguments of consecutive calls.

    Attributes:
        function: called directly, without the overhead of a wrapper.
        arguments: positional arguments of each call.
        states: number of states per call.
    """

    function: Callable[..., object]
    arguments: Sequence[tuple[Any, ...]]
    states: int = 1

    def time(self) -> float:
        """Time per state [ns] of one pass through the arguments, without garbage collection."""
        function = self.function
        gc.disable()
        try:
            start = time.perf_counter_ns()
            for arguments in self.arguments:
                function(*arguments)
            return (time.perf_counter_ns() - start) / (len(self.arguments) * self.states)
        finally:
            gc.enable()


@dataclass
class Contest:
    """Two functions that compute the same; their best times are compared.

    Attributes:
        name: key of the result.
        ours: our calls.
        peer: the peer's calls.
        ours_ns: our best time per state so far [ns].
        peer_ns: the peer's.
    """

    name: str
    ours: Calls
    peer: Calls
    ours_ns: float = float('inf')
    peer_ns: float = float('inf')

    @property
    def ratio(self) -> float:
        """Speed-up of ours over the peer."""
        return self.peer_ns / self.ours_ns

    def run_round(self) -> None:
        """Time both once."""
        self.ours_ns = min(self.ours_ns, self.ours.time())
        self.peer_ns = min(self.peer_ns, self.peer.time())


def run_contests(contests: Sequence[Contest], rounds: int, progress: Callable[[], object]) -> None:
    """Time all contests, interleaved: every round times every function once.

    Interleaving exposes both sides equally to a slow moment of the machine; the best round is the least
    disturbed one.

    Args:
        contests: what to time.
        rounds: number of rounds.
        progress: called after each round.
    """
    for _ in range(rounds):
        for contest in contests:
            contest.run_round()
        progress()
