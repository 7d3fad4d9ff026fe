# SPDX-License-Identifier: Apache-2.0
"""The foothold planner: its program against other solvers and the closed form, reach, lateral distance."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import clarabel
import numpy as np
import pytest
from closeness import assert_close
from scipy import integrate, sparse

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning import foothold_planner
from quad_dynamics.planning.arc import arc
from quad_dynamics.planning.foothold_planner import (
    FootholdPlanner,
    FootholdQuery,
    FootholdSettings,
)
from quad_dynamics.planning.footholds import foothold
from quad_dynamics.planning.ground import Ground
from quad_dynamics.planning.stance_geometry import StanceGeometry

LEGS = range(4)
UP = np.array([0.0, 0.0, 1.0])
HEIGHT, LONG = 0.28, 0.4  # of the hips above the ground, and full length of the legs [m]
BELOW = ((0.19, 0.11), (0.19, -0.11), (-0.19, 0.11), (-0.19, -0.11))
# A geometry as that of mini_cheetah, whose centre of mass is that of the hips.
GEOMETRY = StanceGeometry(
    length=0.28, g=9.81, weight=87.0, com_height=HEIGHT, base_height=HEIGHT, com=(0.0, 0.0), below=BELOW,
    middle=(0.0, 0.0), spread=0.22, hips=np.array([[x, 0.5 * y, 0.0] for x, y in BELOW]),
    reach=np.full(4, LONG), stroke=0.25, radius=(0.0,) * 4, posture=np.zeros(12),
)  # fmt: skip


def planner(geometry: StanceGeometry = GEOMETRY, **settings: Any) -> FootholdPlanner:
    return FootholdPlanner(geometry, LEGS, FootholdSettings(**settings))


def query(**changes: Any) -> FootholdQuery:
    """A robot that stands at (1, 2), heading along x, on level ground, with hips above where it stands."""
    com = changes.get('com', np.array([1.0, 2.0, HEIGHT]))
    yaw = changes.get('yaw', 0.0)
    values: dict[str, Any] = {
        'com': com,
        'velocity': np.zeros(3),
        'yaw': yaw,
        'command': (0.0, 0.0, 0.0),
        'hips': com + GEOMETRY.hips @ turn(yaw).T,
        'time_left': np.zeros(4),
        'stance_time': np.full(4, 0.2),
        'normal': UP,
        'point': np.zeros(3),
    }
    return FootholdQuery(**(values | changes))


def turn(yaw: float) -> Floats:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def slope(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Normal and a point of a random plane."""
    normal = rng.uniform(-0.3, 0.3, 3) * [1.0, 1.0, 0.0] + UP
    return normal / np.linalg.norm(normal), rng.uniform(-0.1, 0.1, 3)


def random_query(seed: int, wild: float = 1.0) -> FootholdQuery:
    """A robot that moves on a slope, with footholds from before and feet somewhere below it."""
    rng = np.random.default_rng(seed)
    normal, point = slope(rng)
    yaw = rng.uniform(-3.0, 3.0)
    x, y = rng.uniform(-2.0, 2.0, 2)
    ground = point[2] - (normal[0] * (x - point[0]) + normal[1] * (y - point[1])) / normal[2]
    com = np.array([x, y, ground + HEIGHT])
    feet = com + np.array([[*b, -HEIGHT] for b in BELOW]) @ turn(yaw).T + rng.normal(size=(4, 3)) * 0.05
    previous = feet + rng.normal(size=(4, 3)) * 0.03
    previous[rng.uniform(size=4) < 0.3] = np.nan
    return query(
        com=com,
        velocity=rng.uniform(-1.0, 1.0, 3) * wild,
        yaw=yaw,
        command=tuple(rng.uniform(-1.0, 1.0, 3) * wild),
        time_left=rng.uniform(0.0, 0.3, 4),
        stance_time=rng.uniform(0.1, 0.3, 4),
        normal=normal,
        point=point,
        feet=feet,
        down=rng.uniform(size=4) < 0.5,
        previous=previous,
        offset=tuple(rng.uniform(-0.02, 0.02, 2)),
    )


# ---------------------------------------------------------------- the program


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Floats, ...]]:
    """The programs that are solved, as (H, c, A, high, low, x)."""
    seen: list[tuple[Floats, ...]] = []
    solve = foothold_planner.daqp.solve

    def note(*arrays: Floats) -> Any:
        found = solve(*arrays)
        seen.append((*(array.copy() for array in arrays), np.array(found[0])))
        return found

    monkeypatch.setattr(foothold_planner.daqp, 'solve', note)
    return seen


@pytest.mark.parametrize('wild', [0.5, 2.0])
@pytest.mark.parametrize('corners', [3, 8])
def test_program_against_clarabel(programs: list[tuple[Floats, ...]], wild: float, corners: int) -> None:
    """A solver of another kind, with interior points; its tolerances are set to 1e-10."""
    made, active = planner(corners=corners), 0
    for seed in range(60):
        assert made.plan(random_query(seed, wild)).is_solved
    for H, c, A, high, low, x in programs:
        rows = np.vstack((A[high < 1e20], -A[low > -1e20]))
        bounds = np.concatenate((high[high < 1e20], -low[low > -1e20]))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        cone = [clarabel.NonnegativeConeT(len(rows))]
        theirs = clarabel.DefaultSolver(
            sparse.csc_matrix(H), c, sparse.csc_matrix(rows), bounds, cone, settings
        ).solve()
        # positions of footholds: a micrometre
        assert np.abs(np.array(theirs.x) - x).max() < 1e-6
        active += bool((np.abs(rows @ x - bounds) < 1e-8).any())
    assert active > (10 if wild > 1.0 else 0), 'no program had an inequality that matters'


def test_closed_form_without_inequalities() -> None:
    """Where nothing is out of reach, the optimum is a weighted mean beside the pendulum's term."""
    weights = {'default_weight': 0.3, 'velocity_weight': 0.9, 'continuity_weight': 0.4}
    far = dataclasses.replace(GEOMETRY, reach=np.full(4, 10.0))
    made = planner(far, lateral_gap=0.0, capture_gain=0.7, **weights)
    vx, vy, cx, cy, left, stance = 0.5, 0.1, 0.7, -0.1, 0.12, 0.25
    given = query(velocity=np.array([vx, vy, 0.0]), command=(cx, cy, 0.0), yaw=0.0)
    given = dataclasses.replace(given, time_left=np.full(4, left), stance_time=np.full(4, stance))
    before = np.array([[1.1 + x, 2.1 + y, 0.0] for x, y in BELOW])
    before[2] = np.nan
    given = dataclasses.replace(given, previous=before)
    half = 0.5 * stance / GEOMETRY.pendulum
    factor = 1.0 + 0.6 * (half / math.tanh(half) - 1.0)
    capture = 0.7 * GEOMETRY.pendulum * np.array([vx - factor * cx, vy - factor * cy])
    found = made.plan(given)
    assert found.is_solved
    for leg, place in enumerate(found.footholds):
        default = np.array([1.0, 2.0]) + np.array(BELOW[leg]) + left * np.array([vx, vy])
        at_speed = default + 0.5 * stance * np.array([cx, cy])
        total = 0.3 * default + 0.9 * at_speed + 1.2 * capture
        expected = total / 1.2 if leg == 2 else (total + 0.4 * before[leg, :2]) / 1.6
        assert_close(place[:2], expected, 1e-9)
        assert place[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize('weights', [(0.001, 1.0, 0.0), (2.0, 30.0, 7.0), (0.02, 1.0, 3.0)])
def test_the_gain_of_the_pendulum_depends_on_no_weight(weights: tuple[float, float, float]) -> None:
    """Planned again and again from the last footholds, they settle k sqrt(h / g) dv apart."""
    w_def, w_vel, w_con = weights
    made = planner(default_weight=w_def, velocity_weight=w_vel, continuity_weight=w_con, capture_gain=0.5)
    settled = []
    for speed in (0.0, 0.3):
        given = query(velocity=np.array([speed, 0.0, 0.0]))
        for _ in range(400):
            given = dataclasses.replace(given, previous=made.plan(given).footholds)
        settled.append(made.plan(given).footholds)
    apart = settled[1] - settled[0]
    assert_close(apart[:, 0], np.full(4, 0.5 * GEOMETRY.pendulum * 0.3), 1e-6)
    assert_close(apart[:, 1:], np.zeros((4, 2)), 1e-9)


@pytest.mark.parametrize('seed', range(5))
def test_agrees_with_the_simple_planner(seed: int) -> None:
    """Without turning, out of the way of the inequalities, and with next to no default weight."""
    rng = np.random.default_rng(seed)
    yaw, v, w = rng.uniform(-3.0, 3.0), rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.3, 0.3, 2)
    left, R = rng.uniform(0.0, 0.2), turn(yaw)
    made = planner(default_weight=1e-9, capture_gain=0.8)
    given = query(yaw=yaw, velocity=np.array([*v, 0.3]), time_left=np.full(4, left))
    local = R[:2, :2].T @ w
    given = dataclasses.replace(given, command=(local[0], local[1], 0.0))
    found = made.plan(given).footholds
    for leg in LEGS:
        below = np.array([1.0, 2.0]) + R[:2, :2] @ BELOW[leg]
        expected = foothold(
            (below[0], below[1]), (v[0], v[1]), (w[0], w[1]), left, 0.2, GEOMETRY.pendulum, 0.8
        )
        assert_close(found[leg, :2], np.array(expected), 1e-7)


def test_stance_is_symmetric_when_turning() -> None:
    """In the middle of its stance a foot is where the robot stands, of a body that follows an arc."""
    vx, vy, wz, left, stance = 0.4, 0.1, 1.2, 0.15, 0.3
    made = planner(default_weight=1e-9, capture_gain=0.0)
    given = query(velocity=np.array([vx, vy, 0.0]), command=(vx, vy, wz), time_left=np.full(4, left))
    given = dataclasses.replace(given, stance_time=np.full(4, stance))
    middle = left + 0.5 * stance

    def velocity(t: float, _: Floats) -> Floats:
        return turn(wz * t)[:2, :2] @ [vx, vy]

    way = integrate.solve_ivp(velocity, (0.0, middle), np.zeros(2), rtol=1e-10, atol=1e-12).y[:, -1]
    for leg, place in enumerate(made.plan(given).footholds):
        expected = np.array([1.0, 2.0]) + way + turn(wz * middle)[:2, :2] @ BELOW[leg]
        assert_close(place[:2], expected, 1e-8)


@pytest.mark.parametrize('yaw', [0.0, 0.4])
@pytest.mark.parametrize('rate', [0.0, 1e-9, 1e-5, -0.8, 3.0])
def test_arc(rate: float, yaw: float) -> None:
    whole = arc((0.5, -0.2), rate, 0.1, 0.7, yaw)
    times = np.linspace(0.1, 0.7, 20001)
    c, s = np.cos(yaw + rate * times), np.sin(yaw + rate * times)
    x, y = 0.5 * c + 0.2 * s, 0.5 * s - 0.2 * c
    assert_close(np.array(whole), np.array([np.trapezoid(x, times), np.trapezoid(y, times)]), 1e-8)


def test_turning_of_the_base_moves_a_centre_of_mass_beside_it() -> None:
    """A command is one of the base: turning in place, the centre of mass has a velocity."""
    geometry = dataclasses.replace(GEOMETRY, com=(0.05, 0.0))
    made = planner(geometry, default_weight=1e-9, capture_gain=0.0)
    straight = planner(default_weight=1e-9, capture_gain=0.0)
    found = made.plan(query(command=(0.0, 0.0, 0.5)))
    expected = straight.plan(query(command=(0.0, 0.05 * 0.5, 0.5)))
    assert_close(found.footholds, expected.footholds, 1e-9)


# ---------------------------------------------------------------- the ground


@pytest.mark.parametrize('seed', range(10))
def test_footholds_are_on_the_plane(seed: int) -> None:
    given = random_query(seed)
    found = planner().plan(given).footholds
    assert_close((found - given.point) @ given.normal, np.zeros(4), 1e-12, scale=1.0)


def test_on_a_slope_feet_are_vertically_below() -> None:
    """As the simple planner has it: seen from above, nothing changes with the slope."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        given = random_query(int(rng.integers(1000)), wild=0.2)
        given = dataclasses.replace(given, previous=None, feet=None)
        far = dataclasses.replace(GEOMETRY, reach=np.full(4, 10.0))
        level = dataclasses.replace(given, normal=UP)
        made = planner(far, lateral_gap=0.0)
        assert_close(made.plan(given).footholds[:, :2], made.plan(level).footholds[:, :2], 1e-9)


def test_axes_are_those_of_the_ground() -> None:
    """Polygons and lateral distances are in the control frame of `Ground`."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        normal, _ = slope(rng)
        yaw = rng.uniform(-3.0, 3.0)
        ground = Ground(0.3, 0.1)
        ground.normal = normal
        frame = foothold_planner._Frame(query(yaw=yaw, normal=normal))
        assert_close(frame._axes, ground.axes(yaw)[:, :2], 1e-12)


# ---------------------------------------------------------------- reach


def corner_distance(made: FootholdPlanner, direction: float, speed: float = 30.0) -> Floats:
    """(legs,) how far feet go from below their hips when a body is that fast; nothing else matters."""
    velocity = speed * np.array([math.cos(direction), math.sin(direction), 0.0])
    found = made.plan(query(velocity=velocity))
    assert found.is_solved
    hips = query().hips[:, :2]
    return np.hypot(*(found.footholds[:, :2] - hips).T)


def test_reach_ends_at_the_polygon() -> None:
    """Its corners are sqrt(l^2 - h^2) away, its sides cos(pi / n) of that; the first corner is ahead."""
    made = planner(corners=6, stretch=0.9, lateral_gap=0.0)
    radius = math.sqrt((0.9 * LONG) ** 2 - HEIGHT**2)
    for k in range(6):
        corner, side = 2.0 * math.pi * k / 6, 2.0 * math.pi * (k + 0.5) / 6
        assert_close(corner_distance(made, corner), np.full(4, radius), 1e-6)
        # the optimum is far out along the normal of the side, but not exactly above its middle
        found = made.plan(query(velocity=1e4 * np.array([math.cos(side), math.sin(side), 0.0]))).footholds
        away = (found - query().hips)[:, :2] @ [math.cos(side), math.sin(side)]
        assert_close(away, np.full(4, radius * math.cos(math.pi / 6)), 1e-9)


def test_a_foothold_behind_is_not_pulled_ahead() -> None:
    """The inequalities point outwards: a foot that wants to go far back goes back."""
    found = planner().plan(query(velocity=np.array([-20.0, 0.0, 0.0]))).footholds
    assert (found[:, 0] < query().hips[:, 0] - 0.1).all()


def test_what_is_within_reach_is_not_moved() -> None:
    found = planner().plan(query()).footholds
    expected = np.array([[1.0 + x, 2.0 + y, 0.0] for x, y in BELOW])
    assert_close(found, expected, 1e-9)


def test_a_hip_higher_than_the_leg_is_long() -> None:
    """There is no root of l^2 - h^2 then; a small polygon below the hip is left."""
    given = query(velocity=np.array([3.0, 0.0, 0.0]))
    short = dataclasses.replace(GEOMETRY, reach=0.5 * GEOMETRY.reach)
    found = planner(short, smallest_reach=0.1).plan(given)
    assert found.is_solved
    away = np.hypot(*(found.footholds - given.hips)[:, :2].T)
    assert away.max() <= 0.1 * GEOMETRY.length + 1e-9


def test_a_robot_in_flight_comes_down_before_its_feet_do() -> None:
    """Legs reach as far as from the height at which the robot walks."""
    given = query(velocity=np.array([3.0, 0.0, 0.0]))
    high = dataclasses.replace(given, hips=given.hips + np.array([0.0, 0.0, 0.1]))
    assert_close(planner().plan(high).footholds, planner().plan(given).footholds, 1e-9)


def test_reach_counts_from_the_centre_of_the_foot() -> None:
    """Feet with a radius have their centres above the ground, so that they reach farther."""
    ball = dataclasses.replace(GEOMETRY, radius=(0.03,) * 4)
    radius = math.sqrt((0.93 * LONG) ** 2 - (HEIGHT - 0.03) ** 2)
    assert_close(corner_distance(planner(ball, lateral_gap=0.0), 0.0), np.full(4, radius), 1e-6)


def test_reach_is_that_of_the_hip_at_touch_down() -> None:
    made, moving = planner(), np.array([0.6, 0.0, 0.0])
    given = query(velocity=moving, command=(0.6, 0.0, 0.0), time_left=np.full(4, 0.5))
    found = made.plan(given).footholds
    # 0.3 m ahead of the hips now, which is farther than legs reach, but not of the hips then
    assert (found[:, 0] - given.hips[:, 0] > 0.3).all()


# ---------------------------------------------------------------- lateral distance


@pytest.mark.parametrize('yaw', [0.0, 2.0])
def test_legs_do_not_cross(yaw: float) -> None:
    """A push to the left moves right feet below the body, but not beyond the left ones."""
    made = planner(lateral_gap=0.4, capture_gain=1.0)
    gap, side = 0.4 * 0.22, turn(yaw)[:2, 1]
    # left feet have landed where they stand; right ones come down next
    feet = np.array([[1.0, 2.0, 0.0]]) + np.array([[*b, 0.0] for b in BELOW]) @ turn(yaw).T
    given = query(yaw=yaw, velocity=np.array([*(2.0 * side), 0.0]))
    given = dataclasses.replace(given, time_left=np.array([0.2, 0.02, 0.2, 0.02]))
    free = made.plan(given).footholds
    kept = made.plan(dataclasses.replace(given, feet=feet, down=np.array([True, False, True, False])))
    assert kept.is_solved
    for left, right in ((0, 1), (2, 3)):
        assert (free[right] - feet[left])[:2] @ side > -gap
        assert (kept.footholds[right] - feet[left])[:2] @ side == pytest.approx(-gap, abs=1e-8)


def test_footholds_of_both_sides_stay_apart() -> None:
    """Footholds from before that have crossed are uncrossed, by both sides alike."""
    made = planner(lateral_gap=0.5, continuity_weight=50.0)
    crossed = np.array([[1.0 + x, 2.0 - 0.5 * y, 0.0] for x, y in BELOW])
    found = made.plan(query(previous=crossed)).footholds
    for left, right in ((0, 1), (2, 3)):
        assert found[left, 1] - found[right, 1] == pytest.approx(0.5 * 0.22, abs=1e-8)
        assert found[left, 1] + found[right, 1] == pytest.approx(4.0, abs=1e-8)


def test_a_lateral_distance_out_of_reach_is_shortened() -> None:
    """A right foot far to the left leaves the left one no room; there is a solution nevertheless."""
    feet = np.array([[1.0 + x, 2.0 + y, 0.0] for x, y in BELOW])
    feet[1, 1] += 1.0
    given = query(feet=feet, down=np.array([False, True, False, True]))
    found = planner().plan(dataclasses.replace(given, time_left=np.array([0.0, 0.2, 0.0, 0.2])))
    assert found.is_solved
    assert found.footholds[0, 1] > feet[0, 1] + 0.05


def test_legs_in_another_order() -> None:
    order = [3, 1, 0, 2]
    other = dataclasses.replace(
        GEOMETRY, below=tuple(BELOW[i] for i in order), hips=GEOMETRY.hips[order], reach=GEOMETRY.reach[order]
    )
    for seed in range(5):
        given = random_query(seed)
        mixed = dataclasses.replace(
            given,
            **{
                name: getattr(given, name)[order]
                for name in ('hips', 'time_left', 'stance_time', 'feet', 'down', 'previous')
            },
        )
        found = FootholdPlanner(other, order).plan(mixed).footholds
        assert_close(found, planner().plan(given).footholds[order], 1e-9)


# ---------------------------------------------------------------- failures


def test_a_program_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Footholds are those without inequalities then, within reach, and that is said."""

    def fail(H: Floats, *_: Any) -> Any:
        return np.full(len(H), np.nan), 0.0, -1, {'iterations': 3}

    inside, outside = query(), query(velocity=np.array([20.0, 0.0, 0.0]))
    expected = planner().plan(inside).footholds
    monkeypatch.setattr(foothold_planner.daqp, 'solve', fail)
    found = planner().plan(inside)
    assert not found.is_solved
    assert_close(found.footholds, expected, 1e-9)
    away = (planner().plan(outside).footholds - query().hips)[:, :2]
    radius = math.sqrt((0.93 * LONG) ** 2 - HEIGHT**2) * math.cos(math.pi / 8)
    assert_close(np.hypot(*away.T), np.full(4, radius), 1e-9)
    assert (away[:, 0] > 0.9 * radius).all()


@pytest.mark.parametrize('name', ['com', 'velocity', 'hips', 'normal', 'time_left', 'yaw'])
def test_input_that_is_not_finite(name: str) -> None:
    given = random_query(1)
    value = getattr(given, name)
    bad = math.nan if isinstance(value, float) else np.full_like(value, math.nan)
    with pytest.raises(ArgumentError, match='not finite'):
        planner().plan(dataclasses.replace(given, **{name: bad}))


def test_feet_that_stay_down() -> None:
    """A foot that never comes down has an infinite time left; the default stance is returned for it."""
    given = query(time_left=np.full(4, math.inf), stance_time=np.full(4, math.inf))
    assert_close(planner().plan(given).footholds, planner().plan(query()).footholds, 1e-9)


def test_nothing_is_kept_from_call_to_call() -> None:
    made = planner()
    alone = [planner().plan(random_query(seed)).footholds.tolist() for seed in range(10)]
    assert [made.plan(random_query(seed)).footholds.tolist() for seed in range(10)] == alone


def test_it_is_fast() -> None:
    made, given, best = planner(), random_query(4), math.inf
    for _ in range(200):
        begin = time.perf_counter()
        made.plan(given)
        best = min(best, time.perf_counter() - begin)
    # 60 us on a quiet core
    assert best < 3e-4
