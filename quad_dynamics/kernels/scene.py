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

from quad_dynamics.compiler.record_types import record_at
from quad_dynamics.compiler.records import FLOAT, INT, UPPER3, VEC3, Record, field


class Contact(Record):
    """An active contact: a point that may touch the ground in this step; three rows (see `constraints`).

    Velocities, impulses and inertias are along its normal and its two tangents, in this order; the second
    tangent is normal x tangent.
    """

    point = field(INT, 'index of the contact point')
    first = field(INT, 'joint with which its limb begins')
    blocks = field(INT, 'blocks of four joints from there to its body')
    joint = field(INT, 'joint that moves its body, -1 for the base')
    row = field(INT, 'place of its first row')
    normal = field(VEC3, 'of the ground, world axes')
    tangent = field(VEC3, 'first tangent, world axes')
    place = field(VEC3, "where it touches, from the base's origin in world axes", 'm')
    mu = field(FLOAT, 'friction')
    distance = field(FLOAT, 'to the ground', 'm')
    push = field(FLOAT, 'impulse of the displacement that removes penetration', 'N s')
    free_velocity = field(VEC3, 'without impulses of contacts and stops', 'm/s')
    target = field(FLOAT, 'normal velocity that it may not be below', 'm/s')
    impulse = field(VEC3, 'that it gets in this step', 'N s')
    inertia = field(UPPER3, 'what its own impulses do to its velocity', '1/kg')
    inverse = field(UPPER3, 'inverse of `inertia`; zero where there is none', 'kg')
    calm_target = field(FLOAT, 'target without restitution', 'm/s')
    bounce_target = field(FLOAT, 'target with restitution, 0 if it does not hit the ground', 'm/s')
    kept_impulse = field(VEC3, 'kept while others are tried', 'N s')
    other_impulse = field(VEC3, 'a second one that is kept', 'N s')
    unknown = field(INT, 'the first of its unknowns in `delassus`, or -1')


class Stop(Record):
    """A constraint of one joint: a limit of its range, or its dry friction; one row (see `stops`)."""

    joint = field(INT, 'index of its joint')
    row = field(INT, 'place of its row')
    sign = field(FLOAT, '1 for the lower limit, -1 for the upper one')
    distance = field(FLOAT, 'to the limit', 'rad, m')
    free_velocity = field(FLOAT, 'without impulses of contacts and stops', 'rad/s, m/s')
    target = field(FLOAT, 'velocity that it may not be below', 'rad/s, m/s')
    impulse = field(FLOAT, 'that it gets in this step', 'N m s, N s')
    inertia = field(FLOAT, 'what its own impulse does to its velocity', '1/(kg m^2), 1/kg')
    kept_impulse = field(FLOAT, 'kept while others are tried', 'N m s, N s')
    other_impulse = field(FLOAT, 'a second one that is kept', 'N m s, N s')
    lowest = field(FLOAT, 'bound of the impulse; below 0 for dry friction only', 'N m s, N s')
    highest = field(FLOAT, 'bound of the impulse', 'N m s, N s')
    unknown = field(INT, 'its unknown in `delassus`, or -1')


contact_at, stop_at = record_at(Contact), record_at(Stop)

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

# Words of an active contact and of a stop, for kernels that do not use the records yet.
A_POINT, A_FIRST, A_BLOCKS, A_JOINT, A_ROW = (
    Contact.point.offset,
    Contact.first.offset,
    Contact.blocks.offset,
    Contact.joint.offset,
    Contact.row.offset,
)
A_NORMAL, A_TANGENT, A_PLACE = Contact.normal.offset, Contact.tangent.offset, Contact.place.offset
A_MU, A_DISTANCE, A_PUSH = Contact.mu.offset, Contact.distance.offset, Contact.push.offset
A_FREE, A_TARGET, A_IMPULSE = Contact.free_velocity.offset, Contact.target.offset, Contact.impulse.offset
A_INERTIA, A_INVERSE = Contact.inertia.offset, Contact.inverse.offset
A_CALM, A_BOUNCE = Contact.calm_target.offset, Contact.bounce_target.offset
A_KEPT, A_UNKNOWN = Contact.kept_impulse.offset, Contact.unknown.offset
ACTIVE_WORDS = Contact.words

L_JOINT, L_ROW, L_SIGN, L_DISTANCE = (
    Stop.joint.offset,
    Stop.row.offset,
    Stop.sign.offset,
    Stop.distance.offset,
)
L_FREE, L_TARGET, L_IMPULSE = Stop.free_velocity.offset, Stop.target.offset, Stop.impulse.offset
L_INERTIA, L_KEPT = Stop.inertia.offset, Stop.kept_impulse.offset
L_LOW, L_HIGH, L_UNKNOWN = Stop.lowest.offset, Stop.highest.offset, Stop.unknown.offset
STOP_WORDS = Stop.words

# What a joint does in a step (see `drives`): two rows of nj numbers, the mode and how often it was changed.
M_CHANGES = 1
MODE_ROWS = 2

# Contacts and stops with more unknowns than this are left to the sweeps.
MOST_UNKNOWNS = 1200

BASE_COLUMNS = 8  # of a row: six for the base, two empty
