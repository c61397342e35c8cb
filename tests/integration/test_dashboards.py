"""Dashboards, data sources and alerts as files: current and consistent.

Queries: ``pytest -m e2e tests/e2e/test_dashboards.py``.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base import telemetry
from pandaeval_collector.base.result import wire_name
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_collector.exporters.prometheus import metric_name
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.live_page import runbook_page
from pandaeval_collector.store import series
from support.collector import CollectorProcess
from support.dashboards import FILES, GRAFANA, filled, panels, queries, searches, sources, targets, variables
from support.incident_mix import mix
from support.judged_files import send
from support.made_traces import Composer
from support.otlp_sink import attributes
from support.processors import until
from support.prometheus import BINARY as PROMETHEUS, PROMTOOL, Prometheus
from support.recent import recent
from support.results import result
from support.senders import GrpcSender
from support.ungrounded import booking, post, silent

_ROOT = Path(__file__).parents[2]
CAPTURES = _ROOT / "tests" / "golden" / "captures"
_PROMETHEUS = _ROOT / "deploy" / "prometheus"
_RULE_TESTS = ("rules_test.yaml", "rules_over_days_test.yaml")
_LABELS = {
    *("gen_ai_evaluation_name", "gen_ai_agent_name", "gen_ai_request_model", "deployment_environment_name", "le"),
    *(f"pandaeval_{name}" for name in ("level", "service", "outcome", "why", "passed", "verdict")),
    *(f"pandaeval_{name}" for name in ("reason", "queue", "exporter", "signal", "check", "metric", "model")),
    *(f"pandaeval_{name}" for name in ("of", "bound", "failure_group", "failure_label", "failure_severity")),
    *("instance", "job"),
}


def _series() -> set[str]:
    found = set()
    for each in (*series.INSTRUMENTS.values(), *telemetry.INSTRUMENTS.values()):
        name, _ = metric_name(each.name, each.unit)
        suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}[each.kind]
        found |= {name + suffix for suffix in suffixes}
    return found


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((_PROMETHEUS / "rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _words(expression: str) -> set[str]:
    """Return possible metric and label names of an expression."""
    without_values = re.sub(r'"[^"]*"', "", expression)
    return set(re.findall(r"(?<![$\w])(?:pandaeval|gen_ai|deployment)_\w+", without_values))


def test_dashboard_files_match_the_generator() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="pip install grafana-foundation-sdk")
    from deploy.grafana.generate import dashboards

    made = dashboards()
    assert {file.name: file.read_text() for file in FILES} == made, "run: python -m deploy.grafana.generate"


@pytest.mark.parametrize("asked", list(queries()), ids=lambda asked: str(asked.where))
def test_queries_use_only_known_series_and_labels(asked: Any) -> None:
    unknown = _words(asked.expression) - _series() - _LABELS
    assert not unknown
    assert _words(asked.expression) & _series()
    assert not re.search(r'le="(0|1)(\.0)?"', asked.expression), "Prometheus may write 1 or 1.0, so do not match it"
    if asked.exemplars:
        assert "_bucket" in asked.expression, "only buckets have exemplars"


def test_a_scrape_has_all_series_of_the_dashboards(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, {"PANDAEVAL_EXPORTERS__OTLP__METRICS_INTERVAL": "1s"}) as collector:
        collector.start()
        door, composer = GrpcSender(collector.grpc), Composer(4)
        assert all(door.send(composer.trace().request()).acknowledged for _ in range(10))
        door.close()
        collector.until(collector.at_rest, "at rest")
        shown = collector._get("/metrics").read().decode()
    asked = {name for each in queries() for name in _words(each.expression) & _series()}
    rarely = {"pandaeval_revisions_total", "pandaeval_store_errors_total", "pandaeval_jobs_total"}
    missing = {name for name in asked - rarely if not re.search(rf"^{name}[{{ ]", shown, re.MULTILINE)}
    elsewhere = ("pandaeval_judge_", "pandaeval_log_")
    assert not {name for name in missing if not name.startswith(elsewhere)}
    assert "pandaeval_evaluation_score_bucket" in asked


@pytest.mark.slow
@pytest.mark.skipif(PROMETHEUS is None, reason="needs Prometheus: apt-get install prometheus")
def test_prometheus_evaluates_every_dashboard_query(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        with Prometheus(tmp_path / "prometheus", f"127.0.0.1:{collector.health_port}") as prometheus:
            door, composer = GrpcSender(collector.grpc), Composer(4)
            sent = [composer.trace() for _ in range(12)]
            assert all(door.send(trace.request()).acknowledged for trace in sent)
            silent = ExportTraceServiceRequest()
            scope = silent.resource_spans.add()
            scope.resource.attributes.add(key="service.name").value.string_value = "silent"
            span = scope.scope_spans.add().spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="invoke_agent quiet")
            span.attributes.add(key="gen_ai.operation.name").value.string_value = "invoke_agent"
            span.start_time_unix_nano, span.end_time_unix_nano = time.time_ns() - 10**9, time.time_ns()
            assert door.send(silent).acknowledged
            door.close()
            collector.until(collector.at_rest, "at rest")
            first = filled("sum(increase(pandaeval_evaluations_total[$__range]))")
            until(lambda: prometheus.value(first) > 0, "scraped twice", 60)
            found = {asked.where: prometheus.query(filled(asked.expression)) for asked in queries()}
    seen = {
        name: {each["metric"]["pandaeval_service"]: float(each["value"][1])
               for each in found[f"agents: What is measured, per service {ref}"]}
        for ref, name in (("A", "results"), ("C", "content"))
    }  # fmt: skip
    assert seen["content"].keys() == seen["results"].keys() == {trace.service for trace in sent} | {"silent"}
    assert seen["content"].pop("silent") == 1
    assert max(seen["content"].values()) < 0.2
    assert sum(map(bool, found.values())) > 40


@pytest.mark.slow
@pytest.mark.skipif(PROMETHEUS is None, reason="needs Prometheus: apt-get install prometheus")
def test_visible_panels_of_agents_and_session_have_data_without_a_judge(tmp_path: Path) -> None:
    files = [sorted(CAPTURES.glob(f"*/{name}.otlp.jsonl"))[0] for name in ("good_session", "tool_loop", "crashed")]
    with CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        with Prometheus(tmp_path / "prometheus", f"127.0.0.1:{collector.health_port}") as prometheus:
            for request in (booking(), silent(), mix(3)):
                post(collector.http, request)
            send(collector, recent(files, tmp_path / "recent"))
            collector.until(lambda: len(collector.results()) > 30 and collector.at_rest(), "at rest")
            sessions = 'pandaeval_evaluation_score_count{gen_ai_evaluation_name="agent_reliability"}'
            until(lambda: prometheus.value(filled(f"sum(increase({sessions}[$__range]))")) > 0, "scraped")
            empty = _empty(prometheus)
        with Prometheus(tmp_path / "afterwards", f"127.0.0.1:{collector.health_port}") as prometheus:
            twice = "min(count_over_time(pandaeval_evaluations_total[1m])) > 1"
            until(lambda: prometheus.query(twice), "scraped twice while nothing came")
            assert _empty(prometheus) == empty
    panels = {"Handled correctly": "A", "Verdicts": "AB", "Handled correctly, per agent": "BCD"}
    judged = {f"agents: {panel} {each}" for panel, letters in panels.items() for each in letters}
    # Judged panels show "not judged". Sessions may revise none of their traces.
    assert {*empty} - judged <= {"agents: Results that replaced earlier results A"}


def _empty(prometheus: Prometheus) -> list[str]:
    shown = {
        f"{file.stem}: {panel['title']}"
        for file in FILES
        if file.stem in ("agents", "session")
        for panel in json.loads(file.read_text())["panels"]
    }
    asked = [each for each in queries() if each.where.rpartition(" ")[0] in shown]
    found = {each.where: prometheus.query(filled(each.expression)) for each in asked}
    return [name for name, series in found.items() if all(math.isnan(float(each["value"][1])) for each in series)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_panels_do_not_overlap_and_have_titles_descriptions_and_known_variables(file: Path) -> None:
    dashboard = json.loads(file.read_text())
    folded = [each for panel in dashboard["panels"] for each in panel.get("panels", ())]
    for one, other in combinations([*dashboard["panels"], *folded], 2):
        assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"]
        for target in targets(panel):
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__interval", "__rate_interval", "__range"}
            assert used <= variables(dashboard).keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_graphs_of_means_have_a_query_with_exemplars(file: Path) -> None:
    for panel in panels(json.loads(file.read_text())):
        expressions = [target["expr"] for target in targets(panel)]
        if panel["type"] == "timeseries" and any("_sum{" in expression for expression in expressions):
            assert any(target.get("exemplar") for target in panel["targets"]), panel["title"]


@pytest.fixture
def failing() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a failing result's span and log event."""
    each = encode_attributes([result("tool_loop", Score(0.2, "went in circles", failed=True))], "http://page")[0]
    [span] = spans([each])
    return attributes(Span.FromString(span).attributes), attributes(LogRecord.FromString(log_record(each)).attributes)


def test_jaeger_searches_use_tags_of_evaluation_spans(failing: Any) -> None:
    asked = [dict(pair.split("=") for pair in search["tags"].split()) for search in searches("jaeger")]
    assert {tags.pop("pandaeval.level") for tags in asked} == {"trace", "session"}
    assert all(tags.items() <= failing[0].items() for tags in asked)
    assert {search["service"] for search in searches("jaeger")} == {"pandaeval"}


def test_tempo_searches_use_attributes_of_evaluation_spans(failing: Any) -> None:
    asked = [search["query"] for search in searches("tempo")]
    assert len(asked) == 2
    for query in asked:
        assert set(re.findall(r"span\.([\w.]+)", query)) <= failing[0].keys()
        assert {"pandaeval.session.id", "pandaeval.reason", "pandaeval.url"} <= set(
            re.findall(r"span\.([\w.]+)", query)
        )


def test_loki_searches_use_attributes_of_log_events(failing: Any) -> None:
    had = {name.replace(".", "_") for name in failing[1]} | {"trace_id"}
    asked = [search["expr"] for search in searches("loki")]
    assert len(asked) == 2
    for query in asked:
        wanted = re.findall(r"\| (\w+)=", query)
        kept = query.partition("| keep ")[2].split(", ")
        assert {*wanted, *kept} <= had
        assert len(kept) == 9


def test_panels_of_optional_data_sources_are_in_collapsed_rows() -> None:
    for file in FILES:
        dashboard = json.loads(file.read_text())
        sources = {each["query"] for each in dashboard["templating"]["list"] if each["type"] == "datasource"}
        shown = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        assert {panel["datasource"]["type"] for panel in shown} == {"prometheus"}
        folded = [row for row in dashboard["panels"] if row["type"] == "row" and row["panels"]]
        assert all(row["collapsed"] for row in folded)
        kinds = {panel["datasource"]["type"] for row in folded for panel in row["panels"]}
        assert kinds - {"prometheus"} == sources - {"prometheus"}
        names = {f"${{{'datasource' if kind == 'prometheus' else kind}}}" for kind in kinds}
        assert {panel["datasource"]["uid"] for row in folded for panel in row["panels"]} == names


def test_exemplars_link_to_jaeger_and_jaeger_links_to_metrics() -> None:
    by_uid = {source["uid"]: source for source in sources()}
    [to_traces] = by_uid["pandaeval-prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert to_traces["name"] == "trace_id"
    assert by_uid[to_traces["datasourceUid"]]["type"] == "jaeger"
    to_scores = by_uid["pandaeval-jaeger"]["jsonData"]["tracesToMetrics"]
    assert by_uid[to_scores["datasourceUid"]]["type"] == "prometheus"
    assert {tag["value"] for tag in to_scores["tags"]} <= _LABELS


def test_dashboard_links_use_existing_dashboards_and_variables() -> None:
    known = {json.loads(file.read_text())["uid"]: variables(json.loads(file.read_text())) for file in FILES}
    texts = [file.read_text() for file in FILES] + [(_ROOT / "deploy" / "jaeger" / "ui.json").read_text()]
    links = [link for text in texts for link in re.findall(r"/d/([\w-]+)\?([^\"]*)", text)]
    assert len(links) >= 4
    for uid, query in links:
        assert set(re.findall(r"var-(\w+)=", query)) <= known[uid].keys()


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: str(rule["alert"]))
def test_alerts_use_known_series_and_have_tests_and_runbook_entries(rule: dict[str, Any]) -> None:
    assert not _words(rule["expr"]) - _series() - _LABELS
    kebab = re.sub(r"(?<!^)(?=[A-Z])", "-", rule["alert"].removeprefix("PandaEval")).lower()
    assert rule["annotations"]["runbook"].endswith(f"/runbook#alert-{kebab}")
    for link in (rule["annotations"]["runbook"], rule["annotations"]["page"]):
        assert link.startswith(
            "{{ with $externalLabels.pandaeval_url }}{{ . }}{{ else }}http://localhost:4328{{ end }}/"
        )
    assert rule["labels"]["severity"] in ("warning", "critical")
    tested = "".join((_PROMETHEUS / name).read_text() for name in _RULE_TESTS)
    assert f"alertname: {rule['alert']}\n" in tested, "a rule test in which the alert fires"
    assert f"### alert-{kebab}\n" in (_ROOT / "docs" / "operate" / "runbook.md").read_text()
    assert f"<h2 id=alert-{kebab}>" in runbook_page(), "the runbook page must describe the alert"


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
def test_alert_rules_pass_promtool_tests() -> None:
    for arguments in (("test", "rules", *_RULE_TESTS), ("check", "rules", "rules.yaml")):
        done = subprocess.run([str(PROMTOOL), *arguments], cwd=_PROMETHEUS, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
@pytest.mark.parametrize(
    ("passed", "failed", "share"),
    [("0 0 3x60", "0 0 1x60", 0.75), ("8x60", "2x60", 0.8), ("_x60", "4x60", 0.0), ("_x60", "_x60", None)],
    ids=["in the time that is shown", "none in it: since the store began", "nothing right", "no judge"],
)
def test_share_handled_correctly_uses_recent_results_or_else_all_results(
    tmp_path: Path, passed: str, failed: str, share: float | None
) -> None:
    verdict = 'pandaeval_evaluations_total{gen_ai_evaluation_name="correctness", pandaeval_level="session", '
    held = {f'{verdict}pandaeval_outcome="scored", pandaeval_passed="true"}}': passed}
    held[f'{verdict}pandaeval_outcome="scored", pandaeval_passed="false"}}'] = failed
    _assert_shows(tmp_path, "agents: Handled correctly A", held, {} if share is None else {"{}": share})


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
def test_failed_evaluations_of_the_judge_include_sessions(tmp_path: Path) -> None:
    failed = 'pandaeval_evaluations_total{gen_ai_evaluation_name="correctness", pandaeval_why="judge_failed", '
    held = {f'{failed}pandaeval_level="{level}"}}': "0+1x60" for level in ("session", "trace")}
    _assert_shows(tmp_path, "judge: Failed evaluations A", held, {"{}": 30})


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
@pytest.mark.parametrize(("passed", "share"), [("0+1x60", 0.25), ("_x60", 0)], ids=["some", "none"])
def test_passed_share_excludes_assumed_results(tmp_path: Path, passed: str, share: float) -> None:
    values = {'"assumed", pandaeval_passed="true"': "0+9x60", '"scored", pandaeval_passed="true"': passed}
    values['"scored", pandaeval_passed="false"'] = "0+3x60"
    held = {f"pandaeval_evaluations_total{{pandaeval_outcome={labels}}}": each for labels, each in values.items()}
    _assert_shows(tmp_path, "agents: Passed A", held, {"{}": share})


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
def test_judged_column_counts_only_scores(tmp_path: Path) -> None:
    result = 'pandaeval_evaluations_total{pandaeval_service="a", gen_ai_evaluation_name="correctness", '
    failed = {f'{result}pandaeval_outcome="unscored", pandaeval_why="judge_failed"}}': "0+1x60"}
    _assert_shows(tmp_path, "agents: What is measured, per service E", failed, {'{pandaeval_service="a"}': 0})


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
def test_residuals_of_collectors_do_not_cancel(tmp_path: Path) -> None:
    held = {f'pandaeval_accounting_residual{{instance="{value}"}}': f"{value}x60" for value in (3, -3)}
    _assert_shows(tmp_path, "collector: Unaccounted for A", held, {"{}": 6})


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")
def test_dropped_results_are_unknown_without_a_collector(tmp_path: Path) -> None:
    _assert_shows(tmp_path, "collector: Results not delivered A", {}, {})


def test_only_verdicts_and_coverage_are_green() -> None:
    found = [json.loads(file.read_text()) for file in FILES if file.stem != "collector"]
    green = {panel["title"] for each in found for panel in panels(each) if '"green"' in json.dumps(panel)}
    assert green == {"Handled correctly", "Handled correctly, per agent", "What is measured, per service"}


def test_judged_metrics_of_the_dashboards_are_the_metrics_that_only_a_judge_can_score() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="pip install grafana-foundation-sdk")
    from deploy.grafana.words import JUDGED

    known = (metric for metric in registry().values() if metric.kind == "llm")
    names = {wire_name(metric.level, metric.name) for metric in known if not getattr(metric, "by_code", None)}
    assert set(JUDGED.split("|")) == names


def _assert_shows(folder: Path, where: str, held: Mapping[str, str], shown: Mapping[str, float]) -> None:
    """Assert the values of a query by labels. ``held``: values for each minute by series."""
    [asked] = [each for each in queries() if each.where == where]
    series = [{"series": name, "values": values} for name, values in held.items()]
    expected = [{"labels": labels, "value": value} for labels, value in shown.items()]
    expression = {"expr": filled(asked.expression), "eval_time": "50m", "exp_samples": expected}
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [expression]}
    (folder / "test.yaml").write_text(json.dumps({"tests": [test]}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (beside or below)


def test_docs_state_the_number_of_queries() -> None:
    asked = list(queries())
    count = f"all {len(asked)} queries, including {sum(each.exemplars for each in asked)} for exemplars"
    assert count in (_ROOT / "docs" / "internals" / "interfaces.md").read_text()


def test_the_four_dashboards_are_provisioned_from_files() -> None:
    [provider] = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "pandaeval.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    assert {file.stem for file in FILES} == {"agents", "session", "judge", "collector"}
