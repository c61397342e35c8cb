"""Response ids of models, to find conversations without a session id."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import MEMBER, SessionTraceRow, checked_members
from pandaeval_collector.store.seen import Seen
from pandaeval_collector.store.table import StoreTable

BLOCK_BITS = 15
"""Bits of a trace number within a block. Rows of a block are sorted by digest: new rows change few pages, and a search
looks into each block once."""
MANY = 64
"""Maximum traces read for a response, in order of their decisions. So the cost of a trace does not grow if all traces
share an id."""


class Responses(StoreTable):
    """Digests of response ids, with an optional filter in memory."""

    seen: Seen | None = None

    def traces(self, response_ids: Collection[str], *, continued: bool) -> list[SessionTraceRow]:
        """Return members that gave or continue (``continued``) these responses; may include others."""
        digests = [digest for digest in map(response_digest, response_ids) if self.seen is None or digest in self.seen]
        if not digests:
            return []
        reader = self._reader()
        blocks = numbers.blocks(reader, bits=BLOCK_BITS)

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
            if len(rows) == MANY * len(group):  # a single digest may have used the whole limit
                rows = [row for each in group for row in read([each])]
            found += rows
        return list({row.trace_id: row for row in found}.values())


def response_digest(response_id: str) -> bytes:
    """Return a response's digest. Callers compare ids as well."""
    return hashlib.blake2b(response_id.encode(errors="surrogatepass"), digest_size=8).digest()
