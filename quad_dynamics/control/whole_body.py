# SPDX-License-Identifier: Apache-2.0
"""Whole-body control: joint torques that move the whole robot as wanted, within all limits.

The unknowns are the accelerations du of the robot and the forces f of the ground on its feet. From what
matters most to what matters least (Bellicoso, Jenelten, Gehring, Hutter 2018; Escande, Mansard, Wieber 2014):

1. the equation of motion M du + h = S^T tau + J^T f, and the feet that are down stay where they are,
2. friction and the limits of the torques,
3. the centre of mass, the orientation of the base and the feet that swing accelerate as wanted,
4. forces are near those that share the weight evenly.

The first is eliminated (`kernels/whole_body.py`): three unknowns a leg remain, and torques are affine in
them. The second are inequalities of both quadratic programs that follow. The third is the cost of the first
program, with weights, because two point feet cannot do everything at once. The second program keeps what the
first has reached exactly, and chooses among the forces that are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import daqp
import numpy as np

from quad_dynamics.api.controller import ControllerTerms
from quad_dynamics.api.drives import foot_position, leg_length, resting_pose
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels import whole_body as K_
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

# Weight of the forces' level in the program of the tasks, which makes its solution unique.
_REGULAR = 1e-8
# Added to it where daqp cycles, or takes a program for infeasible: most often it is badly conditioned.
_FIRM = 1e-6
# Weight of the forces in the variant with one program.
_FORCE_WEIGHT = 1e-3
_PLANAR = 0.02  # a leg is planar whose foot goes less far in one direction, in leg lengths for each radian
_PARALLEL, _UPRIGHT = 0.98, 0.3  # cosine of the angle between two planes, sine of that to the vertical
_SOLVED = 1  # exit flag of daqp


@dataclass(eq=False)
class Tasks:
    """What the robot is to do. Everything is in world axes.

    Attributes:
        com: (3,) acceleration of the centre of mass [m/s^2].
        angular: (3,) angular acceleration of the base [rad/s^2].
        feet: (legs, 3) accelerations of the feet: of the centre of one that swings, of the lowest point of
            one that is down [m/s^2].
        down: (legs,) which feet are down.
        axes: (3, 3) columns: two directions along the ground, and its normal.
        most_force: (legs,) largest normal forces of the feet that are down [N].
        forces: (legs, 3) that the feet should have where there is a choice [N].
        free: (nj,) accelerations of joints where the feet leave them free.
        low: (nj,) smallest torques [N m or N].
        high: (nj,) largest torques [N m or N].
    """

    com: Floats
    angular: Floats
    feet: Floats
    down: Bools
    axes: Floats
    most_force: Floats
    forces: Floats
    free: Floats
    low: Floats
    high: Floats


@dataclass(eq=False)
class Solution:
    """What whole-body control found.

    Attributes:
        tau: (nj,) torques [N m or N].
        du: (nv,) accelerations.
        forces: (legs, 3) of the ground on the feet, in world axes [N].
        within_limits: whether the torques are within their limits; where no solution is, they are not, and
            are to be limited.
        iterations: of both programs.
    """

    tau: Floats
    du: Floats
    forces: Floats
    within_limits: bool
    iterations: int


@dataclass(frozen=True)
class Weights:
    """Weights of the tasks, which share a level.

    Attributes:
        com: of the centre of mass, along x, y and z of the ground.
        angular: of the base, about the same axes.
        swing: of the feet that swing.
    """

    com: tuple[float, float, float] = (3.0, 3.0, 6.0)
    angular: tuple[float, float, float] = (1.0, 1.0, 1.0)
    swing: float = 3.0


@dataclass(eq=False)
class _Arrays:
    """The arrays that the kernels read and write, made once."""

    legs: Floats
    tasks: Floats
    leg_tasks: Floats
    limits: Floats
    room: Floats
    out: tuple[Floats, ...]
    level_room: Floats
    level: tuple[Floats, ...]
    eyes: list[Floats] = field(default_factory=list)


class WholeBodyControl:
    """Whole-body control of one robot.

    Attributes:
        legs: number of legs.
        unit: force that one unit of an unknown means [N].
    """

    def __init__(self, model: Model, weights: Weights | None = None, strict: bool = True) -> None:
        """Prepare the tables.

        Args:
            model: a robot with a floating base and legs.
            weights: of the tasks; None for the defaults.
            strict: whether forces have a level of their own; else all is one program with weights.

        Raises:
            ArgumentError: the robot has no legs, or a leg with too many joints.
        """
        if not model.floating_base or not model.legs:
            raise ArgumentError(f'{model.name} has no legs or a fixed base; expected a robot with legs')
        self._model, self._strict = model, strict
        self.legs, self.unit = len(model.legs), model.total_mass / len(model.legs)
        self._address = model._packed.address
        self._arrays = self._make_arrays(weights or Weights())
        self._make_views()

    def _make_arrays(self, weights: Weights) -> _Arrays:
        model, n, m = self._model, self.legs, 3 * self.legs
        nv, nj = model.nv, model.nj
        tasks = np.zeros(K_.TASK_WORDS)
        tasks[K_.TASK_WEIGHT_COM : K_.TASK_WEIGHT_COM + 3] = weights.com
        tasks[K_.TASK_WEIGHT_ANGULAR : K_.TASK_WEIGHT_ANGULAR + 3] = weights.angular
        tasks[K_.TASK_WEIGHT_SWING] = weights.swing
        tasks[K_.TASK_UNIT], tasks[K_.TASK_LENGTH] = self.unit, leg_length(model)
        tasks[K_.TASK_REGULAR] = _REGULAR if self._strict else _FORCE_WEIGHT
        rows = nj + K_.PYRAMID_ROWS * n
        out = ((nv, m), (nv,), (rows, m), (rows,), (rows,), (6 + m, m), (6 + m,), (m, m), (m,), (m,))
        level = ((m, m), (m,), (rows * m,), (rows,), (rows,))
        return _Arrays(
            leg_table(model),
            tasks,
            np.zeros((n, K_.LEG_TASK_WORDS)),
            np.zeros((2, nj)),
            np.zeros(n * (3 * nv + 4 * K_.LEG_MOST_JOINTS + 3) + 36 + 6 * (m + 1)),
            tuple(map(np.zeros, out)),
            np.zeros((6 + m) * (m + 2)),
            tuple(map(np.zeros, level)),
            [np.eye(k) for k in range(m + 1)],
        )

    def solve(
        self, terms: ControllerTerms, R_WB: Floats, tasks: Tasks, mu: float, feet_only: bool = False
    ) -> Solution | None:
        """Accelerations, forces and torques for some tasks.

        Args:
            terms: of the model at the state, with the feet as frames.
            R_WB: (3, 3) orientation of the base.
            tasks: what to do.
            mu: friction that the feet may count on; forces stay within the pyramid inside its cone.
            feet_only: leave the limits of the torques out.

        Returns:
            None if no solution was found.
        """
        a = self._arrays
        self._fill(R_WB, tasks, mu)
        rows = K_.whole_body.run(
            self._address, self.legs, terms, a.legs, a.tasks, a.leg_tasks, tasks.free, a.limits, a.room, a.out
        )
        if rows < 0:
            return None
        D, d, C, low, high, _, _, H, c, z0 = a.out
        first = self._model.nj if feet_only else 0
        limits = C[first:rows], high[first:rows], low[first:rows]
        z, _, flag, info = daqp.solve(H, c, *limits)
        if flag != _SOLVED:
            H.flat[:: len(c) + 1] += _FIRM
            c -= _FIRM * z0
            z, _, flag, info = daqp.solve(H, c, *limits)
            if flag != _SOLVED:
                return None
        iterations = int(info['iterations'])
        if self._strict:
            z, more = self._choose_forces(z, first, rows)
            iterations += more
        nj = self._model.nj
        tau = tasks.high - high[:nj] + C[:nj] @ z
        forces = (z * self.unit).reshape(self.legs, 3) * tasks.down[:, None]
        return Solution(tau, D @ z + d, forces, not feet_only, iterations)

    def base_jacobian(self, leg: int) -> Floats:
        """(3, 6) of the last solve: velocity of a foot for velocities of the base."""
        return self._base_jacobians[leg]

    def leg_jacobian(self, leg: int) -> Floats:
        """(3, joints) of the last solve: velocity of a foot for joint velocities of its leg."""
        return self._leg_jacobians[leg][:, self._joints[leg]]

    def leg_inverse(self, leg: int) -> Floats:
        """(joints, 3) of the last solve: joint velocities of a leg for a velocity of its foot."""
        return self._leg_inverses[leg]

    def _make_views(self) -> None:
        """Views of what the kernel leaves in its workspace for each leg."""
        nv, room = self._model.nv, self._arrays.room
        self._base_jacobians = [
            room[3 * nv * leg : 3 * nv * (leg + 1)].reshape(3, nv)[:, :6] for leg in range(self.legs)
        ]
        self._leg_jacobians = [
            room[3 * nv * leg : 3 * nv * (leg + 1)].reshape(3, nv)[:, 6:] for leg in range(self.legs)
        ]
        self._joints = [np.array(leg.joint_indices) for leg in self._model.legs]
        self._leg_inverses = []
        for leg, count in enumerate(self._arrays.legs[:, K_.LEG_JOINT_COUNT].astype(int).tolist()):
            begin = 3 * nv * self.legs + 3 * K_.LEG_MOST_JOINTS * leg
            self._leg_inverses.append(room[begin : begin + 3 * count].reshape(count, 3))

    def _choose_forces(self, z: Floats, first: int, rows: int) -> tuple[Floats, int]:
        """The solution of the level below: z where that fails, and iterations."""
        a = self._arrays
        k = K_.next_level.run(self._address, self.legs, rows, z, a.out, a.level_room, a.level)
        if not k:
            return z, 0
        N, c, CN, low, high = a.level
        C = CN[: rows * k].reshape(rows, k)
        y, _, flag, info = daqp.solve(a.eyes[k], c[:k], C[first:], high[first:rows], low[first:rows])
        if flag != _SOLVED:
            return z, 0
        return z + y @ N[:k], int(info['iterations'])

    def _fill(self, R_WB: Floats, tasks: Tasks, mu: float) -> None:
        a = self._arrays
        t, legs = a.tasks, a.leg_tasks
        t[K_.TASK_COM : K_.TASK_COM + 3] = tasks.com
        t[K_.TASK_ANGULAR : K_.TASK_ANGULAR + 3] = tasks.angular
        t[K_.TASK_AXES : K_.TASK_AXES + 9] = tasks.axes.ravel()
        t[K_.TASK_R_WB : K_.TASK_R_WB + 9] = R_WB.ravel()
        t[K_.TASK_MU] = mu
        legs[:, K_.DOWN] = tasks.down
        legs[:, K_.FOOT_A : K_.FOOT_A + 3] = tasks.feet
        legs[:, K_.MOST] = tasks.most_force
        legs[:, K_.FORCE : K_.FORCE + 3] = tasks.forces
        a.limits[0], a.limits[1] = tasks.low, tasks.high


def leg_table(model: Model) -> Floats:
    """(legs, LEG_WORDS) the kernels' table of legs.

    Raises:
        ArgumentError: a leg with too many joints.
    """
    table = np.zeros((len(model.legs), K_.LEG_WORDS))
    for row, leg in zip(table, model.legs, strict=True):
        joints = leg.joint_indices
        if len(joints) > K_.LEG_MOST_JOINTS:
            raise ArgumentError(
                f"leg '{leg.name}' has {len(joints)} joints; expected at most {K_.LEG_MOST_JOINTS}"
            )
        row[K_.LEG_FRAME] = model.foot_names.index(leg.foot)
        row[K_.LEG_OFFSET : K_.LEG_OFFSET + 3], row[K_.LEG_RADIUS] = contact_ball(model, leg.foot)
        row[K_.LEG_JOINT_COUNT] = len(joints)
        row[K_.LEG_JOINTS : K_.LEG_JOINTS + len(joints)] = joints
        row[K_.LEG_PLANAR] = blocked_direction(model, leg) is not None
    return table


def blocked_direction(model: Model, leg: Leg) -> Floats | None:
    """(3,) direction in which the joints of a leg cannot move its foot when standing; None if there is none.

    It is in axes of the world, in which the robot stands level and looks along x.
    """
    pose = resting_pose(model)
    joints = 6 + np.array(leg.joint_indices)
    J_F = frame_jacobian(model, pose, leg.foot)[:, joints]
    arm = foot_position(model, pose, leg.foot) - frame_pose(model, pose, leg.foot)[1]
    U, sizes, _ = np.linalg.svd(J_F[:3] + np.cross(J_F[3:], arm[:, None], axis=0))
    if len(joints) < 3 or sizes[2] < _PLANAR * leg_length(model):
        return np.asarray(U[:, 2])
    return None


def stepping_direction(model: Model) -> float | None:
    """Direction in which the legs move their feet, if all do so in parallel planes only, from ahead [rad].

    It is between -pi / 4 and 3 pi / 4. None if a leg can move its foot in all directions, or the planes are
    not parallel and upright.
    """
    blocked = [blocked_direction(model, leg) for leg in model.legs]
    across = [e for e in blocked if e is not None]
    if len(across) < len(blocked):
        return None
    first = across[0]
    if min(abs(float(first @ e)) for e in across) < _PARALLEL or abs(float(first[2])) > _UPRIGHT:
        return None
    angle = math.atan2(-float(first[0]), float(first[1]))
    return (angle + 0.25 * math.pi) % math.pi - 0.25 * math.pi


def even_forces(weight: float, down: Bools, normal: Floats) -> Floats:
    """(legs, 3) forces with which the feet that are down share a weight evenly [N]."""
    share = weight / max(int(np.count_nonzero(down)), 1)
    return np.asarray(down[:, None] * (share * normal))
