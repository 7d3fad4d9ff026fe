# SPDX-License-Identifier: Apache-2.0
"""Detection of feet in stance and of impacts, at which segments are split.

Filters must not run across impacts: an event of a millisecond would be spread over their whole window, and it
affects positions and torques differently.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from quad_dynamics.api.kinematics import frame_jacobian, frame_pose
from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.identification.signals.base_motion import rotate
from quad_dynamics.identification.signals.grid import Grid, Segment
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.model import Model

# A force that rises by this fraction of the weight in this time [s] is an impact.
_RISE_TIME, _RISE = 5e-3, 0.25
_SLOW, _LOW = 0.15, 0.03  # a foot in stance is at most this fast [m/s] and this far above the lowest one [m]
_JUMP = 12.0  # a jump of velocity is larger than this many standard deviations ...
_SMALLEST_JUMP = 0.5  # ... and than this [rad/s or m/s]
# If impacts are visible in velocities, or cannot occur, jumps of a position are errors if they are larger
# than this [rad or m] and than this many steps at the highest speed, which is this quantile of all speeds.
_GLITCH, _LATE, _FASTEST = 0.02, 5.0, 0.99
_APART = 0.01  # impacts that are closer to each other are merged [s]


@dataclass
class Stance:
    """Stance and impacts of a recording.

    Attributes:
        method: 'forces', 'flags', 'kinematics' or 'all'; '' for a fixed base.
        impacts: first rows after an impact.
        stood: (feet,) number of rows in which each foot is in stance.
        carried: mean of the vertical forces relative to the weight; NaN if they were not measured.
        across: whether impacts are so frequent that filters run across them.
    """

    method: str
    impacts: list[int] = field(default_factory=list)
    stood: Floats = field(default_factory=lambda: np.zeros(0))
    carried: float = float('nan')
    across: bool = False


def stance_method(settings: SignalSettings, measured: bool, flags: bool, odometry: bool) -> str:
    """How feet on the ground are detected.

    Args:
        settings: of signals.
        measured: whether forces of all feet were measured.
        flags: whether contact flags of all feet are recorded.
        odometry: whether there is odometry.
    """
    if settings.stance != 'auto':
        return settings.stance
    return 'forces' if measured else 'flags' if flags else 'kinematics' if odometry else 'all'


def world_forces(grid: Grid, rows: Floats, model: Model, frames: dict[str, str]) -> Floats:
    """(n, 3 feet) forces in world axes; 0 for feet whose force was not measured.

    Args:
        grid: of the rows.
        rows: (n, width).
        model: robot.
        frames: link in whose axes each force is expressed, '' for world axes.
    """
    forces = np.zeros((len(rows), 3 * len(model.foot_names)))
    for i, foot in enumerate(model.foot_names):
        if f'force/{foot}' not in grid:
            continue
        force = grid.get(rows, f'force/{foot}')
        if frame := frames.get(foot, ''):
            R, _ = frame_pose(model, configuration(grid, rows, model), frame)
            force = (R @ force[..., None])[..., 0]
        forces[:, 3 * i : 3 * i + 3] = force
    return forces


def configuration(grid: Grid, rows: Floats, model: Model) -> Floats:
    """(n, nq) measured configuration; without odometry at the origin, with the orientation of the IMU."""
    joints = grid.get(rows, 'position')
    if not model.floating_base:
        return np.ascontiguousarray(joints)
    if 'base' in grid:
        base = grid.get(rows, 'base')[:, :7].copy()
    else:
        base = np.hstack([np.zeros((len(rows), 3)), grid.get(rows, 'imu')[:, :4]])
    base[:, 3:] /= np.linalg.norm(base[:, 3:], axis=1, keepdims=True)
    return np.hstack([base, joints])


def find_stance(
    grid: Grid, model: Model, settings: SignalSettings, frames: dict[str, str], method: str
) -> Stance:
    """Write the stance of feet into the grid, and find impacts.

    Args:
        grid: with a quantity 'stance', which is overwritten.
        model: robot.
        settings: thresholds.
        frames: of the forces.
        method: 'forces', 'flags', 'kinematics' or 'all'; '' without feet.
    """
    found = Stance(method, stood=np.zeros(len(model.foot_names) if method else 0))
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    up = -model.gravity / max(float(np.linalg.norm(model.gravity)), 1e-300)
    vertical = 0.0
    size = max(1, round(settings.chunk * grid.rate))
    jumps = _JumpFinder(grid, bool(method))
    before: Bools | None = None
    last: Segment | None = None
    # some more rows, to detect rises across the border of two chunks
    ahead = math.ceil(_RISE_TIME * grid.rate) + 2
    for segment, begin, end, rows in grid.windows(size, ahead):
        if segment is not last:
            before, last = None, segment
        low = max(begin - ahead, segment.begin)
        inner = slice(begin - low, end - low)
        found.impacts += [low + i for i in jumps(rows) if begin <= low + i < end and low + i > segment.begin]
        if not method:
            continue
        if method == 'forces':
            forces = world_forces(grid, rows, model, frames)
            norms = _norms(forces)
            vertical += float(np.sum(forces[inner].reshape(-1, 3) @ up))
            stands = _hysteresis(norms[inner], settings.touch * weight, settings.lift * weight, before)
            rise = norms[min(ahead - 2, len(norms) - 1) :]
            hits = np.flatnonzero(np.any(rise - norms[: len(rise)] > _RISE * weight, axis=1))
            found.impacts += [low + int(i) + 1 for i in hits if begin <= low + i < end]
        elif method in ('flags', 'kinematics'):
            known = _flags if method == 'flags' else _standing
            stands = known(grid, rows, model)[inner]
            touched = np.any(stands[1:] & ~stands[:-1], axis=1)
            found.impacts += [begin + 1 + int(i) for i in np.flatnonzero(touched)]
        else:
            stands = np.ones((end - begin, len(model.foot_names)), dtype=np.bool_)
        before = stands[-1]
        found.stood += stands.sum(axis=0)
        grid.write(begin, 'stance', stands.astype(np.float64))
    if method == 'forces':
        found.carried = vertical / (max(len(grid), 1) * max(weight, 1e-300))
    found.impacts = _first_of_each(found.impacts, math.ceil(_APART * grid.rate))
    return found


def _first_of_each(rows: list[int], apart: int) -> list[int]:
    """Impacts; of several in close succession, the first and the last are kept."""
    kept: list[int] = []
    for row in sorted(set(rows)):
        if len(kept) >= 2 and row - kept[-1] <= apart and kept[-1] - kept[-2] <= apart:
            kept[-1] = row
        else:
            kept.append(row)
    return kept


def _norms(forces: Floats) -> Floats:
    """(n, feet) norms of forces (n, 3 feet)."""
    norms: Floats = np.linalg.norm(forces.reshape(len(forces), -1, 3), axis=2)
    return norms


def _hysteresis(values: Floats, on: float, off: float, before: Bools | None) -> Bools:
    """(n, k) on above one threshold, off below the other, unchanged between them."""
    state = np.where(values >= on, 1, np.where(values < off, 0, -1)).astype(np.int8)
    if before is None:
        before = values[0] >= 0.5 * (on + off)
    state = np.vstack([before.astype(np.int8), state])
    known = np.where(state >= 0, np.arange(len(state))[:, None], 0)
    latest = np.maximum.accumulate(known, axis=0)
    stands: Bools = np.take_along_axis(state, latest, axis=0)[1:] == 1
    return stands


def _flags(grid: Grid, rows: Floats, model: Model) -> Bools:
    """(n, feet) feet on the ground, from recorded flags."""
    return np.hstack([grid.get(rows, f'contact/{foot}') for foot in model.foot_names]) > 0.5


def _standing(grid: Grid, rows: Floats, model: Model) -> Bools:
    """(n, feet) feet that are slow and low."""
    q = configuration(grid, rows, model)
    base = grid.get(rows, 'base')
    v = (
        grid.get(rows, 'velocity')
        if 'velocity' in grid
        else np.gradient(grid.get(rows, 'position'), grid.period, axis=0)
    )
    u = np.hstack([rotate(q[:, 3:7], base[:, 7:10]), base[:, 10:13], v])
    heights, speeds = [], []
    for foot in model.foot_names:
        R, p = frame_pose(model, q, foot)
        J = frame_jacobian(model, q, foot)
        velocity = (J @ u[..., None])[..., 0]
        centre, radius = contact_ball(model, foot)
        arm = R @ centre
        heights.append(p[:, 2] + arm[:, 2] - radius)
        speeds.append(np.linalg.norm(velocity[:, :3] + np.cross(velocity[:, 3:], arm), axis=1))
    height = np.stack(heights, axis=1)
    low: Bools = height - height.min(axis=1, keepdims=True) < _LOW
    return low & (np.stack(speeds, axis=1) < _SLOW)


class _JumpFinder:
    """Finds rows at which velocities or positions of joints jump."""

    def __init__(self, grid: Grid, feet: bool) -> None:
        self._grid = grid
        first = grid.read(0, min(len(grid), round(20.0 * grid.rate)))
        bends = np.abs(self._bends(first))
        if not len(bends):
            bends = np.zeros((1, bends.shape[1]))
        self._limit = np.maximum(_JUMP * 1.4826 * np.median(bends, axis=0), _SMALLEST_JUMP)
        if not feet or 'velocity' in grid:
            # Repeated positions, or a late message, are not impacts: they cause jumps of a few speeds.
            positions = slice(0, grid.sizes['position'])
            speed = np.quantile(np.abs(self._slopes(first)), _FASTEST, axis=0)
            self._limit[positions] = np.maximum(self._limit[positions], _LATE * speed + _GLITCH * grid.rate)

    def _slopes(self, rows: Floats) -> Floats:
        """(n - 1, nj) velocities from positions."""
        return np.diff(self._grid.get(rows, 'position'), axis=0) * self._grid.rate

    def _bends(self, rows: Floats) -> Floats:
        """(n - 4, k) how much a step of a velocity exceeds the neighbouring steps."""
        # A position that jumps back and forth is not an impact, but must not be filtered either.
        v = self._slopes(rows)
        if 'velocity' in self._grid:
            v = np.hstack([v, self._grid.get(rows, 'velocity')[1:]])
        steps = np.diff(v, axis=0)
        bends: Floats = steps[1:-1] - 0.5 * (steps[2:] + steps[:-2])
        return bends

    def __call__(self, rows: Floats) -> list[int]:
        """Rows after the jump."""
        bends = self._bends(rows)
        return [int(i) + 3 for i in np.flatnonzero(np.any(np.abs(bends) > self._limit, axis=1))]
