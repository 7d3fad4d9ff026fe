# SPDX-License-Identifier: Apache-2.0
"""Points of links against frames and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load, model_of
from states import random_state

from quad_dynamics.api.link_points import LinkPoint

GO2 = Case('go2', True)


@pytest.mark.parametrize('link', ['base', 'FL_calf', 'RR_foot'])
@pytest.mark.parametrize('seed', [1, 2])
def test_against_frames(qd: Any, link: str, seed: int) -> None:
    model = model_of(GO2)
    q, u, _ = random_state(model, seed)
    r = np.array([0.1, -0.2, 0.3])
    point = LinkPoint(model, link, r)
    R, p = qd.frame_pose(model, q, link)
    J_F = qd.frame_jacobian(model, q, link)
    position, J, motion = np.empty(3), np.empty((6, model.nv)), np.empty(12)
    point.write_position(q, position)
    point.write_jacobian(q, J)
    point.write_motion(q, u, motion)
    arm = R @ r
    np.testing.assert_allclose(position, p + arm, atol=1e-13)
    np.testing.assert_allclose(J[:3], J_F[:3] - np.cross(arm, J_F[3:], axisb=0).T, atol=1e-12)
    np.testing.assert_allclose(J[3:], J_F[3:], atol=1e-12)
    np.testing.assert_allclose(motion[:6], J @ u, atol=1e-11)
    # dJ/dt u by central differences: their error is step^2 times the third derivative, some 1e3
    step, ends = 1e-5, []
    for sign in (1.0, -1.0):
        J_end = np.empty((6, model.nv))
        point.write_jacobian(qd.integrate(model, q, u, sign * step), J_end)
        ends.append(J_end @ u)
    np.testing.assert_allclose(motion[6:], (ends[0] - ends[1]) / (2.0 * step), atol=1e-4)


def test_bad_arguments(qd: Any) -> None:
    model = load('two_link_arm')
    with pytest.raises(qd.ArgumentError, match='nowhere'):
        LinkPoint(model, 'nowhere', [0.0, 0.0, 0.0])
    with pytest.raises(qd.ArgumentError, match=r'position has the shape \(2,\)'):
        LinkPoint(model, model.body_names[-1], [0.0, 0.0])
    point = LinkPoint(model, model.body_names[-1], [0.0, 0.0, 0.0])
    with pytest.raises(qd.ArgumentError, match='q'):
        point.write_position(np.full(model.nq, np.nan), np.empty(3))
