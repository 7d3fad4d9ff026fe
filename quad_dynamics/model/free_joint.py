# SPDX-License-Identifier: Apache-2.0
"""The joint that declares a floating robot in a URDF: `world`, a `floating` joint, and the robot."""

from __future__ import annotations

from xml.etree.ElementTree import Element


def free_joint(root: Element) -> Element | None:
    """The floating joint that connects a robot to its world; None if there is none.

    The world is a root link without mass, collision shapes and other joints.
    """
    joints = root.findall('joint')
    floating = [joint for joint in joints if joint.get('type') == 'floating']
    if len(floating) != 1:
        return None
    world = linked(floating[0], 'parent')
    users = [joint for joint in joints if world in (linked(joint, 'parent'), linked(joint, 'child'))]
    links = [link for link in root.findall('link') if link.get('name') == world]
    bare = len(links) == 1 and links[0].find('inertial') is None and links[0].find('collision') is None
    return floating[0] if world and bare and users == floating else None


def linked(joint: Element, end: str) -> str:
    """Name of the link at an end of a joint, 'parent' or 'child'; '' if missing."""
    reference = joint.find(end)
    return '' if reference is None else reference.get('link', '')
