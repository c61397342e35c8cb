"""Rows of the store's lists as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandaeval_collector.show.api.shapes import SessionRow, TraceRow
from pandaeval_collector.store.found import Listed, ListedSession
from pandaeval_collector.store.listed import NO_SCORE


def trace_row(row: Listed) -> TraceRow:
    """A trace."""
    return TraceRow(**trace_fields(row))


def trace_fields(row: Listed) -> dict[str, Any]:
    """The fields of a :class:`TraceRow`."""
    facts = row.facts
    return {
        "trace_id": facts["id"],
        "session_id": row.session,
        "agent": facts.get("agent", ""),
        "service": facts.get("service", ""),
        "environment": row.environment or None,
        "user": facts.get("user"),
        "started_at": facts["at"],
        "duration_us": facts["us"],
        "error": facts.get("error"),
        "input": facts.get("in"),
        "output": facts.get("out"),
        "spans": facts["spans"],
        "llm_calls": facts["llm"],
        "tool_calls": facts["tools"],
        "complete": not facts.get("incomplete", False),
        "failed": row.failed,
        "failures": row.failures,
        "worst": None if row.worst >= NO_SCORE else row.worst,
        "results": by_urgency(row.results),
    }


def session_row(row: ListedSession) -> SessionRow:
    """A session."""
    return SessionRow(**session_fields(row))


def session_fields(row: ListedSession) -> dict[str, Any]:
    """The fields of a :class:`SessionRow`."""
    return {
        "session_id": row.id,
        "traces": row.traces,
        "failed_traces": row.failed_traces,
        "first_at": row.first_ms,
        "last_at": row.last_ms,
        "failed": row.failed,
        "worst": None if row.worst is None else trace_row(row.worst),
        "results": by_urgency(row.results),
    }


def by_urgency(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Failed results first, then by score, then what has none."""

    def urgency(result: Mapping[str, Any]) -> tuple[bool, float, str]:
        score = result.get("score")
        return result.get("success") is not False, 2.0 if score is None else float(score), str(result["metric"])

    return [dict(result) for result in sorted(results.values(), key=urgency)]
