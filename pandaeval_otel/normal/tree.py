"""The spans of a trace as a tree that survives missing parents, skewed clocks and parent loops.

Built in one pass; whatever a reader would have to climb the tree for is worked out on the way down, so that a chain of
thousands of nested spans costs no more than a flat trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from pandaeval_otel.model import Kind, Span

RUNS = frozenset({Kind.AGENT, Kind.WORKFLOW})
ASIDES = frozenset({Kind.TOOL, Kind.RETRIEVAL, Kind.GUARDRAIL})
"""Kinds that serve an agent: what models say inside of them is not said to the user."""
WORK = RUNS | ASIDES | {Kind.LLM}
"""Kinds that do something of their own; all others only stand between them."""

_EARLIEST = attrgetter("start_ns", "span_id")


@dataclass(slots=True)
class _Place:
    """What a span inherits from those above it."""

    depth: int = 0
    above: Span | None = None
    in_run: bool = False
    asides: int = 0
    agent: str = ""
    position: int = 0


class Tree:
    """``spans``: by start time, outer spans before inner ones that start at the same instant. Ids must be unique.
    ``roots``: what was run from outside: the outermost agents and workflows, but not those that only a tool called;
    without any, the topmost spans that do work.

    A parent loop is cut above its earliest span. The same spans give the same tree in any order.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        ordered = sorted(spans, key=_EARLIEST)
        self.by_id = {span.span_id: span for span in ordered}
        self._children: dict[str, list[Span]] = {}
        self._places: dict[str, _Place] = {}
        self._cut: set[str] = set()
        self._below: dict[str, list[Span]] = {}
        tops = []
        for span in ordered:
            if span.parent_id in self.by_id:
                self._children.setdefault(span.parent_id, []).append(span)
            else:
                tops.append(span)
        for span in tops:
            self._descend(span)
        if len(self._places) < len(ordered):
            self._cut_loops(ordered)
        places = self._places
        self.spans = tuple(sorted(ordered, key=lambda span: (span.start_ns, places[span.span_id].depth, span.span_id)))
        for position, span in enumerate(self.spans):
            places[span.span_id].position = position
        self.roots = self._find_roots()

    def parent(self, span: Span) -> Span | None:
        """The parent, if it is here."""
        return None if span.span_id in self._cut else self.by_id.get(span.parent_id)

    def children(self, span: Span) -> Sequence[Span]:
        """The spans directly below, by start time."""
        found = self._children.get(span.span_id, ())
        return [child for child in found if child.span_id not in self._cut] if self._cut else found

    def depth(self, span: Span) -> int:
        """0 for a span whose parent is not here."""
        return self._places[span.span_id].depth

    def above(self, span: Span) -> Span | None:
        """The nearest span above that does work of its own (:data:`WORK`)."""
        return self._places[span.span_id].above

    def asides(self, span: Span) -> int:
        """How many spans above are :data:`ASIDES`."""
        return self._places[span.span_id].asides

    def agent(self, span: Span) -> str:
        """The agent's name that stands on the span or nearest above it; ``""`` if none does."""
        return self._places[span.span_id].agent

    def below(self, span: Span) -> Sequence[Span]:
        """All descendants of a span, in the order of :attr:`spans`. Not to be changed."""
        known = self._below.get(span.span_id)
        if known is not None:
            return known
        found: list[Span] = []
        frontier = [span]
        while frontier:
            inner = self.children(frontier.pop())
            found.extend(inner)
            frontier.extend(inner)
        places = self._places
        found.sort(key=lambda inner: places[inner.span_id].position)
        self._below[span.span_id] = found
        return found

    def outer_first(self) -> list[Span]:
        """All spans, outer before inner ones whatever their clocks say; of equal depth by start time."""
        places = self._places
        return sorted(self.spans, key=lambda span: places[span.span_id].depth)

    def _find_roots(self) -> tuple[Span, ...]:
        places = self._places
        runs = [span for span in self.spans if span.kind in RUNS and not places[span.span_id].in_run]
        outer = [run for run in runs if not places[run.span_id].asides]
        if outer:
            return tuple(outer)
        tops = [span for span in self.spans if span.kind in WORK and places[span.span_id].above is None]
        return tuple(runs if runs and not any(span.kind is Kind.LLM for span in tops) else tops)

    def _descend(self, top: Span) -> None:
        """Works out what spans inherit, from a topmost span downwards."""
        places = self._places
        places[top.span_id] = _Place(agent=top.agent_name)
        frontier = [top]
        while frontier:
            outer = frontier.pop()
            for inner in self._children.get(outer.span_id, ()):
                if inner.span_id not in places:
                    places[inner.span_id] = _inherited(outer, places[outer.span_id], inner)
                    frontier.append(inner)

    def _cut_loops(self, ordered: Sequence[Span]) -> None:
        """What was not reached from above hangs in or below parent loops."""
        for span in ordered:
            if span.span_id not in self._places:
                first = self._first_of_loop(span)
                self._cut.add(first.span_id)
                self._descend(first)

    def _first_of_loop(self, span: Span) -> Span:
        passed: dict[str, int] = {}
        path: list[Span] = []
        at = span
        while at.span_id not in passed:
            passed[at.span_id] = len(path)
            path.append(at)
            at = self.by_id[at.parent_id]
        return min(path[passed[at.span_id] :], key=_EARLIEST)


def _inherited(outer: Span, place: _Place, inner: Span) -> _Place:
    kind = outer.kind
    return _Place(
        place.depth + 1,
        outer if kind in WORK else place.above,
        place.in_run or kind in RUNS,
        place.asides + (kind in ASIDES),
        inner.agent_name or place.agent,
    )
