# SPDX-License-Identifier: Apache-2.0
"""The tree of links and joints: its validation, and which links move together.

Nothing here is recursive, so a chain of thousands of links does not exhaust Python's stack.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from quad_dynamics.model.problems import Problems
from quad_dynamics.model.urdf import Joint, Urdf

_MOST_SHOWN = 10
# Limits of the search for similar names: number of problems, number of links, length of names.
_MOST_SEARCHES, _MOST_LINKS, _LONGEST_NAME = 5, 300, 60


@dataclass(frozen=True)
class Topology:
    """A valid tree.

    Attributes:
        root: name of the root link.
        parent_joint: for each link but the root, the joint above it.
        child_joints: for each link, the joints below it, in document order.
        main_link: for each link, the main link of its body: the root, or the child of the movable joint
            above.
        links: names of all links, a parent before its children.
        position: index of each joint in the document.
    """

    root: str
    parent_joint: dict[str, Joint]
    child_joints: dict[str, list[Joint]]
    main_link: dict[str, str]
    links: tuple[str, ...]
    position: dict[str, int]

    def movable_below(self, main: str) -> list[Joint]:
        """Movable joints that start at any link of a body, in document order."""
        found: list[Joint] = []
        stack = [main]
        while stack:
            for joint in self.child_joints[stack.pop()]:
                if joint.is_movable:
                    found.append(joint)
                else:
                    stack.append(joint.child)
        return sorted(found, key=lambda joint: self.position[joint.name])


def find_topology(urdf: Urdf, problems: Problems) -> Topology | None:
    """Check that links and joints form one tree; None (with the problems added) if they do not."""
    n_errors = problems.n_errors
    names = {link.name for link in urdf.links}
    usable = [joint for joint in urdf.joints if _ends_exist(joint, names, problems)]
    parent_joint = _unique_parents(usable, problems)
    child_joints: dict[str, list[Joint]] = {link.name: [] for link in urdf.links}
    for joint in usable:
        child_joints[joint.parent].append(joint)
    _check_loops(parent_joint, problems)
    roots = [link.name for link in urdf.links if link.name and link.name not in parent_joint]
    all_usable = len(usable) == len(urdf.joints)
    if len(set(roots)) > 1 and all_usable:  # an unusable joint leaves its child without a parent
        shown = ', '.join(f"'{name}'" for name in roots[:10])
        problems.error(
            f'the robot has {len(roots)} root links (not the child of any joint): {shown}; expected one'
        )
    duplicates = len(names) < len(urdf.links) or len({joint.name for joint in urdf.joints}) < len(urdf.joints)
    if problems.n_errors > n_errors or '' in names or duplicates or not all_usable or not roots:
        return None
    return _walk(roots[0], parent_joint, child_joints, {joint.name: i for i, joint in enumerate(urdf.joints)})


def _ends_exist(joint: Joint, names: set[str], problems: Problems) -> bool:
    good = True
    for role, link in (('parent', joint.parent), ('child', joint.child)):
        if link and link not in names:
            problems.error(
                f"joint '{joint.name}' (line {joint.line}): {role} link '{link}' does not exist; "
                f'{_known_links(link, names, problems.n_errors < _MOST_SEARCHES)}'
            )
        good = good and link in names
    return good


def _known_links(wrong: str, names: set[str], search: bool) -> str:
    """The most similar link, or some of the existing ones."""
    known = sorted(name for name in names if name)
    short = [name for name in known[:_MOST_LINKS] if len(name) <= _LONGEST_NAME]
    near = difflib.get_close_matches(wrong, short, 1) if search and len(wrong) <= _LONGEST_NAME else []
    if near:
        return f"did you mean '{near[0]}'?"
    more = ', ...' if len(known) > _MOST_SHOWN else ''
    return f'the robot has: {", ".join(known[:_MOST_SHOWN])}{more}'


def _unique_parents(joints: list[Joint], problems: Problems) -> dict[str, Joint]:
    parent_joint: dict[str, Joint] = {}
    for joint in joints:
        first = parent_joint.setdefault(joint.child, joint)
        if first is not joint:
            problems.error(
                f"link '{joint.child}' is the child of two joints, '{first.name}' and '{joint.name}'; "
                'expected one (closed loops are not supported)'
            )
    return parent_joint


def _check_loops(parent_joint: dict[str, Joint], problems: Problems) -> None:
    """Follow the parents upwards from each link; a link that is visited twice is in a loop."""
    finished: set[str] = set()
    for start in parent_joint:
        path: list[str] = []
        on_path: set[str] = set()
        link = start
        while link in parent_joint and link not in finished and link not in on_path:
            path.append(link)
            on_path.add(link)
            link = parent_joint[link].parent
        if link in on_path:
            loop = path[path.index(link) :]
            shown = ' -> '.join(f"'{name}'" for name in reversed([*loop[:10], link]))
            problems.error(f'the links form a loop: {shown}; expected a tree')
        finished.update(path)


def _walk(
    root: str, parent_joint: dict[str, Joint], child_joints: dict[str, list[Joint]], position: dict[str, int]
) -> Topology:
    main_link = {root: root}
    order: list[str] = []
    stack = [root]
    while stack:
        link = stack.pop()
        order.append(link)
        for joint in reversed(child_joints[link]):
            main_link[joint.child] = joint.child if joint.is_movable else main_link[link]
            stack.append(joint.child)
    return Topology(root, parent_joint, child_joints, main_link, tuple(order), position)
