# SPDX-License-Identifier: Apache-2.0
"""What a controller asks of the joint drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.door import check_finite
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels import scene as S_

# Rows of the kernel's command, by the names of the fields.
_ROWS = {
    'tau': S_.COMMAND_TAU,
    'q': S_.COMMAND_Q,
    'qd': S_.COMMAND_QD,
    'kp': S_.COMMAND_KP,
    'kd': S_.COMMAND_KD,
}


@dataclass(frozen=True, eq=False)
class JointCommand:
    """Torques, and positions and speeds that the drives follow: tau + kp (q - q_j) + kd (qd - qd_j).

    Each is one number for every joint, or a single number for all.

    Attributes:
        tau: [N m or N], None is zero.
        q: positions [rad or m]; they need `kp`.
        qd: speeds [rad/s or m/s], None is zero.
        kp: [N m/rad or N/m].
        kd: [N m s/rad or N s/m].
    """

    tau: npt.ArrayLike | None = None
    q: npt.ArrayLike | None = None
    qd: npt.ArrayLike | None = None
    kp: npt.ArrayLike = 0.0
    kd: npt.ArrayLike = 0.0

    def rows(self, nj: int) -> Floats:
        """The command as the kernel reads it, (COMMAND_ROWS, nj).

        Raises:
            ArgumentError: a wrong shape, a value that is not finite, a negative gain, a target without gain.
        """
        rows = np.zeros((S_.COMMAND_ROWS, nj))
        try:
            self._fill(rows)
        except (TypeError, ValueError):
            self._explain(rows, nj)
        return rows

    def _fill(self, rows: Floats) -> None:
        """Fill the rows without looking far; raises ValueError or TypeError if anything is not good."""
        nj = rows.shape[1]
        for name, row in _ROWS.items():
            value = getattr(self, name)
            if value is not None:
                if isinstance(value, np.ma.MaskedArray):
                    raise ValueError
                numbers = np.asarray(value)
                if numbers.shape not in ((), (nj,)) or numbers.dtype.kind not in 'fiu':
                    raise ValueError
                rows[row] = numbers
        kp, kd = rows[S_.COMMAND_KP], rows[S_.COMMAND_KD]
        if not np.isfinite(rows).all() or (kp < 0.0).any() or (kd < 0.0).any():
            raise ValueError
        if nj and (kp.any() != (self.q is not None) or (self.qd is not None and not kd.any())):
            raise ValueError

    def _explain(self, rows: Floats, nj: int) -> None:
        """Raise an ArgumentError about what `_fill` did not take."""
        for name, row in _ROWS.items():
            value = getattr(self, name)
            rows[row] = joint_numbers(name, 0.0 if value is None else value, nj)
        for name in ('kp', 'kd'):
            row = _ROWS[name]
            if np.any(rows[row] < 0.0):
                j = int(np.argmin(rows[row]))
                raise ArgumentError(f'{name}[{j}] is {rows[row, j]:g}; expected a gain of at least 0')
        if self.q is None and np.any(rows[S_.COMMAND_KP]):
            raise ArgumentError('kp is given, but q is not; expected positions to follow')
        if nj and self.q is not None and not np.any(rows[S_.COMMAND_KP]):
            raise ArgumentError('q is given, but kp is 0; expected a gain to follow it with')
        if nj and self.qd is not None and not np.any(rows[S_.COMMAND_KD]):
            raise ArgumentError('qd is given, but kd is 0; expected a gain to follow it with')


def joint_numbers(name: str, value: npt.ArrayLike, nj: int, single: bool = True) -> Floats:
    """One finite number for each joint.

    Raises:
        ArgumentError: it is something else.
    """
    if isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
        raise ArgumentError(f'{name} has masked values; expected a value for every joint')
    try:
        given = np.asarray(value)
        if given.dtype.kind not in 'fiu':
            raise TypeError
        numbers: Floats = np.empty(given.shape)  # astype may keep a type that is equal, but not the kernel's
        numbers[...] = given
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f'{name} is {_short(value)}; expected {nj} numbers, one for each joint'
        ) from error
    if numbers.shape != (nj,) and not (single and numbers.shape == ()):
        raise ArgumentError(f'{name} has shape {numbers.shape}; expected ({nj},), one for each joint')
    check_finite(name, np.atleast_1d(numbers))
    return numbers


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'
