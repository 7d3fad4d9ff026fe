# SPDX-License-Identifier: Apache-2.0
"""Errors on other data, motion that is repeated, and models that are simulated beside the log."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import identification_data as data
import identification_worlds as worlds
import identified_robots as robots
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import Noise, first_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.pipeline import IdentifySettings, identify
from quad_dynamics.identification.report.armature import armatures
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.solve import solve
from quad_dynamics.identification.validation.held_out import hold_out
from quad_dynamics.identification.validation.leg_spreads import _common_name, leg_spreads
from quad_dynamics.identification.validation.repeats import find_repetition, refuse_repetition
from quad_dynamics.identification.validation.replay import Replay, replay
from quad_dynamics.identification.validation.validation import best_fit, pooled, torque_errors, validate

Motion = Callable[[Floats], Floats]


def equations_of(samples: Samples, model: Any, mode: str | None = None) -> Equations:
    columns = make_columns(model)
    made = data.equations_of(samples, columns, data.TYPICAL, mode)
    if mode != 'projection':
        return made
    unknown = first_noise(columns, forces_unknown=True).force
    return Equations(samples, columns, mode, Noise(made.noise.base, made.noise.joints, unknown))


# ---------------------------------------------------------------- errors


def test_errors_have_the_root() -> None:
    """A joint that is off by 0.2 N m half of the time has an RMS error of 0.2 / sqrt(2), not of 0.02."""
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(model, seed=0, seconds=4.0)
    rows = samples.all()
    samples.layout.get(rows, 'tau')[::2, 0] += 0.2
    spoiled = Samples(model)
    spoiled.append(rows)
    errors = torque_errors(equations_of(spoiled, model), x, x)
    assert errors.names == ('joint1', 'joint2')
    assert errors.before[0] == pytest.approx(0.2 / np.sqrt(2.0), rel=1e-9)
    assert errors.before[1] == pytest.approx(0.0, abs=1e-12)
    tau = samples.layout.get(rows, 'tau')
    assert errors.measured[0] == pytest.approx(np.sqrt(np.mean(tau[:, 0] ** 2)), rel=1e-12)
    assert errors.relative(errors.before)[0] == pytest.approx(errors.before[0] / errors.measured[0])


def test_errors_before_are_those_of_the_model_with_its_friction() -> None:
    """Against Pinocchio's inverse dynamics and friction written out."""
    model = robots.load(robots.TURNED_ARM, floating_base=False).with_friction([0.3, 0.1], [0.2, 0.4])
    true = data.changed(model, seed=1)
    samples, x = data.make_samples(true, seed=4, seconds=3.0)
    errors = torque_errors(equations_of(samples, model), make_columns(model).prior, x)
    independent = pin.buildModelFromXML(model.to_urdf())
    scratch, get, rows = independent.createData(), samples.layout.get, samples.all()
    predicted = [
        pin.rnea(independent, scratch, q, u, du) + [0.3, 0.1] * u + [0.2, 0.4] * np.sign(u)
        for q, u, du in zip(get(rows, 'q'), get(rows, 'u'), get(rows, 'du'), strict=True)
    ]
    wanted = np.sqrt(np.mean((get(rows, 'tau') - predicted) ** 2, axis=0))
    np.testing.assert_allclose(errors.before, wanted, rtol=1e-9)
    assert errors.after == pytest.approx(0.0, abs=1e-9)  # it is the truth


def test_rows_that_do_not_count_are_left_out() -> None:
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(model, seed=0, seconds=4.0)
    rows = samples.all()
    samples.layout.get(rows, 'tau')[:100, 1] += 50.0
    samples.layout.get(rows, 'use')[:100, 1] = 0.0
    spoiled = Samples(model)
    spoiled.append(rows)
    errors = torque_errors(equations_of(spoiled, model), x, x)
    assert errors.before == pytest.approx([0.0, 0.0], abs=1e-12)
    assert errors.samples.tolist() == [400, 300]


@pytest.mark.parametrize('mode', ['forces', 'projection', 'base'])
def test_errors_of_a_floating_base(mode: str) -> None:
    """After is near the floor, which is near the noise that was added; before is above both."""
    model = data.robot('mini_cheetah')
    true = data.changed(model, seed=3)
    levels = data.Levels(tau=0.05, force=0.5)
    samples, x = data.make_samples(true, seed=1, seconds=10.0, noise=levels)
    errors = torque_errors(equations_of(samples, model, mode), make_columns(model).prior, x)
    joints = slice(2, None)
    assert len(errors.names) == (2 if mode == 'base' else 14)
    assert np.all(errors.after <= 1.02 * errors.before)
    # The truth is beaten by a fit to the noise, but not by much: 200 unknowns, 18000 rows.
    np.testing.assert_allclose(errors.after, errors.floor, rtol=0.1)
    assert np.isnan(errors.measured[0]) == (mode == 'projection')
    if mode == 'forces':
        weight = true.total_mass * 9.81
        assert errors.measured[0] == pytest.approx(weight, rel=0.1)
        assert errors.after[0] == pytest.approx(np.sqrt(4 * 3) * 0.5, rel=0.05)  # four feet, three axes
        assert np.all(errors.before[joints] > errors.after[joints])


def test_best_fit_without_noise_is_exact() -> None:
    model = data.robot('two_link_arm')
    samples, _ = data.make_samples(data.changed(model, seed=2), seed=1, seconds=5.0)
    equations = equations_of(samples, model)
    x = best_fit(equations).x
    residuals = np.concatenate([r for _, r in equations.residuals(x)])
    # What is below 1e-9 of the largest singular value is left out: 3e-5 of torques of 10 N m.
    assert np.abs(residuals).max() < 1e-3


@pytest.mark.parametrize(('seconds', 'known'), [(0.07, False), (0.4, False), (1.0, True)])
def test_a_floor_needs_samples(seconds: float, known: bool) -> None:
    """The parameters of an arm fit 7 samples of its 2 joints nearly exactly: that is no floor."""
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(
        data.changed(model, 2), seed=1, seconds=seconds, noise=data.Levels(tau=0.1)
    )
    equations = equations_of(samples, model)
    errors = torque_errors(equations, make_columns(model).prior, x)
    assert np.isfinite(errors.floor).tolist() == [known, known]
    assert np.isfinite(pooled(errors).relative[2]) == known
    if known:
        assert np.all(errors.floor > 0.07)


def test_a_joint_with_few_rows_has_no_floor() -> None:
    """The pooled floor is that of the other joint, unless too many rows have none."""
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(model, seed=1, seconds=4.0, noise=data.TYPICAL)
    rows = samples.all()
    samples.layout.get(rows, 'use')[20:, 1] = 0.0
    rare = Samples(model)
    rare.append(rows)
    errors = torque_errors(equations_of(rare, model), x, x)
    assert np.isfinite(errors.floor).tolist() == [True, False]
    whole = pooled(errors)
    assert whole.rms[2] == pytest.approx(errors.floor[0])
    assert whole.relative[2] == pytest.approx(errors.floor[0] / errors.measured[0])
    half = dataclasses.replace(errors, samples=np.array([200, 200]))
    assert np.isnan(pooled(half).relative[2])


def test_no_samples_is_an_error() -> None:
    model = data.robot('two_link_arm')
    equations = equations_of(Samples(model), model)
    with pytest.raises(ArgumentError, match='no samples'):
        torque_errors(equations, equations.columns.prior, equations.columns.prior)


# ---------------------------------------------------------------- motion that is repeated


def recorded(
    model: Any, motion: Motion, seconds: float, rate: float = 100.0, noise: float = 0.0, seed: int = 0
) -> Samples:
    """Samples of joints that follow a motion; only positions and velocities mean something.

    Args:
        model: robot.
        motion: (n,) times to (n, nj) positions.
        seconds: length.
        rate: of samples [Hz].
        noise: standard deviation, of positions relative to their own, of velocities twice as much.
        seed: of the noise.
    """
    samples, rng = Samples(model), np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    h = 1e-4
    qj, uj = motion(t), (motion(t + h) - motion(t - h)) / (2.0 * h)
    qj = qj + noise * qj.std() * rng.standard_normal(qj.shape)
    uj = uj + 2.0 * noise * uj.std() * rng.standard_normal(uj.shape)
    n, sizes = len(t), samples.layout.sizes
    parts: dict[str, Any] = {name: np.zeros((n, size)) for name, size in sizes.items()}
    parts |= {'time': t, 'segment': np.zeros(n)}
    parts['q'][:, model.nq - model.nj :] = qj
    parts['u'][:, model.nv - model.nj :] = uj
    samples.append(samples.layout.join(**parts))
    return samples


def excitation(model: Any, seed: int, lowest: float = 0.1) -> Motion:
    """A Fourier series of five terms, as excitation trajectories are."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 5, model.nj)) / np.arange(1, 6)[:, None]
    w = 2.0 * np.pi * lowest * np.arange(1, 6)

    def motion(t: Floats) -> Floats:
        angle = np.multiply.outer(t, w)
        return np.asarray(0.3 * (np.sin(angle) @ a + np.cos(angle) @ b))

    return motion


def gait(model: Any, period: float, stride: float = 0.3) -> Motion:
    """Legs that swing in turns, about a pose, with a second harmonic."""
    phase = np.pi * np.arange(model.nj)

    def motion(t: Floats) -> Floats:
        angle = 2.0 * np.pi * t[:, None] / period + phase
        return np.asarray(0.8 + stride * np.sin(angle) + 0.3 * stride * np.cos(2.0 * angle))

    return motion


ROBOTS = ['two_link_arm', 'mini_cheetah_leg', 'mini_cheetah']


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('shift', [0.0, 3.2173])
def test_the_same_motion_is_found(name: str, shift: float) -> None:
    """With other noise, another rate, from another time on, and shorter."""
    model = data.robot(name)
    motion = excitation(model, seed=1)
    old = recorded(model, motion, 20.0, noise=0.02, seed=1)
    new = recorded(model, lambda t: motion(t + shift), 12.0, rate=173.0, noise=0.02, seed=2)
    found = find_repetition(old, new, model)
    assert found.share == 1.0
    # The motion has a period of 10 s.
    assert (found.shift + shift + 5.0) % 10.0 - 5.0 == pytest.approx(0.0, abs=0.03)
    with pytest.raises(ArgumentError, match=r'other: repeats the training trajectory in 100 %'):
        refuse_repetition(old, new, model, 'other', (['a'], 'b'))


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('seed', range(5), ids=lambda seed: f'seed{seed}')
def test_other_excitation_is_accepted(name: str, seed: int) -> None:
    model = data.robot(name)
    old = recorded(model, excitation(model, seed), 30.0, noise=0.01)
    new = recorded(model, excitation(model, seed + 100), 20.0, noise=0.01)
    assert find_repetition(old, new, model).share < 0.1
    refuse_repetition(old, new, model, 'other', (['a'], 'b'))


def test_the_robot_tracks_a_little_differently() -> None:
    """The same command once more, on a robot that lags by 5 % and overshoots by 5 %."""
    model = data.robot('mini_cheetah')
    motion = excitation(model, seed=1)
    old = recorded(model, motion, 20.0, noise=0.01, seed=1)
    new = recorded(model, lambda t: 1.05 * motion(t - 0.02), 20.0, noise=0.01, seed=2)
    assert find_repetition(old, new, model).is_repetition


@pytest.mark.parametrize(
    ('period', 'stride', 'same'),
    [
        (0.5, 0.3, True),
        (0.5, 0.31, True),
        (0.45, 0.3, False),
        (0.55, 0.3, False),
        (0.5, 0.4, False),
        (0.48, 0.3, False),
    ],
)
def test_gaits(period: float, stride: float, same: bool) -> None:
    """Another pace is another motion, and so are longer steps; the same gait later is not."""
    model = data.robot('mini_cheetah')
    old = recorded(model, gait(model, 0.5), 15.0, noise=0.02, seed=1)
    new = recorded(model, lambda t: gait(model, period, stride)(t + 0.123), 15.0, noise=0.02, seed=2)
    assert find_repetition(old, new, model).is_repetition == same


def test_the_same_path_at_another_speed_is_accepted() -> None:
    model = data.robot('two_link_arm')
    motion = excitation(model, seed=1)
    old = recorded(model, motion, 30.0)
    new = recorded(model, lambda t: motion(0.8 * t), 30.0)
    assert find_repetition(old, new, model).share < 0.3


def test_standing_still_says_nothing() -> None:
    """Both recordings stand in the same pose for most of the time; what counts is the motion."""
    model = data.robot('mini_cheetah')

    def after_rest(seed: int) -> Motion:
        motion = excitation(model, seed)
        return lambda t: np.clip(t - 20.0, 0.0, 2.0)[:, None] * motion(t)

    old = recorded(model, after_rest(1), 30.0, noise=1e-3, seed=1)
    new = recorded(model, after_rest(2), 30.0, noise=1e-3, seed=2)
    assert find_repetition(old, new, model).repeated == 0
    assert find_repetition(old, old, model).is_repetition
    still = recorded(model, lambda t: np.full((len(t), model.nj), 0.8), 10.0)
    assert find_repetition(still, still, model).windows == 0


def test_a_part_may_be_repeated() -> None:
    """A recording that repeats a fifth is accepted, one that repeats most is not; several are looked at."""
    model = data.robot('mini_cheetah')
    first, second = excitation(model, 1), excitation(model, 2)

    def both(share: float) -> Samples:
        return recorded(model, lambda t: np.where(t[:, None] < 30.0 * share, first(t), second(t)), 30.0)

    old = recorded(model, excitation(model, 3), 10.0)
    for rows in recorded(model, first, 30.0).chunks():  # a second recording: its time begins anew
        old.append(rows)
    assert not find_repetition(old, both(0.2), model).is_repetition
    assert find_repetition(old, both(0.8), model).is_repetition


def test_gaps_do_not_hide_a_repetition() -> None:
    """Impacts are cut out, so that stretches are short."""
    model = data.robot('mini_cheetah')
    motion = gait(model, 0.5)
    pair = []
    for seed, phase in ((1, 0.0), (2, 0.07)):
        whole = recorded(model, lambda t, phase=phase: motion(t + phase), 15.0, noise=0.02, seed=seed)
        rows = whole.all()
        cut = Samples(model)
        cut.append(rows[(np.arange(len(rows)) % 50) >= 8])
        pair.append(cut)
    assert find_repetition(*pair, model).is_repetition


def test_the_same_file_is_refused() -> None:
    model = data.robot('two_link_arm')
    one, other = (recorded(model, excitation(model, seed), 10.0) for seed in (1, 2))
    with pytest.raises(ArgumentError, match='bag: is also a training recording'):
        refuse_repetition(one, other, model, 'bag', (['x', 'y'], 'y'))


# ---------------------------------------------------------------- blocks that are held out


def test_held_out_blocks_are_apart() -> None:
    model = data.robot('two_link_arm')
    samples, _ = data.make_samples(model, seed=1, seconds=100.0)
    train, test, _ = hold_out(samples, model)
    assert len(train) == 8000  # every fifth stretch of 5 s is held out
    assert 1700 <= len(test) <= 2000  # without its ends
    get = samples.layout.get
    old, new = get(train.all(), 'time'), get(test.all(), 'time')
    nearest = np.abs(old[np.searchsorted(old, new).clip(1, len(old) - 1)][:, None] - new[:, None]).min(axis=1)
    assert nearest.min() > 0.2
    for part in (train, test):  # no stretch goes on across what was taken out
        rows = part.all()
        inside = np.diff(get(rows, 'segment')) == 0.0
        assert np.diff(get(rows, 'time'))[inside].max() < 0.011
    with pytest.raises(ArgumentError, match='too few'):
        hold_out(data.make_samples(model, seed=1, seconds=0.4)[0], model)
    train, test, _ = hold_out(data.make_samples(model, seed=1, seconds=1.0)[0], model)
    assert len(train) == 80
    assert len(test) >= 10


def test_held_out_blocks_of_a_periodic_motion_come_with_a_note() -> None:
    model = data.robot('mini_cheetah')
    assert 'periodic' in hold_out(recorded(model, gait(model, 0.5), 100.0), model)[2][0]
    assert hold_out(data.make_samples(model, 1, 100.0)[0], model)[2] == ()


# ---------------------------------------------------------------- simulated beside the log


def test_replay_follows_a_true_simulation() -> None:
    """A pendulum beside the log of another one: against scipy's integration of both equations of motion."""
    model = data.robot('two_link_arm')
    true, window = data.changed(model, seed=4), 0.2
    samples, x = data.make_samples(true, seed=2, seconds=0.201, rate=1000.0)  # one window
    equations, prior = equations_of(samples, model), make_columns(model).prior
    rows, get = samples.all(), samples.layout.get
    time, tau, sign = get(rows, 'time'), get(rows, 'tau'), get(rows, 'sign')

    def fall(t: float, y: Floats) -> Floats:
        at = [np.interp(t, time, tau[:, j]) for j in range(2)]
        return np.concatenate([y[2:], qd.forward_dynamics(model, y[:2], y[2:], at)])

    del sign  # the model before has no friction
    start = np.concatenate([get(rows, 'q')[0], get(rows, 'u')[0]])
    end = solve_ivp(fall, (0.0, window), start, rtol=1e-9, atol=1e-11).y[:, -1]
    found = replay(equations, prior, x, window)
    assert found is not None
    assert found.windows.tolist() == [1, 1]
    # Steps of 1 ms of an error that grows to 0.1 rad.
    np.testing.assert_allclose(found.position[0], np.abs(end[:2] - get(rows, 'q')[-1]), rtol=2e-3, atol=2e-6)
    np.testing.assert_allclose(found.velocity[0], np.abs(end[2:] - get(rows, 'u')[-1]), rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(found.position[1], 0.0, atol=1e-9)
    assert found.closer.all()


@pytest.mark.parametrize('mode', ['forces', 'projection'])
def test_replay_of_a_floating_base(mode: str) -> None:
    """Without noise the truth stays on the log, and the model of before does not."""
    model = data.robot('mini_cheetah')
    true = data.changed(model, seed=3)
    samples, x = data.make_samples(true, seed=1, seconds=4.0)
    found = replay(equations_of(samples, model, mode), make_columns(model).prior, x)
    assert found is not None
    assert found.closer.all()
    assert found.position[1].max() < 1e-6
    assert found.position[0].min() > 1e-3


def test_replay_with_noise_is_closer_on_every_joint() -> None:
    model = data.robot('mini_cheetah')
    samples, x = data.make_samples(data.changed(model, seed=3), seed=1, seconds=10.0, noise=data.TYPICAL)
    found = replay(equations_of(samples, model), make_columns(model).prior, x)
    assert found is not None
    assert found.closer.all()


def test_a_joint_is_closer_if_nothing_is_farther() -> None:
    """Changes of less than 2 % are none: 41.8 -> 41.7 mrad with 1 mrad/s more is not worse."""
    found = Replay(
        joints=tuple('abcde'),
        window=0.1,
        windows=np.array([4, 4, 4, 4, 0]),
        position=np.array([[41.8, 1.0, 1.0, 1.0, np.nan], [41.7, 1.01, 0.5, 1.1, np.nan]]),
        velocity=np.array([[0.781, 1.0, 1.0, 1.0, np.nan], [0.782, 1.01, 1.1, 1.1, np.nan]]),
    )
    assert found.closer.tolist() == [True, False, False, False, False]
    assert found.farther.tolist() == [[False, False, False, True, False], [False, False, True, True, False]]
    assert found.judged.tolist() == [True] * 4 + [False]
    assert found.drift == pytest.approx(np.sqrt(np.mean(found.position[:, :4] ** 2, axis=1)))


def test_replay_needs_a_stretch() -> None:
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(model, seed=1, seconds=0.05)
    assert replay(equations_of(samples, model), x, x) is None


def test_joints_that_do_not_count_follow_the_log() -> None:
    """A joint that sticks has a torque that no model explains; the others are not to suffer for it."""
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(model, seed=1, seconds=4.0)
    rows = samples.all()
    samples.layout.get(rows, 'tau')[:, 0] += 3.0
    samples.layout.get(rows, 'use')[:, 0] = 0.0
    spoiled = Samples(model)
    spoiled.append(rows)
    found = replay(equations_of(spoiled, model), x, x)
    assert found is not None
    assert found.windows[0] == 0
    assert found.position[1, 1] < 1e-9


# ---------------------------------------------------------------- legs


def test_legs_that_are_alike_have_no_spread() -> None:
    model = data.robot('mini_cheetah')
    solution = robots.solved(model, model.with_friction(np.tile([0.1, 0.2, 0.3], 4), np.full(12, 0.5)))
    spreads = {spread.name: spread for spread in leg_spreads(solution)}
    assert spreads['thigh_joint.viscous'].mean == pytest.approx(0.2)
    assert max(spread.spread for spread in spreads.values()) < 1e-12
    assert spreads['calf.m'].mean == pytest.approx(0.064)
    other = np.tile([0.1, 0.2, 0.3], 4)
    other[2] += 0.4
    solution = robots.solved(model, model.with_friction(other, np.full(12, 0.5)))
    spreads = {spread.name: spread for spread in leg_spreads(solution)}
    assert spreads['calf_joint.viscous'].spread == pytest.approx(np.std([0.7, 0.3, 0.3, 0.3], ddof=1))
    assert leg_spreads(robots.solved(data.robot('two_link_arm'), data.robot('two_link_arm'))) == ()


def test_legs_are_compared_by_armatures() -> None:
    """As in all other tables: the inertia of a rotor before the gear has the same unit."""
    model = data.robot('mini_cheetah')
    rotor = model.rotor_inertia.copy()
    rotor[2] *= 1.2
    solution = robots.solved(model, model, rotor)
    spreads = {spread.name: spread for spread in leg_spreads(solution)}
    assert not any(name.endswith('.rotor') for name in spreads)
    found, calves = spreads['calf_joint.armature'], armatures(solution)[2::3]
    assert found.unit == calves[0].unit
    assert found.mean == pytest.approx(np.mean([each.after for each in calves]))
    assert found.spread == pytest.approx(np.std([each.after for each in calves], ddof=1))
    assert found.expected == pytest.approx(np.sqrt(np.mean([each.std**2 for each in calves])))


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        (['FL_calf_joint', 'RR_calf_joint'], 'calf_joint'),
        (['left_hip_joint', 'right_hip_joint'], 'hip_joint'),  # both end in t
        (['leghip', 'armhip'], 'hip'),
        (['a', 'b'], '3 7'),
    ],
)
def test_names_of_parts_are_whole_words(names: list[str], expected: str) -> None:
    assert _common_name(names, (3, 7)) == expected


def test_legs_of_the_result_are_compared(tmp_path: Path) -> None:
    """Not those of the fit without the held-out blocks."""
    world = worlds.World(3, 'mini_cheetah', seconds=6.0)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    result = identify([path], truth.model, IdentifySettings(free=('friction',)))
    assert result.validation is not None
    assert result.validation.held_out
    found = [(each.name, each.mean) for each in result.validation.spreads]
    assert found == [(each.name, each.mean) for each in leg_spreads(result.solution)] != []


def test_the_bias_of_force_sensors_is_that_of_the_recording() -> None:
    """What was fitted to one recording does not spoil the errors on another, whose sensors differ."""
    model = data.robot('mini_cheetah')
    true = data.changed(model, seed=3)
    solution = robots.solved(model, true)
    part = solution.columns.slices['bias']
    x, free = solution.x.copy(), solution.free.copy()
    x[part], free[part] = 5.0, True  # [N], of the training
    samples, _ = data.make_samples(true, seed=1, seconds=5.0)
    rows, bias = samples.all(), np.random.default_rng(0).normal(0.0, 2.0, 12)
    samples.layout.get(rows, 'force')[...] += bias
    spoiled = Samples(model)
    spoiled.append(rows)
    validation = validate(
        equations_of(spoiled, model), dataclasses.replace(solution, x=x, free=free), 'other'
    )
    np.testing.assert_allclose(validation.after[part], bias, atol=1e-6)
    assert validation.errors.after.max() < 1e-6
    assert validation.errors.before.min() > 1e-3
    assert 'bias' in validation.notes[0]


def with_offset(samples: Samples, model: Any, joint: int, offset: float) -> Samples:
    """The same samples, the torque sensor of one joint a little off."""
    rows, off = samples.all(), Samples(model)
    samples.layout.get(rows, 'tau')[:, joint] += offset
    off.append(rows)
    return off


@pytest.mark.parametrize('trained', [0.0, 0.15], ids=['none trained', 'trained'])
@pytest.mark.parametrize('name', ['two_link_arm', 'mini_cheetah_leg'])
def test_an_offset_that_changed_is_named_and_not_fitted(name: str, trained: float, seed: int) -> None:
    """A wrong model and noise make no offset; a sensor that is 0.3 N m off does, and the error has it."""
    model = data.robot(name)
    true = data.changed(model, seed)
    extra = {'offset': trained}
    training, _ = data.make_samples(true, seed, 20.0, noise=data.TYPICAL, extra=extra)
    others, _ = data.make_samples(true, seed + 50, 20.0, noise=data.TYPICAL, extra=extra)
    equations = equations_of(training, model)
    columns = equations.columns
    solution = solve(equations.accumulate(5), equations, columns, make_freedom(columns))
    assert solution.free[columns.slices['offset']].all() == (trained > 0.0)
    same = validate(equations_of(others, model), solution, 'other')
    assert not [note for note in same.notes if note.startswith('offset')]

    joint = 1
    off = validate(equations_of(with_offset(others, model, joint, 0.3), model), solution, 'other')
    (note,) = [note for note in off.notes if note.startswith('offset')]
    found = re.match(r"offset of joint '(.+)' changed from (\S+) to (\S+) N m between", note)
    assert found is not None
    assert found[1] == model.joint_names[joint]
    assert (found[2] == 'none') == (trained == 0.0)
    assert float(found[3]) == pytest.approx(trained + 0.3, abs=0.03)
    np.testing.assert_array_equal(off.after[columns.slices['offset']], solution.part('offset'))
    at = off.errors.names.index(model.joint_names[joint])
    # The old offset may be off by a few of its standard deviations of 0.01 N m.
    assert off.errors.after[at] == pytest.approx(np.hypot(same.errors.after[at], 0.3), rel=0.1)


@pytest.mark.parametrize('mode', ['forces', 'projection'])
def test_an_offset_on_a_floating_base(mode: str) -> None:
    """The bias of force sensors, which this recording has for itself, does not pass for offsets."""
    model = data.robot('mini_cheetah')
    true = data.changed(model, seed=3)
    solution = robots.solved(model, true)
    free, std = solution.free.copy(), solution.std.copy()
    for kind in ('offset', 'bias') if mode == 'forces' else ('offset',):
        free[solution.columns.slices[kind]], std[solution.columns.slices[kind]] = True, 0.01
    solution = dataclasses.replace(solution, free=free, std=std)
    samples, _ = data.make_samples(true, seed=1, seconds=10.0, noise=data.TYPICAL, feet=mode == 'forces')
    for offset, named in ((0.0, []), (-0.3, [model.joint_names[4]])):
        off = with_offset(samples, model, 4, offset)
        rows, biased = off.all(), Samples(model)
        off.layout.get(rows, 'force')[...] += 5.0 * (mode == 'forces')  # [N]
        biased.append(rows)
        notes = validate(equations_of(biased, model, mode), solution, 'other').notes
        assert [note.split("'")[1] for note in notes if note.startswith('offset')] == named


def test_an_offset_that_is_small_is_not_worth_a_note() -> None:
    """Sure as it may be, 1 % of the torque is not what makes errors large."""
    model = data.robot('two_link_arm')
    solution = robots.solved(model, model)
    samples, _ = data.make_samples(model, 1, 20.0, noise=data.Levels(tau=0.01))
    rms = np.sqrt(np.mean(samples.layout.get(samples.all(), 'tau')[:, 1] ** 2))
    for part, notes in ((0.01, 0), (0.03, 1)):
        off = with_offset(samples, model, 1, part * rms)
        assert len(validate(equations_of(off, model), solution, 'other').notes) == notes


def test_validation_as_a_whole() -> None:
    model = data.robot('two_link_arm')
    true = data.changed(model, seed=3)
    samples, _ = data.make_samples(true, seed=1, seconds=5.0, noise=data.TYPICAL)
    solution = robots.solved(model, true)
    equations = Equations(samples, solution.columns, 'fixed', Noise(np.empty(0), np.full(2, 0.05), 1.0))
    validation = validate(equations, solution, 'other', ('a note',))
    assert validation.on == 'other'
    assert validation.notes == ('a note',)
    assert np.all(validation.errors.after < 0.2 * validation.errors.before)
