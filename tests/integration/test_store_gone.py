"""A collector whose store is taken away, or cannot be written to, while senders keep it busy."""

from __future__ import annotations

import json
import resource
import shutil
import urllib.error
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess, open_chunks, snapshot
from support.made_traces import Composer
from support.oracle import Oracle, problems_of
from support.senders import GrpcDoor, HttpDoor

SLOW = {"PANDAEVAL_CLOSE__QUIET": "60s", "PANDAEVAL_CLOSE__IDLE": "60s", "PANDAEVAL_SESSION__IDLE": "60s"}


def readiness(collector: CollectorProcess) -> dict[str, Any]:
    """What a ``/readyz`` that says no says."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        collector._get("/readyz")
    with refused.value as answer:
        assert answer.status == 503
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(shutil.rmtree, id="directory", marks=pytest.mark.slow),
        pytest.param(lambda data: (data / "pandaeval.db").unlink(), id="file", marks=pytest.mark.slow),
        pytest.param(lambda data: (data / "pandaeval.db-wal").unlink(), id="log"),
    ],
)
def test_nothing_acknowledged_is_lost_with_the_files_of_the_store(tmp_path: Path, take: Callable[[Path], None]) -> None:
    with (
        CollectorProcess(tmp_path, SLOW) as collector,
        Oracle(collector.grpc, collector.http, seed=5) as oracle,
    ):
        collector.start()
        collector.until(lambda: len(oracle.told.acknowledged) > 100, "busy")
        take(collector.data)
        assert collector.wait(60) == 1
        assert "nothing is accepted any more" in collector.log()
        assert "nothing is lost" in collector.log()
        with snapshot(collector.data, tmp_path / "scratch") as database:
            assert problems_of(oracle.told, database) == []
        before = len(oracle.told.acknowledged)
        collector.start()
        collector.until(lambda: len(oracle.told.acknowledged) > before, "busy again")
        oracle.stop()
        assert collector.stop() == 0
        with snapshot(collector.data, tmp_path / "scratch") as database:
            assert problems_of(oracle.told, database) == []
        assert oracle.told.refused == []
        assert "acknowledged data is missing" not in collector.log_file.read_text()


def test_senders_and_probes_are_told_why(tmp_path: Path) -> None:
    """The collector cannot save what it holds, so it stays, and says what is wrong."""
    composer = Composer(1)
    with CollectorProcess(tmp_path, SLOW) as collector:
        collector.start()
        with closing(GrpcDoor(collector.grpc)) as grpc, closing(HttpDoor(collector.http)) as http:
            acknowledged = composer.trace(3)
            assert grpc.send(acknowledged.request()).acknowledged
            shutil.rmtree(collector.data)
            collector.data.write_text("in the way")
            for door in (grpc, http):
                answer = door.send(composer.trace(3).request())
                assert not answer.acknowledged
                assert not answer.refused
                assert (
                    "the collector has to be restarted: pandaeval.db was moved, removed or replaced" in answer.message
                )
        collector.until(lambda: "cannot be saved" in collector.log(), "without room")
        assert collector.running()
        said = readiness(collector)
        assert (said["store"], said["grpc"]) == (False, True)
        assert "pandaeval.db was moved, removed or replaced" in said["reason"]
        assert collector.counts()["store_errors", "gone", ""] == 1
        collector.data.unlink()
        assert collector.stop() == 0, "what it holds is saved when it is stopped"
        with snapshot(collector.data, tmp_path / "scratch") as database:
            assert acknowledged.trace_id in {trace_id for trace_id, _ in open_chunks(database)}


def test_it_is_not_ready_while_the_disk_takes_nothing(tmp_path: Path) -> None:
    composer = Composer(1)
    with CollectorProcess(tmp_path, SLOW) as collector, closing(GrpcDoor(collector.grpc)) as door:
        collector.start()
        assert door.send(composer.trace(3).request()).acknowledged
        assert collector.process is not None
        pid, (_, most) = collector.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        full = (collector.data / "pandaeval.db-wal").stat().st_size
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (full, most))  # no file grows beyond
        answers = [door.send(composer.trace(3).request()) for _ in range(3)]
        assert not any(answer.acknowledged or answer.refused for answer in answers)
        assert "cannot be written to" in readiness(collector)["reason"]
        collector.until(lambda: collector.counts()["store_errors", "probe", ""] >= 2, "trying")
        assert "cannot be written to" in readiness(collector)["reason"]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        collector.until(collector.ready, "ready, though nobody sent anything")
        assert door.send(composer.trace(3).request()).acknowledged
        assert collector.stop() == 0
