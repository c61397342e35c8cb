"""Rules over several keys, checked only if each key is valid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pandaeval_collector.base.section import format_duration, format_size
from pandaeval_collector.config._problem import Problem
from pandaeval_collector.config._tree import Config
from pandaeval_collector.receivers.bind import InsecureBind, check_bind, parse_address


def conflicts(config: Config) -> Iterator[Problem]:
    yield from _limits(config)
    yield from _listeners(config)
    otlp, weights = config.exporters.otlp, config.session.weights
    if (otlp.client_certificate is None) != (otlp.client_key is None):
        message = "client_certificate and client_key go together: set both or neither"
        yield Problem("exporters.otlp.client_certificate", message, others=("exporters.otlp.client_key",))
    if len(weights) == 4 and not any(weights.values()):
        yield Problem("session.weights", "all weights are 0; set a weight above 0")
    for keys, message in config.kafka.conflicts(config):
        yield Problem(keys[0], message, others=keys[1:])


def _limits(config: Config) -> Iterator[Problem]:
    close, server = config.close, config.server
    times = (("close.quiet", close.quiet), ("close.idle", close.idle), ("close.max_age", close.max_age))
    for (short, less), (long, more) in pairwise(times):
        if less > more:
            message = f"{short} ({format_duration(less)}) is longer than {long} ({format_duration(more)})"
            yield Problem(short, message, others=(long,))
    if server.max_request_bytes > server.max_inflight_bytes:
        message = (
            f"server.max_request_bytes ({format_size(server.max_request_bytes)}) is more than "
            f"server.max_inflight_bytes ({format_size(server.max_inflight_bytes)}), "
            "so the largest request would never be accepted"
        )
        yield Problem("server.max_request_bytes", message, others=("server.max_inflight_bytes",))


def _listeners(config: Config) -> Iterator[Problem]:
    server = config.server
    taken: dict[int, str] = {}
    for key, text in (("server.grpc", server.grpc), ("server.http", server.http), ("server.health", server.health)):
        address = parse_address(text)
        if address.port in taken:
            message = f"port {address.port} is also the port of {taken[address.port]}; write another port"
            yield Problem(key, message, others=(taken[address.port],))
        elif address.port:
            taken[address.port] = key
        if key == "server.health":
            continue
        try:  # only whether a token is demanded counts, not which
            check_bind(address, server.tls, server.token_env, server.insecure_bind, setting="")
        except InsecureBind as refusal:
            others = ("server.insecure_bind", "server.tls", "server.token_env")
            yield Problem(key, str(refusal).strip(), others=others)
