# SPDX-License-Identifier: Apache-2.0
"""The equations of Alart and Curnier: their derivatives, and that solutions obey the laws of contact."""

from __future__ import annotations

import numpy as np
import pytest

from quad_dynamics.array_types import Floats
from quad_dynamics.kernels.contact import alart_curnier, natural_map

# Routines as plain Python: compiled, they can only be called from kernels.
alart_curnier_map = alart_curnier.alart_curnier.py_func
contact_residual = natural_map.contact_residual.py_func
D = 0.7  # 1/kg
MODES = ('open', 'sticking', 'sliding')


def equations(mu: float, p: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
    """F, K and Q as arrays."""
    F, K, Q = alart_curnier_map(D, mu, tuple(p), tuple(v))
    return np.array(F), np.reshape(K, (3, 3)), np.reshape(Q, (3, 3))


def solution(mode: str, mu: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Impulse and velocity of a contact that obeys Signorini's condition and Coulomb's law."""
    normal, angle, share, speed = rng.uniform(0.1, 2.0), rng.uniform(0.0, 6.28), rng.uniform(0.0, 0.9), 0.3
    direction = np.array([np.cos(angle), np.sin(angle)])
    if mode == 'open':
        return np.zeros(3), np.array([normal, *(speed * direction)])
    if mode == 'sticking':
        return np.array([normal, *(share * mu * normal * direction)]), np.zeros(3)
    return np.array([normal, *(mu * normal * direction)]), np.array([0.0, *(-speed * direction)])


def mode_of(mu: float, p: Floats, v: Floats) -> str:
    x, y = D * p[0] - v[0], np.linalg.norm(D * p[1:] - v[1:])
    if x <= 0.0:
        return 'open'
    return 'sticking' if y <= mu * x else 'sliding'


@pytest.mark.parametrize('seed', range(20), ids='seed{}'.format)
@pytest.mark.parametrize('mode', MODES)
def test_solutions_are_roots(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.1, 1.5)
    p, v = solution(mode, mu, rng)
    assert mode_of(mu, p, v) == mode
    np.testing.assert_allclose(equations(mu, p, v)[0], 0.0, atol=1e-15)  # rounding of numbers of 1
    assert contact_residual(tuple(p), tuple(v), D, mu, 1, False) < 1e-15


@pytest.mark.parametrize('seed', range(60), ids='seed{}'.format)
def test_roots_only_at_solutions(seed: int) -> None:
    """F vanishes nowhere else: it is at least a fraction of the residual of the natural map."""
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.1, 1.5)
    p, v = rng.normal(size=3), rng.normal(size=3)
    residual = contact_residual(tuple(p), tuple(v), D, mu, 1, False)
    assert np.linalg.norm(equations(mu, p, v)[0]) > 0.1 * residual > 0.0


@pytest.mark.parametrize('seed', range(20), ids='seed{}'.format)
@pytest.mark.parametrize('mode', MODES)
def test_roots_near_solutions_are_solutions(mode: str, seed: int) -> None:
    """Near a solution too, F is of the size of the residual of the natural map."""
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.1, 1.5)
    p, v = solution(mode, mu, rng)
    p, v = p + rng.normal(0.0, 1e-6, 3), v + rng.normal(0.0, 1e-6, 3)
    residual = contact_residual(tuple(p), tuple(v), D, mu, 1, False)
    assert np.linalg.norm(equations(mu, p, v)[0]) > 0.1 * residual > 0.0


@pytest.mark.parametrize('seed', range(60), ids='seed{}'.format)
def test_derivatives_are_those_of_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu, step = rng.uniform(0.1, 1.5), 1e-6
    p, v = rng.normal(size=3), rng.normal(size=3)
    _, K, Q = equations(mu, p, v)
    for k in range(3):
        change = step * np.eye(3)[k]
        for slopes, (above, below) in (
            (K, ((p + change, v), (p - change, v))),
            (Q, ((p, v + change), (p, v - change))),
        ):
            assert mode_of(mu, *above) == mode_of(mu, *below)  # not at a kink
            expected = (equations(mu, *above)[0] - equations(mu, *below)[0]) / (2.0 * step)
            # central differences: step^2, and rounding over step
            np.testing.assert_allclose(slopes[:, k], expected, atol=1e-8)
