# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node `identification`."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class IdentificationSettings(ParameterSet):
    """Everything that can be set about the node."""

    robot: str = param('mini_cheetah', 'bundled robot, or the path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    free: tuple[str, ...] = param(
        (),
        'what may change: inertia, friction, payload, names of links or joints ...; none: everything, where '
        'it helps',
        kind='texts',
    )
    tie_legs: bool = param(False, 'legs are alike: what changes in one changes in all')
    bag: str = param('', 'recording to identify from, in place of topics')
    output: str = param('identified', 'folder in which every result gets a folder of its own: 001, 002, ...')
    excitation: str = param(
        '', 'bag of `quad_dynamics excite`, whose trajectory is sent to joint_targets when recording starts'
    )
    duration: float = param(
        0.0,
        'of a recording, after which it stops by itself; 0: until ~/stop, or the end of the excitation',
        unit='s',
        low=0.0,
        high=86400.0,
    )
    longest: float = param(
        3600.0,
        'recording that is kept on disk; beyond it, it stops by itself',
        unit='s',
        low=1.0,
        high=86400.0,
    )
    autostart: bool = param(False, 'start by itself, as soon as everything is there')
    live_filter: bool = param(True, 'estimate while recording, and publish on ~/estimate')
    estimate_period: float = param(1.0, 'between two estimates', unit='s', low=0.2, high=60.0)
    estimate_window: float = param(
        4.0, 'window of time that is filtered at once for the estimates', unit='s', low=3.0, high=30.0
    )
    cutoff: float = param(
        0.0, 'of the low-pass filter; 0: chosen, and 20 Hz for the estimates', unit='Hz', low=0.0
    )
    world_frame: str = param('odom', 'frame_id of odom, and of foot_forces in world axes')
    base_frame: str = param('', 'child_frame_id of odom; none: the base link, with any prefix')
    force_axes: str = param(
        'auto',
        'of foot_forces: those of the world, or of each foot; auto: as their frame_id says',
        choices=('auto', 'world', 'foot'),
    )

    def _across(self) -> list[str]:
        return super()._across() + frame_problems(self, ('world_frame', 'base_frame'))
