"""Scores arrive in Jaeger, Prometheus and a log store.

python tests/support/programs.py          # once: builds Jaeger, Prometheus and a Collector
python -m pytest -m e2e tests/e2e
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_collector.base.result import wire_name
from support.jaeger import tags
from support.otelcol import plain
from support.processors import until
from support.prometheus import Prometheus
from support.running_systems import RunningSystems

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

WAYS = ("by OTLP", "by scrape")


def _of(home: RunningSystems, trace_id: str) -> list[dict[str, Any]]:
    """Return the results of a trace and its turns."""
    return [each for each in home.results if each["trace_id"] == trace_id and each["level"] in ("trace", "turn")]


@pytest.mark.parametrize("service", ["plain", "processor", "shop", "silent"])
def test_jaeger_shows_the_scores_below_the_evaluated_span(home: RunningSystems, service: str) -> None:
    trace_id = home.agents[service][0]
    spans = {span["spanID"]: span for span in home.jaeger.spans(trace_id)}
    [root_id] = {result["span_id"] for result in _of(home, trace_id) if result["level"] == "trace"}
    assert spans[root_id]["operationName"].startswith(("invoke_agent", "chat"))
    evaluations = [span for span in spans.values() if span["operationName"].startswith(("✓ ", "✗ ", "evaluate "))]
    shown = [log for span in evaluations for log in span["logs"]]
    assert {tags(log)["event"] for log in shown} == {"gen_ai.evaluation.result"}
    tags_by_id = {tags(log)["pandaeval.result.id"]: tags(log) for log in shown}
    expected = {result["id"]: result for result in _of(home, trace_id)}
    assert tags_by_id.keys() == expected.keys(), "every result of the trace, once"
    for span in evaluations:
        [parent] = [each for each in span["references"] if each["refType"] == "CHILD_OF"]
        named = [each["spanID"] for each in span["references"] if each["refType"] == "FOLLOWS_FROM"]
        blamed = named[:1] if span["operationName"].startswith("✗") else []
        assert parent["traceID"] == trace_id
        assert parent["spanID"] in (root_id, *blamed), "the parent must be the blamed span or the evaluated span"
        assert set(named) <= spans.keys(), "links lead to spans of the trace"
        end = spans[root_id]["startTime"] + spans[root_id]["duration"]
        assert abs(span["startTime"] - end) <= 1, "it must start where the evaluated span ends"
        assert span["duration"] <= 1000
        assert all("clock skew" in warning for warning in span["warnings"] or ()), "only clock skew is expected"
    for result_id, log_tags in tags_by_id.items():
        result = expected[result_id]
        assert log_tags["gen_ai.evaluation.name"] == wire_name(result["level"], result["metric"])
        measured = result["score"] if result["outcome"] == "scored" else None
        assert log_tags.get("gen_ai.evaluation.score.value") == measured
        assert log_tags.get("gen_ai.evaluation.explanation", "") == result["reason"]
        assert log_tags["pandaeval.service"] == service


def test_judged_results_of_a_trace_share_one_span(home: RunningSystems) -> None:
    judged = next(result for result in home.results if result["metric"] == "task_completion" and result["score"])
    spans = home.jaeger.spans(judged["trace_id"])
    [span] = [span for span in spans if "pandaeval.score.task_completion" in tags(span)]
    span_tags = tags(span)
    assert span_tags["pandaeval.score.task_completion"] == pytest.approx(judged["score"])
    assert span_tags["otel.scope.name"] == "pandaeval.evaluation"
    of_judges = [each for each in home.results if each["trace_id"] == judged["trace_id"]]
    fails = any(each["success"] is False for each in of_judges if each["evaluator"]["kind"] == "llm")
    assert span_tags.get("error", False) == fails, "the span must be red only if a judged result failed"


def test_jaeger_search_for_failures_finds_all_failed_traces_only(home: RunningSystems) -> None:
    found = home.jaeger.trace_ids("pandaeval", tags=json.dumps({"pandaeval.verdict": "fail"}))
    of_traces = [each for each in home.results if each["level"] in ("trace", "turn")]
    failed = {each["trace_id"] for each in of_traces if each["success"] is False}
    fine = {each["trace_id"] for each in of_traces} - failed
    assert failed
    assert failed <= found
    assert not fine & found


def test_every_session_has_a_span_with_links_to_its_traces(home: RunningSystems) -> None:
    ids = home.jaeger.trace_ids("pandaeval", tags=json.dumps({"pandaeval.level": "session"}))
    sessions = {result["session_id"] for result in home.results if result["level"] == "session"}
    assert len(ids) == len(sessions), "each session has one trace for its results"
    for carrier in home.jaeger.spans(sorted(ids)[0]):
        assert carrier["references"], "the span must link to the traces of the session"
        assert {reference["refType"] for reference in carrier["references"]} == {"FOLLOWS_FROM"}


@pytest.mark.parametrize("way", WAYS)
def test_prometheus_has_the_documented_labels_buckets_and_units(home: RunningSystems, way: str) -> None:
    prometheus = home.prometheus[way]
    labels = _labels(prometheus, "pandaeval_evaluation_score_count")
    base = {"gen_ai_evaluation_name", "pandaeval_level", "gen_ai_agent_name", "pandaeval_service"}
    assert base | {"deployment_environment_name"} == labels
    assert _labels(prometheus, "pandaeval_evaluations_total") - labels == {
        "pandaeval_outcome",
        "pandaeval_why",
        "pandaeval_passed",
    }
    judge = {"gen_ai_evaluation_name", "gen_ai_request_model", "pandaeval_outcome"}
    for name in ("duration_seconds_count", "tokens_total", "cost_total"):
        assert _labels(prometheus, f"pandaeval_judge_{name}") == judge
    bounds = {float(each) for each in prometheus.label_values("pandaeval_evaluation_score_bucket", "le")}
    assert bounds == {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, float("inf")}
    for name in ("pandaeval_store_size_bytes", "pandaeval_lag_seconds", "pandaeval_memory_bytes"):
        assert prometheus.query(name), "units as suffixes"


@pytest.mark.parametrize("way", WAYS)
def test_prometheus_numbers_match_the_results(home: RunningSystems, way: str) -> None:
    prometheus = home.prometheus[way]
    for metric in ("coherence", "tool_loop", "confidence"):
        scores = {each["trace_id"]: each["score"] for each in reversed(home.results)
                  if (each["metric"], each["level"], each["outcome"]) == (metric, "trace", "scored")}  # fmt: skip
        selector = f'{{gen_ai_evaluation_name="{metric}"}}'
        assert prometheus.value(f"sum(pandaeval_evaluation_score_count{selector})") == len(scores)
        total = prometheus.value(f"sum(pandaeval_evaluation_score_sum{selector})")
        assert total == pytest.approx(sum(scores.values()), abs=1e-6)
    counted = prometheus.value('sum(pandaeval_evaluations_total{pandaeval_why!="not_sampled"})')
    assert counted == len(home.results)
    assert prometheus.value("sum(pandaeval_accounting_residual)") == 0


@pytest.mark.parametrize("way", WAYS)
def test_exemplars_lead_to_evaluated_traces_in_jaeger(home: RunningSystems, way: str) -> None:
    series = home.prometheus[way].exemplar_series("pandaeval_evaluation_score_bucket")
    results = {(each["trace_id"], each["span_id"]): each for each in home.results}
    found = [(each["seriesLabels"], exemplar) for each in series for exemplar in each["exemplars"]]
    assert found
    for labels, exemplar in found:
        where = (exemplar["labels"]["trace_id"], exemplar["labels"]["span_id"])
        assert where in results
        scores = [each["score"] for each in home.results
                  if (each["trace_id"], wire_name(each["level"], each["metric"]))
                  == (where[0], labels["gen_ai_evaluation_name"])]  # fmt: skip
        assert any(score == pytest.approx(float(exemplar["value"])) for score in scores if score is not None)
        assert home.jaeger.spans(where[0]), "the exemplar's trace must be in Jaeger"


def test_log_store_has_every_result_with_conventional_names(home: RunningSystems) -> None:
    logs = {plain(log["attributes"])["pandaeval.result.id"]: log for log in home.logs.items("logs")}
    for result in home.results:
        log = logs[result["id"]]
        attributes = plain(log["attributes"])
        assert log["eventName"] == "gen_ai.evaluation.result"
        assert (log["traceId"], log["spanId"]) == (result["trace_id"], result["span_id"])
        assert attributes["gen_ai.evaluation.name"] == wire_name(result["level"], result["metric"])
        assert log["resource"]["service.name"] == "pandaeval"
        failed = {"judge_failed", "invalid_verdict", "timeout", "metric_error"}
        assert attributes.get("error.type") == (result["why"] if result["why"] in failed else None)


def _labels(prometheus: Prometheus, name: str) -> set[str]:
    """Return a metric's labels without target labels. On a busy machine, a scrape can fail and the series pause."""
    until(lambda: prometheus.query(name), f"a scrape of {name}")
    around = {"__name__", "job", "instance"}
    return {label for series in prometheus.query(name) for label in series["metric"]} - around
