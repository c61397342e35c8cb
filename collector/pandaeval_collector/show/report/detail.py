"""A trace for programs and for its page, with conversation and waterfall rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from google.protobuf.message import DecodeError
from zstandard import ZstdError

from pandaeval_collector.base.prices import usd_of
from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_collector.show.report.text import TextPool, written
from pandaeval_collector.show.view.results import ShownResult
from pandaeval_collector.store.finding import Finder
from pandaeval_otel.model import (
    Captured,
    Kind,
    Media,
    Message,
    OtherPart,
    Reasoning,
    Span,
    Text,
    ToolRequest,
    ToolResponse,
    Trace,
)

_OUTLINE = ("id", "up", "kind", "name", "tool", "agent", "error", "at", "us", "tokens", "usd")
_OF_CALL = ("id", "name", "arguments", "result", "error", "span_id", "agent")
ROOM = 400_000
"""Characters for all texts of a stored trace together."""
MAX_SPANS = 400
"""Maximum rows of a trace. Omitted rows are counted."""
_MAX_PARTS, _MAX_TURNS, _MAX_CALLS = 8, 30, 2000
_KEPT_FIRST = {Kind.AGENT: 1, Kind.WORKFLOW: 1, Kind.TOOL: 1, Kind.RETRIEVAL: 2, Kind.GUARDRAIL: 2, Kind.LLM: 2}
Row = dict[str, Any]


def describe(trace: Trace) -> dict[str, Any]:
    """Return a trace's JSON object. ``None``: not captured."""
    return {
        "trace_id": trace.trace_id,
        "session_id": trace.session_id,
        "user_id": trace.user_id,
        "root_span_id": trace.root_span_id,
        "agent": trace.agent,
        "agents": list(trace.agents),
        "service": trace.service,
        "status": trace.status,
        "complete": trace.complete,
        "input": trace.input,
        "output": trace.output,
        "turns": [{"user": turn.user, "assistant": turn.assistant} for turn in trace.turns],
        "tool_calls": [{name: getattr(call, name) for name in _OF_CALL} for call in trace.tool_calls],
        "tools": [
            {name: getattr(tool, name) for name in ("name", "description", "parameters")} for tool in trace.tools
        ],
        "reasoning": list(trace.reasoning),
        "llm_calls": trace.llm_calls,
        "models": list(trace.models),
        "tokens": {"input": trace.usage.input, "output": trace.usage.output},
        "dialects": list(trace.dialects),
        "spans": len(trace.spans),
        "dropped_attributes": trace.dropped_attributes,
        "notes": list(trace.notes),
        "evaluations": [asdict(each) for each in trace.evaluations],
    }


def in_order(trace: Trace) -> list[tuple[int, Span, bool]]:
    """Return (depth, span, looped) of all spans, parents first, siblings by start. Spans in a parent loop come last."""
    children: dict[str, list[int]] = {}
    ids = {span.span_id: index for index, span in enumerate(trace.spans)}
    for index, span in enumerate(trace.spans):
        parent = span.parent_id if span.parent_id in ids and span.parent_id != span.span_id else ""
        children.setdefault(parent, []).append(index)
    ordered: list[tuple[int, Span, bool]] = []
    seen: set[int] = set()
    stack = [(index, 0) for index in reversed(children.get("", []))]
    while stack:
        index, depth = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        span = trace.spans[index]
        ordered.append((depth, span, False))
        stack.extend((child, depth + 1) for child in reversed(children.get(span.span_id, [])))
    ordered.extend((0, trace.spans[index], True) for index in ids.values() if index not in seen)
    return ordered


def stored_trace(parts: Sequence[Part]) -> Trace | None:
    """Return the trace in these parts, else ``None``. Raises decoding errors."""
    return rebuilt(parts).trace if parts else None


def readable_trace(finder: Finder, trace_id: bytes) -> Trace | None:
    """Return a stored trace; ``None`` if its spans are gone or damaged."""
    try:
        return stored_trace(finder.contents(trace_id))
    except (ZstdError, DecodeError, ValueError):
        return None


def detail(trace: Trace, room: int) -> dict[str, Any]:
    """Return a trace as JSON-ready data.

    ``room``: characters of all texts.

    ``spans``: rows with ``id``, ``up`` (parent's row, -1 for none), ``depth``, ``kind``, ``name``, ``at`` and ``us``
    (relative start and duration in microseconds), ``usd`` (list price). Texts are positions in ``texts``. ``turns``:
    input, answer and answering span. ``calls``: span ids of tool calls in order.
    """
    texts = TextPool(room)
    turns = [
        [texts.add_optional(turn.user), texts.add_optional(turn.assistant), turn.span_id]
        for turn in trace.turns[:_MAX_TURNS]
    ]
    rows = _rows(trace, texts)
    return {
        "turns": turns,
        "more_turns": len(trace.turns) - len(turns),
        "error": texts.add_optional(trace.error),
        "spans": rows,
        "left_out": len(trace.spans) - len(rows),
        "ends_in_tool_call": trace.ends_in_tool_call,
        "calls": [call.span_id for call in trace.tool_calls[:_MAX_CALLS]],
        "texts": texts.kept,
        "notes": [clean(note) for note in trace.notes],
        "dialects": list(trace.dialects),
        "models": [clean(model) for model in trace.models[:20]],
        "evaluations": [
            {"name": clean(each.name), "source": clean(each.source), "score": each.score, "label": clean(each.label)}
            for each in trace.evaluations
        ],
    }


def outline(trace: Trace, room: int) -> dict[str, Any]:
    """Return a trace's turns, and its steps without their texts. ``room``: characters of all texts."""
    whole = detail(trace, room)
    steps = [{name: row[name] for name in _OUTLINE if name in row} for row in whole["spans"]]
    spoken = max((at for turn in whole["turns"] for at in turn[:2] if at is not None), default=-1)
    kept = {name: whole[name] for name in ("turns", "more_turns", "left_out", "ends_in_tool_call", "calls")}
    return {"id": trace.trace_id, **kept, "spans": steps, "texts": whole["texts"][: spoken + 1]}


def _rows(trace: Trace, texts: TextPool) -> list[Row]:
    ordered = in_order(trace)
    kept = _kept([span for _, span, _ in ordered])
    rows: list[Row] = []
    at: dict[str, int] = {}
    for depth, span, looped in ordered:
        if span.span_id not in kept:
            continue
        at[span.span_id] = len(rows)
        up = -1 if looped or not depth else at.get(span.parent_id, -1)
        rows.append({"up": up, "depth": depth, **_row(span, trace.start_ns, texts)})
    return rows


def _kept(spans: Sequence[Span]) -> set[str]:
    """Return the ids of about :data:`MAX_SPANS` spans with all parents.

    Errors come first, then agents and tools, then model calls, then other steps.
    """
    if len(spans) <= MAX_SPANS:
        return {span.span_id for span in spans}
    by_id = {span.span_id: span for span in spans}
    kept: set[str] = set()
    for span in sorted(spans, key=lambda span: 0 if span.error else _KEPT_FIRST.get(span.kind, 3)):
        if len(kept) >= MAX_SPANS:
            break
        above: Span | None = span
        while above is not None and above.span_id not in kept:
            kept.add(above.span_id)
            above = by_id.get(above.parent_id)
    return kept


def _row(span: Span, start_ns: int, texts: TextPool) -> Row:
    row: Row = {
        "id": span.span_id,
        "kind": span.kind.value,
        "name": excerpt(span.name, 120),
        "at": (span.start_ns - start_ns) // 1000,
        "us": max(0, span.end_ns - span.start_ns) // 1000,
    }
    if span.error is not None:
        row["error"] = texts.add(span.error)
    if span.tool_name:
        row["tool"] = excerpt(span.tool_name, 80)
    if span.kind is Kind.TOOL or span.tool_name:
        row |= {"args": _captured(span.arguments, texts), "result": _captured(span.result, texts)}
    if span.agent_name:
        row["agent"] = excerpt(span.agent_name, 80)
    if span.model:
        row["model"] = excerpt(span.model, 80)
    if span.usage is not None:
        row["tokens"] = [span.usage.input, span.usage.output]
        if (usd := usd_of(span.usage, span.response_model, span.request_model)) is not None:
            row["usd"] = round(usd, 8)
    if span.system:
        row["system"] = texts.add(span.system)
    _add_messages(row, "in", span.input, texts)
    _add_messages(row, "out", span.output, texts)
    if span.documents:
        row["documents"] = texts.add(written(list(span.documents)))
    return row


def _add_messages(row: Row, side: str, messages: Iterable[Message] | None, texts: TextPool) -> None:
    parts: list[tuple[str, int]] = []
    for message in messages or ():
        parts.extend(_parts(message, texts))
    if parts:
        row[side] = parts[-_MAX_PARTS:]
    if len(parts) > _MAX_PARTS:
        row[f"{side}_more"] = len(parts) - _MAX_PARTS


def _captured(value: Captured | None, texts: TextPool) -> int | None:
    return None if value is None else texts.add(written(value.value))


def _parts(message: Message, texts: TextPool) -> Iterable[tuple[str, int]]:
    role = clean(message.role[:30])
    for part in message.parts:
        match part:
            case Text(text):
                yield role, texts.add(text)
            case Reasoning(text):
                yield "thinking", texts.add(text)
            case ToolRequest(name, arguments):
                yield f"asks for {excerpt(name, 60)}", texts.add(written(arguments))
            case ToolResponse(result, _, name):
                yield f"result of {excerpt(name, 60)}" if name else "result", texts.add(written(result))
            case Media(modality, uri):
                yield role, texts.add(f"[{modality} {uri}]".replace(" ]", "]"))
            case OtherPart(type_, value):
                part_text = "[not captured]" if type_ == "not_captured" else f"[{type_}] {written(value)}"
                yield role, texts.add(part_text)


def content(trace: Trace | None, room: int, results: Iterable[ShownResult]) -> dict[str, Any]:
    shown = {} if trace is None else detail(trace, room)
    return {**shown, "results": [result.full for result in results]}
