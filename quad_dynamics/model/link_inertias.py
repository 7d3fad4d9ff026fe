# SPDX-License-Identifier: Apache-2.0
"""Checks the <inertial> of every link: errors, and faults that are tolerable in a valid body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quad_dynamics.array_types import Floats
from quad_dynamics.model.bodies import NOISE_RADIUS
from quad_dynamics.model.inertia import (
    SINGULAR,
    about_com,
    full_inertia,
    implausible_bodies,
    principal_moments,
)
from quad_dynamics.model.problems import Problems
from quad_dynamics.model.topology import Topology
from quad_dynamics.model.urdf import Inertial, Link, Urdf

# Values with three or four digits of a flat body can violate the triangle inequality by this much.
_TRIANGLE_TOLERANCE = 1e-3
# A negative moment of a fixed link below this fraction of its body's moment counts as rounding.
_SLIGHT = 1e-2

_MASSLESS = 'links with mass 0 and inertia 0 are treated as massless: {}'
_POINT_LIKE = 'links with singular inertia, like a point mass or a rod: {}'
_ODD = 'links with invalid inertia, used unchanged since the bodies that they belong to are valid: {}'
_TRIANGLE = (
    'the inertia of some links violates the triangle inequality, which is physically impossible; it is used '
    'unchanged (largest principal moment over the sum of the others; at most 1 for a real body): {}'
)


@dataclass(frozen=True)
class OddInertia:
    """An invalid inertia that is harmless for a link that is fixed to a valid body.

    Attributes:
        where: the link.
        fault: the problem, as the end of a sentence about the link.
        short: the same in brief.
        negative: magnitude of its negative principal moment [kg m^2].
    """

    where: str
    fault: str
    short: str
    negative: float = 0.0


def check_links(urdf: Urdf, odd: dict[str, OddInertia], problems: Problems) -> set[str]:
    """Check the inertial of every link on its own.

    Args:
        urdf: the file.
        odd: receives the links whose faults may be harmless, by name.
        problems: receives all others.

    Returns:
        Names of the links that are definitely faulty.
    """
    faulty = {link.name for link in urdf.links if link.inertial is None and link.has_inertial}
    for link in urdf.links:
        n_errors = problems.n_errors
        if link.inertial is not None:
            _check_inertial(link, link.inertial, odd, problems)
        if problems.n_errors > n_errors:
            faulty.add(link.name)
    return faulty


def _check_inertial(link: Link, inertial: Inertial, odd: dict[str, OddInertia], problems: Problems) -> None:
    where = f"link '{link.name}' (line {link.line})"
    if inertial.mass < 0.0:
        problems.error(f'{where}: mass is {inertial.mass:g}; expected > 0')
        return
    if inertial.mass == 0.0:
        if any(inertial.inertia):
            fault = 'mass is 0, but the inertia is not; expected mass > 0'
            odd[link.name] = OddInertia(where, fault, 'mass 0, inertia not')
        else:
            problems.warn(_MASSLESS, link.name)
        return
    low, middle, high = (float(w) for w in principal_moments(full_inertia(inertial.inertia)))
    noise = inertial.mass * NOISE_RADIUS**2
    if low < -noise and (high < 0.0 or low < -SINGULAR * max(high, -low)):
        fault = (
            f'inertia is not positive definite (principal moments {low:.3g}, {middle:.3g}, '
            f'{high:.3g} kg m^2; expected all > 0)'
        )
        odd[link.name] = OddInertia(where, fault, f'moment {low:.3g} kg m^2', -low)
    elif low <= SINGULAR * high:
        problems.warn(_POINT_LIKE, link.name)
    elif high > (low + middle) * (1.0 + _TRIANGLE_TOLERANCE):
        problems.warn(_TRIANGLE, f'{link.name} ({high / (low + middle):.3f})')


def complain_of_odd_links(odd: Mapping[str, OddInertia], problems: Problems) -> None:
    """Report odd links as errors if it is unknown what they are fixed to."""
    for each in odd.values():
        problems.error(f'{each.where}: {each.fault}')


def judge_odd_links(
    odd: Mapping[str, OddInertia], topology: Topology, bodies: tuple[str, ...], pi: Floats, problems: Problems
) -> set[str]:
    """Warn about odd links that are part of a valid body or of a fixed base; the others are errors.

    Args:
        odd: from `check_links`.
        topology: the tree.
        bodies: main links.
        pi: (nb, 10) their parameters.
        problems: receives the problems.

    Returns:
        Names of the links that are errors.
    """
    unsound = {i for i, _ in implausible_bodies(pi)} if odd else set()
    refused = set()
    for name, each in odd.items():
        main = topology.main_link[name]
        i = bodies.index(main) if main in bodies else None
        if i is None or (i not in unsound and each.negative <= _SLIGHT * _smallest_moment(pi[i])):
            problems.warn(_ODD, f'{name} ({each.short})')
        else:
            problems.error(f'{each.where}: {each.fault}')
            refused.add(name)
    return refused


def _smallest_moment(pi: Floats) -> float:
    return float(principal_moments(about_com(pi[None])[2])[0, 0])
