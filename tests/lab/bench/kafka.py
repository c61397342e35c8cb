"""Measures the cost per span from Kafka against OTLP/gRPC.

The same traces go to a fresh collector on one core. Kafka messages hold one trace; gRPC requests ten or one. Three
sharing collectors use one core. The table shows medians of CPU time.

    python tests/lab/bench/kafka.py [--rounds 3] [--spans 60000] [--bytes "1 KB"]

Needs the requirements of ``tests/support/kafka.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from _load import Load, send
from _server import LOAD_CORE, Server, _cpu_s, collector, pinned
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE, Stream

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.kafka import Broker

_QUIET_S = 0.2
_LOOK_S = 0.5
"""Polling interval of the collector's metrics."""
_PARTITIONS, _SHARING = 12, 3
_WARM_TRACES = 500
Message = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. ``wall_s``: until the last decision; ``memory``: peak; ``broker_s``, ``logged``: of the broker."""

    spans: int
    wall_s: float
    cpu_s: float
    memory: int
    sent: int
    broker_s: float = 0.0
    logged: int = 0


def by_grpc(folder: Path, spans: int, size: int, traces: int) -> Measured:
    """Run with ``traces`` per request."""
    with collector(folder, _settings(folder)) as server:
        server.wait_ready()
        send(server.address, Load(_WARM_TRACES * SPANS_PER_TRACE, size, traces, first=10**9))
        _wait_decided([server], _WARM_TRACES)
        before = server.cpu_s()
        sent = send(server.address, Load(spans, size, traces, callers=8, connections=4))
        _wait_decided([server], _WARM_TRACES + sent.spans // SPANS_PER_TRACE)
        wall = time.monotonic() - sent.begun
        return Measured(sent.spans, wall, server.cpu_s() - before, server.memory("VmHWM"), sent.bytes)


def by_kafka(
    folder: Path, broker: Broker, workers: int, topic: str, messages: Sequence[Message], warm: Sequence[Message]
) -> Measured:
    """Run on a new topic with several collectors."""
    broker.create(topic, _PARTITIONS)
    settings = {"KAFKA__BROKERS": broker.address, "KAFKA__TOPIC": topic, "KAFKA__GROUP": topic}
    with contextlib.ExitStack() as stack:
        own = [folder / str(number) for number in range(workers)]
        for each in own:
            each.mkdir()
        servers = [stack.enter_context(collector(each, {**_settings(each), **settings})) for each in own]
        _wait_shared(servers)
        _produce(broker, topic, warm)
        _wait_decided(servers, len(warm))
        cpu, brokers, logged = sum(each.cpu_s() for each in servers), _cpu_s(broker.pid), broker.size(topic)
        begun = time.monotonic()
        _produce(broker, topic, messages)
        _wait_decided(servers, len(warm) + len(messages))
        return Measured(
            len(messages) * SPANS_PER_TRACE,
            time.monotonic() - begun,
            sum(each.cpu_s() for each in servers) - cpu,
            max(each.memory("VmHWM") for each in servers),
            sum(len(value) for _, value in messages),
            _cpu_s(broker.pid) - brokers,
            broker.size(topic) - logged,
        )


def report(rounds: int, spans: int, size: str) -> str:
    """Return the table."""
    by_grpc_traces = {"OTLP/gRPC, 120 spans a request": 10, "OTLP/gRPC, a trace a request": 1}
    by_kafka_workers = {"Kafka, a trace a message": 1, f"the same, {_SHARING} collectors": _SHARING}
    found: dict[str, list[Measured]] = {way: [] for way in (*by_grpc_traces, *by_kafka_workers)}
    messages = _messages(spans // SPANS_PER_TRACE, SIZES[size], first=0)
    warm = _messages(_WARM_TRACES, SIZES[size], first=10**9)
    with tempfile.TemporaryDirectory() as kept, pinned(LOAD_CORE), Broker(Path(kept)) as broker:
        for number in range(rounds):
            for way, runs in found.items():
                with tempfile.TemporaryDirectory() as folder, pinned(LOAD_CORE):
                    if traces := by_grpc_traces.get(way):
                        runs.append(by_grpc(Path(folder), spans, SIZES[size], traces))
                    else:
                        workers = by_kafka_workers[way]
                        topic = f"spans-{number}-{workers}"
                        runs.append(by_kafka(Path(folder), broker, workers, topic, messages, warm))
    head = [
        "way in",
        "CPU µs a span",
        "x the first",
        "spans/s of a CPU",
        "spans/s by the clock",
        "MB of memory",
        "bytes a span, sent",
        "bytes a span, in the log",
        "broker's CPU µs a span",
    ]
    first = median(_cost(each) for each in next(iter(found.values())))
    rows = [_row(way, runs, first) for way, runs in found.items()]
    return table(f"Spans of {size}, medians of {rounds} rounds", head, rows)


def _row(way: str, runs: Sequence[Measured], first: float) -> list[object]:
    cost = median(_cost(each) for each in runs)
    logged = median(each.logged / each.spans for each in runs)
    return [
        way,
        cost,
        cost / first,
        1e6 / cost,
        median(each.spans / each.wall_s for each in runs),
        median(each.memory / 1e6 for each in runs),
        median(each.sent / each.spans for each in runs),
        logged or "",
        median(1e6 * each.broker_s / each.spans for each in runs) if logged else "",
    ]


def _cost(run: Measured) -> float:
    return 1e6 * run.cpu_s / run.spans


def _settings(folder: Path) -> dict[str, str]:
    return {"CLOSE__QUIET": f"{_QUIET_S}s", "EXPORTERS__JSONL__PATH": str(folder / "results.jsonl")}


def _messages(traces: int, size: int, first: int) -> list[Message]:
    stream = Stream(1, size, first=first)
    return [(stream.trace_ids[0].encode(), request) for request in itertools.islice(stream, traces)]


def _produce(broker: Broker, topic: str, messages: Sequence[Message]) -> None:
    from confluent_kafka import Producer

    settings = {"acks": "all", "compression.type": "zstd", "partitioner": "murmur2_random", "linger.ms": 20}
    producer = Producer(
        {"bootstrap.servers": broker.address, "queue.buffering.max.messages": len(messages), **settings}
    )
    for key, value in messages:
        producer.produce(topic, value, key)
    assert producer.flush(120) == 0, "the broker did not accept all messages"


def _wait_shared(servers: Sequence[Server]) -> None:
    for each in servers:
        each.wait_ready()
    while any(_held(each) != _PARTITIONS // len(servers) for each in servers):
        time.sleep(_LOOK_S)


def _held(server: Server) -> int:
    counters = server.counters()
    taken, released = (
        sum(n for name, n in counters.items() if name.startswith("pandaeval_log_partitions_total") and outcome in name)
        for outcome in ('"taken"', '"released"')
    )
    return int(taken - released)


def _wait_decided(servers: Sequence[Server], traces: int) -> None:
    while sum(each.decided() for each in servers) < traces:
        time.sleep(_LOOK_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spans", type=int, default=60_000)
    parser.add_argument("--bytes", choices=SIZES, default="1 KB")
    asked = parser.parse_args()
    print(report(asked.rounds, asked.spans, asked.bytes))


if __name__ == "__main__":
    main()
