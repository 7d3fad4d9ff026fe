# SPDX-License-Identifier: Apache-2.0
"""Overview of a run: slip of the feet, penetration, and a plot of height, forces and slip.

No display is needed. Matplotlib is imported when a plot is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quad_dynamics.api.kinematics import frame_pose, frame_velocity
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.log import Log
from quad_dynamics.terrain.terrain import Terrain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Colours of Okabe and Ito, distinguishable with colour vision deficiency.
COLOURS = ('#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9', '#000000')
_SHOWN = 99.0  # percentile of the forces that the plot shows


@dataclass(frozen=True)
class FootMotion:
    """Contact and slip of the feet; n rows as in the log.

    Attributes:
        normal_force: (n, feet) along the normal of the ground [N].
        speed: (n, feet) of the contact point, along the ground; 0 without contact [m/s].
        path: (n, feet) accumulated slip [m].
    """

    normal_force: Floats
    speed: Floats
    path: Floats


def foot_motion(log: Log, terrain: Terrain | None = None) -> FootMotion:
    """Forces and slip of the feet.

    Args:
        log: log of a run; with rows several steps apart, the slip is approximate.
        terrain: ground of the run; None: level ground at height zero.
    """
    model, n, feet = log.model, len(log), len(log.foot_names)
    force, speed = np.zeros((n, feet)), np.zeros((n, feet))
    ground = Terrain.load('flat') if terrain is None else terrain
    points = model.contact_points
    for i, foot in enumerate(log.foot_names):
        own = [point for point in points if point.link == foot] or [ContactPoint(foot, foot, (0.0, 0.0, 0.0))]
        normals, velocities = _lowest(log, model, ground, own)
        force[:, i] = np.sum(log.foot_forces[:, i] * normals, axis=1)
        along = velocities - np.sum(velocities * normals, axis=1, keepdims=True) * normals
        speed[:, i] = np.where(force[:, i] > 0.0, np.linalg.norm(along, axis=1), 0.0)
    spacing = np.diff(log.time, prepend=log.time[:1] - log.dt)
    return FootMotion(force, speed, np.cumsum(speed * spacing[:, None], axis=0))


def _lowest(
    log: Log, model: Model, terrain: Terrain, points: Sequence[ContactPoint]
) -> tuple[Floats, Floats]:
    """Normal of the ground (n, 3) and velocity (n, 3) at the contact of the lowest of some points."""
    best = np.full(len(log), np.inf)
    normals, velocities = np.zeros((len(log), 3)), np.zeros((len(log), 3))
    for point in points:
        distance, normal, arm = _reach(log, model, terrain, point)
        v = frame_velocity(model, log.q, log.u, point.link).reshape(-1, 6)
        nearer = distance < best
        best[nearer], normals[nearer] = distance[nearer], normal[nearer]
        velocities[nearer] = (v[:, :3] + np.cross(v[:, 3:], arm))[nearer]
    return normals, velocities


def _reach(log: Log, model: Model, terrain: Terrain, point: ContactPoint) -> tuple[Floats, Floats, Floats]:
    """Distance (n,) of a point to the ground, normal (n, 3), and its contact from its link's origin."""
    R_WF, p_WF = frame_pose(model, log.q, point.link)
    arm = R_WF.reshape(-1, 3, 3) @ np.array(point.position)
    distance, normal = terrain.distance(p_WF.reshape(-1, 3) + arm, point.radius)
    return distance, normal, arm - point.radius * normal


def deepest_points(
    log: Log, terrain: Terrain, points: Sequence[ContactPoint], every: int = 1
) -> tuple[float, str]:
    """Largest penetration of a run [m] and the name of the point; (0, '') if nothing touched the ground.

    Args:
        log: log of a run.
        terrain: ground of the run.
        points: contact points.
        every: check only every n-th row.
    """
    part = log[::every]
    found = (0.0, '')
    for point in points:
        distance, _, _ = _reach(part, part.model, terrain, point)
        found = max(found, (float(-np.min(distance, initial=0.0)), point.name))
    return found if found[0] > 0.0 else (0.0, '')


# ---------------------------------------------------------------- plot


def check_picture(path: str | os.PathLike[str]) -> None:
    """Check that a plot can be written, before the run.

    Raises:
        ArgumentError: the file format is not supported, or matplotlib is missing.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ArgumentError(f'matplotlib is required to draw {os.fspath(path)}; install it') from error
    kinds = FigureCanvasBase.get_supported_filetypes()
    kind = Path(path).suffix.lstrip('.').lower()
    if kind not in kinds:
        raise ArgumentError(f'{os.fspath(path)} ends in {kind!r}; expected one of {", ".join(sorted(kinds))}')


def plot_run(log: Log, path: str | os.PathLike[str], terrain: Terrain | None = None, title: str = '') -> None:
    """Draw height of the base, forces and slip of the feet over time.

    For a robot with a fixed base, joint positions replace the height; without feet, joint torques replace
    forces and slip.

    Args:
        log: log of a run.
        path: path of the plot; its extension selects the format: png, pdf, svg. It is overwritten.
        terrain: ground of the run; None: level ground at height zero.
        title: title of the plot.

    Raises:
        ArgumentError: see `check_picture`, or the log is empty.
    """
    check_picture(path)
    if not len(log):
        raise ArgumentError('the log is empty; expected at least one row to draw')
    from matplotlib.figure import Figure

    rows = 3 if log.foot_names else 2 if log.joint_names else 1
    figure = Figure(figsize=(10.0, 2.6 * rows + 0.6), layout='constrained')
    axes: Sequence[Axes] = list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
    if log.floating_base:
        _draw_height(axes[0], log, terrain)
    else:
        _draw_joints(axes[0], log, log.q, 'joint position [rad, m]')
    if log.foot_names:
        motion = foot_motion(log, terrain)
        _draw_forces(axes[1], log, motion)
        _draw_slip(axes[2], log, motion)
    elif log.joint_names:
        _draw_joints(axes[1], log, log.tau, 'joint torque [N m, N]')
    for one in axes:
        one.grid(alpha=0.3)
        one.spines[['top', 'right']].set_visible(False)
        one.margins(x=0.01)
        one.legend(loc='upper left', bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
    axes[-1].set_xlabel('time [s]')
    if title:
        figure.suptitle(title)
    figure.savefig(path, dpi=130)


def _draw_height(axes: Axes, log: Log, terrain: Terrain | None) -> None:
    axes.plot(log.time, log.q[:, 2], color=COLOURS[0], label='base')
    level = _level_below(log, terrain)
    if log.model.standing is not None and level is not None:
        standing = level + log.model.standing[2]
        axes.axhline(standing, color='0.5', linestyle='--', linewidth=1.0, label='standing')
    _widen(axes, 0.01)
    axes.set_ylabel('base height [m]')


def _level_below(log: Log, terrain: Terrain | None) -> float | None:
    """Height of the ground below the start [m]; None if there is none, or if it is not level."""
    if terrain is None:
        return 0.0
    x, y = log.q[0, :2]
    height = float(terrain.height(x, y))
    if not np.isfinite(height):
        return None
    return height if terrain.distance([x, y, height])[1][2] > 0.999 else None


def _widen(axes: Axes, least: float) -> None:
    """Set a minimum range of the y axis; otherwise rounding errors would fill the plot of a robot at rest."""
    low, high = axes.get_ylim()
    if high - low < least:
        axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)
    axes.ticklabel_format(axis='y', useOffset=False)


def _draw_forces(axes: Axes, log: Log, motion: FootMotion) -> None:
    total = log.foot_forces[:, :, 2].sum(axis=1)
    weight = log.model.total_mass * float(np.linalg.norm(log.gravity))
    axes.plot(log.time, total, color='0.7', linewidth=1.0, label='sum, vertical')
    for i, foot in enumerate(log.foot_names):
        axes.plot(log.time, motion.normal_force[:, i], linewidth=1.2, label=foot, **_look(i))
    axes.axhline(weight, color='0.2', linestyle='--', linewidth=1.0, label=f'weight, {weight:.0f} N')
    room = max(1.2 * weight, 1.15 * float(np.percentile(total, _SHOWN)))
    axes.set_ylim(-0.03 * room, room)
    if total.max() > room:
        place: dict[str, Any] = {'transform': axes.transAxes, 'ha': 'right', 'va': 'top', 'color': '0.3'}
        place['bbox'] = {'facecolor': 'white', 'alpha': 0.8, 'edgecolor': 'none', 'pad': 2.0}
        axes.text(0.995, 0.97, f'peak {total.max():.0f} N', **place)
    axes.set_ylabel('normal force [N]')


def _draw_slip(axes: Axes, log: Log, motion: FootMotion) -> None:
    for i, foot in enumerate(log.foot_names):
        axes.plot(log.time, 1e3 * motion.path[:, i], label=foot, **_look(i))
    axes.set_ylim(bottom=0.0, top=max(axes.get_ylim()[1], 1.0))
    axes.set_ylabel('distance slipped [mm]')


def _draw_joints(axes: Axes, log: Log, values: Floats, label: str) -> None:
    for i, name in enumerate(log.joint_names):
        axes.plot(log.time, values[:, i - len(log.joint_names)], label=name, **_look(i))
    _widen(axes, 0.01)
    axes.set_ylabel(label)


def _look(i: int) -> dict[str, Any]:
    # dashes make a line below visible: legs often do the same
    return {'color': COLOURS[i % len(COLOURS)], 'linestyle': (0, (4, 3)) if i % 2 else '-'}
