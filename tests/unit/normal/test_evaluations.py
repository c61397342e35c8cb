"""Third-party results appear once, with their source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from pandaeval_collector.pipeline.line.listing import listed
from pandaeval_collector.show.report.detail import describe, detail
from pandaeval_collector.show.view.lines import others_of_session, step_lines
from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import RawEvent, RawLog, RawSpan, Scope
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import build_trace

TRACE, ROOT, OTHER = "a" * 32, "b" * 16, "c" * 16
RESULT = {"gen_ai.evaluation.name": "Faithfulness", "gen_ai.evaluation.score.value": 0.1}
LABEL = {"gen_ai.evaluation.score.label": "fail", "gen_ai.evaluation.explanation": "made up"}
ANSWER = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.input.messages": '[{"role": "user", "content": "Hi"}]',
    "gen_ai.output.messages": '[{"role": "assistant", "content": "Hello."}]',
}


def event(**more: Any) -> RawEvent:
    return RawEvent("gen_ai.evaluation.result", 2, {**RESULT, **LABEL, **more})


def log(**more: Any) -> RawLog:
    attributes = {**RESULT, **LABEL, **more}
    return RawLog(TRACE, ROOT, "gen_ai.evaluation.result", 3, "x", attributes, scope=Scope("deepeval"))


def read(*, events: Sequence[RawEvent] = (), spans: Sequence[RawSpan] = (), logs: Sequence[RawLog] = ()) -> Trace:
    root = RawSpan(TRACE, ROOT, "", "shop", 1, 9, attributes=ANSWER, scope=Scope("strands"), events=tuple(events))
    trace = build_trace(Evidence((root, *spans), tuple(logs), "d"))
    assert trace is not None
    assert (trace.input, trace.output, trace.llm_calls) == ("Hi", "Hello.", 0)
    return trace


def own_span(**more: Any) -> RawSpan:
    attributes = {"gen_ai.operation.name": "evaluation", **RESULT, **LABEL, **more}
    return RawSpan(TRACE, OTHER, ROOT, "evaluation", 2, 3, attributes=attributes, scope=Scope("ragas"))


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"events": [event()]}, "strands"),
        ({"spans": [own_span()]}, "ragas"),
        ({"logs": [log()]}, "deepeval"),
        ({"events": [event(**{"gen_ai.evaluation.evaluator.id": "judge-7"})]}, "judge-7"),
        ({"events": [event()], "spans": [own_span()], "logs": [log()]}, "deepeval"),
    ],
)
def test_each_evaluation_appears_once_with_its_source(given: dict[str, Any], source: str) -> None:
    (found,) = read(**given).evaluations
    assert (found.name, found.source, found.score, found.label, found.span_id) == (
        "Faithfulness",
        source,
        0.1,
        "fail",
        ROOT,
    )


def test_evaluations_with_different_names_stay_separate() -> None:
    trace = read(events=[event(), event(**{"gen_ai.evaluation.name": "Tone"})])
    assert [each.name for each in trace.evaluations] == ["Faithfulness", "Tone"]


@pytest.mark.parametrize("missing", [[*RESULT][:1], [*RESULT][1:], [*RESULT]])
def test_evaluation_without_a_name_or_without_a_verdict_is_ignored(missing: list[str]) -> None:
    attributes = {**RESULT, **dict.fromkeys(missing)}
    assert read(events=[RawEvent("gen_ai.evaluation.result", 2, attributes)]).evaluations == ()


def test_trace_list_contains_evaluations() -> None:
    row = orjson.loads(listed(read(events=[event()])).facts)
    assert row["others"] == [{"name": "Faithfulness", "source": "strands", "score": 0.1, "label": "fail"}]


def test_session_view_shows_evaluations_of_its_traces() -> None:
    others = [{"name": "Tone", "source": "strands", "score": None, "label": "kind"}]
    members = [{"trace_id": "t1", "evaluations": others}, {"trace_id": "t2", "evaluations": []}]
    assert [*others_of_session({"members": members})] == ["other evaluator strands: Tone kind (trace t1)"]


def test_description_detail_and_step_lines_show_evaluations() -> None:
    trace = read(events=[event()])
    assert describe(trace)["evaluations"][0]["source"] == "strands"
    shown = detail(trace, 1000)
    assert shown["evaluations"] == [{"name": "Faithfulness", "source": "strands", "score": 0.1, "label": "fail"}]
    lines = [*step_lines({"detail": shown, "results": []})]
    assert lines[-1] == "other evaluator strands: Faithfulness 0.1 fail"
