# SPDX-License-Identifier: Apache-2.0
"""Comparison of hidden and identified values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.identification.demo.secret import Secret
from quad_dynamics.identification.solvers.solution import Solution

_FRICTION = ('viscous', 'coulomb')


@dataclass(frozen=True)
class Finding:
    """One hidden value.

    Attributes:
        name: such as 'payload mass', or 'FL_hip_joint viscous'.
        unit: of the numbers.
        urdf: value in the URDF.
        hidden: the true value.
        found: the identified value.
        low: lower end of its 95 % interval.
        high: upper end.
    """

    name: str
    unit: str
    urdf: float
    hidden: float
    found: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the true value is inside the interval."""
        return self.low <= self.hidden <= self.high


def payload_findings(secret: Secret, solution: Solution) -> list[Finding]:
    """Mass and position of the payload.

    The position is h / m, with the first moment h and the mass m that the trunk has in addition to its URDF.
    The correlation of their errors is unknown here, so the interval is for the worst case: |dp| <= (|dh| +
    |p| |dm|) / m.
    """
    prior = solution.columns.prior[:4]
    found, low, high = (values[:4] - prior for values in (solution.x, solution.low, solution.high))
    mass = float(found[0])
    findings = [Finding('payload mass', 'kg', 0.0, secret.mass, mass, float(low[0]), float(high[0]))]
    half = 0.5 * (high - low)
    for i, axis in enumerate('xyz', 1):
        place = float(found[i]) / mass if mass else float('nan')
        width = float((half[i] + abs(place) * half[0]) / abs(mass)) if mass else float('nan')
        hidden = 1e3 * float(secret.place[i - 1])
        bounds = 1e3 * (place - width), 1e3 * (place + width)
        findings.append(Finding(f'payload {axis}', 'mm', float('nan'), hidden, 1e3 * place, *bounds))
    return findings


def friction_findings(secret: Secret, solution: Solution) -> list[Finding]:
    """Viscous and Coulomb friction of all joints, by kind."""
    columns = solution.columns
    findings = []
    for kind in _FRICTION:
        begin = columns.slices[kind].start
        for j, joint in enumerate(columns.model.joint_names):
            i = begin + j
            numbers = (solution.x[i], solution.low[i], solution.high[i])
            if not solution.free[i]:  # kept at the URDF value, without an interval
                numbers = (solution.x[i], solution.x[i], solution.x[i])
            hidden = getattr(secret, kind)[j]
            values = (float(x) for x in (columns.prior[i], hidden, *numbers))
            findings.append(Finding(f'{joint} {kind}', columns.units[i], *values))
    return findings


def worst_error(findings: list[Finding]) -> float:
    """Largest |found / hidden - 1|."""
    return float(np.max([abs(one.found / one.hidden - 1.0) for one in findings]))
