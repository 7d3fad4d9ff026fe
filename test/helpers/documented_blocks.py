# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of the documentation, and what a test has to know about them.

The first word behind the fence is the language. `sh` blocks are pasted into a terminal, line by line, in the
folder of the clone; `python` blocks of a page run in one interpreter after that. The second word `ros2` marks
commands that need a ROS installation: their names, types and values are checked instead. Comments right above
a fence, which readers do not see, say more:

    <!-- given: COMMAND -->         what the reader has already: a robot file, a recording, a running node
    <!-- file: NAME -->             the block is the content of this file
    <!-- in the test: A => B -->    the same with less: a shorter motion, fewer iterations
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_COMMENT = re.compile(r'<!--\s*(given|file|in the test):\s*(.*?)\s*-->')


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        page: file that holds it.
        line: number of its first line.
        language: 'sh', 'python', 'yaml', ... or ''.
        needs_ros: whether it is marked `ros2`.
        text: what stands in it.
        given: commands that come before it.
        file: name of the file that it is; '' if it is none.
    """

    page: Path
    line: int
    language: str
    needs_ros: bool
    text: str
    given: tuple[str, ...] = ()
    file: str = ''
    shorter: tuple[tuple[str, str], ...] = field(default=())

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f'{self.page.name}:{self.line}'

    def commands(self) -> Iterator[str]:
        """The lines of a shell block, those that end in a backslash joined, shortened for the test."""
        text = self.text.replace('\\\n', ' ')
        for old, new in self.shorter:
            assert old in text, f'{self.where}: there is no {old!r} to replace'
            text = text.replace(old, new)
        for line in text.splitlines():
            if line.strip() and not line.lstrip().startswith('#'):
                yield line


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    blocks: list[Block] = []
    remarks: list[tuple[str, str]] = []
    info, start, inside = '', 0, False
    lines = page.read_text(encoding='utf-8').splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith('```'):
            if inside:
                blocks.append(_block(page, start, info, lines[start - 1 : number - 1], remarks))
                remarks = []
            info, start, inside = line[3:], number + 1, not inside
        elif not inside and line.strip():
            remarks = [*remarks, *_COMMENT.findall(line)] if _COMMENT.search(line) else []
    assert not inside, f'{page.name}: a block is not closed'
    return blocks


def _block(page: Path, start: int, info: str, lines: list[str], remarks: list[tuple[str, str]]) -> Block:
    words = info.split()
    assert set(words[1:]) <= {'ros2'}, f'{page.name}:{start}: the test knows nothing of {info!r}'
    shorter = [text.split(' => ') for kind, text in remarks if kind == 'in the test']
    return Block(
        page,
        start,
        words[0] if words else '',
        'ros2' in words,
        ''.join(f'{line}\n' for line in lines),
        tuple(text for kind, text in remarks if kind == 'given'),
        ''.join(text for kind, text in remarks if kind == 'file'),
        tuple((old, new) for old, new in shorter),
    )
