# SPDX-License-Identifier: Apache-2.0
"""Watches the stream of joint states: which of them count, and whether there is silence."""

from __future__ import annotations

from quad_dynamics.errors import ArgumentError

_LONGEST_GAP = 0.25  # by which the stamps of two messages may differ [s]
# What fast simulated time may leap over in a hiccup shorter than the timeout [s].
_LONGEST_LEAP = 30.0


class Watch:
    """Knows when the last good message came.

    A stamp that is older than the last, or far ahead of it, is of a second publisher or of a message that
    strayed. Only after a time without better ones it is a new beginning. But the second in a row that is
    ahead in the same way does not stray: time has gone on without us, as it does when a simulation is fast.
    For stamps that are older this would not do, for then two publishers could take turns.

    Attributes:
        timeout: silence after which a new beginning is possible, and after which input is stale [s].
        restarts: how often time began anew.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.restarts = 0
        self._stamp = -1
        self._stray: int | None = None
        self._heard: float | None = None

    def accept(self, stamp_ns: int, now: float) -> bool:
        """Take a message; return whether time has begun anew with it.

        Args:
            stamp_ns: its stamp [ns].
            now: time of the wall clock [s].

        Raises:
            ArgumentError: it does not count.
        """
        step = (stamp_ns - self._stamp) * 1e-9
        follows = 0.0 <= step <= _LONGEST_GAP
        stray, self._stray = self._stray, None
        went_on = stray is not None and 0.0 <= (stamp_ns - stray) * 1e-9 <= _LONGEST_GAP
        if not follows and not went_on and self._heard is not None and now - self._heard <= self.timeout:
            self._stray = stamp_ns if 0.0 < step <= _LONGEST_LEAP else None
            raise ArgumentError(
                f'joint_states has the stamp {stamp_ns * 1e-9:.3f} s, the one before '
                f'{self._stamp * 1e-9:.3f} s; expected a little later'
            )
        self._stamp, self._heard = stamp_ns, now
        self.restarts += not follows
        return not follows

    def silence(self, now: float) -> float:
        """For how long there were no good messages, 0 if that is not too long [s]."""
        if self._heard is None:
            return float('inf')
        age = now - self._heard
        return age if age > self.timeout else 0.0
