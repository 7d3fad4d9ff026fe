# SPDX-License-Identifier: Apache-2.0
"""Plausibility: linear limits of masses and centres of mass, relative to the model.

A physically consistent body can still be absurd: 200 kg in a hip, or a centre of mass a metre away from its
link. If friction does not have the assumed form, torque constants are wrong, or a motion is poor, such bodies
fit the data best. So the masses of links and of the robot are limited, and each centre of mass is kept inside
the geometry of its body. All these limits are linear in the inertial parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import Columns
from quad_dynamics.identification.solvers.link_extents import link_extents
from quad_dynamics.model.model import Model

TRUST = 0.3  # relative standard deviation of link masses in URDF files
_DEVIATIONS = 3.0  # limit of the mass of a link, in standard deviations
_WHOLE = 0.32  # limit of the total mass relative to trust: makers publish it, and errors of links cancel
_LIKELY = 0.5  # standard deviation of the total mass relative to its limit
_SMALL = 0.01  # change that is allowed for any link, relative to the robot: screws, cables
_REACHED = 0.02  # remaining distance to a reached limit, relative to that of the prior
_FAR = 0.5  # excess over a limit that is reported, relative to the distance between prior and limit
_CARRIED = 1.0  # payload of a floating base, relative to the mass of the robot


@dataclass(frozen=True)
class MassRange:
    """The total mass of the robot as given by the user, including the immobile root [kg]."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Limits:
    """Linear limits of the unknowns: rows @ x >= floor.

    Attributes:
        rows: (n, size).
        floor: (n,).
        room: (n,) slack of the prior.
        shares: (n,) share of the robot's mass in the body of each limit; 1 for the whole robot.
        texts: description of a violation of each limit, such as 'mass of FL_calf above 0.3 kg'.
    """

    rows: Floats
    floor: Floats
    room: Floats
    shares: Floats
    texts: tuple[str, ...]

    def slack(self, x: Floats) -> Floats:
        """(n,) slack of each limit at x; negative outside."""
        return np.asarray(self.rows @ x - self.floor)

    def reached(self, x: Floats) -> dict[str, float]:
        """Texts and shares of the limits that a solution (size,) has reached."""
        return self._where(self.slack(x) <= _REACHED * self.room)

    def exceeded(self, x: Floats) -> dict[str, float]:
        """Texts and shares of the limits that a solution without limits (size,) exceeds by far."""
        return self._where(self.slack(x) < -_FAR * self.room)

    def _where(self, chosen: npt.NDArray[np.bool_]) -> dict[str, float]:
        return {self.texts[i]: float(self.shares[i]) for i in np.flatnonzero(chosen)}


def make_limits(columns: Columns, x0: Floats, trust: float = TRUST, mass: MassRange | None = None) -> Limits:
    """Limits around a prior, which is strictly inside.

    Args:
        columns: the unknowns.
        x0: (size,) the prior; every body is consistent, and the total mass agrees with `mass`.
        trust: relative standard deviation of the masses in the model.
        mass: of the robot, if the user has given it.
    """
    found = [
        *_mass_limits(columns, x0, 1.0 + _DEVIATIONS * trust),
        *_whole_limits(columns, x0, trust, mass),
        *_com_limits(columns, x0),
    ]
    rows, floor, shares = (
        np.array([getattr(one, name) for one in found]) for name in ('row', 'floor', 'share')
    )
    return Limits(rows, floor, rows @ x0 - floor, shares, tuple(one.text for one in found))


@dataclass(frozen=True, eq=False)
class _Limit:
    """One of `Limits`."""

    row: Floats
    floor: float
    share: float
    text: str


def _between(
    row: Floats, low: float, high: float, share: float, name: str, shown: float = 0.0
) -> list[_Limit]:
    """Limits of a mass; `shown` is added to the values in texts [kg]."""
    return [
        _Limit(row, low, share, f'{name} below {low + shown:.3g} kg'),
        _Limit(-row, -high, share, f'{name} above {high + shown:.3g} kg'),
    ]


def _mass_limits(columns: Columns, x0: Floats, factor: float) -> Iterator[_Limit]:
    """Limits of link masses: a factor, or a fraction of the robot if more; the base may carry a payload."""
    model, masses = columns.model, x0[columns.slices['pi']][::10]
    whole = float(masses.sum())
    for i, (name, m) in enumerate(zip(model.body_names, masses, strict=True)):
        low, high = min(m / factor, max(m - _SMALL * whole, 0.1 * m)), max(m * factor, m + _SMALL * whole)
        carried = _CARRIED * whole if i == 0 and model.floating_base else 0.0
        yield from _between(_mass_row(columns, [i]), low, high + carried, m / whole, f'mass of {name}')


def _whole_limits(columns: Columns, x0: Floats, trust: float, mass: MassRange | None) -> list[_Limit]:
    """Limits of the total mass: as given by the user, or from its error; wide for a floating base."""
    model, masses = columns.model, x0[columns.slices['pi']][::10]
    whole, fixed = float(masses.sum()), immobile_mass(columns)
    if mass is not None:
        low, high = mass.low - fixed, mass.high - fixed
    elif model.floating_base:
        low, high = (whole * (1.0 + _DEVIATIONS * trust) ** sign for sign in (-1, 1))
    else:
        error = _whole_error(masses, trust)
        low, high = whole / (1.0 + error), whole * (1.0 + error)
    name = 'mass of the robot' + (' and its fixed base' if fixed > 0.0 and not model.floating_base else '')
    return _between(_mass_row(columns, range(model.nb)), low, high, 1.0, name, fixed)


def _whole_error(masses: Floats, trust: float) -> float:
    """Limit of the relative error of the total mass of a fixed-base robot.

    Errors of links are independent, so the relative error of their sum decreases with the square root of
    their number.
    """
    return trust * min(float(np.sqrt(np.sum(masses**2)) / masses.sum()), _WHOLE)


def mass_belief(columns: Columns, x0: Floats, trust: float) -> Floats | None:
    """(1, size) the total mass of a fixed-base robot, in units of its standard deviation; None if it floats.

    Joint torques hardly depend on it: mass that no joint moves up or down is free to change. Without this
    prior, the total mass would follow the masses of single links up to its limit.

    Args:
        columns: the unknowns.
        x0: (size,) the prior.
        trust: relative standard deviation of the masses in the model.
    """
    if columns.model.floating_base:
        return None
    masses = x0[columns.slices['pi']][::10]
    std = _LIKELY * _whole_error(masses, trust) * float(masses.sum())
    return _mass_row(columns, range(columns.model.nb))[None] / std


def _com_limits(columns: Columns, x0: Floats) -> Iterator[_Limit]:
    """Centres of mass c inside boxes: h - low m >= 0 and high m - h >= 0, with h = m c."""
    model, masses = columns.model, x0[columns.slices['pi']][::10]
    for i, (name, box) in enumerate(zip(model.body_names, link_extents(model), strict=True)):
        for sign, corner in zip((1.0, -1.0), box, strict=True):
            for k in range(3):
                row = _mass_row(columns, [i]) * (-sign * corner[k])
                row[columns.slices['pi'].start + 10 * i + 1 + k] = sign
                text = f'centre of mass of {name} outside of its geometry'
                yield _Limit(row, 0.0, float(masses[i] / masses.sum()), text)


def within(columns: Columns, x0: Floats, mass: MassRange) -> tuple[Floats, list[str]]:
    """(size,) the prior, with bodies scaled to the given total mass if it is different; and notes.

    Args:
        columns: the unknowns.
        x0: (size,) the prior.
        mass: of the robot.

    Raises:
        ArgumentError: the immobile part alone is heavier.
    """
    pi, fixed = columns.slices['pi'], immobile_mass(columns)
    whole = float(x0[pi][::10].sum())
    if mass.low < whole + fixed < mass.high:
        return x0, []
    if not mass.low > fixed:
        raise ArgumentError(
            f'mass is {mass.low:g} to {mass.high:g} kg, but what does not move has {fixed:g} kg; '
            f'expected the mass of the whole robot, {whole + fixed:g} kg in the model'
        )
    ratio = (0.5 * (mass.low + mass.high) - fixed) / whole
    x0 = x0.copy()
    x0[pi] *= ratio
    return x0, [f'mass: {whole + fixed:.4g} kg in the model; its moving bodies are scaled by {ratio:.4g}']


def immobile_mass(columns: Columns) -> float:
    """Mass that is not an unknown: links fixed to the root of a fixed base, and rotors [kg]."""
    return root_mass(columns.model) + float(columns.known[columns.slices['pi']][::10].sum())


def root_mass(model: Model) -> float:
    """Mass of the links that are fixed to the root of a fixed base; 0 for a floating base [kg]."""
    links = {link.name: link for link in model.urdf.links}
    held = [links[name] for name, frame in model.frames.items() if frame.body < 0 and name in links]
    return float(sum(link.inertial.mass for link in held if link.inertial is not None))


def _mass_row(columns: Columns, bodies: Iterable[int]) -> Floats:
    """(size,) row with 1 at the masses of bodies."""
    row = np.zeros(columns.size)
    row[columns.slices['pi'].start + 10 * np.array(list(bodies), dtype=int)] = 1.0
    return row
