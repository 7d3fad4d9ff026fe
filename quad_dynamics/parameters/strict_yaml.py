# SPDX-License-Identifier: Apache-2.0
"""YAML without aliases and without keys that stand twice, and the lines in which its values stand."""

from __future__ import annotations

from typing import Any

import yaml

from quad_dynamics.parameters.yaml_numbers import NumberLoader


class StrictLoader(NumberLoader):
    """Loader that refuses aliases (a small file could unfold to gigabytes) and keys that stand twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """As PyYAML does it, but without aliases, and keys that stand twice are noted."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError('aliases (*name) are not supported')
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.MappingNode):
            self._note_keys_twice(node)
        return node

    def _note_keys_twice(self, node: yaml.MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in lines:
                self.twice.append(f"line {line}: the key '{name}' is already in line {lines[name]}")
            lines.setdefault(name, line)


class LineLoader(StrictLoader):
    """StrictLoader that knows in which lines values stand, by places such as `scenario.events[2].push`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lines: dict[str, int] = {}

    def get_single_data(self) -> Any:
        """The data of the text; its lines are known then."""
        node = self.get_single_node()
        if node is None:
            return None
        self._note_lines(node, '')
        return self.construct_document(node)

    def _note_lines(self, node: yaml.Node, name: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                place = f'{name}.{key.value}' if name else str(key.value)
                self.lines[place] = key.start_mark.line + 1
                self._note_lines(value, place)
        elif isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self.lines[f'{name}[{i}]'] = item.start_mark.line + 1
                self._note_lines(item, f'{name}[{i}]')
