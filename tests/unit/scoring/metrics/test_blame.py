"""The step that broke a run, as a result among the others of its trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.analysis.stats.blame_model import BlameModel, shipped
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score
from pandaeval_collector.config import Config, load
from pandaeval_collector.exporters.attributes import encode_attributes
from pandaeval_collector.exporters.encode import spans
from pandaeval_collector.receivers.files import BadLine, Input
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.runs.settings import close_rules, evaluator
from pandaeval_collector.scoring.metrics.trace import blame
from pandaeval_collector.show.mcp.lines import step_lines
from pandaeval_collector.store.failures.failure import failure_of
from support.otlp_sink import attributes
from support.results import CODE, result

CAPTURES = Path(__file__).parents[3] / "golden" / "captures" / "openai_openllmetry"
STEP = {"span_id": "c" * 16, "kind": "tool", "tool": "get_order", "agent": None, "probability": 0.8, "reasons": []}
TOLD = Score(0.8, "a call", {"step": STEP, "candidates": [STEP]}, label="tool", span_ids=(STEP["span_id"],))


def results(name: str, config: Config | None = None) -> list[Result]:
    settings = config or load(None, {})
    with FileRun(evaluator(settings), close_rules(settings)) as run:
        for request in Input(str(CAPTURES / f"{name}.otlp.jsonl")).requests():
            assert not isinstance(request, BadLine)
            run.add(request)
        return list(run.results())


@pytest.fixture
def sure_from(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the probability from which a step is named."""

    def put(probability: float) -> None:
        model: BlameModel = replace(shipped(), sure=probability)
        monkeypatch.setattr(blame, "shipped", lambda: model)

    return put


def one(found: list[Result]) -> Result:
    [told] = [each for each in found if each.metric == "blame"]
    return told


class TestWhere:
    def test_a_failing_run_is_explained(self, sure_from: Any) -> None:
        sure_from(0.0)
        found = results("tool_loop")
        told, loop = one(found), next(each for each in found if each.metric == "tool_loop")
        assert isinstance(told.finding, Score)
        assert told.success is None
        assert told.finding.metadata["step"] == loop.finding.metadata["blame"]
        assert told.finding.span_ids == (told.finding.metadata["step"]["span_id"],)
        chances = [each["probability"] for each in told.finding.metadata["candidates"]]
        assert chances == sorted(chances, reverse=True)
        assert 1 <= len(chances) <= 3

    def test_a_step_that_is_not_sure_is_not_named(self, sure_from: Any) -> None:
        sure_from(1.01)
        found = results("tool_loop")
        told = one(found)
        assert (told.label, told.success) == ("unknown", None)
        assert isinstance(told.finding, Score)
        assert told.finding.span_ids == ()
        assert told.finding.metadata["step"] is None
        assert len(told.finding.metadata["candidates"]) == 3
        assert not any("blame" in each.finding.metadata for each in found)

    def test_a_good_run_has_none_unless_it_is_asked_for(self) -> None:
        assert not [each for each in results("good") if each.metric == "blame"]
        asked = load(None, {"PANDAEVAL_METRICS__ENABLED": "[trace.blame]"})
        assert one(results("good", asked)).finding.metadata["candidates"]

    def test_the_same_evidence_gives_the_same_id(self) -> None:
        assert one(results("tool_loop")).id == one(results("tool_loop")).id


class TestShown:
    FAILED = result("coherence", Score(0.1, "off topic", {"blame": STEP}, label="off_topic"), evaluator=CODE)

    def span(self) -> Span:
        told = result("blame", TOLD, evaluator=CODE, threshold=None)
        [made] = spans(encode_attributes([self.FAILED, told]), True)
        return Span.FromString(made)

    def test_the_evaluation_hangs_below_the_step(self) -> None:
        made = self.span()
        assert made.parent_span_id.hex() == STEP["span_id"]
        assert [link.span_id.hex() for link in made.links] == [STEP["span_id"]]

    def test_attributes_name_it(self) -> None:
        told = attributes(self.span().attributes)
        assert told["pandaeval.blame"] == "tool"
        assert told["pandaeval.blame.span_id"] == STEP["span_id"]
        assert told["pandaeval.blame.tool"] == "get_order"
        assert told["pandaeval.blame.probability"] == 0.8
        assert "pandaeval.blame.agent" not in told
        assert told["pandaeval.score.min"] == 0.1, "how sure it is is no score of the run"

    def test_unknown_is_told(self) -> None:
        unknown = result("blame", Score(0.3, "none is sure", {"step": None}, label="unknown"), evaluator=CODE)
        [made] = spans(encode_attributes([replace(unknown, threshold=None)]), True)
        told = attributes(Span.FromString(made).attributes)
        assert told["pandaeval.blame"] == "unknown"
        assert "pandaeval.blame.span_id" not in told

    def test_failures_are_grouped_by_its_tool(self) -> None:
        failure = failure_of(self.FAILED)
        assert failure is not None
        assert (failure.where, failure.is_known) == ("get_order", False)

    def test_steps_say_what_may_have_broken_the_run(self) -> None:
        span = {"id": STEP["span_id"], "depth": 0, "kind": "tool", "name": "get_order", "us": 1000}
        row = {
            "detail": {"spans": [span], "texts": [], "left_out": 0},
            "results": [result("blame", TOLD, evaluator=CODE, threshold=None).to_dict()],
        }
        assert "it broke the run (80%)" in "\n".join(step_lines(row))
