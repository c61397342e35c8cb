"""Batches of outbox items."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._otlp.build import ItemExporter
from pandaeval_collector.exporters._otlp.transport import Envelope
from pandaeval_collector.exporters.delivery.outbox import Outbox
from pandaeval_collector.store import (
    DamagedError,
    ResultRow,
    SeriesRow,
    Store,
    WriteSet,
    outbox,
    outbox_batches,
    reader,
)
from pandaeval_collector.store.outbox import batch_items
from pandaeval_otel.wire.skeleton import Request
from support.database import open_database
from support.receivers import until

NUMBERED = [b"%d" % number for number in range(700)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data", "off")
    yield made
    made.close()


def put(store: Store, signal: str, items: list[bytes]) -> None:
    store.commit(WriteSet(outbox=[*outbox_batches(signal, items)])).result()


def damage(store: Store, seq: int) -> None:
    """Damage the batch whose last item has this number."""
    with open_database(store.path / "pandaeval.db") as other:
        assert other.execute("UPDATE outbox SET body = x'00' WHERE seq = ?", (seq,)).rowcount == 1


@given(st.lists(st.binary(max_size=9) | st.just(bytes(200_000)), max_size=1200))
def test_batches_return_the_same_items(items: list[bytes]) -> None:
    made = list(outbox_batches("logs", items))
    assert [item for each in made for item in batch_items(each.items, each.packed)] == items
    assert all(0 < each.items <= 512 for each in made)


def test_a_batch_is_large_only_if_an_item_is_large() -> None:
    sizes = [each.items for each in outbox_batches("traces", [bytes(100_000)] * 3 + [bytes(1 << 20)] * 2)]
    assert sizes == [2, 1, 1, 1]


def test_items_can_be_read_from_any_cursor(store: Store) -> None:
    put(store, "logs", NUMBERED)
    put(store, "traces", [b"span"])
    put(store, "logs", [b"last"])
    everything = store.outbox.after("logs", 0, 10_000)
    assert [row.body for row in everything] == [*NUMBERED, b"last"]
    numbers = [row.seq for row in everything]
    assert numbers == sorted(set(numbers))
    for row in everything:
        later = store.outbox.after("logs", row.seq, 3)
        assert later == everything[numbers.index(row.seq) + 1 :][:3]
        assert store.outbox.waiting("logs", row.seq) == len(numbers) - numbers.index(row.seq) - 1
    assert [row.body for row in store.outbox.after("traces", 0)] == [b"span"]


def test_fewer_items_are_read_at_once_if_they_are_large(store: Store) -> None:
    put(store, "logs", [random.randbytes(1 << 20) for _ in range(12)])
    at, portions = 0, []
    while rows := store.outbox.after("logs", at):
        portions.append(len(rows))
        at = rows[-1].seq
    assert portions == [4, 4, 4]
    store.commit(WriteSet(results=[ResultRow(f"r{n}", "u", "trace.m", 1, bytes(3 << 20)) for n in range(3)])).result()
    assert [row.id for row in store.reads.results_after(0)] == ["r0", "r1"]
    assert [row.id for row in store.reads.results_after(2)] == ["r2"]


@pytest.mark.parametrize(
    ("sizes", "read"),
    [([10, 1], 1), ([9, 1, 1], 2), ([9, 5, 1], 2), ([5, 4, 9], 3), ([3, 3, 3, 1, 1], 4), ([11, 1], 1)],
)
def test_a_read_stops_once_it_reaches_the_byte_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch, sizes: list[int], read: int
) -> None:
    for module in (outbox, reader):
        monkeypatch.setattr(module, "READ_BYTES", 10)
    for number, size in enumerate(sizes):
        put(store, "logs", [bytes(size)])
        store.commit(WriteSet(results=[ResultRow(f"r{number}", "u", "trace.m", 1, bytes(size))])).result()
    assert len(store.outbox.after("logs", 0)) == len(store.reads.results_after(0)) == read


def test_a_batch_is_deleted_once_all_its_items_are_sent(store: Store) -> None:
    put(store, "logs", NUMBERED[:3])
    assert store.outbox.forget_sent("logs", 2).result() == 0
    assert [row.body for row in store.outbox.after("logs", 2)] == [b"2"]
    assert store.outbox.forget_sent("logs", 3).result() == 1
    assert store.outbox.size() == 0


def test_item_numbers_are_not_reused(store: Store) -> None:
    put(store, "logs", NUMBERED)
    store.outbox.forget_sent("logs", 700).result()
    put(store, "logs", [b"next"])
    assert [row.seq for row in store.outbox.after("logs", 0)] == [701]


def test_items_sent_before_a_drop_are_not_counted_as_dropped(store: Store) -> None:
    put(store, "logs", NUMBERED)
    put(store, "traces", [b"span"])
    gone = store.outbox.drop_unsent(before=1e12, excess_bytes=0, done={"logs": 690, "traces": 0}).result()
    assert gone == {("logs", "too_old"): 10, ("traces", "too_old"): 1}
    assert store.outbox.size() == 0
    put(store, "logs", [b"sent"])
    gone = store.outbox.drop_unsent(before=1e12, excess_bytes=0, done={"logs": 9000}).result()
    assert gone["logs", "too_old"] == 0


class TestDamagedBatch:
    def test_a_damaged_batch_raises_an_error_with_its_number_and_unread_items(self, store: Store) -> None:
        put(store, "logs", NUMBERED)
        damage(store, 512)
        with pytest.raises(DamagedError) as caught:
            store.outbox.after("logs", 12)
        assert (caught.value.seq, caught.value.items) == (512, 500)
        assert store.outbox.after("logs", 512, 1)[0].body == b"512"

    def test_items_before_a_damaged_batch_are_read_first(self, store: Store) -> None:
        put(store, "logs", NUMBERED)
        damage(store, 700)
        assert [row.body for row in store.outbox.after("logs", 12)] == NUMBERED[12:512]
        with pytest.raises(DamagedError) as caught:
            store.outbox.after("logs", 512)
        assert (caught.value.seq, caught.value.items) == (700, 188)

    async def test_a_damaged_batch_is_counted_as_dropped_and_skipped(self, store: Store) -> None:
        put(store, "logs", NUMBERED)
        damage(store, 512)
        telemetry, transport = Telemetry(), Recorder()
        outbox = Outbox(store, ItemExporter("logs", transport, Envelope("i")), telemetry)
        await outbox.start()
        await until(lambda: len(transport.items) == 188)
        await outbox.stop()
        assert transport.items == NUMBERED[512:]
        counts = {(outcome, reason): n for (_, outcome, reason), n in telemetry.counts().items()}
        assert counts == {("sent", ""): 188, ("dropped", "damaged"): 512}


class Recorder:
    """A recording transport."""

    def __init__(self) -> None:
        self.items: list[bytes] = []

    async def open(self) -> None: ...

    async def send(self, request: bytes) -> bytes:
        self.items.extend(Request.FromString(request).resourced[0].scoped[0].items)
        return b""

    async def close(self) -> None: ...


class TestWaiting:
    """``logs``: three single items of 4, 5 and 6 bytes; ``traces``: a pair."""

    @pytest.fixture
    def sizes(self, store: Store) -> list[int]:
        put(store, "logs", [b"1234"])
        put(store, "traces", [b"span", b"span"])
        put(store, "logs", [b"12345"])
        put(store, "logs", [b"123456"])
        rows = store.reads.connection().execute("SELECT size FROM outbox ORDER BY seq").fetchall()
        assert store.outbox.size() == sum(size for (size,) in rows)
        return [size for (size,) in rows]

    @pytest.mark.parametrize(
        ("excess", "gone"),
        [
            (lambda sizes: 0, {}),
            (lambda sizes: 1, {("logs", "disk_share"): 1}),
            (lambda sizes: sizes[0], {("logs", "disk_share"): 1}),
            (lambda sizes: sizes[0] + 1, {("logs", "disk_share"): 1, ("traces", "disk_share"): 2}),
            (lambda sizes: sum(sizes[:3]), {("logs", "disk_share"): 2, ("traces", "disk_share"): 2}),
            (lambda sizes: 1 << 30, {("logs", "disk_share"): 3, ("traces", "disk_share"): 2}),
        ],
    )
    def test_the_oldest_batches_of_all_signals_are_dropped_if_space_is_short(
        self, store: Store, sizes: list[int], excess: Callable[[list[int]], int], gone: dict[tuple[str, str], int]
    ) -> None:
        assert store.outbox.drop_unsent(before=0.0, excess_bytes=excess(sizes), done={}).result() == gone
        assert store.outbox.waiting("logs", 0) == 3 - gone.get(("logs", "disk_share"), 0)
        assert store.outbox.waiting("traces", 0) == 2 - gone.get(("traces", "disk_share"), 0)

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_a_drop_removes_at_most_the_limit_of_rows(self, store: Store, sizes: list[int], limit: int) -> None:
        later = store.clock.running() + 5
        assert sum(store.outbox.drop_unsent(later, 0, {}, limit).result().values()) == (1, 3, 4)[limit - 1]

    def test_space_of_dropped_old_batches_counts_towards_the_space_to_free(
        self, store: Store, sizes: list[int]
    ) -> None:
        with open_database(store.path / "pandaeval.db") as other:
            other.execute("UPDATE outbox SET created_at = 10 WHERE seq = 1")
        assert store.outbox.drop_unsent(10.0, 0, {}).result() == {}
        assert store.outbox.drop_unsent(20.0, sizes[0], {}).result() == {("logs", "too_old"): 1}
        assert store.outbox.drop_unsent(20.0, 0, {}).result() == {}

    def test_only_sent_batches_are_forgotten_up_to_the_limit(self, store: Store, sizes: list[int]) -> None:
        assert [store.outbox.forget_sent("logs", 4, limit=1).result() for _ in range(3)] == [1, 1, 0]
        assert [row.seq for row in store.outbox.after("logs", 0)] == [5]
        assert store.outbox.waiting("traces", 0) == 2

    def test_waiting_items_are_counted_up_to_a_row_limit(self, store: Store, sizes: list[int]) -> None:
        assert [store.outbox.waiting("logs", 0, most) for most in (1, 2, 9)] == [1, 2, 3]
        assert store.outbox.waiting("traces", 2) == 1, "the cursor is within a batch"

    def test_a_page_ends_at_its_limit(self, store: Store, sizes: list[int]) -> None:
        assert [len(store.outbox.after("logs", 0, limit)) for limit in (1, 2, 3, 9)] == [1, 2, 3, 3]
        assert [len(store.outbox.after("traces", 0, limit)) for limit in (1, 2)] == [1, 2]


class TestSeries:
    def stored(self, store: Store, *names: str) -> list[str]:
        rows = [
            SeriesRow(name, f'[["a","{name}{number}"]]', 1, 1, 1.0, {0: 1}, {}) for name in names for number in (1, 2)
        ]
        store.commit(WriteSet(series=rows, labels=[("agent", name) for name in names])).result()
        return [each.key for name in names for each in store.reads.tally.page("otlp", name)]

    def test_series_pages_have_one_name_and_are_ordered_by_key(self, store: Store) -> None:
        keys = self.stored(store, "pandaeval.evaluations", "pandaeval.revisions")
        assert sorted(keys[:2]) == keys[:2]
        assert [each.key for each in store.reads.tally.page("otlp", "pandaeval.evaluations", limit=1)] == keys[:1]
        assert [each.key for each in store.reads.tally.page("otlp", "pandaeval.evaluations", keys[0])] == keys[1:2]
        assert [each.key for each in store.reads.tally.page("otlp", "pandaeval.evaluations", keys[1])] == []
        assert sorted(store.reads.tally.names()) == [
            (name, (("a", f"{name}{n}"),)) for name in ("pandaeval.evaluations", "pandaeval.revisions") for n in (1, 2)
        ]
        assert sorted(store.reads.tally.labels()) == [
            ("agent", "pandaeval.evaluations"),
            ("agent", "pandaeval.revisions"),
        ]

    def test_the_first_time_of_a_shown_zero_is_kept_per_reader(self, store: Store) -> None:
        first, second = self.stored(store, "pandaeval.evaluations")
        store.tally.show_zeros("otlp", [first], 5.0).result()
        store.tally.show_zeros("otlp", [first, second], 7.0).result()
        assert [each.shown_at for each in store.reads.tally.page("otlp", "pandaeval.evaluations")] == [5.0, 7.0]
        assert [each.shown_at for each in store.reads.tally.page("scrape", "pandaeval.evaluations")] == [None, None]
