# SPDX-License-Identifier: Apache-2.0
"""Draws docs/figures/push_limits.png: how hard a robot that trots can be pushed. `make figures`.

Pushes of 0.1 s from all sides and in all phases of the stride, one in each run, which ends 2.5 s later, with
both planners. docs/locomotion.md explains it. It takes a quarter of an hour.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use('Agg')
import matplotlib.pyplot as plt

from quad_dynamics.scenarios.runner import run_scenario

HERE = Path(__file__).parent
ROBOTS = {'mini_cheetah': '#2471a3', 'go2': '#d35400'}
SIZES = np.arange(1.0, 3.01, 0.5)  # [m/s]
PUSHES = 8  # of each size
PLANNERS = {'com_splines': 'o-', 'simple': 's:'}
COMMANDS = {'in place': 0.0, 'at 0.5 m/s': 0.5}


def main() -> None:
    """Push, draw and save."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for ax, (label, velocity) in zip(axes, COMMANDS.items(), strict=True):
        for (robot, colour), (planner, line) in product(ROBOTS.items(), PLANNERS.items()):
            shares = [share_that_stays_up(robot, planner, velocity, float(size)) for size in SIZES]
            print(robot, planner, label, dict(zip(SIZES.tolist(), shares, strict=True)), flush=True)
            ax.plot(SIZES, 100.0 * np.array(shares), line, color=colour, label=f'{robot}, {planner}')
        ax.set_title(f'trot {label}')
        ax.set_xlabel('push: change of velocity [m/s]')
        ax.grid(alpha=0.3)
    axes[0].set_ylabel('robots that stay up [%]')
    axes[0].set_ylim(-3.0, 103.0)
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / 'push_limits.png', dpi=130)


def share_that_stays_up(robot: str, planner: str, velocity: float, size: float) -> float:
    """Share of the pushes of a size [m/s] after which the robot has not fallen."""
    stayed = 0
    for i in range(PUSHES):
        push = {'delta_v': size, 'heading': 2.0 * np.pi * i / PUSHES, 'duration': 0.1}
        scenario = {
            'robot': robot,
            'truth': {'payload': {'share': 0.12}, 'friction': 'typical'},
            'simulator': {'contact': 'impulse', 'mu': 0.6, 'latency': 0.004, 'sensors': 'typical'},
            'control': {'stand_at_zero': False, 'planner': planner},
            'duration': 4.5,
            'events': [
                {'at': 0.0, 'gait': 'trot', 'cmd_vel': [velocity, 0.0, 0.0]},
                {'at': {'uniform': [1.5, 2.0]}, 'push': push},
            ],
        }
        stayed += not run_scenario({'scenario': scenario}, seed=1000 + i).row['fell']
    return stayed / PUSHES


if __name__ == '__main__':
    main()
