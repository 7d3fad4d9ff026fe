# SPDX-License-Identifier: Apache-2.0
"""Watches the stream of joint states for stamps out of order and for silence."""

from __future__ import annotations

from quad_dynamics.errors import ArgumentError

_LONGEST_GAP = 0.25  # by which the stamps of two messages may differ [s]
# Jump of fast simulated time in a hiccup shorter than the timeout [s].
_LONGEST_LEAP = 30.0


class Watch:
    """Knows when the last valid message arrived.

    A stamp that is older than the last one, or far ahead of it, comes from a second publisher or a stray
    message. It is taken as a restart of time only after `timeout` without valid messages. The second stamp in
    a row that is far ahead is accepted at once: time has moved on, as it does in a fast simulation. This
    exception does not hold for older stamps, or two publishers could take turns.

    Attributes:
        timeout: time without messages after which input is stale, and a restart of time is possible [s].
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._stamp = -1
        self._stray: int | None = None
        self._heard: float | None = None

    def accept(self, stamp_ns: int, now: float) -> bool:
        """Take a message; return whether time was restarted with it.

        Args:
            stamp_ns: its stamp [ns].
            now: time of the wall clock [s].

        Raises:
            ArgumentError: the stamp is out of order.
        """
        step = (stamp_ns - self._stamp) * 1e-9
        follows = 0.0 <= step <= _LONGEST_GAP
        stray, self._stray = self._stray, None
        went_on = stray is not None and 0.0 <= (stamp_ns - stray) * 1e-9 <= _LONGEST_GAP
        if not follows and not went_on and self._heard is not None and now - self._heard <= self.timeout:
            self._stray = stamp_ns if 0.0 < step <= _LONGEST_LEAP else None
            raise ArgumentError(
                f'joint_states has stamp {stamp_ns * 1e-9:.3f} s, the previous one '
                f'{self._stamp * 1e-9:.3f} s; expected a slightly later stamp'
            )
        self._stamp, self._heard = stamp_ns, now
        return not follows

    def silence(self, now: float) -> float:
        """Time since the last valid message, 0 if within `timeout` [s]."""
        if self._heard is None:
            return float('inf')
        age = now - self._heard
        return age if age > self.timeout else 0.0
