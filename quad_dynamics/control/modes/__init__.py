# SPDX-License-Identifier: Apache-2.0
"""Modes: several laws, one of which controls the robot at a time. `force_node` runs them on topics.

| module | what it does |
|---|---|
| `names` | the modes, and what they mean |
| `settings` | their settings |
| `laws` | the law of each mode |
| `supervisor` | runs the law of the mode, takes its commands, and damps if there is a fault |
| `commanded_walker` | mode whole_body: a walker whose commands expire |
| `passthrough` | mode passthrough: forwards commands, within limits |
| `joint_targets` | trajectories for mode computed_torque |
"""
