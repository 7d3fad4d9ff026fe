# SPDX-License-Identifier: Apache-2.0
"""Free and tied unknowns: x = x0 + T z."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quad_dynamics.array_types import Bools, Floats, Ints
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import JOINT_KINDS, NOT_NEGATIVE, Columns
from quad_dynamics.identification.solvers.leg_ties import LegTie, find_leg_ties
from quad_dynamics.identification.solvers.plausible import (
    Limits,
    MassRange,
    make_limits,
    mass_belief,
    within,
)
from quad_dynamics.identification.solvers.pseudo_inertia import make_consistent
from quad_dynamics.parameters.parameter import nearest, show

# Groups that are freed only if cross-validation shows an improvement, unless they are requested by name. In
# the order in which they are tried: offsets are visible only if force biases are known.
OPTIONAL = ('viscous', 'coulomb', 'bias', 'offset', 'rotor', 'asymmetric', 'stribeck')
TRUNK = 'trunk'
_TEXTBOOK = frozenset({'inertia', 'viscous', 'coulomb', 'offset', 'rotor'})
# Sensor errors. They are always free; those of _MAY_HELP only if this improves predictions.
SENSORS = ('offset', 'bias', 'delay')
_MAY_HELP = ('offset', 'bias')
_WORDS = ('inertia', 'friction', *JOINT_KINDS, 'bias', 'delay', 'trunk', 'payload')
_ODD = ('offset', 'asymmetric')  # kinds that change sign if corresponding motions have opposite signs


@dataclass(frozen=True, eq=False)
class Freedom:
    """The unknowns that may change: x = x0 + T z.

    Attributes:
        columns: all unknowns.
        x0: (size,) the prior; every body is consistent.
        T: (size, nz) map from z to x.
        names: of each z: the unknown that it changes; that of the first leg if legs are tied.
        lead: (nz,) index of this unknown.
        groups: of each z: 'inertia' or a kind of column ('viscous', ..., 'bias').
        optional: groups that are freed only if this improves predictions.
        notes: changes and assumptions, as text.
        limits: of plausibility; None: bodies only have to be consistent.
        beliefs: (n, size) combinations of unknowns with a prior, each in units of its standard deviation;
            None: none.
        holds: (n, size) combinations that are held, in units of their tolerance; None: none. Unlike beliefs
            they do not reduce the uncertainty.
    """

    columns: Columns
    x0: Floats
    T: Floats
    names: tuple[str, ...]
    lead: Ints
    groups: tuple[str, ...]
    optional: frozenset[str]
    notes: tuple[str, ...] = ()
    limits: Limits | None = None
    beliefs: Floats | None = None
    holds: Floats | None = None

    @property
    def soft(self) -> Floats:
        """(n, size) beliefs and holds."""
        parts = [rows for rows in (self.beliefs, self.holds) if rows is not None]
        return np.concatenate([np.zeros((0, self.columns.size)), *parts])

    @property
    def nz(self) -> int:
        """Number of free unknowns; tied ones count once."""
        return len(self.names)

    @property
    def free(self) -> Bools:
        """(size,) which unknowns may change."""
        return np.asarray(np.any(self.T != 0.0, axis=1))

    @property
    def bodies(self) -> Ints:
        """Indices of the bodies whose inertia may change."""
        pi = self.free[self.columns.slices['pi']].reshape(-1, 10)
        return np.asarray(np.flatnonzero(pi.any(axis=1)), dtype=np.int64)

    @property
    def bounded(self) -> Ints:
        """Indices of the free unknowns that cannot be negative: friction and rotors."""
        free = self.free
        parts = [np.arange(s.start, s.stop) for s in (self.columns.slices[k] for k in NOT_NEGATIVE)]
        found = np.concatenate(parts)
        return np.asarray(found[free[found]], dtype=np.int64)

    @property
    def has_trunk_and_legs(self) -> bool:
        """Whether the inertia of a floating base may change, and that of other bodies too."""
        return self.columns.model.floating_base and len(self.bodies) > 1 and self.bodies[0] == 0

    def x(self, z: Floats) -> Floats:
        """(size,) all unknowns."""
        return np.asarray(self.x0 + self.T @ z)

    def only(self, groups: Collection[str]) -> Freedom:
        """The same with only some groups free; TRUNK is the part of 'inertia' that belongs to the base."""
        wanted = [
            group in groups or (TRUNK in groups and group == 'inertia' and lead < 10)
            for group, lead in zip(self.groups, self.lead, strict=True)
        ]
        keep = np.array(wanted, dtype=bool)
        return replace(
            self,
            T=self.T[:, keep],
            names=tuple(name for name, kept in zip(self.names, keep, strict=True) if kept),
            lead=self.lead[keep],
            groups=tuple(group for group, kept in zip(self.groups, keep, strict=True) if kept),
        )

    def without(self, unknowns: Collection[int]) -> Freedom:
        """The same with some unknowns fixed, by their indices in x."""
        keep = np.flatnonzero(~np.isin(self.lead, list(unknowns)))
        return replace(
            self,
            T=self.T[:, keep],
            names=tuple(self.names[i] for i in keep),
            lead=self.lead[keep],
            groups=tuple(self.groups[i] for i in keep),
        )


def textbook_freedom(freedom: Freedom) -> Freedom:
    """What is free without cross-validation: what was requested, and of the rest what most textbooks free."""
    return freedom.only({g for g in freedom.groups if g in _TEXTBOOK or g not in freedom.optional})


def make_freedom(
    columns: Columns,
    free: Sequence[str] = (),
    tie_legs: bool = False,
    trust: float | None = None,
    mass: MassRange | None = None,
) -> Freedom:
    """Free the named unknowns.

    Args:
        columns: all unknowns.
        free: names: 'inertia' (all links), 'friction' (viscous and Coulomb), 'viscous', 'coulomb', 'offset',
            'asymmetric', 'stribeck', 'rotor', 'bias', 'delay', 'trunk' or 'payload' (inertia of the base
            link), names of bodies or links (their inertia), of joints (their friction), of unknowns
            ('FL_calf.m'), each with * and ? as in file names. Empty: everything; groups that do not improve
            predictions are removed later.
        tie_legs: whether all legs share one set of parameters.
        trust: relative error of masses in the model (`make_limits`); None: no plausibility limits.
        mass: of the whole robot, if known.

    Raises:
        ArgumentError: an unknown name, or legs that are not alike; the message names it.
    """
    mask = np.zeros(columns.size, dtype=bool)
    for word in free:
        mask |= _mask_of(columns, word)
    for kind in SENSORS:  # always free: sensor errors must not be attributed to the robot
        mask[columns.slices[kind]] = True
    if not free:
        mask[:] = True
    x0, words = _consistent_prior(columns)
    if mass is not None:
        x0, scaled = within(columns, x0, mass)
        words += scaled
    T, lead = np.eye(columns.size), np.arange(columns.size)
    if tie_legs:
        ties = find_leg_ties(columns.model)
        T, lead, mask = _tied(columns, ties, mask)
        words += _words_of_ties(columns, ties)
    keep = mask[lead]
    kinds = _kinds(columns)
    return Freedom(
        columns=columns,
        x0=x0,
        T=T[:, keep],
        names=tuple(columns.names[i] for i in lead[keep]),
        lead=lead[keep],
        groups=tuple(kinds[i] for i in lead[keep]),
        optional=frozenset(
            kind for kind in (_MAY_HELP if free else ('inertia', *OPTIONAL)) if kind not in free
        ),
        notes=tuple(words),
        limits=None if trust is None else make_limits(columns, x0, trust, mass),
        beliefs=None if trust is None or mass is not None else mass_belief(columns, x0, trust),
    )


def _consistent_prior(columns: Columns) -> tuple[Floats, list[str]]:
    """(size,) the prior of the model, with every body consistent; and the changed bodies, as text."""
    x0, model = columns.prior.copy(), columns.model
    pi, words = make_consistent(x0[columns.slices['pi']].reshape(-1, 10), model.body_names, model.total_mass)
    x0[columns.slices['pi']] = pi.reshape(-1)
    return x0, words


def _kinds(columns: Columns) -> list[str]:
    """Group of each unknown."""
    kinds = [''] * columns.size
    for kind, part in columns.slices.items():
        for i in range(part.start, part.stop):
            kinds[i] = 'inertia' if kind == 'pi' else kind
    return kinds


def _mask_of(columns: Columns, word: str) -> Bools:
    """The unknowns that a name frees."""
    model, mask = columns.model, np.zeros(columns.size, dtype=bool)
    groups = {'inertia': ('pi',), 'friction': ('viscous', 'coulomb')}
    if word in groups or word in columns.slices:
        for kind in groups.get(word, (word,)):
            mask[columns.slices[kind]] = True
        return mask
    if word in ('trunk', 'payload'):
        if not model.floating_base:
            raise ArgumentError(f'free: {show(word)} is the base link, but the base is fixed')
        mask[:10] = True
        return mask
    for name in fnmatch.filter(_names(columns), word):
        mask |= _mask_of_name(columns, name)
    if not mask.any():
        known = [*_WORDS, *_names(columns)]
        raise ArgumentError(
            f'free: unknown word {show(word)}{nearest(word, known)}; expected {", ".join(_WORDS)}, or the '
            'name of a body, link, joint or unknown of the robot'
        )
    return mask


def _names(columns: Columns) -> list[str]:
    model = columns.model
    links = [name for name, frame in model.frames.items() if frame.body >= 0]
    return list(dict.fromkeys([*model.body_names, *model.joint_names, *links, *columns.names]))


def _mask_of_name(columns: Columns, name: str) -> Bools:
    """The unknowns that one name frees: friction of a joint, inertia of a body or link, or one unknown."""
    model, mask = columns.model, np.zeros(columns.size, dtype=bool)
    if name in columns.names:
        mask[columns.names.index(name)] = True
    elif name in model.joint_names:
        for kind in ('viscous', 'coulomb'):
            mask[columns.slices[kind].start + model.joint_names.index(name)] = True
    else:
        body = model.frames[name].body if name in model.frames else model.body_names.index(name)
        mask[10 * body : 10 * body + 10] = True
    return mask


def _tied(columns: Columns, ties: Sequence[LegTie], mask: Bools) -> tuple[Floats, Ints, Bools]:
    """T for all unknowns, the leading unknown of each z, and which are free, including tied ones."""
    T, mask = np.eye(columns.size), mask.copy()
    followers = np.zeros(columns.size, dtype=bool)
    for pair in (pair for tie in ties for pair in tie.pairs):
        (a, b), (i, j) = pair.bodies, pair.joints
        T[10 * b : 10 * b + 10, 10 * a : 10 * a + 10] = pair.map
        followers[10 * b : 10 * b + 10] = True
        mask[10 * a : 10 * a + 10] |= mask[10 * b : 10 * b + 10]
        for kind in JOINT_KINDS:
            first, second = columns.slices[kind].start + i, columns.slices[kind].start + j
            T[second, first] = pair.sign if kind in _ODD else 1.0
            followers[second] = True
            mask[first] |= mask[second]
    lead = np.flatnonzero(~followers)
    return T[:, lead], lead, mask


def _words_of_ties(columns: Columns, ties: Sequence[LegTie]) -> list[str]:
    legs = columns.model.legs
    words = [f'legs tied: {", ".join(leg.name for leg in legs)} change alike, mirrored where they are']
    for tie in ties:
        if tie.mismatch > 0.01:
            words.append(
                f"legs tied: the model's values of {legs[tie.leg].name} differ from those of {legs[0].name} "
                f'by {100 * tie.mismatch:.1f} %; only what the data add to them is tied'
            )
    return words
