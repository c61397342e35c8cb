"""Collectors on a full disk wait or refuse."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sqlite3
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.app import collector as collector_module
from pandaeval_collector.app.collector import Collector
from pandaeval_collector.config import Config
from pandaeval_collector.store import Store
from support.collector import CollectorProcess
from support.disk import failing_disk
from support.made_traces import Composer
from support.ports import free_ports
from support.senders import GrpcSender

SLOW = {"PANDAEVAL_CLOSE__QUIET": "60s", "PANDAEVAL_CLOSE__IDLE": "60s", "PANDAEVAL_SESSION__IDLE": "60s"}


def _readiness(port: int) -> tuple[int, dict[str, Any]] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused as answer:
            return answer.code, json.load(answer)
    except OSError:
        return None


def _config(data: Path) -> tuple[Config, int]:
    grpc, http, health = free_ports(3)
    server = {"grpc": f"127.0.0.1:{grpc}", "http": f"127.0.0.1:{http}", "health": f"127.0.0.1:{health}"}
    return Config.model_validate({"server": server, "store": {"path": str(data)}}), health


async def test_a_start_waits_for_disk_space_and_then_becomes_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    failures = failing_disk(monkeypatch, full)
    failures["COMMIT"] = 1_000_000
    config, health = _config(tmp_path / "data")
    collector = Collector(config, {})
    starting = asyncio.create_task(collector.start())
    readiness = None
    while not (readiness and "reason" in readiness[1]):
        assert not starting.done()
        await asyncio.sleep(0.05)
        readiness = await asyncio.to_thread(_readiness, health)
    assert readiness[0] == 503
    assert readiness[1]["reason"] == f"the disk of {tmp_path / 'data'} is full: database or disk is full"
    failures.clear()
    await asyncio.wait_for(starting, 120)
    assert await asyncio.to_thread(_readiness, health) == (200, dict.fromkeys(readiness[1].keys() - {"reason"}, True))
    await collector.stop()


async def test_a_start_continues_if_disk_space_becomes_free_during_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [sqlite3.OperationalError("disk I/O error")] * 2
    is_full = iter([True, False])  # space becomes free after the second error and before the check

    def opened(*arguments: Any) -> Store:
        if errors:
            raise errors.pop()
        return Store(*arguments)

    monkeypatch.setattr(collector_module, "Store", opened)
    monkeypatch.setattr(collector_module, "has_no_room", lambda path, error: next(is_full))
    collector = Collector(_config(tmp_path / "data")[0], {})
    await asyncio.wait_for(collector.start(), 120)
    await collector.stop()


async def test_a_start_fails_at_disk_errors_other_than_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_disk(monkeypatch)["COMMIT"] = 1_000_000
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        await Collector(_config(tmp_path / "data")[0], {}).start()


@contextlib.contextmanager
def _small_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_collector_on_a_full_disk_waits_can_be_stopped_and_starts_later(tmp_path: Path) -> None:
    with _small_disk(tmp_path / "disk", "16m") as disk, CollectorProcess(disk / "data") as collector:
        for known in (False, True):  # first without a store, then with an existing store
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
            collector.launch()
            collector.until(
                lambda: (_readiness(collector.health_port) or (0, {}))[1].get("reason", "") != "", "waiting"
            )
            readiness = _readiness(collector.health_port)
            assert readiness is not None
            assert "is full" in readiness[1]["reason"], known
            assert collector.stop() == 0, "it must stop while it waits"
            collector.launch()
            collector.until(lambda: _readiness(collector.health_port) is not None, "waiting again")
            filler.unlink()
            collector.until(collector.ready, "ready")
            assert collector.stop() == 0


def _reason(collector: CollectorProcess) -> str:
    readiness = _readiness(collector.health_port)
    assert readiness is not None
    assert readiness[0] == 503
    return str(readiness[1]["reason"])


def test_the_collector_is_not_ready_while_the_disk_accepts_no_writes(tmp_path: Path) -> None:
    composer = Composer(1)
    with CollectorProcess(tmp_path, SLOW) as collector, closing(GrpcSender(collector.grpc)) as door:
        collector.start()
        assert door.send(composer.trace(3).request()).acknowledged
        assert collector.process is not None
        pid, (_, most) = collector.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        full = (collector.data / "pandaeval.db-wal").stat().st_size
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (full, most))  # no file can grow larger
        answers = [door.send(composer.trace(3).request()) for _ in range(3)]
        assert not any(answer.acknowledged or answer.refused for answer in answers)
        assert "cannot be written to" in _reason(collector)
        collector.until(lambda: collector.counts()["store_errors", "probe", ""] >= 2, "trying")
        assert "cannot be written to" in _reason(collector)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        collector.until(collector.ready, "ready, though nobody sent anything")
        assert door.send(composer.trace(3).request()).acknowledged
        assert collector.stop() == 0
