"""What it takes to know a trace again among many: pages that a commit writes, and the time of a look-up.

Rows like those of decided traces, under random ids, go into three tables, 256 a commit: keyed by id; keyed by number
with an index of ids; keyed by number with an index of ids in blocks of 8,192 numbers, as in the store. Pages are
counted in the write-ahead log, so that other work on the machine does not matter. A look-up asks for twelve ids;
"filter" is the store's own, which is asked first.

    python tests/lab/bench/index.py [--traces 100000]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from _table import table

from pandaeval_collector.store import numbers
from pandaeval_collector.store.responses import Seen

_COMMIT, _LOOK = 256, 12
_PAGE, _FRAME = 16384, 24
_SHOWN = (10_000, 30_000, 100_000, 300_000, 1_000_000)
_ROW = "trace_id BLOB NOT NULL{key}, revision INTEGER, digest TEXT, known BLOB, chunks TEXT, size INTEGER, at REAL"
LAYOUTS = {
    "keyed by id": f"CREATE TABLE traces ({_ROW.format(key=' PRIMARY KEY')}) WITHOUT ROWID",
    "number, index of ids": f"""CREATE TABLE traces (no INTEGER PRIMARY KEY, {_ROW.format(key="")});
        CREATE INDEX by_id ON traces (trace_id)""",
    "number, index in blocks": f"""CREATE TABLE traces (no INTEGER PRIMARY KEY, {_ROW.format(key="")});
        CREATE INDEX by_id ON traces (no >> 13, trace_id)""",
}
_COLUMNS = "trace_id, revision, digest, known, chunks, size, at"


class Kept:
    """One of the tables in a file of its own."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.layout, self._log = layout, folder / f"{len(layout)}.db-wal"
        self.connection = sqlite3.connect(folder / f"{len(layout)}.db", isolation_level=None)
        self.connection.executescript(
            f"PRAGMA page_size = {_PAGE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {LAYOUTS[layout]};"
        )
        self.connection.execute("PRAGMA wal_autocheckpoint = 0")

    def add(self, ids: Sequence[bytes]) -> int:
        """Commits rows, and returns how many pages that wrote."""
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = [(id_, 1, id_.hex(), id_ * 6, "[1234567]", 12_000, 1.8e9) for id_ in ids]
        self.connection.execute("BEGIN")
        self.connection.executemany(f"INSERT INTO traces ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self.connection.execute("COMMIT")
        return self._log.stat().st_size // (_PAGE + _FRAME)

    def look(self, ids: Sequence[bytes]) -> int:
        """How many of them are there."""
        marks = ",".join("?" * len(ids))
        if "blocks" not in self.layout:
            query = f"SELECT trace_id, revision FROM traces WHERE trace_id IN ({marks})"
            return len(self.connection.execute(query, ids).fetchall())
        query = f"SELECT trace_id, revision FROM traces WHERE {numbers.BY_ID.format(marks=marks)}"
        return len(self.connection.execute(query, (numbers.blocks(self.connection), *ids)).fetchall())


def _ids(number: int) -> list[bytes]:
    return [os.urandom(16) for _ in range(number)]


def _microseconds(look: Callable[[Sequence[bytes]], int]) -> float:
    """CPU time per id that is not there, median."""
    taken = []
    for _ in range(200):
        ids = _ids(_LOOK)
        begun = time.thread_time_ns()
        assert look(ids) == 0
        taken.append((time.thread_time_ns() - begun) / 1e3 / _LOOK)
    return median(taken)


def _blocks(traces: int) -> Iterator[tuple[int, list[bytes]]]:
    for first in range(0, traces, _COMMIT):
        yield first + _COMMIT, _ids(_COMMIT)


def report(traces: int) -> str:
    rows: list[list[object]] = []
    seen = Seen()
    seen.complete = True
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as open_ones:
        kept = [Kept(Path(name), layout) for layout in LAYOUTS]
        for each in kept:
            open_ones.callback(each.connection.close)
        written: dict[str, list[int]] = {layout: [] for layout in LAYOUTS}
        shown = [number for number in _SHOWN if number <= traces]
        for number, ids in _blocks(traces):
            seen.add(ids)
            for each in kept:
                written[each.layout].append(each.add(ids))
            if shown and number >= shown[0]:
                asked = _microseconds(lambda some: sum(id_ in seen for id_ in some) and 0)
                for each in kept:
                    pages = median(written[each.layout][-20:])
                    assert each.look(ids) == len(ids)
                    rows.append([f"{shown[0]:,}", each.layout, pages, _microseconds(each.look), asked])
                del shown[0]
    head = ["traces", "layout", f"pages a commit of {_COMMIT}", "look-up, CPU µs an id", "filter, CPU µs an id"]
    return table("To know a trace again", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=100_000)
    print(report(parser.parse_args().traces))


if __name__ == "__main__":
    main()
