# SPDX-License-Identifier: Apache-2.0
"""Bodies that share packs: where each of them stands, and what the kernels find there."""

from __future__ import annotations

import numpy as np
import pytest

import quad_dynamics as qd
from quad_dynamics.array_types import Ints
from quad_dynamics.memory.lanes import LANES, assign_lanes, lonely_bodies, share_packs
from quad_dynamics.memory.layout import Body, MixedBody, Pack, Robot

LEGS = [-1, 0, 1, -1, 3, 4, -1, 6, 7, -1, 9, 10]


def random_parents(seed: int) -> Ints:
    """A random tree of 1 to 40 joints, numbered depth first."""
    rng = np.random.default_rng(seed)
    parents = [-1]
    for _ in range(rng.integers(40)):
        way = [len(parents) - 1]
        while way[-1] >= 0:
            way.append(parents[way[-1]])
        parents.append(way[min(rng.geometric(0.6) - 1, len(way) - 1)])
    return np.array(parents)


TREES = {
    'no joint': [],
    'one joint': [-1],
    'legs': LEGS,
    'legs and arm': [*LEGS, -1, *range(12, 18)],
    'arm before legs': [-1, 0, 1, 2, *(x + 4 if x >= 0 else x for x in LEGS)],
    'six legs': [x for leg in range(6) for x in (-1, 3 * leg, 3 * leg + 1)],
    'arm with fingers': [-1, 0, 1, *(x for k in range(3, 12, 3) for x in (2, k, k + 1))],
} | {f'random {seed}': random_parents(seed).tolist() for seed in range(40)}


@pytest.mark.parametrize('tree', TREES)
def test_every_body_has_its_place(tree: str) -> None:
    parents = np.array(TREES[tree], dtype=np.int64)
    lanes, above, n_aligned = share_packs(*assign_lanes(parents))
    assert len({(k, lane) for k, lane in lanes.tolist()}) == len(parents)
    for (k, lane), parent in zip(lanes.tolist(), parents, strict=True):
        assert k >= 1
        assert 0 <= lane < LANES
        if k < n_aligned:
            assert above[k] < k
            expected = (0, lane) if parent < 0 else tuple(lanes[parent])
            assert (above[k], lane) == expected
        elif parent >= 0:  # in an aligned pack, or further ahead among the mixed ones
            assert tuple(lanes[parent]) < (k, lane)
    mixed = int(np.sum(lanes[:, 0] >= n_aligned))
    assert mixed == lonely_bodies(parents)
    assert len(above) == n_aligned + -(-mixed // LANES)


def test_only_bodies_of_the_arm_share_packs() -> None:
    lanes, above, n_aligned = share_packs(*assign_lanes(np.array(TREES['legs and arm'])))
    assert (n_aligned, len(above)) == (4, 6)
    assert lanes[12:].tolist() == [[4, 0], [4, 1], [4, 2], [4, 3], [5, 0], [5, 1], [5, 2]]


def test_quadrupeds_have_one_form() -> None:
    model = qd.load_model('go2')
    assert model._mixed is model._packed
    assert model.with_gravity((0.0, 0.0, 0.0))._mixed is not model._mixed


def test_memory_of_mixed_packs() -> None:
    model = qd.load_model('two_link_arm')
    memory = model._mixed.arena
    robot = Robot.array(memory)[0]
    assert [robot[name] for name in ('n_packs', 'n_aligned', 'n_mixed')] == [2, 1, 2]
    assert [Robot.array(model._packed.arena)[0][name] for name in ('n_packs', 'n_aligned', 'n_mixed')] == [
        3,
        3,
        0,
    ]
    first = robot['packs'] + Pack.words
    for i, (body, carrier) in enumerate([(first, robot['packs']), (first + 1, first)]):
        at = robot['mixed'] + i * MixedBody.words
        one = MixedBody.array(memory, at)[0]
        assert (at + one['body'], at + one['carrier']) == (body, carrier)
    constants = Pack.array(memory, robot['packs'], 2).view(np.float64).reshape(2, -1)[:, : Body.qd.offset]
    before = constants.tobytes()
    rng = np.random.default_rng(0)
    q, u, du = rng.normal(size=(3, model.nv))
    qd.inverse_dynamics(model, q, u, du)
    qd.mass_matrix(model, q)
    qd.regressor(model, q, u, du, friction=True, rotors=True)
    assert constants.tobytes() == before
