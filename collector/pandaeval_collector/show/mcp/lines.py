"""Sessions, traces and results in lines for a coding agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.show.mcp.fencing import said

Row = Mapping[str, Any]
_MOST_CALLS = 30


def session_line(row: Row) -> str:
    """``session "s" (3 traces, 1 failed), agent "desk": tool_loop 0.17 (fail) "went round" in trace 4bf9…``."""
    worst = row["worst"]
    name = f'session "{said(row["session_id"], 120)}"' if row["session_id"] is not None else "no session"
    head = f"{name} ({row['traces']} traces, {row['failed_traces']} failed)"
    own = [result_text(each, 160) for each in row["results"] if each.get("success") is False][:2]
    about = f": {'; '.join(own)}" if own else ""
    return head + about if worst is None else f"{head}{about}; worst {trace_line(worst)}"


def trace_line(row: Row) -> str:
    """One line on a trace, with its worst result."""
    ended = f", ended with the error {said(row['error'], 160)}" if row["error"] is not None else ""
    scored = next(
        (result_text(each, 200) for each in row["results"] if each["outcome"] == "scored"), "nothing is scored"
    )
    return (
        f'trace {row["trace_id"]} of agent "{said(row["agent"], 80)}" at {moment(row["started_at"])}{ended}: {scored}'
    )


def result_text(result: Row, most: int) -> str:
    """``tool_loop 0.17 (fail): reason``."""
    name, reason = said(f"{result['level']}.{result['metric']}", 80), said(result["reason"], most)
    if result.get("score") is None:
        return f"{name} {result['outcome']} ({result['why']}): {reason}"
    verdict = {True: "pass", False: "fail"}.get(result.get("success"), "no threshold")  # type: ignore[arg-type]
    return f"{name} {result['score']:.2f} ({verdict}): {reason}"


def trace_lines(row: Row) -> Iterator[str]:
    """What is known of a trace, from what failed to what was said."""
    yield (
        f'agent "{said(row["agent"], 80)}", service "{said(row["service"], 80)}", session '
        f'"{said(row["session_id"] or "-", 120)}", {moment(row["started_at"])}, {row["duration_us"] / 1e6:.1f} s, '
        f"{row['llm_calls']} model calls, {row['tool_calls']} tool calls, {row['spans']} spans"
        + ("" if row["complete"] else ", incomplete")
    )
    if row["error"] is not None:
        yield f"the run itself failed: {said(row['error'], 400)}"
    failed = [each for each in row["results"] if each.get("success") is False]
    yield f"{len(failed)} of {len(row['results'])} results failed" + (":" if failed else "; the others:")
    yield from (f"- {result_text(each, 400)}" for each in failed)
    yield f"asked: {said(row['input'], 500) if row['input'] is not None else 'not captured'}"
    yield f"answered: {said(row['output'], 500) if row['output'] is not None else 'not captured'}"
    yield from _calls(row)
    yield from (f"- {result_text(each, 120)}" for each in row["results"] if each.get("success") is not False)


def _calls(row: Row) -> Iterator[str]:
    told = row.get("understood")
    if told is None:
        yield "its spans are not kept any more: no tool calls to show"
        return
    calls = told["tool_calls"]
    for number, call in enumerate(calls[:_MOST_CALLS], 1):
        ended = f"ERROR {said(call['error'], 160)}" if call["error"] is not None else said(call["result"], 120)
        yield f"call {number}: {said(call['name'], 60)}({said(call['arguments'], 160)}) → {ended}"
    if len(calls) > _MOST_CALLS:
        yield f"… {len(calls) - _MOST_CALLS} more calls"


def moment(milliseconds: int) -> str:
    """RFC 3339, in whole seconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # spans may say any time
        return "an impossible time"
