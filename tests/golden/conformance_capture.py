"""A capture as normal traces and as searchable text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

from pandaeval_lab.replay.files import BadLine, Input
from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.evidence import Evidence, gather
from pandaeval_otel.normal.trace import build_trace, is_genai
from pandaeval_otel.wire.splitting import split_logs, split_traces

_NOISE = re.compile(r"[\\\"'\s]+")
_DEFINITION = re.compile(r"definition|functions?\b|\btools?\b(?!\.name)|tool_names|tools_names", re.IGNORECASE)


def squeezed(text: str) -> str:
    """Remove blanks, quotes and backslashes."""
    return _NOISE.sub("", text)


@dataclass(frozen=True)
class Recorded:
    """One trace, as read and as sent."""

    trace: Trace
    evidence: Evidence

    @property
    def genai(self) -> bool:
        """Return whether it is an agent's trace."""
        return is_genai(self.trace)

    @cached_property
    def text(self) -> str:
        """Return the squeezed text of spans and log records."""
        return squeezed("\n".join(_said(self.evidence)))

    @cached_property
    def names(self) -> frozenset[str]:
        """Return span names, their words and attribute values."""
        found: set[str] = set()
        for span in self.evidence.spans:
            found.update((span.name, *re.split(r"[\s.]", span.name)))
            found.update(str(value) for key, value in span.attributes.items() if not _DEFINITION.search(key))
        for log in self.evidence.logs:
            found.update(_strings(log.body))
        return frozenset(found)


def read(path: Path) -> list[Recorded]:
    """Return the traces by start. Raises :class:`AssertionError` for a bad line."""
    chunks: dict[bytes, list[tuple[bool, bytes]]] = {}
    for request in Input(str(path)).requests():
        assert not isinstance(request, BadLine), request
        split = split_logs(request.data) if request.logs else split_traces(request.data)
        for fragment in split.fragments:
            chunks.setdefault(fragment.trace_id, []).append((fragment.logs, fragment.chunk))
    found = []
    for stored in chunks.values():
        evidence = gather(stored)
        trace = build_trace(evidence)
        if trace is not None:
            found.append(Recorded(trace, evidence))
    return sorted(found, key=lambda recorded: (recorded.trace.start_ns, recorded.trace.trace_id))


def runs(recorded: Iterable[Recorded]) -> Iterator[list[Recorded]]:
    """Group traces into turns; a turn ends with a call without tools."""
    group: list[Recorded] = []
    for one in recorded:
        if not one.genai:
            continue
        group.append(one)
        if not one.trace.ends_in_tool_call:
            yield group
            group = []
    if group:
        yield group


def object_signatures(value: dict[str, Any]) -> list[str]:
    """Return squeezed forms of a small JSON object."""
    pairs = [f"{squeezed(key)}:{squeezed(json.dumps(item, ensure_ascii=False))}" for key, item in value.items()]
    return (
        [f"{{{','.join(order)}}}" for order in permutations(pairs)] if len(pairs) <= 4 else [f"{{{','.join(pairs)}}}"]
    )


def value_signatures(value: Any) -> list[str]:
    """Return squeezed forms of a tool result."""
    exact = squeezed(json.dumps(value, ensure_ascii=False))
    return [exact, re.sub(r"(\d)\.0(?=[,}\]])", r"\1", exact)]


def any_in(signatures: Iterable[str], text: str) -> bool:
    return any(signature in text for signature in signatures)


def _said(evidence: Evidence) -> Iterator[str]:
    for span in evidence.spans:
        yield f"{span.name}\n{span.status_message}"
        yield from _values(span)
    for log in evidence.logs:
        yield _text(log.body)
        for value in log.attributes.values():
            yield _text(value)


def _values(span: RawSpan) -> Iterator[str]:
    for value in span.attributes.values():
        yield _text(value)
    for event in span.events:
        for value in event.attributes.values():
            yield _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
