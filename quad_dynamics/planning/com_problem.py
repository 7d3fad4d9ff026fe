# SPDX-License-Identifier: Apache-2.0
"""What the motion optimisation of the centre of mass is given: phases, state, path, ground, weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError

_STEEPEST = 0.1  # smallest z of a normal: the ground is not a wall


@dataclass(frozen=True, eq=False)
class ComState:
    """Position, velocity and acceleration of the centre of mass, each (3,) [m, m/s, m/s^2]."""

    p: Floats
    v: Floats
    a: Floats = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True, eq=False)
class SupportPhase:
    """A time in which the same feet are down.

    Attributes:
        duration: [s].
        polygon: (k, 3) where these feet are, in any order: none in flight, one, two, or more [m].
    """

    duration: float
    polygon: Floats

    @property
    def is_flight(self) -> bool:
        """Whether no foot is down."""
        return len(self.polygon) == 0


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """The path pi about which motions are regularised: one quintic over the whole horizon.

    Attributes:
        start: its state at the begin: the mean centre of the feet, the commanded velocity, no acceleration.
        end: its state at the end; `arc.arc` gives the way there (7).
    """

    start: ComState
    end: ComState


@dataclass(frozen=True, eq=False)
class ComProblem:
    """One motion optimisation, in world axes with z up.

    Attributes:
        phases: which feet carry when; at least one.
        start: of the centre of mass. Position and velocity are kept, acceleration only as far as its weight
            says: where the ground pushes otherwise than planned, it was not what was planned.
        path: the path pi. Its end is also the final position (7) and velocity that are wanted.
        ground_point: (3,) a point of the ground, best below the robot [m].
        normal: (3,) of the ground.
        height: of the centre of mass above the ground, the scale of all lengths [m].
        g: gravity, along -z [m/s^2].
        time: when the first phase begins [s].
    """

    phases: tuple[SupportPhase, ...]
    start: ComState
    path: ReferencePath
    ground_point: Floats
    normal: Floats = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    height: float = 0.3
    g: float = 9.81
    time: float = 0.0

    @property
    def horizon(self) -> float:
        """[s]."""
        return sum(phase.duration for phase in self.phases)

    def check(self) -> None:
        """Raise ArgumentError where an entry is not finite, has the wrong shape, or makes no sense."""
        if not self.phases:
            raise ArgumentError('phases is empty; expected at least one')
        for k, phase in enumerate(self.phases):
            _check_positive(f'phases[{k}].duration', phase.duration)
        arrays = self._arrays()
        for name, value in arrays:
            rows = value.shape[:1] if isinstance(value, np.ndarray) and name.endswith('polygon') else ()
            if not isinstance(value, np.ndarray) or value.shape != (*rows, 3):
                raise ArgumentError(
                    f'{name} has shape {np.shape(value)}; expected an array ({"k, " * len(rows)}3)'
                )
        if not np.isfinite(np.concatenate([value.ravel() for _, value in arrays])).all():
            name, value = next((n, v) for n, v in arrays if not np.isfinite(v).all())
            raise ArgumentError(f'{name} is not finite: {value.tolist()}')
        if not math.isfinite(self.time):
            raise ArgumentError(f'time is {self.time}; expected a number')
        _check_positive('height', self.height)
        _check_positive('g', self.g)
        length = math.hypot(*self.normal.tolist())
        if not self.normal[2] > _STEEPEST * length:
            raise ArgumentError(
                f'normal is {self.normal.tolist()}; expected it to point away from the ground'
            )

    def _arrays(self) -> list[tuple[str, Floats]]:
        """All arrays and their names."""
        states = (('start', self.start), ('path.start', self.path.start), ('path.end', self.path.end))
        named = [(f'{name}.{part}', getattr(state, part)) for name, state in states for part in 'pva']
        named += [('ground_point', self.ground_point), ('normal', self.normal)]
        return named + [(f'phases[{k}].polygon', phase.polygon) for k, phase in enumerate(self.phases)]


@dataclass(frozen=True)
class ComWeights:
    """Weights of the cost, of squares in units of the height h and of sqrt(h / g), along and off the ground.

    Attributes:
        acceleration: of the integral of squared accelerations (6).
        final_position: of the distance from the end of the path (7).
        final_velocity: likewise for the velocity.
        path_position: of the integral of the squared distance from the path.
        path_velocity: likewise for the velocity.
        path_height: of the integral of the squared height above the path, in place of path_position.
        start_acceleration: of the squared change of the acceleration at the begin.
    """

    acceleration: float = 1.0
    final_position: float = 20.0
    final_velocity: float = 5.0
    path_position: float = 0.5
    path_velocity: float = 5.0
    path_height: float = 5.0
    start_acceleration: float = 0.01


@dataclass(frozen=True)
class ComSettings:
    """How the optimisation is done. Lengths are in heights h, accelerations in g.

    Attributes:
        weights: of the cost.
        samples: per segment, its ends included, at which inequalities hold.
        n_ineq: samples of each segment, from its first, at which the zero-moment point is softened; None for
            all. The document softens only some at the begin of the horizon: then there may be no solution.
        lambda_lin: cost of a slack of the zero-moment point, or of friction.
        lambda_quad: cost of its square.
        height_lin: cost of a slack of the height (8).
        height_quad: cost of its square.
        height_band: half the band about the height of the path that costs nothing.
        margin: by which support polygons are shrunk.
        line_width: half the width of the strip that two feet give.
        mu: friction that is counted on; accelerations stay within the pyramid inside its cone.
        least_load: smallest force of the ground along its normal in stance, in weights; near flight it falls
            to 0. Where it is small, the zero-moment point may be anywhere without much moment.
        steady_load: the same where no phase is flight, over the force that carries a body at rest. A body
            that was pushed would hop otherwise: slacks of the zero-moment point are of its moment, which is
            small while the load is.
        shortest: stance phases that are shorter than this, in sqrt(h / g), are cubics.
        iterations: of the sequential quadratic program, at most.
        tolerance: relative change of the merit below which it has converged.
        most_slack: of the zero-moment point, above which a motion is not accepted.
        time_limit: after which no further iteration begins; None for none. With one, results depend on how
            busy the machine is, and runs are not the same bit for bit [s].
    """

    weights: ComWeights = field(default_factory=ComWeights)
    samples: int = 6
    n_ineq: int | None = None
    lambda_lin: float = 20.0
    lambda_quad: float = 200.0
    height_lin: float = 0.2
    height_quad: float = 10.0
    height_band: float = 0.02
    margin: float = 0.06
    line_width: float = 0.02
    mu: float = 0.6
    least_load: float = 0.3
    steady_load: float = 0.8
    shortest: float = 0.12
    iterations: int = 2
    tolerance: float = 1e-3
    most_slack: float = 0.5
    time_limit: float | None = None

    def check(self) -> None:
        """Raise ArgumentError where a setting makes no sense."""
        for owner in (self.weights, self):
            for item in fields(owner):
                value = getattr(owner, item.name)
                if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0.0):
                    raise ArgumentError(f'{item.name} is {value}; expected 0 or more')
        for name in ('lambda_quad', 'height_quad', 'line_width', 'mu', 'iterations'):
            _check_positive(name, getattr(self, name))
        _check_positive('acceleration', self.weights.acceleration)
        if self.steady_load > 1.0:
            raise ArgumentError(f'steady_load is {self.steady_load}; expected 1 or less')
        if self.samples < 3:
            raise ArgumentError(f'samples is {self.samples}; expected 3 or more')


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise ArgumentError(f'{name} is {value}; expected a positive number')
