# SPDX-License-Identifier: Apache-2.0
"""Geometry to draw of a plan: support polygons and the path of the zero-moment point (ZMP). Without ROS."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning import support_sequence
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.planning.zmp import zero_moment_point

_LEAST_FORCE = 0.1  # normal force over the weight below which there is no ZMP: in flight


def support_polygons(plan: MotionPlan, feet: Floats) -> list[Floats]:
    """Corners (n, 3) of the support polygons of all phases with two feet down or more, each once [m].

    Args:
        plan: its contacts and footholds.
        feet: (legs, 3) centres of the feet now [m].
    """
    found = support_sequence.support_polygons(
        plan.contacts, feet, plan.footholds, plan.normal, _ground_point(plan, feet)
    )
    different = {corners.tobytes(): corners for corners in found if len(corners) >= 2}
    return list(different.values())


def zmp_path(plan: MotionPlan, feet: Floats, g: float, samples: int) -> Floats:
    """(n, 3) path of the ZMP at the height of the centres of the feet [m].

    Args:
        plan: its centre of mass.
        feet: (legs, 3) centres of the feet now [m].
        g: gravity [m/s^2].
        samples: of the horizon; those in flight are left out.
    """
    way = [plan.com.at(time) for time in np.linspace(plan.time, plan.end, samples)]
    p, a = np.array([one[0] for one in way]), np.array([one[2] for one in way])
    path = zero_moment_point(p, a, plan.normal, _ground_point(plan, feet), g)
    return np.asarray(path[(a @ plan.normal + g * plan.normal[2]) > _LEAST_FORCE * g])


def _ground_point(plan: MotionPlan, feet: Floats) -> Floats:
    """(3,) a point of the plane in which the feet that are down have their centres [m]."""
    standing = feet[plan.contacts.down[0]]
    return np.asarray((standing if len(standing) else plan.footholds).mean(axis=0))
