"""The operation that deletes data by user, session, trace or age."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from datetime import UTC, date, datetime
from functools import partial
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pandaeval_collector.show.api.problems import TRACE_ID, WRITES, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.deleting import complete, preview, sinks

_WAIT_S = 300.0
"""Maximum seconds until the answer. After it, the collector completes the deletion."""
_KINDS = ("user", "session", "trace", "before")
Id = Annotated[str | None, Field(min_length=1, max_length=10_000)]


class Deletion(BaseModel):
    """The data to delete: give exactly one of user, session, trace and before."""

    model_config = ConfigDict(extra="forbid")

    user: Annotated[Id, Field(description="ID of a user.")] = None
    session: Annotated[Id, Field(description="ID of a session.")] = None
    trace: Annotated[str | None, Field(pattern=TRACE_ID, description="ID of a trace, 32 hexadecimal digits.")] = None
    before: Annotated[date | None, Field(description="Delete runs that began before this day (UTC).")] = None
    by: Annotated[str, Field(max_length=200, description="Name of the person, for the log of deletions.")] = ""
    dry_run: Annotated[bool, Field(description="Count the matching data, and delete nothing.")] = False

    @model_validator(mode="after")
    def _one(self) -> Deletion:
        given = [kind for kind in _KINDS if kind in self.model_fields_set]
        if len(given) != 1 or getattr(self, given[0]) is None:
            raise ValueError("give exactly one of user, session, trace and before")
        return self

    @property
    def selector(self) -> tuple[str, str]:
        [kind] = self.model_fields_set.intersection(_KINDS)
        value = getattr(self, kind)
        if isinstance(value, date):
            value = int(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000)
        return kind, str(value).lower() if kind == "trace" else str(value)


class Deleted(BaseModel):
    """The extent of a deletion.

    ``rows``: stored rows by content. ``sinks``: exporters and Kafka topics that may hold copies. ``complete``: whether
    it has finished.
    """

    rows: dict[str, int]
    sinks: list[str]
    complete: bool


def deleting_routes(app: FastAPI, reads: Reads, work: Work) -> None:
    if (store := work.store) is None:
        return

    def counted(kind: str, value: str) -> tuple[dict[str, int], list[str]]:
        with store.reads.snapshot():
            connection = store.reads.connection()
            return dict(preview(connection, kind, value)), sinks(connection)

    @app.post("/delete", response_model=Deleted, responses=WRITES, summary="Delete stored data, or count it")
    async def delete(asked: Deletion) -> Deleted:
        kind, value = asked.selector
        try:
            rows, sent = await reads.run(partial(counted, kind, value))
            if asked.dry_run:
                return Deleted(rows=rows, sinks=sent, complete=False)
            await asyncio.wrap_future(store.deletions.begin(kind, value, asked.by))
            until = time.monotonic() + _WAIT_S
            done = await asyncio.to_thread(complete, store.deletions, store.path, lambda: time.monotonic() > until)
        except (OSError, sqlite3.Error, RuntimeError) as error:  # a full disk; a store that closes
            raise ProblemError(503, "the store failed; a deletion that has begun continues later") from error
        return Deleted(rows=rows, sinks=sent, complete=done)
