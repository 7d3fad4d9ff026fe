# SPDX-License-Identifier: Apache-2.0
"""After a call that failed, a simulator is what it was."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import simple_robots as robots
from cases import load


@pytest.fixture
def sim(qd: Any) -> Any:
    made = qd.Simulator(robots.quadruped('mini_cheetah'), motor_limits=False)
    made.run(None, 0.1)
    return made


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper', 'none'])
def test_a_diverged_step_is_taken_back_as_a_whole(qd: Any, contact: str) -> None:
    model = robots.quadruped('mini_cheetah')
    sim, other = (qd.Simulator(model, contact=contact, motor_limits=False) for _ in range(2))
    for simulator in (sim, other):
        simulator.run(None, 0.1)
    before = sim.snapshot()
    with pytest.raises(qd.SimulationDiverged) as caught:
        sim.step(np.full(12, 1e300))
    assert np.array_equal(caught.value.q, other.q)
    assert np.isfinite(sim.contact_forces).all()
    assert sim.time == other.time
    sim.step(np.zeros(12))
    other.step(np.zeros(12))
    assert np.array_equal(sim.q, other.q)
    assert np.array_equal(sim.u, other.u)
    assert np.array_equal(sim.contact_forces, other.contact_forces)
    sim.restore(before)
    sim.step(np.zeros(12))
    assert np.array_equal(sim.q, other.q)


@pytest.mark.parametrize('every', [10**30, 0, -1, 2.0, True, None])
def test_bad_interval_of_the_log(qd: Any, sim: Any, every: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='log_every'):
        sim.run(None, 0.01, log_every=every)
    # the kernel must not write into memory that is no longer the log's
    mine = [np.zeros((1, 90)) for _ in range(200)]
    sim.step()
    assert not any(array.any() for array in mine)


def test_run_within_run_is_refused(qd: Any, sim: Any) -> None:
    def controller(simulator: Any) -> None:
        simulator.run(None, 0.01)

    with pytest.raises(qd.ArgumentError, match='run was called by the controller'):
        sim.run(controller, 0.1)
    assert len(sim.run(None, 0.05)) == 50


def test_controller_that_fails(sim: Any) -> None:
    def controller(simulator: Any) -> Any:
        if simulator.time > 0.12:
            raise KeyError('mine')
        return np.zeros(12)

    with pytest.raises(KeyError, match='mine'):
        sim.run(controller, 0.1)
    assert len(sim.run(None, 0.05)) == 50


def test_numbers_of_numpy_are_numbers(sim: Any) -> None:
    log = sim.run(None, np.float32(0.05), log_every=np.int64(5))
    assert len(log) == 10
    sim.apply_force('base_link', np.zeros(6), np.float32(0.1))


def test_a_log_too_long_for_the_memory(qd: Any, sim: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='larger log_every'):
        sim.run(None, 1e8)


def test_no_ground_below(qd: Any) -> None:
    """The robot stays at its own height, and falls."""
    model = robots.quadruped('mini_cheetah')
    sim = qd.Simulator(model, terrain=qd.Box((1.0, 1.0, 0.2), position=(3.0, 0.0, 0.0)))
    assert sim.q[2] == model.standing[2]
    sim.run(None, 0.1)
    assert sim.u[2] == pytest.approx(-0.981)


def test_a_start_in_a_wall_is_refused_by_reset_not_by_the_constructor(qd: Any) -> None:
    wall = {'shape': 'plane', 'normal': [-1.0, 0.0, 0.0], 'point': [0.1, 0.0, 0.0]}
    sim = qd.Simulator(robots.quadruped('mini_cheetah'), terrain=['flat', wall])
    with pytest.raises(qd.ArgumentError, match='into the ground'):
        sim.reset()
    q = sim.q
    q[0] = -1.0
    sim.reset(q)
    sim.step()


@pytest.mark.parametrize('duplicate', [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copies(sim: Any, duplicate: Any) -> None:
    with pytest.raises(TypeError, match='snapshot'):
        duplicate(sim)


def test_masked_torques(qd: Any, sim: Any) -> None:
    with pytest.raises(qd.ArgumentError, match='tau has masked values'):
        sim.step(np.ma.masked_array(np.zeros(12), mask=[True] + 11 * [False]))


def test_snapshot_of_a_robot_with_other_limits(qd: Any) -> None:
    text = robots.quadruped('mini_cheetah').to_urdf()
    one, other = (load(t, floating_base=True) for t in (text, text.replace('effort="18', 'effort="17')))
    assert not np.array_equal(one.effort_limit, other.effort_limit)
    with pytest.raises(qd.ArgumentError, match='another robot'):
        qd.Simulator(other).restore(qd.Simulator(one).snapshot())
