"""Sources of values: YAML file, environment, command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.base.untrusted.user_files import TooLongError, read_given
from pandaeval_collector.base.untrusted.yaml_text import BadTextError, YamlText, dotted, parse
from pandaeval_collector.config._problem import ConfigError, KeyPath, Problem, WrittenAt
from pandaeval_collector.config._tree import PREFIX, below, keys, variable

# A configuration stays small: files of a few kilobytes are meant.
MAX_BYTES = 256 * 1024
MAX_NODES = 5_000
"""Maximum values and keys."""
MAX_DEPTH = 30


# Values gathered from all sources, each with the place that it was written at; later sources win.
class Draft:
    """A tree of plain values before validation. Not thread-safe."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._values_at: dict[KeyPath, WrittenAt] = {}
        self._keys_at: dict[KeyPath, WrittenAt] = {}

    def holds(self, path: KeyPath) -> bool:
        return path in self._values_at

    def value_at(self, path: KeyPath) -> WrittenAt | None:
        """Return the place of ``path``, else of its section or a key in that section."""
        for length in range(len(path), -1, -1):
            around = path[:length]
            below_it = (place for known, place in self._values_at.items() if length and known[:length] == around)
            place = self._values_at.get(around) or next(below_it, None)
            if place:
                return place
        return None

    def key_at(self, path: KeyPath) -> WrittenAt | None:
        return self._keys_at.get(path) or self.value_at(path)

    def written(self, path: KeyPath) -> Any:
        """Return the value at ``path`` as written. Raises ``KeyError`` or ``IndexError``."""
        node: Any = self.values
        for part in path:
            node = node[part]
        return node

    def origins(self) -> dict[KeyPath, WrittenAt]:
        return dict(self._values_at)

    def mark(self, path: KeyPath, value_place: WrittenAt, key_place: WrittenAt | None = None) -> None:
        self._values_at[path] = value_place
        self._keys_at[path] = key_place or value_place

    def assign(self, path: tuple[str, ...], value: Any, place: WrittenAt) -> None:
        """Set ``path``. Sections are merged; other values are replaced."""
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
        """Remove empty sections and maps, as left by commented-out keys."""
        for path, key in reversed(keys().items()):
            parent: Any = self.values
            for name in path[:-1]:
                parent = parent.get(name) if isinstance(parent, dict) else None
            is_empty = isinstance(parent, dict) and parent.get(path[-1], ...) is None
            if is_empty and (key.is_map or (key.section and not key.optional)):
                del parent[path[-1]]


def without(values: Mapping[str, Any], paths: set[KeyPath]) -> dict[str, Any]:
    """Return a copy of ``values`` without ``paths``. A list item removes its list."""

    def copy(node: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[str, Any]]:
        for name, value in node.items():
            here = (*path, name)
            if here in whole:
                continue
            yield name, dict(copy(value, here)) if isinstance(value, Mapping) else value

    whole = {path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))] for path in paths}
    return dict(copy(values, ()))


def read_file(path: Path, draft: Draft) -> list[Problem]:
    try:
        held = _read(path)
    except ConfigError as error:
        return [*error.problems]
    for at, spot in held.values_at.items():
        key = held.keys_at.get(at)
        draft.mark(at, WrittenAt(str(path), *spot), key and WrittenAt(str(path), *key))
    if isinstance(held.value, dict):
        draft.values = held.value
    elif held.value is not None:
        message = "must hold sections, such as `close:` with keys below it, not a list or a single value"
        return [Problem("", message, WrittenAt(str(path)))]
    return []


def read_yaml(path: Path) -> Any:
    """Return a YAML file's plain values; ``None`` if empty. Raises :class:`ConfigError` with the first fault."""
    return _read(path).value


def _parse(text: str) -> YamlText:
    return parse(text, MAX_NODES, MAX_DEPTH, any_keys=False)


def _read(path: Path) -> YamlText:
    place = WrittenAt(str(path))
    try:
        text = read_given(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        message = "no such file; `pandaeval config schema --example` prints an example"
    except IsADirectoryError:
        message = "is a directory, not a file"
    except TooLongError:
        message = f"has more than {MAX_BYTES // 1024} KiB; is it the right file?"
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        message = "is not a text file in UTF-8"
    else:
        try:
            return _parse(text)
        except BadTextError as error:
            message, place = str(error), WrittenAt(str(path), *(error.spot or ()))
    raise ConfigError([Problem("", message, place)])


def read_environ(environ: Mapping[str, str], draft: Draft) -> list[Problem]:
    """Add ``PANDAEVAL_SECTION__KEY`` variables and ``PANDAEVAL_DATA`` (``store.path``) to ``draft``.

    Empty means unset.
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
            message = f"is not read; write {variable(forgotten[name])}, with two underscores after a section"
            problems.append(Problem("", message, _place(name, ())))
    if (data := environ.get("PANDAEVAL_DATA", "").strip()) and not draft.holds(("store", "path")):
        draft.assign(("store", "path"), data, _place("PANDAEVAL_DATA", ("store", "path")))
    return problems


def read_overrides(overrides: Mapping[str, Any], draft: Draft) -> None:
    """Add dotted keys with values (``{"judge.model": "openai/gpt-4o"}``) to ``draft``, except ``None``."""
    for name, value in overrides.items():
        if value is not None:
            draft.assign(_map_entry(tuple(name.split("."))), value, WrittenAt("command line"))


def _assign_text(path: tuple[str, ...], text: str, place: WrittenAt, draft: Draft) -> list[Problem]:
    key = keys().get(path)
    if key and key.is_text and text.strip() not in ("null", "~") and text.strip()[0] not in "\"'":
        draft.assign(path, text.strip(), place)
        return []
    try:
        held = _parse(text)
    except BadTextError as error:
        return [Problem(dotted(path), str(error), place)]
    draft.assign(path, held.value, place)
    for at in held.values_at:
        draft.mark((*path, *at), place)
    return []


def _map_entry(path: tuple[str, ...]) -> tuple[str, ...]:
    """Join names below a map: ``(…, "thresholds", "trace", "coherence")`` is entry ``trace.coherence``."""
    for length in range(1, len(path)):
        key = keys().get(path[:length])
        if key and key.is_map:
            return (*path[:length], ".".join(path[length:]))
    return path


def _place(name: str, path: tuple[str, ...]) -> WrittenAt:
    return WrittenAt(f"environment {name}", key=dotted(path))
