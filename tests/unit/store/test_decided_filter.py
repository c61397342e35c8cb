"""The filter of decided traces has no false negatives."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import DecidedTrace, Store, WriteSet
from pandaeval_collector.store.seen import Seen


def _ids(number: int) -> list[bytes]:
    return [os.urandom(16) for _ in range(number)]


class TestSeen:
    def test_the_filter_contains_all_added_ids_and_few_others(self) -> None:
        seen, given, others = Seen(), _ids(100_000), _ids(100_000)
        seen.add(given)
        seen.complete = True
        assert all(id_ in seen for id_ in given)
        assert sum(id_ in seen for id_ in others) < 100

    def test_an_incomplete_filter_contains_every_id(self) -> None:
        assert os.urandom(16) in Seen()

    def test_the_filter_takes_eight_mebibytes(self) -> None:
        assert len(Seen()._bits) == 8 << 20


class _Rows:
    """A connection with limited, endless or failing pages."""

    def __init__(self, pages: int | None) -> None:
        self.pages, self.asked, self.begun = pages, "", threading.Event()

    def execute(self, query: str) -> _Rows:
        if self.pages == 0:
            raise sqlite3.OperationalError("disk I/O error")
        self.asked = query
        return self

    def fetchmany(self, _: int) -> list[tuple[bytes]]:
        self.begun.set()
        if self.pages is None:
            return [(b"id",)]
        self.pages -= 1
        return [(b"id %d" % self.pages,)] if self.pages else []

    @contextlib.contextmanager
    def scan(self) -> Iterator[sqlite3.Connection]:
        yield self  # type: ignore[misc]


class TestRemember:
    def test_all_ids_of_the_query_are_added(self) -> None:
        seen, rows = Seen(), _Rows(3)
        seen.remember(rows.scan, "the query")
        seen._filling.join()
        assert (seen.complete, rows.asked) == (True, "the query")
        assert [b"id %d" % number in seen for number in range(4)] == [False, True, True, False]

    def test_filling_stops_when_the_store_is_closed(self) -> None:
        seen, rows = Seen(), _Rows(None)
        seen.remember(rows.scan, "the query")
        assert rows.begun.wait(60)
        seen.stop()
        assert not seen.complete
        assert b"another" in seen, "an incomplete filter contains every id"
        assert seen._filling.daemon, "a process exit does not wait for the thread"

    def test_the_filter_stays_incomplete_if_the_ids_cannot_be_read(self, caplog: pytest.LogCaptureFixture) -> None:
        seen = Seen()
        seen.remember(_Rows(0).scan, "the query")
        seen._filling.join()
        assert not seen.complete
        assert b"another" in seen
        assert "disk I/O error" in caplog.text


class TestStore:
    def test_decided_traces_are_found_after_a_restart_before_and_after_filling(self, tmp_path: Path) -> None:
        ids = _ids(3000)
        with_one = [DecidedTrace(id_, 1, False, "", frozenset({b"12345678"}), (1,), 10) for id_ in ids]
        store = Store(tmp_path)
        store.commit(WriteSet(traces=with_one)).result()
        assert set(store.decided([*ids[:5], *_ids(5)])) == set(ids[:5])
        store.close()
        again = Store(tmp_path)
        try:
            assert set(again.decided(ids)) == set(ids)
            while not again._decided.complete:
                time.sleep(0.001)
            assert set(again.decided([*ids, *_ids(100)])) == set(ids)
        finally:
            again.close()
