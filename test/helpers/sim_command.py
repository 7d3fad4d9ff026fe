# SPDX-License-Identifier: Apache-2.0
"""`quad_dynamics sim` as a process, and the nodes that it has started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path


class Sim:
    """The command, running; what it starts is found by its parent."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'quad_dynamics', 'sim', *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def children(self) -> dict[str, int]:
        """Process ids of the nodes, by name."""
        found = {}
        for entry in Path('/proc').iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / 'stat').read_text().rsplit(')', 1)[1].split()
                words = (entry / 'cmdline').read_bytes().decode().split('\0')
            except (OSError, IndexError):
                continue
            if int(stat[1]) == self.process.pid and '-m' in words and stat[0] != 'Z':
                found[words[words.index('-m') + 1]] = int(entry.name)
        return found

    def end(self, number: int = signal.SIGINT, patience: float = 15.0) -> tuple[int, str]:
        """Send a signal, and wait; its exit code and its output."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=patience)
        return self.process.returncode, output
