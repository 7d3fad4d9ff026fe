# SPDX-License-Identifier: Apache-2.0
"""A robot on level ground in MuJoCo, from its URDF, under a controller of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from reference_mujoco import bare_urdf, physical_urdf

from quad_dynamics.api.drives import joint_friction
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.leg_kinematics import foot_balls

DT, EVERY = 1e-3, 2  # time step [s]; steps between two updates of the controller


class MujocoRobot:
    """A robot whose feet are spheres; everything else about contact is MuJoCo's default.

    Attributes:
        model: the compiled model.
        data: its state.
    """

    def __init__(self, robot: Any, mu: float = 0.7) -> None:
        """Build from the URDF of a model of ours.

        Args:
            robot: a floating robot.
            mu: friction of the ground.
        """
        spec = mujoco.MjSpec.from_string(bare_urdf(physical_urdf(robot.to_urdf())))
        spec.worldbody.first_body().add_freejoint()
        spec.option.timestep = DT
        spec.option.gravity = robot.gravity
        friction = [mu, 0.005, 0.0001]
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=friction)
        self._feet: dict[int, int] = {}
        for foot in robot.foot_names:
            frame = robot.frames[foot]
            body = spec.body(robot.body_names[frame.body])
            for ball in foot_balls(robot, foot):
                body.add_geom(
                    name=f'{foot}_{len(body.geoms)}',
                    type=mujoco.mjtGeom.mjGEOM_SPHERE,
                    pos=frame.p + frame.R @ ball[:3],
                    size=[max(ball[3], 1e-3), 0.0, 0.0],
                    friction=friction,
                    mass=0.0,
                    conaffinity=0,  # spheres touch the ground, not each other
                )
        self.model = spec.compile()
        for k, foot in enumerate(robot.foot_names):
            for i in range(self.model.ngeom):
                if self.model.geom(i).name.startswith(f'{foot}_'):
                    self._feet[i] = k
        joints = [self.model.joint(name) for name in robot.joint_names]
        self._iq = [int(joint.qposadr[0]) for joint in joints]
        self._iv = [int(joint.dofadr[0]) for joint in joints]
        self.model.dof_armature[self._iv] = robot.rotor_gear**2 * robot.rotor_inertia
        viscous, coulomb = joint_friction(robot)
        self.model.dof_damping[self._iv], self.model.dof_frictionloss[self._iv] = viscous, coulomb
        self._robot, self._tau = robot, np.zeros(robot.nj)
        self.data = mujoco.MjData(self.model)

    def put(self, q: np.ndarray) -> None:
        """Put the robot to rest at a configuration."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3], self.data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
        self.data.qpos[self._iq] = q[7:]
        mujoco.mj_forward(self.model, self.data)

    def state(self) -> RobotState:
        """What the controller sees."""
        data = self.data
        q = np.concatenate([data.qpos[:3], data.qpos[[4, 5, 6, 3]], data.qpos[self._iq]])
        u = np.concatenate([data.qvel[:6], data.qvel[self._iv]])
        return RobotState(float(data.time), q, u, self.foot_forces(), self._tau.copy())

    def foot_forces(self) -> np.ndarray:
        """(feet, 3) forces of the ground on the feet, in world axes [N]."""
        forces, wrench = np.zeros((len(self._robot.foot_names), 3)), np.empty(6)
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            foot = self._feet.get(int(contact.geom2))
            if foot is not None:
                mujoco.mj_contactForce(self.model, self.data, i, wrench)
                forces[foot] += contact.frame.reshape(3, 3).T @ wrench[:3]
        return forces

    def run(
        self,
        controller: Any,
        duration: float,
        each: Callable[[RobotState, Any], None],
        latency: float = 0.0,
    ) -> None:
        """Let a controller drive the robot for a while.

        Args:
            controller: with `update` and `settings`.
            duration: [s].
            each: called with every state that the controller saw, and its setpoint.
            latency: from a measurement until the drives have the setpoint that was made of it [s].
        """
        kp, kd = drive_gains(self._robot, controller.settings, DT)
        limit = self._robot.effort_limit
        under_way: list[tuple[int, Any]] = []
        for step in range(round(duration / DT)):
            if step % EVERY == 0:
                state = self.state()
                under_way.append((step + round(latency / DT) * (step > 0), controller.update(state)))
                each(state, under_way[-1][1])
            while under_way and under_way[0][0] <= step:
                setpoint = under_way.pop(0)[1]
            tau = setpoint.tau.copy()
            if setpoint.q is not None:
                tau += kp * (setpoint.q - self.data.qpos[self._iq])
            if setpoint.qd is not None:
                tau += kd * (setpoint.qd - self.data.qvel[self._iv])
            self._tau = np.clip(tau, -limit, limit)
            self.data.qfrc_applied[self._iv] = self._tau
            mujoco.mj_step(self.model, self.data)
