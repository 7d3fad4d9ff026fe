# SPDX-License-Identifier: Apache-2.0
"""What a walker reports about itself."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.array_types import Floats

Vec3 = tuple[float, float, float]


@dataclass
class Counts:
    """Events since the reset.

    Attributes:
        updates: calls of `update`.
        failures: solves without a result.
        limited: solves in which the torque limits were not feasible together with the contacts.
        touchdowns: touch-downs of feet.
        early: early touch-downs.
        late: feet that did not touch down in time.
        lost: feet that lost contact.
        clipped: commands beyond the limits.
        plans: plans that were made.
        plan_failures: of these, those without a solution of the motion optimisation.
        kept_plans: of these, those in which the previous plan was kept.
        stale_plans: how often no external plan arrived in time.
        ignored_forces: updates with foot forces too inaccurate to be used.
    """

    updates: int = 0
    failures: int = 0
    limited: int = 0
    touchdowns: int = 0
    early: int = 0
    late: int = 0
    lost: int = 0
    clipped: int = 0
    plans: int = 0
    plan_failures: int = 0
    kept_plans: int = 0
    stale_plans: int = 0
    ignored_forces: int = 0


@dataclass
class Times:
    """Wall-clock times of the last update [s].

    Attributes:
        terms: of the dynamics.
        plan: of contacts, references and tasks.
        solve: of whole-body control.
        setpoint: of joint targets and limits.
        total: of everything.
    """

    terms: float = 0.0
    plan: float = 0.0
    solve: float = 0.0
    setpoint: float = 0.0
    total: float = 0.0


@dataclass(eq=False)
class Plan:
    """Current targets of a walker, in world axes.

    Attributes:
        time: of the state that they were made for [s].
        phase: 'rise', 'stand', 'walk' or 'stop'.
        command: (vx, vy, wz) after its ramp [m/s, m/s, rad/s].
        com: (3,) desired centre of mass [m].
        com_velocity: (3,) [m/s].
        yaw: desired heading [rad].
        contact: of each leg: 'stance', 'swing', 'early', 'late' or 'lost'.
        footholds: (legs, 3) where the centres of the feet are in contact, or will touch down [m].
        feet: (legs, 3) desired positions now [m].
        forces: (legs, 3) desired ground forces on the feet [N].
        normal: (3,) of the ground.
    """

    time: float
    phase: str
    command: Vec3
    com: Floats
    com_velocity: Floats
    yaw: float
    contact: tuple[str, ...]
    footholds: Floats
    feet: Floats
    forces: Floats
    normal: Floats
