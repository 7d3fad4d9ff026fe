# SPDX-License-Identifier: Apache-2.0
"""Where a foot touches the ground: one definition, also for feet with several contact points."""

from __future__ import annotations

from typing import Any

import numpy as np
import plain_quadruped as plain
import pytest
from cases import load

from quad_dynamics.api.drives import foot_position
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.control.contact_forces import foot_points
from quad_dynamics.identification.excitation.excitation_motion import Standing
from quad_dynamics.model.leg_kinematics import contact_ball
from quad_dynamics.planning.stance_geometry import stance_geometry

FOOT = f'<link name="@_foot">{plain.inertial(0.05, 2e-5)}{{}}</link>' + plain.joint(
    '@_foot_joint', '@_calf', '@_foot', '0 0 -0.2', '', 'fixed'
)
SHIN = plain.solid('<box size="0.02 0.02 0.16"/>', '0 0 -0.09')
BOX = plain.solid('<box size="0.06 0.04 0.02"/>', '0.01 0 0')
BALLS = plain.solid('<sphere radius="0.02"/>', '0.03 0 0') + plain.solid(
    '<sphere radius="0.02"/>', '-0.03 0 0'
)


@pytest.fixture(params=['box', 'balls'])
def model(request: pytest.FixtureRequest) -> Any:
    return load(plain.quadruped(SHIN, FOOT.format({'box': BOX, 'balls': BALLS}[request.param])))


def lowest(model: Any, foot: str) -> tuple[float, np.ndarray]:
    """Height of the lowest contact point of a foot in the standing pose, and the mean of those near it."""
    points = [point for point in model.contact_points if point.link == foot]
    assert len(points) > 1
    R, p = frame_pose(model, model.standing, foot)
    heights = np.array([(p + R @ np.array(point.position))[2] - point.radius for point in points])
    low = heights < heights.min() + 1e-3
    return float(heights.min()), np.mean([points[i].position for i in np.flatnonzero(low)], axis=0)


def test_it_is_the_mean_of_the_points_that_are_lowest_when_standing(model: Any) -> None:
    for foot in model.foot_names:
        height, centre = lowest(model, foot)
        position, radius = contact_ball(model, foot)
        # the points of a ball are within the share of its size that counts as lowest
        assert position == pytest.approx(centre, abs=1e-3)
        assert foot_position(model, model.standing, foot)[2] - radius == pytest.approx(height, abs=1e-3)


def test_everybody_goes_by_it(model: Any) -> None:
    q = np.array(model.standing)
    expected = np.array([foot_position(model, q, foot) for foot in model.foot_names])
    radii = [contact_ball(model, foot)[1] for foot in model.foot_names]
    assert foot_points(model).positions(q) == pytest.approx(expected, abs=1e-12)
    motion = Standing(model)
    for (foot, position, radius, _), of_leg in zip(motion._feet, stance_geometry(model).radius, strict=True):
        i = model.foot_names.index(foot)
        R, p = frame_pose(model, q, foot)
        assert p + R @ position == pytest.approx(expected[i], abs=1e-12)
        assert radius == of_leg == radii[i]
