"""Follow-up questions about a trace and its turn after a verdict (``judge.detail: failing``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.stored_traces import kept_trace
from pandaeval_collector.pipeline.line.understanding import DETAIL, jobs_of
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import JobRow, StoreReader
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing
from pandaeval_otel.normal.turns import of_turn

Place = tuple[str, Sequence[str]]
"""A trace, and spans named in a finding."""


def details(
    store: StoreReader, evaluator: Evaluator, verdict: Result, trace_ids: Sequence[str]
) -> tuple[list[Result], list[JobRow]]:
    """Return results without calls, and jobs; empty if the verdict passes and code found no failure."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for (unit, _), row in store.newest_results(trace_ids).items():
        rows.setdefault(unit.partition(":")[0], []).append(orjson.loads(row.body))
    place = _first_wrong(verdict) or _first_failing(trace_ids, rows)
    if place is None and _is_right(verdict):
        return [], []
    trace_id, spans = place or (trace_ids[-1], ())
    trace = _read(store, trace_id, verdict, rows.get(trace_id, ()))
    if trace is None:
        return [], []
    results, questions = evaluator.judged.details(trace)
    answers_in = ""
    if trace.turns and not trace.is_step:
        index = _turn_of(trace, spans)
        answers_in = trace.turns[index].span_id or trace.root_span_id
        more, of_turn_ = evaluator.judged.details_of_turn(trace, index)
        results, questions = results + more, questions + of_turn_
    return results, [*jobs_of(trace, questions, 0.0, **{DETAIL: answers_in})]


def _is_right(verdict: Result) -> bool:
    return verdict.success is True or not isinstance(verdict.finding, Score)


def _first_wrong(verdict: Result) -> Place | None:
    step = verdict.finding.metadata.get("blame")
    return None if step is None or _is_right(verdict) else (step["trace_id"], [step["span_id"]])


def _first_failing(trace_ids: Sequence[str], rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Place | None:
    for trace_id in trace_ids:
        for each in rows.get(trace_id, ()):
            if each["metadata"]["success"] is False and each["evaluator"]["kind"] != "llm":
                return trace_id, [*each["span_ids"], each["span_id"]]
    return None


def _read(store: StoreReader, trace_id: str, verdict: Result, rows: Sequence[Mapping[str, Any]]) -> Trace | None:
    own = [each for each in rows if each["level"] == "trace" and each["trigger"] != Trigger.SESSION_CHANGED.value]
    held = store.held(bytes.fromhex(trace_id))
    if not own or held is None:
        return None
    closing = Closing(Trigger(own[-1]["trigger"]), max(each["revision"] for each in own), own[-1]["late_spans"])
    trace = kept_trace(store.contents(bytes.fromhex(trace_id)), held[0], closing)
    return None if trace is None else replace(trace, session_id=verdict.unit.session_id)


def _turn_of(trace: Trace, spans: Sequence[str]) -> int:
    for span_id in spans:
        for index in range(len(trace.turns)):
            if any(span.span_id == span_id for span in of_turn(trace, index).spans):
                return index
    return len(trace.turns) - 1
