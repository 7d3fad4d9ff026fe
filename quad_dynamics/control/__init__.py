# SPDX-License-Identifier: Apache-2.0
"""Control of legged robots: laws that turn a measured state into a setpoint for the joint drives.

| module | content |
|---|---|
| `gravity` | gravity compensation with the feet in contact |
| `stand` | gets up from lying, and stands |
| `computed_torque` | tracks a joint trajectory by inverse dynamics |
| `damping` | brings all joints to rest |
| `walker` | walks; lists its modules |
| `whole_body` | torques that move the whole robot as desired, within all limits |
| `contact_forces` | forces on the feet that move the base as desired, within friction |
| `observer` | external forces on the robot, from its momentum |
| `law` | the interface of all laws |
| `guard` | checks states, limits setpoints |
| `gains` | gains of the joint drives |
| `supervision` | runs a law, latches faults, blends between laws; damps when something is wrong |
| `modes` | several laws, one of which controls the robot; used by `force_node` |
| `foot_force_estimator` | forces on the feet, by the momentum observer |
| `velocity_command` | velocity commands that expire |
| `plan_maker` | plans for incoming states; used by `planner_node` |
| `plan_queue` | plans of another process, and when they take effect |
| `lying` | the pose in which a robot lies on its belly |

Every law (`law.Law`) takes a `RobotState` and returns a `Setpoint`; `ControlSettings` has all settings.
"""
