# SPDX-License-Identifier: Apache-2.0
"""The page: scene, controls, plots. Independent of ROS."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import viser
from viser._messages import RunJavascriptMessage

from quad_dynamics.array_types import Floats
from quad_dynamics.model.model import Model
from viewer_node import keys
from viewer_node.colors import BRAND, SKY, linear_bytes
from viewer_node.marker_view import MarkerView
from viewer_node.panel import Action, Panel
from viewer_node.plots import Plots
from viewer_node.push_preview import PushPreview, heading, seen_from
from viewer_node.robot_view import BodyMeshes, RobotView
from viewer_node.server import PageServer
from viewer_node.settings import ViewerSettings
from viewer_node.watch_server import WATCH_SERVER

TITLE = 'quad_dynamics'
_WORLD = '/world'
_FRAMES = ('', 'odom', 'world', 'map')  # all of them mean the world: there is no tf here
# Of the camera, in radii of the robot: from behind and from the right, so that what lies ahead is seen.
_VIEW, _TARGET = np.array([-1.35, -1.5, 1.0]), np.array([0.25, 0.0, 0.2])
_LIFT = 0.05  # share by which the camera follows the height at each refresh
_PREVIEW = 5.0  # for which the arrow of a push is seen after it was set up [s]


class Page:
    """Everything that a browser shows.

    The camera follows the robot by moving the world, not the camera. So it does not interfere with a user who
    turns it, and the robot stays where shadows are sharp.

    Attributes:
        panel: the controls.
        robot: in the scene, None until it is known.
        markers: by topic.
    """

    def __init__(self, server: PageServer, settings: ViewerSettings) -> None:
        """Build the page; the robot is added later."""
        self._server, self._settings = server, settings
        scene = server.scene
        self._run(f'document.title = "{TITLE}"')
        self._run(WATCH_SERVER)
        self._run(keys.SCRIPT)
        server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=BRAND, control_width='medium'
        )
        self._world = scene.add_frame(_WORLD, show_axes=False)
        self._look_at = np.zeros(3)
        self._grid = self._add_surroundings(scene)
        frames = (*_FRAMES, settings.world_frame)
        self.markers = {
            'terrain': MarkerView(scene, f'{_WORLD}/terrain', frames, shadows=True),
            'markers': MarkerView(scene, f'{_WORLD}/markers', frames, shadows=False),
            'plan_markers': MarkerView(scene, f'{_WORLD}/plan_markers', frames, shadows=False),
        }
        self.panel = Panel(server.gui)
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(310)
        self._plot_panel = server.gui.add_panel()
        self._plot_tab = self._plot_panel.add_tab('plots', viser.Icon.CHART_LINE)
        self._plot_panel.dock_left()
        self._plot_panel.set_width(340)
        self.robot: RobotView | None = None
        self.plots: Plots | None = None
        self._p_WB, self._wxyz_WB = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        self._offset = np.zeros(3)
        self._preview = PushPreview(scene, f'{_WORLD}/push_preview')
        self._radius, self._weight = 0.6, 1.0
        self._aim()
        server.on_client_disconnect(self._stop)
        server.keys.on_keys = lambda direction: self.panel.actions.put(Action('steer', direction))

    def _run(self, script: str) -> None:
        """Run a script on all pages, including later ones; viser has no public function for this."""
        self._server.gui._websock_interface.queue_message(RunJavascriptMessage(script))

    def _add_surroundings(self, scene: Any) -> Any:
        """Add light from a bright sky, and a grid as long as there is no terrain."""
        scene.configure_default_lights(cast_shadow=True)
        scene.set_background_image(np.full((2, 2, 3), SKY, dtype=np.uint8), format='png')
        scene.configure_environment_map('studio', environment_intensity=0.25)
        return scene.add_grid(
            f'{_WORLD}/grid',
            infinite_grid=True,
            cell_size=0.1,
            section_size=0.5,
            cell_color=(208, 212, 217),
            section_color=(165, 171, 179),
            fade_distance=12.0,
            shadow_opacity=0.0,
            position=(0.0, 0.0, 4e-3),  # above flat ground: lines show that the robot moves
        )

    def _aim(self) -> None:
        """Look at the robot from a distance that fits its size."""
        radius = self._radius
        fog = linear_bytes(np.array(SKY, dtype=np.uint8))
        self._server.scene.configure_fog(4.0 * radius, 16.0 * radius, color=fog)
        camera = self._server.initial_camera
        camera.look_at, camera.position = radius * _TARGET, radius * _VIEW
        for client in self._server.get_clients().values():
            self.look_at_robot(client)

    def look_at_robot(self, client: Any) -> None:
        """Let the camera of one page look at the robot as in the beginning."""
        place = self._p_WB + self._offset
        place[2] = max(place[2] - 0.4 * self._radius, 0.0)
        client.camera.position = place + self._radius * _VIEW
        client.camera.look_at = place + self._radius * _TARGET

    async def _stop(self, _: Any) -> None:
        """Stop commanding a velocity when a page is closed: it may have been the one that commanded it."""
        self.panel.walk.stop()

    def show_walk(self, is_obeyed: bool, has_gaits: bool) -> None:
        """Show the controls of walking and enable the arrow keys, if a node follows them.

        Args:
            is_obeyed: whether any node follows them.
            has_gaits: whether force_node is one of them.
        """
        if is_obeyed != self.panel.walk.is_shown:
            self._run(keys.allow(is_obeyed))
        self.panel.walk.show(is_obeyed, has_gaits)

    # ---- robot

    def show_robot(self, model: Model, meshes: BodyMeshes) -> None:
        """Show a robot, replacing the previous one."""
        if self.robot is not None:
            self.robot.remove()
        self.robot = RobotView(self._server.scene, model, meshes.glb, f'{_WORLD}/robot')
        self._plot_tab.remove()
        self._plot_tab = self._plot_panel.add_tab('plots', viser.Icon.CHART_LINE)
        with self._plot_tab:
            settings = self._settings
            self.plots = Plots(self._server.gui, model, settings.plot_duration, 60.0)
        self._radius, self._weight = meshes.radius, model.total_mass * 9.81
        self.panel.know_weight(self._weight)
        self.panel.know_robot(model.name, f'{model.nj} joints, {model.total_mass:.3g} kg')
        self._run(f'document.title = {json.dumps(f"{model.name} · {TITLE}")}')
        self._aim()

    def place_robot(self, p_WB: Floats, wxyz_WB: Floats) -> None:
        """Move the base: position (3,) [m], orientation (4,) w x y z."""
        self._p_WB, self._wxyz_WB = p_WB, wxyz_WB
        if self.robot is not None:
            self.robot.place(p_WB, wxyz_WB)

    def bend_robot(self, q_j: Floats) -> None:
        """Move the joints to positions (nj,)."""
        if self.robot is not None:
            self.robot.bend(q_j)

    # ---- every refresh

    def draw(self, now: float) -> list[str]:
        """Update the scene.

        Args:
            now: monotonic time [s].

        Returns:
            a message for each marker that cannot be drawn.
        """
        problems = []
        for view in self.markers.values():
            problems += view.draw(now)
        terrain = self.markers['terrain']
        self._grid.visible = terrain.is_empty or terrain.is_flat
        self._follow()
        self._preview_push(now)
        return problems

    def _preview_push(self, now: float) -> None:
        if now - self.panel.push_set > _PREVIEW:
            self._preview.hide()
            return
        force = seen_from(heading(self._wxyz_WB), self.panel.push)
        self._preview.show(self._p_WB, force, self._weight, self._radius)

    def _follow(self) -> None:
        if not self.panel.follow.value:
            return  # the world stays where it is, so nothing jumps
        self._offset[:2] = -self._p_WB[:2]
        climb = -self._p_WB[2] - self._offset[2]
        # no breathing and no steps, but stairs and hills
        self._offset[2] += _LIFT * (climb - np.clip(climb, -self._radius, self._radius))
        self._world.position = self._offset

    @property
    def layers(self) -> list[tuple[str, str]]:
        """Topic and namespace of all markers."""
        return [(topic, name) for topic, view in self.markers.items() for name in view.namespaces]

    @property
    def is_open(self) -> bool:
        """Whether any page is open."""
        return bool(self._server.get_clients())

    def notify(self, title: str, body: str, is_good: bool) -> None:
        """Show the result of something on all pages."""
        for client in self._server.get_clients().values():
            client.add_notification(
                title, body, auto_close_seconds=4.0 if is_good else 12.0, color='green' if is_good else 'red'
            )
