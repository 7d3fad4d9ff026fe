# SPDX-License-Identifier: Apache-2.0
"""A robot stands, is pushed, and stands again."""

import quad_dynamics as qd

model = qd.load_model('mini_cheetah')  # or the path of your URDF
sim = qd.Simulator(model, contact='impulse', terrain='flat', dt=1e-3, mu=0.6)
sim.command(q=model.standing[7:], kp=60.0, kd=2.0)  # drives hold the standing pose
sim.run(None, duration=1.0)
for foot, force in zip(model.foot_names, sim.foot_forces, strict=True):
    print(f'{foot}: {force.round(1)} N')
sim.apply_force('base_link', [0, 60, 0, 0, 0, 0], duration=0.1)  # 60 N to the left
log = sim.run(None, duration=1.0)
print(f'the push moved it by {1e3 * log.q[:, 1].max():.0f} mm, {1e3 * log.q[-1, 1]:.0f} mm are left')
print(f'it carries {log.foot_forces[-1, :, 2].sum():.1f} N of {model.total_mass * 9.81:.1f} N')
