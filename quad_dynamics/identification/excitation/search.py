# SPDX-License-Identifier: Apache-2.0
"""Search for an exciting motion, within all limits of a type of motion.

The free parameters of the Fourier series are optimised by L-BFGS, from the best of some random motions, with
a barrier at the limits. Criterion and barrier are sums over samples, each a function of the coordinates and
their derivatives at one time. Finite differences are taken there, sample by sample; the rest of the chain
rule is exact, because the series is linear. Finally, the motion is scaled about the rest pose until it
satisfies all limits at every point, so the result is always feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.descent import descend
from quad_dynamics.identification.excitation.excitation_information import Information, judge
from quad_dynamics.identification.excitation.excitation_limits import Limits
from quad_dynamics.identification.excitation.excitation_motion import HeldBase, Standing, States
from quad_dynamics.identification.excitation.excitation_result import Candidate
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.excitation.fourier import Fourier, chirps, sines
from quad_dynamics.identification.excitation.lifted import Lifted

_SAMPLES_EACH_WAVE = 10  # per period of the highest harmonic, in the search
_IN_THE_AIR = 16  # the same in the air: a fast leg moves far between two samples
_BARRIERS = (10.0, 1.0, 0.1)  # successive weights of the barrier
_INSIDE = 0.7  # initial amplitude, relative to the largest feasible one
_LONGEST = 0.3  # change of a free parameter in one step
_CHECK_RATE = 100.0  # smallest rate at which limits are checked [Hz]
SAMPLE_RATE = 100.0  # of independent samples, for the predicted standard deviations [Hz]
_STEP = 1e-6  # of finite differences, relative to the scale of a coordinate
_LEFT = 1e-3  # distance from limits of a fast leg, relative to the barrier: differences must not cross them
_LEAST, _SMALLER = 1e-4, 0.99  # smallest scale of a motion, and factor between scales that are tried
_MUCH, _LITTLE = 0.7, 0.98  # below this scale, larger ones are tried, with this factor between them
_POSES = 400
_SPARE = 0.5  # extra clearance below a lifted foot: it may be lower between the samples of the search
_MOST = 4.0  # largest amplitude, relative to the scale of the coordinates, for motions without limits


class Search:
    """One search.

    Attributes:
        rate: of the points at which limits are checked [Hz].
        time: (n,) times of these points [s].
        period: of the motion [s].
        limits: to satisfy.
        information: about the base parameters.
    """

    def __init__(
        self,
        motion: HeldBase | Standing | Lifted,
        settings: ExcitationSettings,
        limits: Limits,
    ) -> None:
        """Prepare a search.

        Args:
            motion: type of motion.
            settings: of the design.
            limits: of this type of motion.

        Raises:
            ArgumentError: the robot violates its limits at rest.
        """
        self._motion, self._settings, self.limits = motion, settings, limits
        self._left = _LEFT if isinstance(motion, Lifted) else 0.0
        self.information = Information(motion, settings.seed)
        repeats = max(1, round(settings.duration / settings.period))
        self.period = settings.duration / repeats
        self._fourier = Fourier(self.period, settings.harmonics)
        # points of the trajectory, and more points between them
        self.rate = settings.rate * math.ceil(_CHECK_RATE / settings.rate)
        self.time = np.arange(round(settings.duration * self.rate) + 1) / self.rate
        self._dense = self._fourier.basis(self.time)
        highest = settings.harmonics / self.period
        self._every = max(1, int(self.rate / (_SAMPLES_EACH_WAVE * highest)))
        n = (_IN_THE_AIR if isinstance(motion, Lifted) else _SAMPLES_EACH_WAVE) * settings.harmonics
        self._basis = self._fourier.basis(self.period * np.arange(n) / n)
        self._shape = (self._fourier.size, len(motion.scale))
        name, size = self.limits.worst(self._at(self._basis, np.zeros(self._shape)))
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

    def alone(self, step: Callable[[], None]) -> Candidate:
        """The designed motion; `step` is called after each step of the search."""
        return self._designed(self._improved(step))

    def compared(self, step: Callable[[], None]) -> tuple[Candidate, tuple[Candidate, ...]]:
        """The designed motion, and naive ones within the same limits."""
        z = self._improved(step)
        waves = {name: self._naive(make) for name, make in (('sines', sines), ('chirps', chirps))}
        best = self._designed(z)
        return best, tuple(self._finish(name, wave, wave, size) for name, (wave, size) in waves.items())

    def _improved(self, step: Callable[[], None]) -> Floats:
        self.limits.spare = _SPARE
        z, steps = self._first(), self._settings.iterations
        for i, weight in enumerate(_BARRIERS):
            share = steps * (i + 1) // len(_BARRIERS) - steps * i // len(_BARRIERS)
            value, gradient = self._functions(weight)
            z = descend(value, gradient, z.ravel(), share, _LONGEST, step).reshape(self._shape)
        self.limits.spare = 0.0
        return z

    def _designed(self, z: Floats) -> Candidate:
        once = self._dense[:, : 1 + math.ceil(self.period * self.rate)]
        return self._finish('designed', self._dense, once, z)

    def _first(self) -> Floats:
        """The best of some random motions, each as large as the limits allow."""
        rng = np.random.default_rng(self._settings.seed)
        tries = [rng.normal(size=self._shape) for _ in range(self._settings.starts)]
        self.limits.focus(self._some(tries))
        best, value = tries[0], np.inf
        for z in tries:
            share = self.limits.largest_share(self._share_of(self._basis, z), _MOST)
            scaled = _INSIDE * share * z
            found = judge(self._matrix(self._at(self._basis, scaled)), self._settings.criterion)[0]
            if found < value:
                best, value = scaled, found
        return best

    def _some(self, tries: list[Floats]) -> Floats:
        """(n, nq) representative configurations of the search."""
        if not isinstance(self._motion, Lifted):
            return np.concatenate([self._at(self._basis, 0.5 * z / np.abs(z).max()).q for z in tries])
        # a leg in the air uses all of its range
        s = np.random.default_rng(self._settings.seed).uniform(-1.0, 1.0, (_POSES, self._shape[1]))
        s *= self._motion.scale
        return self._motion.states(s, s, s).q

    def _matrix(self, states: States) -> Floats:
        return self.information.matrix(self.information.rows(states))

    def _functions(self, weight: float) -> tuple[Callable[[Floats], float], Callable[[Floats], Floats]]:
        """The cost, and its derivative with respect to the free parameters."""
        criterion, scale = self._settings.criterion, self._motion.scale

        def value(flat: Floats) -> float:
            states = self._at(self._basis, flat.reshape(self._shape))
            barrier = float(self.limits.barrier(states, least=self._left).mean())
            return (
                judge(self._matrix(states), criterion)[0] + weight * barrier if barrier < np.inf else np.inf
            )

        def gradient(flat: Floats) -> Floats:
            x = self._basis @ flat.reshape(self._shape) * scale  # (3, n, coordinates)
            states = self._motion.states(x[0], x[1], x[2])
            Y = self.information.rows(states)
            G = judge(self.information.matrix(Y), criterion)[1]
            slope = np.stack([self._slopes(order, x, states, G, weight) for order in range(3)])
            return np.asarray((np.einsum('oni,onk->ki', slope, self._basis) * scale).ravel())

        return value, gradient

    def _slopes(self, order: int, x: Floats, states: States, G: Floats, weight: float) -> Floats:
        """(n, coordinates) derivatives of each sample's contribution, by coordinates or their derivatives.

        Args:
            order: 0, 1 or 2, of the derivatives.
            x: (3, n, coordinates) coordinates with their derivatives.
            states: for these coordinates.
            G: derivative of the criterion by the information matrix.
            weight: of the barrier.
        """
        n, count = x.shape[1:]
        sizes, pose = _STEP * self._motion.scale, order == 0
        moved = np.tile(x, (1, count, 1))  # all coordinates at once: calls are expensive
        moved[order] += np.repeat(np.diag(sizes), n, axis=0)
        there = self._motion.states(moved[0], moved[1], moved[2], states.repeated(count), not pose)
        base, values = (self._each(one, G, weight, pose) for one in (states, there))
        return np.asarray((values.reshape(count, n) - base).T / sizes / n)

    def _each(self, states: States, G: Floats, weight: float, pose: bool) -> Floats:
        """(n,) contribution of each sample to the cost, with the criterion linearised by G."""
        Y = self.information.rows(states)
        return np.asarray(np.einsum('nri,nri->n', Y @ G, Y) + weight * self.limits.barrier(states, pose))

    # ---------------------------------------------------------------- the end

    def _finish(self, name: str, basis: Floats, once: Floats, z: Floats) -> Candidate:
        """The largest scale of a motion that satisfies all limits at all points; first at some, then at all.

        Args:
            name: of the motion.
            basis: (3, n, k) of all points.
            once: indices of the points without repetitions.
            z: (k, coordinates).
        """
        few = once[:, :: self._every]
        self.limits.focus(self._at(few, z).q)
        share = self._large_share(self._share_of(few, z))
        while share > _LEAST and self.limits.worst(self._at(once, share * z))[1] > 0.0:
            share *= _SMALLER
        if share <= _LEAST:
            raise ArgumentError(
                f"'{self._motion.model.name}' cannot move at all inside its limits ({name}); the first that "
                f'is missed is that of {self.limits.worst(self._at(basis, 1e-3 * z))[0]}'
            )
        states = self._at(basis, share * z)
        samples = self._settings.duration * SAMPLE_RATE
        quality = self.information.quality(self._matrix(states), samples)
        return Candidate(name, states, quality, self.limits.worst(self._at(once, share * z))[0])

    def _large_share(self, make: Callable[[float], States]) -> float:
        """A feasible scale of a motion: by bisection; if it is small, the first feasible one of a sequence.

        A smaller scale may violate limits that a larger one satisfies.
        """
        found, share = self.limits.largest_share(make), 1.0
        while found < _MUCH < share:
            share *= _LITTLE
            if self.limits.worst(make(share))[1] <= 0.0:
                return share
        return found

    def _naive(self, make: Callable[[Floats, int, float, int], Floats]) -> tuple[Floats, Floats]:
        """Waves of all coordinates, and a diagonal matrix of the largest amplitude of each one alone."""
        count = self._shape[1]
        wave = make(self.time, count, self.period, self._settings.harmonics)
        few, alone = wave[:, :: self._every], np.zeros(count)
        for i in range(count):
            one = np.diag(np.eye(count)[i])
            alone[i] = self.limits.largest_share(self._share_of(few, one), _MOST)
        return wave, np.diag(alone)
