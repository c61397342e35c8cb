"""Reads of evaluation runs."""

from __future__ import annotations

import orjson
import pytest

from pandaeval_collector.runs.compare import compared
from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet, runs
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.runs import RunBatch, RunResult, RunRow
from pandaeval_otel.wire.labels import HumanLabel
from support.database import open_database


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def decide(store: Store, *numbers: int, session: str = "", agent: str = "a", listed: bool = True) -> None:
    """Decide traces with these numbers as IDs."""
    ids = [trace_id(number) for number in numbers]
    changes = WriteSet(traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0) for id_ in ids])
    if listed:
        changes.listed = [ListedRow(id_, 1, agent, "s", "", "", False, b"{}") for id_ in ids]
        changes.session_traces = [SessionTraceRow(id_, session, 1, 2, b"{}") for id_ in ids]
        changes.touched = {session} - {""}
    store.commit(changes).result()


def created(store: Store, *queued: bytes) -> list[RunRow]:
    return [store.runs.create(body).result() for body in queued or (b"{}",)]


def body(trace_id: str) -> bytes:
    return orjson.dumps({"trace_id": trace_id})


def result(
    about: int, score: float | None, metric: str = "trace.m", outcome: str = "scored", by: str = "1"
) -> RunResult:
    success = None if score is None else score >= 0.5
    return RunResult(about, metric, outcome, score, success, 0.0, by, body(f"{metric} {about}"))


def file(store: Store, run: RunRow, *results: RunResult, items: tuple[tuple[int, str], ...] = ()) -> None:
    store.commit(WriteSet(runs=[RunBatch(run.no, items, results)])).result()


class TestFindingRuns:
    def test_a_run_is_found_only_by_its_whole_id(self, store: Store) -> None:
        [run] = created(store)
        assert store.runs.find(run.id) == run
        assert store.runs.find(run.id[:-1]) is None

    def test_run_ids_are_found_by_prefix(self, store: Store) -> None:
        runs = created(store, *(b"%d" % number for number in range(9)))
        with open_database(store.path / "pandaeval.db") as connection:
            for no, run in enumerate(runs):
                connection.execute("UPDATE runs SET id = ? WHERE no = ?", (f"a{no}" if no < 7 else f"b{no}", run.no))
        assert store.runs.ids_from("a") == ["a0", "a1", "a2", "a3", "a4"]
        assert store.runs.ids_from("a", 2) == ["a0", "a1"]
        assert store.runs.ids_from("", 100) == [*(f"a{no}" for no in range(7)), "b7", "b8"]
        assert store.runs.ids_from("b7") == ["b7"]
        assert store.runs.ids_from("c") == []

    def test_runs_are_paged_newest_first(self, store: Store) -> None:
        runs = created(store, *(b"%d" % number for number in range(52)))[::-1]
        assert store.runs.newest() == runs[:50]
        assert store.runs.newest(limit=3) == runs[:3]
        assert store.runs.newest(runs[2].no, 2) == runs[3:5]
        assert store.runs.newest(runs[-1].no) == []

    def test_the_next_run_is_the_begun_run_or_the_oldest_waiting_run(self, store: Store) -> None:
        assert store.runs.next() is None
        one, two, three = created(store, b"1", b"2", b"3")
        steps: list[int | None] = []
        for begun in (three, None, None):
            if begun is not None:
                store.runs.begin(begun.no).result()
            following = store.runs.next()
            assert following is not None
            steps.append(following.no)
            store.runs.begin(following.no).result()
            store.runs.end(following.no).result()
        assert steps == [three.no, one.no, two.no]
        assert store.runs.next() is None


class TestChoosingTraces:
    def test_traces_between_two_numbers_are_chosen_with_their_sessions(self, store: Store) -> None:
        decide(store, 1, 2)
        decide(store, 3, 4, session="chat")
        [session] = store.reads.connection().execute("SELECT no FROM sessions").fetchone()
        all_ = [
            *((number, 0, trace_id(number), None) for number in (1, 2)),
            *((number, session, trace_id(number), "chat") for number in (3, 4)),
        ]
        for after, upto, found, last in (
            (0, 9, all_, 4),
            (0, 3, all_[:3], 3),
            (1, 3, all_[1:3], 3),
            (4, 9, [], 9),
            (0, 0, [], 0),
        ):
            assert store.runs.chosen(Wanted(), after, upto) == (found, last), (after, upto)

    def test_a_page_ends_after_a_fixed_number_of_traces_even_without_a_match(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runs, "_PAGE", 2)
        for number in range(1, 6):
            decide(store, number, agent="ab"[number == 5])
        pages, after = [], 0
        while after < 5:
            found, after = store.runs.chosen(Wanted(agent="b"), after, 5)
            pages.append(([no for no, *_ in found], after))
        assert pages == [([], 2), ([], 4), ([5], 5)]

    def test_traces_are_chosen_by_decision_time(self, store: Store) -> None:
        decide(store, 1, 2, 3, 4)
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE traces SET decided_at = 10 * no")
        found, last = store.runs.chosen(Wanted(agent="a"), 0, 9, decided=(10.0, 30.0))
        assert ([no for no, *_ in found], last) == ([2, 3], 4)


class TestItems:
    @pytest.mark.parametrize(
        ("limit", "pending"),
        [
            (1, [(1, 0)]),
            (2, [(1, 0), (6, 0)]),
            (3, [(1, 0), (6, 0)]),
            (4, [(1, 0), (6, 0), (2, 7), (4, 7)]),
            (5, [(1, 0), (6, 0), (2, 7), (4, 7)]),
            (6, [(1, 0), (6, 0), (2, 7), (4, 7), (3, 8), (5, 8)]),
            (9, [(1, 0), (6, 0), (2, 7), (4, 7), (3, 8), (5, 8)]),
        ],
    )
    def test_pending_sessions_are_returned_whole_if_they_fit_the_limit(
        self, store: Store, limit: int, pending: list[tuple[int, int]]
    ) -> None:
        run, other = created(store, b"1", b"2")
        items = [(1, 0), (2, 7), (3, 8), (4, 7), (5, 8), (6, 0)]
        store.runs.plan(run.no, items, 6, False).result()
        store.runs.plan(other.no, [(9, 0)], 9, False).result()
        assert store.runs.pending(run.no, limit) == pending

    def test_a_pending_session_larger_than_the_limit_is_returned_alone(self, store: Store) -> None:
        run, other = created(store, b"1", b"2")
        for each in (run, other):
            store.runs.plan(each.no, [(no, 7) for no in (4, 2, 3, 1)] + [(5, 8)], 5, False).result()
        file(store, run, items=((3, ""),))
        assert store.runs.pending(run.no, 2) == [(1, 7), (2, 7), (4, 7)]
        assert store.runs.pending(run.no, 1) == [(1, 7), (2, 7), (4, 7)]

    def test_items_of_a_state_are_listed_with_the_reason_of_their_failure(self, store: Store) -> None:
        decide(store, 1, 2, 3, 0xAB)
        run, other = created(store, b"1", b"2")
        for each in (run, other):
            store.runs.plan(each.no, [(no, 0) for no in (1, 2, 3, 4)], 4, False).result()
        file(store, run, items=((1, "no spans"), (2, ""), (4, "gone")))
        assert store.runs.items(run.no, "failed", 9) == [(f"{1:032x}", "no spans"), (f"{0xAB:032x}", "gone")]
        assert store.runs.items(run.no, "failed", 1) == [(f"{1:032x}", "no spans")]
        assert store.runs.items(run.no, "done", 9) == [(f"{2:032x}", "")]
        assert [id_ for id_, _ in store.runs.items(run.no, "pending", 9)] == [f"{3:032x}"]


class TestRunResults:
    def filled(self, store: Store) -> RunRow:
        """Return six results of two metrics, and another run's."""
        run, other = created(store, b"1", b"2")
        file(store, other, result(1, 0.5), result(2, 0.5))
        scores = (0.75, None, 0.25, 0.5, 0.5, None)
        file(
            store,
            run,
            *(
                result(no, score, ("trace.n", "trace.m")[no % 2], "scored" if score is not None else "skipped")
                for no, score in enumerate(scores, 1)
            ),
        )
        return run

    def test_results_are_paged_in_order_of_arrival(self, store: Store) -> None:
        run = self.filled(store)
        bodies = [body(f"{('trace.n', 'trace.m')[no % 2]} {no}") for no in range(1, 7)]
        assert store.runs.results(run.no) == (bodies, None)
        pages, after = [], 0
        while after is not None:
            page, after = store.runs.results(run.no, after, 2)
            pages.append(page)
        assert pages == [bodies[:2], bodies[2:4], bodies[4:]]

    def test_results_can_be_limited_to_one_metric(self, store: Store) -> None:
        run = self.filled(store)
        first, after = store.runs.results(run.no, limit=2, metric="trace.m")
        assert first == [body("trace.m 1"), body("trace.m 3")]
        assert after is not None
        assert store.runs.results(run.no, after, 2, "trace.m") == ([body("trace.m 5")], None)
        assert store.runs.results(run.no, metric="trace.other") == ([], None)

    def test_a_page_has_100_results_by_default(self, store: Store) -> None:
        [run] = created(store)
        file(store, run, *(result(no, 0.5) for no in range(1, 102)))
        page, after = store.runs.results(run.no)
        assert (len(page), store.runs.results(run.no, after or 0)) == (100, ([body("trace.m 101")], None))

    def test_results_are_counted_by_metric_and_outcome(self, store: Store) -> None:
        assert store.runs.counts(self.filled(store).no) == {
            ("trace.m", "scored"): 3,
            ("trace.n", "scored"): 1,
            ("trace.n", "skipped"): 2,
        }
        assert store.runs.counts(99) == {}

    def test_a_result_is_found_by_its_metric_and_unit(self, store: Store) -> None:
        run = self.filled(store)
        assert store.runs.body(run.no, "trace.m", 3) == body("trace.m 3")
        assert store.runs.body(run.no, "trace.n", 3) is None
        assert store.runs.body(run.no, "trace.m", 2) is None
        assert store.runs.body(99, "trace.m", 3) is None


class TestPairs:
    def test_results_that_two_runs_share_are_paired_by_metric(self, store: Store) -> None:
        first, second, other = created(store, b"1", b"2", b"3")
        store.runs.plan(first.no, [(1, 7), (2, 0)], 2, False).result()
        store.runs.plan(second.no, [(1, 9), (2, 9)], 2, False).result()
        file(
            store,
            first,
            *(result(1, 0.25, "trace.n", by="1 a"), result(1, 0.75, by="1 a"), result(2, None, by="1 a")),
            *(result(-7, 0.5, "session.m", by="1 a"), result(3, 0.5, by="1 a")),
        )
        file(
            store,
            second,
            *(result(1, 1.0, "trace.n", by="2 b"), result(1, 0.0, by="2 b"), result(2, 0.5, by="2 b")),
            *(result(-7, None, "session.m", by="2 b"), result(4, 0.5, by="2 b")),
        )
        file(store, other, result(3, 0.5), result(4, 0.5))
        found = [*store.runs.pairs(first.no, second.no)]
        assert [row[0] for row in found] == ["session.m", "trace.m", "trace.m", "trace.n"]
        assert sorted(found) == [
            ("session.m", -7, 0, 0.5, 1, "1 a", None, None, "2 b", None),
            ("trace.m", 1, 7, 0.75, 1, "1 a", 0.0, 0, "2 b", None),
            ("trace.m", 2, 0, None, None, "1 a", 0.5, 1, "2 b", None),
            ("trace.n", 1, 7, 0.25, 0, "1 a", 1.0, 1, "2 b", None),
        ]
        assert [*store.runs.pairs(first.no, 99)] == []

    def test_pairs_are_compared_with_human_verdicts(self, store: Store) -> None:
        first, second = created(store, b"1", b"2")
        for run, scores in ((first, (0.9, 0.9, None)), (second, (0.1, None, 0.9))):
            file(store, run, *(result(number, score) for number, score in enumerate(scores, 1)))
        labels = [HumanLabel("trace.m 1", "trace.m", None, True, "ada", 1.0)]
        labels += [HumanLabel("trace.m 3", "trace.m", None, True, "ada", 1.0)]
        store.people.put(labels, 1.0).result()
        [found] = compared(store.runs, first, second)
        assert (found.pairs, found.decided, found.flips) == (3, (2, 2), 1)
        assert (found.labelled, found.right) == (2, (1, 1))

    def test_run_results_are_paired_with_the_newest_live_results(self, store: Store) -> None:
        decide(store, 1, 2, 3)
        live(store, 1, "trace.n", 0.25)
        live(store, 1, "trace.m", 0.25)
        live(store, 1, "trace.m", 0.75, revision=2, model="large")
        live(store, 2, "trace.m", None)
        live(store, 3, "trace.m", 1.0)
        run, other = created(store, b"1", b"2")
        store.runs.plan(run.no, [(1, 7), (2, 0)], 2, False).result()
        file(
            store,
            run,
            *(result(1, 0.5, "trace.n", by="1 a"), result(1, 0.5, by="1 a"), result(2, 0.5, by="1 a")),
            result(4, 0.5, by="1 a"),
        )
        file(store, other, result(3, 0.5))
        found = [*store.runs.pairs(run.no, None)]
        assert [row[0] for row in found] == ["trace.m", "trace.m", "trace.n"]
        assert sorted(found) == [
            ("trace.m", 1, 7, 0.5, 1, "1 a", 0.75, 1, "3 large", None),
            ("trace.m", 2, 0, 0.5, 1, "1 a", None, None, "3 ", None),
            ("trace.n", 1, 7, 0.5, 1, "1 a", 0.25, 0, "3 ", None),
        ]


def live(
    store: Store, number: int, metric: str, score: float | None, revision: int = 1, model: str | None = None
) -> None:
    body = orjson.dumps({"score": score, "evaluator": {"version": "3", "model": model}})
    unit, success = trace_id(number).hex(), None if score is None else score >= 0.5
    row = ResultRow(f"{metric} {number} {revision}", unit, metric, revision, body, success=success)
    store.commit(WriteSet(results=[row])).result()
