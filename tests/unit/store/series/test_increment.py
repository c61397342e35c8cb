"""Series increments per result kind."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import pytest

from pandaeval_collector.base.result import EvaluatorInfo, Result
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.store.series import (
    INSTRUMENTS,
    OTHER,
    Exemplar,
    Increment,
    Point,
    SeriesLabels,
    increments,
)
from support.results import CODE, JUDGE, SPAN_ID, TRACE_ID, result

EVALUATIONS, SCORE, REVISIONS = "pandaeval.evaluations", "pandaeval.evaluation.score", "pandaeval.revisions"
FAILURES = "pandaeval.failures"
JUDGED = {"pandaeval.judge.duration", "pandaeval.judge.tokens", "pandaeval.judge.cost"}
BROKEN = Score(0.0, label="error", failed=True)


def made(finding: Finding | None = None, **changes: Any) -> Result:
    return result("response", finding, **{"evaluator": CODE, **changes})


def counts(found: list[Increment]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for each in found:
        totals[each.instrument.name] = totals.get(each.instrument.name, 0) + each.count
    return totals


@pytest.mark.parametrize(
    ("one", "counted", "first", "added"),
    [
        (made(), (), (), {EVALUATIONS: 1, SCORE: 1}),
        (made(), ("response-1",), (), {EVALUATIONS: 1}),
        (made(Assumed("nothing")), (), (), {EVALUATIONS: 1}),
        (made(Unscored(Why.TIMEOUT)), (), (), {EVALUATIONS: 1}),
        (made(BROKEN), (), (), {EVALUATIONS: 1, SCORE: 1, FAILURES: 1}),
        (made(BROKEN), ("response-1",), (), {EVALUATIONS: 1}),
        (made(BROKEN, run_id="r1"), (), (), {EVALUATIONS: 1, SCORE: 1}),
        (made(revision=2), (), (), {EVALUATIONS: 1, SCORE: 1, REVISIONS: 1}),
        (made(revision=2), (), ("response-1",), {EVALUATIONS: 1, SCORE: 1}),
        (made(revision=2), ("response-1",), (), {EVALUATIONS: 1, REVISIONS: 1}),
        (made(evaluator=JUDGE), (), (), {EVALUATIONS: 1, SCORE: 1, **dict.fromkeys(JUDGED, 1)}),
        (made(evaluator=JUDGE, duration_ms=0.0), (), (), {EVALUATIONS: 1, SCORE: 1}),
        (
            made(evaluator=JUDGE, duration_ms=0.0, tokens=5),
            (),
            (),
            {EVALUATIONS: 1, SCORE: 1, **dict.fromkeys(JUDGED, 1)},
        ),
        (made(tokens=5), (), (), {EVALUATIONS: 1, SCORE: 1}),
    ],
)
def test_each_kind_of_result_increments_its_series(
    one: Result, counted: tuple[str, ...], first: tuple[str, ...], added: dict[str, int]
) -> None:
    assert counts(increments([one], counted, SeriesLabels(), first)) == added


@pytest.mark.parametrize(
    ("finding", "threshold", "verdict"),
    [
        (Score(0.75), 0.5, {"outcome": "scored", "passed": "true"}),
        (Score(0.25), 0.5, {"outcome": "scored", "passed": "false"}),
        (Score(0.25), None, {"outcome": "scored"}),
        (Score(0.25, label="suspect"), 0.5, {"outcome": "scored"}),
        (Score(0.25, label="unclear"), 0.5, {"outcome": "scored", "verdict": "unclear"}),
        (Score(0.75, label="disputed"), 0.5, {"outcome": "scored", "verdict": "disputed"}),
        (Assumed("nothing"), 0.5, {"outcome": "assumed", "passed": "true"}),
        (Unscored(Why.TIMEOUT), 0.5, {"outcome": "unscored", "why": "timeout"}),
    ],
)
def test_verdict_attributes_are_only_on_the_evaluation_count(
    finding: Finding, threshold: float | None, verdict: dict[str, str]
) -> None:
    for each in increments([made(finding, threshold=threshold)], (), SeriesLabels()):
        attributes = {key.removeprefix("pandaeval."): value for key, value in each.attributes}
        found = {key: attributes[key] for key in ("outcome", "why", "passed", "verdict") if key in attributes}
        assert found == (verdict if each.instrument.name == EVALUATIONS else {})


def test_results_with_equal_attributes_share_one_increment() -> None:
    few = [made(Score(value), id=f"r{at}") for at, value in enumerate((0.75, 0.95, 0.25))]
    few.append(made(Score(0.75), id="r4", agent="booker"))
    found = increments(few, (), SeriesLabels())
    assert sorted((each.instrument.name, each.count, round(each.total, 2)) for each in found) == [
        (SCORE, 1, 0.75),
        (SCORE, 3, 1.95),
        (EVALUATIONS, 1, 1.0),
        (EVALUATIONS, 1, 1.0),
        (EVALUATIONS, 2, 2.0),
    ]


def test_scores_of_one_bucket_are_counted_together() -> None:
    few = [made(Score(value), id=f"r{at}") for at, value in enumerate((0.71, 0.75, 0.2, 0.79))]
    [scores] = [each for each in increments(few, (), SeriesLabels()) if each.instrument.name == SCORE]
    assert scores.buckets == {8: 3, 2: 1}


@pytest.mark.parametrize(
    ("name", "one"),
    [
        (EVALUATIONS, made()),
        (REVISIONS, made(revision=3)),
        (FAILURES, made(BROKEN)),
    ],
)
def test_a_counter_grows_by_one_with_the_trace_as_exemplar(name: str, one: Result) -> None:
    found = increments([one], (), SeriesLabels())
    [each] = [each for each in found if each.instrument.name == name]
    assert (each.count, each.total, each.buckets) == (1, 1.0, {0: 1})
    assert each.exemplars[0].trace_id == TRACE_ID


def test_each_result_folded_into_other_is_counted() -> None:
    labels = SeriesLabels(most=0)
    found = increments([made(id="r1"), made(id="r2"), made(Unscored(Why.TIMEOUT), id="r3")], (), labels)
    assert labels.folded == 3
    agents = {dict(each.attributes)["gen_ai.agent.name"] for each in found}
    assert agents == {OTHER}


@pytest.mark.parametrize(("severity", "counted"), [(None, "medium"), ("", "medium"), ("critical", "critical")])
def test_a_failure_is_counted_by_its_label_and_severity(severity: str | None, counted: str) -> None:
    [failure] = [
        each
        for each in increments([made(BROKEN, failure_severity=severity)], (), SeriesLabels())
        if each.instrument.name == FAILURES
    ]
    assert dict(failure.attributes) == {
        "pandaeval.failure.label": "error",
        "pandaeval.failure.severity": counted,
        "gen_ai.agent.name": "helper",
        "pandaeval.service": "shop",
    }


def _judged(**changes: Any) -> Result:
    about = {"pack": "p", "tokens": {"cached": 64}}
    return made(
        changes.pop("finding", Score(0.5, metadata={"judge": about})),
        **{"evaluator": JUDGE, "duration_ms": 2500.0, "tokens": 100, "cost_usd": 0.25, **changes},
    )


def test_judge_time_tokens_and_cost_are_counted_by_metric_model_and_outcome() -> None:
    found = {each.instrument.name: each for each in increments([_judged()], (), SeriesLabels())}
    about = (
        ("gen_ai.evaluation.name", "response"),
        ("gen_ai.request.model", "judge-large"),
        ("pandaeval.outcome", "scored"),
    )
    judged = {name: each for name, each in found.items() if name.startswith("pandaeval.judge.")}
    assert {each.attributes for each in judged.values()} == {about}
    assert {name: each.total for name, each in judged.items()} == {
        "pandaeval.judge.duration": 2.5,
        "pandaeval.judge.tokens": 100.0,
        "pandaeval.judge.cost": 0.25,
        "pandaeval.judge.cached_tokens": 64.0,
    }
    duration = judged["pandaeval.judge.duration"]
    assert duration.buckets == {4: 1}
    assert duration.exemplars[4].value == 2.5
    assert [name for name, each in judged.items() if each.exemplars] == ["pandaeval.judge.duration"]


@pytest.mark.parametrize(("calls", "seconds", "tokens"), [(1, 2.5, 90.0), (2, 1.25, 45.0)])
@pytest.mark.parametrize(
    ("model", "provider"), [("openai/gpt", "openai"), ("bedrock/gpt", "aws.bedrock"), ("gpt", None)]
)
def test_judge_calls_are_counted_in_the_gen_ai_client_metrics(
    calls: int, seconds: float, tokens: float, model: str, provider: str | None
) -> None:
    about = {"pack": "p", "calls": calls, "tokens": {"input": 90, "output": 10, "cached": 0}}
    judged = _judged(finding=Score(0.5, metadata={"judge": about}), evaluator=EvaluatorInfo("llm", "1", model))
    found = increments([judged], (), SeriesLabels())
    [duration] = [each for each in found if each.instrument.name == "gen_ai.client.operation.duration"]
    assert (duration.count, duration.total) == (calls, 2.5)
    assert duration.buckets == {bisect_left(duration.instrument.bounds, seconds): calls}
    held = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model}
    assert dict(duration.attributes) == {name: value for name, value in held.items() if value}
    usage = {
        dict(each.attributes)["gen_ai.token.type"]: each
        for each in found
        if each.instrument.name == "gen_ai.client.token.usage"
    }
    assert {kind: (each.count, each.total) for kind, each in usage.items()} == {
        "input": (calls, 90.0),
        "output": (calls, 10.0),
    }
    assert usage["input"].buckets == {bisect_left(usage["input"].instrument.bounds, tokens): calls}


def test_a_cached_verdict_counts_no_model_call() -> None:
    about = {"pack": "p", "calls": 0, "tokens": {"input": 0, "output": 0, "cached": 0}}
    found = increments([_judged(finding=Score(0.5, metadata={"judge": about}))], (), SeriesLabels())
    assert not [each for each in found if each.instrument.name.startswith("gen_ai.client.")]


def test_a_judge_without_a_model_has_no_model_label() -> None:
    nameless = _judged(evaluator=EvaluatorInfo("llm", "1"))
    for each in increments([nameless], (), SeriesLabels()):
        assert "gen_ai.request.model" not in dict(each.attributes)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [({}, True), ({"sampled": False}, False), ({"trace_id": ""}, False)],
)
def test_only_sampled_traces_with_an_id_are_exemplars(changes: dict[str, Any], shown: bool) -> None:
    one = made(**changes)
    for each in increments([one], (), SeriesLabels()):
        expected = Exemplar(0.75, TRACE_ID, SPAN_ID, one.time_ns)
        assert [*each.exemplars.values()] == ([expected] if shown else [])


def test_an_exemplar_without_a_score_has_the_value_one() -> None:
    [each] = increments([made(Unscored(Why.TIMEOUT))], (), SeriesLabels())
    assert each.exemplars[0].value == 1.0


def test_a_bucket_keeps_its_last_exemplar() -> None:
    few = [made(Score(value), id=f"{at}", span_id=f"{at}") for at, value in enumerate((0.71, 0.75, 0.2))]
    [scores] = [each for each in increments(few, (), SeriesLabels()) if each.instrument.name == SCORE]
    assert {bucket: each.span_id for bucket, each in scores.exemplars.items()} == {8: "1", 2: "2"}


def test_as_zero_keeps_the_series_and_clears_its_values() -> None:
    point = Point(INSTRUMENTS[SCORE], (("a", "b"),), 5, 3, 1.5, (1, 2, 0), ((0, Exemplar(0.5, "t", "s", 1)),), "k", 7.0)
    zero = point.as_zero()
    assert (zero.count, zero.total, zero.buckets, zero.exemplars) == (0, 0.0, (0, 0, 0), ())
    assert (zero.instrument, zero.attributes, zero.start_ns, zero.key, zero.shown_at) == (
        *(point.instrument, point.attributes, 5),
        *("k", 7.0),
    )
