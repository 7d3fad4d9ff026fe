# SPDX-License-Identifier: Apache-2.0
"""Identification on many generated logs: are results plausible, better than the URDF, and intervals valid?

    python -m benchmarks.plausibility --count 200 --seed 0 --jobs 2 --out plausibility.jsonl

Each log comes from test/helpers/identification_worlds.py: a robot that differs from its URDF as real robots
do, a good or poor motion, friction with or without the assumed form, wrong torque constants, delays. The
benchmark counts

* results whose total mass is more than 15 % off without a rejection or a warning;
* results that predict torques worse than the URDF without a rejection or a warning: on held-out blocks of the
  log, and on another motion of the same robot;
* 95 % intervals that contain the true value.

True values. If the torque constant of a drive is off by a factor s, the efforts correspond to 1/s of its
friction, and friction is compared with this. If s differs between joints, the corresponding inertia is not
defined; these logs are not used for the coverage of inertia. Nonlinear friction has no Coulomb and viscous
coefficients. Instead, friction at the typical speed of each joint is compared with that of the curve of the
fitted form that is closest to the true friction in the used samples. Unknowns are counted if they are
identified; base parameters are always counted.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import identification_worlds as worlds
import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.least_squares import ols
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.pipeline import IdentifySettings, Result, identify
from quad_dynamics.identification.report.facts import headline_warnings
from quad_dynamics.identification.solvers.base_parameters import find_base_parameters
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.validation.validation import Errors, pooled, torque_errors, with_own_bias

MOST_MASS = 0.15  # largest relative error of the total mass
WORSE = 1.02  # errors above this multiple of those of the URDF are worse
_REACH = 2.0  # of an interval, in standard deviations of a base parameter
_FRICTION = ('viscous', 'coulomb')
_SENSORS = ('offset', 'bias', 'delay', 'asymmetric', 'stribeck')


@dataclass
class Row:
    """Result of one log.

    Attributes:
        seed: of the log.
        world: its parameters.
        refused: reason of a rejection.
        warnings: of the result.
        mass: identified total mass relative to the true one.
        urdf_mass: total mass of the URDF relative to the true one.
        held: relative errors of joint torques on held-out blocks: of the URDF and of the result.
        base: errors of the base force on held-out blocks [N].
        other: relative errors on another motion: 'before', 'default', 'friction', 'ols'.
        covered: for each kind of unknown: number of intervals that contain the true value, and of all.
        worst: names and errors of the values farthest from the truth, in standard deviations.
        weight: of the prior.
        seconds: computing time of the default method.
    """

    seed: int
    world: str
    refused: str = ''
    warnings: list[str] = field(default_factory=list)
    mass: float = float('nan')
    urdf_mass: float = float('nan')
    held: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    other: dict[str, float] = field(default_factory=dict)
    covered: dict[str, list[int]] = field(default_factory=dict)
    worst: list[str] = field(default_factory=list)
    weight: float = float('nan')
    seconds: float = float('nan')

    @property
    def announced(self) -> bool:
        """Whether the log was rejected or the result has a warning."""
        return bool(self.refused or self.warnings)

    @property
    def too_heavy(self) -> bool:
        """Whether the total mass is wrong."""
        return abs(self.mass - 1.0) > MOST_MASS

    @property
    def worse_held(self) -> bool:
        """Whether held-out blocks are predicted worse than by the URDF."""
        return any(len(pair) == 2 and pair[1] > WORSE * pair[0] for pair in (self.held, self.base))

    @property
    def worse_elsewhere(self) -> bool:
        """Whether another motion is predicted worse than by the URDF."""
        return self.other.get('default', 0.0) > WORSE * self.other.get('before', np.inf)


def run(world: worlds.World, folder: Path, others: bool = True) -> Row:
    """Generate a log, and identify.

    Args:
        world: to generate.
        folder: for the files.
        others: whether to run other methods and predict another motion.
    """
    row, robot = Row(world.seed, str(world)), worlds.make_robot(world)
    path = worlds.make_log(world, robot, folder / 'log.npz')
    row.urdf_mass = float(robot.model.pi[::10].sum() / robot.true.pi[::10].sum())
    begin = time.perf_counter()
    try:
        result = identify([path], robot.model)
    except ArgumentError as error:
        row.refused = str(error)
        return row
    finally:
        row.seconds = time.perf_counter() - begin
    _judge(row, world, robot, result)
    if others:
        other = worlds.make_log(worlds.other_motion(world), robot, folder / 'other.npz')
        row.other = _elsewhere(result, robot.model, path, other)
    return row


def _judge(row: Row, world: worlds.World, robot: worlds.Robot, result: Result) -> None:
    solution = result.solution
    row.warnings = headline_warnings(result)
    row.mass = float(solution.part('pi')[::10].sum() / robot.true.pi[::10].sum())
    row.weight = solution.prior_weight
    if result.validation is not None:
        errors = result.validation.errors
        row.held = list(pooled(errors).relative[:2])
        if 'base force' in errors.names:
            row.base = [float(errors.before[0]), float(errors.after[0])]
    _cover(row, world, robot, result)


def _elsewhere(result: Result, model: Any, path: Path, other: Path) -> dict[str, float]:
    """Errors of all methods on another motion."""
    settings = IdentifySettings(free=('friction', 'rotor'))
    try:
        few = identify([path], model, settings, validate_on=[other])
    except ArgumentError:
        return {}
    assert few.validation is not None
    equations = few.validation.equations
    found = {'friction': few.solution.x, 'default': result.solution.x}
    with contextlib.suppress(ArgumentError, np.linalg.LinAlgError):
        found['ols'] = ols(result.equations, make_freedom(result.solution.columns)).x
    errors = {name: _errors(equations, x) for name, x in found.items()}
    before = errors['default']
    return {'before': pooled(before).relative[0]} | {n: pooled(e).relative[1] for n, e in errors.items()}


def _errors(equations: Equations, x: Floats) -> Errors:
    prior = equations.columns.prior
    if len(x[equations.columns.slices['bias']]):
        prior, x = with_own_bias(equations, prior), with_own_bias(equations, x)
    return torque_errors(equations, prior, x)


# ---------------------------------------------------------------- coverage


def _cover(row: Row, world: worlds.World, robot: worlds.Robot, result: Result) -> None:
    """Count the intervals that contain the true value."""
    solution, columns = result.solution, result.solution.columns
    truth, scale = robot.truth(columns), robot.sensors.scale * world.unit
    own, linear = bool(np.all(scale == 1.0)), world.friction == 'linear'
    for kind in _FRICTION:
        truth[columns.slices[kind]] /= scale
    kinds = (*(('pi', 'rotor') if own else ()), *(_FRICTION if linear else ()))
    inside = (solution.low <= truth) & (truth <= solution.high)
    for kind in kinds:
        part = columns.slices[kind]
        known = solution.identified[part]
        add(row, 'friction' if kind in _FRICTION else kind, inside[part][known])
        for i in np.flatnonzero(known & ~inside[part]) + part.start:
            text = f'{columns.names[i]} {solution.x[i]:.4g} +- {solution.std[i]:.2g}, true {truth[i]:.4g}'
            row.worst.append(f'{text} ({abs(solution.x[i] - truth[i]) / solution.std[i]:.1f})')
    if not linear:
        _cover_typical_friction(row, world, robot, result)
    if own:
        _cover_combinations(row, world, result, truth)


def _cover_typical_friction(row: Row, world: worlds.World, robot: worlds.Robot, result: Result) -> None:
    """Friction of each joint at its typical speed."""
    solution, columns = result.solution, result.solution.columns
    free = solution.free[columns.slices['stribeck']].any()
    velocity = columns.stribeck_velocity if free else None
    speed, true = worlds.typical_friction(world, robot, result.equations.samples, velocity)
    true = true / (robot.sensors.scale * world.unit)
    dip = np.exp(-((speed / columns.stribeck_velocity) ** 2))
    found, variance = np.zeros((2, len(speed)))
    for kind, factor in (('viscous', speed), ('coulomb', 1.0), ('stribeck', dip)):
        part = columns.slices[kind]
        found += factor * solution.x[part]
        variance += (factor * np.nan_to_num(solution.std[part])) ** 2
    inside = np.abs(found - true) <= _REACH * np.sqrt(variance)
    known = solution.identified[columns.slices['coulomb']]
    add(row, 'friction', inside[known])
    for j in np.flatnonzero(known & ~inside):
        text = f'friction of {columns.model.joint_names[j]} at {speed[j]:.3g} rad/s: {found[j]:.4g}'
        row.worst.append(f'{text} +- {np.sqrt(variance[j]):.2g}, true {true[j]:.4g}')


def add(row: Row, kind: str, inside: npt.NDArray[np.bool_]) -> None:
    """Count intervals."""
    if len(inside):
        hit, total = row.covered.get(kind, [0, 0])
        row.covered[kind] = [hit + int(inside.sum()), total + len(inside)]


def _cover_combinations(row: Row, world: worlds.World, result: Result, truth: Floats) -> None:
    """Base parameters; those that include friction only if it is linear."""
    solution = result.solution
    freedom = make_freedom(solution.columns)
    groups = {g for g, lead in zip(freedom.groups, freedom.lead, strict=True) if solution.free[lead]}
    chosen = freedom.only(groups)
    for kind in ('offset', 'viscous'):  # some may be held
        each = np.arange(*solution.columns.slices[kind].indices(solution.columns.size))
        chosen = chosen.without(each[~solution.free[each]])
    if not solution.free[chosen.lead].all():
        return  # only the trunk is free: its unknowns are counted separately
    base = find_base_parameters(result.equations.accumulate()[0], chosen)
    found = {each.text: each for each in solution.combinations}
    left_out = set(_SENSORS) | (set() if world.friction == 'linear' else set(_FRICTION))
    foreign = np.array([group in left_out for group in chosen.groups])
    inside = []
    for i, text in enumerate(base.texts()):
        if text in found and not np.any(base.shown[i] & foreign):
            each = found[text]
            off = abs(each.value - float(base.B[i] @ truth[chosen.lead]))
            inside.append(off <= _REACH * each.std)
    add(row, 'base', np.array(inside, dtype=bool))


# ---------------------------------------------------------------- many of them


def _job(seed: int, others: bool) -> Row:
    warnings.simplefilter('ignore')
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(worlds.draw(seed), Path(folder), others)
        except Exception as error:  # a crash is a result, and must not end the other runs
            return Row(seed, str(worlds.draw(seed)), refused=f'CRASHED: {type(error).__name__}: {error}')


def line(row: Row) -> str:
    """One line of text for a log."""
    marks = ''.join(
        mark if bad else ' '
        for mark, bad in (('M', row.too_heavy), ('H', row.worse_held), ('E', row.worse_elsewhere))
    )
    told = 'refused' if row.refused else f'{len(row.warnings)} told' if row.warnings else ''
    held = '->'.join(f'{100 * value:.1f}' for value in row.held) or '-'
    names = ('before', 'default', 'friction', 'ols')
    other = ' '.join(f'{100 * row.other[name]:7.1f}' if name in row.other else '      -' for name in names)
    hits = ' '.join(f'{kind} {hit}/{of}' for kind, (hit, of) in row.covered.items())
    text = f'{marks} {told:8} {row.world:62} mass {row.urdf_mass:5.2f} {row.mass:6.2f}  {held:>12} | {other} '
    return f'{text}| w {row.weight:g} {row.seconds:5.1f} s {hits}'


def summary(rows: list[Row]) -> str:
    """Summary of all logs."""
    lines = [f'{len(rows)} logs, {sum(bool(r.refused) for r in rows)} refused, of the rest ']
    lines[0] += f'{sum(bool(r.warnings) for r in rows)} with warnings'
    for what, bad in (
        (f'total mass more than {100 * MOST_MASS:.0f} % off', lambda r: r.too_heavy),
        ('worse than the URDF on held-out blocks', lambda r: r.worse_held),
        ('worse than the URDF on another motion', lambda r: r.worse_elsewhere),
    ):
        found = [r for r in rows if bad(r)]
        silent = [r.seed for r in found if not r.announced]
        lines.append(f'{what}: {len(found)}, of these not announced {len(silent)}: seeds {silent}')
    fine = [r for r in rows if not (r.too_heavy or r.worse_held or r.worse_elsewhere)]
    lines.append(
        f'warned of or refused, though nothing is wrong: {sum(r.announced for r in fine)} of {len(fine)}'
    )
    lines.append(f'crashed: {[r.seed for r in rows if r.refused.startswith("CRASHED")]}')
    for name, kind in (('linear friction', 'linear'), ('other friction', '')):
        chosen = [r for r in rows if (worlds.draw(r.seed).friction == 'linear') == bool(kind)]
        lines.append(f'coverage, {name}: {_coverage(chosen)}')
        for base in ('fixed', 'floating'):
            for good in (True, False):
                some = [r for r in chosen if f'-{base}-' in r.world and ('-good-' in r.world) == good]
                lines.append(f'    {base}, {"good" if good else "poor"} motion: {_coverage(some)}')
    return '\n'.join(lines)


def _coverage(rows: list[Row]) -> str:
    kinds = sorted({kind for row in rows for kind in row.covered})
    parts = []
    for kind in kinds:
        hit, of = np.sum([row.covered[kind] for row in rows if kind in row.covered], axis=0)
        parts.append(f'{kind} {100.0 * hit / of:.1f} % of {of}')
    return ', '.join(parts) or 'nothing'


def main() -> None:
    """Run all logs, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--count', type=int, default=200, help='logs (200)')
    parser.add_argument('--seed', type=int, default=0, help='of the first one (0)')
    parser.add_argument('--only', type=int, nargs='+', help='these seeds instead')
    parser.add_argument('--alone', action='store_true', help='without other methods and another motion')
    parser.add_argument('--jobs', type=int, default=1, help='processes (1)')
    parser.add_argument('--out', type=Path, help='file for all figures, a line of JSON for each log')
    options = parser.parse_args()
    seeds = options.only or list(range(options.seed, options.seed + options.count))
    rows = []
    for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):  # of the worker processes
        os.environ.setdefault(name, '1')
    with multiprocessing.get_context('spawn').Pool(options.jobs) as pool:
        for row in pool.imap(functools.partial(_job, others=not options.alone), seeds):
            rows.append(row)
            print(line(row), flush=True)
            if options.out:
                with options.out.open('a') as file:
                    file.write(json.dumps(asdict(row)) + '\n')
    print(summary(rows))


if __name__ == '__main__':
    main()
