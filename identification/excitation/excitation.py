# SPDX-License-Identifier: Apache-2.0
"""Designs motions that make the parameters of a robot visible, inside all its limits.

The free numbers of the Fourier series are improved by L-BFGS from the best of some random motions, inside a
barrier at the limits. What is judged, and the barrier, are sums over samples, each a function of the
coordinates and their derivatives at one time; its derivatives are taken there by differences, sample by
sample, and the series, which is linear, does the rest. At last the motion is scaled about the resting pose
until it keeps all limits at every point, so that the result is never outside of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from identification.excitation.descent import descend
from identification.excitation.excitation_information import Information, judge
from identification.excitation.excitation_limits import Limits
from identification.excitation.excitation_motion import HeldBase, Standing, States
from identification.excitation.excitation_result import Candidate, Excitation
from identification.excitation.excitation_settings import ExcitationSettings
from identification.excitation.fourier import Fourier, chirps, sines
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]

_SAMPLES_EACH_WAVE = 10  # of the highest harmonic, in the search
_BARRIERS = (10.0, 1.0, 0.1)  # how much they count, one after the other
_INSIDE = 0.7  # of the largest share of a motion, where the search begins
_LONGEST = 0.3  # change of a free number in one step
_CHECK_RATE = 100.0  # at which limits are looked at, at least [Hz]
SAMPLE_RATE = 100.0  # of independent samples, for the standard deviations that are predicted [Hz]
_STEP = 1e-6  # of differences, of the scale of a coordinate
_LEAST, _SMALLER = 1e-4, 0.99  # shares of a motion
_MOST = 4.0  # times the scale of the coordinates, for motions that limits do not stop before


def choose_motion(model: Model, leg: str = '') -> HeldBase | Standing:
    """The way in which a robot is to move.

    Args:
        model: robot; with a floating base it stands on all its feet.
        leg: name of a leg that alone moves, the base held; '' for everything that can move.

    Raises:
        ArgumentError: there is no such leg, or the base floats and a leg is asked for.
    """
    if not leg:
        return Standing(model) if model.floating_base else HeldBase(model, np.arange(model.nj))
    named = {one.name: one for one in model.legs}
    if leg not in named:
        raise ArgumentError(
            f"'{model.name}' has no leg {leg!r}; expected one of {', '.join(named) or 'none'}"
        )
    return HeldBase(model, np.array(named[leg].joint_indices))


def design(
    motion: HeldBase | Standing,
    settings: ExcitationSettings | None = None,
    ground: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Excitation:
    """Design a motion.

    Args:
        motion: the way in which the robot is to move.
        settings: what can be chosen.
        ground: height of a plane that nothing may touch [m]; None: none, or that on which the robot stands.
        progress: called with the steps of the search that are done, and with all.

    Raises:
        ArgumentError: the robot cannot move inside its limits.
    """
    return _Design(motion, settings or ExcitationSettings(), ground).run(progress or (lambda done, all: None))


class _Design:
    """One design."""

    def __init__(
        self, motion: HeldBase | Standing, settings: ExcitationSettings, ground: float | None
    ) -> None:
        self._motion, self._settings = motion, settings
        self._limits = Limits(motion, settings, ground)
        self._information = Information(motion, settings.seed)
        repeats = max(1, round(settings.duration / settings.period))
        self._fourier = Fourier(settings.duration / repeats, settings.harmonics)
        # points of the trajectory, and others between them
        self._rate = settings.rate * math.ceil(_CHECK_RATE / settings.rate)
        self._time = np.arange(round(settings.duration * self._rate) + 1) / self._rate
        self._dense = self._fourier.basis(self._time)
        highest = settings.harmonics / self._fourier.period
        self._every = max(1, int(self._rate / (_SAMPLES_EACH_WAVE * highest)))
        n = _SAMPLES_EACH_WAVE * settings.harmonics
        self._basis = self._fourier.basis(self._fourier.period * np.arange(n) / n)
        self._shape = (self._fourier.size, len(motion.scale))
        name, size = self._limits.worst(self._at(self._basis, np.zeros(self._shape)))
        if size > 0.0:
            raise ArgumentError(
                f"'{motion.model.name}' does not keep the limit of {name} when it rests; expected a resting "
                'pose inside all limits'
            )

    def _at(self, basis: Floats, z: Floats) -> States:
        s, ds, dds = basis @ z * self._motion.scale
        return self._motion.states(s, ds, dds)

    def _share_of(self, basis: Floats, z: Floats) -> Callable[[float], States]:
        return lambda share: self._at(basis, share * z)

    # ---------------------------------------------------------------- the search

    def run(self, progress: Callable[[int, int], None]) -> Excitation:
        """All of it."""
        z = self._first()
        done, steps = 0, self._settings.iterations

        def step() -> None:
            nonlocal done
            done += 1
            progress(min(done, steps), steps)

        for i, weight in enumerate(_BARRIERS):
            share = steps * (i + 1) // len(_BARRIERS) - steps * i // len(_BARRIERS)
            value, gradient = self._functions(weight)
            z = descend(value, gradient, z.ravel(), share, _LONGEST, step).reshape(self._shape)
        waves = {name: self._naive(make) for name, make in (('sines', sines), ('chirps', chirps))}
        once = self._dense[:, : 1 + math.ceil(self._fourier.period * self._rate)]
        best = self._finish('designed', self._dense, once, z)
        naive = tuple(self._finish(name, wave, wave, size) for name, (wave, size) in waves.items())
        return self._result(best, naive)

    def _first(self) -> Floats:
        """The best of some random motions, each as large as the limits allow."""
        rng = np.random.default_rng(self._settings.seed)
        tries = [rng.normal(size=self._shape) for _ in range(self._settings.starts)]
        some = np.concatenate([self._at(self._basis, 0.5 * z / np.abs(z).max()).q for z in tries])
        self._limits.focus(some)
        best, value = tries[0], np.inf
        for z in tries:
            share = self._limits.largest_share(self._share_of(self._basis, z), _MOST)
            scaled = _INSIDE * share * z
            found = judge(self._matrix(self._at(self._basis, scaled)), self._settings.criterion)[0]
            if found < value:
                best, value = scaled, found
        return best

    def _matrix(self, states: States) -> Floats:
        return self._information.matrix(self._information.rows(states))

    def _functions(self, weight: float) -> tuple[Callable[[Floats], float], Callable[[Floats], Floats]]:
        """What is minimised, and its derivative by the free numbers."""
        criterion, scale = self._settings.criterion, self._motion.scale

        def value(flat: Floats) -> float:
            states = self._at(self._basis, flat.reshape(self._shape))
            barrier = float(self._limits.barrier(states).mean())
            return (
                judge(self._matrix(states), criterion)[0] + weight * barrier if barrier < np.inf else np.inf
            )

        def gradient(flat: Floats) -> Floats:
            x = self._basis @ flat.reshape(self._shape) * scale  # (3, n, coordinates)
            states = self._motion.states(x[0], x[1], x[2])
            Y = self._information.rows(states)
            G = judge(self._information.matrix(Y), criterion)[1]
            slope = np.stack([self._slopes(order, x, states, G, weight) for order in range(3)])
            return np.asarray((np.einsum('oni,onk->ki', slope, self._basis) * scale).ravel())

        return value, gradient

    def _slopes(self, order: int, x: Floats, states: States, G: Floats, weight: float) -> Floats:
        """(n, coordinates) derivatives of what each sample adds, by coordinates, or their derivatives.

        Args:
            order: 0, 1 or 2, of the derivatives.
            x: (3, n, coordinates) coordinates with their derivatives.
            states: that belong to them.
            G: derivative of the judgement by the information matrix.
            weight: of the barrier.
        """
        n, count = x.shape[1:]
        sizes, pose = _STEP * self._motion.scale, order == 0
        moved = np.tile(x, (1, count, 1))  # all coordinates at once: calls cost more than numbers
        moved[order] += np.repeat(np.diag(sizes), n, axis=0)
        there = self._motion.states(moved[0], moved[1], moved[2], states.repeated(count), not pose)
        base, values = (self._each(one, G, weight, pose) for one in (states, there))
        return np.asarray((values.reshape(count, n) - base).T / sizes / n)

    def _each(self, states: States, G: Floats, weight: float, pose: bool) -> Floats:
        """(n,) what each sample adds to the value, with the judgement replaced by its derivative G."""
        Y = self._information.rows(states)
        return np.asarray(np.einsum('nri,nri->n', Y @ G, Y) + weight * self._limits.barrier(states, pose))

    # ---------------------------------------------------------------- the end

    def _finish(self, name: str, basis: Floats, once: Floats, z: Floats) -> Candidate:
        """The largest share of a motion that keeps all limits at every point; first at few, then at all.

        Args:
            name: of the motion.
            basis: (3, n, k) of all points.
            once: of those that do not repeat others.
            z: (k, coordinates).
        """
        few = once[:, :: self._every]
        self._limits.focus(self._at(few, z).q)
        share = self._limits.largest_share(self._share_of(few, z))
        while share > _LEAST and self._limits.worst(self._at(once, share * z))[1] > 0.0:
            share *= _SMALLER
        if share <= _LEAST:
            raise ArgumentError(
                f"'{self._motion.model.name}' cannot move at all inside its limits ({name}); the first that "
                f'is missed is that of {self._limits.worst(self._at(basis, 1e-3 * z))[0]}'
            )
        states = self._at(basis, share * z)
        samples = self._settings.duration * SAMPLE_RATE
        quality = self._information.quality(self._matrix(states), samples)
        return Candidate(name, states, quality, self._limits.worst(self._at(once, share * z))[0])

    def _naive(self, make: Callable[[Floats, int, float, int], Floats]) -> tuple[Floats, Floats]:
        """Waves of all coordinates, and a diagonal matrix: how far each of them may go alone."""
        count = self._shape[1]
        wave = make(self._time, count, self._fourier.period, self._settings.harmonics)
        few, alone = wave[:, :: self._every], np.zeros(count)
        for i in range(count):
            one = np.diag(np.eye(count)[i])
            alone[i] = self._limits.largest_share(self._share_of(few, one), _MOST)
        return wave, np.diag(alone)

    def _result(self, best: Candidate, naive: tuple[Candidate, ...]) -> Excitation:
        model, own = self._motion.model, self._motion.joints
        states, every = best.states, round(self._rate / self._settings.rate)
        joints = states.q[::every, model.nq - model.nj :][:, own]
        velocity, acceleration = (x[::every, model.nv - model.nj :][:, own] for x in (states.u, states.du))
        return Excitation(
            model=model,
            joint_names=tuple(model.joint_names[i] for i in own),
            time=self._time[::every],
            position=joints,
            velocity=velocity,
            acceleration=acceleration,
            best=best,
            naive=naive,
            period=self._fourier.period,
            criterion=self._settings.criterion,
            notes=tuple(self._limits.notes),
        )
