# SPDX-License-Identifier: Apache-2.0
"""Warnings about contact points and the standing pose; `inspect` and the nodes report them."""

from __future__ import annotations

import math

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.crouch import foot_heights
from quad_dynamics.model.leg_kinematics import body_poses, foot_balls, frame_in_base, support_margin
from quad_dynamics.model.model import Model

_UNEVEN = 0.01  # relative to the legs' length: feet whose heights differ by more are not on level ground
_LEAST_UNEVEN = 2e-3  # [m]
_MOST_NAMED = 4
_TOO_LARGE = 2.0  # radius of gyration of a body relative to the size of the robot


def contact_doubts(model: Model) -> tuple[str, ...]:
    """Warnings about the contact points and the standing pose, one text each."""
    return (*contact_warnings(model), *standing_doubts(model))


def contact_warnings(model: Model) -> tuple[str, ...]:
    """Warnings about the contact points, one text each."""
    return model._find_points().warnings


def standing_doubts(model: Model) -> tuple[str, ...]:
    """Warnings about the standing pose of a floating robot with legs, one text each."""
    if not model.floating_base or not model.legs:
        return ()
    q = model.standing
    if q is None:
        return ('no standing pose found: a leg cannot reach the ground; add one to the robot description',)
    q = np.array(q)
    return tuple(
        text for check in (_height, _level, _other_parts, _balance, _sluggish) if (text := check(model, q))
    )


def _height(model: Model, q: Floats) -> str:
    hips = [body_poses(model, q[7:], leg.joint_indices[0])[leg.joint_indices[0]][1][2] for leg in model.legs]
    if float(np.mean(hips)) > float(foot_heights(model, q).mean()):
        return ''
    return (
        f'the feet are above the hips in the standing pose (base height {q[2]:.3g} m); is the z axis of the '
        'base link up, as required by REP-103?'
    )


def _level(model: Model, q: Floats) -> str:
    heights = foot_heights(model, q)
    heights = heights - heights.min()
    limit = max(_LEAST_UNEVEN, _UNEVEN * abs(float(q[2])))
    if heights.max() <= limit:
        return ''
    feet = np.array([frame_in_base(model, q[7:], foot)[1][:2] for foot in model.foot_names])
    slope = np.linalg.lstsq(np.column_stack([feet, np.ones(len(feet))]), heights, rcond=None)[0]
    tilt = math.degrees(math.atan(float(np.hypot(slope[0], slope[1]))))
    listed = ', '.join(f'{name} {1e3 * z:.1f} mm' for name, z in zip(model.foot_names, heights, strict=True))
    return (
        f'the feet are at different heights in the standing pose ({listed}): the robot tilts by {tilt:.1f} '
        'degrees'
    )


def _other_parts(model: Model, q: Floats) -> str:
    """Contact points that are lower than all feet."""
    ground = float(foot_heights(model, q).min())
    low: list[str] = []
    for point in model._find_points().points:
        if point.link in model.foot_names:
            continue
        R, p = frame_in_base(model, q[7:], point.link)
        if float(p[2] + R[2] @ np.array(point.position)) - point.radius < ground - _LEAST_UNEVEN:
            low.append(point.name)
    if not low:
        return ''
    more = f' and {len(low) - _MOST_NAMED} more' if len(low) > _MOST_NAMED else ''
    return f'in the standing pose, other parts are lower than the feet: {", ".join(low[:_MOST_NAMED])}{more}'


def _balance(model: Model, q: Floats) -> str:
    if len(model.legs) < 3:
        return ''
    feet = []
    for foot in model.foot_names:
        R, p = frame_in_base(model, q[7:], foot)
        feet.append((p + R @ foot_balls(model, foot)[:, :3].mean(axis=0))[:2])
    margin = support_margin(_centre_of_mass(model, q)[:2], np.array(feet))
    if margin >= 0.0:
        return ''
    return (
        f'in the standing pose, the centre of mass is {-1e3 * margin:.0f} mm outside the support polygon: '
        'the robot falls over'
    )


def _sluggish(model: Model, q: Floats) -> str:
    """Bodies whose inertia would require a much larger robot."""
    places = [body_poses(model, q[7:], j)[j][1] for j in range(model.nj)]
    size = max(float(np.linalg.norm(np.ptp(places, axis=0))), 1e-9)
    found: list[str] = []
    for name, pi in zip(model.body_names, model.pi.reshape(-1, 10), strict=True):
        # of the trace about the com: I_xx + I_yy + I_zz = 2 m (x^2 + y^2 + z^2)
        trace = pi[4] + pi[6] + pi[9] - 2.0 * float(pi[1:4] @ pi[1:4]) / max(float(pi[0]), 1e-300)
        gyration = math.sqrt(max(0.5 * float(trace) / max(float(pi[0]), 1e-300), 0.0))
        if gyration > _TOO_LARGE * size:
            found.append(f'{name} ({gyration:.3g} m)')
    if not found:
        return ''
    more = f' and {len(found) - _MOST_NAMED} more' if len(found) > _MOST_NAMED else ''
    return (
        'the inertia of some bodies is too large for the robot to move them (radius of '
        f'gyration): {", ".join(found[:_MOST_NAMED])}{more}'
    )


def _centre_of_mass(model: Model, q: Floats) -> Floats:
    """(3,) in the base's frame [m], rotors included."""
    pi = (model.pi + model.rotor_pi).reshape(-1, 10)
    moment = pi[0, 1:4].copy()
    for j in range(model.nj):
        R, p = body_poses(model, q[7:], j)[j]
        moment += pi[1 + j, 0] * p + R @ pi[1 + j, 1:4]
    return np.asarray(moment / pi[:, 0].sum())
