# SPDX-License-Identifier: Apache-2.0
"""Control of legged robots: laws that turn a measured state into a setpoint for the joint drives.

| module | what it does |
|---|---|
| `gravity` | carries the weight, with the feet that touch the ground |
| `stand` | gets up from lying, and stands |
| `computed_torque` | follows a joint trajectory by inverse dynamics |
| `damping` | lets all joints come to rest |
| `walker` | walks; its neighbours are listed there |
| `whole_body` | torques that move the whole robot as wanted, within all limits |
| `contact_forces` | forces on the feet that move the base as wanted, within friction |
| `observer` | what acts on the robot from outside, from its momentum |
| `law` | what every law has |
| `guard` | checks states, limits setpoints |
| `supervision` | asks a law, latches faults, fades from law to law; damps when something is wrong |
| `modes` | several laws of which one controls the robot; what `force_node` runs |
| `foot_force_estimator` | forces on the feet, by the momentum observer |
| `plan_maker` | plans for states as they come; what `planner_node` runs |
| `plan_queue` | plans of another process: which of them count |
| `lying` | the pose in which a robot lies on its belly |

Every law (`law.Law`) takes a `RobotState` and gives a `Setpoint`; `ControlSettings` has all that can be set.
"""
