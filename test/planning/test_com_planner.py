# SPDX-License-Identifier: Apache-2.0
"""The motion optimisation of the centre of mass: each inequality by hand, whole motions by another solver."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import daqp
import numpy as np
import pytest
from closeness import assert_close, derivative
from com_problems import GAITS, HEIGHT, gait_problem
from reference_com import Reference, eta, square_matrix, written_edge, written_gradient
from slow_variants import slow_but

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.com_planner import (
    ComPlanner,
    ComResult,
    largest_gap,
    sample_spline,
    warm_start,
)
from quad_dynamics.planning.com_problem import (
    ComProblem,
    ComSettings,
    ComState,
    ComWeights,
    ReferencePath,
    SupportPhase,
)
from quad_dynamics.planning.com_program import Program, make_program
from quad_dynamics.planning.com_rows import HARD, Rows, make_rows
from quad_dynamics.planning.com_segments import (
    acceleration_matrix,
    hermite_data,
    make_segments,
    sample_tables,
)
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.convex_hull import convex_hull
from quad_dynamics.planning.motion_plan import ComSpline
from quad_dynamics.planning.plan_alignment import nearest_time
from quad_dynamics.planning.planned_forces import force_shares, planned_forces
from quad_dynamics.planning.support_region import support_edges
from quad_dynamics.planning.zmp import (
    edge_constraint,
    edge_gradient,
    edge_hessian,
    edge_matrix,
    zero_moment_point,
)

G = 9.81
UP = np.array([0.0, 0.0, 1.0])
FLIGHT = np.zeros((0, 3))
FEET = np.array([[0.19, 0.14, 0.0], [0.19, -0.14, 0.0], [-0.19, 0.14, 0.0], [-0.19, -0.14, 0.0]])
EXACT = ComSettings(iterations=40, tolerance=1e-10)
DEFAULT = ComSettings()


def tilted(angle: float) -> Floats:
    """Normal of ground that rises along x."""
    return np.array([-math.sin(angle), 0.0, math.cos(angle)])


def problem(*phases: tuple[float, Floats], v: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> ComProblem:
    """A robot that should stay above the origin."""
    rest = ComState(np.array([0.0, 0.0, HEIGHT]), np.zeros(3))
    start = ComState(rest.p, np.array(v))
    parts = tuple(SupportPhase(duration, polygon) for duration, polygon in phases)
    return ComProblem(parts, start, ReferencePath(rest, rest), np.zeros(3), UP, HEIGHT, G)


def solved(
    given: ComProblem, settings: ComSettings = DEFAULT, previous: ComSpline | None = None
) -> ComResult:
    """The result, with a motion."""
    result = ComPlanner(settings).solve(given, previous)
    assert result.spline is not None, result.reason
    return result


def motion(result: ComResult) -> ComSpline:
    assert result.spline is not None
    return result.spline


# ---------------------------------------------------------------- zero-moment point, (12) to (17)


def random_edge(seed: int) -> tuple[Floats, Floats, Floats, float, Floats]:
    """p, a, d, r and a normal."""
    rng = np.random.default_rng(seed)
    normal = np.array([*rng.normal(0.0, 0.2, 2), 1.0])
    normal /= np.linalg.norm(normal)
    d = np.cross(normal, rng.normal(size=3))
    d /= np.linalg.norm(d)
    return rng.normal(size=3) + UP, rng.normal(0.0, 3.0, 3), d, float(rng.normal()), normal


@pytest.mark.parametrize('seed', range(5))
def test_zmp_is_the_formula(seed: int) -> None:
    """(12) with (13), about a point of the ground that is not the origin."""
    p, a, _, _, normal = random_edge(seed)
    o = np.array([3.0, -2.0, 0.7])
    F = np.array([0.0, 0.0, -G]) - a
    expected = o + np.cross(normal, np.cross(p - o, F)) / (normal @ F)
    found = zero_moment_point(p, a, normal, o, G)
    assert_close(found, expected, 1e-12)
    assert abs(normal @ (found - o)) < 1e-12
    # no moment along the ground about it
    assert np.abs(np.cross(normal, np.cross(p - found, F))).max() < 1e-12 * 30.0


@pytest.mark.parametrize('seed', range(5))
def test_edges_turn_round(seed: int) -> None:
    """(15) is negative where the zero-moment point is inside: it has been multiplied by n (g - a) < 0."""
    p, a, d, r, normal = random_edge(seed)
    value = edge_constraint(p, a, d, r, normal, G)
    written = written_edge(p, a, d, r, normal, np.array([0.0, 0.0, -G]))
    assert value == pytest.approx(-written, rel=1e-12)
    inside = float(d @ zero_moment_point(p, a, normal, np.zeros(3), G)) + r
    load = float(normal @ (a + G * UP))
    assert load > 0.0
    assert value == pytest.approx(inside * load, rel=1e-12)


@pytest.mark.parametrize('seed', range(5))
def test_edge_derivatives(seed: int) -> None:
    """(16) and (17) against differences, which are exact for a bilinear function."""
    p, a, d, r, normal = random_edge(seed)
    on_p, on_a = edge_gradient(p, a, d, r, normal, G)
    gravity = np.array([0.0, 0.0, -G])
    for i, e in enumerate(np.eye(3)):
        on = derivative(lambda t, e=e: edge_constraint(p + t * e, a, d, r, normal, G))
        assert on == pytest.approx(on_p[i], abs=1e-9)
        on = derivative(lambda t, e=e: edge_constraint(p, a + t * e, d, r, normal, G))
        assert on == pytest.approx(on_a[i], abs=1e-9)
    written = written_gradient(p, a, d, r, normal, gravity)
    assert_close(on_p, -written[0], 1e-12)
    assert_close(on_a, -written[1], 1e-12)

    x, H = np.concatenate([p, a]), edge_hessian(d, normal)

    def gradient(z: Floats) -> Floats:
        return np.concatenate(edge_gradient(z[:3], z[3:], d, r, normal, G))

    numeric = np.array([derivative(lambda t, e=e: gradient(x + t * e)) for e in np.eye(6)])
    assert_close(H, numeric, 1e-9)
    # symmetric and indefinite, not skew as in the document
    assert np.array_equal(H, H.T)
    assert np.linalg.eigvalsh(H)[0] == pytest.approx(-np.linalg.eigvalsh(H)[-1])
    gamma = edge_matrix(d, normal)
    assert np.array_equal(gamma, -gamma.T)


# ---------------------------------------------------------------- regions


@pytest.mark.parametrize('order', [(0, 1, 2, 3), (3, 0, 2, 1), (2, 3, 1, 0)])
def test_region_of_a_polygon(order: tuple[int, ...]) -> None:
    d, r = support_edges([tuple(FEET[k, :2]) for k in order], 0.02, 0.005)
    assert len(r) == 4
    assert (d @ np.zeros(2) + r).min() == pytest.approx(0.12)
    for point, inside in (
        ((0.16, 0.0), True),
        ((0.18, 0.0), False),
        ((0.0, -0.11), True),
        ((0.0, 0.13), False),
    ):
        assert ((d @ np.array(point) + r).min() > 0.0) == inside
    # points inside the hull, twice, or on an edge change nothing
    more = [tuple(FEET[k, :2]) for k in order] + [(0.0, 0.01), (0.19, 0.14), (0.19, 0.05)]
    assert len(support_edges(more, 0.02, 0.005)[1]) == 4


def test_region_of_lines_and_points() -> None:
    d, r = support_edges([(0.2, 0.1), (-0.2, -0.1)], 0.02, 0.005)
    along = np.array([2.0, 1.0]) / math.sqrt(5.0)
    aside = np.array([-1.0, 2.0]) / math.sqrt(5.0)
    half = math.hypot(0.2, 0.1) - 0.02
    for point, inside in (
        (0.0 * along, 0.005),
        (0.004 * aside, 0.001),
        (-0.006 * aside, -0.001),
        ((half + 0.01) * along, -0.01),
        (-(half - 0.001) * along, 0.001),
    ):
        assert (d @ point + r).min() == pytest.approx(inside, abs=1e-12)
    d, r = support_edges([(0.2, 0.1), (0.2, 0.1)], 0.02, 0.005)
    assert (d @ np.array([0.204, 0.1]) + r).min() == pytest.approx(0.001)
    assert len(support_edges([], 0.02, 0.005)[1]) == 0
    assert len(convex_hull([(0.0, 0.0), (1.0, 1.0), (0.5, 0.5), (0.25, 0.25)])) == 2


def test_small_regions_are_not_empty() -> None:
    for feet in (
        [(0.0, 0.0), (0.01, 0.0)],
        [(0.0, 0.0), (0.03, 0.0), (0.0, 0.001)],
        [(0.0, 0.0), (0.02, 0.0), (0.0, 0.03)],
    ):
        d, r = support_edges(feet, 0.05, 0.005)
        assert (d @ np.mean(feet, axis=0) + r).min() > 0.0


# ---------------------------------------------------------------- the sign of every row


def one_segment(feet: Floats, settings: ComSettings) -> tuple[Rows, Any]:
    """Rows of one stance phase on flat ground, in units of the height; and its edges."""
    edges = support_edges(
        [(x / HEIGHT, y / HEIGHT) for x, y, _ in feet], settings.margin, settings.line_width
    )
    segments = make_segments([1.0], [False], [False], settings.shortest)
    return make_rows(segments, [edges], np.ones(settings.samples), settings), edges


def values_of(rows: Rows, settings: ComSettings, p: Floats, w: Floats) -> dict[str, Floats]:
    """Values at one p and w for all samples, by kind, one entry for each inequality."""
    S = settings.samples
    c = rows.values(np.tile(p, (S, 1)), np.tile(w, (S, 1)))
    m = len(rows.edge_sample)
    parts = np.split(c, [m, m + 4 * S, m + 5 * S])
    return {
        k: part.reshape(-1, 2 if k == 'height' else S)[:, 0]
        for k, part in zip(('edges', 'friction', 'load', 'height'), parts, strict=True)
    }


@pytest.mark.parametrize('feet', [FEET, FEET[:3], FEET[[0, 3]], FEET[:1]], ids=['4', '3', '2', '1'])
def test_edges_hold_inside_and_not_outside(feet: Floats) -> None:
    settings = ComSettings()
    rows, (d, r) = one_segment(feet, settings)
    centre = feet[:, :2].mean(axis=0) / HEIGHT
    for k in range(len(r)):
        distance = float(d[k] @ centre + r[k])
        for step, holds in ((0.99 * distance, True), (distance + 0.01, False)):
            zmp = centre - step * d[k]
            # the push points from the zero-moment point to the centre of mass
            for com in (np.array([*zmp, 1.0]), np.array([*(centre + 0.3), 1.1])):
                w = 1.3 * (com - np.array([*zmp, 0.0])) / com[2]
                found = values_of(rows, settings, com, w)['edges']
                assert (found[k] > 0.0) == holds
                # c is the distance times the load
                assert found[k] == pytest.approx(1.3 * (distance - step), abs=1e-12)
    settings = ComSettings(n_ineq=2)
    slack = one_segment(feet, settings)[0].slack[: 6 * len(r)].reshape(-1, 6)
    assert (slack[:, :2] == 0).all()
    assert (slack[:, 2:] == HARD).all()


def test_friction_load_and_height() -> None:
    settings = ComSettings(mu=0.6, steady_load=0.1, height_band=0.02)
    rows, _ = one_segment(FEET, settings)
    p, least = np.array([0.0, 0.0, 1.0]), 0.6 / math.sqrt(2.0)
    for axis in range(2):
        for sign in (1.0, -1.0):
            for share, holds in ((0.99, True), (1.01, False)):
                w = np.array([0.0, 0.0, 0.8])
                w[axis] = sign * share * least * 0.8
                assert (values_of(rows, settings, p, w)['friction'].min() > 0.0) == holds
    # a corner of the pyramid is on the cone
    corner = np.array([least, least, 1.0])
    assert math.hypot(*corner[:2]) == pytest.approx(0.6)
    for load, holds in ((0.11, True), (0.09, False), (-0.5, False)):
        assert (values_of(rows, settings, p, np.array([0.0, 0.0, load]))['load'][0] > 0.0) == holds
    for height, above, below in ((1.0, True, True), (1.03, False, True), (0.97, True, False)):
        c = values_of(rows, settings, np.array([0.0, 0.0, height]), UP)['height']
        assert (c[0] > 0.0, c[1] > 0.0) == (above, below)


def test_rows_are_the_general_formulas() -> None:
    """In the frame of the ground and its units, on a slope, at a motion of the whole program."""
    given = gait_problem('walking_trot', slope=0.2, shift=2.0, clock=0.2, push=(0.1, 0.2, 0.0))
    program = make_program(given, DEFAULT, sample_tables(DEFAULT.samples))
    y = np.random.default_rng(0).normal(0.0, 0.3, (3, program.unknowns))
    point, rows, frame = program.evaluate(y), program.rows, program.frame
    gravity = frame.R @ np.array([0.0, 0.0, -1.0])
    for row, sample in enumerate(rows.edge_sample):
        d = np.array([*rows.d[row], 0.0]) @ frame.R
        p_W, a_W = point.p[sample] @ frame.R, (point.w[sample] + gravity) @ frame.R
        expected = edge_constraint(p_W, a_W, d, float(rows.r[row]), given.normal, 1.0)
        assert point.c[row] == pytest.approx(expected, abs=1e-9)
    # the linear model has the derivatives of the rows
    step = 1e-6 * np.random.default_rng(1).normal(size=y.shape)
    linear = rows.linearised(point.p, point.w)
    assert_close(linear.values(point.p, point.w), point.c, 1e-12)
    matrix = linear.matrix(np.arange(len(point.c)), program.P, program.A)
    model = matrix.reshape(len(point.c), -1) @ step.ravel()
    numeric = 0.5 * (program.evaluate(y + step).c - program.evaluate(y - step).c)
    assert_close(model, numeric, 1e-6)  # 1e-10 of values of order one by steps of order 1e-6


def test_forces_are_not_asked_of_flight() -> None:
    """No rows in flight, nor where it begins and ends; heights are limited everywhere."""
    segments = make_segments([1.0] * 3, [False, True, False], [False] * 3, 0.1)
    edges = [support_edges([(x, y) for x, y, _ in feet], 0.0, 0.01) for feet in (FEET, FLIGHT, FEET)]
    rows = make_rows(segments, edges, np.ones(18), ComSettings())
    m, carried = len(rows.r), [0, 1, 2, 3, 4, 13, 14, 15, 16, 17]
    assert set(rows.edge_sample.tolist()) == set(carried)
    assert rows.linear.sample[m:].tolist() == 5 * carried + 2 * [3, 5, 9, 11, 15, 17]
    # the least load falls to zero
    falls = 0.3 * np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    np.testing.assert_allclose(-rows.linear.offset[m + 40 : m + 50], np.concatenate([falls, falls[::-1]]))


# ---------------------------------------------------------------- cost


def documents_matrix(T: float) -> Floats:
    """(6) as it is written: coefficients in seconds, highest power first."""
    Q = np.zeros((6, 6))
    Q[:4, :4] = [
        [400 / 7 * T**7, 40 * T**6, 24 * T**5, 10 * T**4],
        [40 * T**6, 28.8 * T**5, 18 * T**4, 8 * T**3],
        [24 * T**5, 18 * T**4, 12 * T**3, 6 * T**2],
        [10 * T**4, 8 * T**3, 6 * T**2, 4 * T],
    ]
    return Q


@pytest.mark.parametrize('T', [0.05, 0.3, 1.7])
def test_acceleration_cost(T: float) -> None:
    """(6) in normalised time against the document's matrix and against quadrature."""
    X = np.random.default_rng(3).normal(size=6)
    found = X @ acceleration_matrix(np.array([T]))[0] @ X
    ends = X / np.array([1.0, T, T * T, 1.0, T, T * T])
    rows = np.array([eta(t, order) for t in (0.0, T) for order in range(3)])
    alpha = np.linalg.solve(rows, ends)
    # the condition of `rows` is up to 1e9
    assert found == pytest.approx(alpha @ documents_matrix(T) @ alpha, rel=1e-6)
    assert found == pytest.approx(alpha @ square_matrix(T, 2) @ alpha, rel=1e-6)
    times = np.linspace(0.0, T, 2001)
    a = np.array([eta(t, 2) @ alpha for t in times])
    assert found == pytest.approx(np.trapezoid(a * a, times), rel=1e-5)


def test_whole_cost() -> None:
    """All parts, against sums over fine samples of the motion in world axes."""
    given = gait_problem('crawl', rate=0.4, push=(0.1, -0.2, 0.05), strides=0.6)
    given = replace(given, start=replace(given.start, a=np.array([0.5, 0.2, -0.4])))
    result = solved(given)
    spline, w, h = motion(result), DEFAULT.weights, HEIGHT
    unit = math.sqrt(h / G)
    total, reference = 0.0, Reference(given, DEFAULT)
    for k in range(len(given.phases)):
        begin, end = spline.times[k : k + 2]
        t = begin + (end - begin) * (np.arange(400) + 0.5) / 400
        dt = (end - begin) / 400 / unit
        p, v, a = sample_spline(spline, t, t)
        path = [np.array([reference.path @ eta(time, order) for time in t]) for order in range(2)]
        total += w.acceleration * dt * ((a / G) ** 2).sum()
        total += w.path_position * dt * (((p - path[0])[:, :2] / h) ** 2).sum()
        total += w.path_height * dt * (((p - path[0])[:, 2] / h) ** 2).sum()
        total += w.path_velocity * dt * ((v - path[1]) ** 2).sum() / (G * h)
    p, v, _ = spline.at(float(spline.times[-1]))
    total += w.final_position * ((p - given.path.end.p) ** 2).sum() / h**2
    total += w.final_velocity * ((v - given.path.end.v) ** 2).sum() / (G * h)
    total += w.start_acceleration * ((spline.at(0.0)[2] - given.start.a) ** 2).sum() / G**2
    # the midpoint rule with 400 intervals per segment
    assert result.cost == pytest.approx(total, rel=1e-4)


def test_path_data() -> None:
    """The parts of a quintic are that quintic."""
    rng = np.random.default_rng(0)
    ends, knots = rng.normal(size=(6, 3)), np.array([0.0, 0.3, 0.5, 1.4])
    X = hermite_data(ends, 1.4, knots)
    tables = sample_tables(5)
    whole = hermite_data(ends, 1.4, np.array([0.0, 1.4]))[0]
    for k in range(3):
        s = (knots[k] + (knots[k + 1] - knots[k]) * np.linspace(0.0, 1.0, 5)) / 1.4
        fine = sample_tables(1401)
        expected = fine.position[np.round(s * 1400).astype(int)] @ whole
        assert_close(tables.position @ X[k], expected, 1e-12)


# ---------------------------------------------------------------- junctions and flight


@pytest.mark.parametrize('gait', GAITS)
def test_junctions(gait: str) -> None:
    for clock in (0.03, 0.3, 0.62):
        result = solved(gait_problem(gait, clock=clock, push=(0.1, -0.1, 0.05), shift=1.0))
        spline = motion(result)
        assert result.accepted, result.reason
        assert largest_gap(spline.coefficients, np.diff(spline.times)) < 1e-9
        assert result.gap < 1e-9
        for time in spline.times[1:-1]:
            sides = [spline.at(time + dt) for dt in (-1e-7, 1e-7)]
            assert np.abs(sides[0][0] - sides[1][0]).max() < 1e-6
            assert np.abs(sides[0][1] - sides[1][1]).max() < 1e-4


@pytest.mark.parametrize(
    'phases',
    [
        [(0.1, FLIGHT), (0.3, FEET)],
        [(0.2, FEET), (0.1, FLIGHT), (0.3, FEET)],
        [(0.2, FEET), (0.1, FLIGHT)],
        [(0.05, FLIGHT), (0.2, FEET), (0.1, FLIGHT)],
        [(0.05, FLIGHT), (0.01, FEET), (0.1, FLIGHT)],
        [(0.05, FLIGHT), (0.05, FLIGHT), (0.2, FEET)],
        [(0.2, FLIGHT)],
    ],
    ids=['first', 'middle', 'last', 'both', 'short stance', 'twice', 'only'],
)
def test_flight_is_a_parabola(phases: list[tuple[float, Floats]]) -> None:
    given = problem(*phases, v=(0.3, -0.2, 0.4))
    spline = motion(solved(given))
    gravity = np.array([0.0, 0.0, -G])
    np.testing.assert_allclose(spline.at(0.0)[0], given.start.p, atol=1e-12)
    np.testing.assert_allclose(spline.at(0.0)[1], given.start.v, atol=1e-12)
    for k, (duration, feet) in enumerate(phases):
        c = spline.coefficients[k]
        if len(feet) == 0 or duration < 0.02:
            np.testing.assert_allclose(c[2], 0.5 * gravity * duration**2, atol=1e-12)
            np.testing.assert_allclose(c[3:], 0.0, atol=1e-12)
        else:
            # no force where flight ends and begins
            a = c.T @ np.array([[0, 0, 2, 0, 0, 0], [0, 0, 2, 6, 12, 20]]).T / duration**2
            if k and len(phases[k - 1][1]) == 0:
                np.testing.assert_allclose(a[:, 0], gravity, atol=1e-9)
            if k + 1 < len(phases) and len(phases[k + 1][1]) == 0:
                np.testing.assert_allclose(a[:, 1], gravity, atol=1e-9)


def test_flight_lands_where_mechanics_says() -> None:
    """(10) with its factor t: p + v t + g t^2 / 2."""
    given = problem((0.2, FEET), (0.15, FLIGHT), (0.2, FEET))
    spline = motion(solved(given))
    p, v, _ = spline.at(0.2)
    landing = p + v * 0.15 + 0.5 * np.array([0.0, 0.0, -G]) * 0.15**2
    np.testing.assert_allclose(spline.at(0.35)[0], landing, atol=1e-12)


def test_accelerations_jump_only_where_feet_change() -> None:
    same = motion(solved(problem((0.2, FEET), (0.2, FEET), (0.1, FEET[[0, 2]]), (0.1, FEET[[1, 3]]))))

    def jump(time: float) -> float:
        return float(np.abs(same.at(time - 1e-9)[2] - same.at(time + 1e-9)[2]).max())

    assert jump(0.2) < 1e-5
    assert jump(0.5) > 0.2 * G  # from the feet of one side to those of the other


# ---------------------------------------------------------------- whole problems against another solver

CASES = [
    ('trot', {}),
    ('trot', {'slope': math.radians(15.0)}),
    ('walking_trot', {'rate': 0.5, 'shift': 3.0}),
    ('crawl', {'strides': 0.5}),
    ('pace', {}),
    ('bound', {}),
    ('flying_trot', {}),
    ('flying_trot', {'slope': -0.2, 'clock': 0.42}),
    ('pronk', {}),
]


@pytest.mark.parametrize(('gait', 'options'), CASES, ids=[f'{g}-{"-".join(o)}' for g, o in CASES])
def test_against_polynomials_in_seconds(gait: str, options: dict[str, Any]) -> None:
    given = gait_problem(gait, **({'clock': 0.05, 'push': (0.1, 0.15, -0.05)} | options))
    given = replace(given, start=replace(given.start, a=np.array([0.5, -0.4, 0.3])))
    reference = Reference(given, DEFAULT)
    first = reference.solve(1)[0]
    spline = motion(solved(given, replace(DEFAULT, iterations=1)))
    begin = 0.0
    for k, T in enumerate(reference.T):
        for share in np.linspace(0.0, 1.0, 7):
            p, _, a = sample_spline(spline, np.array([begin + share * T]), np.array([begin + 0.5 * T]))
            # Clarabel has tolerances of 1e-10 of costs that are flat along some directions
            assert np.abs(p[0] - first.at(k, share * T, 0)).max() < 2e-5
            assert np.abs(a[0] - first.at(k, share * T, 2)).max() < 2e-2
        begin += T
    # the fixed point of full steps has the least merit, and ours finds it too
    result = ComPlanner(EXACT).solve(given)
    last = reference.solve(10)[-1]
    assert result.merits[-1] == pytest.approx(last.merit, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize('gait', ['trot', 'crawl', 'flying_trot', 'pace'])
def test_no_motion_nearby_is_better(gait: str) -> None:
    given = gait_problem(gait, push=(0.1, 0.1, 0.0), strides=0.7)
    program = make_program(given, EXACT, sample_tables(EXACT.samples))
    at = None
    for _ in range(15):
        found = program.solve_model(at)
        assert found is not None
        at = program.evaluate(found[0] if at is None else at.y + 0.7 * (found[0] - at.y))
    assert at is not None
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-4):
        for _ in range(100):
            y = at.y + size * rng.normal(size=at.y.shape)
            assert program.evaluate(y).merit > at.merit - 1e-7


def test_stand_stays() -> None:
    """Where nothing is to be done, nothing is done."""
    spline = motion(solved(problem((0.5, FEET))))
    for time in np.linspace(0.0, 0.5, 11):
        p, v, a = spline.at(time)
        np.testing.assert_allclose(p, [0.0, 0.0, HEIGHT], atol=1e-9)
        assert max(np.abs(v).max(), np.abs(a).max()) < 1e-8


@pytest.mark.parametrize('angle', [0.0, math.radians(15.0)])
@pytest.mark.parametrize('gait', ['trot', 'walking_trot', 'crawl', 'flying_trot'])
def test_zmp_stays_within_the_feet(gait: str, angle: float) -> None:
    """In world axes, between the samples too, and far from the origin."""
    given = gait_problem(gait, slope=angle, push=(0.05, 0.1, 0.0), shift=20.0)
    first = solved(given)
    result = solved(given, previous=motion(first))
    spline = motion(result)
    assert result.zmp_slack < 1e-3
    for k, phase in enumerate(given.phases):
        if phase.is_flight:
            continue
        begin, end = spline.times[k : k + 2]
        t = np.linspace(begin, end, 42)[1:-1]
        p, _, a = sample_spline(spline, t, t)
        zmp = zero_moment_point(p, a, given.normal, given.ground_point, G)
        assert np.abs((zmp - given.ground_point) @ given.normal).max() < 1e-9
        load = (a + G * UP) @ given.normal
        x = np.array([math.cos(angle), 0.0, math.sin(angle)])
        feet = [(float(foot @ x), float(foot[1])) for foot in phase.polygon]
        d, r = support_edges(feet, 0.0, DEFAULT.line_width * HEIGHT)
        inside = (np.column_stack([zmp @ x, zmp[:, 1]]) @ d.T + r).min(axis=1)
        # samples are a fifth of the segment apart; near flight, where the load vanishes, it may be farther
        assert inside[load > 0.3 * G].min() > -0.003
        assert load.min() > -1e-9


@pytest.mark.parametrize('heading', [0.0, 2.0, 4.5])
@pytest.mark.parametrize('angle', [0.0, math.radians(15.0)])
def test_a_pushed_body_does_not_hop(heading: float, angle: float) -> None:
    """Slacks are those of a moment, which would be small where feet hardly carry: they carry all the time."""
    push = (1.5 * math.cos(heading), 1.5 * math.sin(heading), 0.0)
    given = gait_problem('trot', slope=angle, push=push)
    result = solved(given, previous=motion(solved(given)))
    assert result.zmp_slack > 0.01
    spline, share = motion(result), np.linspace(0.0, 1.0, DEFAULT.samples)
    for begin, end in itertools.pairwise(spline.times):
        t = begin + share * (end - begin)
        _, _, a = sample_spline(spline, t, np.full(len(t), 0.5 * (begin + end)))
        load = (a + G * UP) @ given.normal / (G * math.cos(angle))
        assert load.min() > DEFAULT.steady_load - 1e-6


def test_translation_changes_nothing() -> None:
    here, there = (gait_problem('crawl', push=(0.1, 0.1, 0.0), shift=s, time=s) for s in (0.0, 50.0))
    a, b = motion(solved(here)), motion(solved(there))
    for time in np.linspace(0.0, here.horizon, 9):
        np.testing.assert_allclose(b.at(50.0 + time)[0], a.at(time)[0] + 50.0, atol=1e-7)


def test_size_changes_nothing() -> None:
    """A robot of twice the size moves alike, in its own time."""
    small = gait_problem('trot', push=(0.1, 0.1, 0.0))
    root = math.sqrt(2.0)

    def larger(state: ComState) -> ComState:
        return ComState(2.0 * state.p, root * state.v, state.a)

    large = replace(
        small,
        phases=tuple(SupportPhase(root * phase.duration, 2.0 * phase.polygon) for phase in small.phases),
        start=larger(small.start),
        path=ReferencePath(larger(small.path.start), larger(small.path.end)),
        height=2.0 * HEIGHT,
    )
    a, b = motion(solved(small)), motion(solved(large))
    np.testing.assert_allclose(b.coefficients, 2.0 * a.coefficients, atol=1e-9)


# ---------------------------------------------------------------- iterations


def test_warm_start_goes_on() -> None:
    """From its own plan, a moment later, nothing much is left to do, and the motion is nearly the same."""
    first = motion(solved(gait_problem('trot', clock=0.1, push=(0.0, 0.1, 0.0)), EXACT))
    p, v, a = first.at(0.02)
    later = gait_problem('trot', clock=0.15, time=0.02)
    # the path has moved with the robot, its end with the horizon
    ahead = np.array([0.01, 0.0, 0.0])
    path = ReferencePath(
        replace(later.path.start, p=later.path.start.p + ahead),
        replace(later.path.end, p=later.path.end.p + ahead),
    )
    phases = tuple(replace(phase, polygon=phase.polygon + ahead) for phase in later.phases)
    later = replace(later, start=ComState(p, v, a), path=path, phases=phases)
    cold, warm = solved(later, EXACT), solved(later, DEFAULT, previous=first)
    assert warm.merits[-1] == pytest.approx(cold.merits[-1], rel=0.02, abs=1e-4)
    np.testing.assert_allclose(warm.spline.at(0.2)[0], first.at(0.2)[0], atol=0.01)  # type: ignore[union-attr]


@pytest.mark.parametrize('gait', ['walking_trot', 'flying_trot'])
def test_warm_start_keeps_accelerations(gait: str) -> None:
    """From its own start it is the motion itself; from another one its accelerations are the same."""
    given = gait_problem(gait, clock=0.15, time=7.0, slope=0.1, push=(0.1, 0.1, 0.0))
    result, tables = solved(given), sample_tables(DEFAULT.samples)
    program = make_program(given, DEFAULT, tables)
    same = program.evaluate(warm_start(program, given, motion(result)))
    assert same.merit == pytest.approx(result.merits[-1], rel=1e-6)
    dp, dv = np.array([0.02, -0.03, 0.01]), np.array([0.2, 0.1, -0.1])
    start = ComState(given.start.p + dp, given.start.v + dv, given.start.a)
    other = replace(given, start=start)
    program = make_program(other, DEFAULT, tables)
    point = program.evaluate(warm_start(program, other, motion(result)))
    assert_close(point.w, same.w, 1e-9)
    spline = ComSpline(motion(result).times, program.coefficients(point.y))
    for time in (7.0, 7.1, 7.3):
        expected = motion(result).at(time)[0] + dp + (time - 7.0) * dv
        np.testing.assert_allclose(spline.at(time)[0], expected, atol=1e-9)


def moved(given: ComProblem, start: ComState | None, way: Floats) -> ComProblem:
    """A problem of a robot that has gone some way, with another start if there is one."""

    def along(state: ComState) -> ComState:
        return replace(state, p=state.p + way)

    return replace(
        given,
        phases=tuple(replace(phase, polygon=phase.polygon + way) for phase in given.phases),
        start=start or along(given.start),
        path=ReferencePath(along(given.path.start), along(given.path.end)),
        ground_point=given.ground_point + way,
    )


@pytest.mark.parametrize('slope', [0.0, math.radians(15.0)])
@pytest.mark.parametrize('gait', ['trot', 'walking_trot', 'crawl', 'flying_trot'])
def test_receding_horizon(gait: str, slope: float) -> None:
    """A body that follows its plans, 50 in a second, with a push after 0.4 s, stays with its feet."""
    rng, planner, previous = np.random.default_rng(0), ComPlanner(DEFAULT), None
    speed = 0.2 if gait == 'crawl' else 0.5
    errors = []
    for k in range(80):
        time = 0.02 * k
        way = speed * time * np.array([math.cos(slope), 0.0, math.sin(slope)])
        clock = (0.1 + time / GAITS[gait][2]) % 1.0
        given = gait_problem(gait, (speed, 0.0), clock=clock, slope=slope, time=time, strides=0.8)
        nominal = moved(given, None, way)
        p, v, a = (
            previous.at(time) if previous is not None else (nominal.start.p, nominal.start.v, np.zeros(3))
        )
        v = v + rng.normal(0.0, 0.01, 3) + (np.array([0.1, 0.2, 0.0]) if k == 20 else 0.0)
        result = planner.solve(moved(given, ComState(p, v, a), way), previous)
        assert result.accepted, result.reason
        assert result.zmp_slack < 1e-3
        previous = motion(result)
        errors.append(float(np.abs(p - nominal.start.p).max()))
    assert max(errors[:20]) < 0.02
    assert 0.005 < max(errors[20:]) < 0.06  # of the push
    assert max(errors[60:]) < 0.025


def test_time_limit_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    given = gait_problem('trot', push=(0.3, 0.6, 0.0))
    assert solved(given, replace(EXACT, time_limit=0.0)).iterations == 1
    # where slacks are zero, hard rows have the same solution
    easy = gait_problem('crawl', push=(0.0, 0.05, 0.0), strides=0.4)
    soft, hard = (motion(solved(easy, replace(DEFAULT, n_ineq=n, tolerance=0.0))) for n in (None, 0))
    np.testing.assert_allclose(hard.coefficients, soft.coefficients, atol=1e-6)
    far = ComPlanner(DEFAULT).solve(problem((0.5, FEET + np.array([3.0, 0.0, 0.0]))))
    assert not far.accepted
    assert 'zero-moment point' in far.reason

    real = daqp.solve
    monkeypatch.setattr(daqp, 'solve', lambda *a, **o: (*real(*a, **o)[:2], -1, {}))
    stuck = ComPlanner(DEFAULT).solve(given)
    assert (stuck.accepted, stuck.spline, stuck.iterations) == (False, None, 0)
    assert 'not solved' in stuck.reason
    monkeypatch.undo()
    # a failure later on leaves what has been found
    model = Program.solve_model
    monkeypatch.setattr(Program, 'solve_model', lambda self, at: model(self, at) if at is None else None)
    stuck = ComPlanner(DEFAULT).solve(given)
    assert stuck.iterations == 1
    assert stuck.spline is not None
    assert not stuck.converged


def random_problem(rng: np.random.Generator) -> ComProblem:
    gait = str(rng.choice(list(GAITS)))
    wild = float(rng.choice([0.2, 0.5, 2.0]))
    given = gait_problem(
        gait,
        velocity=(rng.normal(0.0, wild), rng.normal(0.0, wild)),
        rate=float(rng.normal()),
        clock=float(rng.random()),
        strides=float(rng.uniform(0.2, 0.7)),
        slope=float(rng.uniform(-0.3, 0.3)),
        push=tuple(rng.normal(0.0, wild, 3)),
        time=float(rng.uniform(0.0, 100.0)),
        shift=float(rng.choice([0.0, 1.0, 100.0])),
    )
    off = rng.normal(0.0, float(rng.choice([0.0, 0.02, 0.2])), 3)
    return replace(given, start=ComState(given.start.p + off, given.start.v, rng.normal(0.0, 5.0, 3)))


def check_anything(count: int, seed: int) -> tuple[int, list[float]]:
    """Solve random problems, warm and cold; how many were accepted, and how long they took."""
    rng, planner, previous = np.random.default_rng(seed), ComPlanner(DEFAULT), None
    accepted, times = 0, []
    for _ in range(count):
        given = random_problem(rng)
        last = previous if rng.random() < 0.6 else None
        if last is not None and rng.random() < 0.8:
            last = ComSpline(
                last.times - last.times[0] + given.time - rng.uniform(0.0, 0.1), last.coefficients
            )
        result = planner.solve(given, last)
        assert result.spline is not None, result.reason
        assert np.isfinite(result.spline.coefficients).all()
        assert result.gap < 1e-6
        assert all(
            b <= a + 1e-12 * abs(a) for a, b in zip(result.merits[:-1], result.merits[1:], strict=True)
        )
        accepted += result.accepted
        times.append(result.solve_time)
        previous = result.spline
    return accepted, times


@pytest.mark.parametrize('count', slow_but([400], [400, 2000]))
def test_fuzz_starting_states(count: int) -> None:
    """Always finite, the merit never increases, and nothing is raised."""
    accepted, _ = check_anything(count, 1)
    assert accepted > 0.4 * count  # many of them have no good motion


def test_fuzz_numbers() -> None:
    """Numbers of any size, short and long phases, feet anywhere: a result, accepted only if it is good."""
    rng, planner = np.random.default_rng(2), ComPlanner(DEFAULT)
    previous = motion(solved(problem((0.5, FEET))))

    def vector() -> Floats:
        return np.asarray(rng.normal(size=3) * 10.0 ** rng.choice([-300, -9, -2, -1, 0, 3, 12, 150, 300]))

    def state() -> ComState:
        return ComState(vector(), vector(), vector())

    for _ in range(300):
        phases = tuple(
            SupportPhase(
                float(10.0 ** rng.choice([-300, -12, -5, -2, -1, -0.5, 0, 2, 9, 200])),
                np.array([vector() for _ in range(rng.integers(0, 5))]).reshape(-1, 3),
            )
            for _ in range(rng.integers(1, 5))
        )
        given = ComProblem(
            phases,
            state(),
            ReferencePath(state(), state()),
            vector(),
            UP,
            float(10.0 ** rng.choice([-6, -1, 0, 4])),
            float(rng.choice([1e-3, 9.81, 1e4])),
            float(rng.choice([0.0, 1e12])),
        )
        result = planner.solve(given, previous if rng.random() < 0.5 else None)
        assert result.accepted == (not result.reason)
        if result.accepted:
            assert result.spline is not None
            assert np.isfinite(result.spline.coefficients).all()


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ('change', 'culprit'),
    [
        (lambda p: replace(p, start=replace(p.start, v=np.array([0.0, math.nan, 0.0]))), 'start.v'),
        (
            lambda p: replace(p, path=replace(p.path, end=replace(p.path.end, a=np.full(3, math.inf)))),
            'path.end.a',
        ),
        (
            lambda p: replace(p, phases=(SupportPhase(0.1, np.full((2, 3), math.nan)),)),
            r'phases\[0\].polygon',
        ),
        (lambda p: replace(p, phases=(p.phases[0], SupportPhase(0.0, FEET))), r'phases\[1\].duration'),
        (lambda p: replace(p, phases=(p.phases[0], SupportPhase(math.nan, FEET))), r'phases\[1\].duration'),
        (lambda p: replace(p, phases=(SupportPhase(0.1, np.zeros((2, 2))),)), 'shape'),
        (lambda p: replace(p, phases=()), 'phases'),
        (lambda p: replace(p, ground_point=np.array([0.0, 0.0])), 'ground_point'),
        (lambda p: replace(p, normal=-UP), 'normal'),
        (lambda p: replace(p, normal=np.zeros(3)), 'normal'),
        (lambda p: replace(p, height=0.0), 'height'),
        (lambda p: replace(p, g=-1.0), 'g is'),
        (lambda p: replace(p, time=math.nan), 'time'),
    ],
)
def test_bad_problems(change: Any, culprit: str) -> None:
    with pytest.raises(ArgumentError, match=culprit):
        ComPlanner().solve(change(problem((0.3, FEET))))


@pytest.mark.parametrize(
    'settings',
    [
        ComSettings(samples=2),
        ComSettings(iterations=0),
        ComSettings(mu=math.nan),
        ComSettings(margin=-0.1),
        ComSettings(weights=ComWeights(acceleration=0.0)),
        ComSettings(weights=ComWeights(path_height=-1.0)),
    ],
)
def test_bad_settings(settings: ComSettings) -> None:
    with pytest.raises(ArgumentError, match='expected'):
        ComPlanner(settings)


# ---------------------------------------------------------------- where in a plan the robot is (18)


def test_nearest_time() -> None:
    spline = motion(solved(gait_problem('trot', velocity=(0.6, 0.0), push=(0.0, 0.1, 0.0), time=3.0)))
    for time in (3.0, 3.03, 3.11, 3.4):
        p, v, _ = spline.at(time)
        assert nearest_time(spline, p, v, time + 0.015, 0.04, 0.17) == pytest.approx(time, abs=1e-3)
    # in place, sideways sway passes each place twice: the velocity tells which it is, and time is not lost
    sway = motion(solved(problem((0.3, FEET), (0.3, FEET), v=(0.0, 0.3, 0.0))))
    p, v, _ = sway.at(0.2)
    assert nearest_time(sway, p, v, 0.2, 0.05, 0.17) == pytest.approx(0.2, abs=2e-3)
    assert nearest_time(sway, p + 5.0, v, 0.2, 0.05, 0.17) == pytest.approx(0.2, abs=0.051)
    # beyond the plan: its ends
    assert nearest_time(sway, p, v, 7.0, 0.05, 0.17) == pytest.approx(0.6)
    assert nearest_time(sway, p, v, -7.0, 0.05, 0.17) == pytest.approx(0.0)


# ---------------------------------------------------------------- planned forces


def test_force_shares() -> None:
    line = FEET[[0, 3]]
    assert_close(force_shares(line, 0.75 * line[0] + 0.25 * line[1]), [0.75, 0.25], 1e-12)
    assert_close(force_shares(line, 1.2 * line[0] - 0.2 * line[1]), [1.0, 0.0], 1e-12)
    assert_close(force_shares(FEET[:1], np.zeros(3)), [1.0], 1e-12)
    assert_close(force_shares(FEET, np.zeros(3)), [0.25] * 4, 1e-12)
    rng = np.random.default_rng(0)
    for count in (3, 4):
        for _ in range(50):
            feet = FEET[:count] + rng.normal(0.0, 0.02, (count, 3)) * [1.0, 1.0, 0.0]
            centre = rng.dirichlet(np.ones(count)) @ feet
            shares = force_shares(feet, centre)
            assert shares.min() >= 0.0
            assert_close(shares.sum(), 1.0, 1e-12)
            if count == 3:
                assert_close(shares @ feet, centre, 1e-9)


def test_planned_forces() -> None:
    """They carry the body, and their centre is the zero-moment point."""
    given = gait_problem('walking_trot', push=(0.0, 0.05, 0.0), clock=0.2)
    spline = motion(solved(given))
    down = np.zeros((len(given.phases), 4), dtype=bool)
    feet = np.zeros((len(given.phases), 4, 3))
    for k, phase in enumerate(given.phases):
        down[k, : len(phase.polygon)] = True
        feet[k, : len(phase.polygon)] = phase.polygon
    contacts = ContactSchedule(spline.times, down)
    forces = planned_forces(spline, contacts, feet, 12.0, G, UP)
    assert forces.shape == (len(given.phases), 4)
    assert (forces[~down] == 0.0).all()
    for k in range(len(given.phases)):
        p, _, a = spline.at(float(spline.times[k : k + 2].mean()))
        assert forces[k].sum() == pytest.approx(12.0 * (G + a[2]))
        zmp = zero_moment_point(p, a, UP, np.zeros(3), G)
        centre = forces[k] @ feet[k] / forces[k].sum()
        # two feet: the strip is 6 mm wide to each side of their line
        assert np.abs(centre - zmp).max() < 0.007


def test_no_forces_in_flight() -> None:
    given = problem((0.2, FEET), (0.1, FLIGHT), (0.2, FEET))
    spline = motion(solved(given))
    down = np.array([[True] * 4, [False] * 4, [True] * 4])
    forces = planned_forces(
        spline, ContactSchedule(spline.times, down), np.tile(FEET, (3, 1, 1)), 10.0, G, UP
    )
    assert (forces[1] == 0.0).all()
    assert forces[0].sum() > 10.0 * G
