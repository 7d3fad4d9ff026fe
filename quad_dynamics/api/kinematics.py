# SPDX-License-Identifier: Apache-2.0
"""Frames of links, and motion on the configuration manifold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy import empty

from quad_dynamics.api.validation import States, check_finite, not_a_model, packed_form
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.frames import frame_jacobian as _jacobian
from quad_dynamics.kernels.frames import frame_motion as _motion
from quad_dynamics.kernels.frames import frame_pose as _pose
from quad_dynamics.kernels.manifold import difference as _difference
from quad_dynamics.kernels.manifold import integrate as _integrate
from quad_dynamics.model.model import Model

_SQUARE = (3, 3)
_TWO_ROWS = (2, 6)


def frame_pose(model: Model, q: npt.ArrayLike, frame: str) -> tuple[Floats, Floats]:
    """Pose of a link in the world.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        frame: name of a link.

    Returns:
        R_WF (3, 3) or (N, 3, 3), and p_WF (3,) or (N, 3) [m].

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    words = packed.frame(frame)
    R_WF: Floats = empty(_SQUARE)
    p_WF: Floats = empty(3)
    if not _pose.run(packed.address, 0, q, words, R_WF, p_WF):
        return R_WF, p_WF
    s = States(model, q=q)
    R_WF, p_WF = s.empty(3, 3), s.empty(3)
    s.run(_pose, s['q'], words, R_WF, p_WF)
    return R_WF, p_WF


def frame_jacobian(model: Model, q: npt.ArrayLike, frame: str) -> Floats:
    """Jacobian of a link: [v_WF_W; w_WF_W] = J u, at the link's origin, in world axes.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        frame: name of a link.

    Returns:
        (6, nv) or (N, 6, nv).

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    words = packed.frame(frame)
    J: Floats | None = _jacobian.make(packed.address, 0, q, words, packed.jacobian_words)
    if J is not None:
        return J
    s = States(model, q=q)
    J = s.empty(6, packed.nv)
    s.run(_jacobian, s['q'], words, J)
    return J


def frame_velocity(model: Model, q: npt.ArrayLike, u: npt.ArrayLike, frame: str) -> Floats:
    """Velocity of a link: [v_WF_W; w_WF_W].

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        frame: name of a link.

    Returns:
        (6,) or (N, 6): velocity of the link's origin [m/s], angular velocity [rad/s], in world axes.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    return _frame_motion(model, q, u, frame, 0)


def frame_bias_acceleration(model: Model, q: npt.ArrayLike, u: npt.ArrayLike, frame: str) -> Floats:
    """dJ/dt u: the acceleration of a link at du = 0; the total acceleration is J du + dJ/dt u.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        frame: name of a link.

    Returns:
        (6,) or (N, 6): classical acceleration of the link's origin [m/s^2], angular acceleration [rad/s^2],
        in world axes.

    Raises:
        ArgumentError: a wrong shape, a value that is not finite, an unknown link.
    """
    return _frame_motion(model, q, u, frame, 1)


def _frame_motion(model: Model, q: npt.ArrayLike, u: npt.ArrayLike, frame: str, row: int) -> Floats:
    """Velocity (row 0) or bias acceleration (row 1) of a link."""
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    words = packed.frame(frame)
    motion: Floats = empty(_TWO_ROWS)
    if not _motion.run(packed.address, 0, q, u, words, motion):
        return motion[row]  # type: ignore[no-any-return]
    s = States(model, q=q, u=u)
    motion = s.empty(2, 6)
    s.run(_motion, s['q'], s['u'], words, motion)
    return motion[..., row, :]


def integrate(model: Model, q: npt.ArrayLike, u: npt.ArrayLike, dt: float) -> Floats:
    """Configuration after moving with the constant velocity u for the time dt.

    The base moves by v_WB_W dt and rotates about w_WB_B, constant in its own frame, by the exponential map.

    Args:
        model: robot.
        q: (nq,) or (N, nq) configuration.
        u: (nv,) or (N, nv) velocity.
        dt: time [s]; may be negative.

    Returns:
        (nq,) or (N, nq), with unit quaternions.

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    moved: Floats = empty(packed.nq)
    if type(dt) is float and not _integrate.run(packed.address, 0, q, u, dt, moved):
        return moved
    step = _number('dt', dt)
    s = States(model, q=q, u=u)
    s.check()
    with np.errstate(over='ignore'):
        check_finite('u * dt', s['u'] * step)
    moved = s.empty(packed.nq)
    s.run(_integrate, s['q'], s['u'], step, moved)
    return moved


def difference(model: Model, q0: npt.ArrayLike, q1: npt.ArrayLike) -> Floats:
    """Velocity from q0 to q1 in unit time: the inverse of `integrate`.

    The base rotates by the shorter way, at most by pi.

    Args:
        model: robot.
        q0: (nq,) or (N, nq) configuration.
        q1: (nq,) or (N, nq) configuration.

    Returns:
        (nv,) or (N, nv).

    Raises:
        ArgumentError: a wrong shape, or a value that is not finite.
    """
    try:
        packed = model._packed
    except AttributeError:
        raise not_a_model(model) from None
    u: Floats | None = _difference.make(packed.address, 0, q0, q1, packed.vector_words)
    if u is not None:
        return u
    s = States(model, q0=q0, q1=q1)
    u = s.empty(packed.nv)
    s.run(_difference, s['q0'], s['q1'], u)
    return u


def random_configuration(model: Model, rng: np.random.Generator, n: int | None = None) -> Floats:
    """Random configurations.

    Joints are uniform within their limits; the base is within 1 m of the origin, in any orientation. A joint
    without limits is within pi, or 1 m if it is prismatic.

    Args:
        model: robot.
        rng: source of random numbers.
        n: number of configurations; None for one without leading axis.

    Returns:
        (nq,) or (n, nq).

    Raises:
        ArgumentError: an argument of a wrong type.
    """
    packed_form(model)
    if not isinstance(rng, np.random.Generator):
        raise ArgumentError(f'rng is a {type(rng).__name__}; expected a numpy.random.Generator')
    if n is not None and (not isinstance(n, int | np.integer) or n < 0):
        raise ArgumentError(f'n is {n!r}; expected a number >= 0 or None')
    count = 1 if n is None else int(n)
    reach = np.where(model.is_prismatic, 1.0, np.pi)
    low = np.where(np.isfinite(model.q_min), model.q_min, -reach)
    high = np.where(np.isfinite(model.q_max), model.q_max, reach)
    share = rng.uniform(size=(count, model.nj))
    joints = low * (1.0 - share) + high * share
    if model.floating_base:
        quaternion = rng.normal(size=(count, 4))
        quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
        joints = np.concatenate([rng.uniform(-1.0, 1.0, (count, 3)), quaternion, joints], axis=1)
    return joints[0] if n is None else joints


def _number(name: str, value: object) -> float:
    """A finite number."""
    try:
        number = float(value) if isinstance(value, float | int | np.floating | np.integer) else np.nan
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise ArgumentError(f'{name} is {value!r}; expected a finite number')
    return number
