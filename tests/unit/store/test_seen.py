"""The filter of decided traces: no is always right, yes is right nearly always."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pandaeval_collector.store import DecidedTrace, Store, WriteSet
from pandaeval_collector.store.responses import Seen


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
            while not again._seen.complete:
                time.sleep(0.001)
            assert set(again.decided([*ids, *_ids(100)])) == set(ids)
        finally:
            again.close()
