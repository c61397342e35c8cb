"""Reads a collector's files by schema and OTLP, without its code."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.database import open_database

Stored = dict[tuple[bytes, bytes], set[bytes]]


def stored_spans(database: sqlite3.Connection) -> Stored:
    """Return the stored spans by (trace ID, span ID), with distinct bytes. Dropped raw spans have none."""
    found: Stored = defaultdict(set)
    for trace_id, known in database.execute("SELECT trace_id, known FROM traces"):
        for item in _ids(known):
            if len(item) == 8:
                found[trace_id, item] = set()
    for span in _spans(database):
        found[span.trace_id, span.span_id].add(span.SerializeToString(deterministic=True))
    return found


def requests_by_trace(database: sqlite3.Connection) -> Iterator[bytes]:
    """Return the stored chunks as OTLP requests, latest first."""
    for packed, data in database.execute("SELECT packed, data FROM chunks WHERE NOT logs ORDER BY id DESC"):
        yield zstandard.ZstdDecompressor().decompress(data) if packed else data


def chunk_ids(data: Path) -> set[int]:
    """Return the chunk IDs of an unopened store."""
    with open_database(data / "pandaeval.db") as database:
        return {id_ for (id_,) in database.execute("SELECT id FROM chunks")}


def exported_problems(database: sqlite3.Connection, results_file: Path) -> list[str]:
    """Compare the results file with the store: once, in order, equal bytes, rising revisions."""
    lines = results_file.read_bytes().splitlines()
    bodies = [row[0] for row in database.execute("SELECT body FROM results ORDER BY seq")]
    ids = [(found["id"], found["revision"]) for found in map(json.loads, lines)]
    if len(set(ids)) != len(ids):
        return [f"{len(ids) - len(set(ids))} results stand in the file more than once"]
    last = {id_: line for (id_, _), line in zip(ids, lines, strict=True)}
    if sorted(last.values()) != sorted(bodies):
        return [f"the file has {len(last)} results, the store {len(bodies)}, and they are not the same"]
    return []


def series_problems(database: sqlite3.Connection) -> list[str]:
    """Check that each result was counted once."""
    (results,) = database.execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()
    (counted,) = database.execute("SELECT sum(count) FROM series WHERE name = 'pandaeval.evaluations'").fetchone()
    return [] if counted == results else [f"{results} results were counted as {counted}"]


def _spans(database: sqlite3.Connection) -> Iterator[Span]:
    for chunk in requests_by_trace(database):
        for block in ExportTraceServiceRequest.FromString(chunk).resource_spans:
            for scope in block.scope_spans:
                yield from scope.spans


def _ids(blob: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(blob):
        yield blob[at + 1 : at + 1 + blob[at]]
        at += 1 + blob[at]
