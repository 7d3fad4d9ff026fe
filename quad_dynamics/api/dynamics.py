# SPDX-License-Identifier: Apache-2.0
"""The equation of motion, M(q) du + C(q, u) u + g(q) = tau, and its terms.

All functions take one state, q (nq,) and u (nv,), or a batch with a leading axis, q (N, nq), and return one
result or N. See docs/notation.md for the meaning of q, u, du and the generalised forces.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.factorization import report_failure
from quad_dynamics.api.links import external_wrenches
from quad_dynamics.api.validation import States, not_a_model
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.aba import forward_dynamics as _aba
from quad_dynamics.kernels.cholesky import forward_dynamics_cholesky as _cholesky
from quad_dynamics.kernels.coriolis import coriolis_matrix as _coriolis
from quad_dynamics.kernels.crba import mass_matrix as _crba
from quad_dynamics.kernels.hybrid import hybrid_dynamics as _hybrid
from quad_dynamics.kernels.joint_friction import joint_friction as _friction
from quad_dynamics.kernels.rnea import AT_REST, FRICTION, NO_ACCELERATION, NO_GRAVITY
from quad_dynamics.kernels.rnea import inverse_dynamics as _rnea
from quad_dynamics.model.model import Model


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
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes
            [N, N m].
        friction: add the joints' viscous and Coulomb friction.

    Returns:
        (nv,) or (N, nv): force (world axes) and moment (body axes) on the base, then joint torques [N, N m].

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    links, wrenches = (None, None) if f_ext is None else external_wrenches(packed, f_ext)
    flags = FRICTION if friction else 0
    tau: Floats | None = _rnea.make(packed.address, 0, q, u, du, links, wrenches, flags, packed.vector_words)
    if tau is not None:
        return tau
    s = States(model, mixed=True, q=q, u=u, du=du)
    tau = s.empty(packed.nv)
    s.run(_rnea, s['q'], s['u'], s['du'], *s.wrenches(f_ext), flags, tau)
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
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes
            [N, N m].
        friction: take the joints' viscous and Coulomb friction into account.
        method: 'aba', the articulated-body algorithm; or 'cholesky', which factors the mass matrix by LLT,
            or by LDLT with a `FactorizationWarning` if LLT fails.

    Returns:
        (nv,) or (N, nv) acceleration du.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link or method.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    links, wrenches = (None, None) if f_ext is None else external_wrenches(packed, f_ext)
    flags = FRICTION if friction else 0
    du: Floats | None
    if method == 'aba':
        du = _aba.make(packed.address, 0, q, u, tau, links, wrenches, flags, packed.vector_words)
        if du is not None:
            return du
        s = States(model, joint_torques=True, q=q, u=u, tau=tau)
        du = s.empty(packed.nv)
        s.run(_aba, s['q'], s['u'], s['tau'], *s.wrenches(f_ext), flags, du)
        return du
    if method != 'cholesky':
        raise ArgumentError(f"method is '{method}'; expected 'aba' or 'cholesky'")
    work, du = empty((packed.nv + 1, packed.nv)), empty(packed.nv)
    status = _cholesky.run(packed.address, 0, q, u, tau, links, wrenches, flags, work, du)
    if status > 0:
        s = States(model, joint_torques=True, q=q, u=u, tau=tau)
        s.check()
        du = s.empty(packed.nv)
        status = s.run(_cholesky, s['q'], s['u'], s['tau'], *s.wrenches(f_ext), flags, work, du)
    if status:
        report_failure(-1 - status, packed.nv)
    return du


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
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    M: Floats | None = _crba.make(packed.address, 0, q, packed.square_words)
    if M is not None:
        return M
    s = States(model, mixed=True, q=q)
    M = s.empty(*packed.square)
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
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    C: Floats | None = _coriolis.make(packed.address, 0, q, u, packed.square_words)
    if C is not None:
        return C
    s = States(model, q=q, u=u)
    C = s.empty(*packed.square)
    s.run(_coriolis, s['q'], s['u'], C)
    return C


def gravity(model: Model, q: npt.ArrayLike) -> Floats:
    """Generalised forces g(q) that compensate gravity.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (nv,) or (N, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    g: Floats | None = _rnea.make(
        packed.address, 0, q, None, None, None, None, AT_REST | NO_ACCELERATION, packed.vector_words
    )
    if g is not None:
        return g
    s = States(model, mixed=True, q=q)
    g = s.empty(packed.nv)
    s.run(_rnea, s['q'], None, None, None, None, AT_REST | NO_ACCELERATION, g)
    return g


def nonlinear_effects(model: Model, q: npt.ArrayLike, u: npt.ArrayLike) -> Floats:
    """h(q, u) = C(q, u) u + g(q): the generalised forces at which du = 0.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.

    Returns:
        (nv,) or (N, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    h: Floats | None = _rnea.make(
        packed.address, 0, q, u, None, None, None, NO_ACCELERATION, packed.vector_words
    )
    if h is not None:
        return h
    s = States(model, mixed=True, q=q, u=u)
    h = s.empty(packed.nv)
    s.run(_rnea, s['q'], s['u'], None, None, None, NO_ACCELERATION, h)
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
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    torque: Floats | None = _friction.make(packed.address, 0, u, packed.joint_words)
    if torque is not None:
        return torque
    s = States(model, u=u)
    torque = s.empty(packed.nj)
    s.run(_friction, s['u'], torque)
    return torque


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
    """Solve for the unknown accelerations and forces, if some accelerations are prescribed.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        du: (nv,) or (N, nv) acceleration; used where it is prescribed.
        tau: (nv,) or (N, nv) generalised forces, or (nj,) or (N, nj) joint torques; used where du is not
            prescribed.
        prescribed: (nv,) bool, where du is prescribed; all six rows of the base, or none.
        f_ext: external wrenches, {link: (6,) or (N, 6)} [force; moment] at the link's origin in world axes
            [N, N m].
        friction: take the joints' viscous and Coulomb friction into account.

    Returns:
        du and tau, complete. With a prescribed base, tau[:6] is the reaction f_0 that the environment must
        supply.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, a base that is partly
            prescribed.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    links, wrenches = (None, None) if f_ext is None else external_wrenches(packed, f_ext)
    flags = FRICTION if friction else 0
    du_out: Floats = empty(packed.nv)
    tau_out: Floats = empty(packed.nv)
    arguments = q, u, du, tau, prescribed, links, wrenches, flags, du_out, tau_out
    if not _hybrid.run(packed.address, 0, *arguments):
        return du_out, tau_out
    mask = _mask(prescribed, packed.nv)
    if model.floating_base and len(set(mask[:6])) > 1:
        raise ArgumentError(f'prescribed[:6] is {mask[:6]}; expected all True or all False')
    s = States(model, joint_torques=True, q=q, u=u, du=du, tau=tau)
    s.check()
    du_out, tau_out = s.empty(packed.nv), s.empty(packed.nv)
    s.run(_hybrid, s['q'], s['u'], s['du'], s['tau'], mask, *s.wrenches(f_ext), flags, du_out, tau_out)
    return du_out, tau_out


def velocity_product_matrices(model: Model, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The configuration-space form of the velocity terms: C(q, u) u = B(q) [u_i u_j] + C(q) [u_i^2].

    They are exact: the terms are quadratic in u, so two evaluations at unit velocities give each column.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        B (nv, nv (nv - 1) / 2), Coriolis terms, columns in the order of `np.triu_indices(nv, 1)`, and
        C (nv, nv), centrifugal terms; with a leading axis N for a batch.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    nv = packed.nv
    i, j = np.triu_indices(nv, 1)
    unit = np.eye(nv)
    velocities = np.concatenate([unit, unit[i] + unit[j]])
    s = States(model, q=q)
    s.check()
    configurations = np.atleast_2d(s['q'])
    every = States(
        model,
        mixed=True,
        q=np.repeat(configurations, len(velocities), axis=0),
        u=np.tile(velocities, (len(configurations), 1)),
    )
    products = every.empty(nv)
    every.run(_rnea, every['q'], every['u'], None, None, None, NO_GRAVITY | NO_ACCELERATION, products)
    products = products.reshape(-1, len(velocities), nv).transpose(0, 2, 1)
    C = products[:, :, :nv].copy()
    B = products[:, :, nv:] - C[:, :, i] - C[:, :, j]
    return (B, C) if s.batched else (B[0], C[0])


def _mask(prescribed: npt.ArrayLike, nv: int) -> npt.NDArray[np.bool_]:
    """(nv,) bool."""
    try:
        mask = np.asarray(prescribed)
    except ValueError as error:
        raise ArgumentError(f'prescribed is not an array: {error}') from error
    if mask.shape != (nv,) or mask.dtype != np.bool_:
        raise ArgumentError(f'prescribed is an array {mask.shape} of {mask.dtype}; expected ({nv},) of bool')
    plain = np.empty(nv, dtype=np.bool_)  # contiguous, and of the type that the kernels accept
    plain[:] = mask
    return plain
