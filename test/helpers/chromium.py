# SPDX-License-Identifier: Apache-2.0
"""A real headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from websockets.sync.client import connect

from quad_dynamics.array_types import Bytes

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome')
# SwiftShader draws WebGL without a GPU; pages in the background are drawn as well.
FLAGS = (
    '--headless=new',
    '--no-sandbox',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--disable-dev-shm-usage',
    '--disable-background-timer-throttling',
    '--disable-backgrounding-occluded-windows',
    '--disable-renderer-backgrounding',
    '--disable-extensions',
    '--no-first-run',
    '--no-default-browser-check',
    '--hide-scrollbars',
    '--remote-debugging-address=127.0.0.1',
    '--remote-debugging-port=0',
)

# The middle of an element, which is scrolled into view.
_FIND = """(() => {
    const all = [...document.querySelectorAll(%s)];
    const e = all.find(e => e.innerText.trim() === %s && e.offsetParent);
    if (!e) return null;
    e.scrollIntoView({block: 'center'});
    const r = e.getBoundingClientRect();
    return [r.x + r.width / 2, r.y + r.height / 2];
})()"""


def find_chromium() -> str:
    """Path of a Chromium or Chrome; '' if there is none."""
    given = os.environ.get('CHROMIUM', '')
    return given or next((path for path in map(shutil.which, NAMES) if path), '')


class Browser:
    """One browser with one page."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1280, 800)) -> None:
        """Start it.

        Args:
            folder: an empty one, for its profile.
            size: of the page [pixels].
        """
        command = [find_chromium(), *FLAGS, f'--user-data-dir={folder}', f'--window-size={size[0]},{size[1]}']
        self._process = subprocess.Popen(
            [*command, 'about:blank'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self._port = int(wait_for(lambda: _first_line(folder / 'DevToolsActivePort'), 30.0))
            address = wait_for(self._page_address, 20.0)
            self._socket = connect(address, max_size=None)
        except BaseException:
            self._end_process()
            raise
        self._numbers = itertools.count(1)
        self.command('Page.enable')
        self.resize(*size)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _page_address(self) -> str:
        with urllib.request.urlopen(f'http://127.0.0.1:{self._port}/json', timeout=5.0) as answer:
            targets = json.load(answer)
        return next((each['webSocketDebuggerUrl'] for each in targets if each['type'] == 'page'), '')

    def command(self, method: str, timeout: float = 60.0, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol, and wait for its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({'id': number, 'method': method, 'params': parameters}))
        deadline = time.monotonic() + timeout
        while True:
            message = json.loads(self._socket.recv(timeout=max(deadline - time.monotonic(), 0.01)))
            if message.get('id') == number:
                assert 'error' not in message, f'{method}: {message["error"]}'
                result: dict[str, Any] = message['result']
                return result

    def resize(self, width: int, height: int) -> None:
        """Change the size of the page [pixels]."""
        metrics = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False}
        self.command('Emulation.setDeviceMetricsOverride', **metrics)

    def open(self, address: str) -> None:
        """Go to a page."""
        self.command('Page.navigate', url=address)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.command('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def text(self) -> str:
        """All text that the page shows."""
        return str(self.evaluate('document.body ? document.body.innerText : ""'))

    def screenshot(self) -> Bytes:
        """(height, width, 3) what the page looks like."""
        answer = self.command('Page.captureScreenshot', format='png')
        image = Image.open(io.BytesIO(base64.b64decode(answer['data'])))
        return np.asarray(image.convert('RGB'))

    def click(self, text: str, selector: str = 'button') -> None:
        """Click with the mouse at the first element that shows exactly this text."""
        script = _FIND % (json.dumps(selector), json.dumps(text))
        place = wait_for(lambda: self.evaluate(script), 15.0, f'an element with the text {text!r}')
        self.click_at(*place)

    def click_at(self, x: float, y: float) -> None:
        """Click with the mouse."""
        for kind in ('mousePressed', 'mouseReleased'):
            self.command(
                'Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', buttons=1, clickCount=1
            )

    def key(self, name: str, is_down: bool, shift: bool = False) -> None:
        """Press a key that writes nothing, such as ArrowUp, or release it."""
        self.command(
            'Input.dispatchKeyEvent',
            type='rawKeyDown' if is_down else 'keyUp',
            key=name,
            code=name,
            modifiers=8 if shift else 0,
        )

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(Exception):
            self.command('Browser.close', timeout=5.0)
        with contextlib.suppress(Exception):
            self._socket.close()
        self._end_process()

    def _end_process(self) -> None:
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5.0)


def _first_line(path: Path) -> str:
    return path.read_text().split('\n')[0] if path.is_file() else ''


def wait_for(look: Callable[[], Any], seconds: float, what: str = 'the browser') -> Any:
    """Wait until a function returns something that is not false, and return it."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            found = look()
            if found:
                return found
        assert time.monotonic() < deadline, f'waited {seconds} s for {what}'
        time.sleep(0.05)
