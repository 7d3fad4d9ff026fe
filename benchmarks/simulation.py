# SPDX-License-Identifier: Apache-2.0
"""Our simulator against MuJoCo: robots that stand, fall and trot, in time steps of 1 ms and in one thread.

All steps in one call: our `run` and MuJoCo's `rollout`, both with PD control in the drives and with all
states recorded. `_python`: a Python loop over time steps, with the same drives. `_python_pd`: a Python loop
that computes the torques in NumPy. `_cholesky`: all steps in one call, standing, with a factored mass matrix
instead of the articulated-body algorithm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import mujoco
import numpy as np

import quad_dynamics as qd
from benchmarks.dynamics import GO2
from benchmarks.mujoco_peer import Peer
from benchmarks.timing import Calls, Contest

ROBOTS = {'go2': GO2, 'mini_cheetah': 'mini_cheetah'}
KINDS = {'impulse': 'impulse', 'spring': 'spring_damper'}
KP, KD = 100.0, 3.0  # [N m/rad, N m s/rad]
STEPS = 500  # in one timing of a Python loop
LONG = 2000  # in one timing of all steps in one call, so that the overhead of the call is negligible
SETTLE = 4.0  # time until the robot stands [s]
STRIDE_HZ = 2.0
# Allowed differences between the standing robots: MuJoCo's default contact is soft, and creeps.
HEIGHT_SHARE, FORCE_SHARE = 0.03, 0.05  # of the height, and of the weight


class Scene:
    """One robot with one of our contact models and in MuJoCo; both have to stand alike.

    Attributes:
        name: of the robot and the contact model.
        sim: ours.
        peer: MuJoCo with PD control in its actuators.
        motors: MuJoCo with torques as controls.
        targets: (nj,) joint positions that the drives hold.
        command: the same for our drives.
        ours_stands: snapshot of our standing robot.
        peer_stands: state of the standing peer.
    """

    def __init__(self, robot: str, kind: str) -> None:
        """Simulate both until they are at rest.

        Raises:
            AssertionError: they do not stand alike, so that a comparison would be meaningless.
        """
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', qd.ModelWarning)
            self.sim = qd.Simulator(qd.load_model(ROBOTS[robot]), contact=KINDS[kind])
        self.name = f'sim_{kind}_{robot}'
        self.targets = self.sim.q[7:]
        self.command = qd.JointCommand(q=self.targets, kp=KP, kd=KD)
        self.peer, self.motors = Peer(self.sim, KP, KD), Peer(self.sim, KP, KD, drives=False)
        self.peer.put(self.sim.q)
        self.sim.run(self.command, SETTLE, progress=False)
        self.peer.rollout(self.targets, round(SETTLE / self.sim.settings.dt))
        self._compare()
        self.ours_stands, self.peer_stands = self.sim.snapshot(), self.peer.state()

    def _compare(self) -> None:
        ours, peer = self.sim.q[2], self.peer.data.qpos[2]
        assert abs(ours - peer) < HEIGHT_SHARE * ours, f'{self.name}: heights {ours:.4f} and {peer:.4f} m'
        weight = self.sim.model.total_mass * np.linalg.norm(self.sim.model.gravity)
        forces = np.array([self.sim.foot_forces[:, 2], self.peer.foot_forces()[:, 2]])
        assert abs(forces.sum(axis=1) - weight).max() < 1e-3 * weight, f'{self.name}: {forces}, {weight} N'
        assert np.ptp(forces, axis=0).max() < FORCE_SHARE * weight, f'{self.name}: forces {forces} N'

    def contests(self) -> list[Contest]:
        """Standing, called in three ways, and three motions with changing contacts."""
        still, trot = np.tile(self.targets, (STEPS, 1)), trot_targets(self.targets, self.sim.settings.dt)
        (dropped, peer_dropped), limp = self._drop(), np.zeros_like(self.targets)
        return [
            self._long('', self._stand, partial(self._roll, self.peer, self.peer_stands, self.targets)),
            self._contest('_python', self._step, self._peer_step),
            self._contest('_python_pd', partial(self._control, still), partial(self._peer_control, still)),
            self._contest('_trot_python_pd', partial(self._control, trot), partial(self._peer_control, trot)),
            self._long(
                '_fall',
                partial(self._run, dropped, self.command),
                partial(self._roll, self.peer, peer_dropped, self.targets),
            ),
            self._long(
                '_cholesky',
                self._factored(),
                partial(self._roll, self.peer, self.peer_stands, self.targets),
            ),
            self._long('_limp', self._limp, partial(self._roll, self.motors, self.peer_stands, limp)),
        ]

    def _contest(
        self, ending: str, ours: Callable[[], object], peer: Callable[[], object], steps: int = STEPS
    ) -> Contest:
        return Contest(self.name + ending, Calls(ours, [()], steps), Calls(peer, [()], steps))

    def _long(self, ending: str, ours: Callable[[], object], peer: Callable[[], object]) -> Contest:
        return self._contest(ending, ours, peer, LONG)

    def _run(self, start: bytes, command: qd.JointCommand) -> qd.Log:
        self.sim.restore(start)
        return self.sim.run(command, LONG * self.sim.settings.dt, progress=False)

    def _stand(self) -> qd.Log:
        return self._run(self.ours_stands, self.command)

    def _factored(self) -> Callable[[], qd.Log]:
        """Standing with `forward_dynamics='cholesky'`."""
        settings = self.sim.settings.replace(forward_dynamics='cholesky')
        sim = qd.Simulator(self.sim.model, settings)
        sim.run(self.command, SETTLE, progress=False)
        start = sim.snapshot()

        def stand() -> qd.Log:
            sim.restore(start)
            return sim.run(self.command, LONG * settings.dt, progress=False)

        return stand

    def _limp(self) -> qd.Log:
        """Motors without torque: it collapses, and lies."""
        return self._run(self.ours_stands, qd.JointCommand())

    @staticmethod
    def _roll(peer: Peer, start: np.ndarray, control: np.ndarray) -> None:
        peer.set_state(start)
        peer.rollout(control, LONG)

    def _step(self) -> None:
        sim = self.sim
        sim.restore(self.ours_stands)
        for _ in range(STEPS):
            sim.step()

    def _peer_step(self) -> None:
        model, data = self.peer.model, self.peer.data
        self.peer.set_state(self.peer_stands)
        data.ctrl[:] = self.targets
        for _ in range(STEPS):
            mujoco.mj_step(model, data)

    def _control(self, targets: np.ndarray) -> None:
        sim = self.sim
        sim.restore(self.ours_stands)
        for wanted in targets:
            sim.step(KP * (wanted - sim.q[7:]) - KD * sim.u[6:])

    def _peer_control(self, targets: np.ndarray) -> None:
        model, data = self.motors.model, self.motors.data
        q, qd_, control = data.qpos, data.qvel, data.ctrl
        self.motors.set_state(self.peer_stands)
        for wanted in targets:
            control[:] = KP * (wanted - q[7:]) - KD * qd_[6:]
            mujoco.mj_step(model, data)

    def _drop(self) -> tuple[bytes, np.ndarray]:
        """Initial state of a fall: above the ground, rotated about x, at rest."""
        q = self.sim.standing()
        q[2] += 0.3
        q[3:7] = np.sin(0.6), 0.0, 0.0, np.cos(0.6)
        self.sim.reset(q)
        self.peer.put(q)
        return self.sim.snapshot(), self.peer.state()

    def quality(self) -> dict[str, float]:
        """Quality measures of the simulation."""
        logs = {'': self._stand(), '_fall': self._run(self._drop()[0], self.command), '_limp': self._limp()}
        found = {'_force_std': float(logs[''].foot_forces.std(axis=0).max())}
        for ending, log in logs.items():
            found[f'{ending}_substeps'] = float(log.substeps.mean())
            found[f'{ending}_sweeps'] = float(log.sweeps.mean())
            found[f'{ending}_unconverged'] = float((~log.converged).mean())
        return {self.name + ending: number for ending, number in found.items()}


def trot_targets(standing: np.ndarray, dt: float, steps: int = STEPS) -> np.ndarray:
    """(steps, nj) joint positions that lift diagonal pairs of legs in turn; legs have hip, thigh and calf."""
    turn = np.sin(2.0 * np.pi * STRIDE_HZ * dt * np.arange(steps))
    targets = np.tile(standing, (steps, 1))
    for leg, lift in enumerate((turn, -turn, -turn, turn)):
        bend = 0.3 * np.maximum(lift, 0.0) * np.sign(standing[3 * leg + 2])
        targets[:, 3 * leg + 1] -= bend
        targets[:, 3 * leg + 2] += 2.0 * bend
    return targets


def scenes() -> list[Scene]:
    """All robots in all contact models."""
    return [Scene(robot, kind) for robot in ROBOTS for kind in KINDS]
