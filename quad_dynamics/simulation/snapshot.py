# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the complete state of a simulation as bytes."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels import scene as S_
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.scene import Scene
from quad_dynamics.simulation.settings import SimulatorSettings

Floats = npt.NDArray[np.float64]

_MAGIC = b'quad_dynamics snapshot 1\n'
_HEAD = struct.Struct('<16s16sQQ')  # fingerprint, checksum of all that follows, seed, number of words


def fingerprint(model: Model, settings: SimulatorSettings, scene: Scene) -> bytes:
    """What a snapshot is tied to: the robot, its contact points, the terrain, all settings but the seed."""
    digest = hashlib.sha256()
    arrays: list[npt.NDArray[Any]] = [
        model.pi,
        model.rotor_pi,
        model.rotor_inertia,
        model.joint_p,
        model.joint_R,
        model.joint_axis,
    ]
    arrays += [model.gravity, model.viscous, model.coulomb, scene.terrain, scene.words[: S_.TERRAIN]]
    tables = slice(S_.HEADER, int(scene.words.view(np.int64)[S_.STATE]))  # contact points and joints
    arrays += [scene.words[tables], model.parents, model.is_prismatic]
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
        ArgumentError: it is none, or none of this simulation.
    """
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise ArgumentError(f'snapshot is {type(snapshot).__name__}; expected bytes from Simulator.snapshot')
    data = bytes(snapshot)
    if not data.startswith(_MAGIC) or len(data) < len(_MAGIC) + _HEAD.size:
        raise ArgumentError('snapshot has an unknown beginning; expected bytes from Simulator.snapshot')
    found, checksum, seed, count = _HEAD.unpack_from(data, len(_MAGIC))
    if found != print_:
        raise ArgumentError(
            'snapshot is of another robot, terrain or settings; expected one of this simulator'
        )
    body = data[len(_MAGIC) + _HEAD.size :]
    if count != words or len(body) != 8 * words:
        raise ArgumentError(f'snapshot has {len(body)} bytes of state; expected {8 * words}: it is cut off')
    if checksum != _checksum(seed, body):
        raise ArgumentError('snapshot is damaged: its checksum is wrong; expected it as it was given')
    return seed, np.frombuffer(body, dtype='<f8').astype(np.float64)


def _checksum(seed: int, body: bytes) -> bytes:
    return hashlib.sha256(seed.to_bytes(8, 'little') + body).digest()[:16]
