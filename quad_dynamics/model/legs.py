# SPDX-License-Identifier: Apache-2.0
"""Finds feet and legs in the tree, if no robot description names them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.model.bodies import Pose
from quad_dynamics.model.topology import Topology

LEG_ORDER = ('FL', 'FR', 'RL', 'RR')

# Whole words only, so that 'console' is not a sole; foot and feet also as parts ('leftfoot').
_FOOT_NAME = re.compile(r'foot|feet|(?<![a-z])(?:toe|toes|sole|paw|hoof|tiptoe)(?![a-z])')
_LEG_NAME = re.compile(r'ankle|shank|calf|shin|(?<![a-z])(?:[lr]|lower)?leg(?![a-z])')
_NOT_A_LEG = re.compile(
    r'finger|thumb|palm|gripper|hand|wrist|elbow|(?<![a-z])arm(?![a-z])|prop|wing|rotor|head|camera'
)
_SENSOR_NAME = re.compile(r'imu|sensor|camera|force|rotor|(?<![a-z])ft(?![a-z])')
_FEWEST_NAMELESS_LEGS = 4


@dataclass(frozen=True)
class Leg:
    """A leg.

    Attributes:
        name: FL, FR, RL or RR on a quadruped, else the foot's name without the word for foot.
        joint_indices: into the model's joint_names, from the trunk to the foot.
        foot: name of the foot link.
    """

    name: str
    joint_indices: tuple[int, ...]
    foot: str

    @property
    def joints(self) -> slice | npt.NDArray[np.int64]:
        """Its joints as an index; a slice if they are consecutive, for which NumPy returns views."""
        first, last = self.joint_indices[0], self.joint_indices[-1]
        if self.joint_indices == tuple(range(first, last + 1)):
            return slice(first, last + 1)
        return np.array(self.joint_indices)


def says_foot(name: str) -> bool:
    """Whether the name of a link suggests a foot."""
    return _FOOT_NAME.search(_plain(name)) is not None


def find_feet(topology: Topology, poses: dict[str, Pose]) -> tuple[str, ...]:
    """Find the foot links, in document order of the legs.

    Links with foot-like names are feet. Otherwise, feet are the ends of limbs with leg-like names (two or
    more); else the ends of four or more unbranched limbs from the root with the same number of joints (at
    least two), unless their names suggest arms, fingers and the like.

    Args:
        topology: the tree.
        poses: pose of each link in its body.
    """
    links_of: dict[str, list[str]] = {}
    for link in topology.links:
        links_of.setdefault(topology.main_link[link], []).append(link)
    named = [main for main in links_of if main != topology.root and any(map(says_foot, links_of[main]))]
    above = {ancestor for main in named for ancestor in chain_to_root(topology, main)[:-1]}
    feet = [_foot_of(links_of[main], poses) for main in named if main not in above]
    if feet:
        return tuple(feet)
    tips = _leg_tips(topology, links_of) or _nameless_tips(topology)
    return tuple(_foot_of(links_of[tip], poses) for tip in tips)


def chain_to_root(topology: Topology, link: str) -> list[str]:
    """Child links of the movable joints from the root to the body of a link, in this order."""
    chain: list[str] = []
    main = topology.main_link[link]
    while main != topology.root:
        chain.append(main)
        main = topology.main_link[topology.parent_joint[main].parent]
    return chain[::-1]


def leg_chains(topology: Topology, feet: tuple[str, ...]) -> list[list[str]]:
    """For each foot the names of the joints that move only this foot, from the trunk to the foot.

    Joints that several feet share (a spine) belong to no leg.
    """
    chains = [chain_to_root(topology, foot) for foot in feet]
    users: dict[str, int] = {}
    for chain in chains:
        for main in chain:
            users[main] = users.get(main, 0) + 1
    return [[topology.parent_joint[main].name for main in chain if users[main] == 1] for chain in chains]


def quadruped_order(topology: Topology, zero: dict[str, Pose], chains: list[list[str]]) -> list[int] | None:
    """Order of the legs as FL, FR, RL, RR by the positions of their first joints; None if not a quadruped.

    Args:
        topology: the tree.
        zero: pose of each link in the root's frame with joints at zero.
        chains: result of `leg_chains`.
    """
    if len(chains) != 4 or not all(chains):
        return None
    child = {joint.name: link for link, joint in topology.parent_joint.items()}
    p = np.array([zero[child[chain[0]]].p for chain in chains])
    front, left = p[:, 0] > p[:, 0].mean(), p[:, 1] > p[:, 1].mean()
    corner = [2 * (not f) + (not s) for f, s in zip(front.tolist(), left.tolist(), strict=True)]
    if sorted(corner) != [0, 1, 2, 3]:
        return None
    return [corner.index(k) for k in range(4)]


def leg_name(foot: str) -> str:
    """Name of a leg from that of its foot: 'left_foot' gives 'left'."""
    rest = re.sub(r'(?i)foot|feet|toes?|sole|link', '', foot)
    return re.sub(r'([_\-. ])[_\-. ]+', r'\1', rest).strip('_- .') or foot


def ordered_joints(topology: Topology, chains: list[list[str]]) -> tuple[str, ...]:
    """Names of the movable joints: depth first, children in document order, legs in the order of `chains`.

    Only branches with legs are permuted; a head or an arm between them keeps its position.
    """
    rank = {joint: i for i, chain in enumerate(chains) for joint in chain}
    first_leg = _lowest_rank_below(topology, rank)
    names: list[str] = []
    stack = [topology.root]
    while stack:
        main = stack.pop()
        if main != topology.root:
            names.append(topology.parent_joint[main].name)
        branches = [joint.child for joint in topology.movable_below(main)]
        places = [i for i, branch in enumerate(branches) if branch in first_leg]
        for place, branch in zip(
            places, sorted((branches[i] for i in places), key=first_leg.__getitem__), strict=True
        ):
            branches[place] = branch
        stack.extend(reversed(branches))
    return tuple(names)


def _lowest_rank_below(topology: Topology, rank: dict[str, int]) -> dict[str, int]:
    """For each body with a leg in the branch that starts with it, the lowest leg number there."""
    lowest: dict[str, int] = {}
    for link in reversed(topology.links):
        joint = topology.parent_joint.get(link)
        if joint is None or not joint.is_movable:
            continue
        if joint.name in rank:
            lowest[link] = min(rank[joint.name], lowest.get(link, rank[joint.name]))
        parent = topology.main_link[joint.parent]
        if link in lowest and parent != topology.root:
            lowest[parent] = min(lowest[link], lowest.get(parent, lowest[link]))
    return lowest


def _leg_tips(topology: Topology, links_of: dict[str, list[str]]) -> list[str]:
    """Last bodies behind two or more joints, with a link named after a part of a leg."""
    tips = [
        main
        for main in links_of
        if not topology.movable_below(main) and len(chain_to_root(topology, main)) >= 2
    ]
    legs = [main for main in tips if any(_LEG_NAME.search(_plain(link)) for link in links_of[main])]
    return legs if len(legs) >= 2 else []


def _nameless_tips(topology: Topology) -> list[str]:
    """Last bodies of limbs that look like legs, regardless of names."""
    limbs: dict[int, list[str]] = {}
    for first in topology.movable_below(topology.root):
        chain = [first]
        below = topology.movable_below(first.child)
        while len(below) == 1:
            chain.append(below[0])
            below = topology.movable_below(below[0].child)
        names = [topology.root, *(name for joint in chain for name in (joint.name, joint.child))]
        words = ' '.join(map(_plain, names))
        if not below and len(chain) >= 2 and not _NOT_A_LEG.search(words):
            limbs.setdefault(len(chain), []).append(chain[-1].child)
    legs = [tips for tips in limbs.values() if len(tips) >= _FEWEST_NAMELESS_LEGS]
    return max(legs, key=len) if legs else []


def _foot_of(links: list[str], poses: dict[str, Pose]) -> str:
    """The foot among the links of a leg's last body (its main link first): by name, else the farthest."""
    candidates = [link for link in links if says_foot(link)] or links
    candidates = [link for link in candidates if not _SENSOR_NAME.search(_plain(link))] or candidates
    distances = [float(np.linalg.norm(poses[link].p)) for link in candidates]
    return candidates[int(np.argmax(distances))]


def _plain(name: str) -> str:
    """Lower case, with the words of CamelCase separated."""
    return re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()
