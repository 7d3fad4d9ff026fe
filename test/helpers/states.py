# SPDX-License-Identifier: Apache-2.0
"""Random states of a model, drawn from seeds."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_q(model: Any, rng: np.random.Generator) -> np.ndarray:
    """(nq,) any attitude, base within metres, joints within +-pi (limits are no part of the dynamics)."""
    joints = rng.uniform(-np.pi, np.pi, model.nj)
    if model.nq == model.nj:
        return joints
    quaternion = rng.normal(size=4)
    return np.concatenate([rng.uniform(-2.0, 2.0, 3), quaternion / np.linalg.norm(quaternion), joints])


def random_state(model: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, u, du) with velocities of a few and accelerations of tens per second."""
    rng = np.random.default_rng([seed, model.nv])
    return random_q(model, rng), rng.normal(scale=2.0, size=model.nv), rng.normal(scale=10.0, size=model.nv)


def random_wrenches(links: Any, seed: int, count: int = 4) -> dict[str, np.ndarray]:
    """World-frame wrenches on some links."""
    rng = np.random.default_rng([seed, len(links)])
    chosen = rng.choice(len(links), size=min(count, len(links)), replace=False)
    return {links[int(k)]: rng.normal(scale=20.0, size=6) for k in chosen}
