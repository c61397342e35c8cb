"""YAML that stays small: files of a few kilobytes are meant, and a few lines of YAML can stand for gigabytes."""

from __future__ import annotations

import yaml

MAX_BYTES = 256 * 1024
MAX_NODES = 5_000
"""Values and keys, as written and as they are once aliases and merges are written out."""
MAX_DEPTH = 30


class YamlTooLargeError(yaml.MarkedYAMLError):
    """``problem``: what there is too much of."""


class BoundedLoader(yaml.SafeLoader):
    """Raises :class:`YamlTooLargeError` as soon as a text turns out to be too much, before the rest is read."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As PyYAML's, counted."""
        self._nodes += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"is nested more than {MAX_DEPTH} levels deep; a configuration has three or four")
        if self._nodes > MAX_NODES:
            self._refuse(f"has more than {MAX_NODES} values and keys up to here; is it the right file?")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, problem: str) -> None:
        mark: yaml.Mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise YamlTooLargeError(problem=problem, problem_mark=mark)


def too_large(root: yaml.Node) -> yaml.Node | None:
    """The innermost node that aliases and merges make larger than :data:`MAX_NODES`, if there is one. Time and memory
    grow with what is written, not with what it stands for."""
    sizes: dict[int, int] = {}

    def weigh(node: yaml.Node) -> yaml.Node | None:
        if id(node) in sizes:
            return None
        sizes[id(node)] = 1  # what refers to itself ends here, and is refused elsewhere
        children = _children(node)
        for child in children:
            if (found := weigh(child)) is not None:
                return found
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
        return node if sizes[id(node)] > MAX_NODES else None

    return weigh(root)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
