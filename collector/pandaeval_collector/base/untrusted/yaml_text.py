"""Files that people write in YAML: what they hold, where each value stands, and everything that is wrong with them.

YAML is read with the words of JSON: no dates, no ``12:30`` for 750, no ``010`` for 8, which nobody means in a label, in
the arguments of a call or in a configuration.
"""

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
_SCALARS = frozenset(f"{_TAG}{kind}" for kind in ("str", "bool", "int", "float", "null"))
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF = "holds half of a character (\\ud800 to \\udfff); write the character itself"


class BadTextError(Exception):
    """A text cannot be read. ``faults``: what is wrong, each with its line from 1 on, ``None`` where it has none."""

    def __init__(self, *faults: tuple[int | None, str]) -> None:
        super().__init__("; ".join(text for _, text in faults))
        self.faults = faults


class Spot(NamedTuple):
    """A position in a text; both count from 1."""

    line: int
    column: int


class TextFault(NamedTuple):
    """What is wrong with the value at a place, and where that stands, if it is known."""

    place: Place
    text: str
    spot: Spot | None


@dataclass(slots=True)
class YamlText:
    """What a text holds. ``value``: ``None`` for an empty text, and where nothing could be read. ``values_at``,
    ``keys_at``: where values stand, and the keys before them. ``unread``: the places that are ``None`` because of a
    fault."""

    value: Any = None
    values_at: dict[Place, Spot] = field(default_factory=dict)
    keys_at: dict[Place, Spot] = field(default_factory=dict)
    faults: list[TextFault] = field(default_factory=list)
    unread: set[Place] = field(default_factory=set)

    @property
    def lines(self) -> dict[Place, int]:
        """The line of everything: that of its key, where it has one."""
        return {place: spot.line for place, spot in (self.values_at | self.keys_at).items()}


def dotted(place: Iterable[str | int]) -> str:
    """Writes ``("metrics", "enabled", 1)`` as people do: ``metrics.enabled[1]``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def read_yaml(text: str) -> tuple[Any, dict[Place, int]]:
    """Returns the one document of a text, ``None`` for an empty one, and the line of everything in it. Raises
    :class:`BadTextError` with all faults."""
    found = parse(text)
    if found.faults:
        told = ((spot and spot.line, f"{dotted(place)} {said}".lstrip()) for place, said, spot in found.faults)
        raise BadTextError(*told)
    return found.value, found.lines


def parse(text: str, most: float = _MOST, deepest: float = math.inf, any_keys: bool = True) -> YamlText:
    """Reads a text; notes what is wrong with it, and reads the rest all the same. Tags, objects and anchors that refer
    to themselves are refused: only what JSON knows gets through. ``most``: values and keys, as written and as they are
    once aliases and merges are written out; ``deepest``: levels; ``any_keys``: keys may be numbers, too."""
    found = YamlText()
    try:
        loader = _Loader(text)
        loader.most, loader.deepest = most, deepest
        node = loader.get_single_node()
        if node is not None and (large := _too_large(node, most)) is not None:
            told = f"stands for more than {most} values through its aliases; write out the few that are meant"
            found.faults.append(TextFault((), told, _spot(large.start_mark)))
        elif node is not None:
            found.value = _Building(loader, found, any_keys).value(node, ())
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        found.faults.append(TextFault((), f"is not valid YAML: {reason}", _spot(mark) if mark else None))
    except yaml.YAMLError as error:
        found.faults.append(TextFault((), f"is not valid YAML: {str(error).splitlines()[0]}", None))
    except RecursionError:
        found.faults.append(TextFault((), "is nested too deeply", None))
    return found


class _Loader(yaml.SafeLoader):
    """Reads YAML with the words of :data:`WORDS` alone, and no further than to where a text turns out to be too much: a
    few lines of YAML can stand for gigabytes."""

    most = deepest = math.inf
    _depth = _nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Composes a node as PyYAML does, and counts it."""
        self._nodes += 1
        self._depth += 1
        if self._depth > self.deepest or self._nodes > self.most:
            mark: yaml.Mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            levels = f"it is nested more than {self.deepest} levels deep"
            many = f"it has more than {self.most} values and keys up to here; is it the right file?"
            raise yaml.MarkedYAMLError(problem=levels if self._depth > self.deepest else many, problem_mark=mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in WORDS:
    _Loader.add_implicit_resolver(f"{_TAG}{_tag}", _pattern, _first)


def _spot(mark: yaml.Mark) -> Spot:
    return Spot(mark.line + 1, mark.column + 1)


def _too_large(root: yaml.Node, most: float) -> yaml.Node | None:
    """Finds the innermost node that aliases and merges make larger than ``most``, if there is one. Time and memory grow
    with what is written, not with what it stands for."""
    sizes: dict[int, int] = {}

    def weigh(node: yaml.Node) -> yaml.Node | None:
        if id(node) in sizes:
            return None
        sizes[id(node)] = 1  # what refers to itself ends here, and is refused elsewhere
        children = list(node.value) if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        for child in children:
            if (found := weigh(child)) is not None:
                return found
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
        return node if sizes[id(node)] > most else None

    return weigh(root)


class _Building:
    """Makes plain values of nodes, and notes where they stand and what is wrong with them."""

    def __init__(self, loader: _Loader, found: YamlText, any_keys: bool) -> None:
        self._loader, self._found, self._any_keys = loader, found, any_keys
        self._open: set[int] = set()
        self._flat: set[int] = set()

    def value(self, node: yaml.Node, place: Place) -> Any:
        self._found.values_at[place] = _spot(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            return self._leave_out(node, place, f"the tag {node.tag} is not allowed")
        if id(node) in self._open:
            return self._leave_out(node, place, "refers to itself")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, place)
            return [self.value(item, (*place, i)) for i, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[Any, Any]:
        if id(node) not in self._flat:
            self._flat.add(id(node))
            first: dict[str, int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in first:
                        self._refuse(key, (*place, key.value), f"{TWICE}; the first is in line {first[key.value]}")
                    first.setdefault(key.value, key.start_mark.line + 1)
            self._loader.flatten_mapping(node)
        values: dict[Any, Any] = {}
        for key, value in node.value:
            is_scalar = isinstance(key, yaml.ScalarNode)
            if is_scalar and _SURROGATE.search(key.value):
                self._refuse(key, place, f"a key {_HALF}")
            elif is_scalar and (key.tag == f"{_TAG}str" or (self._any_keys and key.tag in _SCALARS)):
                self._found.keys_at[*place, key.value] = _spot(key.start_mark)
                values[self._loader.construct_object(key)] = self.value(value, (*place, key.value))
            else:
                name = key.value if is_scalar else "a list or map"
                self._refuse(key, place, f"{name} is not a key; put it in quotes if it is meant as one")
        return values

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        if _SURROGATE.search(node.value):
            return self._leave_out(node, place, _HALF)
        if node.tag not in _SCALARS:
            return self._leave_out(node, place, f"the tag {node.tag} is not allowed")
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            return self._leave_out(node, place, f"cannot be read: {error}")

    def _refuse(self, node: yaml.Node, place: Place, text: str) -> None:
        self._found.faults.append(TextFault(place, text, _spot(node.start_mark)))

    def _leave_out(self, node: yaml.Node, place: Place, text: str) -> None:
        self._refuse(node, place, text)
        self._found.unread.add(place)
