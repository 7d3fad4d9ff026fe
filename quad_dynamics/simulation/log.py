# SPDX-License-Identifier: Apache-2.0
"""The log of a run as arrays; it can be saved to a file or exported as a ROS 2 bag."""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.errors import ArgumentError, ModelWarning
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.sensors import Readings, SensorSuite, true_readings
from quad_dynamics.simulation.settings import ImuSettings, SensorSettings

if TYPE_CHECKING:
    from quad_dynamics.simulation.settings import SimulatorSettings


_VERSION = 1  # version of the file format
# The arrays with one row per time.
_ROWS = (
    'time',
    'q',
    'u',
    'acceleration',
    'tau',
    'foot_forces',
    'sweeps',
    'residual',
    'substeps',
    'converged',
    'ldlt',
    'iterations',
)

# Types of the arrays; the others are floats.
_KINDS = {'sweeps': 'i', 'substeps': 'i', 'ldlt': 'i', 'iterations': 'i', 'converged': 'b'}
_TYPES = {'f': np.float64, 'i': np.int64, 'b': np.bool_}
_WIDE = ('q', 'u', 'acceleration', 'tau', 'foot_forces')  # with several columns


@dataclass(frozen=True, eq=False)
class Log:
    """The record of n time steps.

    `log[a:b]` and `log.between(t0, t1)` are parts of it.

    Attributes:
        time: (n,) simulated time after the step [s].
        q: (n, nq) configuration.
        u: (n, nv) velocity.
        acceleration: (n, nv) mean acceleration of the step, the change of u over dt.
        tau: (n, nj) motor torques [N m].
        foot_forces: (n, feet, 3) from the ground on the feet, in world axes [N].
        sweeps: (n,) of the contact solver: maximum of all solutions in the step.
        residual: (n,) of the contact solver, see `Simulator.residual` [m/s].
        substeps: (n,) in the step.
        converged: (n,) whether the step met the tolerance, and the sticking joints were found.
        joint_names: in the order of the arrays.
        foot_names: in the order of the arrays.
        base_name: name of the base's link.
        floating_base: whether the base floats.
        dt: time step of the simulation [s]; rows may be several steps apart.
        gravity: (3,) in world axes [m/s^2].
        imu: placement of the IMU.
        ldlt: (n,) number of times that LLT failed in the step and LDLT was used; zeros if not given.
        iterations: (n,) Newton iterations of the contact solver in the step; zeros if not given.
    """

    time: Floats
    q: Floats
    u: Floats
    acceleration: Floats
    tau: Floats
    foot_forces: Floats
    sweeps: Ints
    residual: Floats
    substeps: Ints
    converged: npt.NDArray[np.bool_]
    joint_names: tuple[str, ...]
    foot_names: tuple[str, ...]
    base_name: str
    floating_base: bool
    dt: float
    gravity: Floats
    imu: ImuSettings = field(default_factory=ImuSettings)
    ldlt: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    iterations: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _robot: _Robot | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n, nj, base = len(self.time), len(self.joint_names), 6 if self.floating_base else 0
        for name in ('ldlt', 'iterations'):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.zeros(n, np.int64))
        widths: dict[str, tuple[int, ...]] = {
            'q': (base + (base > 0) + nj,),
            'u': (base + nj,),
            'acceleration': (base + nj,),
            'tau': (nj,),
            'foot_forces': (len(self.foot_names), 3),
        }
        for name in _ROWS:
            rows, expected = getattr(self, name), (n, *widths.get(name, ()))
            if rows.shape != expected:
                raise ArgumentError(f'{name} of the log has shape {rows.shape}; expected {expected}')
            if rows.dtype.kind != _KINDS.get(name, 'f'):
                raise ArgumentError(f'{name} of the log has type {rows.dtype}; expected numbers')
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise ArgumentError(f'gravity of the log is {self.gravity}; expected 3 numbers')
        if type(self.dt) is not float or not 0.0 < self.dt < math.inf:
            raise ArgumentError(f'dt of the log is {self.dt!r}; expected a number above 0 [s]')

    @staticmethod
    def from_rows(rows: Floats, model: Model, settings: SimulatorSettings) -> Log:
        """Make a log from the rows of the simulator.

        Args:
            rows: (n, row_width(model)): time, q, u, acceleration, tau, foot_forces, sweeps, residual,
                substeps, converged, ldlt, iterations.
            model: robot.
            settings: of the simulation.

        Raises:
            ArgumentError: rows of a wrong width.
        """
        width = row_width(model)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ArgumentError(f'rows has shape {rows.shape}; expected (n, {width})')
        feet = len(model.foot_names)
        widths = (1, model.nq, model.nv, model.nv, model.nj, 3 * feet, 1, 1, 1, 1, 1, 1)
        arrays: dict[str, Any] = {}
        for name, end, size in zip(_ROWS, itertools.accumulate(widths), widths, strict=True):
            part = rows[:, end - size : end] if name in _WIDE else rows[:, end - 1]
            arrays[name] = part.astype(_TYPES[_KINDS.get(name, 'f')], order='C')
        arrays['foot_forces'] = arrays['foot_forces'].reshape(len(rows), feet, 3)
        return Log(
            **arrays,
            joint_names=model.joint_names,
            foot_names=model.foot_names,
            base_name=model.base_name,
            floating_base=model.floating_base,
            dt=settings.dt,
            gravity=np.array(model.gravity if settings.gravity is None else settings.gravity),
            imu=settings.sensors.imu,
            _robot=_Robot(model=model),
        )

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, part: slice | npt.NDArray[Any]) -> Log:
        """The rows of a slice, a mask or an array of indices."""
        if not isinstance(part, (slice, np.ndarray)):
            raise ArgumentError(f'the index of a log is {part!r}; expected a slice, a mask or an array')
        changes = {name: getattr(self, name)[part] for name in _ROWS}
        return replace(self, **changes)

    @staticmethod
    def joined(logs: Sequence[Log]) -> Log:
        """Concatenate successive logs of the same simulator.

        Raises:
            ArgumentError: there are no logs.
        """
        if not logs:
            raise ArgumentError('no logs given; expected at least one')
        rows: dict[str, Any] = {name: np.concatenate([getattr(log, name) for log in logs]) for name in _ROWS}
        return replace(logs[0], **rows)

    def between(self, t0: float, t1: float) -> Log:
        """The rows from time t0 to time t1, both included [s]."""
        # Times are sums of steps, with rounding errors.
        slack = 1e-3 * self.dt
        return self[(self.time >= t0 - slack) & (self.time <= t1 + slack)]

    @property
    def steps(self) -> Ints:
        """(n,) number of time steps since the reset."""
        return np.rint(self.time / self.dt).astype(np.int64)

    @property
    def robot_description(self) -> str:
        """The robot as URDF text."""
        return self._known_robot().text

    @property
    def model(self) -> Model:
        """The robot; for a log from a file it is built from the URDF, without the robot description."""
        return self._known_robot().load(self)

    def _known_robot(self) -> _Robot:
        if self._robot is None:
            raise ArgumentError('the log has no robot; expected a log of a simulator or from a file')
        return self._robot

    def truth(self, settings: SensorSettings | None = None) -> Readings:
        """Readings of perfect sensors, with a leading axis n.

        Args:
            settings: placement of the IMU; None: as in the simulation.
        """
        place = SensorSettings(imu=self.imu) if settings is None else settings
        arrays = self.q, self.u, self.acceleration, self.gravity, self.tau, self.foot_forces
        return true_readings(self.model, place, self.time, *arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log to an npz file; an existing file is overwritten."""
        about = {
            'version': _VERSION,
            'joint_names': self.joint_names,
            'foot_names': self.foot_names,
            'base_name': self.base_name,
            'floating_base': self.floating_base,
            'dt': self.dt,
            'imu': self.imu.to_dict(),
            'robot': self._robot and self._robot.as_dict(),
        }
        arrays = {name: getattr(self, name) for name in (*_ROWS, 'gravity')}
        with Path(path).open('wb') as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Log:
        """Read a file written by `save`.

        Raises:
            ArgumentError: the file does not exist or is not a log.
        """
        version: object = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')  # a damaged header may look like that of an old NumPy
                with np.load(path, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays.pop('about')))
            version, robot = about.pop('version'), about.pop('robot')
            about['imu'] = ImuSettings.from_dict(about['imu'])
            about |= {name: _names(about[name]) for name in ('joint_names', 'foot_names')}
            if version == _VERSION:
                return Log(**arrays, **about, _robot=robot and _Robot(**robot))
        except OSError as error:
            raise ArgumentError(f'{os.fspath(path)}: cannot be read: {error.strerror or error}') from error
        except Exception as error:  # zip, zlib, npy, JSON and our own checks: damage may show up anywhere
            raise ArgumentError(
                f'{os.fspath(path)}: not a log, or damaged ({_one_line(error)}); expected a file written by '
                'Log.save'
            ) from error
        raise ArgumentError(f'{os.fspath(path)}: has version {version!r}; expected {_VERSION}')

    def to_bag(
        self,
        path: str | os.PathLike[str],
        rate_hz: float | None = None,
        storage: str = 'mcap',
        sensors: SensorSuite | None = None,
        clock: bool = False,
        ground_truth: bool = True,
        described: Model | None = None,
    ) -> None:
        """Write a ROS 2 bag; docs/sensors.md lists its topics.

        Args:
            path: of the bag, a folder that does not exist yet.
            rate_hz: rate of each topic [Hz]; None: one message per row.
            storage: 'mcap' or 'sqlite3'.
            sensors: adds sensor errors; None: error-free values.
            clock: whether to write the topic `clock` as well.
            ground_truth: whether to write error-free values in addition to measured ones.
            described: robot of the topic `robot_description`; None: the simulated one.

        Raises:
            ArgumentError: the path exists, the log is empty, the storage is unknown, or the rows do not allow
                the rate.
        """
        from quad_dynamics.simulation.bag import write_bag

        write_bag(self, path, rate_hz, storage, sensors, clock, ground_truth, described)


def row_width(model: Model) -> int:
    """Number of columns of `Log.from_rows`."""
    return 1 + model.nq + 2 * model.nv + model.nj + 3 * len(model.foot_names) + 6


def _names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f'names are {names!r:.60}; expected a list of strings')
    return tuple(names)


def _one_line(error: Exception) -> str:
    """The text of an exception in one line."""
    text = ' '.join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else f'{text[:117]}...'


class _Robot:
    """The robot of a log: a model, or the text from which it is built on demand."""

    def __init__(
        self, model: Model | None = None, urdf: str = '', feet: dict[str, str] | None = None
    ) -> None:
        self._model, self._urdf = model, urdf
        self._feet = {leg.name: leg.foot for leg in model.legs} if model is not None else feet or {}

    @property
    def text(self) -> str:
        """URDF text."""
        if not self._urdf and self._model is not None:
            self._urdf = self._model.to_urdf()
        return self._urdf

    def as_dict(self) -> dict[str, Any]:
        """The data from which `_Robot` is rebuilt."""
        return {'urdf': self.text, 'feet': self._feet}

    def load(self, log: Log) -> Model:
        """The model, with the joints in the order of the log."""
        if self._model is None:
            from quad_dynamics.model.loading import load_model

            with warnings.catch_warnings():
                warnings.simplefilter('ignore', ModelWarning)  # they were issued before the simulation
                description = {'feet': self._feet} if self._feet else None
                self._model = load_model(self._urdf, log.floating_base, description, gravity=log.gravity)
        if self._model.joint_names != log.joint_names:
            found = list(self._model.joint_names)
            raise ArgumentError(f'the robot of the log has joints {found}; expected {log.joint_names}')
        return self._model
