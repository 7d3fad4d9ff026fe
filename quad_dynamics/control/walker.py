# SPDX-License-Identifier: Apache-2.0
"""A quadruped that walks: simple planning, and whole-body control.

    walker = Walker(model)
    walker.reset(state)
    walker.command(0.5, 0.0, 0.0)
    setpoint = walker.update(state)     # 500 times a second

It has no clock, no threads, and knows nothing of ROS: time is that of the states. It is blind: what it knows
of the ground is where its feet have been down.

| module | what it does |
|---|---|
| `walker_settings` | everything that can be set |
| `stance_geometry` | lengths of the robot, from which all scales come |
| `gait` | gaits as data, and their clock |
| `stepping` | the legs: contacts, footholds, and the way of the feet |
| `leg_contact` | which feet are down, from schedule, force and velocity |
| `footholds`, `swing` | where feet come down, and how they get there |
| `ground` | the plane below the feet, and the control frame |
| `body_reference` | where the body should be, and the accelerations that bring it there |
| `whole_body` | joint torques for all of that |
"""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.controller import ControllerTerms, controller_terms
from quad_dynamics.api.drives import joint_friction, resting_pose
from quad_dynamics.control.body_reference import BodyReference
from quad_dynamics.control.gait import GAITS, GaitClock
from quad_dynamics.control.ground import Ground
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.setpoint import Setpoint
from quad_dynamics.control.stance_geometry import stance_geometry
from quad_dynamics.control.stand import StandUp
from quad_dynamics.control.state import RobotState
from quad_dynamics.control.stepping import FootTargets, Stepping
from quad_dynamics.control.walker_report import Counts, Plan, Times
from quad_dynamics.control.walker_settings import WalkerSettings
from quad_dynamics.control.whole_body import Solution, Tasks, WholeBodyControl, even_forces
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.whole_body import FOOT_P, FOOT_WORDS, foot_motions
from quad_dynamics.model.legs import LEG_ORDER
from quad_dynamics.model.model import Model

__all__ = ['Walker', 'WalkerSettings']

Floats = npt.NDArray[np.float64]
Vec3 = tuple[float, float, float]

_LONGEST_GAP = 0.2  # between two states; time beyond it is not counted [s]
_COMMAND_ZERO = 0.01  # commands below this are none, in sqrt(g l) and sqrt(g / l)
_CALM = 0.08  # velocity below which the body may stop walking, in sqrt(g l)
_CAPTURED = 0.25  # distance of the capture point from the middle of the feet that makes it walk, in l
_FIRST_STEPS = 1.0  # strides that it walks at least
_LARGEST_BEND = 0.3  # of a joint, from where it is to its target [rad or m]
_SLOW = 0.3  # above this velocity dry friction is fed forward wholly [rad/s or m/s]
_HOLD_TIME = 0.05  # after which torques that no solve renews give way to damping [s]
_POSTURE = (4.0, 4.0)  # stiffness and damping of joints that the feet leave free, in g / l and sqrt(g / l)
# A robot whose joints are within this of the standing pose, and whose base is tilted by less than this, need
# not get up first [rad or m, rad].
_AT_HOME, _LEVEL = 0.25, 0.28


class Walker:
    """Stands up, stands, and walks at a commanded velocity.

    Attributes:
        settings: all that can be set.
        standing_height: of the base above the ground that it aims at [m].
        counts: what happened since the reset.
        times: how long the last update took.
        phase: 'rise', 'stand', 'walk' or 'stop'.
    """

    def __init__(self, model: Model, settings: WalkerSettings | None = None, dt: float = 1e-3) -> None:
        """Prepare everything for a robot.

        Args:
            model: a quadruped that can stand.
            settings: None for the defaults.
            dt: time step of the drives, which their default gains depend on [s].

        Raises:
            ArgumentError: the robot has not four legs, or no standing pose.
        """
        names = [leg.name for leg in model.legs]
        if not model.floating_base or model.standing is None or sorted(names) != sorted(LEG_ORDER):
            raise ArgumentError(
                f'{model.name} has the legs {names} and {"a" if model.standing is not None else "no"} '
                f'standing pose; expected a quadruped with the legs {list(LEG_ORDER)} that can stand'
            )
        self._model, self._dt, self.settings = model, dt, settings or WalkerSettings()
        self._guard = Guard(model, self.settings, dt)
        self._rise = StandUp(model, self.settings)
        self._geometry = geometry = stance_geometry(model, self.settings.stand_height)
        self.standing_height = geometry.base_height
        self._control = WholeBodyControl(model, strict=self.settings.priorities == 'strict')
        self._viscous, self._coulomb = joint_friction(model)
        self._foot_of_leg = [model.foot_names.index(leg.foot) for leg in model.legs]
        self._joints = [np.array(leg.joint_indices) for leg in model.legs]
        self._free_joints = self._find_free_joints()
        self._gait = self.settings.gait
        clock = GaitClock(GAITS[self._gait], 1.0 / geometry.rate, [LEG_ORDER.index(name) for name in names])
        self._steps = Stepping(geometry, clock, self.settings)
        self._ground = Ground(geometry.length, clock.period)
        self._body = BodyReference(geometry, self.settings)
        self._terms: ControllerTerms | None = None
        self._motions = np.zeros((len(names), FOOT_WORDS))
        self._target: Vec3 = (0.0, 0.0, 0.0)
        self.counts, self.times = Counts(), Times()
        self._warm_up()

    def _find_free_joints(self) -> npt.NDArray[np.bool_]:
        """(nj,) joints that belong to no leg, or to one with more joints than its foot has coordinates."""
        free = np.ones(self._model.nj, dtype=np.bool_)
        for joints in self._joints:
            free[joints] = len(joints) > 3
        return free

    def _warm_up(self) -> None:
        """Run once, so that the first update takes no longer than the thousandth."""
        model = self._model
        state = RobotState(0.0, resting_pose(model), np.zeros(model.nv), None, np.zeros(model.nj))
        self.reset(state)
        self.update(state)
        self._rise.update(state)
        self.reset(state)

    # ---------------------------------------------------------------- what is asked of it

    @property
    def gait(self) -> str:
        """Name of the gait; another one begins at once."""
        return self._gait

    @gait.setter
    def gait(self, name: str) -> None:
        if name not in GAITS:
            raise ArgumentError(f'gait is {name!r}; expected one of {", ".join(map(repr, GAITS))}')
        self._gait = name
        if name != 'stand':
            self._steps.clock.gait = GAITS[name]

    @property
    def period(self) -> float:
        """Of a stride of the gait now [s]."""
        return self._steps.clock.period

    @property
    def largest_command(self) -> Vec3:
        """Largest velocities that can be commanded [m/s, m/s, rad/s]."""
        x, y, turn = self.settings.max_velocity
        speed, fastest = self._geometry.speed, self._steps.fastest
        return min(x * speed, fastest), min(y * speed, fastest), turn * self._geometry.rate

    def command(self, vx: float, vy: float, wz: float) -> bool:
        """Walk at a velocity in the heading frame from now on.

        Args:
            vx: forward [m/s].
            vy: to the left [m/s].
            wz: turning to the left [rad/s].

        Returns:
            Whether it is within `largest_command`; else the largest is taken.

        Raises:
            ArgumentError: a value that is not finite; the command is as before then.
        """
        wanted = (float(vx), float(vy), float(wz))
        for name, value in zip(('vx', 'vy', 'wz'), wanted, strict=True):
            if not math.isfinite(value):
                raise ArgumentError(f'{name} is {value}; expected a finite number')
        most = self.largest_command
        x, y, turn = (min(max(v, -m), m) for v, m in zip(wanted, most, strict=True))
        self._target = (x, y, turn)
        within = self._target == wanted
        self.counts.clipped += not within
        return within

    def change(self, settings: WalkerSettings) -> None:
        """Take other settings, without beginning anew; height and priorities stay as they are.

        Raises:
            ArgumentError: they do not suit the robot; nothing has changed then.
        """
        self._guard = Guard(self._model, settings, self._dt)
        if settings.gait != self.settings.gait:
            self.gait = settings.gait
        self._body.change(settings)
        self.settings = self._rise.settings = self._steps.settings = settings

    @property
    def plan(self) -> Plan | None:
        """What it wants, as of the last update; None before whole-body control has begun."""
        if self._targets is None:
            return None
        body, legs = self._body, self._steps.legs
        return Plan(
            self._now,
            self.phase,
            (body.command[0], body.command[1], body.command[2]),
            body.place.copy(),
            body.velocity.copy(),
            body.yaw,
            tuple(leg.contact.state for leg in legs),
            np.array([leg.goal for leg in legs]),
            np.array(self._targets.places),
            self._forces.copy(),
            self._ground.normal.copy(),
        )

    # ---------------------------------------------------------------- states

    def reset(self, state: RobotState) -> None:
        """Begin at a state: with getting up, unless the robot stands."""
        self.counts = Counts()
        self.phase = 'stand' if self._stands(state) else 'rise'
        self._rise.start(state)
        self._must_begin = True
        self._now = self._solved_at = state.time
        self._walks_since = -math.inf
        self._last: Setpoint | None = None
        self._targets: FootTargets | None = None
        self._forces = np.zeros((len(self._joints), 3))

    start = reset  # as all laws begin

    def _stands(self, state: RobotState) -> bool:
        """Whether the joints are about where they are when standing, and the base is level."""
        legs = np.concatenate(self._joints)
        near = np.abs(state.q[7:] - self._geometry.posture)[legs].max() < _AT_HOME
        return bool(near and 2.0 * math.hypot(state.q[3], state.q[4]) < _LEVEL)

    def update(self, state: RobotState) -> Setpoint:
        """The setpoint for a state.

        Args:
            state: measured; its time is that of the state before, or later.

        Returns:
            Torques, and joint targets with which drives bridge the time until the next setpoint; within all
            limits of the robot.

        Raises:
            ArgumentError: a state that is not finite, or of a wrong shape.
        """
        begin = time.perf_counter()
        self.counts.updates += 1
        if self.phase == 'rise':
            return self._get_up(state, begin)
        terms = self._look(state)
        if self._must_begin:
            self._begin(state, terms)
        dt = min(max(state.time - self._now, 0.0), _LONGEST_GAP)
        self._now = state.time
        seen = time.perf_counter()
        R_WB = rotation(state.q)
        tasks = self._think(state, terms, R_WB, dt)
        thought = time.perf_counter()
        solution = self._solve(terms, R_WB, tasks)
        solved = time.perf_counter()
        setpoint = self._hold() if solution is None else self._setpoint(state, solution, R_WB, tasks.down)
        self._last = setpoint = self._guard.limit(setpoint, state, (tasks.low, tasks.high))
        end = time.perf_counter()
        self.times = Times(seen - begin, thought - seen, solved - thought, end - solved, end - begin)
        return setpoint

    def _get_up(self, state: RobotState, begin: float) -> Setpoint:
        setpoint = self._guard.limit(self._rise.update(state), state)
        if self._rise.finished:
            self.phase = 'stand'
        self._now = state.time
        total = time.perf_counter() - begin
        self.times = Times(setpoint=total, total=total)
        return setpoint

    def _look(self, state: RobotState) -> ControllerTerms:
        """The terms of the dynamics, and the motion of the feet."""
        self._terms = terms = controller_terms(self._model, state.q, state.u, out=self._terms)
        foot_motions.run(
            self._model._packed.address, len(self._joints), terms, self._control.table, self._motions
        )
        return terms

    def _begin(self, state: RobotState, terms: ControllerTerms) -> None:
        """Begin with whole-body control, all feet on the ground."""
        self._steps.reset(state.time, self._motions.tolist())
        self._ground.reset(self._steps.soles)
        self._body.reset(terms.p_WG, heading(rotation(state.q)))
        self._now, self._must_begin = state.time, False

    # ---------------------------------------------------------------- planning

    def _think(self, state: RobotState, terms: ControllerTerms, R_WB: Floats, dt: float) -> Tasks:
        """Everything between the state and the tasks of whole-body control."""
        steps, body, ground = self._steps, self._body, self._ground
        yaw, com = heading(R_WB), terms.p_WG
        velocity = terms.J_G @ state.u
        body.follow(self._target, dt)
        self._decide(com, velocity)
        steps.set_pace(body.command, state.q, R_WB, self._motions[:, FOOT_P : FOOT_P + 3])
        if self.phase != 'stand':
            steps.clock.advance(dt)
        motions = self._motions.tolist()
        carried = None
        if state.foot_forces is not None:
            carried = (state.foot_forces @ ground.normal)[self._foot_of_leg].tolist()
        asked = (self._forces @ ground.normal).tolist()
        steps.touch(state.time, self.phase, motions, carried, asked, self.counts)
        ground.update(steps.soles, dt)
        body.move(com, yaw, ground, dt, steps.support(body.yaw, self.phase))
        R_WC = ground.axes(body.yaw)
        linear, angular = body.accelerations(com, velocity, R_WB, R_WB @ state.u[3:6], R_WC, dt)
        if self.phase == 'walk':
            steps.adapt_lean(R_WB, ground.normal, yaw, dt)
        x, y, _ = com.tolist()
        vx, vy, _ = velocity.tolist()
        self._targets = steps.targets(state.time, (x, y), (vx, vy), yaw, body, ground, motions)
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

    def _decide(self, com: Floats, velocity: Floats) -> None:
        """Whether to walk, to stop, or to stand."""
        geometry = self._geometry
        x, y, turn = self._target
        moving = max(math.hypot(x, y) / geometry.speed, abs(turn) / geometry.rate) > _COMMAND_ZERO
        wants = self._gait != 'stand' and (moving or not self.settings.stand_at_zero)
        if self.phase == 'walk':
            ramped = max(map(abs, self._body.command)) < 1e-9
            calm = math.hypot(velocity[0], velocity[1]) < _CALM * geometry.speed
            walked = self._now - self._walks_since > _FIRST_STEPS * self._steps.clock.period
            if not wants and ramped and calm and walked:
                self.phase = 'stop'
        elif wants or self._is_disturbed(com, velocity):
            if self.phase == 'stand':
                self._steps.clock.stride = 0.0
            self.phase, self._walks_since = 'walk', self._now
        elif self.phase == 'stop' and self._steps.down.all():
            self.phase = 'stand'

    def _is_disturbed(self, com: Floats, velocity: Floats) -> bool:
        """Whether the capture point has left the middle of the feet, so that only a step helps."""
        wanted = self._steps.support(self._body.yaw, 'stand')
        assert wanted is not None
        pendulum = self._geometry.pendulum
        dx = float(com[0] + pendulum * velocity[0]) - wanted[0]
        dy = float(com[1] + pendulum * velocity[1]) - wanted[1]
        return math.hypot(dx, dy) > _CAPTURED * self._geometry.length

    def _posture_accelerations(self, state: RobotState) -> Floats:
        """(nj,) accelerations that bring joints back to their posture where the feet leave them free."""
        if not self._free_joints.any():
            return np.zeros(self._model.nj)
        rate = self._geometry.rate
        wanted = _POSTURE[0] * rate**2 * (self._geometry.posture - state.q[7:])
        wanted -= _POSTURE[1] * rate * state.u[6:]
        return np.where(self._free_joints, wanted, 0.0)

    # ---------------------------------------------------------------- control

    def _solve(self, terms: ControllerTerms, R_WB: Floats, tasks: Tasks) -> Solution | None:
        """The solution; without the limits of torques, where there is none with them."""
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
        """Without a solution: the last setpoint for a moment, then damping."""
        if self._last is not None and self._now - self._solved_at <= _HOLD_TIME:
            return self._last
        nj = self._model.nj
        return Setpoint(np.zeros(nj), None, np.zeros(nj), self._feet_down(self._steps.down))

    def _setpoint(
        self, state: RobotState, solution: Solution, R_WB: Floats, down: npt.NDArray[np.bool_]
    ) -> Setpoint:
        """Torques, and joint targets that the drives hold while they hear nothing new.

        Legs that stand have targets at which the body moves as commanded over feet that stay. Legs that swing
        have targets on the way of their feet, so that the drives follow it as well. Targets look ahead by the
        delay that is expected. Those of standing legs do so with the commanded velocity: with the measured
        one, they would push the body on in the direction of its motion wherever the delay is shorter.
        """
        assert self._targets is not None
        ahead, q_j, qd_j = self.settings.delay, state.q[7:], state.u[6:]
        qd = qd_j + ahead * solution.du[6:]
        q = q_j + ahead * qd
        wanted = self._body.base_velocity(R_WB)
        for k, joints in enumerate(self._joints):
            inverse = self._control.leg_inverse(k)
            if down[k]:
                qd[joints] = turn = -(inverse @ (self._control.base_jacobian(k) @ wanted))
                q[joints] = q_j[joints] + ahead * turn
            else:
                turn = inverse @ np.array(self._targets.velocity_errors[k])
                far = inverse @ (np.array(self._targets.places[k]) - self._motions[k, FOOT_P : FOOT_P + 3])
                bend = np.minimum(np.maximum(far + ahead * turn, -_LARGEST_BEND), _LARGEST_BEND)
                qd[joints] = qd_j[joints] + turn
                q[joints] = q_j[joints] + ahead * qd_j[joints] + bend
        tau = solution.tau + self._viscous * qd + self._coulomb * np.tanh(qd / _SLOW)
        return Setpoint(tau, q, qd, self._feet_down(down))

    def _feet_down(self, down: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """(feet,) in the order of foot_names."""
        feet = np.zeros(len(self._model.foot_names), dtype=np.bool_)
        feet[self._foot_of_leg] = down
        return feet


def rotation(q: Floats) -> Floats:
    """(3, 3) rotation R_WB of the base."""
    x, y, z, w = q[3:7].tolist()
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def heading(R_WB: Floats) -> float:
    """Where the base's x axis points, seen from above [rad]."""
    return math.atan2(R_WB[1, 0], R_WB[0, 0])
