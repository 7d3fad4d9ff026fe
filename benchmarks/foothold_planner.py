# SPDX-License-Identifier: Apache-2.0
"""The foothold planner on the go2: median and 99th percentile of one plan, and a gait transition.

python -m benchmarks.foothold_planner
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import quad_dynamics as qd
from quad_dynamics.model.legs import LEG_ORDER
from quad_dynamics.planning.foothold_planner import FootholdPlanner, FootholdQuery
from quad_dynamics.planning.gait import GAITS, GaitClock
from quad_dynamics.planning.stance_geometry import StanceGeometry, stance_geometry
from quad_dynamics.planning.support_sequence import contact_schedule, support_polygons

QUERIES = 500


def queries(geometry: StanceGeometry, count: int = QUERIES) -> list[FootholdQuery]:
    """Robots that trot and turn on slopes; some were pushed, so that inequalities are active."""
    rng, made = np.random.default_rng(0), []
    stance = 1.15 / geometry.rate
    for _ in range(count):
        yaw = rng.uniform(-math.pi, math.pi)
        c, s = math.cos(yaw), math.sin(yaw)
        R_WB = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        com = np.array([*rng.uniform(-5.0, 5.0, 2), geometry.com_height])
        hips = com + (geometry.hips - [*geometry.com, geometry.com_height - geometry.base_height]) @ R_WB.T
        feet = com + np.array([[x, y, -geometry.com_height] for x, y in geometry.below]) @ R_WB.T
        command = rng.uniform(-0.5, 0.5, 3)
        push = rng.normal(size=3) * rng.choice([0.05, 0.5])
        normal = np.array([*rng.uniform(-0.2, 0.2, 2), 1.0])
        made.append(
            FootholdQuery(
                com,
                R_WB @ (command * [1.0, 1.0, 0.0] + push),
                yaw,
                (command[0], command[1], command[2]),
                hips,
                np.array([0.2, 1.2, 1.2, 0.2]) * stance,
                np.full(4, stance),
                normal / np.linalg.norm(normal),
                com - [0.0, 0.0, geometry.com_height],
                feet,
                np.array([False, True, True, False]),
                feet + rng.normal(size=(4, 3)) * 0.02,
            )
        )
    return made


def quantiles(call: Callable[[Any], object], arguments: Sequence[Any], rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of the calls, each the fastest of some rounds [us]."""
    times = np.full((rounds, len(arguments)), np.inf)
    for row in times:
        for i, argument in enumerate(arguments):
            begin = time.perf_counter()
            call(argument)
            row[i] = time.perf_counter() - begin
    best = 1e6 * times.min(axis=0)
    return float(np.percentile(best, 50)), float(np.percentile(best, 99))


def measure(rounds: int = 5) -> dict[str, tuple[float, float]]:
    """Median and 99th percentile of a plan, a schedule with its polygons, and a gait transition [us]."""
    model = qd.load_model('go2')
    geometry = stance_geometry(model)
    order = [LEG_ORDER.index(leg.name) for leg in model.legs]
    planner, chosen = FootholdPlanner(geometry, order), queries(geometry)
    footholds = [planner.plan(query) for query in chosen]
    assert all(found.is_solved for found in footholds)
    names = [name for name in GAITS if name != 'stand']
    strides = np.linspace(0.0, 1.0, QUERIES, endpoint=False)

    def clock_at(i: int) -> GaitClock:
        clock = GaitClock(GAITS[names[i % len(names)]], 1.0 / geometry.rate, order)
        clock.stride = strides[i]
        return clock

    def sequence(i: int) -> object:
        clock, query = clock_at(i), chosen[i]
        schedule = contact_schedule(clock, [clock.is_stance(leg) for leg in range(4)], 'walk', 0.0)
        assert query.feet is not None
        return support_polygons(schedule, query.feet, footholds[i].footholds, query.normal, query.point)

    def change(i: int) -> None:
        clock_at(i).change(GAITS[names[(i // len(names)) % len(names)]])

    everything = range(QUERIES)
    return {
        'foothold_plan': quantiles(planner.plan, chosen, rounds),
        'support_sequence': quantiles(sequence, everything, rounds),
        'gait_change': quantiles(change, everything, rounds),
    }


def main() -> None:
    """Print the results."""
    print('Foothold planner, go2, trotting on slopes, with pushes: median and 99th percentile [us]')
    for name, (median, slow) in measure().items():
        print(f'  {name:20} {median:8.1f} {slow:8.1f}')


if __name__ == '__main__':
    main()
