"""From files and environment to a valid :class:`Config`, or to every reason why not, rules over several keys among
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pandaeval_collector.base.section import format_duration, format_size
from pandaeval_collector.base.untrusted.yaml_text import dotted
from pandaeval_collector.config._messages import closest, to_problem
from pandaeval_collector.config._problem import ConfigError, KeyPath, Problem, WrittenAt
from pandaeval_collector.config._sources import Draft, read_environ, read_file, read_overrides, without
from pandaeval_collector.config._tree import Config, keys
from pandaeval_collector.exporters.otlp import SIGNALS
from pandaeval_collector.receivers.bind import BindError, InsecureBind, check_bind, parse_address

Registry = Iterable[tuple[str, str]]
Scales = Mapping[str, tuple[float, float]]
"""The worst and the best end of the scale of a metric's thresholds, by key."""
T = TypeVar("T")


class MetricNames:
    """All metrics by key (``trace.coherence``) and by bare name (``coherence``)."""

    def __init__(self, registry: Registry) -> None:
        self.keys = frozenset(f"{level}.{name}" for level, name in registry)
        self._by_name: dict[str, tuple[str, ...]] = {}
        for key in sorted(self.keys):
            name = key.partition(".")[2]
            self._by_name[name] = (*self._by_name.get(name, ()), key)

    def select(self, name: str) -> tuple[str, ...]:
        """Returns the keys that ``name`` means: itself as ``level.name``, one for each level for a bare name."""
        return (name,) if name in self.keys else self._by_name.get(name, ())

    def select_threshold(self, name: str, value: float) -> tuple[str, ...]:
        """Selects for a threshold: one value cannot serve two scales, so that a bare name of several levels means the
        turn level above 1 (its scale is 1-5) and stays ambiguous, with several keys, otherwise."""
        found = self.select(name)
        turn = tuple(key for key in found if key.startswith("turn."))
        return turn if len(found) > 1 and value > 1 and turn else found

    def enabled(self, config: Config) -> frozenset[str]:
        """Returns the keys of the metrics that run. Names that ``check_metrics`` refuses select none."""
        if config.metrics.enabled == "all":
            return self.keys
        return frozenset(key for name in config.metrics.enabled for key in self.select(name))

    def thresholds(self, config: Config) -> dict[str, float]:
        """Returns the configured thresholds by key, in the metric's own scale, without defaults."""
        given = config.metrics.thresholds
        return {key: value for name, value in given.items() for key in self.select_threshold(name, value)}

    def by_key(self, given: Mapping[str, T]) -> dict[str, T]:
        """Returns values that are configured by names (``judge.models``) by key; a full key
        outweighs a bare name."""
        bare_first = sorted(given.items(), key=lambda item: item[0] in self.keys)
        return {key: value for name, value in bare_first for key in self.select(name)}

    def unknown(self, name: str) -> str:
        """Returns what to say of a name that is no metric."""
        meant = closest(name, [*self._by_name, *self.keys])
        return "unknown metric" + (f"; did you mean {meant}?" if meant else "; `pandaeval metrics` lists them")


def check_metrics(config: Config, registry: Registry, scales: Scales | None = None) -> list[Problem]:
    """Finds what is wrong with metric names in ``config``, given the (level, name) of every metric there is, and the
    ``scales`` of those that have one of their own.

    The problems have keys but no places; ``resolve`` adds them to what it is given as ``checks``.
    """
    names = MetricNames(registry)
    listed = [] if config.metrics.enabled == "all" else config.metrics.enabled
    problems = [
        Problem(f"metrics.enabled[{index}]", f"{name}: {names.unknown(name)}")
        for index, name in enumerate(listed)
        if not names.select(name)
    ]
    strange = (name for name in config.judge.models if not names.select(name))
    problems += [Problem(f"judge.models.{name}", names.unknown(name)) for name in strange]
    given: dict[str, str] = {}
    for name, value in config.metrics.thresholds.items():
        found = names.select_threshold(name, value) or ("",)
        best = (scales or {}).get(found[0], (0.0, 5.0 if found[0].startswith("turn.") else 1.0))[1]
        if not found[0]:
            message = names.unknown(name)
        elif len(found) > 1:
            message = f"is the name of several metrics; write {' or '.join(found)}"
        elif found[0] in given:
            message = f"sets {found[0]}, which {given[found[0]]} sets already"
        elif value > best:
            message = f"no result can reach {value:g}: scores of {found[0]} end at {best:g}"
        else:
            given[found[0]] = name
            continue
        problems.append(Problem(f"metrics.thresholds.{name}", message))
    return problems


def check_embedder(config: Config, schemes: Iterable[str]) -> list[Problem]:
    """Finds what is wrong with ``embedding.model``. ``schemes``: embedders, ``litellm`` of ``litellm:NAME``."""
    known = sorted(schemes)
    scheme = config.embedding.model.partition(":")[0]
    if scheme in known:
        return []
    meant = closest(scheme, known)
    message = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
    return [Problem("embedding.model", f'"{config.embedding.model}" is not an embedder; {message}')]


Conflict = tuple[tuple[str, ...], str]
"""Dotted keys that contradict each other, of which the first that the user has set is the one to blame, and why."""


def conflicts(config: Config) -> Iterator[Conflict]:
    """Yields all conflicts. A conflict is only worth telling if each of its keys is valid by itself."""
    yield from _limits(config)
    yield from _listeners(config)
    yield from _endpoints(config)
    judge, store, otlp, weights = config.judge, config.store, config.exporters.otlp, config.session.weights
    if (otlp.client_certificate is None) != (otlp.client_key is None):
        names = ("exporters.otlp.client_certificate", "exporters.otlp.client_key")
        yield names, "client_certificate and client_key go together: set both or neither"
    if len(weights) == 4 and not any(weights.values()):
        yield ("session.weights",), "all weights are 0; at least one signal must count"
    if config.kafka.brokers is not None and store.on_shutdown != "persist":
        message = (
            "open traces of a Kafka topic are read again by whoever takes over: store.on_shutdown has to be persist"
        )
        yield ("store.on_shutdown", "kafka.brokers"), message
    if judge.when == "suspicious" and judge.sample == 1.0:
        message = "suspicious changes nothing while judge.sample is 1; set the share of the others, such as 0.05"
        yield ("judge.when", "judge.sample"), message


def _limits(config: Config) -> Iterator[Conflict]:
    times = [(f"close.{name}", getattr(config.close, name)) for name in ("quiet", "idle", "max_age")]
    for (short, less), (long, more) in pairwise(times):
        if less > more:
            yield (short, long), f"{short} ({format_duration(less)}) is longer than {long} ({format_duration(more)})"
    largest, together = config.server.max_request_bytes, config.server.max_inflight_bytes
    if largest > together:
        message = (
            f"server.max_request_bytes ({format_size(largest)}) is more than "
            f"server.max_inflight_bytes ({format_size(together)}), so the largest request would never be accepted"
        )
        yield ("server.max_request_bytes", "server.max_inflight_bytes"), message


def _listeners(config: Config) -> Iterator[Conflict]:
    server = config.server
    taken: dict[int, str] = {}
    for name in ("grpc", "http", "health"):
        address, key = parse_address(getattr(server, name)), f"server.{name}"
        if address.port in taken:
            yield (key, taken[address.port]), f"port {address.port} is already that of {taken[address.port]}"
        elif address.port:
            taken[address.port] = key
        try:
            if name != "health":  # Whether a token is demanded is what counts here, not which.
                check_bind(address, server.tls, server.token_env, server.insecure_bind, setting="")
        except InsecureBind as refusal:
            yield (key, "server.insecure_bind", "server.tls", "server.token_env"), str(refusal).strip()


def _endpoints(config: Config) -> Iterator[Conflict]:
    """Yields a conflict for an endpoint that is this collector, and for a gRPC endpoint with a path of OTLP/HTTP, whose
    port is most likely wrong, too."""
    own = {_plain(config.server.grpc): "server.grpc", _plain(config.server.http): "server.http"}
    otlp = config.exporters.otlp
    given = {"exporters.otlp.endpoint": otlp.endpoint}
    given |= {f"exporters.otlp.{name}.endpoint": getattr(otlp, name).endpoint for name in SIGNALS}
    for name, endpoint in given.items():
        if endpoint and (listener := own.get(_plain(endpoint))):
            yield (name, listener), f"the endpoint is this collector's own address ({listener})"
    paths = tuple(f"/v1/{signal}" for signal in SIGNALS)
    for name, endpoint in given.items():
        if otlp.protocol == "grpc" and endpoint and endpoint.rstrip("/").endswith(paths):
            message = (
                "a gRPC endpoint has no path: write http://HOST:4317, or set exporters.otlp.protocol: http/protobuf"
            )
            yield (name, "exporters.otlp.protocol"), message


def _plain(endpoint: str) -> str:
    return endpoint.rpartition("//")[2].rstrip("/").replace("localhost:", "127.0.0.1:")


_UNSET = "the environment variable {} is not set"


def secret(env_name: str | None, environ: Mapping[str, str]) -> str | None:
    """Returns the value of the environment variable that a ``…_env`` key names, stripped; ``None`` when the key is not
    set.

    Raises :class:`ConfigError` when the variable is missing or empty: what asks for a secret never goes without.
    """
    if env_name is None:
        return None
    value = environ.get(env_name, "").strip()
    if not value:
        raise ConfigError([Problem("", _UNSET.format(env_name))])
    return value


def check_machine(config: Config, environ: Mapping[str, str]) -> list[Problem]:
    """Finds variables that are named and not set, certificates that cannot be used, a data directory that is a file.

    Apart from ``load``, since a config may be checked where its secrets are not. The problems have keys, no places.
    """
    problems = []
    for path in keys():
        if path[-1].endswith("_env"):
            value: object = config
            for name in path:
                value = getattr(value, name, None)
            if isinstance(value, str) and not environ.get(value, "").strip():
                problems.append(Problem(".".join(path), _UNSET.format(value)))
    if tls := config.server.tls:
        try:
            tls.verify()
        except BindError as error:
            problems.append(Problem("server.tls", str(error)))
    otlp = config.exporters.otlp
    if otlp.certificate or otlp.client_certificate or otlp.client_key:
        from pandaeval_collector.exporters._otlp.transport import Trust  # imports gRPC

        try:
            Trust(otlp.certificate, otlp.client_certificate, otlp.client_key).verify()
        except ValueError as error:
            problems.append(Problem("exporters.otlp", str(error)))
    if Path(config.store.path).is_file():
        problems.append(Problem("store.path", f'"{config.store.path}" is a file; it has to be a directory'))
    return problems


Check = Callable[[Config], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A valid configuration, and where each value that was set came from (defaults are absent)."""

    config: Config
    origins: Mapping[KeyPath, WrittenAt]

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """Adds places in files to problems, where somebody has set their keys."""
        places = {dotted(path): place for path, place in self.origins.items()}
        return [replace(problem, place=problem.place or places.get(problem.key)) for problem in problems]


def load(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Config:
    """Returns the configuration: defaults, then the YAML file, then the environment, then ``overrides`` (dotted keys of
    the command line; ``None`` values are passed over).

    ``checks`` find problems that only others can know, such as names of metrics. Reads no file but ``path`` and no
    environment but ``environ``. Raises :class:`ConfigError` with all problems.
    """
    return resolve(path, environ, overrides, checks).config


def resolve(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Resolved:
    """Returns the configuration as ``load`` does, with the origin of each value."""
    draft = Draft()
    problems = read_file(path, draft) if path is not None else []
    problems += read_environ(environ, draft)
    read_overrides(overrides or {}, draft)
    draft.drop_empty()
    config, invalid = _validate(draft)
    problems += invalid.values()
    for names, message in conflicts(config):
        paths = [tuple(name.split(".")) for name in names]
        if not any(bad[: len(path)] == path or path[: len(bad)] == bad for path in paths for bad in invalid):
            blamed = next(filter(draft.holds, paths), paths[0])
            problems.append(Problem(dotted(blamed), message, draft.value_at(blamed)))
    resolved = Resolved(config, draft.origins())
    # A problem of a value that was invalid is one of the default in its place.
    unsure = tuple(f"{dotted(path)}{mark}" for path in invalid for mark in ".[")
    found = (problem for check in checks for problem in resolved.located(check(config)))
    problems += [problem for problem in found if not f"{problem.key}.".startswith(unsure)]
    if problems:
        raise ConfigError(problems)
    return resolved


def _validate(draft: Draft) -> tuple[Config, dict[KeyPath, Problem]]:
    """Returns the config with defaults in place of what is invalid, and what is invalid by path."""
    invalid: dict[KeyPath, Problem] = {}
    bad: set[KeyPath] = set()
    while True:
        try:
            return Config.model_validate(without(draft.values, bad)), invalid
        except ValidationError as error:
            for details in error.errors(include_url=False):
                path, problem = to_problem(details, draft)
                invalid.setdefault(path, problem)
                # A section that lacks a key has to go as a whole.
                bad.add(path[:-1] if details["type"] == "missing" else path)
