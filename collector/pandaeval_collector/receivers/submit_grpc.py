"""Completed traces over gRPC: ``pandaeval.v1.TraceService``, on the port of OTLP, under the same admission."""

from __future__ import annotations

from typing import Any

import grpc

from pandaeval_collector.receivers import Accepted, SubmissionIngest, Submitted
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers._signals import DoorSettings, Scales
from pandaeval_collector.receivers.otlp_grpc import GrpcDoor, parsed
from pandaeval_otel._proto.trace_service_pb2 import Rejection, SubmitTracesRequest, SubmitTracesResponse


class SubmitHandler:
    """Takes ``SubmitTraces``. ``handler`` goes to the server's ``handlers``; all of it on the running event loop."""

    def __init__(self, ingest: SubmissionIngest, settings: DoorSettings, reading: BodyReader | None = None) -> None:
        self._ingest, self._admission, self._scales = ingest, settings.admission, Scales(settings.max_items)
        door = GrpcDoor("submit", reading or BodyReader.of_messages(settings.max_bytes), settings.telemetry)
        self.handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(
            "pandaeval.v1.TraceService", {"SubmitTraces": door.method(self._store)}
        )

    async def _store(self, request: bytes) -> tuple[Accepted, SubmitTracesResponse]:
        async with self._admission.reserve(len(request)) as reservation:
            large = await self._scales.weigh_submission(request, reservation)
            traces = parsed(SubmitTracesRequest, request).traces
            submitted = [
                Submitted(t.trace_id, t.spans, t.logs, t.fragment, t.session_id, t.session_end) for t in traces
            ]
            reasons = await self._ingest.submit(submitted, large)
            rejected = [
                Rejection(trace_id=trace.trace_id, reason=reason[:300])
                for trace, reason in zip(traces, reasons, strict=True)
                if reason
            ]
            response = SubmitTracesResponse(accepted=len(traces) - len(rejected), rejected=rejected)
            return Accepted(len(rejected)), response
