"""What came of a run, read from its spans: what calls and searches gave back, and what the agent answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.neutral import elided, one_line
from pandaeval_collector.judge.redact import redact
from pandaeval_otel.model import Kind, ToolCall, Trace

_RESULTS = 1200
"""Characters that all results share; the record shows them at greater length."""
_SHORTEST = 60
_MOST = 20
"""Of more results than this the first and the last half are told."""
_ANSWER = 800
_OUTCOME = 2000
_LONGEST = 20_000
"""Characters of one text that are looked at: more than is ever shown."""


def outcome(trace: Trace) -> dict[str, Any]:
    """``{results, answer}``, and ``{error}`` of a run that ended with one: strictly what was recorded, shortened and
    without secrets."""
    found: dict[str, Any] = {"results": _results(trace) or "nothing was called", "answer": _answer(trace)}
    if trace.error is not None:
        found["error"] = _short(trace.error, _ANSWER)
    return found


def as_sentences(found: dict[str, Any]) -> str:
    """An outcome for people, at most about 2000 characters."""
    results = found["results"] if isinstance(found["results"], str) else "; ".join(found["results"])
    ended = f" The run ended with an error: {found['error']}." if "error" in found else ""
    return elided(f"{results.rstrip('.')}.{ended} The agent answered: {found['answer']}", _OUTCOME)


def _results(trace: Trace) -> list[str]:
    told = [_told(call) for call in trace.tool_calls] + list(_documents(trace))
    half = _MOST // 2
    shown = told if len(told) <= _MOST else [*told[:half], *told[-half:]]
    room = max(_SHORTEST, _RESULTS // max(1, len(shown)))
    lines = [_short(each, room) for each in shown]
    return lines if len(told) <= _MOST else [*lines[:half], f"({len(told) - _MOST} more)", *lines[half:]]


def _told(call: ToolCall) -> str:
    if failed(call):
        return f"{call.name} failed: {call.error or as_text(call.result)}"
    return f"{call.name}: {as_text(call.result) if call.has_result else '(not captured)'}"


def _documents(trace: Trace) -> Iterator[str]:
    for span in trace.spans:
        if span.kind is Kind.RETRIEVAL and span.documents:
            yield f"{span.name} found: {'; '.join(as_text(each) for each in span.documents)}"


def _answer(trace: Trace) -> str:
    said = [turn.assistant for turn in trace.turns if turn.assistant and turn.assistant.strip()]
    return _short(" / ".join(said) or (trace.output or "").strip() or "(none)", _ANSWER)


def _short(text: str, most: int) -> str:
    """One line of about ``most`` characters. Secrets are taken out before it is cut: half of one passes for none."""
    return elided(one_line(redact(elided(text, _LONGEST))), most)
