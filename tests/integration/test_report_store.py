"""``pandaeval report`` with and without a running collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.cli import app
from support.collector import CollectorProcess
from support.judged_files import send
from support.reports import Made, parsed

CAPTURES = Path(__file__).parents[1] / "golden" / "captures" / "langgraph_openinference"
FILES = [CAPTURES / f"{name}.otlp.jsonl" for name in ("good", "tool_loop", "crashed")]
LONG_AGO = "36500d"


def _report(data: Path, *arguments: str | Path) -> Result:
    environment = {"PANDAEVAL_DATA": str(data), "COLUMNS": "200"}
    return CliRunner().invoke(app, ["report", *map(str, arguments)], env=environment)


def _made(file: Path) -> Made:
    return parsed(file.read_text())


def _scores(index: dict[str, Any]) -> set[tuple[str, str, Any, Any]]:
    return {
        (unit["id"], each["metric"], each.get("score"), each.get("why"))
        for unit in (*index["traces"], *index["sessions"])
        for each in unit["results"]
    }


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path_factory.mktemp("report"), {"PANDAEVAL_LATE__WINDOW": "2s"}) as running:
        running.start()
        send(running, FILES)
        running.until(lambda: running.at_rest() and bool(running.results()), "at rest")
        yield running


def test_a_report_of_the_store_equals_a_report_of_the_files(collector: CollectorProcess, tmp_path: Path) -> None:
    stored, read = tmp_path / "stored.html", tmp_path / "read.html"
    outcome = _report(collector.data, "--since", LONG_AGO, "--output", stored)
    assert outcome.exit_code == 0, outcome.output
    assert "open it in a browser" in outcome.stderr
    evaluated = CliRunner().invoke(
        app, ["evaluate", *map(str, FILES), "--format", "html", "--output", str(read)], env={"PANDAEVAL_DATA": "none"}
    )
    assert evaluated.exit_code == 0, evaluated.output
    made, expected = _made(stored), _made(read)
    assert _scores(made.index) == _scores(expected.index)
    assert {trace["id"] for trace in made.index["traces"]} == {trace["id"] for trace in expected.index["traces"]}
    assert [len(each["spans"]) for each in made.details.values()] == [
        len(each["spans"]) for each in expected.details.values()
    ]
    in_sessions = [{trace["id"]: trace.get("session") for trace in each.index["traces"]} for each in (made, expected)]
    assert {key: held is None for key, held in in_sessions[0].items()} == {
        key: held is None for key, held in in_sessions[1].items()
    }


def test_report_filters_select_traces_and_filters_without_matches_are_explained(
    collector: CollectorProcess, tmp_path: Path
) -> None:
    whole, part = tmp_path / "whole.html", tmp_path / "part.html"
    assert _report(collector.data, "--output", whole).exit_code == 0
    traces = _made(whole).index["traces"]
    broken = {trace["id"] for trace in traces if "error" in trace}
    assert 0 < len(broken) < len(traces)
    assert _report(collector.data, "--status", "error", "--output", part).exit_code == 0
    index = _made(part).index
    assert {trace["id"] for trace in index["traces"]} == broken
    assert index["about"]["left_out"] == len(traces) - len(broken)
    label = next(each["label"] for trace in traces for each in trace["results"] if each.get("success") is False)
    assert _report(collector.data, "--with-label", label, "--output", part).exit_code == 0
    assert {trace["id"] for trace in _made(part).index["traces"]} == {
        trace["id"] for trace in traces if label in [each.get("label") for each in trace["results"]]
    }
    with collector.database() as store:
        [pair] = store.execute("SELECT pair FROM attribute_pairs LIMIT 1").fetchone()
    assert _report(collector.data, "--attribute", pair, "--output", part).exit_code == 0
    assert 0 < len(_made(part).index["traces"]) <= len(traces)
    none = tmp_path / "none.html"
    nobody = _report(collector.data, "--agent", "nobody", "--output", none)
    assert nobody.exit_code == 2
    assert "agent: there is no nobody" in nobody.stderr
    assert traces[0]["agent"] in nobody.stderr
    later = _report(collector.data, "--since", "1s", "--output", none)
    assert later.exit_code == 2
    assert f"none of the {len(traces)} agent traces" in later.stderr
    assert not none.exists()
    assert "--since soon: write a time" in _report(collector.data, "--since", "soon").stderr


def test_a_report_without_collector_and_spans_keeps_the_scores(collector: CollectorProcess, tmp_path: Path) -> None:
    collector.stop()
    before, after = tmp_path / "before.html", tmp_path / "after.html"
    assert _report(collector.data, "--output", before).exit_code == 0
    import sqlite3

    with sqlite3.connect(collector.data / "pandaeval.db") as store:
        store.execute("DELETE FROM kept")
        store.execute("UPDATE traces SET chunks = '[]'")
    assert _report(collector.data, "--output", after).exit_code == 0
    assert _scores(_made(before).index) == _scores(_made(after).index)
    assert any(found.get("spans") for found in _made(before).details.values())
    for found in _made(after).details.values():
        assert "spans" not in found
        assert found["results"]


def test_report_of_a_missing_or_empty_store_explains_how_to_send_traces(tmp_path: Path) -> None:
    from pandaeval_collector.store.connection import FILE_NAME, create

    nowhere = _report(tmp_path / "nowhere", "--output", tmp_path / "report.html")
    assert nowhere.exit_code == 2
    assert "no store" in nowhere.stderr
    assert not (tmp_path / "nowhere").exists()
    create(tmp_path / FILE_NAME, "off")
    empty = _report(tmp_path, "--output", tmp_path / "report.html")
    assert empty.exit_code == 2
    assert "127.0.0.1:4327" in empty.stderr
    assert "docs/start/python.md" in empty.stderr
    assert not (tmp_path / "report.html").exists()


def _listed(collector: CollectorProcess, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--store", str(collector.data)], env={"COLUMNS": "300"})


def _rows(outcome: Result) -> list[dict[str, Any]]:
    assert outcome.exit_code == 0, outcome.output
    return [json.loads(line) for line in outcome.stdout.splitlines()]


class TestLists:
    """``pandaeval traces``, ``sessions`` and ``failures``."""

    def test_traces_are_listed_worst_first_and_can_be_filtered(self, collector: CollectorProcess) -> None:
        rows = _rows(_listed(collector, "traces", "--format", "json"))
        assert len(rows) == len(FILES)
        assert [row["worst"] for row in rows] == sorted(row["worst"] for row in rows)
        desk = _rows(_listed(collector, "traces", "list", "--agent", "order_desk", "--format", "json"))
        assert {row["agent"] for row in desk} == {"order_desk"}
        assert len(desk) == 2
        assert "no trace matches" in _listed(collector, "traces", "--since", "1s").output

    def test_tables_show_the_first_12_digits_of_trace_ids(self, collector: CollectorProcess) -> None:
        rows = _rows(_listed(collector, "traces", "--format", "json"))
        shown = _listed(collector, "traces").output
        assert all(row["trace_id"][:12] in shown for row in rows)

    def test_a_trace_is_shown_with_its_request_and_scores(self, collector: CollectorProcess) -> None:
        [looping] = [row for row in _rows(_listed(collector, "traces", "--format", "json")) if row["tool_calls"] == 4]
        shown = _listed(collector, "traces", "show", looping["trace_id"]).output
        assert "trace.tool_loop 0.25 (fail" in shown
        assert "asked: Which help article" in shown

    def test_sessions_are_listed_and_a_session_is_shown_with_its_worst_trace(self, collector: CollectorProcess) -> None:
        rows = _rows(_listed(collector, "sessions", "--format", "json"))
        assert len(rows) == len(FILES)
        shown = _listed(collector, "sessions", "show", rows[0]["session_id"]).output
        assert rows[0]["worst"]["trace_id"] in shown
        assert shown.count("session.agent_reliability") == 1

    def test_failures_are_listed_by_severity_and_a_failure_can_be_shown(self, collector: CollectorProcess) -> None:
        rows = _rows(_listed(collector, "failures", "--format", "json"))
        assert [row["severity"] for row in rows] == sorted((row["severity"] for row in rows), key=SEVERITIES.index)[
            ::-1
        ]
        shown = _listed(collector, "failures", "show", rows[0]["id"]).output
        assert rows[0]["trace_id"] in shown

    def test_unknown_ids_exit_with_2_and_one_line(self, collector: CollectorProcess) -> None:
        for arguments in (("traces", "show", "a" * 32), ("sessions", "show", "nobody"), ("failures", "show", "none")):
            outcome = _listed(collector, *arguments)
            assert (outcome.exit_code, len(outcome.output.splitlines())) == (2, 1), outcome.output
