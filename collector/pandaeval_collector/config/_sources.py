"""Where values come from: a YAML file, the environment, the command line. YAML is read to plain values, with the line
and column of everything, and every fault that can be found without a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pandaeval_collector.base.untrusted.given_files import TooLongError, read_given
from pandaeval_collector.config._problem import ConfigError, KeyPath, Problem, WrittenAt, dotted
from pandaeval_collector.config._tree import PREFIX, below, keys, variable

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


# Values gathered from all sources, each with the place that it was written at; later sources win.
class Draft:
    """A tree of plain values before validation. Not thread-safe; lives for the time of loading."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._values_at: dict[KeyPath, WrittenAt] = {}
        self._keys_at: dict[KeyPath, WrittenAt] = {}

    def holds(self, path: KeyPath) -> bool:
        """Whether some source has set the value at ``path``."""
        return path in self._values_at

    def value_at(self, path: KeyPath) -> WrittenAt | None:
        """Returns where the value at ``path`` was written; else the section around it, or something in that section."""
        for length in range(len(path), -1, -1):
            around = path[:length]
            below_it = (place for known, place in self._values_at.items() if length and known[:length] == around)
            place = self._values_at.get(around) or next(below_it, None)
            if place:
                return place
        return None

    def key_at(self, path: KeyPath) -> WrittenAt | None:
        """Returns where the last name in ``path`` was written."""
        return self._keys_at.get(path) or self.value_at(path)

    def written(self, path: KeyPath) -> Any:
        """Returns the value at ``path`` as it was written; raises ``KeyError`` or ``IndexError`` if there is none."""
        node: Any = self.values
        for part in path:
            node = node[part]
        return node

    def origins(self) -> dict[KeyPath, WrittenAt]:
        """Returns where each value that was set was written."""
        return dict(self._values_at)

    def mark(self, path: KeyPath, value_place: WrittenAt, key_place: WrittenAt | None = None) -> None:
        """Notes where ``path`` was written."""
        self._values_at[path] = value_place
        self._keys_at[path] = key_place or value_place

    def assign(self, path: tuple[str, ...], value: Any, place: WrittenAt) -> None:
        """Sets ``path``. A section's keys are set one by one; anything else replaces what stood there."""
        key = keys().get(path)
        if isinstance(value, dict) and key and key.section:
            for name, item in value.items():
                self.assign((*path, name), item, place)
            return
        for places in (self._values_at, self._keys_at):
            for known in [known for known in places if known[: len(path)] == path]:
                del places[known]
        parent = self.values
        for name in path[:-1]:
            if not isinstance(parent.get(name), dict):
                parent[name] = {}
            parent = parent[name]
        parent[path[-1]] = value
        self.mark(path, place)

    def drop_empty(self) -> None:
        """Removes sections and maps with nothing below them, as YAML leaves them when every key is commented out."""
        for path, key in reversed(keys().items()):
            parent: Any = self.values
            for name in path[:-1]:
                parent = parent.get(name) if isinstance(parent, dict) else None
            is_empty = isinstance(parent, dict) and parent.get(path[-1], ...) is None
            if is_empty and (key.is_map or (key.section and not key.optional)):
                del parent[path[-1]]


def without(values: Mapping[str, Any], paths: set[KeyPath]) -> dict[str, Any]:
    """Returns a copy of ``values`` without what stands at ``paths``. An item of a list takes the whole list with it."""

    def copy(node: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[str, Any]]:
        for name, value in node.items():
            here = (*path, name)
            if here in whole:
                continue
            yield name, dict(copy(value, here)) if isinstance(value, Mapping) else value

    whole = {path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))] for path in paths}
    return dict(copy(values, ()))


def read_file(path: Path, draft: Draft) -> list[Problem]:
    """Puts the values of a YAML file into ``draft``."""
    values, unread, problems = _read(path, draft.mark)
    if isinstance(values, dict):
        draft.values = without(values, unread)
    elif values is not None:
        message = "must hold sections, such as `close:` with keys below it, not a list or a single value"
        problems.append(Problem("", message, WrittenAt(str(path))))
    return problems


def read_yaml(path: Path) -> Any:
    """Returns the plain values of a YAML file; ``None`` for an empty one. Raises :class:`ConfigError` with every fault
    and its place: what is no YAML, given twice, nested too deeply or too large."""
    values, _, problems = _read(path, lambda *_: None)
    if problems:
        raise ConfigError(problems)
    return values


def _read(path: Path, mark: Marker) -> tuple[Any, set[KeyPath], list[Problem]]:
    """Returns the values of a file, the paths of those that could not be read, and why not."""
    try:
        text = read_given(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        message = "no such file; `pandaeval config schema --example` prints one to begin with"
    except IsADirectoryError:
        message = "is a directory, not a file"
    except TooLongError:
        message = f"has more than {MAX_BYTES // 1024} KiB; is it the right file?"
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        message = "is not a text file in UTF-8"
    else:
        reader = YamlReader(text, lambda line, column: WrittenAt(str(path), line + 1, column + 1), mark)
        return reader.read(), reader.unread, reader.problems
    return None, set(), [Problem("", message, WrittenAt(str(path)))]


def read_environ(environ: Mapping[str, str], draft: Draft) -> list[Problem]:
    """Puts ``PANDAEVAL_SECTION__KEY`` variables into ``draft``. An empty variable counts as not set.

    Names without a double underscore belong to others, unless they are a key with the underscore forgotten.
    """
    problems: list[Problem] = []
    sections = {key.path for key in below(())}
    forgotten = {variable(path).replace("__", "_"): path for path in keys() if len(path) > 1}
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or not text.strip():
            continue
        path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        if len(path) > 1 or path in sections:
            problems += _assign_text(_map_entry(path), text, _place(name, _map_entry(path)), draft)
        elif name in forgotten:
            message = f"is not read; write {variable(forgotten[name])}, with two underscores below a section"
            problems.append(Problem("", message, _place(name, ())))
    if (data := environ.get("PANDAEVAL_DATA", "").strip()) and not draft.holds(("store", "path")):
        draft.assign(("store", "path"), data, _place("PANDAEVAL_DATA", ("store", "path")))
    return problems


def read_overrides(overrides: Mapping[str, Any], draft: Draft) -> None:
    """Puts dotted keys with ready values (``{"judge.model": "openai/gpt-4o"}``) into ``draft``; ``None``: not given."""
    for name, value in overrides.items():
        if value is not None:
            draft.assign(_map_entry(tuple(name.split("."))), value, WrittenAt("command line"))


def _assign_text(path: tuple[str, ...], text: str, place: WrittenAt, draft: Draft) -> list[Problem]:
    key = keys().get(path)
    if key and key.is_text and text.strip() not in ("null", "~") and text.strip()[0] not in "\"'":
        draft.assign(path, text.strip(), place)
        return []
    marks: list[tuple[KeyPath, WrittenAt]] = []
    reader = YamlReader(text, lambda *_: place, lambda at, value, _: marks.append((at, value)), path)
    value = reader.read()
    if not reader.problems:
        draft.assign(path, value, place)
        for at, value_place in marks:
            draft.mark(at, value_place)
    return reader.problems


def _map_entry(path: tuple[str, ...]) -> tuple[str, ...]:
    """Joins names below a map: ``(…, "thresholds", "trace", "coherence")`` is its entry ``trace.coherence``."""
    for length in range(1, len(path)):
        key = keys().get(path[:length])
        if key and key.is_map:
            return (*path[:length], ".".join(path[length:]))
    return path


def _place(name: str, path: tuple[str, ...]) -> WrittenAt:
    return WrittenAt(f"environment {name}", key=dotted(path))
