"""``close.score_rootless``: whether a trace is scored whose root never came."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.config import load
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.trace_files import TraceFiles
from support.made_traces import Composer, MadeTrace


def _trace() -> MadeTrace:
    return Composer(4).trace(7)


def _results(trace: MadeTrace, spans: Iterable[Span], score_rootless: str) -> list[Result]:
    config = load(None, {"PANDAEVAL_CLOSE__SCORE_ROOTLESS": score_rootless})
    with TraceFiles(close_rules(config)) as run:
        run.add(Request(False, trace.request(spans).SerializeToString()))
        return [each for each in replay(run, evaluator(config)) if each.unit.level == "trace"]


def test_it_is_scored_unless_told_otherwise() -> None:
    assert load(None, {}).close.score_rootless
    trace = _trace()
    assert any(isinstance(each.finding, Score) for each in _results(trace, trace.spans[:-1], "true"))


def test_behind_a_balancer_it_is_incomplete() -> None:
    trace = _trace()
    found = [each.finding for each in _results(trace, trace.spans[:-1], "false")]
    assert found
    assert all(isinstance(each, Unscored) and each.why == Why.INCOMPLETE_TRACE for each in found)


@pytest.mark.parametrize("spans", [7, 1])
def test_one_with_its_root_is_scored_as_ever(spans: int) -> None:
    trace = Composer(4).trace(spans)
    apart, always = (_results(trace, trace.spans, setting) for setting in ("false", "true"))
    assert [each.finding for each in apart] == [each.finding for each in always]
    assert not {each.id for each in apart} & {each.id for each in always}, "it is another evaluator"
