# SPDX-License-Identifier: Apache-2.0
"""Closed-loop simulation of the joints along the log, with the logged torques.

The logged torques and forces drive the model, and a controller with stiffness K and damping D keeps it near
the log. The real robot had a controller, too. If its gains are K and D, its commanded torques were logged,
and it used q_log and u_log, then it would command exactly tau_log + K (q_log - q) + D (u_log - u) in the
state (q, u), whatever its reference was, and however noisy q_log is. Velocities of samples are usually not
differentiated as in the controller; then the gains of the real controller are no better than others.

The difference e to the log is integrated, not the motion itself,

    e'' = a(q_log + e, u_log + e', tau_log - K e - D e') - a_log,

which is zero for a perfect model, however coarse the steps are. The loop forgets its initial state, so parts
of the log, each with some time to forget, are simulated together.

With a floating base, base and ground follow the log (position, acceleration, forces), and joints are
simulated, because the controller that balances the base is unknown. The direction of Coulomb friction is
taken from the log. Joints whose rows are not used (at rest, saturated) are driven by the torque that their
logged motion needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.dynamics import hybrid_dynamics, inverse_dynamics, mass_matrix
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.baselines.closed_loop_settings import ClosedLoopSettings
from quad_dynamics.identification.baselines.smoothing import (
    motion_cutoff,
    period,
    segments,
    smooth,
    smooth_motion,
)
from quad_dynamics.identification.equations.columns import JOINT_KINDS
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.samples import CHUNK
from quad_dynamics.identification.solvers.solution import model_with
from quad_dynamics.model.model import Model

_PIECE = 4  # length of a part, relative to the time that it has to forget
_FORGET = 5.0  # time to forget the initial state, relative to the time constant
_SLOWEST = 2.0  # lower bound of the decay rate [1/s]
_STEP = 0.8  # largest step, in 1 / (fastest rate of the loop)
_MARGIN, _HIGHEST = 4.0, 40.0  # ratio of bandwidth to cutoff, and upper bound of the bandwidth [Hz]
_FARTHEST = 10.0  # where a simulation has diverged [rad, rad/s / 100]


class ClosedLoop:
    """Simulations along one log.

    Attributes:
        equations: of the log.
        cutoff: of the smoothed log [Hz].
        kp: (nj,) stiffness [N m/rad].
        kd: (nj,) damping [N m s/rad].
        slowest: decay rate of the initial state of the slowest joint [1/s].
    """

    def __init__(self, equations: Equations, settings: ClosedLoopSettings | None = None) -> None:
        """Choose cutoff and gains.

        Raises:
            ArgumentError: the number of gains differs from that of joints, or there are no samples.
        """
        settings = settings or ClosedLoopSettings()
        if not len(equations.samples):
            raise ArgumentError('there are no samples; expected some to simulate along')
        self.equations = equations
        model = equations.columns.model
        self.cutoff = settings.cutoff or motion_cutoff(equations.samples, model.nj)
        bandwidth = settings.bandwidth or min(_MARGIN * self.cutoff, _HIGHEST)
        rate = 2.0 * np.pi * bandwidth
        felt = self._felt_inertia(model)
        self.kp = _gains(settings.kp, felt * rate**2, 'kp')
        self.kd = _gains(settings.kd, felt * 2.0 * settings.damping * rate, 'kd')
        omega, damping = np.sqrt(self.kp / felt), 0.5 * self.kd / np.sqrt(np.maximum(self.kp * felt, 1e-12))
        slowest = omega * np.minimum(damping, 0.5 / np.maximum(damping, 1e-12))
        self.slowest = max(float(slowest.min()), _SLOWEST)
        self._rate = float(np.max(np.maximum(self.kd / felt, np.sqrt(self.kp / felt))))

    def _felt_inertia(self, model: Model) -> Floats:
        """(nj,) smallest inertia that a motor drives while all other joints are free, along the log."""
        rows = next(self.equations.samples.chunks())
        q = np.ascontiguousarray(self.equations.samples.layout.get(rows[:: max(1, len(rows) // 50)], 'q'))
        M = mass_matrix(model, q)[:, -model.nj :, -model.nj :]
        return np.asarray(1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2).max(axis=0))

    @property
    def simulates(self) -> bool:
        """Whether all forces on the joints were measured: fixed base, or measured foot forces."""
        return self.equations.mode in ('fixed', 'forces')

    def smoothed(self) -> Iterator[tuple[Floats, Floats]]:
        """Rows of each segment as logged, and with smoothed motion."""
        layout = self.equations.samples.layout
        for rows in segments(self.equations.samples):
            yield rows, smooth_motion(layout, rows, self.cutoff)

    def simulated(self, x: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Rows of each segment as logged, and with the simulated motion of the model x.

        Args:
            x: (size,) unknowns.

        Raises:
            ArgumentError: the simulation diverges, or foot forces are unknown.
        """
        if not self.simulates:
            raise ArgumentError(
                f"joints cannot be simulated in the mode '{self.equations.mode}'; expected 'forces'"
            )
        run = _Run(self, x)
        for group in self._groups():
            yield from run.follow(group)

    def _groups(self) -> Iterator[list[tuple[Floats, Floats]]]:
        """Segments that are simulated together: the same sample period, and a limited number."""
        group: list[tuple[Floats, Floats]] = []
        layout, step = self.equations.samples.layout, 0.0
        for rows, smoothed in self.smoothed():
            dt = round(period(layout, rows), 9)
            if group and (dt != step or sum(len(part) for part, _ in group) + len(rows) > CHUNK):
                yield group
                group = []
            group.append((rows, smoothed))
            step = dt
        if group:
            yield group


def _gains(given: tuple[float, ...], default: Floats, name: str) -> Floats:
    if not given:
        return default
    if len(given) not in (1, len(default)):
        raise ArgumentError(
            f'{name} has {len(given)} numbers; expected one for each of {len(default)} joints'
        )
    return np.array(np.broadcast_to(given, default.shape), dtype=np.float64)


class _Run:
    """Simulations with one model."""

    def __init__(self, loop: ClosedLoop, x: Floats) -> None:
        self.loop, self.x, self.columns = loop, x, loop.equations.columns
        self.layout = loop.equations.samples.layout
        self.model = model_with(self.columns, x)
        self.nj = self.model.nj
        self.prescribed = np.arange(self.model.nv) < self.model.nv - self.nj
        part = {kind: x[self.columns.slices[kind]] for kind in JOINT_KINDS}
        self.kinds = np.stack(list(part.values()), axis=1)
        self.viscous = part['viscous']

    # ---------------------------------------------------------------- what drives the joints

    def drive(self, rows: Floats, smoothed: Floats) -> Floats:
        """(n, nv) smoothed forces on the model in the logged state: motors and ground without friction."""
        get, nj = self.layout.get, self.nj
        u, sign = get(rows, 'u')[:, -nj:], get(rows, 'sign')
        delays = self.x[self.columns.slices['delay']]
        forces = np.zeros((len(rows), self.model.nv))
        forces[:, -nj:] = get(rows, 'tau') + delays[0] * get(rows, 'dtau')
        forces[:, -nj:] -= np.sum(self.columns.joint_columns(u, sign) * self.kinds, axis=2)
        if self.model.floating_base:
            J = self.loop.equations.foot_jacobians(smoothed)
            felt = get(rows, 'force') + delays[1] * get(rows, 'dforce') - self.x[self.columns.slices['bias']]
            forces += np.einsum('nkv,nk->nv', J, felt)
        q, us, dus = (np.ascontiguousarray(get(smoothed, name)) for name in ('q', 'u', 'du'))
        needed = inverse_dynamics(self.model, q, us, dus)
        forces[:, -nj:] = np.where(get(rows, 'use') > 0.0, forces[:, -nj:], needed[:, -nj:])
        return smooth(forces, period(self.layout, rows), self.loop.cutoff)

    # ---------------------------------------------------------------- time

    def follow(self, group: list[tuple[Floats, Floats]]) -> Iterator[tuple[Floats, Floats]]:
        """Rows of segments as logged, and with the motion of the model."""
        dt = period(self.layout, group[0][0])
        if dt <= 0.0:
            yield from group
            return
        smoothed = np.concatenate([part for _, part in group])
        drive = np.concatenate([self.drive(rows, part) for rows, part in group])
        out = smoothed.copy()
        before = int(np.ceil(_FORGET / (self.loop.slowest * dt)))
        begins, low, high = _pieces([len(rows) for rows, _ in group], _PIECE * before)
        e, de = np.zeros((len(begins), self.nj)), np.zeros((len(begins), self.nj))
        for k in range(-before, min(_PIECE * before, int(np.max(high - begins)))):
            here = begins + k
            live = (here >= low) & (here < high)
            i = np.where(live, here, low)
            if k >= 0:
                a = self.acceleration(smoothed[i], drive[i], e, de)
                self._store(out, i[live], e[live], de[live], a[live])
            ahead = np.where(live, np.minimum(here + 1, high - 1), low)
            ends = (smoothed[i], drive[i]), (smoothed[ahead], drive[ahead])
            e, de = self._step(ends, e, de, dt)
            e, de = e * live[:, None], de * live[:, None]
        ends_of = np.cumsum([len(rows) for rows, _ in group])[:-1]
        yield from zip((rows for rows, _ in group), np.split(out, ends_of), strict=True)

    def _step(
        self, ends: tuple[tuple[Floats, Floats], tuple[Floats, Floats]], e: Floats, de: Floats, dt: float
    ) -> tuple[Floats, Floats]:
        """Differences one sample later: midpoint method, in stable steps."""
        (rows, drive), (next_rows, next_drive) = ends
        count = int(np.ceil(self.loop._rate * dt / _STEP))
        h = dt / count
        for k in range(count):
            begin, middle = k / count, (k + 0.5) / count
            a = self.acceleration(_between(rows, next_rows, begin), _between(drive, next_drive, begin), e, de)
            half_e, half_de = e + 0.5 * h * de, de + 0.5 * h * a
            a = self.acceleration(
                _between(rows, next_rows, middle), _between(drive, next_drive, middle), half_e, half_de
            )
            e, de = e + h * half_de, de + h * a
            self._check(e, de, self.layout.get(rows, 'time'))
        return e, de

    def acceleration(self, rows: Floats, drive: Floats, e: Floats, de: Floats) -> Floats:
        """(n, nj) acceleration of the difference to the log."""
        get, nj = self.layout.get, self.nj
        q, u, du = (np.array(get(rows, name)) for name in ('q', 'u', 'du'))
        forces = drive.copy()
        forces[:, -nj:] -= self.loop.kp * e + (self.loop.kd + self.viscous) * de
        q[:, -nj:] += e
        u[:, -nj:] += de
        if self.model.floating_base:
            q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        found, _ = hybrid_dynamics(self.model, q, u, du, forces, self.prescribed)
        return np.asarray(found[:, -nj:] - du[:, -nj:])

    def _store(self, out: Floats, i: npt.NDArray[np.int64], e: Floats, de: Floats, a: Floats) -> None:
        for name, change in (('q', e), ('u', de), ('du', a)):
            values = self.layout.get(out, name)
            values[i, -self.nj :] += change

    def _check(self, e: Floats, de: Floats, time: Floats) -> None:
        far = np.any(~((np.abs(e) < _FARTHEST) & (np.abs(de) < 100.0 * _FARTHEST)), axis=1)
        for k in np.flatnonzero(far)[:1]:
            joint = int(np.argmax(np.abs(np.nan_to_num(e[k], nan=np.inf))))
            raise ArgumentError(
                f"the simulation runs away at {time[k]:.2f} s, joint '{self.model.joint_names[joint]}'; "
                'expected a model that can follow the log'
            )


def _pieces(lengths: list[int], most: int) -> tuple[Ints, Ints, Ints]:
    """First rows of the parts that are simulated at once; begin and end of the segment of each."""
    begins: list[int] = []
    low: list[int] = []
    high: list[int] = []
    first = 0
    for length in lengths:
        inside = range(first, first + length, most)
        begins += inside
        low += [first] * len(inside)
        high += [first + length] * len(inside)
        first += length
    return np.array(begins), np.array(low), np.array(high)


def _between(begin: Floats, end: Floats, part: float) -> Floats:
    return begin if part == 0.0 else (1.0 - part) * begin + part * end
