# SPDX-License-Identifier: Apache-2.0
"""Designs motions that make the parameters of a robot identifiable, within all its limits.

A standing robot sways first, with all feet on the ground; then it swings its legs, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.blas_threads import single_threaded_blas
from quad_dynamics.identification.excitation.excitation_limits import Limits
from quad_dynamics.identification.excitation.excitation_motion import HeldBase, Standing, States, joined
from quad_dynamics.identification.excitation.excitation_result import Candidate, Excitation
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.excitation.search import SAMPLE_RATE, Search
from quad_dynamics.identification.excitation.swing import LEG_ITERATIONS, Swings, swing_legs
from quad_dynamics.model.model import Model


def choose_motion(model: Model, leg: str = '') -> HeldBase | Standing:
    """The type of motion of a robot.

    Args:
        model: robot; with a floating base it stands on all its feet.
        leg: name of the only leg that moves, with a fixed base; '' for all joints.

    Raises:
        ArgumentError: there is no such leg, or a leg is requested for a floating base.
    """
    if not leg:
        return Standing(model) if model.floating_base else HeldBase(model, np.arange(model.nj))
    named = {one.name: one for one in model.legs}
    if leg not in named:
        raise ArgumentError(
            f"'{model.name}' has no leg {leg!r}; expected one of {', '.join(named) or 'none'}"
        )
    return HeldBase(model, np.array(named[leg].joint_indices))


@single_threaded_blas()
def design(
    motion: HeldBase | Standing,
    settings: ExcitationSettings | None = None,
    ground: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Excitation:
    """Design a motion.

    Args:
        motion: type of motion.
        settings: of the design.
        ground: height of a plane that must not be touched [m]; None: none, or that on which the robot stands.
        progress: called with the numbers of completed and of all steps of the search.

    Raises:
        ArgumentError: the robot cannot move within its limits.
    """
    settings = settings or ExcitationSettings()
    swings = isinstance(motion, Standing) and settings.swing > 0.0
    search = Search(motion, settings, Limits(motion, settings, ground))
    steps = settings.iterations + swings * len(motion.model.legs) * LEG_ITERATIONS
    progress = progress or (lambda done, all: None)
    step = _counter(progress, steps)
    sway, naive = search.compared(step)
    whole, notes = sway, list(search.limits.notes)
    lifted: tuple[str, ...] = ()
    if isinstance(motion, Standing) and swings:
        found = swing_legs(motion, settings, search.rate, search.limits.capsules, step)
        notes += found.notes
        whole, lifted = _whole(search, sway, found), found.lifted
    progress(steps, steps)
    return _result(search, settings, motion, whole, sway, naive, tuple(notes), lifted)


def _counter(progress: Callable[[int, int], None], steps: int) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(min(done, steps), steps)

    return step


def _whole(search: Search, sway: Candidate, swings: Swings) -> Candidate:
    """Sway and swings as one motion, evaluated by its total information."""
    if not swings.parts:
        return sway
    information = search.information
    parts: list[States] = [sway.states, *swings.parts]
    counts = [len(part.q) for part in parts]
    means = [information.matrix(information.rows(part)) for part in parts]
    A = np.average(means, axis=0, weights=counts)
    quality = information.quality(np.asarray(A), sum(counts) / search.rate * SAMPLE_RATE)
    name, _ = max(search.limits.worst(sway.states), swings.tightest, key=lambda limit: limit[1])
    return Candidate('designed', joined(parts), quality, name)


def _result(
    search: Search,
    settings: ExcitationSettings,
    motion: HeldBase | Standing,
    whole: Candidate,
    sway: Candidate,
    naive: tuple[Candidate, ...],
    notes: tuple[str, ...],
    lifted: tuple[str, ...],
) -> Excitation:
    model, own = motion.model, motion.joints
    states, every = whole.states, round(search.rate / settings.rate)
    last = len(states.q) - 1
    points = np.unique([*range(0, last, every), last])
    joints = states.q[points, model.nq - model.nj :][:, own]
    velocity, acceleration = (x[points, model.nv - model.nj :][:, own] for x in (states.u, states.du))
    return Excitation(
        model=model,
        joint_names=tuple(model.joint_names[i] for i in own),
        time=points / search.rate,
        position=joints,
        velocity=velocity,
        acceleration=acceleration,
        best=whole,
        sway=sway,
        naive=naive,
        lifted=lifted,
        period=search.period,
        criterion=settings.criterion,
        notes=notes,
    )
