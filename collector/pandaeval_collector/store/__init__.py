"""Everything that must survive, in one SQLite file: spans, decisions, results, sessions."""

from pandaeval_collector.store.chunks import StoreFullError
from pandaeval_collector.store.directory import StoreBusyError
from pandaeval_collector.store.outgoing import DamagedError
from pandaeval_collector.store.parcels import Parcel, parcels
from pandaeval_collector.store.place import StoreGoneError
from pandaeval_collector.store.responses import response_digest
from pandaeval_collector.store.rows import (
    Chunk,
    Job,
    JobEnd,
    JobRow,
    OutboxRow,
    ResponseRow,
    ResultRow,
    SeriesRow,
    SessionTraceRow,
    StoredSeries,
    TraceRow,
    WriteSet,
)
from pandaeval_collector.store.schema import NewerStoreError
from pandaeval_collector.store.shelf import Shelf
from pandaeval_collector.store.store import Store

__all__ = [
    "Chunk",
    "DamagedError",
    "Job",
    "JobEnd",
    "JobRow",
    "NewerStoreError",
    "OutboxRow",
    "Parcel",
    "ResponseRow",
    "ResultRow",
    "SeriesRow",
    "SessionTraceRow",
    "Shelf",
    "Store",
    "StoreBusyError",
    "StoreFullError",
    "StoreGoneError",
    "StoredSeries",
    "TraceRow",
    "WriteSet",
    "parcels",
    "response_digest",
]
