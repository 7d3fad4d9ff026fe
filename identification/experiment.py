# SPDX-License-Identifier: Apache-2.0
"""The work of the node, without ROS: record, solve in a background thread, and keep the results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from identification.live_filter import LiveFilter
from identification.settings import IdentificationSettings
from quad_dynamics.errors import ArgumentError, QuadDynamicsError
from quad_dynamics.identification.pipeline import IdentifySettings, Result, identify_sources
from quad_dynamics.identification.recordings.live import LiveRecording
from quad_dynamics.identification.recordings.recording import Source, open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.report.facts import headline_warnings
from quad_dynamics.identification.report.output_folder import write_results
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.report.summary import found_lines
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.model.model import Model

IDLE, RECORDING, SOLVING, DONE, FAILED = 'idle', 'recording', 'solving', 'done', 'failed'


class Experiment:
    """Recordings and results, one after the other.

    Attributes:
        state: IDLE, RECORDING, SOLVING, DONE or FAILED.
        progress: short text about the current step, the result or the failure.
        recording: the current or last recording; None before the first, and for bags.
        summary: the last result as YAML; '' before the first.
        estimate: the latest running estimate as YAML.
        folder: of the last result; '' before the first.
        results: number of results.
    """

    def __init__(self, model: Model, settings: IdentificationSettings) -> None:
        """Prepare.

        Raises:
            ArgumentError: the settings, the bag or the output folder are invalid.
        """
        self._model, self._settings = model, settings
        self._identify = _identify_settings(settings)
        if settings.live_filter and not settings.bag:
            LiveFilter(model, settings)  # report errors of `free` before the first recording
        if settings.bag:
            open_source(settings.bag, model, self._identify.topics)
        self._root = Path(settings.output)
        if self._root.exists() and not self._root.is_dir():
            raise ArgumentError(f'output is {settings.output!r}, which is a file; expected a folder')
        if not self._root.absolute().parent.is_dir():
            raise ArgumentError(f'output is {settings.output!r}, whose parent folder does not exist')
        self.state, self.progress = IDLE, 'waiting for ~/start'
        self.recording: LiveRecording | None = None
        self.summary = self.estimate = self.folder = ''
        self.results = 0
        self.live: LiveFilter | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    # ---------------------------------------------------------------- commands

    def start(self) -> str:
        """Start to record, or to solve a bag; returns a text about what was started.

        Raises:
            ArgumentError: it is already recording or solving.
        """
        if self.state in (RECORDING, SOLVING):
            raise ArgumentError(f'already {self.state}; expected ~/start when idle')
        if self._settings.bag:
            source = open_source(self._settings.bag, self._model, self._identify.topics)
            self._solve_in_thread(source)
            return f'identifying from {source.name}'
        self._stop.clear()
        self.recording = LiveRecording('live', self._identify.topics)
        self.state, self.progress = RECORDING, 'recording'
        if self._settings.live_filter:
            self.live = LiveFilter(self._model, self._settings)
            self._run(self._follow)
        return 'recording'

    def stop(self) -> str:
        """Stop recording and solve; returns a text about what was started.

        Raises:
            ArgumentError: it is not recording, or nothing was recorded.
        """
        if self.state != RECORDING or self.recording is None:
            raise ArgumentError(f'{self.state}; expected ~/stop while recording')
        recording = self.recording
        self._join()
        recording.close()
        if recording.first < 0:
            self.state, self.progress = FAILED, 'no joint_states arrived during the recording'
            raise ArgumentError(self.progress)
        self._solve_in_thread(recording)
        missing = recording.gaps.sentence()
        return f'solving {recording.seconds:.1f} s of data{f"; {missing}" if missing else ""}'

    def close(self) -> None:
        """Stop the threads; an unfinished solution is abandoned with the process."""
        self._stop.set()
        if self.state == RECORDING:
            self._join()

    # ---------------------------------------------------------------- work

    def _run(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def _join(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _follow(self) -> None:
        """Estimate while recording."""
        recording, live = self.recording, self.live
        assert recording is not None
        assert live is not None
        while not self._stop.wait(self._settings.estimate_period):
            try:
                if live.advance(recording):
                    self.estimate = live.text()
            except Exception as error:  # whatever it is: the recording continues
                live.message = f'{type(error).__name__}: {error}'

    def _solve_in_thread(self, source: Source) -> None:
        self.state, self.progress = SOLVING, 'solving'
        self._run(lambda: self._solve(source))

    def _solve(self, source: Source) -> None:
        try:
            result = identify_sources([source], self._model, self._identify, (), self._tell)
            self._tell('writing the results')
            self._keep(result)
        except QuadDynamicsError as error:
            self.state, self.progress = FAILED, str(error)
        except Exception as error:  # whatever it is, the node continues and reports it
            self.state, self.progress = FAILED, f'{type(error).__name__}: {error}'

    def _tell(self, text: str) -> None:
        self.progress = text

    def _keep(self, result: Result) -> None:
        """Write a result, and publish it."""
        self._root.mkdir(exist_ok=True)
        number = 1
        while (self._root / f'{number:03d}').exists():
            number += 1
        folder = self._root / f'{number:03d}'
        write_results(result, folder)
        self.folder = str(folder.absolute())
        self.summary = parameters_text(result)
        self.results += 1
        where = f'results are in {self.folder}'
        self.progress = '; '.join([*headline_warnings(result), *found_lines(result.solution), where])
        self.state = DONE


def _identify_settings(settings: IdentificationSettings) -> IdentifySettings:
    return IdentifySettings(
        free=settings.free,
        tie_legs=settings.tie_legs,
        topics=Topics(),
        signals=SignalSettings(cutoff=settings.cutoff or None),
    )
