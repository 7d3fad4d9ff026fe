# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted XML: an ElementTree with line numbers; DTDs, entities and deep nesting are rejected.

Expat is used directly, without namespace processing, so that prefixes such as `xacro:` and their declarations
are preserved.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.parsers import expat

MAX_CHARACTERS = 32 * 1024 * 1024
MAX_DEPTH = 64
MAX_ELEMENTS = 200_000  # an element takes about 200 bytes of memory, but only 4 in the file
_DASHES = 'comments contain two dashes, which XML forbids; they were accepted'
_LATE = 'the XML declaration is not at the start of the file; it was ignored'
_SPACE = re.compile(rb'\s*')
_LEGACY_ENCODINGS = frozenset({'iso-8859-1', 'latin-1', 'us-ascii', 'ascii', 'windows-1252', 'utf-16'})


class XmlError(Exception):
    """The text is not acceptable XML; the message gives the reason and the location."""


@dataclass(frozen=True)
class XmlTree:
    """A parsed document.

    Attributes:
        root: its root element; comments are kept as children.
        lines: line number of each element, by id().
        raw: the text in UTF-8.
        marks: offsets in `raw` of the opening and closing tags of each element, by id() (the latter is
            meaningless if there is no closing tag).
        oddities: violations of XML that were tolerated.
    """

    root: ElementTree.Element
    lines: dict[int, int] = field(repr=False)
    raw: bytes = field(repr=False)
    marks: dict[int, tuple[int, int]] = field(repr=False)
    oddities: tuple[str, ...] = ()

    def line(self, element: ElementTree.Element) -> int:
        """Line of the element's opening tag, counted from 1."""
        return self.lines.get(id(element), 0)


def decode_xml(raw: bytes) -> str:
    """Decode the bytes of an XML file.

    Raises:
        XmlError: the encoding is unknown, or the bytes are not text.
    """
    if raw.startswith((b'\xff\xfe', b'\xfe\xff')):
        encoding = 'utf-16'
    else:
        declared = re.match(rb'<\?xml[^>]*encoding=["\']([A-Za-z0-9._-]+)["\']', raw)
        encoding = declared.group(1).decode('ascii').lower() if declared else 'utf-8'
        if encoding not in _LEGACY_ENCODINGS:
            encoding = 'utf-8-sig'
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix('-sig').upper()
        raise XmlError(f'byte {error.start} is not valid {name}; is this a text file?') from error
    if '\0' in text:
        raise XmlError(f'character {text.index(chr(0))} is NUL; is this a text file?')
    if not text.strip():
        raise XmlError('the file is empty')
    return text


class _TreeMaker:
    """Handlers of one expat run."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(encoding='utf-8')
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.CommentHandler = self._comment
        self.parser.ProcessingInstructionHandler = self._instruction
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.EntityDeclHandler = self._refuse_entity
        self.builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
        self.depth = 0
        self.lines: dict[int, int] = {}
        self.marks: dict[int, tuple[int, int]] = {}
        self.starts: list[int] = []

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.starts.append(self.parser.CurrentByteIndex)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise XmlError(
                f'line {self.parser.CurrentLineNumber}: elements are nested more than {MAX_DEPTH} deep'
            )
        if len(self.lines) >= MAX_ELEMENTS:
            raise XmlError(f'the text has more than {MAX_ELEMENTS} elements')
        element = self.builder.start(tag, attributes)
        self.lines[id(element)] = self.parser.CurrentLineNumber

    def _end(self, tag: str) -> None:
        self.depth -= 1
        element = self.builder.end(tag)
        self.marks[id(element)] = self.starts.pop(), self.parser.CurrentByteIndex

    def _data(self, text: str) -> None:
        self.builder.data(text)

    def _comment(self, text: str) -> None:
        # ElementTree cannot represent comments outside the root.
        if self.depth > 0:
            self.builder.comment(text)

    def _instruction(self, target: str, text: str) -> None:
        if self.depth > 0:
            self.builder.pi(target, text)

    def _refuse_doctype(self, *_: object) -> None:
        raise XmlError(
            f'line {self.parser.CurrentLineNumber}: document type declarations (<!DOCTYPE) are rejected, '
            'because entities can fill the memory or read files'
        )

    def _refuse_entity(self, *_: object) -> None:
        raise XmlError(f'line {self.parser.CurrentLineNumber}: entity declarations (<!ENTITY) are rejected')


def parse_xml(text: str) -> XmlTree:
    """Parse XML text.

    Raises:
        XmlError: invalid XML, a DTD, too long or nested too deeply.
    """
    if len(text) > MAX_CHARACTERS:
        raise XmlError(f'the text has {len(text)} characters; expected at most {MAX_CHARACTERS}')
    try:
        raw = text.encode('utf-8')
    except UnicodeEncodeError as error:
        raise XmlError(f'character {error.start} cannot be encoded (lone surrogate)') from error
    try:
        return _parse(raw, raw, ())
    except expat.ExpatError as error:
        # Many published files violate this; other URDF readers accept them.
        plain = _without_dashes(raw)
        mended = _without_late_declaration(plain)
        oddities = [_DASHES] if plain != raw else []
        oddities += [_LATE] if mended != plain else []
        if oddities:
            with contextlib.suppress(expat.ExpatError):
                return _parse(mended, raw, tuple(oddities))
        raise XmlError(f'invalid XML: {error}') from error


def _parse(parsed: bytes, raw: bytes, oddities: tuple[str, ...]) -> XmlTree:
    maker = _TreeMaker()
    maker.parser.Parse(parsed, True)
    return XmlTree(maker.builder.close(), maker.lines, raw, maker.marks, oddities)


def _end_of_space(raw: bytes, start: int) -> int:
    match = _SPACE.match(raw, start)
    return start if match is None else match.end()


def _without_late_declaration(raw: bytes) -> bytes:
    """The text with an XML declaration after white space or comments replaced by spaces."""
    start = 0
    while True:
        start = _end_of_space(raw, start)
        end = raw.find(b'-->', start + 4)
        if end < 0 or not raw.startswith(b'<!--', start):
            break
        start = end + 3
    end = raw.find(b'?>', start) + 2
    if start == 0 or end < 2 or not raw.startswith(b'<?xml', start):
        return raw
    return raw[:start] + b' ' * (end - start) + raw[end:]


def _without_dashes(raw: bytes) -> bytes:
    """The text with dashes inside comments replaced by spaces; every other byte keeps its position."""
    parts, place = [], 0
    while (start := raw.find(b'<!--', place)) >= 0 and (end := raw.find(b'-->', start + 4)) >= 0:
        parts += [raw[place : start + 4], raw[start + 4 : end].replace(b'-', b' ')]
        place = end
    return b''.join([*parts, raw[place:]])


def declare_utf8(text: str) -> str:
    """The text with another encoding in its XML declaration replaced: text is written as UTF-8."""
    return re.sub(r'\A(<\?xml[^>]*?encoding=["\'])[^"\']*(["\'])', r'\1utf-8\2', text, count=1)
