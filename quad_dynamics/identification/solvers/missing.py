# SPDX-License-Identifier: Apache-2.0
"""Parameters that a recording does not identify, and motions that would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.equations.columns import INERTIAL
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.model.model import Model

_MOVED = 0.05  # a joint that moved less is considered at rest [rad or m]
SLOW = 0.5  # viscous friction is visible above this speed [rad/s or m/s]
_BRISK = 2.0  # inertia is visible above this acceleration [rad/s^2 or m/s^2]
_TILTED = 0.1  # a trunk that rolled and pitched less is considered level [rad]
_TURNED = 0.3  # angular velocity of a turning trunk [rad/s]
_BOUNCED = 0.5  # vertical acceleration of a heaving trunk [m/s^2]
_NO_FRICTION = (
    'friction and torque offsets of all joints: no force on the base depends on them; --mode forces also '
    'uses the torques of the joints'
)


@dataclass(frozen=True, eq=False)
class Excitation:
    """Amount of motion in the samples.

    Attributes:
        span: (nj,) range of positions of each joint.
        speed: (nj,) largest speed.
        acceleration: (nj,) root mean square.
        reversals: (nj,) number of reversals of each joint.
        used: (nj,) share of samples whose torque row is used.
        tilt: largest span of the trunk's vertical axis [rad]; nan with a fixed base.
        turning: root mean square of the trunk's angular velocity [rad/s]; nan with a fixed base.
        bounce: root mean square of its vertical acceleration [m/s^2]; nan with a fixed base.
    """

    span: Floats
    speed: Floats
    acceleration: Floats
    reversals: Floats
    used: Floats
    tilt: float
    turning: float
    bounce: float


def find_excitation(samples: Samples, model: Model) -> Excitation:
    """Measure the amount of motion, in one pass through the samples."""
    nj, get = model.nj, samples.layout.get
    low, high = np.full(nj + 2, np.inf), np.full(nj + 2, -np.inf)
    speed, squares, reversals, used = np.zeros(nj), np.zeros(nj + 4), np.zeros(nj), np.zeros(nj)
    last: Floats | None = None
    for rows in samples.chunks():
        q, u, du = get(rows, 'q'), get(rows, 'u'), get(rows, 'du')
        up = _up(q) if model.floating_base else np.zeros((len(q), 2))
        places = np.concatenate([q[:, len(q[0]) - nj :], up], axis=1)
        low, high = np.minimum(low, places.min(axis=0)), np.maximum(high, places.max(axis=0))
        uj = u[:, model.nv - nj :]
        speed = np.maximum(speed, np.abs(uj).max(axis=0))
        base = (
            np.concatenate([u[:, 3:6], du[:, 2:3]], axis=1) if model.floating_base else np.zeros((len(u), 4))
        )
        squares += np.sum(np.concatenate([du[:, model.nv - nj :], base], axis=1) ** 2, axis=0)
        signs = np.sign(uj) if last is None else np.concatenate([last, np.sign(uj)])
        reversals += np.sum(signs[1:] * signs[:-1] < 0.0, axis=0)
        last = signs[-1:]
        used += get(rows, 'use').sum(axis=0)
    n = max(len(samples), 1)
    rms = np.sqrt(squares / n)
    span = np.maximum(high - low, 0.0)
    floating = model.floating_base and len(samples) > 0
    return Excitation(
        span=span[:nj],
        speed=speed,
        acceleration=rms[:nj],
        reversals=reversals,
        used=used / n,
        tilt=float(span[nj:].max()) if floating else float('nan'),
        turning=float(np.linalg.norm(rms[nj : nj + 3])) if floating else float('nan'),
        bounce=float(rms[nj + 3]) if floating else float('nan'),
    )


def what_is_missing(solution: Solution, samples: Samples, mode: str) -> list[str]:
    """Sentences that name parameters that are not determined, the reason, and a motion that would help.

    Args:
        solution: to describe.
        samples: used for the solution.
        mode: of the equations.
    """
    model = solution.columns.model
    moved = find_excitation(samples, model)
    words = _of_joints(solution, moved, mode)
    if model.floating_base:
        words += _of_trunk(solution, moved)
    words += _of_bodies(solution)
    return words


def _up(q: Floats) -> Floats:
    """(n, 2) x and y of the vertical axis in the trunk's frame: sines of pitch and roll."""
    x, y, z, w = q[:, 3:7].T
    return np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x)], axis=1)


def _of_joints(solution: Solution, moved: Excitation, mode: str) -> list[str]:
    """Undetermined parameters of joints: one sentence for all joints with the same reason."""
    model = solution.columns.model
    units = _position_units(model)
    still = moved.span < _MOVED
    words = [_NO_FRICTION] if mode == 'base' else []
    if still.any():
        each = _listed(model, still, lambda i: f'it moved by {round(moved.span[i], 9):.2g} {units[i]}')
        way = min(10 * _MOVED, *(0.5 * (model.q_max - model.q_min)[still]))
        words.append(
            f'{each} stood still: the inertia that such a joint alone moves'
            f'{"" if mode == "base" else ", and friction,"} cannot be seen; move it back and forth, by '
            f'{way:.2g} {units[int(np.argmax(still))]} or more'
        )
    if mode != 'base':
        words += _of_friction(solution, moved, still)
    slow = (moved.acceleration < _BRISK) & ~still
    if slow.any():
        each = _listed(model, slow, lambda i: f'{moved.acceleration[i]:.2g} {units[i]}/s^2')
        words.append(
            f'moments of inertia beyond {each}: accelerations (root mean square) are too small to tell them '
            f'from gravity{"" if mode == "base" else " and friction"}; swing faster'
        )
    return words


def _of_friction(solution: Solution, moved: Excitation, still: Bools) -> list[str]:
    """Undetermined friction of joints that do not stand still."""
    model, units = solution.columns.model, _position_units(solution.columns.model)
    viscous, coulomb = (_unknown(solution, kind) & ~still for kind in ('viscous', 'coulomb'))
    if not solution.free[solution.columns.slices['viscous']].any():
        viscous |= (moved.speed < SLOW) & ~still
    words = []
    if viscous.any():
        each = _listed(model, viscous, lambda i: f'up to {moved.speed[i]:.2g} {units[i]}/s')
        words.append(f'viscous friction of {each}: move faster, at several speeds in both directions')
    if coulomb.any():
        each = _listed(
            model,
            coulomb,
            lambda i: (
                f'{int(moved.reversals[i])} reversals, {100 * moved.used[i]:.0f} % of the samples count'
            ),
        )
        words.append(f'Coulomb friction of {each}: move slowly back and forth, without rest')
    return words


def _position_units(model: Model) -> list[str]:
    return ['m' if prismatic else 'rad' for prismatic in model.is_prismatic]


def _listed(model: Model, which: Bools, figure: Callable[[int], str]) -> str:
    """Names of joints, each with a figure."""
    return ', '.join(f'{model.joint_names[i]} ({figure(i)})' for i in map(int, np.flatnonzero(which)))


def _unknown(solution: Solution, kind: str) -> Bools:
    """(nj,) unknowns of joints that were free and that the data do not determine."""
    part = solution.columns.slices[kind]
    return np.asarray(solution.free[part] & ~solution.identified[part])


def _of_trunk(solution: Solution, moved: Excitation) -> list[str]:
    """Undetermined parameters of the trunk, with the reason."""
    unknown = [name for k, name in enumerate(INERTIAL) if solution.free[k] and not solution.identified[k]]
    words = []
    if moved.tilt < _TILTED:
        words.append(
            f'height of the com: the trunk tilted by {np.degrees(moved.tilt):.1f} degrees; roll and pitch it '
            'by 10 degrees or more'
        )
    if moved.turning < _TURNED and any(name.startswith('I') for name in unknown):
        words.append(
            f'moments of inertia of the trunk: it turned at {moved.turning:.2g} rad/s (root mean square); '
            'roll, pitch and yaw it quickly'
        )
    if moved.bounce < _BOUNCED and 'm' in unknown:
        words.append(
            f'mass of the trunk apart from errors of the force sensors: its vertical acceleration was '
            f'{moved.bounce:.2g} m/s^2 (root mean square); move it up and down, or trot'
        )
    return words


def _of_bodies(solution: Solution) -> list[str]:
    """Inertial parameters that are determined only in combination with others."""
    columns, parts = solution.columns, []
    for b, body in enumerate(columns.model.body_names):
        own = slice(10 * b, 10 * b + 10)
        unknown = np.flatnonzero(solution.free[own] & ~solution.identified[own])
        if len(unknown) == 10:
            parts.append(f'{body} (all)')
        elif len(unknown):
            parts.append(f'{body} ({", ".join(INERTIAL[k] for k in unknown)})')
    fixed = [
        body
        for b, body in enumerate(columns.model.body_names)
        if not solution.free[10 * b : 10 * b + 10].any()
    ]
    words = []
    if parts:
        words.append(f'not determined one by one, only in combinations and by the model: {", ".join(parts)}')
    if fixed:
        words.append(f'inertia kept as in the model: {", ".join(fixed)}')
    return words
