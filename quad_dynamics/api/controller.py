# SPDX-License-Identifier: Apache-2.0
"""All terms that a model-based controller needs at one state, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.links import known_frames
from quad_dynamics.api.validation import States, not_a_model
from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.allocation import new_arrays
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.controller_terms import controller_terms as _terms
from quad_dynamics.model.model import Model


class ControllerTerms(NamedTuple):
    """Terms of the equations of motion and of tasks, at one state; with a leading axis N for a batch.

    M du + h = tau + sum of J_F^T f. Frames F are k links; G is the centre of mass. All in world axes.

    Attributes:
        M: (nv, nv) mass matrix.
        h: (nv,) nonlinear effects, C u + g.
        p_WF: (k, 3) positions of the frames [m].
        R_WF: (k, 3, 3) their rotations.
        v_WF: (k, 6) their velocities [v; w] = J_F u [m/s, rad/s].
        J_F: (k, 6, nv) their Jacobians.
        dJ_F_u: (k, 6) their bias accelerations dJ_F/dt u: accelerations at du = 0 [m/s^2, rad/s^2].
        p_WG: (3,) centre of mass [m].
        J_G: (3, nv) its Jacobian.
        dJ_G_u: (3,) its bias acceleration [m/s^2].
        A_G: (6, nv) centroidal momentum matrix, [linear; angular].
        dA_G_u: (6,) its bias dA_G/dt u: rate of change of the momentum at du = 0 [N, N m].
    """

    M: Floats
    h: Floats
    p_WF: Floats
    R_WF: Floats
    v_WF: Floats
    J_F: Floats
    dJ_F_u: Floats
    p_WG: Floats
    J_G: Floats
    dJ_G_u: Floats
    A_G: Floats
    dA_G_u: Floats


def controller_terms(
    model: Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    frames: Sequence[str] | None = None,
    out: ControllerTerms | None = None,
) -> ControllerTerms:
    """All terms that a model-based controller needs at one state; kinematics are computed only once.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        frames: names of k links; None for the feet, in the order of `model.foot_names`.
        out: result of an earlier call with the same number of states and frames, which is overwritten; None:
            new arrays. A control loop with `out` allocates nothing.

    Returns:
        The terms; `out` if given.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link, an `out` that does not fit.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    links = packed.feet if frames is None else known_frames(packed, frames, 'frames')
    terms = new_arrays.run(ControllerTerms, packed.term_words(len(links))) if out is None else out
    if type(terms) is ControllerTerms and not _terms.run(packed.address, 0, q, u, links, terms):
        return terms
    s, shapes = States(model, q=q, u=u), packed.term_shapes(len(links))
    if out is None:
        terms = ControllerTerms._make(s.empty(*shape) for shape in shapes)
    else:
        s.check()
        _check_out(out, [(s.n, *shape) if s.batched else shape for shape in shapes])
    s.run(_terms, s['q'], s['u'], links, terms)
    return terms


def _check_out(out: object, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise an ArgumentError if the kernel cannot write to the arrays of `out`."""
    if type(out) is not ControllerTerms:
        raise ArgumentError(f'out is a {type(out).__name__}; expected ControllerTerms from an earlier call')
    for name, array, shape in zip(ControllerTerms._fields, out, shapes, strict=False):
        plain = type(array) is np.ndarray and array.dtype is np.dtype(np.float64) and array.flags.carray
        if not plain or array.shape != shape:
            found = f'{array.shape}' if isinstance(array, np.ndarray) else type(array).__name__
            raise ArgumentError(
                f'out.{name} is {found}; expected a contiguous, writeable float64 array {shape}'
            )
    if len(out) != len(shapes):
        raise ArgumentError(f'out has {len(out)} arrays; expected {len(shapes)}, from an earlier call')
