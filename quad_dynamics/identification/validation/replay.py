# SPDX-License-Identifier: Apache-2.0
"""Comparison of simulations with the log, started from logged states with the logged torques.

A simulation of the whole log would diverge with any model, because only torques act on the legs. So the log
is divided into windows of a tenth of a second (multiple shooting). Each starts in the logged state, with the
logged torques of the motors, the measured forces of the ground, and the logged motion of the base; the joints
move freely. The result is their distance from the log at the end of the window.

The difference e to the log is integrated, not the motion itself:

    e'' = a(q + e, u + e', tau, f) - a_log,

which is zero for a perfect model, however coarse the steps are. The direction of Coulomb friction is taken
from the log. Joints whose rows are not used (at rest, saturated) follow the log; otherwise the result would
depend on whether a joint sticks, not on the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.dynamics import hybrid_dynamics, mass_matrix
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.equations.columns import JOINT_KINDS
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.solvers.solution import model_with
from quad_dynamics.model.model import Model

WINDOW = 0.1  # [s]
_MOST_WINDOWS = 600
_AT_ONCE = 64  # windows that are simulated together
_LEAST_USED = 0.5  # share of a joint's rows in a window that must be used
_MOST_STEPS = 100  # between two rows of the log
_FARTHEST = 1e3  # bound for diverging simulations [rad, rad/s]
_SAME = 0.02  # relative change of a distance that does not count as worse


@dataclass(frozen=True, eq=False)
class Replay:
    """Distance of simulated joints from the log at the ends of windows; RMS over windows.

    Attributes:
        joints: names.
        window: length [s].
        windows: (nj,) number of windows of each joint.
        position: (2, nj) before and after [rad or m].
        velocity: (2, nj) before and after [rad/s or m/s].
    """

    joints: tuple[str, ...]
    window: float
    windows: npt.NDArray[np.int64]
    position: Floats
    velocity: Floats

    @property
    def judged(self) -> Bools:
        """(nj,) joints that were simulated."""
        return np.asarray(self.windows > 0, dtype=np.bool_)

    @property
    def farther(self) -> Bools:
        """(2, nj) joints whose position or velocity is farther from the log after than before, by 2 %."""
        distance = np.stack([self.position, self.velocity])
        return np.asarray(distance[:, 1] > (1.0 + _SAME) * distance[:, 0], dtype=np.bool_)

    @property
    def closer(self) -> Bools:
        """(nj,) joints of which position or velocity is closer to the log, and neither is farther."""
        nearer = (self.position[1] < self.position[0]) | (self.velocity[1] < self.velocity[0])
        return np.asarray(nearer & ~self.farther.any(axis=0), dtype=np.bool_)

    @property
    def drift(self) -> Floats:
        """(2,) distance of positions before and after, RMS over the joints that were simulated."""
        return np.asarray(np.sqrt(np.mean(self.position[:, self.judged] ** 2, axis=1)))


def replay(equations: Equations, before: Floats, after: Floats, window: float = WINDOW) -> Replay | None:
    """Simulate two models from logged states.

    Args:
        equations: of the log; not in mode 'base', which has no joint rows.
        before: (size,) unknowns of the first model.
        after: (size,) of the second.
        window: length of a window [s].

    Returns:
        None if the log has no segment of that length in which enough rows of a joint are used.
    """
    columns = equations.columns
    nj = columns.model.nj
    sums, counts = np.zeros((2, 2, nj)), np.zeros(nj, dtype=np.int64)
    models = [model_with(columns, x) for x in (before, after)]
    for batch, dt in _batches(equations, window):
        counted = equations.samples.layout.get(batch.reshape(-1, batch.shape[-1]), 'use')
        counted = counted.reshape(*batch.shape[:2], nj).mean(axis=1) >= _LEAST_USED
        for k, (model, x) in enumerate(zip(models, (before, after), strict=True)):
            e, de = _simulate(equations, model, x, batch, dt)
            sums[k, 0] += np.sum(e**2 * counted, axis=0)
            sums[k, 1] += np.sum(de**2 * counted, axis=0)
        counts += counted.sum(axis=0)
    if not counts.any():
        return None
    with np.errstate(invalid='ignore'):
        rms = np.sqrt(sums / counts)
    return Replay(columns.model.joint_names, window, counts, rms[:, 0], rms[:, 1])


# ---------------------------------------------------------------- windows


def _batches(equations: Equations, window: float) -> Iterator[tuple[Floats, float]]:
    """Windows that are simulated together, (windows, steps + 1, width) rows, and the time between rows."""
    pending: list[Floats] = []
    pending_dt = 0.0
    for rows, dt in _windows(equations, window):
        if pending and (len(pending) == _AT_ONCE or len(rows) != len(pending[0]) or dt != pending_dt):
            yield np.array(pending), pending_dt
            pending = []
        pending.append(rows)
        pending_dt = dt
    if pending:
        yield np.array(pending), pending_dt


def _windows(equations: Equations, window: float) -> Iterator[tuple[Floats, float]]:
    """Rows of windows within segments, evenly distributed over the log, and the time between rows."""
    samples, get = equations.samples, equations.samples.layout.get
    rest = np.empty((0, samples.layout.width))
    possible = _count(equations, window)
    every, found = max(1, -(-possible // _MOST_WINDOWS)), 0
    for chunk in samples.chunks():
        rows = np.concatenate([rest, chunk])
        begin = 0
        for end in [*(np.flatnonzero(np.diff(get(rows, 'segment'))) + 1), len(rows)]:
            part = rows[begin:end]
            size, dt = _size(get(part, 'time'), window)
            while size and len(part) > size:
                if found % every == 0:
                    yield part[: size + 1], dt
                found += 1
                part = part[size:]
                begin += size
            if end < len(rows):
                begin = end
        rest = rows[begin:]


def _count(equations: Equations, window: float) -> int:
    """Approximate number of windows of the whole log."""
    get, total = equations.samples.layout.get, 0.0
    for chunk in equations.samples.chunks():
        step = np.diff(get(chunk, 'time'))
        inside = (np.diff(get(chunk, 'segment')) == 0.0) & (step > 0.0)
        total += float(step[inside].sum())
    return int(total / window)


def _size(time: Floats, window: float) -> tuple[int, float]:
    """Steps of a window, and the time between rows; 0 for a segment of one row."""
    if len(time) < 2:
        return 0, 0.0
    dt = round(float(time[1] - time[0]), 9)
    return max(round(window / dt), 1) if dt > 0.0 else 0, dt


# ---------------------------------------------------------------- simulation


def _simulate(
    equations: Equations, model: Model, x: Floats, batch: Floats, dt: float
) -> tuple[Floats, Floats]:
    """Differences (windows, nj) of positions and velocities to the log at the ends of windows."""
    get, (n, length, width) = equations.samples.layout.get, batch.shape
    forces = _forces(equations, x, batch.reshape(-1, width)).reshape(n, length, model.nv)
    prescribed = np.arange(model.nv) < model.nv - model.nj

    def acceleration(at: float, e: Floats, de: Floats) -> Floats:
        """(n, nj) acceleration of the difference to the log, at a position between its rows."""
        rows, nj = _between(batch, at), model.nj
        q, u, du = (np.array(get(rows, name)) for name in ('q', 'u', 'du'))
        if model.floating_base:
            q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        q[:, model.nq - nj :] += e
        u[:, model.nv - nj :] += de
        tau = _between(forces, at) - _friction(equations, x, u, get(rows, 'sign'))
        found, _ = hybrid_dynamics(model, q, u, du, tau, prescribed)
        return np.asarray((found - du)[:, model.nv - nj :])

    steps = _steps(equations, model, x, batch[:, 0], dt)
    h = dt / steps
    e, de = np.zeros((n, model.nj)), np.zeros((n, model.nj))
    for k in range((length - 1) * steps):
        # Heun's method: the mean of both ends of the step.
        a = acceleration(k / steps, e, de)
        ahead = acceleration((k + 1) / steps, _held(e + h * de), _held(de + h * a))
        e = _held(e + h * de + 0.5 * h**2 * a)
        de = _held(de + 0.5 * h * (a + ahead))
    return e, de


def _between(rows: Floats, at: float) -> Floats:
    """(n, width) linear interpolation between rows (n, length, width)."""
    k = min(int(at), rows.shape[1] - 2)
    return np.asarray(rows[:, k] + (at - k) * (rows[:, k + 1] - rows[:, k]))


def _steps(equations: Equations, model: Model, x: Floats, rows: Floats, dt: float) -> int:
    """Number of steps between rows, such that friction stops no joint within one step."""
    columns, nj = equations.columns, model.nj
    damping = x[columns.slices['viscous']] + np.abs(x[columns.slices['asymmetric']])
    M = mass_matrix(model, np.array(equations.samples.layout.get(rows, 'q')))[:, -nj:, -nj:]
    rates = np.abs(np.linalg.eigvals(np.linalg.solve(M, np.diag(damping)[None])))
    return int(np.clip(np.ceil(dt * np.max(rates, initial=0.0)), 1, _MOST_STEPS))


def _held(values: Floats) -> Floats:
    return np.clip(np.nan_to_num(values, nan=_FARTHEST), -_FARTHEST, _FARTHEST)


def _forces(equations: Equations, x: Floats, rows: Floats) -> Floats:
    """(n, nv) logged forces of motors and ground; for unused rows, the torque that the logged motion needs.

    Ground forces that were not measured are those that fit the logged motion best.
    """
    get, columns = equations.samples.layout.get, equations.columns
    nj, nv = columns.model.nj, columns.model.nv
    total = np.zeros((len(rows), nv))
    late = x[columns.slices['delay']]  # residual delays of torques and forces
    total[:, nv - nj :] = get(rows, 'tau') + late[0] * get(rows, 'dtau')
    Y, y = equations.raw(rows)
    r = y - Y @ x
    if equations.mode != 'fixed':
        Jt = np.swapaxes(equations.foot_jacobians(rows), 1, 2)
    if equations.mode == 'forces':
        force = get(rows, 'force') + late[1] * get(rows, 'dforce') - x[columns.slices['bias']]
        total += (Jt @ force[..., None])[..., 0]
    elif equations.mode == 'projection':
        w = equations.use(rows) / np.concatenate([equations.noise.base, equations.noise.joints])
        f = np.linalg.pinv(Jt * w[..., None], rcond=1e-9) @ (r * w)[..., None]
        contact = -(Jt @ f)[..., 0]
        total += contact
        r = r + contact
    total[:, nv - nj :] -= (1.0 - get(rows, 'use')) * r[:, nv - nj :]
    return total


def _friction(equations: Equations, x: Floats, u: Floats, sign: Floats) -> Floats:
    """(n, nv) friction torque at a velocity; its direction is given."""
    columns, nj = equations.columns, equations.columns.model.nj
    own = columns.joint_columns(u[:, u.shape[1] - nj :], sign)
    kinds = np.array([x[columns.slices[kind]] for kind in JOINT_KINDS])
    torque = np.zeros_like(u)
    torque[:, u.shape[1] - nj :] = np.einsum('njk,kj->nj', own, kinds)
    return torque
