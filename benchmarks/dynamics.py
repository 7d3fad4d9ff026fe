# SPDX-License-Identifier: Apache-2.0
"""Our dynamics against Pinocchio's, both called from Python; the main functions also against its C++.

The go2 is a quadruped; the B1 has a Z1 on its back, an arm with seven joints that belong to no leg.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import quad_dynamics as qd
from benchmarks import controller_calls, pinocchio_cpp
from benchmarks.timing import Calls, Contest
from quad_dynamics.array_types import Floats

ROBOTS = Path(pin.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
GO2 = ROBOTS / 'go2_description' / 'urdf' / 'go2.urdf'
B1_Z1 = ROBOTS / 'b1_description' / 'urdf' / 'b1-z1.urdf'

# Both sides iterate over the same states, so that no call repeats the previous one.
STATES = 200


def controller_contests() -> list[Contest]:
    """Calls of a controller; timed separately, because more data would compete for the caches."""
    return controller_calls.contests(*load())


def contests() -> list[Contest]:
    """Every function that Pinocchio has too: one state per call, then batches."""
    model, peer, (q, u, x) = load()
    data, foot = peer.createData(), peer.getFrameId('FL_foot')
    contest = contest_maker(model, peer)

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


def arm_contests() -> list[Contest]:
    """The main functions on a quadruped with an arm."""
    model, peer, (q, u, x) = load(B1_Z1)
    contest = contest_maker(model, peer)
    return [
        contest('aba_arm', qd.forward_dynamics, pin.aba, q, u, x),
        contest('rnea_arm', qd.inverse_dynamics, pin.rnea, q, u, x),
        contest('crba_arm', qd.mass_matrix, pin.crba, q),
        contest('regressor_arm', qd.regressor, pin.computeJointTorqueRegressor, q, u, x),
    ]


def contest_maker(model: qd.Model, peer: Any) -> Callable[..., Contest]:
    """A function that makes contests from (name, our function, Pinocchio's, arrays of arguments)."""
    data = peer.createData()

    def contest(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: Any) -> Contest:
        states = list(zip(*arrays, strict=True))
        return Contest(
            name,
            Calls(ours, [(model, *state) for state in states]),
            Calls(theirs, [(peer, data, *state) for state in states]),
        )

    return contest


def cpp_times(rounds: int) -> dict[str, float]:
    """Time of Pinocchio's functions called from C++ [ns], by the names of the contests.

    Raises:
        NotMeasuredError: the program cannot be compiled, or fails.
    """
    programs = pinocchio_cpp.Programs()
    times: dict[str, float] = {}
    for urdf, ending in ((GO2, ''), (B1_Z1, '_arm')):
        _, peer, states = load(urdf)
        measured = programs.measure(peer, states, rounds)
        times |= {f'{name}{ending}': ns for name, ns in measured.items()}
    return times


def load(urdf: Path = GO2) -> tuple[qd.Model, Any, tuple[Floats, Floats, Floats]]:
    """The robot, its Pinocchio model, and states: q, u, and accelerations or forces."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model(urdf)
    peer = pin.buildModelFromUrdf(str(urdf), pin.JointModelFreeFlyer())
    rng = np.random.default_rng(0)
    q = qd.random_configuration(model, rng, STATES)
    u, x = rng.normal(size=(2, STATES, model.nv))
    return model, peer, (q, u, x)
