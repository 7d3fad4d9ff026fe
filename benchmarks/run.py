# SPDX-License-Identifier: Apache-2.0
"""Run all benchmarks: `make bench`. Prints tables and writes results.json, a flat map of names to numbers.

A name without an ending is a ratio: how many times as fast as the peer, measured in the same run. `..._s` are
seconds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pinocchio
from tqdm import tqdm

import quad_dynamics as qd
from benchmarks import dynamics, startup
from benchmarks.timing import Contest, run_contests

RESULTS = Path(__file__).parent / 'results.json'
LIMITS = {'aba': 2.5, 'rnea': 2.0, 'crba': 2.0, 'coriolis': 2.0, 'regressor': 2.0}
LIMITS_S = {'import_s': 1.0, 'first_call_s': 1.5, 'cold_compile_s': 60.0}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, prog='python -m benchmarks.run')
    parser.add_argument('--rounds', type=int, default=400, help='timings of each function; the best counts')
    parser.add_argument('--output', type=Path, default=RESULTS, help='where to write the results')
    arguments = parser.parse_args()

    print('Starting up in new processes ...')
    results = startup.measure()
    for name, seconds in results.items():
        print(f'  {name:20} {seconds:7.2f} s    (wanted: below {LIMITS_S[name]:g} s)')

    qd.warm_up(progress=False)
    contests = dynamics.contests()
    with tqdm(total=arguments.rounds, desc='dynamics of the go2', unit='round') as bar:
        run_contests(contests, arguments.rounds, bar.update)
    print(f'\nDynamics of the go2, called from Python; the peer is Pinocchio {pinocchio.__version__}')
    print_table(contests)

    results |= {contest.name: contest.ratio for contest in contests}
    arguments.output.write_text(json.dumps({k: round(v, 3) for k, v in results.items()}, indent=2) + '\n')
    print(f'\nwritten: {arguments.output}')


def print_table(contests: list[Contest]) -> None:
    """One line for each contest."""
    print(f'{"":20} {"ours [ns]":>10} {"peer [ns]":>10} {"ratio":>7}   wanted')
    for contest in contests:
        times = f'{contest.ours_ns:10.0f} {contest.peer_ns:10.0f} {contest.ratio:7.2f}'
        wanted = f'{LIMITS[contest.name]:g}' if contest.name in LIMITS else ''
        print(f'{contest.name:20} {times}   {wanted}')


if __name__ == '__main__':
    main()
