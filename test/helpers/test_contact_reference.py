# SPDX-License-Identifier: Apache-2.0
"""The dense contact reference against closed forms, another solver and the laws it must obey."""

from __future__ import annotations

import numpy as np
import pytest
import simple_robots as robots
from closeness import assert_close
from reference_contact import (
    Ground,
    Problem,
    Spring,
    impulse_problem,
    in_disc,
    solve_impulses,
    spring_contact,
    spring_rates,
    spring_trajectory,
    step_impulse,
    violations,
)
from scipy.optimize import nnls

DT, G = 1e-3, 9.81
# Sweeps stop at 1e-12 m/s; what is left is that times the number of sweeps that would still follow.
SOLVED = 1e-10
both_sets = pytest.mark.parametrize('cone', [False, True], ids=['pyramid', 'cone'])


def random_contact(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state (q, u, tau) of a quadruped with most of its feet below the ground, moving in all directions."""
    model, rng = robots.quadruped(name), np.random.default_rng([seed, 7])
    q = model.standing.copy()
    q[2] -= 0.01
    q[3:7] = robots.quaternion_about([0.6, 0.0, 0.8], 0.02 * rng.normal())
    q[7:] += 0.02 * rng.normal(size=model.nj)
    u = rng.normal(size=model.nv)
    u[2] -= 2.0
    return q, u, 5.0 * rng.normal(size=model.nj)


@both_sets
@pytest.mark.parametrize('name', robots.QUADRUPEDS)
@pytest.mark.parametrize('restitution', [0.0, 0.4])
def test_conditions_hold(name: str, restitution: float, cone: bool, seed: int) -> None:
    q, u, tau = random_contact(name, seed)
    model, reference = robots.quadruped(name), robots.quadruped_reference(name)
    ground = Ground(0.5, restitution)
    problem = impulse_problem(reference, q, u, tau, robots.points_of(model), ground, DT)
    assert len(problem.active) >= 2
    p = solve_impulses(problem, cone)
    for key, value in violations(problem, p, cone).items():
        assert value <= SOLVED, (key, value)
    assert np.abs(p).max() > 1e-3
    # the same in generalised coordinates
    assert_close(problem.J @ problem.u_after(p), problem.velocity(p), what='velocity')
    if restitution == 0.0:  # plastic impact with friction within its set only takes energy
        after = problem.u_after(p)
        assert after @ problem.M @ after <= problem.u_free @ problem.M @ problem.u_free


@both_sets
def test_conditions_see_what_is_wrong(cone: bool) -> None:
    """Every violation is found when a right answer is spoilt."""
    q, u, tau = random_contact('go2', 0)
    model, reference = robots.quadruped('go2'), robots.quadruped_reference('go2')
    problem = impulse_problem(reference, q, u, tau, robots.points_of(model), Ground(0.5), DT)
    p = solve_impulses(problem, cone)
    touching = int(np.argmax(p[2::3]))
    spoilt = {
        'approach': p * (np.arange(len(p)) % 3 != 2),
        'float': p + np.where(np.arange(len(p)) % 3 == 2, 0.1, 0.0),
        'pull': p - np.where(np.arange(len(p)) == 3 * touching + 2, 2.0 * p[3 * touching + 2], 0.0),
        'friction': p * np.where(np.arange(len(p)) % 3 == 2, 1.0, 100.0),
        'slip': p * np.where(np.arange(len(p)) % 3 == 2, 1.0, 0.5),
        'direction': p * np.where(np.arange(len(p)) % 3 == 2, 1.0, -1.0),
    }
    for key, wrong in spoilt.items():
        assert violations(problem, wrong, cone)[key] > 1e-3, key


def test_frictionless_is_a_convex_problem(seed: int) -> None:
    """Without friction the impulses minimise p A p / 2 + b p over p >= 0, which NNLS solves."""
    q, u, tau = random_contact('a1', seed)
    reference, points = robots.quadruped_reference('a1'), robots.points_of(robots.quadruped('a1'))
    problem = impulse_problem(reference, q, u, tau, points, Ground(0.0, 0.3), DT)
    p = solve_impulses(problem, cone=True)
    A, b = problem.A[2::3, 2::3], (problem.J @ problem.u_free)[2::3] - problem.target
    L = np.linalg.cholesky(A)
    expected, _ = nnls(L.T, np.linalg.solve(L, -b))
    assert_close(p[2::3], expected, what='normal impulses')
    assert np.all(p.reshape(-1, 3)[:, :2] == 0.0)


# A foot of a falling robot: friction lifts it, and plain sweeps alternate between no impulse and too much.
LIFTING = np.array([[5.10, 3.31, -1.46], [3.31, 2.55, -1.04], [-1.46, -1.04, 0.66]])


@both_sets
def test_friction_that_lifts(cone: bool) -> None:
    u = np.array([2.80, 2.37, -0.42])
    M = np.linalg.inv(LIFTING)
    problem = Problem(np.array([0]), M, np.eye(3), LIFTING, u, u, np.zeros(1), 0.6)
    p = solve_impulses(problem, cone)
    assert p[2] > 0.1
    for key, value in violations(problem, p, cone).items():
        assert value <= SOLVED, (key, value)


@pytest.mark.parametrize('radius', [0.01, 0.3, 10.0])
def test_friction_disc(radius: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(2, 2))
    A, b = B @ B.T + 0.1 * np.eye(2), rng.normal(size=2)
    x = in_disc(A, b, radius)
    angles = np.linspace(0.0, 2.0 * np.pi, 3601)
    tried = np.array([r * np.array([np.cos(a), np.sin(a)]) for r in (radius, 0.7 * radius) for a in angles])

    def cost(x: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum('...i,ij,...j->...', x, A, x) + x @ b

    assert np.linalg.norm(x) <= radius * (1.0 + 1e-12)
    assert cost(x) <= cost(tried).min() + 1e-9


@pytest.mark.parametrize('restitution', [0.0, 0.5, 1.0])
def test_ball_impact(restitution: float) -> None:
    model = robots.ball(mass=2.0, radius=0.1)
    q, u = robots.upright(model, 0.0999), np.array([0.0, 0.0, -3.0, 0.0, 0.0, 0.0])
    _, after, impulses = step_impulse(
        robots.simple_reference(model),
        q,
        u,
        np.zeros(0),
        robots.points_of(model),
        Ground(0.5, restitution),
        DT,
        True,
    )
    assert_close(after[2], restitution * 3.0, what='speed')
    assert_close(impulses[0], [0.0, 0.0, 2.0 * (3.0 + G * DT + 3.0 * restitution)], what='impulse')


@both_sets
def test_sliding_ball_starts_to_roll(cone: bool) -> None:
    """A ball that slides at an angle: friction mu p against the sliding, and spin as its lever says."""
    model, mu = robots.ball(mass=2.0, radius=0.1), 0.2
    q, u = robots.upright(model, 0.0999), np.array([3.0, 4.0, 0.0, 0.0, 0.0, 0.0])
    _, after, impulses = step_impulse(
        robots.simple_reference(model), q, u, np.zeros(0), robots.points_of(model), Ground(mu), DT, cone
    )
    direction = np.array([0.6, 0.8]) if cone else np.array([1.0, 1.0])
    assert_close(impulses[0, :2], -mu * 2.0 * G * DT * direction, what='friction')
    assert_close(after[:2], u[:2] - mu * G * DT * direction, what='velocity')
    moment = 0.4 * 2.0 * 0.1**2
    assert_close(after[3:5], np.array([-0.1, 0.1]) * impulses[0, [1, 0]] / -moment, what='spin')


@pytest.mark.parametrize('direction', [0.0, 0.5, 2.0])
@pytest.mark.parametrize(('angle', 'sticks'), [(0.3, True), (0.6, False)])
def test_block_on_a_slope(angle: float, sticks: bool, direction: float) -> None:
    """tan(0.3) < mu < tan(0.6)."""
    model, mu = robots.block(), 0.5
    q = robots.on_slope(robots.upright(model, 0.1 - 1e-9), angle, direction)
    axes = robots.turn(robots.slope_axis(direction), angle)
    u, downhill = np.zeros(6), axes @ [np.cos(direction), np.sin(direction), 0.0]
    for _ in range(10):
        q, u, impulses = step_impulse(
            robots.simple_reference(model),
            q,
            u,
            np.zeros(0),
            robots.points_of(model),
            Ground(mu, axes=axes),
            DT,
            True,
        )
    acceleration = 0.0 if sticks else G * (np.sin(angle) - mu * np.cos(angle))
    # the orientation of the block is off by rounding, so that corners differ by 1e-17 m: no effect at 1e-9
    assert_close(u[:3], 10 * DT * acceleration * downhill, 1e-9, what='velocity', scale=1e-2)
    expected = 2.0 * (acceleration * downhill + [0.0, 0.0, G])
    assert_close(impulses.sum(axis=0) / DT, expected, 1e-7, what='force')  # of impulses of 1e-2 N s


# ---------------------------------------------------------------- spring-damper


def test_spring_formulas() -> None:
    """By hand: z = -0.01, s = 0.1, K = 100, D = 10."""
    spring, zero = Spring(100.0, 10.0), np.zeros(2)
    normal, f_t, rate = spring_contact(spring, 0.5, -0.01, -0.2, np.array([0.03, 0.0]), zero)
    assert normal == pytest.approx(0.1 * (1.0 + 2.0))
    assert f_t == pytest.approx([-0.03, 0.0])
    assert rate == pytest.approx([0.03, 0.0])
    # sliding: limited to 0.15 N, and the deflection lags so that -K s delta - D s rate is that force
    delta = np.array([0.0, 0.02])
    normal, f_t, rate = spring_contact(spring, 0.5, -0.01, -0.2, np.array([0.3, 0.4]), delta)
    assert np.linalg.norm(f_t) == pytest.approx(0.15)
    assert f_t == pytest.approx(0.15 * np.array([-0.3, -0.6]) / np.hypot(0.3, 0.6))
    assert -100.0 * 0.1 * delta - 10.0 * 0.1 * rate == pytest.approx(f_t)
    # no pulling, and relaxation out of contact
    assert spring_contact(spring, 0.5, -0.01, 0.2, zero, zero)[0] == 0.0
    normal, f_t, rate = spring_contact(spring, 0.5, 0.01, -0.2, np.array([0.3, 0.4]), delta)
    assert (normal, *f_t) == (0.0, 0.0, 0.0)
    assert rate == pytest.approx(-10.0 * delta)


def test_spring_rest_is_an_equilibrium() -> None:
    """K |z|^(3/2) carries the weight, K s delta the pull downhill."""
    model, spring, angle = robots.ball(2.0, 0.1), Spring(), 0.2
    depth = (2.0 * G * np.cos(angle) / spring.stiffness) ** (2.0 / 3.0)
    axes = robots.turn([0.0, 1.0, 0.0], angle)
    q = robots.on_slope(robots.upright(model, 0.1 - depth), angle, 0.0)
    delta = np.array([[2.0 * G * np.sin(angle) / (spring.stiffness * np.sqrt(depth)), 0.0]])
    reference = robots.simple_reference(model)
    arguments = (np.zeros(0), robots.points_of(model), Ground(0.5, axes=axes), spring)
    du, rate, forces = spring_rates(reference, q, np.zeros(6), delta, *arguments)
    assert_close(axes @ forces[0], [0.0, 0.0, 2.0 * G], what='force')
    assert_close(du[:3], np.zeros(3), what='acceleration')  # it rolls, but its centre is not pushed yet
    assert_close(rate, np.zeros((1, 2)), what='rate')


@pytest.mark.slow
def test_spring_trajectory_converges() -> None:
    """Kinks (slip to stick) cost the second order: a quarter of the step, less than half the error."""
    model = robots.ball(2.0, 0.1)
    q, u = robots.upright(model, 0.0995), np.array([0.4, 0.2, -0.5, 0.0, 0.0, 3.0])
    reference, ground = robots.simple_reference(model), Ground(0.3)
    ends = [
        spring_trajectory(
            reference, q, u, np.zeros(0), robots.points_of(model), ground, Spring(), 0.01, steps
        )[1]
        for steps in (250, 1000, 8000)
    ]
    errors = [float(np.abs(end - ends[2]).max()) for end in ends[:2]]
    assert errors[1] < 0.5 * errors[0] < 1e-2
    assert ends[2][2] > -0.5 + 1e-3  # it did touch
