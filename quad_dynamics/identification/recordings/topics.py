# SPDX-License-Identifier: Apache-2.0
"""Topics of a bag, and how their messages are interpreted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import nearest, param
from quad_dynamics.parameters.parameter_set import ParameterSet

ESTIMATES = ('contact', 'acceleration', 'base_acceleration')  # from the robot's own estimator
TOPICS = ('joint_states', 'odom', 'imu', 'foot_forces', 'joint_torques', 'joint_targets', *ESTIMATES)
WORLD_FRAMES = ('odom', 'world', 'map')  # frames with world axes
TORQUES = ('auto', 'effort', 'command')


@dataclass(frozen=True)
class Topics(ParameterSet):
    """Topics of a bag. Names are found with or without a leading '/', and in any single namespace."""

    joint_states: str = param('joint_states', 'sensor_msgs/JointState: position, velocity, effort')
    odom: str = param('odom', 'nav_msgs/Odometry of the base; empty: not used')
    imu: str = param('imu/data', 'sensor_msgs/Imu; used where there is no odometry; empty: not used')
    foot_forces: str = param(
        'foot_forces', 'prefix of geometry_msgs/WrenchStamped, <prefix>/<foot>; empty: not used'
    )
    joint_torques: str = param('joint_torques', 'sensor_msgs/JointState: commands to the drives')
    joint_targets: str = param('joint_targets', 'trajectory_msgs/JointTrajectory: targets of the drives')
    contact: str = param(
        'foot_contacts',
        'sensor_msgs/JointState with feet as names, or std_msgs/Float64MultiArray in the order of the feet: '
        '1 on the ground, 0 in the air; empty: not used',
    )
    acceleration: str = param(
        'joint_accelerations',
        'trajectory_msgs/JointTrajectory of one point, or sensor_msgs/JointState with one field: '
        'accelerations of the joints; empty: not used',
    )
    base_acceleration: str = param(
        'base_acceleration',
        'geometry_msgs/AccelStamped or AccelWithCovarianceStamped: acceleration of the base in its own axes, '
        'without gravity; empty: not used',
    )
    torque: str = param(
        'auto',
        'effort: as measured in joint_states; command: from commands and the gains of the drives; auto: '
        'effort where there is one',
        choices=TORQUES,
    )
    kp: tuple[float, ...] = param(
        (),
        'gain of the drives on positions: for each joint, or one for all; for torques from commands',
        kind='numbers',
        unit='N m/rad',
        low=0.0,
    )
    kd: tuple[float, ...] = param(
        (), 'gain of the drives on velocities, likewise', kind='numbers', unit='N m s/rad', low=0.0
    )
    effort_scale: tuple[float, ...] = param(
        (),
        'factor of measured efforts, for each joint, or one for all: -1 if they have the opposite sign, '
        'torque over current where they are currents',
        kind='numbers',
    )
    force_frame: str = param(
        '', "axes of foot forces: 'world', or the name of a link; empty: as the messages say"
    )
    required: tuple[str, ...] = param(
        (),
        'names of the topics above that a bag must have, such as odom; those with another name than the '
        'usual one are required anyway',
        kind='texts',
    )
    still: tuple[str, ...] = param(
        (),
        'joints that do not move and may be missing, such as those of a gripper; with * and ?',
        kind='texts',
    )

    def _across(self) -> list[str]:
        if 0.0 in self.effort_scale:
            return [f'effort_scale is {list(self.effort_scale)}; expected numbers other than 0']
        return []

    def is_required(self, name: str) -> bool:
        """Whether a bag must have a topic because it was given by name: 'odom', 'imu', 'foot_forces', ..."""
        topic = getattr(self, name)
        return bool(topic) and (name in self.required or topic != getattr(Topics(), name))

    @property
    def named(self) -> list[str]:
        """The required topics: 'odom', ..."""
        return [name for name in TOPICS if self.is_required(name)]

    def missing(self, joints: Sequence[str], present: Collection[str]) -> list[str]:
        """Joints that a recording lacks and that are not declared as still.

        Args:
            joints: names of all.
            present: names in the recording.

        Raises:
            ArgumentError: a pattern of `still` matches no joint.
        """
        still: set[str] = set()
        for word in self.still:
            found = [name for name in joints if fnmatchcase(name, word)]
            if not found:
                raise ArgumentError(f'still is {word!r}; expected a joint of {list(joints)}')
            still.update(found)
        return [name for name in joints if name not in present and name not in still]

    def of_joints(self, name: str, nj: int, default: float) -> list[float]:
        """Values of all joints: 'kp', 'kd' or 'effort_scale'.

        Args:
            name: which.
            nj: number of joints.
            default: if none were given.

        Raises:
            ArgumentError: the number of values differs from the number of joints.
        """
        given: tuple[float, ...] = getattr(self, name)
        if len(given) not in (0, 1, nj):
            raise ArgumentError(
                f'{name} has {len(given)} numbers; expected 1, or one for each of {nj} joints'
            )
        return list(given) if len(given) == nj else [given[0] if given else default] * nj


def lacking_joints(missing: Sequence[str], present: Collection[str], what: str = 'joints') -> str:
    """Error message about missing joints, or other names, with those that exist."""
    return (
        f'lacks the {what} {list(missing)}; it has {list(present)}. '
        'Joints that do not move, such as those of a gripper, may be missing if they are named by --still'
    )


def find_topic(wanted: str, present: Collection[str], namespace: str | None = None) -> str | None:
    """The name in the bag of a topic; None if the bag does not have it.

    Args:
        wanted: name, with or without a leading '/'.
        present: all names in the bag.
        namespace: that of joint_states, in which names without a leading '/' are searched first.

    Raises:
        ArgumentError: it exists in several namespaces.
    """
    if not wanted:
        return None
    name = wanted.strip('/')
    order = [f'/{name}', name]
    if namespace is not None and not wanted.startswith('/'):
        order.insert(0, f'{namespace}/{name}')
    for exact in order:
        if exact in present:
            return exact
    if wanted.startswith('/'):
        return None
    found = [topic for topic in present if topic.endswith(f'/{name}')]
    if not found:
        return None
    depth = min(topic.count('/') for topic in found)
    nearest_ones = sorted(topic for topic in found if topic.count('/') == depth)
    if len(nearest_ones) > 1:
        raise ArgumentError(
            f'topic {wanted!r} is there several times: {", ".join(nearest_ones)}; expected the full name of '
            'one'
        )
    return nearest_ones[0]


def namespace_of(topic: str, wanted: str) -> str:
    """The namespace of a full name, such as '/robot'; '' if there is none."""
    if wanted.startswith('/'):
        return str(PurePosixPath(topic).parent).rstrip('/')
    return topic[: len(topic) - len(wanted.strip('/'))].rstrip('/')


def missing_topic(wanted: str, kind: str, present: Mapping[str, str]) -> str:
    """Error message about a missing topic, with those that exist.

    Args:
        wanted: name.
        kind: type of its messages.
        present: types of the topics in the bag, by name.
    """
    names = {PurePosixPath(name).name: name for name in present}
    listed = ', '.join(f'{name} ({kind_})' for name, kind_ in sorted(present.items()))
    close = nearest(wanted, names) if wanted.count('/') < 2 else ''
    return f'has no topic {wanted!r}{close} of {kind}; it has {listed or "none"}'
