# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the complete state of a simulation as bytes."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.simulation.scene import Scene as Record
from quad_dynamics.kernels.validation import QUATERNION_TOLERANCE
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.scene import Scene
from quad_dynamics.simulation.settings import SimulatorSettings

_MAGIC = b'quad_dynamics snapshot 1\n'
_MOST_STEPS = 2**62
_HEAD = struct.Struct('<16s16sQQ')  # fingerprint, checksum of the rest, seed, number of words


def fingerprint(model: Model, settings: SimulatorSettings, scene: Scene) -> bytes:
    """Fingerprint of the robot, its contact points, the terrain, and all settings except the seed."""
    digest = hashlib.sha256()
    arrays: list[npt.NDArray[Any]] = [
        model.pi,
        model.rotor_pi,
        model.rotor_inertia,
        model.joint_p,
        model.joint_R,
        model.joint_axis,
    ]
    arrays += [
        model.gravity,
        model.viscous,
        model.coulomb,
        scene.terrain,
        scene.words[: Record.terrain.offset],
    ]
    arrays += [scene.words[scene.placement.part('tables')], model.parents, model.is_prismatic]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr((model.joint_names, settings.sensors)).encode())
    return digest.digest()[:16]


def pack_snapshot(print_: bytes, seed: int, state: Floats) -> bytes:
    """The bytes of a snapshot."""
    body = state.astype('<f8').tobytes()
    return _MAGIC + _HEAD.pack(print_, _checksum(seed, body), seed, len(state)) + body


def unpack_snapshot(snapshot: bytes, print_: bytes, words: int) -> tuple[int, Floats]:
    """Seed and state from the bytes of a snapshot.

    Raises:
        ArgumentError: it is not a snapshot, or is from another simulation.
    """
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise ArgumentError(f'snapshot is {type(snapshot).__name__}; expected bytes from Simulator.snapshot')
    data = bytes(snapshot)
    if not data.startswith(_MAGIC) or len(data) < len(_MAGIC) + _HEAD.size:
        raise ArgumentError('snapshot has an unknown header; expected bytes from Simulator.snapshot')
    found, checksum, seed, count = _HEAD.unpack_from(data, len(_MAGIC))
    if found != print_:
        raise ArgumentError(
            'snapshot belongs to another robot, terrain or settings; expected one of this simulator'
        )
    body = data[len(_MAGIC) + _HEAD.size :]
    if count != words or len(body) != 8 * words:
        raise ArgumentError(f'snapshot has {len(body)} bytes of state; expected {8 * words} (truncated?)')
    if checksum != _checksum(seed, body):
        raise ArgumentError(
            'snapshot is damaged: wrong checksum; expected unmodified bytes from Simulator.snapshot'
        )
    return seed, np.frombuffer(body, dtype='<f8').astype(np.float64)


def check_state(scene: Scene, model: Model, state: Floats) -> None:
    """Reject a state that no simulator can have: the kernel uses its integers as offsets.

    Raises:
        ArgumentError: it was edited; the message gives the location.
    """
    counters = _part(scene, state, 'state')[0]
    step, wrong = int(counters['step']), ''
    if not 0 <= step < _MOST_STEPS:
        wrong = 'the number of steps'
    elif not 0 <= int(counters['ldlt_steps']) <= step:
        wrong = 'the number of steps by LDLT'
    elif int(counters['has_gains']) not in (0, 1):
        wrong = 'the flag for gains'
    elif not _links_are_known(scene, _part(scene, state, 'forces')):
        wrong = 'the link of a force'
    elif model.floating_base and not _is_unit(_part(scene, state, 'q')[3:7]):
        wrong = 'the orientation'
    elif not np.isfinite(state).all():  # nonnegative integers are finite as floats
        wrong = _infinite(scene, state)
    if wrong:
        raise ArgumentError(
            f'snapshot was modified: {wrong} is invalid; expected unmodified bytes from Simulator.snapshot'
        )


def _part(scene: Scene, state: Floats, name: str) -> npt.NDArray[Any]:
    """The part of a state with this name in the scene."""
    return scene.placement.view(state, name, scene.placement.part('state').start)


def _links_are_known(scene: Scene, forces: npt.NDArray[Any]) -> bool:
    """Whether all active external forces act on links of the robot."""
    if not forces.view(np.int64).any():
        return True
    lanes, acts = forces['lane'], ~(forces['time_left'] <= 0.0)
    return bool(lanes.min() >= 0 and np.isin(lanes[acts], scene.lanes).all())


def _is_unit(quaternion: Floats) -> bool:
    return abs(float(quaternion @ quaternion) - 1.0) <= QUATERNION_TOLERANCE


def _infinite(scene: Scene, state: Floats) -> str:
    """The number that must not be infinite; '' if only distances to the ground are: it may be missing."""
    distances = _part(scene, state, 'point_memory')['distance']
    if np.isnan(distances).any():
        return 'a distance to the ground'
    kept = distances.copy()
    distances[:] = 0.0
    good = bool(np.isfinite(state).all())
    distances[:] = kept
    return '' if good else 'a number that is not finite'


def _checksum(seed: int, body: bytes) -> bytes:
    return hashlib.sha256(seed.to_bytes(8, 'little') + body).digest()[:16]
