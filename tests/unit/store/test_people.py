"""Labels and judged scores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pandaeval_collector.store import DecidedTrace, DrawnRow, JudgedRow, Store, WriteSet, people
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_otel.wire.labels import HumanLabel
from support.judged_store import METRIC, judged_row, unit

GOOD = HumanLabel(unit(1), METRIC, None, True, "ada", 100.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def labels(store: Store) -> list[HumanLabel]:
    return list(people.labels(store.reads.connection()))


def test_the_same_verdict_again_changes_nothing(store: Store) -> None:
    assert not store.people.has_labels()
    assert store.people.put([GOOD], 500.0).result() == {"new": 1}
    assert store.people.put([GOOD, replace(GOOD, at=0.0)], 600.0).result() == {"known": 2}
    assert labels(store) == [GOOD]


def test_the_latest_verdict_of_an_annotator_counts_in_any_order(store: Store) -> None:
    later = replace(GOOD, passed=False, at=200.0, comment="no, it did not")
    assert store.people.put([later, GOOD], 500.0).result() == {"new": 1, "known": 1}
    assert labels(store) == [later]
    assert store.people.put([replace(GOOD, annotator="bob")], 500.0).result() == {"new": 1}
    assert len(labels(store)) == 2


def test_a_verdict_without_a_time_gets_the_current_time(store: Store) -> None:
    store.people.put([GOOD], 500.0).result()
    assert store.people.put([replace(GOOD, passed=False, at=0.0)], 600.0).result() == {"changed": 1}
    assert [(label.passed, label.at) for label in labels(store)] == [(False, 600.0)]


def test_the_oldest_verdicts_over_the_limit_are_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_LABELS", 3)
    store.people.put([replace(GOOD, unit=unit(number)) for number in range(5)], 1.0).result()
    assert [label.unit for label in labels(store)] == [unit(2), unit(3), unit(4)]


def test_the_newest_judged_score_of_a_run_counts(store: Store) -> None:
    store.commit(WriteSet(judged=[judged_row(1, 0.9), judged_row(2, 0.4)])).result()
    store.commit(WriteSet(judged=[judged_row(1, 0.2)])).result()
    store.people.put([GOOD], 1.0).result()
    found = {row.unit: (row.score, labelled) for row, labelled in people.judged(store.reads.connection())}
    assert found == {unit(1): (0.2, True), unit(2): (0.4, False)}
    assert people.judged(store.reads.connection(), "trace.other") == []
    assert people.judged(store.reads.connection(), METRIC, "another") == []


def test_judged_scores_have_their_own_longer_retention(store: Store) -> None:
    store.commit(WriteSet(judged=[judged_row(number, 0.9) for number in range(5)])).result()
    now, week = store.clock.calendar(), 7 * 86_400.0
    store.forget(60.0, week, now + 2 * week, judged_s=30 * 86_400.0).result()
    assert len(people.judged(store.reads.connection())) == 5
    assert store.forget(60.0, week, now + 10 * week, limit=3, judged_s=30 * 86_400.0).result() == 3
    store.forget(60.0, week, now + 10 * week, judged_s=30 * 86_400.0).result()
    assert people.judged(store.reads.connection()) == []


def test_the_oldest_judged_scores_over_the_limit_are_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_JUDGED", 2)
    store.commit(WriteSet(judged=[judged_row(number, 0.9) for number in range(5)])).result()
    store.forget(60.0, 60.0, store.clock.calendar()).result()
    assert [row.unit for row, _ in people.judged(store.reads.connection())] == [unit(3), unit(4)]


def test_a_label_has_the_highest_draw_probability_of_its_run(store: Store) -> None:
    store.people.put([GOOD, replace(GOOD, unit=unit(2), probability=0.5)], 1.0).result()
    with contextlib.closing(connect(store.path / FILE_NAME, "off")) as connection:
        for chance in (0.2, 0.1):
            people.keep_draws(connection, [DrawnRow(unit(1), METRIC, chance)], 1.0)
    assert [label.probability for label in labels(store)] == [0.2, 0.5]


def test_a_verdict_from_the_future_gets_its_arrival_time(store: Store) -> None:
    of_2262 = replace(GOOD, at=9.2e9)
    store.people.put([of_2262], 500.0).result()
    assert [label.at for label in labels(store)] == [500.0]
    assert store.people.put([replace(GOOD, passed=False, at=501.0)], 502.0).result() == {"changed": 1}


class TestPages:
    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """Return verdicts 1 … 6 about units 0 … 2, alternating metrics."""
        given = [
            replace(GOOD, unit=unit(number % 3), metric=(METRIC, "trace.other")[number % 2], passed=passed)
            for number, passed in enumerate((True, False, None, True, False, None))
        ]
        scored = [replace(each, score=0.25 if each.passed is None else None) for each in given]
        store.people.put([replace(each, annotator=f"a{n}") for n, each in enumerate(scored)], 500.0).result()
        return store

    @pytest.mark.parametrize(
        ("units", "metric", "before", "limit", "numbers"),
        [
            ([], None, None, 10, [6, 5, 4, 3, 2, 1]),
            ([], None, None, 2, [6, 5]),
            ([], None, 5, 2, [4, 3]),
            ([unit(0)], None, None, 10, [4, 1]),
            ([unit(0), unit(2)], None, None, 10, [6, 4, 3, 1]),
            ([], METRIC, None, 10, [5, 3, 1]),
            ([unit(0)], METRIC, None, 10, [1]),
            ([unit(0), unit(1)], METRIC, 5, 1, [1]),
            ([unit(7)], None, None, 10, []),
        ],
    )
    def test_verdicts_are_paged_newest_first_by_unit_and_metric(
        self, filled: Store, units: list[str], metric: str | None, before: int | None, limit: int, numbers: list[int]
    ) -> None:
        found = people.page(filled.reads.connection(), units, metric, before, limit)
        assert [no for no, _ in found] == numbers
        assert [label.annotator for _, label in found] == [f"a{no - 1}" for no in numbers]

    def test_all_fields_of_a_verdict_are_read_back(self, store: Store) -> None:
        label = HumanLabel(unit(1), METRIC, 0.25, False, "ada", 100.0, "no", 0.5)
        unsure = replace(label, unit=unit(2), passed=None, probability=None)
        store.people.put([label, unsure], 500.0).result()
        assert people.page(store.reads.connection(), [], None, None, 9) == [(2, unsure), (1, label)]
        assert labels(store) == [label, unsure]


@pytest.mark.parametrize(
    ("kept", "given", "fate"),
    [
        (GOOD, replace(GOOD, at=101.0), "known"),
        (GOOD, replace(GOOD, at=99.0, passed=False), "known"),
        (GOOD, replace(GOOD, at=100.0, passed=False), "changed"),
        (GOOD, replace(GOOD, score=0.5), "changed"),
        (GOOD, replace(GOOD, comment="why"), "changed"),
        (GOOD, replace(GOOD, passed=None, score=1.0), "changed"),
        (GOOD, replace(GOOD, probability=0.5), "known"),
        (GOOD, replace(GOOD, metric="trace.other"), "new"),
        (GOOD, replace(GOOD, annotator="bob"), "new"),
        (GOOD, replace(GOOD, unit=unit(2)), "new"),
    ],
)
def test_a_verdict_is_new_changed_or_known(store: Store, kept: HumanLabel, given: HumanLabel, fate: str) -> None:
    store.people.put([kept], 500.0).result()
    assert store.people.put([given], 500.0).result() == {fate: 1}
    assert store.people.has_labels()
    assert labels(store) == {"known": [kept], "changed": [given], "new": [kept, given]}[fate]


def test_a_new_probability_replaces_the_earlier_one_but_a_missing_one_does_not(store: Store) -> None:
    for given in (replace(GOOD, probability=0.5), replace(GOOD, score=0.5), replace(GOOD, score=0.7)):
        store.people.put([given], 500.0).result()
    assert [label.probability for label in labels(store)] == [0.5]
    store.people.put([replace(GOOD, probability=0.25)], 500.0).result()
    assert [label.probability for label in labels(store)] == [0.25]


def test_a_verdict_is_known_if_its_trace_or_session_was_decided(store: Store) -> None:
    trace_id = bytes.fromhex(unit(1))
    trace = DecidedTrace(trace_id, 1, False, "d", frozenset(), (), 0)
    store.commit(WriteSet(traces=[trace], touched={"chat"})).result()
    session = replace(GOOD, unit="chat", metric="session.task_completion")
    asked = [GOOD, replace(GOOD, unit=unit(2)), session, replace(session, unit="other"), replace(session, unit=unit(1))]
    assert [people.is_known(store.reads.connection(), each) for each in asked] == [True, False, True, False, False]


def test_runs_that_were_decided_judged_or_labelled_are_known(store: Store) -> None:
    trace = DecidedTrace(bytes.fromhex(unit(1)), 1, False, "d", frozenset(), (), 0)
    store.commit(WriteSet(traces=[trace], touched={"chat"}, judged=[judged_row(2, 0.9)])).result()
    store.people.put([replace(GOOD, unit=unit(3))], 500.0).result()
    given = [replace(GOOD, unit=unit(number)) for number in range(6)]
    given += [replace(GOOD, unit=name, metric="session.task_completion") for name in ("chat", "other")]
    given.append(replace(GOOD, unit=f"{unit(1)}:{'1' * 16}", metric="turn.helpfulness"))
    reader = store.reads.connection()
    unknown = [each for each in given if not people.is_known(reader, each)]
    assert unknown == [given[0], given[4], given[5], given[7]]


def test_all_fields_of_judged_scores_are_read_back(store: Store) -> None:
    given = [
        JudgedRow(unit(1), METRIC, "chat", "helper", 0.25, False, 0.5, "m", "4", 0.75),
        JudgedRow(unit(2), METRIC, "", "other", 0.75, None, None, "m", "5", 1.0),
        JudgedRow(unit(2), "trace.other", "", "helper", 0.75, True, 0.5, "m", "5", 1.0),
    ]
    store.commit(WriteSet(judged=given)).result()
    reader = store.reads.connection()
    for metric, agent, rows in (
        ("", "", given),
        (METRIC, "", given[:2]),
        ("", "helper", given[::2]),
        (METRIC, "helper", given[:1]),
    ):
        found = {(row.metric, row.unit): row for row, _ in people.judged(reader, metric, agent)}
        assert found == {(row.metric, row.unit): row for row in rows}
        assert not any(type(row.passed) is int for row in found.values())


def test_old_draws_of_unlabelled_runs_are_deleted(store: Store) -> None:
    with contextlib.closing(connect(store.path / FILE_NAME, "off")) as connection:
        people.keep_draws(connection, [DrawnRow(unit(number), METRIC, 0.5) for number in (1, 2, 3)], 10.0)
        people.keep_draws(connection, [DrawnRow(unit(4), METRIC, 0.5)], 20.0)
        store.people.put([GOOD], 500.0).result()
        people.forget(connection, 20.0, 100)
        left = connection.execute("SELECT unit FROM label_draws ORDER BY unit").fetchall()
    assert left == [(unit(1),), (unit(4),)]
