# SPDX-License-Identifier: Apache-2.0
"""Robots, states and tasks for whole-body control."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import plain_quadruped
from cases import Case, load, model_of
from simple_robots import turn

from quad_dynamics.api.drives import gravity_norm, leg_length, resting_pose
from quad_dynamics.control.whole_body import Solution, Tasks, Weights, WholeBodyControl, even_forces

ODD_ROBOTS = ('four_joints', 'arm')
FEET = {
    'none': (False, False, False, False),
    'one': (False, True, False, False),
    'diagonal': (True, False, False, True),
    'three': (True, True, True, False),
    'all': (True, True, True, True),
}
MU = 0.6


@functools.cache
def odd_urdf(name: str) -> str:
    """A quadruped with a joint more: an ankle in every leg, or an arm of one joint on the trunk."""
    ball = plain_quadruped.solid('<sphere radius="0.02"/>')
    if name == 'four_joints':
        shin = plain_quadruped.inertial(0.2, 1e-3, -0.05)
        link = f'<link name="@_foot">{plain_quadruped.inertial(0.1, 2e-4, -0.03)}'
        end = plain_quadruped.solid('<sphere radius="0.02"/>', '0 0 -0.06')
        ankle = plain_quadruped.joint('@_ankle_joint', '@_calf', '@_foot', '0 0 -0.15', '0 1 0')
        return plain_quadruped.quadruped('', f'{link}{end}</link>{ankle}', shin)
    foot = f'<link name="@_foot">{plain_quadruped.inertial(0.05, 1e-5)}{ball}</link>'
    foot += plain_quadruped.joint('@_foot_joint', '@_calf', '@_foot', '0 0 -0.2', '0 1 0', 'fixed')
    text = plain_quadruped.quadruped('', foot)
    arm = f'<link name="arm">{plain_quadruped.inertial(0.8, 5e-3, 0.15)}</link>'
    arm += plain_quadruped.joint('arm_joint', 'trunk', 'arm', '0.1 0 0.1', '0 1 0')
    return text.replace('</robot>', f'{arm}</robot>')


@functools.cache
def robot(name: str) -> Any:
    """A floating quadruped."""
    if name == 'mini_cheetah':
        return load('mini_cheetah')
    return load(odd_urdf(name), floating_base=True) if name in ODD_ROBOTS else model_of(Case(name, True))


@functools.cache
def control(name: str, weights: Weights | None = None, strict: bool = True) -> WholeBodyControl:
    """Whole-body control of a robot, made once."""
    return WholeBodyControl(robot(name), weights, strict)


def state(model: Any, rng: np.random.Generator, bend: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """A pose about the standing one, moving."""
    q = resting_pose(model)
    axis = rng.normal(size=3)
    axis *= 0.5 * rng.uniform(0.0, 0.4) / np.linalg.norm(axis)
    q[3:7] = np.array([*axis, 1.0]) / np.sqrt(1.0 + axis @ axis)
    q[7:] += rng.uniform(-bend, bend, model.nj)
    return q, rng.normal(size=model.nv)


def random_tasks(model: Any, rng: np.random.Generator, down: Any, wild: float = 1.0) -> Tasks:
    """Tasks of the size that walking has, times a factor."""
    g, length = gravity_norm(model), leg_length(model)
    weight = model.total_mass * g
    tilt = rng.normal(scale=0.15, size=2)
    axes = (
        turn([1.0, 0.0, 0.0], tilt[0]) @ turn([0.0, 1.0, 0.0], tilt[1]) @ turn([0, 0, 1], rng.uniform(-3, 3))
    )
    down = np.array(down, dtype=np.bool_)
    limit = np.minimum(model.effort_limit, weight * length)
    feet = wild * rng.normal(scale=g, size=(4, 3))
    feet[down] *= 0.1
    return Tasks(
        com=wild * rng.normal(scale=0.3 * g, size=3),
        angular=wild * rng.normal(scale=0.3 * g / length, size=3),
        feet=feet,
        down=down,
        axes=axes,
        most_force=np.full(4, 2.0 * weight),
        forces=even_forces(weight, down, axes[:, 2]),
        free=rng.normal(scale=5.0, size=model.nj),
        low=-limit,
        high=limit,
    )


def solve(
    qd: Any, name: str, q: np.ndarray, u: np.ndarray, tasks: Tasks, used: Any = None, **options: Any
) -> Solution | None:
    """Whole-body control at a state."""
    model = robot(name)
    R_WB = qd.frame_pose(model, q, model.base_name)[0]
    return (used or control(name)).solve(qd.controller_terms(model, q, u), R_WB, tasks, MU, **options)
