# SPDX-License-Identifier: Apache-2.0
"""Run all benchmarks: `make bench`. Prints tables and writes results.json, a flat map of names to numbers.

A name without one of these endings is a ratio: how many times as fast as the peer, measured in the same run.
`..._s` are seconds, `..._us` microseconds per call, `..._p99_us` the 99th percentile of the calls, `..._ns`
nanoseconds per time step, `..._realtime` simulated seconds per second, `..._force_std` the largest standard
deviation of a component of a foot force [N]. `..._substeps` and `..._sweeps` are means over time steps,
`..._unconverged` is the share of time steps that did not converge, `..._growth` is the memory for a hundred
times the samples, relative to that for few. `..._tuned` is the ratio to MuJoCo tuned for speed,
`..._worst_ns` is the mean of the slowest hundred consecutive steps, `..._two_threads` is the ratio to one
thread, `..._cpp` that to Pinocchio called from C++, while ours is called from Python.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import mujoco
import pinocchio
from tqdm import tqdm

import quad_dynamics as qd
from benchmarks import (
    contact,
    dynamics,
    foothold_planner,
    growth,
    identification,
    planning,
    simulation,
    startup,
    threads,
    whole_body,
)
from benchmarks.pinocchio_cpp import NotMeasuredError
from benchmarks.timing import Contest, run_contests

RESULTS = Path(__file__).parent / 'results.json'
LIMITS = {'aba': 2.5, 'rnea': 2.0, 'crba': 2.0, 'coriolis': 2.0, 'regressor': 2.0, 'identification': 5.0}
LIMITS |= {'rnea_arm': 3.0, 'crba_arm': 3.0, 'regressor_arm': 3.0}
LIMITS |= {
    'controller_terms': 4.0,
    'controller_terms_out': 4.0,
    'whole_body': 2.0,
    'whole_body_weighted': 2.0,
}
LIMITS_US = {'whole_body_us': 100.0, 'walker_update_us': 250.0, 'walker_update_p99_us': 600.0}
PLANNING_LIMITS_US = {
    f'com_plan_{gait}{ending}': limit
    for gait in planning.HORIZONS
    for ending, limit in (('_us', 4000.0), ('_p99_us', 10_000.0))
} | {'footholds_us': 300.0}
LIMITS |= {
    f'sim_{kind}_{robot}{ending}': wanted
    for kind, wanted in (('impulse', 5.0), ('spring', 2.0))
    for robot in simulation.ROBOTS
    for ending in ('', '_python')
}
LIMITS |= {'aba_two_threads': 1.7, 'sim_two_threads': 1.7}
LIMITS_S = {'import_s': 1.0, 'first_call_s': 1.5, 'cold_compile_s': 60.0}
LIMIT_FORCE_STD = 1.0  # of a foot force while standing [N]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, prog='python -m benchmarks.run')
    parser.add_argument('--rounds', type=int, default=400, help='timings of each function; the best counts')
    parser.add_argument('--sim-rounds', type=int, default=20, help='timings of each simulation, likewise')
    parser.add_argument('--output', type=Path, default=RESULTS, help='where to write the results')
    arguments = parser.parse_args()

    results = measure_startup()
    qd.warm_up(progress=False)
    results |= measure_dynamics(arguments.rounds)
    results |= measure_whole_body(arguments.sim_rounds)
    results |= measure_planning(arguments.sim_rounds)
    results |= measure_simulation(arguments.sim_rounds)
    results |= measure_contact(arguments.sim_rounds)
    results |= measure_growth(arguments.sim_rounds)
    results |= measure_threads(arguments.sim_rounds)
    results |= measure_identification()
    arguments.output.write_text(json.dumps({k: round(v, 4) for k, v in results.items()}, indent=2) + '\n')
    print(f'\nwritten: {arguments.output}')


def measure_startup() -> dict[str, float]:
    """Start-up times of a user [s]."""
    print('Starting up in new processes ...')
    results = startup.measure()
    for name, seconds in results.items():
        print(f'  {name:20} {seconds:7.2f} s    (wanted: below {LIMITS_S[name]:g} s)')
    return results


def measure_dynamics(rounds: int) -> dict[str, float]:
    """Our functions against Pinocchio's."""
    timed: list[Contest] = []
    for what, contests in (
        ('Dynamics, go2', dynamics.contests()),
        ('Dynamics, B1 with a Z1 arm', dynamics.arm_contests()),
        ('Calls of controllers, go2', dynamics.controller_contests()),
    ):
        run(contests, rounds, what)
        print(f'\n{what}, called from Python; the peer is Pinocchio {pinocchio.__version__}')
        print_table(contests)
        timed += contests
    return {contest.name: contest.ratio for contest in timed} | measure_cpp(timed, rounds)


def measure_cpp(contests: Sequence[Contest], rounds: int) -> dict[str, float]:
    """Functions called from Python against Pinocchio's called from C++."""
    print('\nThe same against Pinocchio called from C++ (which is compiled first) ...', flush=True)
    try:
        times = dynamics.cpp_times(rounds)
    except NotMeasuredError as reason:
        print(f'  not measured: {reason}')
        return {}
    compared = [contest for contest in contests if contest.name in times]
    print(f'{"":40} {"ours [ns]":>10} {"C++ [ns]":>10} {"ratio":>7}')
    for one in compared:
        ns = times[one.name]
        print(f'{one.name:40} {one.ours_ns:10.0f} {ns:10.0f} {ns / one.ours_ns:7.2f}')
    return {f'{one.name}_cpp': times[one.name] / one.ours_ns for one in compared}


def measure_whole_body(rounds: int) -> dict[str, float]:
    """Whole-body control against the same with Pinocchio, numpy and daqp; and the complete walker."""
    contests, walk = whole_body.contests()
    run(contests, rounds, 'whole-body control')
    print('\nWhole-body control, go2, trotting; the peer is the same of Pinocchio, numpy and daqp')
    print_table(contests)
    results = {contest.name: contest.ratio for contest in contests}
    calls = {contest.name: whole_body.quantiles(contest, rounds) for contest in contests}
    calls |= whole_body.update_quantiles(walk, rounds)
    for name, (median, p99) in calls.items():
        results |= {f'{name}_us': median, f'{name}_p99_us': p99}
    for name, limit in LIMITS_US.items():
        print(f'  {name:24} {results[name]:7.1f} us    (wanted: below {limit:g} us)')
    print(
        f'  {"walker_planning_update_us":24} {results["walker_planning_update_us"]:7.1f} us    (with a plan)'
    )
    return results


def measure_planning(rounds: int) -> dict[str, float]:
    """Motion optimisation of the centre of mass against the same without elimination."""
    contests = planning.contests()
    run(contests, rounds, 'motion optimisation')
    print('\nMotion optimisation, two iterations; the peer has all coefficients and equality rows in daqp')
    print_table(contests)
    results = {contest.name: contest.ratio for contest in contests}
    for contest in contests:
        median, p99 = planning.quantiles(contest, rounds)
        results |= {f'{contest.name}_us': median, f'{contest.name}_p99_us': p99}
    median, p99 = foothold_planner.measure(rounds)['foothold_plan']
    results |= {'footholds_us': median, 'footholds_p99_us': p99}
    for name, limit in PLANNING_LIMITS_US.items():
        print(f'  {name:28} {results[name]:7.1f} us    (wanted: below {limit:g} us)')
    return results


def measure_simulation(rounds: int) -> dict[str, float]:
    """Time steps against MuJoCo's."""
    scenes = simulation.scenes()
    contests = [contest for scene in scenes for contest in scene.contests()]
    run(contests, rounds, 'simulation')
    print(f'\nOne time step of 1 ms; the peer is MuJoCo {mujoco.__version__}')
    print_table(contests)
    results = {contest.name: contest.ratio for contest in contests}
    for scene in scenes:
        ours = next(contest for contest in contests if contest.name == scene.name)
        results[f'{scene.name}_realtime'] = scene.sim.settings.dt * 1e9 / ours.ours_ns
        results |= scene.quality()
        numbers = {
            key: results[f'{scene.name}_{key}'] for key in ('realtime', 'substeps', 'sweeps', 'force_std')
        }
        print(
            '{:28} {realtime:.0f} times real time; standing: {substeps:.1f} sub-steps, {sweeps:.1f} sweeps, '
            'forces +-{force_std:.4f} N'.format(scene.name, **numbers),
            f'(wanted: below {LIMIT_FORCE_STD:g} N)',
        )
    return results


def measure_contact(rounds: int) -> dict[str, float]:
    """Contact of four robots against MuJoCo with default settings and tuned for speed."""
    print(
        '\nContact, one time step of 1 ms [us]: ours, MuJoCo, tuned; ratios; worst 100 steps; unconverged [%]'
    )
    return contact.measure(max(rounds // 4, 1), lambda line: print(line, flush=True))


def measure_growth(rounds: int) -> dict[str, float]:
    """Time steps of robots with increasing numbers of contacts and joints."""
    robots = growth.robots()
    contests = [robot.contest() for robot in robots]
    run(contests, rounds, 'growth')
    print('\nOne time step of 1 ms, standing, with more contacts (12 joints) and more joints (4 contacts)')
    print_table(contests)
    results = {}
    for robot, contest in zip(robots, contests, strict=True):
        results[f'{contest.name}_ns'] = contest.ours_ns
        results[f'{contest.name}_peer_ns'] = contest.peer_ns
        results[f'{contest.name}_sweeps'] = robot.sweeps()
    return results


def measure_threads(rounds: int) -> dict[str, float]:
    """Two threads against one."""
    print('\nTwo threads on one model, against one thread')
    results = threads.measure(rounds)
    for name, ratio in results.items():
        print(f'  {name:20} {ratio:7.2f}    (wanted: {LIMITS[name]:g})')
    return results


def measure_identification() -> dict[str, float]:
    """A long log against a loop over Pinocchio's regressor."""
    few, many = identification.SAMPLES
    print(f'\nEquations of {many:,} samples of a floating base with 12 joints, summed and solved ...')
    results = identification.measure()
    ours, peer = results['identification_samples_per_s'], results['identification_peer_samples_per_s']
    print(
        f'  {ours:,.0f} samples/s; a loop over the regressor of Pinocchio with numpy: {peer:,.0f}; ratio '
        f'{results["identification"]:.2f}    (wanted: {LIMITS["identification"]:g})\n'
        f'  memory: {results["identification_memory_mib"]:.0f} MiB, '
        f'{results["identification_memory_growth"]:.3f} times that of {few:,} samples; cross-validation, '
        f'solution and intervals of 13 links: {results["identification_solve_s"]:.1f} s'
    )
    return results


def run(contests: Sequence[Contest], rounds: int, what: str) -> None:
    """Time contests and show the progress."""
    with tqdm(total=rounds, desc=what, unit='round') as bar:
        run_contests(contests, rounds, bar.update)


def print_table(contests: Sequence[Contest]) -> None:
    """Print one line per contest."""
    print(f'{"":40} {"ours [ns]":>10} {"peer [ns]":>10} {"ratio":>7}   wanted')
    for contest in contests:
        times = f'{contest.ours_ns:10.0f} {contest.peer_ns:10.0f} {contest.ratio:7.2f}'
        wanted = f'{LIMITS[contest.name]:g}' if contest.name in LIMITS else ''
        print(f'{contest.name:40} {times}   {wanted}')


if __name__ == '__main__':
    main()
