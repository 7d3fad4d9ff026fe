# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node `identification`."""

from __future__ import annotations

from dataclasses import dataclass

from quad_dynamics.parameters.frame_names import frame_problems
from quad_dynamics.parameters.parameter import param
from quad_dynamics.parameters.parameter_set import ParameterSet


@dataclass(frozen=True)
class IdentificationSettings(ParameterSet):
    """Parameters of the node."""

    robot: str = param('mini_cheetah', 'bundled robot, or path of a URDF or xacro file')
    xacro_args: str = param('', 'arguments of a xacro file: name=value, separated by spaces')
    free: tuple[str, ...] = param(
        (),
        'parameters to identify: inertia, friction, payload, names of links or joints ...; empty: all, as '
        'far as they improve predictions',
        kind='texts',
    )
    tie_legs: bool = param(False, 'the legs are mirror images: identify one set of parameters for all')
    bag: str = param('', 'recording to identify from, instead of topics')
    output: str = param('identified', 'folder of the results, with one subfolder per result: 001, 002, ...')
    excitation: str = param(
        '', 'bag of `quad_dynamics excite`; its trajectory is sent to joint_targets when recording starts'
    )
    duration: float = param(
        0.0,
        'duration of a recording, after which it stops automatically; 0: until ~/stop or the end of the '
        'excitation',
        unit='s',
        low=0.0,
        high=86400.0,
    )
    longest: float = param(
        3600.0,
        'largest size of a recording on disk, at which it stops automatically',
        unit='s',
        low=1.0,
        high=86400.0,
    )
    autostart: bool = param(False, 'start automatically as soon as all topics are present')
    live_filter: bool = param(True, 'estimate while recording, and publish ~/estimate')
    estimate_period: float = param(1.0, 'time between two estimates', unit='s', low=0.2, high=60.0)
    estimate_window: float = param(
        4.0, 'length of the window that is filtered for an estimate', unit='s', low=3.0, high=30.0
    )
    cutoff: float = param(
        0.0,
        'cutoff of the low-pass filter; 0: chosen from the data, and 20 Hz for ~/estimate',
        unit='Hz',
        low=0.0,
    )
    world_frame: str = param('odom', 'frame_id of odom, and of foot_forces in world axes')
    base_frame: str = param('', 'child_frame_id of odom; empty: the base link, with any prefix')
    force_axes: str = param(
        'auto',
        'axes of foot_forces: those of the world, or of each foot; auto: from their frame_id',
        choices=('auto', 'world', 'foot'),
    )

    def _across(self) -> list[str]:
        return super()._across() + frame_problems(self, ('world_frame', 'base_frame'))
