# SPDX-License-Identifier: Apache-2.0
"""The scene: where everything that a simulator keeps stands in one flat array.

Beside the arena of the robot (`quad_dynamics.model.layout`), which is the simulator's own, a step needs
settings, the tables of contact points and joints, the state, and room to work in. The array is float64;
counts and addresses are int64 with the same bits. Addresses count words from the start of the scene.

    header      settings, counts, addresses
    tables      contact points, joints: constants
    state       all that a snapshot holds: state of the robot, drives and contacts, results of the last step
    room        what a step works in
"""

from __future__ import annotations

# ---------------------------------------------------------------- header

# Settings.
CONTACT = 0  # int: one of NO_CONTACT, IMPULSE, SPRING_DAMPER
CONE, MAX_SWEEPS, SUBSTEPS = 1, 2, 3  # ints: 0 is the pyramid; sweeps; 0 is automatic
JOINT_FRICTION, JOINT_LIMITS, MOTOR_LIMITS, RUNGE_KUTTA = 4, 5, 6, 7  # ints
DT, TOLERANCE, CORRECTION, STIFFNESS, DAMPING, ENERGY_LIMIT = range(8, 14)
DELAY, DELAY_SHARE = 14, 15  # latency: whole time steps (int), and the share of one more
MASS = 16  # of the robot [kg]
# Counts.
N_POINTS, N_FEET, QUEUE_LENGTH, ROW_LENGTH, STATE_LENGTH = range(17, 22)
# Addresses.
POINTS, JOINTS, STATE, Q, U, COMMAND, QUEUE, FORCES, CONTACTS, MEMORY = range(22, 32)
TAU, ACCELERATION, FOOT_FORCES, KEPT, LAST_Q, LAST_U, V, W, Y, PUSH = range(32, 42)
ACTIVE, STOPS, ROWS, MODES, STAGES, NEWTON, CAPACITY = range(42, 49)  # the last: see `delassus`, a count
SIGNS, FACTOR, PIVOTS, BIAS, LDLT = range(49, 54)  # see `joint_space`
FORWARD_DYNAMICS = 54  # setting, int: ABA or CHOLESKY
# From here on, what is not the same in every simulator of the same robot and settings.
TERRAIN = 55  # int: address in memory, not in the scene
LOG, LOG_ROOM, LOG_COUNT, LOG_EVERY, LOG_WORDS = range(56, 61)  # ints: address in memory or 0; rows; ...
N_STOPS = 61  # int: of this step
# An int that is 0: a literal has a type of its own, and numba would compile twice what it is handed to.
NONE = 62
INDEFINITE = 63  # int: whether LLT failed in the last factorization, and SIGNS are not all 1
NEAR_TERRAIN = 64  # int: where the shapes near the robot stand in the terrain; 0: they are not gathered
MOMENTUM_CORRECTION = 65  # setting, int; of a floating base
HEADER = 72

NO_CONTACT, IMPULSE, SPRING_DAMPER = 0, 1, 2
ABA, CHOLESKY = 0, 1
NO_FRICTION, EXPLICIT_FRICTION, STICKING_FRICTION = 0, 1, 2

# ---------------------------------------------------------------- tables

# A contact point.
P_LANE, P_JOINT, P_FIRST, P_BLOCKS, P_FOOT = range(5)  # ints: lane of its body; limb: see `constraints`
P_POSITION, P_RADIUS = 5, 8  # in frame K [m]
P_MOBILITY = 9  # largest inverse mass that a force on it feels [1/kg]
POINT_WORDS = 10

# A joint.
J_FIRST, J_BLOCKS = 0, 1  # ints: as for a point
J_LOWEST, J_HIGHEST = 2, 3  # limits
J_VISCOUS, J_COULOMB = 4, 5
J_INERTIA = 6  # gear^2 J of the rotor: what stands in the arena's row ROTOR_KK without friction
J_LOCK = 7  # inertia that holds a joint: far above its own
J_EFFORT, J_STALL, J_SLOPE = 8, 9, 10  # motor: |tau| <= effort, and -stall <= tau + slope qd <= stall
JOINT_WORDS = 11

# ---------------------------------------------------------------- state

# The first words of the state; the rest is found by the addresses in the header.
STEP = 0  # int: time steps since the reset
HAS_GAINS = 1  # int: whether the command has any
SWEEPS, RESIDUAL, SUBSTEPS_DONE, CONVERGED = 2, 3, 4, 5
LDLT_USED = 6  # solutions of the last step in which LLT failed
LDLT_STEPS = 7  # int: time steps since the reset with such a solution
ITERATIONS = 8  # Newton steps of the contact solver in the last step
STATE_WORDS = 9

# Rows of a command, each of nj numbers.
COMMAND_TAU, COMMAND_KP, COMMAND_Q, COMMAND_KD, COMMAND_QD = range(5)
COMMAND_ROWS = 5

# An external force.
F_LANE = 0  # int
F_POSITION, F_WRENCH, F_LEFT = (
    1,
    4,
    10,
)  # in frame K [m]; [force; moment] in world axes; time that it still acts [s]
FORCE_WORDS = 11
MAX_FORCES = 16

# A joint in the state.
K_MODE = 0  # what it did in the last step (see `drives`)
K_STOP = 1  # impulse of its lower limit, less that of its upper one, in the last step
K_FRICTION = 2  # impulse of its dry friction in the last step, where that was solved for with the contacts
MEMORY_WORDS = 3

# A contact point in the state.
C_IMPULSE = 0  # 3: that it got in the last step, world axes [N s]
C_DEFLECTION = 3  # 3: tangential, of spring-damper contact, world axes [m]
C_DISTANCE = 6  # to the ground before the last step [m]
C_NORMAL = 7  # 3
C_CORNER = 10  # 3: the part of C_IMPULSE that its second contact got, in a corner [N s]
CONTACT_WORDS = 13

# ---------------------------------------------------------------- room to work in

# An active contact: three rows (normal, first and second tangent), see `constraints`.
A_POINT, A_FIRST, A_BLOCKS, A_JOINT, A_ROW = range(5)  # ints; the first of its rows in ROWS
A_NORMAL, A_TANGENT = 5, 8  # 3, 3: the second tangent is their cross product
A_PLACE = 11  # 3: where it touches, from the base's origin in world axes
A_MU, A_DISTANCE = 14, 15
A_PUSH = 16  # of the displacement that removes penetration
A_FREE = 17  # 3: velocity without contact forces [m/s]
A_TARGET = 20  # normal velocity that it may not be below [m/s]
A_IMPULSE = 21  # 3 [N s]
A_INERTIA = 24  # 6: what its own impulses do to its velocity: nn n1 n2 11 12 22 [1/kg]
A_INVERSE = 30  # 6: the inverse of that; all zero where there is none
A_CALM, A_BOUNCE = 36, 37  # the target without restitution; with it, or 0 if it does not hit the ground [m/s]
A_KEPT = 38  # 6: two impulses that are kept while others are tried [N s]
A_UNKNOWN = 44  # int: the first of its unknowns in `delassus`, or -1
ACTIVE_WORDS = 45

# A stop, which is a joint at its limit: one row.
L_JOINT, L_ROW = 0, 1  # ints
L_SIGN, L_DISTANCE, L_FREE, L_TARGET, L_IMPULSE, L_INERTIA = range(2, 8)
L_KEPT = 8  # 2
L_LOW, L_HIGH = 10, 11  # bounds of the impulse
L_UNKNOWN = 12  # int: as for a contact
STOP_WORDS = 13

# What a joint does in a step (see `drives`): two rows of nj numbers, the mode and how often it was changed.
M_CHANGES = 1
MODE_ROWS = 2

# Contacts and stops with more unknowns than this are left to the sweeps.
MOST_UNKNOWNS = 1200

BASE_COLUMNS = 8  # of a row: six for the base, two empty
