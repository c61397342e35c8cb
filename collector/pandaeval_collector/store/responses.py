"""The table of response ids: which decided traces gave a response of a model, and which continue it. It finds
conversations whose spans name no session."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

import orjson

from pandaeval_collector.store import numbers
from pandaeval_collector.store.access import Access, TableGroup
from pandaeval_collector.store.checksums import MEMBER, checked_members
from pandaeval_collector.store.rows import ResponseRow, SessionTraceRow
from pandaeval_collector.store.seen import Remembering, Seen

BLOCK_BITS = 15
"""Rows lie in blocks of so many trace numbers, each in order of digests: new ones go to a few pages at the end, and a
response is looked for once per block."""
MANY = 64
"""So many traces are read that gave one response, or go on from it, the first decided ones: one id for all must not
make each trace dearer than the one before."""


class ResponseTables(TableGroup):
    """Digests of response ids. A filter in memory answers for most of them that no other trace has them."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._seen = Seen()
        self._remembering = Remembering(self._seen, self._scan, "SELECT digest FROM responses")

    def giving(self, response_ids: Collection[str]) -> list[SessionTraceRow]:
        """What those decided traces left behind that gave one of these responses; perhaps a few others too."""
        return self._traces(response_ids, continued=False)

    def continuing(self, response_ids: Collection[str]) -> list[SessionTraceRow]:
        """What those left behind that go on from one of these responses; perhaps a few others too."""
        return self._traces(response_ids, continued=True)

    def note(self, rows: Iterable[ResponseRow]) -> None:
        """Adds digests that are being committed to the filter."""
        self._seen.add(row.digest for row in rows)

    def stop(self) -> None:
        """Waits until the filter is not being filled any more."""
        self._remembering.stop()

    def _traces(self, response_ids: Collection[str], continued: bool) -> list[SessionTraceRow]:
        perhaps = [found for found in map(response_digest, response_ids) if found in self._seen]
        return self._read(perhaps, continued) if perhaps else []

    def _read(self, digests: Sequence[bytes], continued: bool) -> list[SessionTraceRow]:
        reader = self._reader()
        first, last = reader.execute(
            "SELECT (SELECT min(block) FROM responses), (SELECT max(block) FROM responses)"
        ).fetchone()
        blocks = orjson.dumps([] if last is None else [*range(first, last + 1)]).decode()

        def read(some: Sequence[object]) -> list[SessionTraceRow]:
            rows = reader.execute(
                f"""SELECT coalesce(session_id, ''), {MEMBER}
                    FROM responses JOIN members USING (no) LEFT JOIN sessions ON sessions.no = session
                    WHERE block IN (SELECT value FROM json_each(?)) AND continued = ?
                    AND digest IN ({",".join("?" * len(some))}) LIMIT ?""",  # noqa: S608
                (blocks, continued, *some, MANY * len(some)),
            )
            return [*checked_members(rows)]

        found: list[SessionTraceRow] = []
        for _, group in numbers.batched(digests):
            rows = read(group)
            if len(rows) == MANY * len(group):  # one of them may have left no room for the others
                rows = [row for each in group for row in read([each])]
            found += rows
        return list({row.trace_id: row for row in found}.values())


def response_digest(response_id: str) -> bytes:
    """What a response is found by. Two responses of one digest do no harm: who asks looks at the ids as well."""
    return hashlib.blake2b(response_id.encode(errors="surrogatepass"), digest_size=8).digest()
