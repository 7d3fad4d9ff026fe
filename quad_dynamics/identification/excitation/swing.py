# SPDX-License-Identifier: Apache-2.0
"""Legs that swing, one after the other, while the robot stands on its other feet.

A leg in the air can be several times as fast as a leg in stance, and its torques do not depend on the foot
forces: this identifies its friction. For each leg, the base moves to a place where the other feet support it,
the foot is lifted straight up, the joints of the leg follow Fourier series, and the foot returns to its
place, at rest. Its target is slightly below the ground, so that the drives press it down. The controller then
detects the contact, and uses the foot, before the base moves on. A leg that cannot be lifted stays on the
ground, with a note.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from quad_dynamics.api.centroidal import center_of_mass
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.excitation_limits import LIFTED_FOOT, Limits
from quad_dynamics.identification.excitation.excitation_motion import Standing, States
from quad_dynamics.identification.excitation.excitation_settings import MOST_POINTS, ExcitationSettings
from quad_dynamics.identification.excitation.excitation_shapes import Capsules
from quad_dynamics.identification.excitation.lifted import Lifted
from quad_dynamics.identification.excitation.search import Search

LEG_ITERATIONS = 24  # of the search for each leg
_STARTS = 6  # random motions of the search
_FASTER = 2.0  # highest frequency, relative to that of the sway
_LEAST_LOAD = 0.15  # of a foot, relative to its share of the weight
_MARGIN = 0.1  # of the centre of mass inside the other feet, relative to a leg's length
_HEIGHTS = (0.0, -0.1, 0.05)  # of the base above its standing pose, over a leg's length: the first feasible
_SHARES = np.arange(20, 4, -1) / 20.0  # of the way to the middle of the other feet: the first feasible one
_RISES = (0.3, 0.4, 0.2)  # of a foot, relative to a leg's length: the first feasible one
_ROOM = 0.02  # margin of all limits there; less, if the standing pose has less
_PRESS = 0.03  # target depth of a foot that is put down, relative to a leg's length
_SHIFT_TIME, _LIFT_TIME = 1.6, 0.8  # [s]
_SLOWER, _TRIES = 1.5, 3  # if these times are too short


@dataclass(frozen=True, eq=False)
class Swings:
    """The motion after the sway.

    Attributes:
        parts: consecutive states; empty if no leg can be lifted.
        lifted: names of the legs that swing.
        notes: the legs that do not swing, and why.
        tightest: name and value of the limit with the smallest margin.
    """

    parts: list[States]
    lifted: tuple[str, ...]
    notes: list[str]
    tightest: tuple[str, float]


def swing_legs(
    standing: Standing,
    settings: ExcitationSettings,
    rate: float,
    capsules: Capsules,
    step: Callable[[], None],
) -> Swings:
    """Swing all legs, from the standing pose and back to it.

    Args:
        standing: the robot on its feet.
        settings: of the design.
        rate: of the states [Hz].
        capsules: of the robot in its standing pose.
        step: called after each step of the searches.
    """
    return _Plan(standing, settings, rate, capsules).run(step)


class _Plan:
    """The swings of one robot."""

    def __init__(
        self, standing: Standing, settings: ExcitationSettings, rate: float, capsules: Capsules
    ) -> None:
        self._standing, self._settings, self._rate, self._capsules = standing, settings, rate, capsules
        self._limits = Limits(standing, settings, load=_LEAST_LOAD, capsules=capsules)
        here, still = np.zeros((1, 6)), np.zeros((1, 6))
        self._left = min(_ROOM, -0.5 * self._limits.worst(standing.states(here, still, still))[1])
        self._tightest = ('', -np.inf)
        self._room = (MOST_POINTS - 1 - settings.duration * settings.rate) * rate / settings.rate
        highest = min(_FASTER * settings.harmonics / settings.period, 0.1 * settings.rate)
        # at least two periods; and it ends at a point of the trajectory
        seconds = max(settings.swing, 2.0 / highest)
        self._seconds = math.ceil(seconds * settings.rate - 1e-9) / settings.rate
        period = self._seconds / max(1, math.floor(self._seconds / settings.period))
        self._leg_settings = settings.replace(
            duration=self._seconds,
            period=period,
            harmonics=int(np.clip(math.floor(highest * period + 1e-9), 2, 30)),
            starts=_STARTS,
            iterations=LEG_ITERATIONS,
        )

    def run(self, step: Callable[[], None]) -> Swings:
        """All legs."""
        parts: list[States] = []
        lifted: list[str] = []
        notes: list[str] = []
        here, pressed = np.zeros(6), None
        for foot, leg in enumerate(self._standing.model.legs):
            try:
                more, place = self._leg(foot, here, pressed, step)
            except ArgumentError as error:
                notes.append(f'{leg.name} stays on the ground: {error}')
                continue
            parts.extend(more)
            lifted.append(leg.name)
            here, pressed = place, foot
        if parts:
            parts.append(self._shift(here, np.zeros(6), pressed))
        return Swings([part.later() for part in parts], tuple(lifted), notes, self._tightest)

    def _leg(
        self, foot: int, here: Floats, pressed: int | None, step: Callable[[], None]
    ) -> tuple[list[States], Floats]:
        """Shift, lift, swing and put down one leg; returns the final position of the base, too.

        Raises:
            ArgumentError: it is not possible; with the reason.
        """
        place, rise, lifted = self._place(foot)
        limits = Limits(lifted, self._settings, load=_LEAST_LOAD, capsules=self._capsules)
        shift = self._shift(here, place, pressed)
        up = self._lift(foot, place, (0.0, rise), limits)
        down = self._lift(foot, place, (rise, -_PRESS * self._standing.length), limits)
        back = self._shift(place, np.zeros(6), foot)  # if it is the last leg
        samples = sum(len(part.q) - 1 for part in (shift, up, down)) + round(self._seconds * self._rate)
        if samples + len(back.q) - 1 > self._room:
            raise ArgumentError(f'the trajectory would have more than {MOST_POINTS} points')
        swing = Search(lifted, self._leg_settings, limits).alone(step)
        self._room -= samples
        self._note(limits.worst(swing.states))
        return [shift, up, swing.states, down], place

    def _note(self, limit: tuple[str, float]) -> None:
        self._tightest = max(self._tightest, limit, key=lambda one: one[1])

    # ---------------------------------------------------------------- where to stand

    def _place(self, foot: int) -> tuple[Floats, float, Lifted]:
        """Coordinates of the base at which a foot can be lifted, how far, and the robot there.

        Raises:
            ArgumentError: there is no such place.
        """
        length, why = self._standing.length, 'there is no place far enough inside the other feet'
        if len(self._standing.down) < 4:
            raise ArgumentError('it has fewer than four feet')
        way = np.zeros(6)
        way[:2] = _middle(np.delete(self._standing.support(), foot, axis=0))
        way[:2] -= center_of_mass(self._standing.model, self._standing.rest)[:2]
        for height in _HEIGHTS:
            for share in _SHARES:
                place = share * way
                place[2] = height * length
                name, size = self._limits.worst(self._still(place, foot, -_PRESS * length))
                if size > -self._left:
                    why = f'the limit of {name} is missed where the others would carry'
                    continue
                for rise in _RISES:
                    lifted = self._lifted(foot, place, rise * length)
                    if lifted is not None:
                        return place, rise * length, lifted
        raise ArgumentError(why)

    def _still(self, place: Floats, foot: int, rise: float) -> States:
        """The robot at rest, with a foot above its place."""
        still = np.zeros((1, 6))
        return self._standing.raised(place[None], still, still, foot, np.array([[rise], [0.0], [0.0]]))

    def _lifted(self, foot: int, place: Floats, rise: float) -> Lifted | None:
        """The robot with a foot lifted; None if limits are violated, or it is not balanced."""
        pose = self._still(place, foot, rise).without(foot)
        lifted = Lifted(self._standing, foot, pose)
        limits = Limits(lifted, self._settings, load=_LEAST_LOAD, capsules=self._capsules)
        if limits.inside < _MARGIN * self._standing.length or limits.worst(pose)[1] > -self._left:
            return None
        return lifted

    # ---------------------------------------------------------------- how to go there

    def _shift(self, here: Floats, there: Floats, pressed: int | None) -> States:
        """Move the base between two places, from rest to rest; a foot that is pressed down is released."""

        def make(time: float) -> States:
            way = _rest_to_rest(time, self._rate)
            s = way[:, :, None] * (there - here)
            s[0] += here
            if pressed is None:
                return self._standing.states(s[0], s[1], s[2])
            rise = _PRESS * self._standing.length * way
            rise[0] -= _PRESS * self._standing.length
            return self._standing.raised(s[0], s[1], s[2], pressed, rise)

        return self._slow_enough(make, _SHIFT_TIME, self._limits)

    def _lift(self, foot: int, place: Floats, ends: tuple[float, float], limits: Limits) -> States:
        """Move a foot straight up or down between two heights, from rest to rest."""

        def make(time: float) -> States:
            rise = (ends[1] - ends[0]) * _rest_to_rest(time, self._rate)
            rise[0] += ends[0]
            s = np.tile(place, (rise.shape[1], 1))
            still = np.zeros_like(s)
            return self._standing.raised(s, still, still, foot, rise).without(foot)

        return self._slow_enough(make, _LIFT_TIME, limits)

    def _slow_enough(self, make: Callable[[float], States], time: float, limits: Limits) -> States:
        name = ''
        for tries in range(_TRIES):
            wanted = time * _SLOWER**tries
            states = make(math.ceil(wanted * self._settings.rate - 1e-9) / self._settings.rate)
            name, size = limits.worst(states, but=LIFTED_FOOT)
            if size <= 0.0:
                self._note((name, size))
                return states
        raise ArgumentError(f'the limit of {name} is missed on the way')


def _rest_to_rest(time: float, rate: float) -> Floats:
    """(3, n) from 0 to 1 by a polynomial of degree five, with its derivatives."""
    x = np.arange(round(time * rate) + 1) / round(time * rate)
    return np.stack(
        [
            x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
            30.0 * x**2 * (1.0 - x) ** 2 / time,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / time**2,
        ]
    )


def _middle(corners: Floats) -> Floats:
    """(2,) the point of a convex polygon that is farthest from its edges."""
    order = np.argsort(np.arctan2(*(corners - corners.mean(axis=0)).T[::-1]))
    along = np.roll(corners[order], -1, axis=0) - corners[order]
    normal = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1, keepdims=True)
    offset = np.einsum('ij,ij->i', normal, corners[order])
    bounds = [(None, None), (None, None), (0.0, None)]
    A = np.column_stack([-normal, np.ones(len(normal))])
    found = linprog([0.0, 0.0, -1.0], A, -offset, bounds=bounds)
    if not found.success:
        raise ArgumentError('the other feet are in a line')
    return np.asarray(found.x[:2])
