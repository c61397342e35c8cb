"""Floods of readers, runs and schedules over 100,000 scored traces."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

from pandaeval_collector.store import Store
from support.hostile import doors
from support.hostile.attack import Ground, Target, at_once, attack
from support.many_traces import fill

TRACES = 100_000


def _filled(folder: Path, scale: int) -> Mapping[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_store(), folder / "data")
    return {}


@cache
def _store() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-large-"))
    store = Store(folder, "normal")
    fill(store, TRACES, results=2)
    store.close()
    return folder


LARGE = Ground("100,000 traces", prepare=_filled)
_LISTS = (
    "traces",
    "traces?order=newest&limit=200",
    "traces?text=parcel%20depot",
    "traces?text=nobody%20said%20this",
    "traces?metric=trace.grounding&success=false",
    "traces?agent=agent%203&environment=prod",
    "sessions",
    "sessions?limit=200",
    "results?limit=200",
    "results?metric=trace.grounding&limit=200",
    "overview",
    "failures",
    "annotations",
    "metrics",
)
_RUN = {"metrics": ["trace.tool_loop"]}


@attack(LARGE)
def many_readers(target: Target, scale: int) -> Iterator[str]:
    """Read lists, searches and overview, twenty at a time; scale 10: two hundred."""
    asked = itertools.islice(itertools.cycle(_LISTS), 20 * len(_LISTS) * scale)
    yield from at_once([partial(doors.get, target.http, f"/api/v1/{each}") for each in asked], threads=20 * scale)


@attack(LARGE)
def readers_that_turn_every_page(target: Target, scale: int) -> Iterator[str]:
    """Read all pages with twenty readers; scale 10: two hundred."""
    found: list[str] = []
    until = time.monotonic() + 20.0

    def turn() -> None:
        cursor = ""
        while time.monotonic() < until:
            address = f"http://{target.http}/api/v1/traces?limit=200{cursor}"
            try:
                with urllib.request.urlopen(address, timeout=doors.PATIENCE_S) as response:
                    following = json.loads(response.read())["next"]
                found.append("HTTP 200")
                cursor = f"&cursor={urllib.parse.quote(following)}" if following else ""
            except urllib.error.HTTPError as error:
                found.append(f"HTTP {error.code}")
            except OSError:
                found.append(doors.NO_ANSWER)

    readers = [threading.Thread(target=turn) for _ in range(20 * scale)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    yield from found


@attack(LARGE)
def schedules_by_the_hundred(target: Target, scale: int) -> Iterator[str]:
    """Create three hundred schedules and list them; scale 10: three thousand."""
    never = json.dumps({"cron": "0 0 31 2 *", "run": _RUN}).encode()
    yield doors.post(target.http, never, path="/api/v1/schedules", media=doors.JSON)
    body = json.dumps({"cron": "* * * * *", "run": _RUN}).encode()
    made = [partial(doors.post, target.http, body, path="/api/v1/schedules", media=doors.JSON)] * (300 * scale)
    read = [partial(doors.get, target.http, "/api/v1/schedules")] * (20 * scale)
    yield from at_once([*made, *read])
    time.sleep(65.0)  # until they are due
    yield doors.get(target.http, "/api/v1/runs?limit=200")
    yield from _each(target, "schedules", "DELETE", "")


@attack(LARGE)
def runs_by_the_hundred(target: Target, scale: int) -> Iterator[str]:
    """Start three hundred runs and thirty estimates; scale 10: ten times as many."""
    made = [_ask(target, _RUN)] * (300 * scale) + [_ask(target, {**_RUN, "dry_run": True})] * (30 * scale)
    yield from at_once(made)
    time.sleep(20.0)  # until the first run has started
    yield from _each(target, "runs", "POST", "/cancel")


def _ask(target: Target, body: object) -> partial[str]:
    return partial(doors.post, target.http, json.dumps(body).encode(), path="/api/v1/runs", media=doors.JSON)


def _each(target: Target, what: str, method: str, act: str) -> Iterator[str]:
    with urllib.request.urlopen(f"http://{target.http}/api/v1/{what}", timeout=doors.PATIENCE_S) as response:
        page = json.loads(response.read())
    for each in page["items"]:
        if each.get("state", "queued") in ("queued", "running"):
            yield doors.ask(target.http, method, f"/api/v1/{what}/{each['id']}{act}")
