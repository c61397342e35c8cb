"""The process that answers what is read, beside a running collector: it comes with the first question, and goes with
the collector, however that ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support.collector import CollectorProcess, children_of
from support.processors import until


def readers(collector: CollectorProcess) -> list[int]:
    return children_of(collector, b"read_worker")


def asked(collector: CollectorProcess) -> int:
    return httpx.get(f"{collector.http}/api/v1/overview", timeout=60.0).status_code


@pytest.mark.parametrize("end", [CollectorProcess.kill, CollectorProcess.stop])
def test_it_comes_with_the_first_question_and_goes_with_the_collector(
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


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, {"PANDAEVAL_SERVER__READ_PROCESS": "false"}, own_children=True) as collector:
        collector.start()
        assert asked(collector) == 200
        assert not readers(collector)
