"""The tables that exporters read: the outbox of encoded items, and the score series."""

from __future__ import annotations

import functools
import itertools
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future

import zstandard

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store import tally
from pandaeval_collector.store.access import TableGroup
from pandaeval_collector.store.changes import drop_unsent, forget_sent
from pandaeval_collector.store.outbox_batches import batch_items
from pandaeval_collector.store.rows import READ_BYTES, OutboxRow, StoredSeries
from pandaeval_otel.base.names import MAX_NAME_CHARS, bounded

_MOVED_AT_ONCE = 200
"""Series in one transaction: senders wait meanwhile."""
_LONG = (MAX_NAME_CHARS,)
_SERIES_OF_LONG_NAMES = """
    SELECT key FROM series WHERE instr(attributes, '\\') > 0 OR EXISTS
    (SELECT 1 FROM json_each(attributes) AS pair WHERE length(json_extract(pair.value, '$[1]')) > ?)"""
"""Names with a backslash are looked at too: it stands before what cannot be printed."""
_SERIES_BY_AGE = "SELECT key, attributes FROM series ORDER BY start_ns, key"


class DamagedError(RuntimeError):
    """The next items of the outbox cannot be read any more: ``items`` of them, ``seq`` the last."""

    def __init__(self, seq: int, items: int) -> None:
        super().__init__(f"{items} items of the outbox were damaged on disk")
        self.seq, self.items = seq, items


def _short(attributes: Attributes) -> Attributes:
    return tuple((key, bounded(value)) for key, value in attributes)


def _is_other(written: str) -> bool:
    attributes = tally.attributes_of(written)
    return tally.folded(attributes) == attributes


class OutboxTables(TableGroup):
    """Reads and writes the outbox of each signal, the score series, and the label values that these may have."""

    def outbox_after(self, signal: str, seq: int, limit: int = 1000) -> list[OutboxRow]:
        """Items of one signal behind a cursor, in order of commitment: at most ``limit``, fewer where they are large.
        Raises :class:`DamagedError` when the first of them cannot be read."""
        rows = self._reader().execute(
            "SELECT seq, items, body FROM outbox WHERE signal = ? AND seq > ? ORDER BY seq LIMIT ?",
            (signal, seq, limit),
        )
        found: list[OutboxRow] = []
        size = 0
        for last, count, packed in rows:
            try:
                items = batch_items(count, packed)
            except (zstandard.ZstdError, struct.error) as error:
                if found:
                    break
                raise DamagedError(last, min(count, last - seq)) from error
            numbered = enumerate(items, last - len(items) + 1)
            found.extend(OutboxRow(signal, item, number) for number, item in numbered if number > seq)
            size += sum(map(len, items))
            if len(found) >= limit or size >= READ_BYTES:
                break
        rows.close()
        return found[:limit]

    def series(self, reader: str, name: str, after: str = "", limit: int = 1000) -> list[StoredSeries]:
        """Returns up to ``limit`` score series of one name in order of their keys, from behind the key ``after``.
        ``reader``: ``otlp`` or ``scrape``."""
        return tally.page(self._reader(), reader, name, after, limit)

    def series_names(self) -> Iterator[tuple[str, Attributes]]:
        """Names and attributes of all score series."""
        with self._scan() as reader:
            for name, attributes in reader.execute("SELECT name, attributes FROM series"):
                yield name, tally.attributes_of(attributes)

    def show_zeros(self, reader: str, keys: Sequence[str], now: float) -> Future[None]:
        """Notes that a reader was shown these series as 0."""
        return self._writer.submit(lambda connection: tally.note_zeros(connection, reader, keys, now))

    def bound_series(self, most: int) -> int:
        """Brings what an older version, or another configuration, left behind within today's bounds: names that are
        too long are cut, and series beyond ``most`` become part of those of ``__other__``, the youngest first. Returns
        how many series became others. Blocks; any thread."""
        with self._scan() as reader:
            for kind, value in reader.execute("SELECT kind, value FROM labels WHERE length(value) > ?", _LONG):
                self._writer.submit(functools.partial(tally.rename_label, kind, value, bounded(value))).result()
            long = [key for (key,) in reader.execute(_SERIES_OF_LONG_NAMES, _LONG)]
        renamed = self._move(long, _short)
        with self._scan() as reader:
            ours = (key for key, attributes in reader.execute(_SERIES_BY_AGE) if not _is_other(attributes))
            beyond = [*itertools.islice(ours, most, None)]
        return renamed + self._move(beyond, tally.folded)

    def _move(self, keys: Sequence[str], renamed: Callable[[Attributes], Attributes]) -> int:
        moved = 0
        for start in range(0, len(keys), _MOVED_AT_ONCE):
            some = keys[start : start + _MOVED_AT_ONCE]
            moved += self._writer.submit(functools.partial(tally.move, keys=some, renamed=renamed)).result()
        return moved

    def labels(self) -> list[tuple[str, str]]:
        """The label values that were admitted so far."""
        return list(self._reader().execute("SELECT kind, value FROM labels"))

    def outbox_waiting(self, signal: str, seq: int, most: int = 100_000) -> int:
        """Returns how many items of ``signal`` lie behind a cursor; counts no further than ``most`` rows."""
        counted = self._reader().execute(
            """SELECT coalesce(sum(min(items, seq - ?2)), 0)
               FROM (SELECT seq, items FROM outbox WHERE signal = ?1 AND seq > ?2 LIMIT ?3)""",
            (signal, seq, most),
        )
        return int(counted.fetchone()[0])

    def outbox_bytes(self) -> int:
        """Bytes of all rows that are kept to be sent."""
        return int(self._reader().execute("SELECT coalesce(sum(size), 0) FROM outbox").fetchone()[0])

    def forget_sent(self, signal: str, seq: int, limit: int = 5000) -> Future[int]:
        """Deletes rows that a cursor has passed, at most ``limit``; the future holds how many."""
        return self._writer.submit(lambda connection: forget_sent(connection, signal, seq, limit))

    def drop_unsent(
        self, before: float, excess_bytes: int, done: Mapping[str, int], limit: int = 1000
    ) -> Future[Counter[tuple[str, str]]]:
        """Drops the oldest rows that wait: those from before ``before`` (of the store's running clock), then as many as
        it takes to free ``excess_bytes``; at most ``limit`` rows. ``done``: the cursor of each signal. The future holds
        how many unsent items went, by signal and reason (``too_old``, ``disk_share``); empty when no row did."""
        return self._writer.submit(lambda connection: drop_unsent(connection, before, excess_bytes, done, limit))
