# SPDX-License-Identifier: Apache-2.0
"""Other solutions of contact problems: Pinocchio's solvers, and a planar contact by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

_TIGHT = 1e-11  # of Pinocchio's solvers [N s, m/s]
_STEPS = 20_000


def solve_by_pinocchio(method: str, G: np.ndarray, free: np.ndarray, mu: float) -> np.ndarray:
    """(3 n,) impulses of n point contacts with v = free + G p, by Pinocchio's 'ADMM' or 'PGS'.

    Rows are two tangents and the normal of each contact. It solves the complementarity problem with the term
    of De Saxce, no convex relaxation. Whether it has converged is for the caller to find out.
    """
    settings: Any = getattr(pin, f'{method}SolverSettings')()
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = _TIGHT
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    settings.max_iterations, settings.solve_ncp = _STEPS, True
    contact = pin.PointContactConstraintModel(pin.buildSampleModelManipulator(), 1)
    contact.setFriction(mu)
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for _ in range(len(free) // 3):
        models.append(pin.ConstraintModel(contact))
        datas.append(models[-1].createData())
    result: Any = getattr(pin, f'{method}SolverResult')()
    solver: Any = getattr(pin, f'{method}ConstraintSolver')()
    solver.solve(pin.DelassusOperatorDense(G), free, models, datas, settings, result)
    return np.array(result.retrieveConstraintImpulses())


def planar_solutions(D: np.ndarray, free: np.ndarray, mu: float) -> dict[str, tuple[float, float]]:
    """All solutions (p_t, p_n) of one contact in a plane, by the name of what the contact does.

    Args:
        D: (2, 2) inverse inertia; tangent, then normal.
        free: (2,) velocity without an impulse, less its target.
        mu: friction.
    """
    (tt, tn), (_, nn) = D
    found = {}
    if free[1] >= 0.0:
        found['opens'] = (0.0, 0.0)
    p_t, p_n = np.linalg.solve(D, -free)
    if p_n >= 0.0 and abs(p_t) <= mu * p_n:
        found['sticks'] = (float(p_t), float(p_n))
    for name, sign in (('slides forwards', 1.0), ('slides backwards', -1.0)):
        stiff = nn - mu * sign * tn
        p_n = -free[1] / stiff
        speed = free[0] + (tn - mu * sign * tt) * p_n
        if p_n >= 0.0 and sign * speed >= 0.0:
            found[name] = (float(-mu * sign * p_n), float(p_n))
    return found
