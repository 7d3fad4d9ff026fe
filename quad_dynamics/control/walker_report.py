# SPDX-License-Identifier: Apache-2.0
"""What a walker tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.array_types import Floats

Vec3 = tuple[float, float, float]


@dataclass
class Counts:
    """What happened since the reset.

    Attributes:
        updates: calls of `update`.
        failures: solves without a result.
        limited: solves in which the limits of the torques could not be met together with the contacts.
        touchdowns: feet that came down.
        early: of these, before their time.
        late: feet that were not down in time.
        lost: feet that lost the ground.
        clipped: commands beyond what is allowed.
        plans: that were made.
        plan_failures: of these, for which the motion optimisation found nothing.
        kept_plans: of these, where the plan before was kept.
        stale_plans: times that no plan of somebody else came in time.
        ignored_forces: updates with forces of the feet that are too wrong to be used.
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
        total: of all.
    """

    terms: float = 0.0
    plan: float = 0.0
    solve: float = 0.0
    setpoint: float = 0.0
    total: float = 0.0


@dataclass(eq=False)
class Plan:
    """What a walker wants, in world axes.

    Attributes:
        time: of the state that it was made for [s].
        phase: 'rise', 'stand', 'walk' or 'stop'.
        command: (vx, vy, wz) that is followed, after its ramp [m/s, m/s, rad/s].
        com: (3,) wanted centre of mass [m].
        com_velocity: (3,) [m/s].
        yaw: wanted heading [rad].
        contact: of each leg: 'stance', 'swing', 'early', 'late' or 'lost'.
        footholds: (legs, 3) where the centres of the feet are down, or will come down [m].
        feet: (legs, 3) where they should be now [m].
        forces: (legs, 3) that the ground should exert on the feet [N].
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
