# SPDX-License-Identifier: Apache-2.0
"""The robot of a simulator in MuJoCo, with the same parameters, as MuJoCo's users would set it up.

Either with default settings, or *tuned* as an expert would for speed: no implicit damping in the Euler
integrator, a looser tolerance of the solver, no islands, midphase and sensors, and no geometry that never
makes contact.
"""

from __future__ import annotations

from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

import quad_dynamics as qd
from quad_dynamics.terrain.terrain import Box

POINT_RADIUS = 1e-5  # of contact points without a radius: MuJoCo's spheres need one [m]
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class Peer:
    """A robot that stands on a plane with joint-space PD control.

    Time step, friction, bodies, joints, their damping, friction and limits, rotors (as armature) and contact
    points (as spheres, the only geometry) are those of the simulator. Everything else is MuJoCo's default.

    Attributes:
        model: the compiled model.
        data: its state; joints are in the order of ours.
    """

    def __init__(
        self,
        sim: qd.Simulator,
        kp: float,
        kd: float,
        drives: bool = True,
        tuned: bool = False,
        feet_only: bool = False,
    ) -> None:
        """Build from a simulator.

        Args:
            sim: a robot with a floating base on level ground, with boxes on it or without.
            kp: [N m/rad].
            kd: [N m s/rad].
            drives: whether MuJoCo's position actuators compute the torques; if not, controls are torques.
            tuned: configure for speed.
            feet_only: omit the contact points that are not on feet.
        """
        self._robot = sim.model
        self._spec = mujoco.MjSpec()
        self._spec.compiler.degree = False
        self._spec.option.timestep = sim.settings.dt
        self._spec.option.gravity = sim.model.gravity
        self._spec.worldbody.add_geom(
            name='ground',
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0, 0, 1],
            friction=[sim.settings.mu, 0.005, 0.0001],
        )
        self._add_boxes(sim)
        bodies = self._add_bodies()
        for point in sim.contact_points:
            if feet_only and point.link not in sim.model.foot_names:
                continue
            frame = sim.model.frames[point.link]
            bodies[frame.body].add_geom(
                name=point.name,
                type=mujoco.mjtGeom.mjGEOM_SPHERE,
                pos=frame.p + frame.R @ np.array(point.position),
                size=[point.radius or POINT_RADIUS, 0, 0],
                friction=[sim.settings.mu, 0.005, 0.0001],
                conaffinity=0,  # spheres touch the plane, not each other
            )
        self._add_actuators(kp, kd, drives)
        self.model = self._spec.compile()
        if tuned:
            off = mujoco.mjtDisableBit
            for bit in (off.mjDSBL_EULERDAMP, off.mjDSBL_SENSOR, off.mjDSBL_MIDPHASE, off.mjDSBL_ISLAND):
                self.model.opt.disableflags |= bit
            self.model.opt.tolerance = 1e-5
        self.data = mujoco.MjData(self.model)
        places = [int(self.model.joint(name).qposadr[0]) for name in sim.model.joint_names]
        assert places == list(range(7, sim.model.nq)), f'MuJoCo has the joints at {places} of qpos'
        assert np.isclose(self.model.body_mass.sum(), sim.model.total_mass, rtol=1e-9)

    def _add_boxes(self, sim: qd.Simulator) -> None:
        for part in sim.terrain.parts:
            if isinstance(part, Box):
                self._spec.worldbody.add_geom(
                    type=mujoco.mjtGeom.mjGEOM_BOX,
                    size=[0.5 * x for x in part.size],
                    pos=part.position,
                    quat=_quaternion(part.R_WS),
                    friction=[sim.settings.mu, 0.005, 0.0001],
                )

    def _add_bodies(self) -> list[Any]:
        """The tree; bodies in the order of our model."""
        robot = self._robot
        pi = (robot.pi + robot.rotor_pi).reshape(-1, 10)
        base = self._spec.worldbody.add_body(name=robot.body_names[0])
        base.add_freejoint()
        bodies = [base]
        for j, name in enumerate(robot.joint_names):
            body = bodies[int(robot.parents[j]) + 1].add_body(name=robot.body_names[j + 1])
            body.pos, body.quat = robot.joint_p[j], _quaternion(robot.joint_R[j])
            bodies.append(body)
            slides = bool(robot.is_prismatic[j])
            joint = body.add_joint(
                name=name,
                type=mujoco.mjtJoint.mjJNT_SLIDE if slides else mujoco.mjtJoint.mjJNT_HINGE,
                axis=robot.joint_axis[j],
                armature=float(robot.rotor_gear[j] ** 2 * robot.rotor_inertia[j]),
                damping=float(robot.viscous[j]),
                frictionloss=float(robot.coulomb[j]),
            )
            if np.isfinite([robot.q_min[j], robot.q_max[j]]).all():
                joint.range, joint.limited = [robot.q_min[j], robot.q_max[j]], True
        for body, numbers in zip(bodies, pi, strict=True):
            body.mass, body.ipos, body.fullinertia = _inertial(numbers)
            body.explicitinertial = True
        return bodies

    def _add_actuators(self, kp: float, kd: float, drives: bool) -> None:
        for name, effort in zip(self._robot.joint_names, self._robot.effort_limit, strict=True):
            actuator = self._spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            if drives:
                actuator.set_to_position(kp=kp, kv=kd)
            else:
                actuator.set_to_motor()
            if np.isfinite(effort):
                actuator.forcerange, actuator.forcelimited = [-effort, effort], True

    def put(self, q: np.ndarray) -> None:
        """Place the robot at rest at q, in the order of our model."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = q[:3]
        self.data.qpos[3:7] = q[[6, 3, 4, 5]]
        self.data.qpos[7:] = q[7:]

    def rollout(self, control: np.ndarray, steps: int) -> np.ndarray:
        """Advance in MuJoCo's own loop in C, in this thread.

        Args:
            control: (nj,), or (steps, nj) for one per step.
            steps: number of steps.

        Returns:
            (steps, nstate) full states.
        """
        controls = np.broadcast_to(control, (1, steps, self.model.nu))
        states, _ = mujoco.rollout.rollout(
            self.model, self.data, self.state()[None], controls, initial_warmstart=self.data.qacc_warmstart
        )
        return states[0]

    def state(self) -> np.ndarray:
        """(nstate,) the full physical state."""
        state = np.empty(mujoco.mj_stateSize(self.model, _FULL))
        mujoco.mj_getState(self.model, self.data, state, _FULL)
        return state

    def set_state(self, state: np.ndarray) -> None:
        """Restore a state."""
        mujoco.mj_setState(self.model, self.data, state, _FULL)

    def foot_forces(self) -> np.ndarray:
        """(feet, 3) forces of the ground on the feet, in world axes [N]."""
        forces = dict.fromkeys(self._robot.foot_names, np.zeros(3))
        bodies = {self._robot.body_names[self._robot.frames[f].body]: f for f in self._robot.foot_names}
        wrench = np.empty(6)
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            body = self.model.body(self.model.geom_bodyid[contact.geom2]).name
            mujoco.mj_contactForce(self.model, self.data, i, wrench)
            if body in bodies:
                forces[bodies[body]] = forces[bodies[body]] + contact.frame.reshape(3, 3).T @ wrench[:3]
        return np.array(list(forces.values()))


def _inertial(pi: np.ndarray) -> tuple[float, np.ndarray, list[float]]:
    """Mass, centre of mass, and inertia about it in MuJoCo's order and accepted by it.

    MuJoCo rejects inertias with a principal moment above the sum of the others, which some published robots
    have: a multiple of the identity is added to repair them.
    """
    mass, com = float(pi[0]), pi[1:4] / pi[0]
    xx, xy, yy, xz, yz, zz = pi[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia -= mass * (com @ com * np.eye(3) - np.outer(com, com))
    low, middle, high = np.linalg.eigvalsh(inertia)
    inertia += 1.01 * max(high - low - middle, 0.0) * np.eye(3)
    return mass, com, [inertia[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]


def _quaternion(R: np.ndarray) -> np.ndarray:
    """[w, x, y, z]."""
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, R.ravel())
    return quat
