"""Collectors that hand their sessions to one owner, and what they and their owner make of traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from support.collector import CollectorProcess, standing
from support.made_traces import MadeTrace
from support.senders import GrpcDoor

Standing = dict[tuple[str, str], tuple[Any, ...]]


def forwarder(
    folder: Path,
    owner: CollectorProcess,
    name: str,
    settings: Mapping[str, str] | None = None,
    fresh: bool | None = None,
) -> CollectorProcess:
    """A collector whose sessions ``owner`` scores; not started."""
    forwards = {"PANDAEVAL_SESSIONS__FORWARD_TO": owner.grpc}
    return CollectorProcess(folder / name, {**owner_settings(owner), **forwards, **(settings or {})}, fresh=fresh)


def owner_settings(owner: CollectorProcess) -> dict[str, str]:
    """When traces and sessions close, as at the owner."""
    return {key: value for key, value in owner.settings.items() if "__CLOSE__" in key or "__SESSION__" in key}


def send(collector: CollectorProcess, traces: Iterable[MadeTrace]) -> None:
    """All spans of some traces over gRPC, each until it is acknowledged. A collector that died is started again."""
    with contextlib.closing(GrpcDoor(collector.grpc)) as door:
        for trace in traces:
            while not door.send(trace.request()).acknowledged:
                if not collector.running():
                    collector.start()


def what_stands(*collectors: CollectorProcess) -> Standing:
    """(id, score, outcome, session) of the newest result of each (trace or session id, metric) of some collectors. No
    two of them may have results of the same."""
    found: Standing = {}
    for each in collectors:
        own = {
            key: (result["id"], result["score"], result["outcome"], result["session_id"])
            for key, result in standing(each.results()).items()
        }
        assert not found.keys() & own.keys(), "two collectors scored the same"
        found |= own
    return found


def has_handed_over(collector: CollectorProcess) -> bool:
    """Whether everything that came is decided, and the owner knows of it."""
    with collector.database() as database:
        row = database.execute("SELECT value FROM meta WHERE key = 'cursor:sessions'").fetchone()
        sent = orjson.loads(row[0])["seq"] if row else 0
        query = "SELECT count(*) FROM outbox WHERE signal = 'members' AND seq > ?"
        (unsent,) = database.execute(query, (sent,)).fetchone()
    return not unsent and collector.gauge("traces_open") == 0
