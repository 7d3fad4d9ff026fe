# SPDX-License-Identifier: Apache-2.0
"""Changes from one gait to another while the robot walks: when each leg joins the pattern of the new gait.

The stride of no leg is interrupted. A leg in swing touches down as planned; a leg in stance stays in contact
until the new pattern lifts it, so that only its stance is longer or shorter once. If that would take too
long, it is lifted earlier, and its swing is longer once. The free choices are the phase at which the new
pattern begins, and which legs skip its first lift-off. All choices that matter are tried, and the best is
used (`join`):

* until the last leg has joined, a lift-off leaves at least as many feet in contact as the new gait has
  outside its flight phases,
* stances last from half the shorter to 2.25 times the longer stance of both gaits, and so do swings; with
  less, the feet of a pace could not stay in contact for as long as the first step of a trot needs,
* among these, stances within the range of both gaits are preferred, and then early lift-offs.

Times are in seconds of the clock at rate 1, since the change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Floats

# Bounds of a stance: factors of the shorter and of the longer stance of both gaits.
SHORTEST, LONGEST = 0.5, 2.25
_GRID = 12  # start phases of the pattern that are tried in addition to those of events
_ABOUT = 1e-6  # events closer than this are simultaneous, in strides
_LEAD = 0.05  # delay before a leg is lifted that would have stayed in contact, in strides
_MARGIN = 1e-3  # margin of stances above their lower bound, in strides
# Costs of a missing foot; of a stance or swing beyond its bounds, times the logarithm of the ratio; and of
# one beyond the range of both gaits, times its square. A mean delay of one stride costs 1.
_SUPPORT, _BOUNDS, _RANGE = 1e4, 1e3, 10.0


@dataclass(frozen=True)
class LegInStride:
    """State of a leg when the gait changes.

    Attributes:
        is_down: whether its foot is in contact.
        since: time since its last lift-off or touch-down; inf if the robot stood [s].
        left: time until its touch-down or lift-off; inf if the robot stood [s].
    """

    is_down: bool
    since: float
    left: float


@dataclass(frozen=True)
class Pattern:
    """A gait in seconds.

    Attributes:
        period: of a stride [s].
        stance: duration of a stance [s].
        touchdown: touch-down time of each leg, in strides.
    """

    period: float
    stance: float
    touchdown: tuple[float, ...]

    @property
    def swing(self) -> float:
        """Duration of a swing [s]."""
        return self.period - self.stance

    def fewest_down(self) -> int:
        """Smallest number of feet in contact outside flight phases."""
        duty, found = self.stance / self.period, []
        for touchdown in self.touchdown:  # the number changes only at touch-downs and lift-offs
            for at in (touchdown + _ABOUT, touchdown + duty + _ABOUT):
                found.append(sum((at - other) % 1.0 < duty for other in self.touchdown))
        return min(count for count in found if count)


@dataclass(frozen=True)
class Joining:
    """How legs join a pattern.

    Attributes:
        stride: phase of the new pattern at the change, from 0 to 1.
        lifts: (legs,) first lift-offs [s].
        lands: (legs,) touch-downs after that, from which on they follow the pattern [s].
    """

    stride: float
    lifts: tuple[float, ...]
    lands: tuple[float, ...]


def join(legs: Sequence[LegInStride], pattern: Pattern, stance: float, swing: float) -> Joining:
    """When the new pattern begins, and when each leg lifts off in it for the first time.

    Args:
        legs: their states.
        pattern: of the new gait, which lifts feet.
        stance: duration of a stance of the old gait; inf if it never lifts feet [s].
        swing: duration of a swing of the old gait [s].
    """
    period, count = pattern.period, len(legs)
    steps = math.isfinite(stance)
    if not steps:
        stance = pattern.stance
    low, high = min(stance, pattern.stance), max(stance, pattern.stance)
    down_at = np.array([0.0 if leg.is_down else leg.left for leg in legs])
    # of its stance, now or at touch-down; a foot that stood may be lifted at once
    age = np.array([(low if math.isinf(leg.since) else leg.since) if leg.is_down else 0.0 for leg in legs])
    soon = np.array([min(_LEAD * period, leg.left) if leg.is_down else 0.0 for leg in legs])
    earliest = down_at + np.maximum(SHORTEST * low + _MARGIN * period - age, soon)
    base = (np.array(pattern.touchdown) * period + pattern.stance) % period  # lift-off, for a shift of 0
    shifts = _shifts(base, earliest, down_at, down_at + np.maximum(low - age, 0.0), period)
    first = (shifts[:, None] + base - earliest) % period
    first = earliest + np.where(first > (1.0 - _ABOUT) * period, 0.0, first)
    passed = np.array(list(itertools.product((0.0, period), repeat=count)))
    lands = (first[:, None, :] + passed).reshape(-1, count) + pattern.swing  # all candidates
    # a leg with a long stance, because of a recent gait change, may wait once more
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
    """Logarithm of the ratio by which values are outside a range."""
    return np.asarray(np.log(np.maximum(values / high, 1.0) * np.maximum(low / values, 1.0)))


def _shifts(base: Floats, earliest: Floats, down_at: Floats, usual: Floats, period: float) -> Floats:
    """Start times of the pattern that are tried [s].

    Those at which a leg lifts off as early as allowed, after its usual stance, or when another leg touches
    down; and some in between.
    """
    landings = np.broadcast_to(down_at, (len(base), len(base)))
    wanted = np.concatenate((landings, earliest[:, None], usual[:, None]), axis=1)
    exact = ((np.maximum(wanted, earliest[:, None]) - base[:, None]) % period).ravel()
    return np.unique(np.round(np.concatenate((exact, np.arange(_GRID) * period / _GRID)), 12))


def _shortage(lifts: Floats, lands: Floats, down_at: Floats, pattern: Pattern) -> Floats:
    """(candidates,) number of missing feet at the worst lift-off before the last leg has joined."""
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
