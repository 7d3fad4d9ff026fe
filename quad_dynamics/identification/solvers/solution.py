# SPDX-License-Identifier: Apache-2.0
"""The solution of an identification, with its confidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.model.model import Model


@dataclass(frozen=True, eq=False)
class Combination:
    """A base parameter: a combination of unknowns whose columns of the equations are independent.

    Attributes:
        text: the combination, such as 'FL_calf.Ixx + 1.00 FL_thigh.Iyy'.
        value: its value.
        prior: value of the model.
        std: standard deviation.
        unit: of all three.
        identified: whether the data determine it, by the same criterion as for `Solution.identified`.
    """

    text: str
    value: float
    prior: float
    std: float
    unit: str
    identified: bool


@dataclass(frozen=True, eq=False)
class Solution:
    """The identified unknowns.

    Attributes:
        columns: names and order of the unknowns.
        x: (size,) all unknowns; those that were not free have the values of the model.
        free: (size,) which were free.
        identified: (size,) which the data determine: their uncertainty is much smaller than before.
        std: (size,) standard deviations, including noise and errors of the model; NaN if not free.
        low: (size,) lower end of the 95 % interval; NaN if not free.
        high: (size,) upper end.
        combinations: the base parameters.
        condition: condition number of the equations of the base parameters, columns scaled to length 1.
        method: name of the solver.
        prior_weight: of the prior, relative to the data; 0 for methods without a prior.
        choices: decisions of cross-validation and their reasons, as text.
        asked: (size,) the unknowns without plausibility limits, if a limit was reached; else None.
    """

    columns: Columns
    x: Floats
    free: Bools
    identified: Bools
    std: Floats
    low: Floats
    high: Floats
    combinations: tuple[Combination, ...] = ()
    condition: float = float('nan')
    method: str = 'consistent'
    prior_weight: float = 0.0
    choices: tuple[str, ...] = field(default=())
    asked: Floats | None = None

    def part(self, kind: str) -> Floats:
        """The unknowns of one kind: 'pi', 'viscous', ... (see `Columns.slices`)."""
        return self.x[self.columns.slices[kind]]

    @property
    def moving_masses(self) -> tuple[float, float]:
        """Mass of everything that moves, including rotors, before and after [kg]."""
        pi, rotors = (
            self.columns.slices['pi'],
            float(self.columns.known[self.columns.slices['pi']][::10].sum()),
        )
        before, after = (float(x[pi][::10].sum()) + rotors for x in (self.columns.prior, self.x))
        return before, after

    def model(self) -> Model:
        """The robot with the identified inertial parameters, friction and rotors.

        Offsets, asymmetric and Stribeck friction are not part of a model; see `part`.

        Raises:
            ArgumentError: a body is not physically consistent (never with the method 'consistent').
        """
        kinds = 'viscous', 'coulomb', 'rotor'
        viscous, coulomb, rotor = (np.maximum(self.part(kind), 0.0) for kind in kinds)
        if any(np.any(self.part(kind) < -1e-9) for kind in kinds):
            raise ArgumentError(f'{self.method}: some friction or rotor is negative, which no model can have')
        model = self.columns.model.with_pi(self.part('pi')).with_friction(viscous, coulomb)
        return model.with_rotors(rotor)


def model_with(columns: Columns, x: Floats) -> Model:
    """The model with the inertia and the rotors of x, without friction."""
    none = np.zeros(columns.model.nj)
    changed = columns.model.with_pi(x[columns.slices['pi']], check=False).with_friction(none, none)
    return changed.with_rotors(x[columns.slices['rotor']])
