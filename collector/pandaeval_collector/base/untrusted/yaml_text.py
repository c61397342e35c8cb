"""User-written YAML with JSON's scalars: values and positions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

Place = tuple[str | int, ...]
"""Keys and indices that lead to a value."""
WORDS = tuple(
    (tag, re.compile(f"^(?:{pattern})$"), first)
    for tag, pattern, first in (
        ("bool", "true|false|True|False", [*"tTfF"]),
        ("int", "-?(?:0|[1-9][0-9]*)", [*"-0123456789"]),
        ("float", r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", [*"-.0123456789"]),
        ("null", "null|~|", ["n", "~", ""]),
        ("merge", "<<", ["<"]),
    )
)
"""The unquoted words that are no texts: tag, pattern, first characters."""
TWICE = "is given twice"
_MOST = 1_000_000
_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(f"{_TAG}{kind}" for kind in ("str", "bool", "int", "float", "null", "merge", "seq", "map"))
_SURROGATE = re.compile("[\ud800-\udfff]")


class Spot(NamedTuple):
    """A position in a text, 1-based."""

    line: int
    column: int


class BadTextError(Exception):
    """A text cannot be read. ``spot``: position of the fault, if known."""

    def __init__(self, text: str, spot: Spot | None = None) -> None:
        super().__init__(text)
        self.spot = spot


@dataclass(slots=True)
class YamlText:
    """The content of a text. ``value``: ``None`` if empty. ``values_at``, ``keys_at``: positions of values and keys."""

    value: Any = None
    values_at: dict[Place, Spot] = field(default_factory=dict)
    keys_at: dict[Place, Spot] = field(default_factory=dict)

    @property
    def lines(self) -> dict[Place, int]:
        return {place: spot.line for place, spot in (self.values_at | self.keys_at).items()}


def dotted(place: Iterable[str | int]) -> str:
    """Format ``("metrics", "enabled", 1)`` as ``metrics.enabled[1]``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def parse(text: str, most: int = _MOST, deepest: float = math.inf, any_keys: bool = True) -> YamlText:
    """Read a single-document text.

    Raises :class:`BadTextError` for the first fault. ``most``: values and keys. ``deepest``: levels. ``any_keys``:
    allow number keys.
    """
    content = YamlText()
    try:
        loader = _Loader(text, most, deepest, any_keys)
        node = loader.get_single_node()
        if node is not None:
            content.value = _value(loader, node, (), content)
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        raise BadTextError(f"is not valid YAML: {reason}", _spot(mark) if mark else None) from error
    except yaml.YAMLError as error:
        raise BadTextError(f"is not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise BadTextError("is nested too deeply") from error
    return content


class _Loader(yaml.SafeLoader):
    """Reads YAML with the scalars of :data:`WORDS`, and stops at a size limit."""

    def __init__(self, text: str, most: int, deepest: float, any_keys: bool) -> None:
        super().__init__(text)
        self._most, self._deepest, self._any_keys = most, deepest, any_keys
        self._open: list[int] = []  # present sizes of the nodes around the current node
        # By node, not by id(): merging drops nodes, and a later node can get the id of a dropped node.
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if len(self._open) >= self._deepest:
            raise _fault(event, f"it is nested more than {self._deepest} levels deep")
        self._open.append(1)
        node: yaml.Node = super().compose_node(parent, index)  # type: ignore[assignment]
        size = self._open.pop()
        if isinstance(event, yaml.AliasEvent) and node not in self._sizes:
            raise _fault(event, "it refers to itself")
        size = self._sizes.setdefault(node, size)
        if self._open:
            self._open[-1] += size
            if self._open[-1] > self._most:
                raise _fault(event, f"it has more than {self._most} values and keys up to here, with those of aliases")
        if node.tag not in _TAGS:
            raise _fault(node, f"the tag {node.tag} is not allowed")
        if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
            raise _fault(node, "it holds half of a character (\\ud800 to \\udfff); write the character itself")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        first: dict[str, int] = {}
        for key, _ in node.value:
            is_key = self._any_keys or key.tag in (f"{_TAG}str", f"{_TAG}merge")
            if not is_key or not isinstance(key, yaml.ScalarNode):
                name = key.value if isinstance(key, yaml.ScalarNode) else "a list or map"
                raise _fault(key, f"{name} is not a key; put it in quotes if it is meant as a key")
            if key.value in first:
                raise _fault(key, f"{key.value} {TWICE}; the first is in line {first[key.value]}")
            first[key.value] = key.start_mark.line + 1
        self.flatten_mapping(node)
        return node


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in WORDS:
    _Loader.add_implicit_resolver(f"{_TAG}{_tag}", _pattern, _first)


def _spot(mark: yaml.Mark) -> Spot:
    return Spot(mark.line + 1, mark.column + 1)


def _fault(at: Any, text: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=at.start_mark)


def _value(loader: _Loader, node: yaml.Node, place: Place, content: YamlText) -> Any:
    content.values_at[place] = _spot(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*place, i), content) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        values: dict[Any, Any] = {}
        for key, value in node.value:
            inside = (*place, key.value)
            content.keys_at[inside] = _spot(key.start_mark)
            values[loader.construct_object(key)] = _value(loader, value, inside, content)
        return values
    try:
        return loader.construct_object(node)
    except ValueError as error:
        raise _fault(node, f"it cannot be read: {error}") from error
