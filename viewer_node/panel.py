# SPDX-License-Identifier: Apache-2.0
"""The controls of the page. User actions are queued for the node."""

from __future__ import annotations

import html
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import viser

from quad_dynamics.control.modes.names import MODES
from quad_dynamics.simulation.settings import CONTACTS
from viewer_node.status import Line
from viewer_node.walk_panel import WalkPanel

# Directions of a push as seen by the robot, x forward, y left, z up.
DIRECTIONS = {
    'forward': (1.0, 0.0, 0.0),
    'backward': (-1.0, 0.0, 0.0),
    'left': (0.0, 1.0, 0.0),
    'right': (0.0, -1.0, 0.0),
    'up': (0.0, 0.0, 1.0),
    'down': (0.0, 0.0, -1.0),
}
_UNKNOWN = '-'
_RECOVER = (
    'After a fall or a violated limit the controller only damps the joints. Recover resumes control from the '
    'current pose. A robot on its side or back cannot get up: use Reset.'
)
_RESET = 'Reset: return to the initial pose, at rest, and resume control. Step: advance while paused.'
# Of lines of the status, by their tone; readable on light and dark.
_STYLES = {
    'plain': '',
    'busy': 'color:#1c7ed6',
    'warning': 'color:#e67700',
    'error': 'color:#e03131;font-weight:600',
    'advice': 'border-left:3px solid #e67700;padding:0.1em 0 0.1em 0.6em;margin:0.3em 0',
}
_TIME_BUTTONS = {False: ('Pause', 'Step', 'Reset'), True: ('Resume', 'Step', 'Reset')}


@dataclass(frozen=True)
class Action:
    """An action of the user.

    Attributes:
        name: 'pause', 'step', 'reset', 'recover', 'push', 'contact', 'mode', 'gait', 'steer', 'show' or
            'look'.
        value: the choice, if any; for 'steer', the direction; for 'look', the page.
    """

    name: str
    value: Any = None


class Panel:
    """Buttons, sliders and the status line.

    Attributes:
        actions: user actions that have not been handled yet.
        is_paused: whether the simulation is known to be paused.
        push_set: when a user last changed the push, monotonic time [s].
        walk: the controls of the velocity.
        follow: the checkbox that lets the camera follow the robot.
    """

    def __init__(self, gui: Any) -> None:
        """Add the controls where the GUI is being built."""
        self.actions: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self.is_paused = False
        self.push_set = -1e9
        self._gui = gui
        self._title = ''
        self._status = gui.add_html('')
        self._shown_status = ''
        with gui.add_folder('simulation'):
            self._add_simulation()
        with gui.add_folder('push'):
            self._add_push()
        self.walk = WalkPanel(gui, lambda gait: self.actions.put(Action('gait', gait)))
        self._layers = gui.add_folder('show')
        with self._layers:
            self.follow = gui.add_checkbox('camera follows', True)
            self._look = gui.add_button('Look at robot', icon=viser.Icon.FOCUS_2)
            self._look.on_click(lambda event: self.actions.put(Action('look', event.client)))
        self._boxes: dict[tuple[str, str], Any] = {}

    def _add_simulation(self) -> None:
        gui = self._gui
        self._time = gui.add_button_group('time', _TIME_BUTTONS[False], hint=_RESET)
        self._time.on_click(self._act_on_time)
        self._contact = self._dropdown('contact', 'contact', CONTACTS)
        self._mode = self._dropdown('mode', 'mode', MODES)
        self._button('Recover', 'recover', icon=viser.Icon.FIRST_AID_KIT, hint=_RECOVER)

    def _act_on_time(self, event: Any) -> None:
        pressed = str(event.target.value)
        if pressed in ('Pause', 'Resume'):
            self.actions.put(Action('pause', pressed == 'Pause'))
        else:
            self.actions.put(Action(pressed.lower()))

    def _add_push(self) -> None:
        gui = self._gui
        self._direction = gui.add_dropdown('direction', list(DIRECTIONS), initial_value='left')
        self._strength = gui.add_slider('force [N]', min=0.0, max=300.0, step=5.0, initial_value=50.0)
        for control in (self._direction, self._strength):
            control.on_update(self._note_push)
        self._button('Push', 'push', icon=viser.Icon.ARROW_BIG_RIGHT)

    def _note_push(self, event: Any) -> None:
        if event.client is not None:
            self.push_set = time.monotonic()

    def _button(self, label: str, name: str, **look: Any) -> None:
        self._gui.add_button(label, **look).on_click(lambda _: self.actions.put(Action(name)))

    def _dropdown(self, label: str, name: str, choices: Sequence[str]) -> Any:
        made = self._gui.add_dropdown(label, [_UNKNOWN, *choices], initial_value=_UNKNOWN)

        def choose(event: Any) -> None:
            if event.client is not None and made.value != _UNKNOWN:  # not what `know_choice` shows
                self.actions.put(Action(name, made.value))

        made.on_update(choose)
        return made

    # ---- what the node reads

    @property
    def push(self) -> tuple[float, float, float]:
        """The chosen force, in the heading frame of the robot [N]."""
        x, y, z = (float(self._strength.value) * d for d in DIRECTIONS[self._direction.value])
        return x, y, z

    # ---- what the node shows

    def know_weight(self, weight: float) -> None:
        """Set the largest push to twice the weight of the robot [N]."""
        most = max(10.0, 5.0 * round(2.0 * weight / 5.0))
        self._strength.max = most
        self._strength.value = max(5.0, 5.0 * round(most / 20.0))

    def know_robot(self, name: str, detail: str) -> None:
        """Show the name of the robot, and a few facts about it."""
        self._title = (
            f'<div style="font-size:1.2em;font-weight:600">{html.escape(name)}</div>'
            f'<div style="opacity:0.65">{html.escape(detail)}</div>'
        )

    def know_paused(self, is_paused: bool) -> None:
        """Show whether the simulation is paused."""
        if is_paused != self.is_paused:
            self.is_paused = is_paused
            self._time.options = _TIME_BUTTONS[is_paused]

    def know_choice(self, name: str, value: str) -> None:
        """Show the contact model or mode reported by another node; '' if it does not answer."""
        made = {'contact': self._contact, 'mode': self._mode}[name]
        value = value or _UNKNOWN
        if value not in made.options:
            made.options = (*made.options, value)
        made.value = value

    def know_layers(self, names: Sequence[tuple[str, str]]) -> None:
        """Add a checkbox for each layer: name of the topic, namespace."""
        for topic, namespace in names:
            if (topic, namespace) not in self._boxes:
                with self._layers:
                    box = self._gui.add_checkbox(namespace.replace('_', ' ') or topic, True)
                self._boxes[topic, namespace] = box
                box.on_update(self._shower(topic, namespace, box))

    def _shower(self, topic: str, namespace: str, box: Any) -> Callable[[Any], None]:
        return lambda _: self.actions.put(Action('show', (topic, namespace, bool(box.value))))

    def say(self, lines: Sequence[Line]) -> None:
        """Show the status."""
        parts = [f'<div style="{_STYLES[tone]}">{html.escape(text)}</div>' for text, tone in lines]
        style = 'padding:0.4em 0.9em;font-size:0.9em;line-height:1.5;font-variant-numeric:tabular-nums'
        text = f'<div style="{style}">{self._title}{"".join(parts)}</div>'
        if text != self._shown_status:
            self._shown_status = self._status.content = text
