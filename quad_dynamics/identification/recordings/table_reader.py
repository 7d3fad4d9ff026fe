# SPDX-License-Identifier: Apache-2.0
"""Tables as recordings, as an alternative to bags: CSV and npz.

CSV: one line of column names, then numbers. Columns, in any order; others are ignored:

    time                                                            [s]
    <joint>.position, <joint>.velocity, <joint>.effort              [rad, rad/s, N m]
    <joint>.acceleration                                            [rad/s^2], where it was measured
    base.px py pz qx qy qz qw vx vy vz wx wy wz                     as nav_msgs/Odometry: twist in base axes
    base.ax ay az dwx dwy dwz                                       acceleration in base axes, without gravity
    imu.qx qy qz qw wx wy wz ax ay az                               as sensor_msgs/Imu: specific force
    <foot>.fx fy fz                                                 [N], world axes
    <foot>.contact                                                  1: on the ground, 0: in the air
    <joint>.target_position, target_velocity, target_effort

npz: arrays time (n,), position, velocity, acceleration, effort, target_... (n, joints), joint_names (joints,)
in the order of the columns, base (n, 13), base_acceleration (n, 6), imu (n, 10), force (n, feet, 3), contact
(n, feet), foot_names (feet,).
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.recordings.recording import Channel, Chunk, Source, digest
from quad_dynamics.identification.recordings.topics import WORLD_FRAMES, Topics, lacking_joints
from quad_dynamics.model.model import Model

JOINT_FIELDS = (
    'position',
    'velocity',
    'acceleration',
    'effort',
    'target_position',
    'target_velocity',
    'target_effort',
)
BASE_FIELDS = ('px', 'py', 'pz', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz')
ACCELERATION_FIELDS = ('ax', 'ay', 'az', 'dwx', 'dwy', 'dwz')
IMU_FIELDS = ('qx', 'qy', 'qz', 'qw', 'wx', 'wy', 'wz', 'ax', 'ay', 'az')
FORCE_FIELDS = ('fx', 'fy', 'fz')
# Quantities of topics. An empty topic disables them.
QUANTITIES = {
    'joint_states': ('position', 'velocity', 'effort'),
    'odom': ('base',),
    'imu': ('imu',),
    'foot_forces': ('force',),
    'joint_torques': ('target_position', 'target_velocity', 'target_effort'),
    'joint_targets': ('target_position', 'target_velocity', 'target_effort'),
    'contact': ('contact',),
    'acceleration': ('acceleration',),
    'base_acceleration': ('base_acceleration',),
}
_NAMES = ('time', 'joint_names', 'foot_names')  # other arrays of an npz file
_LINES = 4096  # lines that are read at once
_UNITS = {'milliseconds': 1e-3, 'microseconds': 1e-6, 'nanoseconds': 1e-9}
_LEAST_STEP, _LARGEST_STEP = 4e-4, 0.05  # between two rows of a usual log [s]
_LATEST = 9.0e9  # largest time [s]: more do not fit into 64 bits as nanoseconds
_ENCODINGS = {b'\xff\xfe': 'UTF-16 or UTF-32', b'\xfe\xff': 'UTF-16'}  # byte order marks of other encodings
_SEPARATORS = {';': 'semicolons', '\t': 'tabs'}


def open_table(path: Path, model: Model, topics: Topics, chunk: float) -> Source:
    """Open a table; see `open_source`."""
    for name in topics.named:
        columns = ', '.join(_columns_of(name))
        raise ArgumentError(
            f'{path}: the topic {name}={getattr(topics, name)} cannot be read from a table, which has no '
            f'topics; expected none for tables: the columns {columns} are used, if they exist'
        )
    if not topics.joint_states:
        raise ArgumentError(
            f'{path}: joint_states has an empty name; expected the joints, which are necessary'
        )
    if path.suffix.lower() == '.npz':
        return NpzSource(path, model, topics, chunk)
    return CsvSource(path, model, topics)


def _columns_of(topic: str) -> list[str]:
    """The columns of a CSV file that correspond to a topic."""
    columns = {
        'base': [f'base.{field}' for field in (BASE_FIELDS[0], '...', BASE_FIELDS[-1])],
        'imu': [f'imu.{field}' for field in (IMU_FIELDS[0], '...', IMU_FIELDS[-1])],
        'base_acceleration': [f'base.{field}' for field in ACCELERATION_FIELDS],
        'force': [f'<foot>.{field}' for field in FORCE_FIELDS],
        'contact': ['<foot>.contact'],
    }
    found = [columns.get(key, [f'<joint>.{key}']) for key in QUANTITIES[topic]]
    return [name.replace('base....', '...').replace('imu....', '...') for names in found for name in names]


class _TableSource(Source):
    """Common parts of both kinds of tables: quantities and their columns by name."""

    def __init__(self, path: Path, model: Model, topics: Topics) -> None:
        super().__init__(str(path), digest([path]), topics)
        self._path = path
        frame = '' if topics.force_frame in WORLD_FRAMES else topics.force_frame
        self.force_frames = {foot: frame for foot in model.foot_names if model.floating_base}

    def origin(self, key: str) -> str:
        """See `Source`."""
        return 'time'

    def named(self, topic: str) -> str:
        """See `Source`."""
        return QUANTITIES[topic][0]

    def _disabled(self) -> set[str]:
        """Quantities whose topics all have an empty name."""
        kept = {key for topic, keys in QUANTITIES.items() if getattr(self.topics, topic) for key in keys}
        optional = {key for topic, keys in QUANTITIES.items() if topic != 'joint_states' for key in keys}
        return optional - kept


class CsvSource(_TableSource):
    """A CSV file, read in chunks of lines."""

    def __init__(self, path: Path, model: Model, topics: Topics) -> None:
        """Read the column names.

        Raises:
            ArgumentError: it cannot be read, lacks a column, or has a line with another number of columns.
        """
        super().__init__(path, model, topics)
        self._check_start()
        lines = self._lines()
        header = next(lines, '')
        if not header.strip():
            raise ArgumentError(f'{self.name}: has no column names; expected them in the first line')
        names = [name.strip().strip('"') for name in header.split(',')]
        for separator, plural in _SEPARATORS.items():
            if header.count(separator) > header.count(','):
                found = f'columns are separated by {plural}'
                raise ArgumentError(f'{self.name}: {found}; expected commas, and points in numbers')
        if not any(line.strip() for line in lines):
            raise ArgumentError(f'{self.name}: holds no numbers; expected a line for each time')
        columns, self._joints = _columns(self.name, names, model, topics, self._disabled())
        self._names = names
        self._used = sorted({i for places in columns.values() for i in places})
        where = {i: k for k, i in enumerate(self._used)}
        self._columns = {key: [where[i] for i in places] for key, places in columns.items()}
        self.force_frames = {
            foot: frame for foot, frame in self.force_frames.items() if f'force/{foot}' in self._columns
        }

    def _check_start(self) -> None:
        """Check the first bytes.

        Raises:
            ArgumentError: it is no text, or has another encoding.
        """
        with self._path.open('rb') as file:
            start = file.read(4096)
        encoding = _ENCODINGS.get(start[:2], '')
        if encoding or b'\0' in start:
            found = f'is text in {encoding}' if encoding else 'holds binary data'
            raise ArgumentError(f'{self.name}: {found}; expected a CSV file, text in UTF-8')

    def _lines(self) -> Iterator[str]:
        """All lines.

        Raises:
            ArgumentError: it is no text.
        """
        with self._path.open(encoding='utf-8-sig') as file:
            try:
                yield from file
            except UnicodeDecodeError as error:
                raise ArgumentError(
                    f'{self.name}: is not text in UTF-8 ({error}); expected a CSV file'
                ) from error

    def chunks(self) -> Iterator[Chunk]:
        """Chunks of lines.

        Raises:
            ArgumentError: a line has another number of columns, or something other than numbers.
        """
        file = self._lines()
        next(file)
        line = 2
        while lines := list(islice(file, _LINES)):
            table = self._numbers(lines, line)
            if line == 2:
                _check_unit(table[:, self._columns['time'][0]], self.name)
            line += len(lines)
            if len(table):
                yield self._chunk(table)

    def _chunk(self, table: Floats) -> Chunk:
        stamps = _stamps(table[:, self._columns['time'][0]], self.name)
        return {
            key: Channel(stamps, table[:, where], self._joints if key in JOINT_FIELDS else ())
            for key, where in self._columns.items()
            if key != 'time'
        }

    def _numbers(self, lines: Sequence[str], first: int) -> Floats:
        """(n, used columns) of lines; an empty cell is NaN. Blank lines are skipped."""
        rows, width = [], len(self._names)
        for i, text in enumerate(lines):
            cells = text.strip().split(',')
            if cells == ['']:
                continue
            if len(cells) != width:
                found = f'line {first + i} has {len(cells)} columns'
                raise ArgumentError(f'{self.name}: {found}; expected {width}, and points in numbers')
            try:
                rows.append([float(cells[k]) if cells[k].strip() else np.nan for k in self._used])
            except ValueError as error:
                raise ArgumentError(f'{self.name}: line {first + i}: {self._odd(cells)}') from error
        return np.array(rows).reshape(-1, len(self._used))

    def _odd(self, cells: Sequence[str]) -> str:
        """Error message about the first cell that is not a number."""
        for k in self._used:
            try:
                float(cells[k].strip() or 'nan')
            except ValueError:
                return f'{self._names[k]} is {cells[k].strip()!r}; expected a number'
        return 'has something other than numbers'


def _columns(
    name: str, names: Sequence[str], model: Model, topics: Topics, disabled: Collection[str]
) -> tuple[dict[str, list[int]], tuple[int, ...]]:
    """Indices of the columns of each quantity, and the joints that are present (empty: all)."""
    place = {column: i for i, column in enumerate(names)}
    present = [joint for joint in model.joint_names if f'{joint}.position' in place]
    if lacking := topics.missing(model.joint_names, present):
        columns = [f'{joint}.position' for joint in lacking]
        raise ArgumentError(f'{name}: {lacking_joints(columns, names, "columns")}')
    wanted = {'time': ['time']}
    wanted |= {field: [f'{joint}.{field}' for joint in present] for field in JOINT_FIELDS}
    if model.floating_base:
        wanted |= {'base': [f'base.{field}' for field in BASE_FIELDS]}
        wanted |= {'base_acceleration': [f'base.{field}' for field in ACCELERATION_FIELDS]}
        wanted |= {'imu': [f'imu.{field}' for field in IMU_FIELDS]}
        wanted |= {f'contact/{foot}': [f'{foot}.contact'] for foot in model.foot_names}
        wanted |= {
            f'force/{foot}': [f'{foot}.{field}' for field in FORCE_FIELDS] for foot in model.foot_names
        }
    found: dict[str, list[int]] = {}
    for key, columns in wanted.items():
        if key.split('/', 1)[0] in disabled:
            continue
        _refuse_repeated(name, [column for column in names if column in columns], 'columns')
        missing = [column for column in columns if column not in place]
        if not missing:
            found[key] = [place[column] for column in columns]
        elif key in ('time', 'position') or len(missing) < len(columns):
            raise ArgumentError(f'{name}: lacks the columns {missing}; it has {list(names)}')
    _check_base(name, found, model)
    return found, _places(model, present)


def _refuse_repeated(name: str, names: Sequence[str], what: str) -> None:
    """Raise an error if a name comes twice: it is not known which one is meant."""
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise ArgumentError(f'{name}: has the {what} {twice} more than once; expected each once')


def _places(model: Model, joints: Sequence[str]) -> tuple[int, ...]:
    """Indices of these joints in the columns of a quantity; empty: all."""
    if len(joints) == model.nj:
        return ()
    return tuple(model.joint_names.index(joint) for joint in joints)


def _check_base(name: str, found: dict[str, list[int]] | dict[str, Floats], model: Model) -> None:
    if model.floating_base and 'base' not in found and 'imu' not in found:
        raise ArgumentError(
            f'{name}: has neither base nor imu; expected one of them for a floating base. '
            'If the base does not move, give --fixed-base'
        )


def _stamps(time: Floats, name: str) -> npt.NDArray[np.int64]:
    if not np.isfinite(time).all():
        raise ArgumentError(f'{name}: time holds a number that is not finite')
    if len(time) and (latest := float(np.abs(time).max())) > _LATEST:
        raise ArgumentError(f'{name}: time reaches {latest:.3g}; expected seconds, at most {_LATEST:g}')
    return np.rint(time * 1e9).astype(np.int64)


def _check_unit(time: Floats, name: str) -> None:
    """Reject times whose usual step is that of another unit.

    Raises:
        ArgumentError: they do not look like seconds.
    """
    steps = np.diff(time)
    step = float(np.median(steps[steps > 0.0])) if np.any(steps > 0.0) else 0.0
    for unit, size in _UNITS.items():
        if _LEAST_STEP <= step * size <= _LARGEST_STEP < step:
            raise ArgumentError(
                f'{name}: time has steps of {step:g}, which looks like {unit}; expected seconds'
            )


class NpzSource(_TableSource):
    """An npz file; it is completely in memory."""

    def __init__(self, path: Path, model: Model, topics: Topics, chunk: float) -> None:
        """Read the file.

        Raises:
            ArgumentError: it cannot be read, lacks an array or a joint, or an array has another shape.
        """
        super().__init__(path, model, topics)
        self._chunk = chunk
        self._arrays = self._checked(self._load(), model)

    def _load(self) -> dict[str, npt.NDArray[np.generic]]:
        """The arrays that are used; nothing is unpickled.

        Raises:
            ArgumentError: it is not an npz file, or an array cannot be read.
        """
        known = {*_NAMES, *(key for keys in QUANTITIES.values() for key in keys)} - self._disabled()
        key = ''
        try:
            with zipfile.ZipFile(self._path), np.load(self._path, allow_pickle=False) as file:
                arrays = {}
                for key in sorted(known & set(file.files)):
                    arrays[key] = file[key]
                return arrays
        except Exception as error:  # a damaged file can cause any exception in its reader
            which = f'its array {key!r}' if key else 'it'
            what = str(error).strip() or type(error).__name__
            raise ArgumentError(
                f'{self.name}: {which} cannot be read ({what}); expected an npz file with arrays of numbers '
                'and names'
            ) from error

    def _checked(self, arrays: dict[str, npt.NDArray[np.generic]], model: Model) -> dict[str, Floats]:
        for key in ('time', 'position', 'joint_names'):
            if key not in arrays:
                raise ArgumentError(f'{self.name}: lacks the array {key!r}; it has {sorted(arrays)}')
        names = self._texts(arrays, 'joint_names')
        if missing := self.topics.missing(model.joint_names, names):
            raise ArgumentError(f'{self.name}: joint_names {lacking_joints(missing, names)}')
        n = int(np.atleast_1d(arrays['time']).shape[0])
        joints = [name for name in model.joint_names if name in names]
        order, self._joints = [names.index(name) for name in joints], _places(model, joints)
        kept = {'time': self._array(arrays, 'time', (n,))}
        for key in JOINT_FIELDS:
            if key in arrays:
                kept[key] = self._array(arrays, key, (n, len(names)))[:, order]
        if model.floating_base:
            for key, width in (('base', 13), ('base_acceleration', 6), ('imu', 10)):
                if key in arrays:
                    kept[key] = self._array(arrays, key, (n, width))
            kept |= self._forces(arrays, n, model) | self._contacts(arrays, n, model)
        _check_base(self.name, kept, model)
        return kept

    def _forces(self, arrays: dict[str, npt.NDArray[np.generic]], n: int, model: Model) -> dict[str, Floats]:
        """Forces of the named feet."""
        if 'force' not in arrays:
            self.force_frames = {}
            return {}
        feet = self._feet(arrays, 'force', model)
        force = self._array(arrays, 'force', (n, len(feet), 3))
        self.force_frames = {foot: frame for foot, frame in self.force_frames.items() if foot in feet}
        return {f'force/{foot}': force[:, feet.index(foot)] for foot in self.force_frames}

    def _contacts(
        self, arrays: dict[str, npt.NDArray[np.generic]], n: int, model: Model
    ) -> dict[str, Floats]:
        """Contact flags of the named feet."""
        if 'contact' not in arrays:
            return {}
        feet = self._feet(arrays, 'contact', model)
        contact = self._array(arrays, 'contact', (n, len(feet)))
        return {f'contact/{foot}': contact[:, [i]] for i, foot in enumerate(feet) if foot in model.foot_names}

    def _feet(self, arrays: dict[str, npt.NDArray[np.generic]], what: str, model: Model) -> list[str]:
        """Names of the feet in the columns of an array."""
        if 'foot_names' not in arrays:
            raise ArgumentError(f"{self.name}: has '{what}', but lacks the array 'foot_names'")
        feet = self._texts(arrays, 'foot_names')
        if not set(feet) & set(model.foot_names):
            expected = f'those of {model.name}, {list(model.foot_names)}'
            raise ArgumentError(f'{self.name}: foot_names are {feet}; expected {expected}')
        return feet

    def _texts(self, arrays: dict[str, npt.NDArray[np.generic]], key: str) -> list[str]:
        """Names of columns."""
        array = np.atleast_1d(arrays[key])
        if array.ndim != 1 or array.dtype.kind not in 'US':
            found = f'is an array of {array.dtype} of the shape {array.shape}'
            raise ArgumentError(f'{self.name}: {key!r} {found}; expected a list of names')
        names = [name.decode(errors='replace') if isinstance(name, bytes) else str(name) for name in array]
        _refuse_repeated(self.name, names, key)
        return names

    def _array(self, arrays: dict[str, npt.NDArray[np.generic]], key: str, shape: tuple[int, ...]) -> Floats:
        if arrays[key].dtype.kind not in 'fiub':
            raise ArgumentError(f'{self.name}: {key!r} is an array of {arrays[key].dtype}; expected numbers')
        array = np.asarray(arrays[key], dtype=np.float64)
        if array.shape != shape:
            raise ArgumentError(f'{self.name}: {key!r} has the shape {array.shape}; expected {shape}')
        return array

    def chunks(self) -> Iterator[Chunk]:
        """Chunks of rows."""
        _check_unit(self._arrays['time'], self.name)
        stamps = _stamps(self._arrays['time'], self.name)
        if not len(stamps):
            raise ArgumentError(f'{self.name}: holds no rows; expected one for each time')
        cuts = np.flatnonzero(np.diff((stamps - stamps[0]) // round(self._chunk * 1e9))) + 1
        for rows in np.split(np.arange(len(stamps)), cuts):
            yield {
                key: Channel(stamps[rows], values[rows], self._joints if key in JOINT_FIELDS else ())
                for key, values in self._arrays.items()
                if key != 'time'
            }
