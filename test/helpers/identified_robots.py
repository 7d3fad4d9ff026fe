# SPDX-License-Identifier: Apache-2.0
"""Results of identification made by hand, whose numbers are known; robots that others' tools got wrong."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field
from typing import Any

import identification_data as data
import numpy as np

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ModelWarning
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.equations import Equations
from quad_dynamics.identification.equations.noise import Noise
from quad_dynamics.identification.solvers.solution import Combination, Solution
from quad_dynamics.identification.validation.validation import Validation, validate

# Frames are turned, and a foot and a sensor are fixed to moving links; every link has mass, com and inertia
# of its own, in a frame of its own.
TURNED_ARM = """<robot name="turned arm">
  <link name="root"/>
  <link name="upper">
    <inertial><origin xyz="0.05 0.01 -0.1" rpy="0.4 -0.3 1.1"/><mass value="1.2"/>
      <inertia ixx="0.011" ixy="0.0012" ixz="-0.0007" iyy="0.009" iyz="0.0015" izz="0.006"/></inertial>
    <visual><geometry><mesh filename="meshes/upper.stl"/></geometry></visual>
  </link>
  <link name="lower">
    <inertial><origin xyz="0 0.02 -0.12" rpy="0 0.7 0"/><mass value="0.6"/>
      <inertia ixx="0.004" ixy="0.0002" ixz="0.0003" iyy="0.0041" iyz="-0.0004" izz="0.0012"/></inertial>
  </link>
  <link name="sensor">
    <inertial><origin xyz="0.01 0 0.02" rpy="1.2 0 0.3"/><mass value="0.2"/>
      <inertia ixx="0.0003" ixy="0" ixz="0" iyy="0.0004" iyz="0" izz="0.0002"/></inertial>
  </link>
  <link name="foot">
    <inertial><origin xyz="0 0 -0.01"/><mass value="0.1"/>
      <inertia ixx="0.0001" ixy="0" ixz="0" iyy="0.0001" iyz="0" izz="0.0001"/></inertial>
  </link>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 0.5" rpy="0.3 0.2 -0.5"/><parent link="root"/>
    <child link="upper"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="20"/></joint>
  <joint name="mount" type="fixed"><origin xyz="0.03 0.02 -0.15" rpy="0.5 1.0 -0.2"/><parent link="upper"/>
    <child link="sensor"/></joint>
  <joint name="elbow" type="revolute"><origin xyz="0 0 -0.25" rpy="-0.4 0 0.9"/><parent link="upper"/>
    <child link="lower"/><axis xyz="0.6 0.8 0"/><limit lower="-2" upper="2" effort="50" velocity="20"/>
    <dynamics damping="0.05" friction="0.1"/></joint>
  <joint name="ankle" type="fixed"><origin xyz="0 0 -0.24" rpy="0 0 2"/><parent link="lower"/>
    <child link="foot"/></joint>
</robot>
"""


def load(source: Any, **options: Any) -> Any:
    """A model, without what is doubtful about it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return qd.load_model(source, **options)


def solved(model: Any, true: Any, rotor: Floats | None = None) -> Solution:
    """A solution that has found another robot: `true` has the same joints and bodies."""
    columns = make_columns(model)
    x = make_columns(true).prior.copy()
    free = np.zeros(columns.size, dtype=bool)
    for kind in ('pi', 'viscous', 'coulomb'):
        free[columns.slices[kind]] = True
    if rotor is not None:
        x[columns.slices['rotor']] = rotor
        free[columns.slices['rotor']] = True
    std = np.where(free, 0.02 * np.abs(x) + 1e-6, np.nan)
    identified = free & (np.arange(columns.size) % 3 != 0)
    return Solution(
        columns,
        x,
        free,
        identified,
        std,
        x - 1.96 * std,
        x + 1.96 * std,
        (
            Combination('a.m + 2.00 b.m', 3.0, 2.5, 0.01, 'kg', True),
            Combination('c.m - 1.00 b.m', 1.0, 1.5, 0.8, 'kg', False),
        ),
        condition=42.0,
        prior_weight=1e-3,
        choices=('viscous and Coulomb friction: the folds do not ask for more',),
    )


@dataclass(frozen=True)
class Signals:
    """Stands for the report about signals, whose own tests are elsewhere."""

    cutoff: float = 25.0
    sources: tuple[Any, ...] = ()

    def text(self, validation: Any = None) -> list[str]:
        return ['100 Hz, cutoff 25 Hz, delay 2.0 ms']

    def to_dict(self) -> dict[str, Any]:
        return {'cutoff': self.cutoff}


@dataclass(frozen=True)
class Settings:
    """Stands for the settings."""

    free: tuple[str, ...] = ('inertia', 'friction')


@dataclass(frozen=True, eq=False)
class HandMadeResult:
    """What `identify` returns, with parts that are known."""

    solution: Solution
    equations: Equations
    validation: Validation | None
    signals: Signals = field(default_factory=Signals)
    validation_signals: Any = None
    sources: tuple[tuple[str, str], ...] = (('walk_1', 'ab' * 32),)
    settings: Settings = field(default_factory=Settings)
    missing: tuple[str, ...] = ('FL_calf.Ixy <needs> a fast hip',)
    comparison: Any = None
    warnings: tuple[str, ...] = ()

    @property
    def noise(self) -> Noise:
        return self.equations.noise


@functools.cache
def result_of(name: str, seconds: float = 8.0) -> HandMadeResult:
    """A result for a bundled robot whose truth differs from its model."""
    model = data.robot(name)
    true = data.changed(model, seed=3)
    solution = solved(model, true)
    training, _ = data.make_samples(true, 1, seconds, noise=data.TYPICAL)
    others, _ = data.make_samples(true, 2, seconds, noise=data.TYPICAL)
    equations = data.equations_of(training, solution.columns, data.TYPICAL)
    validation = validate(data.equations_of(others, solution.columns, data.TYPICAL), solution, 'walk_2')
    return HandMadeResult(solution, equations, validation)
