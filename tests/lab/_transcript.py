"""A session as readable messages and calls, without repeated history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.model import Kind, Message, Reasoning, Text, ToolCall, ToolRequest, ToolResponse, Trace


@dataclass(frozen=True, slots=True)
class Item:
    """A message or call. ``trace``: 0-based index."""

    role: str
    text: str
    trace: int = 0
    span_id: str = ""


def transcript(traces: Iterable[Trace]) -> list[Item]:
    """Return the items of traces in order, without repeats."""
    items: list[Item] = []
    seen: Counter[tuple[str, str]] = Counter()
    for place, trace in enumerate(traces):
        calls: dict[str, list[ToolCall]] = {}
        for call in trace.tool_calls:
            calls.setdefault(call.span_id, []).append(call)
        in_trace: set[tuple[str, str]] = set()
        in_calls = {_plain(value) for call in trace.tool_calls for value in (call.arguments, call.result)}
        for span in trace.spans:
            given = [("instructions", span.system)] if span.system else []
            given += [part for message in span.input or () for part in _parts(message)]
            of_span: Counter[tuple[str, str]] = Counter()
            for part in given:
                of_span[part] += 1
                if seen[part] < of_span[part] and not (part[0] in ("call", "result") and _bare(part[1]) in in_calls):
                    items.append(Item(*part, place))
                seen[part] = max(seen[part], of_span[part])
            outer = span.kind in (Kind.AGENT, Kind.WORKFLOW)  # inner spans come first
            for part in (part for message in span.output or () for part in _parts(message) if not outer):
                if part[0] not in ("call", "result") and part not in in_trace:
                    in_trace.add(part)
                    seen[part] += 1
                    items.append(Item(*part, place, span.span_id))
            items += [Item("call", called(call), place, call.span_id) for call in calls.pop(span.span_id, ())]
            items += [Item("document", str(each), place) for each in getattr(span, "documents", ())]
        items += [Item("call", called(call), place) for rest in calls.values() for call in rest]
        for turn in trace.turns:
            for part in (("user", turn.user or ""), ("assistant", turn.assistant or "")):
                if part[1] and (part not in in_trace if part[0] == "assistant" else not seen[part]):
                    in_trace.add(part)
                    seen[part] += 1
                    items.append(Item(*part, place))
        if trace.error is not None:
            items.append(Item("the run's error", trace.error, place))
    return items


def called(call: ToolCall) -> str:
    """Return a call with arguments and outcome."""
    arguments = _plain(call.arguments) if call.has_arguments else "arguments not captured"
    result = _plain(call.result) if call.has_result else "not captured"
    return f"{call.name}({arguments})\n    -> {f'ERROR {call.error}; ' if call.error else ''}{result}"


def _parts(message: Message) -> Iterator[tuple[str, str]]:
    role = "instructions" if message.role in ("system", "developer") else message.role
    for part in message.parts:
        if isinstance(part, Text) and part.text.strip():
            yield role, part.text
        elif isinstance(part, Reasoning):
            yield "thought", part.text
        elif isinstance(part, ToolRequest):
            yield "call", f"{part.name} {_plain(part.arguments)}"
        elif isinstance(part, ToolResponse):
            yield "result", f"{part.name} {_plain(part.result)}"


def _bare(text: str) -> str:
    return text.partition(" ")[2]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
