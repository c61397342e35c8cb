"""What the configuration expects of the machine that it runs on: secrets in the environment, files on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pandaeval_collector.config._problem import ConfigError, Problem
from pandaeval_collector.config._rules import tls_files
from pandaeval_collector.config._tree import Config, keys
from pandaeval_collector.receivers.bind import BindError


def secret(env_name: str | None, environ: Mapping[str, str]) -> str | None:
    """Returns the value of the environment variable that a ``…_env`` key names, stripped; ``None`` when the key is not
    set.

    Raises :class:`ConfigError` when the variable is missing or empty: what asks for a secret never goes without.
    """
    if env_name is None:
        return None
    value = environ.get(env_name, "").strip()
    if not value:
        raise ConfigError([Problem("", _missing(env_name))])
    return value


def check_machine(config: Config, environ: Mapping[str, str]) -> list[Problem]:
    """Finds variables that are named and not set, certificates that cannot be used, a data directory that is a file.

    Apart from ``load``, since a config may be checked where its secrets are not. The problems have keys, no places.
    """
    unset = ((key, name) for key, name in _named_variables(config) if not environ.get(name, "").strip())
    problems = [Problem(key, _missing(name)) for key, name in unset]
    if tls := tls_files(config):
        try:
            tls.verify()
        except BindError as error:
            problems.append(Problem("server.tls", str(error)))
    problems += _unusable_certificates(config)
    if Path(config.store.path).is_file():
        problems.append(Problem("store.path", f'"{config.store.path}" is a file; it has to be a directory'))
    return problems


def _unusable_certificates(config: Config) -> Iterator[Problem]:
    """Yields a problem where the certificates of exporters cannot be used."""
    otlp = config.exporters.otlp
    if not (otlp.certificate or otlp.client_certificate or otlp.client_key):
        return
    from pandaeval_collector.exporters._otlp.transport import Trust  # imports gRPC

    try:
        Trust(otlp.certificate, otlp.client_certificate, otlp.client_key).verify()
    except ValueError as error:
        yield Problem("exporters.otlp", str(error))


def _named_variables(config: Config) -> Iterator[tuple[str, str]]:
    for path, key in keys().items():
        if path[-1].endswith("_env"):
            value: object = config
            for name in path:
                value = getattr(value, name, None)
            if isinstance(value, str):
                yield key.name, value


def _missing(env_name: str) -> str:
    return f"the environment variable {env_name} is not set"
