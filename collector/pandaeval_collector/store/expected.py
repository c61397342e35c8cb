"""The store as it will be: what is committed, and on top of it a decision that is on its way there."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from pandaeval_collector.store.responses import response_digest
from pandaeval_collector.store.rows import ResponseRow, ResultRow, SessionTraceRow, WriteSet
from pandaeval_collector.store.store import Store


class Expected:
    """Reads what decisions depend on. One thread.

    Inside of :meth:`after` it counts as committed what is only being committed. Whether that has come to be meanwhile
    makes no difference: rows that are there already are read once.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._coming = _Coming(WriteSet())

    @contextlib.contextmanager
    def after(self, changes: WriteSet) -> Iterator[None]:
        """While it lasts, what is read is the store after ``changes``."""
        self._coming = _Coming(changes)
        try:
            yield
        finally:
            self._coming = _Coming(WriteSet())

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """See :meth:`Store.snapshot`."""
        return self._store.snapshot()

    def session_traces(self, session_id: str) -> list[SessionTraceRow]:
        """See :meth:`Store.session_traces`."""
        return self._with_coming(session_id, self._store.session_traces(session_id))

    def newest_traces(self, session_ids: Collection[str], newest: int) -> dict[str, tuple[int, list[SessionTraceRow]]]:
        """See :meth:`Store.newest_traces`."""
        stored, coming = self._store.newest_traces(session_ids, newest), self._coming
        if not coming.replaced:
            return stored
        if coming.stood is None:
            coming.stood = self._stood()
        found: dict[str, tuple[int, list[SessionTraceRow]]] = {}
        for session_id, (size, rows) in stored.items():
            if size > newest and self._lacks(rows):  # then others are among the newest that were not read
                now = self.session_traces(session_id)
            else:
                now = self._with_coming(session_id, rows)
            size += len(coming.of_session.get(session_id, ())) - coming.stood[session_id]
            found[session_id] = size, now[-newest:]
        return found

    def session_trace(self, trace_id: bytes) -> SessionTraceRow | None:
        """See :meth:`Store.session_trace`."""
        return self.left_behind([trace_id]).get(trace_id)

    def left_behind(self, trace_ids: Collection[bytes]) -> dict[bytes, SessionTraceRow]:
        """See :meth:`Store.left_behind`."""
        coming = self._coming
        found = self._store.left_behind([id_ for id_ in trace_ids if id_ not in coming.replaced])
        found.update((id_, coming.rows[id_]) for id_ in trace_ids if id_ in coming.rows)
        return found

    def giving(self, response_ids: Collection[str]) -> list[SessionTraceRow]:
        """See :meth:`ResponseTables.giving`."""
        return self._linked(self._store.responses.giving(response_ids), response_ids, continued=False)

    def continuing(self, response_ids: Collection[str]) -> list[SessionTraceRow]:
        """See :meth:`ResponseTables.continuing`."""
        return self._linked(self._store.responses.continuing(response_ids), response_ids, continued=True)

    def held(self, trace_id: bytes) -> tuple[str, tuple[int, ...]] | None:
        """See :meth:`Store.held`."""
        coming = next((row for row in self._coming.changes.traces if row.trace_id == trace_id), None)
        return self._store.held(trace_id) if coming is None else (coming.digest, tuple(coming.chunks))

    def newest_results(self, units: Collection[str]) -> dict[tuple[str, str], ResultRow]:
        """See :meth:`Store.newest_results`."""
        found = self._store.newest_results(units)
        found.update(((row.unit, row.metric), row) for row in self._coming.changes.results if row.unit in units)
        return found

    def _stood(self) -> Counter[str]:
        """How many of the rows that are replaced the store has in each session."""
        coming = self._coming
        stood = Counter(self._store.session_of(coming.replaced - coming.fresh).values())
        if coming.fresh and self._store.held(next(iter(coming.fresh))) is not None:  # it is there, and so are all
            stood.update(row.session_id for id_, row in coming.rows.items() if id_ in coming.fresh)
        return stood

    def _with_coming(self, session_id: str, stored: list[SessionTraceRow]) -> list[SessionTraceRow]:
        coming = self._coming
        if not coming.replaced:
            return stored
        kept = [row for row in stored if row.trace_id not in coming.replaced]
        return sorted([*kept, *coming.of_session.get(session_id, ())], key=_order)

    def _lacks(self, stored: Iterable[SessionTraceRow]) -> bool:
        """Whether one of a session's rows is not there any more, or in another place."""
        coming = self._coming
        replaced = [row for row in stored if row.trace_id in coming.replaced]
        return any(
            (now := coming.rows.get(row.trace_id)) is None
            or (now.session_id, *_order(now)) != (row.session_id, *_order(row))
            for row in replaced
        )

    def _linked(
        self, stored: Iterable[SessionTraceRow], response_ids: Collection[str], continued: bool
    ) -> list[SessionTraceRow]:
        coming = self._coming
        if not coming.replaced:
            return [*stored]
        ids = dict.fromkeys(row.trace_id for row in stored)
        kept = {row.trace_id: row for row in stored if row.trace_id not in coming.replaced}
        for response_id in response_ids:
            ids |= dict.fromkeys(coming.linked.get((response_digest(response_id), continued), ()))
        return [row for id_ in ids if (row := coming.rows.get(id_) or kept.get(id_)) is not None]


class _Coming:
    """A write set by what is asked of it.

    ``rows``: what it says of traces in sessions; ``replaced``: traces of which the store's own rows do not count;
    ``fresh``: those that are decided for the first time."""

    def __init__(self, changes: WriteSet) -> None:
        self.changes = changes
        self.rows = {row.trace_id: row for row in changes.session_traces}  # of two the later one, as in the store
        self.replaced = self.rows.keys() | changes.moved
        self.fresh = frozenset(row.trace_id for row in changes.traces if row.revision == 1)
        self.stood: Counter[str] | None = None
        """How many of the replaced ones the store has in each session; ``None``: not read yet."""
        self.of_session: dict[str, list[SessionTraceRow]] = defaultdict(list)
        for row in self.rows.values():
            self.of_session[row.session_id].append(row)
        self.linked = _by_response(changes.responses)


def _order(row: SessionTraceRow) -> tuple[int, bytes]:
    return row.start_ns, row.trace_id


def _by_response(rows: Iterable[ResponseRow]) -> dict[tuple[bytes, bool], list[bytes]]:
    found: dict[tuple[bytes, bool], list[bytes]] = defaultdict(list)
    for row in rows:
        found[row.digest, row.continued].append(row.trace_id)
    return found
