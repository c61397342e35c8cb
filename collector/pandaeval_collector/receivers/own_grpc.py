"""Our gRPC services on the OTLP port: ``pandaeval.v1.TraceService`` for completed traces,
``pandaeval.v1.ResultService`` for results.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import grpc
import orjson

from pandaeval_collector.receivers import Accepted, Draining, Ingest, Overloaded
from pandaeval_collector.receivers._signals import DoorSettings, weigh_submission
from pandaeval_collector.receivers.otlp_grpc import GrpcDoor, parsed, refuse
from pandaeval_otel._proto.result_service_pb2 import WatchResultsRequest, WatchResultsResponse
from pandaeval_otel._proto.trace_service_pb2 import Rejection, SubmitTracesRequest, SubmitTracesResponse

if TYPE_CHECKING:
    _Context = grpc.aio.ServicerContext[bytes, bytes]

MAX_WATCHERS = 256
_PAGE = 100
"""Maximum results held for a watcher that does not read: about 50 MB for all watchers, with 2 KB each."""


def submit_handler(ingest: Ingest, settings: DoorSettings) -> grpc.GenericRpcHandler[Any, Any]:
    """Make the handler of ``SubmitTraces`` for the running event loop."""

    async def store(request: bytes) -> tuple[Accepted, SubmitTracesResponse]:
        async with settings.admission.reserve(len(request)) as reservation:
            large = await weigh_submission(request, reservation, settings)
            traces = parsed(SubmitTracesRequest, request).traces
            reasons = await ingest.submit(traces, large)
            rejected = [
                Rejection(trace_id=trace.trace_id, reason=reason[:300])
                for trace, reason in zip(traces, reasons, strict=True)
                if reason
            ]
            response = SubmitTracesResponse(accepted=len(traces) - len(rejected), rejected=rejected)
            return Accepted(len(rejected)), response

    methods = {"SubmitTraces": GrpcDoor("submit", settings).method(store)}
    return grpc.method_handlers_generic_handler("pandaeval.v1.TraceService", methods)


class ResultSource(Protocol):
    """Reads results for clients, on the event loop."""

    @property
    def closing(self) -> bool: ...

    def changed(self) -> AsyncIterator[None]:
        """Yield at once, then after new results or ``closing``."""
        ...

    async def newest(self) -> int:
        """The newest result's cursor, 0 for none."""
        ...

    async def after(self, cursor: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """Return (cursor, JSON object) of results after a cursor, in order."""
        ...


class ResultsHandler:
    def __init__(self, source: ResultSource, settings: DoorSettings) -> None:
        self._source, self._watchers = source, 0
        self._door = GrpcDoor("results", settings)
        self.handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(
            "pandaeval.v1.ResultService", {"WatchResults": grpc.stream_stream_rpc_method_handler(self._watch)}
        )

    async def _watch(self, _: object, context: _Context) -> AsyncIterator[bytes]:
        self._watchers += 1
        try:
            wanted = parsed(WatchResultsRequest, await self._door.reading.read(context))
            if self._watchers > MAX_WATCHERS:
                raise Overloaded(f"there are {MAX_WATCHERS} watchers already: share one, or end some")
            self._door.outcomes.accepted(Accepted())
            async for found in self._wanted(wanted):
                yield found.SerializeToString()
            raise Draining("the collector is shutting down")
        except Exception as error:  # noqa: BLE001 - every request gets an answer, and the server continues
            refuse(context, self._door.outcomes.refused(error))
        finally:
            self._watchers -= 1

    async def _wanted(self, wanted: WatchResultsRequest) -> AsyncIterator[WatchResultsResponse]:
        cursor = wanted.after if wanted.after >= 0 else await self._source.newest()
        async for _ in self._source.changed():
            while rows := await self._source.after(cursor, _PAGE):
                for cursor, body in rows:
                    if _matches(wanted, body):
                        yield WatchResultsResponse(cursor=cursor, result_json=body.decode())
                if self._source.closing:
                    return
            if self._source.closing:
                return


def _matches(wanted: WatchResultsRequest, body: bytes) -> bool:
    texts = (wanted.session_id, wanted.trace_id, wanted.agent)
    if any(text and orjson.dumps(text) not in body for text in texts):
        return False  # nearly all that does not match ends here, unread
    if not (any(texts) or wanted.metric):
        return True
    result = orjson.loads(body)
    return (
        wanted.session_id in ("", result["session_id"])
        and wanted.trace_id in ("", result["trace_id"])
        and wanted.agent in ("", result["agent"])
        and wanted.metric in ("", result["metric"], f"{result['level']}.{result['metric']}")
    )
