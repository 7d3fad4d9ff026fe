# SPDX-License-Identifier: Apache-2.0
"""Contact states of the feet, from the schedule of the gait, measured forces, and the motion of the feet.

| state | schedule | foot |
|---|---|---|
| stance | stance | in contact |
| swing | swing | in the air |
| early | swing | touched down before its time; it carries load |
| late | stance | has not touched down yet; it keeps moving down |
| lost | stance | has lost contact; it also moves down |
"""

from __future__ import annotations

STATES = ('stance', 'swing', 'early', 'late', 'lost')

_EARLY = 0.6  # progress of a swing from which on an early touch-down is possible
_TARE = (0.25, 0.55)  # progress of a swing in which the force on a foot is known to be zero
_TARE_SHARE = 0.05  # weight of one sample in the zero offset of a sensor
_SAMPLES = 2  # consecutive samples that must agree
_LOST = 0.3  # of the commanded force: a foot that carries less may have lost contact
_BLOCKED = 0.2  # of the desired downward velocity: a foot that is slower has hit something
_SETTLE = 0.03  # time since `LegContact.since` in which a foot cannot be lost [s]


class LegContact:
    """The contact of one foot.

    Attributes:
        state: one of STATES.
        since: start time of the state; a stance keeps that of the state before [s].
    """

    def __init__(self, threshold: float) -> None:
        """Start in contact.

        Args:
            threshold: force from which on a foot is in contact [N].
        """
        self._threshold = threshold
        self._zero = 0.0
        self.reset(0.0)

    def reset(self, time: float) -> None:
        """Restart in contact, at a time [s]."""
        self.state, self.since = 'stance', time
        self._touches = self._misses = 0

    @property
    def is_down(self) -> bool:
        """Whether the foot can carry load."""
        return self.state in ('stance', 'early')

    def measure(self, force: float, asked: float, progress: float) -> None:
        """Take a measured normal force [N].

        Args:
            force: of the ground on the foot.
            asked: commanded force.
            progress: of its swing.
        """
        if self.state == 'swing' and _TARE[0] < progress < _TARE[1] and abs(force) < 2.0 * self._threshold:
            self._zero += _TARE_SHARE * (force - self._zero)
        force -= self._zero
        self._touches = self._touches + 1 if force > self._threshold else 0
        missing = force < 0.5 * self._threshold and force < _LOST * asked
        self._misses = self._misses + 1 if missing and asked > 2.0 * self._threshold else 0

    def guess(self, wanted: float, velocity: float) -> None:
        """Take the vertical velocity of the foot if forces are not measured [m/s].

        Args:
            wanted: desired velocity.
            velocity: measured velocity.
        """
        self._misses = 0
        hit = wanted < 0.0 and velocity > _BLOCKED * wanted
        self._touches = self._touches + 1 if hit else 0

    def update(self, time: float, scheduled: bool, progress: float, is_measured: bool) -> str:
        """Update the state; returns the new state if it has changed, else ''.

        Args:
            time: current time [s].
            scheduled: whether the foot should be in contact.
            progress: of its swing, 1 if it should be in contact.
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
