# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion: positions, velocities, torques, distances; on feet also friction and balance.

Each limit is a number that is at most 0 if it is satisfied, and about 1 if it is clearly violated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quad_dynamics.api.centroidal import center_of_mass
from quad_dynamics.api.drives import gravity_norm, joint_friction, leg_length, motor_limits
from quad_dynamics.api.dynamics import inverse_dynamics
from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.identification.excitation.excitation_motion import HeldBase, Standing, States
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.excitation.excitation_shapes import Capsules
from quad_dynamics.identification.excitation.lifted import Lifted

LIFTED_FOOT = 'ground below a lifted foot'

_CLEARANCE = 0.05  # between links, relative to a leg's length or to the reach
_EDGE = 0.1  # distance from the ends of a joint's range, where guards begin to act [rad or m]
_UNLIMITED_SPEED = 3.0  # of joints without a limit [rad/s or m/s]
_UNLIMITED_TURN = np.pi  # range of joints without a limit, about the rest pose [rad or m]
_SLOW = 0.05  # below this speed Coulomb friction is smoothed [rad/s or m/s]
LEAST_LOAD = 0.3  # of a foot, relative to its share of the weight
_BALANCE = 0.15  # distance of the centre of mass from the edge of the feet, relative to a leg's length
_LEAST_STRETCH = 0.3  # of a leg: 1 in the standing pose, 0 for a straight leg
_MISS = 1e-6  # error of foot positions, relative to a leg's length
_NEAR = 0.15  # distance from a limit at which the barrier begins
_PAIRS = 60  # number of pairs in the search
_HALVINGS = 10  # steps of the bisection


class Limits:
    """All limits of a type of motion.

    Attributes:
        notes: assumptions.
        inside: distance of the centre of mass at rest from the edge of the support polygon [m].
        capsules: of the links.
        spare: extra ground clearance of a lifted foot, relative to the clearance.
    """

    def __init__(
        self,
        motion: HeldBase | Standing | Lifted,
        settings: ExcitationSettings,
        ground: float | None = None,
        load: float = LEAST_LOAD,
        capsules: Capsules | None = None,
    ) -> None:
        """Collect the limits.

        Args:
            motion: type of motion.
            settings: share of the limits, and friction.
            ground: height of a plane that must not be touched [m]; a standing robot has its own.
            load: smallest load of each foot on the ground, relative to its share of the weight.
            capsules: of the robot in its standing pose; None: they are computed.
        """
        self._motion, self._settings, self._load = motion, settings, load
        self.inside = self.spare = 0.0
        model = self._model = motion.model
        self.notes: list[str] = []
        own = motion.joints
        self._first = model.nv - model.nj
        # a lifted leg has the same limits as in the standing pose
        pose = motion.standing if isinstance(motion, Lifted) else motion.rest
        rest = pose[model.nq - model.nj :][own]
        self._low = self._finite(model.q_min[own], rest - _UNLIMITED_TURN, 'lower limits', 'half a turn')
        self._high = self._finite(model.q_max[own], rest + _UNLIMITED_TURN, 'upper limits', 'half a turn')
        self._range = np.maximum(self._high - self._low, 1e-3)
        edge = np.minimum(_EDGE, 0.05 * self._range)
        # a rest pose at the end of a range leaves no margin on that side, but is not an error
        self._low, self._high = np.minimum(self._low + edge, rest), np.maximum(self._high - edge, rest)
        self._speed = settings.share * self._finite(
            model.velocity_limit[own], np.full(len(own), _UNLIMITED_SPEED), 'velocity limits', '3 rad/s'
        )
        self._effort, self._stall, self._slope = (limit[own] for limit in motor_limits(model))
        if not np.isfinite(np.minimum(self._effort, self._stall)).all():
            self.notes.append('some joints have no effort limit: their torques were not limited')
        self._viscous, self._coulomb = (part[own] for part in joint_friction(model))
        self._length = leg_length(model)
        self._clearance = _CLEARANCE * self._length
        if not isinstance(motion, HeldBase):
            self._set_up_feet(motion)
            ground = 0.0
        elif ground is None:
            self.notes.append('no ground or table was looked at (--ground)')
        self.capsules = capsules or Capsules(model, motion.rest, self._clearance, ground)
        self._capsules = self.capsules
        if self.capsules.left_out:
            self.notes.append(
                f'overlap when resting, so they were not looked at: {"; ".join(self.capsules.left_out)}'
            )

    def _finite(self, given: Floats, instead: Floats, what: str, assumed: str) -> Floats:
        if not np.isfinite(given).all():
            self.notes.append(f'some joints have no {what}: {assumed} was assumed')
        return np.where(np.isfinite(given), given, instead)

    def _set_up_feet(self, motion: Standing | Lifted) -> None:
        feet = motion.support()
        self._weight = self._model.total_mass * gravity_norm(self._model) / len(feet)
        order = np.argsort(np.arctan2(*(feet - feet.mean(axis=0)).T[::-1]))
        corners = feet[order]
        along = np.roll(corners, -1, axis=0) - corners
        normal = np.stack([-along[:, 1], along[:, 0]], axis=1)
        self._normals = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        self._offsets = np.einsum('ij,ij->i', self._normals, corners)
        com = center_of_mass(self._model, motion.rest)[:2]
        self.inside = float((self._normals @ com - self._offsets).min())
        self._balance = min(_BALANCE * self._length, 0.5 * self.inside)
        self._moment = np.array([1.0, 1.0, 1.0, *([1.0 / self._length] * 3)])

    def focus(self, q: Floats) -> None:
        """From now on, check only the pairs of links that come closest to each other.

        Args:
            q: (n, nq) representative configurations.
        """
        self._capsules = self.capsules.nearest(q, _PAIRS)

    # ---------------------------------------------------------------- the limits

    def named(self, states: States) -> dict[str, Floats]:
        """(n, k) limits of each kind, by name; at most 0 if they are satisfied."""
        return self._of_pose(states) | self._of_motion(states)

    def _of_pose(self, states: States) -> dict[str, Floats]:
        """Limits of configurations."""
        motion, model = self._motion, self._model
        q = states.q[:, model.nq - model.nj :][:, motion.joints]
        near, low = self._capsules.gaps(states.q)
        found = {
            'position': np.maximum(q - self._high, self._low - q) / self._range,
            'self-collision': -near / self._clearance,
        }
        if low.shape[1]:
            found['ground'] = -low / self._clearance
        if not isinstance(motion, HeldBase):
            com = center_of_mass(model, states.q)[:, :2]
            found['balance'] = (self._balance - (com @ self._normals.T - self._offsets)) / self._length
            found['stretched leg'] = _LEAST_STRETCH - motion.stretch(states)
            found['foot place'] = states.miss[:, None] / _MISS - 1.0
        if isinstance(motion, Lifted):
            found[LIFTED_FOOT] = 1.0 + self.spare - motion.foot_height(states)[:, None] / self._clearance
        return found

    def _of_motion(self, states: States) -> dict[str, Floats]:
        """Limits of velocities and forces."""
        own, model = self._motion.joints, self._model
        qd = states.u[:, self._first :][:, own]
        found = {'velocity': np.abs(qd) / self._speed - 1.0}
        wanted = inverse_dynamics(model, states.q, states.u, states.du)
        if not isinstance(self._motion, HeldBase):
            wanted, on_feet = self._on_feet(states, wanted, self._motion.down)
            found |= on_feet
        tau = wanted[:, self._first :][:, own] + self._viscous * qd
        tau += self._coulomb * np.clip(qd / _SLOW, -1.0, 1.0)
        # back-EMF reduces the torque of a driving motor, and helps a braking one
        most = np.minimum(self._effort, self._stall - self._slope * np.sign(tau) * qd)
        most = np.where(np.isfinite(most), np.maximum(most, 1e-6), 1e300)
        found['torque'] = np.abs(tau) / (self._settings.share * most) - 1.0
        return found

    def _on_feet(self, states: States, wanted: Floats, down: Ints) -> tuple[Floats, dict[str, Floats]]:
        """M du + h minus the contribution of the feet, with minimal forces; and the limits of the feet."""
        J = states.contact
        A = np.swapaxes(J[:, :, :6], 1, 2) * self._moment[:, None]
        b = wanted[:, :6] * self._moment
        y = np.linalg.solve(A @ np.swapaxes(A, 1, 2), b[:, :, None])
        f = (np.swapaxes(A, 1, 2) @ y)[:, :, 0]
        force = f.reshape(len(f), -1, 3)[:, down]
        sideways = np.linalg.norm(force[:, :, :2], axis=2)
        limits = {
            'friction cone': (sideways - self._settings.mu * force[:, :, 2]) / self._weight,
            'foot load': self._load - force[:, :, 2] / self._weight,
        }
        return wanted - np.einsum('nkv,nk->nv', J, f), limits

    def barrier(self, states: States, pose: bool = True, least: float = 0.0) -> Floats:
        """(n,) barrier, which grows without bound towards the limits; 0 far from them, inf beyond them.

        Args:
            states: to evaluate.
            pose: whether to include limits of configurations.
            least: distance that must remain, relative to the width of the barrier.
        """
        total = np.zeros(len(states.q))
        for values in (self.named(states) if pose else self._of_motion(states)).values():
            left = np.minimum(-values / _NEAR, 1.0)
            inside = left > least
            part = left - 1.0 - np.log(np.where(inside, left, 1.0))
            total += np.where(inside, part, np.inf).sum(axis=1)
        return total

    def worst(self, states: States, but: str = '') -> tuple[str, float]:
        """Name and value of the limit that is violated most, or satisfied with the smallest margin.

        Args:
            states: to evaluate.
            but: name of a limit to ignore.
        """
        named = self.named(states)
        sizes = {name: float(values.max(initial=-1.0)) for name, values in named.items() if name != but}
        name = max(sizes, key=lambda key: sizes[key])
        return name, sizes[name]

    def largest_share(self, make: Callable[[float], States], most: float = 1.0) -> float:
        """The largest scale of a motion, up to `most`, that satisfies all limits; by bisection.

        Args:
            make: states for a scale.
            most: initial scale.
        """
        if self.worst(make(most))[1] <= 0.0:
            return most
        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.worst(make(middle))[1] <= 0.0 else (low, middle)
        return low
