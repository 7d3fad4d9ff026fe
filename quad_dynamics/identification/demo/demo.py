# SPDX-License-Identifier: Apache-2.0
"""The complete demonstration: hide, excite, record, identify, validate, compare."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from quad_dynamics.array_types import Floats
from quad_dynamics.identification.demo.comparison import Finding, friction_findings, payload_findings
from quad_dynamics.identification.demo.compiling import compiled_meanwhile
from quad_dynamics.identification.demo.experiment import Experiment
from quad_dynamics.identification.demo.secret import Secret, make_secret
from quad_dynamics.identification.excitation.excitation import choose_motion, design
from quad_dynamics.identification.excitation.excitation_bag import Trajectory, write_trajectory
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.pipeline import Result, identify
from quad_dynamics.identification.report.output_folder import check_output, write_results
from quad_dynamics.model.model import Model

Progress = Callable[[str], object]

# The other motion, for validation: on all feet, after a short search, because it need not be optimal.
_OTHER = {'seed': 1, 'swing': 0.0, 'starts': 4, 'iterations': 8}
_OTHER_DURATION = 10.0  # [s]; shorter if the first motion is


@dataclass(frozen=True)
class DemoSettings:
    """Settings of the demonstration.

    Attributes:
        seed: of the hidden values and of the sensor noise.
        duration: of the sway on all feet [s].
        swing: time for which each leg swings in the air after that [s].
    """

    seed: int = 0
    duration: float = 20.0
    swing: float = 8.0


@dataclass(frozen=True, eq=False)
class Demo:
    """Result of a demonstration.

    Attributes:
        secret: hidden values.
        result: of the identification.
        payload: mass and position, hidden and identified.
        friction: of all joints, hidden and identified.
        report: path of the HTML report.
    """

    secret: Secret
    result: Result
    payload: list[Finding]
    friction: list[Finding]
    report: Path


def demonstrate(
    model: Model,
    folder: str | os.PathLike[str],
    settings: DemoSettings | None = None,
    progress: Progress | None = None,
) -> Demo:
    """Hide a payload and friction in a simulated robot, and identify them from a bag of its motion.

    The folder then contains the bags `motion`, `run` and `other_run`, the results in `identified`, and the
    hidden values in `hidden.yaml`.

    Args:
        model: robot, as its URDF describes it.
        folder: new or empty.
        settings: of the demonstration.
        progress: called with the name of the next stage.

    Raises:
        ArgumentError: the robot cannot perform the motion, or the folder cannot be used.
    """
    settings, tell = settings or DemoSettings(), progress or (lambda text: None)
    secret = make_secret(model, settings.seed)
    path = check_output(folder)
    with compiled_meanwhile() as wait_for_simulator:
        first, other = _designed(model, settings, tell)
        wait_for_simulator()
        path.mkdir(exist_ok=True)
        (path / 'hidden.yaml').write_text(_secret_text(model, secret), encoding='utf-8')
        write_trajectory(first, path / 'motion')
        tell(
            f'recording {first.time[-1]:.0f} s of simulated motion, and {other.time[-1]:.0f} s to validate on'
        )
        experiment = Experiment(secret.hidden_in(model), model, settings.seed)
        experiment.record(first, path / 'run')
        experiment.record(other, path / 'other_run')
    tell('identifying')
    result = identify([path / 'run'], model, validate_on=[path / 'other_run'])
    tell('writing the report')
    write_results(result, path / 'identified')
    return Demo(
        secret,
        result,
        payload_findings(secret, result.solution),
        friction_findings(secret, result.solution),
        path / 'identified' / 'report.html',
    )


def _designed(model: Model, settings: DemoSettings, tell: Progress) -> tuple[Trajectory, Trajectory]:
    """The motion for the identification, and another one."""
    motion = choose_motion(model)
    chosen = ExcitationSettings(duration=settings.duration, swing=settings.swing)
    duration = min(settings.duration, _OTHER_DURATION)
    other = ExcitationSettings.from_dict({**_OTHER, 'duration': duration})
    tell('designing a motion that makes parameters visible')
    first = design(motion, chosen).trajectory(chosen.lead)
    tell('designing another motion, to validate on')
    return first, design(motion, other).trajectory(other.lead)


def _secret_text(model: Model, secret: Secret) -> str:
    def by_joint(values: Floats) -> dict[str, float]:
        return dict(zip(model.joint_names, values.tolist(), strict=True))

    content = {
        'robot': model.name,
        'payload': {
            'link': model.base_name,
            'mass [kg]': secret.mass,
            'place [m]': secret.place.tolist(),
            'edge of the cube [m]': secret.edge,
        },
        'viscous friction [N m s/rad]': by_joint(secret.viscous),
        'Coulomb friction [N m]': by_joint(secret.coulomb),
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
