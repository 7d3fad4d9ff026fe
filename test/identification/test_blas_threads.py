# SPDX-License-Identifier: Apache-2.0
"""BLAS has one thread inside identification and excitation design, and as many as before after."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / 'helpers'

# A new process without limits in its environment; it writes the threads of BLAS before, inside and after.
SCRIPT = """
import sys, warnings
import numpy, scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
import identification_bags as bags
import quad_dynamics as qd

warnings.simplefilter('ignore')
threadpool_limits(limits=3, user_api='blas')  # also where the machine has one core

def threads():
    return {one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'}

seen = set()
before = threads()
"""
IDENTIFY = """
path = bags.arm_bag(sys.argv[1], bags.arm_truth(duration=5.0), bags.TYPICAL)
qd.identify([path], bags.robot('two_link_arm'), progress=lambda text: seen.update(threads()))
print(before, seen, threads())
try:
    qd.identify([path], bags.robot('mini_cheetah'))
except qd.QuadDynamicsError:
    print(threads())
"""
DESIGN = """
from quad_dynamics.identification.excitation.excitation import choose_motion, design
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
few = ExcitationSettings(starts=1, iterations=1, duration=5.0)
design(choose_motion(bags.robot('two_link_arm')), few, progress=lambda done, all: seen.update(threads()))
print(before, seen, threads())
"""


@pytest.mark.parametrize(
    ('work', 'lines'),
    [(IDENTIFY, 2), pytest.param(DESIGN, 1, marks=pytest.mark.slow)],
    ids=['identify', 'design'],
)
def test_blas_is_limited_inside_and_restored_after(tmp_path: Path, work: str, lines: int) -> None:
    limits = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS')
    environment = {name: value for name, value in os.environ.items() if name not in limits}
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT + work, str(tmp_path / 'bag')],
        env={**environment, 'PYTHONPATH': str(HELPERS)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['{3} {1} {3}', '{3}'][:lines]


def test_threads_that_come_and_go_restore_it() -> None:
    """Even if the last to leave is not the first that entered."""
    import scipy.linalg  # noqa: F401 (loads BLAS)
    import threadpoolctl

    from quad_dynamics.identification.blas_threads import single_threaded_blas

    def threads() -> set[int]:
        return {one['num_threads'] for one in threadpoolctl.threadpool_info() if one['user_api'] == 'blas'}

    is_in, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with single_threaded_blas():
            is_in.set()
            may_leave.wait(10.0)

    before = threads()
    with threadpoolctl.threadpool_limits(limits=2, user_api='blas'):
        with single_threaded_blas():
            other = threading.Thread(target=stay)
            other.start()
            assert is_in.wait(10.0)
            assert threads() == {1}
        may_leave.set()
        other.join(10.0)
        assert threads() == {2}
    assert threads() == before
