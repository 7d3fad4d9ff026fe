# SPDX-License-Identifier: Apache-2.0
"""Draws docs/figures/walking.webp, the moving picture of the README: a go2 that trots, and what it plans.

    python docs/figures/walking.py

`qd.Walker` walks in the simulator; then the scene of the viewer is drawn frame by frame in a headless
Chromium, which takes minutes without a GPU. Blue is the planned way of the centre of mass over the next
stride, orange are the next footholds, grey the last ones, green is what the feet on the ground span, red are
the forces of the ground. The last frame leads to the first one: what is shown is a whole number of strides
and of lines of the grid.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import viser
from PIL import Image

import quad_dynamics as qd
from quad_dynamics.api.drives import foot_position
from quad_dynamics.array_types import Floats
from quad_dynamics.control.gains import drive_gains
from quad_dynamics.control.state import RobotState
from quad_dynamics.planning.motion_plan import MotionPlan
from viewer_node.body_meshes import body_meshes
from viewer_node.colors import SKY, linear_bytes
from viewer_node.robot_view import RobotView, quaternions

HERE = Path(__file__).parent

ROBOT, SPEED = 'go2', 0.6  # [m/s]
SETTLE, STRIDES, RATE = 4.0, 8, 20.0  # [s], strides that are shown, frames a second
SIZE, QUALITY = (720, 400), 70  # [pixels], of the compression
LINE = 0.25  # about the distance of the lines of the grid [m]
FORCE = 0.3  # length of the arrow of the robot's weight [m]
TRAIL = 1.0  # for which footprints are seen [s]
CAMERA, TARGET, VIEW = np.array([0.80, -1.15, 0.72]), np.array([0.03, 0.0, 0.16]), 0.54  # [m, m, rad]
BLUE, ORANGE, GREY = (36, 99, 181), (240, 140, 0), (134, 142, 150)
GREEN, RED = (47, 158, 68), (201, 42, 42)
HIGH = 0.006  # of marks above the ground [m]


@dataclass(frozen=True, eq=False)
class Moment:
    """One moment of the walk.

    Attributes:
        time: [s].
        q: (nq,) configuration.
        feet: (legs, 3) centres of the feet [m].
        forces: (legs, 3) on the feet [N].
        down: (legs,) which feet are down.
        plan: that is followed.
    """

    time: float
    q: Floats
    feet: Floats
    forces: Floats
    down: npt.NDArray[np.bool_]
    plan: MotionPlan


def walk(model: qd.Model) -> list[Moment]:
    """Let the robot walk, and look at it every 2 ms."""
    sim, walker = qd.Simulator(model), qd.Walker(model)
    kp, kd = drive_gains(model, walker.settings)
    order = [model.foot_names.index(leg.foot) for leg in model.legs]
    moments = []

    def state() -> RobotState:
        return RobotState(sim.time, sim.q, sim.u, sim.foot_forces, sim.tau)

    walker.reset(state())
    walker.command(SPEED, 0.0, 0.0)
    while sim.time < SETTLE + 4.5:
        setpoint = walker.update(state())
        plan, wanted = walker.motion_plan, walker.plan
        if plan is not None and wanted is not None:
            feet = np.array([foot_position(model, sim.q, leg.foot) for leg in model.legs])
            down = np.array([contact in {'stance', 'early'} for contact in wanted.contact])
            moments.append(Moment(sim.time, sim.q.copy(), feet, sim.foot_forces[order].copy(), down, plan))
        sim.command(setpoint.tau, setpoint.q, setpoint.qd, kp, kd)
        sim.step()
        sim.step()
    return moments


def touchdowns(moments: list[Moment], leg: int) -> list[int]:
    """Numbers of the moments at which a foot has come down."""
    return [k for k in range(1, len(moments)) if moments[k].down[leg] and not moments[k - 1].down[leg]]


class Scene:
    """The robot on its ground, as the viewer shows it, and the marks of the plan."""

    def __init__(self, server: viser.ViserServer, model: qd.Model, line: float) -> None:
        self._scene, self._model = server.scene, model
        self._weight = model.total_mass * 9.81
        self._scene.configure_default_lights(cast_shadow=True)
        self._scene.set_background_image(np.full((2, 2, 3), SKY, dtype=np.uint8), format='png')
        self._scene.configure_environment_map('studio', environment_intensity=0.25)
        self._scene.configure_fog(2.0, 7.0, color=linear_bytes(np.array(SKY, dtype=np.uint8)))
        self._world = self._scene.add_frame('/world', show_axes=False)
        corners = np.array([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]])
        faces = np.array([[0, 1, 2], [0, 2, 3]])
        self._scene.add_mesh_simple(
            '/floor', corners, faces, color=(206, 213, 220), cast_shadow=False, receive_shadow=0.4
        )
        self._scene.add_grid(
            '/world/grid',
            infinite_grid=True,
            cell_size=line,
            section_size=line,
            cell_color=(150, 158, 167),
            section_color=(150, 158, 167),
            fade_distance=12.0,
            shadow_opacity=0.0,
            position=(0.0, 0.0, 0.003),
        )
        self._robot = RobotView(self._scene, model, body_meshes(model).glb, '/world/robot')
        self._marks: list[Any] = []

    def show(self, moment: Moment, prints: list[Floats], follow: Floats) -> None:
        """Show a moment.

        Args:
            moment: of the walk.
            prints: where feet were down [m].
            follow: (2,) what the camera looks at [m].
        """
        self._world.position = np.array([-follow[0], -follow[1], 0.0])
        x, y, z, w = moment.q[3:7]
        self._robot.place(moment.q[:3], np.array([w, x, y, z]))
        self._robot.bend(moment.q[7:])
        for mark in self._marks:
            mark.remove()
        self._marks = []
        plan = moment.plan
        com = np.array([plan.com.at(t)[0] for t in np.linspace(moment.time, plan.end, 25)])
        com[:, 2] = 2.0 * HIGH  # on the ground: the body would hide it
        self._lines('com', np.stack([com[:-1], com[1:]], axis=1), BLUE, 0.014)
        standing = moment.feet[moment.down] * [1.0, 1.0, 0.0] + [0.0, 0.0, HIGH]
        if len(standing) >= 2:
            middle = standing.mean(axis=0)
            about = np.argsort(np.arctan2(*(standing - middle).T[1::-1]))
            corners = standing[about]
            self._lines('support', np.stack([corners, np.roll(corners, -1, axis=0)], axis=1), GREEN, 0.010)
        for k, place in enumerate(prints):
            self._disc(f'print{k}', place, GREY, 0.018)
        for leg in np.flatnonzero(~moment.down):
            self._disc(f'foothold{leg}', plan.footholds[leg], ORANGE, 0.026)
        pushed = moment.forces[:, 2] > 0.02 * self._weight
        if pushed.any():
            feet = moment.feet[pushed]
            arrows = np.stack([feet, feet + FORCE / self._weight * moment.forces[pushed]], axis=1)
            self._keep(
                self._scene.add_arrows(
                    '/world/forces',
                    arrows.astype(np.float32),
                    linear_bytes(np.array(RED, dtype=np.uint8)),
                    shaft_radius=0.006,
                    head_radius=0.014,
                    head_length=0.035,
                )
            )

    def _keep(self, mark: Any) -> None:
        self._marks.append(mark)

    def _lines(self, name: str, pieces: Floats, colour: tuple[int, int, int], width: float) -> None:
        self._keep(
            self._scene.add_line_segments(
                f'/world/{name}', pieces.astype(np.float32), colour, thickness=width
            )
        )

    def _disc(self, name: str, place: Floats, colour: tuple[int, int, int], radius: float) -> None:
        x, y, _ = place
        self._keep(
            self._scene.add_cylinder(
                f'/world/{name}', radius, 0.004, colour, position=(x, y, HIGH), cast_shadow=False
            )
        )


def draw(model: qd.Model, moments: list[Moment], frames: int | None) -> list[Image.Image]:
    """The frames of the picture, or only the first ones of them."""
    landed = touchdowns(moments, 0)
    first = next(k for k in landed if moments[k].time > SETTLE)
    last = landed[landed.index(first) + STRIDES]
    duration = moments[last].time - moments[first].time
    way = moments[last].q[:2] - moments[first].q[:2]
    steps = [(moments[k].time, moments[k].feet[leg]) for leg in range(4) for k in touchdowns(moments, leg)]
    print(f'{STRIDES} strides of {duration / STRIDES:.3f} s, {way[0]:.2f} m')
    count = round(RATE * duration)
    server = viser.ViserServer(host='127.0.0.1', port=0, verbose=False)
    scene = Scene(server, model, way[0] / round(way[0] / LINE))
    images, chromium = [], driver()
    with tempfile.TemporaryDirectory() as folder, chromium.Browser(Path(folder), SIZE) as browser:
        browser.open(f'http://127.0.0.1:{server.get_port()}')
        client = chromium.wait_for(lambda: next(iter(server.get_clients().values()), None), 60.0)
        time.sleep(3.0)
        for i in range(count if frames is None else frames):
            at = moments[first].time + i * duration / count
            moment = moments[round((at - moments[0].time) / 0.002)]
            prints = [place for when, place in steps if at - TRAIL < when <= at]
            follow = moments[first].q[:2] + i / count * way
            scene.show(moment, prints, follow)
            position, wxyz = looking(CAMERA, TARGET)
            begin = time.perf_counter()
            for _ in range(2 if i == 0 else 1):  # the first one may lack what is drawn for the first time
                pixels = client.get_render(
                    SIZE[1], SIZE[0], wxyz=wxyz, position=position, fov=VIEW, transport_format='png'
                )
            images.append(on_sky(pixels))
            print(f'{i + 1} of {count}: {time.perf_counter() - begin:.1f} s', flush=True)
    server.stop()
    return images


def driver() -> Any:
    """The module with which tests drive a browser."""
    sys.path.insert(0, str(HERE.parents[1] / 'test' / 'helpers'))
    return importlib.import_module('chromium')


def on_sky(pixels: npt.NDArray[np.uint8]) -> Image.Image:
    """A picture (height, width, 3 or 4) in front of the sky, where nothing is drawn."""
    image = Image.fromarray(pixels).convert('RGBA')
    return Image.alpha_composite(Image.new('RGBA', image.size, SKY), image).convert('RGB')


def looking(place: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Position and orientation, w x y z, of a camera: z ahead, y down."""
    z = (target - place) / np.linalg.norm(target - place)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    R = np.stack([x, np.cross(z, x), z], axis=1)
    return place, quaternions(R[None])[0]


def main(frames: int | None = None) -> None:
    """Walk, draw and save."""
    if not driver().find_chromium():
        sys.exit('no browser found; install chromium, or name one in the variable CHROMIUM')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        model = qd.load_model(ROBOT)
    images = draw(model, walk(model), frames)
    images[0].save(
        HERE / 'walking.webp',
        save_all=True,
        append_images=images[1:],
        duration=round(1e3 / RATE),
        loop=0,
        quality=QUALITY,
        method=6,
    )
    print(f'{(HERE / "walking.webp").stat().st_size / 1e6:.2f} MB')


if __name__ == '__main__':
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
