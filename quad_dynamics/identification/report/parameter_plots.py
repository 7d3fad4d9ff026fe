# SPDX-License-Identifier: Apache-2.0
"""Plots of the results: parameters with their intervals, and the bodies as ellipsoids on the robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import INERTIAL, JOINT_KINDS
from quad_dynamics.identification.report.armature import scale_of, unit_of
from quad_dynamics.identification.report.plots import AFTER, BEFORE, WIDTH, picture
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.inertia import full_inertia
from quad_dynamics.model.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_TITLES = {
    'viscous': 'viscous friction',
    'coulomb': 'Coulomb friction',
    'offset': 'offset',
    'asymmetric': 'asymmetric viscous friction',
    'stribeck': 'Stribeck friction',
    'rotor': 'armature at the joint: gear² times rotor inertia',
}
_VIEWS = (('from the left', 0, 2), ('from the front', 1, 2), ('from above', 0, 1))
_LABELS = 'before', 'after, identified', 'after, only with the prior'
_MANY = 14  # joints above which a plot takes the whole width
_PER_LETTER = 0.033  # height of a slanted name of a joint [inches]
_BESIDE, _ABOVE, _BELOW = 0.55, 0.62, 0.4  # space around the views of the robot [inches]
_TALLEST = 4.6  # of a view [inches]
_OUTLINE = 60  # points of an ellipse
_THINNEST = 0.3  # smallest ratio of the sides of a plot


def draw_joint_parameters(solution: Solution) -> str:
    """Friction and rotors of each joint, before and after; '' if none of them was free."""
    columns = solution.columns
    kinds = [kind for kind in JOINT_KINDS if solution.free[columns.slices[kind]].any()]
    if not kinds:
        return ''
    names = columns.model.joint_names
    across = 1 if len(names) > _MANY else min(2, len(kinds))
    down = -(-len(kinds) // across)
    height = 1.5 + _PER_LETTER * max(map(len, names))
    with picture('joint parameters', height * down + 0.4) as (figure, made):
        grid = figure.subplots(down, across, squeeze=False)
        for axes, kind in zip(grid.ravel(), kinds, strict=False):
            part = columns.slices[kind]
            _points(axes, solution, np.arange(part.start, part.stop), scale=scale_of(solution, kind))
            axes.set_title(f'{_TITLES.get(kind, kind)} [{unit_of(solution, kind)}]')
            axes.set_xticks(
                range(len(names)), names, rotation=35, ha='right', rotation_mode='anchor', fontsize=7
            )
            axes.set_xlim(-0.5, len(names) - 0.5)
            if kind in ('viscous', 'coulomb', 'rotor'):
                axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        for axes in grid.ravel()[len(kinds) :]:
            axes.set_visible(False)
        _legend(figure, grid)
    return made[0]


def draw_inertial_parameters(solution: Solution) -> str:
    """Mass, first moments and inertia of each body, before and after; '' if none was free."""
    columns = solution.columns
    free = solution.free[columns.slices['pi']].reshape(-1, 10)
    bodies = np.flatnonzero(free.any(axis=1))
    if not len(bodies):
        return ''
    names = [columns.model.body_names[i] for i in bodies]
    height = max(2.2, 0.19 * len(bodies) + 1.0)
    with picture('inertial parameters', 2.0 * height + 0.3) as (figure, made):
        grid = figure.subplots(2, 5, sharey=True)
        for k, axes in enumerate(grid.ravel()):
            at = 10 * bodies + k
            _points(axes, solution, at, horizontal=True)
            axes.set_title(f'{INERTIAL[k]} [{columns.units[k]}]')
            axes.set_yticks(range(len(bodies)), names, fontsize=7)
            axes.locator_params(axis='x', nbins=4)
            axes.ticklabel_format(axis='x', style='sci', scilimits=(-2, 3))
        grid[0, 0].set_ylim(len(bodies) - 0.5, -0.5)
        _legend(figure, grid)
    return made[0]


def _legend(figure: Figure, grid: npt.NDArray[np.object_]) -> None:
    """One legend of everything that any panel shows."""
    shown: dict[str, Any] = {}
    for axes in grid.ravel():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    labels = [label for label in _LABELS if label in shown]
    handles = [shown[label] for label in labels]
    figure.legend(handles, labels, loc='outside upper right', ncols=len(labels))


def _points(
    axes: Axes,
    solution: Solution,
    at: npt.NDArray[np.int64],
    horizontal: bool = False,
    scale: Floats | None = None,
) -> None:
    """Prior and value of some unknowns, with the 95 % interval of the value, multiplied by some factors."""
    n = np.ones(len(at)) if scale is None else scale
    prior, value = n * solution.columns.prior[at], n * solution.x[at]
    place = np.arange(len(at), dtype=float)
    free = solution.free[at]
    low = np.where(free, value - np.minimum(n * solution.low[at], value), 0.0)
    high = np.where(free, np.maximum(n * solution.high[at], value) - value, 0.0)
    sure = solution.identified[at]
    shift = 0.14
    groups = (
        (sure & free, AFTER, AFTER, _LABELS[1]),
        (~sure & free, 'white', AFTER, _LABELS[2]),
    )
    if horizontal:
        axes.plot(prior, place - shift, 'd', color=BEFORE, markersize=4.0, label=_LABELS[0])
    else:
        axes.plot(place - shift, prior, 'd', color=BEFORE, markersize=4.0, label=_LABELS[0])
    for here, fill, edge, label in groups:
        if not here.any():
            continue
        error = np.stack([low[here], high[here]])
        x, y = (value[here], place[here] + shift) if horizontal else (place[here] + shift, value[here])
        x_error, y_error = (error, None) if horizontal else (None, error)
        axes.errorbar(
            x,
            y,
            xerr=x_error,
            yerr=y_error,
            fmt='o',
            color=edge,
            markerfacecolor=fill,
            markersize=4.0,
            elinewidth=1.0,
            capsize=2.0,
            label=label,
        )


# ---------------------------------------------------------------- ellipsoids


def draw_bodies(solution: Solution) -> str:
    """The robot from three sides; each body as the ellipsoid of uniform density with its mass and inertia."""
    model = solution.columns.model
    q = model.standing if model.standing is not None else model.neutral
    places = [frame_pose(model, q, name) for name in model.body_names]
    skeleton = _skeleton(model, q)
    before = _ellipsoids(solution.columns.prior[: 10 * model.nb], places)
    after = _ellipsoids(solution.part('pi'), places)
    middle, size = _extent([*before, *after], skeleton)
    widths, heights = size[[i for _, i, _ in _VIEWS]], size[[j for _, _, j in _VIEWS]]
    scale = min((WIDTH - 3 * _BESIDE - 0.15) / widths.sum(), _TALLEST / heights.max())  # inches per metre
    height = _ABOVE + scale * heights.max() + _BELOW
    with picture('bodies', height, placed=True) as (figure, made):
        left = _BESIDE
        for k, (title, i, j) in enumerate(_VIEWS):
            wide, tall = scale * widths[k] / WIDTH, scale * heights[k] / height
            axes = figure.add_axes((left / WIDTH, 1.0 - _ABOVE / height - tall, wide, tall))
            left += scale * widths[k] + _BESIDE
            for line in skeleton:
                axes.plot(
                    *np.array(line)[:, [i, j]].T,
                    color='#bbbbbb',
                    linewidth=2.0,
                    solid_capstyle='round',
                    zorder=1,
                )
            _draw_ellipses(axes, before, (i, j), BEFORE, True)
            _draw_ellipses(axes, after, (i, j), AFTER, False)
            axes.set_xlim(middle[i] - 0.5 * size[i], middle[i] + 0.5 * size[i])
            axes.set_ylim(middle[j] - 0.5 * size[j], middle[j] + 0.5 * size[j])
            axes.set_title(f'{title} [m]')
            _few_ticks(axes, scale * widths[k], scale * heights[k])
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='upper right', ncols=2)
    return made[0]


def _few_ticks(axes: Axes, width: float, height: float) -> None:
    """As many ticks as labels have space for in a view of this size [inches]."""
    axes.locator_params(axis='x', nbins=int(np.clip(width / 0.6, 1, 5)))
    axes.locator_params(axis='y', nbins=int(np.clip(height / 0.4, 1, 5)))


def _extent(
    bodies: list[tuple[Floats, Floats]], skeleton: list[tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """(3,) centre and size of the plot, with a margin; no side is much shorter than the longest."""
    reach = [(c, np.sqrt(np.maximum(np.diag(shape), 0.0))) for c, shape in bodies]
    ends = [p for line in skeleton for p in line]
    points = np.stack([*(c - r for c, r in reach), *(c + r for c, r in reach), *ends])
    low, high = points.min(axis=0), points.max(axis=0)
    size = 1.06 * np.maximum(high - low, 1e-3)
    return 0.5 * (low + high), np.maximum(size, _THINNEST * size.max())


def _ellipsoids(pi: Floats, places: list[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Centre, and shape matrix A (x^T A^-1 x <= 1) in world axes, of each body."""
    made = []
    for row, (R, p) in zip(pi.reshape(-1, 10), places, strict=True):
        mass = max(float(row[0]), 1e-12)
        com = row[1:4] / mass
        inertia = full_inertia(row[4:])
        spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia - mass * np.outer(com, com)
        values, vectors = np.linalg.eigh(spread / mass)
        # Uniform density: the mean of x^2 along an axis of half length a is a^2 / 5. CAD may be inconsistent.
        shape = (vectors * np.maximum(5.0 * values, 0.0)) @ vectors.T
        made.append((p + R @ com, R @ shape @ R.T))
    return made


def _draw_ellipses(
    axes: Axes, bodies: list[tuple[Floats, Floats]], view: tuple[int, int], colour: str, filled: bool
) -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, _OUTLINE)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for k, (centre, shape) in enumerate(bodies):
        values, vectors = np.linalg.eigh(shape[np.ix_(view, view)])
        outline = (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle + centre[list(view)][:, None]
        label = ('before' if filled else 'after') if k == 0 else None
        if filled:
            axes.fill(
                *outline, facecolor=colour, alpha=0.35, edgecolor=colour, linewidth=0.8, label=label, zorder=2
            )
        else:
            axes.plot(*outline, color=colour, linewidth=1.2, label=label, zorder=3)
        axes.plot(*centre[list(view)], marker='+', color=colour, markersize=5.0, zorder=4)


def _skeleton(model: Model, q: Floats) -> list[tuple[Floats, Floats]]:
    """Lines from each joint to its children, and to the foot."""
    names = [model.body_names[i + int(model.floating_base)] for i in range(model.nj)]
    joint = {i: frame_pose(model, q, name)[1] for i, name in enumerate(names)}
    base = frame_pose(model, q, model.base_name)[1]
    lines = [(base if up < 0 else joint[int(up)], joint[i]) for i, up in enumerate(model.parents)]
    for leg in model.legs:
        if leg.joint_indices:
            lines.append((joint[leg.joint_indices[-1]], frame_pose(model, q, leg.foot)[1]))
    return lines
