"""Results of the blame metric: the first wrong step of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1 import trace_pb2

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.config import Config, load
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters.encode import encode_attributes
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.scoring.metric import Texts, TraceContext
from pandaeval_collector.scoring.metrics.trace.blame import METRIC
from pandaeval_collector.show.view.lines import step_lines
from pandaeval_collector.store.failures import failure_of
from pandaeval_lab.replay.files import BadLine, Input
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Kind, Message, Span, Text, Trace
from support.judged import call, trace
from support.otlp_sink import attributes
from support.results import CODE, result

CAPTURES = Path(__file__).parents[3] / "golden" / "captures" / "openai_openllmetry"
STEP = {"span_id": "c" * 16, "kind": "tool", "tool": "get_order", "agent": None, "reasons": ["found by grounding"]}
TOLD = Score(1.0, "a call", {"step": STEP, "candidates": [STEP]}, label="tool", span_ids=(STEP["span_id"],))


def results(name: str, config: Config | None = None) -> list[Result]:
    settings = config or load(None, {})
    with TraceFiles(close_rules(settings)) as run:
        for request in Input(str(CAPTURES / f"{name}.otlp.jsonl")).requests():
            assert not isinstance(request, BadLine)
            run.add(request)
        return list(replay(run, evaluator(settings)))


def one(found: list[Result]) -> Result:
    [told] = [each for each in found if each.metric == "blame"]
    return told


FIRST, SECOND, THIRD = IDS = tuple(str(at) * 16 for at in (1, 2, 3))
MADE = trace(calls=[call(at, span_id=id_) for at, id_ in enumerate(IDS, 1)])
SPANS = [Span(MADE.trace_id, id_, MADE.root_span_id, "a call", Kind.TOOL, at, at + 1) for at, id_ in enumerate(IDS)]
RUN = replace(MADE, spans=(*MADE.spans, *SPANS))


def blamed(run: Trace = RUN, /, **failing: tuple[str, ...]) -> Finding | None:
    return METRIC.evaluate(run, TraceContext(Texts({}, (), "none", None), 0.5, failing=failing))


class TestBlamedStep:
    def test_first_step_named_by_a_failing_metric_is_blamed(self) -> None:
        found = blamed(grounding=(THIRD, SECOND), response=(SECOND,))
        assert isinstance(found, Score)
        assert (found.value, found.span_ids, found.label) == (1.0, (SECOND,), "tool")
        assert found.metadata["step"]["reasons"] == ["found by grounding", "found by response"]
        assert found.metadata["candidates"] == [found.metadata["step"]]

    def test_steps_named_by_other_failing_metrics_are_candidates(self) -> None:
        found = blamed(grounding=(THIRD,), response=(FIRST,))
        assert isinstance(found, Score)
        assert [each["span_id"] for each in found.metadata["candidates"]] == [FIRST, THIRD]

    def test_first_repetition_of_a_loop_is_blamed(self) -> None:
        found = blamed(tool_loop=(FIRST, SECOND, THIRD))
        assert isinstance(found, Score)
        assert found.span_ids == (SECOND,)

    def test_first_call_of_a_loop_on_the_root_span_is_no_repetition(self) -> None:
        """Some programs report a call on the root span. The second call is then the first repetition."""
        again = [call(at, span_id=id_) for at, id_ in enumerate((MADE.root_span_id, FIRST, SECOND), 1)]
        run = replace(RUN, tool_calls=tuple(again))
        found = blamed(run, tool_loop=(MADE.root_span_id, FIRST, SECOND), tool_call_behavior_failure=(FIRST, SECOND))
        assert isinstance(found, Score)
        assert found.span_ids == (FIRST,)
        assert len(found.metadata["candidates"]) == 1
        assert found.reason == (
            "first wrong step: tool call 2 of 3, search (found by tool_loop, tool_call_behavior_failure)"
        )

    def test_failed_call_among_several_calls_of_a_model_call_is_blamed(self) -> None:
        asking = Span(MADE.trace_id, "4" * 16, MADE.root_span_id, "chat", Kind.LLM, 1, 2)
        right, wrong = call(1, span_id=asking.span_id, name="get_weather"), call(2, span_id=asking.span_id, name="pay")
        calls = (right, replace(wrong, error="card expired", result=None, has_result=False))
        found = blamed(replace(MADE, spans=(*MADE.spans, asking), tool_calls=calls), response=(asking.span_id,))
        assert isinstance(found, Score)
        assert found.metadata["step"]["tool"] == "pay"
        assert found.reason == "first wrong step: model call 1 of 1, which requested pay (found by response)"

    def test_model_call_that_gave_the_answer_is_blamed(self) -> None:
        said = (Message("assistant", (Text(RUN.output or ""),)),)
        answering = Span(RUN.trace_id, "4" * 16, RUN.root_span_id, "chat", Kind.LLM, 4, 5, output=said)
        run = replace(RUN, spans=(*RUN.spans, answering))
        found = blamed(run, grounding=(RUN.root_span_id,))
        assert isinstance(found, Score)
        assert (found.span_ids, found.label) == ((answering.span_id,), "llm")

    def test_inner_agent_is_blamed_if_it_has_no_steps(self) -> None:
        said = (Message("assistant", (Text(RUN.output or ""),)),)
        whole = Span(RUN.trace_id, "4" * 16, RUN.root_span_id, "helper", Kind.AGENT, 4, 8, output=said)
        inside = Span(RUN.trace_id, "5" * 16, whole.span_id, "chat", Kind.LLM, 5, 7, output=said)
        for more, named in (((whole,), whole), ((whole, inside), inside)):
            found = blamed(replace(RUN, spans=(*RUN.spans, *more)), grounding=(RUN.root_span_id,))
            assert isinstance(found, Score)
            assert found.span_ids == (named.span_id,)

    @pytest.mark.parametrize("output", [None, (Message("assistant", (Text("Part of it."),)),)])
    def test_model_call_is_blamed_if_its_output_is_missing_or_part_of_the_answer(
        self, output: tuple[Message, ...] | None
    ) -> None:
        answering = Span(RUN.trace_id, "4" * 16, RUN.root_span_id, "chat", Kind.LLM, 4, 5, output=output)
        run = replace(RUN, spans=(*RUN.spans, answering), output="Hello. Part of it. Bye.")
        found = blamed(run, grounding=(RUN.root_span_id,))
        assert isinstance(found, Score)
        assert found.span_ids == (answering.span_id,)

    @pytest.mark.parametrize("failing", [{}, {"coherence": (RUN.root_span_id,)}, {"coherence": ("f" * 16,)}])
    def test_no_step_is_blamed_if_no_finding_names_a_step(self, failing: dict[str, tuple[str, ...]]) -> None:
        assert blamed(**failing) is None


class TestRecordedRuns:
    def test_blame_of_a_failing_run_is_the_step_of_its_failed_metric(self) -> None:
        found = results("tool_loop")
        told, loop = one(found), next(each for each in found if each.metric == "tool_loop")
        assert isinstance(told.finding, Score)
        assert told.success is None
        assert told.finding.metadata["step"] == loop.finding.metadata["blame"]
        assert told.finding.span_ids == (told.finding.metadata["step"]["span_id"],)

    def test_good_run_has_no_blame_result(self) -> None:
        assert not [each for each in results("good") if each.metric == "blame"]

    def test_the_same_evidence_gives_the_same_id(self) -> None:
        assert one(results("tool_loop")).id == one(results("tool_loop")).id


class TestShown:
    FAILED = result("coherence", Score(0.1, "off topic", {"blame": STEP}, label="off_topic"), evaluator=CODE)

    def span(self) -> trace_pb2.Span:
        told = result("blame", TOLD, evaluator=CODE, threshold=None)
        [made] = spans(encode_attributes([self.FAILED, told]), True)
        return trace_pb2.Span.FromString(made)

    def test_evaluation_span_is_a_child_of_the_wrong_step(self) -> None:
        made = self.span()
        assert made.parent_span_id.hex() == STEP["span_id"]
        assert [link.span_id.hex() for link in made.links] == [STEP["span_id"]]

    def test_attributes_name_the_wrong_step(self) -> None:
        told = attributes(self.span().attributes)
        assert told["pandaeval.blame"] == "tool"
        assert told["pandaeval.blame.span_id"] == STEP["span_id"]
        assert told["pandaeval.blame.tool"] == "get_order"
        assert "pandaeval.blame.agent" not in told
        assert told["pandaeval.score.min"] == 0.1, "blame does not count as a score of the run"

    def test_failures_are_grouped_by_the_tool_of_the_wrong_step(self) -> None:
        failure = failure_of(self.FAILED)
        assert failure is not None
        assert (failure.where, failure.is_known) == ("get_order", False)

    def test_step_list_marks_the_first_wrong_step(self) -> None:
        span = {"id": STEP["span_id"], "depth": 0, "kind": "tool", "name": "get_order", "us": 1000}
        row = {
            "detail": {"spans": [span], "texts": [], "left_out": 0},
            "results": [result("blame", TOLD, evaluator=CODE, threshold=None).to_dict()],
        }
        assert "first wrong step: found by grounding" in "\n".join(step_lines(row))
