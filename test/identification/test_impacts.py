# SPDX-License-Identifier: Apache-2.0
"""Identification from logs of legged robots whose feet hit the ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from legged_logs import PAYLOAD, VISCOUS, legged_log, write_csv

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.cutoff_choice import CutoffJudge
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.signals.delay import Delay, Delays
from quad_dynamics.identification.signals.filters import LowPass
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import Logs
from quad_dynamics.identification.solvers.freedom import make_freedom

ACCELERATIONS = ('acceleration', 'base_acceleration')
EXTRA = ('contact', *ACCELERATIONS)  # what few logs have


def judged(path: Path, model: Any) -> tuple[float, Any, Logs]:
    """The cutoff that fits choose, those that they refuse, and the logs."""
    logs = Logs([open_source(path, model)], model, SignalSettings(delay=1e-3, force_delay=1e-3))
    columns = make_columns(model)
    delays = logs.find_delays(logs.spectral_cutoff)
    judge = CutoffJudge(logs, delays, columns, 'forces', make_freedom(columns))
    samples, _ = logs.samples(logs.spectral_cutoff, delays)
    return *judge.choose(samples), logs


# ---------------------------------------------------------------- the cutoff


@pytest.mark.slow
def test_a_cutoff_at_which_impacts_bend_the_fit_is_refused(tmp_path: Path) -> None:
    """Spectra of a trot reach as far as the rate allows; at 200 Hz legs explain what is no rigid motion."""
    log = legged_log(seconds=8.0)
    cutoff, refused, logs = judged(log.save(tmp_path / 'log.npz', *EXTRA), log.model)
    assert logs.spectral_cutoff == 200.0
    assert [one.cutoff for one in refused][:1] == [200.0]
    assert refused[0].factor > 1.3
    assert 40.0 < cutoff < 130.0


@pytest.mark.slow
def test_a_cutoff_that_nothing_speaks_against_is_kept(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=8.0)
    cutoff, refused, logs = judged(log.save(tmp_path / 'log.npz', *EXTRA, every=2), log.model)
    assert not refused
    assert cutoff == logs.spectral_cutoff
    assert cutoff > 1.6 * logs.lowest_cutoff  # there was a lower one to compare with


@pytest.mark.slow
def test_the_payload_of_a_trotting_robot_is_found(tmp_path: Path) -> None:
    log = legged_log(seconds=8.0)
    path = log.save(tmp_path / 'log.npz', *EXTRA)
    result = qd.identify([path], log.model, qd.IdentifySettings(hold_out=False))
    assert result.signals.refused
    assert 'not 200 Hz, as spectra allow' in '\n'.join(result.signals.text())
    assert result.signals.to_dict()['cutoffs_refused'][200.0] == result.signals.refused[0].factor
    found = result.solution.model()
    assert found.total_mass - log.model.total_mass == pytest.approx(PAYLOAD, abs=0.03)
    assert found.pi[0] - log.model.pi[0] == pytest.approx(PAYLOAD, abs=0.05)
    friction = result.solution.x[result.equations.columns.slices['viscous']]
    np.testing.assert_allclose(friction[[1, 2, 4, 5, 7, 8, 10, 11]], VISCOUS, rtol=0.2)


# ---------------------------------------------------------------- impacts that are too frequent to stop at


@pytest.mark.parametrize(
    ('without', 'mass_error'),
    [
        pytest.param(('force', *EXTRA), 0.06, marks=pytest.mark.slow),
        pytest.param(('force', *ACCELERATIONS), 0.01, marks=pytest.mark.slow),
        pytest.param(('force',), 0.01, marks=pytest.mark.slow),
        pytest.param(EXTRA, 0.01, marks=pytest.mark.slow),
        pytest.param((), 0.003, marks=pytest.mark.slow),
    ],
    ids=['nothing', 'flags', 'flags_and_accelerations', 'forces', 'all'],
)
def test_a_trot_at_100_hz(tmp_path: Path, without: tuple[str, ...], mass_error: float) -> None:
    """Feet land every 80 ms or so, and filters need more: they run across impacts, and say so."""
    log = legged_log(seconds=8.0)
    path = log.save(tmp_path / 'log.npz', *without, every=10)
    settings = qd.IdentifySettings(hold_out=False, signals=SignalSettings(cutoff=20.0))
    result = qd.identify([path], log.model, settings)
    (report,) = result.signals.sources
    assert report.across
    text = '\n'.join(result.signals.text())
    assert 'filters run across them' in text
    assert ('accelerations of joints and base in the recording' in text) == ('acceleration' in without)
    assert ('flags of contact in the recording' in text) == (report.stance == 'kinematics')
    true_mass = log.model.total_mass + PAYLOAD
    assert result.solution.model().total_mass == pytest.approx(true_mass, rel=mass_error)


def test_recorded_flags_and_accelerations_are_used(tmp_path: Path) -> None:
    """A sway, whose samples can be compared with the simulator."""
    log = legged_log(motion='sway', seconds=4.0)
    names = ('base_acceleration', 'acceleration', 'contact', 'foot_names')
    exact = {name: log.arrays[name] for name in names}
    path = log.save(tmp_path / 'log.npz', 'force', **exact)
    logs = Logs([open_source(path, log.model)], log.model, SignalSettings(cutoff=30.0, delay=0.0))
    samples, report = logs.samples(30.0, logs.find_delays(30.0))
    assert report.sources[0].stance == 'flags'
    rows = samples.all()
    at = np.rint(samples.layout.get(rows, 'time') / 1e-3).astype(int)
    low_pass = LowPass(30.0, 4, 1000.0)
    du, true = samples.layout.get(rows, 'du'), log.truth.acceleration
    # of the base without noise; filters stop at the ends of pieces
    assert np.median(np.abs(du - low_pass(true)[at])[:, :6], axis=0) == pytest.approx(0.0, abs=0.05)
    stood = samples.layout.get(rows, 'stance')
    assert np.all(stood[log.arrays['contact'][at] > 0.0] == 1.0)


def test_csv_has_flags_and_accelerations_too(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    npz = log.save(tmp_path / 'log.npz', 'force', every=5)
    csv = write_csv(tmp_path / 'log.csv', dict(np.load(npz)))
    first, second = (next(open_source(path, log.model).chunks()) for path in (npz, csv))
    assert set(first) == set(second)
    assert {'acceleration', 'base_acceleration', 'contact/FL_foot'} < set(first)
    for key, channel in first.items():
        np.testing.assert_allclose(second[key].values[:50], channel.values[:50], atol=1e-9)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'acceleration': 57.3}, 'accelerations of the joints are 57'),
        ({'base_acceleration': -1.0}, 'accelerations of the base are -1'),
    ],
    ids=['degrees', 'sign'],
)
def test_accelerations_that_cannot_be_right(tmp_path: Path, changes: dict[str, float], words: str) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    wrong = {name: factor * log.arrays[name] for name, factor in changes.items()}
    path = log.save(tmp_path / 'log.npz', **wrong)
    with pytest.raises(ArgumentError, match=words):
        Logs([open_source(path, log.model)], log.model)


def test_accelerations_with_gravity_are_refused(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    up = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    path = log.save(tmp_path / 'log.npz', base_acceleration=log.arrays['base_acceleration'] + up)
    with pytest.raises(ArgumentError, match='without gravity'):
        Logs([open_source(path, log.model)], log.model)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'contact': np.zeros((10, 4))}, r"'contact' has the shape \(10, 4\); expected"),
        ({'base_acceleration': np.zeros((10, 3))}, r"'base_acceleration' has the shape \(10, 3\)"),
    ],
    ids=['contact', 'base_acceleration'],
)
def test_arrays_of_another_shape(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    path = log.save(tmp_path / 'log.npz', **changes)
    with pytest.raises(ArgumentError, match=words):
        open_source(path, log.model)


def test_flags_of_some_feet_are_not_used(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    feet, flags = log.arrays['foot_names'][:3], log.arrays['contact'][:, :3]
    path = log.save(tmp_path / 'log.npz', 'force', contact=flags, foot_names=feet)
    logs = Logs([open_source(path, log.model)], log.model)
    assert logs.logs[0].stance.method == 'kinematics'
    assert 'contacts of RR_foot were not measured; no contact is used' in logs.logs[0].source.notes
    with pytest.raises(ArgumentError, match="stance is 'flags', but not all feet have flags of contact"):
        Logs([open_source(path, log.model)], log.model, SignalSettings(stance='flags'))


def test_a_log_with_nothing_left_says_what_would_help(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=4.0)
    time = log.arrays['time'].copy()
    time += 1.0 * np.floor(time / 0.3)  # a gap every 0.3 s
    time[:2500] = np.arange(2500) * 1e-3
    time[2500:] += 3.0
    path = log.save(tmp_path / 'log.npz', time=time)
    logs = Logs([open_source(path, log.model)], log.model, SignalSettings(cutoff=1.0, delay=0.0))
    with pytest.raises(ArgumentError, match=r'expected at least 3 s between two of them\. Fewer gaps'):
        logs.samples(1.0, Delays(Delay.given(0.0), Delay.given(0.0)))
