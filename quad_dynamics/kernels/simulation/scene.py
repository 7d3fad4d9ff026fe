# SPDX-License-Identifier: Apache-2.0
"""The scene: everything that a simulator keeps, declared as records (see `quad_dynamics.compiler.records`).

Beside the arena of the robot (`quad_dynamics.memory.layout`), which is the simulator's own, a step needs
settings, the tables of contact points and joints, the state, and a workspace. All of it stands in one array:

    Scene       settings, counts, references
    tables      contact points, joints: constants
    state       all that a snapshot holds: state of the robot, drives and contacts, results of the last step
    workspace   what a step works in
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import record_at
from quad_dynamics.compiler.records import (
    FLOAT,
    INT,
    UPPER3,
    VEC3,
    Record,
    embedded,
    field,
    numbers,
    reference,
    table,
)

NO_CONTACT, IMPULSE, SPRING_DAMPER = 0, 1, 2
ABA, CHOLESKY = 0, 1
NO_FRICTION, EXPLICIT_FRICTION, STICKING_FRICTION = 0, 1, 2

MAX_FORCES = 16
# Contacts and stops with more unknowns than this are left to the sweeps.
MOST_UNKNOWNS = 1200
BASE_COLUMNS = 8  # of a row: six for the base, two empty

# ---------------------------------------------------------------- constants


class Settings(Record):
    """What `SimulatorSettings` says."""

    contact = field(INT, 'NO_CONTACT, IMPULSE or SPRING_DAMPER')
    cone = field(INT, '1: friction cone, 0: pyramid')
    max_sweeps = field(INT, 'sweeps of one solution for the contacts')
    substeps = field(INT, 'of spring-damper contact; 0: automatic')
    joint_friction = field(INT, 'NO_FRICTION, EXPLICIT_FRICTION or STICKING_FRICTION')
    joint_limits = field(INT, 'whether joints stop at the ends of their range')
    motor_limits = field(INT, 'whether motors have limits')
    runge_kutta = field(INT, 'whether this is the integrator')
    forward_dynamics = field(INT, 'ABA or CHOLESKY')
    momentum_correction = field(INT, 'whether momentum is kept in flight; of a floating base')
    dt = field(FLOAT, 'time step', 's')
    tolerance = field(FLOAT, 'residual at which contacts have converged', 'm/s')
    correction = field(FLOAT, 'share of a penetration that is removed in each step')
    stiffness = field(FLOAT, 'K of spring-damper contact', 'N/m^1.5')
    damping = field(FLOAT, 'D of spring-damper contact', 'N s/m^1.5')
    energy_limit = field(FLOAT, 'kinetic energy for each kg at which a simulation has diverged', 'J/kg')
    delay = field(INT, 'latency of commands: whole time steps')
    delay_share = field(FLOAT, 'and the share of one more')


class ContactPoint(Record):
    """A point of the robot that can touch the ground."""

    lane = field(INT, "place of its body's lane in the arena")
    joint = field(INT, 'joint that moves its body, -1 for the base')
    first = field(INT, 'joint with which its limb begins')
    blocks = field(INT, 'blocks of four joints from there to its body')
    foot = field(INT, 'index of the foot that it belongs to, or -1')
    position = field(VEC3, 'of the centre of its sphere, in frame K of its body', 'm')
    radius = field(FLOAT, 'of its sphere', 'm')
    mobility = field(FLOAT, 'largest inverse mass that a force on it feels', '1/kg')


class JointDrive(Record):
    """A joint with its motor, its friction and its range."""

    first = field(INT, 'joint with which its limb begins')
    blocks = field(INT, 'blocks of four joints from there to itself')
    lowest = field(FLOAT, 'lower limit of its range', 'rad, m')
    highest = field(FLOAT, 'upper limit of its range', 'rad, m')
    viscous = field(FLOAT, 'F_v', 'N m s/rad, N s/m')
    coulomb = field(FLOAT, 'F_c', 'N m, N')
    rotor_inertia = field(FLOAT, 'gear^2 J of the rotor, without what friction adds', 'kg m^2, kg')
    lock = field(FLOAT, 'inertia that holds a joint: far above its own', 'kg m^2, kg')
    effort = field(FLOAT, 'largest torque of the motor', 'N m, N')
    stall = field(FLOAT, 'of the motor: -stall <= tau + slope qd <= stall', 'N m, N')
    slope = field(FLOAT, "of the motor's torque-speed line", 'N m s/rad, N s/m')


# ---------------------------------------------------------------- state


class State(Record):
    """Counters, and results of the last step."""

    step = field(INT, 'time steps since the reset')
    has_gains = field(INT, 'whether the command has any')
    sweeps = field(FLOAT, 'the most that a solution for the contacts took')
    residual = field(FLOAT, 'of the natural map, the largest', 'm/s')
    substeps = field(FLOAT, 'of spring-damper contact')
    converged = field(FLOAT, '1 if the tolerance was met and the joints that stick were found, else 0')
    ldlt_solutions = field(FLOAT, 'solutions in which LLT failed')
    ldlt_steps = field(INT, 'time steps since the reset with such a solution')
    iterations = field(FLOAT, 'Newton steps of the contact solver')


class DriveCommand(Record):
    """What a controller asks of one joint: tau + kp (q - q_j) + kd (qd - qd_j)."""

    tau = field(FLOAT, 'torque', 'N m, N')
    kp = field(FLOAT, 'gain of the position', 'N m/rad, N/m')
    q = field(FLOAT, 'position to follow', 'rad, m')
    kd = field(FLOAT, 'gain of the speed', 'N m s/rad, N s/m')
    qd = field(FLOAT, 'speed to follow', 'rad/s, m/s')


class ExternalForce(Record):
    """A wrench that acts on a link for some time."""

    lane = field(INT, "place of its body's lane in the arena")
    position = field(VEC3, 'where it acts, in frame K of the body', 'm')
    force = field(VEC3, 'world axes', 'N')
    moment = field(VEC3, 'about that position, world axes', 'N m')
    time_left = field(FLOAT, 'for which it still acts; 0: there is none', 's')


class JointMemory(Record):
    """What a step remembers of a joint for the next one."""

    mode = field(FLOAT, 'what it did in the last step (see `drives`)')
    limit_impulse = field(FLOAT, 'of its lower limit, less that of its upper one', 'N m s, N s')
    friction_impulse = field(FLOAT, 'of dry friction that was solved for with the contacts', 'N m s, N s')


class PointMemory(Record):
    """What a step remembers of a contact point for the next one; world axes."""

    impulse = field(VEC3, 'that it got in the last step', 'N s')
    deflection = field(VEC3, 'tangential, of spring-damper contact', 'm')
    distance = field(FLOAT, 'to the ground before the last step', 'm')
    normal = field(VEC3, 'of the ground')
    corner_impulse = field(VEC3, 'the part of `impulse` that its second contact got, in a corner', 'N s')


# ---------------------------------------------------------------- workspace


class Contact(Record):
    """An active contact: a point that may touch the ground in this step; three rows (see `constraints`).

    Velocities, impulses and inertias are along its normal and its two tangents, in this order; the second
    tangent is normal x tangent.
    """

    point = field(INT, 'index of the contact point')
    first = field(INT, 'joint with which its limb begins')
    blocks = field(INT, 'blocks of four joints from there to its body')
    joint = field(INT, 'joint that moves its body, -1 for the base')
    rows = numbers((), 'its three rows')
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
    kept_mu = field(FLOAT, 'friction, while a solution without friction is looked for')
    unknown = field(INT, 'the first of its unknowns in `delassus`, or -1')


class Stop(Record):
    """A constraint of one joint: a limit of its range, or its dry friction; one row (see `stops`)."""

    joint = field(INT, 'index of its joint')
    row = numbers((), 'its row')
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


class SpringContact(Record):
    """A point near the ground, with spring-damper contact."""

    point = field(INT, 'index of the contact point')
    place = field(VEC3, "where it touches, from the base's origin in world axes", 'm')
    force = field(VEC3, 'of the ground on it, world axes', 'N')
    centre = field(VEC3, 'of its sphere at the beginning of the step, in the world', 'm')
    spin = field(VEC3, 'velocity of the centre less that of the place', 'm/s')
    way = field(VEC3, 'of the place since the beginning of the step, world axes', 'm')
    velocity = field(VEC3, 'of the place, world axes', 'm/s')
    acceleration = field(VEC3, 'of the place in the last sub-step, world axes', 'm/s^2')
    deflection = field(VEC3, 'of its bristle, world axes', 'm')
    impulse = field(VEC3, 'of the ground on it in this step, world axes', 'N s')


class JointMode(Record):
    """What a joint does in a step (see `drives`)."""

    mode = field(FLOAT, 'FREE, UP, DOWN, STUCK, or from SOLVED on')
    changes = field(FLOAT, 'how often it was changed in this step')
    solved = field(FLOAT, 'the mode before this step, where that was SOLVED or above, else 0')


class Unknown(Record):
    """An unknown of the contact solver: one row."""

    row = numbers((), 'its row')
    first = field(INT, 'joint with which the limb of the row begins')
    blocks = field(INT, 'blocks of four joints of the row')


class NewtonWorkspace(Record):
    """Workspace of Newton's method for contact impulses (see `delassus`)."""

    unknowns = table(Unknown, ('capacity',), 'the working set')
    impulse = numbers(('capacity',), 'p', 'N s')
    velocity = numbers(('capacity',), 'v, less the targets', 'm/s')
    free_velocity = numbers(('capacity',), 'v without impulses, less the targets', 'm/s')
    step = numbers(('capacity',), 'dp of a Newton step', 'N s')
    change = numbers(('capacity',), 'dv of that step', 'm/s')
    best = numbers(('capacity',), 'the best impulses so far', 'N s')
    inertia = numbers(('capacity',), 'D of each unknown', '1/kg')
    centre = numbers(('capacity',), 'of `proximal_point`', 'N s')
    kept = numbers(('capacity',), 'the best impulses of `proximal_point`', 'N s')
    delassus = numbers(('dense',), 'G = J M^-1 J^T, rows of `row_length`', '1/kg')
    jacobian = numbers(('dense',), 'of the dense equations, with their right-hand side')
    blocks = numbers(('blocks',), 'six numbers for each unknown: blocks of the reduced equations')
    reduced_matrix = numbers(('reduced',), 'of the reduced equations, with their right-hand side')
    reduced_vector = numbers(('reduced_row',), 'their solution, with the columns of y')


# ---------------------------------------------------------------- the whole


class LogTarget(Record):
    """Where the log is written to."""

    address = field(INT, 'of its first row in memory; 0: there is no log')
    room = field(INT, 'rows that fit')
    count = field(INT, 'rows that are written')
    every = field(INT, 'time steps between two rows')
    width = field(INT, 'numbers in a row')


class Scene(Record, root=True):
    """All that a simulator keeps."""

    settings = embedded(Settings, 'settings of the simulator')
    mass = field(FLOAT, 'of the robot', 'kg')
    n_points = field(INT, 'number of contact points')
    n_feet = field(INT, 'number of feet')
    queue_length = field(INT, 'commands that the queue holds')
    row_length = field(INT, 'numbers in a row (see `constraints`)')
    state_length = field(INT, 'words of the state')
    capacity = field(INT, "unknowns that Newton's method has room for")

    points = table(ContactPoint, ('points',), 'where the robot can touch the ground', 'tables')
    drives = table(JointDrive, ('nj',), 'joints', 'tables')

    state = reference(State, 'counters and results', 'state')
    q = numbers(('nq',), 'configuration', 'm, rad', 'state')
    u = numbers(('nv',), 'velocity', 'm/s, rad/s', 'state')
    command = table(DriveCommand, ('nj',), 'that is in force', 'state')
    queue = table(DriveCommand, ('queue_length', 'nj'), 'commands on their way, as a ring', 'state')
    forces = table(ExternalForce, (MAX_FORCES,), 'external forces', 'state')
    point_memory = table(PointMemory, ('points',), 'what is remembered of contact points', 'state')
    joint_memory = table(JointMemory, ('nj',), 'what is remembered of joints', 'state')
    tau = numbers(('nj',), 'torques of the motors in the last step', 'N m, N', 'state')
    acceleration = numbers(('nv',), 'mean over the last step', 'm/s^2, rad/s^2', 'state')
    foot_forces = numbers(('feet', 3), 'of the ground on the feet, world axes', 'N', 'state')

    kept_state = numbers(('state_length',), 'the state before the step', part='workspace')
    last_q = numbers((), 'q in `kept_state`', 'm, rad')
    last_u = numbers((), 'u in `kept_state`', 'm/s, rad/s')
    velocity = numbers(('nv',), 'u after the step, while it is solved for', 'm/s, rad/s', 'workspace')
    response = numbers(('nv',), 'accelerations, or changes of velocities', part='workspace')
    y = numbers(('columns',), 'sum of rows times impulses (see `constraints`)', part='workspace')
    y_push = numbers(('columns',), 'the same of displacements', part='workspace')
    y_force = numbers(('columns',), 'the same of forces, in a sub-step', part='workspace')
    contacts = table(Contact, (2, 'points'), 'active contacts', 'workspace')
    far = numbers(
        ('points',), '1 for points too far from the ground to be looked at, else 0', part='workspace'
    )
    springs = table(SpringContact, ('points',), 'points near the ground, spring-damper contact', 'workspace')
    stops = table(Stop, (3, 'nj'), 'limits and friction of joints', 'workspace')
    rows = numbers(('rows', 'row_length'), 'of contacts and stops', part='workspace')
    modes = table(JointMode, ('nj',), 'what the joints do in this step', 'workspace')
    rates = numbers(('nq + nv',), 'of q and u, in a stage of Runge-Kutta', part='workspace')
    rate_sum = numbers(('nq + nv',), 'of the stages', part='workspace')
    newton = reference(NewtonWorkspace, 'of the contact solver', 'workspace')
    signs = numbers(('columns',), '1, or -1 for negative pivots (see `joint_space`)', part='workspace')
    factor = numbers(('factor',), 'L of the mass matrix (see `joint_space`)', part='workspace')
    pivots = numbers(('nv',), '1 over the diagonal of L', part='workspace')
    bias = numbers(('nv',), 'forces of a motion without acceleration', 'N, N m', 'workspace')
    ldlt = numbers(('factor',), 'factor of the mass matrix where LLT fails (see `ldlt`)', part='workspace')
    ldlt_pivots = numbers(('nv',), 'its pivots', part='workspace')

    # From here on, what is not the same in every simulator of the same robot and settings.
    terrain = field(INT, 'address of the ground in memory')
    near_terrain = field(INT, 'where the shapes near the robot stand in it; 0: they are not gathered')
    log = embedded(LogTarget, 'where the log is written to')
    exact = field(INT, '0: distances of points far from the ground may be lower bounds after this step')
    n_stops = field(INT, 'stops of this step')
    indefinite = field(INT, 'whether LLT failed in the last factorization, and `signs` are not all 1')
    # A literal has a type of its own, and numba would compile twice what it is handed to.
    zero = field(INT, 'the number 0')


scene_at = record_at(Scene)
