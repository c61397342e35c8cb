"""The tables of decided traces and of their results."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Future

import orjson

from pandaeval_collector.store import attributes, numbers
from pandaeval_collector.store.access import Access, TableGroup
from pandaeval_collector.store.changes import apply
from pandaeval_collector.store.checksums import checksum_of
from pandaeval_collector.store.outgoing import DamagedError
from pandaeval_collector.store.responses import Remembering, ResponseTables, Seen
from pandaeval_collector.store.rows import READ_BYTES, ResultRow, WriteSet, decided
from pandaeval_otel.assembly import Decided

_RESULT = "id, unit, metric, revision, body, counted, seq"


class DecisionTables(TableGroup):
    """Decided traces and results. A filter in memory answers for most new traces that they were never decided."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._seen = Seen()
        self._remembering = Remembering(self._seen, self._scan, "SELECT trace_id FROM traces INDEXED BY traces_by_id")
        self.responses = ResponseTables(access)

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        """Returns what the store remembers of those of the given traces that were decided before."""
        found: dict[bytes, Decided] = {}
        perhaps = [trace_id for trace_id in trace_ids if trace_id in self._seen]
        if not perhaps:
            return found
        reader = self._reader()
        among = numbers.blocks(reader)
        for marks, group in numbers.batched(perhaps):
            rows = reader.execute(
                f"""SELECT trace_id, revision, final, known, chunks, size FROM traces
                    WHERE revision > 0 AND {numbers.BY_ID.format(marks=marks)}""",  # noqa: S608
                (among, *group),
            )
            found.update((row[0], decided(row[1:])) for row in rows)
        return found

    def decided_ids(self) -> set[bytes]:
        """The ids of all decided traces that the store remembers."""
        return {trace_id for (trace_id,) in self._reader().execute("SELECT trace_id FROM traces")}

    def held(self, trace_id: bytes) -> tuple[str, tuple[int, ...]] | None:
        """Returns the digest of a decided trace and the ids of its chunks that the store still has; ``None`` for an
        undecided trace."""
        reader = self._reader()
        number = numbers.of_traces(reader, [trace_id]).get(trace_id)
        row = reader.execute("SELECT digest, chunks FROM traces WHERE no = ?", (number,)).fetchone()
        return None if row is None else (str(row[0]), tuple(orjson.loads(row[1])))

    def commit(self, changes: WriteSet) -> Future[list[ResultRow]]:
        """Applies a decision whole or not at all. The future holds the results that are new, with their ``seq``."""
        perhaps_known = [row.trace_id for row in changes.traces if row.trace_id in self._seen]
        self._seen.add(row.trace_id for row in changes.traces)
        if changes.strangers:
            self._seen.add(changes.strangers)
        self.responses.note(changes.responses)
        return self._writer.submit(lambda connection: apply(connection, changes, self.clock.now(), perhaps_known))

    def tag(self, pair: str, trace_ids: Collection[bytes]) -> Future[int]:
        """Adds a pair ``key=value`` by which lists and runs find these traces. The future holds how many are listed."""
        return self._writer.submit(lambda connection: attributes.tag(connection, pair, trace_ids))

    def newest_results(self, units: Collection[str]) -> dict[tuple[str, str], ResultRow]:
        """The newest result of each (unit, metric) of the given units."""
        found: dict[tuple[str, str], ResultRow] = {}
        reader = self._reader()
        for marks, group in numbers.batched(numbers.of_units(reader, units)):
            rows = reader.execute(
                f"SELECT {_RESULT}, settled FROM results WHERE about IN ({marks}) ORDER BY seq",  # noqa: S608
                group,
            )
            for *fields, settled in rows:
                row = found[fields[1], fields[2]] = ResultRow(*fields)
                row.settled = bool(settled)
        return found

    def results_after(self, seq: int, limit: int = 1000) -> list[ResultRow]:
        """Results behind a cursor in order of commitment: at most ``limit``, fewer where they are large. Raises
        :class:`DamagedError` when the first of them was damaged."""
        rows = self._reader().execute(
            f"SELECT checksum, {_RESULT} FROM results WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608
            (seq, limit),
        )
        found: list[ResultRow] = []
        size = 0
        for checksum, *row in rows:
            result = ResultRow(*row)
            if checksum != checksum_of(result):
                if not found:
                    raise DamagedError(result.seq, 1)
                break
            found.append(result)
            size += len(result.body)
            if size >= READ_BYTES:
                break
        rows.close()
        return found

    def newest_seq(self) -> int:
        """The ``seq`` of the newest result; 0 when there is none."""
        return int(self._reader().execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()[0])

    def _stop_remembering(self) -> None:
        self._remembering.stop()
        self.responses.stop()
