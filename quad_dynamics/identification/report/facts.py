# SPDX-License-Identifier: Apache-2.0
"""Short texts about a result, for the summary, the report and the parameters file."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from quad_dynamics.identification.number_text import number, percent
from quad_dynamics.identification.solvers.pseudo_inertia import pseudo_inertia
from quad_dynamics.identification.solvers.solution import Combination, Solution
from quad_dynamics.identification.validation.replay import WINDOW, Replay
from quad_dynamics.identification.validation.validation import BandErrors, Pooled, Validation, pooled
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.model import Model
from quad_dynamics.model.standing_checks import contact_warnings

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result


_OF_BODY = re.compile(r"body ('[^']+'): (.*)")
_NOTICEABLE = 1e-3  # relative change of the base's mass that is mentioned
_HIGH_FLOOR = 0.3  # relative error of the best fit that is worth a warning
_WORSE = 1.02  # ratio of errors, after to before, that is worth a warning
_FEW_SAMPLES = 50  # an RMS error of fewer independent samples is uncertain by more than 10 %


@dataclass(frozen=True)
class AddedMass:
    """Mass that the base carries in addition to the model (or less).

    Attributes:
        mass: [kg]; negative if the base is lighter.
        std: standard deviation [kg].
        position: of an equivalent point mass, in the base's frame [m].
    """

    mass: float
    std: float
    position: tuple[float, float, float]


def mass_name(solution: Solution) -> str:
    """What `Solution.moving_masses` are the masses of: on a fixed base, the root is not included."""
    return 'mass' if solution.columns.model.floating_base else 'mass of the moving links'


def added_mass(solution: Solution) -> AddedMass | None:
    """Mass that the base carries in addition to the model; None if it was not free or did not change."""
    if not solution.columns.model.floating_base or not solution.free[0]:
        return None
    change = solution.x[:4] - solution.columns.prior[:4]
    if abs(change[0]) < _NOTICEABLE * solution.columns.prior[0]:
        return None
    x, y, z = (change[1:] / change[0]).tolist()
    return AddedMass(float(change[0]), float(solution.std[0]), (x, y, z))


def consistent_bodies(solution: Solution) -> tuple[int, int]:
    """Number of physically consistent bodies, and of all bodies.

    The pseudo-inertia [[S, h], [h^T, m]], S = tr(I)/2 1 - I, is positive definite exactly for bodies with a
    positive density (Wensing, Kim and Slotine, 2018).
    """
    pi = solution.part('pi').reshape(-1, 10)
    return int(np.sum(np.linalg.eigvalsh(pseudo_inertia(pi))[:, 0] > 0.0)), len(pi)


def counts(solution: Solution) -> tuple[int, int, int]:
    """Numbers of identified unknowns, of free unknowns, and of all."""
    free = solution.free
    return int((solution.identified & free).sum()), int(free.sum()), len(free)


def identified_combinations(solution: Solution) -> list[Combination]:
    """The base parameters that the data determine."""
    return [each for each in solution.combinations if each.identified]


def merged(lines: Sequence[str]) -> list[str]:
    """Lines about bodies, such as "body 'a': ...", with equal ones merged."""
    found: dict[str, list[str]] = {}
    for line in lines:
        match = _OF_BODY.match(line)
        found.setdefault(match[2] if match else line, []).append(match[1] if match else '')
    return [
        (f'body {names[0]}: {text}' if len(names) == 1 else f'bodies {", ".join(names)}: {text}')
        if names[0]
        else text
        for text, names in found.items()
    ]


def model_notes(model: Model) -> list[str]:
    """Doubts about the model, each one once.

    Missing meshes are reported when the robot is loaded, and again when contact points are made from their
    replacement. Inconsistent inertia is replaced by the solver, which reports it.
    """
    notes = [note for note in model.warnings if 'violates the triangle inequality' not in note]
    if model.floating_base and not any(note.startswith('collision meshes') for note in notes):
        notes += contact_warnings(model)
    if model.floating_base and model.description.contact_points_from_tree:
        notes += _pointed_feet(model)
    return notes


def _pointed_feet(model: Model) -> list[str]:
    """Note about feet without geometry: contact forces are off by their true radius."""
    feet = [foot for foot in model.foot_names if contact_ball(model, foot)[1] == 0.0]
    if not feet:
        return []
    return [
        f'feet have no geometry, so that their radius is 0: {", ".join(feet)}. Give it (contact_points in '
        'the robot description): contact forces act one radius below their centres'
    ]


def short_names(paths: str) -> str:
    """Names of recordings without their folders; other text is unchanged."""
    return ', '.join(PurePath(path).name or path for path in paths.split(', '))


def same_as(validation: Validation | None) -> str:
    """What the first two rows of the comparison of methods have to do with the other errors."""
    if validation is None:
        return 'Held out for this table only; the result itself was not validated.'
    blocks = ' All methods were fitted without these blocks.' if validation.held_out else ''
    return f"'as it was' and 'consistent' have the errors before and after of the validation.{blocks}"


def headline_warnings(result: Result) -> list[str]:
    """Reasons not to use a result as it is: shown first, and even with `--quiet`."""
    found = list(result.warnings)
    if result.validation is not None:
        errors, on = result.validation.errors, short_names(result.validation.on)
        before, after, floor = pooled(errors).relative
        what = 'base force' if pooled(errors).name == 'base force' else 'torques'
        if after > _WORSE * before and errors.names[-1] != 'base moment':
            found.append(
                f'torques of {on} are predicted worse than by the model as it was: {percent(before)} -> '
                f'{percent(after)}'
            )
        if floor > _HIGH_FLOOR:
            found.append(
                f'even the best fit to {on} leaves {percent(floor)} of the {what}: effects that are not '
                'modelled, wrong time stamps or wrong signals are that large'
            )
        if 'base force' in errors.names and errors.after[0] > _WORSE * errors.before[0]:
            found.append(
                f'forces on the base of {on} are predicted worse than by the model as it was: '
                f'{errors.before[0]:.3g} -> {errors.after[0]:.3g} N'
            )
    return found


def doubts(validation: Validation | None) -> list[str]:
    """Other reasons to doubt a result."""
    if validation is None:
        return ['nothing was validated: errors on other motion are unknown']
    found = []
    whole = pooled(validation.errors)
    if validation.errors.total < _FEW_SAMPLES:
        found.append(
            f'errors are judged on only {validation.errors.total} samples: they are uncertain, and may be '
            'larger on other motion'
        )
    before, after = whole.every
    if after > _WORSE * before and whole.relative[1] <= _WORSE * whole.relative[0]:
        found.append(
            f'with the {percent(whole.left_out)} of the rows that do not count, torques are predicted worse '
            f'than by the model as it was: {percent(before)} -> {percent(after)}'
        )
    again = validation.replay
    if again is not None:
        worse = [(name, _what_is_farther(again, i)) for i, name in enumerate(again.joints)]
        names = [f'{name} ({what})' for name, what in worse if what]
        if names:
            found.append(
                'simulated beside the log, these joints end farther from it than with the model as it was: '
                f'{", ".join(names)}'
            )
    return found


def replay_states(again: Replay) -> list[str]:
    """What simulations beside the log say of each joint."""
    return [_replay_state(again, i) for i in range(len(again.joints))]


def _replay_state(again: Replay, joint: int) -> str:
    if not again.judged[joint]:
        return 'not simulated'
    if again.closer[joint]:
        return 'closer'
    what = _what_is_farther(again, joint)
    return f'{what} farther' if what else 'as before'


def _what_is_farther(again: Replay, joint: int) -> str:
    """Position, velocity or both; '' if neither is."""
    named = zip(('position', 'velocity'), again.farther[:, joint], strict=True)
    return ' and '.join(name for name, farther in named if farther)


def not_simulated(validation: Validation) -> str:
    """Why no joint was simulated beside the log; '' if some were."""
    if validation.replay is not None:
        return ''
    if validation.equations.mode == 'base':
        return 'Joints were not simulated beside the log: only the equations of the base are used.'
    return (
        f'Joints were not simulated beside the log: there is no segment of {1e3 * WINDOW:.0f} ms in '
        f'{short_names(validation.on)} in which at least half of the rows of a joint count.'
    )


def change(whole: Pooled) -> str:
    """A pooled error before and after, such as '0.21 -> 0.08 N m (3.9 % -> 1.5 %)'."""
    rms, relative = [number(x, 3) for x in whole.rms], [percent(x) for x in whole.relative]
    return f'{rms[0]} -> {rms[1]} {whole.unit} ({relative[0]} -> {relative[1]})'


def floor_text(whole: Pooled) -> str:
    """The pooled floor, or why there is none."""
    floor = whole.relative[2]
    return f'the floor is {percent(floor)}' if math.isfinite(floor) else 'too few samples for a floor'


def band_line(band: BandErrors) -> str:
    """Errors in the band of the motion."""
    return f'below {band.cutoff:.3g} Hz, the band of the motion: {change(pooled(band.errors))}'
