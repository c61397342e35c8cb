"""People's verdicts and judged scores in the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pandaeval_collector.store import DrawnRow, Store, WriteSet, people
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
    return list(people.labels(store.people.reader()))


def test_the_same_verdict_again_changes_nothing(store: Store) -> None:
    assert not store.people.has_labels()
    assert store.people.put([GOOD], 500.0).result() == {"new": 1}
    assert store.people.put([GOOD, replace(GOOD, at=0.0)], 600.0).result() == {"known": 2}
    assert labels(store) == [GOOD]


def test_of_one_annotator_the_last_verdict_stands_in_whatever_order_they_come(store: Store) -> None:
    later = replace(GOOD, passed=False, at=200.0, comment="no, it did not")
    assert store.people.put([later, GOOD], 500.0).result() == {"new": 1, "known": 1}
    assert labels(store) == [later]
    assert store.people.put([replace(GOOD, annotator="bob")], 500.0).result() == {"new": 1}
    assert len(labels(store)) == 2
    assert people.counts(store.people.reader()) == {METRIC: 1}


def test_one_without_a_time_is_of_now(store: Store) -> None:
    store.people.put([GOOD], 500.0).result()
    assert store.people.put([replace(GOOD, passed=False, at=0.0)], 600.0).result() == {"changed": 1}
    assert [(label.passed, label.at) for label in labels(store)] == [(False, 600.0)]


def test_the_oldest_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_LABELS", {"person": 3, "otlp": 2})
    store.people.put([replace(GOOD, unit=unit(number)) for number in range(5)], 1.0).result()
    assert [label.unit for label in labels(store)] == [unit(2), unit(3), unit(4)]


def test_the_newest_score_of_a_run_stands(store: Store) -> None:
    store.commit(WriteSet(judged=[judged_row(1, 0.9), judged_row(2, 0.4)])).result()
    store.commit(WriteSet(judged=[judged_row(1, 0.2)])).result()
    store.people.put([GOOD], 1.0).result()
    found = {row.unit: (row.score, labelled) for row, labelled in people.judged(store.people.reader())}
    assert found == {unit(1): (0.2, True), unit(2): (0.4, False)}
    assert people.judged(store.people.reader(), "trace.other") == []
    assert people.judged(store.people.reader(), METRIC, "another") == []


def test_scores_are_kept_longer_than_results_and_not_for_ever(store: Store) -> None:
    store.commit(WriteSet(judged=[judged_row(number, 0.9) for number in range(5)])).result()
    now, week = store.clock.calendar(), 7 * 86_400.0
    store.forget(60.0, week, now + 2 * week, judged_s=30 * 86_400.0).result()
    assert len(people.judged(store.people.reader())) == 5
    assert store.forget(60.0, week, now + 10 * week, limit=3, judged_s=30 * 86_400.0).result() == 3
    store.forget(60.0, week, now + 10 * week, judged_s=30 * 86_400.0).result()
    assert people.judged(store.people.reader()) == []


def test_the_oldest_of_too_many_scores_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_JUDGED", 2)
    store.commit(WriteSet(judged=[judged_row(number, 0.9) for number in range(5)])).result()
    store.forget(60.0, 60.0, store.clock.calendar()).result()
    assert [row.unit for row, _ in people.judged(store.people.reader())] == [unit(3), unit(4)]


def test_a_chance_never_shrinks_and_goes_with_its_label(store: Store) -> None:
    store.people.put([GOOD, replace(GOOD, unit=unit(2), probability=0.5)], 1.0).result()
    with contextlib.closing(connect(store.path / FILE_NAME, "off")) as connection:
        for chance in (0.2, 0.1):
            people.keep_draws(connection, [DrawnRow(unit(1), METRIC, chance)], 1.0)
    assert [label.probability for label in labels(store)] == [0.2, 0.5]


def by_person(store: Store) -> list[tuple[str, bool | None]]:
    return sorted((label.annotator, label.passed) for label in labels(store))


def test_a_log_record_never_replaces_what_a_person_entered(store: Store) -> None:
    store.people.put([GOOD], 500.0).result()
    forged = replace(GOOD, passed=False, at=9e9)
    assert store.people.put([forged], 600.0, "otlp").result() == {"outranked": 1}
    assert labels(store) == [GOOD]


def test_a_log_record_counts_only_where_no_person_entered_a_verdict(store: Store) -> None:
    forged = [replace(GOOD, annotator=f"person {number}", passed=False) for number in range(3)]
    assert store.people.put(forged, 600.0, "otlp").result() == {"new": 3}
    assert by_person(store) == [(f"person {number}", False) for number in range(3)]
    store.people.put([GOOD], 700.0).result()
    assert by_person(store) == [("ada", True)]


def test_a_person_replaces_a_log_record_of_any_time(store: Store) -> None:
    store.people.put([replace(GOOD, passed=False, at=590.0)], 600.0, "otlp").result()
    assert store.people.put([GOOD], 700.0).result() == {"changed": 1}
    assert labels(store) == [GOOD]


@pytest.mark.parametrize("door", ["person", "otlp"])
def test_no_verdict_is_later_than_its_arrival(store: Store, door: people.Door) -> None:
    of_2262 = replace(GOOD, at=9.2e9)
    store.people.put([of_2262], 500.0, door).result()
    assert [label.at for label in labels(store)] == [500.0]
    assert store.people.put([replace(GOOD, passed=False, at=501.0)], 502.0, door).result() == {"changed": 1}


def test_a_flood_by_one_door_evicts_nothing_of_the_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_LABELS", {"person": 3, "otlp": 2})
    store.people.put([replace(GOOD, unit=unit(number)) for number in range(3)], 1.0).result()
    store.people.put([replace(GOOD, unit=unit(number)) for number in range(10, 30)], 1.0, "otlp").result()
    assert [label.unit for label in labels(store)] == [unit(number) for number in (0, 1, 2, 28, 29)]
