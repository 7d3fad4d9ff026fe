# SPDX-License-Identifier: Apache-2.0
"""The robots that the dynamics tests run over, published ones and random trees; each is loaded once."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_trees import random_tree
from reference_mujoco import MujocoReference, physical_urdf
from reference_pinocchio import PinocchioReference, robots_folder
from reference_plain import PlainReference

from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.loading import load_model

QUADRUPEDS = {
    'a1': 'a1_description/urdf/a1.urdf',
    'go1': 'go1_description/urdf/go1.urdf',
    'go2': 'go2_description/urdf/go2.urdf',
    'b1': 'b1_description/urdf/b1.urdf',
    'anymal_b': 'anymal_b_simple_description/robots/anymal.urdf',
    'anymal_c': 'anymal_c_simple_description/urdf/anymal.urdf',
    'hyq': 'hyq_description/robots/hyq_no_sensors.urdf',
    'solo12': 'solo_description/robots/solo12.urdf',
    'laikago': 'laikago_description/urdf/laikago.urdf',
}
ARMS = {'panda': 'panda_description/urdf/panda.urdf', 'ur5': 'ur_description/urdf/ur5_robot.urdf'}
FILES = QUADRUPEDS | ARMS


@dataclass(frozen=True)
class Case:
    """One robot with one kind of base; str() is the test id."""

    name: str
    floating_base: bool

    def __str__(self) -> str:
        return (
            self.name
            if self.name.startswith('seed')
            else f'{self.name}_{"floating" if self.floating_base else "fixed"}'
        )

    @property
    def urdf(self) -> str | Path:
        """URDF text or path."""
        if self.name.startswith('seed'):
            return random_tree(int(self.name[4:].split('_')[0])).urdf
        return robots_folder() / FILES[self.name]


def _tree_case(seed: int) -> Case:
    tree = random_tree(seed)
    return Case(tree.name, tree.floating_base)


PUBLISHED = [Case(name, floating) for name in FILES for floating in (True, False)]
TREES = [_tree_case(seed) for seed in range(16)]
ALL = PUBLISHED + TREES
# A few of every kind, for the tests that are slow or that do not depend on the robot.
SOME = [
    Case('go2', True),
    Case('anymal_c', True),
    Case('solo12', False),
    Case('panda', False),
    Case('ur5', True),
    *TREES[:6],
]
FLOATING = [case for case in SOME if case.floating_base]
FIXED = [case for case in SOME if not case.floating_base]


def load(source: Any, **options: Any) -> Any:
    """load_model without the warnings: what published files have wrong is the subject of other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(source, **options)


@functools.cache
def model_of(case: Case) -> Any:
    """The case in quad_dynamics."""
    return load(case.urdf, floating_base=case.floating_base)


@functools.cache
def pinocchio_of(case: Case) -> PinocchioReference:
    """The case in Pinocchio, joints in the order of our model."""
    reference = PinocchioReference(case.urdf, case.floating_base, model_of(case).joint_names)
    reference.add_frames(model_of(case))
    return reference


@functools.cache
def plain_of(case: Case) -> PlainReference:
    """The case in the plain reference."""
    return PlainReference(model_of(case))


@functools.cache
def physical_of(case: Case) -> tuple[Any, MujocoReference]:
    """The case with inertias that MuJoCo accepts, in quad_dynamics and in MuJoCo."""
    text = physical_urdf(case.urdf)
    model = load(text, floating_base=case.floating_base)
    return model, MujocoReference(text, case.floating_base, model.joint_names)
