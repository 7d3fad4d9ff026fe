# SPDX-License-Identifier: Apache-2.0
"""The topics that planner_node publishes: plans and their markers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from planner_node.pictures import support_polygons, zmp_path
from planner_node.settings import PlannerSettings
from quad_dynamics.api.drives import foot_position, gravity_norm
from quad_dynamics.array_types import Floats
from quad_dynamics.control.state import RobotState
from quad_dynamics.model.model import Model
from quad_dynamics.planning.motion_plan import MotionPlan
from quad_dynamics.ros.marker_parts import make_marker, points, removed
from quad_dynamics.ros.plan_messages import CONTACT_TOPIC, MOTION_TOPIC, PlanWriter
from quad_dynamics.ros.qos import COMMAND

_SAMPLES = 25  # of the paths that are drawn
_REPEAT = 0.5  # between two messages while time stands still [s]
_LIFETIME = 2  # of markers: those of a planner that has ended vanish [s]
_BLUE = ColorRGBA(r=0.15, g=0.40, b=0.85, a=1.0)
_RED = ColorRGBA(r=0.85, g=0.15, b=0.15, a=1.0)
_GREEN = ColorRGBA(r=0.20, g=0.65, b=0.30, a=0.7)
_ORANGE = ColorRGBA(r=0.95, g=0.60, b=0.10, a=1.0)


class PlanOutput:
    """The topics `motion_plan` and `contact_plan`.

    Attributes:
        count: plans that were published.
    """

    def __init__(self, node: Node, model: Model, settings: PlannerSettings) -> None:
        """Make the publishers."""
        self._writer = PlanWriter([leg.foot for leg in model.legs], settings.world_frame)
        self._motion = node.create_publisher(MultiDOFJointTrajectory, MOTION_TOPIC, COMMAND)
        self._contacts = node.create_publisher(JointTrajectory, CONTACT_TOPIC, COMMAND)
        self.count = 0

    def publish(self, plan: MotionPlan, stamp_ns: int) -> None:
        """Publish a plan for the state of this stamp [ns]."""
        motion, contacts = self._writer.write(plan, stamp_ns)
        self._motion.publish(motion)
        self._contacts.publish(contacts)
        self.count += 1


class PlanMarkers:
    """The topic `plan_markers`: paths of centre of mass and ZMP, footholds, support polygons."""

    def __init__(self, node: Node, model: Model, settings: PlannerSettings) -> None:
        """Make the publisher."""
        self._model, self._frame = model, settings.world_frame
        self._publisher = node.create_publisher(MarkerArray, 'plan_markers', COMMAND)
        height = 0.3 if model.standing is None else max(float(model.standing[2]), 0.05)
        self._size = 0.05 * height
        self.period_ns = round(1e9 / settings.markers_rate)
        self._last, self._published = -1, 0.0
        self._lock_step = settings.lock_step

    def is_due(self, stamp_ns: int) -> bool:
        """Whether the next period has begun or time has long stood still, and there are subscribers."""
        is_new = stamp_ns // self.period_ns != self._last
        repeats = not self._lock_step and time.monotonic() - self._published > _REPEAT
        return (is_new or repeats) and self._publisher.get_subscription_count() > 0

    def publish(self, plan: MotionPlan, state: RobotState, stamp_ns: int) -> None:
        """Publish a plan as seen from the state that it was made for."""
        self._last, self._published = stamp_ns // self.period_ns, time.monotonic()
        feet = np.array([foot_position(self._model, state.q, leg.foot) for leg in self._model.legs])
        dot, line = 1.6 * self._size, 0.4 * self._size
        com = np.array([plan.com.at(t)[0] for t in np.linspace(plan.time, plan.end, _SAMPLES)])
        footholds = make_marker('plan_footholds', 0, Marker.SPHERE_LIST, _ORANGE, (dot, dot, dot))
        footholds.points = points(plan.footholds)
        markers = [
            footholds,
            _strip('plan_com', _BLUE, line, com),
            _strip('plan_zmp', _RED, line, zmp_path(plan, feet, gravity_norm(self._model), _SAMPLES)),
            self._polygons(support_polygons(plan, feet), line),
        ]
        stamp = divmod(stamp_ns, 10**9)
        for marker in markers:
            marker.header.frame_id = self._frame
            marker.header.stamp.sec, marker.header.stamp.nanosec = stamp
            marker.lifetime.sec = _LIFETIME
        self._publisher.publish(MarkerArray(markers=markers))

    @staticmethod
    def _polygons(polygons: list[Floats], width: float) -> Any:
        """All support polygons as the lines of one marker."""
        marker = make_marker('plan_support', 0, Marker.LINE_LIST, _GREEN, (width, 0.0, 0.0))
        for corners in polygons:
            lines = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1).reshape(-1, 3)
            marker.points += points(lines)
        return marker if polygons else removed(marker)


def _strip(space: str, colour: Any, width: float, path: Floats) -> Any:
    marker = make_marker(space, 0, Marker.LINE_STRIP, colour, (width, 0.0, 0.0))
    marker.points = points(path)
    return marker if len(path) > 1 else removed(marker)
