"""What an exporter is. The outbox calls it with results in order of their commitment, and keeps its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pandaeval_collector.store import ResultRow


class PermanentError(Exception):
    """The sink will never take this batch: it is passed over and counted with the reason."""


class Exporter(Protocol):
    """``name`` keys the cursor in the store. Called on the event loop, one batch at a time."""

    name: str

    async def open(self, position: str) -> None:
        """Before the first batch; ``position`` is what the last committed :meth:`export` returned, ``""`` at first."""
        ...

    async def export(self, rows: Sequence[ResultRow]) -> str:
        """Delivers a batch and returns a position to be stored with the cursor. Raises :class:`PermanentError`; any
        other exception means "try this same batch again later"."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds. Safe to call twice."""
        ...
