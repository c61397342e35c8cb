"""Stored session facts read back unchanged."""

from __future__ import annotations

import contextlib
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.pipeline.line.facts import TraceFacts, unpack
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.members import from_row, packed_answer, to_row
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import SessionTraceRow, Store, WriteSet
from pandaeval_otel.model import Trigger
from support.embedder import WordEmbedder

SILENT = (
    b'{"agent":"helper","service":"shop","environment":null,"span_id":"0000000000280001","response_id":"",'
    b'"sampled":true,"fragment":false,"digest":"808eeaaa21ffc68b901fa1237cfaabea","revision":1,"crashed":false,'
    b'"captured":false,"said":false,"embedder":null,"signals":{"coherence":{"outcome":"unscored","value":null,'
    b'"why":"no_content"},"tool_loop":{"outcome":"scored","value":0.25,"why":null}},'
    b'"evidence":{"loop_detection":"808eeaaa21ffc68b901fa1237cfaabea"}}'
)
CHAINED = (
    b'{"agent":"clerk","service":"desk","environment":"prod","span_id":"0000000000000102","response_id":"resp_2",'
    b'"sampled":false,"fragment":true,"digest":"d2","revision":3,"crashed":true,"captured":true,"said":true,'
    b'"embedder":"words","signals":{},"evidence":null,"responses":["resp_1","resp_2"],"continues":"resp_0",'
    b'"chained":true}'
)


def test_every_fact_of_a_stored_row_is_read() -> None:
    assert unpack(CHAINED) == TraceFacts(
        agent="clerk",
        service="desk",
        environment="prod",
        span_id="0000000000000102",
        response_id="resp_2",
        sampled=False,
        fragment=True,
        digest="d2",
        revision=3,
        crashed=True,
        captured=True,
        said=True,
        embedder="words",
        signals={},
        responses=("resp_1", "resp_2"),
        continues="resp_0",
        chained=True,
    )
    facts = unpack(SILENT)
    assert facts.signals["tool_loop"] == {"outcome": "scored", "value": 0.25, "why": None}
    assert (facts.environment, facts.responses, facts.linked, facts.chained) == (None, (), False, False)


@pytest.mark.parametrize("stored", [SILENT, CHAINED])
def test_a_row_is_unchanged_after_reading_and_storing_it_again(stored: bytes) -> None:
    facts = unpack(stored)
    assert facts.pack() == stored
    row = SessionTraceRow(b"\1" * 16, "s", 1, 2, stored, packed_answer("Done.", b"", "done"))
    assert to_row(from_row(row), "s") == row


def test_a_fact_of_a_newer_version_is_ignored() -> None:
    assert unpack(CHAINED[:-1] + b',"mood":"calm"}') == unpack(CHAINED)


@pytest.mark.parametrize("lost", ["agent", "digest", "signals", "revision"])
def test_a_row_without_a_required_fact_is_damaged(lost: str) -> None:
    kept = {name: value for name, value in orjson.loads(SILENT).items() if name != lost}
    with pytest.raises(TypeError, match=lost):
        unpack(orjson.dumps(kept))


def test_a_session_with_rows_of_an_earlier_version_is_scored(tmp_path: Path) -> None:
    answer = packed_answer("", b"", "")
    rows = [SessionTraceRow(bytes([n]) * 16, "s", n, n + 1, body, answer) for n, body in ((1, SILENT), (2, CHAINED))]
    with contextlib.closing(Store(tmp_path, "off")) as before:
        before.commit(WriteSet(session_traces=rows, touched={"s"})).result()
    with contextlib.closing(Store(tmp_path, "off")) as store:
        decision = Line(store.reads, Evaluator(WordEmbedder())).close_sessions(dict.fromkeys(["s"], Trigger.IDLE))
    assert decision.results
    for result in decision.results:
        assert (result.unit.agent, result.unit.service, result.unit.environment) == ("clerk", "desk", "prod")
        assert result.unit.trace_ids == tuple(
            f"{(bytes([n]) * 16).hex()}:{id_}" for n, id_ in ((1, "0000000000280001"), (2, "0000000000000102"))
        )
        assert result.unit.sampled
