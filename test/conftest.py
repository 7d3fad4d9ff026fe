# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the dynamics tests share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slow_variants import slow_but

os.environ.setdefault('OMP_NUM_THREADS', '1')  # before numpy comes: threads of BLAS are in each other's way


@pytest.fixture(scope='session')
def qd() -> Any:
    """The library."""
    import quad_dynamics

    return quad_dynamics


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of identification without pictures, for tests of what they say: drawing takes a second."""
    from quad_dynamics.identification.report import html_report
    from quad_dynamics.identification.report.pictures import Picture

    names = ('torques', 'residuals', 'histograms', 'spectrum', 'joints', 'bodies', 'inertial')
    monkeypatch.setattr(html_report, 'make_pictures', lambda *_: dict.fromkeys(names, Picture('', '')))


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain that no other test uses at the same time; the environment keeps ROS on this machine."""
    pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed (x86-64 Linux only)')
    from quad_dynamics.ros.environment import loopback_settings

    # Above 101 the ports of a domain are those that the kernel gives to clients.
    for domain in range(50, 100):
        lock = (Path(tempfile.gettempdir()) / f'quad_dynamics_test_domain_{domain}').open('w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
        for name, value in loopback_settings(os.environ).items():
            monkeypatch.setenv(name, value)
        yield domain
        lock.close()
        return
    raise RuntimeError('all ROS domains from 50 to 99 are in use by other tests')


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over the state seeds 0 and 1 (slow), unless the test says otherwise."""
    if 'seed' in metafunc.fixturenames and not any(
        'seed' in mark.args[0] for mark in metafunc.definition.iter_markers('parametrize')
    ):
        metafunc.parametrize('seed', slow_but([0], [0, 1]), ids=['state0', 'state1'])
