# SPDX-License-Identifier: Apache-2.0
"""Torques that hold a standing robot, and what happens when they are switched off."""

import numpy as np

import quad_dynamics as qd

model = qd.load_model('mini_cheetah')  # or the path of your URDF
q, u = model.standing, np.zeros(model.nv)
feet = {foot: [0, 0, model.total_mass * 9.81 / 4, 0, 0, 0] for foot in model.foot_names}
tau = qd.inverse_dynamics(model, q, u, du=np.zeros(model.nv), f_ext=feet)
print('base [N, N m]:', tau[:6].round(2))  # nearly zero: the feet carry the robot
for name, torque in zip(model.joint_names, tau[6:], strict=True):
    print(f'{name:16} {torque:6.2f} N m')
du = qd.forward_dynamics(model, q, u, tau=np.zeros(model.nj), f_ext=feet)
print('without torques the base falls at', du[2].round(2), 'm/s^2')
