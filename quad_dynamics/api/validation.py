# SPDX-License-Identifier: Apache-2.0
"""Converts or rejects arguments that a kernel does not accept directly.

A kernel accepts contiguous float64 arrays of one state, and validates them itself. Everything else (batches,
lists, integers, strided views) is handled here. `States` converts arguments to arrays where possible, and
otherwise raises an `ArgumentError` that names the argument and, if possible, the joint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.validation import QUATERNION_TOLERANCE
from quad_dynamics.model.model import Model

if TYPE_CHECKING:
    from quad_dynamics.compiler.registry import Kernel
    from quad_dynamics.memory.packing import Packed


_FLOAT64 = np.dtype(np.float64)

# Batches of at least this many states release the GIL. Shorter ones finish before another thread would get
# the GIL, and would then have to wait for it.
MANY_STATES = 64


def packed_form(model: Model) -> Packed:
    """The form of a model that the kernels read.

    Raises:
        ArgumentError: it is not a model.
    """
    if not isinstance(model, Model):
        raise not_a_model(model)
    return model._packed


def mixed_form(model: Model) -> Packed:
    """The form for kernels that support mixed packs.

    Raises:
        ArgumentError: it is not a model.
    """
    if not isinstance(model, Model):
        raise not_a_model(model)
    return model._mixed


def not_a_model(model: object) -> ArgumentError:
    """The error to raise for an argument that is not a model."""
    return ArgumentError(f'model is a {type(model).__name__}; expected a Model, as returned by load_model')


class States:
    """The arguments of one call, as arrays of one state or of a batch.

    Attributes:
        batched: whether there is a leading axis.
        n: its length; 0 without one.
    """

    def __init__(
        self, model: Model, *, joint_torques: bool = False, mixed: bool = False, **arguments: npt.ArrayLike
    ) -> None:
        """Convert the arguments.

        Args:
            model: robot.
            joint_torques: whether tau may also have only the rows of the joints.
            mixed: whether the kernel supports mixed packs.
            **arguments: q, q0, q1, u, du, tau.
        """
        self._model = model
        self._joint_torques = joint_torques
        self._packed = mixed_form(model) if mixed else packed_form(model)
        self._arrays = {name: to_floats(name, x) for name, x in arguments.items()}
        first = next(iter(self._arrays.values()))
        self.batched = first.ndim == 2
        self.n = len(first) if self.batched else 0

    def __getitem__(self, name: str) -> Floats:
        """An argument, ready for a kernel."""
        return self._arrays[name]

    def empty(self, *shape: int) -> Floats:
        """An empty array for a result of the given shape per state."""
        return np.empty((self.n, *shape) if self.batched else shape)

    def run(self, kernel: Kernel, *arguments: object) -> int:
        """Call a kernel; if it rejects an argument, raise an error about it.

        Returns:
            The status of the kernel, 0 or less.

        Raises:
            ArgumentError: an argument is invalid.
        """
        if self.batched and self.n == 0:
            self.check()
            return 0
        if self.n < MANY_STATES:
            status = kernel.run(self._packed.address, self.n, *arguments)
        else:
            with self._packed.workspace() as address:
                status = kernel.run_unlocked(address, self.n, *map(_own_header, arguments))
        if status > 0:
            self.check()
            raise AssertionError(f'{kernel.name} rejected argument {status}, but no error was found in it')
        return status

    def check(self) -> None:
        """Raise an ArgumentError about the first invalid argument."""
        for name, array in self._arrays.items():
            self._check(name, array)
        (first, leader), *others = self._arrays.items()
        for name, array in others:
            if array.shape[:-1] != leader.shape[:-1]:
                expected = (*leader.shape[:-1], array.shape[-1])
                raise ArgumentError(
                    f'{name} has the shape {array.shape}; expected {expected}, '
                    f'as {first} has the shape {leader.shape}'
                )

    def wrenches(
        self, f_ext: Mapping[str, npt.ArrayLike] | None
    ) -> tuple[tuple[Floats, ...] | None, tuple[Floats, ...] | None]:
        """External wrenches as the kernels read them: frames of the links, and arrays (6,) or (n, 6).

        Raises:
            ArgumentError: not a mapping, a wrong shape, a value that is not finite, an unknown link.
        """
        if f_ext is None:
            return None, None
        if not isinstance(f_ext, Mapping):
            raise ArgumentError(
                f'f_ext is a {type(f_ext).__name__}; expected a dict of link names to wrenches'
            )
        frames, wrenches = [], []
        for link, wrench in f_ext.items():
            name = f"f_ext['{link}']"
            values = to_floats(name, wrench)
            if values.shape != (6,) and (not self.batched or values.shape != (self.n, 6)):
                expected = _shapes(6, self.n if self.batched else 0)
                raise ArgumentError(f'{name} has the shape {values.shape}; expected {expected}')
            check_finite(name, values)
            frames.append(self._packed.frame(link, 'f_ext'))
            wrenches.append(values)
        return tuple(frames), tuple(wrenches)

    def _sizes(self, name: str) -> tuple[int, ...]:
        packed = self._packed
        if name.startswith('q'):
            return (packed.nq,)
        return (packed.nv, packed.nj) if name == 'tau' and self._joint_torques else (packed.nv,)

    def _check(self, name: str, array: Floats) -> None:
        sizes = self._sizes(name)
        if array.ndim not in (1, 2) or array.shape[-1] not in sizes:
            expected = ' or '.join(_shapes(size, None) for size in dict.fromkeys(sizes))
            raise ArgumentError(f'{name} has the shape {array.shape}; expected {expected}')
        check_finite(name, array, self._label)
        if name.startswith('q') and self._model.floating_base:
            self._check_quaternions(name, array)

    def _label(self, index: int, size: int) -> str:
        """Name of an element of q, u, du or tau, which has the given size: the joints come last."""
        joint = index - (size - self._packed.nj)
        return f" of joint '{self._model.joint_names[joint]}'" if joint >= 0 else ' of the base'

    def _check_quaternions(self, name: str, q: Floats) -> None:
        length2 = np.sum(q[..., 3:7] ** 2, axis=-1)
        # Slightly stricter than the kernels, which round differently: everything that they reject is rejected
        # here.
        for state in np.argwhere(np.abs(length2 - 1.0) > QUATERNION_TOLERANCE * (1.0 - 1e-9))[:1]:
            where = f'{name}[{state[0]}, 3:7]' if q.ndim == 2 else f'{name}[3:7]'
            length = float(np.sqrt(length2[tuple(state)]))
            raise ArgumentError(
                f'{where} is a quaternion of length {length:.6g}; expected a unit quaternion x y z w'
            )


def _own_header(argument: object) -> object:
    """Arrays whose shape no other thread can change: views of the same data, made for one call."""
    if type(argument) is np.ndarray:
        return argument.view()
    return tuple(map(_own_header, argument)) if isinstance(argument, tuple) else argument


def to_floats(name: str, value: npt.ArrayLike) -> Floats:
    """A contiguous float64 array of real numbers in any form."""
    if isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
        raise ArgumentError(f'{name} has masked values; expected no masked values')
    try:
        array: npt.NDArray[Any] = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f'{name} is not an array of numbers: {error}') from error
    if array.dtype.kind not in 'fiub':
        raise ArgumentError(f'{name} has type {array.dtype}; expected real numbers')
    if array.dtype is _FLOAT64 and array.flags.c_contiguous and array.flags.aligned:
        return array
    # Not astype, which may keep a dtype that equals float64 but is another object.
    fresh = np.empty(array.shape)
    fresh[...] = array
    return fresh


def check_finite(name: str, array: Floats, label: Callable[[int, int], str] = lambda *_: '') -> None:
    """Raise an ArgumentError that names the first element that is not finite.

    Args:
        name: name of the argument.
        array: its values.
        label: name of an element of the last axis, given its index and the length of the axis.
    """
    if np.isfinite(array).all():
        return
    index = np.argwhere(~np.isfinite(array))[0]
    where, what = ', '.join(str(i) for i in index), label(int(index[-1]), array.shape[-1])
    raise ArgumentError(f'{name}[{where}]{what} is {array[tuple(index)]}; expected a finite number')


def vector(name: str, value: npt.ArrayLike, size: int) -> Floats:
    """A finite array (size,)."""
    array = to_floats(name, value)
    if array.shape != (size,):
        raise ArgumentError(f'{name} has the shape {array.shape}; expected ({size},)')
    check_finite(name, array)
    return array


def _shapes(size: int, n: int | None) -> str:
    return f'({size},) or ({"N" if n is None else n}, {size})' if n != 0 else f'({size},)'
