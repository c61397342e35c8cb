"""Recognition of our own output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.pipeline.accounting import residual
from pandaeval_otel.normal.spans import dialects
from pandaeval_otel.wire.own_output import PLACES
from pandaeval_otel.wire.splitting import OWN_SCOPE, split_logs, split_traces
from support.line import RunningPipeline
from support.made_traces import START_NS, Composer, MadeTrace
from support.own_output import Output, output_about

QUIET = 11.0


@pytest.fixture(scope="module")
def output() -> Output:
    composer = Composer(7)
    return output_about([composer.trace(6) for _ in range(5)])


def own_spans(output: Output) -> list[Span]:
    return list(output.traces.resource_spans[0].scope_spans[0].spans)


def pair(key: str, value: str = "x") -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


class TestOwnOutput:
    def test_everything_a_collector_sends_is_recognized(self, output: Output) -> None:
        spans, logs = split_traces(output.traces.SerializeToString()), split_logs(output.logs.SerializeToString())
        names = {span.name for span in own_spans(output)}
        assert {name.split()[0] for name in names} == {"✓", "evaluate"}, names
        for split in (spans, logs):
            assert split.decoded == split.own_output > 0
            assert (split.fragments, split.claimed) == ([], 0)

    def test_is_recognized_with_attributes_that_pipelines_add(self, output: Output) -> None:
        changed = Output(type(output.traces)(), type(output.logs)())
        changed.traces.CopyFrom(output.traces)
        for span in own_spans(changed):
            span.attributes.extend([pair("k8s.pod.name"), pair("deployment.environment")])
            span.trace_state, span.flags = "a=b", 0
        split = split_traces(changed.traces.SerializeToString())
        assert split.own_output == split.decoded

    def test_no_dialect_reads_attributes_that_pipelines_add(self) -> None:
        assert not PLACES & {root for dialect in dialects() for root in dialect.roots}


def elsewhere(span: Span) -> None:
    span.span_id = b"otherone"


def as_a_tool(span: Span) -> None:
    span.attributes.append(pair("gen_ai.tool.name"))


def with_arguments(span: Span) -> None:
    span.events[0].attributes.append(pair("gen_ai.tool.call.arguments"))


def of_another_result(span: Span) -> None:
    for each in span.events[0].attributes:
        if each.key == "pandaeval.result.id":
            each.value.string_value = "0" * 32


def without_results(span: Span) -> None:
    del span.events[:]


def by_another_name(span: Span) -> None:
    span.name = "execute_tool delete_everything"


def with_a_link_that_says_more(span: Span) -> None:
    span.links.add(attributes=[pair("input.value")])


class TestClaimedOwnOutput:
    @pytest.mark.parametrize(
        "change",
        [
            elsewhere,
            as_a_tool,
            with_arguments,
            of_another_result,
            without_results,
            by_another_name,
            with_a_link_that_says_more,
        ],
    )
    def test_a_span_that_differs_from_own_output_is_kept(self, output: Output, change: Callable[[Span], None]) -> None:
        request = type(output.traces)()
        request.CopyFrom(output.traces)
        change(request.resource_spans[0].scope_spans[0].spans[0])
        split = split_traces(request.SerializeToString())
        assert (split.claimed, split.own_output) == (1, split.decoded - 1)
        assert sum(len(fragment.items) for fragment in split.fragments) == 1

    def test_a_log_record_with_extra_content_is_not_own_output(self, output: Output) -> None:
        request = type(output.logs)()
        request.CopyFrom(output.logs)
        first, second = request.resource_logs[0].scope_logs[0].log_records[:2]
        first.attributes.append(pair("gen_ai.input.messages"))
        second.body.string_value = "text"
        split = split_logs(request.SerializeToString())
        assert (split.claimed, split.own_output) == (2, split.decoded - 2)

    async def test_agent_spans_in_our_scope_are_scored_and_counted_as_claims(self, tmp_path: Path) -> None:
        trace = Composer(3).trace(6)
        request = trace.request()
        request.resource_spans[0].scope_spans[0].scope.name = OWN_SCOPE
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.traces(request.SerializeToString())
            assert line.telemetry.counts()["pandaeval.claims", "own_output", "spans"] == 6
            assert line.telemetry.total("pandaeval.spans", "stored") == 6
            await line.settle()
            assert line.results_of(trace)
            assert residual(line.telemetry, line.pipeline.open_items) == 0


class TestFedBack:
    async def test_own_output_sent_back_is_counted_and_opens_no_trace(self, tmp_path: Path) -> None:
        composer = Composer(7)
        traces = [composer.trace(6) for _ in range(5)]
        output = output_about(traces)
        async with RunningPipeline(tmp_path) as line:
            for trace in traces:
                await line.send(trace)
            await line.wait(QUIET - 1)
            await line.pipeline.traces(output.traces.SerializeToString())
            await line.pipeline.logs(output.logs.SerializeToString())
            await line.wait(2)
            assert not line.pipeline.open_traces
            assert line.telemetry.total("pandaeval.spans", "own_output") == len(own_spans(output))
            assert not line.telemetry.total("pandaeval.claims")
            await line.settle()
            assert {each["revision"] for each in line.results() if each["level"] == "trace"} <= {1, 2}
            assert {each["late_spans"] for each in line.results()} == {0}
            assert residual(line.telemetry, line.pipeline.open_items) == 0


def looping(around: dict[str, Any] | None = None, on_tools: dict[str, Any] | None = None) -> MadeTrace:
    """Return an agent loop with optional parent attributes ``around`` and ``on_tools``."""
    trace_id = b"looping!" * 2
    spans = [span(trace_id, b"rootroot", b"", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, 0, 100)]
    parent = b"rootroot"
    if around is not None:
        parent = b"scorings"
        spans.append(span(trace_id, parent, b"rootroot", "score", around, 1, 90))
    for number in range(8):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.arguments": '{"q": "same"}',
            "gen_ai.tool.call.result": "nothing",
            **(on_tools or {}),
        }
        at = 10 * number + 2
        spans.append(span(trace_id, b"tool%04d" % number, parent, "execute_tool search", attributes, at, at + 5))
    return MadeTrace(trace_id, None, "shop", tuple(spans))


def span(
    trace_id: bytes, span_id: bytes, parent: bytes, name: str, attributes: dict[str, Any], start: int, end: int
) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        start_time_unix_nano=START_NS + start * 10**6,
        end_time_unix_nano=START_NS + end * 10**6,
        attributes=[pair(key, str(value)) for key, value in attributes.items()],
    )


class TestAgentSpansThatLookLikeEvaluations:
    async def loop(self, folder: Path, trace: MadeTrace, scope: str = "made.by.code") -> tuple[float, int]:
        request = trace.request()
        request.resource_spans[0].scope_spans[0].scope.name = scope
        async with RunningPipeline(folder) as line:
            await line.pipeline.traces(request.SerializeToString())
            await line.settle()
            [found] = line.of(trace, "tool_loop")
            return found["score"], found["metadata"]["calls"]

    @pytest.mark.parametrize(
        ("trace", "scope"),
        [
            (looping(), OWN_SCOPE),
            (looping({"gen_ai.evaluation.name": "x"}), "x"),
            (looping({"gen_ai.operation.name": "evaluation"}), "x"),
            (looping({"openinference.span.kind": "EVALUATOR"}), "x"),
            (looping({"gen_ai.evaluation.name": "x"}), OWN_SCOPE),
            (looping(on_tools={"gen_ai.evaluation.name": "x", "gen_ai.evaluation.score.value": "1"}), "x"),
            (looping(on_tools={"gen_ai.operation.name": "", "gen_ai.evaluation.name": "x"}), "x"),
            (looping(on_tools={"openinference.span.kind": "EVALUATOR", "tool.name": "search"}), "x"),
        ],
    )
    async def test_are_scored_like_plain_agent_spans(self, tmp_path: Path, trace: MadeTrace, scope: str) -> None:
        plain = await self.loop(tmp_path / "plain", looping())
        assert plain[1] == 8
        assert plain[0] < 0.5
        assert await self.loop(tmp_path / "claimed", trace, scope) == plain
