# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics residual`: how well a URDF predicts the torques of recordings. Nothing is fitted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from quad_dynamics.cli.recording_options import (
    RECORDINGS,
    add_recording_options,
    load_robot,
    read_signal_settings,
    read_topics,
)
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.identification.equations.equations import Equations
    from quad_dynamics.identification.signals.signal_report import SignalReport
    from quad_dynamics.model.model import Model

HELP = 'compare recorded torques with the predictions of a URDF'

DESCRIPTION = f"""\
Compare recorded torques with the torques that a robot model predicts for the same motion, from inertia,
gravity, friction and foot forces. Nothing is fitted. The table shows RMS errors, and their floor: the
RMS error after a least-squares fit of all parameters. 'quad_dynamics identify' can remove the
difference between the two.

{RECORDINGS}
examples:
  quad_dynamics residual run1 --robot go2.urdf
  quad_dynamics residual run1 --robot go2_identified/go2.urdf --plot residual.png
  quad_dynamics residual arm.csv --robot panda.urdf --fixed-base --cutoff 15

exit code: 0 success, 1 invalid recording or robot, 2 usage error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument('recordings', metavar='BAG', nargs='+', help='recordings to compare')
    add_recording_options(parser)
    parser.add_argument(
        '--plot', metavar='FILE', help='plot of torques and residuals: png, pdf or svg; overwritten'
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the table and draw the plot."""
    from quad_dynamics.cli.identify_summary import print_errors, print_signals
    from quad_dynamics.identification.number_text import percent
    from quad_dynamics.identification.report.facts import floor_text, model_notes
    from quad_dynamics.identification.report.plots import save_residuals
    from quad_dynamics.identification.report.traces import gather_traces
    from quad_dynamics.identification.signals.sampling import UNUSED_ROWS
    from quad_dynamics.identification.validation.validation import pooled, torque_errors
    from quad_dynamics.simulation.plots import check_picture

    if arguments.plot is not None:
        if not Path(arguments.plot).absolute().parent.is_dir():
            raise ArgumentError(f'--plot: the folder of {arguments.plot} does not exist')
        check_picture(arguments.plot)
    model = load_robot(arguments)
    equations, report = _equations(arguments, model)
    prior = equations.columns.prior
    errors = torque_errors(equations, prior, prior)
    if arguments.plot is not None:
        save_residuals(gather_traces(equations, prior, prior), arguments.plot)
    terminal = Terminal()
    terminal.line(terminal.paint(f'{model.name}, {len(equations.samples)} samples', 'bold'))
    print_signals(terminal, report)
    for note in model_notes(model):
        terminal.line('  ' + terminal.paint(f'model: {note}', 'yellow'))
    terminal.heading('Torques: RMS measured, RMS of measured minus predicted, and its floor')
    print_errors(terminal, errors, after=False)
    whole = pooled(errors)
    terminal.line(
        f'  {whole.name}: {percent(whole.relative[0])}; {floor_text(whole)}; over all rows '
        f'{percent(whole.every[0])}'
    )
    if whole.left_out > 0.0:
        terminal.line(f'  left out: {UNUSED_ROWS}')
    return 0


def _equations(arguments: argparse.Namespace, model: Model) -> tuple[Equations, SignalReport]:
    """The equations of the recordings, with rows weighted by their residuals."""
    from quad_dynamics.identification.cutoff_choice import lower_cutoff
    from quad_dynamics.identification.equations.columns import make_columns
    from quad_dynamics.identification.equations.equations import Equations
    from quad_dynamics.identification.equations.modes import choose_mode
    from quad_dynamics.identification.equations.noise import first_noise, fit_noise
    from quad_dynamics.identification.recordings.recording import open_source
    from quad_dynamics.identification.signals.signals import Logs
    from quad_dynamics.identification.solvers.freedom import make_freedom
    from quad_dynamics.identification.solvers.plausible import TRUST
    from quad_dynamics.identification.validation.validation import best_fit

    topics = read_topics(arguments)
    sources = [open_source(path, model, topics) for path in arguments.recordings]
    logs = Logs(sources, model, read_signal_settings(arguments))
    mode = choose_mode(model, arguments.mode, logs.forces_measured)
    columns = make_columns(model)
    cutoff = logs.first_cutoff
    delays = logs.find_delays(cutoff)
    samples, report = logs.samples(cutoff, delays)
    if report.automatic:  # as `identify` chooses it, so that errors are comparable
        freedom = make_freedom(columns, trust=TRUST)
        (samples, report), _ = lower_cutoff(logs, (samples, report), delays, columns, mode, freedom)
    first = Equations(samples, columns, mode, first_noise(columns, mode == 'projection'))
    return Equations(samples, columns, mode, fit_noise(first, best_fit(first).x)), report
