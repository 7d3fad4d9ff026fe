# SPDX-License-Identifier: Apache-2.0
"""Formulas and routines, compiled, against the same in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.registry import FLOAT, INT, KERNELS, OBJECT, Kernel
from quad_dynamics.compiler.trace import (
    Placeholder,
    fill_zero,
    formula,
    fused,
    join,
    lane_sum,
    load,
    load_int,
    memory_at,
    nearest,
    routine,
    split,
    square_root,
    store,
    store_int,
    unit_lanes,
    where_nonzero,
    zero_lanes,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of tests have sources that the cache does not know."""
    monkeypatch.setenv('QUAD_DYNAMICS_CACHE_DIR', str(tmp_path))


def run(function: Callable[..., int], *arguments: Any) -> int:
    """Compile a function as a kernel, which `KERNELS` does not list, and call it."""
    kinds = {int: INT, float: FLOAT}
    made = Kernel(function, tuple(kinds.get(type(one), OBJECT) for one in arguments))
    made.load(announce=False)
    assert function.__name__ not in KERNELS
    return made.run(*arguments)


@formula
def polynomial(x: Any, y: Any) -> Any:
    """Every operation, on numbers of any kind."""
    z = 2.0 * x - y / 3.0 + 1.0
    return (1.0 - z) * (z + x) / (0.5 + y * y), -z


def test_a_formula_is_the_same_for_floats_lanes_and_python() -> None:
    def arithmetic(x: Any, out: Any) -> int:
        x, out = data(x), data(out)
        out[0], out[1] = polynomial(x[0], x[4])
        a, b = polynomial(load(x, 0), load(x, 4))
        store(out, 2, a)
        store(out, 6, b)
        return 0

    x, out = np.random.default_rng(0).uniform(0.5, 2.0, 8), np.empty(10)
    assert run(arithmetic, x, out) == 0
    expected = [polynomial(x[k], x[4 + k]) for k in range(4)]
    np.testing.assert_allclose(out[:2], expected[0], rtol=1e-14)
    np.testing.assert_allclose(out[2:6], [a for a, _ in expected], rtol=1e-14)
    np.testing.assert_allclose(out[6:], [b for _, b in expected], rtol=1e-14)


@formula
def weighted(units: Any, rest: Any) -> Any:
    """1 2 3 in the lanes of three units."""
    return units[0] + units[1] * 2.0 + units[2] * 3.0 + rest


def test_lanes() -> None:
    def lanes(x: Any, out: Any) -> int:
        x, out = data(x), data(out)
        a, b, c, d = split(load(x, 0))
        store(out, 0, join(d, c, b, a))
        out[4] = lane_sum(load(x, 0))
        store(out, 5, square_root(load(x, 0)))
        store(out, 9, weighted(unit_lanes(x), zero_lanes(x)))
        store(out, 13, nearest(load(x, 0)))
        store(out, 17, fused(load(x, 0), 3.0, load(x, 4)))
        store(out, 21, where_nonzero(load(x, 4), load(x, 0), zero_lanes(x)))
        store(out, 25, 7.0)
        return 0

    x, out = np.array([0.5, 1.5, 2.4, -0.0, 0.0, -1.0, np.nan, 0.0]), np.empty(29)
    assert run(lanes, x, out) == 0
    assert out[:4].tolist() == x[3::-1].tolist()
    assert out[4] == x[:4].sum()
    assert out[5:9].tolist() == np.sqrt(x[:4]).tolist()
    assert out[9:13].tolist() == [1.0, 2.0, 3.0, 0.0]
    assert out[13:17].tolist() == np.rint(x[:4]).tolist()
    np.testing.assert_array_equal(out[17:21], 3.0 * x[:4] + x[4:])
    assert out[21:25].tolist() == [0.0, 1.5, 2.4, 0.0]
    assert out[25:].tolist() == [7.0] * 4


def test_whole_numbers_share_the_memory() -> None:
    def integers(x: Any, n: int) -> int:
        x = data(x)
        store_int(x, 0, n - 1)
        store_int(x, 1, load_int(x, 0) * 3)
        fill_zero(x, 2, 2)
        return load_int(x, 1)

    x = np.full(4, np.nan)
    assert run(integers, x, -(2**40)) == 3 * (-(2**40) - 1)
    assert x.view(np.int64).tolist() == [-(2**40) - 1, 3 * (-(2**40) - 1), 0, 0]


def test_memory_by_its_address() -> None:
    def elsewhere(x: Any, address: int) -> int:
        x = data(x)
        x[0] = memory_at(address)[2] + memory_at(address + 8)[0]
        return 0

    x, other = np.zeros(1), np.array([1.0, 10.0, 100.0])
    run(elsewhere, x, other.ctypes.data)
    assert x[0] == 110.0


@routine
def root(x: Any) -> Any:
    return math.sqrt(x)


def test_not_a_number_stays() -> None:
    """Reordered sums are allowed; to assume that there is no NaN or inf is not."""

    def special(x: Any) -> int:
        x = data(x)
        x[1], x[2], x[3] = 1.0 / x[0], x[0] / x[0], root(x[0] - 1.0)
        bad = 0
        for i in range(4):
            if x[i] * 0.0 != 0.0:
                bad += 1
        return bad

    x = np.zeros(4)
    assert run(special, x) == 3
    assert x[1] == np.inf
    assert np.isnan(x[2:]).all()


def test_what_does_not_fit_is_refused_when_it_is_compiled() -> None:
    from llvmlite import ir

    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), 'f')
    builder = ir.IRBuilder(function.append_basic_block())
    number = Placeholder(builder, ir.Constant(ir.DoubleType(), 1.0))
    count = Placeholder(builder, ir.Constant(ir.IntType(64), 1))
    with pytest.raises(TypeError, match='a formula mixes'):
        _ = count + number
