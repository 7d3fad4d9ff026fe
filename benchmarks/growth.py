# SPDX-License-Identifier: Apache-2.0
"""How the cost of a time step grows with the number of contacts and joints, on generated quadrupeds.

Legs are straight, with joints about x, y, y, x, y, y, ... at equal distances. Feet are flat, with all their
points on the ground, so that every contact carries load.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import quad_dynamics as qd
from benchmarks.mujoco_peer import Peer
from benchmarks.timing import Calls, Contest

CONTACTS = (4, 8, 16, 32, 64)  # with 12 joints
JOINTS = (12, 24, 36, 48)  # with 4 contacts
KINDS = {'impulse': 'impulse', 'spring': 'spring_damper'}
KP, KD = 400.0, 8.0
_ROTOR = {'gear': 10.0, 'inertia': [5e-4, 5e-4, 5e-4]}  # 0.05 kg m^2 at the joint, as in strong drives
STEPS = 500  # in one timing
SETTLE = 0.5  # [s]
_LEGS = {'FL': (0.2, 0.15), 'FR': (0.2, -0.15), 'RL': (-0.2, 0.15), 'RR': (-0.2, -0.15)}
_LENGTH = 0.36  # of a leg [m]
_FOOT = 0.03  # radius of the ring of points below a foot [m]


def quadruped(joints: int, contacts: int) -> qd.Model:
    """A robot with a number of joints and contacts, both multiples of four."""
    each, points = joints // 4, contacts // 4
    text = ['<robot name="growing">', _link('base', 8.0, (0.05, 0.09, 0.12))]
    listed: list[dict[str, Any]] = []
    for leg, (x, y) in _LEGS.items():
        above, place = 'base', f'{x} {y} 0'
        for k in range(each):
            link, axis = f'{leg}_{k}', '1 0 0' if k % 3 == 0 else '0 1 0'
            text.append(_link(link, 1.5 / each, (0.01 / each,) * 3, -_LENGTH / each / 2))
            text.append(
                f'<joint name="{link}_joint" type="revolute"><parent link="{above}"/><child link="{link}"/>'
                f'<origin xyz="{place}"/><axis xyz="{axis}"/>'
                f'<limit lower="-2" upper="2" effort="100" velocity="30"/></joint>'
            )
            above, place = link, f'0 0 {-_LENGTH / each}'
        for i in range(points):
            turn = 2.0 * np.pi * (i + 0.5) / points
            ring = _FOOT if points > 1 else 0.0
            spot = [ring * np.cos(turn), ring * np.sin(turn), -_LENGTH / each]
            listed.append({'name': f'{leg}_point_{i}', 'link': above, 'position': spot})
    text.append('</robot>')
    description = {
        'floating_base': True,
        'feet': {leg: f'{leg}_{each - 1}' for leg in _LEGS},
        'contact_points': listed,
        'rotors': {'*': _ROTOR},
        'standing': {'joints': {'*': 0.0}},
    }
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        return qd.load_model(''.join(text), description=description)


def _link(name: str, mass: float, inertia: tuple[float, ...], z: float = 0.0) -> str:
    xx, yy, zz = inertia
    return (
        f'<link name="{name}"><inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


class Growth:
    """One of these robots, standing with one of our contact models and in MuJoCo.

    Attributes:
        name: contact model, varied quantity, and number.
        sim: ours.
        peer: MuJoCo.
    """

    def __init__(self, kind: str, varied: str, count: int) -> None:
        """Make it stand."""
        model = quadruped(*((12, count) if varied == 'contacts' else (count, 4)))
        self.name = f'growth_{kind}_{varied}_{count}'
        self.sim, self._command = (
            qd.Simulator(model, contact=KINDS[kind]),
            qd.JointCommand(q=0.0, kp=KP, kd=KD),
        )
        self.peer, self._targets = Peer(self.sim, KP, KD), np.zeros(model.nj)
        self.peer.put(self.sim.q)
        self.sim.run(self._command, SETTLE, progress=False)
        self.peer.rollout(self._targets, round(SETTLE / self.sim.settings.dt))
        height = model.standing[2]
        for q in (self.sim.q, self.peer.data.qpos):
            assert abs(q[2] - height) < 0.02 * height, f'{self.name} does not stand: z = {q[2]:.4f} m'
        self._start, self._peer_start = self.sim.snapshot(), self.peer.state()

    def contest(self) -> Contest:
        """Standing, all steps in one call."""
        return Contest(self.name, Calls(self._run, [()], STEPS), Calls(self._roll, [()], STEPS))

    def sweeps(self) -> float:
        """Mean number of sweeps in one time step."""
        return float(self._run(log_every=1).sweeps.mean())

    def _run(self, log_every: int = STEPS) -> qd.Log:
        self.sim.restore(self._start)
        return self.sim.run(self._command, STEPS * self.sim.settings.dt, log_every=log_every, progress=False)

    def _roll(self) -> None:
        self.peer.set_state(self._peer_start)
        self.peer.rollout(self._targets, STEPS)


def robots() -> list[Growth]:
    """All of them."""
    return [
        Growth(kind, varied, count)
        for varied, counts in (('contacts', CONTACTS), ('joints', JOINTS))
        for count in counts
        for kind in KINDS
    ]
