# SPDX-License-Identifier: Apache-2.0
"""Commands of a controller to the joint drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.validation import check_finite
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.simulation.scene import DriveCommand

_NAMES = ('tau', 'q', 'qd', 'kp', 'kd')


@dataclass(frozen=True, eq=False)
class JointCommand:
    """Feed-forward torques, and target positions and velocities: tau + kp (q - q_j) + kd (qd - qd_j).

    Each has one number per joint, or a single number for all.

    Attributes:
        tau: [N m or N]; None: zero.
        q: positions [rad or m]; they require `kp`.
        qd: velocities [rad/s or m/s]; None: zero.
        kp: [N m/rad or N/m].
        kd: [N m s/rad or N s/m].
    """

    tau: npt.ArrayLike | None = None
    q: npt.ArrayLike | None = None
    qd: npt.ArrayLike | None = None
    kp: npt.ArrayLike = 0.0
    kd: npt.ArrayLike = 0.0

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its attributes, as arguments of `Simulator.command`."""
        return self.tau, self.q, self.qd, self.kp, self.kd

    def drives(self, nj: int) -> npt.NDArray[Any]:
        """The command as the kernel reads it, (nj,) of `kernels.simulation.scene.DriveCommand`.

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
        """Fill the command with few checks; raises ValueError or TypeError if anything is invalid."""
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
        """Raise an ArgumentError that explains why `_fill` failed."""
        for name in _NAMES:
            value = getattr(self, name)
            drives[name] = joint_numbers(name, 0.0 if value is None else value, nj)
        for name in ('kp', 'kd'):
            if np.any(drives[name] < 0.0):
                j = int(np.argmin(drives[name]))
                raise ArgumentError(f'{name}[{j}] is {drives[name][j]:g}; expected a gain of at least 0')
        if self.q is None and np.any(drives['kp']):
            raise ArgumentError('kp is given without q; expected target positions')
        if nj and self.q is not None and not np.any(drives['kp']):
            raise ArgumentError('q is given, but kp is 0; expected a position gain')
        if nj and self.qd is not None and not np.any(drives['kd']):
            raise ArgumentError('qd is given, but kd is 0; expected a velocity gain')


def joint_numbers(name: str, value: npt.ArrayLike, nj: int, single: bool = True) -> Floats:
    """One finite number per joint.

    Raises:
        ArgumentError: anything else.
    """
    if isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
        raise ArgumentError(f'{name} has masked values; expected a value for every joint')
    try:
        given = np.asarray(value)
        if given.dtype.kind not in 'fiu':
            raise TypeError
        numbers: Floats = np.empty(given.shape)  # astype may keep an equal type that is not the kernel's
        numbers[...] = given
    except (TypeError, ValueError) as error:
        raise ArgumentError(f'{name} is {_short(value)}; expected {nj} numbers, one per joint') from error
    if numbers.shape != (nj,) and not (single and numbers.shape == ()):
        raise ArgumentError(f'{name} has shape {numbers.shape}; expected ({nj},), one per joint')
    check_finite(name, np.atleast_1d(numbers))
    return numbers


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'
