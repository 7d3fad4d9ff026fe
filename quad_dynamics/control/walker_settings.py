# SPDX-License-Identifier: Apache-2.0
"""All settings of the walking controller, each declared once: default, unit, meaning, bounds.

Settings without a unit are relative to the scale of the robot: lengths in leg lengths l, times in
sqrt(l / g), velocities in sqrt(g l). So the same numbers suit robots of all sizes.
"""

# ruff: noqa: RUF009 (param returns what dataclasses.field returns)

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.control.settings import ControlSettings
from quad_dynamics.model.urdf import Vector3
from quad_dynamics.parameters.parameter import param
from quad_dynamics.planning.gait import GAITS

PRIORITIES = ('strict', 'weighted')
PLANNERS = ('com_splines', 'simple', 'external')


@dataclass(frozen=True)
class WalkerSettings(ControlSettings):
    """Settings of walking. They are immutable; `replace` returns a changed copy."""

    mu: float = param(
        0.5, 'friction coefficient assumed for the feet', unit='-', low=0.0, high=5.0, dynamic=True
    )
    gait: str = param('trot', 'gait at the start', choices=tuple(GAITS), dynamic=True)
    stand_at_zero: bool = param(
        True, 'stop and stand while the command is zero; false: keep stepping in place', dynamic=True
    )
    priorities: str = param(
        'strict',
        'strict: forces have a lower priority than the tasks; weighted: one program with weights',
        choices=PRIORITIES,
    )
    delay: float = param(
        0.0035,
        'expected mean time from a measurement until its torques act; joint targets are predicted by it',
        unit='s',
        low=0.0,
        high=0.05,
        dynamic=True,
    )
    # ------------------------------------------------------------ planning
    planner: str = param(
        'com_splines',
        'com_splines: optimised splines of the centre of mass and footholds; simple: straight motion of the '
        'body and footholds from its velocity; external: plans of another node',
        choices=PLANNERS,
    )
    plan_period: float = param(0.02, 'time between two plans', unit='s', low=0.002, high=1.0)
    plan_delay: float = param(
        0.01, 'delay from the state of a plan until it is followed', unit='s', low=0.0, high=0.2
    )
    plan_timeout: float = param(
        0.25, 'age of the latest external plan after which the robot stops', unit='s', above=0.0
    )
    plan_iterations: int = param(2, 'maximum number of quadratic programs per plan', low=1, high=50)
    plan_time_limit: float = param(
        0.0,
        'wall-clock time after which no further quadratic program is started; 0: no limit; otherwise, runs '
        'may differ',
        unit='s',
        low=0.0,
        high=1.0,
    )
    n_ineq: int = param(
        6,
        'number of initial samples of each phase with soft constraints on the zero-moment point',
        low=0,
        high=6,
    )
    lambda_lin: float = param(
        20.0,
        'linear cost of the slack of the zero-moment point, in heights of the centre of mass',
        unit='-',
        low=0.0,
    )
    lambda_quad: float = param(200.0, 'quadratic cost of the same slack', unit='-', above=0.0)
    # ------------------------------------------------------------ body
    body_height: float = param(
        0.0,
        'lift of the body above its standing height, in leg lengths',
        unit='-',
        low=-0.4,
        high=0.2,
        dynamic=True,
    )
    body_pitch: float = param(
        0.0,
        'pitch of the body relative to the ground; positive: nose down',
        unit='rad',
        low=-0.4,
        high=0.4,
        dynamic=True,
    )
    # ------------------------------------------------------------ commands
    max_velocity: Vector3 = param(
        (1.3, 0.5, 0.4),
        'largest command: forward and sideways in sqrt(g l), turning in sqrt(g / l)',
        unit='-',
        low=0.0,
        high=10.0,
        dynamic=True,
    )
    max_acceleration: Vector3 = param(
        (0.3, 0.3, 0.3),
        'largest rate of change of the command, in g and g / l',
        unit='-',
        above=0.0,
        high=10.0,
        dynamic=True,
    )
    stop_acceleration: float = param(
        0.4,
        'the same when the command is zero or too old',
        unit='-',
        above=0.0,
        high=10.0,
        dynamic=True,
    )
    # ------------------------------------------------------------ steps
    step_height: float = param(
        0.2, 'step height, in leg lengths', unit='-', above=0.0, high=0.6, dynamic=True
    )
    touchdown_depth: float = param(
        0.01,
        'depth below the ground at which a step ends, in leg lengths',
        unit='-',
        low=0.0,
        high=0.2,
        dynamic=True,
    )
    capture_gain: float = param(
        0.8,
        'share of the offset to the capture point that is added to footholds',
        unit='-',
        low=0.0,
        high=2.0,
        dynamic=True,
    )
    largest_step: float = param(
        0.6,
        'largest distance of a foothold from the point below its hip, in leg lengths',
        unit='-',
        above=0.0,
        high=1.5,
        dynamic=True,
    )
    lean_gain: float = param(
        0.3,
        'rate at which footholds shift towards the lean of the body, in leg lengths per second',
        unit='1/s',
        low=0.0,
        dynamic=True,
    )
    # ------------------------------------------------------------ body
    com_stiffness: Vector3 = param(
        (1.8, 1.8, 3.6),
        'position gains of the centre of mass, in g / l',
        unit='-',
        low=0.0,
        high=100.0,
        dynamic=True,
    )
    com_damping: Vector3 = param(
        (2.1, 2.1, 3.1),
        'velocity gains of the centre of mass, in sqrt(g / l)',
        unit='-',
        low=0.0,
        high=50.0,
        dynamic=True,
    )
    angular_stiffness: Vector3 = param(
        (10.0, 10.0, 3.6),
        'position gains of the orientation, in g / l',
        unit='-',
        low=0.0,
        high=100.0,
        dynamic=True,
    )
    angular_damping: Vector3 = param(
        (6.0, 6.0, 2.8),
        'velocity gains of the orientation, in sqrt(g / l)',
        unit='-',
        low=0.0,
        high=50.0,
        dynamic=True,
    )
    swing_stiffness: float = param(
        12.0, 'position gain of swing feet, in g / l', unit='-', low=0.0, high=500.0, dynamic=True
    )
    swing_damping: float = param(
        7.0, 'velocity gain of swing feet, in sqrt(g / l)', unit='-', low=0.0, high=100.0, dynamic=True
    )
    contact_damping: float = param(
        3.5, 'velocity gain of stance feet against sliding, in sqrt(g / l)', unit='-', low=0.0, dynamic=True
    )
    height_integral: float = param(
        0.3, 'integral gain of the height, in (g / l)^1.5', unit='-', low=0.0, high=10.0, dynamic=True
    )
    tilt_integral: float = param(
        1.5, 'integral gain of roll and pitch, in (g / l)^1.5', unit='-', low=0.0, high=10.0, dynamic=True
    )
    velocity_integral: float = param(
        0.4, 'gain of the velocity correction, in sqrt(g / l)', unit='-', low=0.0, high=10.0, dynamic=True
    )
    force_limit: float = param(
        2.0,
        'largest normal force of a foot, relative to the weight',
        unit='-',
        above=0.0,
        high=20.0,
        dynamic=True,
    )
