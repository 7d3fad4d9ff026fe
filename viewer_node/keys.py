# SPDX-License-Identifier: Apache-2.0
"""Arrow keys of the page: a script that reports held keys to the server, and the server's side.

viser has hotkeys, but no events for released keys. So the page sends a request to the server with each
change, and ten times a second while a key is held. When the requests cease, the robot stops.
"""

from __future__ import annotations

import http
import math
import urllib.parse
from collections.abc import Callable, Sequence

from viewer_node.origin import is_own_page

Direction = tuple[int, int, int]  # forward, to the left, turning to the left: each -1, 0 or 1

ADDRESS = '/drive'
# A page of another site cannot send a custom header without a preflight request, which is not answered.
HEADER, WORD = 'X-Quad-Dynamics', 'drive'
_NAMES = ('forward', 'left', 'turn')

# Keys typed into a field are not for the robot; while there is nothing to drive, arrows turn the camera.
SCRIPT = f"""
(() => {{
    if (window.quadDynamicsKeys) return;
    const keys = ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'];
    const held = new Set();
    let shift = false, timer = null;
    const page = Math.random().toString(36).slice(2);
    const send = () => {{
        const is = name => Number(held.has('Arrow' + name));
        const side = is('Left') - is('Right');
        const query = new URLSearchParams({{
            forward: is('Up') - is('Down'), left: shift ? side : 0, turn: shift ? 0 : side,
            page: page, at: performance.now(),
        }});
        const options = {{headers: {{'{HEADER}': '{WORD}'}}, cache: 'no-store', keepalive: true}};
        fetch('{ADDRESS}?' + query, options).catch(() => null);
    }};
    const change = () => {{
        send();
        if (held.size && timer === null) timer = setInterval(send, 100);
        if (!held.size) {{ clearInterval(timer); timer = null; }}
    }};
    const letGo = () => {{ if (held.size) {{ held.clear(); change(); }} }};
    const isField = e => e && e.closest && e.closest('input, textarea, select, [contenteditable="true"]');
    const down = event => {{
        if (!window.quadDynamicsDrives) return letGo();
        const isArrow = keys.includes(event.code);
        if (isArrow && !(event.ctrlKey || event.altKey || event.metaKey || isField(event.target))) {{
            event.preventDefault();
            event.stopImmediatePropagation();
            if (held.has(event.code)) return;
            held.add(event.code);
            shift = event.shiftKey;
            change();
        }} else if (event.key === 'Shift' && held.size) {{ shift = true; change(); }}
    }};
    const up = event => {{
        if (held.delete(event.code)) change();
        else if (event.key === 'Shift' && held.size) {{ shift = false; change(); }}
    }};
    window.addEventListener('keydown', down, true);
    window.addEventListener('keyup', up, true);
    window.addEventListener('blur', letGo);
    document.addEventListener('visibilitychange', letGo);
    window.quadDynamicsKeys = held;
}})()
"""


def allow(is_allowed: bool) -> str:
    """A script that lets arrow keys drive, or turn the camera."""
    return f'window.quadDynamicsDrives = {"true" if is_allowed else "false"}'


class KeyRequests:
    """Answers requests of pages; requests that arrive out of order are ignored.

    Attributes:
        on_keys: called with the direction, in the thread of the server; None: keys are ignored.
    """

    def __init__(self, address: str) -> None:
        """Answer.

        Args:
            address: that is served.
        """
        self._address = address
        self._page, self._at = '', -math.inf
        self.on_keys: Callable[[Direction], None] | None = None

    def answer(self, target: str, words: Sequence[str], hosts: Sequence[str]) -> http.HTTPStatus | None:
        """The answer to a request; None if it is about something else.

        Args:
            target: path and query.
            words: headers `HEADER`.
            hosts: headers `Host`.
        """
        path, _, query = target.partition('?')
        if path != ADDRESS:
            return None
        # Pages send no `Origin` with such a request, but they come from the host that they name.
        origins = [f'http://{host}' for host in hosts]
        if list(words) != [WORD] or not is_own_page(origins, hosts, self._address):
            return http.HTTPStatus.FORBIDDEN
        try:
            given = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
            forward, left, turn = (int(given[name]) for name in _NAMES)
            page, at = given['page'], float(given['at'])
        except (KeyError, ValueError):
            return http.HTTPStatus.BAD_REQUEST
        if not all(-1 <= way <= 1 for way in (forward, left, turn)):
            return http.HTTPStatus.BAD_REQUEST
        if page != self._page or at >= self._at:
            self._page, self._at = page, at
            if self.on_keys is not None:
                self.on_keys((forward, left, turn))
        return http.HTTPStatus.NO_CONTENT
