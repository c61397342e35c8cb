"""The mutated areas with their tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """``sources``: file patterns; ``tests``: paths below ``tests/unit``."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


AREAS: Mapping[str, Area] = {
    "result": Area(("base/score.py", "base/result.py"), ("base/test_score.py", "base/test_result.py")),
    "stats": Area(
        (
            *("analysis/stats/*.py", "labels/judge_agreement.py"),
            *("alignment/align.py", "cases/arguments.py", "passk/figures.py"),
        ),
        (
            *("analysis/stats", "trials/test_assignment.py", "trials/passk/test_drop.py"),
            *("trials/labels/test_agreement_intervals.py", "trials/labels/test_judge_agreement.py"),
            "trials/labels/test_verdict_change.py",
        ),
    ),
    "gates": Area(
        ("cli/_gates.py", "passk/gate.py"),
        ("cli/test_gates.py", "cli/test_gating.py", "trials/passk/test_gate.py"),
    ),
    "series": Area(
        ("store/series.py", "store/series_table.py"),
        ("store/series", "exporters/test_series.py"),
    ),
    "lists": Area(
        (
            *("store/finding.py", "store/listed.py", "store/listed_pages.py", "store/failing.py"),
            *("store/correctness.py", "store/costs.py", "store/rates.py"),
            *("show/api/lists.py", "show/api/filters.py"),
            "show/view/rows.py",
        ),
        (
            *("show/api/test_overview.py", "show/api/test_lists.py", "show/api/test_filters.py"),
            *("show/api/test_rows.py", "show/api/test_incidents.py", "show/api/test_empty_store.py"),
            *("store/test_finding.py", "store/test_listed.py", "store/test_people.py"),
            *("store/test_severity.py", "store/test_filter_conditions.py", "store/test_query_plans.py"),
        ),
    ),
    "store": Area(
        (
            *("store/table.py", "store/changes.py", "store/chunks.py"),
            *("store/jobs.py", "store/numbers.py"),
            *("store/outbox.py", "store/people.py", "store/reader.py", "store/responses.py", "store/runs.py"),
            *("store/schedules.py", "store/store.py"),
        ),
        ("store",),
    ),
    "session": Area(
        ("scoring/metrics/session/*.py", "pipeline/line/session_scores.py"),
        (
            *("scoring/metrics/test_signals.py", "scoring/metrics/test_session_metrics.py"),
            *("scoring/metrics/test_grounding_signal.py", "scoring/metrics/test_turn_metrics.py"),
            "pipeline/line/test_session_scores.py",
        ),
    ),
    "exporters": Area(
        (
            *(
                "exporters/_fields.py",
                "exporters/_evaluation_spans.py",
                "exporters/_span_summary.py",
                "exporters/encode.py",
            ),
            *("exporters/prometheus.py", "exporters/zero_first.py"),
            *("exporters/_otlp/answers.py", "exporters/_otlp/build.py"),
            "exporters/_otlp/transport.py",
        ),
        ("exporters",),
    ),
}
