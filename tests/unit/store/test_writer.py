"""The writing thread: group commits and isolation."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.store.commits import Writer
from support.database import open_database
from support.disk import FailingDisk


class Rig:
    """A writer on one table, with failures and a gate."""

    def __init__(self, file: Path) -> None:
        self.file, self.failures = file, dict[str, int]()
        with open_database(file) as connection:
            connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
        self.gate = threading.Event()
        self.together: list[list[int]] = []
        """The items of each call."""
        self.writer = Writer(self._connect)
        self.writer.start()

    def _connect(self) -> Any:
        return FailingDisk(sqlite3.connect(self.file, isolation_level=None, check_same_thread=False), self.failures)

    def hold(self) -> None:
        """Block the thread so that work forms one group."""
        began = threading.Event()

        def wait(_: sqlite3.Connection) -> None:
            began.set()
            self.gate.wait(10)

        self.writer.submit(wait)
        assert began.wait(10)

    def insert(self, number: int) -> Future[int]:
        def work(connection: sqlite3.Connection) -> int:
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))
            return number

        return self.writer.submit(work)

    def insert_item(self, number: int) -> Future[None]:
        return self.writer.submit_item(self._insert_all, number)

    def _insert_all(self, connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
        self.together.append([*numbers])
        connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in numbers])

    def numbers(self) -> list[int]:
        with open_database(self.file) as connection:
            found = [row[0] for row in connection.execute("SELECT n FROM numbers ORDER BY n")]
        return found


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "numbers.db")
    yield made
    made.gate.set()
    made.writer.close()


def outcome(future: Future[Any]) -> object:
    error = future.exception(10)
    return future.result() if error is None else type(error)


def test_writes_that_wait_together_share_one_commit(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert(number) for number in range(200)]
    before = rig.writer.commits
    rig.gate.set()
    assert [future.result(10) for future in futures] == list(range(200))
    assert rig.writer.commits - before == 2  # the write that held the thread, and the group
    assert rig.numbers() == list(range(200))


def test_waiting_items_of_a_kind_are_written_together_and_in_order(rig: Rig) -> None:
    rig.hold()
    futures: list[Future[Any]] = [rig.insert_item(1), rig.insert_item(2), rig.insert(3), rig.insert_item(4)]
    rig.gate.set()
    assert [outcome(future) for future in futures] == [None, None, 3, None]
    assert rig.together == [[1, 2], [4]]
    assert rig.numbers() == [1, 2, 3, 4]


def test_a_failed_item_is_rolled_back_alone(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert_item(number) for number in (1, 2, 2, 3)]
    rig.gate.set()
    assert [outcome(future) for future in futures] == [None, None, sqlite3.IntegrityError, None]
    assert rig.numbers() == [1, 2, 3]


def test_a_failed_write_is_rolled_back_alone(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert(number) for number in (1, 2, 2, 3)]
    rig.gate.set()
    assert [outcome(future) for future in futures] == [1, 2, sqlite3.IntegrityError, 3]
    assert rig.numbers() == [1, 2, 3]


def test_a_write_that_fails_halfway_stores_nothing(rig: Rig) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (7)")
        raise ValueError("halfway")

    assert outcome(rig.writer.submit(work)) is ValueError
    assert rig.numbers() == []


def test_a_failed_commit_raises_an_error_and_stores_nothing(rig: Rig) -> None:
    rig.failures["COMMIT"] = 1
    assert outcome(rig.insert(1)) is sqlite3.OperationalError
    assert rig.numbers() == []
    assert outcome(rig.insert(2)) == 2


def test_writes_of_a_group_are_retried_one_by_one_if_its_commit_fails(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert(number) for number in range(3)]
    rig.failures["COMMIT"] = 3  # the write that holds the thread, the group, and the group's first write alone
    rig.gate.set()
    assert [outcome(future) for future in futures] == [sqlite3.OperationalError, 1, 2]
    assert rig.numbers() == [1, 2]


def test_one_failed_write_among_many_causes_few_extra_commits(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert(number) for number in (*range(100), 50, *range(100, 200))]
    rig.gate.set()
    assert [outcome(future) for future in futures].count(sqlite3.IntegrityError) == 1
    assert rig.numbers() == [*range(200)]
    assert rig.writer.commits < 20


def test_the_writer_survives_a_failed_rollback(rig: Rig) -> None:
    rig.failures |= {"COMMIT": 1, "ROLLBACK": 1}
    assert outcome(rig.insert(1)) is sqlite3.OperationalError
    assert outcome(rig.insert(2)) is sqlite3.OperationalError  # BEGIN in the transaction that was not rolled back
    assert outcome(rig.insert(3)) == 3
    assert rig.numbers() == [3]


def test_a_cancelled_write_does_not_affect_other_writes(rig: Rig) -> None:
    rig.hold()
    gone, there = rig.insert(1), rig.insert(2)
    assert gone.cancel()
    rig.gate.set()
    assert there.result(10) == 2
    assert gone.cancelled()
    assert rig.numbers() == [2]


def test_a_write_in_progress_cannot_be_cancelled(rig: Rig) -> None:
    began, gate = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> str:
        began.set()
        gate.wait(10)
        return "written"

    future = rig.writer.submit(work)
    assert began.wait(10)
    assert not future.cancel()
    gate.set()
    assert future.result(10) == "written"


def test_closing_finishes_submitted_writes_and_rejects_new_ones(rig: Rig) -> None:
    rig.hold()
    futures = [rig.insert(number) for number in range(5)]
    closing = threading.Thread(target=rig.writer.close)
    closing.start()
    rig.gate.set()
    closing.join(10)
    assert [outcome(future) for future in futures] == list(range(5))
    assert outcome(rig.insert(9)) is RuntimeError


def test_start_raises_an_error_if_the_connection_cannot_be_opened() -> None:
    def connect() -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        Writer(connect).start()


def test_writes_of_many_threads_are_all_done(rig: Rig) -> None:
    futures: list[Future[int]] = []

    def submit(start: int) -> Callable[[], None]:
        return lambda: futures.extend(rig.insert(number) for number in range(start, start + 100))

    threads = [threading.Thread(target=submit(start)) for start in range(0, 800, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(future.result(10) for future in futures) == list(range(800))
    assert rig.numbers() == list(range(800))


def test_the_writer_reports_whether_the_last_commit_failed(rig: Rig) -> None:
    assert rig.writer.failing == ""
    rig.failures["COMMIT"] = 1
    assert outcome(rig.insert(1)) is sqlite3.OperationalError
    assert rig.writer.failing == "disk I/O error"
    assert outcome(rig.insert(2)) == 2
    assert rig.writer.failing == ""
    assert outcome(rig.insert(2)) is sqlite3.IntegrityError
    assert rig.writer.failing == ""
