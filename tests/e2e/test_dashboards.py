"""Every dashboard query finds data in a real Prometheus, by OTLP and scrape."""

from __future__ import annotations

import json
import math
import re
import time
import urllib.request
from pathlib import Path

import pytest

from support.dashboards import FILES, alerts, filled, queries, variables
from support.running_systems import RunningSystems

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

WAYS = ("by OTLP", "by scrape")


@pytest.mark.parametrize("way", WAYS)
def test_no_panel_is_empty(home: RunningSystems, way: str) -> None:
    empty = []
    for asked in queries():
        if "pandaeval_log_" in asked.expression:  # Kafka panels are tested elsewhere
            continue
        found = home.prometheus[way].query(filled(asked.expression))
        if not any(math.isfinite(float(series["value"][1])) for series in found):
            empty.append(f"{asked.where}: {filled(asked.expression)}")
    assert not empty, "\n".join(empty)


def test_no_sample_comes_out_of_order(home: RunningSystems) -> None:
    """Prometheus drops such samples, and ``increase`` then misses the first results of a service."""
    fed = home.prometheus["by OTLP"]
    with urllib.request.urlopen(f"{fed.url}/metrics") as answer:
        counters = answer.read().decode()
    assert 'prometheus_tsdb_out_of_order_samples_total{type="float"} 0\n' in counters


@pytest.mark.parametrize("way", WAYS)
def test_queries_with_exemplars_return_exemplars_of_scored_traces(home: RunningSystems, way: str) -> None:
    known = {result["trace_id"] for result in home.results}
    asking = [asked for asked in queries() if asked.exemplars]
    assert len(asking) >= 8
    for asked in asking:
        exemplars = home.prometheus[way].exemplars(filled(asked.expression))
        assert exemplars, asked.where
        assert {exemplar["trace_id"] for exemplar in exemplars} <= known, asked.where


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_dashboard_variables_have_values_that_select_series(home: RunningSystems, way: str, file: Path) -> None:
    prometheus = home.prometheus[way]
    for name, query in variables(json.loads(file.read_text())).items():
        matched = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert matched, query
        selector, label = matched[1], matched[2]
        values = prometheus.label_values(selector, label)
        assert values, f"{name} offers nothing"
        if name != "instance":
            chosen = f"{selector.rstrip('}').rstrip('{')}"
            chosen += (", " if "{" in chosen else "{") + f'{label}="{values[0]}"}}'
            assert prometheus.query(chosen)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_panel_shows_missing_content_sessions_and_scores_by_service(home: RunningSystems, way: str) -> None:
    first = {
        asked.where[-1]: asked.expression for asked in queries() if asked.where.startswith("agents: What is measured")
    }
    seen = {
        ref: {each["metric"]["pandaeval_service"]: float(each["value"][1])
              for each in home.prometheus[way].query(filled(expression))}
        for ref, expression in first.items()
    }  # fmt: skip
    results, scored, content, sessions, judged, failed = (seen[ref] for ref in "ABCDEF")
    services = {"shop", "support", "plain", "processor", "silent"}
    assert all(column.keys() == services for column in seen.values()), "a row per service, even if it is 0"
    assert all(results[service] > 0 for service in services)
    assert content["silent"] > 0.5 > content["plain"]
    assert sessions["silent"] == sessions["plain"] == 0
    assert min(sessions["processor"], sessions["shop"]) > 0
    assert scored["plain"] > 0
    assert judged["shop"] > 0
    assert sum(failed.values()) > 0


@pytest.mark.parametrize("way", WAYS)
def test_alerts_for_budget_and_coverage_fire_and_alerts_for_outages_do_not(home: RunningSystems, way: str) -> None:
    """Exhausted budget and unscored traces. An alert for an outage has a duration, so it may be true for a moment."""

    def firing() -> set[str]:
        return {name for name, expression in alerts().items() if home.prometheus[way].query(expression)}

    assert {"PandaEvalBudgetNearlySpent", "PandaEvalCoverageLow"} <= firing()
    broken = {
        "AccountingResidual",
        "CollectorDown",
        "CollectorLagging",
        "ExporterDown",
        "OutboxDropping",
        "StoreRefusing",
    }
    outages = {f"PandaEval{name}" for name in (*broken, "NothingScored", "ScoreDrop")}
    deadline = time.monotonic() + 60
    while (wrong := firing() & outages) and time.monotonic() < deadline:
        time.sleep(1)
    assert not wrong
