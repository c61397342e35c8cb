"""Handing over what is still open, for a collector whose disk goes away with it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import grpc.aio

from pandaeval_collector.store import Chunk, Store

_log = logging.getLogger(__name__)

_CALL_S = 5.0
_METHODS = {
    False: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    True: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}


async def drain(
    store: Store, endpoint: str, patience_s: float = 20.0, *, token: str | None = None, certificate: str | None = None
) -> int:
    """Sends the chunks of undecided traces as OTLP/gRPC to another collector; returns how many it took over. Those are
    removed from this store; the rest stays for a next start. Stops at the first failure and after ``patience_s``
    seconds: a stop must not hang on a peer that is down. ``token``: the peer's. ``certificate``: file with the
    authority to trust where the endpoint is ``https://``."""
    sent = 0
    deadline = asyncio.get_running_loop().time() + patience_s
    headers = () if token is None else (("authorization", f"Bearer {token}"),)
    async with _channel(endpoint, certificate) as channel:
        for chunk in store.open_chunks():
            if asyncio.get_running_loop().time() > deadline:
                _log.warning("handing over to %s takes too long; the rest stays here", endpoint)
                break
            try:
                await _hand_over(channel, chunk, headers)
            except grpc.aio.AioRpcError as error:
                _log.warning("%s does not take over (%s); the rest stays here", endpoint, error.details())
                break
            await asyncio.wrap_future(store.discard([chunk.id]))
            sent += 1
    _log.info("handed over %d chunks of open traces to %s", sent, endpoint)
    return sent


async def _hand_over(channel: grpc.aio.Channel, chunk: Chunk, headers: tuple[tuple[str, str], ...]) -> None:
    await channel.unary_unary(_METHODS[chunk.logs], None, None)(chunk.data, timeout=_CALL_S, metadata=headers)


def _channel(endpoint: str, certificate: str | None) -> grpc.aio.Channel:
    options = [("grpc.max_send_message_length", -1)]
    target = endpoint.rpartition("//")[2]
    if endpoint.startswith("https://"):
        authority = Path(certificate).read_bytes() if certificate else None
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(authority), options=options)
    return grpc.aio.insecure_channel(target, options=options)
