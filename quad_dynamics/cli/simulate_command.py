# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics simulate`: simulate a robot that stands, trots or falls, and print a summary."""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ArgumentError, ModelWarning, SimulationDiverged
from quad_dynamics.model.loading import bundled_robots, load_model

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model
    from quad_dynamics.simulation.log import Log
    from quad_dynamics.simulation.settings import SimulatorSettings
    from quad_dynamics.simulation.simulator import Simulator

HELP = 'simulate a robot that stands, trots or falls, and print a summary'

DESCRIPTION = f"""\
Simulate a robot on a terrain, print a summary, and plot height, foot forces and slip. No window is
opened.

The joint torques are tau + kp (q - q_j) - kd qd_j. tau carries the weight in the standing pose. The
default gains are computed from mass, leg length and time step, so that any robot stands.

bundled robots: {', '.join(bundled_robots())}

examples:
  quad_dynamics simulate                                      the bundled mini_cheetah stands for 2 s
  quad_dynamics simulate --robot go2 --gait trot              another bundled robot, trotting
  quad_dynamics simulate --robot robot.urdf --plot out.png    a file, with a plot
  quad_dynamics simulate --contact spring --gait trot         spring-damper contact
  quad_dynamics simulate --gait none --drop 0.2               drop it without torques
  quad_dynamics simulate --terrain stairs --settings sim.yaml --bag run --log run.npz

exit code: 0 success (even if the robot fell), 1 invalid input or divergence, 2 usage error
"""

_CONTACTS = ('auto', 'impulse', 'spring_damper', 'spring-damper', 'spring', 'none')
_MOST_ROWS = 100_000  # of the log, unless --log-every is given
_LOOKED_AT = 20_000  # rows in which the deepest penetration is searched
_LAST = 0.5  # the summary's means are over the end of the run [s]
_UPRIGHT = 0.5  # cosine of the tilt below which a robot does not stand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add('--robot', metavar='R', default='mini_cheetah', help='file or bundled robot (default: %(default)s)')
    add_xacro_option(parser)
    add('--contact', choices=_CONTACTS, help='contact model (default: impulse; none with a fixed base)')
    add('--terrain', metavar='T', help='name or path of a YAML file: docs/terrain.md (default: flat)')
    add(
        '--duration',
        metavar='S',
        type=_positive,
        default=2.0,
        help='simulated time [s] (default: %(default)g)',
    )
    add(
        '--gait', choices=('stand', 'trot', 'none'), default='stand', help='none: no torques (default: stand)'
    )
    add('--drop', metavar='M', type=_not_negative, help='initial height above the ground [m]')
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        '--fixed-base', dest='floating_base', action='store_false', default=None, help='fix the root link'
    )
    base.add_argument(
        '--floating-base', dest='floating_base', action='store_true', help='float the root link'
    )
    add = parser.add_argument_group('settings', 'options override the file').add_argument
    add('--settings', metavar='YAML', help='simulator settings: docs/simulation.md')
    add('--dt', metavar='S', type=float, help='time step [s] (default: 0.001)')
    add('--mu', metavar='MU', type=float, help='friction of the ground (default: 0.5)')
    add('--restitution', metavar='E', type=float, help='restitution of the ground (default: 0)')
    add('--seed', metavar='N', type=int, help='random seed of the sensor noise in the bag (default: 0)')
    add('--kp', metavar='KP', type=_not_negative, help='position gain [N m/rad]')
    add('--kd', metavar='KD', type=_not_negative, help='velocity gain [N m s/rad]')
    add = parser.add_argument_group('results').add_argument
    add('--plot', metavar='FILE', help='plot file: png, pdf or svg; overwritten')
    add('--log', metavar='FILE', help='write the log as npz; overwritten')
    add('--bag', metavar='PATH', help='write a ROS 2 bag; the path must not exist')
    rows = f'time steps per row of the log (default: 1, or more to keep at most {_MOST_ROWS} rows)'
    add('--log-every', metavar='N', type=_count, help=rows)
    add('--quiet', action='store_true', help='print errors only, no progress bar')


def run(arguments: argparse.Namespace) -> int:
    """Simulate, write the files and print the summary."""
    from quad_dynamics.simulation.simulator import Simulator

    _check_paths(arguments)
    model = _load(arguments)
    sim = Simulator(model, _settings(arguments))
    _place(sim, arguments.drop)
    controller = _controller(sim, arguments)
    steps = round(arguments.duration / sim.settings.dt)
    every = arguments.log_every or max(1, math.ceil(steps / _MOST_ROWS))
    if steps < every:
        raise ArgumentError(
            f'--duration is {steps} time steps; expected at least {every}, one row of the log'
        )
    started = time.perf_counter()
    try:
        log = sim.run(controller, arguments.duration, every, False if arguments.quiet else None)
    except SimulationDiverged as error:
        if error.log is not None and len(error.log):
            _write(sim, error.log, arguments)  # what led to it
        raise
    wall = time.perf_counter() - started
    _write(sim, log, arguments)
    if not arguments.quiet:
        _summarize(Terminal(), sim, log, wall)
    return 0


# ---------------------------------------------------------------- before


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return value


def _not_negative(text: str) -> float:
    return 0.0 if float(text) == 0.0 else _positive(text)


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text} is not a whole number above 0')
    return int(text)


def _check_paths(arguments: argparse.Namespace) -> None:
    """Check before a long simulation that its results can be written."""
    from quad_dynamics.simulation.plots import check_picture

    for option in ('plot', 'log', 'bag'):
        path = getattr(arguments, option)
        if path is None:
            continue
        if not Path(path).parent.is_dir():
            raise ArgumentError(f'--{option}: the folder of {path} does not exist')
        if option == 'bag' and os.path.lexists(path):
            raise ArgumentError(f'--bag: {path} already exists; expected a new path')
        if Path(path).is_dir():
            raise ArgumentError(f'--{option}: {path} is a folder; expected a file')
    if arguments.plot is not None:
        check_picture(arguments.plot)


def _load(arguments: argparse.Namespace) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # reported by `inspect`
        return load_model(arguments.robot, arguments.floating_base, xacro_args=xacro_args(arguments))


def _settings(arguments: argparse.Namespace) -> SimulatorSettings:
    """The settings of the file, overridden by the options."""
    from quad_dynamics.simulation.settings import SimulatorSettings

    settings = SimulatorSettings.from_yaml(arguments.settings) if arguments.settings else SimulatorSettings()
    names = ('contact', 'terrain', 'dt', 'mu', 'restitution', 'seed')
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    return settings.replace(**given)


def _place(sim: Simulator, height: float | None) -> None:
    """Place the robot on the ground, or above it."""
    if height is not None and not sim.model.floating_base:
        raise ArgumentError(f'--drop: {sim.model.name} has a fixed base; expected a floating base')
    q = sim.standing()
    if height is not None:
        q[2] += height
    sim.reset(q)


def _controller(sim: Simulator, arguments: argparse.Namespace) -> Any:
    """What drives the joints."""
    from quad_dynamics.simulation.gaits import Trot, hold

    if arguments.gait == 'none' or not sim.model.nj:
        return None
    if arguments.gait == 'trot':
        return Trot(sim.model, arguments.kp, arguments.kd, sim.settings.dt, q=sim.q)
    return hold(sim.model, arguments.kp, arguments.kd, sim.settings.dt, sim.q)


# ---------------------------------------------------------------- after


def _write(sim: Simulator, log: Log, arguments: argparse.Namespace) -> None:
    from quad_dynamics.simulation.plots import plot_run
    from quad_dynamics.simulation.sensors import SensorSuite

    settings = sim.settings
    if arguments.log is not None:
        log.save(arguments.log)
    if arguments.bag is not None:
        log.to_bag(
            arguments.bag, sensors=SensorSuite(sim.model, settings.sensors, settings.seed, settings.dt)
        )
    if arguments.plot is not None:
        plot_run(log, arguments.plot, sim.terrain, _title(sim))


def _title(sim: Simulator) -> str:
    terrain, settings = sim.settings.terrain, sim.settings
    where = Path(terrain).name if isinstance(terrain, (str, os.PathLike)) else 'terrain'
    kinds = {'impulse': 'impulse contact', 'spring_damper': 'spring-damper contact', 'none': 'no contact'}
    return f'{sim.model.name} on {where}, {kinds[settings.contact]}, time step {1e3 * settings.dt:g} ms'


def _summarize(terminal: Terminal, sim: Simulator, log: Log, wall: float) -> None:
    terminal.line(terminal.paint(_title(sim), 'bold'))
    speed = sim.time / wall if wall > 0.0 else math.inf
    terminal.line(f'  simulated {sim.time:g} s in {wall:.3g} s: {speed:.3g} times real time')
    terminal.line(f'  {_outcome(sim)}')
    if len(log):
        if sim.model.floating_base:
            height, moved = log.q[-1, 2], math.dist(log.q[-1, :2], log.q[0, :2])
            terminal.line(f'  base at the end: height {height:.4f} m, {moved:.3f} m from the start')
        _forces(terminal, sim, log)
        _solver(terminal, sim, log)


def _outcome(sim: Simulator) -> str:
    """What the robot does at the end of the run."""
    if not sim.model.floating_base:
        return 'the base is fixed'
    if sim.settings.contact == 'none':
        return 'contact is disabled'
    touching = np.any(sim.contact_forces != 0.0, axis=1)
    links = list(dict.fromkeys(p.link for p, on in zip(sim.contact_points, touching, strict=True) if on))
    others = [link for link in links if link not in sim.model.foot_names]
    x, y = sim.q[3:5]
    if not links:
        return 'nothing touches the ground'
    if others or not sim.model.foot_names:
        fell = 'it fell: ' if sim.model.foot_names else ''
        return f'{fell}{", ".join(others)} touch{"es" if len(others) == 1 else ""} the ground'
    if 1.0 - 2.0 * (x * x + y * y) < _UPRIGHT:
        return f'it fell: tilted, on {", ".join(links)}'
    return f'it stands on {", ".join(links)}'


def _forces(terminal: Terminal, sim: Simulator, log: Log) -> None:
    if not log.foot_names or sim.settings.contact == 'none':
        return
    from quad_dynamics.simulation.plots import foot_motion

    last = log.between(log.time[-1] - _LAST, log.time[-1])
    mean, slip = last.foot_forces.mean(axis=0), foot_motion(log, sim.terrain).path[-1]
    weight = sim.model.total_mass * float(np.linalg.norm(sim.model.gravity))
    span = last.time[-1] - last.time[0]
    terminal.line(f'  feet: mean force in world axes over the last {max(span, log.dt):.2g} s, and slip')
    rows = [
        (foot, *(f'{x + 0.0:.2f}' for x in np.round(mean[i], 2)), f'{1e3 * slip[i]:.2f}')
        for i, foot in enumerate(log.foot_names)
    ]
    rows.append(('sum', *(f'{x + 0.0:.2f}' for x in np.round(mean.sum(axis=0), 2)), ''))
    terminal.table(('foot', 'x [N]', 'y [N]', 'z [N]', 'slip [mm]'), rows, right=(1, 2, 3, 4))
    if weight > 0.0:
        terminal.line(
            f'  the feet carry {100.0 * mean[:, 2].sum() / weight:.2f} % of the weight, {weight:.2f} N'
        )


def _solver(terminal: Terminal, sim: Simulator, log: Log) -> None:
    from quad_dynamics.simulation.plots import deepest_points

    if sim.settings.contact == 'none':
        return
    if sim.settings.contact == 'impulse':
        late = int(np.sum(~log.converged))
        text = 'all steps converged'
        if late:
            worst = f'{log.residual.max():.2g} m/s'
            text = f'{late} of {len(log)} steps did not converge (residual up to {worst})'
        terminal.line(
            f'  contacts: {log.sweeps.mean():.1f} sweeps and {log.iterations.mean():.1f} Newton iterations '
            f'per step, at most {log.sweeps.max()} and {log.iterations.max()}; {text}'
        )
    else:
        terminal.line(
            f'  contacts: {log.substeps.mean():.1f} sub-steps per step, at most {log.substeps.max()}'
        )
    depth, name = deepest_points(log, sim.terrain, sim.contact_points, max(1, len(log) // _LOOKED_AT))
    terminal.line(f'  deepest penetration: {1e3 * depth:.3f} mm' + (f', of {name}' if depth >= 5e-7 else ''))
