"""Incidents over the API."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.show.api.incidents import FailureWindow
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.incidents import incidents
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.rows import DecidedTrace, ListedRow, ResultRow, SessionTraceRow
from pandaeval_collector.store.triage import Triage
from support.api import ReadInterfaces
from unit.show.api.test_incidents import SPAN, failed, group

RUNS = [(at, f"{at:032x}", "desk" if at < 4 else "shop", "1" if at < 2 else "2", at != 5) for at in range(6)]
LOOP, ALONE = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
NOW = 1_700_000_000_000


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    store, changes = Store(tmp_path, "off"), WriteSet(listed=_listed())
    for at, id_, _, _, fails in RUNS:
        trace = bytes.fromhex(id_)
        changes.traces.append(DecidedTrace(trace, 1, True, "d", frozenset(), [], 0))
        for metric in ("trace.loop", "trace.call") if fails else ():
            body = {"label": metric, "reason": f"{metric} in {at}", "trace_id": id_, "outcome": "scored", "score": 0.0}
            body |= {"level": "trace", "metric": metric.partition(".")[2], "success": False, "why": None}
            body |= {"span_ids": ["s1", "s2"], "evaluator": {"kind": "code"}, "session_id": None}
            body["metadata"] = {"failure_group": {"id": LOOP if metric == "trace.loop" else ALONE}}
            result = ResultRow(f"{metric} {id_}", id_, metric, 1, orjson.dumps(body))
            result.success, result.signal = False, 0.0
            changes.results.append(result)
    changes.failures += [group(LOOP, "high", "it loops"), group(ALONE, "medium", "it repeats")]
    store.commit(changes).result()
    lookouts = ReadInterfaces(tmp_path, Work(store))
    yield TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    lookouts.close()
    store.close()


def _listed() -> list[ListedRow]:
    rows = []
    for at, id_, agent, version, _ in RUNS:
        facts = {"id": id_, "at": NOW + at, "in": f"question {at}", "out": f"answer {at}", "agent": agent}
        facts |= {"us": 1, "spans": 2, "llm": 1, "tools": 1}
        row = ListedRow(bytes.fromhex(id_), NOW + at, agent, agent, "", "", False, orjson.dumps(facts))
        rows.append(replace(row, attributes=(f"service.version={version}", "gen_ai.request.model=m")))
    return rows


def _found(client: TestClient, **asked: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/incidents", params=asked).json()
    assert answer["total"] == len(answer["incidents"])
    return list(answer["incidents"])


def test_an_incident_has_its_runs_shares_and_examples(client: TestClient) -> None:
    [row] = _found(client)
    assert (row["metric"], row["also"], row["runs"]) == ("trace.loop", [["trace.call", "trace.call"]], 5)
    assert row["triage"] == {"state": "new", "note": "", "by": "", "at": None, "back_at": None}
    whole = client.get(f"/api/v1/incidents/{ALONE}").json()
    assert {key: whole[key] for key in row} == row, "found by any of its groups"
    assert client.get(f"/api/v1/incidents/{ALONE[:4]}").json()["id"] == row["id"], "found by a unique prefix"
    assert (sum(whole["all"]), sum(whole["failed"])) == (6, 5)
    shares = {(part["kind"], part["name"]): (part["failed"], part["runs"]) for part in whole["parts"]}
    by_agent = {("agent", "desk"): (4, 4), ("agent", "shop"): (1, 2)}
    assert shares == by_agent | {("version", "1"): (2, 2), ("version", "2"): (3, 4), ("model", "m"): (5, 6)}
    newest = whole["examples"][0]
    said = {"input": "question 4", "output": "answer 4", "trace_id": RUNS[4][1]}
    assert {key: newest[key] for key in said} == said
    assert "trace.loop in 4" in {each["reason"] for each in newest["results"]}
    assert client.get("/api/v1/incidents/none").status_code == 404


def test_the_state_of_an_incident_is_stored_and_muted_incidents_are_not_open(client: TestClient) -> None:
    [row] = _found(client, state="open")
    tag = client.get("/api/v1/incidents").headers["etag"]
    said = {"ids": row["ids"], "state": "muted", "note": " known upstream ", "by": "kim"}
    answer = client.post("/api/v1/incidents/state", json=said)
    assert (answer.status_code, answer.json()["note"]) == (200, "known upstream")
    assert _found(client, state="open") == []
    [muted] = _found(client, state="muted")
    assert (muted["triage"]["by"], muted["triage"]["note"]) == ("kim", "known upstream")
    assert client.get("/api/v1/incidents", headers={"if-none-match": tag}).status_code == 200
    client.post("/api/v1/incidents/state", json={"ids": row["ids"], "state": "new"})
    assert len(_found(client, state="new")) == 1
    history = client.get(f"/api/v1/incidents/{row['id']}").json()["history"]
    assert [(each["state"], each["by"], each["note"]) for each in history] == [
        ("new", "", ""),
        ("muted", "kim", "known upstream"),
    ]
    states = client.get("/api/v1/incidents", params={"severity": "critical"}).json()["states"]
    assert states == {"new": 0, "known": 0, "resolved": 0, "muted": 0}


@pytest.mark.parametrize(
    "wrong", [{"ids": []}, {"ids": ["../x"]}, {"state": "gone"}, {"more": 1}, {"note": "x" * 2001}]
)
def test_an_invalid_incident_state_is_rejected(client: TestClient, wrong: dict[str, Any]) -> None:
    said = {"ids": [LOOP], "state": "known"} | wrong
    assert client.post("/api/v1/incidents/state", json=said).status_code == 422
    assert len(_found(client, state="new")) == 1


@pytest.mark.parametrize("ids", [["0123456789ab"], [LOOP, "0123456789ab"]])
def test_a_note_on_an_unknown_incident_is_rejected(client: TestClient, ids: list[str]) -> None:
    answer = client.post("/api/v1/incidents/state", json={"ids": ids, "state": "known", "note": "x"})
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no incident 0123456789ab")
    assert len(_found(client, state="new")) == 1


def test_dismissed_findings_are_counted_and_removed_from_their_incident(client: TestClient, tmp_path: Path) -> None:
    [row] = _found(client)
    assert (row["dismissed"], row["among"]) == (0, 6)
    _dismiss(tmp_path, {4})
    assert [(row["runs"], row["dismissed"]) for row in _found(client)] == [(4, 1)], "a run with two dismissed findings"
    assert client.get(f"/api/v1/incidents/{ALONE}").json()["dismissed"] == 1
    _lists_what_it_counts(client)
    _dismiss(tmp_path, {0, 1, 2, 3})
    assert _found(client) == []
    gone = client.get(f"/api/v1/incidents/{LOOP}")
    assert (gone.status_code, gone.json()["detail"]) == (
        404,
        f"all findings of incident {LOOP} in this window are dismissed (5 runs)",
    )


def test_an_incident_of_sessions_is_a_share_of_the_sessions_of_its_agents(tmp_path: Path) -> None:
    body = {"label": "wrong_thing", "reason": "no", "trace_id": RUNS[1][1], "outcome": "scored", "score": 0.0}
    body |= {"level": "session", "metric": "correctness", "success": False, "why": None, "span_ids": ["s1"]}
    body |= {"evaluator": {"kind": "llm"}, "session_id": "s0", "agent": "desk", "metadata": {}}
    verdict = ResultRow("verdict", "s0", "session.correctness", 1, orjson.dumps(body))
    verdict.success, verdict.signal, verdict.verdict = False, 0.0, "failed"
    members = [
        SessionTraceRow(bytes.fromhex(id_), f"s{at // 2}", (NOW + at) * 10**6, (NOW + at) * 10**6, b"{}")
        for at, id_, *_ in RUNS
    ]
    store = Store(tmp_path / "sessions", "off")
    changes = WriteSet(listed=_listed(), session_traces=members, results=[verdict], touched={"s0", "s1", "s2"})
    changes.traces += [DecidedTrace(each.trace_id, 1, True, "d", frozenset(), [], 0) for each in members]
    store.commit(changes).result()
    lookouts = ReadInterfaces(tmp_path / "sessions", Work(store))
    found = _found(TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost"))
    assert [(row["metric"], row["runs"], row["among"]) for row in found] == [("session.correctness", 1, 2)]
    lookouts.close()
    store.close()


def test_a_prefix_of_several_incidents_is_a_conflict() -> None:
    both = incidents([failed(1, 1, group="ab1"), failed(2, 2, group="ab2", label="late")], {})
    window = FailureWindow(Wanted(), SPAN, SPAN, [(each, Triage()) for each in both], [], {})
    assert window.named("ab1")[0].id == "ab1"
    with pytest.raises(ProblemError, match="several incidents begin with ab: ab1, ab2") as error:
        window.named("ab")
    assert error.value.status == 409


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def _lists_what_it_counts(client: TestClient) -> None:
    asked: tuple[dict[str, Any], ...] = ({}, {"agent": "shop"}, {"agent": "desk"})
    of_time = ({"since": _time(NOW + 4)}, {"until": _time(NOW + 4)}, {"label": "trace.loop"}, {"failed": True})
    counts = []
    for filters in (*asked, *of_time):
        for row in _found(client, **filters):
            label = {**filters, "incident": ",".join(row["ids"]), "label": "dismissed"}
            label.pop("failed", None)
            listed = client.get("/api/v1/traces", params=label).json()["items"]
            counts.append((row["dismissed"], len(listed)))
    assert all(counted == listed for counted, listed in counts), counts
    assert {counted for counted, _ in counts} == {0, 1}


def _dismiss(folder: Path, runs: set[int]) -> None:
    """Dismiss both findings of runs as the line does."""
    with sqlite3.connect(folder / "pandaeval.db") as database:
        for at in runs:
            for metric in ("trace.loop", "trace.call"):
                where = f"metric = '{metric}' AND unit = '{at:032x}'"
                database.execute(f"""UPDATE results SET success = NULL, verdict = '',
                    body = json_set(CAST(body AS TEXT), '$.label', 'dismissed', '$.success', NULL) WHERE {where}""")
                database.execute(
                    "INSERT INTO people_labels (unit, metric, annotator, at, comment, door, passed) "
                    "VALUES (?, ?, 'mia', 1, 'false', 'dismissal', 1)",
                    (f"{at:032x}", metric),
                )
    database.close()
