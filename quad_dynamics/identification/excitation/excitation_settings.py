# SPDX-License-Identifier: Apache-2.0
"""Settings of the design of exciting motions."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet

CRITERIA = ('d-optimal', 'condition')
MOST_POINTS = 3000  # of a trajectory that force_node accepts


@dataclass(frozen=True)
class ExcitationSettings(ParameterSet):
    """Settings of `quad_dynamics excite`."""

    duration: float = param(20.0, 'of the motion without swings', unit='s', low=1.0, high=600.0)
    swing: float = param(
        8.0,
        'time that each leg swings in the air after that, where a robot stands; 0: none',
        unit='s',
        low=0.0,
        high=60.0,
    )
    rate: float = param(
        25.0,
        'points of the trajectory each second; who follows it interpolates by polynomials of order five',
        unit='Hz',
        low=5.0,
        high=1000.0,
    )
    period: float = param(
        5.0,
        'after which the motion repeats; the lowest frequency is 1 / period',
        unit='s',
        low=0.5,
        high=60.0,
    )
    harmonics: int = param(6, 'of the Fourier series; the highest is harmonics / period', low=2, high=30)
    criterion: str = param(
        'd-optimal',
        'd-optimal: smallest volume of the confidence ellipsoid; condition: smallest condition number',
        choices=CRITERIA,
    )
    seed: int = param(0, 'of the motions that the search begins with', low=0, high=2**63 - 1)
    share: float = param(
        0.8, 'share of the limits of velocity and torque that may be used', unit='-', above=0.0, high=1.0
    )
    mu: float = param(0.3, 'friction that the feet may use', unit='-', above=0.0, high=2.0)
    lead: float = param(
        2.0, 'time to go from wherever the robot is to the resting pose', unit='s', low=0.1, high=60.0
    )
    starts: int = param(12, 'random motions, of which the best is improved', low=1, high=1000)
    iterations: int = param(48, 'steps of the search', low=1, high=10_000)

    def _across(self) -> list[str]:
        problems = []
        if self.duration < self.period:
            problems.append(
                f'duration is {self.duration:g} s; expected at least one period of {self.period:g} s'
            )
        if self.duration * self.rate > MOST_POINTS:
            problems.append(
                f'duration times rate is {self.duration * self.rate:g} points; expected at most '
                f'{MOST_POINTS}, which is what force_node takes'
            )
        if 0.0 < self.swing < 1.0:
            problems.append(f'swing is {self.swing:g} s; expected 0, or at least 1 s')
        if self.harmonics / self.period > 0.1 * self.rate:
            problems.append(
                f'the highest frequency, harmonics / period, is {self.harmonics / self.period:g} Hz; '
                f'expected at most a tenth of the rate of {self.rate:g} Hz'
            )
        return problems
