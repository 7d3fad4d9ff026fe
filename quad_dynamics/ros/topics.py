# SPDX-License-Identifier: Apache-2.0
"""What the nodes, their topics and their services mean, for the docs and for `--help`.

Types and quality of service come from the nodes themselves; `make docs` puts both together, and refuses
topics that are not listed here.
"""

from __future__ import annotations

from dataclasses import dataclass

TOPICS: dict[str, str] = {
    'joint_states': 'position, velocity and motor torque of each joint',
    'joint_torques': 'effort: feed-forward torque; where position or velocity are given, the drives add kp '
    'and kd times the difference',
    'joint_targets': 'trajectory to follow in mode computed_torque; some joints or all',
    'joint_commands': 'commands to hand on in mode passthrough, within limits',
    'effort_controller/commands': 'in place of joint_torques, by parameter: torques alone, in the order of '
    'the joints, as effort controllers of ros2_control take them',
    'odom': 'pose of the base in odom_frame, its twist in its own axes, and covariances; noise and drift '
    'by parameters',
    'imu/data': 'specific force (+g at rest), angular velocity, orientation',
    'foot_forces/<foot>': 'force of the ground on the foot; frame_id says in which axes: of the foot, or of '
    'the world',
    'foot_forces_estimated/<foot>': 'the same, estimated from joint states and torques',
    'ground_truth/joint_states': 'as joint_states, without errors; where sensors have any',
    'ground_truth/odom': 'as odom, without errors; where sensors have any, or odom is not published',
    'ground_truth/imu/data': 'as imu/data, without errors; where sensors have any',
    'ground_truth/foot_forces/<foot>': 'as foot_forces, without errors; where sensors have any',
    'robot_description': 'the robot as URDF text',
    'markers': 'contact points, forces, cones, support polygon, centre of mass; while somebody looks',
    'terrain': 'the ground as triangles, with lines on it',
    'push': 'a wrench on the link that frame_id names (none: the base), in world axes, for push_duration',
    'initialpose': 'puts the base there, at rest; below the ground it is lifted onto it',
    '~/summary': 'the last result as YAML: every parameter with unit, value, deviation and interval',
    '~/estimate': 'while it records: running estimates of all free parameters as YAML, from a Kalman filter',
    'motion_plan': 'centre of mass, heading and command, and footholds over the next stride, at the knots of '
    'the spline; its stamp is that of the state it was made for',
    'contact_plan': 'which feet are down when (position 1, else 0) and with which normal force (effort), '
    'with the stamp of the motion_plan that it belongs to',
    'plan_markers': 'planned centre of mass, ZMP, footholds and support polygons; while somebody looks',
    'cmd_vel': 'velocity to walk at in mode whole_body, in the heading frame: forward (linear.x), to the '
    'left (linear.y), turning to the left (angular.z); to be repeated: the robot stops after cmd_timeout '
    'without it',
    '/clock': 'simulated time',
    '/tf': 'odom_frame to base_frame, as odom says it; where tf2_msgs is installed',
    '/diagnostics': 'how the node is, twice a second',
}

SERVICES: dict[str, str] = {
    '~/reset': 'put the robot to its start, at rest; time goes on',
    '~/pause': 'true stops time, false lets it go on',
    '~/step': 'advance by one control period while paused',
    '~/start': 'begin to record, and send the excitation if there is one; with a bag: identify from it',
    '~/stop': 'end the recording and identify; the result comes on ~/summary and in the output folder',
    '~/recover': 'go on after a fall or a violated limit; the answer says what was wrong',
}


@dataclass(frozen=True)
class NodeDescription:
    """What a node does, and its topics and services; some of them exist with some parameters only.

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
        'Simulates the robot: torques in, sensors out. One thread, time steps of `dt`, in step with the wall '
        'clock or with the controller.',
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
        'Controls the robot: each message of `joint_states` is answered with `joint_torques`.',
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
        'Plans how a robot walks: from states and `cmd_vel`, a motion plan for the next stride many times a '
        'second. `force_node` follows it in mode whole_body, with `planner: external`.',
        ('/diagnostics', 'motion_plan', 'contact_plan', 'plan_markers'),
        ('odom', 'foot_forces/<foot>', 'joint_states', 'cmd_vel'),
    ),
    'viewer_node': NodeDescription(
        'Serves the page in the browser: the robot, its contacts, plots and buttons.',
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
        'solves, in a thread of its own.',
        ('/diagnostics', '~/summary', '~/estimate', 'joint_targets'),
        ('joint_states', 'odom', 'imu/data', 'foot_forces/<foot>'),
        ('~/start', '~/stop'),
    ),
}
