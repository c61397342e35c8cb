"""YAML to plain values, with the line and column of everything, and every fault that can be found without a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from pandaeval_collector.config._problem import KeyPath, Problem, WrittenAt, dotted

# YAML that stays small: files of a few kilobytes are meant, and a few lines of YAML can stand for gigabytes.
MAX_BYTES = 256 * 1024
MAX_NODES = 5_000
"""Most values and keys, as written and as they are once aliases and merges are written out."""
MAX_DEPTH = 30


class YamlTooLargeError(yaml.MarkedYAMLError):
    """A text is too large. ``problem``: what there is too much of."""


class BoundedLoader(yaml.SafeLoader):
    """Raises :class:`YamlTooLargeError` as soon as a text turns out to be too much, before the rest is read."""

    _depth = _nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Composes a node as PyYAML does, and counts it."""
        self._nodes += 1
        self._depth += 1
        problem = None
        if self._depth > MAX_DEPTH:
            problem = f"is nested more than {MAX_DEPTH} levels deep; a configuration has three or four"
        elif self._nodes > MAX_NODES:
            problem = f"has more than {MAX_NODES} values and keys up to here; is it the right file?"
        if problem:
            mark: yaml.Mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise YamlTooLargeError(problem=problem, problem_mark=mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def too_large(root: yaml.Node) -> yaml.Node | None:
    """Finds the innermost node that aliases and merges make larger than :data:`MAX_NODES`, if there is one. Time and
    memory grow with what is written, not with what it stands for."""
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
        return node if sizes[id(node)] > MAX_NODES else None

    return weigh(root)


_MAP, _LIST, _TEXT = (f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str"))
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_OCTAL = re.compile(r"[-+]?0[0_]*+[1-7][0-7_]*+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF = "holds half of a character (\\ud800 to \\udfff); write the character itself"
_BOMB = f"stands for more than {MAX_NODES} values through its aliases; write out the few that are meant"

Marker = Callable[[KeyPath, WrittenAt, WrittenAt | None], None]


class YamlReader:
    """Reads one text. ``problems`` holds what was wrong, ``unread`` the paths that are ``None`` for that reason; the
    rest is returned all the same.

    ``at`` places a position in the text (line and column from 0), ``mark`` is told where each value and key stands.
    Tags, objects and recursive anchors are refused: only what JSON knows gets through.
    """

    def __init__(self, text: str, at: Callable[[int, int], WrittenAt], mark: Marker, path: KeyPath = ()) -> None:
        self.problems: list[Problem] = []
        self.unread: set[KeyPath] = set()
        self._text = text
        self._at = at
        self._mark = mark
        self._path = path
        self._open: set[int] = set()
        self._flat: set[int] = set()

    def read(self) -> Any:
        """Returns the value of the whole text; ``None`` for an empty text, and where nothing could be read."""
        loader = None
        try:
            loader = BoundedLoader(self._text)
            node = loader.get_single_node()
            if node is None:
                return None
            if (large := too_large(node)) is not None:
                self._refuse(large, self._path, _BOMB)
                return None
            return self._build(node, self._path, None, loader)
        except YamlTooLargeError as error:
            self._fault(error.problem_mark, str(error.problem))
        except yaml.MarkedYAMLError as error:
            reason = ", ".join(part for part in (error.context, error.problem) if part)
            self._fault(error.problem_mark, f"is not valid YAML: {reason}")
        except yaml.YAMLError as error:
            self._fault(None, f"is not valid YAML: {str(error).splitlines()[0]}")
        except RecursionError:
            self._fault(None, "is nested too deeply")
        finally:
            if loader is not None:
                loader.dispose()
        return None

    def _build(self, node: yaml.Node, path: KeyPath, key: WrittenAt | None, loader: BoundedLoader) -> Any:
        self._mark(path, self._place(node), key)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path, loader)
        if node.tag not in (_MAP, _LIST):
            return self._leave_out(node, path, f"the tag {node.tag} is not allowed")
        if id(node) in self._open:
            return self._leave_out(node, path, "refers to itself")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path, loader)
            return [self._build(item, (*path, i), None, loader) for i, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, loader: BoundedLoader) -> dict[str, Any]:
        if id(node) not in self._flat:
            self._flat.add(id(node))
            first: dict[str, int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in first:
                        self._refuse(
                            key, (*path, key.value), f"is given twice; the first is in line {first[key.value]}"
                        )
                    first.setdefault(key.value, key.start_mark.line + 1)
            loader.flatten_mapping(node)
        values: dict[str, Any] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and _SURROGATE.search(key.value):
                self._refuse(key, path, f"a key {_HALF}")
            elif isinstance(key, yaml.ScalarNode) and key.tag == _TEXT:
                values[key.value] = self._build(value, (*path, key.value), self._place(key), loader)
            else:
                name = key.value if isinstance(key, yaml.ScalarNode) else "a list or map"
                self._refuse(key, path, f"{name} is not a key; put it in quotes if it is meant as one")
        return values

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath, loader: BoundedLoader) -> Any:
        if _SURROGATE.search(node.value):
            return self._leave_out(node, path, _HALF)
        # YAML 1.1 reads numbers where people hardly mean one: 12:30:00, 010.
        if node.tag in _NUMBERS and (base := 60 if ":" in node.value else 8 if _OCTAL.fullmatch(node.value) else 0):
            shown = node.value if len(node.value) <= 60 else f"{node.value[:57]}…"
            try:
                number = f"{loader.construct_object(node):g}"
            except (ValueError, OverflowError):
                number = "a huge number"
            read = f"{shown} is {number} to YAML, a number of base {base}"
            return self._leave_out(node, path, f"{read}; put it in quotes if it is meant as text")
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            reason = error.problem if isinstance(error, yaml.MarkedYAMLError) else error
            return self._leave_out(node, path, f"cannot be read: {reason}")

    def _refuse(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(dotted(path), message, self._place(node)))

    def _leave_out(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self._refuse(node, path, message)
        self.unread.add(path)

    def _fault(self, mark: yaml.Mark | None, message: str) -> None:
        place = self._at(mark.line, mark.column) if mark else self._at(-1, -1)
        self.problems.append(Problem(dotted(self._path), message, place))

    def _place(self, node: yaml.Node) -> WrittenAt:
        return self._at(node.start_mark.line, node.start_mark.column)
