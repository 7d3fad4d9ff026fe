# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics excite`: design an excitation motion for identification."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quad_dynamics.cli.option_flags import add_flags, given_flags
from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError, ModelWarning
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.model.loading import bundled_robots, load_model

if TYPE_CHECKING:
    from quad_dynamics.identification.excitation.excitation_result import Candidate, Excitation

HELP = 'design an excitation motion for identification'

DESCRIPTION = f"""\
Design a motion that is as informative as possible about masses, inertias and friction of a robot, within its
position, velocity and torque limits and without self-collision (docs/excitation.md). It starts and ends at
rest. The table compares it with sines and chirps within the same limits.

A robot with a floating base stands on all feet and moves its base; then it swings one leg after the other
while standing on the others (--swing 0: no swings). With --leg or --fixed-base the base is held, as on a
stand. The bag contains a trajectory that force_node follows in mode computed_torque:
  quad_dynamics play BAG

bundled robots: {', '.join(bundled_robots())}

examples:
  quad_dynamics excite --robot mini_cheetah --output excitation        standing robot
  quad_dynamics excite --robot mini_cheetah --leg FL --output one_leg  one leg, base on a stand
  quad_dynamics excite --robot arm.urdf --fixed-base --ground 0 --criterion condition --plot motion.png

exit code: 0 success (even if a naive motion is as good), 1 invalid input, 2 usage error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('--robot', metavar='R', default='mini_cheetah', help='file or bundled robot (default: %(default)s)')
    add_xacro_option(parser)
    part = parser.add_mutually_exclusive_group()
    part.add_argument('--leg', metavar='NAME', default='', help='move only this leg; the base is held')
    part.add_argument(
        '--whole', action='store_true', help='move the whole robot, standing on its feet (default)'
    )
    add('--fixed-base', action='store_true', help='hold the base: a robot on a stand, or an arm')
    add('--ground', metavar='Z', type=float, help='stay above a plane at this height [m]')
    add_flags(parser, ExcitationSettings)
    results = parser.add_argument_group('results').add_argument
    results('--output', metavar='BAG', help='write the trajectory as a bag; the path must not exist')
    results(
        '--storage', choices=('mcap', 'sqlite3'), default='mcap', help='format of the bag (default: mcap)'
    )
    results('--plot', metavar='FILE', help='plot file: png, pdf or svg; overwritten')
    results('--quiet', action='store_true', help='print errors only')


def run(arguments: argparse.Namespace) -> int:
    """Design, write the files and print the table."""
    settings = ExcitationSettings.from_dict(given_flags(arguments, ExcitationSettings))
    _check_paths(arguments)
    from quad_dynamics.identification.excitation.excitation import choose_motion, design

    held = arguments.fixed_base or bool(arguments.leg)
    if held and arguments.whole:
        raise ArgumentError(
            '--whole needs a floating base, but --fixed-base holds it; expected one of the two options'
        )
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # reported by `inspect`
        floating = False if held else True if arguments.whole else None
        model = load_model(arguments.robot, floating, xacro_args=xacro_args(arguments))
        motion = choose_motion(model, arguments.leg)
        found = design(motion, settings, arguments.ground, _progress(arguments.quiet))
    if arguments.output is not None:
        from quad_dynamics.identification.excitation.excitation_bag import write_trajectory

        write_trajectory(found.trajectory(settings.lead), arguments.output, arguments.storage)
    if arguments.plot is not None:
        from quad_dynamics.identification.excitation.excitation_plot import plot_excitation

        plot_excitation(found, arguments.plot)
    if not arguments.quiet:
        _summarize(Terminal(), found, arguments.output)
    return 0


def _check_paths(arguments: argparse.Namespace) -> None:
    """Check before the search that its results can be written."""
    from quad_dynamics.simulation.plots import check_picture

    for option in ('output', 'plot'):
        path = getattr(arguments, option)
        if path is None:
            continue
        if not Path(path).absolute().parent.is_dir():
            raise ArgumentError(f'--{option}: the folder of {path} does not exist')
        if option == 'output' and os.path.lexists(path):
            raise ArgumentError(f'--output: {path} already exists; expected a new path')
        if Path(path).is_dir():
            raise ArgumentError(f'--{option}: {path} is a folder; expected a file')
    if arguments.plot is not None:
        check_picture(arguments.plot)


def _progress(quiet: bool) -> Callable[[int, int], None]:
    """A progress bar, shown only on a terminal."""
    from tqdm import tqdm

    bar = tqdm(desc='designing', unit='step', disable=True if quiet else None, leave=False)

    def show(done: int, steps: int) -> None:
        bar.total = steps
        bar.update(done - bar.n)
        if done == steps:
            bar.close()

    return show


def _summarize(terminal: Terminal, found: Excitation, output: str | None) -> None:
    quality = found.best.quality
    base = 'standing on its feet' if found.model.floating_base else 'base held'
    terminal.line(
        terminal.paint(f'{found.model.name}, {base}: {len(found.joint_names)} moving joints', 'bold')
    )
    terminal.line(f'  {_times(found)}; {len(quality.std)} base parameters')
    head = ('motion', 'condition', 'log det', 'std', 'surer', 'tightest limit')
    rows = [_row(one, found.best) for one in (found.best, *found.naive)]
    if found.lifted:
        rows.insert(1, ('its sway', *_row(found.sway, found.best)[1:]))
    terminal.table(head, rows, right=(1, 2, 3, 4))
    terminal.line('  std: geometric mean of predicted standard deviations, relative to the designed motion')
    terminal.line('  surer: number of base parameters with a smaller standard deviation than after it')
    if found.lifted:
        terminal.line(
            '  sines and chirps stand on all feet and last as long as the sway; they are compared with it'
        )
    for note in found.notes:
        terminal.line(f'  {note}')
    if found.beats_naive:
        what = 'sway' if found.lifted else 'motion'
        terminal.line(terminal.paint(f'  the designed {what} is better ({found.criterion})', 'green'))
    else:
        text = f'  a naive motion is as good ({found.criterion}): try more --iterations, or another --seed'
        terminal.line(terminal.paint(text, 'yellow'))
    if output is not None:
        terminal.line(f'  written: {output}')


def _times(found: Excitation) -> str:
    """Duration and parts of the motion."""
    if not found.lifted:
        return f'{found.time[-1]:g} s, repeated every {found.period:g} s'
    sway = found.time[-1] * (len(found.sway.states.q) - 1) / (len(found.best.states.q) - 1)
    legs = ', '.join(found.lifted)
    return f'{found.time[-1]:g} s: {sway:g} s of sway, repeated every {found.period:g} s; swings of {legs}'


def _row(one: Candidate, best: Candidate) -> tuple[str, ...]:
    from quad_dynamics.identification.excitation.excitation_result import std_ratio

    surer = int((one.quality.std < best.quality.std).sum())
    return (
        one.name,
        f'{one.quality.condition:.4g}',
        f'{one.quality.log_det:.1f}',
        f'{std_ratio(one.quality, best.quality):.3g}',
        str(surer) if one is not best else '-',
        one.tightest,
    )
