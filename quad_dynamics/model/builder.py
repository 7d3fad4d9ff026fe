# SPDX-License-Identifier: Apache-2.0
"""Builds a Model from a parsed URDF and a robot description."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import (
    Pose,
    check_bodies,
    check_bodies_without_tree,
    merged_pi,
    pose_of,
    poses_at_zero,
    poses_in_bodies,
)
from quad_dynamics.model.definiteness import MassMatrix
from quad_dynamics.model.description import RobotDescription
from quad_dynamics.model.description_reader import read_description
from quad_dynamics.model.foot_ends import add_foot_links
from quad_dynamics.model.legs import (
    LEG_ORDER,
    Leg,
    find_feet,
    leg_chains,
    leg_name,
    ordered_joints,
    quadruped_order,
)
from quad_dynamics.model.link_inertias import (
    OddInertia,
    check_links,
    complain_of_odd_links,
    judge_odd_links,
)
from quad_dynamics.model.link_shapes import missing_meshes
from quad_dynamics.model.massless_limbs import hold_massless_limbs
from quad_dynamics.model.model import Frame, Model
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.rotors import rotor_arrays
from quad_dynamics.model.stance import find_contact_points, link_poses, standing_height
from quad_dynamics.model.topology import Topology, find_topology
from quad_dynamics.model.urdf import Joint, Urdf

_MISSING_MESHES = 'collision meshes were not found, so the contact geometry of their links is approximate: {}'
_FOOT_FROM = {
    'visual': 'feet without their own link and without readable collision geometry were placed at the '
    'end of visual geometry: {}',
    'inertia': 'feet without their own link and without readable geometry were placed at the end of a box '
    'with the inertia of the last link, which is a rough guess; name them in the robot description: {}',
}


def build_model(
    urdf: Urdf,
    problems: Problems,
    description_data: Mapping[str, Any] | None,
    floating_base: bool | None,
    gravity: Floats,
    strict: bool = False,
) -> Model:
    """Build the model.

    Args:
        urdf: the parsed file.
        problems: problems found while reading; new ones are added, and all are raised at the end.
        description_data: mapping of the robot description; None: derive everything from the tree.
        floating_base: None: as in the description, else robots with two or more feet float.
        gravity: (3,) [m/s^2].
        strict: treat warnings as errors.

    Raises:
        ModelError: lists every problem of the file and the description.
    """
    odd: dict[str, OddInertia] = {}
    faulty = check_links(urdf, odd, problems)
    description = read_description(description_data or {}, urdf, problems)
    topology = find_topology(urdf, problems)
    if topology is None:
        complain_of_odd_links(odd, problems)
        check_bodies_without_tree(urdf, faulty | set(odd), problems)
        problems.raise_errors(strict)
        raise AssertionError('a topology is missing only together with a problem')
    urdf, topology = hold_massless_limbs(urdf, topology, description, faulty, problems)
    build = _Build(urdf, topology, description, floating_base, problems)
    build.check_masses(faulty, odd)
    problems.raise_errors(strict)
    return build.model(gravity)


class _Build:
    """The steps of a build; each adds what the next ones need."""

    def __init__(
        self,
        urdf: Urdf,
        topology: Topology,
        description: RobotDescription,
        floating_base: bool | None,
        problems: Problems,
    ) -> None:
        self.urdf, self.problems = urdf, problems
        self.topology, description = self._feet(topology, description)
        topology = self.topology
        self.poses = poses_in_bodies(topology)
        self.description, self.chains = self._legs(description)
        if floating_base is None:
            floating_base = description.floating_base
        if floating_base is None and urdf.floating:
            floating_base = True
        self.floating = len(self.description.feet) >= 2 if floating_base is None else floating_base
        self.joints = self._order_joints()
        self.bodies = self._bodies()
        self.pi = merged_pi(urdf, topology, self.poses, self.bodies)
        if not self.joints and not self.floating:
            problems.error(
                'the robot has no movable joint and its base is fixed, so nothing can move; '
                'expected a movable joint, or floating_base=True (--floating-base)'
            )
        row = {main: i for i, main in enumerate(self.bodies)}
        self.body_of = {link: row.get(main, -1) for link, main in topology.main_link.items()}
        carrier = [self.body_of[joint.parent] for joint in self.joints]
        self.rotors = rotor_arrays(
            self.joints, self.description.rotors, self.poses, carrier, len(self.bodies), problems
        )
        self.standing = self._standing()

    # ---- steps

    def check_masses(self, faulty: set[str], odd: dict[str, OddInertia]) -> None:
        """Check that all moving bodies have valid masses."""
        faulty = faulty | judge_odd_links(odd, self.topology, self.bodies, self.pi, self.problems)
        thin = check_bodies(self.urdf, self.topology, self.bodies, self.pi, faulty, self.problems)
        if not thin:
            return
        matrix = MassMatrix(self.topology, self.joints, self.bodies, self.pi, self.floating)
        if not matrix.is_definite():
            for text in thin.values():
                self.problems.error(text)

    def _feet(self, topology: Topology, given: RobotDescription) -> tuple[Topology, RobotDescription]:
        """Add the feet to the description; legs without a foot link get one, also in the tree."""
        if given.contact_points_from_tree:
            for item in missing_meshes(self.urdf):
                self.problems.warn(_MISSING_MESHES, item)
        if not given.feet_from_tree:
            return topology, given
        poses = poses_in_bodies(topology)
        feet = find_feet(topology, poses)
        if not given.contact_points_from_tree:
            return topology, dataclasses.replace(given, feet=feet)
        topology, feet, ends = add_foot_links(self.urdf, topology, poses, feet)
        sources = {foot: end.source for foot, end in ends.items()}
        for foot, source in sources.items():
            if source != 'collision':
                self.problems.warn(_FOOT_FROM[source], foot)
        return topology, dataclasses.replace(given, feet=feet, foot_sources=sources)

    def _legs(self, given: RobotDescription) -> tuple[RobotDescription, list[list[str]]]:
        """Complete the description from the tree; also return the names of each leg's joints."""
        feet = given.feet
        chains = leg_chains(self.topology, feet)
        names = given.leg_names or tuple(leg_name(foot) for foot in feet)
        order = quadruped_order(self.topology, poses_at_zero(self.topology), chains)
        if order is not None and given.feet_from_tree:
            feet, chains, names = tuple(feet[i] for i in order), [chains[i] for i in order], LEG_ORDER
        elif order == [0, 1, 2, 3] and not given.leg_names:
            names = LEG_ORDER
        points = given.contact_points
        if given.contact_points_from_tree:
            legs = [(name, foot, len(chain)) for name, foot, chain in zip(names, feet, chains, strict=True)]
            points = find_contact_points(self.urdf, self.topology, self.poses, legs) if feet else ()
        return dataclasses.replace(given, feet=feet, leg_names=names, contact_points=points), chains

    def _order_joints(self) -> list[Joint]:
        by_name = {joint.name: joint for joint in self.urdf.joints}
        chains = self.chains if len(self.chains) == 4 or not self.description.feet_from_tree else []
        return [by_name[name] for name in ordered_joints(self.topology, chains)]

    def _bodies(self) -> tuple[str, ...]:
        moved = tuple(joint.child for joint in self.joints)
        return (self.topology.root, *moved) if self.floating else moved

    def _standing(self) -> Floats | None:
        """Standing pose (nq,) of the description; None if there is none."""
        wanted = self.description.standing
        feet = [point for point in self.description.contact_points if point.link in self.description.feet]
        if wanted is None:
            return None
        limits = {joint.name: _position_limits(joint) for joint in self.joints}
        positions = {name: min(max(0.0, low), high) for name, (low, high) in limits.items()}
        for name, position in wanted.joints.items():
            low, high = limits[name]
            if not low <= position <= high:
                self.problems.error(
                    f'quad_dynamics.standing.joints: {name} is {position:g}; '
                    f'expected a value within its limits {low:g} to {high:g}'
                )
            positions[name] = position
        angles = np.array([positions[joint.name] for joint in self.joints])
        if not self.floating:
            return angles
        height = wanted.base_height
        if height is None:
            points = feet or list(self.description.contact_points)
            height = standing_height(link_poses(self.topology, positions), points) if points else 0.0
        return np.concatenate([[0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0], angles])

    # ---- result

    def model(self, gravity: Floats) -> Model:
        joints, index = self.joints, {joint.name: i for i, joint in enumerate(self.joints)}
        origins = [self.poses[joint.parent] @ pose_of(joint.origin) for joint in joints]
        limits = np.array([_position_limits(joint) for joint in joints]).reshape(-1, 2)
        viscous = np.array([joint.damping for joint in joints])
        coulomb = np.array([joint.friction for joint in joints])
        pi = self.pi.ravel()
        legs = zip(self.description.leg_names, self.chains, self.description.feet, strict=True)
        return Model(
            name=self.urdf.name,
            floating_base=self.floating,
            joint_names=tuple(index),
            body_names=self.bodies,
            base_name=self.topology.root,
            parents=self._parents(index),
            joint_R=np.array([X.R for X in origins]).reshape(-1, 3, 3),
            joint_p=np.array([X.p for X in origins]).reshape(-1, 3),
            joint_axis=np.array([_unit(joint.axis) for joint in joints]).reshape(-1, 3),
            is_prismatic=np.array([joint.type == 'prismatic' for joint in joints], dtype=np.bool_),
            q_min=limits[:, 0].copy(),
            q_max=limits[:, 1].copy(),
            velocity_limit=np.array([_velocity_limit(joint) for joint in joints]),
            effort_limit=np.array([_effort_limit(joint) for joint in joints]),
            viscous=viscous,
            coulomb=coulomb,
            pi=pi,
            gravity=gravity,
            rotor_gear=self.rotors.gear,
            rotor_inertia=self.rotors.inertia,
            rotor_axis=self.rotors.axis,
            rotor_pi=self.rotors.pi,
            legs=tuple(Leg(name, tuple(index[j] for j in chain), foot) for name, chain, foot in legs),
            frames={link: _frame(link, self.body_of[link], self.poses[link]) for link in self.topology.links},
            description=self.description,
            described_standing=self.standing,
            warnings=self.problems.warnings,
            urdf=self.urdf,
            file_pi=pi,
            file_viscous=viscous,
            file_coulomb=coulomb,
        )

    def _parents(self, index: dict[str, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        above = [
            self.topology.parent_joint.get(self.topology.main_link[joint.parent]) for joint in self.joints
        ]
        return np.array([-1 if joint is None else index[joint.name] for joint in above], dtype=np.int64)


def _frame(name: str, body: int, X_BL: Pose) -> Frame:
    return Frame(name, body, X_BL.R.copy(), X_BL.p.copy())


def _position_limits(joint: Joint) -> tuple[float, float]:
    lower, upper = joint.limit.lower, joint.limit.upper
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _velocity_limit(joint: Joint) -> float:
    """A velocity limit; 0 means unknown: exporters write 0, and such a joint could not move."""
    return joint.limit.velocity or math.inf


def _effort_limit(joint: Joint) -> float:
    """An effort limit; 0 means unknown if the velocity limit is 0 too, else a joint without a motor."""
    effort = joint.limit.effort
    return math.inf if effort is None or (effort == 0.0 and joint.limit.velocity == 0.0) else effort


def _unit(axis: tuple[float, float, float]) -> Floats:
    vector = np.array(axis)
    length = float(np.linalg.norm(vector))
    # An axis whose norm is 1 up to rounding is not normalised: that would change it at each reload.
    return vector if abs(length - 1.0) < 1e-15 else vector / length
