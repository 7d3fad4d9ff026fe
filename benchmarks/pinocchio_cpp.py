# SPDX-License-Identifier: Apache-2.0
"""Pinocchio's functions called from C++, if such a program can be compiled on this machine.

The wheels of Pinocchio contain its headers, those of Boost and the libraries, but not those of Eigen. These
come with the wheel cmeel-eigen or with Debian's libeigen3-dev, or EIGEN3_INCLUDE_DIR is their location. The
program, pinocchio_cpp.cpp, is compiled twice: with the functions of the wheel's own library, and with all of
them compiled for this processor; the better time is reported. Each build takes three minutes and 3.5 GB of
memory, once: the programs are kept in benchmarks/build.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from quad_dynamics.array_types import Floats

FUNCTIONS = ('aba', 'rnea', 'crba', 'regressor')

_SOURCE = Path(__file__).with_suffix('.cpp')
_BUILD = Path(__file__).parent / 'build'
_PREFIX = Path(pin.__file__).parents[4]
_EIGEN = [_PREFIX / 'include' / 'eigen3', Path('/usr/include/eigen3'), Path('/usr/local/include/eigen3')]
if 'EIGEN3_INCLUDE_DIR' in os.environ:
    _EIGEN.insert(0, Path(os.environ['EIGEN3_INCLUDE_DIR']))
# As in the CMake files of the wheel.
_FLAGS = [
    '-std=c++17',
    '-O3',
    '-DNDEBUG',
    '-DBOOST_MPL_LIMIT_LIST_SIZE=30',
    '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
    '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
    '-DBOOST_FUSION_INVOKE_MAX_ARITY=12',
]
_BUILDS = {
    'library': ['-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION'],
    # The library was compiled for generic x86-64: arguments must be aligned as it expects.
    'native': ['-march=native', '-DEIGEN_MAX_ALIGN_BYTES=16'],
}


class NotMeasuredError(Exception):
    """The reason why there are no measurements."""


class Programs:
    """The compiled programs.

    Attributes:
        paths: of the programs, by the name of the build.
    """

    def __init__(self) -> None:
        """Compile the programs, or find existing ones.

        Raises:
            NotMeasuredError: something is missing, or the compiler fails.
        """
        compiler = shutil.which(os.environ.get('CXX', 'g++'))
        if compiler is None:
            raise NotMeasuredError('no C++ compiler')
        for wanted, what in (
            (_PREFIX / 'include/pinocchio', 'Pinocchio'),
            (_PREFIX / 'include/boost', 'Boost'),
        ):
            if not wanted.is_dir():
                raise NotMeasuredError(f'no headers of {what}')
        eigen = next((one for one in _EIGEN if (one / 'Eigen' / 'Core').exists()), None)
        if eigen is None:
            raise NotMeasuredError(
                'no headers of Eigen (pip install cmeel-eigen, or apt install libeigen3-dev)'
            )
        library = _PREFIX / 'lib'
        paths = ['-isystem', str(_PREFIX / 'include'), '-isystem', str(eigen), f'-L{library}']
        links = ['-lpinocchio_default', f'-Wl,-rpath,{library}', f'-Wl,-rpath-link,{library}']
        self.paths = {
            name: _compiled([compiler, *_FLAGS, *flags, *paths, str(_SOURCE), *links])
            for name, flags in _BUILDS.items()
        }

    def measure(self, model: Any, states: Sequence[Floats], rounds: int) -> dict[str, float]:
        """Best time of a call of each function [ns].

        Args:
            model: Pinocchio's.
            states: q, u, and accelerations or torques, each (N, ...).
            rounds: passes through the states.

        Raises:
            NotMeasuredError: a program fails, or its results differ from those of Pinocchio in Python.
        """
        expected = _sums(model, *(one[-1] for one in states))
        best = dict.fromkeys(FUNCTIONS, float('inf'))
        with tempfile.TemporaryDirectory() as folder:
            text, numbers = Path(folder) / 'model', Path(folder) / 'states'
            text.write_text(_description(model))
            np.hstack(states).tofile(numbers)
            for name, path in self.paths.items():
                command = [str(path), str(text), str(numbers), str(len(states[0])), str(rounds)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise NotMeasuredError(
                        f'the {name} build fails: {done.stderr.strip() or done.returncode}'
                    )
                for line in done.stdout.splitlines():
                    function, ns, total = line.split()
                    if not np.isclose(float(total), expected[function], rtol=1e-9):
                        raise NotMeasuredError(f'{function} of the {name} build computes something else')
                    best[function] = min(best[function], float(ns))
        return best


def _compiled(command: list[str]) -> Path:
    """The program that a command builds."""
    content = _SOURCE.read_bytes() + '\0'.join([*command, pin.__version__]).encode()
    path = _BUILD / f'pinocchio_cpp_{hashlib.sha256(content).hexdigest()[:16]}'
    if not path.exists():
        _BUILD.mkdir(exist_ok=True)
        unfinished = path.with_suffix('.unfinished')
        done = subprocess.run([*command, '-o', str(unfinished)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if 'error' in line), done.stderr[-200:])
            raise NotMeasuredError(f'it does not compile: {first.strip()}')
        unfinished.rename(path)
    return path


def _description(model: Any) -> str:
    """A model in the format of pinocchio_cpp.cpp."""
    rows: list[Any] = [[model.njoints - 1]]
    for i in range(1, model.njoints):
        joint, placement, inertia = model.joints[i], model.jointPlacements[i], model.inertias[i]
        kind = joint.shortname()
        axis = joint.extract().axis if kind.endswith('Unaligned') else np.zeros(3)
        arrays = (
            axis,
            placement.rotation,
            placement.translation,
            inertia.mass,
            inertia.lever,
            inertia.inertia,
        )
        rows.append([model.parents[i], kind, *(float(x) for one in arrays for x in np.ravel(one))])
    return '\n'.join(' '.join(map(_word, row)) for row in rows) + '\n'


def _word(word: Any) -> str:
    """A token of that text; numbers with all digits."""
    return word if isinstance(word, str) else repr(word)


def _sums(model: Any, q: Floats, u: Floats, x: Floats) -> dict[str, float]:
    """Sums of the absolute values of the results at one state."""
    data = model.createData()
    results = (
        pin.aba(model, data, q, u, x),
        pin.rnea(model, data, q, u, x),
        pin.crba(model, data, q),
        pin.computeJointTorqueRegressor(model, data, q, u, x),
    )
    return {name: float(np.abs(one).sum()) for name, one in zip(FUNCTIONS, results, strict=True)}
