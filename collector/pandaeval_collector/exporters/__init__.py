"""Sinks, a file per wire format, and delivery from the outbox.

Imports base, store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store


class RetryLaterError(Exception):
    """The sink is temporarily unavailable. ``after_s``: seconds to wait."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Row(Protocol):
    """An item to send: a result as JSON, or an encoded log record or span."""

    @property
    def seq(self) -> int: ...
    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a batch.

    The first ``rows`` rows are finished, ``dropped`` of them unsent, by reason. ``position``: stored with the cursor.
    """

    rows: int
    position: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Exporter(Protocol):
    """Sends rows.

    ``name``: key of the cursor in the store. ``source``: ``results`` (JSON), ``logs`` or ``traces`` (outbox). Called on
    the event loop, one batch at a time.
    """

    name: str
    source: str

    @property
    def off(self) -> bool:
        """Whether the sink rejects this signal; the outbox then skips its rows."""
        ...

    async def open(self, position: str) -> str:
        """Open before the first batch.

        ``position``: from the last :class:`Sent`, or ``""``. Returns the start position, which is stored before
        sending.
        """
        ...

    async def export(self, rows: Sequence[Row]) -> Sent:
        """Send at least one of ``rows``.

        Raises :class:`RetryLaterError`. Other exceptions also retry the batch, and count as component errors
        (``pandaeval.component.errors``).
        """
        ...

    async def close(self) -> None:
        """Close connections and files. Safe to call twice."""
        ...


@runtime_checkable
class Repeating(Protocol):
    """Sends the whole state every ``interval`` seconds."""

    name: str
    interval: float

    @property
    def off(self) -> bool:
        """Whether the sink rejects this signal, as in :class:`Exporter`."""
        ...

    async def open(self) -> None: ...

    async def send(self, last: bool = False) -> None:
        """Send the state. ``last``: no other call follows soon. Raises as :meth:`Exporter.export`."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The collector around an exporter.

    ``instance_id``: stable across restarts. ``config``: the whole configuration.
    """

    store: Store
    telemetry: Telemetry
    environ: Mapping[str, str]
    instance_id: str = ""
    config: Any = None
