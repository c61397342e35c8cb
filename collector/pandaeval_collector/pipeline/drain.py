"""Sends open traces to another collector at shutdown, for a collector whose disk goes away with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import grpc.aio

from pandaeval_collector.store import Chunk, Store

_log = logging.getLogger(__name__)

_CALL_S, _PATIENCE_S = 5.0, 20.0
_TOGETHER, _TOGETHER_BYTES = 64, 1 << 20
"""Chunks in one request at most, and bytes from which on none is added; they are removed in one commit."""
_FRUITLESS, _PAUSE_S = 3, 1.0
"""Rounds in a row that begin with nothing but refusals, after which it is over, and seconds between two rounds."""
_OF_ALL = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAUTHENTICATED}
"""Refusals that a smaller request would meet as well."""
_PASSING = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
}
_CURES = {
    ("CERTIFICATE_VERIFY_FAILED",): ": set store.drain_certificate to the file of its authority",
    ("WRONG_VERSION_NUMBER", "WRONG VERSION NUMBER"): ": it does not speak TLS there, write http:// in store.drain_to",
    ("SOCKET CLOSED", "CONNECTION RESET", "ENDPOINT CLOSING"): (
        ": if it speaks TLS, write https:// in store.drain_to; client certificates it must not demand"
    ),
}
"""What to do about refusals, by words in them."""
_Refusal = grpc.aio.AioRpcError
_Send = Callable[[bool, bytes], Awaitable[_Refusal | None]]
_METHODS = {
    False: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    True: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}


async def drain(store: Store, endpoint: str, *, token: str | None = None, certificate: str | None = None) -> int:
    """Sends the chunks of undecided traces as OTLP/gRPC to another collector; returns how many it took over. Those are
    removed from this store; the rest stays for a next start. What is refused is tried again, but not for longer than
    20 seconds, nor where nothing is taken any more: a stop must neither hang on a peer that is down nor fail.
    ``token``: the peer's. ``certificate``: file with the authority to trust where the endpoint is ``https://``."""
    try:
        connection = _channel(endpoint, certificate)
    except OSError as error:
        _log.warning(
            "store.drain_certificate %s cannot be read (%s); open traces stay here", certificate, error.strerror
        )
        return 0
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    headers = () if token is None else (("authorization", f"Bearer {token}"),)

    async def send(logs: bool, data: bytes) -> _Refusal | None:
        """Sends one OTLP request, or several in a row, which are one as well: repeated fields add up."""
        try:
            await connection.unary_unary(_METHODS[logs], None, None)(data, timeout=_CALL_S, metadata=headers)
        except _Refusal as error:
            return error
        return None

    async with connection:
        taken, late, refused = await _hand_over_all(store, send, deadline)
    if late:
        _log.warning("handing over to %s takes too long; the rest stays here", endpoint)
    elif refused is not None:
        details = refused.details() or ""
        cure = next((cure for signs, cure in _CURES.items() if any(sign in details.upper() for sign in signs)), "")
        _log.warning("%s does not take over (%s)%s; the rest stays here", endpoint, details, cure)
    _log.info("handed over %d chunks of open traces to %s", taken, endpoint)
    return taken


def _channel(endpoint: str, certificate: str | None) -> grpc.aio.Channel:
    """Opens a channel. Raises ``OSError`` where the certificate cannot be read."""
    options = [("grpc.max_send_message_length", -1)]
    target = endpoint.rpartition("//")[2]
    if endpoint.startswith("https://"):
        authority = Path(certificate).read_bytes() if certificate else None
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(authority), options=options)
    return grpc.aio.insecure_channel(target, options=options)


async def _hand_over_all(store: Store, send: _Send, deadline: float) -> tuple[int, bool, _Refusal | None]:
    """Offers all open chunks, some at a time, round by round as long as another round is worth it. Returns how many the
    peer has, whether no time was left, and its last refusal in the last round."""
    taken, fruitless = 0, 0
    while True:
        refusal: _Refusal | None = None
        # A chunk that was damaged on disk has no data. It stays: the next start names it and sets its trace aside.
        waiting = (each for each in store.reads.open_chunks() if each.data)
        while batch := _some(waiting):
            if asyncio.get_running_loop().time() > deadline:
                return taken, True, refusal
            answers = await _hand_over(send, [each for each in batch if not each.logs])
            answers |= await _hand_over(send, [each for each in batch if each.logs])
            refused = [answer for answer in answers.values() if answer is not None]
            refusal = refused[-1] if refused else refusal
            if len(refused) == len(batch):
                fruitless += 1
                if fruitless >= _FRUITLESS or any(answer.code() not in _PASSING for answer in refused):
                    return taken, False, refusal
                break
            fruitless = 0
            done = [id_ for id_, answer in answers.items() if answer is None]
            await asyncio.wrap_future(store.discard(done))
            taken += len(done)
        if refusal is None:
            return taken, False, None
        await asyncio.sleep(_PAUSE_S)


async def _hand_over(send: _Send, chunks: Sequence[Chunk]) -> dict[int, _Refusal | None]:
    """Sends chunks of one signal. Returns, by chunk id, why the peer has not taken it; ``None`` if it has."""
    if not chunks:
        return {}
    whole = await send(chunks[0].logs, b"".join([each.data for each in chunks]))
    if whole is None or whole.code() in _OF_ALL or len(chunks) == 1:
        return dict.fromkeys([each.id for each in chunks], whole)
    alone = await asyncio.gather(*[send(each.logs, each.data) for each in chunks])
    return dict(zip([each.id for each in chunks], alone, strict=True))


def _some(chunks: Iterator[Chunk]) -> list[Chunk]:
    """Takes the chunks of the next request from ``chunks``; none at the end."""
    found: list[Chunk] = []
    size = 0
    while len(found) < _TOGETHER and size < _TOGETHER_BYTES and (chunk := next(chunks, None)) is not None:
        found.append(chunk)
        size += len(chunk.data)
    return found
