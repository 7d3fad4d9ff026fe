# SPDX-License-Identifier: Apache-2.0
"""Models of eleven published robots and of the bundled ones against Pinocchio: by name, number for number."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from cases import ARMS, FILES, QUADRUPEDS
from closeness import assert_close
from reference_pinocchio import robots_folder

from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.inertia import full_inertia
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Model

ALL = (*FILES, *bundled_robots())
# Both sides add and turn the same few numbers; only the order of the operations differs.
ROUNDING = 1e-13


@functools.cache
def load(name: str, floating_base: bool | None = None) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(str(robots_folder() / FILES[name]) if name in FILES else name, floating_base)


@functools.cache
def pinocchio_model(name: str, floating_base: bool) -> Any:
    text = load(name).urdf.text
    return (
        pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
        if floating_base
        else pin.buildModelFromXML(text)
    )


@pytest.fixture(params=ALL)
def pair(request: pytest.FixtureRequest) -> tuple[Model, Any]:
    model = load(request.param)
    return model, pinocchio_model(request.param, model.floating_base)


def body_joint(model: Model, reference: Any, body: int) -> int:
    """Pinocchio's joint that moves a body."""
    if model.floating_base:
        return 1 if body == 0 else int(reference.getJointId(model.joint_names[body - 1]))
    return int(reference.getJointId(model.joint_names[body]))


def test_joint_names_and_sizes(pair: tuple[Model, Any]) -> None:
    model, reference = pair
    names = set(reference.names) - {'universe', 'root_joint'}
    assert set(model.joint_names) == names
    assert len(model.joint_names) == len(names)
    assert model.nv == reference.nv
    # Pinocchio stores a continuous joint as (cos, sin), hence nq of two_link_arm differs
    assert model.nq == model.nj + (7 if model.floating_base else 0)


def test_total_mass(pair: tuple[Model, Any]) -> None:
    model, reference = pair
    expected = sum(inertia.mass for inertia in list(reference.inertias)[1:])
    assert_close(model.without_rotors().total_mass, expected, ROUNDING)


def test_merged_inertias(pair: tuple[Model, Any]) -> None:
    """Mass, first moment and inertia of every body, fixed links included."""
    model, reference = pair
    for body, pi in enumerate(model.pi.reshape(-1, 10)):
        inertia = reference.inertias[body_joint(model, reference, body)]
        assert_close(pi[0], inertia.mass, ROUNDING, model.body_names[body])
        assert_close(pi[1:4], inertia.mass * inertia.lever, ROUNDING, model.body_names[body])
        # [linear; angular] 6x6 about the origin: the lower right block is our inertia
        assert_close(full_inertia(pi[4:]), inertia.matrix()[3:, 3:], ROUNDING, model.body_names[body])


def test_joint_placements(pair: tuple[Model, Any]) -> None:
    model, reference = pair
    for i, name in enumerate(model.joint_names):
        placement = reference.jointPlacements[reference.getJointId(name)]
        assert_close(model.joint_R[i], placement.rotation, ROUNDING, name)
        assert_close(model.joint_p[i], placement.translation, ROUNDING, name)


def test_parents(pair: tuple[Model, Any]) -> None:
    model, reference = pair
    for i, name in enumerate(model.joint_names):
        parent = reference.names[reference.parents[reference.getJointId(name)]]
        expected = model.joint_names.index(parent) if parent in model.joint_names else -1
        assert model.parents[i] == expected < i


def test_joint_axes_and_types(pair: tuple[Model, Any]) -> None:
    """The axis is what Pinocchio's joint moves about: its motion subspace."""
    model, reference = pair
    data = reference.createData()
    q = pin.neutral(reference)
    for i, name in enumerate(model.joint_names):
        joint = reference.getJointId(name)
        v = np.zeros(reference.nv)
        v[reference.joints[joint].idx_v] = 1.0
        pin.forwardKinematics(reference, data, q, v)
        relative = data.v[joint] - data.liMi[joint].actInv(data.v[reference.parents[joint]])
        moved, still = (
            (relative.linear, relative.angular)
            if model.is_prismatic[i]
            else (relative.angular, relative.linear)
        )
        assert_close(model.joint_axis[i], moved, ROUNDING, name)
        assert_close(still, np.zeros(3), ROUNDING, name)


def test_limits_and_friction(pair: tuple[Model, Any]) -> None:
    model, reference = pair
    for i, name in enumerate(model.joint_names):
        joint = reference.joints[reference.getJointId(name)]
        if joint.nq == 1:
            assert model.q_min[i] == reference.lowerPositionLimit[joint.idx_q], name
            assert model.q_max[i] == reference.upperPositionLimit[joint.idx_q], name
        else:
            assert (model.q_min[i], model.q_max[i]) == (-np.inf, np.inf), name
        assert model.velocity_limit[i] == reference.upperVelocityLimit[joint.idx_v], name
        assert model.effort_limit[i] == reference.upperEffortLimit[joint.idx_v], name
        assert model.viscous[i] == reference.damping[joint.idx_v], name
        assert model.coulomb[i] == reference.upperDryFrictionLimit[joint.idx_v], name


def test_frames(pair: tuple[Model, Any]) -> None:
    """Every link of the file is a frame, at the place where Pinocchio has it."""
    model, reference = pair
    assert set(model.frames) == {link.name for link in model.urdf.links}
    for name, frame in model.frames.items():
        body_frame = reference.frames[reference.getFrameId(name, pin.FrameType.BODY)]
        assert_close(frame.R, body_frame.placement.rotation, ROUNDING, name)
        assert_close(frame.p, body_frame.placement.translation, ROUNDING, name)
        expected = 0 if frame.body < 0 else body_joint(model, reference, frame.body)
        assert body_frame.parentJoint == expected, name


# ---- legs and feet

FEET = {
    'anymal_b': ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT'),
    'anymal_c': ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT'),
    'hyq': ('lf_foot', 'rf_foot', 'lh_foot', 'rh_foot'),
    'solo12': ('FL_FOOT', 'FR_FOOT', 'HL_FOOT', 'HR_FOOT'),
}


@pytest.mark.parametrize('name', [*QUADRUPEDS, 'mini_cheetah'])
def test_quadrupeds_float_on_four_legs(name: str) -> None:
    model = load(name)
    assert model.floating_base
    assert model.foot_names == FEET.get(name, ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot'))
    assert [leg.name for leg in model.legs] == ['FL', 'FR', 'RL', 'RR']
    assert [leg.joint_indices for leg in model.legs] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    # feet are where the names of the legs say: front before rear, left before right
    reference = pinocchio_model(name, True)
    data = reference.createData()
    pin.framesForwardKinematics(reference, data, pin.neutral(reference))
    feet = np.array([data.oMf[reference.getFrameId(foot)].translation for foot in model.foot_names])
    assert (np.sign(feet[:, 0]) == [1, 1, -1, -1]).all()
    assert (np.sign(feet[:, 1]) == [1, -1, 1, -1]).all()
    assert (feet[:, 2] < 0).all()


@pytest.mark.parametrize('name', [*ARMS, 'two_link_arm'])
def test_arms_are_fixed_and_have_no_feet(name: str) -> None:
    model = load(name)
    assert not model.floating_base
    assert model.legs == ()
    assert model.foot_names == ()
    assert model.standing is None


def test_arm_on_a_quadruped_is_no_leg() -> None:
    path = robots_folder() / 'anymal_b_simple_description/robots/anymal-kinova.urdf'
    with pytest.warns(ModelWarning):
        model = load_model(path)
    assert model.nj == 18
    assert model.foot_names == FEET['anymal_b']


@pytest.mark.parametrize('name', [*QUADRUPEDS, 'mini_cheetah'])
def test_standing_pose_stands(name: str) -> None:
    """Feet on the ground and nothing below it, the com well inside the feet, joints within their limits."""
    model = load(name)
    q = model.standing
    assert q is not None
    assert (model.q_min <= q[7:]).all()
    assert (q[7:] <= model.q_max).all()
    reference = pinocchio_model(name, True)
    data = reference.createData()
    q_pin = pin.neutral(reference)
    q_pin[:7] = q[:7]
    for name_, angle in zip(model.joint_names, q[7:], strict=True):
        q_pin[reference.joints[reference.getJointId(name_)].idx_q] = angle
    pin.framesForwardKinematics(reference, data, q_pin)
    heights, feet = [], []
    for point in model.contact_points:
        place = data.oMf[reference.getFrameId(point.link, pin.FrameType.BODY)].act(np.array(point.position))
        heights.append(place[2] - point.radius)
        if point.link in model.foot_names:
            feet.append(place)
            assert abs(heights[-1]) < 1e-3, point.name  # the search stops at 1 % of a leg at worst
    assert min(heights) > -1e-3
    com = pin.centerOfMass(reference, data, q_pin)
    low, high = np.min(feet, axis=0)[:2], np.max(feet, axis=0)[:2]
    assert (low + 0.2 * (high - low) < com[:2]).all()
    assert (com[:2] < high - 0.2 * (high - low)).all()


@pytest.mark.parametrize('name', QUADRUPEDS)
def test_contact_points_from_the_tree(name: str) -> None:
    model = load(name)
    points = {point.name: point for point in model.description.contact_points}
    assert set(model.foot_names) <= set(points)
    assert {f'{leg}_knee' for leg in ('FL', 'FR', 'RL', 'RR')} <= set(points)
    if name == 'a1':  # the file has spheres for feet and a box for the trunk
        assert points['FL_foot'].radius == 0.02
        assert sum(point.link == 'trunk' for point in points.values()) == 8


# ---- base kinds


def test_fixed_base_of_a_floating_robot() -> None:
    floating, fixed = load('a1'), load('a1', floating_base=False)
    assert fixed.body_names == floating.body_names[1:]
    assert fixed.nq == fixed.nv == 12
    assert (fixed.pi == floating.pi[10:]).all()
    assert fixed.frames['trunk'].body == -1
    assert fixed.frames['FL_foot'].body == fixed.body_names.index('FL_calf')
    assert floating.frames['FL_foot'].body == floating.body_names.index('FL_calf')


def test_floating_base_of_an_arm() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_model(str(robots_folder() / FILES['ur5']), floating_base=True)
    assert model.body_names[0] == 'world'
    reference = pin.buildModelFromXML(model.urdf.text, pin.JointModelFreeFlyer())
    assert_close(model.total_mass, sum(inertia.mass for inertia in list(reference.inertias)[1:]), ROUNDING)
