"""Everything that must survive, in one SQLite file: spans, decisions, results, sessions, series and failures.

Imports analysis, base.
"""

from pandaeval_collector.store.access import StoreAccess
from pandaeval_collector.store.changes import WriteSet
from pandaeval_collector.store.chunks import StoreFullError, packed_contents
from pandaeval_collector.store.consumed import Consumed, Extent
from pandaeval_collector.store.directory import StoreBusyError
from pandaeval_collector.store.failure_groups import FailureGroupRow
from pandaeval_collector.store.outbox import DamagedError, outbox_batches
from pandaeval_collector.store.reader import StoreReader
from pandaeval_collector.store.responses import response_digest
from pandaeval_collector.store.rows import (
    Chunk,
    DecidedTrace,
    Dismissal,
    DrawnRow,
    Job,
    JobEnd,
    JobRow,
    JudgedRow,
    ListedRow,
    OutboxBatch,
    OutboxRow,
    ResponseRow,
    ResultRow,
    SeriesRow,
    SessionTraceRow,
)
from pandaeval_collector.store.schema import StoreVersionError
from pandaeval_collector.store.store import Store

__all__ = [
    "Chunk",
    "Consumed",
    "DamagedError",
    "DecidedTrace",
    "Dismissal",
    "DrawnRow",
    "Extent",
    "FailureGroupRow",
    "Job",
    "JobEnd",
    "JobRow",
    "JudgedRow",
    "ListedRow",
    "OutboxBatch",
    "OutboxRow",
    "ResponseRow",
    "ResultRow",
    "SeriesRow",
    "SessionTraceRow",
    "Store",
    "StoreAccess",
    "StoreBusyError",
    "StoreFullError",
    "StoreReader",
    "StoreVersionError",
    "WriteSet",
    "outbox_batches",
    "packed_contents",
    "response_digest",
]
