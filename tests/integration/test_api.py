"""The API of a running collector, with paging."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.collector import CollectorProcess
from support.judged_files import send

CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
REFERENCE = Path(__file__).parents[2] / "docs/reference/api.md"
OF_THE_PAGE = "/page/"
"""The reference leaves out the operations of the page."""
SCENARIOS = ("good_session", "wrong_tool", "tool_loop", "gives_up")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    files = [file for name in SCENARIOS for file in sorted(CAPTURES.glob(f"*/{name}.otlp.jsonl"))[:3]]
    settings = {"PANDAEVAL_LATE__WINDOW": "2s"}
    with CollectorProcess(tmp_path_factory.mktemp("api"), settings) as running:
        running.start()
        send(running, files)
        running.until(lambda: running.at_rest() and bool(running.results()), "at rest")
        yield running


def get(collector: CollectorProcess, path: str, **parameters: Any) -> Any:
    answer = httpx.get(f"{collector.http}/api/v1{path}", params=parameters, timeout=60.0)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(collector: CollectorProcess, path: str, **parameters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = get(collector, path, **parameters)
        found += page["items"]
        if page["next"] is None:
            return found
        parameters["cursor"] = page["next"]


def test_traces_are_listed_worst_first_with_their_current_results(collector: CollectorProcess) -> None:
    standing = collector.standing()
    traces = pages(collector, "/traces", limit=7)
    assert {trace["trace_id"] for trace in traces} == {id_ for id_, key in standing if key.startswith("trace.")}
    assert len(traces) == len({trace["trace_id"] for trace in traces})
    for trace in traces:
        about = [each for each in trace["results"] if each["level"] == "trace"]
        listed_ids = {f"{each['level']}.{each['metric']}": each["id"] for each in about}
        assert listed_ids == {key: each["id"] for (id_, key), each in standing.items() if id_ == trace["trace_id"]}
        failed = trace["error"] is not None or any(each["success"] is False for each in trace["results"])
        assert trace["failed"] is failed
    order = [(not trace["failed"], 2.0 if trace["worst"] is None else trace["worst"]) for trace in traces]
    assert order == sorted(order)
    assert {trace["failed"] for trace in traces} == {True, False}


def test_every_session_is_listed_once_with_its_worst_trace(collector: CollectorProcess) -> None:
    traces = pages(collector, "/traces")
    sessions = pages(collector, "/sessions", limit=3)
    named = [session["session_id"] for session in sessions if session["session_id"]]
    assert sorted(named) == sorted({trace["session_id"] for trace in traces if trace["session_id"]})
    assert sum(session["session_id"] is None for session in sessions) == sum(not t["session_id"] for t in traces)
    for id_ in named:
        whole = get(collector, f"/sessions/{id_}")
        of_it = [trace for trace in traces if trace["session_id"] == id_]
        assert {each["trace_id"] for each in whole["members"]} == {each["trace_id"] for each in of_it}
        assert whole["traces"] == len(of_it)
        assert whole["open"] is False
        assert whole["worst"]["trace_id"] == of_it[0]["trace_id"]
        assert {each["metric"] for each in whole["results"]} >= {"agent_reliability"}


def test_traces_are_found_by_attributes_of_their_spans(collector: CollectorProcess) -> None:
    def found(path: str, *pairs: str) -> set[str]:
        return {each["trace_id"] for each in get(collector, path, attribute=[*pairs], limit=500)["items"]}

    by_model = {model: found("/traces", f"gen_ai.request.model={model}") for model in ("gpt-4o-mini", "nobody")}
    assert by_model["nobody"] == set()
    everything = {trace["trace_id"] for trace in pages(collector, "/traces")}
    assert set() < by_model["gpt-4o-mini"] < everything
    results = get(collector, "/results", attribute=["gen_ai.request.model=gpt-4o-mini"], limit=500)["items"]
    of_traces = {each["trace_id"] for each in results if each["level"] != "session"}
    assert set() < of_traces <= by_model["gpt-4o-mini"]
    listed = get(collector, "/traces", attribute=["gen_ai.request.model=gpt-4o-mini"], limit=500)["items"]
    of_sessions = {each["session_id"] for each in results if each["level"] == "session"}
    assert set() < of_sessions <= {each["session_id"] for each in listed}
    assert found("/traces", "gen_ai.request.model=gpt-4o-mini", "service.version=none") == set()
    wrong = httpx.get(f"{collector.http}/api/v1/traces", params={"attribute": "no pair"}, timeout=60)
    assert wrong.status_code == 422


def test_filters_select_traces_and_results(collector: CollectorProcess) -> None:
    traces = pages(collector, "/traces")
    agent = traces[0]["agent"]
    assert {each["trace_id"] for each in pages(collector, "/traces", agent=agent)} == {
        each["trace_id"] for each in traces if each["agent"] == agent
    }
    assert {each["trace_id"] for each in pages(collector, "/traces", metric="trace.tool_loop", success=False)} == {
        each["trace_id"]
        for each in traces
        if any(r["metric"] == "tool_loop" and r["success"] is False for r in each["results"])
    }
    assert [each["trace_id"] for each in pages(collector, "/traces", failed=True)] == [
        each["trace_id"] for each in traces if each["failed"]
    ]
    newest = pages(collector, "/traces", order="newest", limit=4)
    assert [each["started_at"] for each in newest] == sorted((each["started_at"] for each in traces), reverse=True)
    middle = newest[len(newest) // 2]["started_at"]
    since = pages(collector, "/traces", since=f"{middle / 1000:.3f}")
    assert {each["trace_id"] for each in since} == {e["trace_id"] for e in traces if e["started_at"] >= middle}
    assert pages(collector, "/traces", text="100% _nobody_ said this") == []
    everything = pages(collector, "/results", limit=50)
    assert len(everything) == len(collector.results())
    outcomes = {each["outcome"] for each in everything}
    assert outcomes > {"scored"}
    for outcome in outcomes:
        found = pages(collector, "/results", outcome=outcome, limit=50)
        assert found == [each for each in everything if each["outcome"] == outcome]


def test_a_trace_with_compressed_spans_can_be_shown_and_exported(collector: CollectorProcess) -> None:
    traces = pages(collector, "/traces", limit=100)

    def compressed() -> bool:
        with collector.database() as database:
            (kept,) = database.execute("SELECT count(*) FROM kept").fetchone()
            return bool(kept == len(traces))

    collector.until(compressed, "done with compressing what is older than the late window")
    for trace in traces[:3]:
        whole = get(collector, f"/traces/{trace['trace_id']}")
        assert whole["understood"]["trace_id"] == trace["trace_id"]
        assert len(whole["detail"]["spans"]) == whole["spans"] == trace["spans"]
    id_ = traces[0]["trace_id"]
    file = collector.folder / "spans.otlp"
    command = ["-m", "pandaeval_collector.cli", "store", "export", "--trace", id_, "--output", str(file)]
    code = "import sys; from pandaeval_collector.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *command[2:]], check=True, env=_environment(collector))
    assert file.stat().st_size > 100


def test_an_unchanged_response_is_answered_with_304(collector: CollectorProcess) -> None:
    url = f"{collector.http}/api/v1/traces"
    first = httpx.get(url, timeout=60)
    again = httpx.get(url, headers={"if-none-match": first.headers["etag"]}, timeout=60)
    assert (again.status_code, again.content) == (304, b"")
    other = httpx.get(url, params={"limit": 1}, headers={"if-none-match": first.headers["etag"]}, timeout=60)
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/traces/00000000000000000000000000000000", 404),
        ("/traces/nonsense", 400),
        ("/traces?cursor=nonsense", 400),
        ("/traces?limit=0", 422),
        ("/traces?since=yesterday", 422),
        ("/sessions/nobody's", 404),
        ("/nothing", 404),
    ],
)
def test_invalid_requests_get_a_problem_response_with_a_detail(
    collector: CollectorProcess, path: str, status: int
) -> None:
    answer = httpx.get(f"{collector.http}/api/v1{path}", timeout=60)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["detail"]


def test_requests_with_another_host_name_are_rejected(collector: CollectorProcess) -> None:
    for host in ("evil.example", "evil.example:4328", "localhost.evil.example", "", "127.0.0.1.evil.example"):
        answer = httpx.get(f"{collector.http}/api/v1/traces", headers={"host": host}, timeout=60)
        assert answer.status_code == 421, host
    assert (
        httpx.get(f"{collector.http}/api/v1/traces", headers={"host": "localhost:4328"}, timeout=60).status_code == 200
    )


def test_openapi_has_the_operations_of_the_reference(collector: CollectorProcess) -> None:
    paths = get(collector, "/openapi.json")["paths"]
    listed = re.findall(r"^- \*\*`([A-Z]+) (/\S*)`\*\*", REFERENCE.read_text(), re.MULTILINE)
    served = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert {(method, path) for method, path in served if not path.startswith(OF_THE_PAGE)} == set(listed)


def test_rates_match_the_traces(collector: CollectorProcess) -> None:
    rates = get(collector, "/rates")["rates"]
    traces = pages(collector, "/traces")
    loops = [rate for rate in rates if rate["metric"] == "tool_loop" and rate["agent"] is not None]
    assert sum(rate["failed"] for rate in loops) == len(
        [t for t in traces if any(r["metric"] == "tool_loop" and r["success"] is False for r in t["results"])]
    )
    assert {each["key"] for each in get(collector, "/metrics")} >= {"trace.tool_loop", "session.agent_reliability"}


def _environment(collector: CollectorProcess) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(entry for entry in sys.path if entry), "PANDAEVAL_DATA": str(collector.data)}


@pytest.mark.slow
def test_an_open_session_has_interim_results_that_become_final_when_it_closes(tmp_path: Path) -> None:
    file = CAPTURES / "langgraph_openinference" / "good.otlp.jsonl"
    with CollectorProcess(tmp_path, {"PANDAEVAL_SESSION__IDLE": "1h", "PANDAEVAL_SESSION__INTERIM": "1s"}) as running:
        running.start()
        send(running, [file])
        running.until(lambda: bool(running.results()), "scored")
        id_ = next(each["session_id"] for each in running.results())
        running.until(lambda: get(running, f"/sessions/{id_}")["results"], "a session")
        found = get(running, f"/sessions/{id_}")
        assert found["open"]
        interim = {each["metric"]: each for each in found["results"]}
        assert {"agent_reliability"} <= interim.keys()
        assert {each["final"] for each in interim.values()} == {False}
        running.stop()
        running.start(PANDAEVAL_SESSION__IDLE="1s")
        running.until(lambda: not get(running, f"/sessions/{id_}")["open"], "closed")
        closed = get(running, f"/sessions/{id_}")
    assert {each["metric"]: (each["score"], each["final"]) for each in closed["results"]} == {
        name: (each["score"], True) for name, each in interim.items()
    }
