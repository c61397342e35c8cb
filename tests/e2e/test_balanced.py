"""Three collectors behind a real OpenTelemetry Collector that balances by trace id; under load one leaves for good and
one comes in addition. The one that leaves hands its open traces over; the one that comes tears some, and their parts
without a root are not scored."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pandaeval_lab.replay.files import Request
from support.balanced import Balanced, Load, Sender, first_half, missing, second_half
from support.collector import CollectorProcess, open_chunks, snapshot, standing
from support.kills import uninterrupted
from support.made_traces import Composer, MadeTrace
from support.otelcol import BINARY
from support.processors import until
from support.stored import stored_spans

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_SETTINGS = {
    "PANDAEVAL_CLOSE__QUIET": "2s",
    "PANDAEVAL_CLOSE__IDLE": "25s",
    "PANDAEVAL_SESSION__IDLE": "4s",
    "PANDAEVAL_CLOSE__SCORE_ROOTLESS": "false",
    "PANDAEVAL_STORE__ON_SHUTDOWN": "forward",
}
_TORN = "incomplete_trace"
_ACROSS = "trace.loop_detection"
"""What reads other traces of the same session, which may be at another collector."""


@pytest.fixture
def balanced(tmp_path: Path) -> Iterator[Balanced]:
    if not BINARY.exists():
        pytest.skip(f"needs {BINARY}: python tests/support/programs.py otelcol")
    if missing():
        pytest.skip(f"needs {missing()}")
    with Balanced(tmp_path, _SETTINGS) as made:
        yield made


def test_one_leaves_and_one_comes_under_load(balanced: Balanced, tmp_path: Path) -> None:
    composer = Composer(61)
    over_leaving, over_coming = ([composer.trace(6) for _ in range(60)] for _ in range(2))
    first, second, leaving = (balanced.add() for _ in range(3))
    balanced.tell(first, second, leaving)
    balanced.open()
    with (
        contextlib.closing(Sender(balanced.balancer.grpc)) as sender,
        Load(balanced.balancer.grpc, 62) as load,
    ):
        sender.send([(trace, first_half(trace)) for trace in over_leaving])
        leaving.until(lambda: _stored(leaving) > 30, "busy")
        assert leaving.stop() == 0, leaving.log()  # the balancer still sends to it, what it hands over too
        balanced.tell(first, second)
        sender.send([(trace, second_half(trace)) for trace in over_leaving])
        sender.send([(trace, first_half(trace)) for trace in over_coming])
        stayed = (first, second)
        until(lambda: _have(over_coming, stayed), "the first halves stored", 60)
        coming = balanced.add()
        balanced.tell(first, second, coming)
        coming.until(lambda: _stored(coming) > 30, "busy", 120)
        sender.send([(trace, second_half(trace)) for trace in over_coming])
    running = (first, second, coming)
    for each in running:
        each.until(each.at_rest, "at rest", 200)
        assert each.gauge("accounting_residual") == 0
    until(lambda: sum(map(_counted_torn, running)) > 0, "torn traces in the metric, which begins with 0", 120)
    torn = _look_at_the_stores(balanced.collectors, sender.acknowledged | load.acknowledged, tmp_path)
    assert "handed over" in leaving.log()
    assert {trace.trace_id for trace in over_coming} & torn.keys(), "no trace was torn: nothing is shown"
    assert not {trace.trace_id for trace in over_leaving} & torn.keys(), "what a collector hands over stays whole"
    _look_at_the_torn(torn)
    _look_at_the_results(balanced.collectors, over_leaving)


def _stored(collector: CollectorProcess) -> int:
    return collector.counts()["spans", "stored", ""]


def _counted_torn(collector: CollectorProcess) -> float:
    """What its metric says of results that are missing because a trace was incomplete."""
    return sum(value for labels, value in collector.series("evaluations_total") if labels.get("pandaeval_why") == _TORN)


def _have(traces: Sequence[MadeTrace], collectors: Sequence[CollectorProcess]) -> bool:
    found: set[bytes] = set()
    for each in collectors:
        with each.database() as database:
            found |= {row[0] for row in database.execute("SELECT DISTINCT trace_id FROM chunks")}
    return found >= {trace.trace_id for trace in traces}


def _look_at_the_stores(
    collectors: Sequence[CollectorProcess], acknowledged: set[tuple[bytes, bytes]], scratch: Path
) -> dict[bytes, list[CollectorProcess]]:
    """Every span that was answered for lies with one collector, in a decided trace. Returns where the traces lie that
    lie with several."""
    found: dict[bytes, list[CollectorProcess]] = defaultdict(list)
    spans: dict[tuple[bytes, bytes], int] = defaultdict(int)
    for each in collectors:
        if each.running():
            assert each.stop() == 0, each.log()
        with snapshot(each.data, scratch / "scratch") as database:
            assert not open_chunks(database)
            stored = stored_spans(database)
        for key in stored:
            spans[key] += 1
        for trace_id in {trace_id for trace_id, _ in stored}:
            found[trace_id].append(each)
    assert acknowledged <= spans.keys(), f"{len(acknowledged - spans.keys())} acknowledged spans are lost"
    assert max(spans.values()) == 1, "spans lie with two collectors"
    return {trace_id: where for trace_id, where in found.items() if len(where) > 1}


def _look_at_the_torn(torn: dict[bytes, list[CollectorProcess]]) -> None:
    """At most one part, the one that has the root, is scored; the others are said to be incomplete, and counted so."""
    for trace_id, where in torn.items():
        parts = [_about(trace_id, each) for each in where]
        unscored = [part for part in parts if {result["outcome"] for result in part} == {"unscored"}]
        assert len(unscored) >= len(parts) - 1
        assert sum(any(result["why"] == _TORN for result in part) for part in unscored) >= len(parts) - 1


def _look_at_the_results(collectors: Sequence[CollectorProcess], whole: Sequence[MadeTrace]) -> None:
    """No two collectors say something under one id, and what was handed over is scored as if nothing had happened."""
    ids = [{result["id"] for result in each.results() if result["level"] != "session"} for each in collectors]
    assert sum(len(each) for each in ids) == len(set().union(*ids)), "something was scored twice under one content"
    uncut = uninterrupted(Request(False, trace.request().SerializeToString()) for trace in whole)
    expected = {key: score for key, (_, score) in uncut.items() if _is_own(*key, whole)}
    said = standing([result for each in collectors for result in each.results()])
    assert {key: result["score"] for key, result in said.items() if _is_own(*key, whole)} == expected


def _is_own(unit: str, metric: str, traces: Sequence[MadeTrace]) -> bool:
    """Whether this is a result about one of these traces that rests on nothing else."""
    return metric.startswith("trace.") and metric != _ACROSS and bytes.fromhex(unit) in {t.trace_id for t in traces}


def _about(trace_id: bytes, collector: CollectorProcess) -> list[dict[str, Any]]:
    """What a collector says in the end about a trace."""
    return [
        result
        for (unit, metric), result in collector.standing().items()
        if unit == trace_id.hex() and metric.startswith("trace.")
    ]
