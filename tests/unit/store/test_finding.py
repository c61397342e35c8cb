"""Indexed lists equal full scans."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet, finding
from pandaeval_collector.store.failing import read_failures
from pandaeval_collector.store.failure_groups import FailureGroupRow, groups
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NOT_FAILED, Wanted
from pandaeval_collector.store.rates import runs_over_time
from pandaeval_otel.wire.labels import HumanLabel

AGENTS, WORDS = ("booker", "library_help"), ("parcel", "Ticket", "50% off", "a_b")
_DAY = 86_400_000


def _traces() -> list[dict[str, Any]]:
    """Return sixty traces in eight sessions or none."""
    chance = random.Random(5)
    made = []
    for number in range(60):
        score = chance.choice((0.1, 0.4, 0.6, 0.9, 1.0))
        made.append(
            {
                "id": f"{number:032x}",
                "session": None if number % 5 == 0 else f"s{number % 8}",
                "agent": AGENTS[number % 2],
                "at": number * _DAY // 10,
                "in": f"Where is my {chance.choice(WORDS)} number {number}?",
                "score": score,
                "failed": score < 0.5,
                "attributes": (f"service.version={number % 3}", *(["tier=gold = best"] if number % 7 == 0 else [])),
            }
        )
    return made


TRACES = _traces()


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finder]:
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder, "normal")
    changes = WriteSet()
    for each in TRACES:
        id_ = bytes.fromhex(each["id"])
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        changes.session_traces.append(SessionTraceRow(id_, each["session"] or "", each["at"], each["at"], b"{}"))
        facts = {"id": each["id"], "at": each["at"], "in": each["in"]}
        facts |= {"us": round(each["score"] * 1e6), "usd": each["score"]}
        changes.listed.append(
            ListedRow(id_, each["at"], each["agent"], "shop", "", "", False, orjson.dumps(facts), each["attributes"])
        )
        body = orjson.dumps({"metric": "coherence", "score": each["score"], "outcome": "scored"})
        result = ResultRow(each["id"][::-1], each["id"], "trace.coherence", 1, body)
        result.success, result.signal = not each["failed"], each["score"]
        changes.results.append(result)
    changes.touched |= {each["session"] for each in TRACES if each["session"]}
    texts = dict.fromkeys(("metric", "label", "title", "description", "severity", "agent", "service", "text"), "x")
    changes.failures.append(FailureGroupRow("g1", **texts, count=2, first_at=1.0, last_at=2.0))
    store.commit(changes).result()
    made = Finder(folder)
    yield made
    made.close()
    store.close()


def _first_failed(each: dict[str, Any]) -> bool:
    return each["failed"] and "service.version=1" in each["attributes"]


QUESTIONS: list[tuple[Wanted, Any]] = [
    (Wanted(), lambda each: True),
    (Wanted(agent="booker"), lambda each: each["agent"] == "booker"),
    (Wanted(failed=True), lambda each: each["failed"]),
    (Wanted(failed=False), lambda each: not each["failed"]),
    (Wanted(since_ms=2 * _DAY, until_ms=4 * _DAY), lambda each: 2 * _DAY <= each["at"] < 4 * _DAY),
    (
        Wanted(since_ms=2 * _DAY, agent="library_help", failed=True),
        lambda each: each["at"] >= 2 * _DAY and each["agent"] == "library_help" and each["failed"],
    ),
    (Wanted(session="s3"), lambda each: each["session"] == "s3"),
    (Wanted(text="TICKET number"), lambda each: "Ticket" in each["in"]),
    (Wanted(text="50% off"), lambda each: "50% off" in each["in"]),
    (Wanted(text="a_b", since_ms=_DAY), lambda each: "a_b" in each["in"] and each["at"] >= _DAY),
    (Wanted(text="nobody said this"), lambda each: False),
    (Wanted(metric="trace.coherence", success=False), lambda each: each["failed"]),
    (Wanted(metric="trace.grounding"), lambda each: False),
    (Wanted(agent="nobody"), lambda each: False),
    (Wanted(attribute=("service.version=1",)), lambda each: "service.version=1" in each["attributes"]),
    (
        Wanted(attribute=("service.version=0", "tier=gold = best"), failed=True, since_ms=_DAY),
        lambda each: (
            {"service.version=0", "tier=gold = best"} <= {*each["attributes"]} and each["failed"] and each["at"] >= _DAY
        ),
    ),
    (Wanted(attribute=("service.version=1",), metric="trace.coherence", success=False), _first_failed),
    (Wanted(attribute=("service.version=9",)), lambda each: False),
    (Wanted(min_seconds=0.5), lambda each: each["score"] >= 0.5),
    (Wanted(min_usd=0.5, agent="booker"), lambda each: each["score"] >= 0.5 and each["agent"] == "booker"),
]


def _pages(ask: Any, wanted: Wanted, **how: Any) -> list[Any]:
    found: list[Any] = []
    after = None
    while True:
        page = ask(wanted, after=after, limit=7, **how)
        found += page.rows
        if page.next is None:
            return found
        after = page.next


@pytest.mark.parametrize("many", [1, 20, 10_000])
@pytest.mark.parametrize(("wanted", "fits"), QUESTIONS)
def test_traces_match_the_filter_in_list_order(
    finder: Finder, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, fits: Any, many: int
) -> None:
    monkeypatch.setattr("pandaeval_collector.store.listed_pages._MANY", many)
    expected = [each for each in TRACES if fits(each)]
    worst = sorted(expected, key=lambda each: (not each["failed"], each["score"], each["id"]))
    assert [row.facts["id"] for row in _pages(finder.traces, wanted)] == [each["id"] for each in worst]
    newest = sorted(expected, key=lambda each: -each["at"])
    found = _pages(finder.traces, wanted, worst_first=False)
    assert [row.facts["id"] for row in found] == [each["id"] for each in newest]
    assert [row.session for row in found] == [each["session"] for each in newest]
    counts = finder.counts(wanted)
    assert counts in (None, (len(expected), sum(each["failed"] for each in expected)))
    looked_through = wanted.text is not None or wanted.metric is not None or wanted.session is not None
    looked_through = looked_through or wanted.attribute != () or None is not (wanted.min_seconds or wanted.min_usd)
    assert (counts is None) is looked_through


@pytest.mark.parametrize("many", [1, 10_000])
@pytest.mark.parametrize(("wanted", "fits"), QUESTIONS)
def test_a_session_is_sorted_by_its_worst_matching_trace(
    finder: Finder, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, fits: Any, many: int
) -> None:
    monkeypatch.setattr("pandaeval_collector.store.listed_pages._MANY", many)
    seen: dict[str, dict[str, Any]] = {}
    for each in sorted(filter(fits, TRACES), key=lambda each: (not each["failed"], each["score"], each["id"])):
        seen.setdefault(each["session"] or each["id"], each)
    found = _pages(finder.sessions, wanted)
    assert [(unit.id, unit.worst.facts["id"]) for unit in found] == [
        (one["session"], one["id"]) for one in seen.values()
    ]


def test_a_session_has_its_trace_count_failures_and_first_question(finder: Finder) -> None:
    of_it = [each for each in TRACES if each["session"] == "s3"]
    found = finder.session("s3", 4)
    assert found is not None
    unit, rows = found
    assert (unit.traces, unit.failed_traces) == (len(of_it), sum(each["failed"] for each in of_it))
    assert unit.question == min(of_it, key=lambda each: each["at"])["in"], "the first question"
    assert [badness < NOT_FAILED for badness in unit.badness] == [each["failed"] for each in of_it]
    assert len(rows) == 4
    assert finder.members("s3") == [each["id"] for each in of_it]
    assert finder.session("nobody's") is None
    assert finder.members("nobody's") == []


def test_names_lists_all_agents_services_and_environments(finder: Finder) -> None:
    assert finder.names() == {"agent": ["booker", "library_help"], "service": ["shop"], "environment": []}


def test_attribute_keys_are_sorted_and_limited(finder: Finder) -> None:
    assert finder.attribute_keys() == ["service.version", "tier"]
    assert len(finder.attribute_keys(1)) == 1


def test_a_trace_is_found_by_id_or_id_prefix(finder: Finder) -> None:
    row = finder.trace(bytes.fromhex(TRACES[3]["id"]))
    assert row is not None
    assert (row.facts["id"], row.session, row.failed) == (TRACES[3]["id"], TRACES[3]["session"], TRACES[3]["failed"])
    assert (row.worst, row.results["trace.coherence"]["score"]) == (TRACES[3]["score"], TRACES[3]["score"])
    assert finder.trace(b"\xff" * 16) is None
    begins = f"{3:032x}"[:-1]
    assert sorted(finder.traces_from(begins, 99)) == [f"{number:032x}" for number in range(16)]
    assert len(finder.traces_from(begins)) == 2
    assert finder.traces_from(TRACES[59]["id"]) == [TRACES[59]["id"]]
    assert finder.traces_from("f") == []


def test_sessions_are_found_by_id_prefix(finder: Finder) -> None:
    assert sorted(finder.sessions_from("s", 99)) == [f"s{number}" for number in range(8)]
    assert (len(finder.sessions_from("s")), finder.sessions_from("s3"), finder.sessions_from("t")) == (2, ["s3"], [])


def test_a_name_is_known_if_a_trace_has_it(finder: Finder) -> None:
    assert finder.is_named("agent", "booker")
    assert finder.is_named("service", "shop")
    assert not finder.is_named("agent", "shop")
    assert not finder.is_named("user", "booker")


def test_count_and_oldest_consider_only_matching_traces(finder: Finder) -> None:
    assert finder.count(Wanted(agent="booker", failed=True)) == sum(
        each["agent"] == "booker" and each["failed"] for each in TRACES
    )
    assert finder.oldest(Wanted()) == 0
    assert finder.oldest(Wanted(since_ms=_DAY)) == _DAY
    assert finder.oldest(Wanted(agent="nobody")) is None


@pytest.mark.parametrize("limit", [7, 30, 31])
def test_results_are_read_newest_first_page_by_page(finder: Finder, limit: int) -> None:
    found: list[Any] = []
    after = None
    while True:
        page = finder.results(Wanted(agent="booker"), after=after, limit=limit)
        found += [each["score"] for each in page.rows]
        if page.next is None:
            break
        assert len(page.rows) == limit
        assert page.next[0] == 0.0
        after = page.next
    assert found == [each["score"] for each in reversed(TRACES) if each["agent"] == "booker"]


def test_results_are_read_by_their_numbers(finder: Finder) -> None:
    newest = finder.newest()
    assert newest == len(TRACES)
    assert finder.bodies([newest, 1]) == {
        number: {"metric": "coherence", "score": TRACES[number - 1]["score"], "outcome": "scored"}
        for number in (1, newest)
    }


def test_failures_are_read_oldest_first_with_the_failure_groups(finder: Finder) -> None:
    failed, known, _ = read_failures(finder, Wanted(since_ms=_DAY))
    expected = [(each["at"], each["agent"]) for each in TRACES if each["failed"] and each["at"] >= _DAY]
    assert [(each.at, each.agent) for each in failed] == expected
    assert {each.metric for each in failed} == {"trace.coherence"}
    assert known == {each.id: each for each in groups(finder.connection())}
    assert known.keys() == {"g1"}


def test_runs_over_time_counts_matching_runs_per_bucket(finder: Finder) -> None:
    found = runs_over_time(finder, Wanted(agent="booker", since_ms=_DAY), _DAY, 2 * _DAY)
    expected: dict[int, list[bool]] = {}
    for each in TRACES:
        if each["agent"] == "booker" and each["at"] >= _DAY:
            expected.setdefault((each["at"] - _DAY) // (2 * _DAY), []).append(each["failed"])
    assert [(one.bucket, one.agent, one.runs, one.failed) for one in found] == [
        (bucket, "booker", len(failed), sum(failed)) for bucket, failed in sorted(expected.items())
    ]


class TestSmallStores:
    """Each test has its own small store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        opened = Store(tmp_path, "normal")
        yield opened
        opened.close()

    @pytest.fixture
    def finder(self, store: Store, tmp_path: Path) -> Iterator[Finder]:
        made = Finder(tmp_path)
        yield made
        made.close()

    def listed(self, number: int, **fields: str) -> ListedRow:
        names = {"agent": "a", "service": "s", "environment": "", "user": "", **fields}
        return ListedRow(number.to_bytes(16, "big"), number, **names, broken=False, facts=b"{}")

    def test_names_lists_at_most_200_agents(self, store: Store, finder: Finder) -> None:
        changes = WriteSet()
        for number in range(1, 206):
            id_ = number.to_bytes(16, "big")
            changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
            changes.listed.append(self.listed(number, agent=f"{number:03}", environment="test" if number < 3 else ""))
        store.commit(changes).result()
        found = finder.names()
        assert found["agent"] == [f"{number:03}" for number in range(1, 201)]
        assert (found["service"], found["environment"]) == (["s"], ["test"])

    def test_names_are_cached_for_fifty_times_their_read_time(
        self, store: Store, finder: Finder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = iter([100.0, 102.0, 201.5, 202.0, 202.5, 203.0])
        monkeypatch.setattr(finding, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        assert finder.names()["agent"] == []
        decided = DecidedTrace((1).to_bytes(16, "big"), 1, True, "d", frozenset(), [], 0)
        store.commit(WriteSet(traces=[decided], listed=[self.listed(1)])).result()
        assert [finder.names()["agent"] for _ in range(3)] == [[], ["a"], ["a"]]

    def test_the_newest_session_results_are_read_by_session_id(self, store: Store, finder: Finder) -> None:
        changes = WriteSet(touched={"s", "t"})
        for number, session in ((1, "s"), (2, "t")):
            id_ = number.to_bytes(16, "big")
            changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
            changes.session_traces.append(SessionTraceRow(id_, session, 1, 2, b"{}"))
            changes.results.append(ResultRow(f"r{number}", id_.hex(), "trace.x", 1, b"{}"))
        store.commit(changes).result()
        for revision in (1, 2):
            body = orjson.dumps({"revision": revision})
            store.commit(WriteSet(results=[ResultRow(f"s{revision}", "s", "session.x", revision, body)])).result()
        assert finder.of_sessions(["s", "t", "u"]) == {"s": {"session.x": {"revision": 2}}, "t": {}}
        assert finder.of_sessions([]) == {}

    def test_human_verdicts_are_read_newest_first_page_by_page(self, store: Store, finder: Finder) -> None:
        for number in range(5):
            label = HumanLabel(f"t{number % 3}", f"m{number % 2}", None, True, f"p{number}")
            store.people.put([label], 500.0).result()
        page = finder.labels((), None, limit=2)
        assert [each.annotator for each in page.rows] == ["p4", "p3"]
        assert page.next is not None
        assert page.next[0] == 0.0
        rest = finder.labels((), None, before=page.next[1], limit=3)
        assert ([each.annotator for each in rest.rows], rest.next) == (["p2", "p1", "p0"], None)
        assert [each.annotator for each in finder.labels(("t0",), None).rows] == ["p3", "p0"]
        assert [each.annotator for each in finder.labels(("t0", "t1"), "m0").rows] == ["p4", "p0"]

    def test_each_turn_of_a_trace_has_its_own_result(self, store: Store, finder: Finder) -> None:
        id_ = (1).to_bytes(16, "big")
        changes = WriteSet(traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)], listed=[self.listed(1)])
        for seq, (unit, metric) in enumerate(
            ((f":{10:016x}", "turn.x"), (f":{11:016x}", "turn.x"), ("", "trace.x"), ("", "trace.x"))
        ):
            body = orjson.dumps({"seq": seq})
            changes.results.append(ResultRow(f"r{seq}", id_.hex() + unit, metric, 1, body))
        store.commit(changes).result()
        row = finder.trace(id_)
        assert row is not None
        assert {key: body["seq"] for key, body in row.results.items()} == {
            f"turn.x {id_.hex()}:{10:016x}": 0,
            f"turn.x {id_.hex()}:{11:016x}": 1,
            "trace.x": 3,
        }

    def test_the_change_marker_differs_after_a_new_trace_or_result(self, store: Store, finder: Finder) -> None:
        markers = [finder.change()]
        id_ = (1).to_bytes(16, "big")
        decided = DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)
        store.commit(WriteSet(traces=[decided], listed=[self.listed(1)])).result()
        markers.append(finder.change())
        store.commit(WriteSet(results=[ResultRow("r", id_.hex(), "trace.x", 1, b"{}")])).result()
        markers.append(finder.change())
        assert len({*markers}) == 3
        assert finder.change() == markers[-1]

    def test_a_session_with_a_passed_score_of_zero_is_not_failed(self, store: Store, finder: Finder) -> None:
        id_ = (1).to_bytes(16, "big")
        changes = WriteSet(traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)], listed=[self.listed(1)])
        changes.session_traces.append(SessionTraceRow(id_, "s", 1, 2, b"{}"))
        result = ResultRow("r", id_.hex(), "trace.x", 1, orjson.dumps({"metric": "x", "score": 0.0}))
        result.success, result.signal = True, 0.0
        changes.results.append(result)
        changes.touched.add("s")
        store.commit(changes).result()
        [session] = finder.sessions(Wanted()).rows
        assert session.worst is not None
        assert (session.id, session.failed, session.worst.failed, session.worst.worst) == ("s", False, False, 0.0)
