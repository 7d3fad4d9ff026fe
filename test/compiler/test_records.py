# SPDX-License-Identifier: Apache-2.0
"""Typed records of the kernels: offsets, NumPy views, and fields in routines and formulas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError, TypingError

from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.record_types import clear, part, record_at, words
from quad_dynamics.compiler.records import (
    FLOAT,
    INT,
    LANES,
    VEC3,
    Numbers,
    Placement,
    Record,
    Table,
    constant,
    embedded,
    field,
    numbers,
    reference,
    rows,
    table,
)
from quad_dynamics.compiler.registry import ADDRESS, Kernel
from quad_dynamics.compiler.trace import formula, load, routine, store
from quad_dynamics.compiler.types import Address, Int, Number, Vec3

ROOT = Path(__file__).resolve().parents[2]


class Spring(Record):
    """An example."""

    index = field(INT, 'which one')
    stiffness = field(FLOAT, 'K', 'N/m')
    axis = field(VEC3, 'unit vector')


class Mount(Record):
    """Another one, with fields of the same names."""

    index = field(INT, 'which one')
    stiffness = field(FLOAT, 'K', 'N/m')


class Anchor(Record):
    """A record that kernels only read."""

    index = constant(INT, 'which one')


class Frame(Record, root=True):
    """A record with others inside and elsewhere."""

    size = field(FLOAT, 'length', 'm')
    main = embedded(Spring, 'the first spring')
    other = reference(Mount, 'a mount', part='state')
    springs = table(Spring, ('n', 2), 'all springs', part='state')
    q = numbers(('n',), 'positions', 'm', part='state')
    kept = numbers((), 'the same as q')
    room = numbers((LANES,), 'workspace', part='room')


class BodyRows(Record, view='abstract'):
    """Rows of four lanes."""

    mass = rows(FLOAT, 'mass', 'kg')
    position = rows(VEC3, 'position', 'm')
    joint = rows(INT, 'joint')


class FourBodies(BodyRows, view='pack'):
    """All lanes."""


class OneBody(BodyRows, view='lane'):
    """One lane."""


spring_at, frame_at, mount_at = record_at(Spring), record_at(Frame), record_at(Mount)
anchor_at = record_at(Anchor)
bodies_at, body_at = record_at(FourBodies), record_at(OneBody)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache on disk does not know the sources of tests."""
    monkeypatch.setenv('QUAD_DYNAMICS_CACHE_DIR', str(tmp_path))


def run(function: Any, memory: Floats) -> int:
    """Compile a function of one address as a kernel, and call it."""
    kernel = Kernel(function, (ADDRESS,))
    kernel.load(announce=False)
    return kernel.run(memory.ctypes.data)


def frame_memory(n: int = 3) -> tuple[Floats, Placement]:
    placement = Placement(Frame, {'n': n})
    memory = np.zeros(placement.words)
    placement.fill(memory)
    return memory, placement


def test_fields_follow_each_other() -> None:
    assert [one.offset for one in Spring.fields] == [0, 1, 2]
    assert (Spring.words, Mount.words) == (5, 2)
    assert Frame.main.offset == 1
    assert Frame.other.offset == 1 + Spring.words
    assert (BodyRows.position.offset, BodyRows.joint.offset) == (LANES, 4 * LANES)
    assert FourBodies.words == OneBody.words == 5 * LANES
    assert (Spring.axis.name, Spring.axis.kind.name, Spring.stiffness.unit) == ('axis', 'Vec3', 'N/m')


def test_numpy_sees_the_same() -> None:
    memory, placement = frame_memory()
    springs = placement.view(memory, 'springs')
    assert springs.shape == (3, 2)
    springs['axis'] = [0.0, 0.0, 1.0]
    springs['index'] = np.arange(6).reshape(3, 2)
    at = placement.at['springs'] + 5 * Spring.words
    assert memory[at + 4] == 1.0
    assert memory.view(np.int64)[at] == 5
    assert Frame.array(memory)[0]['main'].dtype == Spring.dtype
    assert placement.view(memory, 'q').shape == (3,)
    assert FourBodies.dtype['position'].shape == (3, LANES)


def test_parts_are_contiguous() -> None:
    _, placement = frame_memory()
    part = placement.part('state')
    assert part.start == placement.at['other']
    assert part.stop == placement.at['q'] + 3 <= placement.at['room']
    assert 'kept' not in placement.at
    assert all(at % 8 == 0 for at in placement.at.values())


class Workspace(Record):
    """A record elsewhere that has references of its own."""

    x = numbers(('n',), 'numbers')
    y = numbers(('n',), 'more of them')


class Owner(Record, root=True):
    """Refers to a record with references."""

    work = reference(Workspace, 'workspace', part='room')
    after = numbers((1,), 'what follows it', part='room')


owner_at = record_at(Owner)


def fill_workspace(A: Address) -> Int:
    owner = owner_at(A, 0)
    owner.work.x[1] = 1.0
    owner.work.y[2] = 2.0
    owner.after[0] = 3.0
    return 0


def test_references_of_references() -> None:
    placement = Placement(Owner, {'n': 3})
    memory = np.zeros(placement.words)
    placement.fill(memory)
    assert run(fill_workspace, memory) == 0
    work = Workspace.array(memory, placement.at['work'])[0]
    assert memory[placement.at['work'] + work['x'] + 1] == 1.0
    assert memory[placement.at['work'] + work['y'] + 2] == 2.0
    assert placement.at['after'] >= placement.at['work'] + work['y'] + 3
    assert memory[-1] == 3.0


@formula
def stretch(spring: Spring, by: Number) -> Vec3:
    spring.stiffness = spring.stiffness * by
    return spring.axis


@routine
def grow(springs: Table[Spring], n: Int) -> None:
    for i in range(n):
        spring = springs[i]
        spring.index += 10
        x, y, z = stretch(spring, 2.0)
        spring.axis = (y, z, x)


@formula
def add_one(x: Numbers) -> None:
    store(x, 0, load(x, 0) + 1.0)


@formula
def set_axis(spring: Spring, i: Int, x: Number) -> None:
    Spring.axis.numbers(spring)[i] = x


def use_frame(A: Address) -> Int:
    frame = frame_at(A, 0)
    grow(frame.springs, 6)
    frame.main.stiffness = 5
    frame.main.axis = (1.0, 2.0, frame.size)
    frame.other.index = frame.springs[5].index
    for i in range(3):
        frame.q[i] = frame.q[i] + frame.springs[i].stiffness
    clear(frame.springs[0])
    words(frame.main)[1] += 1.0
    part(frame.q, 1)[0] += frame.room[0]
    add_one(frame.room)
    set_axis(frame.main, 1, 9.0)
    frame.kept = part(frame.q, 1)
    frame.kept[1] += 100.0
    return frame.other.index


def test_routine_and_formula_read_and_write() -> None:
    memory, placement = frame_memory()
    frame, springs = Frame.array(memory)[0], placement.view(memory, 'springs')
    frame['size'] = 7.0
    placement.view(memory, 'room')[0] = 0.5
    springs['stiffness'] = np.arange(1.0, 7.0).reshape(3, 2)
    springs['axis'] = [1.0, 2.0, 3.0]
    springs['index'] = np.arange(6).reshape(3, 2)
    assert run(use_frame, memory) == 15
    assert placement.view(memory, 'q').tolist() == [2.0, 4.5, 106.0]
    assert frame['kept'] == placement.at['q'] + 1
    assert placement.view(memory, 'room').tolist() == [1.5, 1.0, 1.0, 1.0]
    assert springs.reshape(-1)[1:]['stiffness'].tolist() == [4.0, 6.0, 8.0, 10.0, 12.0]
    assert springs[2, 1]['axis'].tolist() == [2.0, 3.0, 1.0]
    assert springs[2, 1]['index'] == 15
    assert springs[0, 0].tobytes() == bytes(8 * Spring.words)
    assert frame['main']['stiffness'] == 6.0
    assert frame['main']['axis'].tolist() == [1.0, 9.0, 7.0]
    assert Mount.array(memory, placement.at['other'])[0]['index'] == 15


@formula
def double(bodies: FourBodies) -> None:
    bodies.mass = bodies.mass * 2.0
    x, y, z = bodies.position
    bodies.position = (y, x, z + bodies.mass)


def use_bodies(A: Address) -> Int:
    double(bodies_at(A, 0))
    body = body_at(A, 2)
    body.mass += 1.0
    x, y, z = body.position
    body.position = (x, y, 10.0 * z)
    return body.joint


def test_packs_and_lanes() -> None:
    memory = np.zeros(FourBodies.words)
    pack = FourBodies.array(memory)[0]
    pack['mass'], pack['joint'] = [1.0, 2.0, 3.0, 4.0], [4, 5, 6, 7]
    pack['position'] = np.arange(12.0).reshape(3, 4)
    assert run(use_bodies, memory) == 6
    assert pack['mass'].tolist() == [2.0, 4.0, 7.0, 8.0]
    assert pack['position'].tolist() == [[4, 5, 6, 7], [0, 1, 2, 3], [10, 13, 160, 19]]


@routine
def weaken(spring: Spring) -> None:
    spring.stiffness = 0.0


def pass_mount(A: Address) -> Int:
    weaken(mount_at(A, 0))
    return 0


def pass_mount_to_formula(A: Address) -> Int:
    stretch(mount_at(A, 0), 1.0)
    return 0


def pass_table(A: Address) -> Int:
    weaken(frame_at(A, 0).springs)
    return 0


@routine
def first(x: Address) -> Number:
    return x[0]


def pass_record_as_numbers(A: Address) -> Int:
    return int(first(spring_at(A, 0)))  # type: ignore[arg-type]


def misspell(A: Address) -> Int:
    spring_at(A, 0).stifness = 1.0
    return 0


def misspell_when_reading(A: Address) -> Int:
    return spring_at(A, 0).indx


@pytest.mark.parametrize(
    ('function', 'message'),
    [
        (pass_mount, "weaken got Mount as 'spring'; expected Spring"),
        (pass_mount_to_formula, "stretch got Mount as 'spring'; expected Spring"),
        (pass_table, r"weaken got Table\[Spring\] as 'spring'; expected Spring"),
        (pass_record_as_numbers, "first got Spring as 'x'; expected plain numbers"),
        (misspell, "Spring has no field 'stifness'; it has index, stiffness, axis"),
        (misspell_when_reading, "Spring has no field 'indx'"),
    ],
)
def test_wrong_records_do_not_compile(function: Any, message: str) -> None:
    with pytest.raises(TypingError, match=message):
        run(function, np.zeros(64))


@formula
def renumber(anchor: Anchor) -> None:
    anchor.index = 2  # type: ignore[assignment]


def write_a_constant(A: Address) -> Int:
    anchor_at(A, 0).index = 1  # type: ignore[assignment]
    return 0


def write_a_constant_in_a_formula(A: Address) -> Int:
    renumber(anchor_at(A, 0))
    return 0


def read_a_constant(A: Address) -> Int:
    return anchor_at(A, 0).index


@pytest.mark.parametrize('function', [write_a_constant, write_a_constant_in_a_formula])
def test_constants_are_only_read(function: Any) -> None:
    memory = np.zeros(64)
    Anchor.array(memory)[0]['index'] = 7
    assert run(read_a_constant, memory) == 7
    with pytest.raises(
        (NumbaError, TypeError), match='index of Anchor is a constant: kernels can only read it'
    ):
        run(function, memory)


class Plain:
    """Memory in plain Python."""

    def __init__(self, numbers: list[float], start: int = 0) -> None:
        self.numbers, self.start = numbers, start

    def __getitem__(self, i: int) -> float:
        return self.numbers[self.start + i]

    def __setitem__(self, i: int, value: float) -> None:
        self.numbers[self.start + i] = value


def test_plain_python() -> None:
    memory = Plain([0.0] * 10)
    spring = Spring(memory, 3)
    spring.axis = (1.0, 2.0, 3.0)
    assert stretch(spring, 2.0) == (1.0, 2.0, 3.0)
    assert memory.numbers[5:8] == [1.0, 2.0, 3.0]
    assert Table(Spring, memory, 3)[1].at == 3 + Spring.words
    with pytest.raises(AttributeError, match="Spring has no field 'axes'; it has index, stiffness, axis"):
        spring.axes = (0.0, 0.0, 0.0)  # type: ignore[attr-defined]


def test_names_are_unique() -> None:
    with pytest.raises(TypeError, match='two records are called Spring'):
        type('Spring', (Record,), {})


def test_page_about_the_records_is_as_the_code() -> None:
    command = [sys.executable, str(ROOT / 'docs' / 'memory_page.py'), '--check']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120.0, check=False)
    assert done.returncode == 0, f'{done.stdout}{done.stderr}'
