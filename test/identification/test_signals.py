# SPDX-License-Identifier: Apache-2.0
"""Samples: clock, filters, derivatives, frames, delays, and what counts; against motions known exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import identification_bags as bags
import numpy as np
import pytest
from identification_bags import TYPICAL, Errors, Truth, arm_bag, arm_truth, quadruped_truth, write
from scipy import signal
from slow_variants import slow_but

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.number_text import percent
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.signals.agreement import filtered_pairs, lagged_sums
from quad_dynamics.identification.signals.filters import HALF, LowPass, blend, derivative, noise_level
from quad_dynamics.identification.signals.grid import Grid
from quad_dynamics.identification.signals.interpolation import interpolate, shifted
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import collect
from quad_dynamics.simulation.settings import SensorSettings


def samples_of(path: Path, model: Any, **settings: Any) -> tuple[Any, dict[str, Any], Any]:
    """Samples, all their quantities, and the report."""
    samples, report = collect([open_source(path, model)], model, SignalSettings(**settings))
    rows = samples.all()
    return samples, {name: samples.layout.get(rows, name) for name in samples.layout.sizes}, report


def residuals(samples: Any, model: Any, mode: str) -> tuple[Any, Any]:
    """(n, rows) of the true model, and which of them count."""
    columns = make_columns(model)
    equations = Equations(samples, columns, mode, first_noise(columns, mode == 'projection'))
    parts = list(equations.residuals(columns.prior))
    return np.concatenate([r for _, r in parts]), np.concatenate([equations.use(rows) for rows, _ in parts])


# ---------------------------------------------------------------- filters


def test_derivatives_are_exact_for_polynomials() -> None:
    t = np.arange(40) * 0.01
    powers = np.arange(13)
    p = (t[:, None] - 0.2) ** powers
    first = powers * (t[:, None] - 0.2) ** np.maximum(powers - 1, 0)
    second = powers * (powers - 1) * (t[:, None] - 0.2) ** np.maximum(powers - 2, 0)
    # Rounding of values of up to 1 over steps of 0.01, once and twice.
    np.testing.assert_allclose(derivative(p, 0.01), first[HALF:-HALF], atol=1e-13)
    np.testing.assert_allclose(derivative(p, 0.01, 2), second[HALF:-HALF], atol=1e-11)


def test_derivatives_are_exact_beyond_the_highest_cutoff() -> None:
    """A wave of a fifth of the rate, the highest cutoff, is differentiated to 2e-3."""
    w, t = 2.0 * np.pi * 0.2, np.arange(200.0)
    found = derivative(np.sin(w * t)[:, None], 1.0)[:, 0]
    assert np.abs(found - w * np.cos(w * t)[HALF:-HALF]).max() < 2e-3 * w


@pytest.mark.parametrize('order', [1, 2, 4, 8])
@pytest.mark.parametrize('frequency', [1.0, 10.0, 17.0])
def test_the_low_pass_has_no_phase_and_the_square_of_butterworths_gain(order: int, frequency: float) -> None:
    rate, cutoff = 500.0, 10.0
    t = np.arange(5000) / rate
    x = np.cos(2.0 * np.pi * frequency * t)[:, None]
    # of the filter that the bilinear transform makes
    ratio = np.tan(np.pi * frequency / rate) / np.tan(np.pi * cutoff / rate)
    gain = 1.0 / (1.0 + ratio ** (2 * order))
    middle = slice(2000, 3000)
    np.testing.assert_allclose(LowPass(cutoff, order, rate)(x)[middle], gain * x[middle], atol=1e-6)


def test_ends_are_continued_without_the_noise_of_the_last_row() -> None:
    """A line with noise: the filtered ends are off by less than a third of the noise of one row."""
    rng, rate = np.random.default_rng(0), 1000.0
    line = np.linspace(0.0, 5.0, 4000)[:, None] * np.ones(50)
    filtered = LowPass(10.0, 4, rate)(line + rng.normal(size=line.shape))
    assert np.std((filtered - line)[0]) < 0.35
    assert np.std((filtered - line)[-1]) < 0.35


def test_share_is_one_where_all_is_marked_and_falls_with_distance() -> None:
    low_pass = LowPass(10.0, 4, 500.0)
    marks = np.zeros((2000, 1), dtype=bool)
    marks[800:1200] = True
    share = low_pass.share(marks)[:, 0]
    assert share[1000] > 1.0  # weights without their signs
    assert share[800] == pytest.approx(0.5 * share[1000], rel=0.05)
    # Three periods of the cutoff away nothing is left.
    assert share[800 - 150] < 1e-3
    assert np.all(low_pass.share(np.zeros((100, 2), dtype=bool)) == 0.0)


def test_positions_and_velocities_together_are_better_than_each() -> None:
    rng, rate, n = np.random.default_rng(1), 1000.0, 200_000
    s_p, s_v = 2e-4, 0.02
    p, v = s_p * rng.normal(size=(n, 1)), s_v * rng.normal(size=(n, 1))
    slow, fast = derivative(p, 1.0 / rate), v[HALF:-HALF]
    low_pass = LowPass(25.0, 4, rate)
    joined = blend(slow, fast, np.array([s_v / s_p]), rate)
    errors = [float(np.std(low_pass(x)[1000:-1000])) for x in (slow, fast, joined)]
    assert errors[2] < 0.92 * min(errors[:2])
    # The theory: power density of 1 / (1 / s_v^2 + 1 / (w s_p)^2), through the square of the filter's gain.
    f = np.linspace(1e-3, 60.0, 100_000)
    w = 2.0 * np.pi * f
    gain = 1.0 / (1.0 + (np.tan(np.pi * f / rate) / np.tan(np.pi * 25.0 / rate)) ** 8)
    variance = np.trapezoid(2.0 / rate * gain**2 / (1.0 / s_v**2 + 1.0 / (w * s_p) ** 2), f)
    assert errors[2] == pytest.approx(np.sqrt(variance), rel=0.03)  # 10,000 independent samples: 1 %


def test_all_of_one_signal() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300, 2))
    joined = blend(x, y, np.array([np.inf, 0.0]), 100.0)
    np.testing.assert_array_equal(joined, np.stack([x[:, 0], y[:, 1]], axis=1))


@pytest.mark.parametrize('seed', range(3))
def test_noise_is_found_on_a_moving_signal(seed: int) -> None:
    t = np.arange(20_000) * 1e-3
    x = np.sin(2.0 * np.pi * 3.0 * t)[:, None] + 0.01 * np.random.default_rng(seed).normal(size=(20_000, 1))
    x[5000:] += 1.0  # a jump does not count
    assert noise_level(x)[0] == pytest.approx(0.01, rel=0.05)  # 20,000 samples, trimmed: about 1.5 %


def test_noise_of_a_slope() -> None:
    low_pass, noise = LowPass(10.0, 8, 500.0), np.random.default_rng(0).normal(size=(200_000, 1))
    slope = derivative(low_pass(noise), 1.0 / 500.0)
    # a Butterworth filter is not a sharp one
    assert np.var(slope) == pytest.approx(low_pass.slope_noise, rel=0.15)


def test_agreement_at_the_best_lag() -> None:
    """Of vectors with one component, and with two in other axes; noise is in what was measured."""
    t = np.arange(4000) / 200.0
    x = np.stack([np.sin(3.0 * t), np.cos(5.0 * t + 1.0)], axis=1)
    late = np.stack([np.sin(3.0 * (t - 0.02)), np.cos(5.0 * (t - 0.02) + 1.0)], axis=1)
    noise = 0.05 * np.random.default_rng(0).normal(size=x.shape)
    grid = Grid(1.0 / 200.0, {'x': 2, 'y': 2})
    grid.append(np.concatenate([x, 0.8 * late + noise], axis=1), 0.0)
    low_pass = LowPass(10.0, 4, 200.0)
    for own in (slice(0, 1), slice(0, 2)):
        pairs = filtered_pairs(
            grid, lambda rows, own=own: (rows[None, 6:-6, own], rows[6:-6, 2:][:, own]), low_pass
        )
        (sums,) = lagged_sums(pairs, low_pass)
        found = sums.agreement(0)
        assert found.lag == pytest.approx(0.02)
        assert abs(found.low - 0.8) < 4.0 * found.error < 0.02
        assert found.high == pytest.approx(0.8, rel=0.01)
    # a quarter turn of the axes is no agreement, except of axes that are turned
    pairs = filtered_pairs(
        grid, lambda rows: (rows[None, 6:-6, :2], rows[6:-6, 3:1:-1] * [1.0, -1.0]), low_pass
    )
    (sums,) = lagged_sums(pairs, low_pass)
    assert sums.agreement(0).left > 0.9
    assert sums.turned(0).left < 0.01


# ---------------------------------------------------------------- interpolation


@pytest.mark.parametrize('seed', range(3))
def test_interpolation_with_jitter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time = np.arange(500.0) + rng.uniform(-0.15, 0.15, 500)
    at = np.linspace(5.0, 494.0, 3000)
    found, known = interpolate(time, np.sin(0.2 * time)[:, None], at, 2.0)
    assert known.all()
    # (w T)^6 times a factor of the order of 0.005 (0.02 with jitter)
    assert np.abs(found[:, 0] - np.sin(0.2 * at)).max() < 0.02 * 0.2**6


def test_interpolation_does_not_cross_gaps_and_stays_calm_beside_double_messages() -> None:
    time = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 4.001, 5.0, 6.0, 7.0, 20.0, 21.0])
    values = np.arange(11.0)[:, None]
    found, known = interpolate(time, values, np.array([-0.1, 0.0, 4.0005, 4.5, 10.0, 20.0, 21.0, 21.1]), 5.0)
    np.testing.assert_array_equal(known, [False, True, True, True, False, True, True, False])
    assert found[2, 0] == pytest.approx(4.5)
    assert 5.0 <= found[3, 0] <= 6.0


def test_shifted_rows() -> None:
    values = np.sin(0.2 * np.arange(100.0))[:, None]
    at = np.arange(10, 90)
    for shift in (0.0, 1.0, -3.0, 0.37, -2.61):
        found = shifted(values, shift, at)[:, 0]
        assert np.abs(found - np.sin(0.2 * (at + shift))).max() < (1e-15 if shift % 1.0 == 0.0 else 1e-6)


# ---------------------------------------------------------------- motions that are known


@pytest.mark.parametrize('seed', [0, 1])
@pytest.mark.parametrize('velocity', [True, False], ids=['velocity', 'no_velocity'])
def test_samples_of_an_arm_are_the_filtered_truth(tmp_path: Path, seed: int, velocity: bool) -> None:
    truth = arm_truth(duration=10.0, seed=seed)
    u = truth.u if velocity else None
    messages = bags.joint_states(truth.stamps, truth.model.joint_names, truth.q, u, truth.tau)
    samples, found, report = samples_of(write(tmp_path / 'bag', messages), truth.model, cutoff=8.0, delay=0.0)
    low_pass = LowPass(8.0, 4, 500.0)
    rows = np.rint(found['time'] * 500.0).astype(int)
    # away from the ends, where derivatives of reflected rows differ from reflected derivatives
    inner = slice(8, -8)
    for name in ('q', 'u', 'du', 'tau'):
        expected = low_pass(getattr(truth, name))[rows]
        error = np.abs(found[name] - expected)[inner].max()
        assert error < 1e-5 * np.abs(expected).max(), name
    np.testing.assert_allclose(np.diff(found['time']), np.diff(found['time'])[0], atol=1e-9)
    rms = np.sqrt(np.mean(residuals(samples, truth.model, 'fixed')[0] ** 2, axis=0))
    # What a filter does to products of what it filters is left: waves of 1 Hz in a window of 0.1 s.
    assert np.all(rms < 2e-3 * np.abs(truth.tau).max(axis=0))
    assert bool(report.sources[0].velocity_factor) == velocity


@pytest.fixture(scope='module')
def moving(tmp_path_factory: Any) -> tuple[Truth, Path]:
    """A quadruped with everything that can be measured; its odometry and its forces come half as often."""
    truth = quadruped_truth(duration=8.0)
    half = truth.at(slice(None, None, 2))
    messages = bags.quadruped_messages(truth) + bags.odometry(half)
    messages += bags.imu(truth, (0.05, 0.02, 0.03)) + bags.foot_forces(half, 'foot')
    return truth, write(tmp_path_factory.mktemp('moving') / 'bag', messages)


@pytest.mark.parametrize('base', ['odom', 'imu'])
@pytest.mark.parametrize('mode', ['forces', 'projection', 'base'])
def test_the_equation_of_motion_holds_for_a_floating_base(
    moving: tuple[Truth, Path], base: str, mode: str
) -> None:
    """A wrong frame of a twist, gravity too much or too little, a wrong point of contact: all would show."""
    truth, path = moving
    place = {'imu_position': (0.05, 0.02, 0.03)} if base == 'imu' else {}
    samples, found, report = samples_of(path, truth.model, base=base, **place)
    r, _ = residuals(samples, truth.model, mode)
    weight = truth.model.total_mass * 9.81
    scale = np.concatenate(
        [np.full(3, weight), np.full(3, 0.2 * weight), np.full(12, np.abs(truth.tau).max())]
    )
    # At the ends a little of how rows are continued beyond them is left.
    assert np.abs(r / scale[: r.shape[1]]).max() < 1e-3
    assert np.abs(r / scale[: r.shape[1]])[6:-6].max() < 1e-4
    assert report.sources[0].base == base
    assert report.delay.value == 0.0
    assert report.force_delay.value == 0.0
    assert np.all(found['stance'] == 1.0)
    if base == 'odom':
        low_pass = LowPass(report.cutoff, 4, 500.0)
        rows = np.rint(found['time'] * 500.0).astype(int)
        np.testing.assert_allclose(found['u'][5:-5], low_pass(truth.u)[rows][5:-5], atol=5e-4)
        np.testing.assert_allclose(found['du'][5:-5], low_pass(truth.du)[rows][5:-5], atol=5e-3)
    else:
        assert np.all(found['u'][:, :3] == 0.0)
        assert any('from the IMU' in note for note in report.sources[0].notes)


def test_an_imu_that_is_turned(tmp_path: Path) -> None:
    """It sits on a link that is fixed to the base, but turned; forces are in axes of the feet."""
    import warnings

    from scipy.spatial.transform import Rotation

    mount = Rotation.from_euler('ZYX', [0.7, -0.4, 2.1])
    roll, pitch, yaw = mount.as_euler('xyz')
    plain = bags.robot('mini_cheetah')
    link = f"""<link name="imu_link"/><joint name="imu_mount" type="fixed">
        <parent link="{plain.base_name}"/><child link="imu_link"/>
        <origin xyz="0.1 0.02 -0.05" rpy="{roll} {pitch} {yaw}"/></joint></robot>"""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = qd.load_model(plain.to_urdf().replace('</robot>', link))
    truth = quadruped_truth(duration=5.0, model=model)
    model = truth.model
    # what the IMU reads: that of a straight one at the same point, turned
    messages = bags.imu(truth, np.array([0.1, 0.02, -0.05]) + mount.apply([0.01, 0.0, 0.0]))
    for _, _, _, message in messages:
        for field in ('angular_velocity', 'linear_acceleration'):
            old = getattr(message, field)
            setattr(message, field, bags.vector(mount.inv().apply([old.x, old.y, old.z])))
        o = message.orientation
        message.orientation = bags.quaternion((Rotation.from_quat([o.x, o.y, o.z, o.w]) * mount).as_quat())
    messages += bags.quadruped_messages(truth) + bags.foot_forces(truth, 'foot')
    path = write(tmp_path / 'bag', messages)
    place = {'imu_link': 'imu_link', 'imu_position': (0.01, 0.0, 0.0)}
    samples, _, _ = samples_of(path, model, **place)
    r, _ = residuals(samples, model, 'forces')
    assert np.abs(r[:, :6]).max() < 1e-3 * model.total_mass * 9.81
    # and that it was turned matters
    with pytest.raises(ArgumentError, match='foot forces pull down'):
        samples_of(path, model)


def test_an_imu_on_a_moving_link_is_refused(moving: tuple[Truth, Path]) -> None:
    truth, path = moving
    with pytest.raises(
        ArgumentError, match="imu_link is 'FL_calf'; expected a link that is fixed to the base"
    ):
        samples_of(path, truth.model, base='imu', imu_link='FL_calf')


# ---------------------------------------------------------------- delay


@pytest.mark.parametrize('delay', slow_but([2e-3], [0.0, 2e-3, -1.3e-3]))
@pytest.mark.parametrize('seed', slow_but([0], [0, 1]))
def test_delay_of_torques(tmp_path: Path, delay: float, seed: int) -> None:
    """60 s with the noise of real sensors, and friction."""
    options = {'seed': seed, 'friction': (0.1, 0.3)}
    truth = arm_truth(duration=60.0, **options)
    late = arm_truth(t=truth.t - delay, **options)
    path = arm_bag(tmp_path / 'bag', truth, TYPICAL, seed=seed, late=late)
    _, _, report = samples_of(path, truth.model)
    assert abs(report.delay.estimate - delay) < 0.2e-3
    assert report.delay.error < 0.1e-3
    assert abs(report.delay.estimate - delay) < 4.0 * report.delay.error
    if not delay:
        assert report.delay.value == 0.0


@pytest.mark.parametrize('seed', slow_but([0], range(3)))
def test_delay_of_the_forces_of_a_quadruped(tmp_path: Path, seed: int) -> None:
    truth = quadruped_truth(duration=8.0, seed=seed)
    late = quadruped_truth(t=truth.t - 2e-3, seed=seed)
    messages = bags.joint_states(
        truth.stamps, truth.model.joint_names, truth.q[:, 7:], truth.u[:, 6:], late.tau
    )
    path = write(tmp_path / 'bag', messages + bags.odometry(truth) + bags.foot_forces(truth, delay=3e-3))
    _, _, report = samples_of(path, truth.model)
    assert report.delay.value == pytest.approx(2e-3, abs=5e-5)
    assert report.force_delay.value == pytest.approx(3e-3, abs=5e-5)
    path = write(tmp_path / 'blind', messages + bags.odometry(truth))
    _, _, report = samples_of(path, truth.model, stance='all')
    assert report.delay.value == pytest.approx(2e-3, abs=5e-5)
    assert not report.forces_measured


def test_delays_can_be_given(tmp_path: Path) -> None:
    truth = arm_truth(duration=5.0)
    late = arm_truth(t=truth.t - 4e-3)
    path = arm_bag(tmp_path / 'bag', truth, late=late)
    samples, _, report = samples_of(path, truth.model, delay=4e-3)
    assert report.delay.how == 'given'
    assert np.abs(residuals(samples, truth.model, 'fixed')[0]).max() < 5e-3 * np.abs(truth.tau).max()
    assert 'delay of torques behind positions: 4.00 ms (given)' in report.text()


# ---------------------------------------------------------------- clock


def test_the_length_of_segments_changes_nothing(tmp_path: Path) -> None:
    truth = arm_truth(duration=30.0, friction=(0.1, 0.3))
    path = arm_bag(tmp_path / 'bag', truth, TYPICAL)
    results = []
    for chunk in (1.7, 7.0, 100.0):
        source = open_source(path, truth.model, chunk=chunk)
        samples, report = collect([source], truth.model, SignalSettings(chunk=chunk, cutoff=10.0, delay=0.0))
        results.append((samples.all(), report))
    for rows, report in results[1:]:
        np.testing.assert_allclose(rows, results[0][0], atol=1e-9)
        assert report.sources[0].counts.samples == results[0][1].sources[0].counts.samples


def test_gaps_split_blocks_and_jitter_is_reported(tmp_path: Path) -> None:
    t = np.arange(10_000) / 500.0
    t = t + np.random.default_rng(0).uniform(-4e-4, 4e-4, len(t))
    truth = arm_truth(t=t)
    kept = ~((t > 5.0) & (t < 5.5)) & ~((t > 12.0) & (t < 12.02))
    kept[[100, 300, 301]] = False  # two short holes, which are bridged
    samples, found, report = samples_of(arm_bag(tmp_path / 'bag', truth.at(kept)), truth.model)
    clock = report.sources[0].clocks['position']
    assert clock.gaps == 2
    assert clock.longest == pytest.approx(0.5, abs=5e-3)
    steps = np.diff(t[kept])
    assert clock.jitter == pytest.approx(np.std(steps[steps < 0.01]), rel=1e-3)
    blocks = np.unique(found['segment'])
    assert len(blocks) == 3
    for block in blocks:
        mine = found['time'][found['segment'] == block]
        assert not np.any((mine[:-1] < 5.2) & (mine[1:] > 5.2))
        np.testing.assert_allclose(np.diff(mine), np.diff(mine)[0], atol=1e-6)
    reach = 1.5 / report.cutoff
    assert np.abs(found['time'] - 5.25).min() > 0.25 + reach - 0.01
    rms = np.sqrt(np.mean(residuals(samples, truth.model, 'fixed')[0] ** 2, axis=0))
    assert np.all(rms < 2e-3 * np.abs(truth.tau).max(axis=0))


def test_double_stamps_are_counted(tmp_path: Path) -> None:
    truth = arm_truth(duration=5.0)
    stamps = truth.stamps.copy()
    stamps[[700, 1200]] = stamps[[699, 1199]]
    path = arm_bag(tmp_path / 'bag', truth, header_stamps=stamps)
    _, _, report = samples_of(path, truth.model)
    assert report.sources[0].clocks['position'].doubled == 2


def test_two_recordings(tmp_path: Path) -> None:
    truths = [arm_truth(duration=6.0, seed=1), arm_truth(duration=4.0, rate=250.0, seed=2)]
    model = truths[0].model
    sources = [
        open_source(arm_bag(tmp_path / f'{i}', truth, Errors(torque=0.01)), model)
        for i, truth in enumerate(truths)
    ]
    samples, report = collect(sources, model)
    rows = samples.all()
    time, block = (samples.layout.get(rows, name) for name in ('time', 'segment'))
    assert set(block) == {0.0, 1.0}
    assert np.all(np.diff(block) >= 0.0)
    assert [source.rate for source in report.sources] == pytest.approx([500.0, 250.0])
    assert time[block == 0.0].max() < 6.0
    assert time[block == 1.0].min() < 1.0


def test_the_same_input_gives_the_same_output(tmp_path: Path) -> None:
    truth = arm_truth(duration=5.0)
    path = arm_bag(tmp_path / 'bag', truth, TYPICAL)
    (first, _, one), (second, _, two) = (samples_of(path, truth.model) for _ in range(2))
    np.testing.assert_array_equal(first.all(), second.all())
    assert one.to_dict() == two.to_dict()
    assert one.text() == two.text()


# ---------------------------------------------------------------- what counts


def test_joints_at_rest_and_at_their_limits_do_not_count(tmp_path: Path) -> None:
    """The second joint rests between 4 and 8 s; the first reaches the limit of its torque for a moment."""
    truth = arm_truth(duration=15.0, friction=(0.0, 0.3), size=1.5)
    q, u, du = truth.q.copy(), truth.u.copy(), truth.du.copy()
    # It is slowed down and started again smoothly: time stands still for it.
    stand = np.clip(np.minimum(truth.t - 3.0, 9.0 - truth.t), 0.0, 1.0)
    pace = 1.0 - stand**2 * (3.0 - 2.0 * stand)
    own = np.cumsum(pace) / 500.0
    slowed = arm_truth(t=own, size=1.5)
    dpace = np.gradient(pace, 1.0 / 500.0)
    q[:, 1], u[:, 1] = slowed.q[:, 1], slowed.u[:, 1] * pace
    du[:, 1] = slowed.du[:, 1] * pace**2 + slowed.u[:, 1] * dpace
    tau = qd.inverse_dynamics(truth.model, q, u, du) + 0.3 * np.sign(u)
    limit = truth.model.effort_limit[0]
    hit = (truth.t > 12.0) & (truth.t < 12.05)
    tau[hit, 0] = limit
    rng = np.random.default_rng(0)
    path = write(
        tmp_path / 'bag',
        bags.joint_states(
            truth.stamps,
            truth.model.joint_names,
            q + 2e-4 * rng.normal(size=q.shape),
            u + 0.02 * rng.normal(size=q.shape),
            tau,
        ),
    )
    samples, found, report = samples_of(path, truth.model, delay=0.0)
    time, use = found['time'], found['use']
    assert not use[(time > 4.0) & (time < 8.0), 1].any()
    assert use[(time > 4.0) & (time < 8.0), 0].mean() > 0.5
    assert use[(time < 2.5) | (time > 9.5), 1].mean() > 0.7
    reach = 0.5 / report.cutoff
    assert np.isfinite(limit) == (not use[np.abs(time - 12.025) < reach, 0].any())
    # What counts obeys the law of friction: the filtered sign is as good as the filtered torque.
    model = truth.model
    share = float(report.sources[0].counts.resting[1]) / len(samples)
    assert f'rows do not count, {percent(share)} of joint2' in '\n'.join(report.text())
    r, used = residuals(samples, model, 'fixed')
    assert np.abs(r * used)[np.abs(time - 12.025) > 0.5].max() < 0.08


def test_the_sign_is_filtered_as_torques_are(tmp_path: Path) -> None:
    """Coulomb friction through quick reversals: the law holds to a few percent of it, all the way."""
    truth = arm_truth(duration=15.0, friction=(0.05, 0.5), size=2.0)
    samples, found, _ = samples_of(arm_bag(tmp_path / 'bag', truth), truth.model)
    assert np.abs(found['sign']).min() < 0.5
    assert np.abs(found['sign']).max() < 1.2
    r, used = residuals(samples, truth.model, 'fixed')
    assert used.mean() > 0.8
    assert np.abs(r * used).max() < 0.05 * 0.5 + 2e-3 * np.abs(truth.tau).max()


def test_the_cutoff_follows_motion_and_noise(tmp_path: Path) -> None:
    slow, fast = arm_truth(duration=20.0), arm_truth(t=np.arange(10_000) / 500.0 * 4.0)
    fast = Truth(fast.model, fast.t / 4.0, fast.q, 4.0 * fast.u, 16.0 * fast.du, fast.tau, fast.force)
    cutoffs = []
    for i, (truth, errors) in enumerate([(slow, TYPICAL), (fast, TYPICAL), (fast, Errors())]):
        _, _, report = samples_of(arm_bag(tmp_path / str(i), truth, errors), truth.model)
        cutoffs.append(report.cutoff)
        assert report.automatic
        assert f'cutoff {report.cutoff:.3g} Hz (chosen)' in '\n'.join(report.text())
    # waves of up to 1 Hz and up to 4 Hz
    assert 5.0 <= cutoffs[0] < 10.0
    assert 8.0 < cutoffs[1] <= cutoffs[2] < 25.0


# ---------------------------------------------------------------- velocities


def test_a_late_velocity_is_found_and_corrected(tmp_path: Path) -> None:
    truth = arm_truth(duration=10.0)
    late = arm_truth(t=truth.t - 3e-3)
    messages = bags.joint_states(truth.stamps, truth.model.joint_names, truth.q, late.u, truth.tau)
    samples, found, report = samples_of(write(tmp_path / 'bag', messages), truth.model, cutoff=8.0)
    np.testing.assert_allclose(report.sources[0].velocity_lag, 3e-3, atol=1e-5)
    np.testing.assert_allclose(report.sources[0].velocity_factor, 1.0, atol=1e-3)
    rows = np.rint(found['time'] * 500.0).astype(int)
    expected = LowPass(8.0, 4, 500.0)(truth.du)[rows]
    assert np.abs(found['du'] - expected)[8:-8].max() < 1e-3 * np.abs(expected).max()
    assert report.delay.value == 0.0
    assert len(samples) > 0


def test_a_velocity_that_is_not_quite_right_is_noted_and_left_out(tmp_path: Path) -> None:
    truth = arm_truth(duration=10.0)
    messages = bags.joint_states(truth.stamps, truth.model.joint_names, truth.q, 1.08 * truth.u, truth.tau)
    _, found, report = samples_of(write(tmp_path / 'bag', messages), truth.model, cutoff=8.0)
    assert report.sources[0].velocity_used == (False, False)
    [note] = report.sources[0].notes
    assert 'not quite 1 for joint1 (1.08), joint2 (1.08); positions are differentiated there' in note
    assert 'time stamps may be scaled' in note
    rows = np.rint(found['time'] * 500.0).astype(int)
    expected = LowPass(8.0, 4, 500.0)(truth.u)[rows]
    assert np.abs(found['u'] - expected)[8:-8].max() < 1e-4 * np.abs(expected).max()


# ---------------------------------------------------------------- contact


@pytest.fixture(scope='module')
def trotting(tmp_path_factory: Any) -> tuple[Any, Any, Path]:
    """A quadruped that trots in the simulator, with perfect sensors."""
    from quad_dynamics.simulation.gaits import Trot

    model = bags.robot('mini_cheetah')
    sim = qd.Simulator(model)
    sim.reset(model.standing)
    log = sim.run(Trot(model), 4.0, progress=False)
    path = tmp_path_factory.mktemp('trot') / 'bag'
    log.to_bag(path)
    return model, log, path


def test_no_filter_crosses_an_impact(trotting: tuple[Any, Any, Path]) -> None:
    model, log, path = trotting
    samples, found, report = samples_of(path, model, cutoff=40.0)
    assert report.sources[0].impacts > 5
    weight = model.total_mass * 9.81
    rise = np.diff(log.foot_forces[..., 2], axis=0).max(axis=1)
    hits = log.time[1:][rise > 0.3 * weight] - log.time[0]
    assert len(hits) > 5
    for hit in hits:
        before, after = found['time'] < hit, found['time'] > hit
        assert not set(found['segment'][before]) & set(found['segment'][after])
        assert np.abs(found['time'] - hit).min() > 0.5 / 40.0
    r, _ = residuals(samples, model, 'forces')
    level = np.sqrt(np.mean(r[:, :6] ** 2, axis=0))
    assert np.all(level < 0.03 * weight)


@pytest.mark.parametrize('method', ['forces', 'kinematics'])
def test_feet_on_the_ground(trotting: tuple[Any, Any, Path], method: str) -> None:
    """A foot that carries a tenth of the weight is seen to stand, but for moments by its motion alone."""
    model, log, path = trotting
    _, found, report = samples_of(path, model, cutoff=40.0, stance=method)
    assert report.sources[0].stance == method
    rows = np.rint(found['time'] * 1000.0).astype(int)
    carries = log.foot_forces[rows, :, 2] > 0.1 * model.total_mass * 9.81
    missed = np.mean(carries & (found['stance'] == 0.0))
    assert missed <= (0.0 if method == 'forces' else 0.05)
    assert 0.3 < found['stance'].mean() < 0.98


def test_all_feet_stand_where_nothing_tells(moving: tuple[Truth, Path], tmp_path: Path) -> None:
    truth = quadruped_truth(duration=4.0)
    path = write(tmp_path / 'bag', bags.quadruped_messages(truth) + bags.imu(truth))
    _, found, report = samples_of(path, truth.model)
    assert np.all(found['stance'] == 1.0)
    assert np.all(found['force'] == 0.0)
    assert 'all feet are taken to stand all the time' in report.sources[0].notes
    with pytest.raises(ArgumentError, match="stance is 'kinematics', but there is no odometry"):
        samples_of(path, truth.model, stance='kinematics')


def test_forces_that_pull_down_are_refused(tmp_path: Path) -> None:
    truth = quadruped_truth(duration=3.0)
    wrong = Truth(truth.model, truth.t, truth.q, truth.u, truth.du, truth.tau, -truth.force)
    path = write(
        tmp_path / 'bag', bags.quadruped_messages(truth) + bags.odometry(truth) + bags.foot_forces(wrong)
    )
    with pytest.raises(
        ArgumentError, match=r'foot forces pull down with 87.* N; expected forces of the ground'
    ):
        samples_of(path, truth.model)


# ---------------------------------------------------------------- faults of sensors


def test_spikes_of_torques_are_not_used(tmp_path: Path) -> None:
    truth = arm_truth(duration=10.0)
    tau = truth.tau + 0.05 * np.random.default_rng(0).normal(size=truth.tau.shape)
    tau[[1500, 3000, 3001], 1] += 40.0
    messages = bags.joint_states(truth.stamps, truth.model.joint_names, truth.q, truth.u, tau)
    samples, found, report = samples_of(write(tmp_path / 'bag', messages), truth.model)
    for time in (3.0, 6.0):
        near = np.abs(found['time'] - time) < 0.5 / report.cutoff
        assert not found['use'][near, 1].any()
        assert found['use'][near, 0].all()
    assert 0.0 < report.sources[0].counts.spikes[1] < 0.1 * len(samples)
    assert report.sources[0].counts.spikes[0] == 0.0
    r, use = residuals(samples, truth.model, 'fixed')
    # 40 N m in one row of 500 a second, and at most a hundredth of its weight in the filter
    assert np.abs(r * use).max() < 0.5


def test_spikes_of_positions_are_not_filtered(tmp_path: Path) -> None:
    truth = arm_truth(duration=10.0)
    q = truth.q + 2e-4 * np.random.default_rng(0).normal(size=truth.q.shape)
    q[2500, 0] += 0.3
    messages = bags.joint_states(truth.stamps, truth.model.joint_names, q, truth.u, truth.tau)
    samples, found, report = samples_of(write(tmp_path / 'bag', messages), truth.model)
    assert np.abs(found['time'] - 5.0).min() > 1.0 / report.cutoff
    assert np.abs(residuals(samples, truth.model, 'fixed')[0]).max() < 0.02 * np.abs(truth.tau).max()


# ---------------------------------------------------------------- a simulated robot with real sensors


def test_a_noisy_bag_of_the_simulator_is_at_its_noise_floor(tmp_path: Path) -> None:
    """What is left of the true model is the noise of the torque sensors after the filter, and their bias."""
    from quad_dynamics.simulation.command import JointCommand

    model = bags.robot('two_link_arm').with_friction(np.full(2, 0.05), np.full(2, 0.2))
    truth = arm_truth(t=np.arange(12_000) * 1e-3, size=1.0)
    sim = qd.Simulator(model)
    sim.reset(truth.q[0], truth.u[0])

    def law(s: Any) -> Any:
        i = min(round(s.time * 1000.0), len(truth.t) - 1)
        return JointCommand(truth.tau[i], truth.q[i], truth.u[i], np.full(2, 60.0), np.full(2, 4.0))

    log = sim.run(law, 12.0, progress=False)
    settings = SensorSettings.typical().replace(joint_torque={'bias': 0.0})
    log.to_bag(tmp_path / 'bag', sensors=qd.SensorSuite(model, settings, 3, log.dt))
    samples, _, report = samples_of(tmp_path / 'bag', model)
    # The integrator of the simulator is late by a step: torques act on the state before them.
    assert report.delay.estimate == pytest.approx(1e-3, abs=max(0.2e-3, 3.0 * report.delay.error))
    r, use = residuals(samples, model, 'fixed')
    level = np.sqrt(np.sum(r**2 * use, axis=0) / use.sum(axis=0))
    f = np.linspace(0.0, 100.0, 10_001)
    _, response = signal.freqz_sos(signal.butter(4, report.cutoff / 500.0, output='sos'), f, fs=1000.0)
    floor = 0.05 * np.sqrt(2.0 * np.trapezoid(np.abs(response) ** 4, f) / 1000.0)
    assert np.all(level < 2.0 * floor)


# ---------------------------------------------------------------- report


def test_the_report_says_what_was_done(moving: tuple[Truth, Path]) -> None:
    import yaml

    truth, path = moving
    _, _, report = samples_of(path, truth.model)
    text = '\n'.join(report.text())
    for part in (
        str(path),
        'sha256',
        '500 Hz',
        'base from odom',
        'Butterworth of order 4',
        'delay of foot forces',
    ):
        assert part in text
    data = report.to_dict()
    assert yaml.safe_load(yaml.safe_dump(data)) == data
    assert data['sources'][0]['joints']['FL_hip_joint']['velocity_used']


@pytest.mark.slow
def test_memory_does_not_grow_with_the_recording() -> None:
    import tracemalloc

    from quad_dynamics.identification.recordings.recording import Channel, Source
    from quad_dynamics.identification.recordings.topics import Topics

    class Endless(Source):
        def __init__(self, duration: float) -> None:
            super().__init__('endless', '0' * 64, Topics())
            self.duration = duration

        def chunks(self) -> Any:
            for begin in np.arange(0.0, self.duration, 10.0):
                part = arm_truth(t=begin + np.arange(5000) / 500.0)
                rng = np.random.default_rng(int(begin))
                yield {
                    'position': Channel(part.stamps, part.q + 2e-4 * rng.normal(size=part.q.shape)),
                    'velocity': Channel(part.stamps, part.u + 0.02 * rng.normal(size=part.q.shape)),
                    'effort': Channel(part.stamps, part.tau + 0.05 * rng.normal(size=part.q.shape)),
                }

    model, peaks = bags.robot('two_link_arm'), []
    collect([Endless(60.0)], model)
    for duration in (60.0, 240.0):
        tracemalloc.start()
        samples, _ = collect([Endless(duration)], model)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(samples) > 10.0 * duration
    assert peaks[1] < 1.3 * peaks[0] + 2e6
