# SPDX-License-Identifier: Apache-2.0
"""A walking quadruped: planning, and whole-body control.

    walker = Walker(model)
    walker.reset(state)
    walker.command(0.5, 0.0, 0.0)
    setpoint = walker.update(state)     # 500 times a second

It has no clock and no threads, and does not need ROS: time is that of the states. It is blind: it knows the
ground only from where its feet have been in contact.

| module | content |
|---|---|
| `walker_settings` | all settings |
| `robot_view` | a state with centre of mass, heading and motion of the feet |
| `gait_planner` | from the command to the references: when to walk, contacts, plans |
| `stride_planner`, `plan_follower` | when plans are made, and which one is followed |
| `foot_speed` | how fast the robot can walk before its joints are too slow |
| `force_check` | whether the force sensors of the feet are accurate enough |
| `stepping` | the legs: contacts, footholds, and the motion of the feet |
| `leg_contact` | contact states of the feet, from schedule, force and velocity |
| `swing` | swing trajectories |
| `skid_steering` | turning of robots whose legs move their feet only in parallel planes |
| `body_reference` | reference of the body, and the accelerations that track it |
| `velocity_correction` | what is added to the command so that the body moves as commanded |
| `whole_body` | joint torques for all of these |
| `walker_report` | counts, computation times and targets that a walker reports |

Gaits, plans and footholds are in `quad_dynamics.planning`.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.controller import ControllerTerms
from quad_dynamics.api.drives import joint_friction, resting_pose
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.control.gait_planner import GaitPlanner
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.robot_view import RobotView
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.stepping import FootTargets
from quad_dynamics.control.walker_report import Counts, Plan, Times
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.control.whole_body import Solution, Tasks, WholeBodyControl, even_forces
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan

__all__ = ['Walker', 'WalkerSettings']

Vec3 = tuple[float, float, float]

_LARGEST_BEND = 0.3  # largest distance of a joint from its target [rad or m]
_SLOW = 0.3  # velocity above which dry friction is fully compensated [rad/s or m/s]
_HOLD_TIME = 0.05  # for which the last torques are held after a failed solve, before damping [s]
_POSTURE = (4.0, 4.0)  # stiffness and damping of joints that the feet do not determine, in g / l, sqrt(g / l)


class Walker:
    """Stands up, stands, and walks at a commanded velocity.

    Attributes:
        settings: all settings.
        standing_height: target height of the base above the ground [m].
        times: computation times of the last update.
    """

    def __init__(self, model: Model, settings: WalkerSettings | None = None, dt: float = 1e-3) -> None:
        """Prepare everything for a robot.

        Args:
            model: a quadruped with a standing pose.
            settings: None for the defaults.
            dt: time step of the drives, which determines their default gains [s].

        Raises:
            ArgumentError: the robot does not have four legs, or has no standing pose.
        """
        self._model, self._dt, self.settings = model, dt, settings or WalkerSettings()
        self._planner = GaitPlanner(model, self.settings)
        self._guard = Guard(model, self.settings, dt)
        self._rise = StandUp(model, self.settings)
        self._geometry = self._planner.geometry
        self.standing_height = self._geometry.base_height
        self._control = WholeBodyControl(model, strict=self.settings.priorities == 'strict')
        self._viscous, self._coulomb = joint_friction(model)
        self._foot_of_leg = [model.foot_names.index(leg.foot) for leg in model.legs]
        self._joints = [leg.joints for leg in model.legs]
        self._free_joints = self._find_free_joints()
        self._has_free_joints = bool(self._free_joints.any())
        self.times = Times()
        self._warm_up()

    def _find_free_joints(self) -> npt.NDArray[np.bool_]:
        """(nj,) joints that belong to no leg, or to one with more joints than its foot has coordinates."""
        free = np.ones(self._model.nj, dtype=np.bool_)
        for joints, leg in zip(self._joints, self._model.legs, strict=True):
            free[joints] = len(leg.joint_indices) > 3
        return free

    def _warm_up(self) -> None:
        """Run once, so that the first update takes no longer than later ones."""
        model = self._model
        state = RobotState(0.0, resting_pose(model), np.zeros(model.nv), None, np.zeros(model.nj))
        self.reset(state)
        self.update(state)
        self._rise.update(state)
        self.reset(state)

    # ---------------------------------------------------------------- commands

    @property
    def gait(self) -> str:
        """Name of the gait; a change does not interrupt the stride of any leg."""
        return self._planner.gait

    @gait.setter
    def gait(self, name: str) -> None:
        self._planner.gait = name

    @property
    def period(self) -> float:
        """Current period of the gait [s]."""
        return self._planner.steps.clock.period

    @property
    def phase(self) -> str:
        """Current phase: 'rise', 'stand', 'walk' or 'stop'."""
        return 'rise' if self._rises else self._planner.phase

    @property
    def counts(self) -> Counts:
        """Events since the reset."""
        return self._planner.counts

    @property
    def largest_command(self) -> Vec3:
        """Largest velocities that can be commanded, each alone [m/s, m/s, rad/s]."""
        return self._planner.largest_command

    @property
    def target(self) -> Vec3:
        """The last command, within its limits [m/s, m/s, rad/s]."""
        return self._planner.target

    def command(self, vx: float, vy: float, wz: float) -> bool:
        """Walk at a velocity in the heading frame from now on.

        Args:
            vx: forward [m/s].
            vy: to the left [m/s].
            wz: turning to the left [rad/s].

        Returns:
            Whether it is within `largest_command`, and the joints are fast enough for the combination;
            otherwise the robot walks more slowly.

        Raises:
            ArgumentError: a value is not finite; the command is unchanged.
        """
        return self._planner.command(vx, vy, wz)

    def follow(self, plan: MotionPlan) -> None:
        """Follow an external plan from the next state on; only with `planner` 'external'."""
        self._planner.follow(plan)

    @property
    def motion_plan(self) -> MotionPlan | None:
        """The current plan of the next stride; None if there is none."""
        return self._planner.motion_plan

    def change(self, settings: WalkerSettings) -> None:
        """Change settings without a restart; height and priorities are kept.

        Raises:
            ArgumentError: the settings are invalid for the robot; nothing has changed.
        """
        self._guard = Guard(self._model, settings, self._dt)
        self._planner.change(settings)
        self.settings = self._rise.settings = settings

    @property
    def plan(self) -> Plan | None:
        """Current targets, as of the last update; None before whole-body control has started."""
        if self._targets is None:
            return None
        body, legs = self._planner.body, self._planner.steps.legs
        return Plan(
            self._now,
            self.phase,
            (body.command[0], body.command[1], body.command[2]),
            body.place.copy(),
            body.velocity.copy(),
            body.yaw,
            tuple(leg.contact.state for leg in legs),
            self._planner.steps.footholds,
            np.array(self._targets.places),
            self._forces.copy(),
            self._planner.ground.normal.copy(),
        )

    # ---------------------------------------------------------------- states

    def reset(self, state: RobotState) -> None:
        """Start at a state: with getting up, unless the robot stands."""
        self._planner.reset(state)
        self._rises = not self._planner.stands(state)
        self._rise.start(state)
        self._now = self._solved_at = state.time
        self._last: Setpoint | None = None
        self._targets: FootTargets | None = None
        self._forces = np.zeros((len(self._joints), 3))

    start = reset  # the name in `Law`

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state.

        Args:
            state: measured state; not earlier than the previous one.

        Returns:
            Torques, and joint targets with which the drives bridge the time until the next setpoint; within
            all limits of the robot.

        Raises:
            ArgumentError: the state is not finite, or has a wrong shape.
        """
        begin = time.perf_counter()
        self.counts.updates += 1
        if self._rises:
            return self._get_up(state, begin)
        view = self._planner.view(state)
        seen = time.perf_counter()
        tasks = self._plan_tasks(view)
        planned = time.perf_counter()
        solution = self._solve(view.terms, view.R_WB, tasks)
        solved = time.perf_counter()
        setpoint = self._hold() if solution is None else self._setpoint(view, solution, tasks.down)
        self._last = setpoint = self._guard.limit(setpoint, state, (tasks.low, tasks.high))
        end = time.perf_counter()
        self.times = Times(seen - begin, planned - seen, solved - planned, end - solved, end - begin)
        return setpoint

    def _get_up(self, state: RobotState, begin: float) -> Setpoint:
        setpoint = self._guard.limit(self._rise.update(state), state)
        self._rises = not self._rise.finished
        self._now = state.time
        total = time.perf_counter() - begin
        self.times = Times(setpoint=total, total=total)
        return setpoint

    # ---------------------------------------------------------------- planning

    def _plan_tasks(self, view: RobotView) -> Tasks:
        """The tasks of whole-body control."""
        planner = self._planner
        steps, body, ground, state = planner.steps, planner.body, planner.ground, view.state
        dt = planner.advance(view, (self._forces @ ground.normal).tolist())
        self._now = view.time
        R_WC = planner.axes
        linear, angular = body.accelerations(
            view.com, view.velocity, view.R_WB, view.R_WB @ state.u[3:6], R_WC, dt
        )
        self._targets = steps.targets(view, body, ground)
        down, weight = steps.down, self._geometry.weight
        low, high = self._guard.torque_range(state.q[7:], state.u[6:])
        return Tasks(
            linear,
            angular,
            np.array(self._targets.accelerations),
            down,
            R_WC,
            np.full(len(down), self.settings.force_limit * weight),
            even_forces(weight, down, ground.normal),
            self._posture_accelerations(state),
            low,
            high,
        )

    def _posture_accelerations(self, state: RobotState) -> Floats:
        """(nj,) accelerations that return joints to their posture where the feet do not determine them."""
        if not self._has_free_joints:
            return np.zeros(self._model.nj)
        rate = self._geometry.rate
        wanted = _POSTURE[0] * rate**2 * (self._geometry.posture - state.q[7:])
        wanted -= _POSTURE[1] * rate * state.u[6:]
        return np.where(self._free_joints, wanted, 0.0)

    # ---------------------------------------------------------------- control

    def _solve(self, terms: ControllerTerms, R_WB: Floats, tasks: Tasks) -> Solution | None:
        """The solution; without torque limits if there is none with them."""
        mu = self.settings.mu
        solution = self._control.solve(terms, R_WB, tasks, mu)
        if solution is None:
            self.counts.limited += 1
            solution = self._control.solve(terms, R_WB, tasks, mu, feet_only=True)
        if solution is None or not np.isfinite(solution.tau).all():
            self.counts.failures += 1
            return None
        self._forces, self._solved_at = solution.forces, self._now
        return solution

    def _hold(self) -> Setpoint:
        """If there is no solution: the last setpoint for a moment, then damping."""
        if self._last is not None and self._now - self._solved_at <= _HOLD_TIME:
            return self._last
        nj = self._model.nj
        down = self._feet_down(self._planner.steps.down)
        return Setpoint(np.zeros(nj), None, np.zeros(nj), down)

    def _setpoint(self, view: RobotView, solution: Solution, down: npt.NDArray[np.bool_]) -> Setpoint:
        """Torques, and joint targets that the drives hold until the next setpoint.

        The targets of stance legs are those at which the body moves as commanded over fixed feet. Those of
        swing legs are on the swing trajectories, so that the drives track them as well. Targets are predicted
        by the expected delay. Those of stance legs use the commanded velocity for this: with the measured
        one, they would push the body in the direction of its motion whenever the delay is shorter than
        expected.
        """
        targets, ahead = self._targets, self.settings.delay
        assert targets is not None
        q_j, qd_j = view.state.q[7:], view.state.u[6:]
        turning = qd_j + ahead * solution.du[6:]
        # plain numbers: NumPy takes longer for three of them
        q_now, qd_now, qd = q_j.tolist(), qd_j.tolist(), turning.tolist()
        q = (q_j + ahead * turning).tolist()
        passed = (self._control.base_jacobians @ self._planner.body.base_velocity(view.R_WB)).tolist()
        for k, leg in enumerate(self._model.legs):
            rows = zip(leg.joint_indices, self._control.leg_inverse(k).tolist(), strict=True)
            if down[k]:
                v, slide = passed[k], targets.slides[k]
                x, y, z = slide[0] - v[0], slide[1] - v[1], slide[2] - v[2]
                for j, (a, b, c) in rows:
                    qd[j] = turn = a * x + b * y + c * z
                    q[j] = q_now[j] + ahead * turn
            else:
                (x, y, z), place, foot = targets.velocity_errors[k], targets.places[k], view.motions[k]
                dx, dy, dz = place[0] - foot[0], place[1] - foot[1], place[2] - foot[2]
                for j, (a, b, c) in rows:
                    turn, far = a * x + b * y + c * z, a * dx + b * dy + c * dz
                    bend = min(max(far + ahead * turn, -_LARGEST_BEND), _LARGEST_BEND)
                    qd[j] = qd_now[j] + turn
                    q[j] = q_now[j] + ahead * qd_now[j] + bend
        qd_target = np.array(qd)
        tau = solution.tau + self._viscous * qd_target + self._coulomb * np.tanh(qd_target / _SLOW)
        if self._planner.steps.skid is not None:
            tau += self._sliding_torques(view, solution, down)
        return Setpoint(tau, np.array(q), qd_target, self._feet_down(down))

    def _sliding_torques(self, view: RobotView, solution: Solution, down: Bools) -> Floats:
        """(nj,) torques with which feet push along the ground, until they slide and the robot turns."""
        tau, planner = np.zeros(self._model.nj), self._planner
        skid, wz = planner.steps.skid, planner.body.command[2] if planner.walks else 0.0
        if skid is None or not down.any():
            return tau
        load = float(np.mean(solution.forces[down] @ planner.ground.normal))
        rates = (wz, float(view.R_WB[2] @ view.state.u[3:6]))
        found = skid.forces(view.time, view.feet - view.com, down, load, view.yaw, rates, self.settings.mu)
        for k in np.flatnonzero(down).tolist():
            tau[self._joints[k]] = -(self._control.leg_jacobian(k).T @ found[k])
        return tau

    def _feet_down(self, down: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """(feet,) in the order of foot_names."""
        feet = np.zeros(len(self._model.foot_names), dtype=np.bool_)
        feet[self._foot_of_leg] = down
        return feet
