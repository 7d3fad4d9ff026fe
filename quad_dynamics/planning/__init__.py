# SPDX-License-Identifier: Apache-2.0
"""Planning of locomotion: contact schedule, footholds, and the motion of the body above them.

| module | content |
|---|---|
| `planner` | plans a stride ahead, with the modules below |
| `stance_geometry` | lengths of the robot, from which all scales follow |
| `gait` | gaits as data (`gaits.yaml`), and their clock |
| `gait_transition` | changes from one gait to another while the robot walks |
| `ground` | the plane below the feet, and the control frame |
| `contact_schedule` | which feet are in contact when, over a horizon |
| `support_sequence` | makes that schedule from the gait clock, and the support polygons |
| `foothold_planner` | footholds of all legs, by a quadratic program |
| `motion_plan` | a plan: splines of the centre of mass, contacts and footholds |
| `footholds` | footholds of the simple planner, from the capture point |
| `com_problem` | the input of the motion optimisation, its weights and settings |
| `zmp` | the zero-moment point, and edges of support polygons as inequalities |
| `arc` | the path of a body that turns while it moves |
| `convex_hull` | of points in a plane |
| `support_region` | the region of the zero-moment point for given feet |
| `com_segments` | quintics that satisfy junctions and flight phases by construction |
| `com_cost` | the cost of a motion, and its factorisation |
| `com_rows` | inequalities at samples: zero-moment point, friction, load, height |
| `com_program` | unknowns, cost and inequalities in the ground frame: merit and convex models |
| `com_planner` | the motion optimisation: sequential quadratic programming |
| `plan_alignment` | time alignment of a new plan with the robot |
| `planned_forces` | normal forces of the feet that a motion requires |
"""
