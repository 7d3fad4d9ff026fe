# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that read recordings of robots: which robot, which topics, which filters."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quad_dynamics.cli.robot_options import add_xacro_option, xacro_args
from quad_dynamics.errors import ArgumentError, ModelWarning
from quad_dynamics.identification.equations.modes import AUTO, MODES
from quad_dynamics.model.loading import load_model
from quad_dynamics.parameters.parameter import unknown

if TYPE_CHECKING:
    from quad_dynamics.identification.recordings.topics import Topics
    from quad_dynamics.identification.signals.signal_settings import SignalSettings
    from quad_dynamics.model.model import Model

_NUMBERS = ('kp', 'kd', 'effort_scale')
_OTHERS = ('torque', *_NUMBERS, 'force_frame')  # names of --topic besides those of topics
_LONGEST_DELAY = 0.1  # [s]

# Shared part of the descriptions.
RECORDINGS = """\
recordings:
  The folder of a ROS 2 bag, a .mcap or .db3 file, or a table (.csv, .npz: docs/identification.md). Default
  topics: joint_states (position, velocity, effort), odom or imu/data, foot_forces/<foot>; if present, also
  foot_contacts, joint_accelerations and base_acceleration. Joints are matched by name. Without effort,
  --topic torque=command with kp=... and kd=... computes torques from commands.
"""


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add('--robot', metavar='URDF', required=True, help='file or bundled robot')
    add('--description', metavar='YAML', help='robot description (default: URDF with .yaml, if it exists)')
    add_xacro_option(parser)
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        '--fixed-base', dest='floating_base', action='store_false', default=None, help='fix the root link'
    )
    base.add_argument(
        '--floating-base', dest='floating_base', action='store_true', help='float the root link'
    )
    add = parser.add_argument_group('signals').add_argument
    add(
        '--topic',
        metavar='NAME=TOPIC',
        action='append',
        default=[],
        help='name of a topic, such as joint_states=/robot/joint_states, or odom= to ignore it; also '
        'torque=command, kp=20, kd=0.5, effort_scale=-1, force_frame=world; may be repeated',
    )
    add(
        '--still',
        metavar='JOINT',
        nargs='+',
        default=[],
        help='joints that do not move and may be missing, such as those of a gripper; * and ? are wildcards',
    )
    add(
        '--cutoff',
        metavar='HZ',
        type=_positive_or_auto,
        help='cutoff frequency of the filters [Hz] (default: auto)',
    )
    add(
        '--delay',
        metavar='S',
        type=_delay_or_auto,
        help='delay of torques with respect to positions [s] (default: auto, estimated)',
    )
    add(
        '--velocity',
        choices=('auto', 'positions'),
        default='auto',
        help='auto: use measured velocities if they agree with positions; positions: ignore them, those '
        'of the base too, and differentiate positions (default: auto)',
    )
    add('--imu', action='store_true', help='base motion from the IMU, even if there is odometry')
    add(
        '--mode',
        choices=(AUTO, *MODES),
        default=AUTO,
        help='fixed: the base is held; forces: with measured foot forces; projection: without foot forces; '
        'base: rows of the base only (default: auto, depending on the topics)',
    )


def load_robot(arguments: argparse.Namespace) -> Model:
    """The robot of the options, without warnings about its file (`inspect` reports them)."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(
            arguments.robot,
            arguments.floating_base,
            arguments.description,
            xacro_args=xacro_args(arguments),
        )


def read_topics(arguments: argparse.Namespace) -> Topics:
    """The topics of the options.

    Raises:
        ArgumentError: no '=', an unknown name, a name that is given twice, or an invalid value.
    """
    from quad_dynamics.identification.recordings.topics import TOPICS, Topics

    given: dict[str, Any] = {}
    for text in arguments.topic:
        name, equals, value = text.partition('=')
        if not equals:
            raise ArgumentError(f'--topic is {text!r}; expected NAME=TOPIC, such as odom=/robot/odom')
        if name not in (*TOPICS, *_OTHERS):
            raise ArgumentError(unknown('--topic: ', 'name', name, (*TOPICS, *_OTHERS)))
        if name in given:
            raise ArgumentError(f'--topic {name} is given more than once; expected it once')
        given[name] = _numbers(name, value) if name in _NUMBERS else value
    given['required'] = tuple(name for name in TOPICS if given.get(name))
    still = split_words('--still', arguments.still)
    try:
        return Topics.from_dict({**given, 'still': still})
    except ArgumentError as error:
        raise ArgumentError(f'--topic: {error}') from error


def split_words(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Words of an option, separated by spaces or commas.

    Raises:
        ArgumentError: a text has none.
    """
    words = [[word.strip() for word in text.split(',') if word.strip()] for text in texts]
    for text, found in zip(texts, words, strict=True):
        if not found:
            raise ArgumentError(f'{option} is {text!r}; expected names')
    return tuple(word for found in words for word in found)


def read_signal_settings(arguments: argparse.Namespace) -> SignalSettings:
    """The filters of the options."""
    from quad_dynamics.identification.signals.signal_settings import SignalSettings

    given: dict[str, Any] = {
        'cutoff': arguments.cutoff,
        'delay': arguments.delay,
        'velocity': arguments.velocity,
    }
    if arguments.imu:
        given['base'] = 'imu'
    return SignalSettings.from_dict({name: value for name, value in given.items() if value is not None})


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(','))
    except ValueError as error:
        raise ArgumentError(
            f'--topic {name} is {text!r}; expected one number, or one per joint separated by commas'
        ) from error


def _number_or_auto(text: str) -> float | None:
    if text == 'auto':
        return None
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'{text} is not a finite number')
    return value


def _delay_or_auto(text: str) -> float | None:
    value = _number_or_auto(text)
    if value is not None and abs(value) > _LONGEST_DELAY:
        raise argparse.ArgumentTypeError(
            f'{text} is not a delay from {-_LONGEST_DELAY:g} to {_LONGEST_DELAY:g} s'
        )
    return value


def _positive_or_auto(text: str) -> float | None:
    value = _number_or_auto(text)
    if value is not None and value <= 0.0:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return value
