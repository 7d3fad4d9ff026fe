# SPDX-License-Identifier: Apache-2.0
"""Watches whether force_node is ready for a trajectory, accepts it, and follows it to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from quad_dynamics.control.modes.names import COMPUTED_TORQUE
from quad_dynamics.errors import ArgumentError

TOPIC = 'joint_targets'
KIND = 'trajectory_msgs/msg/JointTrajectory'
_FOLLOWS = 'follow'  # phase of force_node while it follows a trajectory
# Longest time from publishing a trajectory until diagnostics show that it is followed [s].
_LONGEST_ANSWER = 10.0
_NAP = 0.02  # between two looks [s]


class Diagnosed(Protocol):
    """Knows the latest diagnostics of nodes, as `Status` does."""

    def node(self, name: str) -> dict[str, str]:
        """Values and `message` of a node; {} if it does not report."""


class FollowedMotion:
    """Watches the diagnostics of force_node while it follows a trajectory."""

    def __init__(self, status: Diagnosed) -> None:
        """Watch the force_node of `status`."""
        self._status = status
        self._refused = 0

    def lacks(self) -> str:
        """What is missing before force_node accepts a trajectory; '' if nothing is."""
        said = self._status.node('force_node')
        if not said:
            return 'force_node does not report'
        if said['message'].startswith('damping') or 'mode' not in said:
            return f'force_node: {said["message"]}'
        if said['mode'] != COMPUTED_TORQUE:
            return f'force_node is in mode {said["mode"]}; expected {COMPUTED_TORQUE}'
        return ''

    def wait_until_ready(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Wait until force_node would accept a trajectory.

        Args:
            seconds: longest wait [s].
            stop: whether to give up waiting.

        Raises:
            ArgumentError: it is not ready by then, or is in another mode.
        """
        deadline = time.monotonic() + seconds
        while (lacks := self.lacks()) and not stop():
            if self._status.node('force_node').get('mode', COMPUTED_TORQUE) != COMPUTED_TORQUE:
                raise ArgumentError(f'{lacks} to follow a motion')
            if time.monotonic() > deadline:
                raise ArgumentError(
                    f'force_node is not ready to follow the motion after {seconds:g} s: {lacks}'
                )
            time.sleep(_NAP)

    def begin(self) -> None:
        """Remember its state before the trajectory is published."""
        self._refused = self._count()

    def wait(self, stop: Callable[[], bool]) -> None:
        """Wait until the trajectory that was published since `begin` is accepted and has been followed.

        Args:
            stop: whether to give up waiting.

        Raises:
            ArgumentError: it was rejected, nobody followed it, or the robot was damped before its end.
        """
        deadline = time.monotonic() + _LONGEST_ANSWER
        while self._phase() != _FOLLOWS and not stop():
            if self._count() > self._refused:
                reason = self._status.node('force_node').get('last_fault', 'no reason given')
                raise ArgumentError(f'force_node rejected the trajectory: {reason}')
            if time.monotonic() > deadline:
                raise ArgumentError(f'force_node did not accept the trajectory within {_LONGEST_ANSWER:g} s')
            time.sleep(_NAP)
        while self._phase() == _FOLLOWS and not stop():
            time.sleep(_NAP)
        lacks = '' if stop() else self.lacks()
        if lacks:
            raise ArgumentError(f'the motion was interrupted: {lacks}')

    def _phase(self) -> str:
        said = self._status.node('force_node')
        return '' if said.get('message', '').startswith('damping') else said.get('phase', '')

    def _count(self) -> int:
        return int(self._status.node('force_node').get('faults.bad_input', 0))
