"""Telemetry faults in correct runs: missing content, history, results or spans.

Metrics must then report that they cannot decide.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_lab.drill.edits import CustomEdit, text_change
from pandaeval_lab.drill.fault import NotApplicableError, Subject, family
from pandaeval_lab.drill.raw import RawTrace, as_json
from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.wire.decode import value

_LEAST = 3
_KEPT = 40


def content_off(subject: Subject, rng: Random) -> CustomEdit:
    trace = subject.trace
    if trace.input is None and trace.output is None:
        raise NotApplicableError("no content was captured")
    texts = [message.text for span in trace.spans for message in (*(span.input or ()), *(span.output or ()))]
    texts += [span.system or "" for span in trace.spans]
    texts += [as_text(held) for call in trace.tool_calls for held in (call.arguments, call.result)]
    texts = [text for text in {*texts} if len(text) > _LEAST]

    def is_content(held: object) -> bool:
        text = as_text(held)
        return as_json(text) is not None or (len(text) > _LEAST and any(text in each or each in text for each in texts))

    def change(raw: RawTrace, before: Trace) -> None:
        for item in raw.items():
            for holder in (item, *getattr(item, "events", ())):
                for pair in [pair for pair in holder.attributes if _is_said(value(pair.value), is_content)]:
                    holder.attributes.remove(pair)
                    raw.touched.add(item.span_id.hex())
            if isinstance(item, LogRecord) and _is_said(value(item.body), is_content):
                item.body.Clear()

    def test(before: Trace, after: Trace) -> bool:
        has_content = after.input is not None or after.output is not None
        return not has_content and not any(call.has_result or call.has_arguments for call in after.tool_calls)

    return CustomEdit(change, test, "no content captured")


def _is_said(held: object, is_content: Callable[[object], bool]) -> bool:
    return isinstance(held, str | list | dict) and is_content(held)


def since_the_last_user(held: Any) -> Any:
    """Return instructions and the messages since the last user message; else ``held``."""
    if not isinstance(held, list) or not all(isinstance(each, dict) and "role" in each for each in held):
        return held
    users = [at for at, each in enumerate(held) if each["role"] in ("user", "human")]
    if not users:
        return held
    kept = [each for at, each in enumerate(held) if at >= users[-1] or each["role"] in ("system", "developer")]
    return kept if len(kept) < len(held) else held


def history_off(subject: Subject, rng: Random) -> CustomEdit:
    """Drop earlier conversation from model calls."""
    if not _repeats(subject.trace):
        raise NotApplicableError("no model call repeats the conversation before")
    return CustomEdit(
        lambda raw, before: raw.rewrite(since_the_last_user),
        lambda before, after: not _repeats(after) and after.output == before.output,
        "the conversation before is not repeated",
    )


def _repeats(trace: Trace) -> bool:
    """Return whether a model call repeats an earlier answer."""
    for span in trace.spans:
        roles = [message.role for message in span.input or ()]
        if "user" in roles and "assistant" in roles[: len(roles) - 1 - roles[::-1].index("user")]:
            return True
    return False


def results_truncated(subject: Subject, rng: Random) -> CustomEdit:
    results = [
        call.result for call in subject.trace.tool_calls if call.has_result and len(as_text(call.result)) > 2 * _KEPT
    ]
    if not results:
        raise NotApplicableError("no result is long enough to be cut")
    changes = [text_change(each, _cut(each)) for each in results if isinstance(each, str)]

    def cut(held: Any) -> Any:
        if isinstance(held, dict | list):
            return _cut(held) if held in results else held
        for change in changes:
            held = change(held)
        return held

    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(cut)

    def test(before: Trace, after: Trace) -> bool:
        return all(len(as_text(call.result)) <= 2 * _KEPT for call in after.tool_calls)

    return CustomEdit(change, test, f"results cut to {_KEPT} characters")


def _cut(result: Any) -> str:
    return f"{as_text(result)[:_KEPT]}..."


def spans_lost(subject: Subject, rng: Random) -> CustomEdit:
    spans = [span.span_id for span in subject.trace.spans if span.kind in (Kind.TOOL, Kind.LLM) and span.parent_id]
    if not spans:
        raise NotApplicableError("the run has no span below another")
    lost = {*rng.sample(spans, max(1, len(spans) // 2))}
    return CustomEdit(
        lambda raw, before: _drop(raw, lost),
        lambda before, after: not lost & {span.span_id for span in after.spans},
        f"{len(lost)} of {len(subject.trace.spans)} spans lost",
    )


def _drop(raw: RawTrace, lost: set[str]) -> None:
    """Remove spans with their descendants and log records; parents count as touched."""
    gone = {*lost}
    for span in raw.spans():  # a child that starts a few clock ticks before its parent stays, without a parent
        if span.span_id.hex() in gone:
            raw.touched.add(span.parent_span_id.hex())
        elif span.parent_span_id.hex() in gone:
            gone.add(span.span_id.hex())
    for held in [*raw._holders(logs=False), *raw._holders(logs=True)]:
        for item in [item for item in held if item.span_id.hex() in gone]:
            held.remove(item)


FAULTS = family("course", content_off, history_off, results_truncated, spans_lost)
