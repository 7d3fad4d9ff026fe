# SPDX-License-Identifier: Apache-2.0
"""Odd calls of the public functions do not end the process, nor show mistakes inside the library.

`python test/helpers/odd_calls.py --calls 20000 --seed 0` makes more of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from slow_variants import slow_but


@pytest.mark.parametrize(('calls', 'seed'), slow_but([(150, 1)], [(150, 1), (2000, 0)]))
def test_odd_calls(calls: int, seed: int) -> None:
    root = Path(__file__).resolve().parents[2]
    folder = root / 'test' / 'helpers'
    paths = os.pathsep.join([str(root), str(folder), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run(
        [sys.executable, str(folder / 'odd_calls.py'), '--calls', str(calls), '--seed', str(seed)],
        env=os.environ | {'PYTHONPATH': paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report['mistakes'] == []
    outcomes = report['outcomes']
    assert sum(outcomes.values()) == calls
    # both kinds happen often, or the calls would not be odd, or not be calls
    assert outcomes['returned'] > calls / 10
    assert outcomes['ArgumentError'] > calls / 10
