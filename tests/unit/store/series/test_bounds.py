"""A store that was written without bounds is brought within them at the start: names, and the number of series."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pandaeval_collector.exporters._text import ScrapeText
from pandaeval_collector.exporters.zero_first import visible
from pandaeval_collector.store import SeriesRow, Store, StoredSeries, WriteSet
from pandaeval_collector.store.series import INSTRUMENTS, SeriesLabels
from pandaeval_collector.store.tally import OTHER
from pandaeval_otel.base.names import MAX_NAME_CHARS, bounded

MEGABYTE = "x" * (1 << 20)
EVALUATIONS, SCORE = "pandaeval.evaluations", "pandaeval.evaluation.score"


def row(name: str, agent: str, service: str = "shop", count: int = 1, passed: str = "true") -> SeriesRow:
    pairs = [("gen_ai.agent.name", agent), ("pandaeval.service", service), ("pandaeval.passed", passed)]
    width = len(INSTRUMENTS[name].bounds) + 1
    exemplars = {0: (0.5, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 9)}
    return SeriesRow(name, orjson.dumps(pairs).decode(), width, count, 0.5 * count, {0: count}, exemplars)


def rows(store: Store) -> dict[tuple[str, str, str], StoredSeries]:
    found = [each for name in INSTRUMENTS for each in store.reads.series("scrape", name)]
    about = [dict(orjson.loads(each.attributes)) for each in found]
    return {
        (each.name, facts["gen_ai.agent.name"], facts["pandaeval.service"]): each
        for each, facts in zip(found, about, strict=True)
    }


def totals(store: Store) -> dict[str, tuple[float, float, int]]:
    found: dict[str, tuple[float, float, int]] = {}
    for (name, *_), each in rows(store).items():
        count, total, filled = found.get(name, (0, 0.0, 0))
        found[name] = count + each.count, total + each.total, filled + sum(each.buckets)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with names of a megabyte, one of them twice as long and otherwise the same, and some that are usual."""
    store = Store(tmp_path, "off")
    for n in range(6):
        long = f"a{n}{MEGABYTE}"
        changes = WriteSet(series=[row(name, long, f"s{MEGABYTE}", n + 1) for name in (EVALUATIONS, SCORE)])
        changes.labels = [("agent", long), ("service", f"s{MEGABYTE}"), ("agent", f"usual{n}")]
        changes.series.append(row(EVALUATIONS, f"usual{n}", count=10))
        changes.series.append(row(EVALUATIONS, f'"quoted\\{n}"', count=10))
        store.commit(changes).result()
    store.close()
    return tmp_path


def test_long_names_are_cut_and_nothing_else_changes(folder: Path) -> None:
    store = Store(folder, "off")
    before = totals(store)
    usual = {key: each.key for key, each in rows(store).items() if MEGABYTE not in key[1]}
    assert store.bound_series(10_000) == 12
    after = rows(store)
    assert totals(store) == before
    assert {key: each.key for key, each in after.items() if key in usual} == usual
    assert after[EVALUATIONS, bounded(f"a3{MEGABYTE}"), bounded(f"s{MEGABYTE}")].count == 4
    assert len(after) == 24
    scrape = ScrapeText(openmetrics=True).render(visible(after.values(), 0.0, 0.0))
    assert len(scrape) < 100_000
    assert {len(value) for _, value in store.reads.labels() if len(value) > 20} == {MAX_NAME_CHARS}
    assert len(store.reads.labels()) == 13
    assert store.bound_series(10_000) == 0, "once is enough"
    store.close()


def test_what_comes_goes_on_under_the_cut_name(folder: Path) -> None:
    store = Store(folder, "off")
    store.bound_series(10_000)
    labels = SeriesLabels(store.reads.labels(), store.reads.series_names(), most=1)
    name = labels.admit("agent", f"a3{MEGABYTE}")
    assert labels.take_new() == [], "it was admitted before"
    again = row(EVALUATIONS, name, bounded(f"s{MEGABYTE}"))
    pairs = tuple((key, value) for key, value in orjson.loads(again.attributes))
    assert labels.within(EVALUATIONS, pairs) == pairs, "it is a series that exists"
    store.commit(WriteSet(series=[again])).result()
    assert rows(store)[EVALUATIONS, name, bounded(f"s{MEGABYTE}")].count == 5
    store.close()


def test_what_a_reader_has_seen_does_not_begin_at_zero_again(folder: Path) -> None:
    store = Store(folder, "off")
    store.show_zeros("scrape", [each.key for each in rows(store).values()], 77.0).result()
    store.bound_series(2)
    assert {each.zero_at for each in rows(store).values()} == {77.0}
    store.close()


def test_too_many_series_become_others_the_youngest_first(folder: Path) -> None:
    store = Store(folder, "off")
    for n in range(50):
        store.commit(WriteSet(series=[row(EVALUATIONS, f"late{n}", f"service{n}", passed="false")])).result()
    before = totals(store)
    assert store.bound_series(24) == 50 + 12
    after = rows(store)
    assert totals(store) == before
    assert len(after) == 25
    other = after[EVALUATIONS, OTHER, OTHER]
    assert (other.count, other.total, other.buckets) == (50, 25.0, (50,))
    assert list(other.exemplars) == [0]
    assert dict(orjson.loads(other.attributes))["pandaeval.passed"] == "false"
    assert store.bound_series(24) == 0
    store.close()


def test_a_crash_half_way_is_taken_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pandaeval_collector.store import tally

    store = Store(folder, "off")
    before = totals(store)
    long = [each.key for key, each in rows(store).items() if MEGABYTE in key[1]]
    monkeypatch.setattr(tally, "_MOVED_AT_ONCE", 1)
    tally._move_all(store._writer, long[:5], tally._short)
    store.close()
    store = Store(folder, "off")
    assert store.bound_series(10_000) == 7
    assert totals(store) == before
    store.close()
