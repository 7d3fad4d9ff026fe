# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, with a real simulation behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quad_dynamics.array_types import Bytes

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')
pytest.importorskip('viser', reason='viser is not installed')
from chromium import Browser, find_chromium
from geometry_msgs.msg import Twist
from node_processes import Probe, Process, probe

from quad_dynamics.ros.qos import COMMAND

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.usefixtures('ros_domain'),
    pytest.mark.skipif(
        not find_chromium(), reason='no browser is found: neither chromium nor google-chrome is installed'
    ),
]

# Drawing without a GPU takes seconds, on a machine that does other things as well.
PATIENCE = 90.0
# A small page is drawn sooner.
SIZE = (1000, 600)
_PLOTS = "[...document.querySelectorAll('.uplot canvas')].map(canvas => canvas.toDataURL()).join()"


def until(look: Callable[[], Any], what: str, listener: Probe | None = None) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f'waited {PATIENCE:g} s for {what}'
        if listener is None:
            time.sleep(0.2)
        else:
            listener.listen(0.2)


def scene(browser: Browser) -> Bytes:
    """What is between the panels."""
    image = browser.screenshot()
    return image[200:, 360 : SIZE[0] - 330]


def dark_share(browser: Browser) -> float:
    """Share of pixels as dark as the legs of the robot; sky, ground and grid are light."""
    return float((scene(browser).max(axis=2) < 90).mean())


def test_robot_is_seen_and_buttons_act(tmp_path: Path) -> None:
    with Process('viewer_node', port=0) as viewer, probe() as listener, Browser(tmp_path, SIZE) as browser:
        assert viewer.process.stdout is not None
        address = viewer.process.stdout.readline().split()[1]
        browser.open(address)
        until(lambda: 'Reset' in browser.text(), 'the page')
        until(lambda: browser.evaluate('document.title') == 'quad_dynamics', 'the title')
        until(lambda: 'sim_node: no diagnostics yet' in browser.text(), 'the status')
        without = scene(browser)
        assert dark_share(browser) < 1e-3
        with Process('sim_node', initial_pose='standing'):
            until(lambda: 'real time' in browser.text(), 'the simulation')
            until(
                lambda: browser.evaluate('document.title').startswith('mini_cheetah'), 'the name of the robot'
            )
            until(lambda: dark_share(browser) > 0.005, 'the robot')
            # the light body is seen too: much more is different from before than what is dark
            difference = np.abs(scene(browser).astype(int) - without.astype(int)).max(axis=2)
            assert (difference > 25).mean() > 0.02
            _plots_move(browser)
            _buttons_act(browser, listener)
        until(lambda: 'no joint_states for' in browser.text(), 'that the simulation is gone')
        assert viewer.stop()[0] == 0
        until(lambda: 'Connection to viewer_node lost' in browser.text(), 'that the page says so')


def test_arrow_keys_drive(tmp_path: Path) -> None:
    with Process('viewer_node', port=0) as viewer, probe() as listener, Browser(tmp_path, SIZE) as browser:
        assert viewer.process.stdout is not None
        browser.open(viewer.process.stdout.readline().split()[1])
        until(lambda: 'Reset' in browser.text(), 'the page')
        twists: list[tuple[float, float, float]] = []
        listener.node.create_subscription(
            Twist, 'cmd_vel', lambda t: twists.append((t.linear.x, t.linear.y, t.angular.z)), COMMAND
        )
        until(lambda: 'Hold arrow keys to drive' in browser.text(), 'the walk controls', listener)
        until(lambda: browser.evaluate('window.quadDynamicsDrives'), 'the keys to drive', listener)
        # 30 % of the largest velocities
        for name, shift, expected in (
            ('ArrowUp', False, (0.3, 0.0, 0.0)),
            ('ArrowDown', False, (-0.3, 0.0, 0.0)),
            ('ArrowLeft', False, (0.0, 0.0, 0.3)),
            ('ArrowRight', True, (0.0, -0.15, 0.0)),
        ):
            browser.key(name, True, shift)
            until(lambda e=expected: twists and twists[-1] == pytest.approx(e), f'{name} to drive', listener)
            listener.listen(1.0)
            assert twists[-1] == pytest.approx(expected)  # for as long as it is held
            browser.key(name, False, shift)
            until(lambda: not any(twists[-1]), f'{name} to be released', listener)
        assert viewer.stop()[0] == 0


def _plots_move(browser: Browser) -> None:
    until(lambda: browser.evaluate("document.querySelectorAll('.uplot canvas').length") >= 3, 'plots')
    first = browser.evaluate(_PLOTS)
    until(lambda: browser.evaluate(_PLOTS) != first, 'plots to move')


def _buttons_act(browser: Browser, listener: Probe) -> None:
    until(lambda: listener.odom is not None, 'odom', listener)
    listener.listen(2.0)  # the robot sinks and lies still
    y = listener.odom.pose.pose.position.y
    browser.click('Push')
    until(lambda: listener.odom.pose.pose.position.y > y + 5e-4, 'the push to the left', listener)
    browser.click('Pause')
    until(lambda: listener.value('sim_node', 'paused') == 'True', 'the pause', listener)
    until(lambda: 'Resume' in browser.text(), 'the button to change')
    stamp = listener.states[-1][1]
    browser.click('Step')
    until(lambda: listener.states[-1][1] == stamp + 2_000_000, 'a step of one control period', listener)
    assert listener.height < 0.2
    browser.click('Reset')
    until(lambda: listener.height > 0.25, 'the robot to stand as at the beginning', listener)
    browser.click('Resume')
    until(lambda: listener.states[-1][1] > stamp + 100_000_000, 'time to go on', listener)
