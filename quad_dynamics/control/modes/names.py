# SPDX-License-Identifier: Apache-2.0
"""The modes of a robot, each named once."""

from __future__ import annotations

STAND = 'stand'
GRAVITY = 'gravity'
COMPUTED_TORQUE = 'computed_torque'
DAMPING = 'damping'
PASSTHROUGH = 'passthrough'
WHOLE_BODY = 'whole_body'

MEANINGS = {
    STAND: 'get up and stand',
    GRAVITY: 'compensate gravity',
    COMPUTED_TORQUE: 'follow joint_targets',
    DAMPING: 'damp the joints',
    PASSTHROUGH: 'forward joint_commands, within limits',
    WHOLE_BODY: 'get up, stand, and walk on cmd_vel',
}
MODES = tuple(MEANINGS)
