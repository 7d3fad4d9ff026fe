# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics demo`: a demonstration of identification."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ModelWarning

if TYPE_CHECKING:
    from quad_dynamics.identification.demo.comparison import Finding
    from quad_dynamics.identification.demo.demo import Demo

HELP = 'demonstrate identification on a simulated robot'

DESCRIPTION = """\
demo identify: give a simulated robot a hidden payload on the trunk and hidden friction in every joint;
design an excitation motion; let the robot follow it with noisy sensors and a controller that knows only the
URDF; record a bag; identify the robot from it; validate on another motion; and print hidden and identified
values side by side, with 95 % intervals. The report opens in the browser. This needs no ROS and takes one to
three minutes.

examples:
  quad_dynamics demo identify                       the bundled Mini Cheetah
  quad_dynamics demo identify --seed 7              other hidden values
  quad_dynamics demo identify --robot go2 --output go2_demo --no-open

exit code: 0 success, 1 the robot cannot perform the motion, 2 usage error
"""

_FOLDER = 'demo_identify'
# Colours of the verdicts.
_GOOD, _BAD = 'green', 'yellow'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('what', choices=('identify',), metavar='identify', help='what to demonstrate')
    add('--robot', metavar='R', default='mini_cheetah', help='file or bundled robot (default: %(default)s)')
    add_xacro_option(parser)
    add(
        '--seed',
        type=_seed,
        default=0,
        metavar='N',
        help='random seed of the hidden values (default: %(default)d)',
    )
    add('--duration', type=float, default=20.0, metavar='S', help='sway on all feet [s] (default: 20)')
    add('--swing', type=float, default=8.0, metavar='S', help='swing of each leg [s] (default: 8)')
    add(
        '-o',
        '--output',
        metavar='DIR',
        help=f'new or empty folder for bags and results (default: {_FOLDER}, or the next free name)',
    )
    add('--no-open', action='store_true', help='do not open the report in the browser')


def _seed(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f'{text} is not a whole number of at least 0')
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    from quad_dynamics.identification.demo.demo import DemoSettings, demonstrate
    from quad_dynamics.model.loading import load_model

    settings = DemoSettings(arguments.seed, arguments.duration, arguments.swing)
    terminal, begin = Terminal(), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # reported by `inspect`
        model = load_model(arguments.robot, xacro_args=xacro_args(arguments))
        folder = Path(arguments.output) if arguments.output else _next_free()
        shown = demonstrate(model, folder, settings, _teller(terminal, begin))
    _print(terminal, shown, model.name, arguments)
    terminal.line(
        f'  bags, results and hidden values are in {folder}; total time {time.monotonic() - begin:.0f} s'
    )
    _open(terminal, shown.report, arguments.no_open)
    return 0


def _next_free() -> Path:
    """demo_identify, demo_identify_2, ..."""
    names = itertools.chain([_FOLDER], (f'{_FOLDER}_{k}' for k in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def _teller(terminal: Terminal, begin: float) -> Callable[[str], None]:
    """A progress callback that prints each step once, with the elapsed time."""
    said: list[str] = []

    def tell(text: str) -> None:
        step = text.partition(':')[0]
        if step not in said:
            said.append(step)
            terminal.line(f'[{time.monotonic() - begin:3.0f} s] {step}')
            terminal.stream.flush()

    return tell


def _print(terminal: Terminal, shown: Demo, robot: str, arguments: argparse.Namespace) -> None:
    from quad_dynamics.cli.identify_summary import print_validation, print_warnings
    from quad_dynamics.identification.demo.comparison import worst_error

    print_warnings(terminal, shown.result)
    validation = shown.result.validation
    if validation is not None:
        print_validation(terminal, validation)
    terminal.heading(f'{robot} (seed {arguments.seed}): hidden values, and values identified from the bag')
    rows = [_row(one) for one in (*shown.payload, *shown.friction)]
    head = ('', 'unit', 'URDF', 'hidden', 'identified', '95 % interval', 'error', '')
    terminal.table(head, rows, right=(2, 3, 4, 6))
    inside = [one.inside for one in (*shown.payload, *shown.friction)]
    terminal.heading(f'{sum(inside)} of {len(inside)} hidden values lie inside their 95 % intervals')
    half = len(shown.friction) // 2
    viscous, coulomb = (100.0 * worst_error(part) for part in (shown.friction[:half], shown.friction[half:]))
    mass = 100.0 * worst_error(shown.payload[:1])
    place = sum((one.found - one.hidden) ** 2 for one in shown.payload[1:]) ** 0.5
    terminal.line(
        f'  payload within {mass:.1f} %, {place:.1f} mm off; viscous friction within {viscous:.1f} %, '
        f'Coulomb friction within {coulomb:.1f} %'
    )
    terminal.line('  the intervals of the payload allow for errors of the leg masses in the URDF')
    for one in (*shown.payload, *shown.friction):
        if not one.inside:
            terminal.line(terminal.paint(f'  {one.name} is outside its interval', _BAD))


def _row(one: Finding) -> tuple[str, ...]:
    from quad_dynamics.identification.number_text import number

    digits = 1 if one.unit == 'mm' else 4
    texts = [f'{x:.{digits}f}' for x in (one.hidden, one.found, one.low, one.high)]
    difference = one.found - one.hidden
    error = f'{difference:+.1f} mm' if one.unit == 'mm' else f'{100.0 * difference / one.hidden:+.1f} %'
    verdict = 'inside' if one.inside else 'outside'
    before = '' if one.urdf != one.urdf else number(one.urdf, 3)
    return one.name, one.unit, before, texts[0], texts[1], f'{texts[2]} to {texts[3]}', error, verdict


def _open(terminal: Terminal, report: Path, leave: bool) -> None:
    opened = False
    if not leave:
        try:
            opened = webbrowser.open(report.absolute().as_uri())
        except (webbrowser.Error, OSError):
            opened = False
    text = f'the report is open in the browser: {report}' if opened else f'open {report} in a browser'
    terminal.line(terminal.paint(text, _GOOD))
    sys.stdout.flush()
