# SPDX-License-Identifier: Apache-2.0
"""Forces on the feet that give the base its desired acceleration, within friction.

The base is not actuated: the six upper rows of

    M du + h = S^T tau + sum_i J_i^T f_i

must be satisfied by the forces f_i alone; the rows of the joints then give the torques. With three or more
feet there are many such forces, and the minimum-norm solution is used. If it leaves a friction cone, the
nearest solution within pyramids inside the cones is found by non-negative least squares on their edges
(Lawson and Hanson 1974, chapter 23).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from quad_dynamics.api.drives import gravity_norm, leg_length
from quad_dynamics.api.dynamics import inverse_dynamics
from quad_dynamics.api.link_points import LinkPoint
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.model import Model

# Singular values below this share of the largest are directions in which the feet cannot push.
_RANK = 1e-6
# Relative error of the wrench that is allowed.
_EXACT = 1e-9
# Weight of the norm of the forces relative to balance, if forces are at the edges of their pyramids.
_SMALL = 1e-6


class FootPoints:
    """The contact points of the feet of a robot.

    Attributes:
        count: number of feet.
        up: (3,) opposite to gravity, in world axes.
        weight: of the robot [N].
        length: of the legs, which makes moments comparable with forces [m].
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.count = len(model.foot_names)
        self.weight = model.total_mass * gravity_norm(model)
        self.up = -np.array(model.gravity) / gravity_norm(model)
        if not self.up.any():
            self.up = np.array([0.0, 0.0, 1.0])
        self.length = leg_length(model)
        balls = [contact_ball(model, foot) for foot in model.foot_names]
        self._points = [
            LinkPoint(model, foot, position)
            for foot, (position, _) in zip(model.foot_names, balls, strict=True)
        ]
        self._levers = [_cross_matrix(-radius * self.up) for _, radius in balls]
        self._jacobian = np.empty((6, model.nv))
        # compiles now, and not at the first update of a controller
        inverse_dynamics(model, model.neutral, np.zeros(model.nv), np.zeros(model.nv))
        # moments are divided by the leg length
        self.row_scale = np.array([1.0, 1.0, 1.0, *(3 * [1.0 / self.length])])

    def jacobian(self, q: Floats, feet: Sequence[int]) -> Floats:
        """(3 k, nv) Jacobian of the points of k feet: their velocities in world axes are J u.

        A round foot touches the ground with its lowest point, so it rolls.

        Args:
            q: (nq,) configuration.
            feet: indices into foot_names.
        """
        J, J_F = np.empty((3 * len(feet), self._model.nv)), self._jacobian
        for row, foot in enumerate(feet):
            self._points[foot].write_jacobian(q, J_F)
            # the velocity of the lowest point is v + w x r = v - [r] w
            J[3 * row : 3 * row + 3] = J_F[:3] - self._levers[foot] @ J_F[3:]
        return J

    def bias(self, q: Floats, u: Floats, feet: Sequence[int]) -> Floats:
        """(3 k,) dJ/dt u of the points of k feet that roll on the ground: J du = -bias keeps them in contact.

        A foot of radius R on ground with the normal n rolls with v = w x R n, so the acceleration of its
        centre is dw/dt x R n, without terms quadratic in w.
        """
        motion, found = np.empty(12), np.empty(3 * len(feet))
        for row, foot in enumerate(feet):
            self._points[foot].write_motion(q, u, motion)
            found[3 * row : 3 * row + 3] = motion[6:9] - self._levers[foot] @ motion[9:]
        return found

    def centre_jacobian(self, q: Floats) -> Floats:
        """(3 feet, nv) Jacobian of `positions`."""
        J = np.empty((3 * self.count, self._model.nv))
        for foot, point in enumerate(self._points):
            point.write_jacobian(q, self._jacobian)
            J[3 * foot : 3 * foot + 3] = self._jacobian[:3]
        return J

    def positions(self, q: Floats) -> Floats:
        """(feet, 3) centres of the feet's contact spheres, in world axes [m]."""
        found = np.empty((self.count, 3))
        for foot, point in enumerate(self._points):
            point.write_position(q, found[foot])
        return found

    def indices(self, feet: Sequence[int] | Sequence[str]) -> list[int]:
        """Indices into foot_names, of names or of indices.

        Raises:
            ArgumentError: an unknown foot.
        """
        names = self._model.foot_names
        for foot in feet:
            if foot not in names and foot not in range(self.count):
                raise ArgumentError(f'feet has {foot!r}; expected some of {list(names)}, or their indices')
        return [names.index(foot) if isinstance(foot, str) else int(foot) for foot in feet]


@functools.lru_cache(maxsize=64)
def foot_points(model: Model) -> FootPoints:
    """The foot points of a model, made once."""
    return FootPoints(model)


def torques_and_forces(
    model: Model, q: Floats, u: Floats, du: Floats, feet: Sequence[int], mu: float
) -> tuple[Floats, Floats]:
    """Joint torques for a motion, and the forces of the ground on the feet that balance its base.

    Args:
        model: robot.
        q: (nq,) configuration.
        u: (nv,) velocity.
        du: (nv,) acceleration.
        feet: indices of the feet that carry load.
        mu: friction; forces stay within the cone about the direction opposite to gravity.

    Returns:
        (nj,) torques M du + h - J^T f of the joints' rows [N m or N], and (feet, 3) forces in world axes [N]
        of all feet in the order of foot_names; zero for those without load.
    """
    points = foot_points(model)
    wanted = inverse_dynamics(model, q, u, du)
    skip = model.nv - model.nj
    if not feet or not skip:
        return wanted[skip:], np.zeros((points.count, 3))
    J = points.jacobian(q, feet)
    forces = forces_for(points, J, feet, wanted, mu)
    carried = forces[list(feet)].ravel()
    return np.asarray((wanted - carried @ J)[skip:]), forces


def forces_for(points: FootPoints, J: Floats, feet: Sequence[int], wanted: Floats, mu: float) -> Floats:
    """Forces (feet, 3) whose effect on the base is closest to the desired one.

    Args:
        points: of the robot.
        J: (3 k, nv) Jacobian of the feet that carry load.
        feet: their indices.
        wanted: (nv,) M du + h.
        mu: friction.
    """
    forces = np.zeros((points.count, 3))
    if not len(feet) or wanted.size == J.shape[1] - 6:
        return forces
    A = J[:, :6].T * points.row_scale[:, None]
    b = wanted[:6] * points.row_scale
    f = _smallest(A, b).reshape(-1, 3)
    if not _in_cones(f, points.up, mu):
        f = _within_pyramids(A, b, points, mu, len(feet))
    forces[list(feet)] = f
    return forces


def _smallest(A: Floats, b: Floats) -> Floats:
    """Minimum-norm solution of A x = b, or least squares: by Cholesky of A A^T with three or more feet."""
    if A.shape[1] > 6:
        _, y, info = dposv(A @ A.T, b)
        x = y @ A
        missed = A @ x - b
        # With feet in a line, Cholesky may succeed with a useless result; its residual tells.
        if info == 0 and missed @ missed < _EXACT**2 * (1.0 + b @ b):
            return np.asarray(x)
    return np.asarray(np.linalg.lstsq(A, b, rcond=_RANK)[0])


def _in_cones(f: Floats, up: Floats, mu: float) -> bool:
    normal = f @ up
    squares = np.einsum('ij,ij->i', f, f)
    # |f|^2 <= (1 + mu^2) f_n^2, with a tolerance for rounding
    return bool((normal >= 0.0).all() and (squares <= (1.0 + mu * mu) * (1.0 + 1e-9) * normal * normal).all())


def _within_pyramids(A: Floats, b: Floats, points: FootPoints, mu: float, k: int) -> Floats:
    """(k, 3) forces as non-negative sums of the edges of pyramids inside the cones."""
    edges = pyramid_edges(points.up, mu)
    AE = np.concatenate([A[:, 3 * i : 3 * i + 3] @ edges.T for i in range(k)], axis=1)
    columns = AE.shape[1]
    small = _SMALL * math.sqrt(float(np.einsum('ij,ij->', AE, AE)) / columns)
    stacked = np.concatenate([AE, small * np.eye(columns)])
    try:
        share = nnls(stacked, np.concatenate([b, np.zeros(columns)]))[0]
    except RuntimeError:  # too many iterations: the upward part of the minimum-norm forces
        share = np.maximum(np.linalg.lstsq(AE, b, rcond=_RANK)[0], 0.0)
    return np.asarray(share.reshape(k, -1) @ edges)


def pyramid_edges(up: Floats, mu: float) -> Floats:
    """(4, 3) edges of the pyramid inscribed in the cone about `up`, each of height one."""
    side = np.cross(up, [0.0, 1.0, 0.0] if abs(up[1]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    other = np.cross(up, side)
    return np.array([up + mu * side, up + mu * other, up - mu * side, up - mu * other])


def _cross_matrix(r: Floats) -> Floats:
    """[r], with [r] w = r x w."""
    x, y, z = r
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
