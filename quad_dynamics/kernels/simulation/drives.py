# SPDX-License-Identifier: Apache-2.0
"""Joint drives: command latency, motor limits, and dry friction of the joints.

A command is a torque and, if gains are given, a desired position and speed. The motor is a DC motor with a
gear: its current, and with it the torque, is limited by the battery voltage minus the back-EMF.

Coulomb friction is solved exactly, joint by joint. A joint either slides, and friction F_c opposes its
motion; or it sticks, and friction is whatever holds it, at most F_c. A sticking joint gets an inertia so
large that it does not move; the force on that inertia is its friction. The solver guesses which joints stick
(those at rest), solves the step, corrects the wrong guesses and solves the step again: a sticking joint that
needs more than F_c slides, and a sliding joint whose speed would change its sign sticks. If neither mode is
consistent, the friction of the joint becomes a constraint and is solved together with the contacts
(`stops.list_friction`). The number of joints is finite, so this terminates. Viscous friction is evaluated at
the end of the step, through the inertia h F_v, so it is stable for every time step h.
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import part
from quad_dynamics.compiler.trace import apart, formula, routine, subroutine
from quad_dynamics.compiler.types import Bool, Int, Number
from quad_dynamics.kernels.contact.stops import list_friction
from quad_dynamics.kernels.simulation.scene import (
    EXPLICIT_FRICTION,
    STICKING_FRICTION,
    DriveCommand,
    JointDrive,
    Scene,
)
from quad_dynamics.kernels.tree import base_rows, clear_torques
from quad_dynamics.memory.layout import Robot

# Mode of a joint in a step: free (no Coulomb friction), sliding up or down, or sticking.
FREE, UP, DOWN, STUCK = 0.0, 1.0, -1.0, 2.0
# The mode of a joint whose friction was a constraint counts up from SOLVED; below FORGET, the next step
# starts with the constraint again.
SOLVED, FORGET = 3.0, 19.0

# A sticking joint gets this multiple of its inertia in the neutral pose: `JointDrive.lock`.
LOCK = 1e8
# Friction that exceeds F_c by less than this factor counts as F_c: rounding must not change a mode.
_ROUNDING = 1.0 + 1e-9
# Friction from a constraint that is above this fraction of F_c counts as F_c.
_AT_LIMIT = 1.0 - 1e-9
# A joint is assumed to stick if this fraction of F_c could stop it within the step, unless it slid in the
# same direction before.
_SLOW = 0.01
# From this round on, the friction of a joint with a wrong mode becomes a constraint; before it, only that of
# a joint whose mode is wrong for the second time.
_CAREFUL_ROUND = 4


# ---------------------------------------------------------------- torques


@subroutine
def give_torques(robot: Robot, scene: Scene) -> None:
    """Write the motor torques of this step to `tau`; they are constant during the step."""
    apart(robot)
    nj = robot.nj
    state, tau, command = scene.state, scene.tau, scene.command
    gains = state.has_gains
    length = scene.queue_length
    if length == 0:
        for j in range(nj):
            tau[j] = wanted_torque(robot, scene, command[j], j, gains)
    else:
        delay_command(robot, scene, nj, length)
    if scene.settings.motor_limits != 0:
        qd = part(scene.u, base_rows(robot))
        drives = scene.drives
        for j in range(nj):
            tau[j] = limit_torque(drives[j], tau[j], qd[j])


@routine
def wanted_torque(robot: Robot, scene: Scene, command: DriveCommand, j: Int, gains: Int) -> Number:
    """Commanded torque of joint j: tau + kp (q - q_j) + kd (qd - qd_j)."""
    torque = command.tau
    if gains != 0:
        q = scene.q[robot.nq - robot.nj + j]
        qd = scene.u[base_rows(robot) + j]
        torque += command.kp * (command.q - q)
        torque += command.kd * (command.qd - qd)
    return torque


@routine
def delay_command(robot: Robot, scene: Scene, nj: Int, length: Int) -> None:
    """Append the command to the queue, and take the one that arrives now.

    If the latency is not a multiple of the time step, a command arrives within a step: the torque is the mean
    over the step.
    """
    tau, command, queue = scene.tau, scene.command, scene.queue
    step = scene.state.step
    newest = (step % length) * nj
    for j in range(nj):
        copy_command(command[j], queue[newest + j])
    delay, share = scene.settings.delay, scene.settings.delay_share
    # a queue entry that was never written is zero: no torque
    now = ((step - delay + length) % length) * nj
    before = ((step - delay - 1 + length) % length) * nj
    for j in range(nj):
        torque = (1.0 - share) * wanted_torque(robot, scene, queue[now + j], j, 1)
        if share > 0.0:
            torque += share * wanted_torque(robot, scene, queue[before + j], j, 1)
        tau[j] = torque


@formula
def copy_command(command: DriveCommand, to: DriveCommand) -> None:
    """Copy the command of one joint."""
    to.tau, to.kp, to.q = command.tau, command.kp, command.q
    to.kd, to.qd = command.kd, command.qd


@routine
def limit_torque(drive: JointDrive, torque: Number, qd: Number) -> Number:
    """Limit a torque to the torque-speed line of the motor, then to its maximum."""
    back = drive.slope * qd
    stall, effort = drive.stall, drive.effort
    torque = min(max(torque, -stall - back), stall - back)
    return min(max(torque, -effort), effort)


# ---------------------------------------------------------------- friction


@subroutine
def guess_modes(robot: Robot, scene: Scene, h: Number) -> None:
    """Initial guess of the joint modes of this step."""
    apart(robot)
    nj, modes, drives = robot.nj, scene.modes, scene.drives
    qd, memory = part(scene.u, base_rows(robot)), scene.joint_memory
    sticks = scene.settings.joint_friction == STICKING_FRICTION
    for j in range(nj):
        mode, drive, last = FREE, drives[j], memory[j]
        modes[j].changes = 0.0
        modes[j].solved = 0.0
        if sticks and drive.coulomb > 0.0:
            if last.mode >= SOLVED:
                modes[j].solved = last.mode
                list_friction(scene, j, h * drive.coulomb, last.friction_impulse)
            else:
                mode = UP if qd[j] > 0.0 else DOWN
                if is_slow(drive, qd[j], _SLOW * h) and not (last.mode == mode and qd[j] != 0.0):
                    mode = STUCK
        modes[j].mode = mode


@routine
def is_slow(drive: JointDrive, speed: Number, time: Number) -> Bool:
    """Whether dry friction alone would stop a joint within a time, in the neutral pose."""
    return abs(speed) * drive.lock <= LOCK * time * drive.coulomb


@subroutine
def load_joints(robot: Robot, scene: Scene, h: Number, centred: Bool) -> None:
    """Write torques, friction and inertias of the joints to the bodies, for a step of length h.

    Viscous friction acts on the speed at the end of the step; if `centred`, on the mean speed where it is
    weak.
    """
    apart(robot)
    modes, drives, tau = scene.modes, scene.drives, scene.tau
    qd, kind = part(scene.u, base_rows(robot)), scene.settings.joint_friction
    clear_torques(robot)
    for j in range(robot.nj):
        drive, body = drives[j], robot.joints[j].body
        inertia, torque = drive.rotor_inertia, tau[j]
        mode, speed = modes[j].mode, qd[j]
        if kind == STICKING_FRICTION:
            if mode == STUCK:
                # the inertia alone would preserve the speed: it is removed as well
                inertia += drive.lock
                torque -= drive.lock / h * speed
            else:
                inertia += h * drive.viscous * (viscous_share(drive, h) if centred else 1.0)
                torque -= drive.viscous * speed + mode * drive.coulomb
        elif kind == EXPLICIT_FRICTION:
            torque -= explicit_friction(drive, speed)
        body.tau = torque
        body.joint_inertia = inertia


@routine
def viscous_share(drive: JointDrive, h: Number) -> Number:
    """The weight theta of the final speed in the speed on which viscous friction acts.

    It is 1/2 (second order) if friction removes little of a speed, and goes to 1 if it removes all of it:
    exponential fitting of the theta method, 1/(1 - exp(-x)) - 1/x, to first order in x.
    """
    x = h * drive.viscous * LOCK
    return (3.0 * drive.lock + x) / (6.0 * drive.lock + x)


@routine
def explicit_friction(drive: JointDrive, speed: Number) -> Number:
    """F_v qd + F_c sgn(qd)."""
    sign = 1.0 if speed > 0.0 else (-1.0 if speed < 0.0 else 0.0)
    return drive.viscous * speed + drive.coulomb * sign


@subroutine
def change_modes(robot: Robot, scene: Scene, h: Number, round_: Int) -> Int:
    """Change the modes that contradict the solved `velocity`; returns their number."""
    apart(robot)
    nj, modes, drives = robot.nj, scene.modes, scene.drives
    v = part(scene.velocity, base_rows(robot))
    changed = 0
    for j in range(nj):
        mode, speed = modes[j].mode, v[j]
        drive = drives[j]
        limit = h * drive.coulomb
        new = mode
        if mode == STUCK:
            # friction is the force on the large inertia: lock qd / h
            if abs(speed) * drive.lock > limit * _ROUNDING:
                new = UP if speed > 0.0 else DOWN
        elif mode * speed < 0.0:
            new = STUCK
        if new != mode:
            if round_ >= _CAREFUL_ROUND or modes[j].changes > 0.0:
                list_friction(scene, j, limit, -limit * (mode if new == STUCK else new))
                new = FREE
            modes[j].changes += 1.0
            modes[j].mode = new
            changed += 1
    return changed


@subroutine
def solve_all_friction(robot: Robot, scene: Scene, h: Number) -> Int:
    """Make the friction of all joints a constraint; returns the number of joints that had a mode."""
    apart(robot)
    nj, modes, drives = robot.nj, scene.modes, scene.drives
    v = part(scene.velocity, base_rows(robot))
    changed = 0
    for j in range(nj):
        mode = modes[j].mode
        if mode != FREE:
            limit = h * drives[j].coulomb
            if mode == STUCK:
                mode = v[j] * drives[j].lock / limit  # friction as a fraction of the limit
            list_friction(scene, j, limit, -limit * min(max(mode, -1.0), 1.0))
            modes[j].mode = FREE
            changed += 1
    return changed


@routine
def has_dry_friction(robot: Robot, scene: Scene) -> Bool:
    """Whether any joint can stick."""
    found = False
    for j in range(robot.nj):
        found |= scene.drives[j].coulomb > 0.0
    return found and scene.settings.joint_friction == STICKING_FRICTION


@routine
def any_stuck(robot: Robot, scene: Scene) -> Bool:
    """Whether any joint sticks."""
    modes = scene.modes
    found = False
    for j in range(robot.nj):
        found |= modes[j].mode == STUCK
    return found


@routine
def stop_stuck(robot: Robot, scene: Scene, h: Number) -> None:
    """Set the speed of sticking joints to 0; joints with a friction constraint stick if it is below F_c."""
    nj, modes, v = robot.nj, scene.modes, part(scene.velocity, base_rows(robot))
    for i in range(scene.n_stops):
        stop = scene.stops[i]
        if stop.lowest < 0.0:
            j, impulse = stop.joint, stop.impulse
            scene.joint_memory[j].friction_impulse = impulse
            # the impulse is only accurate to the tolerance: one at the limit may be slightly below it
            slides = abs(impulse) >= _AT_LIMIT * stop.highest or abs(v[j]) > scene.settings.tolerance
            sure = slides and not is_slow(scene.drives[j], v[j], h)
            steps = max(modes[j].solved, SOLVED) + 1.0  # steps since the constraint was introduced
            if steps < FORGET and not sure:
                modes[j].mode = steps
            elif slides:
                modes[j].mode = DOWN if impulse > 0.0 else UP
            else:
                modes[j].mode = STUCK
            if not slides:
                v[j] = 0.0
    for j in range(nj):
        if modes[j].mode == STUCK:
            v[j] = 0.0
