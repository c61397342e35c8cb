"""Cross-field validation: values that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pandaeval_collector.base.section import format_duration, format_size
from pandaeval_collector.config._tree import Config
from pandaeval_collector.exporters.otlp import SIGNALS
from pandaeval_collector.receivers.bind import InsecureBind, Tls, check_bind, parse_address

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Keys that contradict each other; the first of ``paths`` that the user has set is the one to blame."""

    paths: tuple[Keys, ...]
    message: str


def conflicts(config: Config) -> Iterator[Conflict]:
    """Yields all conflicts. A conflict is only worth telling if each key in its ``paths`` is valid by itself."""
    yield from _closing_times(config)
    yield from _ports(config)
    yield from _open_doors(config)
    yield from _client_certificate(config)
    yield from _request_sizes(config)
    yield from _weights(config)
    yield from _handing_over(config)
    yield from _log_and_stop(config)
    yield from _own_endpoint(config)
    yield from _http_paths(config)
    yield from _suspicious(config)
    yield from _calibrated(config)


def tls_files(config: Config) -> Tls | None:
    """Returns the certificates of the listeners, as the receivers want them."""
    tls = config.server.tls
    if tls is None:
        return None
    return Tls(Path(tls.cert), Path(tls.key), Path(tls.client_ca) if tls.client_ca else None)


def _closing_times(config: Config) -> Iterator[Conflict]:
    times = [(name, getattr(config.close, name)) for name in ("quiet", "idle", "max_age")]
    for (short, less), (long, more) in pairwise(times):
        if less > more:
            message = f"close.{short} ({format_duration(less)}) is longer than close.{long} ({format_duration(more)})"
            yield Conflict((("close", short), ("close", long)), message)


def _ports(config: Config) -> Iterator[Conflict]:
    taken: dict[int, str] = {}
    for name in ("grpc", "http", "health"):
        port = parse_address(getattr(config.server, name)).port
        if port in taken:
            paths = (("server", name), ("server", taken[port]))
            yield Conflict(paths, f"port {port} is already that of server.{taken[port]}")
        elif port:
            taken[port] = name


def _open_doors(config: Config) -> Iterator[Conflict]:
    server = config.server
    tls = tls_files(config)
    for name in ("grpc", "http"):
        paths = (("server", name), ("server", "insecure_bind"), ("server", "tls"), ("server", "token_env"))
        try:
            # Whether a token is demanded is what counts here, not which.
            check_bind(parse_address(getattr(server, name)), tls, server.token_env, server.insecure_bind, setting="")
        except InsecureBind as refusal:
            yield Conflict(paths, str(refusal).strip())


def _client_certificate(config: Config) -> Iterator[Conflict]:
    otlp = config.exporters.otlp
    if (otlp.client_certificate is None) != (otlp.client_key is None):
        names = ("client_certificate", "client_key")
        paths = tuple(("exporters", "otlp", name) for name in names)
        yield Conflict(paths, "client_certificate and client_key go together: set both or neither")


def _request_sizes(config: Config) -> Iterator[Conflict]:
    largest, together = config.server.max_request_bytes, config.server.max_inflight_bytes
    if largest > together:
        message = (
            f"server.max_request_bytes ({format_size(largest)}) is more than "
            f"server.max_inflight_bytes ({format_size(together)}), so the largest request would never be accepted"
        )
        yield Conflict((("server", "max_request_bytes"), ("server", "max_inflight_bytes")), message)


def _weights(config: Config) -> Iterator[Conflict]:
    weights = config.session.weights
    if len(weights) == 4 and not any(weights.values()):
        yield Conflict((("session", "weights"),), "all weights are 0; at least one signal must count")


def _handing_over(config: Config) -> Iterator[Conflict]:
    if config.store.on_shutdown == "forward" and config.store.drain_to is None:
        paths = (("store", "on_shutdown"), ("store", "drain_to"))
        yield Conflict(paths, "forward needs store.drain_to, the endpoint that takes the open traces")


def _log_and_stop(config: Config) -> Iterator[Conflict]:
    if config.kafka.brokers is not None and config.store.on_shutdown != "persist":
        message = (
            "open traces of a Kafka topic are read again by whoever takes over: store.on_shutdown has to be persist"
        )
        yield Conflict((("store", "on_shutdown"), ("kafka", "brokers")), message)


def _suspicious(config: Config) -> Iterator[Conflict]:
    judge = config.judge
    if judge.when == "suspicious" and judge.sample == 1.0 and not judge.samples:
        message = "suspicious changes nothing while judge.sample is 1; set the share of the others, such as 0.05"
        yield Conflict((("judge", "when"), ("judge", "sample")), message)


def _calibrated(config: Config) -> Iterator[Conflict]:
    if config.judge.calibrated_thresholds and config.judge.calibration is None:
        message = "there is no judge.calibration to take thresholds from; make one with `pandaeval calibrate --write`"
        yield Conflict((("judge", "calibrated_thresholds"), ("judge", "calibration")), message)


def _own_endpoint(config: Config) -> Iterator[Conflict]:
    own = {_plain(config.server.grpc): "grpc", _plain(config.server.http): "http"}
    otlp = config.exporters.otlp
    endpoints: dict[Keys, str | None] = {
        ("exporters", "otlp", "endpoint"): otlp.endpoint,
        ("exporters", "otlp", "traces", "endpoint"): otlp.traces.endpoint,
        ("exporters", "otlp", "metrics", "endpoint"): otlp.metrics.endpoint,
        ("exporters", "otlp", "logs", "endpoint"): otlp.logs.endpoint,
        ("store", "drain_to"): config.store.drain_to,
    }
    for path, endpoint in endpoints.items():
        listener = own.get(_plain(endpoint)) if endpoint else None
        if listener:
            message = f"the endpoint is this collector's own address (server.{listener})"
            yield Conflict((path, ("server", listener)), message)


def _http_paths(config: Config) -> Iterator[Conflict]:
    """Yields a conflict for a gRPC endpoint with a path of OTLP/HTTP, whose port is most likely wrong, too."""
    otlp = config.exporters.otlp
    if otlp.protocol != "grpc":
        return
    given = {"endpoint": otlp.endpoint} | {f"{name}.endpoint": getattr(otlp, name).endpoint for name in SIGNALS}
    for name, endpoint in given.items():
        if endpoint and endpoint.rstrip("/").endswith(tuple(f"/v1/{signal}" for signal in SIGNALS)):
            message = (
                "a gRPC endpoint has no path: write http://HOST:4317, or set exporters.otlp.protocol: http/protobuf"
            )
            yield Conflict((("exporters", "otlp", *name.split(".")), ("exporters", "otlp", "protocol")), message)


def _plain(endpoint: str) -> str:
    return endpoint.rpartition("//")[2].rstrip("/").replace("localhost:", "127.0.0.1:")
