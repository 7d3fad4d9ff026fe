# SPDX-License-Identifier: Apache-2.0
"""Whether a motion that is played is accepted, followed, refused or interrupted."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from node_processes import Process, probe

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.excitation_bag import Trajectory, write_trajectory
from quad_dynamics.ros.motion import FollowedMotion
from quad_dynamics.ros.player import motion_namespace
from quad_dynamics.ros.subscriptions import Selection

ARM = Path(__file__).parents[2] / 'quad_dynamics' / 'robots' / 'two_link_arm' / 'two_link_arm.urdf'
READY = {'message': 'computed_torque hold', 'mode': 'computed_torque', 'phase': 'hold'}
FOLLOWS = {'message': 'computed_torque follow', 'mode': 'computed_torque', 'phase': 'follow'}


class Said:
    """What force_node says, as a test changes it."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def node(self, name: str) -> dict[str, str]:
        assert name == 'force_node'
        return self.values


@pytest.mark.parametrize(
    ('values', 'lacks'),
    [
        ({}, 'force_node does not report'),
        ({'message': 'compiling'}, 'force_node: compiling'),
        ({**READY, 'message': 'damping: no odom yet'}, 'force_node: damping: no odom yet'),
        ({**READY, 'mode': 'stand', 'message': 'stand hold'}, 'force_node is in mode stand; expected'),
        (READY, ''),
    ],
)
def test_what_is_lacking(values: dict[str, str], lacks: str) -> None:
    found = FollowedMotion(Said(**values)).lacks()
    assert found.startswith(lacks)
    assert bool(found) == bool(lacks)


def changes(said: Said, *later: dict[str, str]) -> None:
    """Let force_node say one thing after the other."""

    def change() -> None:
        for values in later:
            time.sleep(0.1)
            said.values = values

    threading.Thread(target=change, daemon=True).start()


def never() -> bool:
    return False


def test_it_waits_until_the_motion_is_over() -> None:
    said = Said(**READY)
    motion = FollowedMotion(said)
    motion.begin()
    begin = time.monotonic()
    changes(said, READY, FOLLOWS, FOLLOWS, READY)
    motion.wait(never)
    assert time.monotonic() - begin > 0.35


@pytest.mark.parametrize(
    ('later', 'message'),
    [
        (
            [{**READY, 'faults.bad_input': '3', 'last_fault': "joint_targets: unknown joint 'x'"}],
            "force_node rejected the trajectory: joint_targets: unknown joint 'x'",
        ),
        ([FOLLOWS, {'message': 'damping until ~/recover: fallen'}], 'the motion was interrupted: .*fallen'),
        ([FOLLOWS, {}], 'the motion was interrupted: force_node does not report'),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(later: list[dict[str, str]], message: str) -> None:
    said = Said(**READY, **{'faults.bad_input': '2'})
    motion = FollowedMotion(said)
    motion.begin()
    changes(said, *later)
    with pytest.raises(ArgumentError, match=message):
        motion.wait(never)


def test_another_mode_is_said_at_once() -> None:
    motion = FollowedMotion(Said(message='stand hold', mode='stand', phase='hold'))
    with pytest.raises(ArgumentError, match='force_node is in mode stand; expected computed_torque'):
        motion.wait_until_ready(60.0, never)
    with pytest.raises(
        ArgumentError, match=r'force_node is not ready .* after 0.1 s: force_node does not report'
    ):
        FollowedMotion(Said()).wait_until_ready(0.1, never)


@pytest.fixture
def motion(tmp_path: Path) -> Path:
    """Two joints that go up and down again, within three seconds."""
    time_ = np.linspace(0.5, 3.0, 26)
    s = np.pi * (time_ - 0.5) / 2.5
    w = np.pi / 2.5
    path = np.stack([0.2 * np.sin(s) ** 2] * 2, axis=1)
    speed = np.stack([0.2 * w * np.sin(2.0 * s)] * 2, axis=1)
    growth = np.stack([0.4 * w * w * np.cos(2.0 * s)] * 2, axis=1)
    write_trajectory(Trajectory(('joint1', 'joint2'), time_, path, speed, growth), tmp_path / 'motion')
    return tmp_path / 'motion'


def test_the_namespace_of_a_motion(motion: Path) -> None:
    assert motion_namespace(motion) == ''
    assert motion_namespace(motion, None, {'/joint_targets': '/r1/joint_targets'}) == 'r1'
    assert motion_namespace(motion, None, {'/joint_targets': '/r1/old_targets'}) is None
    assert motion_namespace(motion, Selection((), ('joint_targets',))) is None


@pytest.mark.realtime
def test_play_waits_for_the_nodes_and_for_the_end(ros_domain: int, motion: Path) -> None:
    """It is started first, and ends by itself when the robot has followed the motion."""
    with (
        Process('quad_dynamics', 'play', str(motion)) as player,
        Process('sim_node', robot=str(ARM)),
        Process('force_node', robot=str(ARM), mode='computed_torque'),
        probe() as listener,
    ):
        listener.until(lambda: player.process.poll() is not None, 'the end of the motion')
        code, text = player.stop()
        assert code == 0, text
        assert 'published 1 messages' in text
        assert 'the motion was followed to its end' in text
        assert listener.value('force_node', 'phase') == 'hold'
        assert int(listener.value('force_node', 'faults.bad_input') or 0) == 0


@pytest.mark.realtime
def test_play_says_what_is_refused(ros_domain: int, motion: Path) -> None:
    """A force_node that gets a trajectory in another mode, or of other joints."""

    def play(*options: str) -> tuple[int, str]:
        player = Process('quad_dynamics', 'play', str(motion), *options)
        listener.until(lambda: player.process.poll() is not None, 'an answer')
        return player.stop()

    quadruped = ARM.parents[1] / 'mini_cheetah' / 'mini_cheetah.urdf'
    with (
        Process('sim_node', robot=str(quadruped), initial_pose='standing'),
        Process('force_node', robot=str(quadruped), mode='computed_torque'),
        probe() as listener,
    ):
        code, text = play()
        assert code == 1, text
        assert "error: force_node rejected the trajectory: joint_targets: unknown joint 'joint1'" in text
        listener.set('force_node', 'mode', 'stand')
        code, text = play()
        assert code == 1, text
        assert 'error: force_node is in mode stand; expected computed_torque' in text
        code, text = play('--no-wait')
        assert code == 0, text
