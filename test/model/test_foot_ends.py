# SPDX-License-Identifier: Apache-2.0
"""Feet of legs without a foot link, wheels, missing meshes: where they are, and that they carry the robot."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import plain_quadruped as plain
import pytest
from cases import load
from control_loop import drive, state_of
from plain_quadruped import inertial, solid

from quad_dynamics.control.guard import Guard, base_tilt
from quad_dynamics.control.lying import lying_pose
from quad_dynamics.control.stand import StandUp
from quad_dynamics.errors import ModelWarning
from quad_dynamics.model.crouch import foot_heights
from quad_dynamics.model.leg_kinematics import moving_joints, sole
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.standing_checks import contact_doubts
from quad_dynamics.simulation.simulator import Simulator

CAPSULE = '<capsule radius="0.02" length="0.18"/>'  # to 0.2 m below the knee, if it is 0.09 m below
MESH = '<mesh filename="package://nowhere/calf.stl"/>'


def get_up(model: Any, seconds: float = 3.0) -> Any:
    """The simulator after standing up from lying, under the guard."""
    sim = Simulator(model, mu=0.5, latency=2e-3)
    sim.reset(sim.on_ground(lying_pose(model)))
    law, guard = StandUp(model), Guard(model)
    law.start(state_of(sim))
    log = drive(sim, law, seconds, guard=guard)
    assert law.finished
    return sim, log


def assert_stands_on_its_feet(model: Any) -> None:
    """Level, at its height, at rest; the forces on the feet are the weight."""
    sim, log = get_up(model)
    assert base_tilt(sim.q) < np.radians(0.5)
    assert sim.q[2] == pytest.approx(model.standing[2], abs=5e-3)
    assert np.abs(sim.u).max() < 0.02
    weight = model.total_mass * 9.81
    force = log['foot_forces'][-200:, :, 2].mean(axis=0)
    assert force.sum() == pytest.approx(weight, rel=0.01)
    assert (force > 0.15 * weight).all()


ENDS = {  # calf geometry; position of the foot in the calf, radius
    'capsule': (solid(CAPSULE, '0 0 -0.09'), (0, 0, -0.18), 0.02),
    'sphere': (
        solid('<box size="0.02 0.02 0.19"/>', '0 0 -0.09') + solid('<sphere radius="0.025"/>', '0.01 0 -0.2'),
        (0.01, 0, -0.2),
        0.025,
    ),
    'box': (solid('<box size="0.02 0.02 0.2"/>', '0 0 -0.1'), (0, 0, -0.2), 0.0),
    'cylinder': (solid('<cylinder radius="0.01" length="0.2"/>', '0 0 -0.1'), (0, 0, -0.2), 0.0),
    'along_x': (solid(CAPSULE, '0.09 0 0', '0 1.5707963268 0'), (0.18, 0, 0), 0.02),
}


@pytest.mark.parametrize('name', ENDS)
def test_foot_is_at_the_end_of_the_calf(name: str) -> None:
    shapes, position, radius = ENDS[name]
    model = load(plain.quadruped(shapes))
    assert model.foot_names == tuple(f'{leg}_calf_foot' for leg in ('FL', 'FR', 'RL', 'RR'))
    assert model.warnings == ()
    for leg in model.legs:
        frame = model.frames[leg.foot]
        assert model.description.foot_sources[leg.foot] == 'collision'
        assert frame.body == model.frames[leg.foot.removesuffix('_foot')].body
        # support functions are compared in 600 directions, a cylinder has 24 corners
        np.testing.assert_allclose(frame.p, position, atol=1.5e-3)
        points = [point for point in model.contact_points if point.link == leg.foot]
        assert max(point.radius for point in points) == pytest.approx(radius, abs=1.5e-3)


def test_foot_from_visual_geometry_and_from_inertia_is_announced() -> None:
    """A uniform rod of 0.2 m: the box with its inertia ends where it ends."""
    with pytest.warns(ModelWarning, match='placed at the end of visual geometry: FL_calf_foot'):
        model = load_model(plain.quadruped(solid(CAPSULE, '0 0 -0.09', kind='visual')))
    np.testing.assert_allclose(model.frames['RR_calf_foot'].p, [0, 0, -0.18], atol=1.5e-3)
    rod = inertial(0.2, 0.2 * 0.2**2 / 12, -0.1).replace(f'izz="{0.2 * 0.2**2 / 12}"', 'izz="1e-9"')
    with pytest.warns(ModelWarning, match='inertia of the last link, which is a rough guess'):
        model = load_model(plain.quadruped('', calf_mass=rod))
    np.testing.assert_allclose(model.frames['RR_calf_foot'].p, [0, 0, -0.2], atol=1e-3)


def test_given_feet_stay_as_they_are() -> None:
    names = [f'{leg}_calf' for leg in plain.PLACES]
    model = load(plain.quadruped(solid(CAPSULE, '0 0 -0.09')), description={'feet': names})
    assert model.foot_names == tuple(names)
    assert not model.description.foot_sources


@pytest.mark.parametrize('name', ['capsule', 'box'])
def test_stands_on_the_ends_of_its_calves(name: str) -> None:
    model = load(plain.quadruped(ENDS[name][0]))
    assert contact_doubts(model) == ()
    assert_stands_on_its_feet(model)


# ---------------------------------------------------------------- wheels


@pytest.mark.parametrize('name', ['@_wheel', '@_foot'])
def test_wheels_are_feet(name: str) -> None:
    """They touch with a ball of their radius, so that they may turn, and their joints are held."""
    model = load(
        plain.quadruped(solid('<box size="0.02 0.02 0.16"/>', '0 0 -0.09'), plain.wheels(0.06, name))
    )
    assert model.foot_names == tuple(name.replace('@', leg) for leg in ('FL', 'FR', 'RL', 'RR'))
    for leg in model.legs:
        assert len(leg.joint_indices) == 4
        assert moving_joints(model, leg) == leg.joint_indices[:3]
        position, radius = sole(model, leg.foot, model.standing)
        np.testing.assert_allclose(position, [0.0, 0.02, 0.0], atol=1e-6)
        assert radius == pytest.approx(0.06, rel=0.01)  # 24 corners
    assert contact_doubts(model) == ()
    assert_stands_on_its_feet(model)


def test_wheels_do_not_roll_away() -> None:
    model = load(plain.quadruped(solid('<box size="0.02 0.02 0.16"/>', '0 0 -0.09'), plain.wheels()))
    sim, _ = get_up(model)
    before = sim.q
    law = StandUp(model)
    law.start(state_of(sim))
    drive(sim, law, 4.0)
    assert np.linalg.norm(sim.q[:2] - before[:2]) < 2e-3


# ---------------------------------------------------------------- missing meshes

FOOT_LINK = f'<link name="@_foot">{inertial(0.05, 2e-5)}{{}}</link>' + plain.joint(
    '@_foot_joint', '@_calf', '@_foot', '0 0 -0.2', '', 'fixed'
)
MISSING = {  # calf geometry, foot geometry
    'calf': (solid(MESH), solid('<sphere radius="0.02"/>')),
    'calf_and_foot': (solid(MESH), solid(MESH)),
    'foot': (solid('<box size="0.02 0.02 0.19"/>', '0 0 -0.095'), solid(MESH)),
    'all_but_visuals': (
        solid(MESH) + solid('<box size="0.03 0.03 0.2"/>', '0 0 -0.1', kind='visual'),
        solid(MESH) + solid('<sphere radius="0.025"/>', kind='visual'),
    ),
}


@pytest.mark.parametrize('name', MISSING)
def test_missing_meshes_are_announced_and_the_feet_still_carry(name: str) -> None:
    """The inertia of the calves is that of boxes which would reach below the feet."""
    calf, foot = MISSING[name]
    text = plain.quadruped(calf, FOOT_LINK.format(foot), inertial(0.2, 4e-3, -0.1))
    with pytest.warns(ModelWarning, match=r'collision meshes were not found.* (FL_calf|FL_foot) \('):
        model = load_model(text)
    assert any('were replaced' in doubt for doubt in contact_doubts(model))
    assert model.foot_names == ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        assert_stands_on_its_feet(model)


def test_copied_go2_without_its_meshes(tmp_path: Path) -> None:
    """The file alone, as people send it to each other: it stands on its feet, and says what is missing."""
    from reference_pinocchio import robots_folder

    copy = tmp_path / 'go2.urdf'
    copy.write_text((robots_folder() / 'go2_description/urdf/go2.urdf').read_text())
    with pytest.warns(ModelWarning) as caught:
        model = load_model(copy)
    assert any('collision meshes were not found' in str(item.message) for item in caught)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        assert_stands_on_its_feet(model)


# ---------------------------------------------------------------- doubts about standing


def test_a_standing_pose_that_tilts_is_announced() -> None:
    joints = {'*_hip_joint': 0.0, '*_thigh_joint': 0.7, '*_calf_joint': -1.4}
    shapes = solid(CAPSULE, '0 0 -0.09')
    model = load(plain.quadruped(shapes), description={'standing': {'joints': joints}})
    assert contact_doubts(model) == ()
    joints |= {'F?_calf_joint': -1.0}
    del joints['*_calf_joint']
    joints |= {'R?_calf_joint': -1.4}
    model = load(plain.quadruped(shapes), description={'standing': {'joints': joints}})
    [doubt] = contact_doubts(model)
    # the front calves, 0.18 m long, are turned by 0.4 rad: from 0.7 to 0.3 rad off the vertical
    higher = 1e3 * 0.18 * (np.cos(0.3) - np.cos(0.7))
    assert f'RL_calf_foot {higher:.1f} mm' in doubt
    assert 'the robot tilts by' in doubt


def test_a_robot_that_falls_over_is_announced() -> None:
    joints = {'*_hip_joint': 0.0, '*_thigh_joint': 1.4, '*_calf_joint': -0.6}
    model = load(plain.quadruped(solid(CAPSULE, '0 0 -0.09')), description={'standing': {'joints': joints}})
    assert any('centre of mass' in doubt for doubt in contact_doubts(model))


def test_an_inertia_far_too_large_is_announced() -> None:
    """Published files have 100 kg m^2 on links of some grams."""
    model = load(plain.quadruped(solid(CAPSULE, '0 0 -0.09'), calf_mass=inertial(0.2, 100.0, -0.1)))
    [doubt] = contact_doubts(model)
    assert 'too large for the robot' in doubt
    assert 'FL_calf (27.4 m)' in doubt  # sqrt(1.5 * 100 / 0.2)


def test_other_parts_of_the_last_body_are_no_feet() -> None:
    """A screw at the shin, as CAD exports have it; a frame at the end is the foot."""
    shapes = solid(CAPSULE, '0 0 -0.09')
    for name, z, foot in (('screw', -0.05, '_calf_foot'), ('contact', -0.19, '_contact')):
        link = f'<link name="@_{name}">{inertial(0.001, 1e-8)}</link>'
        below = link + plain.joint(f'@_{name}_joint', '@_calf', f'@_{name}', f'0.01 0 {z}', '', 'fixed')
        model = load(plain.quadruped(shapes, below))
        assert model.foot_names == tuple(f'{leg}{foot}' for leg in ('FL', 'FR', 'RL', 'RR'))


def test_a_crouch_is_found_from_an_arbitrary_zero_pose() -> None:
    """Legs that stand off sideways at zero, as if CAD had exported them so."""
    text = plain.quadruped(solid(CAPSULE, '0 0 -0.09'))
    for leg, (x, y) in plain.PLACES.items():
        origin = f'<child link="{leg}_hip"/><origin xyz="{x} {y} 0"'
        assert origin in text
        text = text.replace(origin, f'{origin} rpy="{1.7 if y > 0 else -1.7} 0 0"')
    model = load(text)
    assert model.standing is not None
    assert contact_doubts(model) == ()
    assert np.abs(model.standing[7::3]).min() > 1.0  # the hips are turned back
    assert_stands_on_its_feet(model)


def test_legs_of_two_joints_stand_on_feet_of_several_points() -> None:
    """They move in a plane, wherever in it the lowest point of the foot is."""
    text = plain.quadruped(solid('<box size="0.02 0.03 0.2"/>', '0 0.01 -0.1', '0 0 0.2'))
    for leg in plain.PLACES:
        text = text.replace(f'"{leg}_hip_joint" type="revolute"', f'"{leg}_hip_joint" type="fixed"')
    model = load(text)
    assert [len(leg.joint_indices) for leg in model.legs] == [2, 2, 2, 2]
    assert len([point for point in model.contact_points if point.link == 'FL_calf_foot']) >= 4
    assert model.standing is not None
    assert contact_doubts(model) == ()


def test_a_crouch_is_found_where_limits_are_not_mirrored() -> None:
    """Right legs cannot stand as left legs do; each stands as its own limits let it, on one ground."""
    text = plain.quadruped(solid(CAPSULE, '0 0 -0.09'))
    for leg in ('FR', 'RR'):
        limits = f'(name="{leg}_hip_joint".*?)lower="-2.9" upper="2.9"'
        text, count = re.subn(limits, r'\1lower="0.35" upper="1.2"', text)
        assert count == 1
    model = load(text)
    assert model.standing is not None
    joints = model.standing[7:]
    assert np.array_equal(joints, np.clip(joints, model.q_min, model.q_max))
    heights = foot_heights(model, model.standing) + model.standing[2]
    assert np.abs(heights).max() < 1e-6  # the search ends at 1e-9
    assert contact_doubts(model) == ()
