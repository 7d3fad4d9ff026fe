# SPDX-License-Identifier: Apache-2.0
"""The model of a robot: immutable data that every algorithm reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Bools, Floats, Ints
from quad_dynamics.errors import ArgumentError, ModelWarning
from quad_dynamics.memory.packing import Packed, pack_both
from quad_dynamics.model.description import ContactPoint, RobotDescription
from quad_dynamics.model.inertia import flat_inertia, implausible_bodies
from quad_dynamics.model.legs import Leg
from quad_dynamics.model.model_checks import check_model
from quad_dynamics.model.urdf import Urdf

STANDARD_GRAVITY = (0.0, 0.0, -9.81)

# Fields derived from all others: the model in the form that the kernels read, see `packing`.
_PACKED = ('_packed', '_mixed')


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """A link as a frame of its body.

    Attributes:
        name: of the link.
        body: index of the body; -1 is the immobile root of a fixed-base model.
        R: (3, 3) R_BF, rotation of the frame in the body's frame.
        p: (3,) p_BF, its origin in the body's frame [m].
    """

    name: str
    body: int
    R: Floats
    p: Floats

    def __repr__(self) -> str:
        return f"Frame('{self.name}', body={self.body})"


@dataclass(frozen=True)
class FoundPoints:
    """Contact points, and warnings about them, one text each."""

    points: tuple[ContactPoint, ...]
    warnings: tuple[str, ...]


class _Referable:
    """An object with slots that supports weak references."""

    __slots__ = ('__weakref__',)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Model(_Referable):
    """A robot as a tree of bodies.

    Build it with `load_model`; change it with the `with_...` methods, which return a new model that shares
    everything else.

    A body is a link with all links that are connected to it by fixed joints. Its frame is the frame
    of its main link: the root link, or the child link of the movable joint. All arrays are read-only float64.

    Attributes:
        name: of the robot.
        floating_base: whether the root link moves freely.
        joint_names: the nj movable joints in the order of q; a parent comes before its children.
        body_names: main links of the nb bodies; with a floating base the root link first, then the child of
            each joint in joint order. The immobile root of a fixed-base model is not a body.
        base_name: root link.
        parents: (nj,) index of the parent joint, -1 for the base or root.
        joint_R: (nj, 3, 3) R_PL, the child link's frame at q = 0 in the parent body's frame.
        joint_p: (nj, 3) p_PL, likewise [m].
        joint_axis: (nj, 3) unit axis in the child link's frame.
        is_prismatic: (nj,) bool.
        q_min: (nj,) [rad or m], -inf if there is no limit.
        q_max: (nj,) likewise, +inf.
        velocity_limit: (nj,) [rad/s or m/s], inf if there is none.
        effort_limit: (nj,) [N m or N], inf if there is none.
        viscous: (nj,) viscous friction F_v [N m s/rad or N s/m].
        coulomb: (nj,) Coulomb friction F_c [N m or N].
        pi: (10 nb,) inertial parameters of the links, without rotors: for each body [m, mcx, mcy, mcz, Ixx,
            Ixy, Iyy, Ixz, Iyz, Izz], the inertia about the body frame's origin and in its axes.
        gravity: (3,) in the world [m/s^2].
        rotor_gear: (nj,) rotor speed over joint speed, 1 if there is no rotor.
        rotor_inertia: (nj,) axial inertia of the rotor [kg m^2], 0 if there is none.
        rotor_axis: (nj, 3) unit spin axis in the parent body's frame.
        rotor_pi: (10 nb,) parameters that the rotors add to the bodies that carry them, as if fixed to them.
            Rotors on the immobile root of a fixed-base model add to no body.
        legs: in the order FL, FR, RL, RR on a quadruped.
        frames: every link of the file, and every foot that was found at the end of one, by name.
        description: the robot description, completed from the tree.
        described_standing: (nq,) the standing pose of the robot description, None if it has none.
        warnings: about the file.
        urdf: the file's content.
    """

    name: str
    floating_base: bool
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    base_name: str
    parents: Ints
    joint_R: Floats
    joint_p: Floats
    joint_axis: Floats
    is_prismatic: Bools
    q_min: Floats
    q_max: Floats
    velocity_limit: Floats
    effort_limit: Floats
    viscous: Floats
    coulomb: Floats
    pi: Floats
    gravity: Floats
    rotor_gear: Floats
    rotor_inertia: Floats
    rotor_axis: Floats
    rotor_pi: Floats
    legs: tuple[Leg, ...]
    frames: dict[str, Frame]
    description: RobotDescription
    described_standing: Floats | None
    warnings: tuple[str, ...]
    urdf: Urdf
    file_pi: Floats
    file_viscous: Floats
    file_coulomb: Floats
    _packed: Packed = field(init=False)
    _mixed: Packed = field(init=False)
    _standing: Floats | None = field(default=None, init=False)
    _found_points: FoundPoints | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_model(self)
        for name in self.__slots__:
            value = None if name in _PACKED else getattr(self, name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self._pack()
        for frame in self.frames.values():
            frame.R.setflags(write=False)
            frame.p.setflags(write=False)

    def __repr__(self) -> str:
        base = 'floating' if self.floating_base else 'fixed'
        return (
            f"<Model '{self.name}': {base} base, {self.nj} joints, {len(self.legs)} legs, "
            f'{self.total_mass:.4g} kg>'
        )

    # ---- sizes and sums

    @property
    def nj(self) -> int:
        """Number of movable joints."""
        return len(self.joint_names)

    @property
    def nq(self) -> int:
        """Length of q: 7 + nj with a floating base, else nj."""
        return self.nj + 7 if self.floating_base else self.nj

    @property
    def nv(self) -> int:
        """Length of u: 6 + nj with a floating base, else nj."""
        return self.nj + 6 if self.floating_base else self.nj

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return len(self.body_names)

    @property
    def foot_names(self) -> tuple[str, ...]:
        """Foot links, in leg order."""
        return tuple(leg.foot for leg in self.legs)

    @property
    def total_mass(self) -> float:
        """Mass of all moving bodies, including rotors [kg]."""
        return float(self.pi[::10].sum() + self.rotor_pi[::10].sum())

    @property
    def unit_rotor_pi(self) -> Floats:
        """(10 nb, nj) contribution of unit axial inertia of each joint's rotor to `rotor_pi`."""
        pi, carrier = np.zeros((self.nb, 10, self.nj)), self.parents + int(self.floating_base)
        for j in np.flatnonzero(carrier >= 0):
            pi[carrier[j], 4:, j] = flat_inertia(np.outer(self.rotor_axis[j], self.rotor_axis[j]))
        return pi.reshape(10 * self.nb, self.nj)

    @property
    def neutral(self) -> Floats:
        """(nq,) base at the origin, joints at zero or at the closest limit."""
        joints = np.clip(np.zeros(self.nj), self.q_min, self.q_max)
        if not self.floating_base:
            return joints
        return np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], joints])

    @property
    def contact_points(self) -> tuple[ContactPoint, ...]:
        """The contact points: from the robot description, else from the collision shapes.

        They are computed on first use, which reads the meshes (docs/robot_description.md). A mesh that cannot
        be read causes a `ModelWarning`.
        """
        found = self._find_points()
        for message in found.warnings:
            warnings.warn(message, ModelWarning, stacklevel=2)
        return found.points

    def _find_points(self) -> FoundPoints:
        """The contact points, and warnings about them."""
        if self._found_points is None:
            from quad_dynamics.model.contact_points import contact_points

            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter('always')
                points = contact_points(self)
            for item in caught:
                if not issubclass(item.category, ModelWarning):
                    warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
            messages = tuple(str(item.message) for item in caught if issubclass(item.category, ModelWarning))
            object.__setattr__(self, '_found_points', FoundPoints(points, messages))
        assert self._found_points is not None
        return self._found_points

    @property
    def standing(self) -> Floats | None:
        """(nq,) the standing pose, with the feet on the ground z = 0.

        It comes from the robot description; else, for a floating robot with feet, it is a crouch with the
        feet below the hips, computed on first use. None for all other robots, and if there is no such crouch.
        """
        if self._standing is None:
            from quad_dynamics.model.crouch import find_crouch, put_on_ground

            pose = self.described_standing
            if pose is None:
                pose = find_crouch(self)
            elif self.floating_base and self._height_is_free:
                pose = put_on_ground(self, pose)
            if pose is not None:
                pose.setflags(write=False)
            object.__setattr__(self, '_standing', pose)
        return self._standing

    @property
    def _height_is_free(self) -> bool:
        """Whether the description specifies neither the standing height nor the contact points."""
        wanted = self.description.standing
        return self.description.contact_points_from_tree and wanted is not None and wanted.base_height is None

    # ---- changed copies

    def with_pi(self, pi: npt.ArrayLike, check: bool = True) -> Model:
        """The same robot with other inertial parameters of its links.

        Args:
            pi: (10 nb,), as `Model.pi`.
            check: reject masses that are not positive and inertias about the com that are not positive
                definite.

        Raises:
            ArgumentError: wrong shape, not finite, or rejected by the check; the message names the body.
        """
        values = _vector(pi, 10 * self.nb, 'pi')
        if check:
            rows, old = values.reshape(-1, 10), self.pi.reshape(-1, 10)
            faults = [fault for fault in implausible_bodies(rows) if (rows[fault[0]] != old[fault[0]]).any()]
            if faults:
                text = '; '.join(f"body '{self.body_names[i]}': {fault}" for i, fault in faults)
                raise ArgumentError(f'pi is not physically consistent: {text}')
        return self._replace(pi=values)

    def with_friction(
        self, viscous: npt.ArrayLike | None = None, coulomb: npt.ArrayLike | None = None
    ) -> Model:
        """The same robot with other joint friction (nj,); None: unchanged.

        Raises:
            ArgumentError: wrong shape, not finite or negative.
        """
        changes = {}
        for key, given in (('viscous', viscous), ('coulomb', coulomb)):
            if given is None:
                continue
            values = _vector(given, self.nj, key)
            for i in np.flatnonzero(values < 0.0)[:1]:
                raise ArgumentError(f"{key} of joint '{self.joint_names[i]}' is {values[i]:g}; expected >= 0")
            changes[key] = values
        return self._replace(**changes)

    def with_rotors(self, inertia: npt.ArrayLike | None = None, gear: npt.ArrayLike | None = None) -> Model:
        """The same robot with other rotors (nj,); None: unchanged, as are mass and transverse inertia.

        Args:
            inertia: axial, before the gear [kg m^2]; it also changes the links that carry the rotors.
            gear: rotor speed over joint speed.

        Raises:
            ArgumentError: wrong shape or not finite.
        """
        given = {'rotor_inertia': inertia, 'rotor_gear': gear}
        changes = {key: _vector(values, self.nj, key) for key, values in given.items() if values is not None}
        if inertia is not None:
            more = changes['rotor_inertia'] - self.rotor_inertia
            changes['rotor_pi'] = self.rotor_pi + self.unit_rotor_pi @ more
        return self._replace(**changes)

    def with_gravity(self, gravity: npt.ArrayLike) -> Model:
        """The same robot with another gravity (3,) in the world [m/s^2].

        Raises:
            ArgumentError: wrong shape or not finite.
        """
        return self._replace(gravity=_vector(gravity, 3, 'gravity'))

    def without_rotors(self) -> Model:
        """The same robot with massless rotors without inertia; the gears are kept."""
        return self._replace(rotor_inertia=np.zeros(self.nj), rotor_pi=np.zeros(10 * self.nb))

    def _replace(self, **changes: Any) -> Model:
        """A copy that shares everything except the changes; dataclasses.replace would process all fields."""
        new = object.__new__(Model)
        for name in self.__slots__:
            if name not in _PACKED:
                object.__setattr__(new, name, getattr(self, name))
        for name, value in changes.items():
            value.setflags(write=False)
            object.__setattr__(new, name, value)
        new._pack()
        return new

    def _pack(self) -> None:
        """Make the data that the kernels read."""
        for name, packed in zip(_PACKED, pack_both(self), strict=True):
            object.__setattr__(self, name, packed)

    # ---- text

    def to_urdf(self) -> str:
        """The robot as URDF text; loading it gives the same numbers.

        Changed inertial parameters and friction are written to the text; if the parameters of a body changed,
        its main link gets all of them. The rest of the file is unchanged. Rotors, gravity and the robot
        description are not part of a URDF.

        Raises:
            ArgumentError: a body has no mass but a first moment, which URDF cannot represent.
        """
        from quad_dynamics.model.urdf_writer import write_model

        return write_model(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Fields that start with _ are rebuilt when needed.
        names = [name for name in self.__slots__ if not name.startswith('_')]
        return _restore, (names, [getattr(self, name) for name in names])


def _refuse(self: Model, name: str, value: object) -> None:
    """Reject assignments with a helpful message; that of a dataclass with slots is cryptic."""
    raise FrozenInstanceError(
        f"'{name}' of a model cannot be set; use its with_... methods, which return a new model"
    )


Model.__setattr__ = _refuse  # type: ignore[method-assign, assignment]


def _restore(names: Iterable[str], values: Iterable[Any]) -> Model:
    return Model(**dict(zip(names, values, strict=True)))


def _vector(values: npt.ArrayLike, size: int, name: str) -> Floats:
    """A checked copy of (size,) finite numbers."""
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ArgumentError(f'{name} has masked values; expected ({size},) numbers')
    try:
        if np.iscomplexobj(values):  # NumPy would drop the imaginary part with only a warning
            raise TypeError('it is complex')
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f'{name} is not an array of numbers: {error}; expected ({size},)') from error
    if array.shape != (size,):
        raise ArgumentError(f'{name} has the shape {array.shape}; expected ({size},)')
    if not np.isfinite(array).all():
        raise ArgumentError(f'{name} is not finite at index {int(np.flatnonzero(~np.isfinite(array))[0])}')
    return array
