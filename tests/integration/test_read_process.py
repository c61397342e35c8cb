"""The reader process starts on demand and ends with the collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support.collector import CollectorProcess, children_of
from support.made_traces import Composer
from support.processors import until
from support.senders import HttpSender


def readers(collector: CollectorProcess) -> list[int]:
    return children_of(collector, b"reader_main")


def asked(collector: CollectorProcess) -> int:
    return httpx.get(f"{collector.http}/api/v1/overview", timeout=60.0).status_code


@pytest.mark.parametrize("end", [CollectorProcess.kill, CollectorProcess.stop])
def test_the_reader_starts_with_the_first_request_and_ends_with_the_collector(
    tmp_path: Path, end: Callable[[CollectorProcess], object]
) -> None:
    with CollectorProcess(tmp_path, own_children=True) as collector:
        collector.start()
        assert not readers(collector)
        assert asked(collector) == 200
        [reader] = readers(collector)
        assert asked(collector) == 200
        assert readers(collector) == [reader]
        command = Path(f"/proc/{reader}/cmdline")
        assert end(collector) in (0, None)
        until(lambda: not command.exists() or not command.read_bytes(), "without its reader")


def test_numpy_is_loaded_in_the_reader_and_not_in_the_main_process(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, fresh=True) as collector:
        collector.start()
        door = HttpSender(collector.http)
        assert door.send(Composer(3).trace().request()).acknowledged
        door.close()
        collector.until(lambda: bool(collector.results()), "done with a trace", 120.0)
        asked = [f"{collector.http}{path}" for path in ("/", "/runbook", "/api/v1/traces", "/api/v1/metrics")]
        assert [httpx.get(each, timeout=60.0).status_code for each in asked] == [200] * len(asked)
        body = {"metrics": ["trace.tool_loop"]}
        assert httpx.post(f"{collector.http}/api/v1/runs", json=body, timeout=60.0).status_code == 201
        [reader] = readers(collector)
        assert collector.process is not None
        assert "/numpy/" in Path(f"/proc/{reader}/maps").read_text(), "otherwise this proves nothing"
        assert "/numpy/" not in Path(f"/proc/{collector.process.pid}/maps").read_text()
