# SPDX-License-Identifier: Apache-2.0
"""Fills the memory of a robot (see `quad_dynamics.memory.layout`)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats, Ints
from quad_dynamics.compiler.interpreter import address_of, mark_unwritten
from quad_dynamics.compiler.records import Placement
from quad_dynamics.compiler.types import LANES
from quad_dynamics.errors import ArgumentError
from quad_dynamics.memory.lanes import assign_lanes, lonely_bodies, share_packs, subtree_sizes
from quad_dynamics.memory.layout import WORKSPACE, Body, Joint, LinkFrame, MixedBody, Pack, Robot

if TYPE_CHECKING:
    from quad_dynamics.model.model import Frame, Model


# Maximum number of arena copies kept for later calls; more are only needed if more threads run at once.
_MOST_FREE = 16


def shape_words(shapes: Sequence[tuple[int, ...]]) -> Ints:
    """Shapes in the format of `compiler.allocation`: their number; for each its length and its elements."""
    words = [len(shapes)]
    for shape in shapes:
        words += [len(shape), *shape]
    return np.array(words, dtype=np.int64)


class Workspace:
    """The use of a copy of an arena by one call: `with packed.workspace() as address`.

    A class, because a generator of `contextlib` takes 1 us more, a noticeable part of a short batch.
    """

    __slots__ = ('_arena', '_copy', '_free')

    def __init__(self, arena: Floats, free: list[tuple[Floats, int]]) -> None:
        """Nothing is copied yet.

        Args:
            arena: to copy.
            free: unused copies with their addresses.
        """
        self._arena, self._free = arena, free

    def __enter__(self) -> int:
        """The address of a copy that nobody else uses."""
        try:
            self._copy = self._free.pop()
        except IndexError:
            copy = _aligned_zeros(len(self._arena))
            copy[:] = self._arena
            self._copy = copy, address_of(copy)
        return self._copy[1]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the copy for later calls."""
        if len(self._free) < _MOST_FREE:
            self._free.append(self._copy)


class Packed:
    """A model in the form that the kernels read.

    Kernels read the constants of an arena and use the rest as workspace, so two kernels must not run on one
    arena at the same time. Calls that hold the GIL share one arena (`address`); a call that releases the GIL
    has its own (`workspace`).

    Attributes:
        arena: (words,) float64.
        address: of the arena in memory.
        nq: as in the model; likewise nv, nj, nb.
        square: (nv, nv), the shape of the mass matrix.
        vector_words: `shape_words` of (nv,); likewise `joint_words` of (nj,), `square_words` of (nv, nv),
            `jacobian_words` of (6, nv).
        regressor_words: likewise of regressors: plain, with friction, with rotors, with both.
        group: nv LANES, the workspace that `contact_inertia` needs for a group of forces.
        frames: cached results of `frame`, by name.
    """

    __slots__ = (
        '_axes',
        '_feet',
        '_foot_names',
        '_free',
        '_links',
        '_term_words',
        'address',
        'arena',
        'frames',
        'group',
        'jacobian_words',
        'joint_words',
        'nb',
        'nj',
        'nq',
        'nv',
        'regressor_words',
        'square',
        'square_words',
        'vector_words',
    )

    def __init__(self, model: Model, mixed: bool = False) -> None:
        """Pack a model.

        Args:
            model: robot.
            mixed: combine bodies that are alone in their packs, for kernels that support mixed packs.
        """
        self.arena = build_arena(model, mixed)
        self.address = address_of(self.arena)
        self.nq, self.nv, self.nj, self.nb = model.nq, model.nv, model.nj, model.nb
        self.square, self.group = (model.nv, model.nv), LANES * model.nv
        self.vector_words, self.joint_words = shape_words([(model.nv,)]), shape_words([(model.nj,)])
        self.square_words, self.jacobian_words = shape_words([self.square]), shape_words([(6, model.nv)])
        self.regressor_words = [
            shape_words([(model.nv, 10 * model.nb + each * model.nj)]) for each in (0, 2, 1, 3)
        ]
        self._axes, self._links, self._foot_names = model.joint_axis, model.frames, model.foot_names
        self._feet: tuple[Floats, ...] | None = None
        self._term_words: dict[int, Ints] = {}
        self.frames: dict[str, Floats] = {}
        self._free: list[tuple[Floats, int]] = []  # copies of the arena that nobody is using, and addresses

    def workspace(self) -> Workspace:
        """A context with the address of an arena that nobody else uses until it ends."""
        return Workspace(self.arena, self._free)

    @property
    def feet(self) -> tuple[Floats, ...]:
        """Frames of the feet."""
        if self._feet is None:
            self._feet = tuple(map(self.frame, self._foot_names))
        return self._feet

    @property
    def joint_inertia(self) -> Floats:
        """(nj,) inertia at the joints in addition to that of the bodies."""
        robot = Robot.array(self.arena)[0]
        joints = Joint.array(self.arena, robot['joints'], self.nj)
        places = robot['joints'] + Joint.words * np.arange(self.nj) + joints['body']
        inertias: Floats = self.arena[places + Body.joint_inertia.offset]
        return inertias

    def term_shapes(self, frames: int) -> tuple[tuple[int, ...], ...]:
        """Shapes of the results of `controller_terms`, in order, for a number of frames."""
        nv, k = self.nv, frames
        centroidal = (3,), (3, nv), (3,), (6, nv), (6,)
        return (nv, nv), (nv,), (k, 3), (k, 3, 3), (k, 6), (k, 6, nv), (k, 6), *centroidal

    def term_words(self, frames: int) -> Ints:
        """These shapes in the format of `compiler.allocation`."""
        try:
            return self._term_words[frames]
        except KeyError:
            words = self._term_words[frames] = shape_words(self.term_shapes(frames))
            return words

    def frame(self, name: str, argument: str = 'frame') -> Floats:
        """A link's frame as the kernels read it: an array with a `LinkFrame`.

        Args:
            name: name of the link.
            argument: its name in error messages.

        Raises:
            ArgumentError: no link has that name.
        """
        try:
            return self.frames[name]
        except KeyError:
            words = self.frames[name] = self._make_frame(name, argument)
            return words
        except TypeError as error:
            raise ArgumentError(f'{argument} is {name!r}; expected the name of a link') from error

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError('a packed model is tied to its place in memory; copy the model instead')

    def _make_frame(self, name: str, argument: str) -> Floats:
        frame = self._links.get(name)
        if frame is None:
            near = difflib.get_close_matches(str(name), self._links, n=3)
            known = f'did you mean {near}?' if near else f'expected one of {list(self._links)}'
            raise ArgumentError(f'{argument} names {name!r}, which is no link of the robot; {known}')
        self._check_frame(name, frame)
        joint = frame.body - (self.nb - self.nj)  # with a floating base, body 0 is the base
        words = np.empty(LinkFrame.words)
        found = LinkFrame.array(words)[0]
        robot = Robot.array(self.arena)[0]
        if joint < 0:
            found['place'], found['joint'] = robot['packs'], -1
            found['position'], found['rotation'] = frame.p, frame.R.ravel()
            return words
        R_LK = rotation_to_axis(self._axes[joint : joint + 1])[0]
        entry = robot['joints'] + Joint.words * joint
        found['place'] = entry + Joint.array(self.arena, entry)[0]['body']
        found['joint'] = joint
        found['position'], found['rotation'] = R_LK.T @ frame.p, (R_LK.T @ frame.R).ravel()
        return words

    def _check_frame(self, name: str, frame: Frame) -> None:
        """Reject a frame that `load_model` did not make: the kernels would access invalid memory."""
        body, first = frame.body, self.nb - self.nj - 1  # the immobile root of a fixed-base robot is -1
        good = isinstance(body, int | np.integer) and first <= body < self.nb
        if not good or np.shape(frame.p) != (3,) or np.shape(frame.R) != (3, 3):
            raise ArgumentError(
                f'{name!r} has body {body!r}, p {np.shape(frame.p)} and R {np.shape(frame.R)}; expected '
                f'a body from {first} to {self.nb - 1}, p (3,) and R (3, 3), as load_model makes it'
            )


def pack_both(model: Model) -> tuple[Packed, Packed]:
    """A model with aligned packs only, and with mixed ones; the same object if there is no difference."""
    aligned = Packed(model)
    return aligned, Packed(model, mixed=True) if lonely_bodies(model.parents) > 1 else aligned


def build_arena(model: Model, mixed: bool = False) -> Floats:
    """Return the memory of a robot: (words,) float64, aligned to 64 bytes."""
    lanes, parent_packs = assign_lanes(model.parents)
    n_aligned = len(parent_packs)
    if mixed:
        lanes, parent_packs, n_aligned = share_packs(lanes, parent_packs)
    in_mixed = np.flatnonzero(lanes[:, 0] >= n_aligned)
    sizes = {'nj': model.nj, 'packs': len(parent_packs), 'mixed': len(in_mixed)}
    placement = Placement(Robot, sizes)
    arena = _aligned_zeros(placement.words)
    placement.fill(arena)
    robot = Robot.array(arena)[0]
    robot['nj'], robot['nq'], robot['nv'], robot['nb'] = model.nj, model.nq, model.nv, model.nb
    robot['n_packs'], robot['n_aligned'], robot['n_mixed'] = len(parent_packs), n_aligned, len(in_mixed)
    robot['floating'] = model.floating_base
    robot['has_rotors'], robot['gravity'] = bool(np.any(model.rotor_inertia)), model.gravity
    robot['array_type'], robot['none'] = id(np.ndarray), id(None)
    robot['float64_dtype'], robot['bool_dtype'] = id(np.dtype(np.float64)), id(np.dtype(np.bool_))
    _fill_joints(placement.view(arena, 'joints'), placement, model, lanes)
    _fill_mixed(placement.view(arena, 'mixed'), placement, model, lanes, in_mixed)
    packs = placement.view(arena, 'packs')
    packs['parent'] = Pack.words * (parent_packs - np.arange(len(packs)))
    for name in WORKSPACE:
        mark_unwritten(packs[name])
    mark_unwritten(arena[placement.at['base'] :])
    _fill_empty_lanes(packs)
    _fill_base(packs, model)
    if model.nj:
        _fill_bodies(packs, model, lanes)
    return arena


def rotation_to_axis(axes: Floats) -> Floats:
    """R_LK (n, 3, 3): rotations whose third column is the given unit axis (n, 3).

    If the axis is x, y or z, the result is a permutation of the axes, which is exact.
    """
    n = len(axes)
    helper = np.zeros((n, 3))
    helper[np.arange(n), (np.argmax(np.abs(axes), axis=1) + 1) % 3] = 1.0
    x = helper - axes * np.sum(helper * axes, axis=1, keepdims=True)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, np.cross(axes, x), axes], axis=2)


def rotate_pi(pi: Floats, R_LK: Floats) -> Floats:
    """Transform inertial parameters (n, 10) from frames L to the axes of frames K with the same origins."""
    moments = np.einsum('nji,nj->ni', R_LK, pi[:, 1:4])
    inertia = pi[:, [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(-1, 3, 3)
    turned = np.einsum('nji,njk,nkl->nil', R_LK, inertia, R_LK)
    return np.column_stack([pi[:, 0], moments, turned.reshape(-1, 9)[:, [0, 1, 4, 2, 5, 8]]])


def _aligned_zeros(words: int) -> Floats:
    raw = np.zeros(words + 8)
    skip = (-raw.ctypes.data // 8) % 8
    return raw[skip : skip + words]


def _fill_joints(joints: npt.NDArray[Any], placement: Placement, model: Model, lanes: Ints) -> None:
    place = placement.at['packs'] + Pack.words * lanes[:, 0] + lanes[:, 1]
    joints['body'] = place - (placement.at['joints'] + Joint.words * np.arange(model.nj))
    joints['parent'], joints['subtree'] = model.parents, subtree_sizes(model.parents)
    joints['viscous'], joints['coulomb'] = model.viscous, model.coulomb


def _fill_mixed(
    mixed: npt.NDArray[Any], placement: Placement, model: Model, lanes: Ints, joints: Ints
) -> None:
    """Write the bodies of these joints, and their parents."""
    # The base, joint -1, comes last.
    places = placement.at['packs'] + np.append(Pack.words * lanes[:, 0] + lanes[:, 1], 0)
    here = placement.at['mixed'] + MixedBody.words * np.arange(len(joints))
    mixed['body'], mixed['carrier'] = places[joints] - here, places[model.parents[joints]] - here


def _fill_empty_lanes(packs: npt.NDArray[Any]) -> None:
    identity = np.eye(3).reshape(9, 1)
    packs['tree_rotation'] = packs['link_rotation'] = identity
    packs['joint_inertia'] = 1.0
    packs['own_joint'] = -1
    packs[0]['rotation'] = identity


def _fill_base(packs: npt.NDArray[Any], model: Model) -> None:
    """Write the base: at rest at the origin of A, without a joint; a fixed one does not rotate."""
    for name in ('position', 'axis_v', 'axis_w', 'v', 'w'):
        packs[0][name] = 0.0
    if model.floating_base:
        pi, base = (model.pi + model.rotor_pi)[:10], packs[0]
        base['mass'][0], base['first_moment'][:, 0], base['inertia'][:, 0] = pi[0], pi[1:4], pi[4:]


def _fill_bodies(packs: npt.NDArray[Any], model: Model, lanes: Ints) -> None:
    has_parent = (model.parents >= 0)[:, None, None]
    R_LK = rotation_to_axis(model.joint_axis)
    R_PK = np.where(has_parent, R_LK[model.parents], np.eye(3))  # of the parent's own link, not of the joint
    tree_R = np.einsum('nji,njk,nkl->nil', R_PK, model.joint_R, R_LK)
    pi = rotate_pi((model.pi + model.rotor_pi).reshape(-1, 10)[-model.nj :], R_LK)
    k, lane = lanes.T
    for name, values in (
        ('joint', np.arange(model.nj)),
        ('own_joint', np.arange(model.nj)),
        ('revolute', ~model.is_prismatic),
        ('prismatic', model.is_prismatic),
        ('mass', pi[:, 0]),
        ('rotor_gear', model.rotor_gear),
        ('rotor_coupling', model.rotor_gear * model.rotor_inertia),
        ('joint_inertia', model.rotor_gear**2 * model.rotor_inertia),
    ):
        packs[name][k, lane] = values
    for name, vectors in (
        ('tree_rotation', tree_R.reshape(-1, 9)),
        ('tree_position', np.einsum('nji,nj->ni', R_PK, model.joint_p)),
        ('first_moment', pi[:, 1:4]),
        ('inertia', pi[:, 4:]),
        ('link_rotation', R_LK.transpose(0, 2, 1).reshape(-1, 9)),
        ('rotor_axis', np.einsum('nji,nj->ni', R_PK, model.rotor_axis)),
    ):
        packs[name][k, :, lane] = vectors
