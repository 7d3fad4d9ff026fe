# SPDX-License-Identifier: Apache-2.0
"""The kernel that sets up the problem of whole-body control (see `records`)."""

from __future__ import annotations

from quad_dynamics.compiler.arguments import array
from quad_dynamics.compiler.arrays import data, item
from quad_dynamics.compiler.registry import INT, kernel
from quad_dynamics.compiler.types import Int, Object
from quad_dynamics.kernels.argument_kinds import TERMS
from quad_dynamics.kernels.controller_terms import H, M
from quad_dynamics.kernels.whole_body.base import add_leg, begin_base, solve_base, write_accelerations
from quad_dynamics.kernels.whole_body.legs import describe_leg
from quad_dynamics.kernels.whole_body.records import WholeBody, whole_body_at
from quad_dynamics.kernels.whole_body.tasks import write_cost, write_pyramids, write_tasks, write_torques
from quad_dynamics.memory.layout import Robot


@kernel(Robot, INT, TERMS, array(lambda: WholeBody.words))
def whole_body(robot: Robot, n: Int, terms: Object, memory: Object) -> Int:
    """The problem in the 3 n unknowns z: accelerations, torques, tasks and limits.

    Args:
        robot: its memory.
        n: number of legs.
        terms: result of `controller_terms`, with the feet as frames.
        memory: of `WholeBody`, with the tasks of the robot and its legs.

    Returns:
        The number of rows of C in use; -1 if the equations of the base are singular.
    """
    problem, mass, h = whole_body_at(data(memory), 0), data(item(terms, M)), data(item(terms, H))
    begin_base(robot, problem, mass, h)
    for k in range(n):
        describe_leg(robot.nv, terms, problem.body, problem.leg[k])
        add_leg(robot, problem, mass, k)
    if not solve_base(problem.base_matrix, problem.base_rows, 3 * n + 1):
        return -1
    write_accelerations(robot, problem)
    write_torques(robot, problem, mass, h)
    rows = write_pyramids(robot, problem)
    write_tasks(robot, problem, terms)
    write_cost(problem)
    return rows
