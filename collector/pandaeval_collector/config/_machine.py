"""Needs of a configuration on this machine: variables, certificates, data directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pandaeval_collector.config._problem import ConfigError, Problem
from pandaeval_collector.config._tree import Config, keys
from pandaeval_collector.receivers.bind import BindError

_UNSET = "the environment variable {} is not set or is empty"


def secret(env_name: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the value of the variable that a ``…_env`` key names; ``None`` without the key.

    Raises :class:`ConfigError` if the variable is missing or empty.
    """
    if env_name is None:
        return None
    value = environ.get(env_name, "").strip()
    if not value:
        raise ConfigError([Problem("", _UNSET.format(env_name))])
    return value


def check_machine(config: Config, environ: Mapping[str, str]) -> list[Problem]:
    """Find missing or empty variables, unusable certificates, and a file in place of the data directory."""
    return [*_variables(config, environ), *_files(config)]


def _variables(config: Config, environ: Mapping[str, str]) -> Iterator[Problem]:
    for path in keys():
        if not path[-1].endswith("_env"):
            continue
        value: object = config
        for name in path:
            value = getattr(value, name, None)
        if isinstance(value, str) and not environ.get(value, "").strip():
            yield Problem(".".join(path), _UNSET.format(value))


def _files(config: Config) -> Iterator[Problem]:
    if config.server.tls is not None:
        try:
            config.server.tls.verify()
        except BindError as error:
            yield Problem("server.tls", str(error))
    otlp = config.exporters.otlp
    if otlp.certificate or otlp.client_certificate or otlp.client_key:
        from pandaeval_collector.exporters._otlp.transport import Trust  # imports gRPC

        try:
            Trust(otlp.certificate, otlp.client_certificate, otlp.client_key).verify()
        except ValueError as error:
            yield Problem("exporters.otlp", str(error))
    if Path(config.store.path).is_file():
        yield Problem("store.path", f'"{config.store.path}" is a file; it has to be a directory')
