"""A collector and the owner of its sessions in one process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from pandaeval_collector.config import load
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.kafka.members import with_contents
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.runs.settings import scoring
from support.line import RunningPipeline, Standing
from support.made_traces import MadeTrace

QUIET = 11.0
UNSHARED = scoring(load(None, {"PANDAEVAL_KAFKA__BROKERS": "somewhere:9092", "PANDAEVAL_KAFKA__TOPIC": "spans"}))
"""Collectors that share traces without their sessions."""


class Two:
    """A forwarder and an owner. ``handed``: packed members."""

    def __init__(self, forwarder: RunningPipeline, owner: RunningPipeline) -> None:
        self.forwarder, self.owner = forwarder, owner
        self.handed: list[bytes] = []
        self._seq = 0

    async def decide(self, *traces: MadeTrace) -> None:
        for each in traces:
            await self.forwarder.send(each)
        await self.forwarder.wait(QUIET)
        await self.tell()

    async def tell(self) -> None:
        rows = self.forwarder.store.outbox.after(MEMBERS, self._seq)
        self._seq = rows[-1].seq if rows else self._seq
        new = [with_contents(row.body, self.forwarder.store.reads.contents, 4 << 20) for row in rows]
        self.handed += new
        await self.owner.adopt(new)

    def standing(self) -> Standing:
        there, here = self.forwarder.standing(), self.owner.standing()
        assert not there.keys() & here.keys()
        return there | here

    def sessions(self, *traces: MadeTrace) -> list[str | None]:
        found = self.owner.store.reads.session_of([each.trace_id for each in traces])
        return [found.get(each.trace_id) for each in traces]


@contextlib.asynccontextmanager
async def two(folder: Path, timing: Timing | None = None) -> AsyncIterator[Two]:
    async with (
        RunningPipeline(folder / "forwarder", timing, hands_over=True) as forwarder,
        RunningPipeline(folder / "owner", timing) as owner,
    ):
        yield Two(forwarder, owner)
