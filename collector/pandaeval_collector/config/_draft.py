"""Values gathered from all sources, each with the place that it was written at; later sources win."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pandaeval_collector.config._keys import keys
from pandaeval_collector.config._problem import KeyPath, WrittenAt


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
        """Where the value at ``path`` was written; else the section around it, or something written in that section."""
        for length in range(len(path), -1, -1):
            around = path[:length]
            place = self._values_at.get(around) or next(self._written_below(around), None)
            if place:
                return place
        return None

    def key_at(self, path: KeyPath) -> WrittenAt | None:
        """Where the last name in ``path`` was written."""
        return self._keys_at.get(path) or self.value_at(path)

    def written(self, path: KeyPath) -> Any:
        """The value at ``path`` as it was written; raises ``KeyError`` or ``IndexError`` if there is none."""
        node: Any = self.values
        for part in path:
            node = node[part]
        return node

    def origins(self) -> dict[KeyPath, WrittenAt]:
        """Where each value that was set was written."""
        return dict(self._values_at)

    def mark(self, path: KeyPath, value_place: WrittenAt, key_place: WrittenAt | None = None) -> None:
        """Note where ``path`` was written."""
        self._values_at[path] = value_place
        self._keys_at[path] = key_place or value_place

    def assign(self, path: tuple[str, ...], value: Any, place: WrittenAt) -> None:
        """Set ``path``. A section's keys are set one by one; anything else replaces what stood there."""
        key = keys().get(path)
        if isinstance(value, dict) and key and key.section:
            for name, item in value.items():
                self.assign((*path, name), item, place)
            return
        self._forget(path)
        parent = self.values
        for name in path[:-1]:
            if not isinstance(parent.get(name), dict):
                parent[name] = {}
            parent = parent[name]
        parent[path[-1]] = value
        self.mark(path, place)

    def drop_empty(self) -> None:
        """Take out sections and maps with nothing below them, as YAML leaves them when every key is commented out."""
        for path, key in reversed(keys().items()):
            parent = _child(self.values, path[:-1])
            is_empty = parent is not None and parent.get(path[-1], ...) is None
            if parent and is_empty and (key.is_map or (key.section and not key.optional)):
                del parent[path[-1]]

    def _written_below(self, path: KeyPath) -> Iterator[WrittenAt]:
        return (place for known, place in self._values_at.items() if path and known[: len(path)] == path)

    def _forget(self, path: KeyPath) -> None:
        for places in (self._values_at, self._keys_at):
            for known in [known for known in places if known[: len(path)] == path]:
                del places[known]


def without(values: Mapping[str, Any], paths: set[KeyPath]) -> dict[str, Any]:
    """A copy of ``values`` without what stands at ``paths``. An item of a list takes the whole list with it."""

    def copy(node: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[str, Any]]:
        for name, value in node.items():
            here = (*path, name)
            if here in whole:
                continue
            yield name, dict(copy(value, here)) if isinstance(value, Mapping) else value

    whole = {path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))] for path in paths}
    return dict(copy(values, ()))


def _child(values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    node: Any = values
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None
