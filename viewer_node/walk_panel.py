# SPDX-License-Identifier: Apache-2.0
"""The controls of a robot that walks: sliders of the velocity, arrow keys, gaits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import viser

from quad_dynamics.planning.gait import GAITS
from viewer_node.keys import Direction

Velocity = tuple[float, float, float]

_LIMITS = (1.0, 0.5, 1.0)  # until the robot tells its own [m/s, m/s, rad/s]
_STEP = 0.05  # of the sliders
_KEY_SHARE = 30.0  # of the largest velocities, that arrow keys ask for at first [%]
_KEY_SILENCE = 0.4  # after which keys that were held count as released [s]
_BUTTONS = 3  # side by side, so that the longest name can be read
_HINT = (
    '<div style="padding:0.2em 0.9em 0.4em;font-size:0.85em;opacity:0.75;line-height:1.5">'
    'Hold arrow keys to drive: &uarr; &darr; forward and back, &larr; &rarr; turn, Shift with '
    '&larr; &rarr; sideways.</div>'
)


class WalkPanel:
    """A folder of controls, visible while a node follows them."""

    def __init__(self, gui: Any, choose_gait: Callable[[str], None]) -> None:
        """Add the controls where the GUI is being built.

        Args:
            gui: of viser.
            choose_gait: called with the name of the chosen gait.
        """
        self._limits = _LIMITS
        self._steered = math.inf  # when keys were last heard of; inf: none is held
        self._folder = gui.add_folder('walk', visible=False)
        with self._folder:
            self._gaits = [
                gui.add_button_group('' if row else 'gait', names, visible=False)
                for row, names in enumerate(_rows(tuple(GAITS)))
            ]
            for group in self._gaits:
                group.on_click(lambda event: choose_gait(str(event.target.value)))
            names = ('forward [m/s]', 'left [m/s]', 'turn [rad/s]')
            self._sliders = [
                gui.add_slider(name, min=-most, max=most, step=_STEP, initial_value=0.0)
                for name, most in zip(names, _LIMITS, strict=True)
            ]
            gui.add_button('Stop', icon=viser.Icon.HAND_STOP).on_click(lambda _: self.stop())
            self._share = gui.add_slider('keys [%]', min=5.0, max=100.0, step=5.0, initial_value=_KEY_SHARE)
            gui.add_html(_HINT)

    @property
    def is_shown(self) -> bool:
        """Whether the controls are shown."""
        return bool(self._folder.visible)

    @property
    def velocity(self) -> Velocity:
        """Commanded velocity: forward and left [m/s], turn [rad/s]."""
        forward, left, turn = (float(slider.value) for slider in self._sliders)
        return forward, left, turn

    def stop(self) -> None:
        """Set the velocity to zero."""
        self._steered = math.inf
        self._set((0.0, 0.0, 0.0))

    def _set(self, velocity: Velocity) -> None:
        for slider, value in zip(self._sliders, velocity, strict=True):
            if slider.value != value:
                slider.value = value

    def steer(self, direction: Direction, now: float) -> None:
        """Let the sliders follow the arrow keys that are held.

        Args:
            direction: forward, left, turn; all zero when the last key is released.
            now: monotonic time [s].
        """
        if not self.is_shown:
            return
        if not any(direction):
            self.stop()
            return
        share = 0.01 * float(self._share.value)
        x, y, turn = (share * most * way for most, way in zip(self._limits, direction, strict=True))
        self._set((x, y, turn))
        self._steered = now

    def watch(self, now: float) -> None:
        """Stop if a page that held a key no longer sends requests."""
        if now - self._steered > _KEY_SILENCE:
            self.stop()

    def show(self, is_obeyed: bool, has_gaits: bool) -> None:
        """Show the controls if any nodes follow them, else hide them.

        Args:
            is_obeyed: whether any node follows them.
            has_gaits: whether force_node is one of them.
        """
        for group in self._gaits:
            if group.visible != has_gaits:
                group.visible = has_gaits
        if is_obeyed != self._folder.visible:
            if not is_obeyed:
                self.stop()
            self._folder.visible = is_obeyed

    def know_limits(self, limits: Velocity) -> None:
        """Set the range of the sliders to the largest velocities of the robot [m/s, m/s, rad/s]."""
        x, y, turn = (max(_STEP * math.floor(most / _STEP), _STEP) for most in limits)
        if (x, y, turn) != self._limits:
            self._limits = x, y, turn
            for slider, most in zip(self._sliders, self._limits, strict=True):
                slider.value = min(max(float(slider.value), -most), most)
                slider.min, slider.max = -most, most


def _rows(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Names in rows of about the same length."""
    count = math.ceil(len(names) / _BUTTONS)
    size = math.ceil(len(names) / max(count, 1))
    return [names[i : i + size] for i in range(0, len(names), size)]
