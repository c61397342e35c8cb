"""Members of sessions from other collectors over gRPC: ``pandaeval.v1.SessionService``, on the port of OTLP, under the
same admission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import grpc

from pandaeval_collector.receivers._answers import NotOwner, Outcomes
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers._protocol import Accepted, Malformed, ReceiverTelemetry, TooMany
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.otlp_grpc import Storing, refuse
from pandaeval_otel._proto.session_service_pb2 import TakeMembersResponse
from pandaeval_otel.wire.fields import fields

if TYPE_CHECKING:
    _Context = grpc.aio.ServicerContext[bytes, bytes]

SERVICE = "pandaeval.v1.SessionService"
MOST_MEMBERS = 1024
"""Most members in one request."""
_MEMBER = 0x0A
_COPIES = 4
"""Copies of a request beside its own bytes while its members are read and stored."""


class MemberIngest(Protocol):
    """Takes members from this receiver. Called on the event loop."""

    async def take_members(self, messages: Sequence[bytes]) -> int:
        """Stores encoded members; returns how many could be read, after the commit. Raises a ``Refusal``."""
        ...


class MembersHandler:
    """Takes ``TakeMembers``. ``handler`` goes to the server's ``handlers``; all of it on the running event loop.

    ``is_owner``: whether this collector scores sessions of others; else all are refused. What a member says of its
    trace is not checked.
    """

    def __init__(
        self,
        ingest: MemberIngest,
        admission: Admission,
        telemetry: ReceiverTelemetry,
        reading: BodyReader,
        *,
        is_owner: bool,
    ) -> None:
        self._is_owner = is_owner
        self._ingest, self._admission, self._reading = ingest, admission, reading
        self._outcomes = Outcomes("members", telemetry)
        self._storing = Storing()
        method = grpc.stream_unary_rpc_method_handler(self._take)
        self.handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(
            SERVICE, {"TakeMembers": method}
        )

    async def _take(self, _: object, context: _Context) -> bytes:
        try:
            if not self._is_owner:
                raise NotOwner("this collector takes no sessions of others: sessions.owner: true has it score them")
            taken = await self._storing.whole(self._store(await self._reading.read(context)))
        except Exception as error:  # noqa: BLE001 - whatever one request does, it is answered and the server lives on
            return refuse(context, self._outcomes.refused(error))
        self._outcomes.accepted(Accepted())
        return TakeMembersResponse(taken=taken).SerializeToString()

    async def _store(self, request: bytes) -> int:
        async with self._admission.reserve(len(request)) as reservation:
            reservation.grow(_COPIES * len(request))
            return await self._ingest.take_members(members_of(request))


def members_of(request: bytes) -> list[bytes]:
    """Returns the members of a ``TakeMembersRequest``, encoded. Raises ``Malformed`` and ``TooMany``."""
    found: list[bytes] = []
    try:
        for tag, _, at, end, copies in fields(request):
            if tag != _MEMBER:
                continue
            if len(found) + copies > MOST_MEMBERS:
                raise TooMany(f"more than {MOST_MEMBERS} members in one request")
            found += [request[at:end]] * copies
    except ValueError as error:
        raise Malformed(f"not a protobuf TakeMembersRequest: {error}") from error
    return found
