# SPDX-License-Identifier: Apache-2.0
"""The command of the joint drives."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, is_none
from quad_dynamics.compiler.registry import OBJECT, kernel
from quad_dynamics.compiler.trace import routine
from quad_dynamics.compiler.types import Address, Bool, Int, Number, Object
from quad_dynamics.kernels.simulation.scene import Scene, scene_at
from quad_dynamics.kernels.validation import good_optional, good_vector
from quad_dynamics.memory.layout import Robot


@kernel(Robot, array(lambda: Scene.words), OBJECT, OBJECT, OBJECT, OBJECT, OBJECT)
def take_command(
    robot: Robot, memory: Object, tau: Object, q: Object, qd: Object, kp: Object, kd: Object
) -> Int:
    """Make tau + kp (q - q_j) + kd (qd - qd_j) the command of all joints.

    Args:
        robot: its memory.
        memory: of the scene (see `scene`).
        tau: (nj,) torques; None: zero.
        q: (nj,) positions; None if no joint has a position gain.
        qd: (nj,) velocities; None: zero.
        kp: (nj,) gains of positions.
        kd: (nj,) gains of velocities.
    """
    nj = robot.nj
    if not good_optional(robot, 0, nj, tau):
        return 1
    if not good_optional(robot, 0, nj, q):
        return 2
    if not good_optional(robot, 0, nj, qd):
        return 3
    if not good_gains(robot, kp) or (nj > 0 and is_zero(kp, nj) != is_none(robot, q)):
        return 4
    if not good_gains(robot, kd) or (nj > 0 and is_zero(kd, nj) and not is_none(robot, qd)):
        return 5
    scene = scene_at(data(memory), 0)
    p, d = data(kp), data(kd)
    for j in range(nj):
        command = scene.command[j]
        command.tau, command.q, command.qd = entry(robot, tau, j), entry(robot, q, j), entry(robot, qd, j)
        command.kp, command.kd = p[j], d[j]
    scene.state.has_gains = 0 if is_zero(kp, nj) and is_zero(kd, nj) else 1
    return 0


@routine
def good_gains(robot: Robot, gains: Object) -> Bool:
    """Whether gains are finite and not negative."""
    if not good_vector(robot, 0, robot.nj, gains):
        return False
    values = data(gains)
    negative = False
    for j in range(robot.nj):
        negative |= values[j] < 0.0
    return not negative


@routine
def is_zero(x: Object, n: Int) -> Bool:
    """Whether all n elements of an array are zero."""
    values: Address = data(x)
    for i in range(n):
        if values[i] != 0.0:
            return False
    return True


@routine
def entry(robot: Robot, x: Object, j: Int) -> Number:
    """Element j of an array, or zero for None."""
    if is_none(robot, x):
        return 0.0
    return data(x)[j]
