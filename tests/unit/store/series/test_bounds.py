"""A store with more series than there may be is brought within the bound at the start."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pandaeval_collector.store import SeriesRow, Store, StoredSeries, WriteSet, series, series_table
from pandaeval_collector.store.series import INSTRUMENTS, OTHER

EVALUATIONS, SCORE = "pandaeval.evaluations", "pandaeval.evaluation.score"


def row(name: str, agent: str, service: str = "shop", count: int = 1, passed: str = "true") -> SeriesRow:
    pairs = [("gen_ai.agent.name", agent), ("pandaeval.service", service), ("pandaeval.passed", passed)]
    width = len(INSTRUMENTS[name].bounds) + 1
    exemplars = {0: (0.5, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 9)}
    return SeriesRow(name, orjson.dumps(pairs).decode(), width, count, 0.5 * count, {0: count}, exemplars)


def rows(store: Store) -> dict[tuple[str, str, str], StoredSeries]:
    found = [each for name in INSTRUMENTS for each in store.reads.tally.page("scrape", name)]
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
    """A store with 24 series."""
    store = Store(tmp_path, "off")
    for n in range(6):
        changes = WriteSet(series=[row(name, f"a{n}", count=n + 1) for name in (EVALUATIONS, SCORE)])
        changes.series.append(row(EVALUATIONS, f"usual{n}", count=10))
        changes.series.append(row(EVALUATIONS, f'"quoted\\{n}"', count=10))
        store.commit(changes).result()
    store.close()
    return tmp_path


def test_what_a_reader_has_seen_does_not_begin_at_zero_again(folder: Path) -> None:
    store = Store(folder, "off")
    store.tally.show_zeros("scrape", [each.key for each in rows(store).values()], 77.0).result()
    store.tally.bound(2)
    assert {each.zero_at for each in rows(store).values()} == {77.0}
    store.close()


def test_too_many_series_become_others_the_youngest_first(folder: Path) -> None:
    store = Store(folder, "off")
    for n in range(50):
        store.commit(WriteSet(series=[row(EVALUATIONS, f"late{n}", f"service{n}", passed="false")])).result()
    before = totals(store)
    assert store.tally.bound(24) == 50
    after = rows(store)
    assert totals(store) == before
    assert len(after) == 25
    other = after[EVALUATIONS, OTHER, OTHER]
    assert (other.count, other.total, other.buckets) == (50, 25.0, (50,))
    assert list(other.exemplars) == [0]
    assert dict(orjson.loads(other.attributes))["pandaeval.passed"] == "false"
    assert store.tally.bound(24) == 0
    store.close()


def test_a_crash_half_way_is_taken_up(folder: Path) -> None:
    store = Store(folder, "off")
    before = totals(store)
    youngest = sorted(rows(store).values(), key=lambda each: (each.start_ns, each.key))[-3:]
    store._writer.submit(
        lambda connection: series_table.move(connection, [each.key for each in youngest], series.folded)
    ).result()
    store.close()
    store = Store(folder, "off")
    assert store.tally.bound(10) == 11
    assert totals(store) == before
    store.close()
