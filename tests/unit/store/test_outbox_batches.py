"""Many items in a row of the outbox: what goes in comes out, numbered, from behind any cursor."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._otlp.envelope import Envelope
from pandaeval_collector.exporters._otlp.items import ItemExporter
from pandaeval_collector.exporters.delivery.outbox import Outbox
from pandaeval_collector.store import DamagedError, ResultRow, Store, WriteSet, outbox_batches
from pandaeval_collector.store.outbox_batches import batch_items
from pandaeval_otel.wire.skeleton import Request
from support.database import open_database
from support.doors import until

NUMBERED = [b"%d" % number for number in range(700)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data", "off")
    yield made
    made.close()


def put(store: Store, signal: str, items: list[bytes]) -> None:
    store.commit(WriteSet(outbox=[*outbox_batches(signal, items)])).result()


def damage_first(store: Store) -> None:
    with open_database(store.path / "pandaeval.db") as other:
        other.execute("UPDATE outbox SET body = x'00' WHERE seq = (SELECT min(seq) FROM outbox)")


@given(st.lists(st.binary(max_size=9) | st.just(bytes(200_000)), max_size=1200))
def test_what_goes_in_comes_out(items: list[bytes]) -> None:
    made = list(outbox_batches("logs", items))
    assert [item for each in made for item in batch_items(each.items, each.packed)] == items
    assert all(0 < each.items <= 512 for each in made)


def test_no_batch_is_large_unless_an_item_is() -> None:
    sizes = [each.items for each in outbox_batches("traces", [bytes(100_000)] * 3 + [bytes(1 << 20)] * 2)]
    assert sizes == [2, 1, 1, 1]


def test_a_cursor_may_stand_anywhere(store: Store) -> None:
    put(store, "logs", NUMBERED)
    put(store, "traces", [b"span"])
    put(store, "logs", [b"last"])
    everything = store.outbox_after("logs", 0, 10_000)
    assert [row.body for row in everything] == [*NUMBERED, b"last"]
    numbers = [row.seq for row in everything]
    assert numbers == sorted(set(numbers))
    for row in everything:
        later = store.outbox_after("logs", row.seq, 3)
        assert later == everything[numbers.index(row.seq) + 1 :][:3]
        assert store.outbox_waiting("logs", row.seq) == len(numbers) - numbers.index(row.seq) - 1
    assert [row.body for row in store.outbox_after("traces", 0)] == [b"span"]


def test_of_large_items_fewer_are_read_at_a_time(store: Store) -> None:
    put(store, "logs", [random.randbytes(1 << 20) for _ in range(12)])
    at, portions = 0, []
    while rows := store.outbox_after("logs", at):
        portions.append(len(rows))
        at = rows[-1].seq
    assert portions == [4, 4, 4]
    store.commit(WriteSet(results=[ResultRow(f"r{n}", "u", "trace.m", 1, bytes(3 << 20)) for n in range(3)])).result()
    assert [row.id for row in store.results_after(0)] == ["r0", "r1"]
    assert [row.id for row in store.results_after(2)] == ["r2"]


def test_a_batch_goes_when_all_of_it_is_sent(store: Store) -> None:
    put(store, "logs", NUMBERED[:3])
    assert store.forget_sent("logs", 2).result() == 0
    assert [row.body for row in store.outbox_after("logs", 2)] == [b"2"]
    assert store.forget_sent("logs", 3).result() == 1
    assert store.outbox_bytes() == 0


def test_numbers_are_not_given_again(store: Store) -> None:
    put(store, "logs", NUMBERED)
    store.forget_sent("logs", 700).result()
    put(store, "logs", [b"next"])
    assert [row.seq for row in store.outbox_after("logs", 0)] == [701]


def test_what_was_sent_before_it_was_dropped_is_not_counted(store: Store) -> None:
    put(store, "logs", NUMBERED)
    put(store, "traces", [b"span"])
    gone = store.drop_unsent(before=1e12, excess_bytes=0, done={"logs": 690, "traces": 0}).result()
    assert gone == {("logs", "too_old"): 10, ("traces", "too_old"): 1}
    assert store.outbox_bytes() == 0


def test_a_row_of_an_older_store_is_one_item(store: Store) -> None:
    with open_database(store.path / "pandaeval.db") as other:
        other.execute("INSERT INTO outbox (signal, created_at, body, size) VALUES ('logs', 20, x'6c6f67', 3)")
    put(store, "logs", [b"new", b"newer"])
    assert [(row.seq, row.body) for row in store.outbox_after("logs", 0)] == [(1, b"log"), (2, b"new"), (3, b"newer")]
    assert store.outbox_waiting("logs", 0) == 3
    assert store.drop_unsent(before=1e12, excess_bytes=0, done={}).result() == {("logs", "too_old"): 3}


class TestDamaged:
    def test_what_comes_before_is_read_first(self, store: Store) -> None:
        put(store, "logs", NUMBERED)
        damage_first(store)
        with pytest.raises(DamagedError) as caught:
            store.outbox_after("logs", 12)
        assert (caught.value.seq, caught.value.items) == (512, 500)
        assert store.outbox_after("logs", 512, 1)[0].body == b"512"

    async def test_it_is_counted_and_passed_over(self, store: Store) -> None:
        put(store, "logs", NUMBERED)
        damage_first(store)
        telemetry, transport = Telemetry(), Recorder()
        outbox = Outbox(store, ItemExporter("logs", transport, Envelope("i")), telemetry)
        await outbox.start()
        await until(lambda: len(transport.items) == 188)
        await outbox.stop()
        assert transport.items == NUMBERED[512:]
        counts = {(outcome, reason): n for (_, outcome, reason), n in telemetry.counts().items()}
        assert counts == {("sent", ""): 188, ("dropped", "damaged"): 512}


class Recorder:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[bytes] = []

    async def open(self) -> None: ...

    async def send(self, request: bytes) -> bytes:
        self.items.extend(Request.FromString(request).resourced[0].scoped[0].items)
        return b""

    async def close(self) -> None: ...
