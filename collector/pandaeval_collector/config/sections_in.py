"""Configuration of receivers, trace completion and storage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pandaeval_collector.base.section import (
    Count,
    Duration,
    EnvName,
    FilePath,
    PositiveDuration,
    Section,
    Size,
    Text,
    format_size,
)
from pandaeval_collector.receivers.bind import Tls, parse_address

# The kinds of value that only our own sections hold: listeners, processes, names of metrics.
MAX_PROCESSES = 64
LEAST_STORE = 2 << 20
"""Smallest store.max_bytes: an empty store takes half, and a start and requests need the rest."""


def _address(value: object) -> str:
    try:
        parse_address(str(value))
    except ValueError:
        raise ValueError("is not an address; write HOST:PORT, such as 127.0.0.1:4327 or 0.0.0.0:4327") from None
    return str(value)


def _sufficient(size: int) -> int:
    if size < LEAST_STORE:
        raise ValueError(f"is too small for a store; write {format_size(LEAST_STORE)} or more")
    return size


def _names(value: object) -> object:
    if value == "all":
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("is neither all nor a list of names, such as [trace.coherence, loop_detection]")


Address = Annotated[Text, BeforeValidator(_address)]
Names = Annotated[Literal["all"] | tuple[Text, ...], BeforeValidator(_names)]


class Server(Section):
    """Addresses of the collector, and access to them."""

    grpc: Address = "127.0.0.1:4327"
    """Address that receives OTLP over gRPC, and calls of the collector's own gRPC service. Port 0 means any free
    port."""
    http: Address = "127.0.0.1:4328"
    """Address that receives OTLP over HTTP, and that serves the API, the page and MCP."""
    health: Address = "127.0.0.1:4329"
    """Address that serves /healthz, /readyz and /metrics. It exposes no message content and needs no token."""
    insecure_bind: bool = False
    """Let grpc and http use addresses that other machines can reach, even without TLS or access control."""
    tls: Tls | None = None
    """Certificates of grpc and http. If null, TLS is off."""
    token_env: EnvName | None = None
    """Name of the environment variable with the bearer token that clients must send. If null, clients need no token."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names under which clients may reach http, in addition to localhost and IP addresses. If token_env is null,
    the page and the API refuse other names, which protects them from web pages of other sites."""
    max_request_bytes: Size = 16 << 20
    """Size of the largest accepted request, in bytes after decompression."""
    max_inflight_bytes: Size = 160 << 20
    """Maximum memory for requests in progress. A JSON request needs about 15 times its size. Above this limit, the
    collector asks senders to retry later. If a single request needs more, the collector rejects it."""
    max_open_bytes: Size = 256 << 20
    """Maximum memory for traces without scores. Above this limit, the collector asks senders to retry later. A trace of
    12 spans takes about 2.5 KB."""


class Close(Section):
    """Rules that decide when a trace is complete."""

    quiet: Duration = 10.0
    """Time since the last span. After this time, a trace is complete if its root span has ended and no parent span is
    missing. If only a parent span in another process is missing, the time is three times as long."""
    idle: Duration = 180.0
    """Time since the last span. After this time, every trace is complete."""
    max_age: Duration = 1800.0
    """Time since the first span. After this time, every trace is complete. Spans that arrive later are late spans (see
    late.policy)."""
    max_spans: Count = 10_000
    """Maximum number of spans in a trace. A trace that reaches this number is complete and accepts no more spans."""
    max_bytes: Size = 32 << 20
    """Maximum total size of the spans and log records in a trace. A trace that reaches this size is complete and
    accepts no more spans."""


class Late(Section):
    """Spans that arrive after their trace was scored."""

    policy: Literal["rescore", "count"] = "rescore"
    """With rescore, the collector scores the trace again, as a new revision, at most five times. With count, it only
    counts the late spans."""
    window: Duration = 600.0
    """Time for which the collector keeps the spans of a scored trace, to score the trace again after late spans."""


class LineSection(Section):
    """Processes that score complete traces."""

    workers: Annotated[Count, Field(le=MAX_PROCESSES)] = 1
    """Number of processes that score traces. Each process needs a CPU core. More than 3 processes do not help."""
    timeout: PositiveDuration = 60.0
    """Maximum CPU time for a batch of traces, plus two seconds for each megabyte. While the process waits, elapsed time
    counts instead. If a process takes longer, the collector restarts the process and scores each trace separately. A
    single trace may take a third of this time, plus two seconds for each megabyte."""


class StoreSection(Section):
    """The file with spans, results and sessions."""

    path: FilePath = "./pandaeval-data"
    """Data directory. If this key is not set, the variable PANDAEVAL_DATA applies."""
    durability: Literal["full", "normal"] = "full"
    """With full, acknowledged spans survive a power cut. normal is faster, but a power cut can lose the last spans."""
    max_bytes: Annotated[Size, AfterValidator(_sufficient)] = 10 << 30
    """Maximum size of the data in the store, at least 2MiB. A full store accepts no spans, and the collector asks
    senders to retry later."""
    retention: Duration = 604800.0
    """Time for which the store keeps results and spans. From 70 % of max_bytes on, this time is shorter."""
    keep_content: bool = True
    """Keep compressed spans of agents' traces after late.window, so that you can view traces and score them again.
    These spans use at most a fifth of max_bytes. If false, the store then keeps only results."""
    listed_attributes: Annotated[tuple[Text, ...], Field(max_length=16)] = ("gen_ai.request.model", "service.version")
    """Attributes of spans or resources that you can use as filters (attribute=KEY=VALUE), at most 16. A
    change applies only to traces that arrive later."""
    on_shutdown: Literal["persist", "decide"] = "persist"
    """Treatment of incomplete traces and open sessions when the collector stops. persist keeps them for the next start.
    decide scores them at once, without the judge: use it if the disk is deleted with the collector."""
