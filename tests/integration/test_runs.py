"""Evaluation runs of a running collector."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.judge.selection import included
from pandaeval_lab.replay.counting import counter
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, verdict
from support.judge_kills import PRICE_IN, PRICE_OUT
from support.judged_files import MODEL, behave, environ
from support.made_traces import Composer
from support.scripted_judge import GOOD
from support.senders import HttpSender

TRACES = 24
GOOD_CONFIDENCE = GOOD["confidence"]["confidence"]  # type: ignore[call-overload, index]
INLINE = ["trace.coherence", "trace.tool_loop", "trace.loop_detection", "trace.blame", "session.agent_reliability"]
"""``trace.blame`` adds a step to failing results."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[JudgeServer, CollectorProcess]]:
    with JudgeServer(behave) as server:
        settings = {
            **environ(server),
            "PANDAEVAL_JUDGE__SAMPLE": "0",
            "PANDAEVAL_JUDGE__CONCURRENCY": "4",
            "PANDAEVAL_JUDGE__FALLBACKS": '["openai/gpt-4o", "openai/of-my-own"]',
            "PANDAEVAL_LATE__WINDOW": "2s",
        }
        with CollectorProcess(tmp_path_factory.mktemp("runs"), settings) as collector:
            collector.start()
            composer, door = Composer(7), HttpSender(collector.http)
            for _ in range(TRACES):
                assert door.send(composer.trace().request()).acknowledged
            door.close()
            collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest", 120.0)
            yield server, collector


def api(collector: CollectorProcess) -> httpx.Client:
    return httpx.Client(base_url=f"{collector.http}/api/v1", timeout=120.0)


def start(collector: CollectorProcess, **body: Any) -> dict[str, Any]:
    body.setdefault("budget_usd", 100.0)
    with api(collector) as client:
        answer = client.post("/runs", json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found


def ended(collector: CollectorProcess, run_id: str) -> dict[str, Any]:
    with api(collector) as client:
        collector.until(lambda: client.get(f"/runs/{run_id}").json()["ended_at"] is not None, "done", 120.0)
        found: dict[str, Any] = client.get(f"/runs/{run_id}").json()
        return found


def results(collector: CollectorProcess, run_id: str, limit: int = 7) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with api(collector) as client:
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = client.get(f"/runs/{run_id}/results", params=query).json()
            found += page["items"]
            cursor = page["next"]
    return found


def counted(collector: CollectorProcess, metric: str = "") -> float:
    """Return counted results of one or all metrics."""
    query = """SELECT total(total) FROM series WHERE name = 'pandaeval.evaluations' AND attributes LIKE ?"""
    with collector.database() as database:
        (count,) = database.execute(query, (f"%{metric}%",)).fetchone()
    return float(count)


def content(result: dict[str, Any]) -> dict[str, Any]:
    """Return content without time, ID, run and group."""
    left_out = ("run_id", "time", "duration_ms", "trigger", "revision", "final")
    metadata = {key: value for key, value in result["metadata"].items() if key != "failure_group"}
    return {**{key: value for key, value in result.items() if key not in left_out}, "metadata": metadata}


def _but_why(result: dict[str, Any]) -> dict[str, Any]:
    metadata = result["metadata"]
    if result["metric"] == "blame":
        return {"span_id": result["span_id"], "step": metadata["step"]["span_id"]}
    if "blame" not in metadata:
        return result
    return {**result, "metadata": {**metadata, "blame": metadata["blame"]["span_id"]}}


def test_a_run_of_model_free_metrics_gives_the_live_results_and_leaves_them_unchanged(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    _, collector = judged
    live, series = collector.standing(), counted(collector)
    run = ended(collector, start(collector, metrics=INLINE, name="again")["id"])
    assert (run["traces"], run["done"], run["failed"], run["error"]) == (TRACES, TRACES, 0, "")
    found = results(collector, run["id"])
    assert len(found) == sum(sum(counts.values()) for counts in run["results"].values())
    assert {each["run_id"] for each in found} == {run["id"]}
    contents = {
        (each["session_id"] if each["level"] == "session" else each["trace_id"], f"{each['level']}.{each['metric']}"): (
            content(each)
        )
        for each in found
    }
    assert {key for _, key in contents} == set(INLINE)
    traces = {key: _but_why(each) for key, each in contents.items() if key[1].startswith("trace.")}
    assert traces == {key: _but_why(content(each)) for key, each in live.items() if key[1] in INLINE and key in traces}
    assert len(traces) == len([key for key in live if key[1] in INLINE and key[1].startswith("trace.")])

    again = ended(collector, start(collector, metrics=INLINE)["id"])
    assert [content(each) for each in results(collector, again["id"])] == [content(each) for each in found]
    with api(collector) as client:
        compared = client.get("/runs/compare", params={"a": run["id"], "b": again["id"]}).json()
    assert {each["metric"]: each["differing"] for each in compared["metrics"]} == dict.fromkeys(INLINE, 0)
    assert all(each["same_series"] and each["agreement"] in (1.0, None) for each in compared["metrics"])
    assert collector.standing() == live, "live results must not contain results of a run"
    assert counted(collector) == series


def test_a_run_stops_when_its_budget_is_spent(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    server, collector = judged
    before = len(server.requests)
    asked: dict[str, Any] = {"metrics": ["confidence"], "model": "openai/gpt-4o", "budget_usd": 1e-6}
    run = ended(collector, start(collector, **asked)["id"])
    assert 0 < run["done"] < TRACES
    assert "its budget of $1e-06 is used up" in run["error"]
    assert run["calls"] == len(server.requests) - before
    assert run["budget_usd"] == 1e-6


def test_http_requests_cannot_choose_unknown_models_or_run_a_judge_without_budget(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    server, collector = judged
    before, known = len(server.requests), start_count(collector)
    elsewhere = {"metrics": ["confidence"], "model": f"oobabooga/{server.url}", "budget_usd": 1.0}
    unbounded = {"metrics": ["confidence"]}
    with api(collector) as client:
        for body, detail in (
            (elsewhere, f"model: oobabooga/{server.url} is none that this collector's configuration names (openai/"),
            (elsewhere | {"dry_run": True}, "judge.fallbacks"),
            (unbounded, "asks a judge; give a budget (--budget USD; budget_usd)"),
        ):
            for path, asked in (("/runs", body), ("/schedules", {"cron": "0 3 * * *", "run": body})):
                answer = client.post(path, json=asked)
                if path == "/schedules" and "dry_run" in body:
                    assert answer.status_code == 422
                else:
                    assert (answer.status_code, detail in answer.json()["detail"]) == (400, True), answer.text
        assert client.post("/runs", json=unbounded | {"dry_run": True}).status_code == 200
        assert client.get("/schedules").json()["items"] == []
    assert (len(server.requests), start_count(collector)) == (before, known), "no judge call and no run may start"
    command = ["runs", "start", "--metrics", "confidence", "--url", collector.http]
    outcome = CliRunner().invoke(app, command)
    assert (outcome.exit_code, "--budget USD" in " ".join(outcome.output.split())) == (2, True), outcome.output


def start_count(collector: CollectorProcess) -> int:
    with api(collector) as client:
        return len(client.get("/runs", params={"limit": 500}).json()["items"])


def test_a_dry_run_estimates_the_cost_and_known_answers_are_not_paid_again(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    server, collector = judged
    body: dict[str, Any] = {"metrics": ["task_completion", "argument_correctness", "confidence"]}
    some = ended(collector, start(collector, **body, sample=0.3)["id"])
    assert 0 < some["done"] < TRACES
    before = len(server.requests)
    dry = start(collector, **body, dry_run=True)
    assert len(server.requests) == before, "no judge call may happen"
    assert (dry["traces"], dry["counted"]) == (TRACES, TRACES)
    run = ended(collector, start(collector, **body)["id"])
    asked = server.requests[before:]
    assert run["failed"] == 0
    assert dry["calls"] == run["calls"] == len(asked) > 0
    assert dry["remembered"] >= some["calls"]
    count = counter(MODEL)
    sent = sum(count(message["content"]) for _, request in asked for message in request["messages"])
    received = sum(count(behave(0, request).text) for _, request in asked)
    assert dry["prompt_tokens"] == pytest.approx(sent, rel=0.15)
    price = sent * PRICE_IN + received * PRICE_OUT
    assert dry["cost_usd"] == pytest.approx(price, rel=0.15)

    again = start(collector, **body, dry_run=True)
    assert (again["calls"], again["cost_usd"]) == (0, 0.0)
    assert again["remembered"] >= dry["calls"]
    second = ended(collector, start(collector, **body)["id"])
    assert second["calls"] == 0 == second["cost_usd"]
    assert len(server.requests) == before + run["calls"]
    with api(collector) as client:
        compared = client.get("/runs/compare", params={"a": run["id"], "b": second["id"]}).json()
    assert [each["differing"] for each in compared["metrics"]] == [0, 0, 0]
    assert all(each["difference"]["low"] == each["difference"]["high"] == 0.0 for each in compared["metrics"])


@pytest.mark.slow
def test_a_repeated_run_judges_only_failed_traces_and_runs_of_two_judges_are_compared(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    server, collector = judged

    def refuses_some(number: int, request: dict[str, Any]) -> JudgeAnswer:
        text = "".join(message["content"] for message in request["messages"])
        spoilt = hashlib.blake2b(text.encode(), digest_size=1).digest()[0] % 3 == 0
        return JudgeAnswer(status=400) if spoilt else JudgeAnswer(verdict(request, confidence=0.3))

    first = ended(collector, start(collector, metrics=["confidence"])["id"])
    server.behave = refuses_some
    try:
        other = {"metrics": ["confidence"], "model": "openai/of-my-own", "name": "stronger"}
        run = ended(collector, start(collector, **other)["id"])
        assert 0 < run["failed"] < TRACES
        assert run["done"] + run["failed"] == TRACES
        assert {each["why"] for each in run["failures"]} == {"judge_failed"}
        server.behave = lambda number, request: JudgeAnswer(verdict(request, confidence=0.3))
        before = len(server.requests)
        again = ended(collector, start(collector, **other)["id"])
        assert (again["failed"], again["done"]) == (0, TRACES)
        assert len(server.requests) - before == run["failed"], "only failed traces may be judged again"
        assert {body["model"] for _, body in server.requests[before:]} == {"of-my-own"}
        with api(collector) as client:
            compared = client.get("/runs/compare", params={"a": first["id"], "b": again["id"]}).json()
    finally:
        server.behave = behave
    (metric,) = compared["metrics"]
    assert metric["difference"]["mean"] == pytest.approx(0.3 - GOOD_CONFIDENCE)
    assert metric["differing"] == metric["both_scored"]
    assert metric["difference"]["high"] < 0
    assert not metric["same_series"]
    assert all(change["trace_id"] for change in metric["changes"])


@pytest.mark.slow
def test_run_results_are_exported_only_with_emit(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    _, collector = judged

    before = counted(collector, "tool_loop")
    assert before > 0
    ended(collector, start(collector, metrics=["tool_loop"])["id"])
    assert counted(collector, "tool_loop") == before
    ended(collector, start(collector, metrics=["tool_loop"], emit=True)["id"])
    assert counted(collector, "tool_loop") == 2 * before


@pytest.mark.slow
def test_runs_apply_filters_samples_and_signal_weights(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    _, collector = judged
    with api(collector) as client:
        traces = client.get("/traces", params={"limit": 500}).json()["items"]
    service = traces[0]["service"]
    run = ended(collector, start(collector, metrics=["tool_loop"], filters={"service": service})["id"])
    of_service = {each["trace_id"] for each in traces if each["service"] == service}
    found = {each["trace_id"] for each in results(collector, run["id"])}
    assert (run["traces"], found <= of_service) == (len(of_service), True)
    assert found, "only traces with tool calls have a result"
    half = ended(collector, start(collector, metrics=["tool_loop"], sample=0.5)["id"])
    wholes = {each["session_id"] or each["trace_id"] for each in traces}
    chosen = {each for each in wholes if included(each, 0.5)}
    assert {each["session_id"] or each["trace_id"] for each in results(collector, half["id"])} <= chosen
    assert half["traces"] == sum((each["session_id"] or each["trace_id"]) in chosen for each in traces)
    weights = {"coherence": 0.0, "loop_detection": 5.0}
    body = {"metrics": ["session.agent_reliability", "trace.coherence", "trace.loop_detection"]}
    plain, weighed = (ended(collector, start(collector, **body, signal_weights=given)["id"]) for given in ({}, weights))
    with api(collector) as client:
        compared = client.get("/runs/compare", params={"a": plain["id"], "b": weighed["id"]}).json()
    of = {each["metric"]: each for each in compared["metrics"]}
    for run, weight in (plain, 1.0), (weighed, 5.0):
        sessions = [each for each in results(collector, run["id"]) if each["metric"] == "agent_reliability"]
        assert {each["metadata"]["signal_weights"]["loop_detection"] for each in sessions} == {weight}
    assert of["trace.coherence"]["differing"] == 0


@pytest.mark.slow
def test_a_cancelled_run_stops_counts_its_calls_and_does_not_block_the_next_run(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    server, collector = judged
    go = threading.Event()

    answered = threading.Semaphore(5)

    def holds(number: int, request: dict[str, Any]) -> JudgeAnswer:
        if not answered.acquire(blocking=False):
            go.wait(60.0)
        return behave(number, request)

    server.behave = holds
    before = len(server.requests)
    try:
        run_id = start(collector, metrics=["tool_correctness"])["id"]
        collector.until(lambda: len(server.requests) > before + 5, "asking")
        with api(collector) as client:
            collector.until(lambda: client.get(f"/runs/{run_id}").json()["calls"] == 5, "counted as they are answered")
            assert client.get(f"/runs/{run_id}").json()["cost_usd"] > 0
            assert client.post(f"/runs/{run_id}/cancel", json={}).json()["state"] == "cancelled"
            waits = start(collector, metrics=["tool_loop"])["id"]
            assert ended(collector, waits)["done"] == TRACES, "the next run must not be blocked"
            go.set()
            held = client.get(f"/runs/{run_id}").json()
            assert (held["done"], held["calls"] >= 5) == (0, True), "calls of a cancelled run must be counted"
    finally:
        go.set()
        server.behave = behave


@pytest.mark.slow
def test_run_and_schedule_commands_show_the_data_of_the_api(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    _, collector = judged

    def run(*arguments: str) -> str:
        outcome = CliRunner().invoke(app, [*arguments, "--url", collector.http], env={"COLUMNS": "300"})
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    dry = json.loads(run("runs", "start", "--metrics", "tool_loop", "--dry-run", "--format", "json"))
    assert (dry["traces"], dry["calls"], dry["cost_usd"]) == (TRACES, 0, 0.0)
    shown = json.loads(
        run(
            "runs", "start", "--metrics", "tool_loop,coherence", "--budget", "9", "--since", "3650d", "--format", "json"
        )
    )
    assert (shown["state"], shown["done"]) == ("done", TRACES)
    assert shown["id"] in run("runs", "list")
    assert "trace.tool_loop" in run("runs", "show", shown["id"])
    lines = run("runs", "results", shown["id"], "--format", "json").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [each["id"] for each in results(collector, shown["id"], 500)]
    assert "trace.coherence" in run("runs", "compare", shown["id"])
    read = CliRunner().invoke(app, ["runs", "show", shown["id"], "--store", str(collector.data), "--format", "json"])
    assert json.loads(read.stdout) == shown, "a data directory must give the same data"
    schedule = json.loads(run("schedule", "add", "0 3 * * *", "--metrics", "tool_loop", "--format", "json"))
    assert schedule["run"]["metrics"] == ["trace.tool_loop"]
    assert schedule["id"] in run("schedule", "list")
    run("schedule", "remove", schedule["id"])
    assert "no schedules" in run("schedule", "list")
    wrong = CliRunner().invoke(app, ["schedule", "add", "often", "--metrics", "tool_loop", "--url", collector.http])
    assert (wrong.exit_code, "cron" in wrong.output) == (2, True)


def test_foreign_or_invalid_requests_start_no_run(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    _, collector = judged
    body = {"metrics": ["tool_loop"], "filters": {"until": "2001-01-01T00:00:00Z"}}
    with api(collector) as client:
        foreign = client.post("/runs", json=body, headers={"origin": "http://evil.example"})
        assert (foreign.status_code, foreign.json()["status"]) == (403, 403)
        assert client.post("/runs", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        text = {"content-type": "text/plain"}
        assert client.post("/runs", content=json.dumps(body), headers=text).status_code == 415
        assert client.post("/runs", json={**body, "metrics": ["tool_lop"]}).status_code == 422
        assert "tool_loop" in client.post("/runs", json={**body, "metrics": ["tool_lop"]}).json()["detail"]
        assert client.post("/runs", json={**body, "filter": {}}).status_code == 422
        assert client.post("/runs", json={**body, "signal_weights": {"luck": 1.0}}).status_code == 422
        first = client.post("/runs", json=body, headers={"origin": collector.http})
        assert first.status_code == 201
        assert ended(collector, first.json()["id"])["traces"] == 0
        assert client.post(f"/runs/{first.json()['id']}/cancel", json={}).status_code == 409
        assert client.get("/runs/none").status_code == 404
        listed = client.get("/runs", params={"limit": 1}).json()
        assert listed["items"][0]["id"] == first.json()["id"]
        assert client.get("/runs", params={"limit": 1, "cursor": listed["next"]}).json()["items"]
