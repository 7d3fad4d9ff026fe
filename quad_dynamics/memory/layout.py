# SPDX-License-Identifier: Apache-2.0
"""The memory of a robot: its constants, and the workspace of the kernels (see `compiler.records`).

The kernels compute four bodies at a time, one in each lane of a vector register. A *pack* is a group of up to
four bodies of the same depth in the tree, whose parents are in the same lanes of one other pack. The four
legs of a quadruped fill three packs (hips, thighs, calves). The base is pack 0: its pose and velocity are in
all four lanes, so that every child finds its parent in its own lane; its inertia is in lane 0 only, so that
the sum over the lanes is correct. Empty lanes contain a massless body whose joint has unit inertia: it has
no effect.

Bodies that would be alone in their packs, for instance those of an arm on the back, leave three lanes empty.
If a kernel supports it, they share packs: a *mixed* pack contains any four bodies, and its last lanes may be
empty. Quantities of a single body are computed for all four; the exchange with the parent is computed body by
body, in the order of `Robot.mixed`. Mixed packs come after all others, the *aligned* ones. A robot has both
forms, see `memory.packing`.

Inside the kernels the frame K of a body has its origin at the joint and its z axis along the joint's axis.
Frame A, in which everything is computed, has world axes and its origin at the base.
"""

from __future__ import annotations

from quad_dynamics.compiler.header import Header
from quad_dynamics.compiler.records import (
    FLOAT,
    INT,
    MAT3,
    SYM3,
    VEC3,
    VEC6,
    Field,
    Record,
    constant,
    constant_rows,
    field,
    reference,
    rows,
    table,
    tuple_of,
)


class BodyRows(Record, view='abstract'):
    """A body and the joint that moves it. Constants come first, then results of the kernels."""

    joint = constant_rows(
        INT, 'index of its joint; 0 in an empty lane, so that reading a state needs no branch'
    )
    own_joint = constant_rows(INT, 'the same, but -1 in an empty lane')
    tree_rotation = constant_rows(MAT3, 'R_PK of the joint at q = 0')
    tree_position = constant_rows(VEC3, 'p_PK of the joint at q = 0', 'm')
    revolute = constant_rows(FLOAT, '1 for a revolute joint, else 0')
    prismatic = constant_rows(FLOAT, '1 for a prismatic joint, else 0')
    mass = constant_rows(FLOAT, 'mass of the body', 'kg')
    first_moment = constant_rows(VEC3, 'mass times centre of mass, axes of K', 'kg m')
    inertia = constant_rows(SYM3, 'inertia about the origin of K, in its axes', 'kg m^2')
    link_rotation = constant_rows(MAT3, 'R_KL: axes of the link that the body is named after')
    rotor_gear = constant_rows(FLOAT, 'gear ratio: revolutions of the rotor per revolution of the joint')
    rotor_axis = constant_rows(VEC3, 'rotation axis of the rotor, in the frame of the parent')
    rotor_coupling = constant_rows(FLOAT, 'gear * J of the rotor', 'kg m^2')
    joint_inertia = rows(
        FLOAT,
        'inertia at the joint in addition to that of the bodies: gear^2 J of the rotor, and the terms that '
        'the simulator adds for drives and friction in a time step; 1 in an empty lane',
        'kg m^2',
    )
    # The state of the joint.
    qd = rows(FLOAT, 'velocity', 'rad/s, m/s')
    qdd = rows(FLOAT, 'acceleration', 'rad/s^2, m/s^2')
    tau = rows(FLOAT, 'torque', 'N m, N')
    prescribed = rows(FLOAT, 'hybrid dynamics: 1 if the acceleration is given, 0 if the torque is')
    sine = rows(FLOAT, 'sine of the joint angle; 0 for a prismatic joint')
    cosine = rows(FLOAT, 'cosine of the joint angle; 1 for a prismatic joint')
    # Motion, in frame A. Velocities are relative to the observer of a kernel (see `kernels.tree`).
    rotation = rows(MAT3, 'R_AK')
    position = rows(VEC3, 'p_AK', 'm')
    axis_v = rows(VEC3, "S: the joint's motion [v; w] at unit speed, linear part")
    axis_w = rows(VEC3, 'S, angular part')
    v = rows(VEC3, 'spatial velocity, linear part', 'm/s')
    w = rows(VEC3, 'spatial velocity, angular part', 'rad/s')
    a = rows(VEC3, 'spatial acceleration, linear part', 'm/s^2')
    alpha = rows(VEC3, 'spatial acceleration, angular part', 'rad/s^2')
    change_qd = rows(FLOAT, 'simulation: change of the joint velocity by impulses', 'rad/s, m/s')
    change_v = rows(VEC3, 'simulation: change of the velocity by impulses, linear part', 'm/s')
    change_w = rows(VEC3, 'simulation: change of the velocity by impulses, angular part', 'rad/s')
    bias_v = rows(VEC3, 'c = v x S qd, linear part', 'm/s^2')
    bias_w = rows(VEC3, 'c = v x S qd, angular part', 'rad/s^2')
    f = rows(VEC3, 'wrench [f; n] required by the body and its subtree; articulated bodies: p^A', 'N')
    n = rows(VEC3, 'moment of that wrench, about the origin of A', 'N m')
    # Composite rigid bodies.
    composite_m = rows(FLOAT, 'mass of the body; of its subtree once that has been added', 'kg')
    composite_h = rows(VEC3, 'the same, first moment', 'kg m')
    composite_J = rows(SYM3, 'the same, inertia about the origin of A', 'kg m^2')
    # Articulated bodies.
    articulated_M = rows(SYM3, 'articulated inertia [M H; H^T J]', 'kg')
    articulated_H = rows(MAT3, 'the same, coupling', 'kg m')
    articulated_J = rows(SYM3, 'the same, angular part', 'kg m^2')
    U_f = rows(VEC3, 'U: articulated inertia times S, with the coupling to the rotor; linear part')
    U_n = rows(VEC3, 'U, angular part')
    d_inv = rows(FLOAT, '1/d, with d = S . U of the joint')
    u_tau = rows(FLOAT, 'u = tau - S . (p^A + I^A c)', 'N m, N')
    d_inv_root = rows(FLOAT, 'simulation: square root of 1/d')
    d = rows(FLOAT, 'hybrid dynamics: d')
    bias_torque = rows(FLOAT, 'hybrid dynamics: torque at which the joint does not accelerate', 'N m, N')
    # Mass and Coriolis matrix.
    momentum_f = rows(VEC3, 'F = I^c S: momentum of the subtree at unit joint speed, including the rotor')
    momentum_n = rows(VEC3, 'the same, angular part')
    momentum_n_B = rows(VEC3, 'the same in base axes')
    M_jj = rows(FLOAT, "the joint's diagonal element of the mass matrix")
    axis_rate_v = rows(VEC3, 'd/dt S, linear part')
    axis_rate_w = rows(VEC3, 'd/dt S, angular part')
    coriolis_p = rows(VEC3, 'Coriolis factor B = [0 -[p]; 0 D]: linear momentum p', 'N s')
    coriolis_D = rows(MAT3, 'Coriolis factor: D', 'N m s')
    coriolis_f = rows(VEC3, 'I dS/dt + B S, linear part')
    coriolis_n = rows(VEC3, 'I dS/dt + B S, angular part')
    coriolis_transposed_n = rows(VEC3, 'B^T S, angular part; the linear part is zero')
    C_jj = rows(FLOAT, "the joint's diagonal element of the Coriolis matrix")
    # Regressor.
    R_AL = rows(MAT3, "rotation of the link's axes")
    a_L = rows(VEC3, 'classical acceleration of the origin, axes of the link', 'm/s^2')
    w_L = rows(VEC3, 'angular velocity, axes of the link', 'rad/s')
    alpha_L = rows(VEC3, 'angular acceleration, axes of the link', 'rad/s^2')
    G_L = rows(MAT3, '[alpha] + [w][w], axes of the link', '1/s^2')
    power = rows(tuple_of(10), 'one row of the regressor: power of the wrench, per inertial parameter')
    unit_rotor_tau = rows(FLOAT, 'joint torque due to a rotor of unit inertia')
    unit_rotor_n = rows(VEC3, 'moment on the parent due to a rotor of unit inertia')


class Pack(BodyRows, view='pack'):
    """Four bodies, one in each lane."""

    parent: Field[Pack] = reference('Pack', 'their parents')


class Body(BodyRows, view='lane'):
    """One body of a pack."""


# Rows that kernels write. The interpreter marks them as unwritten (see `compiler.interpreter`).
WORKSPACE = [one.name for one in Body.fields if one.offset >= Body.qd.offset]


class Joint(Record):
    """Constants of a joint."""

    body = reference(Body, 'the body that it moves')
    parent = constant(INT, 'index of the parent joint, -1 for the base')
    subtree = constant(INT, 'number of joints in its subtree, including itself: they are j, j + 1, ...')
    viscous = constant(FLOAT, 'viscous friction', 'N m s/rad')
    coulomb = constant(FLOAT, 'Coulomb friction', 'N m')


class MixedBody(Record):
    """A body in a mixed pack."""

    body = reference(Body, 'itself')
    carrier = reference(Body, 'its parent: in any lane of any pack, or the base')


class BaseFactor(Record):
    """Articulated inertia of the base, factored as L D L^T."""

    lower = field(tuple_of(36), 'L: unit lower triangular, row by row')
    d_inv = field(VEC6, 'inverse of the diagonal D')
    d_inv_root = field(VEC6, 'simulation: square roots of d_inv')


class BaseMotion(Record):
    """Motion of the base at unit speed of one of its coordinates."""

    v = field(VEC3, 'linear part')
    w = field(VEC3, 'angular part')


class Robot(Header, root=True):
    """The root record: counts, gravity, and references to everything else."""

    nj = constant(INT, 'number of joints')
    n_packs = constant(INT, 'number of packs')
    n_aligned = constant(
        INT, 'number of aligned packs: bodies are in the lanes of their parents; they come first'
    )
    n_mixed = constant(INT, 'number of bodies in mixed packs')
    floating = constant(INT, '1 for a floating base, 0 for a fixed one')
    nq = constant(INT, 'length of a configuration')
    nv = constant(INT, 'length of a velocity')
    nb = constant(INT, 'number of moving bodies')
    has_rotors = constant(INT, '1 if any rotor has inertia, else 0')
    gravity = constant(VEC3, 'world axes', 'm/s^2')
    joints = table(Joint, ('nj',), 'all joints')
    packs = table(Pack, ('packs',), 'all bodies, parents first; the base is pack 0')
    mixed = table(MixedBody, ('mixed',), 'bodies in mixed packs, parents first')
    base = reference(BaseFactor, "workspace: the base's system of equations")
    base_motions = table(BaseMotion, (6,), 'workspace: one for each coordinate of the base')


class LinkFrame(Record):
    """A frame F that is fixed to a body, in its own array."""

    place = constant(INT, 'offset of its body in the memory of the robot')
    position = constant(VEC3, 'p_KF', 'm')
    rotation = constant(MAT3, 'R_KF')
    joint = constant(INT, 'index of the joint of its body, -1 for the base')
