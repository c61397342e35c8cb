"""Configuration of commands."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.cli._extras import EXTRAS
from pandaeval_collector.cli._options import config_option, option
from pandaeval_collector.config import (
    Config,
    ConfigError,
    Problem,
    Resolved,
    check_machine,
    resolve,
)
from pandaeval_collector.store.connection import FILE_NAME, Durability, connect, note_damage

_OPTIONS = {"metrics.enabled": "--metrics", "judge.model": "--model"}
"""The option with which people set the override of a key."""
ConfigFile = Annotated[Path | None, config_option("Configuration file (YAML).")]
MetricsConfigFile = Annotated[Path | None, config_option("Configuration file (YAML), for custom metrics.")]
StoreConfig = Annotated[Path | None, config_option("Configuration file (YAML), for store.path.")]
StoreFolder = Annotated[Path | None, option("Data directory; default: store.path.", "--store", metavar="FOLDER")]
STORE = {"config": (StoreConfig, None), "store": (StoreFolder, None)}
"""The options that choose a store."""


def resolve_config(
    path: Path | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    on_this_machine: bool = False,
    apart: bool = False,
) -> Resolved:
    """Return this process's configuration with origins; checks names of metrics and embedders.

    ``overrides``: by dotted key; ``None`` is ignored. ``on_this_machine``: also check secrets and certificates.
    ``apart``: check names in another process, and skip API keys, because the collector also starts without them.
    Raises ``ConfigError`` with every problem.
    """
    if apart:
        checks: list[Callable[[Config], Iterable[Problem]]] = [_problems_apart]
    else:
        from pandaeval_collector.cli import _names  # loads all metrics

        checks = [_names.problems]
    if on_this_machine:
        checks += [lambda config: check_machine(config, os.environ), start_problems]
    if on_this_machine and not apart:
        from pandaeval_collector.cli import _model_keys

        checks.append(_model_keys.problems)
    try:
        return resolve(path, os.environ, overrides, checks)
    except ConfigError as error:
        options = {key: option for key, option in _OPTIONS.items() if (overrides or {}).get(key) is not None}
        keys = [problem.key.partition("[")[0] for problem in error.problems]
        raise ConfigError(
            replace(problem, key=options[key], place=None) if key in options else problem
            for key, problem in zip(keys, error.problems, strict=True)
        ) from error


def _problems_apart(config: Config) -> list[Problem]:
    named, judge = (config.metrics, config.embedding), config.judge
    if named == (Config().metrics, Config().embedding) and not judge.models:
        return []

    async def ask() -> list[Problem]:
        calls = Calls("the check of names", "pandaeval_collector.cli._names", config, os.environ)
        try:
            found: list[Problem] = await calls.ask("problems")
        finally:
            await calls.close()
        return found

    return asyncio.run(ask())


def store_settings(folder: Path | None) -> dict[str, str]:
    return {} if folder is None else {"store.path": str(folder)}


with_store_config = in_place_of(
    "settings", STORE, lambda config=None, store=None: resolve_config(config, store_settings(store)).config
)
"""Gives a command the configuration of a store, in place of its parameter ``settings``."""


def opened_store(settings: Config, read_only: bool = False) -> AbstractContextManager[sqlite3.Connection]:
    """Open the configured store. Raises ``UserError``."""
    return opened_folder(Path(settings.store.path), settings.store.durability, read_only)


class StoreDamagedError(UserError):
    """SQLite cannot read the store."""


@contextmanager
def opened_folder(
    folder: Path, durability: Durability = "full", read_only: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the store of a data directory. Raises ``UserError``.

    If SQLite reports damage, the next start of the collector checks the file.
    """
    file = folder / FILE_NAME
    if not file.is_file():
        raise missing_store_error(folder)
    try:
        with closing(connect(file, durability, read_only)) as connection:
            try:
                yield connection
            except sqlite3.DatabaseError as error:
                note_damage(file, error)
                raise
    except sqlite3.OperationalError as error:
        cure = " (try again in a moment)" if "locked" in str(error) else ""
        raise UserError(f"{file}: {error}{cure}") from error
    except sqlite3.DatabaseError as error:
        cure = "restore a backup, or restart the collector, which moves a damaged file aside"
        raise StoreDamagedError(f"{file} cannot be read ({error}); {cure}") from error


def missing_store_error(folder: Path) -> UserError:
    """Return the error of a directory without a store. If a collector runs, the error names its data directory."""
    from pandaeval_collector.cli._run_place import data_directory  # imports a client that few commands need

    error_text = f"no store in {folder} (store.path or PANDAEVAL_DATA); `pandaeval collector` creates it"
    with suppress(UserError, LookupError, TypeError):
        error_text += f"; a collector runs: add --store {data_directory()}"
    return UserError(error_text)


def start_problems(config: Config) -> Iterator[Problem]:
    """Yield the missing packages of extras that prevent a start of the collector."""
    needed = [("judge.model", "judge")] if config.judge.model is not None else []
    if config.judge.model is not None and config.redact.pii:
        needed.append(("redact.pii", "pii"))
    if config.embedding.model.strip().startswith("litellm:"):
        needed.append(("embedding.model", "judge"))
    for key, extra in needed:
        missing = [package for package in EXTRAS[extra] if find_spec(package) is None]
        if missing:
            yield Problem(key, f"{missing[0]} is not installed; install it with: {installation(extra)}")
