# SPDX-License-Identifier: Apache-2.0
"""Fill the scene of a simulator (see `quad_dynamics.kernels.scene`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import joint_friction, motor_limits
from quad_dynamics.api.dynamics import mass_matrix
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.interpreter import address_of, mark_unwritten
from quad_dynamics.compiler.types import LANES
from quad_dynamics.contact.terrain import Terrain
from quad_dynamics.kernels import scene as S_
from quad_dynamics.kernels.delassus import workspace_size
from quad_dynamics.kernels.drives import LOCK
from quad_dynamics.kernels.terrain import SHAPE_WORDS
from quad_dynamics.model import layout as L
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.model import Model
from quad_dynamics.model.packing import Packed
from quad_dynamics.simulation.settings import SimulatorSettings

_CONTACTS = {'none': S_.NO_CONTACT, 'impulse': S_.IMPULSE, 'spring_damper': S_.SPRING_DAMPER}
_FORWARD_DYNAMICS = {'aba': S_.ABA, 'cholesky': S_.CHOLESKY}
_FRICTIONS = {
    'none': S_.NO_FRICTION,
    'explicit': S_.EXPLICIT_FRICTION,
    'stick': S_.STICKING_FRICTION,
}


# With so many shapes or more, those near the robot are gathered in each step.
MANY_SHAPES = 8


class Scene:
    """What the kernel of the simulator reads and writes, and views of its parts.

    Attributes:
        packed: the robot, for this simulator alone.
        words: (n,) the array.
        terrain: the ground as the kernel reads it.
        state: view of all that a snapshot holds.
        q: (nq,) view; likewise u (nv,), tau (nj,), acceleration (nv,), foot_forces (feet, 3).
        command: (COMMAND_ROWS, nj) view.
        contacts: (points, CONTACT_WORDS) view.
        memory: (nj, MEMORY_WORDS) view.
        forces: (MAX_FORCES, FORCE_WORDS) view.
        coulomb: (nj,) Coulomb friction of the joints [N m or N].
        lanes: where the bodies of all links stand in the arena.
    """

    def __init__(
        self, model: Model, settings: SimulatorSettings, terrain: Terrain, points: Sequence[ContactPoint]
    ) -> None:
        self.packed = Packed(model)
        self.terrain = terrain.pack(settings.mu, settings.restitution)
        near = 0
        if self.terrain[0] >= MANY_SHAPES and settings.contact == 'impulse':
            near = len(self.terrain)
            self.terrain = np.append(self.terrain, np.zeros(1 + int(self.terrain[0]) * SHAPE_WORDS))
        nq, nv, nj, n, feet = model.nq, model.nv, model.nj, len(points), len(model.foot_names)
        firsts, blocks = limbs(model)
        row_length = S_.BASE_COLUMNS + LANES * max(blocks, default=1)
        delay, share = split_latency(settings.latency, settings.dt)
        queue_length = delay + 2 if settings.latency > 0.0 else 0
        columns = S_.BASE_COLUMNS + nj + LANES
        factors = settings.forward_dynamics == 'cholesky'
        unknowns = min(6 * n + 3 * nj, S_.MOST_UNKNOWNS)
        capacity = (unknowns // LANES + 1) * LANES

        self._end = S_.HEADER
        place = self._place
        at = {
            S_.POINTS: place(n * S_.POINT_WORDS),
            S_.JOINTS: place(nj * S_.JOINT_WORDS),
            S_.STATE: place(S_.STATE_WORDS),
            S_.Q: place(nq),
            S_.U: place(nv),
            S_.COMMAND: place(S_.COMMAND_ROWS * nj),
            S_.QUEUE: place(queue_length * S_.COMMAND_ROWS * nj),
            S_.FORCES: place(S_.MAX_FORCES * S_.FORCE_WORDS),
            S_.CONTACTS: place(n * S_.CONTACT_WORDS),
            S_.MEMORY: place(nj * S_.MEMORY_WORDS),
            S_.TAU: place(nj),
            S_.ACCELERATION: place(nv),
            S_.FOOT_FORCES: place(3 * feet),
        }
        state_end = self._end
        at |= {
            S_.KEPT: place(state_end - at[S_.STATE]),
            S_.V: place(nv),
            S_.W: place(nv),
            S_.Y: place(columns),
            S_.PUSH: place(columns),
            S_.ACTIVE: place(2 * n * S_.ACTIVE_WORDS),
            S_.STOPS: place(3 * nj * S_.STOP_WORDS),
            S_.ROWS: place((6 * n + 3 * nj) * row_length),
            S_.MODES: place(S_.MODE_ROWS * nj),
            S_.STAGES: place(2 * (nq + nv)),
            S_.NEWTON: place(workspace_size(capacity, nj)),
            S_.SIGNS: place(columns),
            S_.FACTOR: place(nv * nv if factors else 0),
            S_.PIVOTS: place(nv),
            S_.BIAS: place(nv),
            S_.LDLT: place(nv * (nv + 1) if factors else 0),
        }
        # q and u from before the step stand in the copy of the state
        at |= {
            last: at[S_.KEPT] + at[now] - at[S_.STATE] for last, now in ((S_.LAST_Q, S_.Q), (S_.LAST_U, S_.U))
        }
        self.words: Floats = np.zeros(self._end)
        ints = self.words.view(np.int64)
        for word, address in at.items():
            ints[word] = address
        for word, count in (
            (S_.N_POINTS, n),
            (S_.N_FEET, feet),
            (S_.QUEUE_LENGTH, queue_length),
            (S_.ROW_LENGTH, row_length),
            (S_.DELAY, delay),
            (S_.CAPACITY, capacity),
            (S_.NEAR_TERRAIN, near),
            (S_.STATE_LENGTH, state_end - at[S_.STATE]),
            (S_.TERRAIN, address_of(self.terrain)),
        ):
            ints[word] = count
        self._rows: Floats | None = None  # of the log, while there is one
        self.words[S_.DELAY_SHARE] = share
        self.words[S_.MASS] = model.total_mass
        mark_unwritten(self.words[at[S_.KEPT] :])
        self.words[at[S_.SIGNS] : at[S_.SIGNS] + columns] = 1.0
        self._floating_base = model.floating_base
        self._fill_settings(settings)

        def view(word: int, *shape: int) -> Floats:
            return self.words[at[word] : at[word] + int(np.prod(shape))].reshape(shape)

        self.lanes = np.unique([int(self.packed.frame(link)[0]) for link in model.frames])
        self._fill_points(model, points, view(S_.POINTS, n, S_.POINT_WORDS), firsts, blocks)
        self._fill_joints(model, view(S_.JOINTS, nj, S_.JOINT_WORDS), firsts, blocks)
        self.state = self.words[at[S_.STATE] : state_end]
        self.q, self.u = view(S_.Q, nq), view(S_.U, nv)
        self.tau, self.acceleration = view(S_.TAU, nj), view(S_.ACCELERATION, nv)
        self.foot_forces = view(S_.FOOT_FORCES, feet, 3)
        self.command = view(S_.COMMAND, S_.COMMAND_ROWS, nj)
        self.contacts = view(S_.CONTACTS, n, S_.CONTACT_WORDS)
        self.memory = view(S_.MEMORY, nj, S_.MEMORY_WORDS)
        self.forces = view(S_.FORCES, S_.MAX_FORCES, S_.FORCE_WORDS)
        self.coulomb = view(S_.JOINTS, nj, S_.JOINT_WORDS)[:, S_.J_COULOMB]

    @property
    def state_ints(self) -> npt.NDArray[np.int64]:
        """The state, read as whole numbers."""
        return self.state.view(np.int64)

    def log_to(self, rows: Floats | None, every: int = 1) -> None:
        """Let the kernel write a row of (n, words) in every so many steps; None ends it."""
        ints = self.words.view(np.int64)
        ints[S_.LOG_EVERY] = every  # first: it may be too large, and then nothing else is changed
        self._rows = rows
        ints[S_.LOG] = 0 if rows is None else address_of(rows)
        ints[S_.LOG_ROOM] = 0 if rows is None else len(rows)
        ints[S_.LOG_WORDS] = 0 if rows is None else rows.shape[1]
        ints[S_.LOG_COUNT] = 0

    def grow_log(self) -> None:
        """Make room for as many rows again, and some: a controller took steps of its own."""
        assert self._rows is not None
        count, ints = self.log_count, self.words.view(np.int64)
        rows = np.empty((2 * count + 1000, self._rows.shape[1]))
        rows[:count] = self._rows[:count]
        self.log_to(rows, int(ints[S_.LOG_EVERY]))
        ints[S_.LOG_COUNT] = count

    @property
    def log_rows(self) -> Floats:
        """(n, words) the rows that the kernel has written."""
        return np.empty((0, 0)) if self._rows is None else self._rows[: self.log_count]

    @property
    def is_logging(self) -> bool:
        """Whether the kernel writes a log now."""
        return bool(self.words.view(np.int64)[S_.LOG] != 0)

    @property
    def log_count(self) -> int:
        """Rows that the kernel has written."""
        return int(self.words.view(np.int64)[S_.LOG_COUNT])

    def _place(self, words: int) -> int:
        """Reserve words, from a whole cache line on."""
        at = -(-self._end // 8) * 8
        self._end = at + words
        return at

    def _fill_settings(self, settings: SimulatorSettings) -> None:
        ints = self.words.view(np.int64)
        for word, number in (
            (S_.CONTACT, _CONTACTS[settings.contact]),
            (S_.CONE, settings.friction == 'cone'),
            (S_.MAX_SWEEPS, settings.max_sweeps),
            (S_.SUBSTEPS, settings.substeps or 0),
            (S_.JOINT_FRICTION, _FRICTIONS[settings.joint_friction]),
            (S_.JOINT_LIMITS, settings.joint_limits),
            (S_.MOTOR_LIMITS, settings.motor_limits),
            (S_.RUNGE_KUTTA, settings.integrator == 'rk4'),
            (S_.FORWARD_DYNAMICS, _FORWARD_DYNAMICS[settings.forward_dynamics]),
            (S_.MOMENTUM_CORRECTION, settings.momentum_correction and self._floating_base),
        ):
            ints[word] = number
        self.words[S_.DT : S_.ENERGY_LIMIT + 1] = (
            settings.dt,
            settings.tolerance,
            settings.correction,
            settings.stiffness,
            settings.damping,
            settings.energy_limit,
        )

    def _fill_points(
        self,
        model: Model,
        points: Sequence[ContactPoint],
        table: Floats,
        firsts: Sequence[int],
        blocks: Sequence[int],
    ) -> None:
        ints = table.view(np.int64)
        q = model.standing if model.standing is not None else model.neutral
        M = mass_matrix(model, q) if model.nv else np.zeros((0, 0))
        for i, point in enumerate(points):
            frame = self.packed.frame(point.link)
            joint = int(frame[13])
            ints[i, S_.P_LANE], ints[i, S_.P_JOINT] = int(frame[0]), joint
            ints[i, S_.P_FIRST] = firsts[joint] if joint >= 0 else 0
            ints[i, S_.P_BLOCKS] = blocks[joint] if joint >= 0 else 1
            is_foot = point.link in model.foot_names
            ints[i, S_.P_FOOT] = model.foot_names.index(point.link) if is_foot else -1
            p_K = frame[1:4] + frame[4:13].reshape(3, 3) @ np.array(point.position)
            table[i, S_.P_POSITION : S_.P_POSITION + 3] = p_K
            table[i, S_.P_RADIUS] = point.radius
            table[i, S_.P_MOBILITY] = mobility(model, q, M, point)

    def _fill_joints(
        self,
        model: Model,
        table: Floats,
        firsts: Sequence[int],
        blocks: Sequence[int],
    ) -> None:
        if not model.nj:
            return
        ints = table.view(np.int64)
        ints[:, S_.J_FIRST], ints[:, S_.J_BLOCKS] = firsts, blocks
        table[:, S_.J_LOWEST], table[:, S_.J_HIGHEST] = model.q_min, model.q_max
        table[:, S_.J_VISCOUS], table[:, S_.J_COULOMB] = joint_friction(model)
        lanes = self.packed.arena.view(np.int64)[L.HEADER :: L.JOINT_WORDS][: model.nj] + L.ROTOR_KK
        table[:, S_.J_INERTIA] = self.packed.arena[lanes]
        q = model.neutral
        # of inertial parameters that no body has, the inertia may be negative
        table[:, S_.J_LOCK] = LOCK * np.abs(np.diag(mass_matrix(model, q)))[model.nv - model.nj :]
        table[:, S_.J_EFFORT], table[:, S_.J_STALL], table[:, S_.J_SLOPE] = motor_limits(model)


def limbs(model: Model) -> tuple[list[int], list[int]]:
    """For each joint, the joint with which its limb starts, and blocks of four from there to it."""
    firsts: list[int] = []
    for joint, parent in enumerate(model.parents.tolist()):
        firsts.append(joint if parent < 0 else firsts[parent])
    return firsts, [(joint - first) // LANES + 1 for joint, first in enumerate(firsts)]


def split_latency(latency: float, dt: float) -> tuple[int, float]:
    """Whole time steps of a latency, and the share of one more; rounding makes no share."""
    steps = latency / dt
    whole = round(steps)
    if abs(steps - whole) < 1e-9 * max(steps, 1.0):
        return whole, 0.0
    return int(steps), steps - int(steps)


def mobility(model: Model, q: Floats, M: Floats, point: ContactPoint) -> float:
    """The largest inverse mass that a force on a point feels [1/kg]."""
    R, _ = frame_pose(model, q, point.link)
    x, y, z = R @ np.array(point.position)
    J = frame_jacobian(model, q, point.link)
    across = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # -[p]: v = v_O - p x w
    J_p = J[:3] + across @ J[3:]
    return float(np.linalg.eigvalsh(J_p @ np.linalg.solve(M, J_p.T)).max())
