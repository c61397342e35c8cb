"""The demo: real recorded sessions through a real collector, the bad ones below the good ones."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cli._summary import Summary


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    kept: Path = tmp_path_factory.mktemp("demo") / "results.jsonl"
    outcome = CliRunner().invoke(app, ["demo", "--keep", str(kept)])
    assert outcome.exit_code == 0, outcome.output
    assert "Sessions, worst first" in outcome.output
    assert len(outcome.output.splitlines()) <= 24, "it fits a screen"
    found = outcome.output.partition("what was found")[2].splitlines()
    ended_badly = [line.split()[0] for line in found if "run failed: " in line]
    assert sorted(ended_badly) == ["failed-renewal", "lost-parcel"]
    return [json.loads(line) for line in kept.read_text().splitlines()]


def test_bad_sessions_rank_below_good_ones(lines: list[dict[str, object]]) -> None:
    expected = json.loads(files("pandaeval_lab.cli._recordings").joinpath("expected.json").read_text())
    summary = Summary()
    for line in lines:
        summary.add(line)
    ranked = [row.session_id for row in summary.sessions_worst_first()]
    assert set(ranked) == {*expected["good"], *expected["bad"]}
    # A session that gives the same answer to another question is only suspect, which ranks no session.
    bad = [session for session in expected["bad"] if session != "same-answer-again"]
    assert len(bad) == len(expected["bad"]) - 1
    assert set(ranked[: len(bad)]) == set(bad)


def test_every_session_and_trace_is_scored(lines: list[dict[str, object]]) -> None:
    sessions = {line["session_id"] for line in lines}
    assert {line["session_id"] for line in lines if line["metric"] == "agent_reliability"} == sessions
    applying = [line for line in lines if line["metadata"].get("applies", True)]  # type: ignore[attr-defined]
    assert {line["why"] for line in applying} <= {None, "no_content"}
    assert len({line["id"] for line in lines}) == len(lines)


def test_stored_recordings_score_the_same(lines: list[dict[str, object]], tmp_path: Path) -> None:
    """The running collector and ``evaluate`` agree, id for id."""
    import lzma

    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(lzma.decompress(packed))
    outcome = CliRunner().invoke(app, ["evaluate", str(recording), "--format", "json"])
    assert outcome.exit_code == 0
    again = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert {(r["id"], r["score"], r["why"]) for r in again} == {(r["id"], r["score"], r["why"]) for r in lines}
