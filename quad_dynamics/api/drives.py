# SPDX-License-Identifier: Apache-2.0
"""The joint drives of a robot: motor limits, friction and default gains."""

from __future__ import annotations

import numpy as np

from quad_dynamics.api.dynamics import mass_matrix
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.model.leg_kinematics import contact_ball, moving_joints
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

# The share of the weight that a leg carries, at a lever arm of the leg's length, bends a joint by 1 / STIFF
# [rad].
STIFF = 10.0
# Damping relative to the critical damping of a leg that carries its share of the robot.
DAMPED = 0.3
# Largest fraction of a free joint's velocity that drives may remove in a time step, so that they do not
# oscillate: in the standing pose, and in the pose of the legs in which the joint has the least inertia (2 is
# the stability limit).
GENTLE, ROUGH = 0.5, 0.9
# Poses of the legs that are tried: the last two joints of each leg rotate by up to _TURN to both sides, in
# _POSES steps.
_TURN, _POSES = 2.4, 25
# Typical friction relative to the effort limit [s/rad, -], and the effort limit that is assumed if there is
# none, in weights of the robot times 1 m [m].
_USUAL_VISCOUS, _USUAL_COULOMB, _USUAL_EFFORT = 6e-4, 0.012, 0.2


def default_gains(model: Model, dt: float = 1e-3) -> tuple[Floats, Floats]:
    """Gains (kp, kd), each (nj,), with which a robot holds its pose.

    With mass m, leg length l and n legs, kp = STIFF m g l / n, and kd is DAMPED of the critical damping of
    the inertia m l^2 / n on that spring. Both are reduced if a joint is so light that such gains would make
    it oscillate in time steps of dt, when standing or with the legs folded. For a prismatic joint they are
    divided by l^2.

    Args:
        model: robot.
        dt: time step of the drives [s].
    """
    length, legs = leg_length(model), max(len(model.foot_names), 1)
    inertia = model.total_mass * length**2 / legs
    kp = np.full(model.nj, STIFF * gravity_norm(model) / length * inertia)
    kd = 2.0 * DAMPED * np.sqrt(kp * inertia)
    scale = np.where(model.is_prismatic, length**-2, 1.0)
    free = _free_inertia(model, _leg_poses(model))
    most = np.minimum(GENTLE * free[0], ROUGH * free.min(axis=0))
    return np.minimum(kp * scale, (GENTLE / dt) ** 2 * free[0]), np.minimum(kd * scale, most / dt)


def _leg_poses(model: Model) -> Floats:
    """(N, nq) the resting pose, and others with all legs folded and rotated in the same way."""
    q = resting_pose(model)
    turns = np.linspace(-_TURN, _TURN, _POSES)
    poses = np.repeat(q[None], 1 + _POSES**2, axis=0)
    first = model.nq - model.nj
    for leg in model.legs:
        joints = moving_joints(model, leg)
        if len(joints) > 1:
            hip, knee = (first + j for j in joints[-2:])
            poses[1:, hip] += np.repeat(turns, _POSES)
            poses[1:, knee] += np.tile(turns, _POSES)
    poses[1:, first:] = np.clip(poses[1:, first:], model.q_min, model.q_max)
    return poses


def _free_inertia(model: Model, q: Floats) -> Floats:
    """(N, nj) inertia seen by a joint's torque in N poses while all other joints are free."""
    inverse = np.linalg.inv(mass_matrix(model, q))
    return np.asarray(1.0 / np.diagonal(inverse, axis1=-2, axis2=-1)[:, model.nv - model.nj :])


def leg_length(model: Model) -> float:
    """Height of the hips above the feet when standing; without feet, the reach of the robot [m]."""
    q = resting_pose(model)
    if model.floating_base and model.foot_names:
        heights = [
            hip_position(model, q, leg)[2] - foot_position(model, q, leg.foot)[2]
            for leg in model.legs
            if leg.joint_indices
        ]
        return float(max(np.mean(heights), 1e-3)) if heights else 1e-3
    origin = frame_pose(model, q, model.base_name)[1]
    reach = [np.linalg.norm(frame_pose(model, q, link)[1] - origin) for link in model.frames]
    return max(1e-3, float(np.max(reach)))


def foot_position(model: Model, q: Floats, foot: str) -> Floats:
    """(3,) or (N, 3) centre of the contact ball of a foot, in one pose or N, in world axes [m]."""
    R, p = frame_pose(model, q, foot)
    return np.asarray(p + R @ contact_ball(model, foot)[0])


def hip_position(model: Model, q: Floats, leg: Leg) -> Floats:
    """(3,) origin of a leg's first joint in a pose, in world axes [m]."""
    return np.asarray(
        frame_pose(model, q, model.body_names[leg.joint_indices[0] + int(model.floating_base)])[1]
    )


def resting_pose(model: Model) -> Floats:
    """(nq,) the standing pose, or the neutral pose if there is none; a copy."""
    return np.array(model.neutral if model.standing is None else model.standing)


def gravity_norm(model: Model) -> float:
    """Magnitude of gravity; that of the earth if the model has none [m/s^2]."""
    return float(np.linalg.norm(model.gravity)) or 9.81


def joint_friction(model: Model) -> tuple[Floats, Floats]:
    """Viscous and Coulomb friction of the joints, each (nj,): the model's plus that of the motors."""
    motors = [model.description.motors.get(name) for name in model.joint_names]
    viscous = model.viscous + np.array([motor.damping if motor else 0.0 for motor in motors])
    return viscous, model.coulomb + np.array([motor.dry_friction if motor else 0.0 for motor in motors])


def typical_friction(model: Model) -> tuple[Floats, Floats]:
    """Viscous and Coulomb friction (nj,) of the URDF; typical values if it has none."""
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    effort = np.minimum(model.effort_limit, _USUAL_EFFORT * weight)  # files without limits have 1000 N m
    return (
        np.where(model.viscous > 0.0, model.viscous, _USUAL_VISCOUS * effort),
        np.where(model.coulomb > 0.0, model.coulomb, _USUAL_COULOMB * effort),
    )


def motor_limits(model: Model) -> tuple[Floats, Floats, Floats]:
    """Maximum torque [N m], stall torque [N m] and its decrease with speed [N m s/rad], all at the joints.

    The torque of a three-phase motor is 1.5 KT i, its back-EMF is 2 KT per rad/s of the rotor, and the
    winding voltage is limited by the battery.
    """
    effort = model.effort_limit.copy()
    stall, slope = np.full(model.nj, np.inf), np.zeros(model.nj)
    for j, name in enumerate(model.joint_names):
        motor = model.description.motors.get(name)
        if motor is None:
            continue
        gear = abs(float(model.rotor_gear[j]))
        effort[j] = min(effort[j], gear * motor.torque_limit)
        stall[j] = gear * 1.5 * motor.torque_constant * motor.voltage / motor.resistance
        slope[j] = gear**2 * 3.0 * motor.torque_constant**2 / motor.resistance
    return effort, stall, slope
