# SPDX-License-Identifier: Apache-2.0
"""metadata.yaml of bags, version 8: the newest that ROS 2 Humble reads too. Needs no ROS."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from quad_dynamics.bags.topics import Topic
from quad_dynamics.errors import ArgumentError

NAME = 'metadata.yaml'
STATE = 'state'  # in custom_data: whether the recorder has come to its end
RECORDING, COMPLETE, REPAIRED = 'recording', 'complete', 'repaired'
# In custom_data: how many messages were found in damaged places, and between which times [ns].
SUSPECT_MESSAGES, SUSPECT_SPANS = 'suspect_messages', 'suspect_spans'
# Storages of rosbag2 and how their files end.
SUFFIXES = {'mcap': '.mcap', 'sqlite3': '.db3'}
_VERSION = 8
_ROOT = 'rosbag2_bagfile_information'
_LARGEST = 1 << 26  # of metadata.yaml [bytes]
_DEEPEST = 50  # nested lists in it; a bag has seven
# The one in C is ten times faster, where it is.
_Dumper = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)


def ros_distro() -> str:
    """The name of the ROS distribution in use: the sourced one, or that of installed wheels."""
    name = os.environ.get('ROS_DISTRO', '')
    if name.isidentifier():
        return name
    for one in ('jazzy', 'kilted', 'lyrical', 'rolling'):
        try:
            importlib.metadata.version(f'ros-{one}-rclpy')
        except importlib.metadata.PackageNotFoundError:
            continue
        return one
    return 'unknown'


@dataclass(frozen=True)
class Contents:
    """What a data file holds.

    Attributes:
        topics: with the number of their messages.
        first: time of the first message [ns], 0 if there is none.
        last: time of the last one [ns].
    """

    topics: Sequence[tuple[Topic, int]] = ()
    first: int = 0
    last: int = 0

    @property
    def count(self) -> int:
        """Number of messages."""
        return sum(count for _, count in self.topics)

    @property
    def seconds(self) -> float:
        """From the first message to the last [s]."""
        return (self.last - self.first) * 1e-9


def joined(contents: Sequence[Contents]) -> Contents:
    """What several files hold together."""
    counts: dict[tuple[str, str], tuple[Topic, int]] = {}
    for one in contents:
        for topic, count in one.topics:
            key = (topic.name, topic.type)
            counts[key] = (counts[key][0] if key in counts else topic, counts.get(key, (topic, 0))[1] + count)
    filled = [one for one in contents if one.count]
    first, last = min((one.first for one in filled), default=0), max((one.last for one in filled), default=0)
    return Contents(list(counts.values()), first, last)


def metadata(
    storage: str,
    files: Mapping[str, Contents],
    custom: Mapping[str, str],
    compression: tuple[str, str] = ('', ''),
) -> dict[str, Any]:
    """The content of metadata.yaml.

    Args:
        storage: 'mcap' or 'sqlite3'.
        files: what each data file holds, by name.
        custom: additional entries.
        compression: of each message: format and mode, as rosbag2 has them.
    """
    whole = joined(list(files.values()))
    topics = [
        {
            'topic_metadata': {
                'name': topic.name,
                'type': topic.type,
                'serialization_format': topic.serialization,
                'offered_qos_profiles': topic.qos,
                'type_description_hash': topic.digest,
            },
            'message_count': count,
        }
        for topic, count in whole.topics
    ]
    return {
        'version': _VERSION,
        'storage_identifier': storage,
        **_span(whole),
        'topics_with_message_count': topics,
        'compression_format': compression[0],
        'compression_mode': compression[1],
        'relative_file_paths': list(files),
        'files': [{'path': name, **_span(contents)} for name, contents in files.items()],
        'custom_data': dict(custom),
        'ros_distro': ros_distro(),
    }


def _span(contents: Contents) -> dict[str, Any]:
    return {
        'starting_time': {'nanoseconds_since_epoch': contents.first},
        'duration': {'nanoseconds': contents.last - contents.first},
        'message_count': contents.count,
    }


def write_metadata(folder: Path, content: Mapping[str, Any]) -> None:
    """Write metadata.yaml atomically: readers see either the old or the new file."""
    beside = folder / f'.{NAME}.new'
    text = yaml.dump({_ROOT: dict(content)}, Dumper=_Dumper, sort_keys=False, width=10**6)
    try:
        beside.write_text(text, encoding='utf-8')
        beside.replace(folder / NAME)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def read_metadata(folder: Path) -> dict[str, Any] | None:
    """The content of metadata.yaml; None if it is missing or cannot be read."""
    try:
        content = load_yaml(folder / NAME)[_ROOT]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return content if isinstance(content, dict) else None


def load_yaml(path: Path) -> Any:
    """The content of a YAML file that may be anything.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not YAML, or too large or too deeply nested for metadata of a bag.
    """
    if path.stat().st_size > _LARGEST:
        raise ValueError(f'{path} has more than {_LARGEST >> 20} MiB; expected metadata of a bag')
    text = path.read_bytes().decode()  # UnicodeDecodeError is a ValueError
    check_nesting(text, path)
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, OverflowError, TypeError, AttributeError) as error:
        raise ValueError(f'{path} is not valid YAML: {error}') from error


def check_nesting(text: str, path: Path) -> None:
    """Reject text whose nesting would exhaust the stack of a YAML parser.

    Raises:
        ValueError: it is nested too deeply.
    """
    depth = 0
    for line in text.splitlines():
        indented = len(line) - len(line.lstrip(' -?'))
        if indented > 4 * _DEEPEST:
            raise ValueError(f'{path} is nested too deeply; expected metadata of a bag')
        for letter in line:
            depth += (letter in '[{') - (letter in ']}')
            if depth > _DEEPEST:
                raise ValueError(f'{path} is nested too deeply; expected metadata of a bag')
        depth = max(depth, 0)


def custom_data(content: Mapping[str, Any] | None) -> dict[str, str]:
    """Additional plain entries of metadata.yaml."""
    given = (content or {}).get('custom_data')
    plain = (str, int, float, bool)
    if not isinstance(given, dict):
        return {}
    return {
        str(key): str(one) for key, one in given.items() if isinstance(key, plain) and isinstance(one, plain)
    }


def compression_of(content: Mapping[str, Any] | None) -> tuple[str, str]:
    """Format and mode of compression of each message."""
    mode, form = (str((content or {}).get(f'compression_{name}') or '') for name in ('mode', 'format'))
    return (form, mode) if mode.lower() == 'message' else ('', '')


def topics_of(content: Mapping[str, Any] | None) -> list[tuple[Topic, int]]:
    """The topics that metadata.yaml names, with the numbers of their messages."""
    found = []
    given = (content or {}).get('topics_with_message_count')
    for one in given if isinstance(given, list) else ():
        try:
            says, count = one['topic_metadata'], int(one['message_count'])
            name, kind, form = says['name'], says['type'], says['serialization_format']
        except (KeyError, TypeError, ValueError):
            continue
        qos, digest = says.get('offered_qos_profiles', ''), says.get('type_description_hash', '')
        if not isinstance(qos, str):  # from version 9 on they are no text
            qos = ''
        if all(isinstance(text, str) for text in (name, kind, form, digest)):
            found.append((Topic(name, kind, qos, digest=digest, serialization=form), count))
    return found


def data_files(folder: Path) -> list[Path]:
    """The data files of a bag, in their order.

    Raises:
        ArgumentError: there is no folder, or no bag in it.
    """
    if not folder.is_dir():
        what = 'is a file' if folder.exists() else 'not found'
        raise ArgumentError(f'{folder} {what}; expected the folder of a bag')
    files = [path for path in folder.iterdir() if path.suffix in SUFFIXES.values() and path.is_file()]
    files = [path for path in files if not path.name.startswith('.')]
    compressed = sorted(path.name for path in folder.glob('*.zstd'))
    if not files and compressed:
        raise ArgumentError(
            f'{folder}: {compressed[0]} is compressed as a whole; expected *.mcap or *.db3 '
            '(decompress it with unzstd)'
        )
    if not files:
        raise ArgumentError(f'{folder} contains no *.mcap and no *.db3 file; expected the folder of a bag')
    if len({path.suffix for path in files}) > 1:
        raise ArgumentError(f'{folder} contains both *.mcap and *.db3 files; expected one format')
    return sorted(files, key=_order)


def _order(path: Path) -> tuple[int, str]:
    """By the number at the end of the name: NAME_2 is before NAME_10."""
    number = path.stem.rpartition('_')[2]
    return (int(number) if number.isdigit() else -1, path.name)


def storage_of(path: Path) -> str:
    """'mcap' or 'sqlite3', by the name of a file."""
    return next(storage for storage, suffix in SUFFIXES.items() if suffix == path.suffix)


def sync(path: Path) -> None:
    """Flush a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
