# SPDX-License-Identifier: Apache-2.0
"""Logs of robots that differ from their URDF, by seed: what is believed, what is true, and what was measured.

A fixed base follows a smooth path, and its torques are those of inverse dynamics: nothing but what is put in
is wrong with them. A floating base is simulated, so that feet stick, slide and hit the ground.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cases import FILES, load
from identification_data import pi_of_pseudo, pseudo_inertia, real_body
from identification_drives import EFFORTS, FRICTIONS, Friction, Sensors, make_friction, make_sensors
from identification_motions import ARMS, torque_scale
from identification_paths import FIXED_MOTIONS, FLOATING_MOTIONS, fixed_path, standing_torques
from reference_pinocchio import robots_folder

import quad_dynamics as qd
from quad_dynamics.api.drives import leg_length
from quad_dynamics.array_types import Floats
from quad_dynamics.identification.equations.columns import Columns, make_columns
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.simulation.gaits import LIFT, Trot

ROBOTS = ('two_link_arm', 'ur5', 'panda', 'kinova', 'mini_cheetah', 'go2', 'a1', 'anymal_c')
QUADRUPEDS = ROBOTS[4:]
_MOST_OFF = 0.08  # total mass of a URDF, relative: whole robots are weighed, links are not
_STAND, _MILLI = 13, 22  # seeds, modulo 40, of quadrupeds on a stand, and of efforts in mN m
_SETTLE = 1.0  # of a simulated robot, before anything is logged [s]


@dataclass(frozen=True)
class World:
    """What is generated.

    Attributes:
        seed: of all that is random.
        robot: one of ROBOTS.
        floating: whether the base floats; else it is on a stand.
        motion: one of FIXED_MOTIONS or FLOATING_MOTIONS.
        friction: one of FRICTIONS; 'linear' is what identification assumes.
        effort: one of EFFORTS.
        delay: of efforts [s].
        seconds: length [s].
        level: of friction, as part of the size of torques.
        payload: on the trunk, as part of the mass of the robot.
        forces: whether feet measure.
        unit: efforts are logged in this part of 1 N m.
        rate: of the log [Hz].
    """

    seed: int
    robot: str
    floating: bool = False
    motion: str = 'good'
    friction: str = 'linear'
    effort: str = 'measured'
    delay: float = 0.0
    seconds: float = 12.0
    level: float = 0.1
    payload: float = 0.0
    forces: bool = True
    unit: float = 1.0
    rate: float = 200.0

    def __str__(self) -> str:
        """For a test's id, and for tables."""
        base = 'floating' if self.floating else 'fixed'
        parts = [f'{self.seed}', self.robot, base, self.motion, self.friction, self.effort]
        parts += [f'{1e3 * self.delay:.0f}ms'] * (self.delay > 0.0)
        parts += ['no_forces'] * (self.floating and not self.forces) + ['unit'] * (self.unit != 1.0)
        return '-'.join(parts)


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot and what is believed of it.

    Attributes:
        model: what the URDF says.
        true: the robot, without friction.
        friction: that it has.
        sensors: that it has.
        size: (nj,) of its torques [N m].
    """

    model: Any
    true: Any
    friction: Friction
    sensors: Sensors
    size: Floats

    def truth(self, columns: Columns) -> Floats:
        """(size,) what the unknowns should be; of friction the linear part."""
        x = columns.prior.copy()
        x[columns.slices['pi']], x[columns.slices['rotor']] = self.true.pi, self.true.rotor_inertia
        x[columns.slices['viscous']] = self.friction.viscous
        x[columns.slices['coulomb']] = self.friction.coulomb
        x[columns.slices['offset']] = self.sensors.offset
        if len(x[columns.slices['bias']]):
            x[columns.slices['bias']] = self.sensors.bias.ravel()
        return x


def draw(seed: int) -> World:
    """One of many worlds: the robot goes by the seed, the rest is random; of 40, two are worse than that."""
    if seed % 40 == _STAND:
        return on_a_stand(seed, QUADRUPEDS[seed // 40 % len(QUADRUPEDS)])
    rng = np.random.default_rng([seed, 1])
    robot = ROBOTS[seed % len(ROBOTS)]
    floating = robot in QUADRUPEDS and (seed // len(ROBOTS)) % 2 == 0
    motions = FLOATING_MOTIONS if floating else FIXED_MOTIONS
    motion = str(rng.choice(motions, p=[0.4, *[0.6 / (len(motions) - 1)] * (len(motions) - 1)]))
    late = float(rng.uniform(1e-3, 5e-3)) if rng.random() < 0.5 else 0.0
    return World(
        seed,
        robot,
        floating,
        motion,
        friction=str(rng.choice(FRICTIONS)),
        effort=str(rng.choice(EFFORTS)),
        delay=late,
        seconds=20.0 if motion in ('slow', 'steps') else 12.0,
        level=float(np.exp(rng.uniform(np.log(0.03), np.log(0.5)))),
        payload=float(rng.uniform(0.05, 0.2)) if floating and rng.random() < 0.5 else 0.0,
        forces=bool(rng.random() < 0.75),
        unit=1e-3 if seed % 40 == _MILLI else 1.0,
    )


def on_a_stand(seed: int, robot: str = 'go2', unit: float = 1.0) -> World:
    """A quadruped with its base fixed: one slow motion for a minute, efforts of the PD law, much friction."""
    return World(
        seed,
        robot,
        motion='slow',
        friction='harmonic',
        effort='pd',
        delay=3e-3,
        seconds=60.0,
        level=0.8,
        unit=unit,
    )


@functools.cache
def believed(name: str, floating: bool) -> Any:
    """A robot of ROBOTS, its inertia made that of real bodies."""
    source = (
        name if name not in ARMS | FILES or name == 'go2' else str(robots_folder() / (ARMS | FILES)[name])
    )
    model = load(source, floating_base=floating)
    return model.with_pi(np.concatenate([real_body(row) for row in model.pi.reshape(-1, 10)]))


def make_robot(world: World) -> Robot:
    """The robot of a world."""
    rng = np.random.default_rng([world.seed, 2])
    model = believed(world.robot, world.floating)
    pi = _other_bodies(model.pi.reshape(-1, 10), rng)
    if world.payload > 0.0:
        pi[0] += _box(world.payload * model.total_mass, rng)
    size = drive_size(world.robot, world.floating)
    with_gears = make_columns(model).model
    felt = np.diag(qd.mass_matrix(believed(world.robot, False), believed(world.robot, False).neutral))
    rotor = with_gears.rotor_inertia * rng.uniform(0.8, 1.2, model.nj)
    unknown = with_gears.rotor_inertia == 0.0
    rotor[unknown] = (rng.uniform(0.0, 0.5, model.nj) * felt / with_gears.rotor_gear**2)[unknown]
    true = with_gears.with_pi(pi.ravel()).with_rotors(rotor).with_friction(*np.zeros((2, model.nj)))
    feet = len(model.foot_names) if world.floating else 0
    friction = make_friction(world.friction, size, world.level, rng)
    return Robot(model, true, friction, make_sensors(world.effort, size, world.delay, feet, rng), size)


@functools.cache
def drive_size(name: str, floating: bool) -> Floats:
    """(nj,) torques that drives are made for: those of a robot are alike, and those of legs carry it."""
    held = believed(name, False)
    size = torque_scale(held)
    size = np.maximum(size, 0.3 * size.max())
    if floating:
        model = believed(name, True)
        size = size + 0.02 * 9.81 * model.total_mass * leg_length(model)
    return size


def _other_bodies(pi: Floats, rng: np.random.Generator) -> Floats:
    """(nb, 10) bodies as URDFs get them wrong: masses and inertia by 20 %, centres of mass by 1 cm."""
    result = pi.copy()
    for row in result:
        P = pseudo_inertia(row)
        mass, com = P[3, 3], P[:3, 3] / P[3, 3]
        spread = P[:3, :3] / mass - np.outer(com, com)
        reach = np.sqrt(np.trace(spread))
        com = com + min(0.01, 0.3 * reach) * rng.uniform(-1.0, 1.0, 3)
        A = np.eye(3) + 0.1 * rng.uniform(-1.0, 1.0, (3, 3))
        P[3, 3] = mass * rng.uniform(0.8, 1.2)
        P[:3, :3] = P[3, 3] * (A @ spread @ A.T + np.outer(com, com))
        P[:3, 3] = P[3, :3] = P[3, 3] * com
        row[:] = pi_of_pseudo(P)
    total = result[:, 0].sum() / pi[:, 0].sum()
    return np.asarray(result * np.clip(total, 1.0 - _MOST_OFF, 1.0 + _MOST_OFF) / total)


def _box(mass: float, rng: np.random.Generator) -> Floats:
    """pi (10,) of a box on the trunk."""
    com = rng.uniform([-0.1, -0.03, 0.03], [0.1, 0.03, 0.1])
    P = np.empty((4, 4))
    P[:3, :3] = mass * (np.diag([0.002, 0.001, 0.001]) + np.outer(com, com))
    P[:3, 3] = P[3, :3] = mass * com
    P[3, 3] = mass
    return pi_of_pseudo(P)


# ---------------------------------------------------------------- logs


def make_log(world: World, robot: Robot, path: Path) -> Path:
    """Write the log of a world as a table (npz)."""
    arrays = _simulated(world, robot) if world.floating else _prescribed(world, robot)
    arrays['effort'] = arrays['effort'] / world.unit
    np.savez(path, joint_names=np.array(robot.model.joint_names), **arrays)
    return path


def other_motion(world: World) -> World:
    """The same robot in another motion, which shows what holds beyond the one that it was identified from."""
    return replace(world, motion='other', seconds=min(world.seconds, 12.0))


def _prescribed(world: World, robot: Robot) -> dict[str, Floats]:
    rng = np.random.default_rng([world.seed, 3 if world.motion != 'other' else 4])
    t = np.arange(round(world.seconds * world.rate)) / world.rate
    path = fixed_path(world.motion, robot.model, rng)
    q, u, _ = path(t)
    position, velocity, effort = robot.sensors.joints(
        q, u, _torques(robot, *path(t - robot.sensors.delay)), rng
    )
    return {'time': t, 'position': position, 'velocity': velocity, 'effort': effort}


def _torques(robot: Robot, q: Floats, u: Floats, du: Floats) -> Floats:
    """(n, nj) of the motors along a path."""
    carried = qd.inverse_dynamics(robot.true, q, u, du)
    return np.asarray(carried + robot.friction.torque(q, u, carried))


def _simulated(world: World, robot: Robot) -> dict[str, Floats]:
    """A robot on its feet, in the largest motion of some in which it does not fall."""
    sensors = robot.sensors
    for part in (1.0, 0.6, 0.35, 0.2):
        log, tau = _simulate(world, robot, part)
        if log.q[:, 2].min() > 0.7 * robot.model.standing[2]:
            break
    else:
        raise AssertionError(f'{world} falls')
    late = round(sensors.delay * 1e3)  # in steps of the simulation
    tau = np.roll(tau, late, axis=0)
    rows = slice(abs(late), len(tau) - abs(late), round(1000.0 / world.rate))
    q, u, rng = log.q[rows], log.u[rows], np.random.default_rng([world.seed, 5])
    position, velocity, effort = sensors.joints(q[:, 7:], u[:, 6:], tau[rows], rng)
    arrays = {'time': log.time[rows], 'position': position, 'velocity': velocity, 'effort': effort}
    arrays['base'] = np.hstack([q[:, :7], _in_base(q[:, 3:7], u[:, :3]), u[:, 3:6]])
    arrays['base'][:, 7:] += 2e-3 * rng.standard_normal((len(q), 6))
    if world.forces:
        force = log.foot_forces[rows]
        arrays['force'] = force + sensors.bias + sensors.force * rng.standard_normal(force.shape)
        arrays['foot_names'] = np.array(log.foot_names)
    return arrays


def _simulate(world: World, robot: Robot, part: float) -> tuple[Any, Floats]:
    """The log of a simulation, and (n, nj) torques of the motors.

    The simulator knows linear friction; what is more, its controller takes away.
    """
    rng = np.random.default_rng([world.seed, 3 if world.motion != 'other' else 4])
    friction, model = robot.friction, robot.model
    sim = qd.Simulator(robot.true.with_friction(friction.viscous, friction.coulomb), dt=1e-3, mu=0.8)
    sim.reset()
    law: Any = standing_torques(model, world.motion, part, rng)
    if world.motion == 'trot':
        law = Trot(model, height=part * LIFT * leg_length(model))
    given: list[Floats] = []

    def step(now: Any) -> Floats:
        command = law(now)
        uj = now.u[6:]
        tau = command.tau + command.kp * (command.q - now.q[7:]) + command.kd * (command.qd - uj)
        tau = np.clip(tau, -model.effort_limit, model.effort_limit)
        given.append(tau)
        return np.asarray(tau - _beyond_linear(friction, uj, tau))

    sim.run(step, _SETTLE, progress=False)
    given.clear()
    return sim.run(step, world.seconds, progress=False), np.array(given)


def _beyond_linear(friction: Friction, u: Floats, tau: Floats) -> Floats:
    """Friction of simulated joints that is neither Coulomb nor viscous."""
    rising = friction.breakaway * np.exp(-((u / friction.stribeck_velocity) ** 2))
    return np.asarray((rising + friction.load * np.abs(tau)) * np.tanh(u / 0.1))


def _in_base(quaternions: Floats, vectors: Floats) -> Floats:
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(quaternions).inv().apply(vectors))


def typical_friction(
    world: World, robot: Robot, samples: Samples, stribeck_velocity: float | None = None
) -> tuple[Floats, Floats]:
    """Friction where joints moved most: (nj,) root mean square of their velocities, and friction there [N m].

    It is that of the curve of the form which was fitted that comes nearest to the true friction in the
    samples: Coulomb and viscous friction, and Stribeck friction where that was free.

    Args:
        world: of the log.
        robot: that moved.
        samples: that were used.
        stribeck_velocity: of the fit; None where Stribeck friction was not free.
    """
    dip = (lambda v: np.exp(-((v / stribeck_velocity) ** 2))) if stribeck_velocity else np.zeros_like
    rows, get = samples.all(), samples.layout.get
    q, u, tau = (get(rows, name)[:, -robot.true.nj :] for name in ('q', 'u', 'tau'))
    if world.floating:
        torque = robot.friction.viscous * u + robot.friction.coulomb * np.sign(u)
        torque = torque + _beyond_linear(robot.friction, u, tau * robot.sensors.scale)
    else:
        torque = robot.friction.torque(q, u, qd.inverse_dynamics(robot.true, q, u, get(rows, 'du')))
    speed, friction = np.zeros((2, robot.true.nj))
    for j, used in enumerate(get(rows, 'use').T > 0.0):
        if used.any():
            v = u[used, j]
            curve = np.stack([v, np.sign(v), np.sign(v) * dip(v), np.ones_like(v)], axis=1)
            viscous, coulomb, stribeck, _ = np.linalg.lstsq(curve, torque[used, j], rcond=None)[0]
            speed[j] = np.sqrt(np.mean(v**2))
            friction[j] = coulomb + viscous * speed[j] + stribeck * dip(speed[j])
    return speed, friction
