# SPDX-License-Identifier: Apache-2.0
"""Gaits as data, changes from each to each other one, contact schedules, and support polygons."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from closeness import assert_close
from scipy.spatial import ConvexHull

from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning import gait as gait_module
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.convex_hull import convex_hull
from quad_dynamics.planning.gait import GAITS, Gait, GaitClock, read_gaits
from quad_dynamics.planning.gait_transition import LONGEST, SHORTEST
from quad_dynamics.planning.support_sequence import (
    LATE,
    contact_schedule,
    plane_axes,
    support_polygons,
)

UNIT = 0.171  # sqrt(l / g) of mini_cheetah [s]
STEPPING = [name for name, gait in GAITS.items() if gait.duty < 1.0]
# Feet that are down at least, and at most, by the definitions of the gaits.
FEET_DOWN = {
    'stand': (4, 4), 'crawl': (3, 4), 'walk': (2, 3), 'trot': (2, 2), 'flying_trot': (0, 2),
    'pace': (2, 4), 'bound': (2, 2), 'pronk': (0, 4),
}  # fmt: skip
TOGETHER = {
    'trot': [(0, 3), (1, 2)],
    'flying_trot': [(0, 3), (1, 2)],
    'pace': [(0, 2), (1, 3)],
    'bound': [(0, 1), (2, 3)],
    'pronk': [(0, 1, 2, 3)],
}
LEGS = range(4)
ROUNDING = 1e-6  # of times, in strides: events that coincide may be so far apart


def clock_of(gait: str | Gait, stride: float = 0.0, rate: float = 1.0) -> GaitClock:
    clock = GaitClock(GAITS[gait] if isinstance(gait, str) else gait, UNIT, LEGS)
    clock.stride, clock.rate = stride, rate
    return clock


def down_now(clock: GaitClock) -> list[bool]:
    return [clock.is_stance(leg) for leg in LEGS]


# ---------------------------------------------------------------- the file


def test_all_gaits_are_there_and_can_be_chosen() -> None:
    assert list(GAITS) == list(FEET_DOWN)
    for name in GAITS:
        assert WalkerSettings(gait=name).gait == name


@pytest.mark.parametrize(
    ('name', 'shortest', 'longest', 'duties'),
    [
        ('crawl', 0.8, 1.2, (0.75, 0.8)),
        ('walk', 0.45, 0.8, (0.6, 0.7)),
        ('trot', 0.38, 0.42, (0.5, 0.5)),
        ('flying_trot', 0.3, 0.4, (0.35, 0.4)),
        ('pace', 0.28, 0.32, (0.55, 0.65)),
        ('bound', 0.28, 0.32, (0.5, 0.5)),
        ('pronk', 0.3, 0.4, (0.55, 0.65)),
    ],
)
def test_scales_of_gaits(name: str, shortest: float, longest: float, duties: tuple[float, float]) -> None:
    """In seconds for mini_cheetah: what has been seen to work."""
    gait = GAITS[name]
    assert shortest <= gait.period * UNIT <= longest
    assert duties[0] <= gait.duty <= duties[1]


@pytest.mark.parametrize('name', STEPPING)
def test_gaits_are_what_they_are_called(name: str) -> None:
    clock, counts = clock_of(name), set()
    for step in range(1000):
        clock.stride = (step + 0.5) / 1000.0
        down = down_now(clock)
        counts.add(sum(down))
        for group in TOGETHER.get(name, []):
            assert len({down[leg] for leg in group}) == 1
    assert (min(counts), max(counts)) == FEET_DOWN[name]


def test_lateral_sequence() -> None:
    """A rear foot is followed by the front foot of its side (Hildebrand 1965)."""
    for name in ('crawl', 'walk'):
        order = np.argsort(GAITS[name].touchdown).tolist()
        start = order.index(2)
        assert [order[(start + i) % 4] for i in LEGS] == [2, 0, 3, 1]


def test_the_file_is_read_fast() -> None:
    """Every import of the package's settings reads it."""
    path, best = Path(gait_module.__file__).with_name('gaits.yaml'), math.inf
    for _ in range(10):
        begin = time.perf_counter()
        assert read_gaits(path) == dict(GAITS)
        best = min(best, time.perf_counter() - begin)
    # about 2 ms on a quiet machine; others may be running
    assert best < 0.01


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text('amble: {period: 3, duty: 7e-1, touchdown: [0.25, 0.75, 0, 0.5]}\n')
    assert read_gaits(path) == {'amble': Gait(3.0, 0.7, (0.25, 0.75, 0.0, 0.5))}


GOOD = 'period: 2.0, duty: 0.5, touchdown: [0, 0.5, 0.5, 0]'
BAD = {
    'trot: {period: 2.0, duty: 0.5}': r'mine.yaml: trot.touchdown is missing; expected 4 numbers',
    f'trot: {{{GOOD}, sway: 3}}': r'trot.sway is 3; expected a number from 0 to 1',
    f'trot: {{{GOOD.replace("2.0", "-2.0")}}}': r'trot.period is -2.0; expected a number from 0.1 to 100',
    f'trot: {{{GOOD.replace("0.5,", "half,", 1)}}}': r"trot.duty is 'half'; expected a number from 0.1 to 1",
    f'trot: {{{GOOD.replace("[0,", "[")}}}': r'trot.touchdown is \[0.5, 0.5, 0\]; expected 4 numbers',
    f'trot: {{{GOOD.replace("[0,", "[.nan,")}}}': r'trot.touchdown is \[nan, .*; expected 4 numbers',
    f'trot: {{{GOOD.replace("duty", "dutty")}}}': r"trot: unknown key 'dutty' \(did you mean 'duty'\?\)",
    'trot: 3': r'trot is 3; expected a mapping',
    f'3: {{{GOOD}}}': r'a gait has the name 3; expected a text',
    '': r'mine.yaml: the file holds None; expected gaits by name',
    '- a': r"the file holds \['a'\]; expected gaits by name",
    'trot: {': r'mine.yaml: broken YAML',
    'a: {period: 0}\nb: {duty: 2}': r'6 problems:\n  - a.period is 0;.*\n(.*\n)*  - b.duty is 2',
}


@pytest.mark.parametrize('text', BAD)
def test_bad_files(text: str, tmp_path: Path) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    with pytest.raises(ArgumentError, match=BAD[text]):
        read_gaits(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / 'missing.yaml'):
        with pytest.raises(ArgumentError, match=path.name):
            read_gaits(path)
    (tmp_path / 'latin.yaml').write_bytes(b'a: \xe4')
    with pytest.raises(ArgumentError, match='UTF-8'):
        read_gaits(tmp_path / 'latin.yaml')


# ---------------------------------------------------------------- changes of contact


def in_transition(seed: int) -> GaitClock:
    """A clock of a random gait, with a random rate, somewhere in a change to another one or after it."""
    rng = np.random.default_rng(seed)
    clock = clock_of(str(rng.choice(list(GAITS))), rng.uniform(), rng.uniform(1.0, 2.5))
    for _ in range(rng.integers(0, 3)):
        clock.change(GAITS[str(rng.choice(list(GAITS)))])
        clock.advance(rng.uniform(0.0, 0.4))
    return clock


@pytest.mark.parametrize('seed', range(40))
def test_changes_are_those_of_the_clock(seed: int) -> None:
    """Against the clock, asked 2000 times."""
    clock = in_transition(seed)
    horizon, steps = 1.7 * clock.period, 2000
    found = [clock.changes(leg, horizon) for leg in LEGS]
    touchdown = [clock.time_to_touchdown(leg) for leg in LEGS]
    before = down_now(clock)
    seen: list[list[float]] = [[] for _ in LEGS]
    for step in range(1, steps + 1):
        clock.advance(horizon / steps)
        for leg, is_down in enumerate(down_now(clock)):
            if is_down != before[leg]:
                seen[leg].append(step * horizon / steps)
                if is_down and touchdown[leg] >= 0.0:
                    assert abs(touchdown[leg] - seen[leg][-1]) <= 1.01 * horizon / steps
                    touchdown[leg] = -1.0
                before[leg] = is_down
    for leg in LEGS:
        inner = [at for at in found[leg] if 1e-9 < at < horizon - 1e-9]
        assert len(inner) == len(seen[leg]), (found[leg], seen[leg])
        assert np.abs(np.subtract(inner, seen[leg])).max(initial=0.0) <= 1.01 * horizon / steps


# ---------------------------------------------------------------- from gait to gait


class Run:
    """What the legs do before and after a change.

    Attributes:
        clock: just after the change.
        changes: of each leg, from its last one before the gait changed on [s].
        was_down: whether it was down when the gait changed.
    """

    def __init__(self, old: str | Gait, new: str | Gait, stride: float) -> None:
        self.clock = clock = clock_of(old, stride)
        self.was_down = down_now(clock)
        before = [clock.phase(leg) - (0.0 if clock.is_stance(leg) else clock.gait.duty) for leg in LEGS]
        last = [-phase * clock.period if clock.gait.duty < 1.0 else -math.inf for phase in before]
        horizon = 3.0 * clock.period
        clock.change(clock_of(new).gait)
        horizon += 3.0 * clock.period
        self.changes = [[last[leg], *clock.changes(leg, horizon)] for leg in LEGS]

    def lasts(self, is_stance: bool) -> list[float]:
        """Durations of all stances or swings that have ended [s]."""
        return [
            float(length)
            for changes, was_down in zip(self.changes, self.was_down, strict=True)
            for length in np.diff(changes)[0 if was_down == is_stance else 1 :: 2]
        ]

    def fewest(self) -> int:
        """Smallest number of feet that are down for longer than rounding."""
        events = sorted({0.0, *(at for changes in self.changes for at in changes[1:])})
        return (
            min(
                sum(self.is_down(leg, 0.5 * (begin + end)) for leg in LEGS)
                for begin, end in itertools.pairwise(events)
                if end - begin > ROUNDING * self.clock.period
            )
            if len(events) > 1
            else sum(self.was_down)
        )

    def is_down(self, leg: int, at: float) -> bool:
        passed = sum(change <= at for change in self.changes[leg][1:])
        return self.was_down[leg] == (passed % 2 == 0)


PAIRS = list(itertools.permutations(GAITS, 2))
STRIDES = (np.arange(40) + 0.137) / 40.0


@pytest.mark.parametrize(('old', 'new'), PAIRS, ids=str)
def test_change_of_gait(old: str, new: str) -> None:
    """No leg is pulled out of its stride, and enough feet stay down, whenever the gait changes."""
    a, b = (clock_of(name) for name in (old, new))
    longest = 2.0 * max(a.period, b.period) + ROUNDING
    for stride in STRIDES:
        run = Run(old, new, stride)
        clock = run.clock
        for leg, down in enumerate(run.was_down):
            if not down:  # it swings as planned
                phase = clock_of(old, stride).phase(leg)
                assert run.changes[leg][1] == pytest.approx((1.0 - phase) * a.period, abs=1e-9)
        assert run.fewest() >= min(FEET_DOWN[old][0], FEET_DOWN[new][0])
        if new in STEPPING and old in STEPPING:
            low, high = sorted((a.stance_time, b.stance_time))
            stances = run.lasts(is_stance=True)
            assert min(stances) >= SHORTEST * low - ROUNDING
            assert max(stances) <= LONGEST * high * (1.0 + 2e-6)
        if new in STEPPING:
            low, high = sorted((a.swing_time if old in STEPPING else b.swing_time, b.swing_time))
            swings = run.lasts(is_stance=False)
            assert min(swings) >= SHORTEST * low - ROUNDING
            assert max(swings) <= LONGEST * high + ROUNDING
        clock.advance(longest)
        assert not clock.is_changing
        assert clock.gait == GAITS[new]
        assert clock.swing_time_of(0) == clock.swing_time
        assert clock.next_stance_time(0) == clock.stance_time


def fewest_down(gait: Gait) -> int:
    clock, counts = clock_of(gait), []
    for step in range(500):
        clock.stride = (step + 0.5) / 500.0
        counts.append(sum(down_now(clock)))
    return min(counts)


@pytest.mark.parametrize('seed', range(20))
def test_change_between_gaits_of_ones_own(seed: int) -> None:
    """What holds for the gaits of the package holds for others as well."""
    rng = np.random.default_rng(seed)
    old, new = (
        Gait(rng.uniform(1.5, 6.0), rng.uniform(0.3, 0.85), tuple(rng.uniform(0.0, 1.0, 4))) for _ in range(2)
    )
    a, b = clock_of(old), clock_of(new)
    fewest = min(fewest_down(old), fewest_down(new))
    for stride in rng.uniform(size=10):
        run = Run(old, new, stride)
        assert run.fewest() >= fewest
        for is_stance, one, other in (
            (True, a.stance_time, b.stance_time),
            (False, a.swing_time, b.swing_time),
        ):
            lasts = run.lasts(is_stance)
            assert min(lasts) >= SHORTEST * min(one, other) - ROUNDING
            assert max(lasts) <= LONGEST * max(one, other) * (1.0 + 2e-6)
        run.clock.advance(2.0 * max(a.period, b.period) + ROUNDING)
        assert not run.clock.is_changing


@pytest.mark.parametrize(('old', 'new'), PAIRS, ids=str)
def test_phases_are_continuous(old: str, new: str) -> None:
    """Each leg's phase goes on from where it was, forwards; those of legs that stood have no meaning."""
    dt = 0.001
    for stride in (0.03, 0.41, 0.77):
        clock = clock_of(old, stride)
        phases = [clock.phase(leg) for leg in LEGS]
        progress = [clock.swing_progress(leg) for leg in LEGS]
        down = down_now(clock)
        clock.change(GAITS[new])
        if 'stand' not in {old, new}:
            assert_close(np.array([clock.phase(leg) for leg in LEGS]), np.array(phases), 1e-12)
        if new == 'stand':
            continue
        # a leg that is lifted earlier than in the old gait has a twentieth of a stride left at least
        fastest = dt / (0.05 * min(GAITS[name].period * UNIT for name in STEPPING))
        for _ in range(int(2.0 * clock.period / dt)):
            for leg in LEGS:
                if not down[leg] and not clock.is_stance(leg):
                    step = clock.swing_progress(leg) - progress[leg]
                    assert -1e-9 <= step <= dt / (SHORTEST * 0.1)
                progress[leg] = clock.swing_progress(leg)
                step = (clock.phase(leg) - phases[leg] + 0.5) % 1.0 - 0.5
                assert -1e-9 <= step <= fastest or old == 'stand'
                phases[leg] = clock.phase(leg)
            down = down_now(clock)
            clock.advance(dt)


def test_a_change_is_the_same_each_time() -> None:
    runs = [Run('trot', 'bound', 0.3).changes for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_change_back_and_forth() -> None:
    """Gaits that are chosen one after the other leave as many feet down as the worst of them."""
    rng = np.random.default_rng(5)
    names = ['crawl', 'walk', 'trot', 'pace', 'bound']
    for _ in range(60):
        clock = clock_of('trot', rng.uniform())
        for _ in range(6):
            clock.change(GAITS[str(rng.choice(names))])
            for _ in range(rng.integers(1, 120)):
                clock.advance(0.004)
                # a foot that comes down just when another one is lifted may be late by rounding
                if sum(down_now(clock)) < 2:
                    clock.advance(1e-9)
                assert sum(down_now(clock)) >= 2


def test_a_change_at_another_rate() -> None:
    """A faster clock does the same in less time."""
    slow, fast = clock_of('trot', 0.3), clock_of('trot', 0.3, rate=2.0)
    for clock in (slow, fast):
        clock.change(GAITS['pace'])
    for leg in LEGS:
        assert_close(np.array(fast.changes(leg, 1.0)), 0.5 * np.array(slow.changes(leg, 2.0)), 1e-12)


def test_the_stride_can_be_set_within_a_change() -> None:
    clock = clock_of('trot', 0.3)
    clock.change(GAITS['crawl'])
    assert clock.is_changing
    clock.stride = 0.0
    assert not clock.is_changing
    assert [clock.phase(leg) for leg in LEGS] == [-t % 1.0 for t in GAITS['crawl'].touchdown]


def test_the_same_gait_changes_nothing() -> None:
    clock = clock_of('trot', 0.3)
    clock.change(GAITS['trot'])
    assert not clock.is_changing
    assert clock.stride == 0.3


def test_legs_in_another_order_change_alike() -> None:
    order = (3, 1, 0, 2)
    clock, other = (GaitClock(GAITS['trot'], UNIT, some) for some in (LEGS, order))
    for one in (clock, other):
        one.advance(0.13)
        one.change(GAITS['walk'])
        one.advance(0.2)
    assert_close(np.array([other.phase(k) for k in LEGS]), np.array([clock.phase(k) for k in order]), 1e-9)


# ---------------------------------------------------------------- schedules


@pytest.mark.parametrize('seed', range(40))
def test_schedule_is_that_of_the_clock(seed: int) -> None:
    """Against the clock, asked 997 times; but for the times within which changes are merged."""
    clock, now = in_transition(seed), 3.0
    schedule = contact_schedule(clock, down_now(clock), 'walk', now)
    horizon, shortest = clock.period, max(0.005, 0.02 * clock.period)
    assert schedule.times[0] == now
    assert schedule.times[-1] == pytest.approx(now + horizon)
    assert schedule.durations.min() >= shortest - 1e-9
    assert all((a != b).any() for a, b in itertools.pairwise(schedule.down))
    events = np.array([0.0, horizon, *(at for leg in LEGS for at in clock.changes(leg, horizon))])
    steps, compared = 997, 0
    for step in range(steps):
        at = step * horizon / steps
        if np.abs(events - at).min() > shortest:
            assert schedule.down[schedule.phase(now + at)].tolist() == down_now(clock)
            compared += 1
        clock.advance(horizon / steps)
    assert compared > 0.3 * steps


def test_schedule_of_a_trot() -> None:
    clock = clock_of('trot', 0.25)
    schedule = contact_schedule(clock, down_now(clock), 'walk', 1.0)
    assert_close(schedule.times - 1.0, clock.period * np.array([0.0, 0.25, 0.75, 1.0]), 1e-12)
    assert schedule.down.tolist() == [
        [True, False, False, True],
        [False, True, True, False],
        [True, False, False, True],
    ]
    assert schedule.next_change(0, 1.0) == pytest.approx(1.0 + 0.25 * clock.period)


def test_schedule_when_standing_and_stopping() -> None:
    clock = clock_of('trot', 0.25)
    standing = contact_schedule(clock, [True] * 4, 'stand', 0.0)
    assert standing.down.tolist() == [[True] * 4]
    stopping = contact_schedule(clock, down_now(clock), 'stop', 0.0)
    assert stopping.down.tolist() == [[True, False, False, True], [True] * 4]
    assert stopping.times[1] == pytest.approx(0.25 * clock.period)
    # feet that were not lifted any more stay down
    assert contact_schedule(clock, [True] * 4, 'stop', 0.0).down.tolist() == [[True] * 4]


def test_schedule_with_early_and_late_feet() -> None:
    clock = clock_of('trot', 0.4)  # legs 1 and 2 swing for another tenth of a stride
    early = contact_schedule(clock, [True, True, False, True], 'walk', 0.0)
    assert early.down[0].tolist() == [True, True, False, True]
    assert early.down[1].tolist() == [False, True, True, False]
    late = contact_schedule(clock, [True, False, False, False], 'walk', 0.0)
    assert late.down[0].tolist() == [True, False, False, False]
    assert late.times[1] == pytest.approx(LATE)
    assert late.down[1].tolist() == [True, False, False, True]
    # one that is about to be lifted anyway does not come down before
    clock.stride = 0.499 - LATE / clock.period
    clock.stride = 0.5 - 0.5 * LATE / clock.period
    late = contact_schedule(clock, [True, False, False, False], 'walk', 0.0)
    assert not late.down[:2, 3].any()
    # and a foot whose swing has just begun is being lifted
    clock.stride = 0.52
    lifted = contact_schedule(clock, [True, True, True, False], 'walk', 0.0)
    assert lifted.down[0].tolist() == [False, True, True, False]


# ---------------------------------------------------------------- polygons


@pytest.mark.parametrize('seed', range(30))
def test_hull_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(3, 9), 2))
    found = np.array(convex_hull([(x, y) for x, y in points.tolist()]))
    theirs = points[ConvexHull(points).vertices]  # counter-clockwise in two dimensions
    start = int(np.argmin(np.abs(theirs - found[0]).sum(axis=1)))
    assert found.tolist() == np.roll(theirs, -start, axis=0).tolist()


@pytest.mark.parametrize(
    ('points', 'corners'),
    [
        ([], 0),
        ([(1.0, 2.0)], 1),
        ([(1.0, 2.0), (1.0, 2.0)], 1),
        ([(1.0, 2.0), (0.0, 0.0)], 2),
        ([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], 2),
        ([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 1.0)], 3),
        ([(0.0, 0.0), (2.0, 0.0), (1.0, 2.0), (1.0, 0.5)], 3),
        ([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)], 4),
    ],
)
def test_hull_of_few_points(points: Sequence[tuple[float, float]], corners: int) -> None:
    found = convex_hull(points)
    assert len(found) == corners
    assert set(found) <= set(points)


def test_polygons_of_a_trot_and_a_crawl() -> None:
    feet = np.array([[0.2, 0.1, 0.0], [0.2, -0.1, 0.0], [-0.2, 0.1, 0.0], [-0.2, -0.1, 0.0]])
    footholds = feet + np.array([0.1, 0.0, 0.0])
    up, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    clock = clock_of('trot', 0.25)
    polygons = support_polygons(
        contact_schedule(clock, down_now(clock), 'walk', 0.0), feet, footholds, up, zero
    )
    for polygon, expected in zip(polygons, (feet[[0, 3]], footholds[[1, 2]], footholds[[0, 3]]), strict=True):
        assert_close(np.array(sorted(polygon.tolist())), np.array(sorted(expected.tolist())), 1e-12)
    clock = clock_of('crawl', 0.1)
    schedule = contact_schedule(clock, down_now(clock), 'walk', 0.0)
    for down, polygon in zip(
        schedule.down, support_polygons(schedule, feet, footholds, up, zero), strict=True
    ):
        assert len(polygon) == down.sum()


@pytest.mark.parametrize('seed', range(10))
def test_polygons_on_a_slope(seed: int) -> None:
    """They are on the plane, right below the feet along its normal, and counter-clockwise about it."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=3) * [0.4, 0.4, 0.0] + [0.0, 0.0, 1.0]
    normal /= np.linalg.norm(normal)
    point, feet = rng.normal(size=3), rng.normal(size=(4, 3))
    axes = plane_axes(normal)
    assert_close(axes.T @ axes, np.eye(2), 1e-12)
    assert_close(np.cross(axes[:, 0], axes[:, 1]), normal, 1e-12)
    schedule = ContactSchedule(np.array([0.0, 1.0]), np.ones((1, 4), dtype=bool))
    [polygon] = support_polygons(schedule, feet, feet + 1.0, normal, point)
    assert_close((polygon - point) @ normal, np.zeros(len(polygon)), 1e-12)
    below = feet - np.outer((feet - point) @ normal, normal)
    for corner in polygon:
        assert np.abs(below - corner).sum(axis=1).min() < 1e-12
    for i in range(len(polygon)):
        a, b, c = (polygon[(i + k) % len(polygon)] for k in range(3))
        assert np.cross(b - a, c - b) @ normal > 0.0
