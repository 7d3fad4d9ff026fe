# SPDX-License-Identifier: Apache-2.0
"""The contact solver against the laws of contact, other solvers, an enumeration, and the energy balance."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import contact_problems as cp
import numpy as np
import pytest
import simple_robots as robots
from jamming_states import HARDEST, JAMMING
from reference_contact import bias
from reference_coulomb import planar_solutions, solve_by_pinocchio

TOLERANCE = 1e-6  # default of the simulator [m/s]
# A residual r leaves each law on its own violated by at most r sqrt(1 + mu^2) (velocities and cone), and by
# twice that where two of them enter (direction); mu is 1.5 at most. Rounding is far below.
LAW = 4.0 * TOLERANCE
# Pinocchio's M, h and J against ours, and velocities of up to 1e2 with conditions of up to 1e4 (the chain).
MOTION = 1e-9
# Steps that may miss the tolerance.
RARE = 5e-4


# ---------------------------------------------------------------- the laws, on random problems


def singular(result: cp.Result, points: np.ndarray) -> bool:
    """Whether several points share a body, such that their impulses are not unique."""
    values = np.linalg.eigvalsh(result.delassus(points))
    return bool(values[0] < 1e-10 * values[-1])


def kinds(result: cp.Result) -> collections.Counter[str]:
    """What happens in a step."""
    touching, mu, cone = result.touching(), result.family.mu, result.family.friction == 'cone'
    found: collections.Counter[str] = collections.Counter(problems=1)
    found['flight'] = int(len(touching) == 0)
    if len(touching):
        found['singular'] = int(singular(result, touching))
        speed = np.linalg.norm(result.velocity[touching, :2], axis=1)
        p = result.impulse[touching]
        share = np.linalg.norm(p[:, :2], axis=1) if cone else np.abs(p[:, :2]).max(axis=1)
        found['sliding'] = int(np.any(speed > 1e-3))
        found['sticking'] = int(np.any((speed < 1e-5) & (share < 0.99 * mu * p[:, 2])))
    nj = len(result.lower)
    if nj:
        x, most = result.defect[-nj:], result.family.dt * result.coulomb
        found['joint stops'] = int(np.any((np.abs(x) - most) * result.joint_weights > 1e-3))
        found['joint sticks'] = int(np.any((most > 0.0) & (np.abs(result.after[-nj:]) < 1e-5)))
        found['joint slides'] = int(np.any((most > 0.0) & (np.abs(result.after[-nj:]) > 1e-3)))
    return found


def broken_laws(result: cp.Result) -> dict[str, float]:
    """Violations that are larger than the tolerance explains; of a step that converged."""
    laws = cp.contact_violations(result) | cp.joint_violations(result, still=LAW)
    laws['settled'] = result.settled
    return {key: value for key, value in laws.items() if not value <= LAW}


def check_problems(qd: Any, seed: int, families: int, each: int) -> collections.Counter[str]:
    """The laws on random problems of all robots; returns what happened in them."""
    counts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    for robot in cp.ROBOTS:
        for k, result in enumerate(cp.problems(qd, robot, seed, families, each)):
            counts += kinds(result)
            counts['unconverged'] += int(not result.converged)
            found = broken_laws(result) if result.converged else {}
            error, residual = cp.motion_error(result), cp.natural_residual(result)
            if not error <= MOTION * max(1.0, float(np.abs(result.after).max())):
                found['equation of motion'] = error
            # Where more than six joints rest, their speeds before they were set to zero are not unique: these
            # are below the tolerance, and change the residual by 0.2 of it at most in 7e4 problems.
            if not abs(residual - result.residual) <= 0.5 * TOLERANCE + 0.01 * result.residual:
                found['residual is'] = residual
            if found:
                wrong.append(f'{robot} {k}: {found}, said to be {result.residual:.2g}; {result.family}')
    assert not wrong, f'{len(wrong)} of {counts}:\n' + '\n'.join(wrong[:20])
    assert counts['unconverged'] <= RARE * counts['problems'], counts
    return counts


def check_variety(counts: collections.Counter[str]) -> None:
    """Problems of every kind were among them."""
    shares = {
        'singular': 0.1,
        'sliding': 0.3,
        'sticking': 0.1,
        'joint stops': 0.1,
        'joint sticks': 0.1,
        'joint slides': 0.2,
    }
    for kind, share in shares.items():
        assert counts[kind] >= share * counts['problems'], (kind, counts)
    assert counts['flight'] <= 0.4 * counts['problems'], counts


@pytest.mark.parametrize('seed', [0, 1], ids=['seed0', 'seed1'])
def test_laws_of_contact(qd: Any, seed: int) -> None:
    """420 problems: equation of motion, Signorini, Coulomb, dry friction and limits of the joints."""
    check_variety(check_problems(qd, seed, families=6, each=10))


@pytest.mark.slow
@pytest.mark.parametrize('seed', [7], ids=['seed7'])
def test_laws_of_contact_ten_thousand_times(qd: Any, seed: int) -> None:
    counts = check_problems(qd, seed, families=143, each=10)
    assert counts['problems'] >= 10_000
    check_variety(counts)


@pytest.mark.slow
@pytest.mark.parametrize('joint_friction', [False, True], ids=['no_joint_friction', 'joint_friction'])
@pytest.mark.parametrize('robot', ['mini_cheetah', 'go2', 'anymal_c'])
@pytest.mark.parametrize('seed', [0], ids=['seed0'])
def test_laws_along_a_fall(qd: Any, robot: str, joint_friction: bool, seed: int) -> None:
    """The same laws where a step begins with what the last one left: a limp robot falls and comes to rest."""
    rng = np.random.default_rng([seed, 13])
    family = cp.Family(robot, 'cone', 0.8, 1e-3, 0.2, joint_friction, joint_limits=True)
    sim, reference = cp.simulator_of(qd, family)
    sim.reset(*cp.falling(sim.model, reference, rng))
    counts: collections.Counter[str] = collections.Counter()
    for k in range(1000):
        result = cp.next_step(sim, reference, family, np.zeros(sim.model.nj))
        counts += kinds(result)
        assert result.converged, k
        assert not broken_laws(result), (k, broken_laws(result))
        assert cp.motion_error(result) <= MOTION * max(1.0, float(np.abs(result.after).max())), k
    assert counts['flight'] < 500, counts
    assert counts['sliding'] > 50, counts
    assert counts['sticking'] > 50, counts


@pytest.mark.parametrize('state', [*JAMMING, *HARDEST])
def test_legs_that_all_but_jam(qd: Any, state: str) -> None:
    """Steps that end in a local minimum of |F| from every start but those near the solution."""
    family = cp.Family('anymal_c', 'cone', 0.5, 1e-3, 0.8, joint_friction=False, joint_limits=True)
    sim, reference = cp.simulator_of(qd, family)
    q, u, tau = (x.copy() for x in (JAMMING | HARDEST)[state])
    q[3:7] /= np.linalg.norm(q[3:7])
    result = cp.take_step(sim, reference, family, (q, u, tau))
    # more sweeps precede the attempts after the first ones
    assert sim.sweeps > 3 or state not in HARDEST
    assert sim.iterations > 8
    assert result.converged
    assert result.residual <= TOLERANCE
    assert not broken_laws(result)
    assert cp.motion_error(result) <= MOTION * max(1.0, float(np.abs(result.after).max()))


@pytest.mark.parametrize('seed', [5], ids=['seed5'])
def test_checks_see_what_is_wrong(qd: Any, seed: int) -> None:
    """Every law is found broken when a right answer is spoilt by 1e-4 m/s."""
    family = cp.Family('go2', 'cone', 0.6, 1e-3, 0.0, joint_friction=True, joint_limits=True)
    sim, reference = cp.simulator_of(qd, family)
    rng, seen = np.random.default_rng(seed), set()
    for _ in range(40):
        result = cp.take_step(sim, reference, family, cp.draw_state(sim.model, reference, family, rng))
        touching = result.touching()
        if not len(touching) or broken_laws(result):
            continue
        k = int(touching[np.argmax(result.impulse[touching, 2])])
        step = 1e-4 / result.weights[k]
        for axis, sign in ((0, 1.0), (1, 1.0), (2, 1.0), (2, -1.0)):
            p = result.p.copy()
            p[3 * k + axis] += sign * step
            seen |= set(broken_laws(replace(result, p=p)))
            assert cp.motion_error(replace(result, p=p)) > MOTION
        pushed = result.after + np.linalg.solve(result.M, result.J.T @ (result.p == 0.0)) * -1e-3
        for after in (result.after + 1e-3, result.after - 1e-3, pushed):
            changed = replace(result, after=after)
            seen |= set(broken_laws(changed))
            assert cp.natural_residual(changed) > 10.0 * TOLERANCE
        seen |= set(broken_laws(replace(result, p=-result.p)))
        seen |= set(broken_laws(replace(result, settled=1e-5)))
    expected = {'approach', 'pull', 'float', 'friction', 'slip', 'direction', 'limit', 'joint', 'settled'}
    assert seen == expected


# ---------------------------------------------------------------- other solvers


def may_jam(G: np.ndarray, mu: float) -> bool:
    """Whether friction at its limit can press a contact into the ground as fast as its impulse lifts it.

    Then there may be several solutions (Painleve): the contact opens, or it sticks.
    """
    blocks = [G[k : k + 3, k : k + 3] for k in range(0, len(G), 3)]
    return any(mu * float(np.linalg.norm(D[2, :2])) >= D[2, 2] for D in blocks)


@pytest.mark.slow
@pytest.mark.parametrize('method', ['ADMM', 'PGS'])
@pytest.mark.parametrize('robot', [*robots.QUADRUPEDS, 'sled', 'chain'])
@pytest.mark.parametrize('seed', [11], ids=['seed11'])
def test_pinocchio_finds_the_same_velocities(qd: Any, method: str, robot: str, seed: int) -> None:
    """Where the solution is unique, and Pinocchio's solver has converged: the same velocities to 1e-6 m/s."""
    counts: collections.Counter[str] = collections.Counter()
    rng = np.random.default_rng([seed, cp.ROBOTS.index(robot)])
    for _ in range(20):
        mu = float(np.exp(rng.uniform(np.log(0.05), np.log(1.5))))
        family = cp.Family(robot, 'cone', mu, 1e-3, 0.0, joint_friction=False, joint_limits=False)
        sim, reference = cp.simulator_of(qd, family, tolerance=1e-10)
        for _ in range(20):
            result = cp.take_step(sim, reference, family, cp.draw_state(sim.model, reference, family, rng))
            points = np.flatnonzero(result.z < 0.0)
            G, forces = result.delassus(points), np.concatenate([np.zeros(6), result.tau]) - result.h
            if np.linalg.cond(G) > 1e6 or may_jam(G, mu):
                continue
            u_free = result.u + family.dt * np.linalg.solve(result.M, forces)
            free = result.J.reshape(-1, 3, len(u_free))[points].reshape(-1, len(u_free)) @ u_free
            p = solve_by_pinocchio(method, G, free, mu).reshape(-1, 3)
            v = (free + G @ p.ravel()).reshape(-1, 3)
            residuals = map(cp.in_cone, result.weights[points, None] * p, v, [mu] * len(points))
            if not result.converged:
                counts['unconverged'] += 1
            elif max(residuals) > 1e-9:
                counts['left out'] += 1
            else:
                # residuals of 1e-9 m/s, times what other contacts make of them
                assert np.abs(v - result.velocity[points]).max() <= 1e-6, (family, len(points))
                counts['compared'] += 1
                counts['pushed'] += int(np.any(p != 0.0))
    # 60 to 180 problems of a robot are far from singular; Pinocchio's PGS fails in one of twenty
    assert counts['pushed'] >= 20, counts
    assert counts['left out'] <= 0.2 * counts['compared'], counts
    assert counts['unconverged'] == 0, counts


# ---------------------------------------------------------------- a rod near jamming


def rod() -> Any:
    """A uniform rod of 1 kg and 1 m along z that touches with its lower end; slender: 1 + 3 cos^2 in all."""
    urdf = f'<robot name="rod"><link name="rod">{robots.inertial(1.0, [1 / 12, 1 / 12, 1e-3])}</link></robot>'
    points = [{'name': 'tip', 'link': 'rod', 'position': [0.0, 0.0, -0.5]}]
    return robots.load(urdf, floating_base=True, description={'contact_points': points})


def rod_state(model: Any, angle: float, speed: float, turn: float) -> tuple[np.ndarray, np.ndarray]:
    """(q, u): the tip at the origin, sliding along x; the rod at an angle from the vertical, turning."""
    q = robots.upright(model, 0.0)
    q[3:7] = robots.quaternion_about([0.0, 1.0, 0.0], angle)
    q[[0, 2]] = 0.5 * np.sin(angle), 0.5 * np.cos(angle)
    return q, np.array([speed + q[2] * turn, 0.0, -q[0] * turn, 0.0, turn, 0.0])


def rod_problem(q: np.ndarray, u: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """D (2, 2) and the free velocity (2,) of the tip in the plane x z; closed form, tip at arm (x, z)."""
    angle = 2.0 * np.arctan2(q[4], q[6])  # about y
    x, z = -0.5 * np.sin(angle), -0.5 * np.cos(angle)
    D = np.eye(2) + 12.0 * np.array([[z * z, -x * z], [-x * z, x * x]])
    return D, np.array([u[0] + z * u[4], u[2] - 9.81 * dt - x * u[4]])


MUS = [0.5, 1.2, 1.4, 1.45, 1.49, 1.5, 1.51, 1.55, 1.7, 2.5]


@pytest.mark.parametrize('friction', ['cone', 'pyramid'])
@pytest.mark.parametrize('mu', MUS)
def test_rod_near_jamming(qd: Any, mu: float, friction: str) -> None:
    """Painleve's rod: a normal impulse hardly lifts the tip, as friction turns it down at the same time.

    The impulse is one of the solutions, of which there may be none or several, or the step says that it has
    not converged. At mu = 1.5 and 50 degrees the rod slides with 413.7 N.
    """
    model, dt = rod(), 1e-4
    sim = qd.Simulator(model, mu=mu, friction=friction, dt=dt)
    wrong, unsolved, steps = [], 0, 0
    for degrees in [*range(-80, 81, 10), 47, 49, 49.5, 50.5, 51, 52, 53, 54, 56]:
        for speed in (1.0, -1.0, 0.01, 0.0):
            for turn in (0.0, 0.3, -0.3):
                # inclined from the level, to the right and to the left
                angle = np.deg2rad(90.0 - degrees) if degrees > 0 else np.deg2rad(-90.0 - degrees)
                sim.reset(*rod_state(model, angle, speed, turn))
                for k in range(3):
                    q, u = sim.q, sim.u
                    sim.step()
                    steps += 1
                    gap = float(sim.contact_distances[0])
                    D, free = rod_problem(q, u, dt)
                    free[1] -= -gap / dt if gap > cp.RESTING else 0.0
                    exact = planar_solutions(D, free, mu)
                    force = sim.contact_forces[0]
                    if not sim.converged:
                        unsolved += 1
                        continue
                    # the tolerance of 1e-6 m/s over the inverse inertia along the motion, which nearly jams
                    near = [
                        np.hypot(force[0] - p_t / dt, force[2] - p_n / dt) * dt
                        <= 10.0 * TOLERANCE / stiffness(D, mu, p_t, p_n)
                        for p_t, p_n in exact.values()
                    ]
                    if not any(near) or abs(force[1]) > 1e-6:
                        wrong.append((degrees, speed, turn, k, force.round(3).tolist(), sim.residual, exact))
    assert not wrong, f'{len(wrong)} of {steps}:\n' + '\n'.join(str(w) for w in wrong[:10])
    assert unsolved <= 0.01 * steps, (unsolved, steps)


def stiffness(D: np.ndarray, mu: float, p_t: float, p_n: float) -> float:
    """What a growing impulse does to the velocity: D_nn + D_tn p_t / p_n if it slides, or the least of D."""
    if p_n > 0.0 and abs(abs(p_t) - mu * p_n) <= 1e-9 * p_n:
        return min(abs(float(D[1, 1] + D[1, 0] * p_t / p_n)), 1.0)
    return float(np.linalg.eigvalsh(D)[0])


@pytest.mark.parametrize('start', ['no_impulse', 'jammed'])
@pytest.mark.parametrize('friction', ['cone', 'pyramid'])
@pytest.mark.parametrize('mu', [1.4, 1.7, 2.5])
def test_rod_that_leaves_gets_no_impulse(qd: Any, mu: float, friction: str, start: str) -> None:
    """The tip rises already. To stop it at once by thousands of newtons would obey the laws, too (Painleve).

    But nothing asks for an impulse: the free motion obeys them as it is. This holds even if the step starts
    from the impulse that stops it, and if the sweeps of the steps before were harmful.
    """
    model, dt = rod(), 1e-4
    sim = qd.Simulator(model, mu=mu, friction=friction, dt=dt)
    several, pushed = 0, []
    for degrees in range(-80, 81, 5):
        for speed in (1.0, -1.0, 0.1):
            q, u = rod_state(model, np.deg2rad(degrees), speed, 0.0)
            u[2] = 2.0 * 9.81 * dt
            sim.reset(q, u)
            D, free = rod_problem(q, u, dt)
            exact = planar_solutions(D, free, mu)
            several += int(len(exact) > 1)
            if start == 'jammed':
                p_t, p_n = max(exact.values(), key=lambda p: p[1])
                sim._scene.point_memory['impulse'][0] = p_t, 0.0, p_n
                sim._scene.counters['skips'] = 8
            sim.step()
            if np.any(sim.contact_forces):
                pushed.append((degrees, speed, sim.contact_forces[0].round(3).tolist()))
    assert several >= 5
    assert not pushed, f'{len(pushed)} of {several} that may jam: {pushed[:5]}'


@pytest.mark.parametrize('friction', ['cone', 'pyramid'])
@pytest.mark.parametrize('sign', [1.0, -1.0], ids=['right', 'left'])
def test_rod_at_fifty_degrees(qd: Any, friction: str, sign: float) -> None:
    """1 + 3 cos^2 - 3 mu sin cos = 0.0237 of the weight's 1: 413.7 N, where sweeps once gave 7467 N."""
    model, dt, angle = rod(), 1e-4, np.deg2rad(40.0)
    sim = qd.Simulator(model, mu=1.5, friction=friction, dt=dt)
    sim.reset(*rod_state(model, sign * angle, -sign, 0.0))
    sim.step()
    stiff = 1.0 + 3.0 * np.sin(angle) ** 2 - 4.5 * np.sin(angle) * np.cos(angle)
    assert 9.81 / stiff == pytest.approx(413.7, abs=0.05)
    assert sim.converged
    # a residual of 1e-6 m/s leaves a velocity of sqrt(1 + mu^2) times that: 0.018 N over dt and 1 kg, and 42
    # times that over 0.0237 kg^-1
    assert sim.contact_forces[0, 2] == pytest.approx(9.81 / stiff, abs=0.76)
    assert sim.contact_forces[0, 0] == pytest.approx(sign * 1.5 * 9.81 / stiff, abs=1.14)


# ---------------------------------------------------------------- energy


def check_drop(qd: Any, name: str, seed: int) -> tuple[int, int]:
    """Let a limp robot fall in any attitude; returns how many steps there were, and how many unsolved."""
    model, reference = robots.quadruped(name), robots.quadruped_reference(name)
    rng = np.random.default_rng([seed, 3])
    sim = qd.Simulator(model, mu=float(rng.uniform(0.2, 1.0)))
    points, dt, height = robots.points_of(sim), sim.settings.dt, float(model.standing[2])
    sim.reset(*cp.falling(model, reference, rng))
    q = sim.q
    allowed = 1e-6 * float(reference.mass_matrix(q)[0, 0]) * 9.81 * height
    unsolved, pushed, steps = 0, 0, 1200
    for k in range(steps):
        q, u = sim.q, sim.u
        sim.step()
        p = dt * sim.contact_forces.ravel()
        assert sim.residual <= 1e-4, (k, sim.residual)
        assert sim.contact_distances.min() > -1e-3, (k, sim.contact_distances.min())
        unsolved += int(sim.residual > TOLERANCE)
        assert sim.converged or sim.residual > TOLERANCE, k
        if not np.any(p):
            continue
        pushed += 1
        M, h, (_, J) = (
            reference.mass_matrix(q),
            bias(reference, q, u),
            cp.level_geometry(reference, q, points),
        )
        inertia = M + np.diag([*np.zeros(6), *(dt * model.viscous)])
        # contacts: half of the velocity is that before them, J u' - A p
        work = p @ (J @ sim.u) - 0.5 * p @ J @ np.linalg.solve(inertia, J.T @ p)
        assert work <= allowed, (k, work)
        # everything that reacts to the motion: contacts, and limits and friction of the joints
        u_free = u - dt * np.linalg.solve(M, h)
        gained = 0.5 * (sim.u @ M @ sim.u - u_free @ M @ u_free)
        assert gained <= allowed, (k, gained)
    assert pushed > 0.5 * steps
    return steps, unsolved


three_robots = pytest.mark.parametrize('name', ['mini_cheetah', 'go2', 'anymal_c'])


def check_drops(qd: Any, name: str, seeds: Sequence[int]) -> None:
    """Several drops of a robot, in which solutions that fail are rare."""
    results = [check_drop(qd, name, seed) for seed in seeds]
    assert sum(unsolved for _, unsolved in results) <= RARE * sum(steps for steps, _ in results), results


@three_robots
@pytest.mark.parametrize('seeds', [range(2)], ids=['seeds0to1'])
def test_drops_take_energy(qd: Any, name: str, seeds: Sequence[int]) -> None:
    """No impulse of the ground adds energy, and nothing sinks in."""
    check_drops(qd, name, seeds)


@pytest.mark.slow
@three_robots
@pytest.mark.parametrize('seeds', [range(100, 110)], ids=['seeds100to109'])
def test_ten_drops_take_energy(qd: Any, name: str, seeds: Sequence[int]) -> None:
    check_drops(qd, name, seeds)
