# SPDX-License-Identifier: Apache-2.0
"""What was hidden beside what was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quad_dynamics.identification.demo.secret import Secret
from quad_dynamics.identification.solvers.solution import Solution

_FRICTION = ('viscous', 'coulomb')


@dataclass(frozen=True)
class Finding:
    """One number that was hidden.

    Attributes:
        name: such as 'payload mass', or 'FL_hip_joint viscous'.
        unit: of the numbers.
        urdf: what the URDF says.
        hidden: the truth.
        found: what identification says.
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
        """Whether the truth is in the interval."""
        return self.low <= self.hidden <= self.high


def payload_findings(secret: Secret, solution: Solution) -> list[Finding]:
    """Mass and place of the payload.

    The place is h / m, with the first moment h and the mass m that the trunk has more than its URDF. How much
    their errors depend on each other is not known here, so its interval is that of the worst case: |dp| <=
    (|dh| + |p| |dm|) / m.
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
            if not solution.free[i]:  # it was kept as the URDF says, and has no interval
                numbers = (solution.x[i], solution.x[i], solution.x[i])
            hidden = getattr(secret, kind)[j]
            values = (float(x) for x in (columns.prior[i], hidden, *numbers))
            findings.append(Finding(f'{joint} {kind}', columns.units[i], *values))
    return findings


def worst_error(findings: list[Finding]) -> float:
    """Largest |found / hidden - 1|."""
    return float(np.max([abs(one.found / one.hidden - 1.0) for one in findings]))
