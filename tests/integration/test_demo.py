"""The demo ranks bad sessions below good sessions."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import pty
import re
import signal
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from lab.demo_verdicts import messages_of_users
from pandaeval_collector.cli import app
from pandaeval_lab.cli._recordings import VERDICTS, recorded_judge, requests


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, object]], str]:
    kept: Path = tmp_path_factory.mktemp("demo") / "results.jsonl"
    outcome = CliRunner().invoke(app, ["demo", "--keep", str(kept)])
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.startswith("5 of 10 sessions were handled correctly: 50% (24% to 76%)\n")
    assert "Judge: recorded, 20" in outcome.output
    assert "missing thing at turn 2" in outcome.output
    assert re.search("How do I send the kettle back\\? +missing", outcome.output)
    assert len(outcome.output.splitlines()) <= 24, "the output must fit a screen"
    assert "scored 30 runs of agents, from 34 OTLP requests, in " in outcome.output
    found = outcome.output.partition("finding")[2].splitlines()
    assert sum(" handled correctly: " in line for line in found) == 4, "a finding is shown instead"
    return [json.loads(line) for line in kept.read_text().splitlines()], outcome.output


@pytest.fixture
def lines(demo: tuple[list[dict[str, object]], str]) -> list[dict[str, object]]:
    return demo[0]


def test_demo_sessions_are_dated_to_the_last_hour_in_order() -> None:
    now, begun = time.time_ns(), {}
    for request in requests():
        if request.logs:
            continue
        for resource in ExportTraceServiceRequest.FromString(request.data).resource_spans:
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                assert now - 3600 * 10**9 < span.start_time_unix_nano <= span.end_time_unix_nano < now
                begun.setdefault(span.trace_id, span.start_time_unix_nano)
    assert len(begun) == 30
    assert [*begun.values()] == sorted(begun.values())
    assert max(begun.values()) - min(begun.values()) > 30 * 60 * 10**9


def test_bad_sessions_rank_below_good_ones(demo: tuple[list[dict[str, object]], str]) -> None:
    expected = json.loads(files("pandaeval_lab.cli._recordings").joinpath("expected.json").read_text())
    named = {*expected["good"], *expected["bad"]}
    ranked = [line.split()[0] for line in demo[1].splitlines() if line.split()[0] in named]
    assert set(ranked) == {*expected["good"], *expected["bad"]}
    assert set(ranked[: len(expected["bad"])]) == set(expected["bad"])


def test_every_session_has_a_recorded_verdict(lines: list[dict[str, object]]) -> None:
    """Also detects changed prompts."""
    how = "record them anew: python tests/lab/demo_verdicts.py --folder DIR"
    verdicts = {line["session_id"]: line for line in lines if line["metric"] == "correctness"}
    assert set(verdicts) == set(messages_of_users()), how
    assert [line["reason"] for line in verdicts.values() if line["success"] is None] == [], how
    assert {line["evaluator"]["model"][:8] for line in verdicts.values()} == {"recorded"}  # type: ignore[index]
    wrong = {session for session, line in verdicts.items() if not line["success"]}
    assert wrong == {"lost-parcel", "failed-renewal", "fasting-question", "made-up-price", "same-answer-again"}


def test_sessions_are_not_judged_if_the_recorded_verdicts_do_not_fit_the_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = json.loads(Path(str(files("pandaeval_lab.cli._recordings").joinpath(VERDICTS))).read_text())
    unfit = [each | {"reply": {"of": "another question"}} for each in held["replies"][:2]]
    gone = [each | {"question": "an older one"} for each in held["replies"][2:]]
    file = tmp_path / VERDICTS
    file.write_text(json.dumps(held | {"replies": [*unfit, *gone]}))
    recorded = recorded_judge() | {"judge.api_base": f"file:{file}"}
    monkeypatch.setattr("pandaeval_lab.cli.demo.recorded_judge", lambda: recorded)
    outcome = CliRunner().invoke(app, ["demo"])
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.startswith("not judged: 6 of 10 sessions have findings\n")
    assert "outcome" not in outcome.output


def recorded_traces() -> set[str]:
    asked = (ExportTraceServiceRequest.FromString(request.data) for request in requests() if not request.logs)
    scopes = (scope for each in asked for resource in each.resource_spans for scope in resource.scope_spans)
    return {span.trace_id.hex() for scope in scopes for span in scope.spans}


def test_every_session_and_trace_is_scored_and_no_metric_fails(lines: list[dict[str, object]]) -> None:
    reliable = {line["session_id"] for line in lines if line["metric"] == "agent_reliability"}
    assert reliable == set(messages_of_users())
    assert {line["trace_id"] for line in lines if line["level"] == "trace"} == recorded_traces()
    applying = [line for line in lines if line["metadata"].get("applies", True)]  # type: ignore[attr-defined]
    assert {line["why"] for line in applying} <= {None, "no_content"}
    assert len({line["id"] for line in lines}) == len(lines)


def test_evaluate_gives_the_stored_recording_the_scores_of_the_demo(
    lines: list[dict[str, object]], tmp_path: Path
) -> None:
    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    recording, config = tmp_path / "recording.jsonl", tmp_path / "config.json"
    recording.write_bytes(lzma.decompress(packed))
    given = recorded_judge()
    judge = {name: given[f"judge.{name}"] for name in ("model", "api_base")}
    config.write_text(json.dumps({"judge": judge, "metrics": {"enabled": given["metrics.enabled"]}}))
    outcome = CliRunner().invoke(app, ["evaluate", str(recording), "--config", str(config), "--format", "json"])
    assert outcome.exit_code == 0, outcome.output
    again = [json.loads(line) for line in outcome.stdout.splitlines()]
    same = ("level", "metric", "trace_id", "span_id", "session_id", "score", "why")
    assert {tuple(line[name] for name in same) for line in again} == {
        tuple(line[name] for name in same) for line in lines
    }


def _holds_a_store(folder: Path, _: bytes) -> bool:
    return any(folder.glob("*/data/pandaeval.db"))


def _is_served(_: Path, shown: bytes) -> bool:
    return b"Press Ctrl-C" in shown


def _closed(child: int, terminal: int) -> None:
    os.close(terminal)


@pytest.mark.parametrize(
    ("is_time", "end"),
    [
        pytest.param(_is_served, _closed, marks=pytest.mark.slow),
        (_holds_a_store, lambda child, terminal: (os.kill(child, signal.SIGHUP), os.kill(child, signal.SIGHUP))),
        (_holds_a_store, lambda child, terminal: os.kill(child, signal.SIGTERM)),
    ],
    ids=["closed terminal", "two signals at the start", "terminated"],
)
def test_an_ended_demo_leaves_no_store(
    tmp_path: Path, is_time: Callable[[Path, bytes], bool], end: Callable[[int, int], object]
) -> None:
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, the signal would be ignored
        program = "from pandaeval_collector.cli import main; main()"
        os.execve(sys.executable, [sys.executable, "-c", program, "demo"], {**os.environ, "TMPDIR": str(tmp_path)})
    shown = b""
    while not is_time(tmp_path, shown):
        shown += os.read(terminal, 4096)
    assert [*tmp_path.iterdir()] != []
    end(child, terminal)
    with contextlib.suppress(OSError):  # the terminal is closed
        while os.read(terminal, 4096):  # otherwise the full terminal blocks the demo
            pass
    os.waitpid(child, 0)
    assert [*tmp_path.iterdir()] == []
