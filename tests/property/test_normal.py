"""Traces do not depend on the order, batches, duplicates or places of spans and tool calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from pandaeval_otel.model import Captured, Kind, Message, Part, Span, ToolRequest, ToolResponse, Trace, Usage
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import Closing, build_trace, trace_of
from tests.support.builders import TRACE_ID, Spans, gives, says, user
from tests.support.examples import examples

# --- spans as they arrive --------------------------------------------------------------------------------------------

IDS = st.integers(1, 8)
OPERATIONS = st.sampled_from(["chat", "invoke_agent", "execute_tool", "invoke_workflow", "execute_task", ""])
WORDS = st.sampled_from(["", "hi", "hello", "Weather in Oslo?", '{"a": 1}', "Größe"])
CALLS = st.fixed_dictionaries({"type": st.just("tool_call"), "name": st.sampled_from(["a", "b", ""]), "id": WORDS})
RESPONSES = st.fixed_dictionaries({"type": st.just("tool_call_response"), "id": WORDS, "response": WORDS})
TEXTS = st.fixed_dictionaries({"type": st.just("text"), "content": WORDS})
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "tool", "system"]),
            "parts": st.lists(TEXTS | CALLS | RESPONSES, max_size=3),
        }
    ),
    max_size=4,
).map(json.dumps)
ATTRIBUTES = st.fixed_dictionaries(
    {"gen_ai.operation.name": OPERATIONS},
    optional={
        "gen_ai.input.messages": MESSAGES,
        "gen_ai.output.messages": MESSAGES,
        "gen_ai.agent.name": WORDS,
        "gen_ai.tool.name": st.sampled_from(["a", "b", "x-a"]),
        "gen_ai.tool.call.id": WORDS,
        "gen_ai.tool.call.arguments": WORDS,
        "gen_ai.response.id": WORDS,
        "gen_ai.conversation.id": WORDS,
        "error.type": WORDS,
    },
)


@st.composite
def otlp_spans(draw: st.DrawFn) -> OtlpSpan:
    start = draw(st.integers(1, 6))
    span = OtlpSpan(
        trace_id=bytes.fromhex(TRACE_ID),
        span_id=draw(IDS).to_bytes(8, "big"),
        parent_span_id=draw(st.integers(0, 10)).to_bytes(8, "big"),
        name=draw(st.sampled_from(["chat m", "execute_tool a", "run"])),
        start_time_unix_nano=start,
        end_time_unix_nano=start + draw(st.integers(0, 6)),
    )
    for key, value in draw(ATTRIBUTES).items():
        span.attributes.add(key=key).value.string_value = value
    return span


@st.composite
def log_records(draw: st.DrawFn) -> LogRecord:
    record = LogRecord(
        trace_id=bytes.fromhex(TRACE_ID),
        span_id=draw(IDS).to_bytes(8, "big"),
        time_unix_nano=draw(st.integers(1, 4)),
        event_name=draw(st.sampled_from(["gen_ai.user.message", "gen_ai.choice"])),
    )
    record.body.kvlist_value.values.add(key="content").value.string_value = draw(WORDS)
    return record


def chunk(items: Iterable[OtlpSpan | LogRecord], logs: bool) -> tuple[bool, bytes]:
    if logs:
        log_request = ExportLogsServiceRequest()
        log_request.resource_logs.add().scope_logs.add().log_records.extend(items)  # type: ignore[arg-type]
        return True, log_request.SerializeToString()
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(items)  # type: ignore[arg-type]
    return False, request.SerializeToString()


# Log records of one time keep the order of their arrival, so each record has a time of its own.
LOGS = st.lists(log_records(), max_size=4, unique_by=lambda record: record.time_unix_nano)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(otlp_spans(), min_size=1, max_size=10), LOGS, st.data())
def test_trace_does_not_depend_on_order_batches_or_duplicates(
    spans: list[OtlpSpan], logs: list[LogRecord], data: st.DataObject
) -> None:
    whole = build_trace(gather([chunk(spans, False), chunk(logs, True)]))
    repeated = data.draw(st.lists(st.sampled_from(spans), max_size=4))
    pieces = [chunk([span], False) for span in (*spans, *repeated)] + [chunk([log], True) for log in logs]
    assert build_trace(gather(data.draw(st.permutations(pieces)))) == whole
    assert whole is not None


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(otlp_spans(), min_size=1, max_size=6), otlp_spans())
def test_an_additional_span_changes_the_digest(spans: list[OtlpSpan], other: OtlpSpan) -> None:
    known = {span.span_id for span in spans}
    other.span_id = next(number.to_bytes(8, "big") for number in range(1, 10) if number.to_bytes(8, "big") not in known)
    assert gather([chunk(spans, False)]).digest != gather([chunk([*spans, other], False)]).digest


# --- any tree --------------------------------------------------------------------------------------------------------

KINDS = st.sampled_from(list(Kind))
REQUESTS = st.builds(ToolRequest, st.sampled_from(["a", "b", "final_answer", ""]), st.none() | WORDS, WORDS)
PARTS = st.one_of(REQUESTS, st.builds(ToolResponse, WORDS, WORDS, st.sampled_from(["", "a"])))
SAID = st.lists(
    st.builds(
        lambda role, parts, text: Message(role, (*parts, *says(text).parts)),
        st.sampled_from(["user", "assistant", "tool", "system", ""]),
        st.lists(PARTS, max_size=2),
        WORDS,
    ),
    max_size=3,
).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> list[Span]:
    """Draw spans with any parents."""
    size = draw(st.integers(1, 12))
    return [
        Span(
            trace_id=TRACE_ID,
            span_id=f"{number:016x}",
            parent_id=draw(st.sampled_from(["", "f" * 16, *(f"{other:016x}" for other in range(size))])),
            name=f"span {number}",
            kind=draw(KINDS),
            start_ns=draw(st.integers(1, 5)),
            end_ns=draw(st.integers(1, 9)),
            error=draw(st.none() | st.just("boom")),
            input=draw(st.none() | SAID),
            output=draw(st.none() | SAID),
            tool_name=draw(st.sampled_from(["a", "x-a", "b", "final_answer", ""])),
            tool_call_id=draw(WORDS),
            arguments=draw(st.none() | st.builds(Captured, WORDS)),
            result=draw(st.none() | st.builds(Captured, WORDS)),
            usage=draw(st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
            response_id=draw(WORDS),
            agent_name=draw(WORDS),
            session_ids=draw(st.sampled_from([(), ((2, "s"),), ((3, "t"), (4, "u"))])),
        )
        for number in range(size)
    ]


@settings(max_examples=examples(100), deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_spans_with_any_parents_make_the_same_trace_in_any_order(spans: list[Span], random: Any) -> None:
    trace = trace_of(spans, "digest", Closing())
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert trace_of(shuffled, "digest", Closing()) == trace
    assert len({span.span_id for span in trace.spans}) == len(trace.spans)
    assert {span.span_id for span in trace.spans} <= {span.span_id for span in spans}
    assert trace.input == (trace.turns[0].user if trace.turns else None)


@settings(max_examples=examples(100), deadline=None)
@given(graphs())
def test_every_tool_span_gives_one_tool_call(spans: list[Span]) -> None:
    trace = trace_of(spans, "digest", Closing())
    run = [span.span_id for span in trace.spans if span.kind is Kind.TOOL]
    tools = {span.span_id for span in spans if span.kind is Kind.TOOL}
    assert Counter(call.span_id for call in trace.tool_calls if call.span_id in tools) == Counter(run)


# --- a run in many recordings ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """A recorded run. ``ids``: none, per call, or repeated; ``history``: calls in inputs."""

    ids: str
    on_spans: bool
    span_ids: bool
    span_arguments: bool
    span_results: bool
    in_outputs: bool
    history: str

    @property
    def has_calls(self) -> bool:
        return self.on_spans or self.in_outputs or self.history == "whole"

    @property
    def has_results(self) -> bool:
        if self.history == "new" and self.ids == "unique" and self.in_outputs:
            return True
        return (self.on_spans and self.span_results) or self.history == "whole"


TOLD = st.builds(
    Told,
    ids=st.sampled_from(["none", "unique", "repeated"]),
    on_spans=st.booleans(),
    span_ids=st.booleans(),
    span_arguments=st.booleans(),
    span_results=st.booleans(),
    in_outputs=st.booleans(),
    history=st.sampled_from(["whole", "new", "none"]),
)
STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from(["search", "book"]), st.integers(0, 2)), min_size=1, max_size=3),
    min_size=1,
    max_size=5,
)


@settings(max_examples=examples(100), deadline=None)
@given(STEPS, TOLD)
def test_tool_calls_are_read_once_and_in_order_from_spans_and_messages(
    steps: list[list[tuple[str, int]]], told: Told
) -> None:
    trace = played(steps, told)
    made = [(name, {"n": number}) for step in steps for name, number in step]
    if not told.has_calls:
        assert trace.tool_calls == ()
        return
    assert [call.name for call in trace.tool_calls] == [name for name, _ in made]
    known = [(call.name, call.arguments) for call in trace.tool_calls if call.has_arguments]
    if told.in_outputs or told.history == "whole" or told.span_arguments:
        assert known == made
    if told.has_results:
        assert [call.result for call in trace.tool_calls] == list(range(len(made)))
    assert trace.output == "done"


def played(steps: list[list[tuple[str, int]]], recording: Told) -> Trace:
    """Return an agent trace; call n returns n."""
    spans = Spans()
    agent = spans.agent()
    history: list[Message] = [user("go")]
    new: list[Message] = [user("go")]
    number = 0
    for at, step in enumerate(steps):
        requests = [
            ToolRequest(name, {"n": n}, {"none": "", "unique": f"c{at}.{i}", "repeated": f"call_{i}"}[recording.ids])
            for i, (name, n) in enumerate(step)
        ]
        parts: list[Part] = list(requests) if recording.in_outputs else []
        spans.llm(agent, _given(recording, history, new), says("wait", *parts))
        new = []
        for request in requests:
            if recording.on_spans:
                _run(spans, agent, request, number, recording)
            new.append(gives(number, request.id))
            number += 1
        history += [says("wait", *requests), *new]
    spans.llm(agent, _given(recording, history, new), "done")
    return trace_of(spans(), "digest", Closing())


def _given(recording: Told, history: list[Message], new: list[Message]) -> list[Message]:
    return {"whole": history, "new": new, "none": [user("go")]}[recording.history]


def _run(spans: Spans, agent: Span, request: ToolRequest, number: int, recording: Told) -> None:
    fields: dict[str, Any] = {"tool_call_id": request.id} if recording.span_ids else {}
    if recording.span_results:
        fields["result"] = number
    spans.tool(agent, request.name, request.arguments if recording.span_arguments else None, **fields)
