# SPDX-License-Identifier: Apache-2.0
"""Draws docs/figures/simulation_growth.png, what more contacts and joints cost: `make figures`.

From the figures of the last `make bench`; docs/simulation_speed.md explains them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use('Agg')
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / 'benchmarks' / 'results.json'
OURS = {'impulse': ('impulse', '#2471a3', 'o'), 'spring': ('spring-damper', '#229954', 's')}
FIXED = {'contacts': '12 joints', 'joints': '4 contacts'}


def main() -> None:
    """Draw and save."""
    results = json.loads(RESULTS.read_text())
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for ax, varied in zip(axes, FIXED, strict=True):
        draw(ax, results, varied)
    axes[0].set_ylabel('one time step [us]')
    axes[0].set_ylim(top=1.5 * axes[0].get_ylim()[1])
    axes[0].legend(loc='upper left', frameon=False, fontsize=9)
    figure.suptitle('A quadruped that stands: cost of a time step of 1 ms', fontsize=12)
    figure.tight_layout()
    figure.savefig(HERE / 'simulation_growth.png', dpi=130)


def draw(ax: plt.Axes, results: dict[str, float], varied: str) -> None:
    """One plot with logarithmic axes; the numbers beside the ends are the slopes from there to there."""
    peer: dict[int, float] = {}
    for kind, (label, color, marker) in OURS.items():
        found = measured(results, rf'growth_{kind}_{varied}_(\d+)_ns')
        for count, ns in measured(results, rf'growth_{kind}_{varied}_(\d+)_peer_ns').items():
            peer[count] = min(ns, peer.get(count, np.inf))
        line(ax, found, label, color, marker, '-')
        if kind == 'impulse':
            sweeps = measured(results, rf'growth_{kind}_{varied}_(\d+)_sweeps')
            for count, ns in found.items():
                text = f'{sweeps[count]:.0f}'
                ax.annotate(
                    text, (count, ns / 1e3), (0, 7), textcoords='offset points', ha='center', color=color
                )
    line(ax, peer, 'MuJoCo', '0.5', '^', '--')
    counts = sorted(peer)
    ax.set(
        xscale='log',
        yscale='log',
        xlabel=f'{varied}  ({FIXED[varied]})',
        xlim=(counts[0] / 1.25, counts[-1] * 1.6),
    )
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.minorticks_off()
    ax.set_yticks([1, 2, 5, 10, 20, 50, 100], ['1', '2', '5', '10', '20', '50', '100'])
    ax.grid(alpha=0.3)
    ax.spines[['top', 'right']].set_visible(False)
    ax.set_title('small numbers: sweeps of impulse contact; at the ends: mean slope', fontsize=9, color='0.4')


def measured(results: dict[str, float], pattern: str) -> dict[int, float]:
    """Numbers whose name matches, by the count in it."""
    matches = ((re.fullmatch(pattern, name), value) for name, value in results.items())
    return dict(sorted((int(match[1]), value) for match, value in matches if match))


def line(ax: plt.Axes, found: dict[int, float], label: str, color: str, marker: str, style: str) -> None:
    """One curve, and its slope from end to end."""
    x, y = np.array(list(found)), np.array(list(found.values())) / 1e3
    ax.plot(x, y, style, color=color, marker=marker, markersize=5, label=label)
    slope = np.log(y[-1] / y[0]) / np.log(x[-1] / x[0])
    ax.annotate(f'{slope:.2f}', (x[-1], y[-1]), (8, -3), textcoords='offset points', color=color, fontsize=9)


if __name__ == '__main__':
    main()
