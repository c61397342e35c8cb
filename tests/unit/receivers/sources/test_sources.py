"""Traces fetched from Jaeger and Tempo score like OTLP."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.replay.files import Input, Request, UnusableInputError
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.sources import TraceSource, jaeger as asks_jaeger, tempo as asks_tempo
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.wire.splitting import split_traces
from support.query_api import QueryApi

GOLDEN = Path(__file__).parents[3] / "golden"
CAPTURES, ANSWERS = GOLDEN / "captures", GOLDEN / "query_answers"
RECORDINGS = [CAPTURES / name / "tool_error.otlp.jsonl" for name in ("openai_agents_genai", "langgraph_openinference")]
ALL = "since=2000-01-01"


def _recorded(file: Path) -> list[dict[str, Any]]:
    return [found for line in file.read_text().splitlines() if "resourceSpans" in (found := json.loads(line))]


@pytest.fixture(scope="module")
def requests() -> list[dict[str, Any]]:
    return [request for file in RECORDINGS for request in _recorded(file)]


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(load("embedded"))


def _ids(evaluator: Evaluator, inputs: Sequence[Input | TraceSource]) -> set[str]:
    with TraceFiles() as run:
        for each in inputs:
            for request in each.requests():
                run.add(request)
        found = {result.id for result in replay(run, evaluator)}
        assert run.read.bad == 0, run.read.problems
    assert found
    return found


def _sent(tmp_path: Path, requests: list[dict[str, Any]]) -> Input:
    file = tmp_path / "sent.jsonl"
    file.write_text("\n".join(map(json.dumps, requests)))
    return Input(str(file))


@pytest.mark.parametrize(("kind", "speaks", "page"), [("jaeger", ["v3"], True), ("tempo", ["tempo-v2"], False)])
def test_fetched_traces_give_the_result_ids_of_sent_otlp(
    tmp_path: Path, requests: list[dict[str, Any]], evaluator: Evaluator, kind: str, speaks: list[str], page: bool
) -> None:
    with QueryApi(requests, speaks, page) as api:
        assert _ids(evaluator, [TraceSource(f"{kind}://{api.host}?{ALL}")]) == _ids(
            evaluator, [_sent(tmp_path, requests)]
        )


def test_a_recorded_jaeger_2_answer_gives_the_result_ids_of_sent_otlp(
    tmp_path: Path, requests: list[dict[str, Any]], evaluator: Evaluator
) -> None:
    """From a Jaeger 2 recording."""
    with lzma.open(ANSWERS / "jaeger_v3.json.xz") as file:
        answer = json.load(file)["result"]
    with QueryApi([answer], ["v3"]) as api:
        assert _ids(evaluator, [TraceSource(f"jaeger://{api.host}?{ALL}")]) == _ids(
            evaluator, [_sent(tmp_path, requests)]
        )


def test_a_jaeger_without_the_v3_api_is_rejected(requests: list[dict[str, Any]]) -> None:
    with (
        QueryApi(requests, [], page=True) as api,
        pytest.raises(UnusableInputError, match="is not a query API of Jaeger"),
    ):
        list(TraceSource(f"jaeger://{api.host}/?{ALL}").requests())


def _traces(source: TraceSource) -> set[str]:
    found = list(source.requests())
    assert all(isinstance(each, Request) for each in found)
    return {
        part.trace_id.hex() for each in found if isinstance(each, Request) for part in split_traces(each.data).fragments
    }


def _many(number: int, apart_ns: int) -> list[dict[str, Any]]:
    made = []
    for at in range(number):
        start = 1_700_000_000_000_000_000 + at * apart_ns
        times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 5)}
        span = {"traceId": f"{at + 1:032x}", "spanId": f"{at + 1:016x}", "name": "chat", "kind": 1, **times}
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
        made.append({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": [span]}]}]})
    return made


@pytest.mark.parametrize(("kind", "speaks"), [("jaeger", "v3"), ("tempo", "tempo-v2")])
def test_all_traces_of_a_long_period_are_fetched_page_by_page(
    monkeypatch: pytest.MonkeyPatch, kind: str, speaks: str
) -> None:
    monkeypatch.setattr(asks_jaeger, "_PAGE", 5)
    monkeypatch.setattr(asks_tempo, "_PAGE", 5)
    with QueryApi(_many(23, 3_600_000_000_000), [speaks]) as api:
        address = f"{kind}://{api.host}?service=desk&since=2023-11-01&until=2023-11-30"
        assert len(_traces(TraceSource(address))) == 23
        few = TraceSource(f"{address}&limit=4")
        assert _traces(few) == {f"{at:032x}" for at in range(20, 24)}, "the newest"
        assert ["limit=4" in note for note in few.notes] == [True]


def test_a_jaeger_with_several_services_requires_a_service_parameter() -> None:
    made = _many(2, 10**9)
    made[1]["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"] = "shop"
    with QueryApi(made, ["v3"]) as api:
        assert _traces(TraceSource(f"jaeger://{api.host}?service=shop&{ALL}")) == {f"{2:032x}"}
        with pytest.raises(UnusableInputError, match="name one with service=; there are desk, shop"):
            list(TraceSource(f"jaeger://{api.host}?{ALL}").requests())


@pytest.mark.parametrize(("kind", "speaks"), [("jaeger", "v3"), ("tempo", "tempo-v2")])
def test_too_many_traces_in_one_second_are_noted(monkeypatch: pytest.MonkeyPatch, kind: str, speaks: str) -> None:
    monkeypatch.setattr(asks_jaeger, "_PAGE", 5)
    monkeypatch.setattr(asks_tempo, "_PAGE", 5)
    with QueryApi(_many(9, 1), [speaks]) as api:
        source = TraceSource(f"{kind}://{api.host}?since=2023-11-14&until=2023-11-15")
        assert len(_traces(source)) == 5
        assert "too many began in the same second" in source.notes[0]


@pytest.mark.parametrize(("kind", "speaks"), [("jaeger", "v3"), ("tempo", "tempo-v2")])
def test_single_traces_are_fetched_by_id(kind: str, speaks: str) -> None:
    with QueryApi(_many(3, 10**9), [speaks]) as api:
        two, missing = f"{2:032x}", "ab" * 16
        assert _traces(TraceSource(f"{kind}://{api.host}?trace={two},{missing}")) == {two}
        with pytest.raises(UnusableInputError, match=missing):
            list(TraceSource(f"{kind}://{api.host}?trace={missing}").requests())


def test_a_token_and_a_tenant_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with QueryApi(_many(1, 1), ["tempo-v2"], token="Basic NDI6czNjcmV0") as api:
        address = f"tempo://{api.host}?{ALL}&tenant=blue&user=42&token_env=STORE_TOKEN"
        with pytest.raises(UnusableInputError, match="STORE_TOKEN"):
            list(TraceSource(address).requests())
        monkeypatch.setenv("STORE_TOKEN", "s3cret")
        assert len(_traces(TraceSource(address))) == 1
        assert {headers["x-scope-orgid"] for _, _, headers in api.asked} == {"blue"}
        with pytest.raises(UnusableInputError, match="token_env=VARIABLE"):
            list(TraceSource(f"tempo://{api.host}").requests())


def test_a_busy_trace_store_is_queried_again() -> None:
    with QueryApi(_many(1, 1), ["v3"], refuse=1) as api:
        assert len(_traces(TraceSource(f"jaeger://{api.host}?{ALL}"))) == 1


def test_a_failed_query_is_reported_with_its_cause_or_cure() -> None:
    with QueryApi(_many(1, 1), ["v3"]) as api:
        for address, message in (
            (f"jaeger://{api.host}?service=dask&{ALL}", "there is no service dask; there are desk"),
            (f"jaeger://{api.host}?service=desk", "since=7d"),
            (f"tempo://{api.host}", "not a query API of Tempo"),
            ("jaeger://127.0.0.1:9", "cannot be reached"),
            ("jaeger://xn--a-ecp.ru", "is not a valid address"),
        ):
            with pytest.raises(UnusableInputError, match=message):
                list(TraceSource(address).requests())
    with QueryApi([], ["tempo-v2"]) as api, pytest.raises(UnusableInputError, match="not a query API of Jaeger"):
        list(TraceSource(f"jaeger://{api.host}").requests())


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://localhost:16686", "write jaeger://"),
        ("jaeger://", "names no host"),
        ("jaeger://me:secret@host", "token_env"),
        ("jaeger://host:port", "Port could not be cast|port"),
        ("jaeger://host?operation=chat", "operation is not a known parameter"),
        ("jaeger://host?since=soon", "write a time"),
        ("jaeger://host?since=1h&until=2h", "before until"),
        ("jaeger://host?limit=0", "1 to 1,000,000"),
        ("jaeger://host?trace=xyz", "32 hex digits"),
    ],
)
def test_a_wrong_address_is_reported_before_anything_is_read(address: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message) as error:
        TraceSource(address)
    assert "secret" not in str(error.value)
