# SPDX-License-Identifier: Apache-2.0
"""Identification from logs of legged robots whose feet hit the ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from legged_logs import PAYLOAD, VISCOUS, legged_log

import quad_dynamics as qd
from quad_dynamics.identification.cutoff_choice import CutoffJudge
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import Logs
from quad_dynamics.identification.solvers.freedom import make_freedom


def judged(path: Path, model: Any) -> tuple[float, Any, Logs]:
    """The cutoff that fits choose, those that they refuse, and the logs."""
    logs = Logs([open_source(path, model)], model, SignalSettings(delay=1e-3, force_delay=1e-3))
    columns = make_columns(model)
    delays = logs.find_delays(logs.spectral_cutoff)
    judge = CutoffJudge(logs, delays, columns, 'forces', make_freedom(columns))
    samples, _ = logs.samples(logs.spectral_cutoff, delays)
    return *judge.choose(samples), logs


# ---------------------------------------------------------------- the cutoff


def test_a_cutoff_at_which_impacts_bend_the_fit_is_refused(tmp_path: Path) -> None:
    """Spectra of a trot reach as far as the rate allows; at 200 Hz legs explain what is no rigid motion."""
    log = legged_log(seconds=8.0)
    cutoff, refused, logs = judged(log.save(tmp_path / 'log.npz'), log.model)
    assert logs.spectral_cutoff == 200.0
    assert [one.cutoff for one in refused][:1] == [200.0]
    assert refused[0].factor > 1.3
    assert 40.0 < cutoff < 130.0


def test_a_cutoff_that_nothing_speaks_against_is_kept(tmp_path: Path) -> None:
    log = legged_log(motion='sway', seconds=8.0)
    cutoff, refused, logs = judged(log.save(tmp_path / 'log.npz', every=2), log.model)
    assert not refused
    assert cutoff == logs.spectral_cutoff
    assert cutoff > 1.6 * logs.lowest_cutoff  # there was a lower one to compare with


@pytest.mark.slow
def test_the_payload_of_a_trotting_robot_is_found(tmp_path: Path) -> None:
    log = legged_log(seconds=8.0)
    path = log.save(tmp_path / 'log.npz')
    result = qd.identify([path], log.model, qd.IdentifySettings(hold_out=False))
    assert result.signals.refused
    assert 'not 200 Hz, as spectra allow' in '\n'.join(result.signals.text())
    assert result.signals.to_dict()['cutoffs_refused'][200.0] == result.signals.refused[0].factor
    found = result.solution.model()
    assert found.total_mass - log.model.total_mass == pytest.approx(PAYLOAD, abs=0.03)
    assert found.pi[0] - log.model.pi[0] == pytest.approx(PAYLOAD, abs=0.05)
    friction = result.solution.x[result.equations.columns.slices['viscous']]
    np.testing.assert_allclose(friction[[1, 2, 4, 5, 7, 8, 10, 11]], VISCOUS, rtol=0.2)
