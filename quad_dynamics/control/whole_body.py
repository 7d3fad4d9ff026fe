# SPDX-License-Identifier: Apache-2.0
"""Whole-body control: joint torques that move the whole robot as desired, within all limits.

The unknowns are the accelerations du of the robot and the ground forces f on its feet. In decreasing order of
priority (Bellicoso, Jenelten, Gehring, Hutter 2018; Escande, Mansard, Wieber 2014):

1. the equation of motion M du + h = S^T tau + J^T f, and stance feet stay in place,
2. friction and torque limits,
3. desired accelerations of the centre of mass, the orientation of the base and the swing feet,
4. forces close to an even distribution of the weight.

The first level is eliminated (`kernels/whole_body/`): three unknowns per leg remain, and torques are affine
in them. The second level consists of inequalities of both quadratic programs that follow. The third is the
cost of the first program, with weights, because two point feet cannot satisfy all tasks. The second program
keeps the result of the first exactly, and chooses among the remaining forces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import daqp
import numpy as np

from quad_dynamics.api.controller import ControllerTerms
from quad_dynamics.api.drives import foot_position, leg_length, resting_pose
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.api.whole_body import WholeBodyProblem
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model import Model

# Weight of the force level in the program of the tasks, which makes its solution unique.
_REGULAR = 1e-8
# Added to it if daqp cycles, or reports an infeasible program: most often it is badly conditioned.
_FIRM = 1e-6
# Weight of the forces in the variant with one program.
_FORCE_WEIGHT = 1e-3
_PLANAR = 0.02  # a leg is planar if its foot moves less in one direction, in leg lengths per radian
_PARALLEL, _UPRIGHT = 0.98, 0.3  # cosine of the angle between two planes, sine of their angle to the vertical
_SOLVED = 1  # exit flag of daqp


@dataclass(eq=False)
class Tasks:
    """The tasks of the robot, in world axes.

    Attributes:
        com: (3,) acceleration of the centre of mass [m/s^2].
        angular: (3,) angular acceleration of the base [rad/s^2].
        feet: (legs, 3) accelerations of the feet: of the centre of a swing foot, of the lowest point of a
            stance foot [m/s^2].
        down: (legs,) which feet are in contact.
        axes: (3, 3) columns: two directions along the ground, and its normal.
        most_force: (legs,) largest normal forces of the stance feet [N].
        forces: (legs, 3) desired forces of the feet, where they are not determined by the tasks [N].
        free: (nj,) accelerations of joints that the feet do not determine.
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
    """The solution of whole-body control.

    Attributes:
        tau: (nj,) torques [N m or N].
        du: (nv,) accelerations.
        forces: (legs, 3) of the ground on the feet, in world axes [N].
        within_limits: whether the torques are within their limits; if that is infeasible, the caller has to
            limit them.
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
        swing: of the swing feet.
    """

    com: tuple[float, float, float] = (3.0, 3.0, 6.0)
    angular: tuple[float, float, float] = (1.0, 1.0, 1.0)
    swing: float = 3.0


class WholeBodyControl:
    """Whole-body control of one robot.

    Attributes:
        legs: number of legs.
        unit: force of one unit of an unknown [N].
    """

    def __init__(self, model: Model, weights: Weights | None = None, strict: bool = True) -> None:
        """Prepare the tables.

        Args:
            model: a robot with a floating base and legs.
            weights: of the tasks; None for the defaults.
            strict: whether forces have their own level; otherwise everything is one program with weights.

        Raises:
            ArgumentError: the robot has no legs, or a leg with too many joints.
        """
        if not model.floating_base or not model.legs:
            raise ArgumentError(f'{model.name} has no legs or a fixed base; expected a robot with legs')
        self._model, self._strict = model, strict
        self.legs, self.unit = len(model.legs), model.total_mass / len(model.legs)
        self._problem = problem = WholeBodyProblem(
            model, [blocked_direction(model, leg) is not None for leg in model.legs]
        )
        weights = weights or Weights()
        problem.body['com_weight'], problem.body['angular_weight'] = weights.com, weights.angular
        problem.body['swing_weight'] = weights.swing
        problem.body['unit'], problem.body['length'] = self.unit, leg_length(model)
        problem.body['regular'] = _REGULAR if strict else _FORCE_WEIGHT
        self._eyes = [np.eye(k) for k in range(3 * self.legs + 1)]
        self._base_jacobians: Floats = problem.jacobians[:, :, :6]
        self._leg_jacobians: list[Floats] = list(problem.jacobians[:, :, 6:])
        self._joints = [leg.joints for leg in model.legs]

    def solve(
        self, terms: ControllerTerms, R_WB: Floats, tasks: Tasks, mu: float, feet_only: bool = False
    ) -> Solution | None:
        """Accelerations, forces and torques for the tasks.

        Args:
            terms: of the model at the state, with the feet as frames.
            R_WB: (3, 3) orientation of the base.
            tasks: the tasks.
            mu: assumed friction of the feet; forces stay within the pyramid inside its cone.
            feet_only: omit the torque limits.

        Returns:
            None if no solution was found.
        """
        problem = self._problem
        self._fill(R_WB, tasks, mu)
        rows = problem.reduce(terms)
        if rows < 0:
            return None
        H, c, C, low, high = problem.H, problem.c, problem.C, problem.low, problem.high
        first = self._model.nj if feet_only else 0
        limits = C[first:rows], high[first:rows], low[first:rows]
        z, _, flag, info = daqp.solve(H, c, *limits)
        if flag != _SOLVED:
            H.flat[:: len(c) + 1] += _FIRM
            c -= _FIRM * problem.z0
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
        return Solution(tau, problem.D @ z + problem.d, forces, not feet_only, iterations)

    @property
    def base_jacobians(self) -> Floats:
        """(legs, 3, 6) of the last solve: from velocities of the base to the velocities of the feet."""
        return self._base_jacobians

    def leg_jacobian(self, leg: int) -> Floats:
        """(3, joints) of the last solve: from joint velocities of a leg to the velocity of its foot."""
        return self._leg_jacobians[leg][:, self._joints[leg]]

    def leg_inverse(self, leg: int) -> Floats:
        """(joints, 3) of the last solve: from the velocity of a foot to joint velocities of its leg."""
        return self._problem.inverses[leg]

    def _choose_forces(self, z: Floats, first: int, rows: int) -> tuple[Floats, int]:
        """The solution of the force level, or z if that fails, and the iterations."""
        problem = self._problem
        k, C = problem.next_level(z, rows)
        if not k:
            return z, 0
        low, high = problem.level_low[first:rows], problem.level_high[first:rows]
        y, _, flag, info = daqp.solve(self._eyes[k], problem.level_c[:k], C[first:], high, low)
        if flag != _SOLVED:
            return z, 0
        return z + y @ problem.N[:k], int(info['iterations'])

    def _fill(self, R_WB: Floats, tasks: Tasks, mu: float) -> None:
        problem = self._problem
        problem.com[:], problem.angular[:], problem.body['mu'] = tasks.com, tasks.angular, mu
        problem.axes[:], problem.R_WB[:] = tasks.axes, R_WB
        problem.down[:], problem.accelerations[:] = tasks.down, tasks.feet
        problem.most_force[:], problem.forces[:] = tasks.most_force, tasks.forces
        problem.free[:], problem.lowest[:], problem.highest[:] = tasks.free, tasks.low, tasks.high


def blocked_direction(model: Model, leg: Leg) -> Floats | None:
    """(3,) direction in which the joints of a leg cannot move its foot when standing; None if there is none.

    It is in world axes, with the robot level and facing along x.
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
    """Direction from the heading in which all legs move their feet, if they are planar and parallel [rad].

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
    """(legs, 3) forces with which the stance feet share a weight evenly [N]."""
    share = weight / max(int(np.count_nonzero(down)), 1)
    return np.asarray(down[:, None] * (share * normal))
