# SPDX-License-Identifier: Apache-2.0
"""Fills the scene of a simulator (see `quad_dynamics.kernels.simulation.scene`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.drives import joint_friction, motor_limits
from quad_dynamics.api.dynamics import mass_matrix
from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.interpreter import address_of, mark_unwritten
from quad_dynamics.compiler.records import Placement
from quad_dynamics.compiler.types import LANES
from quad_dynamics.kernels.contact.delassus import workspace_sizes
from quad_dynamics.kernels.simulation import scene as records
from quad_dynamics.kernels.simulation.drives import LOCK
from quad_dynamics.kernels.simulation.scene import BASE_COLUMNS, MOST_UNKNOWNS
from quad_dynamics.kernels.terrain.ground import Ground, Shape
from quad_dynamics.memory.layout import LinkFrame
from quad_dynamics.memory.packing import Packed
from quad_dynamics.model.description import ContactPoint
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.settings import SimulatorSettings
from quad_dynamics.terrain.terrain import Terrain

_CONTACTS = {'none': records.NO_CONTACT, 'impulse': records.IMPULSE, 'spring_damper': records.SPRING_DAMPER}
_FORWARD_DYNAMICS = {'aba': records.ABA, 'cholesky': records.CHOLESKY}
_FRICTIONS = {
    'none': records.NO_FRICTION,
    'explicit': records.EXPLICIT_FRICTION,
    'stick': records.STICKING_FRICTION,
}


_UNBOUNDED = 1e30  # for `_reach`
# With at least this many shapes, those near the robot are collected in each step.
MANY_SHAPES = 8


class Scene:
    """The memory of the simulator's kernel, and views of its parts.

    Attributes:
        packed: the robot, for this simulator only.
        words: (n,) the array.
        terrain: the ground as the kernel reads it.
        header: view of `kernels.simulation.scene.Scene`.
        state: view of the contents of a snapshot.
        counters: view of `kernels.simulation.scene.State`.
        q: (nq,) view; likewise u (nv,), tau (nj,), acceleration (nv,), foot_forces (feet, 3).
        command: (nj,) view of `kernels.simulation.scene.DriveCommand`.
        point_memory: (points,) view of `kernels.simulation.scene.PointMemory`.
        joint_memory: (nj,) view of `kernels.simulation.scene.JointMemory`.
        forces: (MAX_FORCES,) view of `kernels.simulation.scene.ExternalForce`.
        coulomb: (nj,) Coulomb friction of the joints [N m or N].
        lanes: offsets of the bodies of all links in the arena.
    """

    def __init__(
        self, model: Model, settings: SimulatorSettings, terrain: Terrain, points: Sequence[ContactPoint]
    ) -> None:
        self.packed = Packed(model)
        self.terrain = terrain.pack(settings.mu, settings.restitution)
        near = 0
        count = int(Ground.array(self.terrain)[0]['count'])
        if count >= MANY_SHAPES and settings.contact == 'impulse':
            near = len(self.terrain)
            self.terrain = np.append(self.terrain, np.zeros(Ground.words + count * Shape.words))
        nq, nv, nj, n, feet = model.nq, model.nv, model.nj, len(points), len(model.foot_names)
        firsts, blocks = limbs(model)
        row_length = BASE_COLUMNS + LANES * max(blocks, default=1)
        delay, share = split_latency(settings.latency, settings.dt)
        queue_length = delay + 2 if settings.latency > 0.0 else 0
        unknowns = min(9 * n + 3 * nj, MOST_UNKNOWNS)
        capacity = (unknowns // LANES + 1) * LANES
        sizes = {
            'nq': nq,
            'nv': nv,
            'nj': nj,
            'nq + nv': nq + nv,
            'points': n,
            'feet': feet,
            'queue_length': queue_length,
            'row_length': row_length,
            'rows': 9 * n + 3 * nj,
            'columns': BASE_COLUMNS + nj + LANES,
            'factor': nv * nv if settings.forward_dynamics == 'cholesky' else 0,
            'state_length': 0,
            **workspace_sizes(capacity, nj),
        }
        state = Placement(records.Scene, sizes).part('state')
        sizes['state_length'] = state.stop - state.start
        self.placement = Placement(records.Scene, sizes)
        at = self.placement.at
        self.words: Floats = np.zeros(self.placement.words)
        mark_unwritten(self.words[at['kept_state'] :])
        self.placement.fill(self.words)
        self.header = records.Scene.array(self.words)[0]
        # q and u before the step are in the copy of the state
        for last, now in (('last_q', 'q'), ('last_u', 'u')):
            self.header[last] = at['kept_state'] + at[now] - state.start
        for name, number in (
            ('n_points', n),
            ('n_feet', feet),
            ('queue_length', queue_length),
            ('row_length', row_length),
            ('state_length', sizes['state_length']),
            ('capacity', capacity),
            ('near_terrain', near),
            ('terrain', address_of(self.terrain)),
            ('mass', model.total_mass),
            ('reach', _reach(model, points)),
        ):
            self.header[name] = number
        self.header['settings']['delay'], self.header['settings']['delay_share'] = delay, share
        self._rows: Floats | None = None  # of the log, while it is active
        self._floating_base = model.floating_base
        self._fill_settings(settings)

        def view(name: str) -> npt.NDArray[Any]:
            return self.placement.view(self.words, name)

        view('signs')[:] = 1.0
        self.lanes = np.unique(
            [LinkFrame.array(self.packed.frame(link))[0]['place'] for link in model.frames]
        )
        self._fill_points(model, points, view('points'), firsts, blocks)
        self._fill_drives(model, view('drives'), firsts, blocks)
        self.state = self.words[state]
        self.counters = records.State.array(self.words, at['state'])[0]
        self.q, self.u = view('q'), view('u')
        self.tau, self.acceleration, self.foot_forces = view('tau'), view('acceleration'), view('foot_forces')
        self.command, self.forces = view('command'), view('forces')
        self.point_memory, self.joint_memory = view('point_memory'), view('joint_memory')
        self.coulomb = view('drives')['coulomb']

    def log_to(self, rows: Floats | None, every: int = 1) -> None:
        """Make the kernel log a row of (n, words) every few steps; None stops it."""
        log = self.header['log']
        log['every'] = every  # first: it may be too large, and then nothing else must change
        self._rows = rows
        log['address'] = 0 if rows is None else address_of(rows)
        log['room'] = 0 if rows is None else len(rows)
        log['width'] = 0 if rows is None else rows.shape[1]
        log['count'] = 0

    def grow_log(self) -> None:
        """Allocate about twice as many rows, because a controller took additional steps."""
        assert self._rows is not None
        count, log = self.log_count, self.header['log']
        rows = np.empty((2 * count + 1000, self._rows.shape[1]))
        rows[:count] = self._rows[:count]
        self.log_to(rows, int(log['every']))
        log['count'] = count

    @property
    def log_rows(self) -> Floats:
        """(n, words) the rows written by the kernel."""
        return np.empty((0, 0)) if self._rows is None else self._rows[: self.log_count]

    @property
    def log_count(self) -> int:
        """Number of rows written by the kernel."""
        return int(self.header['log']['count'])

    def _fill_settings(self, settings: SimulatorSettings) -> None:
        to = self.header['settings']
        for name, number in (
            ('contact', _CONTACTS[settings.contact]),
            ('cone', settings.friction == 'cone'),
            ('substeps', settings.substeps or 0),
            ('joint_friction', _FRICTIONS[settings.joint_friction]),
            ('runge_kutta', settings.integrator == 'rk4'),
            ('forward_dynamics', _FORWARD_DYNAMICS[settings.forward_dynamics]),
            ('momentum_correction', settings.momentum_correction and self._floating_base),
        ):
            to[name] = number
        for name in ('max_sweeps', 'joint_limits', 'motor_limits', 'dt', 'tolerance', 'correction'):
            to[name] = getattr(settings, name)
        for name in ('stiffness', 'damping', 'energy_limit'):
            to[name] = getattr(settings, name)

    def _fill_points(
        self,
        model: Model,
        points: Sequence[ContactPoint],
        table: npt.NDArray[Any],
        firsts: Sequence[int],
        blocks: Sequence[int],
    ) -> None:
        q = model.standing if model.standing is not None else model.neutral
        M = mass_matrix(model, q) if model.nv else np.zeros((0, 0))
        for to, point in zip(table, points, strict=True):
            frame = LinkFrame.array(self.packed.frame(point.link))[0]
            joint = int(frame['joint'])
            to['lane'], to['joint'] = frame['place'], joint
            to['first'] = firsts[joint] if joint >= 0 else 0
            to['blocks'] = blocks[joint] if joint >= 0 else 1
            is_foot = point.link in model.foot_names
            to['foot'] = model.foot_names.index(point.link) if is_foot else -1
            to['position'] = frame['position'] + frame['rotation'].reshape(3, 3) @ np.array(point.position)
            to['radius'] = point.radius
            to['mobility'] = mobility(model, q, M, point)

    def _fill_drives(
        self, model: Model, table: npt.NDArray[Any], firsts: Sequence[int], blocks: Sequence[int]
    ) -> None:
        if not model.nj:
            return
        table['first'], table['blocks'] = firsts, blocks
        table['lowest'], table['highest'] = model.q_min, model.q_max
        table['viscous'], table['coulomb'] = joint_friction(model)
        table['rotor_inertia'] = self.packed.joint_inertia
        # with physically inconsistent parameters, the inertia may be negative
        M = mass_matrix(model, model.neutral)
        table['lock'] = LOCK * np.abs(np.diag(M))[model.nv - model.nj :]
        table['effort'], table['stall'], table['slope'] = motor_limits(model)


def limbs(model: Model) -> tuple[list[int], list[int]]:
    """For each joint, the first joint of its limb, and the number of blocks of four from there to it."""
    firsts: list[int] = []
    for joint, parent in enumerate(model.parents.tolist()):
        firsts.append(joint if parent < 0 else firsts[parent])
    return firsts, [(joint - first) // LANES + 1 for joint, first in enumerate(firsts)]


def _reach(model: Model, points: Sequence[ContactPoint]) -> float:
    """Largest speed of a contact point relative to the base, if no joint or axis of the base exceeds 1 rad/s.

    Every joint of a limb moves its point by at most the stretched length of the limb, and so does each of the
    three axes of the base.
    """
    if model.is_prismatic.any():
        return _UNBOUNDED
    largest = 0.0
    for point in points:
        frame = model.frames[point.link]
        length = float(np.linalg.norm(frame.p) + np.linalg.norm(point.position))
        joint, count = frame.body - (model.nb - model.nj), 0
        while joint >= 0:
            length += float(np.linalg.norm(model.joint_p[joint]))
            joint, count = int(model.parents[joint]), count + 1
        largest = max(largest, length * (np.sqrt(3.0) + count))
    return largest


def split_latency(latency: float, dt: float) -> tuple[int, float]:
    """Whole time steps of a latency, and the remaining fraction; rounding errors give no fraction."""
    steps = latency / dt
    whole = round(steps)
    if abs(steps - whole) < 1e-9 * max(steps, 1.0):
        return whole, 0.0
    return int(steps), steps - int(steps)


def mobility(model: Model, q: Floats, M: Floats, point: ContactPoint) -> float:
    """The largest inverse effective mass at a point [1/kg]."""
    R, _ = frame_pose(model, q, point.link)
    x, y, z = R @ np.array(point.position)
    J = frame_jacobian(model, q, point.link)
    across = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # -[p]: v = v_O - p x w
    J_p = J[:3] + across @ J[3:]
    return float(np.linalg.eigvalsh(J_p @ np.linalg.solve(M, J_p.T)).max())
