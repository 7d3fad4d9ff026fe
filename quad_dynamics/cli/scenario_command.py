# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics scenario`: run walking scenarios in simulation and measure the performance."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quad_dynamics.cli.parser import UsageError
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.scenarios.results import Row
    from quad_dynamics.scenarios.scenario_file import ScenarioFile

HELP = 'run walking scenarios in simulation and measure the performance'

DESCRIPTION = """\
Run scenarios. In each, a robot that differs from its model walks in simulation, with delays, noise,
lost setpoints and pushes, once per seed. docs/scenarios.md explains the files and all results.

files written to --output:
  results.csv              one row per seed
  SCENARIO/overview.png    overview of all seeds
  SCENARIO/seed_N.npz      t q u tau foot_forces cmd gait contact, at 500 Hz
  SCENARIO/seed_N.png      velocity, posture, torques, gait and contact over time
  SCENARIO/seed_N_bag      with --bag: a ROS 2 bag

examples:
  quad_dynamics scenario config/scenarios/trot.yaml --output results
  quad_dynamics scenario config/scenarios/*.yaml --output results --jobs 2
  quad_dynamics scenario trot.yaml --output one --seed 104 --bag      one seed, with a bag

exit code: 0 all expectations are met, 1 some are not, 2 usage error or invalid file
"""

# Columns of the table: title, column, factor, format.
TABLE = (
    ('v [m/s]', 'v_error_mean', 1.0, '.3f'),
    ('v rms', 'v_error_rms', 1.0, '.3f'),
    ('yaw [rad/s]', 'yaw_error_mean', 1.0, '.3f'),
    ('roll [deg]', 'roll_rms', 180.0 / math.pi, '.2f'),
    ('pitch', 'pitch_rms', 180.0 / math.pi, '.2f'),
    ('height [mm]', 'height_error_mean', 1e3, '.1f'),
    ('slip [mm]', 'slip_per_step', 1e3, '.1f'),
    ('torque [%]', 'torque_share_max', 1e2, '.0f'),
    ('p50 [us]', 'update_us_p50', 1.0, '.0f'),
    ('p99 [us]', 'update_us_p99', 1.0, '.0f'),
    ('failures', 'solver_failures', 1.0, '.0f'),
    ('distance [m]', 'distance', 1.0, '.2f'),
    ('CoT', 'cost_of_transport', 1.0, '.2f'),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('files', metavar='FILE', nargs='+', help='scenario files: docs/scenarios.md')
    add('-o', '--output', metavar='DIR', required=True, help='folder for the results; existing bags are kept')
    add('--jobs', metavar='N', type=_count, default=1, help='number of processes (default: %(default)s)')
    add('--seed', metavar='N', type=_seed, help='run only this seed (default: those of the files)')
    add('--bag', action='store_true', help='write a ROS 2 bag per seed')
    add('--no-plots', action='store_true', help='do not draw plots')
    add('--quiet', action='store_true', help='print errors only, no progress bar')


def run(arguments: argparse.Namespace) -> int:
    """Run the scenarios, print a table, and compare with the expectations."""
    from quad_dynamics.scenarios.batch import run_batch
    from quad_dynamics.scenarios.results import violations
    from quad_dynamics.scenarios.scenario_file import ScenarioFile

    try:
        files = [ScenarioFile.load(path) for path in arguments.files]
        seconds = sum(file.duration * (len(file.seeds) if arguments.seed is None else 1) for file in files)
        with _progress(seconds, arguments.quiet) as tell:
            found = run_batch(
                files,
                arguments.output,
                seed=arguments.seed,
                jobs=arguments.jobs,
                bag=arguments.bag,
                plots=not arguments.no_plots,
                progress=tell,
            )
    except ArgumentError as error:
        raise UsageError(str(error)) from error
    if not arguments.quiet:
        _print_tables(Terminal(), files, found)
    wrong = [
        f'{file.source}: {text}'
        for file, rows in zip(files, found, strict=True)
        for text in violations(rows, file.expect)
    ]
    for text in wrong:
        print(f'error: {text}', file=sys.stderr)
    if not arguments.quiet:
        terminal = Terminal()
        terminal.line()
        verdict, colour = ('some expectations are not met', 'red') if wrong else ('all as expected', 'green')
        text = f'{verdict}; results are in {arguments.output}'
        terminal.line(terminal.paint(text, colour))
    return 1 if wrong else 0


def _print_tables(terminal: Terminal, files: Sequence[ScenarioFile], found: Sequence[Sequence[Row]]) -> None:
    from quad_dynamics.scenarios.results import mean_of

    head = ('seed', 'fell', *(title for title, *_ in TABLE))
    for file, rows in zip(files, found, strict=True):
        first = rows[0]
        terminal.heading(f'{file.name}: {first["robot"]}, {first["contact"]} contact, {file.duration:g} s')
        fates = [f'{row["fall_time"]:.2f} s' if row['fell'] else '' for row in rows]
        lines = [(str(row['seed']), fate, *cells(row)) for row, fate in zip(rows, fates, strict=True)]
        means = {name: mean_of(rows, name) for _, name, *_ in TABLE}
        falls = sum(row['fell'] for row in rows)
        lines.append(('mean', f'{falls} of {len(rows)}', *cells(means)))
        terminal.table(head, lines, right=range(len(head)))


def cells(row: Any) -> list[str]:
    """The values of a row (or another mapping with its columns), formatted for the table."""
    values = [(factor * float(row[name]), form) for _, name, factor, form in TABLE]
    return ['-' if math.isnan(value) else f'{value:{form}}' for value, form in values]


@contextmanager
def _progress(seconds: float, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A progress bar, to be called with simulated seconds; shown on a terminal only, removed at the end."""
    from tqdm import tqdm

    hidden = quiet or sys.stderr is None or not sys.stderr.isatty()
    layout = 'simulated {n:.1f} of {total:.1f} s {bar:20} {elapsed}, left {remaining}'
    with tqdm(total=seconds, bar_format=layout, leave=False, disable=hidden, file=sys.stderr) as bar:
        yield lambda done: bar.update(done) and None


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number from 1 to 1000')
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number of at least 0')
    return int(text)
