"""Lists of traces and sessions, worst first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    ListedRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
    connection,
)
from pandaeval_collector.store.connection import FILE_NAME, TooSlowError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED, Wanted
from pandaeval_collector.store.listed_pages import MOST_STATES, Listed, ListedSession
from support.database import kept_bytes, open_database

WINDOW, RETENTION = 600.0, 86_400.0


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


@pytest.fixture
def finder(store: Store, tmp_path: Path) -> Iterator[Finder]:
    opened = Finder(tmp_path)
    yield opened
    opened.close()


def result(number: int, metric: str, success: bool | None, signal: float | None, revision: int = 1) -> ResultRow:
    body = b'{"metric": "%s", "outcome": "scored", "label": "l%d"}' % (metric.encode(), revision)
    id_ = f"{number} {metric} {revision}"
    return ResultRow(id_, trace_id(number).hex(), f"trace.{metric}", revision, body, success=success, signal=signal)


def decide(
    store: Store,
    number: int,
    *results: ResultRow,
    session: str = "",
    broken: bool = False,
    data: bytes = b"spans",
    more: bytes = b"",
) -> None:
    id_ = trace_id(number)
    chunk = Chunk(store.next_chunk_id(), id_, False, 1, number, data)
    store.append([chunk]).result(10)
    facts = b'{"id": "%s", "at": %d, "in": "100%% of _%d_"%s}' % (id_.hex().encode(), number, number, more)
    changes = WriteSet(
        traces=[DecidedTrace(id_, 1, False, "digest", frozenset({id_[:8]}), [chunk.id], len(data))],
        results=list(results),
        listed=[ListedRow(id_, number, f"agent {number % 2}", "svc", "", "", broken, facts)],
    )
    if session:
        changes.touched.add(session)
        changes.session_traces.append(SessionTraceRow(id_, session, number, number + 1, b"{}"))
    store.commit(changes).result(10)


def order(finder: Finder, wanted: Wanted | None = None, **how: object) -> list[int]:
    page = finder.traces(wanted or Wanted(), **how)  # type: ignore[arg-type]
    return [int(row.facts["id"], 16) for row in page.rows]


def test_failed_traces_come_first_then_the_lowest_scores(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9))
    decide(store, 2, result(2, "a", False, 0.4), result(2, "b", True, 0.95))
    decide(store, 3, result(3, "a", None, None))
    decide(store, 4, result(4, "a", True, 0.55))
    decide(store, 5, result(5, "a", True, 1.0), broken=True)
    decide(store, 6, result(6, "a", False, 0.1))
    assert order(finder) == [5, 6, 2, 4, 1, 3]
    assert order(finder, worst_first=False) == [6, 5, 4, 3, 2, 1]


def test_all_pages_together_equal_the_whole_list(store: Store, finder: Finder) -> None:
    for number in range(1, 12):
        decide(store, number, result(number, "a", number % 3 > 0, number % 4 / 4))
    for worst_first in (True, False):
        found, after = [], None
        while True:
            page = finder.traces(Wanted(), worst_first=worst_first, after=after, limit=2)
            found += [int(row.facts["id"], 16) for row in page.rows]
            after = page.next
            if after is None:
                break
        assert found == order(finder, worst_first=worst_first, limit=100)
        assert sorted(found) == list(range(1, 12))


def test_a_newer_result_replaces_an_older_one_in_the_list(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", False, 0.2))
    decide(store, 2, result(2, "a", True, 0.8))
    assert order(finder) == [1, 2]
    store.commit(WriteSet(results=[result(1, "a", True, 0.9, revision=2)])).result(10)
    store.commit(WriteSet(results=[result(2, "b", False, 0.3)])).result(10)
    assert order(finder) == [2, 1]
    assert order(finder, Wanted(metric="trace.a", label="l2")) == [1]
    assert order(finder, Wanted(metric="trace.a", label="l1")) == [2]
    assert [row.failures for row in finder.traces(Wanted()).rows] == [1, 0]


def test_a_session_is_sorted_by_its_worst_trace_or_its_own_result(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9), session="fine")
    decide(store, 2, result(2, "a", False, 0.4), session="bad")
    decide(store, 3, result(3, "a", True, 0.6), session="bad")
    decide(store, 4, result(4, "a", True, 0.7))
    decide(store, 5, result(5, "a", True, 0.95), session="own")
    whole = ResultRow("own", "own", "session.s", 1, b'{"metric": "s"}', success=False, signal=0.1)
    store.commit(WriteSet(results=[whole])).result(10)
    rows = finder.sessions(Wanted()).rows
    assert [row.id for row in rows] == ["own", "bad", None, "fine"]
    assert [row.traces for row in rows] == [1, 2, 1, 1]
    assert [row.failed for row in rows] == [True, True, False, False]
    assert [*rows[0].results] == ["session.s"]
    assert [int(row.worst.facts["id"], 16) for row in rows if row.worst] == [5, 2, 4, 1]
    found = finder.session("bad")
    assert found is not None
    assert [int(row.facts["id"], 16) for row in found[1]] == [2, 3]
    assert finder.session("nobody") is None
    assert [row.id for row in finder.sessions(Wanted(agent="agent 1")).rows] == ["own", "bad", "fine"]


def test_a_session_whose_own_result_passes_is_not_failed(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9), session="calm")
    whole = ResultRow("calm", "calm", "session.s", 1, b'{"metric": "s"}', success=True, signal=0.8)
    store.commit(WriteSet(results=[whole])).result(10)
    [row] = finder.sessions(Wanted()).rows
    assert (row.failed, row.position[0]) == (False, NOT_FAILED + 0.8)


@pytest.mark.parametrize(
    ("more", "us", "tokens", "usd"), [(b', "us": 3, "usd": 0.5, "tokens": [2, 5]', 3, 7, 0.5), (b"", 0, 0, None)]
)
@pytest.mark.parametrize(("success", "badness"), [(True, NOT_FAILED + 0.25), (False, 0.25)])
def test_a_trace_without_session_is_listed_as_its_own_session(
    store: Store, finder: Finder, success: bool, badness: float, more: bytes, us: int, tokens: int, usd: float | None
) -> None:
    decide(store, 7, result(7, "a", success, 0.25), more=more)
    [row] = finder.sessions(Wanted()).rows
    itself = finder.trace(trace_id(7))
    failed = not success
    assert row == ListedSession(
        None, 1, (badness, 1), 1, int(failed), 7, 7, failed, itself, {}, [badness], us, tokens, usd, "100% of _7_"
    )


def test_a_session_row_sums_up_its_traces(store: Store, finder: Finder) -> None:
    decide(store, 4, result(4, "a", True, 0.5), session="s", more=b', "us": 3, "usd": 0.5, "tokens": [2, 5]')
    decide(store, 9, result(9, "a", False, 0.25), session="s", more=b', "us": 4, "usd": 0.25, "tokens": [1, 30]')
    decide(store, 6, result(6, "a", True, 0.75), session="s")
    whole = ResultRow("own", "s", "session.s", 1, b'{"metric": "s"}', success=True, signal=0.125)
    store.commit(WriteSet(results=[whole])).result(10)
    [row] = finder.sessions(Wanted()).rows
    states = [NOT_FAILED + 0.5, 0.25, NOT_FAILED + 0.75]
    own = {"session.s": {"metric": "s"}}
    worst = finder.trace(trace_id(9))
    assert row == ListedSession("s", 1, (0.25, 2), 3, 1, 4, 9, True, worst, own, states, 7, 38, 0.75, "100% of _4_")
    found = finder.session("s")
    assert found is not None
    assert found[0] == row
    assert [one.no for one in found[1]] == [1, 3, 2]


def test_a_session_sorted_by_its_own_result_shows_its_worst_trace(store: Store, finder: Finder) -> None:
    decide(store, 4, result(4, "a", True, 0.5), session="s")
    decide(store, 5, result(5, "a", True, 0.25), session="s")
    whole = ResultRow("own", "s", "session.s", 1, b'{"metric": "s"}', success=False, signal=0.125)
    store.commit(WriteSet(results=[whole])).result(10)
    [row] = finder.sessions(Wanted()).rows
    assert (row.position, row.failed, row.failed_traces, row.worst) == ((0.12, -1), True, 0, finder.trace(trace_id(5)))
    assert (row.us, row.tokens, row.usd) == (0, 0, None)


def test_a_session_with_only_its_own_results_shows_no_trace(store: Store, finder: Finder) -> None:
    row = DecidedTrace(trace_id(1), 1, False, "digest", frozenset(), (), 0)
    changes = WriteSet(traces=[row], session_traces=[SessionTraceRow(trace_id(1), "s", 1, 2, b"{}")], touched={"s"})
    store.commit(changes).result(10)
    whole = ResultRow("own", "s", "session.s", 1, b'{"metric": "s"}', success=False, signal=None)
    store.commit(WriteSet(results=[whole])).result(10)
    own = {"session.s": {"metric": "s"}}
    assert finder.sessions(Wanted()).rows == [ListedSession("s", 1, (NO_SCORE, -1), 0, 0, 0, 0, True, None, own, [])]
    assert finder.session("s") is None


def test_a_long_session_shows_the_badness_of_its_worst_traces_in_trace_order(store: Store, finder: Finder) -> None:
    count = MOST_STATES + 2
    for number in range(1, count + 1):
        decide(store, number, result(number, "a", True, 1 - number / 100), session="s")
    [row] = finder.sessions(Wanted()).rows
    assert [round(each - NOT_FAILED, 2) for each in row.badness] == [
        round(1 - number / 100, 2) for number in range(3, count + 1)
    ]
    assert row.traces == count


def test_a_later_result_does_not_improve_a_crashed_trace(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9), broken=True)
    store.commit(WriteSet(results=[result(1, "b", False, 0.5)])).result(10)
    [row] = finder.traces(Wanted()).rows
    assert (row.badness, row.failures) == (0.0, 2)


@pytest.mark.parametrize("broken", [False, True])
def test_a_trace_decided_again_still_counts_its_other_results(store: Store, finder: Finder, broken: bool) -> None:
    decide(store, 1, result(1, "a", False, 0.25), result(1, "b", True, 0.5))
    decide(store, 1, result(1, "b", False, 0.75, revision=2), broken=broken)
    [row] = finder.traces(Wanted()).rows
    assert (row.badness, row.failures) == ((0.0, 3) if broken else (0.25, 2))


def test_a_row_has_all_facts_of_its_trace(store: Store, finder: Finder) -> None:
    changes = WriteSet(
        traces=[DecidedTrace(trace_id(1), 1, False, "digest", frozenset(), (), 0)],
        results=[result(1, "a", False, 0.25), result(1, "b", True, 0.5)],
        listed=[ListedRow(trace_id(1), 9, "helper", "shop", "live", "ann", False, b'{"id": "x", "at": 9}')],
        session_traces=[SessionTraceRow(trace_id(1), "s", 9, 10, b"{}")],
        touched={"s"},
    )
    store.commit(changes).result(10)
    results = {f"trace.{name}": {"metric": name, "outcome": "scored", "label": "l1"} for name in "ab"}
    row = Listed(1, "s", 0.25, 1, {"id": "x", "at": 9}, results, "live")
    assert finder.trace(trace_id(1)) == row
    assert finder.traces(Wanted()).rows == finder.traces(Wanted(), worst_first=False).rows == [row]
    for name, value in {"agent": "helper", "service": "shop", "environment": "live", "user": "ann"}.items():
        assert finder.traces(Wanted(**{name: value})).rows == [row], name  # type: ignore[arg-type]
        assert finder.traces(Wanted(**{name: "x"})).rows == [], name  # type: ignore[arg-type]


def test_a_trace_decided_again_is_listed_with_its_new_facts(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9))
    decide(store, 1, result(1, "a", True, 0.9, revision=2), more=b', "us": 9')
    [row] = finder.traces(Wanted()).rows
    assert row.facts["us"] == 9


def test_a_trace_that_moves_is_listed_under_its_new_session(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", True, 0.9), session="first")
    row = SessionTraceRow(trace_id(1), "second", 1, 2, b"{}")
    store.commit(WriteSet(moved=[trace_id(1)], touched={"second"}, session_traces=[row])).result(10)
    assert [row.id for row in finder.sessions(Wanted()).rows] == ["second"]


def test_each_filter_selects_the_matching_traces_or_results(store: Store, finder: Finder) -> None:
    for number in range(1, 7):
        decide(store, number, result(number, "a", number > 3, number / 10), session="s" if number < 3 else "")
    assert order(finder, Wanted(agent="agent 1")) == [1, 3, 5]
    assert order(finder, Wanted(since_ms=2, until_ms=5)) == [2, 3, 4]
    assert order(finder, Wanted(failed=False)) == [4, 5, 6]
    assert order(finder, Wanted(session="s")) == [1, 2]
    assert order(finder, Wanted(session="other")) == []
    assert order(finder, Wanted(text="100% of _3")) == [3]
    assert order(finder, Wanted(text="%")) == [1, 2, 3, 4, 5, 6]
    assert order(finder, Wanted(text="__")) == []
    assert order(finder, Wanted(metric="trace.a", success=True)) == [4, 5, 6]
    assert len(finder.results(Wanted(success=False)).rows) == 3
    assert len(finder.results(Wanted(agent="agent 0"), limit=2).rows) == 2


def test_the_status_filter_depends_on_the_run_not_on_its_results(store: Store, finder: Finder) -> None:
    decide(store, 1, result(1, "a", False, 0.1))
    decide(store, 2, result(2, "a", True, 0.9), broken=True)
    decide(store, 3, result(3, "a", True, 0.8))
    assert order(finder, Wanted(status="error")) == [2]
    assert order(finder, Wanted(status="ok")) == [1, 3]


def test_a_trace_without_results_is_listed(store: Store, finder: Finder) -> None:
    decide(store, 1)
    decide(store, 2, session="s")
    assert [(row.no, row.results) for row in finder.traces(Wanted()).rows] == [(1, {}), (2, {})]
    assert [(row.id, row.results) for row in finder.sessions(Wanted()).rows] == [(None, {}), ("s", {})]


def test_a_long_session_shows_its_2000_worst_traces(store: Store, finder: Finder) -> None:
    ids = [trace_id(number) for number in range(1, 2003)]
    changes = WriteSet(
        traces=[DecidedTrace(id_, 1, False, "d", frozenset(), (), 0) for id_ in ids],
        listed=[ListedRow(id_, at, "", "", "", "", at > 2, b"{}") for at, id_ in enumerate(ids, 1)],
        session_traces=[SessionTraceRow(id_, "s", at, at, b"{}") for at, id_ in enumerate(ids, 1)],
        touched={"s"},
    )
    store.commit(changes).result(20)
    found = finder.session("s")
    assert found is not None
    whole, rows = found
    assert (whole.traces, whole.failed_traces) == (2002, 2000)
    assert [row.no for row in rows] == [*range(3, 2003)]


def test_a_query_that_takes_too_long_is_stopped(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_STEPS", 20_000)
    ids = [trace_id(number) for number in range(1, 4000)]
    listed = [ListedRow(id_, 1, "", "", "", "", False, b"{}") for id_ in ids]
    store.commit(
        WriteSet(traces=[DecidedTrace(id_, 1, False, "d", frozenset(), (), 0) for id_ in ids], listed=listed)
    ).result(20)
    hasty = Finder(tmp_path, limit_s=-1.0)
    with pytest.raises(TooSlowError, match="filter by time or agent"):
        hasty.traces(Wanted(text="never"))
    hasty.close()


def test_list_rows_of_deleted_traces_and_sessions_are_deleted_in_batches(store: Store, finder: Finder) -> None:
    for number in range(1, 6):
        decide(store, number, result(number, "a", True, 0.5), session=f"s{number}")
        whole = ResultRow(f"own {number}", f"s{number}", "session.s", 1, b"{}", success=True, signal=0.5)
        store.commit(WriteSet(results=[whole])).result(10)
    with open_database(store.path / FILE_NAME) as opened:
        opened.execute("DELETE FROM traces WHERE no < 4")
        opened.commit()
        assert [store.forget(1e9, 1e9, 0.0, limit=2).result(10) for _ in range(3)] == [2, 1, 0]
        assert opened.execute("SELECT no FROM listed ORDER BY no").fetchall() == [
            *((-number,) for number in range(5, 0, -1)),
            (4,),
            (5,),
        ]
        opened.execute("DELETE FROM sessions WHERE no < 5")
        opened.commit()
        assert [store.forget(1e9, 1e9, 0.0, limit=3).result(10) for _ in range(3)] == [3, 1, 0]
        assert opened.execute("SELECT no FROM listed ORDER BY no").fetchall() == [(-5,), (4,), (5,)]
        opened.execute("INSERT INTO attribute_pairs (pair) VALUES ('tier=gold')")
        opened.execute("INSERT INTO listed_attributes SELECT id, no FROM attribute_pairs, listed WHERE no IN (4, 5)")
        opened.execute("DELETE FROM traces WHERE no = 4")
        opened.execute("DELETE FROM listed WHERE no = 4")
        opened.commit()
        assert [store.forget(1e9, 1e9, 0.0, limit=3).result(10) for _ in range(2)] == [1, 0]


class TestKept:
    def test_spans_stay_readable_after_the_late_window(self, store: Store, finder: Finder) -> None:
        decide(store, 1, result(1, "a", True, 0.9), data=b"x" * 9000)
        assert finder.contents(trace_id(1)) == [(False, b"x" * 9000)]
        assert store.kept.keep(WINDOW, time.time()) == 0
        assert store.kept.keep(WINDOW, time.time() + WINDOW + 1) == 1
        assert store.reads.held(trace_id(1)) == ("digest", ())
        assert store.reads.contents(trace_id(1)) == finder.contents(trace_id(1)) == [(False, b"x" * 9000)]
        assert 0 < kept_bytes(store) < 200
        store.forget(WINDOW, RETENTION, time.time() + WINDOW + 1).result(10)
        assert finder.contents(trace_id(1)) == [(False, b"x" * 9000)]

    def test_a_trace_that_changes_during_the_move_is_not_moved(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pandaeval_collector.store import chunks

        decide(store, 1, result(1, "a", True, 0.9))
        (old,) = (chunk for chunk in (store.reads.held(trace_id(1)) or ("", ()))[1])
        real = chunks.packed_contents

        def late(parts: list[tuple[bool, bytes]]) -> bytes:
            chunk = Chunk(store.next_chunk_id(), trace_id(1), False, 1, 1, b"late")
            store.append([chunk]).result(10)
            row = DecidedTrace(trace_id(1), 2, False, "newer", frozenset({b"1" * 8}), [old, chunk.id], 9)
            store.commit(WriteSet(traces=[row])).result(10)
            return real(parts)

        monkeypatch.setattr(chunks, "packed_contents", late)
        store.kept.keep(WINDOW, time.time() + WINDOW + 1)
        assert store.reads.contents(trace_id(1)) == [(False, b"spans"), (False, b"late")]
        assert kept_bytes(store) == 0

    def test_the_oldest_kept_traces_are_deleted_if_space_is_short(self, store: Store) -> None:
        for number in range(1, 6):
            decide(store, number, result(number, "a", True, 0.9), data=bytes([number]) * 50_000)
        later = time.time() + WINDOW + 1
        assert store.kept.keep(WINDOW, later) == 5
        each = kept_bytes(store) // 5
        assert store.kept.forget(RETENTION, 2 * each + 1, later).result(10) == 3
        assert [bool(store.reads.contents(trace_id(number))) for number in range(1, 6)] == [False] * 3 + [True] * 2
        assert store.kept.forget(RETENTION, 1 << 30, later + RETENTION + 1).result(10) == 2

    def test_a_listed_trace_is_not_deleted_before_it_is_kept(self, store: Store) -> None:
        decide(store, 1, result(1, "a", True, 0.9))
        later = time.time() + WINDOW + 1
        store.forget(WINDOW, RETENTION, later, unlisted_only=True).result(10)
        assert store.reads.contents(trace_id(1)) == [(False, b"spans")]
        assert store.kept.keep(WINDOW, later) == 1

    def test_a_trace_that_cannot_be_packed_is_deleted(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        from pandaeval_collector.store import chunks

        def broken(parts: list[tuple[bool, bytes]]) -> bytes:
            raise LookupError("gone")

        decide(store, 1, result(1, "a", True, 0.9))
        monkeypatch.setattr(chunks, "packed_contents", broken)
        later = time.time() + WINDOW + 1
        assert [store.kept.keep(WINDOW, later), store.kept.keep(WINDOW, later)] == [1, 0]
        assert store.reads.contents(trace_id(1)) == []

    def test_an_unlisted_trace_is_not_kept(self, store: Store) -> None:
        chunk = Chunk(store.next_chunk_id(), trace_id(1), False, 1, 1, b"spans")
        store.append([chunk]).result(10)
        row = DecidedTrace(trace_id(1), 1, False, "digest", frozenset({b"1" * 8}), [chunk.id], 5)
        store.commit(WriteSet(traces=[row])).result(10)
        assert store.kept.keep(WINDOW, time.time() + WINDOW + 1) == 0

    def test_list_rows_are_deleted_with_their_traces_and_sessions(self, store: Store, finder: Finder) -> None:
        decide(store, 1, result(1, "a", True, 0.9), session="s")
        store.commit(WriteSet(closed={"s"})).result(10)
        end = time.time() + 2 * RETENTION
        for _ in range(4):
            store.kept.keep(WINDOW, end)
            store.kept.forget(RETENTION, 0, end).result(10)
            store.forget(WINDOW, RETENTION, end).result(10)
        assert finder.traces(Wanted()).rows == []
        assert finder.sessions(Wanted()).rows == []
