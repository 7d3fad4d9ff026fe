# SPDX-License-Identifier: Apache-2.0
"""Live estimates: windows of the recording become samples for a Kalman filter.

The windows overlap, so that forward-backward filters have settled where samples are taken.
"""

from __future__ import annotations

from typing import Any

import yaml

from identification.settings import IdentificationSettings
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.kalman import KalmanFilter, KalmanSettings
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import first_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.recordings.live import LiveRecording, Window
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import collect
from quad_dynamics.identification.solvers.freedom import make_freedom, textbook_freedom
from quad_dynamics.model.model import Model

_EDGE = 0.5  # of a window, where filters have not settled [s]
_CUTOFF = 20.0  # [Hz]
_ADAPT = 0.02  # share of a sample in the variance of the rows
_CORRELATION = 3.0  # neighbouring samples whose errors depend on each other


class LiveFilter:
    """The filter and its progress.

    Attributes:
        message: why there is no newer estimate; '' if all is well.
    """

    def __init__(self, model: Model, settings: IdentificationSettings) -> None:
        """Start with the parameters of the model.

        Raises:
            ArgumentError: the free parameters are invalid.
        """
        self._model, self._settings = model, settings
        self._columns = make_columns(model)
        self._freedom = textbook_freedom(make_freedom(self._columns, settings.free, settings.tie_legs))
        self._filter: KalmanFilter | None = None
        self._done = -1
        self.message = 'no samples yet'
        self._make('fixed' if not model.floating_base else 'forces')

    def _make(self, mode: str) -> KalmanFilter:
        noise = first_noise(self._columns, mode == 'projection')
        equations = Equations(Samples(self._model), self._columns, mode, noise)
        settings = KalmanSettings(adapt=_ADAPT, correlation=_CORRELATION)
        return KalmanFilter(equations, self._freedom, settings)

    def advance(self, recording: LiveRecording) -> bool:
        """Process new data; whether there was any."""
        window = round(self._settings.estimate_window * 1e9)
        begin = max(recording.first, recording.last - window)
        if recording.first < 0 or recording.last - begin < 0.9 * window:
            return False
        try:
            used = self._take(Window(recording, begin, recording.last + 1), begin)
        except ArgumentError as error:
            self.message = str(error)
            return False
        return used

    def _take(self, source: Window, begin: int) -> bool:
        cutoff = self._settings.cutoff or _CUTOFF
        signals = SignalSettings(cutoff=cutoff, delay=0.0, force_delay=0.0)
        samples, report = collect([source], self._model, signals)
        if self._filter is None:
            mode = 'forces' if report.forces_measured else 'projection'
            self._filter = self._make(mode if self._model.floating_base else 'fixed')
        rows = samples.all()
        time = samples.layout.get(rows, 'time')
        stamps = begin + time * 1e9
        # the beginning of a window was taken with the window before, or is left out
        fresh = (stamps > max(self._done, begin + _EDGE * 1e9)) & (time < time[-1] - _EDGE)
        if not fresh.any():
            return False
        self._done = int(stamps[fresh][-1])
        # time that goes on from window to window
        chosen = rows[fresh].copy()
        samples.layout.get(chosen, 'time')[:] = stamps[fresh] * 1e-9
        self._filter.update(chosen)
        self.message = ''
        return True

    def text(self) -> str:
        """The estimate as YAML; '' before the first."""
        if self._filter is None:
            return ''
        x, std = self._filter.x, self._filter.std
        free = self._freedom.free
        columns = self._columns
        parameters: dict[str, Any] = {
            name: {'value': _short(x[i]), 'std': _short(std[i]), 'unit': columns.units[i]}
            for i, name in enumerate(columns.names)
            if free[i]
        }
        data = {
            'stamp': round(self._done * 1e-9, 6),
            'samples': self._filter.samples,
            'mass': _short(x[columns.slices['pi']][::10].sum() + self._model.rotor_pi[::10].sum()),
            'parameters': parameters,
        }
        return str(yaml.safe_dump(data, sort_keys=False))


def _short(value: float) -> float:
    return float(f'{float(value):.6g}')
