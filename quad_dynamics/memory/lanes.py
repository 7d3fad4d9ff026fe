# SPDX-License-Identifier: Apache-2.0
"""Assigns bodies to packs and lanes (see `quad_dynamics.memory.layout`)."""

from __future__ import annotations

import numpy as np

from quad_dynamics.array_types import Ints
from quad_dynamics.compiler.types import LANES


def assign_lanes(parents: Ints) -> tuple[Ints, Ints]:
    """Assign a pack and a lane to each joint's body.

    A child keeps the lane of its parent; a second child of the same parent opens another pack. The children
    of the base, which is in all lanes, take the lanes in turn.

    Args:
        parents: (nj,) index of the parent joint, -1 for the base; a parent comes before its children.

    Returns:
        (nj, 2) pack and lane of each joint's body, and (packs,) the parent pack of each pack (0 for pack 0).
    """
    parent_packs = [0]
    taken: list[set[int]] = [set(range(LANES))]
    below: dict[int, list[int]] = {}
    lanes = np.zeros((len(parents), 2), dtype=np.int64)
    for joint, parent in enumerate(parents):
        above = 0 if parent < 0 else int(lanes[parent, 0])
        wanted = range(LANES) if parent < 0 else [int(lanes[parent, 1])]
        places = [(k, lane) for k in below.setdefault(above, []) for lane in wanted if lane not in taken[k]]
        if not places:
            places = [(len(parent_packs), wanted[0])]
            below[above].append(len(parent_packs))
            parent_packs.append(above)
            taken.append(set())
        lanes[joint] = places[0]
        taken[places[0][0]].add(places[0][1])
    return lanes, np.array(parent_packs, dtype=np.int64)


def share_packs(lanes: Ints, parent_packs: Ints) -> tuple[Ints, Ints, int]:
    """Combine bodies that are alone in their packs into shared packs, in the order of their joints.

    The parents of a pack with two or more bodies are in a pack of the same kind: its bodies are in different
    lanes, so they have different parents, or the base as parent. All such packs can therefore precede the
    shared ones.

    Args:
        lanes: (nj, 2) pack and lane of each joint's body, from `assign_lanes`.
        parent_packs: (packs,) the parent pack of each pack, from `assign_lanes`.

    Returns:
        The same with shared packs at the end, whose parent is given as pack 0, and the number of packs before
        them.
    """
    counts = np.bincount(lanes[:, 0], minlength=len(parent_packs))
    kept = np.flatnonzero(counts != 1)  # including pack 0: the base is not the body of a joint
    new = np.zeros(len(parent_packs), dtype=np.int64)
    new[kept] = np.arange(len(kept))
    alone = np.flatnonzero(counts[lanes[:, 0]] == 1)
    shared = np.column_stack([new[lanes[:, 0]], lanes[:, 1]])
    order = np.arange(len(alone))
    shared[alone] = np.column_stack([len(kept) + order // LANES, order % LANES])
    more = -(-len(alone) // LANES)
    parents: Ints = np.concatenate([new[parent_packs[kept]], np.zeros(more, dtype=np.int64)])
    return shared, parents, len(kept)


def lonely_bodies(parents: Ints) -> int:
    """Number of bodies that `assign_lanes` leaves alone in their packs."""
    lanes, parent_packs = assign_lanes(parents)
    return int(np.sum(np.bincount(lanes[:, 0], minlength=len(parent_packs)) == 1))


def subtree_sizes(parents: Ints) -> Ints:
    """Number of joints that each joint moves, itself included.

    The kernels rely on these being consecutive, as they are when the joints are numbered depth first (see
    `model_checks`).
    """
    sizes = np.ones(len(parents), dtype=np.int64)
    for joint in reversed(range(len(parents))):
        if parents[joint] >= 0:
            sizes[parents[joint]] += sizes[joint]
    return sizes
