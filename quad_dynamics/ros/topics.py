# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the nodes, their topics and their services, for the docs and for `--help`.

Types and quality of service come from the nodes themselves; `make docs` combines both, and rejects topics
that are not listed here.
"""

from __future__ import annotations

from dataclasses import dataclass

TOPICS: dict[str, str] = {
    'joint_states': 'position, velocity and motor torque of each joint',
    'joint_torques': 'effort: feed-forward torque; if position or velocity is given, the drives add kp or kd '
    'times the error',
    'joint_targets': 'trajectory to follow in mode computed_torque; some joints or all',
    'joint_commands': 'commands that mode passthrough forwards, within limits',
    'effort_controller/commands': 'alternative to joint_torques, selected by parameter: torques only, in '
    'joint order, as used by effort controllers of ros2_control',
    'odom': 'pose of the base in odom_frame, its twist in base axes, and covariances; parameters set noise '
    'and drift',
    'imu/data': 'specific force (+g at rest), angular velocity, orientation',
    'foot_forces/<foot>': 'force of the ground on the foot, in the axes of frame_id: the foot or the world',
    'foot_forces_estimated/<foot>': 'the same, estimated from joint states and torques',
    'ground_truth/joint_states': 'as joint_states, without sensor errors; published if there are any',
    'ground_truth/odom': 'as odom, without sensor errors; published if there are any, or if odom '
    'is not published',
    'ground_truth/imu/data': 'as imu/data, without sensor errors; published if there are any',
    'ground_truth/foot_forces/<foot>': 'as foot_forces, without sensor errors; published if there are any',
    'robot_description': 'the robot as URDF text',
    'markers': 'contact points, forces, friction cones, support polygon, centre of mass; only with '
    'subscribers',
    'terrain': 'the ground as triangles, with grid lines',
    'push': 'a wrench on the link named by frame_id (empty: the base), in world axes, for push_duration',
    'initialpose': 'sets the pose of the base, at rest; a pose below the ground is lifted onto it',
    '~/summary': 'the last result as YAML: every parameter with unit, value, standard deviation and interval',
    '~/estimate': 'during recording: running estimates of all free parameters as YAML, from a Kalman filter',
    'motion_plan': 'centre of mass, heading, command and footholds over the next stride, at the knots of the '
    'spline; stamped with the time of the state that it was made for',
    'contact_plan': 'contact state of each foot (position: 1 in contact, else 0) and its normal force '
    '(effort), with the stamp of its motion_plan',
    'plan_markers': 'planned centre of mass, ZMP, footholds and support polygons; only with subscribers',
    'cmd_vel': 'walking velocity in mode whole_body, in the heading frame: forward (linear.x), left '
    '(linear.y), turning left (angular.z); must be repeated: the robot stops after cmd_timeout without it',
    '/clock': 'simulated time',
    '/tf': 'odom_frame to base_frame, as in odom; requires tf2_msgs',
    '/diagnostics': 'status of the node, twice a second',
}

SERVICES: dict[str, str] = {
    '~/reset': 'reset the robot to its initial pose, at rest; time continues',
    '~/pause': 'true pauses simulated time, false resumes it',
    '~/step': 'advance by one control period while paused',
    '~/start': 'start recording, and send the excitation if there is one; with a bag: identify from it',
    '~/stop': 'stop recording and identify; the result goes to ~/summary and the output folder',
    '~/recover': 'resume after a fall or a violated limit; the response states the fault',
}


@dataclass(frozen=True)
class NodeDescription:
    """What a node does, and its topics and services; some of them depend on parameters.

    Attributes:
        introduction: one or two sentences.
        publishes: names of topics.
        subscribes: likewise.
        services: names of services.
    """

    introduction: str
    publishes: tuple[str, ...]
    subscribes: tuple[str, ...]
    services: tuple[str, ...] = ()


_SENSORS = ('joint_states', 'foot_forces/<foot>', 'odom', 'imu/data')

NODES: dict[str, NodeDescription] = {
    'sim_node': NodeDescription(
        'Simulates the robot: torques in, sensors out. One thread, with time steps of `dt`, synchronised '
        'with the wall clock or with the controller.',
        (
            '/diagnostics',
            *_SENSORS,
            *(f'ground_truth/{name}' for name in _SENSORS),
            '/clock',
            'robot_description',
            'markers',
            'terrain',
            '/tf',
        ),
        ('joint_torques', 'initialpose', 'push', 'effort_controller/commands'),
        ('~/reset', '~/pause', '~/step'),
    ),
    'force_node': NodeDescription(
        'Controls the robot: answers each message on `joint_states` with `joint_torques`.',
        ('/diagnostics', 'joint_torques', 'foot_forces_estimated/<foot>', 'effort_controller/commands'),
        (
            'odom',
            'foot_forces/<foot>',
            'joint_states',
            'joint_commands',
            'joint_targets',
            'cmd_vel',
            'motion_plan',
            'contact_plan',
        ),
        ('~/recover',),
    ),
    'planner_node': NodeDescription(
        'Plans walking: publishes a motion plan for the next stride many times a second, from states and '
        '`cmd_vel`. `force_node` follows it in mode whole_body with `planner: external`.',
        ('/diagnostics', 'motion_plan', 'contact_plan', 'plan_markers'),
        ('odom', 'foot_forces/<foot>', 'joint_states', 'cmd_vel'),
    ),
    'viewer_node': NodeDescription(
        'Serves a page in the browser with the robot, its contacts, plots and buttons.',
        ('/diagnostics', 'push', 'cmd_vel'),
        (
            '/diagnostics',
            'terrain',
            'robot_description',
            'joint_states',
            'odom',
            'foot_forces/<foot>',
            'foot_forces_estimated/<foot>',
            'markers',
            'plan_markers',
        ),
    ),
    'identification': NodeDescription(
        'Identifies inertia and friction of the robot, live or from a bag: `~/start` records, `~/stop` '
        'solves in a background thread.',
        ('/diagnostics', '~/summary', '~/estimate', 'joint_targets'),
        ('joint_states', 'odom', 'imu/data', 'foot_forces/<foot>'),
        ('~/start', '~/stop'),
    ),
}
