# SPDX-License-Identifier: Apache-2.0
"""Repairs damaged schemas and channels of MCAP files from metadata.yaml and ROS types. Needs no ROS."""

from __future__ import annotations

from dataclasses import replace

from quad_dynamics.bags import mcap_records as mcap
from quad_dynamics.bags.mcap_pieces import Chunk
from quad_dynamics.bags.mcap_scan import Scan
from quad_dynamics.bags.topics import Topic, known_definition

_HASH = 'topic_type_hash'


def mend(scan: Scan, known: list[tuple[Topic, int]]) -> None:
    """Replace damaged parts of definitions that are not protected by a CRC.

    Args:
        scan: what was found in a file; its definitions may change.
        known: topics that metadata.yaml names, with the numbers of their messages.
    """
    before = dict(scan.schemas), dict(scan.channels)
    _name_topics(scan, [topic for topic, _ in known])
    for number, channel in list(scan.channels.items()):
        if channel.schema and channel.schema not in scan.schemas:
            scan.channels[number] = replace(channel, schema=_schema_of(scan, channel, known))
    for number, schema in list(scan.schemas.items()):
        if not scan.is_trusted(mcap.SCHEMA, number):
            scan.schemas[number] = _mended(scan, schema)
    if before != (scan.schemas, scan.channels):
        for piece in scan.pieces:
            # They are copied as they are, with the damaged definitions.
            if isinstance(piece, Chunk) and piece.head is not None and not piece.head.crc:
                piece.good = False


def _name_topics(scan: Scan, topics: list[Topic]) -> None:
    """Rename a channel with an unknown name to the only unused known name, if it is unambiguous."""
    names = {topic.name for topic in topics}
    strange = [
        number
        for number, channel in scan.channels.items()
        if channel.topic not in names and not scan.is_trusted(mcap.CHANNEL, number)
    ]
    left = [topic for topic in topics if topic.name not in {one.topic for one in scan.channels.values()}]
    if len(strange) == 1 and len(left) == 1:
        [number], [topic] = strange, left
        metadata = {'offered_qos_profiles': topic.qos, _HASH: topic.digest}
        channel = scan.channels[number]
        encoding = topic.serialization
        scan.channels[number] = replace(channel, topic=topic.name, encoding=encoding, metadata=metadata)


def _schema_of(scan: Scan, channel: mcap.Channel, known: list[tuple[Topic, int]]) -> int:
    """The number of the schema of a channel that has a wrong one; 0, which is none, if it cannot be found."""
    digest = channel.metadata.get(_HASH)
    for other in scan.channels.values():
        if digest and other.metadata.get(_HASH) == digest and other.schema in scan.schemas:
            return other.schema
    kinds = {topic.type for topic, _ in known if topic.name == channel.topic}
    for number, schema in scan.schemas.items():
        if schema.name in kinds:
            return number
    if len(scan.schemas) == 1:
        return next(iter(scan.schemas))
    for kind in kinds:
        definition = known_definition(kind, digest or '')
        if definition:
            number = max(scan.schemas, default=0) + 1
            scan.schemas[number] = mcap.Schema(number, kind, 'ros2msg', definition.encode())
            return number
    return 0


def _mended(scan: Scan, schema: mcap.Schema) -> mcap.Schema:
    """A schema, as ROS has it if it is one of ROS's own; else as it is, but readable."""
    for channel in scan.channels.values():
        if channel.schema == schema.number:
            definition = known_definition(schema.name, channel.metadata.get(_HASH, ''))
            if definition and schema.encoding == 'ros2msg':
                return replace(schema, data=definition.encode())
    return replace(schema, data=schema.data.decode(errors='replace').encode())
