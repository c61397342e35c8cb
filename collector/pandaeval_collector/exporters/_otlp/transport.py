"""What is sent to a sink, and how: requests of encoded items, by one protocol with two ways."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_otel.wire.skeleton import Request
from pandaeval_otel.wire.splitting import OWN_SCOPE

VERSION = installed_version() or "0"
SERVICE_NAME = "pandaeval"
TIMEOUT_S = 10.0
"""How long a sink may take to answer."""
USER_AGENT = f"pandaeval-collector/{VERSION}"


class Envelope:
    """Makes OTLP requests of items that are encoded already (log records, spans, metrics): their bytes stay as they
    are, so what is sent again is byte for byte what was sent before."""

    def __init__(self, instance_id: str) -> None:
        facts = {
            "service.name": SERVICE_NAME,
            "service.instance.id": instance_id,
            "service.version": VERSION,
        }
        pairs = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in facts.items() if value]
        self._resource = Resource(attributes=pairs).SerializeToString()
        self._scope = InstrumentationScope(name=OWN_SCOPE, version=VERSION).SerializeToString()

    def request(self, items: Iterable[bytes]) -> bytes:
        """Encodes one export request; its form is the same for all three signals."""
        request = Request()
        request.resourced.add(resource=self._resource).scoped.add(scope=self._scope, items=list(items))
        return bytes(request.SerializeToString())


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
