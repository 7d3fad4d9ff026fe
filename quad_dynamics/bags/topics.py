# SPDX-License-Identifier: Apache-2.0
"""Topics of bags: quality of service and definitions of their types. Needs no ROS."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import yaml
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

# What ROS calls the fields of a Python class, and how message definitions spell them.
_SPELLED = {'double': 'float64', 'float': 'float32', 'boolean': 'bool', 'octet': 'byte'}
_PLACEHOLDER = 'structure_needs_at_least_one_member'

Fields = Mapping[str, str]


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes:
        name: with its namespace.
        type: such as 'sensor_msgs/msg/JointState'.
        qos: quality of service of its publishers, as bags of version 8 have it.
        definition: of the type, with all types in it.
        digest: of the type, 'RIHS01_...'.
        encoding: of the definition, 'ros2msg' or 'ros2idl'.
        serialization: of its messages.
    """

    name: str
    type: str
    qos: str = ''
    definition: str = ''
    digest: str = ''
    encoding: str = 'ros2msg'
    serialization: str = 'cdr'


@dataclass(frozen=True)
class Offer:
    """Quality of service of a publisher; numbers of policies as ROS has them, times in ns."""

    history: int
    depth: int
    reliability: int
    durability: int
    deadline: int
    lifespan: int
    liveliness: int
    lease: int


def qos_text(offers: Iterable[Offer]) -> str:
    """Quality of service as bags of version 8 have it: as YAML; each once, in a fixed order."""
    unique = sorted(set(offers), key=lambda offer: (offer.durability, offer.reliability, repr(offer)))
    dictionaries = [
        {
            'history': offer.history,
            'depth': offer.depth,
            'reliability': offer.reliability,
            'durability': offer.durability,
            'deadline': _time(offer.deadline),
            'lifespan': _time(offer.lifespan),
            'liveliness': offer.liveliness,
            'liveliness_lease_duration': _time(offer.lease),
            'avoid_ros_namespace_conventions': False,
        }
        for offer in unique
    ]
    return yaml.safe_dump(dictionaries, sort_keys=False).strip() if dictionaries else ''


def _time(nanoseconds: int) -> dict[str, int]:
    sec, nsec = divmod(nanoseconds, 10**9)
    return {'sec': sec, 'nsec': nsec}


@functools.cache
def known_types() -> Typestore:
    """ROS's own types."""
    return get_typestore(Stores.ROS2_JAZZY)


def known_definition(kind: str, digest: str) -> str:
    """The definition of one of ROS's own types; '' if it is none, or another version of one."""
    store = known_types()
    if kind not in store.fielddefs or store.hash_rihs01(kind) != digest:
        return ''
    return store.generate_msgdef(kind, ros_version=2)[0]


def define(kind: str, fields_of: Callable[[str], Fields]) -> tuple[str, str]:
    """Definition and digest of a type as it is installed.

    Constants and comments are not in Python's classes: where the type is one of ROS's own, they come from
    there.

    Args:
        kind: such as 'sensor_msgs/msg/JointState'.
        fields_of: names and types of the fields of a type, as `get_fields_and_field_types` of its class.
    """
    store = get_typestore(Stores.EMPTY)
    found: dict[str, Any] = {}
    _collect(kind, fields_of, found)
    store.register(found)
    definition, _ = store.generate_msgdef(kind, ros_version=2)
    return definition, store.hash_rihs01(kind)


def _collect(kind: str, fields_of: Callable[[str], Fields], found: dict[str, Any]) -> None:
    """Add a type and those of its fields."""
    if kind in found:
        return
    fields = {name: spelled(one) for name, one in fields_of(kind).items() if name != _PLACEHOLDER}
    known = known_types().fielddefs.get(kind)
    names = [] if known is None else [name for name, _ in known[1] if name != _PLACEHOLDER]
    if known is not None and names == list(fields):
        found[kind] = known
    else:
        lines = [f'{one} {name}' for name, one in fields.items()] or [f'uint8 {_PLACEHOLDER}']
        found.update(get_types_from_msg('\n'.join(lines), kind))
    for one in fields.values():
        inner = one.split('[')[0]
        if '/' in inner:
            _collect(full_name(inner), fields_of, found)


def spelled(kind: str) -> str:
    """The type of a field as definitions spell it: `float64[<=3]` for Python's `sequence<double, 3>`."""
    sequence = re.fullmatch(r'sequence<(.+?)(?:, (\d+))?>', kind)
    if sequence:
        return f'{spelled(sequence[1])}[{f"<={sequence[2]}" if sequence[2] else ""}]'
    array = re.fullmatch(r'(.+)\[(\d+)\]', kind)
    if array:
        return f'{spelled(array[1])}[{array[2]}]'
    bounded = re.fullmatch(r'(w?string)<(\d+)>', kind)
    if bounded:
        return f'{bounded[1]}<={bounded[2]}'
    return _SPELLED.get(kind, kind)


def full_name(kind: str) -> str:
    """'std_msgs/Header' as 'std_msgs/msg/Header'."""
    parts = kind.split('/')
    return kind if len(parts) == 3 else f'{parts[0]}/msg/{parts[-1]}'


# ---------------------------------------------------------------- where a message has its stamp


def stamp_offset(kind: str, fields_of: Callable[[str], Fields]) -> int | None:
    """Offset of the stamp in a serialized message; None if the type has none at a fixed position.

    It is at 4 where a header or a time is the first field, and at 8 where the first field is a list of such
    (markers, transforms): the stamp of the first one, if there is one.
    """
    first = next(iter(fields_of(kind).values()), '')
    if first in ('std_msgs/Header', 'builtin_interfaces/Time'):
        return 4
    inner = re.fullmatch(r'sequence<([\w/]+)>', first)
    if inner and '/' in inner[1]:
        innermost = next(iter(fields_of(full_name(inner[1])).values()), '')
        return 8 if innermost == 'std_msgs/Header' else None
    return None


def stamp_of(raw: bytes, offset: int | None) -> int | None:
    """The stamp of a message [ns]; None if it has none."""
    if offset is None or len(raw) < offset + 8:
        return None
    order: Literal['little', 'big'] = 'little' if raw[1] & 1 else 'big'
    if offset == 8 and int.from_bytes(raw[4:8], order) == 0:
        return None
    seconds = int.from_bytes(raw[offset : offset + 4], order)
    return seconds * 10**9 + int.from_bytes(raw[offset + 4 : offset + 8], order)
