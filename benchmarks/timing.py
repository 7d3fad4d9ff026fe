# SPDX-License-Identifier: Apache-2.0
"""Timing two functions against each other on a machine that is not quiet."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Calls:
    """A function and the arguments it is called with, one after the other.

    Attributes:
        function: called as it is, without a wrapper that would cost time.
        arguments: positional arguments of each call.
        states: how many states one call computes.
    """

    function: Callable[..., object]
    arguments: Sequence[tuple[Any, ...]]
    states: int = 1

    def time(self) -> float:
        """Time for one state [ns], of one pass through the arguments, without collecting garbage."""
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
    """Two functions that compute the same; the best time of each counts.

    Attributes:
        name: key of the result.
        ours: our calls.
        peer: the peer's calls.
        ours_ns: our best time for one state so far [ns].
        peer_ns: the peer's.
    """

    name: str
    ours: Calls
    peer: Calls
    ours_ns: float = float('inf')
    peer_ns: float = float('inf')

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.peer_ns / self.ours_ns

    def run_round(self) -> None:
        """Time both once."""
        self.ours_ns = min(self.ours_ns, self.ours.time())
        self.peer_ns = min(self.peer_ns, self.peer.time())


def run_contests(contests: Sequence[Contest], rounds: int, progress: Callable[[], object]) -> None:
    """Time all contests, interleaved: every round times every function once.

    Interleaving gives both sides the same share of a slow moment of the machine; the best round is the one
    that was disturbed least.

    Args:
        contests: what to time.
        rounds: how often.
        progress: called after each round.
    """
    for _ in range(rounds):
        for contest in contests:
            contest.run_round()
        progress()
