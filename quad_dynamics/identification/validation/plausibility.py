# SPDX-License-Identifier: Apache-2.0
"""Warnings about implausible results; they are shown first."""

from __future__ import annotations

import numpy as np

from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.missing import SLOW, find_excitation
from quad_dynamics.identification.solvers.plausible import Limits, immobile_mass
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.replay import Replay
from quad_dynamics.model.model import Model

# Relative change of the total mass without a warning. On a fixed base torques alone tell it, and a wrong
# torque constant changes them all alike.
_MOST, _MOST_FIXED = 0.15, 0.05
_WORTH = 0.08  # share of the robot for which the data must exceed a limit
_SHOWN = 4  # number of limits that are named
_UNCARRIED = 0.12  # relative difference between the weight on the feet and that of the robot
_FARTHER = 1.2  # ratio of distances from the log
_LOOKED_AT = 2000  # largest number of samples that are used


def implausible(solution: Solution, limits: Limits | None) -> list[str]:
    """Warnings about masses and limits.

    Args:
        solution: to check.
        limits: plausibility limits of the solution; None: none.
    """
    columns = solution.columns
    before, after = (float(x[columns.slices['pi']][::10].sum()) for x in (columns.prior, solution.x))
    fixed = immobile_mass(columns)
    found = []
    floating = columns.model.floating_base
    if abs(after - before) > (_MOST if floating else _MOST_FIXED) * before:
        cause = (
            'an unknown payload explains that, and so do efforts or foot forces of a wrong scale'
            if floating
            else 'on a fixed base it follows from torques alone, and wrong torque constants change it, too'
        )
        found.append(
            f'the mass of the robot changes by {100.0 * (after / before - 1.0):+.0f} %, from '
            f'{before + fixed:.4g} to {after + fixed:.4g} kg. Weigh it, and give --mass: {cause}'
        )
    beyond = {} if limits is None or solution.asked is None else limits.exceeded(solution.asked)
    if sum(beyond.values()) > _WORTH:
        names = list(beyond)
        more = '' if len(beyond) <= _SHOWN else f' and {len(beyond) - _SHOWN} more'
        found.append(
            f'the data ask for a robot beyond what is plausible: {", ".join(names[:_SHOWN])}{more}. The '
            'result is the nearest plausible one. Friction of another form, wrong torque constants or units, '
            'or a poor motion may be the cause. --mass and --trust set the limits; --free friction rotor '
            'leaves the inertia alone'
        )
    return found


def slow_motion(samples: Samples, model: Model) -> list[str]:
    """Warning if most joints moved slowly: faster motion is an extrapolation.

    Args:
        samples: training data.
        model: robot.
    """
    speed = find_excitation(samples, model).speed
    if model.nj == 0 or np.mean(speed < SLOW) < 0.5:
        return []
    return [
        f'half of the joints or more move slowly (at most {float(np.median(speed)):.2g} rad/s). The result '
        'predicts motion of this kind; how well it predicts faster motion is unknown, and that may be worse '
        'than with the URDF. Check it with --validate, or record faster motion'
    ]


def unfaithful(replay: Replay | None) -> list[str]:
    """Warning if simulations with the result end farther from the log than those with the original model.

    Args:
        replay: of the validation data.
    """
    if replay is None:
        return []
    judged = np.isfinite(replay.position).all(axis=0)
    if not judged.any():
        return []
    before, after = np.sqrt(np.mean(replay.position[:, judged] ** 2, axis=1))
    if after <= _FARTHER * before:
        return []
    return [
        f'simulated for {1e3 * replay.window:.0f} ms from states of the log, joints end {1e3 * after:.3g} '
        f'mrad away from it, {1e3 * before:.3g} mrad with the model as it was: do not use the result in a '
        'simulator. --free friction rotor leaves the inertia alone'
    ]


def uncarried(equations: Equations, solution: Solution) -> list[str]:
    """Warning if the feet carry more or less than the weight of the result; only for floating bases.

    If freeing inertia does not improve predictions, as in trots with many impacts, a payload is not
    identified, and force biases compensate for it. It is still visible in the sum of the measured forces:
    they are compared with weight and acceleration of the robot, by least squares over samples.

    Args:
        equations: of the training data.
        solution: to check.
    """
    if equations.mode not in ('forces', 'base'):
        return []
    samples, pi, x = equations.samples, solution.columns.slices['pi'], solution.x.copy()
    x[solution.columns.slices['bias']] = 0.0
    every, done = max(1, -(-len(samples) // _LOOKED_AT)), 0
    left, whole = 0.0, 0.0
    for rows in samples.chunks():
        picked = rows[(-done) % every :: every]
        done += len(rows)
        Y, y = (each[:, :3] for each in equations.raw(picked))
        known = Y[..., pi] @ (solution.x + solution.columns.known)[pi]
        left += float(np.sum(known * (y - Y @ x)))
        whole += float(np.sum(known**2))
    ratio = left / max(whole, 1e-300)
    if abs(ratio) <= _UNCARRIED:
        return []
    mass = float(solution.x[pi][::10].sum()) + immobile_mass(solution.columns)
    return [
        f'the feet carry {mass * (1.0 + ratio):.4g} kg, but the robot that was found has {mass:.4g} kg: it '
        'carries something that this motion does not identify, or foot forces have a bias or a wrong scale. '
        'Weigh the robot, and give --mass'
    ]
