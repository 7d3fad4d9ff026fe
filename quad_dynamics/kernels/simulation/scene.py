# SPDX-License-Identifier: Apache-2.0
"""The scene: all data of a simulator, declared as records (see `quad_dynamics.compiler.records`).

In addition to its own arena of the robot (`quad_dynamics.memory.layout`), a simulator needs settings, tables
of contact points and joints, the state, and a workspace. All of it is in one array:

    Scene       settings, counts, references
    tables      contact points, joints: constants
    state       contents of a snapshot: state of the robot, drives and contacts, results of the last step
    workspace   intermediate results of a step
"""

from __future__ import annotations

from quad_dynamics.compiler.record_types import record_at
from quad_dynamics.compiler.records import (
    FLOAT,
    INT,
    UPPER3,
    VEC3,
    Record,
    constant,
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
# Problems with more unknowns are solved by sweeps only.
MOST_UNKNOWNS = 1200
BASE_COLUMNS = 8  # columns of a row for the base: six, and two for padding

# ---------------------------------------------------------------- constants


class Settings(Record):
    """The values of `SimulatorSettings`."""

    contact = constant(INT, 'NO_CONTACT, IMPULSE or SPRING_DAMPER')
    cone = constant(INT, '1: friction cone, 0: pyramid')
    max_sweeps = constant(INT, 'maximum sweeps of one contact solution')
    substeps = constant(INT, 'sub-steps of spring-damper contact; 0: automatic')
    joint_friction = constant(INT, 'NO_FRICTION, EXPLICIT_FRICTION or STICKING_FRICTION')
    joint_limits = constant(INT, 'whether joint limits are enforced')
    motor_limits = constant(INT, 'whether motor limits are enforced')
    runge_kutta = constant(INT, 'whether the integrator is Runge-Kutta')
    forward_dynamics = constant(INT, 'ABA or CHOLESKY')
    momentum_correction = constant(INT, 'whether momentum is conserved in flight; floating base only')
    dt = constant(FLOAT, 'time step', 's')
    tolerance = constant(FLOAT, 'residual at which the contact solver has converged', 'm/s')
    correction = constant(FLOAT, 'fraction of a penetration that is removed in each step')
    stiffness = constant(FLOAT, 'K of spring-damper contact', 'N/m^1.5')
    damping = constant(FLOAT, 'D of spring-damper contact', 'N s/m^1.5')
    energy_limit = constant(FLOAT, 'kinetic energy per kg at which a simulation counts as diverged', 'J/kg')
    delay = constant(INT, 'command latency: whole time steps')
    delay_share = constant(FLOAT, 'command latency: additional fraction of a time step')


class ContactPoint(Record):
    """A point of the robot that can touch the ground."""

    lane = constant(INT, "offset of its body's lane in the arena")
    joint = constant(INT, 'joint that moves its body, -1 for the base')
    first = constant(INT, 'first joint of its limb')
    blocks = constant(INT, 'blocks of four joints from there to its body')
    foot = constant(INT, 'index of the foot that it belongs to, or -1')
    position = constant(VEC3, 'position of the centre of its sphere, in frame K of its body', 'm')
    radius = constant(FLOAT, 'radius of its sphere', 'm')
    mobility = constant(FLOAT, 'largest inverse effective mass at the point', '1/kg')


class JointDrive(Record):
    """A joint with its motor, friction and limits."""

    first = constant(INT, 'first joint of its limb')
    blocks = constant(INT, 'blocks of four joints from there to itself')
    lowest = constant(FLOAT, 'lower joint limit', 'rad, m')
    highest = constant(FLOAT, 'upper joint limit', 'rad, m')
    viscous = constant(FLOAT, 'F_v', 'N m s/rad, N s/m')
    coulomb = constant(FLOAT, 'F_c', 'N m, N')
    rotor_inertia = constant(
        FLOAT, 'gear^2 J of the rotor, without the contribution of friction', 'kg m^2, kg'
    )
    lock = constant(FLOAT, 'inertia that holds a sticking joint: far above its own', 'kg m^2, kg')
    effort = constant(FLOAT, 'maximum torque of the motor', 'N m, N')
    stall = constant(FLOAT, 'stall torque of the motor: -stall <= tau + slope qd <= stall', 'N m, N')
    slope = constant(FLOAT, "slope of the motor's torque-speed line", 'N m s/rad, N s/m')


# ---------------------------------------------------------------- state


class State(Record):
    """Counters, and results of the last step."""

    step = field(INT, 'time steps since the reset')
    has_gains = field(INT, 'whether the command has gains')
    sweeps = field(FLOAT, 'maximum number of sweeps of a contact solution')
    residual = field(FLOAT, 'largest residual of the natural map', 'm/s')
    substeps = field(FLOAT, 'sub-steps of spring-damper contact')
    converged = field(FLOAT, '1 if the tolerance was met and the sticking joints were found, else 0')
    ldlt_solutions = field(FLOAT, 'number of solutions in which LLT failed')
    ldlt_steps = field(INT, 'number of time steps since the reset with such a solution')
    iterations = field(FLOAT, 'Newton steps of the contact solver')
    skips = field(INT, 'number of contact solutions that will begin without sweeps')
    refined = field(FLOAT, 'residual that the last refinement left if it was useless, else 0', 'm/s')


class DriveCommand(Record):
    """Command of one joint: tau + kp (q - q_j) + kd (qd - qd_j)."""

    tau = field(FLOAT, 'torque', 'N m, N')
    kp = field(FLOAT, 'position gain', 'N m/rad, N/m')
    q = field(FLOAT, 'desired position', 'rad, m')
    kd = field(FLOAT, 'velocity gain', 'N m s/rad, N s/m')
    qd = field(FLOAT, 'desired velocity', 'rad/s, m/s')


class ExternalForce(Record):
    """A wrench that acts on a link for a limited time."""

    lane = field(INT, "offset of its body's lane in the arena")
    position = field(VEC3, 'point of application, in frame K of the body', 'm')
    force = field(VEC3, 'world axes', 'N')
    moment = field(VEC3, 'about that position, world axes', 'N m')
    time_left = field(FLOAT, 'remaining time; 0: no force', 's')


class JointMemory(Record):
    """State of a joint that is kept for the next step."""

    mode = field(FLOAT, 'its mode in the last step (see `drives`)')
    limit_impulse = field(FLOAT, 'impulse of its lower limit minus that of its upper limit', 'N m s, N s')
    friction_impulse = field(FLOAT, 'impulse of a dry friction constraint', 'N m s, N s')


class PointMemory(Record):
    """State of a contact point that is kept for the next step; world axes."""

    impulse = field(VEC3, 'impulse in the last step', 'N s')
    deflection = field(VEC3, 'tangential deflection of spring-damper contact', 'm')
    distance = field(FLOAT, 'distance to the ground before the last step', 'm')
    normal = field(VEC3, 'normal of the ground')
    corner_impulse = field(VEC3, 'part of `impulse` from its other contacts, in a corner', 'N s')


# ---------------------------------------------------------------- workspace


class Contact(Record):
    """An active contact: a point that may touch the ground in this step; three rows (see `constraints`).

    Velocities, impulses and inverse inertias are along its normal and its two tangents, in this order; the
    second tangent is normal x tangent.
    """

    point = field(INT, 'index of the contact point')
    first = field(INT, 'first joint of its limb')
    blocks = field(INT, 'blocks of four joints from there to its body')
    joint = field(INT, 'joint that moves its body, -1 for the base')
    rows = numbers((), 'its three rows')
    normal = field(VEC3, 'normal of the ground, world axes')
    tangent = field(VEC3, 'first tangent, world axes')
    place = field(VEC3, "position of the contact relative to the base's origin, world axes", 'm')
    mu = field(FLOAT, 'friction')
    distance = field(FLOAT, 'distance to the ground', 'm')
    bend = field(FLOAT, 'height gained by the curvature of its path in this step; 0 if joints are slow', 'm')
    push = field(FLOAT, 'impulse of the displacement that removes penetration', 'N s')
    free_velocity = field(VEC3, 'velocity without impulses of contacts and joint constraints', 'm/s')
    target = field(FLOAT, 'minimum normal velocity', 'm/s')
    impulse = field(VEC3, 'impulse in this step', 'N s')
    inertia = field(UPPER3, 'its diagonal block of the Delassus operator', '1/kg')
    inverse = field(UPPER3, 'inverse of `inertia`; zero if singular', 'kg')
    calm_target = field(FLOAT, 'target without restitution', 'm/s')
    bounce_target = field(FLOAT, 'target with restitution, 0 if it does not hit the ground', 'm/s')
    kept_impulse = field(VEC3, 'saved impulse while others are tried', 'N s')
    other_impulse = field(VEC3, 'a second saved impulse', 'N s')
    kept_mu = field(FLOAT, 'saved friction coefficient during a solution without friction')
    unknown = field(INT, 'index of its first unknown in `delassus`, or -1')


class Stop(Record):
    """A constraint of one joint: a joint limit, or dry friction; one row (see `stops`)."""

    joint = field(INT, 'index of its joint')
    row = numbers((), 'its row')
    sign = field(FLOAT, '1 for the lower limit, -1 for the upper one')
    distance = field(FLOAT, 'distance to the limit', 'rad, m')
    free_velocity = field(FLOAT, 'velocity without impulses of contacts and joint constraints', 'rad/s, m/s')
    target = field(FLOAT, 'minimum velocity', 'rad/s, m/s')
    impulse = field(FLOAT, 'impulse in this step', 'N m s, N s')
    inertia = field(FLOAT, 'its diagonal element of the Delassus operator', '1/(kg m^2), 1/kg')
    kept_impulse = field(FLOAT, 'saved impulse while others are tried', 'N m s, N s')
    other_impulse = field(FLOAT, 'a second saved impulse', 'N m s, N s')
    lowest = field(FLOAT, 'lower bound of the impulse; below 0 for dry friction only', 'N m s, N s')
    highest = field(FLOAT, 'upper bound of the impulse', 'N m s, N s')
    unknown = field(INT, 'index of its unknown in `delassus`, or -1')


class SpringContact(Record):
    """A point near the ground, with spring-damper contact."""

    point = field(INT, 'index of the contact point')
    place = field(VEC3, "position of the contact relative to the base's origin, world axes", 'm')
    force = field(VEC3, 'force of the ground on the point, world axes', 'N')
    centre = field(VEC3, 'centre of its sphere at the start of the step, in the world', 'm')
    spin = field(VEC3, 'velocity of the centre minus that of the contact', 'm/s')
    way = field(VEC3, 'displacement of the contact since the start of the step, world axes', 'm')
    velocity = field(VEC3, 'velocity of the contact, world axes', 'm/s')
    acceleration = field(VEC3, 'acceleration of the contact in the last sub-step, world axes', 'm/s^2')
    deflection = field(VEC3, 'deflection of its bristle, world axes', 'm')
    impulse = field(VEC3, 'impulse of the ground on the point in this step, world axes', 'N s')


class JointMode(Record):
    """Mode of a joint in a step (see `drives`)."""

    mode = field(FLOAT, 'FREE, UP, DOWN, STUCK, or SOLVED and above')
    changes = field(FLOAT, 'number of changes of the mode in this step')
    solved = field(FLOAT, 'the mode before this step if it was SOLVED or above, else 0')


class Unknown(Record):
    """An unknown of the contact solver: one row."""

    row = numbers((), 'its row')
    first = field(INT, 'first joint of the limb of the row')
    blocks = field(INT, 'blocks of four joints of the row')


class NewtonWorkspace(Record):
    """Workspace of Newton's method for contact impulses (see `delassus`)."""

    unknowns = table(Unknown, ('capacity',), 'the working set')
    impulse = numbers(('capacity',), 'p', 'N s')
    velocity = numbers(('capacity',), 'v minus the targets', 'm/s')
    free_velocity = numbers(('capacity',), 'v without impulses, minus the targets', 'm/s')
    step = numbers(('capacity',), 'dp of a Newton step', 'N s')
    change = numbers(('capacity',), 'dv of that step', 'm/s')
    best = numbers(('capacity',), 'the best impulses so far', 'N s')
    inertia = numbers(('capacity',), 'D of each unknown', '1/kg')
    centre = numbers(('capacity',), 'centre of `proximal_point`', 'N s')
    kept = numbers(('capacity',), 'the best impulses of `proximal_point` and `sliding_speeds`', 'N s')
    sliding = numbers(('capacity',), 'mu |v_t| that `sliding_speeds` holds, in rows of normals', 'm/s')
    semismooth = field(INT, '1 while the equations are those of `alart_curnier`, else 0')
    holds_speeds = field(INT, '1 while mu |v_t| is held (see `sliding_speeds`), else 0')
    delassus = numbers(('dense',), 'G = J M^-1 J^T, rows of `row_length`', '1/kg')
    jacobian = numbers(('dense',), 'matrix of the dense equations, with their right-hand side')
    blocks = numbers(('blocks',), 'six numbers per unknown: blocks of the reduced equations')
    reduced_matrix = numbers(('reduced',), 'matrix of the reduced equations, with their right-hand side')
    reduced_vector = numbers(('reduced_row',), 'their solution, with the columns of y')


# ---------------------------------------------------------------- scene


class LogTarget(Record):
    """Destination of the log."""

    address = field(INT, 'address of its first row; 0: no log')
    room = field(INT, 'capacity in rows')
    count = field(INT, 'number of rows written')
    every = field(INT, 'time steps between two rows')
    width = field(INT, 'numbers per row')


class Scene(Record, root=True):
    """All data of a simulator."""

    settings = embedded(Settings, 'settings of the simulator')
    mass = constant(FLOAT, 'mass of the robot', 'kg')
    n_points = constant(INT, 'number of contact points')
    n_feet = constant(INT, 'number of feet')
    queue_length = constant(INT, 'capacity of the command queue')
    row_length = constant(INT, 'numbers per row (see `constraints`)')
    state_length = constant(INT, 'words of the state')
    capacity = constant(INT, "maximum number of unknowns of Newton's method")

    points = table(ContactPoint, ('points',), 'contact points of the robot', 'tables')
    drives = table(JointDrive, ('nj',), 'joints', 'tables')

    state = reference(State, 'counters and results', 'state')
    q = numbers(('nq',), 'configuration', 'm, rad', 'state')
    u = numbers(('nv',), 'velocity', 'm/s, rad/s', 'state')
    command = table(DriveCommand, ('nj',), 'current command', 'state')
    queue = table(DriveCommand, ('queue_length', 'nj'), 'delayed commands, as a ring buffer', 'state')
    forces = table(ExternalForce, (MAX_FORCES,), 'external forces', 'state')
    point_memory = table(PointMemory, ('points',), 'kept state of the contact points', 'state')
    joint_memory = table(JointMemory, ('nj',), 'kept state of the joints', 'state')
    tau = numbers(('nj',), 'motor torques in the last step', 'N m, N', 'state')
    acceleration = numbers(('nv',), 'mean over the last step', 'm/s^2, rad/s^2', 'state')
    foot_forces = numbers(('feet', 3), 'forces of the ground on the feet, world axes', 'N', 'state')

    kept_state = numbers(('state_length',), 'the state before the step', part='workspace')
    last_q = numbers((), 'q in `kept_state`', 'm, rad')
    last_u = numbers((), 'u in `kept_state`', 'm/s, rad/s')
    velocity = numbers(('nv',), 'u after the step, while it is being solved for', 'm/s, rad/s', 'workspace')
    response = numbers(('nv',), 'accelerations, or changes of velocities', part='workspace')
    y = numbers(('columns',), 'sum of rows times impulses (see `constraints`)', part='workspace')
    y_push = numbers(('columns',), 'the same for displacements', part='workspace')
    y_force = numbers(('columns',), 'the same for forces, in a sub-step', part='workspace')
    contacts = table(Contact, (3, 'points'), 'active contacts', 'workspace')
    far = numbers(
        ('points',), '1 for points too far from the ground to be evaluated, else 0', part='workspace'
    )
    springs = table(SpringContact, ('points',), 'points near the ground, spring-damper contact', 'workspace')
    stops = table(Stop, (3, 'nj'), 'limits and dry friction of joints', 'workspace')
    rows = numbers(('rows', 'row_length'), 'rows of contacts and joint constraints', part='workspace')
    modes = table(JointMode, ('nj',), 'modes of the joints in this step', 'workspace')
    rates = numbers(('nq + nv',), 'time derivatives of q and u, in a stage of Runge-Kutta', part='workspace')
    rate_sum = numbers(('nq + nv',), 'weighted sum of the stages', part='workspace')
    newton = reference(NewtonWorkspace, 'workspace of the contact solver', 'workspace')
    signs = numbers(('columns',), '1, or -1 for negative pivots (see `joint_space`)', part='workspace')
    factor = numbers(('factor',), 'L of the mass matrix (see `joint_space`)', part='workspace')
    pivots = numbers(('nv',), '1 / diagonal of L', part='workspace')
    bias = numbers(('nv',), 'bias forces: those of a motion without acceleration', 'N, N m', 'workspace')
    ldlt = numbers(('factor',), 'factor of the mass matrix if LLT fails (see `ldlt`)', part='workspace')
    ldlt_pivots = numbers(('nv',), 'its pivots', part='workspace')

    # The fields below may differ between simulators of the same robot and settings.
    terrain = field(INT, 'address of the ground in memory')
    near_terrain = field(INT, 'offset of the shapes near the robot in it; 0: they are not gathered')
    log = embedded(LogTarget, 'destination of the log')
    exact = field(INT, '0: distances of points that cannot touch the ground may be lower bounds')
    first = field(
        INT, '1: the first step of a call, in which distances of points are not known from the last'
    )
    reach = field(
        FLOAT,
        'largest speed of a contact point relative to the base, over the largest speed of a joint or of the '
        'base about an axis; 1e30 if joints are prismatic',
        'm',
    )
    n_stops = field(INT, 'number of joint constraints in this step')
    indefinite = field(INT, 'whether LLT failed in the last factorisation, and `signs` are not all 1')
    # A literal has its own type, and numba would compile a function twice that is called with it.
    zero = field(INT, 'the number 0')


scene_at = record_at(Scene)
