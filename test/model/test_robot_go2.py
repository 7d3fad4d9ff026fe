# SPDX-License-Identifier: Apache-2.0
"""The bundled go2 against the published file, through Pinocchio; it stands up and trots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load, model_of, pinocchio_of
from closeness import assert_close
from control_loop import drive, lying_simulator, state_of

import quad_dynamics as qd
from quad_dynamics.control.guard import Guard, base_tilt
from quad_dynamics.control.stand import StandUp
from quad_dynamics.model.standing_checks import contact_doubts
from quad_dynamics.simulation.gaits import Trot
from quad_dynamics.simulation.simulator import Simulator

PUBLISHED = Case('go2', True)


@pytest.fixture(scope='module')
def model() -> Any:
    return load('go2')


def test_nothing_is_doubtful(model: Any) -> None:
    assert model.warnings == ()
    assert contact_doubts(model) == ()
    assert all(shape.geometry.kind != 'mesh' for link in model.urdf.links for shape in link.visuals)


def test_total_mass(model: Any) -> None:
    reference = pinocchio_of(PUBLISHED)
    mass = reference.mass_matrix(model.standing)[0, 0]
    assert model.total_mass == pytest.approx(mass, rel=1e-12)  # a sum of 26 numbers
    assert model.total_mass == pytest.approx(16.085, abs=1e-9)


@pytest.mark.parametrize('seed', range(5), ids=lambda seed: f'seed{seed}')
def test_dynamics_are_those_of_the_published_robot(model: Any, seed: int) -> None:
    rng, reference = np.random.default_rng(seed), pinocchio_of(PUBLISHED)
    q = qd.random_configuration(model, rng)
    u, du = rng.normal(size=18), rng.normal(size=18)
    assert_close(qd.mass_matrix(model, q), reference.mass_matrix(q))
    assert_close(qd.inverse_dynamics(model, q, u, du), reference.inverse_dynamics(q, u, du))
    for foot in model.foot_names:
        assert_close(qd.frame_pose(model, q, foot)[1], reference.frame_pose(q, foot)[1])


def test_joints_are_those_of_the_published_robot(model: Any) -> None:
    other = model_of(PUBLISHED)
    assert model.joint_names == other.joint_names
    assert [leg.name for leg in model.legs] == ['FL', 'FR', 'RL', 'RR']
    for name in ('q_min', 'q_max', 'velocity_limit', 'effort_limit'):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name), err_msg=name)


def test_gets_up(model: Any) -> None:
    sim = lying_simulator(model)
    law = StandUp(model)
    law.start(state_of(sim, noisy=True))
    log = drive(sim, law, 3.0, noisy=True, guard=Guard(model))
    assert law.finished
    assert base_tilt(sim.q) < 0.01
    assert sim.q[2] == pytest.approx(model.standing[2], abs=5e-3)
    force = log['foot_forces'][-200:, :, 2].mean(axis=0).sum()
    assert force == pytest.approx(9.81 * model.total_mass, rel=0.01)


def test_trots(model: Any) -> None:
    sim = Simulator(model)
    log = sim.run(Trot(model), 3.0, progress=False)
    assert np.abs(log.q[:, 2] - model.standing[2]).max() < 0.02
    assert max(base_tilt(q) for q in log.q[::20]) < np.radians(5.0)
    in_the_air = (log.foot_forces[:, :, 2] == 0.0).mean(axis=0)
    assert (in_the_air > 0.2).all()  # every foot steps
