# SPDX-License-Identifier: Apache-2.0
"""All settings of the walking controller, each declared once: default, unit, meaning, bounds.

Where a setting has the unit of a ratio, the scale is that of the robot: lengths in leg lengths l, times in
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
    """Everything that can be set about walking. It never changes; `replace` makes another one."""

    mu: float = param(0.5, 'friction that the feet may count on', unit='-', low=0.0, high=5.0, dynamic=True)
    gait: str = param('trot', 'gait at the start', choices=tuple(GAITS), dynamic=True)
    stand_at_zero: bool = param(
        True, 'stop and stand while the command is zero; else go on stepping in place', dynamic=True
    )
    priorities: str = param(
        'strict',
        'strict: forces are chosen on a level below the tasks; weighted: one program with weights',
        choices=PRIORITIES,
    )
    delay: float = param(
        0.0035,
        'expected time from a measurement until its torques act on average, which joint targets look ahead',
        unit='s',
        low=0.0,
        high=0.05,
        dynamic=True,
    )
    # ------------------------------------------------------------ planning
    planner: str = param(
        'com_splines',
        'who plans. com_splines: splines of the centre of mass and footholds by optimisation; simple: a '
        'straight way of the body and footholds of its velocity; external: plans come from outside',
        choices=PLANNERS,
    )
    plan_period: float = param(0.02, 'between two plans', unit='s', low=0.002, high=1.0)
    plan_delay: float = param(
        0.01, 'from the state of a plan until it is followed', unit='s', low=0.0, high=0.2
    )
    plan_timeout: float = param(
        0.25, 'age of the newest plan from outside after which the robot stops by itself', unit='s', above=0.0
    )
    plan_iterations: int = param(2, 'quadratic programs of a motion optimisation, at most', low=1, high=50)
    plan_time_limit: float = param(
        0.0,
        'wall-clock time after which no further one of them begins; 0: none; else runs may differ',
        unit='s',
        low=0.0,
        high=1.0,
    )
    n_ineq: int = param(
        6, 'samples of each phase, from its first, at which the zero-moment point is softened', low=0, high=6
    )
    lambda_lin: float = param(
        20.0, 'cost of a slack of the zero-moment point, in heights of the centre of mass', unit='-', low=0.0
    )
    lambda_quad: float = param(200.0, 'cost of its square', unit='-', above=0.0)
    # ------------------------------------------------------------ body
    body_height: float = param(
        0.0,
        'lift of the body above the height at which it stands, over the length of a leg',
        unit='-',
        low=-0.4,
        high=0.2,
        dynamic=True,
    )
    body_pitch: float = param(
        0.0,
        'pitch of the body to the ground; above 0, it looks down',
        unit='rad',
        low=-0.4,
        high=0.4,
        dynamic=True,
    )
    # ------------------------------------------------------------ commands
    max_velocity: Vector3 = param(
        (1.3, 0.5, 0.4),
        'largest command forward and sideways, and of turning, in sqrt(g l) and sqrt(g / l)',
        unit='-',
        low=0.0,
        high=10.0,
        dynamic=True,
    )
    max_acceleration: Vector3 = param(
        (0.3, 0.3, 0.3),
        'change of the command within a second, in g and g / l',
        unit='-',
        above=0.0,
        high=10.0,
        dynamic=True,
    )
    stop_acceleration: float = param(
        0.4,
        'the same where the command is zero, or too old',
        unit='-',
        above=0.0,
        high=10.0,
        dynamic=True,
    )
    # ------------------------------------------------------------ steps
    step_height: float = param(
        0.2, 'height of a step over the length of a leg', unit='-', above=0.0, high=0.6, dynamic=True
    )
    touchdown_depth: float = param(
        0.01,
        'depth below the ground at which a step ends, over the length of a leg',
        unit='-',
        low=0.0,
        high=0.2,
        dynamic=True,
    )
    capture_gain: float = param(
        0.8,
        'how much of the way to the capture point feet go beyond where the velocity puts them',
        unit='-',
        low=0.0,
        high=2.0,
        dynamic=True,
    )
    largest_step: float = param(
        0.6,
        'distance of a foothold from below its hip, over the length of a leg',
        unit='-',
        above=0.0,
        high=1.5,
        dynamic=True,
    )
    lean_gain: float = param(
        0.3,
        'rate at which feet move to where the body leans, in l a second',
        unit='1/s',
        low=0.0,
        dynamic=True,
    )
    # ------------------------------------------------------------ body
    com_stiffness: Vector3 = param(
        (1.8, 1.8, 3.6), 'of the centre of mass, in g / l', unit='-', low=0.0, high=100.0, dynamic=True
    )
    com_damping: Vector3 = param(
        (2.1, 2.1, 3.1), 'of the centre of mass, in sqrt(g / l)', unit='-', low=0.0, high=50.0, dynamic=True
    )
    angular_stiffness: Vector3 = param(
        (6.0, 6.0, 3.6), 'of the orientation, in g / l', unit='-', low=0.0, high=100.0, dynamic=True
    )
    angular_damping: Vector3 = param(
        (3.5, 3.5, 2.8), 'of the orientation, in sqrt(g / l)', unit='-', low=0.0, high=50.0, dynamic=True
    )
    swing_stiffness: float = param(
        12.0, 'of the feet that swing, in g / l', unit='-', low=0.0, high=500.0, dynamic=True
    )
    swing_damping: float = param(
        7.0, 'of the feet that swing, in sqrt(g / l)', unit='-', low=0.0, high=100.0, dynamic=True
    )
    contact_damping: float = param(
        3.5, 'with which feet that are down stop sliding, in sqrt(g / l)', unit='-', low=0.0, dynamic=True
    )
    height_integral: float = param(
        0.3, 'of the height, in (g / l)^1.5', unit='-', low=0.0, high=10.0, dynamic=True
    )
    tilt_integral: float = param(
        1.0, 'of roll and pitch, in (g / l)^1.5', unit='-', low=0.0, high=10.0, dynamic=True
    )
    velocity_integral: float = param(
        0.4, 'of the velocity, in sqrt(g / l)', unit='-', low=0.0, high=10.0, dynamic=True
    )
    force_limit: float = param(
        2.0, 'largest normal force of a foot over the weight', unit='-', above=0.0, high=20.0, dynamic=True
    )
