# SPDX-License-Identifier: Apache-2.0
"""`make scenarios`: the scenarios of config/scenarios with six robots.

Scenarios of GAITS run with six robots, and with two of them also with spring-damper contact; all others run
with mini_cheetah and go2. The robot named in a file is replaced by the other ones, whose URDFs are installed
with Pinocchio (example-robot-data). They have no settings of their own: all robots walk with the same ones.

By default there are three seeds for mini_cheetah and go2, and one for everything else. `--all` runs ten seeds
of everything, and on level ground with impulse contact also one minute. `--planner com_splines simple` runs
everything with both planners and compares them; expectations apply to the first one.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from benchmarks.dynamics import ROBOTS as FILES
from quad_dynamics.cli.scenario_command import TABLE, cells
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.scenarios.batch import run_batch
from quad_dynamics.scenarios.results import Row, violations
from quad_dynamics.scenarios.scenario_file import ScenarioFile
from quad_dynamics.simulation.settings_reader import from_folder

FOLDER = Path(__file__).resolve().parents[1] / 'config' / 'scenarios'
ROBOTS = {
    'mini_cheetah': '',
    'go2': '',
    'a1': 'a1_description/urdf/a1.urdf',
    'go1': 'go1_description/urdf/go1.urdf',
    'solo12': 'solo_description/robots/solo12.urdf',
    'anymal_c': 'anymal_c_simple_description/urdf/anymal.urdf',
}
MAIN = ('mini_cheetah', 'go2')
ON_SPRINGS = ('mini_cheetah', 'anymal_c')
# Scenarios for all robots.
GAITS = (
    'stand',
    'crawl',
    'walk',
    'trot',
    'fast_trot',
    'flying_trot',
    'pace',
    'bound',
    'sideways',
    'turning',
    'in_place',
    'pushes',
)
# Known violations of expectations: robot and scenario, and the reason.
KNOWN = {
    ('anymal_c', 'bound'): 'on two legs its joints reach their limit of 80 N m, and the body sinks',
}
LONG = 60.0  # [s]
PLANNERS = ('com_splines', 'simple')
# Columns in which planners are compared.
COMPARED = ('v_error_mean', 'v_error_rms', 'roll_rms', 'pitch_rms')


def main() -> int:
    """Run the scenarios; returns 0 if all expectations are met."""
    arguments = parsed()
    files = {
        planner: [
            file
            for robot in arguments.robots
            for contact in ('impulse', 'spring_damper')
            for path in chosen(arguments.names, robot, contact)
            for file in variants(path, robot, contact, planner, arguments)
        ]
        for planner in arguments.planner
    }
    everything = [file for own in files.values() for file in own]
    total = sum(file.duration * len(file.seeds) for file in everything)
    runs = sum(len(file.seeds) for file in everything)
    print(f'{runs} runs, {total:.0f} s in all', flush=True)
    start = time.perf_counter()
    with tqdm(total=total, unit='s', unit_scale=True, leave=False) as bar:
        found = run_batch(
            everything,
            arguments.output,
            jobs=arguments.jobs,
            plots=False,
            progress=lambda seconds: bar.update(seconds) and None,
        )
    elapsed = time.perf_counter() - start
    rows = {file.name: own for file, own in zip(everything, found, strict=True)}
    for own in files.values():
        print_table(own, rows)
    if len(files) > 1:
        compare(list(files.values()), rows)
    wrong = unmet(files[arguments.planner[0]], rows)
    print(
        f'{len(everything)} scenarios, {wrong} expectations not met; {runs} runs, {total:.0f} s, '
        f'in {elapsed / 60.0:.1f} min; rows are in {arguments.output}'
    )
    return 1 if wrong else 0


def parsed() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('names', nargs='*', help='scenarios (default: all of config/scenarios)')
    parser.add_argument('--robots', nargs='+', choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument('--planner', nargs='+', choices=PLANNERS, default=['com_splines'])
    parser.add_argument('--output', default='build/scenarios', help='folder (default: %(default)s)')
    parser.add_argument('--jobs', type=int, default=2, help='processes (default: %(default)s)')
    parser.add_argument('--seeds', type=int, help='seeds of each scenario')
    parser.add_argument('--all', action='store_true', help='ten seeds of each, and runs of a minute')
    arguments = parser.parse_args()
    known = [path.stem for path in FOLDER.glob('*.yaml')]
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"unknown scenario '{unknown[0]}'; expected some of {', '.join(sorted(known))}")
    return arguments


def chosen(names: Sequence[str], robot: str, contact: str) -> list[Path]:
    """Files that a robot runs with a contact model."""
    if contact == 'spring_damper' and robot not in ON_SPRINGS:
        return []
    everything = robot in MAIN and contact == 'impulse'
    return [
        path
        for path in sorted(FOLDER.glob('*.yaml'))
        if (not names or path.stem in names) and (everything or path.stem in GAITS)
    ]


def variants(
    path: Path, robot: str, contact: str, planner: str, arguments: argparse.Namespace
) -> list[ScenarioFile]:
    """A scenario with another robot, contact model and planner; with --all also for a minute."""
    data = yaml.safe_load(path.read_text(encoding='utf-8'))
    scenario: dict[str, Any] = data['scenario']
    scenario['robot'] = str(FILES / ROBOTS[robot]) if ROBOTS[robot] else robot
    simulator = scenario['simulator']
    simulator['contact'] = contact
    is_level = 'terrain' not in simulator
    if not is_level:
        simulator['terrain'] = from_folder(simulator['terrain'], FOLDER)
    scenario['control'] = {**scenario.get('control', {}), 'planner': planner}
    few = 3 if robot in MAIN and contact == 'impulse' else 1
    scenario['seeds']['count'] = arguments.seeds or (10 if arguments.all else few)
    name = f'{robot}_{path.stem}{"_on_springs" if contact == "spring_damper" else ""}'
    scenario['name'] = name + ('' if planner == PLANNERS[0] else f'_{planner}')
    files = [ScenarioFile.load(data)]
    if arguments.all and contact == 'impulse' and is_level and scenario['duration'] < LONG:
        long = copy.deepcopy(data)
        seeds = {'first': scenario['seeds']['first'] + 1000, 'count': 1}
        long['scenario'] |= {'name': f'{scenario["name"]}_long', 'duration': LONG, 'seeds': seeds}
        files.append(ScenarioFile.load(long))
    return files


def unmet(files: Sequence[ScenarioFile], rows: dict[str, list[Row]]) -> int:
    """Print violated expectations; returns their number, without the known ones."""
    wrong = 0
    for file in files:
        reasons = [why for (robot, name), why in KNOWN.items() if file.name.startswith(f'{robot}_{name}')]
        for text in violations(rows[file.name], file.expect):
            wrong += not reasons
            kind = f'known, {reasons[0]}' if reasons else 'error'
            print(f'{file.name}: {text} ({kind})', file=sys.stderr)
    return wrong


def worst_of(rows: Sequence[Row], name: str) -> float:
    """Largest value of a column; NaN if no run has one."""
    values = [float(row[name]) for row in rows]
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def falls(rows: Sequence[Row]) -> str:
    """`1 of 10`."""
    return f'{sum(bool(row["fell"]) for row in rows)} of {len(rows)}'


def print_table(files: Sequence[ScenarioFile], found: dict[str, list[Row]]) -> None:
    """Print a line per scenario: falls, and the worst seed in each column."""
    head = ('worst seed', 'falls', *(title for title, *_ in TABLE))
    lines = []
    for file in files:
        rows = found[file.name]
        worst = {name: worst_of(rows, name) for _, name, *_ in TABLE}
        lines.append((file.name, falls(rows), *cells(worst)))
    Terminal().table(head, lines, right=range(1, len(head)))


def compare(files: Sequence[Sequence[ScenarioFile]], found: dict[str, list[Row]]) -> None:
    """Print falls and the worst seed of some columns of all planners, `first / second`."""
    titles = [title for title, name, *_ in TABLE if name in COMPARED]
    lines = []
    for same in zip(*files, strict=True):
        several = [found[file.name] for file in same]
        texts = [cells({name: worst_of(rows, name) for _, name, *_ in TABLE}) for rows in several]
        columns = [
            ' / '.join(column)
            for (_, name, *_), *column in zip(TABLE, *texts, strict=True)
            if name in COMPARED
        ]
        lines.append((same[0].name, ' / '.join(falls(rows) for rows in several), *columns))
    head = ('planners: worst seed', 'falls', *titles)
    Terminal().table(head, lines, right=range(1, len(head)))


if __name__ == '__main__':
    sys.exit(main())
