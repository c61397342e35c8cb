"""External recordings through all judged metrics."""

from __future__ import annotations

import lzma
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess
from support.judge import JudgeServer
from support.judged_files import NAMES, Result, behave, environ, evaluated, of_judges, send

MOST_CALLS = 9
SHARED = Path(__file__).parents[2].parent / "shared"
REAL = sorted((SHARED / "data").glob("*/traces.jsonl.xz"))
OF_EACH = 5
"""Requests drawn per set, each with at least one trace."""

needs_captures = pytest.mark.skipif(not (SHARED / "captures").is_dir(), reason=f"there are no captures in {SHARED}")
needs_real_runs = pytest.mark.skipif(not REAL, reason=f"there are no real runs in {SHARED / 'data'}")


@pytest.fixture
def drawn(tmp_path: Path) -> list[Path]:
    """Return a fixed sample, with a file per set."""
    chance, files = random.Random(20), []
    for path in REAL:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            chosen = chance.sample(lines.readlines(), OF_EACH)
        files.append(tmp_path / f"{path.parent.name}.otlp.jsonl")
        files[-1].write_text("".join(chosen), encoding="utf-8")
    return files


@pytest.mark.slow
@needs_captures
def test_external_captures_are_judged_by_all_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    results, heads = evaluated(sorted((SHARED / "captures").glob("*/*.otlp.jsonl")), monkeypatch)
    assert {each["metric"] for each in of_judges(results)} == NAMES
    assert max(heads.values()) <= MOST_CALLS


@pytest.mark.slow  # fast variant: tests/integration/test_judged_metrics.py
@needs_real_runs
def test_real_runs_are_judged_from_files(drawn: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    results, heads = evaluated(drawn, monkeypatch)
    judged = of_judges(results)
    for trace_id in {each["trace_id"] for each in judged}:
        assert {each["metric"] for each in judged if each["trace_id"] == trace_id} == NAMES
    assert len({each["trace_id"] for each in judged if each["outcome"] == "scored"}) >= len(drawn) * OF_EACH // 2
    assert max(heads.values()) <= MOST_CALLS


@needs_real_runs
@pytest.mark.slow
def test_a_running_collector_judges_real_runs_like_files(
    drawn: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _told(of_judges(evaluated(drawn, monkeypatch)[0]))
    with JudgeServer(behave) as server, CollectorProcess(tmp_path / "run", environ(server)) as collector:
        collector.start()
        send(collector, drawn)
        collector.until(lambda: _told(of_judges(collector.results())).keys() >= expected.keys(), "judged all of them")
        assert _told(of_judges(collector.results())) == expected
        assert collector.stop() == 0


def _told(results: Iterable[Result]) -> dict[tuple[str, str], Any]:
    fields = ("id", "outcome", "score", "why")
    return {(each["trace_id"], each["metric"]): [each[name] for name in fields] for each in results}
