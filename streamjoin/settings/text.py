"""YAML of a join file and of settings, read strictly, with the line and column of what is wrong."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from streamjoin.errors import InputError
from streamjoin.settings.values import shown

_NODES_MAX = 50_000


def read_yaml(text: str) -> Any:
    """What a text says.

    Raises:
        InputError: it is not YAML, or more than a join file may be; with line and column.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{where}{wrong.problem or 'this is not YAML'}") from None
    except yaml.reader.ReaderError as wrong:
        before = text[: wrong.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        code = wrong.character if isinstance(wrong.character, int) else ord(wrong.character)
        raise InputError(f"line {line}, column {column}: a text file has no character U+{code:04X}") from None
    except RecursionError:
        raise InputError("this is nested too deeply for a join file") from None
    except yaml.YAMLError as wrong:
        raise InputError(f"this is not YAML: {wrong}") from None


def place_of(text: str, field: str) -> tuple[int, int] | None:
    """The line and column, from 1, at which a field such as `streams.orders.delay` begins; None where it is not there.

    Args:
        text: what `read_yaml` has read.
    """
    try:
        node = yaml.compose(text, Loader=_StrictLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    mark = None
    for part in field.split("."):
        if not isinstance(node, yaml.MappingNode):
            return None
        found = next(((key.start_mark, value) for key, value in node.value if key.value == part), None)
        if found is None:
            return None
        mark, node = found
    return None if mark is None else (mark.line + 1, mark.column + 1)


class _StrictLoader(yaml.SafeLoader):
    """YAML in which a key cannot stand twice, aliases cannot multiply and the number of values is bounded."""

    nodes = 0

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a name is a plain text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f'"{key}" is given twice', problem_mark=key_node.start_mark)
            seen.add(key)
            # A name stays the text that it is, also where YAML has another meaning for it: null, on, no, 2026-01-01.
            key_node.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, OverflowError) as wrong:  # such as the date 2026-02-30
            raise yaml.MarkedYAMLError(
                problem=f"{shown(node.value)} cannot be read: {wrong}; put a text into quotes",
                problem_mark=node.start_mark,
            ) from None

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > _NODES_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem=f"more than {_NODES_MAX} names and values are too many for a join file", problem_mark=mark
            )
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="a join file has no aliases", problem_mark=event.start_mark)
        return super().compose_node(parent, index)
