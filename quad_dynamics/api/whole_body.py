# SPDX-License-Identifier: Apache-2.0
"""The kernels of whole-body control and their memory, made once for a robot (see `kernels/whole_body`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.controller import ControllerTerms
from quad_dynamics.api.validation import packed_form
from quad_dynamics.array_types import Floats
from quad_dynamics.compiler.interpreter import mark_unwritten
from quad_dynamics.compiler.records import Placement
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.whole_body.feet import foot_motions
from quad_dynamics.kernels.whole_body.priorities import next_level
from quad_dynamics.kernels.whole_body.records import (
    MOST_JOINTS,
    PYRAMID_ROWS,
    Feet,
    FootMotion,
    LegJoint,
    TaskLeg,
    WholeBody,
)
from quad_dynamics.kernels.whole_body.reduction import whole_body
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.model.model import Model

# Slices of the motion of a foot in `numbers`.
POSITION, VELOCITY = FootMotion.position.span, FootMotion.velocity.span
ANGULAR_VELOCITY = FootMotion.angular_velocity.span


class FootMotions:
    """Positions and velocities of all feet.

    Attributes:
        numbers: (legs, 9) of the last update: of each foot POSITION, VELOCITY and ANGULAR_VELOCITY, in world
            axes [m, m/s, rad/s].
        positions: (legs, 3) view of the positions.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._address, legs = model, packed_form(model).address, len(model.legs)
        placement = Placement(Feet, {'legs': legs})
        self._memory = np.zeros(placement.words)
        placement.fill(self._memory)
        _fill_spheres(model, placement.view(self._memory, 'spheres'))
        motions = placement.at['motions']
        self.numbers: Floats = self._memory[motions : motions + legs * FootMotion.words].reshape(legs, -1)
        self.positions: Floats = self.numbers[:, POSITION]

    def update(self, terms: ControllerTerms) -> None:
        """Compute them from `controller_terms` with the feet as frames."""
        foot_motions.run(self._address, len(self.numbers), terms, self._memory)


class WholeBodyProblem:
    """The problem of whole-body control: minimise z^T H z / 2 + c^T z with low <= C z <= high.

    z has three numbers per leg: the force on its foot in stance, in units of `body['unit']`, or the
    acceleration of its foot in swing. `kernels/whole_body/records.py` describes every field. All arrays are
    views of one memory.

    Attributes:
        body: view of the record `BodyTasks`; input: weights, unit, length and mu.
        com: (3,) desired acceleration of the centre of mass, input [m/s^2]; likewise angular (3,) [rad/s^2],
            and the matrices axes and R_WB (3, 3).
        down: (legs,) which feet are in stance, input; likewise their accelerations (legs, 3) [m/s^2],
            most_force (legs,) [N], and the preferred forces (legs, 3) [N].
        free: (nj,) desired joint accelerations in the null space of the feet, input [rad/s^2 or m/s^2].
        lowest: (nj,) minimum torques, input; likewise highest [N m or N].
        D: (nv, 3 legs) accelerations are D z + d; likewise d (nv,).
        C: (rows, 3 legs) inequalities; the first nj rows are those of the torques. Likewise their bounds low
            and high (rows,).
        H: (3 legs, 3 legs) cost; likewise c (3 legs,).
        z0: (3 legs,) preferred forces and accelerations of swing feet.
        jacobians: (legs, 3, nv) of the feet.
        inverses: for each leg (joints, 3): joint velocities per velocity of its foot.
        N: (3 legs, 3 legs) the level below has unknowns y, for z + N[:k]^T y.
        level_c: (3 legs,) gradient of its cost, whose Hessian is 1; k numbers are in use.
        level_low: (rows,) bounds of its inequalities; likewise level_high.
    """

    def __init__(self, model: Model, planar: Sequence[bool]) -> None:
        """Allocate the memory.

        Args:
            model: a robot with a floating base and legs.
            planar: which legs cannot move their foot in one direction.

        Raises:
            ArgumentError: a leg with too many joints.
        """
        self._model, self._address, legs = model, packed_form(model).address, len(model.legs)
        m, rows = 3 * legs, model.nj + PYRAMID_ROWS * legs
        sizes = {'legs': legs, 'nj': model.nj, 'nv': model.nv, 'm': m, 'm + 1': m + 1, '6 + m': 6 + m}
        sizes |= {'rows': rows, 'rows * m': rows * m}
        self._placement = Placement(WholeBody, sizes)
        self._memory = np.zeros(self._placement.words)
        mark_unwritten(self._memory[self._placement.at['jacobians'] :])
        self._placement.fill(self._memory)
        header = WholeBody.array(self._memory)[0]
        header['legs'] = legs
        self.body, leg = header['body'], self._view('leg')
        self.com, self.angular = self.body['com'], self.body['angular']
        self.axes, self.R_WB = self.body['axes'].reshape(3, 3), self.body['R_WB'].reshape(3, 3)
        self.down, self.accelerations = leg['down'], leg['acceleration']
        self.most_force, self.forces = leg['most_force'], leg['force']
        self.free, self.lowest, self.highest = (self._view(name) for name in ('free', 'lowest', 'highest'))
        self.D: Floats
        self.d: Floats
        self.D, self.d, self.C = self._view('D'), self._view('d'), self._view('C')
        self.low, self.high = self._view('low'), self._view('high')
        self.H, self.c, self.z0 = self._view('H'), self._view('c'), self._view('z0')
        self.N, self.level_c = self._view('N'), self._view('level_c')
        self._level_C = self._view('level_C')
        self.level_low, self.level_high = self._view('level_low'), self._view('level_high')
        self.jacobians: Floats = self._view('jacobians')
        self._fill_legs(leg, planar)

    def _view(self, name: str) -> Any:
        return self._placement.view(self._memory, name)

    def _fill_legs(self, table: npt.NDArray[Any], planar: Sequence[bool]) -> None:
        model, at = self._model, self._placement.at
        joints, legs = self._view('joints'), len(model.legs)
        _fill_spheres(model, table['foot'])
        table['planar'] = planar
        # a reference is relative to the beginning of its record
        own = at['leg'] + TaskLeg.words * np.arange(legs)
        table['joints'] = at['joints'] + LegJoint.words * MOST_JOINTS * np.arange(legs) - own
        table['jacobian'] = at['jacobians'] + 3 * model.nv * np.arange(legs) - own
        self.inverses: list[Floats] = []
        for k, leg in enumerate(model.legs):
            count = len(leg.joint_indices)
            if count > MOST_JOINTS:
                raise ArgumentError(f"leg '{leg.name}' has {count} joints; expected at most {MOST_JOINTS}")
            table['joint_count'][k] = count
            joints['index'][k, :count] = leg.joint_indices
            self.inverses.append(joints['inverse'][k, :count])

    def reduce(self, terms: ControllerTerms) -> int:
        """Compute D, d, C, low, high, H, c and z0 from the inputs.

        Args:
            terms: of the model, with the feet as frames.

        Returns:
            The number of rows of C in use; -1 if the equations of the base are singular.
        """
        return whole_body.run(self._address, len(self.down), terms, self._memory)

    def next_level(self, z: Floats, rows: int) -> tuple[int, Floats]:
        """The problem of the level below, which does not affect the tasks.

        Args:
            z: (3 legs,) solution of the level above.
            rows: number of rows of C in use.

        Returns:
            The number k of its unknowns, and its inequalities (rows, k).
        """
        k = next_level.run(self._address, len(self.down), rows, z, self._memory)
        return k, self._level_C[: rows * k].reshape(rows, k)


def _fill_spheres(model: Model, spheres: npt.NDArray[Any]) -> None:
    """Write the feet of all legs to records `FootSphere`."""
    for sphere, leg in zip(spheres, model.legs, strict=True):
        sphere['frame'] = model.foot_names.index(leg.foot)
        sphere['offset'], sphere['radius'] = contact_ball(model, leg.foot)
