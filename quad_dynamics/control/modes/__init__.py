# SPDX-License-Identifier: Apache-2.0
"""Modes: several laws, one of which controls the robot at a time. `force_node` runs them on topics.

| module | what it does |
|---|---|
| `names` | the modes, and what they mean |
| `settings` | everything that can be set about them |
| `laws` | the law of each mode |
| `supervisor` | asks the law of the mode, takes its commands, and damps when something is wrong |
| `commanded_walker` | mode whole_body: a walker whose commands grow old |
| `passthrough` | mode passthrough: sends commands on, within limits |
| `joint_targets` | trajectories for mode computed_torque |
"""
