# SPDX-License-Identifier: Apache-2.0
"""The way into a kernel: what it refuses, and that nothing has run then."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quad_dynamics.compiler
from quad_dynamics.compiler import self_test
from quad_dynamics.compiler.arguments import Array, ArrayTuple, array, each, table, tuple_of
from quad_dynamics.compiler.arrays import check_layout, data, extent, is_array, item, length
from quad_dynamics.compiler.record_types import type_of_record
from quad_dynamics.compiler.registry import FLOAT, INT, KERNELS, OBJECT, Kernel
from quad_dynamics.memory.layout import Robot
from quad_dynamics.memory.packing import shape_words

COMPILER = r'quad_dynamics\.compiler\.(?!types)'
PACKAGE = Path(quad_dynamics.compiler.__file__).parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of tests have sources that the cache does not know."""
    monkeypatch.setenv('QUAD_DYNAMICS_CACHE_DIR', str(tmp_path))


def made(function: Any, *kinds: Any) -> Any:
    """The entry of a function as a kernel."""
    kernel = Kernel(function, tuple(type_of_record(x) if isinstance(x, type) else x for x in kinds))
    kernel.load(announce=False)
    return kernel.run


def add(x: Any, factor: float, n: int, out: Any) -> int:
    """Adds up."""
    x, out = data(x), data(out)
    total = 0.0
    for i in range(n):
        total += x[i]
    out[0] = factor * total
    return n


def test_numbers_and_arrays_arrive() -> None:
    out = np.zeros(1)
    run = made(add, OBJECT, FLOAT, INT, OBJECT)
    assert run(np.arange(5.0), 0.5, 5, out) == 5
    assert out[0] == 5.0
    assert run(np.arange(5.0), 2, True, out) == 1  # as Python converts numbers


@pytest.mark.parametrize('count', [0, 1, 3, 5, 20])
def test_arguments_are_counted(count: int) -> None:
    run = made(add, OBJECT, FLOAT, INT, OBJECT)
    with pytest.raises(TypeError, match='the kernel add takes 4 arguments'):
        run(*[np.zeros(3)] * count)


@pytest.mark.parametrize(
    ('position', 'value', 'error'),
    [
        (1, 'no number', TypeError),
        (1, None, TypeError),
        (2, 2.5, TypeError),
        (2, 2**63, OverflowError),
        (2, None, TypeError),
    ],
)
def test_numbers_that_are_none(position: int, value: Any, error: type[Exception]) -> None:
    out = np.zeros(1)
    arguments: list[Any] = [np.ones(3), 1.0, 3, out]
    arguments[position] = value
    with pytest.raises(error):
        made(add, OBJECT, FLOAT, INT, OBJECT)(*arguments)
    assert out[0] == 0.0


NOT_ARRAYS = {
    'None': None,
    'a list': [0.0] * 6,
    'a number': 1.0,
    'a type': np.ndarray,
    'too small': np.zeros(5),
    'float32': np.zeros(6, dtype=np.float32),
    'int64': np.zeros(6, dtype=np.int64),
    'strides': np.zeros(12)[::2],
    'columns first': np.zeros((2, 3), order='F'),
    'backwards': np.zeros(6)[::-1],
    'other bytes': np.zeros(6, dtype='>f8'),
    'a subclass': np.zeros(6).view(np.matrix),
    'masked': np.ma.zeros(6),
    'not aligned': np.frombuffer(bytearray(49), dtype=np.uint8)[1:].view(np.float64),
    'no axis': np.array(1.0),
    'empty': np.zeros((6, 0)),
}


def write(n: int, x: Any) -> int:
    """Writes everywhere."""
    x = data(x)
    for i in range(2 * n):
        x[i] = 1.0
    return 0


@pytest.mark.parametrize('case', NOT_ARRAYS)
def test_arrays_that_are_none(case: str) -> None:
    run = made(write, INT, array(lambda n: 2 * n))
    with pytest.raises(TypeError, match='the kernel write needs a writeable, contiguous float64 array'):
        run(3, NOT_ARRAYS[case])


@pytest.mark.parametrize('shape', [(6,), (2, 3), (1, 2, 3), (7,), (2, 1, 1, 3)])
def test_arrays_that_are_large_enough(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    assert made(write, INT, array(lambda n: 2 * n))(3, x) == 0
    assert (x.ravel()[:6] == 1.0).all()


def first(x: Any) -> int:
    """Reads."""
    return int(data(x)[0])


def test_arrays_that_are_only_read() -> None:
    x = np.ones(3)
    x.setflags(write=False)
    assert made(first, table(lambda: 3))(x) == 1
    with pytest.raises(TypeError, match='writeable'):
        made(first, array(lambda: 3))(x)


def count(n: int, x: Any) -> int:
    """Nothing is read."""
    return n


def test_optional_arrays() -> None:
    run = made(count, INT, array(lambda: 3, optional=True))
    assert run(1, None) == 1
    assert run(1, np.zeros(3)) == 1
    for bad in (np.zeros(2), False, ()):
        with pytest.raises(TypeError, match='as x'):
            run(1, bad)


def total_length(x: Any) -> int:
    """Adds up lengths."""
    total = 0
    for i in range(length(x)):
        total += extent(item(x, i), 0)
    return total


@pytest.mark.parametrize('kind', [each(table(lambda: 2)), tuple_of(table(lambda: 2), table(lambda: 3))])
def test_tuples(kind: ArrayTuple) -> None:
    run = made(total_length, kind)
    good = (np.zeros(2), np.zeros(4))
    assert run(good) == 6
    assert run(type('Named', (tuple,), {})(good)) == 6
    for bad in (None, list(good), np.zeros(4), (np.zeros(2), None), (np.zeros(1), np.zeros(4)), {}, 'text'):
        with pytest.raises(TypeError, match='tuple'):
            run(bad)
    if kind.items != each(table(lambda: 2)).items and not isinstance(kind.items, Array):
        for bad in ((), good[:1], (*good, np.zeros(4)), (np.zeros(2), np.zeros(2))):
            with pytest.raises(TypeError, match='tuple'):
                run(bad)


def robot(A: Any, n: int, x: Any) -> int:
    """Nothing is read."""
    return n


def test_sizes_of_the_robot_and_of_the_batch() -> None:
    arena = np.zeros(Robot.words)
    Robot.array(arena)['nv'] = 4
    run = made(robot, Robot, INT, array(lambda states, nv: states * nv))
    for n, least in ((0, 4), (1, 4), (3, 12)):
        assert run(arena.ctypes.data, n, np.zeros(least)) == n
        with pytest.raises(TypeError, match='as x'):
            run(arena.ctypes.data, n, np.zeros(least - 1))
    with pytest.raises(TypeError, match='memory at A'):
        run(0, 1, np.zeros(4))


def look(A: Any, x: Any) -> int:
    """What a kernel sees of an object."""
    return int(is_array(A, x, 1))


def test_any_object_may_be_looked_at() -> None:
    from quad_dynamics.model.loading import load_model

    model = load_model('two_link_arm')
    address, run = model._packed.address, made(look, Robot, OBJECT)
    assert run(address, np.zeros(3)) == 1
    for thing in (*NOT_ARRAYS.values(), object(), 2**100, type, sys, lambda: None, b'', iter([])):
        assert run(address, thing) == int(thing is NOT_ARRAYS['too small'])


def fill(n: int, status: int, out: Any) -> int:
    """Counts."""
    out = data(out)
    for i in range(n):
        out[i] = float(i)
    return status


@pytest.mark.parametrize('shape', [(6,), (2, 3), (3, 1, 2)])
def test_results_are_made(shape: tuple[int, ...]) -> None:
    kernel = Kernel(fill, (INT, INT, array(lambda n: n)))
    result = kernel.make(6, 0, shape_words([shape]))
    assert type(result) is np.ndarray
    assert result.dtype == np.float64
    assert np.array_equal(result, np.arange(6.0).reshape(shape))
    assert sys.getrefcount(result) == 2  # the name, and the argument of this call
    for status in (1, -1):
        assert kernel.make(6, status, shape_words([shape])) is None
    with pytest.raises(TypeError, match=r'the kernel fill needs .* as out'):
        kernel.make(7, 0, shape_words([shape]))
    with pytest.raises(TypeError):
        kernel.make('six', 0, shape_words([shape]))


def test_references_are_left_alone() -> None:
    x, out = np.arange(5.0), np.zeros(1)
    run = made(add, OBJECT, FLOAT, INT, OBJECT)
    run(x, 1.0, 5, out)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(100):
        run(x, 1.0, 5, out)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before


@pytest.mark.parametrize('name', ['run', 'run_unlocked', 'make'])
def test_every_kernel_counts_its_arguments(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import quad_dynamics.kernels.all  # noqa: F401 (fills KERNELS)

    monkeypatch.undo()  # these are in the cache of all tests
    for kernel in KERNELS.values():
        kernel.load(announce=False)
        with pytest.raises(
            TypeError, match=f'the kernel {kernel.name} takes {len(kernel.signature)} arguments'
        ):
            getattr(kernel, name)()


def test_every_argument_of_every_kernel_is_checked() -> None:
    """What is not declared with a size is looked at by the kernel: these, and no others."""
    import quad_dynamics.kernels.all  # noqa: F401 (fills KERNELS)

    looked_at = {
        'q',
        'q0',
        'q1',
        'u',
        'qd',
        'du',
        'tau',
        'kp',
        'kd',
        'variance',
        'weights',
        'prescribed',
        'offset',
        'direction',
    }
    for kernel in KERNELS.values():
        for name, kind in kernel.arguments.items():
            assert kind != OBJECT or name in looked_at, f'{name} of {kernel.name}'


def test_the_self_test_passes_and_is_quick() -> None:
    self_test.check_compiler()
    check_layout()
    self_test.check_convention()
    self_test.check_call()


@pytest.mark.parametrize('name', ['DATA', '_PROBE_TYPE'])
def test_the_self_test_can_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == 'DATA':  # where an array would keep something else: its strides
        strides = self_test.DATA + 24
        monkeypatch.setattr(self_test, 'DATA', strides)
        with pytest.raises(RuntimeError, match='a call of compiled code gives'):
            self_test.check_call()
    else:
        convention = type(self_test.cpu_target.target_context.call_conv)
        other = self_test.ir.FunctionType(self_test.ir.IntType(32), [])
        monkeypatch.setattr(convention, 'get_function_type', lambda *_: other)
        with pytest.raises(RuntimeError, match=r'with Python 3.*numba calls a function as'):
            self_test.check_convention()


def test_the_fence() -> None:
    """Modules outside use the names of the compiler that its docstring lists."""
    listed = set(re.findall(r'`(\w+)`', quad_dynamics.compiler.__doc__))
    assert {'kernel', 'routine', 'formula', 'data', 'array'} <= listed
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.parent.name == 'compiler':
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(COMPILER, node.module or ''):
                names = {alias.name for alias in node.names}
                assert names <= listed, f'{path.relative_to(PACKAGE)} uses {names - listed}'


def test_the_memory_of_a_model_is_reached_through_the_api() -> None:
    """Modules above `api` do not know how a model stands in memory."""
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.relative_to(PACKAGE).parts[0] in ('api', 'model'):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            reaches = isinstance(node, ast.Attribute) and node.attr == '_packed'
            own = reaches and isinstance(node.value, ast.Name) and node.value.id == 'self'
            assert own or not reaches, f'{path.relative_to(PACKAGE)}:{node.lineno}'
