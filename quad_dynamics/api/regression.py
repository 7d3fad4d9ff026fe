# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics as a linear function of inertial parameters, friction and rotor inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.validation import States, check_finite, not_a_model, to_floats
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.regression.normal_equations import accumulate as _accumulate
from quad_dynamics.kernels.regression.regressor import FRICTION_COLUMNS, ROTOR_COLUMNS
from quad_dynamics.kernels.regression.regressor import regressor as _regressor
from quad_dynamics.memory.packing import Packed
from quad_dynamics.model.model import Model


def regressor(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    du: npt.ArrayLike,
    friction: bool = False,
    rotors: bool = False,
) -> Floats:
    """Regressor Y of the inverse dynamics: without rotors and friction, tau = Y @ model.pi.

    With rotors and friction, inverse_dynamics(model, ..., friction=True) is
    Y @ concatenate([model.pi + model.rotor_pi, model.viscous, model.coulomb, model.rotor_inertia]).

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        du: (nv,) or (N, nv) acceleration.
        friction: append nj columns for viscous and nj for Coulomb friction.
        rotors: append nj columns for the axial inertia of the rotors.

    Returns:
        (nv, columns) or (N, nv, columns).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    flags, columns = _columns(packed, friction, rotors)
    Y: Floats | None = _regressor.make(packed.address, 0, q, u, du, flags, packed.regressor_words[flags])
    if Y is not None:
        return Y
    s = States(model, mixed=True, q=q, u=u, du=du)
    Y = s.empty(packed.nv, columns)
    s.run(_regressor, s['q'], s['u'], s['du'], flags, Y)
    return Y


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations YtY x = Yty of a fit, summed over samples. Two of them can be added.

    Attributes:
        YtY: (columns, columns) sum of Y^T W Y.
        Yty: (columns,) sum of Y^T W tau.
        yty: sum of tau^T W tau.
        n: number of samples.
    """

    YtY: Floats
    Yty: Floats
    yty: float
    n: int

    def __add__(self, other: object) -> NormalEquations:
        if not isinstance(other, NormalEquations):
            return NotImplemented
        if self.YtY.shape != other.YtY.shape:
            raise ArgumentError(
                f'normal equations of {len(self.Yty)} and {len(other.Yty)} parameters cannot be added'
            )
        return NormalEquations(
            self.YtY + other.YtY, self.Yty + other.Yty, self.yty + other.yty, self.n + other.n
        )


def accumulate_regressor(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    du: npt.ArrayLike,
    tau: npt.ArrayLike,
    friction: bool = False,
    rotors: bool = False,
    weights: npt.ArrayLike | None = None,
) -> NormalEquations:
    """Sum Y^T W Y and Y^T W tau over samples without storing any Y.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configurations.
        u: (nv,) or (N, nv) velocities.
        du: (nv,) or (N, nv) accelerations.
        tau: (nv,) or (N, nv) measured generalised forces.
        friction: as in `regressor`.
        rotors: as in `regressor`.
        weights: (nv,) or (N, nv) weight of each row, not negative; None for 1. Rows with weight 0 are
            skipped.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, a negative weight.
    """
    try:
        packed = model._mixed
    except AttributeError:
        raise not_a_model(model) from None
    flags, columns = _columns(packed, friction, rotors)
    s = States(model, mixed=True, q=q, u=u, du=du, tau=tau)
    w = None if weights is None else _weights(weights, s)
    Y, YtY, Yty = empty((packed.nv, columns)), np.zeros((columns, columns)), np.zeros(columns + 1)
    s.run(_accumulate, s['q'], s['u'], s['du'], s['tau'], w, flags, Y, YtY, Yty)
    YtY += np.triu(YtY, 1).T
    return NormalEquations(YtY, Yty[:-1], float(Yty[-1]), s.n if s.batched else 1)


def _weights(weights: npt.ArrayLike, s: States) -> Floats:
    """Weights for every row, in the shape of u."""
    w, shape = to_floats('weights', weights), s['u'].shape
    if w.shape not in {shape, shape[-1:]}:
        s.check()  # u may be the invalid argument
        raise ArgumentError(f'weights has the shape {w.shape}; expected {shape[-1:]} or {shape}')
    check_finite('weights', w)
    for where in np.argwhere(w < 0.0)[:1]:
        raise ArgumentError(f'weights{where.tolist()} is {w[tuple(where)]:g}; expected >= 0')
    return np.ascontiguousarray(np.broadcast_to(w, shape))


def _columns(packed: Packed, friction: bool, rotors: bool) -> tuple[int, int]:
    """Flags for the kernel, and number of columns."""
    flags = (FRICTION_COLUMNS if friction else 0) | (ROTOR_COLUMNS if rotors else 0)
    return flags, 10 * packed.nb + packed.nj * ((2 if friction else 0) + (1 if rotors else 0))
