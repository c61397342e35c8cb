"""The filter of decided traces: never a false no."""

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
    def test_it_says_yes_to_all_it_was_given_and_to_few_others(self) -> None:
        seen, given, others = Seen(), _ids(100_000), _ids(100_000)
        seen.add(given)
        seen.complete = True
        assert all(id_ in seen for id_ in given)
        assert sum(id_ in seen for id_ in others) < 100

    def test_until_complete_it_says_yes_to_all(self) -> None:
        assert os.urandom(16) in Seen()

    def test_it_takes_eight_mebibytes(self) -> None:
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

    def test_it_ends_when_the_store_is_closed_however_much_is_left(self) -> None:
        seen, rows = Seen(), _Rows(None)
        seen.remember(rows.scan, "the query")
        assert rows.begun.wait(60)
        seen.stop()
        assert not seen.complete
        assert b"another" in seen, "who knows"
        assert seen._filling.daemon, "a process that ends does not wait for it either"

    def test_while_the_ids_cannot_be_read_each_may_have_been_decided(self, caplog: pytest.LogCaptureFixture) -> None:
        seen = Seen()
        seen.remember(_Rows(0).scan, "the query")
        seen._filling.join()
        assert not seen.complete
        assert b"another" in seen
        assert "disk I/O error" in caplog.text


class TestStore:
    def test_what_was_decided_is_found_after_a_restart_and_before_the_filter_is_filled(self, tmp_path: Path) -> None:
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
