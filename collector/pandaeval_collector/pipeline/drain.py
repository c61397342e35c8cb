"""Sends open traces to another collector at shutdown, for a collector whose disk goes away with it."""

from __future__ import annotations

import asyncio
import logging

import grpc.aio

from pandaeval_collector.delivery import peer
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
    seconds: a stop must neither hang on a peer that is down nor fail. ``token``: the peer's. ``certificate``: file with
    the authority to trust where the endpoint is ``https://``."""
    try:
        connection = peer.channel(endpoint, certificate)
    except OSError as error:
        _log.warning(
            "store.drain_certificate %s cannot be read (%s); open traces stay here", certificate, error.strerror
        )
        return 0
    sent = 0
    deadline = asyncio.get_running_loop().time() + patience_s
    headers = peer.headers(token)
    async with connection as channel:
        for chunk in store.open_chunks():
            if asyncio.get_running_loop().time() > deadline:
                _log.warning("handing over to %s takes too long; the rest stays here", endpoint)
                break
            try:
                await _hand_over(channel, chunk, headers)
            except grpc.aio.AioRpcError as error:
                cure = peer.cure(error, "store.drain_to", "store.drain_certificate")
                _log.warning("%s does not take over (%s)%s; the rest stays here", endpoint, error.details(), cure)
                break
            await asyncio.wrap_future(store.discard([chunk.id]))
            sent += 1
    _log.info("handed over %d chunks of open traces to %s", sent, endpoint)
    return sent


async def _hand_over(channel: grpc.aio.Channel, chunk: Chunk, headers: tuple[tuple[str, str], ...]) -> None:
    await channel.unary_unary(_METHODS[chunk.logs], None, None)(chunk.data, timeout=_CALL_S, metadata=headers)
