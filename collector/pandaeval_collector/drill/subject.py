"""A run that looks good, as faults look at it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pandaeval_collector.pipeline.line.stored_traces import Part
from pandaeval_otel.model import Kind, Trace


class NotApplicableError(Exception):
    """A fault cannot be planted into a run; the text says why."""


Load = Callable[[], tuple[Sequence[Trace], Sequence[Part]]]


@dataclass
class Subject:
    """A run and what stands before it. ``load`` reads its session's earlier runs, oldest first: when a fault first asks
    for them, since most ask for something in the run's own answer before. ``others``: answers of runs of other
    sessions."""

    trace: Trace
    parts: Sequence[Part]
    load: Load = lambda: ((), ())
    others: Sequence[str] = ()

    @property
    def earlier(self) -> Sequence[Trace]:
        """The session's earlier runs."""
        return self._loaded[0]

    @property
    def earlier_parts(self) -> Sequence[Part]:
        """Their messages."""
        return self._loaded[1]

    @property
    def answer(self) -> str:
        """Raises :class:`NotApplicableError` where the run has no answer."""
        if not (self.trace.output or "").strip():
            raise NotApplicableError("the run has no captured answer")
        return self.trace.output or ""

    @cached_property
    def _loaded(self) -> tuple[Sequence[Trace], Sequence[Part]]:
        return self.load()

    @cached_property
    def known(self) -> str:
        """What the agent had before its answer: instructions, messages, arguments and results, this session's earlier
        runs with their answers included."""
        found = [text for trace in self.earlier for text in (*_before(trace), trace.output or "")]
        return "\n".join([*found, *_before(self.trace)])

    @cached_property
    def written(self) -> str:
        """Everything that stands in the spans of this session so far, in whichever spelling."""
        return "\n".join(data.decode(errors="replace") for _, data in (*self.earlier_parts, *self.parts))

    def knows(self, value: str) -> bool:
        """Whether a value stands anywhere in the session, this run's answer included."""
        return value.casefold() in self.known.casefold() or value.casefold() in self.written.casefold()


def spelled(value: Any) -> str:
    """A value as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _before(trace: Trace) -> Iterator[str]:
    for span in trace.spans:
        if span.system:
            yield span.system
        if span.kind in (Kind.LLM, Kind.AGENT, Kind.WORKFLOW):
            for message in span.input or ():
                yield message.text
                yield from (spelled(each.result) for each in message.tool_responses)
        yield from (spelled(document) for document in span.documents)
    for call in trace.tool_calls:
        yield f"{spelled(call.arguments)}\n{spelled(call.result)}"
