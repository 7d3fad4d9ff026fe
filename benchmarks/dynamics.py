# SPDX-License-Identifier: Apache-2.0
"""Our dynamics against Pinocchio's on the go2, both called from Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import quad_dynamics as qd
from benchmarks import controller_calls
from benchmarks.timing import Calls, Contest
from quad_dynamics.array_types import Floats

ROBOTS = Path(pin.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
GO2 = ROBOTS / 'go2_description' / 'urdf' / 'go2.urdf'

# Both sides walk through the same states, so that neither computes what it has just computed.
STATES = 200


def controller_contests() -> list[Contest]:
    """What a controller calls; timed apart, for more data would leave less of the caches to each function."""
    return controller_calls.contests(*load())


def contests() -> list[Contest]:
    """Every function that Pinocchio has too: one state a call, then batches."""
    model, peer, (q, u, x) = load()
    data, foot = peer.createData(), peer.getFrameId('FL_foot')

    def contest(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: Any) -> Contest:
        states = list(zip(*arrays, strict=True))
        return Contest(
            name,
            Calls(ours, [(model, *state) for state in states]),
            Calls(theirs, [(peer, data, *state) for state in states]),
        )

    def batch(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: Any) -> Contest:
        one_by_one = contest(name, ours, theirs, *arrays)
        return Contest(name, Calls(ours, [(model, *arrays)], STATES), one_by_one.peer)

    jacobian = Contest(
        'frame_jacobian',
        Calls(qd.frame_jacobian, [(model, one, 'FL_foot') for one in q]),
        Calls(pin.computeFrameJacobian, [(peer, data, one, foot, pin.LOCAL_WORLD_ALIGNED) for one in q]),
    )
    return [
        contest('aba', qd.forward_dynamics, pin.aba, q, u, x),
        contest('rnea', qd.inverse_dynamics, pin.rnea, q, u, x),
        contest('crba', qd.mass_matrix, pin.crba, q),
        contest('coriolis', qd.coriolis_matrix, pin.computeCoriolisMatrix, q, u),
        contest('regressor', qd.regressor, pin.computeJointTorqueRegressor, q, u, x),
        contest('nonlinear_effects', qd.nonlinear_effects, pin.nonLinearEffects, q, u),
        contest('gravity', qd.gravity, pin.computeGeneralizedGravity, q),
        jacobian,
        contest('center_of_mass', qd.center_of_mass, pin.centerOfMass, q),
        contest('centroidal_matrix', qd.centroidal_momentum_matrix, pin.computeCentroidalMap, q),
        batch('aba_batch', qd.forward_dynamics, pin.aba, q, u, x),
        batch('rnea_batch', qd.inverse_dynamics, pin.rnea, q, u, x),
        batch('crba_batch', qd.mass_matrix, pin.crba, q),
    ]


def load() -> tuple[qd.Model, Any, tuple[Floats, Floats, Floats]]:
    """The robot, the same in Pinocchio, and states: q, u, and accelerations or forces."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model(GO2)
    peer = pin.buildModelFromUrdf(str(GO2), pin.JointModelFreeFlyer())
    rng = np.random.default_rng(0)
    q = qd.random_configuration(model, rng, STATES)
    u, x = rng.normal(size=(2, STATES, model.nv))
    return model, peer, (q, u, x)
