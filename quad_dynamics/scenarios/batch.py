# SPDX-License-Identifier: Apache-2.0
"""Runs all seeds of several scenarios, in one process or several, and writes the results."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from quad_dynamics.bags.writers import check_new
from quad_dynamics.errors import ArgumentError, QuadDynamicsError
from quad_dynamics.model.model import Model
from quad_dynamics.scenarios.controller import ControllerSource
from quad_dynamics.scenarios.plots import plot_overview, plot_run
from quad_dynamics.scenarios.results import Row, write_results
from quad_dynamics.scenarios.runner import Progress, check_robot, run_seed
from quad_dynamics.scenarios.scenario_file import ScenarioFile
from quad_dynamics.simulation.sensors import SensorSuite

# Robots that this process has loaded for the current batch: to load one takes 0.1 s.
_loaded: dict[str, Model] = {}


@dataclass(frozen=True)
class _Job:
    """One seed of one scenario, and where its files go."""

    file: ScenarioFile
    seed: int
    folder: Path
    bag: bool
    plots: bool
    controller: ControllerSource

    @property
    def bag_path(self) -> Path:
        """Path of the bag."""
        return self.folder / f'seed_{self.seed}_bag'


def run_batch(
    files: Sequence[ScenarioFile],
    output: str | os.PathLike[str],
    seed: int | None = None,
    jobs: int = 1,
    bag: bool = False,
    plots: bool = True,
    controller: ControllerSource = None,
    progress: Progress | None = None,
) -> list[list[Row]]:
    """Run scenarios and write `results.csv`, and for each scenario a folder with traces and plots.

    Results do not depend on the number of processes, except for wall-clock times.

    Args:
        files: scenarios with unique names.
        output: folder, created if it is missing; files in it are overwritten, but bags are not.
        seed: the only seed to run; None: all seeds of each scenario.
        jobs: number of processes. With more than one, the controller must be picklable.
        bag: whether to write a bag per seed.
        plots: whether to draw plots.
        controller: see `run_scenario`.
        progress: called regularly with the time simulated since the last call [s].

    Returns:
        The rows of each scenario, in the order of its seeds.

    Raises:
        ArgumentError: a scenario is invalid, two have the same name, or a bag already exists.
    """
    folder = Path(output)
    work = [
        _Job(file, number, folder / file.name, bag, plots, controller)
        for file in files
        for number in (file.seeds if seed is None else (seed,))
    ]
    _loaded.clear()  # files may have changed since the last batch
    _check(files, work)
    for job in work:
        job.folder.mkdir(parents=True, exist_ok=True)
    rows: dict[int, Row] = {}
    for i, row in _rows(work, jobs, progress):
        rows[i] = row
        write_results([rows[k] for k in sorted(rows)], folder / 'results.csv')
    found = [[rows[i] for i, job in enumerate(work) if job.file is file] for file in files]
    for file, own in zip(files, found, strict=True) if plots else ():
        plot_overview(own, file.expect, folder / file.name / 'overview.png', file.name)
    return found


def _check(files: Sequence[ScenarioFile], work: Sequence[_Job]) -> None:
    names = [file.name for file in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(
            f"several scenarios are named '{twice[0]}'; expected unique names (scenario.name, or the name "
            'of the file)'
        )
    for file in files:
        check_robot(file, next(job.seed for job in work if job.file is file), _loaded)
    for job in work:
        if job.bag:
            check_new(job.bag_path, 'mcap')


def _rows(work: Sequence[_Job], jobs: int, progress: Progress | None) -> Iterator[tuple[int, Row]]:
    """Rows with their index, as they are completed."""
    if jobs == 1 or len(work) == 1:
        for i, job in enumerate(work):
            yield i, _run(job, progress)
        return
    # spawn: a fork would copy the locks of other threads, such as those of the progress bar
    context = multiprocessing.get_context('spawn')
    pool = ProcessPoolExecutor(min(jobs, len(work)), context, _end_at_interrupt)
    try:
        started = {pool.submit(_run, job, None): i for i, job in enumerate(work)}
        for done in as_completed(started):
            row = done.result()
            if progress is not None:
                progress(work[started[done]].file.duration)
            yield started[done], row
    except BrokenProcessPool as error:
        raise QuadDynamicsError('a worker process was killed; is there enough memory?') from error
    finally:
        pool.shutdown(cancel_futures=True)


def _end_at_interrupt() -> None:
    """Let Ctrl-C end this process at once, without a traceback: the main process reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(job: _Job, progress: Progress | None) -> Row:
    """Run a seed and write its files."""
    left = job.file.duration

    def tell(seconds: float) -> None:
        nonlocal left
        left -= seconds
        if progress is not None:
            progress(seconds)

    run = run_seed(job.file, job.seed, job.controller, tell, _loaded)
    tell(left)  # the time that a fall cut off
    run.traces.save(job.folder / f'seed_{job.seed}.npz')
    if job.plots and len(run.log):
        plot_run(run, job.folder / f'seed_{job.seed}.png')
    if job.bag:
        settings = run.sim.settings
        suite = SensorSuite(run.sim.model, settings.sensors, settings.seed, settings.dt)
        run.log.to_bag(job.bag_path, sensors=suite)
    return dict(run.row)
