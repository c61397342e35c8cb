"""How a request gets to the sink: one protocol, two ways."""

from __future__ import annotations

from typing import Protocol

from pandaeval_collector.exporters._otlp.envelope import VERSION

TIMEOUT_S = 10.0
"""How long a sink may take to answer."""
USER_AGENT = f"pandaeval-collector/{VERSION}"


class Transport(Protocol):
    """One connection to one sink for one signal, on one event loop."""

    async def open(self) -> None:
        """Prepares the client; it connects at the first request."""
        ...

    async def send(self, request: bytes) -> bytes:
        """Sends an encoded request, returns the encoded response. Raises ``RetryLaterError`` or a ``RefusedError``."""
        ...

    async def close(self) -> None:
        """Safe to call twice."""
        ...
