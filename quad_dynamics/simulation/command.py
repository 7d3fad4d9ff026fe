# SPDX-License-Identifier: Apache-2.0
"""What a controller asks of the joint drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import check_finite
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.scene import DriveCommand

_NAMES = ('tau', 'q', 'qd', 'kp', 'kd')


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

    def drives(self, nj: int) -> npt.NDArray[Any]:
        """The command as the kernel reads it, (nj,) of `kernels.scene.DriveCommand`.

        Raises:
            ArgumentError: a wrong shape, a value that is not finite, a negative gain, a target without gain.
        """
        drives = np.zeros(nj, dtype=DriveCommand.dtype)
        try:
            self._fill(drives)
        except (TypeError, ValueError):
            self._explain(drives, nj)
        return drives

    def _fill(self, drives: npt.NDArray[Any]) -> None:
        """Fill the command without looking far; raises ValueError or TypeError if anything is not good."""
        nj = len(drives)
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None:
                if isinstance(value, np.ma.MaskedArray):
                    raise ValueError
                numbers = np.asarray(value)
                if numbers.shape not in ((), (nj,)) or numbers.dtype.kind not in 'fiu':
                    raise ValueError
                drives[name] = numbers
        kp, kd = drives['kp'], drives['kd']
        if not np.isfinite(drives.view(np.float64)).all() or (kp < 0.0).any() or (kd < 0.0).any():
            raise ValueError
        if nj and (kp.any() != (self.q is not None) or (self.qd is not None and not kd.any())):
            raise ValueError

    def _explain(self, drives: npt.NDArray[Any], nj: int) -> None:
        """Raise an ArgumentError about what `_fill` did not take."""
        for name in _NAMES:
            value = getattr(self, name)
            drives[name] = joint_numbers(name, 0.0 if value is None else value, nj)
        for name in ('kp', 'kd'):
            if np.any(drives[name] < 0.0):
                j = int(np.argmin(drives[name]))
                raise ArgumentError(f'{name}[{j}] is {drives[name][j]:g}; expected a gain of at least 0')
        if self.q is None and np.any(drives['kp']):
            raise ArgumentError('kp is given, but q is not; expected positions to follow')
        if nj and self.q is not None and not np.any(drives['kp']):
            raise ArgumentError('q is given, but kp is 0; expected a gain to follow it with')
        if nj and self.qd is not None and not np.any(drives['kd']):
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
