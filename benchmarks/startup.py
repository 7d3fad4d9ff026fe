# SPDX-License-Identifier: Apache-2.0
"""Start-up times of a user: import, first call and compilation, each in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

# Functions, and numba with them, are imported on first access: access all of them.
_IMPORT = 'from quad_dynamics import *'
_FIRST_CALL = """
import quad_dynamics as qd, numpy as np, warnings
warnings.simplefilter('ignore')
model = qd.load_model('mini_cheetah')
qd.forward_dynamics(model, model.standing, np.zeros(model.nv), np.zeros(model.nj))
"""
_COMPILE = 'import quad_dynamics as qd; qd.warm_up()'


def measure() -> dict[str, float]:
    """Times without the start of Python [s]; cold_compile starts with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        empty = dict(os.environ, QUAD_DYNAMICS_CACHE_DIR=cache)
        bare = min(_run('pass') for _ in range(5))
        return {
            'cold_compile_s': _run(_COMPILE, empty) - bare,
            'first_call_s': min(_run(_FIRST_CALL, empty) for _ in range(3)) - bare,
            'import_s': min(_run(_IMPORT) for _ in range(5)) - bare,
        }


def _run(code: str, environment: dict[str, str] | None = None) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, '-c', code], check=True, env=environment)
    return time.perf_counter() - start
