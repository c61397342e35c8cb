"""``pandaeval doctor``: looks at an installation, its store, its collector and what they need, and says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sqlite3
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import orjson
import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.version import release
from pandaeval_collector.cli._config import (
    StoreFolder,
    given,
    judge_notes,
    opened_folder,
    resolve_config,
    start_problems,
    unwritable,
)
from pandaeval_collector.cli._options import config_option
from pandaeval_collector.cli._output import console, many, progress, safe
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.config import Config, Resolved, check_machine
from pandaeval_collector.store import StoreVersionError
from pandaeval_collector.store.checking import CURES, damages
from pandaeval_collector.store.connection import FILE_NAME

Told = Callable[[int, int], None]
_ADDRESSES = re.compile(r"(^|_)(endpoint|brokers|api_base)$")
"""The names of keys that hold addresses."""
_PORTS = {"http": 80, "https": 443}
_TIMEOUT_S = 3.0
_DEEP_BYTES = 256 << 20
_BACK_S = 60.0
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([-+.e\dInfNa]+)$")


def doctor(
    format_: Annotated[
        RunFormat, typer.Option("--format", help="table, or json: one array of all findings.")
    ] = "table",
    config: Annotated[Path | None, config_option("Configuration file (YAML).")] = None,
    store: StoreFolder = None,
) -> None:
    """Check configuration, versions, clocks, the store, a running collector, sinks and the judge. Exit code 1 if
    something is wrong.

    Each finding says what to do about it. Nothing is changed, and no model is asked.
    """
    findings = _findings(config, store)
    if format_ == "json":
        write_json(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        _print(findings)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _findings(config: Path | None, folder: Path | None) -> list[Diagnosis]:
    try:
        resolved = resolve_config(config, given(folder))
    except UserError as error:
        cure = "put it right in the file or variable that it names"
        return [_wrong("configuration", line, cure) for line in str(error).splitlines()]
    with progress(console(stderr=True), "checking the store") as on_checked:
        return [*examine(resolved, os.environ, on_checked)]


def _print(findings: Sequence[Diagnosis]) -> None:
    for finding in findings:
        typer.echo(f"{finding.state:<5}  {finding.area}: {safe(finding.what)}")
        if finding.cure:
            typer.echo(f"       {safe(finding.cure)}")
    wrong = sum(finding.state == "wrong" for finding in findings)
    verb = "is" if wrong == 1 else "are"
    typer.echo(f"{many(wrong, 'thing')} {verb} wrong" if wrong else "nothing is wrong")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding. ``state``: a ``note`` is worth knowing and does not fail the command; ``cure``: what to do."""

    area: str
    state: Literal["ok", "note", "wrong"]
    what: str
    cure: str = ""


def _ok(area: str, what: str) -> Diagnosis:
    return Diagnosis(area, "ok", what)


def _note(area: str, what: str, cure: str = "") -> Diagnosis:
    return Diagnosis(area, "note", what, cure)


def _wrong(area: str, what: str, cure: str) -> Diagnosis:
    return Diagnosis(area, "wrong", what, cure)


def examine(resolved: Resolved, environ: Mapping[str, str], told: Told) -> Iterator[Diagnosis]:
    """Yields all findings, area by area."""
    config = resolved.config
    yield from _versions()
    refused = [*check_machine(config, environ), *start_problems(config)]
    for problem in resolved.located(refused):
        yield _wrong("configuration", str(problem), "a start refuses this: set or install what is missing")
    for problem in resolved.located([*judge_notes(config, environ)]):
        yield _note("configuration", str(problem))
    if not refused:
        yield _ok("configuration", "a collector would start with it")
    folder = Path(config.store.path)
    yield from _collector(config)
    yield from _store(folder, config.store.max_bytes, told)
    yield from _places(config)


def _versions() -> Iterator[Diagnosis]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield _ok("versions", f"{release()}, Python {python}, SQLite {sqlite3.sqlite_version}")
    try:
        ours, other = version("pandaeval-collector"), version("pandaeval-otel")
    except PackageNotFoundError:
        return
    if ours != other:
        yield _wrong(
            "versions",
            f"pandaeval-collector {ours} runs with pandaeval-otel {other}",
            "install both in the same version",
        )


# -- a running collector -----------------------------------------------------------------------------------------


def _got(url: str) -> tuple[int, str]:
    """Returns status and body of an answer of the health listener; status 0: there is none."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, ValueError):
        return 0, ""


def _collector(config: Config) -> Iterator[Diagnosis]:
    host, _, port = config.server.health.rpartition(":")
    host = "127.0.0.1" if host in ("0.0.0.0", "[::]", "") else host  # noqa: S104
    status, ready = _got(f"http://{host}:{port}/readyz")
    if not status:
        yield _note("collector", f"none answers at {config.server.health}", "`pandaeval collector` starts one")
        return
    if status != 200:
        yield _wrong("collector", f"it is not ready: {ready}", "its log says why")
    else:
        yield _ok("collector", f"ready at {config.server.health}")
    _, metrics = _got(f"http://{host}:{port}/metrics")
    lines = filter(None, map(_SAMPLE.match, metrics.splitlines()))
    samples = [(line[1], line[2] or "", float(line[3])) for line in lines]
    residual = next((value for name, _, value in samples if name == "pandaeval_accounting_residual"), None)
    if residual is None:
        yield _note("accounting", "the collector shows no metrics (exporters.prometheus.enabled)")
    elif residual:
        yield _wrong("accounting", f"{residual:.0f} spans or log records have no fate", "a bug: please report it")
    else:
        yield _ok("accounting", "every span has a fate")
    for name, labels, value in samples:
        if name.startswith("pandaeval_component_errors") and value:
            yield _wrong(
                "components",
                f"{value:.0f} errors of {labels}",
                "docs/operate/troubleshooting.md#components-that-raise-errors",
            )
        if name.startswith("pandaeval_store_errors") and value:
            yield _wrong(
                "store", f"{value:.0f} since the start: {labels}", "the log tells each; is the disk full or failing?"
            )
        if name == "pandaeval_exporter_state" and value == 0:
            yield _wrong("sinks", f"an exporter is down: {labels}", "its results wait and are sent when it is back")


# -- the store ---------------------------------------------------------------------------------------------------


def _store(folder: Path, budget: int, told: Told) -> Iterator[Diagnosis]:
    file = folder / FILE_NAME
    yield from _beside(folder)
    if not file.is_file():
        yield _note("store", f"there is none in {folder} yet", "the first start makes it")
        return
    size, free = file.stat().st_size, shutil.disk_usage(folder).free
    if size >= 0.9 * budget:
        yield _wrong(
            "store",
            f"{size >> 20} MiB of store.max_bytes ({budget >> 20} MiB) are in use",
            "raise it, or shorten store.retention",
        )
    if free < max(64 << 20, size // 20):
        yield _wrong("store", f"the disk has {free >> 20} MiB left", "make room: senders are refused when it is full")
    try:
        with opened_folder(folder, read_only=True) as connection:
            yield from _inside(connection, size, told)
    except StoreVersionError as error:
        yield _wrong("store", str(error), "docs/operate/backup-upgrade.md#upgrade")
    except sqlite3.DatabaseError as error:
        yield _wrong("store", f"it cannot be read: {error}", "the next start puts it aside and begins a new one")


def _inside(connection: sqlite3.Connection, size: int, told: Told) -> Iterator[Diagnosis]:
    yield from _clocks(connection)
    dead = connection.execute("SELECT count(*) FROM jobs WHERE state = 'dead'").fetchone()[0]
    if dead:
        yield _note("judge", f"{dead} jobs were given up", "`pandaeval jobs retry` makes them due again")
    if size > _DEEP_BYTES:
        yield _note("store", f"its {size >> 20} MiB were not read row by row", "`pandaeval store verify` does")
        return
    found = list(damages(connection, told))
    for each in found:
        yield _wrong("store", f"{each.kind} {each.key} {each.about}: {each.what}", CURES[each.kind])
    if not found:
        yield _ok("store", f"{size >> 10} KiB, every page and row is whole")


def _beside(folder: Path) -> Iterator[Diagnosis]:
    """Yields a finding for each file beside the store that an earlier damage left."""
    cures = {
        "pandaeval.db.suspected": "damage was met: restart the collector, which looks through the whole file",
        "pandaeval.db.damaged-*": "a store that was put aside; `sqlite3 FILE .recover` may read what is left of it",
    }
    for pattern, cure in cures.items():
        for found in sorted(folder.glob(pattern)):
            yield _note("store", f"there is {found}", cure)


def _clocks(connection: sqlite3.Connection) -> Iterator[Diagnosis]:
    row = connection.execute("SELECT value FROM meta WHERE key = 'clock'").fetchone()
    ahead = float(orjson.loads(row[0])["wall"]) - time.time() if row else 0.0
    if ahead > _BACK_S:
        yield _wrong(
            "clocks",
            f"the machine's clock is {ahead:.0f} s behind what it was when the store was written",
            "set it right (NTP); docs/operate/troubleshooting.md#when-the-machines-clock-is-wrong",
        )
    else:
        yield _ok("clocks", time.strftime("it is %Y-%m-%d %H:%M:%S UTC here", time.gmtime()))


# -- others ------------------------------------------------------------------------------------------------------


def _places(config: Config) -> Iterator[Diagnosis]:
    for area, key, host, port in _addresses(config):
        where = f"{key} ({host}:{port})"
        try:
            socket.create_connection((host, port), _TIMEOUT_S).close()
        except OSError as error:
            cure = "start it, or put the address right; what is for it waits in the store"
            yield _wrong(area, f"{where}: {error.strerror or error}", cure)
        else:
            yield _ok(area, f"{where} answers")
    file = config.exporters.jsonl.path  # type: ignore[attr-defined]
    if file is not None and (trouble := unwritable(Path(str(file)).parent)):
        yield _wrong("sinks", f"exporters.jsonl.path: {trouble}", "let this user write there")
    if config.judge.model is None:
        yield _ok("judge", "none is configured (judge.model)")


def _addresses(config: Config) -> Iterator[tuple[str, str, str, int]]:
    """Yields area, key, host and port of each address that is configured."""
    for key, value in _leaves(config.model_dump(mode="json"), ""):
        if not isinstance(value, str) or not _ADDRESSES.search(key.rpartition(".")[2]):
            continue
        for each in map(str.strip, value.split(",")):
            with suppress(ValueError):
                parts = urlsplit(each if "//" in each else f"//{each}")
                port = parts.port or _PORTS.get(parts.scheme)
                if parts.hostname and port:
                    yield "judge" if key.startswith("judge.") else "sinks", key, parts.hostname, port


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, key)
    else:
        yield key, value
