# SPDX-License-Identifier: Apache-2.0
"""From one gait to another while the robot moves: when each leg joins the pattern of the new gait.

No leg is pulled out of its stride. One that is in the air comes down as planned; one that is down stays down
until the new pattern lifts it, so that only its stance is longer or shorter once. Where that would take too
long it is lifted earlier, and swings for longer once. What is left to choose is where in its stride the new
pattern begins, and which legs let its first lift-off pass. All choices that matter are tried, and the best is
taken (`join`):

* before the last leg has joined, a lift-off leaves as many feet down as the new gait has outside its flight,
* stances last from half the shorter to 2.25 times the longer stance of both gaits, and so do swings; were it
  less, feet of a pace could not stay down for as long as the first step of a trot needs,
* among these, stances within the range of both gaits, and then early lift-offs are better.

Times are in seconds of the clock at rate 1, from the change on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats

# Factors of the shorter and the longer stance of both gaits between which a stance lasts.
SHORTEST, LONGEST = 0.5, 2.25
_GRID = 12  # beginnings of the pattern that are tried beside those at which something happens
_ABOUT = 1e-6  # events that are nearer to each other happen together, in strides
_LEAD = 0.05  # before a leg is lifted that would have stayed down, in strides
_MARGIN = 1e-3  # by which stances keep off their lower bound, in strides
# Costs of a foot too few, of a stance or swing beyond its bounds, by the logarithm, and of one beyond those
# of both gaits, by its square; a mean delay of one stride costs 1.
_SUPPORT, _BOUNDS, _RANGE = 1e4, 1e3, 10.0


@dataclass(frozen=True)
class LegInStride:
    """Where a leg is when the gait changes.

    Attributes:
        is_down: whether its foot is down.
        since: time since it was lifted or came down; inf when it stood [s].
        left: until it comes down, or is lifted; inf when it stood [s].
    """

    is_down: bool
    since: float
    left: float


@dataclass(frozen=True)
class Pattern:
    """A gait in seconds.

    Attributes:
        period: of a stride [s].
        stance: time for which a foot is down [s].
        touchdown: when each leg comes down, in strides.
    """

    period: float
    stance: float
    touchdown: tuple[float, ...]

    @property
    def swing(self) -> float:
        """Time for which a foot is in the air [s]."""
        return self.period - self.stance

    def fewest_down(self) -> int:
        """Smallest number of feet that are down outside a flight."""
        duty, found = self.stance / self.period, []
        for touchdown in self.touchdown:  # the number changes at touch-downs and lift-offs only
            for at in (touchdown + _ABOUT, touchdown + duty + _ABOUT):
                found.append(sum((at - other) % 1.0 < duty for other in self.touchdown))
        return min(count for count in found if count)


@dataclass(frozen=True)
class Joining:
    """How legs join a pattern.

    Attributes:
        stride: of the new pattern at the change, from 0 to 1.
        lifts: (legs,) when they lift for the first time [s].
        lands: (legs,) when they come down after that, and are in the pattern [s].
    """

    stride: float
    lifts: tuple[float, ...]
    lands: tuple[float, ...]


def join(legs: Sequence[LegInStride], pattern: Pattern, stance: float, swing: float) -> Joining:
    """When the new pattern begins, and when each leg lifts in it for the first time.

    Args:
        legs: where they are.
        pattern: of the new gait, which lifts feet.
        stance: time for which feet are down in the old gait; inf if it never lifts them [s].
        swing: time for which they are in the air in the old gait [s].
    """
    period, count = pattern.period, len(legs)
    steps = math.isfinite(stance)
    if not steps:
        stance = pattern.stance
    low, high = min(stance, pattern.stance), max(stance, pattern.stance)
    down_at = np.array([0.0 if leg.is_down else leg.left for leg in legs])
    # of its stance, when a foot is down or comes down; one that stood may be lifted at once
    age = np.array([(low if math.isinf(leg.since) else leg.since) if leg.is_down else 0.0 for leg in legs])
    soon = np.array([min(_LEAD * period, leg.left) if leg.is_down else 0.0 for leg in legs])
    earliest = down_at + np.maximum(SHORTEST * low + _MARGIN * period - age, soon)
    base = (np.array(pattern.touchdown) * period + pattern.stance) % period  # lift-off, for a shift of 0
    shifts = _shifts(base, earliest, down_at, down_at + np.maximum(low - age, 0.0), period)
    first = (shifts[:, None] + base - earliest) % period
    first = earliest + np.where(first > (1.0 - _ABOUT) * period, 0.0, first)
    passed = np.array(list(itertools.product((0.0, period), repeat=count)))
    lands = (first[:, None, :] + passed).reshape(-1, count) + pattern.swing  # all candidates
    # a leg that has been down for long, because the gait has just changed before, may wait once more
    latest = down_at + np.maximum(LONGEST * high * (1.0 + _ABOUT) - age, high if steps else math.inf)
    lifts = np.maximum(np.minimum(lands - pattern.swing, latest), earliest)
    down_for, up_for = age + lifts - down_at, lands - lifts
    cost = lands.mean(axis=1) / period + _SUPPORT * _shortage(lifts, lands, down_at, pattern)
    for lasts, least, most in (
        (down_for, low, high if steps else math.inf),
        (up_for, pattern.swing, max(swing, pattern.swing)),
    ):
        cost += _RANGE * (_beyond(lasts, least, most) ** 2).sum(axis=1)
        cost += _BOUNDS * _beyond(lasts, SHORTEST * least, LONGEST * most * (1.0 + 2.0 * _ABOUT)).sum(axis=1)
    best = int(np.argmin(np.round(cost, 9)))
    stride = -float(shifts[best // len(passed)]) / period
    return Joining(stride % 1.0, tuple(lifts[best].tolist()), tuple(lands[best].tolist()))


def _beyond(values: Floats, low: float, high: float) -> Floats:
    """By how much values are outside a range, as logarithms."""
    return np.asarray(np.log(np.maximum(values / high, 1.0) * np.maximum(low / values, 1.0)))


def _shifts(base: Floats, earliest: Floats, down_at: Floats, usual: Floats, period: float) -> Floats:
    """Beginnings of the pattern that are tried [s].

    Those at which a leg lifts as early as it may, after its usual stance, or when another leg comes down; and
    some between these.
    """
    landings = np.broadcast_to(down_at, (len(base), len(base)))
    wanted = np.concatenate((landings, earliest[:, None], usual[:, None]), axis=1)
    exact = ((np.maximum(wanted, earliest[:, None]) - base[:, None]) % period).ravel()
    return np.unique(np.round(np.concatenate((exact, np.arange(_GRID) * period / _GRID)), 12))


def _shortage(lifts: Floats, lands: Floats, down_at: Floats, pattern: Pattern) -> Floats:
    """(candidates,) feet too few at the worst lift-off before the last leg has joined."""
    period, about = pattern.period, _ABOUT * pattern.period
    in_pattern = lands - pattern.swing
    last = in_pattern.max(axis=1, keepdims=True)
    # lift-offs of all legs: the first, and the next two
    times = np.concatenate((lifts, in_pattern + period, in_pattern + 2.0 * period), axis=1) + about
    after = times[:, :, None] - in_pattern[:, None, :]
    in_air = (after > 0.0) & (after % period < pattern.swing)
    in_air |= (times[:, :, None] > lifts[:, None, :]) & (times[:, :, None] < lands[:, None, :])
    in_air |= times[:, :, None] < down_at
    down = len(down_at) - in_air.sum(axis=2)
    counted = times < last
    shortage: Floats = np.where(counted, np.maximum(pattern.fewest_down() - down, 0), 0).max(axis=1)
    return shortage
