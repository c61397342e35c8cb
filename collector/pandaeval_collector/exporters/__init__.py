"""The sinks: one file for each wire format, and delivery of results from the outbox.

Imports base, store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store


class RetryLaterError(Exception):
    """The sink cannot take a request now. ``after_s``: for how many seconds it asks to be left alone."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Row(Protocol):
    """Something to be sent: a result as JSON, or an encoded log record or span."""

    @property
    def seq(self) -> int: ...
    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a batch: the first ``rows`` rows are done with, ``dropped`` of them unsent, by reason.
    ``position``: to be stored with the cursor."""

    rows: int
    position: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Exporter(Protocol):
    """Sends rows. ``name`` keys its cursor in the store; ``source``: what it is given to send, ``results`` (JSON),
    ``logs`` or ``traces`` (the outbox). Called on the event loop, one batch at a time."""

    name: str
    source: str

    @property
    def off(self) -> bool:
        """Whether the sink does not take this signal at all: the outbox then skips its rows."""
        ...

    async def open(self, position: str) -> str:
        """Open the exporter, before the first batch. ``position``: that of the last :class:`Sent` that was noted,
        ``""`` at first. Returns the position where it begins, which is noted before anything is sent."""
        ...

    async def export(self, rows: Sequence[Row]) -> Sent:
        """Send as many of ``rows`` as it sees fit, at least one. Raises :class:`RetryLaterError`; any other exception
        means "try this same batch again later" too, and is an error of its own (``pandaeval.component.errors``)."""
        ...

    async def close(self) -> None:
        """Close connections and files. Safe to call twice."""
        ...


@runtime_checkable
class Repeating(Protocol):
    """Sends the whole state every ``interval`` seconds, so nothing of it has to be kept for later."""

    name: str
    interval: float

    @property
    def off(self) -> bool:
        """Whether the sink takes none of this, as of :class:`Exporter`."""
        ...

    async def open(self) -> None: ...

    async def send(self, last: bool = False) -> None:
        """Send the state. ``last``: nothing will follow for a while. Raises as :meth:`Exporter.export` does."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What exporters may need of the collector around them. ``instance_id``: of this collector, the same after a
    restart; ``config``: the whole configuration."""

    store: Store
    telemetry: Telemetry
    environ: Mapping[str, str]
    instance_id: str = ""
    config: Any = None
