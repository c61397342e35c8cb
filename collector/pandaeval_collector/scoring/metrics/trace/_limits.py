"""Limits on a judge's score from facts that code knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import ends_run
from pandaeval_collector.analysis.rules.response_recovery import admits_failure, lost_at, was_to_change
from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_collector.base.score import Score
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.redact import redact
from pandaeval_collector.judge.sanitize import one_line
from pandaeval_collector.judge.shorten import elided
from pandaeval_collector.scoring.metrics.trace._facts import crashed
from pandaeval_otel.model import Kind, Trace, Turn

# The outcome of a run: results of calls and searches, and the agent's answer.
_RESULTS = 1200
"""Maximum characters of all results. The record shows more."""
_ANSWER = 800
_OUTCOME = 2000
_LONGEST = 20_000
"""Maximum characters read from a text, more than are ever shown."""
LEFT_UNDONE = 0.49
"""Maximum score if the user got nothing, or if an action failed."""
NOT_KNOWN = 0.74
"""Maximum score if the agent could not find the information."""


def outcome(trace: Trace) -> str:
    """Return results, answer and final error of a run for people, redacted, at most about 2000 characters."""
    answers = [turn.assistant for turn in trace.turns if turn.assistant and turn.assistant.strip()]
    answer = _short(" / ".join(answers) or (trace.output or "").strip() or "(none)", _ANSWER)
    results = _results(trace) or "no tool was called"
    ended = "" if trace.error is None else f" The run ended with an error: {_short(trace.error, _ANSWER)}."
    return elided(f"{results.rstrip('.')}.{ended} The agent answered: {answer}", _OUTCOME)


def _results(trace: Trace) -> str:
    result_texts: list[str] = []
    for call in trace.tool_calls:
        if failed(call):
            result_texts.append(f"{call.name} failed: {call.error or as_text(call.result)}")
        else:
            result_texts.append(f"{call.name}: {as_text(call.result) if call.has_result else '(not captured)'}")
    result_texts += [
        f"{span.name} found: {'; '.join(as_text(each) for each in span.documents)}"
        for span in trace.spans
        if span.kind is Kind.RETRIEVAL and span.documents
    ]
    return (
        _short("; ".join(elided(each, _LONGEST // len(result_texts)) for each in result_texts), _RESULTS)
        if result_texts
        else ""
    )


def _short(text: str, most: int) -> str:
    """Redact before cutting, because a partial secret is not recognised."""
    return elided(one_line(redact(elided(text, _LONGEST))), most)


@dataclass(frozen=True, slots=True)
class Limit:
    """The best score that the facts allow.

    ``by``: for programs; ``reason``: for people; ``calls``: 1-based positions. A ``best`` of 1 is only a note.
    """

    best: float
    by: str
    reason: str
    calls: tuple[int, ...] = ()

    def applied(self, value: float, reason: str, metadata: Mapping[str, Any]) -> Score:
        """Return the lower of score and limit, noted in reason and metadata."""
        if value <= self.best:
            noted = {"noted": self.reason} if self.best == 1.0 and self.reason else {}
            return Score(value, reason, {**metadata, **noted})
        return Score(
            self.best,
            f"capped at {self.best:.4g}: {self.reason}. {reason}",
            {**metadata, "capped_by": self.by, "judged": value},
        )


NO_LIMIT = Limit(1.0, "", "")


def completion_limit(trace: Trace) -> Limit:
    """Return the highest possible completion of a task.

    At most 0.49: an error without an answer, or a changing call failed for good (:func:`lost_at`). At most 0.74: all
    calls failed, and no document was found. A later report or hand-over lifts the limit of failed calls.
    """
    if crashed(trace):
        return Limit(LEFT_UNDONE, "error_without_answer", "the run ended with an error and gave no answer")
    lost = lost_at(trace)
    if not lost:
        return NO_LIMIT
    undone = tuple(at + 1 for at in lost if was_to_change(trace, trace.tool_calls[at]))
    numbers = undone or tuple(at + 1 for at in lost)
    which = "call" if len(numbers) == 1 else "calls"
    reason = f"{which} {', '.join(map(str, numbers[:10]))} failed without recovery"
    ends = {span.span_id: span.end_ns for span in trace.spans}
    since = trace.tool_calls[lost[-1]].start_ns
    turns = trace.turns or (Turn(None, trace.output),)
    later = (turn.assistant for turn in turns if ends.get(turn.span_id, since) >= since)
    if any(answer is not None and admits_failure(answer) for answer in later) or any(
        ends_run(call.name) and not failed(call) for call in trace.tool_calls[lost[-1] + 1 :]
    ):
        return Limit(1.0, "failure_told", f"{reason}; the agent reported it or handed over", numbers)
    if undone:
        return Limit(LEFT_UNDONE, "failed_action", reason, undone)
    found_elsewhere = any(span.kind is Kind.RETRIEVAL and span.documents for span in trace.spans)
    nothing_known = all(failed(call) for call in trace.tool_calls) and not found_elsewhere
    return Limit(NOT_KNOWN if nothing_known else 1.0, "failed_call", reason, numbers)


def efficiency_limit(trace: Trace) -> Limit:
    """Return the share of calls that repeated no earlier call in vain, as the limit of a score."""
    found = tool_loop(trace)
    if not found.wasted_calls:
        return NO_LIMIT
    numbers = tuple(index + 1 for index in found.repeated)
    return Limit(
        1.0 - found.wasted_calls / found.calls,
        "repeated_calls",
        f"{found.wasted_calls} of {found.calls} calls repeated an earlier call without effect",
        numbers,
    )
