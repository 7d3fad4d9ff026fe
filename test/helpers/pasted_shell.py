# SPDX-License-Identifier: Apache-2.0
"""A shell in a terminal of its own, into which a test pastes what the documentation shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

_DONE = re.compile(r'<<(\d+)>>\r?\n')
_ESCAPES = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')
CTRL_C = b'\x03'


def _become_a_terminal() -> None:
    """In the child: take the terminal, and let Ctrl-C act, which a shell in the background would ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class PastedShell:
    """An interactive bash; `paste` types a line and waits for its end, as a person would."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        """Start it.

        Args:
            folder: where it begins.
            environment: all of its variables.
        """
        self._terminal, child_end = os.openpty()
        self._process = subprocess.Popen(
            ['bash', '--norc', '--noprofile', '--noediting', '-i'],
            cwd=folder,
            env={**environment, 'PS1': '', 'PS2': '', 'PROMPT_COMMAND': 'echo "<<$?>>"', 'TERM': 'xterm'},
            stdin=child_end,
            stdout=child_end,
            stderr=child_end,
            start_new_session=True,
            preexec_fn=_become_a_terminal,  # noqa: PLW1509 (two calls)
        )
        os.close(child_end)
        self._text = ''
        self._until(_DONE, 10.0)

    def paste(
        self, line: str, seconds: float, until: str = '', meanwhile: Callable[[str], None] | None = None
    ) -> tuple[int, str]:
        """Type a line.

        Args:
            line: a command.
            seconds: how long it may take.
            until: pattern in the output after which Ctrl-C is pressed; '': it ends by itself.
            meanwhile: called with the output before Ctrl-C is pressed.

        Returns:
            exit code and output.
        """
        self._write(line.encode() + b'\n')
        if until:
            said = self._until(re.compile(f'{until}|{_DONE.pattern}', re.DOTALL), seconds)
            assert not _DONE.search(said), f'{line} ended before it showed {until!r}:\n{said}'
            if meanwhile is not None:
                meanwhile(said)
            self._write(CTRL_C)
            code, rest = self._until_done(30.0)
            return code, said + rest
        return self._until_done(seconds)

    def close(self) -> None:
        """Hang up: bash ends its jobs, those in the background too."""
        self._process.send_signal(signal.SIGHUP)
        try:
            self._process.wait(15.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)
        self._end_what_is_left()

    def _end_what_is_left(self) -> None:
        """End what bash left behind, and wait for it: nothing of this session may hold a port after that."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._left_over():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(process, number)
            deadline = time.monotonic() + 15.0
            while self._left_over() and time.monotonic() < deadline:
                time.sleep(0.1)

    def _left_over(self) -> list[int]:
        """Processes of the session that bash left behind: those that were started with SIGHUP ignored."""
        found = []
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                fields = (folder / 'stat').read_text().rpartition(')')[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) == self._process.pid and fields[0] != 'Z':  # of this session, and no zombie
                found.append(int(folder.name))
        return found

    def _write(self, data: bytes) -> None:
        os.write(self._terminal, data)

    def _until_done(self, seconds: float) -> tuple[int, str]:
        said = self._until(_DONE, seconds)
        found = _DONE.search(said)
        assert found is not None
        return int(found[1]), said[: found.start()]

    def _until(self, pattern: re.Pattern[str], seconds: float) -> str:
        """Read on until the pattern comes; return all up to its end."""
        deadline = time.monotonic() + seconds
        while True:
            found = pattern.search(self._text)
            if found is not None:
                text, self._text = self._text[: found.end()], self._text[found.end() :]
                return text
            patience = deadline - time.monotonic()
            if patience <= 0.0 or not select.select([self._terminal], [], [], patience)[0]:
                raise AssertionError(f'after {seconds:g} s there is no {pattern.pattern!r} in:\n{self._text}')
            self._text += _ESCAPES.sub('', os.read(self._terminal, 65536).decode(errors='replace'))
