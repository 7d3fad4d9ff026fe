# SPDX-License-Identifier: Apache-2.0
"""Gaits as data, and the clock that says which feet should be down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Gait:
    """The order in which feet come down.

    Attributes:
        period: of a stride, in sqrt(l / g) with the length l of the legs.
        duty: part of the stride in which a foot is down.
        touchdown: when the front left, front right, rear left and rear right foot come down, in strides.
        sway: how far the body goes towards the middle of the feet that carry next, 0 to 1.
    """

    period: float
    duty: float
    touchdown: tuple[float, float, float, float]
    sway: float = 0.0


GAITS = {
    'stand': Gait(2.3, 1.0, (0.0, 0.0, 0.0, 0.0)),
    'trot': Gait(2.3, 0.5, (0.0, 0.5, 0.5, 0.0)),
    'crawl': Gait(6.0, 0.8, (0.25, 0.75, 0.0, 0.5), sway=1.0),
}


class GaitClock:
    """Where each leg is in its stride.

    Attributes:
        gait: the gait.
        unit: sqrt(l / g) of the robot [s].
        stride: time in strides, from 0 to 1.
        rate: of the clock; above 1 strides are shorter.
    """

    def __init__(self, gait: Gait, unit: float, order: Sequence[int]) -> None:
        """Begin a stride.

        Args:
            gait: the gait.
            unit: sqrt(l / g) of the robot [s].
            order: index into `Gait.touchdown` of each leg.
        """
        self.gait, self.unit, self._order = gait, unit, tuple(order)
        self.stride, self.rate = 0.0, 1.0

    @property
    def period(self) -> float:
        """Of a stride [s]."""
        return self.gait.period * self.unit / self.rate

    @property
    def stance_time(self) -> float:
        """Time for which a foot is down [s]."""
        return self.gait.duty * self.period

    @property
    def swing_time(self) -> float:
        """Time for which a foot is in the air [s]."""
        return (1.0 - self.gait.duty) * self.period

    def advance(self, dt: float) -> None:
        """Let time pass [s]."""
        self.stride = (self.stride + dt / self.period) % 1.0

    def phase(self, leg: int, ahead: float = 0.0) -> float:
        """Where a leg is in its stride, or will be: 0 at touch-down, `gait.duty` at lift-off.

        Args:
            leg: its number.
            ahead: in strides.
        """
        return (self.stride + ahead - self.gait.touchdown[self._order[leg]]) % 1.0

    def is_stance(self, leg: int, ahead: float = 0.0) -> bool:
        """Whether a foot should be down."""
        return self.phase(leg, ahead) < self.gait.duty

    def swing_progress(self, leg: int) -> float:
        """From 0 at lift-off to 1 at touch-down; 1 while the foot should be down."""
        phase, duty = self.phase(leg), self.gait.duty
        return (phase - duty) / (1.0 - duty) if phase >= duty else 1.0
