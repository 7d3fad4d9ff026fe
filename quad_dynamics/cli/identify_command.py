# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics identify`: from recordings and a URDF to a corrected URDF, with error bars and a report."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quad_dynamics.cli.recording_options import (
    RECORDINGS,
    add_recording_options,
    load_robot,
    read_signal_settings,
    read_topics,
    split_words,
)
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import IdentifySettings
    from quad_dynamics.identification.solvers.plausible import MassRange

_WEIGHED = 0.03  # relative error of a mass given without one
_FASTEST = 100.0  # largest velocity of Stribeck friction [rad/s]
_MOST_FOLDS = 100

HELP = 'identify friction and inertia of a robot from recordings and correct its URDF'

DESCRIPTION = f"""\
Identify inertia, friction and rotors of a robot from recordings of its motion. The result is
physically consistent, and every parameter has a 95 % interval. Parameters that are not identifiable
from the recordings keep their URDF values and are listed. Predictions are validated on another
recording or on held-out blocks. docs/identification.md explains the method and how to record.

{RECORDINGS}
files written to --output, a new or empty folder:
  ROBOT.urdf        corrected, with friction; beside it ROBOT.yaml: rotors, feet, contact points
  parameters.yaml   every parameter with unit, interval and source
  report.html       one page with all plots

free parameters (--free; default: all, as far as they improve predictions):
  inertia, friction (viscous and coulomb), offset, asymmetric, stribeck, rotor, bias (of foot force
  sensors), payload (inertia of the base link only), names of links, joints or single parameters;
  * and ? are wildcards

examples:
  quad_dynamics identify run1 --robot go2.urdf --validate run2 --output go2_identified
  quad_dynamics identify run1 run2 run3 --robot go2.urdf            several recordings
  quad_dynamics identify run1 --robot go2.urdf --free payload       identify the payload
  quad_dynamics identify run1 --robot go2.urdf --free friction --tie-legs
  quad_dynamics identify arm.csv --robot panda.urdf --fixed-base --compare
  quad_dynamics identify run1 --robot go2.urdf --mass 15.0+-0.5     known total mass
  quad_dynamics identify run1 --robot r.urdf --free 'FL_*' --cutoff 20 --delay 0.002
  quad_dynamics identify run1 --robot r.urdf --topic joint_states=/r1/joint_states --imu

exit code: 0 success, 1 invalid recording or robot, 2 usage error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('recordings', metavar='BAG', nargs='+', help='recordings for the identification')
    add_recording_options(parser)
    add = parser.add_argument_group('identification').add_argument
    add(
        '--validate',
        metavar='BAG',
        nargs='+',
        action='extend',
        default=[],
        help='recordings of another motion for validation (default: held-out blocks)',
    )
    add(
        '--free',
        metavar='WHAT',
        nargs='+',
        action='extend',
        default=[],
        help='parameters to identify, separated by spaces or commas',
    )
    add(
        '--tie-legs',
        action='store_true',
        help='the legs are mirror images: identify one set of parameters for all',
    )
    add(
        '--stribeck',
        metavar='V',
        nargs='?',
        type=_velocity,
        const=math.nan,
        help='also identify Stribeck friction, which decays as exp(-(velocity / V)^2) [rad/s] (default: 0.1)',
    )
    add(
        '--mass',
        metavar='KG',
        type=_mass,
        help='mass of the whole robot, such as 15.0+-0.5 (default: close to the URDF)',
    )
    add(
        '--trust',
        metavar='PART',
        type=_trust,
        help='relative standard deviation of the link masses in the URDF (default: 0.3)',
    )
    add('--folds', metavar='N', type=_folds, help='number of folds of cross-validation (default: 8)')
    add('--compare', action='store_true', help='also run all other methods and print a table')
    add('--no-validation', action='store_true', help='no held-out blocks; faster')
    add = parser.add_argument_group('results').add_argument
    add('-o', '--output', metavar='DIR', help='new or empty folder for the results')
    add('--quiet', action='store_true', help='print errors and warnings only, no progress bar')


def run(arguments: argparse.Namespace) -> int:
    """Identify, write the results and print the summary."""
    from quad_dynamics.cli.identify_summary import print_summary, print_warnings
    from quad_dynamics.identification.pipeline import identify
    from quad_dynamics.identification.report.output_folder import check_output, write_results

    if arguments.output is not None:
        check_output(arguments.output)
    if arguments.no_validation and arguments.validate:
        raise ArgumentError('--no-validation and --validate are mutually exclusive')
    model = load_robot(arguments)
    stages = 3 + bool(arguments.validate) + arguments.compare + (arguments.output is not None)
    with _progress(stages, arguments.quiet) as tell:
        result = identify(arguments.recordings, model, _settings(arguments), arguments.validate, tell)
        if arguments.output is not None:
            tell('writing the report')
            write_results(result, arguments.output)
    if arguments.quiet:
        print_warnings(Terminal(sys.stderr), result)
    else:
        terminal = Terminal()
        print_summary(terminal, result)
        if arguments.output is not None:
            terminal.line()
            report = os.path.join(arguments.output, 'report.html')  # noqa: PTH118 (as it was given)
            terminal.line(terminal.paint(f'results are in {arguments.output}; open {report}', 'green'))
    return 0


def _settings(arguments: argparse.Namespace) -> IdentifySettings:
    from quad_dynamics.identification.pipeline import IdentifySettings
    from quad_dynamics.identification.solvers.solve import SolveSettings

    free = list(split_words('--free', arguments.free))
    stribeck = arguments.stribeck
    if stribeck is not None and free and 'stribeck' not in free:
        free.append('stribeck')
    chosen: dict[str, Any] = {} if arguments.folds is None else {'folds': arguments.folds}
    if stribeck is not None and not math.isnan(stribeck):
        chosen['stribeck_velocity'] = stribeck
    if arguments.trust is not None:
        chosen['solve'] = SolveSettings(trust=arguments.trust)
    return IdentifySettings(
        free=tuple(free),
        tie_legs=arguments.tie_legs,
        mass=arguments.mass,
        mode=arguments.mode,
        compare=arguments.compare,
        hold_out=not arguments.no_validation,
        topics=read_topics(arguments),
        signals=read_signal_settings(arguments),
        **chosen,
    )


@contextmanager
def _progress(stages: int, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress bar, to be called with each next stage; shown only on a terminal and removed at the end."""
    from tqdm import tqdm

    hidden = quiet or sys.stderr is None or not sys.stderr.isatty()
    layout = '{desc} {bar:20} {n_fmt}/{total_fmt}, {elapsed}'
    with tqdm(total=stages, bar_format=layout, leave=False, disable=hidden, file=sys.stderr) as bar:
        stage = ''

        def tell(text: str) -> None:
            nonlocal stage
            before, stage = stage, text.partition(':')[0]  # progress follows the colon
            bar.set_description_str(text, refresh=False)
            bar.update(int(before not in ('', stage)))
            bar.refresh()

        yield tell


def _velocity(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= _FASTEST:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0, up to {_FASTEST:g}')
    return value


def _mass(text: str) -> MassRange:
    """A mass with its error, such as '15.0+-0.5'; the error defaults to 3 %."""
    from quad_dynamics.identification.solvers.plausible import MassRange

    middle, given, off = text.replace('±', '+-').partition('+-')
    try:
        mass = float(middle)
        error = float(off) if given else _WEIGHED * mass
    except ValueError:
        mass = error = math.nan
    if not 0.0 < error < mass < math.inf:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a mass; expected a value and its error in kg, both above 0, such as '15.0+-0.5'"
        )
    return MassRange(mass - error, mass + error)


def _trust(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= 100.0:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0, up to 100')
    return value


def _folds(text: str) -> int:
    if not 2 <= int(text) <= _MOST_FOLDS:
        raise argparse.ArgumentTypeError(f'{text} is not a whole number from 2 to {_MOST_FOLDS}')
    return int(text)
