# SPDX-License-Identifier: Apache-2.0
"""The arena: where every number of a model stands in the one flat array that the kernels work on.

The kernels compute four bodies at a time, one in each lane of a vector register. A *pack* is a group of up to
four bodies of the same depth in the tree, whose parents sit in the same lanes of one other pack. The four
legs of a quadruped fill three packs (hips, thighs, calves). The base is pack 0: its pose and velocity stand
in all four lanes, so that every child finds its parent in its own lane; its inertia stands in lane 0 alone,
so that the sum over the lanes is the whole. Empty lanes hold a massless body whose joint has unit inertia: it
moves nothing.

    header      HEADER words: counts, addresses, gravity
    joints      JOINT_WORDS words for each joint: where its body's lane is, its friction, ...
    packs       PACK_WORDS words for each pack, in rows of four lanes: constants first, then room to work in
    scratch     the 6 x 6 system of the base and other small things

The array is float64; counts and addresses are int64 with the same bits. Addresses count words from the start
of the arena. Inside the kernels the frame K of a body has its origin at the joint and its z axis along the
joint's axis. Frame A, in which everything is computed, has world axes and its origin at the base.
"""

from __future__ import annotations

from quad_dynamics.compiler.types import LANES, SIZES

# Header: addresses of single words (3 for gravity).
NJ, PACKS, FLOATING, NQ, NV, NB, ROTORS = range(7)
assert SIZES == {'nj': NJ, 'nq': NQ, 'nv': NV, 'nb': NB}
GRAVITY = 7  # [m/s^2], world axes
JOINTS, FIRST_PACK, SCRATCH = range(10, 13)
# Then follow addresses of Python objects in this process: ARRAY_TYPE, FLOAT64_DTYPE, NONE_OBJECT, BOOL_DTYPE.
HEADER = 24

# Joint table: offsets within the entry of one joint.
J_LANE = 0  # address of the first row of its body's lane
J_PARENT = 1  # index of the parent joint, -1 for the base
J_SUBTREE = 2  # number of joints that it moves, itself included: they are j, j + 1, ...
J_VISCOUS, J_COULOMB = 3, 4  # [N m s/rad, N m]
JOINT_WORDS = 5

_used = 0


def _rows(count: int) -> int:
    """Reserve rows in a pack; returns their offset in words."""
    global _used  # noqa: PLW0603 (runs at import only)
    offset = _used
    _used += count * LANES
    return offset


# Pack: offsets of rows. Constants:
PARENT = _rows(1)  # address of the parents' pack, int64, in the first lane
JOINT = _rows(1)  # index of the body's joint, int64; 0 in an empty lane: reading a state needs no branch
OWN_JOINT = _rows(1)  # the same, but -1 in an empty lane
TREE_R = _rows(9)  # R_PK of the joint at q = 0, row by row
TREE_P = _rows(3)  # p_PK [m]
REVOLUTE, PRISMATIC = _rows(1), _rows(1)  # 1 or 0
MASS = _rows(1)  # [kg]
MOMENT = _rows(3)  # mass times com [kg m], axes of K
INERTIA = _rows(6)  # xx xy yy xz yz zz about the origin of K [kg m^2]
LINK_R = _rows(9)  # R_KL: axes of the link that the body is named after
ROTOR_GEAR = _rows(1)
ROTOR_AXIS = _rows(3)  # spin axis, in the parent's frame
ROTOR_K, ROTOR_KK = _rows(1), _rows(1)  # gear * J and gear^2 * J of the rotor [kg m^2]; 1 in an empty lane
# What kernels write from here on; it starts as NaN.
WORKSPACE = _used
# Inputs and outputs, one number for each joint:
QD, QDD, TAU, GIVEN, SIN, COS = (_rows(1) for _ in range(6))
# Room to work in, all in frame A:
ROT = _rows(9)  # R_AK, row by row
POS = _rows(3)  # p_AK [m]
AXIS_V, AXIS_W = _rows(3), _rows(3)  # S: the joint's motion [v; w] at unit speed
VEL_V, VEL_W = _rows(3), _rows(3)  # spatial velocity
ACC_V, ACC_W = _rows(3), _rows(3)  # spatial acceleration
BIAS_V, BIAS_W = _rows(3), _rows(3)  # c = v x S qd
FORCE_F, FORCE_N = _rows(3), _rows(3)  # wrench [f; n]
I_M, I_H, I_J = _rows(1), _rows(3), _rows(6)  # rigid inertia: mass, first moment, inertia about the origin
ART_M, ART_H, ART_J = _rows(6), _rows(9), _rows(6)  # articulated inertia [M H; H^T J]
U_F, U_N = _rows(3), _rows(3)  # articulated inertia times S, plus the coupling to the rotor
D_INV, U_TAU = _rows(1), _rows(1)  # 1/d; u = tau - S . (p^A + I^A c)
D_ROOT = _rows(1)  # simulation: the root of 1/d
D, TAU_BIAS = _rows(1), _rows(1)  # hybrid dynamics: d; torque at which the joint does not accelerate
DAXIS_V, DAXIS_W = _rows(3), _rows(3)  # d/dt S
CORIOLIS_P, CORIOLIS_D = _rows(3), _rows(9)  # Coriolis factor [0 -[p]; 0 D]
REG_R, REG_A, REG_W, REG_ALPHA, REG_G = _rows(9), _rows(3), _rows(3), _rows(3), _rows(9)
REG_ROW = _rows(10)  # one row of the regressor

PACK_WORDS = _used

# Scratch: offsets.
BASE_L = 0  # 6 x 6 unit lower factor of the base's articulated inertia, row by row
BASE_D_INV = 36  # 6: inverse of its diagonal
BASE_MOTION = 42  # 6 x 6: motion [v; w] of the base at unit speed of each of its coordinates
BASE_D_ROOT = 78  # 6: the roots of BASE_D_INV
SCRATCH_WORDS = 84
