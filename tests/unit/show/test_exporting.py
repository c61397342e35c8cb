"""Exports of filtered lists as JSON lines, CSV, OTLP or cases, read a page at a time."""

from __future__ import annotations

import asyncio
import csv
import gc
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.cli._run_place import api_or_store_client
from pandaeval_collector.show.api.client import ApiRequestError, AsyncApiClient
from pandaeval_collector.show.api.incidents import IncidentReads
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.export import COLUMNS, csv_lines, in_blocks, json_lines, stored_rows, stored_spans
from pandaeval_collector.show.report.incidents import IncidentRow
from pandaeval_collector.show.view.rows import SessionRow, TraceRow
from pandaeval_collector.show.view.texts import csv_cell
from pandaeval_collector.store import DecidedTrace, ListedRow, Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.listed_pages import Listed, ListedSession
from support.api import ReadInterfaces, asking, served
from support.versions import GROUPS, LOOPS, RUNS, WRONG, fill

CAUSES = 1100
HELD = Listed, ListedSession, TraceRow, SessionRow, IncidentRow
PAGE = 200
LOOPING = {"attribute": "service.version=2", "metric": "trace.tool_loop", "success": "false"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("versions")
    store = fill(folder)
    yield folder
    store.close()


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    lookouts = ReadInterfaces(folder, Work())
    yield TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    lookouts.close()


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with as many causes of failure as failed runs."""
    folder = tmp_path_factory.mktemp("broken")
    store, changes = Store(folder, "off"), WriteSet()
    for at in range(CAUSES):
        trace = at.to_bytes(16, "big")
        facts = {"id": trace.hex(), "at": at, "error": "".join(chr(97 + int(digit)) for digit in f"{at:04d}")}
        facts |= {"us": 1, "spans": 1, "llm": 0, "tools": 0, "agent": "desk"}
        changes.traces.append(DecidedTrace(trace, 1, True, "d", frozenset(), [], 0))
        changes.listed.append(ListedRow(trace, at, "desk", "desk", "", "", True, orjson.dumps(facts)))
    store.commit(changes).result()
    yield folder
    store.close()


def exported(client: TestClient, **asked: str) -> bytes:
    answer = client.get("/api/v1/export", params=asked)
    assert answer.status_code == 200, answer.text
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def lines(data: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in data.splitlines()]


def command(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["export", *words])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def test_an_export_has_the_rows_of_the_list(client: TestClient) -> None:
    rows = lines(exported(client, **LOOPING))
    page = client.get("/api/v1/traces", params={**LOOPING, "order": "newest", "limit": 500}).json()
    assert rows == page["items"]
    assert len(rows) == LOOPS["2"]
    sessions = lines(exported(client, of="sessions", metric="session.correctness", success="false"))
    assert len(sessions) == sum(WRONG.values())
    results = lines(exported(client, of="results", metric="trace.tool_loop"))
    assert len(results) == sum(RUNS.values())
    incidents = lines(exported(client, of="incidents"))
    assert {row["id"] for row in incidents} == {*GROUPS.values()}


def test_an_export_of_several_pages_has_each_row_once(client: TestClient) -> None:
    rows = lines(exported(client, of="results"))
    assert len({row["id"] for row in rows}) == len(rows) == 4 * sum(RUNS.values()) > 200


def test_csv_has_a_header_and_escapes_formulas(client: TestClient) -> None:
    head, *rows = csv.reader(io.StringIO(exported(client, format="csv", **LOOPING).decode()))
    assert tuple(head) == COLUMNS["traces"]
    assert len(rows) == LOOPS["2"]
    row = dict(zip(head, rows[0], strict=True))
    assert (row["input"], row["output"]) == ("'=2+3", f"answer {LOOPS['2'] - 1}")
    assert (row["failed"], row["failures"], row["environment"]) == ("true", "1", "env-2")
    assert orjson.loads(row["results"])[0]["metric"] == "tool_loop"
    results = [*csv.DictReader(io.StringIO(exported(client, of="results", format="csv").decode()))]
    assert {row["reason"][:2] for row in results} == {"'-"}


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_a_csv_cell_that_begins_like_a_formula_is_escaped(begin: str) -> None:
    assert csv_cell(f"{begin}cmd|'/C calc'!A0") == f"'{begin}cmd|'/C calc'!A0"
    assert csv_cell(f"a{begin}") == f"a{begin}"
    assert csv_cell(-1.5) == "-1.5"


def test_csv_without_rows_has_only_its_header() -> None:
    assert b"".join(csv_lines("results", [])).decode().strip() == ",".join(COLUMNS["results"])


def test_a_page_is_read_only_when_its_rows_are_needed(folder: Path) -> None:
    """An export of any number of rows reads one page at a time."""
    finder, pages = Finder(folder), 0
    page = finder.results

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal pages
        pages += 1
        return page(*given, **options)

    finder.results = counted  # type: ignore[method-assign]
    rows = stored_rows(finder, "results", Wanted())
    for _ in range(200):
        next(rows)
    assert pages == 1
    assert sum(1 for _ in rows) == 4 * sum(RUNS.values()) - 200
    assert pages == 3
    finder.close()


@pytest.mark.parametrize("of", ["traces", "sessions", "incidents", "spans"])
def test_an_export_holds_at_most_two_pages_of_rows_in_memory(broken: Path, of: str) -> None:
    finder = Finder(broken)
    made: dict[str, Callable[[], Iterator[Any]]] = {
        "traces": lambda: csv_lines("traces", stored_rows(finder, "traces", Wanted())),
        "sessions": lambda: json_lines("sessions", stored_rows(finder, "sessions", Wanted())),
        "incidents": lambda: IncidentReads(finder, Names(finder, ())).every(Wanted(), "all"),
        "spans": lambda: stored_spans(finder, "traces", Wanted()),
    }
    rows = most = 0
    before = _held()
    for _ in made[of]():
        rows += 1
        if rows % PAGE == PAGE // 2:  # counting all objects takes a second at the end of a long test run
            most = max(most, _held() - before)
    finder.close()
    assert rows >= CAUSES
    assert 0 < most <= 2 * PAGE + 2


def test_the_command_frees_its_requests_without_garbage_collection(broken: Path) -> None:
    """Garbage collection would free them too late."""
    with api_or_store_client(store=broken) as api:
        gc.collect()
        gc.disable()
        try:
            rows = sum(1 for _ in api.pages("/traces", limit=PAGE))
            assert rows == CAUSES
            requests = [each for each in gc.get_objects() if isinstance(each, httpx.Request)]
            assert not [each for each in requests if each.url.path == "/traces"], "other tests can hold requests"
        finally:
            gc.enable()


def _held() -> int:
    return sum(isinstance(each, HELD) for each in gc.get_objects())


def test_the_command_exports_each_incident_once(broken: Path) -> None:
    written = lines(command("--store", str(broken), "--of", "incidents").encode())
    assert len({row["id"] for row in written}) == len(written) == CAUSES
    lookouts = ReadInterfaces(broken, Work())
    client = TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    assert [row["id"] for row in lines(exported(client, of="incidents"))] == [row["id"] for row in written]
    lookouts.close()


def test_blocks_are_sent_before_all_rows_are_read() -> None:
    read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        while read < 100_000:
            read += 1
            yield {"id": "x" * 1000}

    blocks = in_blocks(csv_lines("results", rows()))
    sizes = [len(next(blocks)) for _ in range(3)]
    assert max(sizes) < 70_000
    assert read < 200


def test_invalid_exports_are_rejected(client: TestClient) -> None:
    assert client.get("/api/v1/export", params={"of": "results", "format": "otlp"}).status_code == 422
    answer = client.get("/api/v1/export", params={"agent": "dusk"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "agent: there is no dusk; did you mean desk?")
    assert client.get(f"/api/v1/spans/{'0' * 32}").status_code == 404


async def test_an_export_needs_the_token(tmp_path: Path) -> None:
    with served(tmp_path, token="a long and secret token") as locked:
        async with asking(locked) as client:
            for path in ("export", "export?of=incidents&format=csv", f"spans/{'0' * 32}"):
                assert (await client.get(f"/api/v1/{path}")).status_code == 401
            told = {"authorization": "Bearer a long and secret token"}
            assert (await client.get("/api/v1/export", headers=told)).status_code == 200


def test_the_command_writes_the_same_bytes_as_the_api(folder: Path, client: TestClient, tmp_path: Path) -> None:
    store, where = ("--store", str(folder)), ("--where", ",".join(f"{key}={value}" for key, value in LOOPING.items()))
    for format_ in ("json", "csv"):
        expected = exported(client, format=format_, **LOOPING)
        assert command(*store, *where, "--format", format_).encode() == expected
        written = tmp_path / format_
        command(*store, *where, "--format", format_, "--output", str(written))
        assert written.read_bytes() == expected
    assert command(*store, "--of", "incidents").count("\n") == len(GROUPS)
    assert "--of traces" in command(*store, "--of", "results", "--format", "case", code=2)
    said = command(*store, "--output", str(tmp_path / "no" / "file"), code=2)
    assert "cannot be written: No such file or directory; name a writable file in an existing folder" in " ".join(
        said.split()
    )


def test_downloading_a_file_without_a_collector_is_a_clear_error() -> None:
    async def ask() -> None:
        asker = AsyncApiClient.over_http("http://127.0.0.1:1")
        try:
            await asker.file("/spans/ab")
        finally:
            await asker.close()

    with pytest.raises(ApiRequestError, match="no collector answers at http"):
        asyncio.run(ask())
