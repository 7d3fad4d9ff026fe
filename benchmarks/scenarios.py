# SPDX-License-Identifier: Apache-2.0
"""`make scenarios`: the scenarios of config/scenarios with six robots, as their files say.

Each runs with ten seeds, and on impulse contact once for a minute. The files name a robot, which is replaced
by others, whose URDFs are installed with Pinocchio (example-robot-data). Nothing is written for them, and all
walk with the same settings. Two of them also walk on springs and dampers.
"""

from __future__ import annotations

import argparse
import sys
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

FOLDER = Path(__file__).resolve().parents[1] / 'config' / 'scenarios'
ROBOTS = {
    'mini_cheetah': '',
    'go2': '',
    'a1': 'a1_description/urdf/a1.urdf',
    'go1': 'go1_description/urdf/go1.urdf',
    'solo12': 'solo_description/robots/solo12.urdf',
    'anymal_c': 'anymal_c_simple_description/urdf/anymal.urdf',
}
ON_SPRINGS = ('mini_cheetah', 'anymal_c')
LONG = 60.0  # [s]


def main() -> int:
    """Run the scenarios; 0 where everything is as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('names', nargs='*', help='scenarios (default: all of config/scenarios)')
    parser.add_argument('--robots', nargs='+', choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument('--output', default='build/scenarios', help='folder (default: %(default)s)')
    parser.add_argument('--jobs', type=int, default=2, help='processes (default: %(default)s)')
    parser.add_argument('--seeds', type=int, default=10, help='seeds of each (default: %(default)s)')
    arguments = parser.parse_args()
    paths = sorted(FOLDER.glob('*.yaml'))
    chosen = [path for path in paths if not arguments.names or path.stem in arguments.names]
    files = [
        file
        for robot in arguments.robots
        for contact in ('impulse', 'spring_damper')
        if contact == 'impulse' or robot in ON_SPRINGS
        for path in chosen
        for file in variants(path, robot, contact, arguments.seeds)
    ]
    total = sum(file.duration * len(file.seeds) for file in files)
    with tqdm(total=total, unit='s', unit_scale=True, leave=False) as bar:
        found = run_batch(
            files,
            arguments.output,
            jobs=arguments.jobs,
            plots=False,
            progress=lambda seconds: bar.update(seconds) and None,
        )
    print_table(files, found)
    wrong = [
        f'{file.name}: {text}'
        for file, rows in zip(files, found, strict=True)
        for text in violations(rows, file.expect)
    ]
    for text in wrong:
        print(f'error: {text}', file=sys.stderr)
    print(f'{len(files)} scenarios, {len(wrong)} expectations not met; rows are in {arguments.output}')
    return 1 if wrong else 0


def variants(path: Path, robot: str, contact: str, seeds: int) -> list[ScenarioFile]:
    """A scenario with another robot and contact model: with several seeds, and with impulses for a minute."""
    data = yaml.safe_load(path.read_text(encoding='utf-8'))
    scenario: dict[str, Any] = data['scenario']
    scenario['robot'] = str(FILES / ROBOTS[robot]) if ROBOTS[robot] else robot
    scenario['simulator']['contact'] = contact
    scenario['seeds']['count'] = seeds
    name = f'{robot}_{path.stem}{"_on_springs" if contact == "spring_damper" else ""}'
    files = [ScenarioFile.load({**data, 'scenario': {**scenario, 'name': name}})]
    if contact != 'impulse':
        return files
    seed = scenario['seeds']['first'] + 1000
    long = {
        **data,
        'scenario': {
            **scenario,
            'name': f'{name}_long',
            'duration': LONG,
            'seeds': {'first': seed, 'count': 1},
        },
    }
    return [*files, ScenarioFile.load(long)]


def print_table(files: list[ScenarioFile], found: list[list[Row]]) -> None:
    """Print a line for each scenario: falls, and the worst seed in each column."""
    head = ('worst seed', 'falls', *(title for title, *_ in TABLE))
    lines = []
    for file, rows in zip(files, found, strict=True):
        worst = {name: max(float(row[name]) for row in rows) for _, name, *_ in TABLE}
        falls = sum(bool(row['fell']) for row in rows)
        lines.append((file.name, f'{falls} of {len(rows)}', *cells(worst)))
    Terminal().table(head, lines, right=range(1, len(head)))


if __name__ == '__main__':
    sys.exit(main())
