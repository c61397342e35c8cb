"""Builds a trace's span tree, robust to missing parents, skewed clocks and parent loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from operator import attrgetter

from pandaeval_otel.model import Kind, Span

RUNS = frozenset({Kind.AGENT, Kind.WORKFLOW})
ASIDES = frozenset({Kind.TOOL, Kind.RETRIEVAL, Kind.GUARDRAIL, Kind.EVALUATION})
"""Kinds that serve an agent. Models inside them do not answer the user."""
WORK = RUNS | ASIDES | {Kind.LLM}
"""Kinds that do work. Spans of other kinds only group them."""

_EARLIEST = attrgetter("start_ns", "span_id")


@dataclass(slots=True)
class _Place:
    depth: int = 0
    above: Span | None = None
    in_run: bool = False
    asides: int = 0
    agent: str = ""


class Tree:
    """The span tree of a trace.

    ``spans``: by start, outer first on ties. ``roots``: outermost agents and workflows not called by tools, else the
    topmost working spans.

    A parent loop is cut above its earliest span. Independent of input order.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        ordered = sorted(spans, key=_EARLIEST)
        by_id = {span.span_id: span for span in ordered}
        self.by_id = by_id
        places: dict[str, _Place] = {}
        children: dict[str, list[Span]] = {}
        self._places, self._children = places, children
        self.tops: list[Span] = []
        """Spans whose parent is not in the trace."""
        self._cut: set[str] = set()
        self._below: dict[str, list[Span]] = {}
        self._position: dict[str, int] = {}
        below: dict[str, _Place] = {}
        tied = False
        started: int | None = None
        for span in ordered:
            if span.start_ns == started:
                tied = True
            started = span.start_ns
            parent = by_id.get(span.parent_id)
            if parent is None:
                self.tops.append(span)
                places[span.span_id] = _Place(agent=span.agent_name)
                continue
            outer = parent.span_id
            siblings = children.get(outer)
            if siblings is None:
                children[outer] = [span]
            else:
                siblings.append(span)
            # Most children share a place: only an agent's name makes a new place.
            place = None if span.agent_name else below.get(outer)
            if place is None:
                around = places.get(outer)
                if around is None:
                    continue
                place = _inherited(parent, around, span)
                if not span.agent_name:
                    below[outer] = place
            places[span.span_id] = place
        if len(places) < len(ordered):
            for span in ordered:
                if span.span_id not in places:
                    self._settle(span)
        if tied:
            ordered.sort(key=lambda span: (span.start_ns, places[span.span_id].depth, span.span_id))
        self.spans = tuple(ordered)
        self.roots = self._find_roots()

    def parent(self, span: Span) -> Span | None:
        if span.span_id in self._cut:
            return None
        return self.by_id.get(span.parent_id)

    def children(self, span: Span) -> Sequence[Span]:
        found = self._children.get(span.span_id, ())
        if self._cut:
            return [child for child in found if child.span_id not in self._cut]
        return found

    def depth(self, span: Span) -> int:
        return self._places[span.span_id].depth

    def above(self, span: Span) -> Span | None:
        """Return the nearest span above in :data:`WORK`."""
        return self._places[span.span_id].above

    def asides(self, span: Span) -> int:
        return self._places[span.span_id].asides

    def agent(self, span: Span) -> str:
        """Return the nearest agent name on or above the span, or ``""``."""
        return self._places[span.span_id].agent

    def is_within(self, span: Span, outer: Span) -> bool:
        """Return whether a span is this outer span or a span below it."""
        above: Span | None = span
        while above is not None and self.depth(above) > self.depth(outer):
            above = self.parent(above)
        return above is outer

    def around(self, spans: Iterable[Span]) -> set[str]:
        """Return the IDs of spans and of all spans above them, in linear time."""
        found: set[str] = set()
        for span in spans:
            above: Span | None = span
            while above is not None and above.span_id not in found:
                found.add(above.span_id)
                above = self.parent(above)
        return found

    def below(self, span: Span) -> Sequence[Span]:
        """Return all descendants in the order of :attr:`spans`. Do not change the list."""
        known = self._below.get(span.span_id)
        if known is not None:
            return known
        found: list[Span] = []
        frontier = [span]
        while frontier:
            inner = self.children(frontier.pop())
            found.extend(inner)
            frontier.extend(inner)
        if len(found) > 1:
            position = self._position
            if not position:
                position = self._position = {span.span_id: at for at, span in enumerate(self.spans)}
            found.sort(key=lambda inner: position[inner.span_id])
        self._below[span.span_id] = found
        return found

    def _find_roots(self) -> tuple[Span, ...]:
        places = self._places
        runs = [span for span in self.spans if span.kind in RUNS and not places[span.span_id].in_run]
        outer = [run for run in runs if not places[run.span_id].asides]
        if outer:
            return tuple(outer)
        tops = [span for span in self.spans if span.kind in WORK and places[span.span_id].above is None]
        return tuple(runs if runs and not any(span.kind is Kind.LLM for span in tops) else tops)

    def _settle(self, span: Span) -> None:
        path: dict[str, Span] = {}
        at: Span | None = span
        while at is not None and at.span_id not in self._places:
            if (entry := at.span_id) in path:  # in a loop of parents, the earliest span becomes topmost
                first = min(dropwhile(lambda inner: inner.span_id != entry, path.values()), key=_EARLIEST)
                self._cut.add(first.span_id)
                self._places[first.span_id] = _Place(agent=first.agent_name)
                self._settle(span)
                return
            path[at.span_id] = at
            at = self.by_id.get(at.parent_id)
        for at in reversed(path.values()):
            outer = self.by_id[at.parent_id]
            self._places[at.span_id] = _inherited(outer, self._places[outer.span_id], at)


def _inherited(outer: Span, place: _Place, inner: Span) -> _Place:
    kind = outer.kind
    return _Place(
        place.depth + 1,
        outer if kind in WORK else place.above,
        place.in_run or kind in RUNS,
        place.asides + (kind in ASIDES),
        inner.agent_name or place.agent,
    )
