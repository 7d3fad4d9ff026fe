# SPDX-License-Identifier: Apache-2.0
"""Run tests of the compiler with other versions of numba and NumPy: `python -m benchmarks.versions`.

Each pair gets its own virtual environment, with the Python that runs this, in a temporary folder. The oldest
pair is the oldest with wheels for this Python. docs/running.md lists the results.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = {
    (3, 10): '0.55.1:1.21.5',
    (3, 11): '0.57.0:1.24.4',
    (3, 12): '0.59.0:1.26.4',
    (3, 13): '0.61.0:2.1.3',
}
NEWEST = '0.68.1:2.4.6'
OTHERS = ('daqp', 'jinja2', 'pytest', 'pyyaml', 'scipy', 'threadpoolctl', 'tqdm')
TESTS = ('test_trace.py', 'test_entry.py', 'test_disk_cache.py', 'test_odd_calls.py')


def main() -> int:
    """Run the tests with each pair; returns the number of failed pairs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        'pairs', nargs='*', default=[OLDEST[sys.version_info[:2]], NEWEST], metavar='NUMBA:NUMPY'
    )
    failures = 0
    for pair in parser.parse_args().pairs:
        with tempfile.TemporaryDirectory() as folder:
            good = run(pair, Path(folder))
        failures += not good
        python = '.'.join(map(str, sys.version_info[:3]))
        numba, numpy = pair.split(':')
        print(f'Python {python}, numba {numba}, NumPy {numpy}: {"passed" if good else "FAILED"}', flush=True)
    return failures


def run(pair: str, folder: Path) -> bool:
    """Install a pair, and run the tests with it."""
    numba, numpy = pair.split(':')
    venv.create(folder / 'venv', with_pip=True)
    python = str(folder / 'venv' / 'bin' / 'python')
    wanted = [f'numba=={numba}', f'numpy=={numpy}', *OTHERS]
    subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--only-binary', ':all:', *wanted], check=True)
    variables = os.environ | {'PYTHONPATH': str(ROOT), 'QUAD_DYNAMICS_CACHE_DIR': str(folder / 'cache')}
    tests = [str(ROOT / 'test' / name) for name in TESTS]
    options = ['-q', '-m', 'not slow', '-p', 'no:cacheprovider']
    return (
        subprocess.run(
            [python, '-m', 'pytest', *options, *tests], env=variables, cwd=ROOT, check=False
        ).returncode
        == 0
    )


if __name__ == '__main__':
    sys.exit(main())
