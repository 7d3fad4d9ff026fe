# SPDX-License-Identifier: Apache-2.0
"""Constraints of one joint: its limits, and dry friction that is solved together with the contacts.

Both are rows with bounds on the impulse p: a joint limit pushes, 0 <= p; dry friction has |p| <= h F_c (see
`drives` for the joints whose friction needs this). In the kernels, *stop* stands for both.
"""

from __future__ import annotations

import math

from quad_dynamics.compiler.record_types import clear, part
from quad_dynamics.compiler.records import Numbers
from quad_dynamics.compiler.trace import apart, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.simulation.scene import Scene, Stop
from quad_dynamics.memory.layout import Robot

LIMIT_MARGIN = 1e-3  # a joint this close to its limit is active [rad, m]


@subroutine
def find_stops(robot: Robot, scene: Scene, h: Number) -> None:
    """List the joints that may reach a limit in this step."""
    apart(robot)
    scene.n_stops = scene.zero
    look_for_stops(robot, scene, scene.u, LIMIT_MARGIN, 2.0 * h, h)


@subroutine
def add_stops(robot: Robot, scene: Scene, h: Number) -> Int:
    """List the joints that would exceed a limit with `velocity` and are not listed; returns their number."""
    apart(robot)
    listed = scene.n_stops
    look_for_stops(robot, scene, scene.velocity, 0.0, h, h)
    return scene.n_stops - listed


@routine
def look_for_stops(
    robot: Robot, scene: Scene, speeds: Numbers, margin: Number, time: Number, h: Number
) -> None:
    """List the joints that may reach a limit within a time, unless they are already listed."""
    if scene.settings.joint_limits == 0:
        return
    nj, drives = robot.nj, scene.drives
    q = part(scene.q, robot.nq - nj)
    u = part(speeds, robot.nv - nj)
    for j in range(nj):
        drive = drives[j]
        lowest, highest = q[j] - drive.lowest, drive.highest - q[j]
        if lowest < margin - time * min(u[j], 0.0) and not is_listed(scene, j, 1.0):
            list_stop(scene, j, 1.0, lowest, h)
        if highest < margin + time * max(u[j], 0.0) and not is_listed(scene, j, -1.0):
            list_stop(scene, j, -1.0, highest, h)


@routine
def is_listed(scene: Scene, joint: Int, sign: Number) -> Bool:
    """Whether the lower (sign 1) or upper (-1) limit of a joint is listed."""
    stops = scene.stops
    found = False
    for i in range(scene.n_stops):
        stop = stops[i]
        is_limit = not stop.lowest < 0.0
        found |= is_limit and stop.joint == joint and stop.sign == sign
    return found


@routine
def list_stop(scene: Scene, joint: Int, sign: Number, distance: Number, h: Number) -> None:
    """Add a joint near its lower (sign 1) or upper (-1) limit; it may move up to the limit."""
    stop = new_stop(scene, joint, sign)
    stop.distance = distance
    stop.target = -max(distance, 0.0) / h
    stop.highest = math.inf
    stop.impulse = max(sign * scene.joint_memory[joint].limit_impulse, 0.0)


@routine
def list_friction(scene: Scene, joint: Int, limit: Number, impulse: Number) -> None:
    """Add dry friction of a joint, at most `limit` in either direction, as a constraint."""
    stop = new_stop(scene, joint, 1.0)
    stop.lowest = -limit
    stop.highest = limit
    stop.impulse = impulse


@routine
def new_stop(scene: Scene, joint: Int, sign: Number) -> Stop:
    """A new entry for a joint at the end of the list."""
    n = scene.n_stops
    stop = scene.stops[n]
    scene.n_stops = n + 1
    clear(stop)
    stop.joint = joint
    stop.sign = sign
    return stop


@routine
def has_friction_rows(scene: Scene, n_stops: Int) -> Bool:
    """Whether dry friction of any joint is among the constraints."""
    found = False
    for i in range(n_stops):
        found |= scene.stops[i].lowest < 0.0
    return found


@routine
def keep_joints(robot: Robot, scene: Scene) -> None:
    """Store the joint motion and the impulses of the limits, to warm-start the next step."""
    nj, modes, memory = robot.nj, scene.modes, scene.joint_memory
    for j in range(nj):
        memory[j].mode = modes[j].mode
        memory[j].limit_impulse = 0.0
    for i in range(scene.n_stops):
        stop = scene.stops[i]
        if not stop.lowest < 0.0:
            memory[stop.joint].limit_impulse += stop.sign * stop.impulse
