"""``pandaeval doctor``: checks configuration, store, collector and servers."""

from __future__ import annotations

import re
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import orjson
import typer
from google.protobuf.message import DecodeError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import (
    ConfigFile,
    StoreDamagedError,
    StoreFolder,
    opened_folder,
    resolve_config,
    store_settings,
)
from pandaeval_collector.cli._output import many, safe
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.format_pauses import cause
from pandaeval_collector.show.report.detail import stored_trace
from pandaeval_collector.store import StoreFullError
from pandaeval_collector.store.chunks import StoredTrace, stored_traces
from pandaeval_collector.store.clock import stored_times
from pandaeval_collector.store.connection import FILE_NAME, used_bytes
from pandaeval_collector.store.reader import PAUSED
from pandaeval_collector.store.schema import StoreVersionError
from pandaeval_lab.cli._reachable import host_and_port
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.unread import MARK

_ADDRESSES = re.compile(r"(^|_)(endpoint|brokers|api_base)$")
"""The names of keys that hold addresses."""
_EXPORTER = re.compile(r'^pandaeval_exporter_state\{pandaeval_exporter="(\w+)",pandaeval_signal="(\w+)"\} (-?\d)', re.M)
"""Exporter, signal and state, as :data:`EXPORTER_STATE` describes them."""
_TIMEOUT_S = 3.0
_BACK_S = 60.0
_LOOKED_AT = 100
"""Number of stored traces that are searched for text that no dialect reads."""
_LEFT = {
    "pandaeval.db.suspected": "damage was found: restart the collector, which checks the whole file",
    "pandaeval.db.damaged-*": "quarantined store; `sqlite3 FILE .recover` may restore a part",
}
"""Files that a collector leaves in the data directory after damage, each with a remedy."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding. ``state``: a ``note`` does not fail the command; ``cure``: the fix."""

    state: Literal["ok", "note", "wrong"]
    text: str
    cure: str = ""


def doctor(config: ConfigFile = None, store: StoreFolder = None) -> None:
    """Check configuration, store, clock, collector and sinks.

    The command lists each problem with a fix. Exit code 1: it found a problem. The command changes no data, and calls
    no model. To check the whole store for damage, use `pandaeval store verify`.
    """
    findings = [*examine(config, store)]
    for finding in findings:
        typer.echo(f"{finding.state:<5}  {safe(finding.text)}")
        if finding.cure:
            typer.echo(f"       {safe(finding.cure)}")
    wrong = sum(finding.state == "wrong" for finding in findings)
    verb = "is" if wrong == 1 else "are"
    typer.echo(f"{many(wrong, 'thing')} {verb} wrong" if wrong else "no problem found")
    if wrong:
        raise typer.Exit(1)


def examine(path: Path | None, folder: Path | None) -> Iterator[Diagnosis]:
    try:
        config = resolve_config(path, store_settings(folder)).config
        yield from _collector(config.server.health)
        yield from _store(Path(config.store.path), config.store.max_bytes, is_named=folder is not None)
        yield from _places(config)
        resolve_config(path, store_settings(folder), on_this_machine=True)
        yield Diagnosis("ok", "configuration: valid")
    except UserError as error:
        for line in str(error).splitlines():
            yield Diagnosis("wrong", f"configuration: {line}", "correct the file, the variable or the installation")


def _collector(address: str) -> Iterator[Diagnosis]:
    host, _, port = address.rpartition(":")
    host = "127.0.0.1" if host in ("0.0.0.0", "[::]", "") else host  # noqa: S104
    try:
        urllib.request.urlopen(f"http://{host}:{port}/readyz", timeout=_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        ready = error.read().decode(errors="replace")
        yield Diagnosis("wrong", f"collector: not ready: {ready}", "read the log of the collector")
    except (OSError, ValueError):
        yield Diagnosis("note", f"collector: no collector answers at {address}", "start one with `pandaeval collector`")
    else:
        yield Diagnosis("ok", f"collector: ready at {address}")
        with suppress(OSError), urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=_TIMEOUT_S) as answer:
            yield from _exporters(answer.read().decode(errors="replace"), f"{host}:{port}")


def _exporters(metrics: str, address: str) -> Iterator[Diagnosis]:
    for exporter, signal, state in _EXPORTER.findall(metrics):
        key = f"exporters.{exporter}"
        if state == "0":
            cure = "the log of the collector shows the answer of the sink"
            yield Diagnosis("wrong", f"{key}: {signal} cannot be delivered, and wait in the store", cure)
        if state == "-1":
            cure = f"set {key}.{signal}.enabled: false"
            if signal == "metrics":
                cure += f"; after a restart, Prometheus can scrape the scores at http://{address}/metrics"
            yield Diagnosis("note", f"{key}: the sink accepts no {signal}", cure)


def _store(folder: Path, most: int, is_named: bool) -> Iterator[Diagnosis]:
    for pattern, cure in _LEFT.items():
        for file in sorted(folder.glob(pattern)):
            yield Diagnosis("note", f"store: there is {file}", cure)
    if not (folder / FILE_NAME).is_file():
        if is_named:
            yield Diagnosis("wrong", f"store: there is no store in {folder}", "name the data directory of a collector")
        else:
            cure = "the collector creates it at its first start"
            yield Diagnosis("note", f"store: there is no store in {folder} yet", cure)
        return
    try:
        with opened_folder(folder, read_only=True) as connection:
            if (used := used_bytes(connection)) >= most:
                full = StoreFullError(used, most)
                yield Diagnosis("wrong", f"store: full, and refuses spans: {full.cause}", full.CURE)
            yield from _inside(connection)
    except StoreDamagedError as error:
        cure = "restore a backup, or restart the collector, which moves a damaged file aside"
        yield Diagnosis("wrong", f"store: cannot be read: {error.__cause__}", cure)
    except StoreVersionError as error:
        yield Diagnosis("wrong", f"store: {error}", "docs/operate/backup-upgrade.md#upgrade")
    except UserError as error:
        yield Diagnosis("wrong", f"store: {error}", "check its permissions, and whether another program uses it")


def _inside(connection: sqlite3.Connection) -> Iterator[Diagnosis]:
    kept = stored_times(connection)
    if kept and (ahead := kept.wall - time.time()) > _BACK_S:
        cure = "set the clock (NTP); docs/operate/guarantees.md#clocks"
        yield Diagnosis("wrong", f"clock: {ahead:.0f} s behind the last write to the store", cure)
    dead = connection.execute("SELECT count(*) FROM jobs WHERE state = 'dead'").fetchone()[0]
    if dead:
        yield Diagnosis("note", f"judge: {dead} jobs failed for good", "retry them with `pandaeval jobs retry`")
    paused = connection.execute("SELECT value FROM meta WHERE key = ?", (PAUSED,)).fetchone()
    for model in orjson.loads(paused[0]) if paused else ():
        what, _, cure = cause(model).partition("; choose ")
        yield Diagnosis("wrong", what, f"choose {cure}")
    yield from _traces(connection)
    yield Diagnosis("ok", "store: readable")


def _traces(connection: sqlite3.Connection) -> Iterator[Diagnosis]:
    found: dict[str, str] = {}
    for stored in islice(stored_traces(connection), _LOOKED_AT):
        trace, damage = _read(stored)
        if damage:
            id_ = stored.trace_id.hex()
            cure = f"restore a backup, or delete the trace: `pandaeval delete --trace {id_}`"
            yield Diagnosis("wrong", f"store: the spans of trace {id_} cannot be read: {damage}", cure)
        for note in trace.notes if trace else ():
            if MARK in note and trace:
                found.setdefault(trace.service, note)
    for service, note in found.items():
        cure = "`pandaeval inspect` shows how its traces are read; CONTRIBUTING.md shows how to report them"
        yield Diagnosis("note", f"service {service}: {note}", cure)


def _read(stored: StoredTrace) -> tuple[Trace | None, str]:
    """Return the trace, if it is readable, and the damage."""
    try:
        return stored_trace(stored.parts), stored.damage
    except (ValueError, DecodeError) as error:
        return None, str(error)


def _places(config: Config) -> Iterator[Diagnosis]:
    for key, (host, port) in _addresses(config.model_dump(mode="json"), ""):
        try:
            socket.create_connection((host, port), _TIMEOUT_S).close()
        except OSError as error:
            cure = "start the server, or correct the address; until then, data for an exporter wait in the store"
            yield Diagnosis("wrong", f"{key} ({host}:{port}): {error.strerror or error}", cure)
        else:
            yield Diagnosis("ok", f"{key} ({host}:{port}) answers")


def _addresses(value: Any, key: str) -> Iterator[tuple[str, tuple[str, int]]]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from _addresses(held, f"{key}.{name}" if key else name)
    elif isinstance(value, str) and _ADDRESSES.search(key.rpartition(".")[2]):
        for text in map(str.strip, value.split(",")):
            with suppress(ValueError):
                if place := host_and_port(text):
                    yield key, place
