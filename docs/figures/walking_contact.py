# SPDX-License-Identifier: Apache-2.0
"""The experiment of docs/contact.md once more, with the walking controller: a trot in place on both contacts.

    python docs/figures/walking_contact.py

runs it, draws docs/figures/walking_contact.png and writes the table of docs/contact.md.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np

from quad_dynamics.array_types import Floats

mpl.use('Agg')
import matplotlib.pyplot as plt
from contact_models import LOADED, model_table, turns, windows, write_table

import quad_dynamics as qd
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.simulation.plots import COLOURS, foot_motion

HERE = Path(__file__).parent
MODELS = {'impulse': 'impulse', 'spring-damper': 'spring_damper'}
START, STRIDES = 8.0, 10  # when measuring begins [s], and for how long
CONTROL = 2  # time steps of a setpoint


@dataclass(frozen=True, eq=False)
class Measures:
    """What one run shows.

    Attributes:
        ripple: of the base's height, from its lowest to its highest [mm].
        height: of the base, the mean [mm].
        depth: how far the lowest point of a foot is below the ground while it carries, the mean [mm].
        deepest: the largest of it [mm].
        tilt: the larger of roll and pitch [degrees RMS].
        slip: way of a foot along the ground in one step, while it touches it [mm].
        landings: how often a foot touches down in one step; 1 is without bouncing.
        turn: mean change of a foot force's direction [deg/ms].
        change: root mean square of the change of a normal force [N/ms].
        peak: largest mean of a normal force over 2 ms, over the weight.
        work: of all motors in a stride, braking counted as well [J].
        log: from the begin of the measuring on.
        depths: (n, feet) of the lowest points of the feet [mm].
        period: of a stride [s].
    """

    ripple: float
    height: float
    depth: float
    deepest: float
    tilt: float
    slip: float
    landings: float
    turn: float
    change: float
    peak: float
    work: float
    log: qd.Log
    depths: Floats
    period: float


ROWS = {
    'height of the base, the mean [mm]': ('height', '.1f'),
    'ripple of the base height [mm]': ('ripple', '.2f'),
    'roll and pitch, the larger one [degrees RMS]': ('tilt', '.2f'),
    'depth of a foot while it carries, the mean [mm]': ('depth', '.2f'),
    'depth of a foot, the largest [mm]': ('deepest', '.2f'),
    'slip of a foot in a step [mm]': ('slip', '.2f'),
    'touch-downs of a foot in a step': ('landings', '.2f'),
    'turn of the force direction [deg/ms]': ('turn', '.2f'),
    'change of a normal force [N/ms]': ('change', '.2f'),
    'largest normal force in 2 ms over the weight': ('peak', '.2f'),
    'work of the motors in a stride [J]': ('work', '.2f'),
}


def measure(model: qd.Model, contact: str, strides: int = STRIDES, start: float = START) -> Measures:
    """Let the robot trot in place, and measure when it does so evenly."""
    sim = qd.Simulator(model, contact=contact)
    walker = qd.Walker(model, WalkerSettings(stand_at_zero=False))
    kp, kd = drive_gains(model, walker.settings)
    number = 0

    def trot(sim: qd.Simulator) -> qd.JointCommand | None:
        nonlocal number
        number += 1
        if (number - 1) % CONTROL:
            return None
        wanted = walker.update(RobotState(sim.time, sim.q, sim.u, sim.foot_forces, sim.tau))
        return qd.JointCommand(wanted.tau, wanted.q, wanted.qd, kp, kd)

    walker.reset(RobotState(sim.time, sim.q, sim.u, sim.foot_forces, sim.tau))
    sim.run(trot, start, progress=False)
    period = walker.motion_plan.end - walker.motion_plan.time
    log = sim.run(trot, strides * period, progress=False)
    weight, steps = model.total_mass * 9.81, 4 * strides
    motion, depths = foot_motion(log, sim.terrain), depths_of_feet(log)
    carries = motion.normal_force > LOADED * weight
    touches = motion.normal_force > 0.0
    forces = windows(log.foot_forces, log.dt)
    tilt = 2.0 * log.q[:, 3:5]  # small angles
    return Measures(
        ripple=1e3 * float(np.ptp(log.q[:, 2])),
        height=1e3 * float(log.q[:, 2].mean()),
        depth=float(depths[carries].mean()),
        deepest=float(depths.max()),
        tilt=float(np.degrees(np.sqrt(np.mean(tilt**2, axis=0)).max())),
        slip=1e3 * float(motion.path[-1].sum()) / steps,
        landings=float((touches[1:] & ~touches[:-1]).sum()) / steps,
        turn=float(turns(forces, LOADED * weight).mean()),
        change=float(np.sqrt(np.mean(np.diff(forces[:, :, 2], axis=0) ** 2))) / 2.0,
        peak=float(forces[:, :, 2].max()) / weight,
        work=float(np.abs(log.tau * log.u[:, 6:]).sum()) * log.dt / strides,
        log=log,
        depths=depths,
        period=period,
    )


def depths_of_feet(log: qd.Log) -> Floats:
    """(n, feet) of the lowest points of the feet below level ground; 0 above it [mm]."""
    model, found = log.model, []
    for foot in log.foot_names:
        R_WF, p_WF = qd.frame_pose(model, log.q, foot)
        heights = [
            (p_WF + R_WF @ np.array(point.position))[:, 2] - point.radius
            for point in model.contact_points
            if point.link == foot
        ]
        found.append(np.maximum(-1e3 * np.min(heights, axis=0), 0.0))
    return np.stack(found, axis=1)


def draw(model: qd.Model, found: dict[str, Measures]) -> None:
    """Two strides in time."""
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 3.8), layout='constrained')
    for (name, one), colour in zip(found.items(), (COLOURS[0], COLOURS[3]), strict=True):
        log, first = one.log, _first_touchdown(one)
        rows = slice(first, first + round(2.0 * one.period / log.dt))
        when, look = log.time[rows] - log.time[first], {'color': colour, 'label': name, 'linewidth': 1.3}
        axes[0].plot(when, 1e3 * (log.q[rows, 2] - model.standing[2]), **look)
        axes[1].plot(when, foot_motion(log).normal_force[rows, 0], **look)
        depth = np.where(foot_motion(log).normal_force[rows, 0] > 0.0, one.depths[rows, 0], np.nan)
        axes[2].plot(when, depth, **look)
    foot = model.foot_names[0]
    titles = 'base height above standing [mm]', f'normal force on {foot} [N]', f'depth of {foot} [mm]'
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel='time [s]')
        axis.grid(alpha=0.3)
        axis.spines[['top', 'right']].set_visible(False)
    axes[1].set_ylim(0.0, 1.05 * model.total_mass * 9.81)
    axes[0].legend(frameon=False)
    figure.savefig(HERE / 'walking_contact.png', dpi=110)


def _first_touchdown(one: Measures) -> int:
    """Row at which the first foot begins to carry."""
    carries = foot_motion(one.log).normal_force[:, 0] > 0.0
    quiet = round(0.25 * one.period / one.log.dt)  # a foot that bounces has not been away for long
    return next(k for k in range(quiet, len(carries)) if carries[k] and not carries[k - quiet : k].any())


def main() -> None:
    """Run all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model('mini_cheetah')
    found = {name: measure(model, contact) for name, contact in MODELS.items()}
    draw(model, found)
    print(model_table(ROWS, found))
    write_table('table of walking', model_table(ROWS, found))


if __name__ == '__main__':
    main()
