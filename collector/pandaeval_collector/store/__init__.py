"""Everything that must survive, in one SQLite file: spans, decisions, results, sessions."""

from pandaeval_collector.store.rows import Chunk, ResultRow, SessionTraceRow, TraceRow, WriteSet
from pandaeval_collector.store.schema import NewerStoreError
from pandaeval_collector.store.store import Store, StoreBusyError, StoreFullError

__all__ = [
    "Chunk",
    "NewerStoreError",
    "ResultRow",
    "SessionTraceRow",
    "Store",
    "StoreBusyError",
    "StoreFullError",
    "TraceRow",
    "WriteSet",
]
