# SPDX-License-Identifier: Apache-2.0
"""The experiment of docs/contact.md: the same trot on the spot with both contact models.

    python docs/figures/contact_models.py

runs it, draws docs/figures/contact_models.png and writes the tables of docs/contact.md.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use('Agg')
import matplotlib.pyplot as plt

import quad_dynamics as qd
from quad_dynamics.simulation.gaits import Trot
from quad_dynamics.simulation.plots import COLOURS, foot_motion

HERE = Path(__file__).parent
PAGE = HERE.parent / 'contact.md'

PERIOD = 0.4  # of a stride [s]
START = 1.2  # when measuring begins: three strides [s]
STRIDES = 10
WINDOW = 2e-3  # forces are compared as means over this time, whatever the time step is [s]
LOADED = 0.05  # the direction of a force counts above this share of the weight

MODELS = {
    'impulse': {'contact': 'impulse'},
    'spring-damper': {'contact': 'spring_damper'},
    'spring-damper, one sub-step': {'contact': 'spring_damper', 'substeps': 1},
}
STEPS = (0.25e-3, 0.5e-3, 1e-3, 2e-3)
FRICTIONS = (0.1, 0.2, 0.3, 0.5, 0.8)


@dataclass(frozen=True)
class Measures:
    """What one run shows.

    Attributes:
        ripple: of the base's height, from its lowest to its highest [mm].
        sag: mean height below that of standing [mm].
        shaking: deviation of the base's vertical acceleration [m/s^2].
        slip: way of a foot along the ground in one step, while it touches it [mm].
        landings: how often a foot touches down in one step; 1 is without bouncing.
        turn: mean change of a foot force's direction [deg/ms].
        change: root mean square of the change of a normal force [N/ms].
        peak: largest normal force in a time step, over the weight.
        work: of all motors in a stride, braking counted as well [J].
        effort: mean sweeps or sub-steps in a time step.
        missed: share of the time steps that did not converge [%].
        cost: computing time of a time step, the median [us].
        log: from the beginning of the measuring on.
    """

    ripple: float
    sag: float
    shaking: float
    slip: float
    landings: float
    turn: float
    change: float
    peak: float
    work: float
    effort: float
    missed: float
    cost: float
    log: qd.Log


def measure(model: qd.Model, dt: float = 1e-3, strides: int = STRIDES, **settings: object) -> Measures:
    """Let the robot trot, and measure from the fourth stride on."""
    sim = qd.Simulator(model, dt=dt, **settings)
    trot = Trot(model, period=PERIOD)
    sim.run(trot, START)
    log = sim.run(trot, strides * PERIOD)
    weight, steps = model.total_mass * 9.81, 4 * strides
    motion = foot_motion(log, sim.terrain)
    touches = motion.normal_force > 0.0
    forces = windows(log.foot_forces, dt)
    return Measures(
        ripple=1e3 * np.ptp(log.q[:, 2]),
        sag=1e3 * (model.standing[2] - log.q[:, 2].mean()),
        shaking=windows(log.acceleration[:, 2], dt).std(),
        slip=1e3 * motion.path[-1].sum() / steps,
        landings=(touches[1:] & ~touches[:-1]).sum() / steps,
        turn=turns(forces, LOADED * weight).mean(),
        change=np.sqrt(np.mean(np.diff(forces[:, :, 2], axis=0) ** 2)) / (1e3 * WINDOW),
        peak=motion.normal_force.max() / weight,
        work=np.abs(log.tau * log.u[:, 6:]).sum() * dt / strides,
        effort=(log.sweeps if settings['contact'] == 'impulse' else log.substeps).mean(),
        missed=100.0 * np.mean(~log.converged),
        cost=cost_of_a_step(sim, trot),
        log=log,
    )


def windows(values: np.ndarray, dt: float) -> np.ndarray:
    """Means over WINDOW of values that stand for time steps."""
    width = round(WINDOW / dt)
    count = len(values) // width
    return values[: count * width].reshape(count, width, *values.shape[1:]).mean(axis=1)


def turns(forces: np.ndarray, least: float) -> np.ndarray:
    """Angles between the forces of neighbouring windows, where both are large enough [deg/ms]."""
    a, b = forces[:-1], forces[1:]
    angle = np.arctan2(np.linalg.norm(np.cross(a, b), axis=2), np.sum(a * b, axis=2))
    return np.degrees(angle[(a[:, :, 2] > least) & (b[:, :, 2] > least)]) / (1e3 * WINDOW)


def cost_of_a_step(sim: qd.Simulator, trot: Trot, steps: int = 1000) -> float:
    """Median computing time of a step, the controller not counted [us]."""
    times = []
    for _ in range(steps):
        wanted = trot(sim)
        sim.command(wanted.tau, wanted.q, wanted.qd, wanted.kp, wanted.kd)
        start = time.perf_counter()
        sim.step()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


# ---------------------------------------------------------------- tables

ROWS = {
    'ripple of the base height [mm]': ('ripple', '.2f'),
    'base below its standing height [mm]': ('sag', '.2f'),
    'shaking of the base [m/s^2]': ('shaking', '.2f'),
    'slip of a foot in a step [mm]': ('slip', '.3f'),
    'touch-downs of a foot in a step': ('landings', '.2f'),
    'turn of the force direction [deg/ms]': ('turn', '.2f'),
    'change of a normal force [N/ms]': ('change', '.2f'),
    'largest normal force over the weight': ('peak', '.2f'),
    'work of the motors in a stride [J]': ('work', '.2f'),
    'sweeps or sub-steps in a time step': ('effort', '.1f'),
    'time steps that did not converge [%]': ('missed', '.1f'),
    'computing time of a time step [us]': ('cost', '.1f'),
}


def model_table(rows: Mapping[str, tuple[str, str]], found: Mapping[str, Any]) -> str:
    """Models beside each other.

    Args:
        rows: by label, the name of a measure and its format.
        found: measures of each model.
    """
    lines = [f'| | {" | ".join(found)} |', '|---|' + '---:|' * len(found)]
    for label, (name, form) in rows.items():
        cells = (format(getattr(one, name), form) for one in found.values())
        lines.append(f'| {label} | {" | ".join(cells)} |')
    return '\n'.join(lines)


def sweep_table(head: str, found: dict[str, dict[str, Measures]]) -> str:
    """Ripple, slip, turn and peak over what is varied; found[model][value]."""
    names = ('ripple', 'slip', 'turn', 'peak')
    lines = [
        f'| {head} | model | ripple [mm] | slip [mm] | turn [deg/ms] | peak / weight |',
        '|---|---|---:|---:|---:|---:|',
    ]
    for value in next(iter(found.values())):
        for model, measures in found.items():
            cells = (format(getattr(measures[value], name), '.3f') for name in names)
            lines.append(f'| {value} | {model} | {" | ".join(cells)} |')
    return '\n'.join(lines)


def write_table(name: str, table: str) -> None:
    """Put a table between the marks of the page."""
    text = PAGE.read_text()
    begin, end = f'<!-- {name} -->\n', f'<!-- end of {name} -->'
    pattern = re.compile(f'{re.escape(begin)}.*?{re.escape(end)}', re.DOTALL)
    assert pattern.search(text), f'{PAGE.name} has no place for {name}'
    PAGE.write_text(pattern.sub(lambda _: f'{begin}\n{table}\n\n{end}', text))


# ---------------------------------------------------------------- picture


def draw(
    model: qd.Model,
    models: dict[str, Measures],
    steps: dict[str, dict[str, Measures]],
    frictions: dict[str, dict[str, Measures]],
) -> None:
    """Above, two strides in time; below, what time step and friction do."""
    figure, axes = plt.subplots(2, 3, figsize=(13.5, 7.2), layout='constrained')
    colours = COLOURS[0], COLOURS[3], '#F3CC70'
    looks = {name: {'color': colour, 'label': name} for name, colour in zip(MODELS, colours, strict=True)}
    for name, found in reversed(models.items()):  # what shakes is drawn first, below the others
        part = found.log.between(START, START + 2 * PERIOD)
        when = part.time - START
        motion = foot_motion(part)
        axes[0, 0].plot(when, 1e3 * (part.q[:, 2] - model.standing[2]), **looks[name])
        axes[0, 1].plot(when, motion.normal_force[:, 0], linewidth=1.2, **looks[name])
        along = np.degrees(np.arctan2(part.foot_forces[:, 0, 0], part.foot_forces[:, 0, 2]))
        loaded = part.foot_forces[:, 0, 2] > LOADED * model.total_mass * 9.81
        axes[0, 2].plot(when, np.where(loaded, along, np.nan), linewidth=1.2, **looks[name])
    for axis, title in zip(
        axes[0],
        (
            'base height above standing [mm]',
            f'normal force on {model.foot_names[0]} [N]',
            'its tilt towards x [deg]',
        ),
        strict=True,
    ):
        axis.set(title=title, xlabel='time [s]')
    for name in MODELS:
        below = {'zorder': 1 if name == 'spring-damper, one sub-step' else 2}
        for axis, field in ((axes[1, 0], 'ripple'), (axes[1, 1], 'slip')):
            x = [1e3 * dt for dt in STEPS]
            axis.loglog(
                x, [getattr(one, field) for one in steps[name].values()], marker='o', **looks[name], **below
            )
            axis.set(xlabel='time step [ms]', xticks=x, xticklabels=[f'{value:g}' for value in x])
            axis.minorticks_off()
        if name in frictions:
            slip = [one.slip for one in frictions[name].values()]
            axes[1, 2].semilogy(FRICTIONS, slip, marker='o', **looks[name])
    axes[1, 0].set_title('ripple of the base height [mm]')
    axes[1, 1].set_title('slip of a foot in a step [mm]')
    axes[1, 2].set(title='slip of a foot in a step [mm], 1 ms', xlabel='friction coefficient')
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.spines[['top', 'right']].set_visible(False)
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc='outside upper center', ncols=3, frameon=False)
    figure.savefig(HERE / 'contact_models.png', dpi=110)


def main() -> None:
    """Run all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model('mini_cheetah')
    steps = {
        name: {f'{1e3 * dt:g} ms': measure(model, dt, **settings) for dt in STEPS}
        for name, settings in MODELS.items()
    }
    frictions = {
        name: {f'{mu:g}': measure(model, mu=mu, **MODELS[name]) for mu in FRICTIONS}
        for name in list(MODELS)[:2]
    }
    models = {name: found['1 ms'] for name, found in steps.items()}
    draw(model, models, steps, frictions)
    for name, table in (
        ('table of models', model_table(ROWS, models)),
        ('table of time steps', sweep_table('time step', steps)),
        ('table of frictions', sweep_table('mu', frictions)),
    ):
        print(table, end='\n\n')
        write_table(name, table)


if __name__ == '__main__':
    main()
