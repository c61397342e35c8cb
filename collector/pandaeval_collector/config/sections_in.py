"""How spans come in, when a trace is complete, and where it is kept until it is judged."""

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
)
from pandaeval_collector.receivers.bind import Tls, parse_address

# The kinds of value that only our own sections hold: listeners, processes, names of metrics.
MAX_PROCESSES = 64


def _address(text: str) -> str:
    try:
        parse_address(text)
    except ValueError:
        raise ValueError("is not an address; write HOST:PORT, such as 127.0.0.1:4327 or 0.0.0.0:4327") from None
    return text


def _names(value: object) -> object:
    if value == "all":
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("is neither all nor a list of names, such as [trace.coherence, loop_detection]")


Address = Annotated[Text, AfterValidator(_address)]
Names = Annotated[Literal["all"] | tuple[Text, ...], BeforeValidator(_names)]


class Server(Section):
    """Where the collector listens, and who may send."""

    grpc: Address = "127.0.0.1:4327"
    """Address of OTLP over gRPC and of the collector's own gRPC service; port 0 takes any free one."""
    http: Address = "127.0.0.1:4328"
    """Address of OTLP over HTTP and of the API."""
    health: Address = "127.0.0.1:4329"
    """Address of /healthz, /readyz and /metrics; shows no content of traces, so probes may reach it."""
    insecure_bind: bool = False
    """Allow grpc and http on addresses that other machines reach without TLS and a token."""
    tls: Tls | None = None
    """Certificates of grpc and http; null speaks plain text."""
    token_env: EnvName | None = None
    """Name of the environment variable with the bearer token that senders must present."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which API and page, and on loopback addresses OTLP over HTTP and /metrics, may be reached without a
    token, beside localhost and IP addresses: pages of others must not reach them under a name of theirs."""
    max_request_bytes: Size = 16 << 20
    """Largest request that is accepted, in bytes after decompression."""
    max_inflight_bytes: Size = 160 << 20
    """Bytes of requests in work at a time; beyond it senders are asked to come back later."""
    max_open_bytes: Size = 256 << 20
    """Memory that traces may take until they are decided, some 2.5 KB each, with 12 spans; beyond it senders are asked
    to come back later."""


class Close(Section):
    """When a trace is taken to be complete."""

    quiet: Duration = 10.0
    """Time without a new span, after the root ended and no span is missing its parent."""
    idle: Duration = 180.0
    """Time since the last span after which a trace closes anyway."""
    max_age: Duration = 1800.0
    """Time since the first span at which a trace closes for good."""
    max_spans: Count = 10_000
    """Number of spans at which a trace closes for good."""
    max_bytes: Size = 32 << 20
    """Bytes of spans at which a trace closes for good."""


class Late(Section):
    """Spans that arrive after their trace was scored."""

    policy: Literal["rescore", "count"] = "rescore"
    """rescore: score again as a new revision; count: only count the late spans."""
    window: Duration = 600.0
    """How long the spans of a scored trace are kept, so that it can be scored again."""


class LineSection(Section):
    """How due traces are decided: in processes that alone look into what spans hold."""

    workers: Annotated[Count, Field(le=MAX_PROCESSES)] = 1
    """Processes that read and score traces; there is always one, which also files them. Each takes a core and memory of
    its own. More than 3 do not help."""
    timeout: PositiveDuration = 60.0
    """How long such a process may be at a batch of traces. Then it is killed and started again, and the batch is tried
    trace by trace; a trace over which it hangs alone is set aside, and its results say so. A third of it limits the
    scoring of one trace, with two seconds more for each megabyte. A trace that takes longer keeps the results that it
    has; the others name the slow metric."""


class StoreSection(Section):
    """The file that holds everything that was acknowledged."""

    path: FilePath = "./pandaeval-data"
    """Data directory. PANDAEVAL_DATA sets it too, where neither file nor variable does."""
    durability: Literal["full", "normal"] = "full"
    """full: acknowledged spans survive a power cut; normal: faster, a power cut may lose the last ones."""
    max_bytes: Size = 10 << 30
    """Disk space that the store may take, in bytes."""
    retention: Duration = 604800.0
    """How long results and the ids of scored traces are kept; less where max_bytes would not do."""
    keep_content: bool = True
    """Keep the spans of agents' traces, compressed, after late.window, to show them and to score them again: in a fifth
    of max_bytes at most, the oldest go first. false: only results are kept."""
    listed_attributes: Annotated[tuple[Text, ...], Field(max_length=16)] = ("gen_ai.request.model", "service.version")
    """Attributes by which lists, runs and schedules find traces (attribute=KEY=VALUE), of any span of a trace or its
    resource; at most 16. Of traces that came before a key was named here it is not known."""
    on_shutdown: Literal["persist", "decide"] = "persist"
    """Open traces at a stop: persist keeps them for the next start, decide scores them as they are. Use decide where
    the disk goes away."""
