# SPDX-License-Identifier: Apache-2.0
"""Which feet are down: from the schedule of the gait, measured forces, and what the feet do.

| state | the schedule | the foot |
|---|---|---|
| stance | down | is down |
| swing | in the air | is in the air |
| early | in the air | came down before its time; it carries |
| late | down | has not come down yet; it goes on downwards |
| lost | down | has lost the ground; it goes downwards as well |
"""

from __future__ import annotations

STATES = ('stance', 'swing', 'early', 'late', 'lost')

_EARLY = 0.6  # of a swing, from which on a foot may come down
_TARE = (0.25, 0.55)  # of a swing, in which a foot's force sensor is known to read zero
_TARE_SHARE = 0.05  # by which one sample moves the zero of a sensor
_SAMPLES = 2  # in a row that must agree
_LOST = 0.3  # of the force that was asked for: a foot that carries less of it may have lost the ground
_BLOCKED = 0.2  # of the downward velocity that it should have: a foot that is slower has hit something
_SETTLE = 0.03  # after touch-down, in which a foot cannot be lost [s]


class LegContact:
    """The contact of one foot.

    Attributes:
        state: one of STATES.
        since: when that began [s].
    """

    def __init__(self, threshold: float) -> None:
        """Begin on the ground.

        Args:
            threshold: force from which on a foot is down [N].
        """
        self._threshold = threshold
        self._zero = 0.0
        self.reset(0.0)

    def reset(self, time: float) -> None:
        """Begin on the ground, at a time."""
        self.state, self.since = 'stance', time
        self._touches = self._misses = self._blocked = 0

    @property
    def is_down(self) -> bool:
        """Whether the foot can carry."""
        return self.state in ('stance', 'early')

    def measure(self, force: float, asked: float, progress: float) -> None:
        """Take a measured normal force [N].

        Args:
            force: of the ground on the foot.
            asked: what it was asked to carry.
            progress: of its swing.
        """
        if self.state == 'swing' and _TARE[0] < progress < _TARE[1] and abs(force) < 2.0 * self._threshold:
            self._zero += _TARE_SHARE * (force - self._zero)
        force -= self._zero
        self._touches = self._touches + 1 if force > self._threshold else 0
        missing = force < 0.5 * self._threshold and force < _LOST * asked
        self._misses = self._misses + 1 if missing and asked > 2.0 * self._threshold else 0

    def guess(self, wanted: float, velocity: float) -> None:
        """Take the foot's vertical velocity where nobody measures forces [m/s].

        Args:
            wanted: that it should have.
            velocity: that it has.
        """
        self._misses = 0
        hit = wanted < 0.0 and velocity > _BLOCKED * wanted
        self._touches = self._touches + 1 if hit else 0

    def update(self, time: float, scheduled: bool, progress: float, is_measured: bool) -> str:
        """Decide; returns the new state if it has changed, else ''.

        Args:
            time: now [s].
            scheduled: whether the foot should be down.
            progress: of its swing, 1 where it should be down.
            is_measured: whether forces are measured.
        """
        touches = self._touches >= _SAMPLES
        new = self.state
        if self.state == 'stance':
            if not scheduled:
                new = 'swing'
            elif self._misses >= _SAMPLES and time - self.since > _SETTLE:
                new = 'lost'
        elif self.state == 'swing':
            if scheduled:
                new = 'stance' if touches or not is_measured else 'late'
            elif progress > _EARLY and touches:
                new = 'early'
        elif self.state == 'early':
            if scheduled:
                new = 'stance'
        elif touches:
            new = 'stance'
        elif not scheduled:
            new = 'swing'
        if new == self.state:
            return ''
        self.state = new
        if new != 'stance' or self._misses:
            self.since = time
        self._touches = self._misses = 0
        return new
