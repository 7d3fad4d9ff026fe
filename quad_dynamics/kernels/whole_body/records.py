# SPDX-License-Identifier: Apache-2.0
"""The problem of whole-body control, with the equation of motion and the contact constraints eliminated.

Each leg l has three unknowns x_l: the ground reaction force f_l if its foot is in stance, the acceleration
a_l of its foot if it swings. The acceleration of a stance foot is given. With the point Jacobian
J_l = [J_b J_j] of a foot (columns of the base and of the leg's own joints), the joint accelerations follow
from the base,

    qdd_l = P_l (a_l - dJ_l/dt u - J_b a_b) + (1 - P_l J_j) qdd_0,        P_l = J_j^T (J_j J_j^T)^-1,

and the base rows of the equation of motion give its acceleration:

    (M_bb - sum M_bl P_l J_b) a_b = sum J_b^T f_l - sum M_bl (qdd_l at a_b = 0) - h_b.

Accelerations and torques are therefore affine in the unknowns z, du = D z + d and tau = T z + t, and both
constraints hold for every z. P_l is damped near a singularity of the leg (Nakamura and Hanafusa 1986): the
joints of a stretched leg cannot prevent its foot from accelerating. qdd_0 are the desired accelerations in
the null space of the feet: of legs with more than three joints, and of joints that belong to no leg.

A leg of two joints can only move its foot in a plane with the normal e: e^T J_j = 0. P_l is the inverse
within the plane. Along e the joints can neither move nor push the foot, but the ground still holds it:
e^T f_l is a reaction, and the base must follow,

    e^T (J_b a_b + dJ_l/dt u) = e^T a_l.

This is a task row with a weight far above all others, not an equality, so that the foot may slide in the
model if the friction pyramid does not contain the reaction.

Forces are unknowns in units of `BodyTasks.unit`, so that all unknowns have a similar magnitude.
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import record_at
from quad_dynamics.compiler.records import (
    FLOAT,
    INT,
    MAT3,
    VEC3,
    Record,
    constant,
    embedded,
    field,
    numbers,
    table,
)

MOST_JOINTS = 10  # of a leg
PYRAMID_ROWS = 5  # per stance foot: the four sides of the friction pyramid, and the normal force


class FootSphere(Record):
    """The foot of a leg: a sphere, fixed to a frame."""

    frame = constant(INT, 'index among the frames of the controller terms')
    offset = constant(VEC3, 'position of its centre, in axes of the frame', 'm')
    radius = constant(FLOAT, 'radius of the sphere', 'm')


class FootMotion(Record):
    """Motion of the centre of a foot, in world axes."""

    position = field(VEC3, 'position of the centre', 'm')
    velocity = field(VEC3, 'velocity of the centre', 'm/s')
    angular_velocity = field(VEC3, 'angular velocity of the foot', 'rad/s')


class Feet(Record, root=True):
    """Input and output of the kernel `foot_motions`."""

    spheres = table(FootSphere, ('legs',), 'the feet, one for each leg')
    motions = table(FootMotion, ('legs',), 'their motions: the result')


class LegJoint(Record):
    """A joint of a leg."""

    index = field(INT, 'index of the joint in the robot')
    inverse = field(VEC3, 'its row of P_l', 'rad/m')
    bias = field(FLOAT, 'its acceleration at z = 0 and a_b = 0', 'rad/s^2')


class TaskLeg(Record):
    """A leg, its tasks, and the results of the reduction; world axes."""

    foot = embedded(FootSphere, 'the foot at its end')
    joints = table(LegJoint, (), 'its joints')
    joint_count = field(INT, 'number of its joints')
    planar = field(INT, 'whether its joints cannot move its foot in one direction')

    down = field(INT, 'whether its foot is in stance')
    acceleration = field(
        VEC3,
        'desired acceleration of the foot: of its centre in swing, of its lowest point in stance',
        'm/s^2',
    )
    most_force = field(FLOAT, 'maximum normal force', 'N')
    force = field(VEC3, 'preferred force, if the tasks leave a choice', 'N')

    jacobian = numbers((), 'J_l of the point whose acceleration is given: (3, nv)')
    bias = field(VEC3, 'dJ_l/dt u of that point', 'm/s^2')
    normal = field(VEC3, 'e of a planar leg')


class BodyTasks(Record):
    """Desired motion of the whole robot, and weights; world axes."""

    com = field(VEC3, 'desired acceleration of the centre of mass', 'm/s^2')
    angular = field(VEC3, 'desired angular acceleration of the base', 'rad/s^2')
    axes = field(MAT3, 'columns: two directions along the ground, and its normal')
    R_WB = field(MAT3, 'orientation of the base')
    com_weight = field(VEC3, 'weight of the centre of mass, along the axes')
    angular_weight = field(VEC3, 'weight of the base, about the axes')
    swing_weight = field(FLOAT, 'weight of the swing feet')
    regular = field(FLOAT, 'weight of the forces in the cost of the tasks')
    mu = field(FLOAT, 'friction coefficient that the controller assumes')
    unit = field(FLOAT, 'force per unit of an unknown', 'N')
    length = field(FLOAT, 'length of a leg', 'm')


class WholeBody(Record, root=True):
    """The problem in m = 3 legs unknowns z: minimise z^T H z / 2 + c^T z with low <= C z <= high."""

    legs = field(INT, 'number of legs')
    body = embedded(BodyTasks, 'desired motion of the robot')
    leg = table(TaskLeg, ('legs',), 'the legs and their tasks')
    free = numbers(('nj',), 'qdd_0, desired joint accelerations in the null space of the feet', 'rad/s^2')
    lowest = numbers(('nj',), 'minimum torques', 'N m')
    highest = numbers(('nj',), 'maximum torques', 'N m')

    joints = table(LegJoint, ('legs', MOST_JOINTS), 'joints of all legs')
    jacobians = numbers(('legs', 3, 'nv'), 'J_l of all legs')
    base_matrix = numbers((6, 6), 'matrix of the equations of a_b')
    base_rows = numbers((6, 'm + 1'), 'their right-hand sides [G | g]; then their solution a_b = G z + g')

    D = numbers(('nv', 'm'), 'du = D z + d')
    d = numbers(('nv',), 'du = D z + d')
    C = numbers(('rows', 'm'), 'inequalities; the first nj rows are T, of the torques')
    low = numbers(('rows',), 'bounds of C z')
    high = numbers(('rows',), 'bounds of C z')
    W = numbers(('6 + m', 'm'), 'tasks W z = b, times the square roots of their weights')
    b = numbers(('6 + m',), 'tasks W z = b')
    H = numbers(('m', 'm'), 'cost of the tasks')
    c = numbers(('m',), 'cost of the tasks')
    z0 = numbers(('m',), 'preferred z of the forces and the swing feet')

    reflections = numbers(('6 + m', 'm'), 'of the QR factorisation of W^T (see `priorities`)')
    reflection_scales = numbers(('m',), 'scales of the reflections')
    N = numbers(('m', 'm'), 'orthonormal basis of the null space of W, as rows')
    level_c = numbers(('m',), 'gradient of the level below, for z + N^T y at y = 0')
    level_C = numbers(('rows * m',), 'its inequalities C N^T, (rows, unknowns)')
    level_low = numbers(('rows',), 'bounds of C N^T y')
    level_high = numbers(('rows',), 'bounds of C N^T y')


feet_at = record_at(Feet)
whole_body_at = record_at(WholeBody)
