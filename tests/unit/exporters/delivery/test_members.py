"""Members of sessions on their way to the owner: over real gRPC, through its door."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest

from pandaeval_collector.exporters import RetryLaterError
from pandaeval_collector.exporters.delivery.members import ToOwner
from pandaeval_collector.receivers import Draining, Malformed, TooMany
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.members_grpc import MOST_MEMBERS, SERVICE, MembersHandler, members_of
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.store import OutboxRow
from pandaeval_otel._proto.session_service_pb2 import Member, TakeMembersRequest
from support.doors import LOOPBACK, CountingTelemetry, RecordingIngest

LARGEST = 64 << 10


class Owner:
    """Keeps what it is told. ``answer``: raised instead."""

    def __init__(self) -> None:
        self.told: list[list[bytes]] = []
        self.answer: Exception | None = None

    async def take_members(self, messages: Sequence[bytes]) -> int:
        if self.answer is not None:
            raise self.answer
        self.told.append(list(messages))
        return len(messages)


@contextlib.asynccontextmanager
async def listening(
    owner: Owner, token: str | None = None, general: str | None = None, is_owner: bool = True
) -> AsyncIterator[str]:
    """``token``: of sessions, ``general``: of everything else."""
    telemetry, reading = CountingTelemetry(), BodyReader.of_messages(LARGEST)
    admission = Admission(8 << 20)
    handler = MembersHandler(owner, admission, telemetry, reading, is_owner=is_owner).handler
    server = OtlpGrpcServer(
        RecordingIngest(),
        admission,
        LOOPBACK,
        max_request_bytes=LARGEST,
        token=general,
        tokens={} if token is None else {SERVICE: token},
        handlers=[handler],
    )
    address = await server.start()
    try:
        yield str(address)
    finally:
        await server.stop(1)


def rows(*sizes: int) -> list[OutboxRow]:
    return [
        OutboxRow("members", Member(trace_id=bytes(16), session_id=str(number), facts=bytes(size)).SerializeToString())
        for number, size in enumerate(sizes)
    ]


async def test_a_batch_arrives_in_order_with_what_goes_along() -> None:
    owner, some = Owner(), rows(10, 20, 30)
    async with listening(owner) as address:
        exporter = ToOwner(address, lambda member: member + b"\x82\x01\x02ok")
        assert (await exporter.export(some)).rows == 3
        assert owner.told == [[row.body + b"\x82\x01\x02ok" for row in some]]
        await exporter.close()


async def test_what_the_owner_does_not_take_is_offered_again() -> None:
    owner, some = Owner(), rows(10)
    async with listening(owner, "secret") as address:
        stranger = ToOwner(address, bytes)
        with pytest.raises(RetryLaterError, match="UNAUTHENTICATED"):
            await stranger.export(some)
        exporter = ToOwner(address, bytes, token="secret")
        owner.answer = Draining("sessions.forward_to has to name their owner")
        with pytest.raises(RetryLaterError, match="has to name their owner"):
            await exporter.export(some)
        owner.answer = None
        assert (await exporter.export(some)).rows == 1
        await exporter.close()
    with pytest.raises(RetryLaterError, match="UNAVAILABLE"):
        await exporter.export(some)
    await exporter.close()


@pytest.mark.parametrize("general", [None, "everybody's"])
async def test_the_token_of_senders_opens_no_sessions(general: str | None) -> None:
    owner, some = Owner(), rows(10)
    async with listening(owner, "sessions'", general) as address:
        for token in (None, "everybody's"):
            exporter = ToOwner(address, bytes, token=token)
            with pytest.raises(RetryLaterError, match=r"UNAUTHENTICATED.*sessions\.token_env has to name"):
                await exporter.export(some)
        assert not owner.told
        exporter = ToOwner(address, bytes, token="sessions'")
        assert (await exporter.export(some)).rows == 1
        await exporter.close()
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            metadata = (("authorization", "Bearer sessions'"),)
            code = await call(b"", metadata=metadata).code()
        assert code is (grpc.StatusCode.OK if general is None else grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize("general", [None, "everybody's"])
async def test_a_collector_that_owns_no_sessions_takes_none(general: str | None) -> None:
    owner = Owner()
    async with listening(owner, general=general, is_owner=False) as address:
        exporter = ToOwner(address, bytes, token=general)
        with pytest.raises(RetryLaterError, match=r"PERMISSION_DENIED.*sessions\.owner: true"):
            await exporter.export(rows(10))
        await exporter.close()
    assert not owner.told


async def test_a_request_that_is_too_large_goes_without_what_goes_along() -> None:
    owner, some = Owner(), rows(10, 20)
    async with listening(owner) as address:
        exporter = ToOwner(address, lambda member: member + Member(answer=bytes(LARGEST)).SerializeToString())
        assert (await exporter.export(some)).rows == 1
        assert owner.told == [[some[0].body]]
        with pytest.raises(RetryLaterError, match="larger than"):
            await exporter.export(rows(LARGEST))
        await exporter.close()


def test_members_are_taken_out_of_a_request_unread() -> None:
    members = [Member(session_id="a", session_end=True), Member(trace_id=bytes(16))]
    request = TakeMembersRequest(members=members).SerializeToString()
    assert [Member.FromString(each) for each in members_of(request)] == members
    with pytest.raises(Malformed):
        members_of(request[:-1])
    with pytest.raises(TooMany):
        members_of(b"\x0a\x00" * (MOST_MEMBERS + 1))
