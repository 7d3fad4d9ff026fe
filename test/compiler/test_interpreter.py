# SPDX-License-Identifier: Apache-2.0
"""Kernels as plain Python: the same numbers as compiled, and faults that compiled code would not notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kernel_runs
import numpy as np
import pytest
from slow_variants import slow_but

GROUPS = (
    *('factorize', 'solve', 'terrain', 'go2/', 'mini_cheetah/', 'two_link_arm/', 'floating_tree/'),
    *('fixed_tree/', 'cart/', 'whole_body/', 'equations/', 'sim/'),
)
ROUGH = ('equations/', 'sim/', 'whole_body/')
QUICK = ('fixed_tree/',)


RUN = """
import sys
import unwritten_arrays
unwritten_arrays.install()
import kernel_runs
kernel_runs.save(*sys.argv[1:])
"""


def interpreted(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process in which nothing is compiled."""
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), str(root / 'test' / 'helpers'), os.environ.get('PYTHONPATH', '')]
    variables = os.environ | {'QUAD_DYNAMICS_INTERPRET': '1', 'PYTHONPATH': os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, '-W', 'ignore', *arguments],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.filterwarnings('ignore::quad_dynamics.FactorizationWarning')
@pytest.mark.parametrize('group', slow_but(QUICK, GROUPS))
def test_interpreted_as_compiled(tmp_path: Path, group: str) -> None:
    file = tmp_path / 'interpreted.npz'
    done = interpreted('-c', RUN, str(file), group)
    assert done.returncode == 0, done.stderr
    found = np.load(file)
    assert found['failed'].tolist() == [], done.stdout
    expected, failed = kernel_runs.results(group)
    assert failed == {}
    assert expected
    for name, value in expected.items():
        # Rounding, amplified by the condition of mass matrices, in time steps by that of contacts; rows of
        # equations are differences of larger numbers.
        scale = max(1e-3, np.abs(value).max(initial=0.0))
        error = np.abs(found[name] - value).max(initial=0.0) / scale
        assert error < (1e-6 if group in ROUGH else 1e-9), name


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore::quad_dynamics.FactorizationWarning')
def test_every_kernel_is_among_them() -> None:
    from quad_dynamics.compiler.registry import KERNELS

    for group in GROUPS:
        kernel_runs.results(group)
    assert kernel_runs.kernels_that_ran() == set(KERNELS)


FAULT = """
import numpy as np
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.interpreter import address_of, mark_unwritten
from quad_dynamics.compiler.registry import ADDRESS, INT, OBJECT, kernel
from quad_dynamics.compiler.trace import formula, load, load_int, memory_at, routine, store, store_int

@kernel(ADDRESS, INT, OBJECT)
def faulty(A, n, x):
    {body}
    return 0

arena, x = np.zeros(16), np.zeros(8)
mark_unwritten(arena[12:])
arena.view(np.int64)[0] = address_of(x)
faulty.run(address_of(arena), 8, x)
print('no fault')
"""


@pytest.mark.parametrize(
    ('body', 'fault'),
    [
        ('x = data(x); x[n - 1] = x[0] + load(A, 0)[1]', 'no fault'),
        ('store(A, 12, 1.0); load(A, 12); store_int(A, 1, 3); assert load_int(A, 1) == 3', 'no fault'),
        ('memory_at(load_int(A, 0) + 16)[5] = 1.0', 'no fault'),
        ('x = data(x); x[n] = 1.0', 'OutsideMemoryError: word 8 of 8 words'),
        ('x = data(x); x[n - 1] = x[n]', 'OutsideMemoryError: word 8 of 8 words'),
        ('x = data(x); x[-1] = 0.0', 'OutsideMemoryError: word -1'),
        ('load(data(x), n - 3)', 'OutsideMemoryError: word 5 to 8 of 8 words'),
        ('store(data(x), n - 3, 0.0)', 'OutsideMemoryError: word 5 to 8 of 8 words'),
        ('load_int(A, 16)', 'OutsideMemoryError: word 16 of 16 words'),
        ('store_int(A, 16, 0)', 'OutsideMemoryError: word 16 of 16 words'),
        ('memory_at(load_int(A, 0) + 16)[6]', 'OutsideMemoryError: word 6 of 6 words'),
        ('memory_at(12345)', 'OutsideMemoryError: there is no array of ours'),
        ('data(None)[0]', 'OutsideMemoryError: word 0 of 0 words'),
        ('A[12]', 'NeverWrittenError: word 12 was never written'),
        ('A[1] = A[13] + 1.0', 'NeverWrittenError: word 13'),
        ('store(A, 8, load(A, 9))', 'NeverWrittenError: word 12'),
        ('load_int(A, 15)', 'NeverWrittenError: word 15'),
        ('A[12] = 0.0; A[12]; A[13]', 'NeverWrittenError: word 13'),
    ],
)
def test_faults_are_caught(body: str, fault: str) -> None:
    """An index one too large, words that were never written, memory that is not ours."""
    done = interpreted('-c', FAULT.format(body=body))
    assert fault in done.stdout + done.stderr


def test_a_debugger_can_step_through() -> None:
    """A kernel is a function of Python: it is seen by `sys.settrace`, which debuggers use."""
    code = """
import sys
import quad_dynamics as qd
model, seen = qd.load_model('two_link_arm'), set()
sys.settrace(lambda frame, event, _: seen.add(frame.f_code.co_name))
qd.mass_matrix(model, model.neutral)
sys.settrace(None)
print({'mass_matrix', 'place_tree', 'place_in_parent', 'carry'} <= seen)
"""
    assert interpreted('-c', code).stdout == 'True\n'


@pytest.mark.parametrize('poison', ['inverse_dynamics', 'hybrid_dynamics'])
def test_a_call_that_overflowed_leaves_nothing_behind(qd: Any, poison: str) -> None:
    """Lanes without a body kept NaN of such a call, which friction then brought into the next result."""
    import random_trees

    model = qd.load_model(random_trees.random_tree(1, joints=7).urdf, floating_base=True)
    model = model.with_friction(np.ones(model.nj), np.ones(model.nj))
    q, zero, wild = model.neutral, np.zeros(model.nv), np.full(model.nv, 1e200)
    expected = qd.forward_dynamics(model, q, zero, zero, friction=True)
    if poison == 'inverse_dynamics':
        qd.inverse_dynamics(model, q, wild, wild)
    else:
        qd.hybrid_dynamics(model, q, wild, wild, wild, np.ones(model.nv, dtype=bool))
    assert np.array_equal(qd.forward_dynamics(model, q, zero, zero, friction=True), expected)
