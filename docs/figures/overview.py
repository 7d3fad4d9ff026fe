# SPDX-License-Identifier: Apache-2.0
"""Draws docs/figures/overview.png, the picture of the README: `make figures`.

Left, the bundled mini_cheetah from the shapes of its URDF, with what the library computes for it. Right, the
ratios of the last `make bench`.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use('Agg')
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import quad_dynamics as qd

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / 'benchmarks' / 'results.json'
SHOWN = {
    'aba': 'forward dynamics',
    'coriolis': 'Coriolis matrix',
    'regressor': 'regressor',
    'rnea': 'inverse dynamics',
    'crba': 'mass matrix',
    'aba_batch': 'forward dynamics, batch',
    'rnea_batch': 'inverse dynamics, batch',
}


def main() -> None:
    """Draw and save."""
    figure = plt.figure(figsize=(11, 4.6))
    draw_robot(figure.add_subplot(1, 2, 1, projection='3d'))
    draw_speed(figure.add_subplot(1, 2, 2))
    figure.tight_layout(w_pad=4.0)
    figure.savefig(HERE / 'overview.png', dpi=130)


def draw_robot(axes: plt.Axes) -> None:
    """The standing robot, its centre of mass, the forces on its feet and the torques that hold it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model('mini_cheetah')
    q, still = model.standing, np.zeros(model.nv)
    weight = model.total_mass * 9.81
    feet = {foot: [0, 0, weight / 4, 0, 0, 0] for foot in model.foot_names}
    tau = qd.inverse_dynamics(model, q, still, still, f_ext=feet)[6:]

    for link in model.urdf.links:
        R_WL, p_WL = qd.frame_pose(model, q, link.name)
        for shape in link.visuals:
            faces = shape_faces(shape.geometry) @ rotation(shape.origin.rpy).T + np.array(shape.origin.xyz)
            faces = faces @ R_WL.T + p_WL
            look = {'facecolor': (0.8, 0.82, 0.85, 0.6), 'edgecolor': '0.5', 'linewidth': 0.3}
            axes.add_collection3d(Poly3DCollection(faces, **look))
    for foot in model.foot_names:
        p = qd.frame_pose(model, q, foot)[1]
        axes.quiver(*p, 0, 0, weight / 4 * 6e-3, color='tab:green', linewidth=2.2, zorder=10)
    com = qd.center_of_mass(model, q)
    axes.scatter(*com, color='tab:red', s=60, depthshade=False, zorder=10)
    label(axes, com, (-0.04, 0.0, 0.1), f'centre of mass\n{model.total_mass:.2f} kg', 'tab:red')
    knee = qd.frame_pose(model, q, 'FR_calf')[1]
    calf = model.joint_names.index('FR_calf_joint')
    label(axes, knee, (-0.12, 0.0, -0.15), f'knee: {tau[calf]:.2f} N m', 'tab:blue')
    foot = qd.frame_pose(model, q, 'FR_foot')[1]
    label(axes, foot, (0.02, 0.0, -0.025), f'{weight / 4:.1f} N', 'tab:green')
    axes.set(xlim=(-0.26, 0.26), ylim=(-0.26, 0.26), zlim=(0.0, 0.42))
    axes.set_box_aspect((1, 1, 0.8), zoom=1.2)
    axes.view_init(elev=14, azim=-60)
    axes.set_axis_off()
    axes.set_title('URDF in, every quantity of its dynamics out', fontsize=11, y=1.0)


def label(axes: plt.Axes, point: np.ndarray, offset: tuple[float, ...], text: str, color: str) -> None:
    """Text beside a point."""
    axes.text(*(point + np.array(offset)), text, color=color, fontsize=9)


def shape_faces(geometry: object) -> np.ndarray:
    """Quadrilaterals (faces, 4, 3) of a box, cylinder or sphere about its own origin."""
    kind, size = geometry.kind, geometry.size
    if kind == 'box':
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        faces = []
        for axis in range(3):
            for side in (-1, 1):
                face = np.empty((4, 3))
                face[:, axis] = side
                face[:, [(axis + 1) % 3, (axis + 2) % 3]] = corners
                faces.append(face)
        return np.array(faces) * np.array(size) / 2
    turn = np.linspace(0, 2 * np.pi, 17)
    if kind == 'cylinder':
        profile = [(0, -size[1] / 2), (size[0], -size[1] / 2), (size[0], size[1] / 2), (0, size[1] / 2)]
    else:
        arc = np.linspace(-np.pi / 2, np.pi / 2, 9)
        profile = list(zip(size[0] * np.cos(arc), size[0] * np.sin(arc), strict=True))
    rings = np.array([[(r * np.cos(a), r * np.sin(a), z) for a in turn] for r, z in profile])
    quads = [rings[:-1, :-1], rings[1:, :-1], rings[1:, 1:], rings[:-1, 1:]]
    return np.stack(quads, axis=2).reshape(-1, 4, 3)


def rotation(rpy: tuple[float, float, float]) -> np.ndarray:
    """R = Rz Ry Rx."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ])  # fmt: skip


def draw_speed(axes: plt.Axes) -> None:
    """Ratios to Pinocchio, as `make bench` measured them."""
    results = json.loads(RESULTS.read_text())
    names = list(SHOWN)[::-1]
    ratios = [results[name] for name in names]
    colors = ['#7fb3d5' if name.endswith('batch') else '#2471a3' for name in names]
    bars = axes.barh([SHOWN[name] for name in names], ratios, color=colors)
    axes.bar_label(bars, fmt='%.1f x', padding=3, fontsize=9)
    axes.axvline(1.0, color='0.4', linewidth=1, linestyle='--')
    axes.text(1.06, len(names) - 0.45, 'Pinocchio', color='0.4', fontsize=9)
    axes.set(xlim=(0, max(ratios) * 1.15), xlabel='times as fast, called from Python (go2)')
    axes.spines[['top', 'right']].set_visible(False)
    axes.set_title('several times as fast as Pinocchio from Python', fontsize=11, y=1.06)


if __name__ == '__main__':
    main()
