# SPDX-License-Identifier: Apache-2.0
"""Drives and sensors as robots have them: nonlinear friction, wrong torque constants, encoders."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quad_dynamics.array_types import Floats

FRICTIONS = ('linear', 'stribeck', 'harmonic')
EFFORTS = ('measured', 'scaled', 'pd')


@dataclass(frozen=True)
class Friction:
    """Friction of all joints, on the side of the joint.

    Attributes:
        coulomb: (nj,) [N m].
        viscous: (nj,) [N m s/rad].
        breakaway: (nj,) by which friction at rest is higher [N m].
        stribeck_velocity: at which that has fallen to 1/e [rad/s].
        load: friction for each N m that the joint carries, as of harmonic drives [-].
        presliding: motion after a reversal in which friction comes to its full size but for 1/e; 0: at once
            [rad].
    """

    coulomb: Floats
    viscous: Floats
    breakaway: Floats
    stribeck_velocity: float = 0.1
    load: float = 0.0
    presliding: float = 0.0

    def torque(self, q: Floats, u: Floats, carried: Floats) -> Floats:
        """(n, nj) friction along a motion.

        Args:
            q: (n, nj) positions, one row after the other in time.
            u: (n, nj) velocities.
            carried: (n, nj) torques without friction.
        """
        side = self._side(q, u)
        rising = self.breakaway * np.exp(-((u / self.stribeck_velocity) ** 2))
        return np.asarray((self.coulomb + rising + self.load * np.abs(carried)) * side + self.viscous * u)

    def _side(self, q: Floats, u: Floats) -> Floats:
        """(n, nj) from -1 to 1: the sign of the velocity, late after a reversal (model of Dahl)."""
        sign = np.sign(u)
        if self.presliding <= 0.0:
            return np.asarray(sign)
        keep = np.exp(-np.abs(np.diff(q, axis=0)) / self.presliding)
        side = sign.copy()
        for i in range(1, len(side)):
            side[i] = sign[i] + keep[i - 1] * (side[i - 1] - sign[i])
        return side


def make_friction(kind: str, size: Floats, level: float, rng: np.random.Generator) -> Friction:
    """Friction of drives that are made for torques of a size.

    Args:
        kind: 'linear' (Coulomb and viscous, as the equations have it), 'stribeck' (higher at rest), or
            'harmonic' (depends on the load as well, and follows a reversal late).
        size: (nj,) of torques [N m].
        level: Coulomb friction as part of it.
        rng: of the differences between joints.
    """
    coulomb = level * size * rng.uniform(0.6, 1.4, len(size))
    viscous = 0.5 * level * size * rng.uniform(0.3, 1.5, len(size))
    breakaway = coulomb * rng.uniform(0.2, 0.6, len(size))
    if kind == 'linear':
        return Friction(coulomb, viscous, np.zeros_like(size))
    velocity = float(rng.uniform(0.03, 0.3))
    if kind == 'stribeck':
        return Friction(coulomb, viscous, breakaway, velocity)
    load, presliding = float(rng.uniform(0.05, 0.2)), float(rng.uniform(5e-4, 5e-3))
    return Friction(coulomb, viscous, breakaway, velocity, load, presliding)


@dataclass(frozen=True)
class Sensors:
    """How joints are measured.

    Attributes:
        scale: (nj,) torque over what is logged as effort: torque constants are not what was believed.
        offset: (nj,) of efforts [N m].
        delay: by which efforts are late; negative for commands, which come before the torque [s].
        step: of the encoders [rad].
        position: standard deviation [rad].
        velocity: standard deviation [rad/s].
        effort: (nj,) standard deviation [N m].
        kp: (nj,) gain of a PD law whose output is logged as effort; 0 where torques are measured [N m/rad].
        kd: (nj,) likewise [N m s/rad].
        force: standard deviation of foot forces [N].
        bias: (feet, 3) of foot forces [N].
    """

    scale: Floats
    offset: Floats
    delay: float
    step: float
    position: float
    velocity: float
    effort: Floats
    kp: Floats
    kd: Floats
    force: float = 0.0
    bias: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def joints(self, q: Floats, u: Floats, tau: Floats, rng: np.random.Generator) -> tuple[Floats, ...]:
        """(n, nj) position, velocity and effort as logged.

        Args:
            q: (n, nj) positions.
            u: (n, nj) velocities.
            tau: (n, nj) torques; where these are late, of an earlier time.
            rng: of the noise.
        """
        noisy = q + self.position * rng.standard_normal(q.shape)
        position = self.step * np.rint(noisy / self.step) if self.step > 0.0 else noisy
        velocity = u + self.velocity * rng.standard_normal(u.shape)
        effort = tau / self.scale + self.offset + self.effort * rng.standard_normal(tau.shape)
        # What encoders say wrong goes through the law into the command.
        effort = effort - self.kp * (position - q) - self.kd * (velocity - u)
        return position, velocity, effort


def make_sensors(kind: str, size: Floats, delay: float, feet: int, rng: np.random.Generator) -> Sensors:
    """Sensors of usual quality.

    Args:
        kind: 'measured' (torques), 'scaled' (torque constants are up to 10 % off, each joint's another),
            or 'pd' (the output of the PD law: no noise but that of the encoders, constants off in half of
            all robots).
        size: (nj,) of torques [N m].
        delay: of efforts [s].
        feet: whose forces are measured.
        rng: of everything else.
    """
    nj, none = len(size), np.zeros(len(size))
    kp = size / 0.05 if kind == 'pd' else none
    exact = kind == 'measured' or (kind == 'pd' and rng.random() < 0.5)
    return Sensors(
        scale=np.ones(nj) if exact else rng.uniform(0.9, 1.1, nj),
        offset=size * rng.uniform(-0.03, 0.03, nj),
        delay=-delay if kind == 'pd' else delay,
        step=float(2.0 * np.pi / 2.0 ** rng.integers(14, 19)),
        position=2e-5,
        velocity=float(rng.uniform(0.002, 0.02)),
        effort=(0.002 if kind == 'pd' else float(rng.uniform(0.01, 0.03))) * size,
        kp=kp,
        kd=0.02 * kp,
        force=1.0,
        bias=rng.uniform(-3.0, 3.0, (feet, 3)),
    )
