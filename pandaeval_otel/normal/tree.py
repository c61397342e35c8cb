"""The spans of a trace as a tree that survives missing parents, skewed clocks and parent loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandaeval_otel.model import Kind, Span

_RUNS = frozenset({Kind.AGENT, Kind.WORKFLOW})
_GENAI = frozenset({Kind.AGENT, Kind.WORKFLOW, Kind.LLM, Kind.TOOL, Kind.RETRIEVAL})


class Tree:
    """``spans``: by start time, parents before children that start at the same instant."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.by_id = {span.span_id: span for span in spans}
        self._depth: dict[str, int] = {}
        for span in spans:
            self._measure(span)
        self.spans = tuple(sorted(spans, key=lambda span: (span.start_ns, self._depth[span.span_id], span.span_id)))
        self._children: dict[str, list[Span]] = {}
        for span in self.spans:
            self._children.setdefault(span.parent_id, []).append(span)

    def parent(self, span: Span) -> Span | None:
        """The parent if it is here and really further up (a parent loop is cut where it closes)."""
        found = self.by_id.get(span.parent_id)
        if found is None or self._depth[found.span_id] >= self._depth[span.span_id]:
            return None
        return found

    def ancestors(self, span: Span) -> Iterator[Span]:
        """From the parent upwards."""
        above = self.parent(span)
        while above is not None:
            yield above
            above = self.parent(above)

    def children(self, span: Span) -> Sequence[Span]:
        return self._children.get(span.span_id, ())

    def below(self, span: Span) -> list[Span]:
        """All descendants of a span, in the order of :attr:`spans`."""
        inside: set[str] = set()
        frontier = [span]
        while frontier:
            at = frontier.pop()
            deeper = [child for child in self.children(at) if self._depth[child.span_id] > self._depth[at.span_id]]
            inside.update(child.span_id for child in deeper)
            frontier.extend(deeper)
        return [candidate for candidate in self.spans if candidate.span_id in inside]

    def top(self, kinds: frozenset[Kind]) -> list[Span]:
        """Spans of these kinds that have none of these kinds above them."""
        covered: set[str] = set()
        for span in sorted(self.spans, key=lambda span: self._depth[span.span_id]):
            above = self.parent(span)
            if above is not None and (above.kind in kinds or above.span_id in covered):
                covered.add(span.span_id)
        return [span for span in self.spans if span.kind in kinds and span.span_id not in covered]

    def roots(self) -> list[Span]:
        """What was run from outside: the outermost agents and workflows; without any, the topmost GenAI spans."""
        return self.top(_RUNS) or self.top(_GENAI)

    def _measure(self, span: Span) -> int:
        """Depth, iteratively: traces of thousands of nested spans and parent loops exist."""
        path: list[Span] = []
        seen: set[str] = set()
        at: Span | None = span
        while at is not None and at.span_id not in self._depth and at.span_id not in seen:
            path.append(at)
            seen.add(at.span_id)
            at = self.by_id.get(at.parent_id)
        depth = -1 if at is None or at.span_id in seen else self._depth[at.span_id]
        for passed in reversed(path):
            depth += 1
            self._depth[passed.span_id] = depth
        return self._depth[span.span_id]
