# SPDX-License-Identifier: Apache-2.0
"""The equation of motion: M(q) du + C(q, u) u + g(q) = tau, solved for every one of its parts.

All functions take one state, q (nq,) and u (nv,), or a batch with a leading axis, q (N, nq), and return one result or N. See
docs/notation.md for the meaning of q, u, du and the generalised forces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.door import States
from quad_dynamics.api.factorization import solve_all
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.aba import forward_dynamics as _aba
from quad_dynamics.kernels.coriolis import coriolis_matrix as _coriolis
from quad_dynamics.kernels.crba import mass_matrix as _crba
from quad_dynamics.kernels.hybrid import hybrid_dynamics as _hybrid
from quad_dynamics.kernels.rnea import NO_GRAVITY
from quad_dynamics.kernels.rnea import inverse_dynamics as _rnea

if TYPE_CHECKING:
    from quad_dynamics.model.model import Model

Floats = npt.NDArray[np.float64]


def inverse_dynamics(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    du: npt.ArrayLike,
    f_ext: Mapping[str, npt.ArrayLike] | None = None,
    friction: bool = False,
) -> Floats:
    """Generalised forces for a motion, by the recursive Newton-Euler algorithm.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        du: (nv,) or (N, nv) acceleration.
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes [N, N m].
        friction: add the joints' viscous and Coulomb friction.

    Returns:
        (nv,) or (N, nv): force (world axes) and moment (body axes) on the base, then joint torques [N, N m].

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    packed = model._packed
    tau = empty(packed.nv)
    if f_ext is None and not _rnea.run(packed.address, 0, q, u, du, None, friction, tau):
        return tau
    s = States(model, q=q, u=u, du=du)
    tau = s.empty(packed.nv)
    s.run(_rnea, s['q'], s['u'], s['du'], s.wrenches(f_ext), friction, tau)
    return tau


def forward_dynamics(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    tau: npt.ArrayLike,
    f_ext: Mapping[str, npt.ArrayLike] | None = None,
    friction: bool = False,
    method: str = 'aba',
) -> Floats:
    """Acceleration for given forces.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        tau: (nj,) or (N, nj) joint torques, or (nv,) or (N, nv) generalised forces, base rows first.
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes [N, N m].
        friction: take the joints' viscous and Coulomb friction into account.
        method: 'aba', the articulated-body algorithm; or 'cholesky', which factors the mass matrix by LLT, and by LDLT with a
            `FactorizationWarning` where LLT fails.

    Returns:
        (nv,) or (N, nv) acceleration du.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link or method.
    """
    packed = model._packed
    if method == 'aba':
        du = empty(packed.nv)
        if f_ext is None and not _aba.run(packed.address, 0, q, u, tau, None, friction, du):
            return du
    elif method != 'cholesky':
        raise ArgumentError(f"method is '{method}'; expected 'aba' or 'cholesky'")
    s = States(model, q=q, u=u, tau=tau)
    du = s.empty(packed.nv)
    if method == 'aba':
        s.run(_aba, s['q'], s['u'], s['tau'], s.wrenches(f_ext), friction, du)
        return du
    s.run(_rnea, s['q'], s['u'], None, s.wrenches(f_ext), friction, du)
    forces = s['tau']
    assert forces is not None
    np.negative(du, out=du)
    du[..., packed.nv - forces.shape[-1] :] += forces
    return solve_all(mass_matrix(model, s['q']), du)  # type: ignore[arg-type]


def mass_matrix(model: Model, q: npt.ArrayLike) -> Floats:
    """Mass matrix M(q), by the composite-rigid-body algorithm; rotors included.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (nv, nv) or (N, nv, nv), symmetric.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    packed = model._packed
    nv = packed.nv
    M = empty((nv, nv))
    if not _crba.run(packed.address, 0, q, M):
        return M
    s = States(model, q=q)
    M = s.empty(nv, nv)
    s.run(_crba, s['q'], M)
    return M


def coriolis_matrix(model: Model, q: npt.ArrayLike, u: npt.ArrayLike) -> Floats:
    """Coriolis matrix C(q, u), exact, with dM/dt - 2 C skew-symmetric: that of the Christoffel symbols.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.

    Returns:
        (nv, nv) or (N, nv, nv); C u + gravity is `nonlinear_effects`.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    packed = model._packed
    nv = packed.nv
    C = empty((nv, nv))
    if not _coriolis.run(packed.address, 0, q, u, C):
        return C
    s = States(model, q=q, u=u)
    C = s.empty(nv, nv)
    s.run(_coriolis, s['q'], s['u'], C)
    return C


def gravity(model: Model, q: npt.ArrayLike) -> Floats:
    """Generalised forces g(q) that hold the robot still against gravity.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (nv,) or (N, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    return nonlinear_effects(model, q, None)


def nonlinear_effects(model: Model, q: npt.ArrayLike, u: npt.ArrayLike | None) -> Floats:
    """h(q, u) = C(q, u) u + g(q): the forces at which du is zero.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity; None for zero.

    Returns:
        (nv,) or (N, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    packed = model._packed
    h = empty(packed.nv)
    if not _rnea.run(packed.address, 0, q, u, None, None, 0, h):
        return h
    s = States(model, q=q, u=u)
    h = s.empty(packed.nv)
    s.run(_rnea, s['q'], s['u'], None, None, 0, h)
    return h


def friction_torque(model: Model, u: npt.ArrayLike) -> Floats:
    """Joint friction F_v qd + F_c sgn(qd): viscous and Coulomb.

    Args:
        model: robot.
        u: (nv,) or (N, nv) velocity.

    Returns:
        (nj,) or (N, nj) torques, counted as part of the motor torque [N m].

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    velocity = States(model, u=u)['u']
    assert velocity is not None
    qd = velocity[..., model.nv - model.nj :]
    return model.viscous * qd + model.coulomb * np.sign(qd)


def hybrid_dynamics(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    du: npt.ArrayLike,
    tau: npt.ArrayLike,
    prescribed: npt.ArrayLike,
    f_ext: Mapping[str, npt.ArrayLike] | None = None,
    friction: bool = False,
) -> tuple[Floats, Floats]:
    """Find what is missing where some accelerations are prescribed and the other forces are given.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        du: (nv,) or (N, nv) acceleration; used where it is prescribed.
        tau: (nv,) or (N, nv) generalised forces, or (nj,) or (N, nj) joint torques; used where du is not prescribed.
        prescribed: (nv,) bool, where du is prescribed; all six rows of the base, or none.
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes [N, N m].
        friction: take the joints' viscous and Coulomb friction into account.

    Returns:
        du and tau, complete. With a prescribed base, tau[:6] is the reaction f_0 that the environment must supply.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a base that is prescribed in part.
    """
    packed = model._packed
    given = np.ascontiguousarray(np.asarray(prescribed, dtype=bool), dtype=np.float64)
    if given.shape != (packed.nv,):
        raise ArgumentError(f'prescribed has the shape {given.shape}; expected ({packed.nv},)')
    if model.floating_base and len(set(given[:6])) > 1:
        raise ArgumentError(f'prescribed[:6] is {given[:6].astype(bool)}; expected all True or all False')
    s = States(model, q=q, u=u, du=du, tau=tau)
    forces = s['tau']
    assert forces is not None
    if forces.shape[-1] != packed.nv:
        forces = np.concatenate([np.zeros((*forces.shape[:-1], packed.nv - packed.nj)), forces], axis=-1)
    du_out, tau_out = s.empty(packed.nv), s.empty(packed.nv)
    wrenches = s.wrenches(f_ext)
    s.run(_hybrid, s['q'], s['u'], s['du'], forces, given, wrenches, friction, du_out, tau_out)
    return du_out, tau_out


def velocity_product_matrices(model: Model, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The configuration-space form of the velocity terms: C(q, u) u = B(q) [u_i u_j] + C(q) [u_i^2].

    They are exact: the terms are quadratic in u, so that two evaluations at unit velocities give each column.

    Args:
        model: robot.
        q: (nq,) configuration.

    Returns:
        B (nv, nv (nv - 1) / 2), Coriolis terms, columns in the order of `np.triu_indices(nv, 1)`;
        C (nv, nv), centrifugal terms.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    packed = model._packed
    nv = packed.nv
    i, j = np.triu_indices(nv, 1)
    unit = np.eye(nv)
    u = np.concatenate([unit, unit[i] + unit[j]])
    s = States(model, q=q)
    if s.batched:
        raise ArgumentError(f'q has the shape {np.shape(q)}; expected ({packed.nq},)')
    s = States(model, q=s['q'], u=u)
    products = s.empty(nv)
    s.run(_rnea, s['q'], s['u'], None, None, NO_GRAVITY, products)
    squares = products[:nv]
    return (products[nv:] - squares[i] - squares[j]).T, squares.T.copy()
