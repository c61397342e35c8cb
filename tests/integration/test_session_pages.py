"""A session's results come in pages: no response grows with the session."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
import pytest

from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.own_grpc import ResultsHandler, SessionState
from pandaeval_otel._proto.result_service_pb2 import GetSessionRequest, GetSessionResponse
from support.doors import RecordingIngest, grpc_door


class Sessions:
    """A :class:`ResultSource` that knows one session, ``s``, with these results."""

    def __init__(self, results: Sequence[bytes]) -> None:
        self._results = results

    async def session(self, session_id: str) -> SessionState | None:
        return SessionState(True, 7, self._results) if session_id == "s" else None


async def pages(results: Sequence[bytes], size: int = 0) -> list[list[str]]:
    """All pages of the session, read with a client that takes what gRPC clients take."""
    handler = ResultsHandler(Sessions(results), DoorSettings(Admission(1))).handler  # type: ignore[arg-type]
    async with (
        grpc_door(RecordingIngest(), handlers=[handler]) as where,
        grpc.aio.insecure_channel(str(where)) as channel,
    ):
        get = channel.unary_unary(
            "/pandaeval.v1.ResultService/GetSession",
            GetSessionRequest.SerializeToString,
            GetSessionResponse.FromString,
        )
        found, token = [], ""
        while True:
            page = await get(GetSessionRequest(session_id="s", page_size=size, page_token=token))
            assert (page.found, page.closed, page.traces) == (True, True, 7)
            found.append(list(page.result_json))
            token = page.next_page_token
            if not token:
                assert not (await get(GetSessionRequest(session_id="other"))).found
                return found


@pytest.mark.parametrize(("size", "lengths"), [(0, [100, 100, 50]), (80, [80, 80, 80, 10]), (1_000, [100, 100, 50])])
async def test_every_result_once(size: int, lengths: list[int]) -> None:
    results = [f'{{"n": {number}}}' for number in range(250)]
    found = await pages([result.encode() for result in results], size)
    assert [len(page) for page in found] == lengths
    assert [result for page in found for result in page] == results


async def test_a_page_is_no_larger_than_clients_take() -> None:
    found = await pages([b'"%s"' % (b"x" * 1_000_000)] * 7)
    assert [len(page) for page in found] == [3, 3, 1]


async def test_a_small_session_is_one_page() -> None:
    assert await pages([b"{}", b"{}"]) == [["{}", "{}"]]
    assert await pages([]) == [[]]


@pytest.mark.parametrize("token", ["x", "-1", "1" * 20, "²"])
async def test_a_token_of_somebody_else(token: str) -> None:
    handler = ResultsHandler(Sessions([]), DoorSettings(Admission(1))).handler  # type: ignore[arg-type]
    async with (
        grpc_door(RecordingIngest(), handlers=[handler]) as where,
        grpc.aio.insecure_channel(str(where)) as channel,
    ):
        get = channel.unary_unary("/pandaeval.v1.ResultService/GetSession", GetSessionRequest.SerializeToString)
        call = get(GetSessionRequest(session_id="s", page_token=token))
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
