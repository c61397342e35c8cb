"""A process that sends OTLP/gRPC requests of whole traces, and reports acknowledgements.

Runs closed-loop or at a rate. Refused requests are sent again after a second. Prints one JSON object, see
:class:`Sent`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc
import uvloop
from _server import LOAD_CORE, pinned
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from synthetic import SPANS_PER_TRACE, Stream

_RETRIED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_OPTIONS = (("grpc.max_send_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1))


@dataclass(frozen=True, slots=True)
class Load:
    """The load: ``spans`` in requests of ``traces`` traces.

    ``rate``: spans per second, 0: maximum. ``seconds``: time limit, 0: none. ``acks``: file of answer times.
    """

    spans: int
    span_bytes: int
    traces: int = 10
    callers: int = 8
    connections: int = 1
    rate: float = 0.0
    seconds: float = 0.0
    first: int = 0
    acks: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome: acknowledged ``spans``, ``rejected`` spans, ``refused`` requests.

    Times in seconds, latencies in milliseconds. ``begun``: monotonic. ``cpu_s`` near ``wall_s``: the sender is the
    limit.
    """

    spans: int
    rejected: int
    refused: int
    bytes: int
    begun: float
    wall_s: float
    cpu_s: float
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        return self.spans / self.wall_s


def send(address: str, load: Load, core: int | None = LOAD_CORE) -> Sent:
    """Run a load process to its end."""
    with pinned(core):
        done = subprocess.run(
            [sys.executable, __file__, address, json.dumps(asdict(load))], stdout=subprocess.PIPE, check=True
        )
    return Sent(**json.loads(done.stdout))


class _Sender:
    def __init__(self, channels: Sequence[grpc.aio.Channel], load: Load) -> None:
        self._load = load
        self._calls = [channel.unary_unary(_METHOD, None, None) for channel in channels]
        self._stream = Stream(load.traces, load.span_bytes, first=load.first)
        self._left = max(1, load.spans // SPANS_PER_TRACE // load.traces)
        self._ends = time.monotonic() + load.seconds if load.seconds else math.inf
        self.rejected = self.refused = self.bytes = 0
        self.took: list[float] = []
        self.acked: dict[str, float] = {}

    async def run(self) -> None:
        if self._load.rate:
            await self._at_rate()
        else:
            await asyncio.gather(*(self._caller(number) for number in range(self._load.callers)))

    async def _caller(self, number: int) -> None:
        call = self._calls[number % len(self._calls)]
        while self._left > 0 and time.monotonic() < self._ends:
            self._left -= 1
            await self._one(call, next(self._stream), self._stream.trace_ids)

    async def _at_rate(self) -> None:
        apart = self._load.traces * SPANS_PER_TRACE / self._load.rate
        at = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(self._left):
                await asyncio.sleep(max(0.0, at - time.monotonic()))
                call = self._calls[number % len(self._calls)]
                group.create_task(self._one(call, next(self._stream), self._stream.trace_ids))
                at += apart

    async def _one(self, call: Any, request: bytes, trace_ids: list[str]) -> None:
        while (begun := time.monotonic()) < self._ends:
            try:
                answer = ExportTraceServiceResponse.FromString(await call(request))
            except grpc.aio.AioRpcError as error:
                if error.code() not in _RETRIED:
                    raise
                self.refused += 1
                await asyncio.sleep(1.0)
                continue
            now = time.monotonic()
            self.took.append(now - begun)
            self.rejected += answer.partial_success.rejected_spans
            self.bytes += len(request)
            if self._load.acks:
                self.acked.update(dict.fromkeys(trace_ids, now))
            return


async def _main(address: str, load: Load) -> tuple[Sent, dict[str, float]]:
    channels = [grpc.aio.insecure_channel(address, options=_OPTIONS) for _ in range(load.connections)]
    for channel in channels:
        await channel.channel_ready()
    sender = _Sender(channels, load)
    begun, cpu = time.monotonic(), time.process_time()
    await sender.run()
    wall, cpu = time.monotonic() - begun, time.process_time() - cpu
    for channel in channels:
        await channel.close(None)
    took = sorted(sender.took)
    sent = Sent(
        spans=len(took) * load.traces * SPANS_PER_TRACE,
        rejected=sender.rejected,
        refused=sender.refused,
        bytes=sender.bytes,
        begun=begun,
        wall_s=wall,
        cpu_s=cpu,
        p50_ms=took[len(took) // 2] * 1e3 if took else 0.0,
        p99_ms=took[int(len(took) * 0.99)] * 1e3 if took else 0.0,
    )
    return sent, sender.acked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("load", help="the fields of Load as JSON")
    asked = parser.parse_args()
    load = Load(**json.loads(asked.load))
    sent, acked = uvloop.run(_main(asked.address, load))
    if load.acks:
        Path(load.acks).write_text(json.dumps(acked))
    print(json.dumps(asdict(sent)))


if __name__ == "__main__":
    main()
