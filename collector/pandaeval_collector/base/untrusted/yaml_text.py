"""Files that people write in YAML: what they hold, and on which line each value stands.

YAML is read with the words of JSON: no dates, no ``yes`` for true, no ``12:30`` for 750, which nobody means in a label
or in the arguments of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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


class BadTextError(Exception):
    """A text cannot be read. ``faults``: what is wrong, each with its line from 1 on, ``None`` where it has none."""

    def __init__(self, *faults: tuple[int | None, str]) -> None:
        super().__init__("; ".join(text for _, text in faults))
        self.faults = faults


class _Loader(yaml.SafeLoader):
    """Reads YAML with the words of :data:`WORDS` alone."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in WORDS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def read_yaml(text: str) -> tuple[Any, dict[Place, int]]:
    """Returns the one document of a text, ``None`` for an empty one, and the line of everything in it. Raises
    :class:`BadTextError`, also for a key that is given twice and for a value that holds itself."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        if node is None:
            return None, lines
        if faults := [*_walk(node, (), lines, set(), set())]:
            raise BadTextError(*faults)
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise BadTextError((at.line + 1 if at is not None else None, f"is not valid YAML: {said}")) from error
    except yaml.YAMLError as error:
        raise BadTextError((None, f"is not valid YAML: {str(error).splitlines()[0]}")) from error
    except (ValueError, RecursionError) as error:
        raise BadTextError((None, f"is not valid YAML: {error}")) from error


def _walk(
    node: yaml.Node, place: Place, lines: dict[Place, int], done: set[int], above: set[int]
) -> Iterator[tuple[int, str]]:
    """Notes the line of everything; yields faults: keys that are given twice, and nodes that hold themselves."""
    lines[place] = line = node.start_mark.line + 1
    if id(node) in above:
        yield line, "holds itself; write it out, without an alias (*)"
    if id(node) in done or id(node) in above:
        return
    above.add(id(node))
    if isinstance(node, yaml.MappingNode):
        known: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in known and key.value != "<<":
                yield key.start_mark.line + 1, f"{key.value} is given twice; keep one"
            known.add(key.value)
            yield from _walk(value, (*place, key.value), lines, done, above)
            lines[*place, key.value] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield from _walk(item, (*place, at), lines, done, above)
    above.discard(id(node))
    done.add(id(node))
