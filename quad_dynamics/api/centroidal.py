# SPDX-License-Identifier: Apache-2.0
"""Quantities of the whole robot: centre of mass, momentum, energy.

The immobile root of a fixed-base robot is excluded; rotors are included.
"""

from __future__ import annotations

import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.validation import States, not_a_model
from quad_dynamics.array_types import Floats
from quad_dynamics.kernels.centroidal import centroidal_bias as _bias
from quad_dynamics.kernels.centroidal import centroidal_map as _map
from quad_dynamics.kernels.centroidal import centroidal_momentum as _momentum
from quad_dynamics.kernels.centroidal import com_jacobian as _com_jacobian
from quad_dynamics.kernels.centroidal import energy as _energy
from quad_dynamics.model.model import Model


def center_of_mass(model: Model, q: npt.ArrayLike) -> Floats:
    """Centre of mass p_WG.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (3,) or (N, 3) in the world [m].

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    return _centroidal(model, q)[0]


def com_jacobian(model: Model, q: npt.ArrayLike) -> Floats:
    """Jacobian of the centre of mass: v_WG_W = J u.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (3, nv) or (N, 3, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    work: Floats = empty((6, packed.nv))
    J: Floats = empty((3, packed.nv))
    if not _com_jacobian.run(packed.address, 0, q, work, J):
        return J
    s = States(model, q=q)
    J = s.empty(3, packed.nv)
    s.run(_com_jacobian, s['q'], work, J)
    return J


def centroidal_momentum_matrix(model: Model, q: npt.ArrayLike) -> Floats:
    """Matrix A_G of the momentum about the centre of mass: [linear; angular] = A_G u, in world axes.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.

    Returns:
        (6, nv) or (N, 6, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    return _centroidal(model, q)[1]


def centroidal_momentum(model: Model, q: npt.ArrayLike, u: npt.ArrayLike) -> Floats:
    """Momentum about the centre of mass: [linear; angular] in world axes.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.

    Returns:
        (6,) or (N, 6) [kg m/s, kg m^2/s].

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    work: Floats = empty((6, packed.nv))
    momentum: Floats = empty(6)
    if not _momentum.run(packed.address, 0, q, u, work, momentum):
        return momentum
    s = States(model, q=q, u=u)
    momentum = s.empty(6)
    s.run(_momentum, s['q'], s['u'], work, momentum)
    return momentum


def centroidal_bias(model: Model, q: npt.ArrayLike, u: npt.ArrayLike) -> Floats:
    """dA_G/dt u: rate of change of the centroidal momentum at du = 0; the total rate is A_G du + dA_G/dt u.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.

    Returns:
        (6,) or (N, 6) [N, N m].

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    bias: Floats = empty(6)
    if not _bias.run(packed.address, 0, q, u, bias):
        return bias
    s = States(model, q=q, u=u)
    bias = s.empty(6)
    s.run(_bias, s['q'], s['u'], bias)
    return bias


def energy(model: Model, q: npt.ArrayLike, u: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Kinetic and potential energy.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.

    Returns:
        Kinetic and potential energy [J], numbers or (N,); the potential is zero at the world's origin.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    both: Floats = empty(2)
    if _energy.run(packed.address, 0, q, u, both):
        s = States(model, q=q, u=u)
        both = s.empty(2)
        s.run(_energy, s['q'], s['u'], both)
    return both.T[0], both.T[1]


def _centroidal(model: Model, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    com: Floats = empty(3)
    A_G: Floats = empty((6, packed.nv))
    if not _map.run(packed.address, 0, q, com, A_G):
        return com, A_G
    s = States(model, q=q)
    com, A_G = s.empty(3), s.empty(6, packed.nv)
    s.run(_map, s['q'], com, A_G)
    return com, A_G
