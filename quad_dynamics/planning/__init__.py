# SPDX-License-Identifier: Apache-2.0
"""Planning of locomotion: which feet are down when, where they come down, and how the body moves above them.

| module | what it does |
|---|---|
| `planner` | plans a stride ahead: all of the below, in order |
| `stance_geometry` | lengths of the robot, from which all scales come |
| `gait` | gaits as data (`gaits.yaml`), and their clock |
| `gait_transition` | from one gait to another while the robot moves |
| `ground` | the plane below the feet, and the control frame |
| `contact_schedule` | which feet are down when, over a horizon |
| `support_sequence` | that schedule from the clock of a gait, and the support polygons |
| `foothold_planner` | footholds of all legs, by a quadratic program |
| `motion_plan` | a plan: splines of the centre of mass, contacts and footholds |
| `footholds` | footholds of the simple planner |
| `com_problem` | what the motion optimisation is given, its weights and settings |
| `zmp` | the zero-moment point, and edges of support polygons as inequalities |
| `arc` | the way of a body that turns while it goes |
| `convex_hull` | of points in a plane |
| `support_region` | where the zero-moment point may be on some feet |
| `com_segments` | quintics whose junctions and flights hold by construction |
| `com_cost` | the cost of a motion, and its factors |
| `com_rows` | inequalities at samples: zero-moment point, friction, load, height |
| `com_program` | all of that in the frame of the ground: merit and convex models |
| `com_planner` | the motion optimisation: sequential quadratic programming |
| `plan_alignment` | where in a new plan the robot is |
| `planned_forces` | normal forces of the feet that a motion needs |
"""
