# SPDX-License-Identifier: Apache-2.0
"""Normal forces of the feet that a planned motion of the centre of mass requires."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.planning.contact_schedule import ContactSchedule
from quad_dynamics.planning.motion_plan import ComSpline
from quad_dynamics.planning.zmp import zero_moment_point

_NEAR = 1e-9  # squared distance below which two feet are at the same position [m^2]


def planned_forces(
    com: ComSpline, contacts: ContactSchedule, feet: Floats, mass: float, g: float, normal: Floats
) -> Floats:
    """(phases, legs) forces along the normal of the ground in the middle of each phase [N].

    Their sum is m n(a - g), and their centre of pressure is the zero-moment point if that is between the
    feet, else close to it. If more than two feet leave a choice, forces are as even as possible.

    Args:
        com: the motion.
        contacts: which feet are in contact when.
        feet: (phases, legs, 3) positions of the feet [m].
        mass: of the robot [kg].
        g: gravity, along -z [m/s^2].
        normal: (3,) of the ground, of length 1.
    """
    forces = np.zeros(contacts.down.shape)
    middles = 0.5 * (contacts.times[:-1] + contacts.times[1:])
    for k, (time, down) in enumerate(zip(middles, contacts.down, strict=True)):
        if not down.any():
            continue
        places = feet[k, down]
        p, _, a = com.at(float(time))
        load = max(mass * float(normal @ a + g * normal[2]), 0.0)
        if load > 0.0:
            zmp = zero_moment_point(p, a, normal, places.mean(axis=0), g)
            forces[k, down] = load * force_shares(places, zmp)
    return forces


def force_shares(places: Floats, centre: Floats) -> Floats:
    """(feet,) non-negative shares of a load with sum 1 and a given centre of pressure.

    Two feet share by the lever rule. More feet share with the smallest squared deviation from even shares; a
    foot that would have to pull gets zero, and the others share again.

    Args:
        places: (feet, 3) [m].
        centre: (3,) in the plane of the feet [m].
    """
    shares = np.zeros(len(places))
    left = np.arange(len(places))
    while len(left) > 2:
        arms = places[left] - centre
        # the smallest change x of even shares with sum 0 and arms^T x = -arms^T even
        spread = arms - arms.mean(axis=0)
        wanted = -arms.mean(axis=0)
        found = 1.0 / len(left) + spread @ (np.linalg.pinv(spread.T @ spread, rcond=1e-9) @ wanted)
        if found.min() >= 0.0:
            shares[left] = found
            return shares
        left = np.delete(left, int(found.argmin()))
    if len(left) == 1:
        shares[left] = 1.0
        return shares
    line = places[left[1]] - places[left[0]]
    square = float(line @ line)
    lever = float((centre - places[left[0]]) @ line) / square if square > _NEAR else 0.5
    lever = min(max(lever, 0.0), 1.0)
    shares[left] = 1.0 - lever, lever
    return shares
