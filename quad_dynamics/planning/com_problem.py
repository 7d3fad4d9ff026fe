# SPDX-License-Identifier: Apache-2.0
"""The input of the motion optimisation of the centre of mass: phases, state, path, ground, weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError

_STEEPEST = 0.1  # smallest z component of a normal: the ground is not a wall


@dataclass(frozen=True, eq=False)
class ComState:
    """Position, velocity and acceleration of the centre of mass, each (3,) [m, m/s, m/s^2]."""

    p: Floats
    v: Floats
    a: Floats = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True, eq=False)
class SupportPhase:
    """A period with constant feet in contact.

    Attributes:
        duration: [s].
        polygon: (k, 3) positions of these feet, in any order: none in flight, one, two, or more [m].
    """

    duration: float
    polygon: Floats

    @property
    def is_flight(self) -> bool:
        """Whether no foot is in contact."""
        return len(self.polygon) == 0


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """The path pi that regularises motions: one quintic over the whole horizon.

    Attributes:
        start: its initial state. That of `MotionPlanner` is above the mean centre of the feet as seen from
            the body, with the commanded velocity and no acceleration.
        end: its final state. `arc.arc` computes the displacement (7).
    """

    start: ComState
    end: ComState


@dataclass(frozen=True, eq=False)
class ComProblem:
    """One motion optimisation, in world axes with z up.

    Attributes:
        phases: which feet are in contact when; at least one phase.
        start: of the centre of mass. Position and velocity are fixed; the acceleration only has a weight,
            because the ground forces that caused it may differ from the next ones.
        path: the path pi. Its end is also the desired final position (7) and velocity.
        ground_point: (3,) a point of the ground, preferably below the robot [m].
        normal: (3,) of the ground.
        height: of the centre of mass above the ground, the scale of all lengths [m].
        g: gravity, along -z [m/s^2].
        time: start of the first phase [s].
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
        """Duration of all phases [s]."""
        return sum(phase.duration for phase in self.phases)

    def check(self) -> None:
        """Raise ArgumentError if an entry is not finite, has a wrong shape, or is invalid."""
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
    """Weights of the cost, of squares in units of h and sqrt(h / g), along and normal to the ground.

    Attributes:
        acceleration: of the integral of squared accelerations (6).
        final_position: of the distance from the end of the path (7).
        final_velocity: likewise for the velocity.
        path_position: of the integral of the squared distance from the path.
        path_velocity: likewise for the velocity.
        path_height: of the integral of the squared height above the path, instead of path_position.
        start_acceleration: of the squared change of the initial acceleration.
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
    """Settings of the optimisation. Lengths are in heights h, accelerations in g.

    Attributes:
        weights: of the cost.
        samples: per segment, including its ends, at which inequalities hold.
        n_ineq: number of initial samples of each segment with soft constraints on the zero-moment point; None
            for all. The literature often softens only some at the start, which may be infeasible.
        lambda_lin: linear cost of a slack of the zero-moment point, or of friction.
        lambda_quad: its quadratic cost.
        height_lin: linear cost of a slack of the height (8).
        height_quad: its quadratic cost.
        height_band: half the width of the band around the height of the path without cost.
        margin: by which support polygons are shrunk, and the strips for two feet are shortened.
        line_width: half the width of the strip for two feet.
        mu: assumed friction; accelerations stay within the pyramid inside its cone.
        least_load: smallest normal force of the ground in stance, in weights, if there is a flight phase. It
            decreases to 0 towards it.
        steady_load: the same if there is no flight phase, relative to the force on a body at rest.
            The slack of the zero-moment point is multiplied by the load. With a small bound, the cheapest
            motion after a push would unload the feet, and the robot would hop.
        shortest: duration below which a stance phase is a cubic, in sqrt(h / g).
        iterations: maximum number of iterations of the sequential quadratic program.
        tolerance: relative change of the merit below which it has converged.
        most_slack: largest distance of the zero-moment point from its region in an accepted motion.
        time_limit: time after which no further iteration starts; None for no limit. With a limit, results
            depend on the load of the machine, and runs are not bit-identical [s].
    """

    weights: ComWeights = field(default_factory=ComWeights)
    samples: int = 6
    n_ineq: int | None = None
    lambda_lin: float = 20.0
    lambda_quad: float = 200.0
    height_lin: float = 2.0
    height_quad: float = 100.0
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
        """Raise ArgumentError if a setting is invalid."""
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
