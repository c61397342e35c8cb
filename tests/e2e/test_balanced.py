"""Balanced collectors leave and join under load without loss."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.balanced import Balanced, Load, Sender, first_half, missing, second_half
from support.collector import CollectorProcess, open_chunks, snapshot
from support.made_traces import Composer, MadeTrace
from support.otelcol import BINARY
from support.processors import until
from support.stored import stored_spans

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_SETTINGS = {
    "PANDAEVAL_CLOSE__QUIET": "2s",
    "PANDAEVAL_CLOSE__IDLE": "25s",
    "PANDAEVAL_SESSION__IDLE": "4s",
    "PANDAEVAL_STORE__ON_SHUTDOWN": "decide",
}


@pytest.fixture
def balanced(tmp_path: Path) -> Iterator[Balanced]:
    if not BINARY.exists():
        pytest.skip(f"needs {BINARY}: python tests/support/programs.py otelcol")
    if missing():
        pytest.skip(f"needs {missing()}")
    with Balanced(tmp_path, _SETTINGS) as made:
        yield made


def test_no_span_is_lost_if_collectors_leave_and_join_under_load(balanced: Balanced, tmp_path: Path) -> None:
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
        assert leaving.stop() == 0, leaving.log()  # the balancer still sends to it
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
    torn = _look_at_the_stores(balanced.collectors, sender.acknowledged | load.acknowledged, tmp_path)
    assert {trace.trace_id for trace in over_coming} & torn.keys(), "no trace was split, so the test proves nothing"
    ids = [{result["id"] for result in each.results() if result["level"] != "session"} for each in balanced.collectors]
    assert sum(map(len, ids)) == len(set().union(*ids)), "two collectors scored the same content"


def _stored(collector: CollectorProcess) -> int:
    return collector.counts()["spans", "stored", ""]


def _have(traces: Sequence[MadeTrace], collectors: Sequence[CollectorProcess]) -> bool:
    found: set[bytes] = set()
    for each in collectors:
        with each.database() as database:
            found |= {row[0] for row in database.execute("SELECT DISTINCT trace_id FROM chunks")}
    return found >= {trace.trace_id for trace in traces}


def _look_at_the_stores(
    collectors: Sequence[CollectorProcess], acknowledged: set[tuple[bytes, bytes]], scratch: Path
) -> dict[bytes, list[CollectorProcess]]:
    """Check that every acknowledged span is decided once; return split traces."""
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
    assert max(spans.values()) == 1, "two collectors stored the same span"
    return {trace_id: where for trace_id, where in found.items() if len(where) > 1}
