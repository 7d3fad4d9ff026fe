# SPDX-License-Identifier: Apache-2.0
"""Warnings about implausible results; they are shown first."""

from __future__ import annotations

import numpy as np

from quad_dynamics.identification.equations.columns import joint_units
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.solvers.missing import SLOW, find_excitation
from quad_dynamics.identification.solvers.plausible import Limits, MassRange, root_mass
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


def implausible(solution: Solution, limits: Limits | None, given: MassRange | None = None) -> list[str]:
    """Warnings about masses and limits.

    Args:
        solution: to check.
        limits: plausibility limits of the solution; None: none.
        given: total mass that the user has given; None: none.
    """
    found = _changed_mass(solution, given)
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


def _changed_mass(solution: Solution, given: MassRange | None) -> list[str]:
    """Warning about the mass of everything that moves, which is all that torques and foot forces tell of."""
    floating = solution.columns.model.floating_base
    before, after = solution.moving_masses
    if abs(after - before) <= (_MOST if floating else _MOST_FIXED) * before:
        return []
    what, root = 'robot' if floating else 'moving links', root_mass(solution.columns.model)
    whole = f' (with the fixed base: {before + root:.4g} to {after + root:.4g} kg)' if root > 0.0 else ''
    change = f'{100.0 * (after / before - 1.0):+.0f} %, from {before:.4g} to {after:.4g} kg{whole}'
    return [f'the mass of the {what} changes by {change}. {_weigh(solution, given)}']


def _weigh(solution: Solution, given: MassRange | None) -> str:
    """What to do about a mass that changes."""
    floating = solution.columns.model.floating_base
    cause = (
        'an unknown payload explains the change, and so do efforts (or measured foot forces) of a wrong scale'
        if floating
        else 'on a fixed base the mass follows from torques alone, and wrong torque constants change it, too'
    )
    if given is None:
        return f'Weigh the robot, and give --mass: {cause}'
    urdf = solution.moving_masses[0] + root_mass(solution.columns.model)
    told = f'--mass is {given.low:.4g} to {given.high:.4g} kg'
    if given.low < urdf < given.high:
        return f'{told}, which allows that. Weigh the robot more accurately: {cause}'
    return (
        f'{told}, but the URDF has {urdf:.4g} kg: check that both are of the same robot, with the same '
        'tools, payload and fixed base'
    )


def slow_motion(samples: Samples, model: Model) -> list[str]:
    """Warning if most joints moved slowly: faster motion is an extrapolation.

    Args:
        samples: training data.
        model: robot.
    """
    speed = find_excitation(samples, model).speed
    if model.nj == 0 or np.mean(speed < SLOW) < 0.5:
        return []
    unit = joint_units(model, 'rad/s', 'm/s')
    return [
        f'half of the joints or more move slowly (at most {float(np.median(speed)):.2g} {unit}). The result '
        'predicts motion of this kind; how well it predicts faster motion is unknown, and that may be worse '
        'than with the URDF. Check it with --validate, or record faster motion'
    ]


def unfaithful(replay: Replay | None, model: Model) -> list[str]:
    """Warning if simulations with the result end farther from the log than those with the original model.

    Args:
        replay: of the validation data.
        model: robot.
    """
    if replay is None:
        return []
    before, after = replay.drift
    if after <= _FARTHER * before:
        return []
    unit = joint_units(model, 'mrad', 'mm')
    return [
        f'simulated for {1e3 * replay.window:.0f} ms from states of the log, joints end {1e3 * after:.0f} '
        f'{unit} away from it, {1e3 * before:.0f} {unit} with the model as it was: do not use the result in '
        'a simulator. --free friction rotor leaves the inertia alone'
    ]


def uncarried(equations: Equations, solution: Solution, given: MassRange | None = None) -> list[str]:
    """Warning if the feet carry more or less than the weight of the result; only for floating bases.

    If freeing inertia does not improve predictions, as in trots with many impacts, a payload is not
    identified, and force biases compensate for it. It is still visible in the sum of the measured forces:
    they are compared with weight and acceleration of the robot, by least squares over samples.

    Args:
        equations: of the training data.
        solution: to check.
        given: total mass that the user has given; None: none.
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
    mass = solution.moving_masses[1]
    advice = 'Weigh the robot, and give --mass' if given is None else 'Check --mass and the foot forces'
    return [
        f'the feet carry {mass * (1.0 + ratio):.4g} kg, but the robot that was found has {mass:.4g} kg: it '
        'carries something that this motion does not identify, or foot forces have a bias or a wrong scale. '
        f'{advice}'
    ]
