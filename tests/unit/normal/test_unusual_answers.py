"""Answers outside the agent's last message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, Trace
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.speech import answer_of
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.trace import Closing, build_trace, trace_of
from pandaeval_otel.normal.tree import Tree
from pandaeval_otel.normal.turns import turns
from tests.support.builders import MS, Spans, asks, says, user
from tests.unit.dialects.composed import seen

ADDRESS = {"street": "Kai 4", "zip": "8006"}
TOLD = "Returning structured response: street='Kai 4' zip='8006'"
CALL = {"id": "c2", "name": "Address", "args": ADDRESS, "type": "tool_call"}
LANGCHAIN = [
    {"type": "human", "content": "Extract the address"},
    {"type": "ai", "content": "", "tool_calls": [CALL]},
    {"type": "tool", "content": TOLD, "tool_call_id": "c2", "name": "Address"},
]
PARTS = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c2", "name": "Address", "arguments": ADDRESS}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": TOLD}]},
]
PROCESSED = json.loads(json.dumps(PARTS).replace(json.dumps(TOLD), '"Final result processed."'))


def gen_ai(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": json.dumps(messages)}


def chain(**state: Any) -> dict[str, Any]:
    return {"openinference.span.kind": "AGENT", "output.value": json.dumps(state)}


HANDED_OVER = {
    "state": chain(messages=LANGCHAIN, structured_response=ADDRESS),
    "state without receipt": chain(messages=LANGCHAIN[:2], structured_response=ADDRESS),
    "state alone": chain(structured_response=ADDRESS),
    "messages alone": chain(messages=LANGCHAIN, structured_response=None),
    "traceloop": {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.output": json.dumps({"outputs": {"messages": LANGCHAIN, "structured_response": ADDRESS}}),
    },
    "langfuse": {
        "langfuse.observation.type": "agent",
        "langfuse.observation.output": json.dumps({"messages": LANGCHAIN, "structured_response": ADDRESS}),
    },
    "gen_ai": gen_ai(PARTS),
    "pydantic_ai": gen_ai(PROCESSED),
}


@pytest.mark.parametrize("attributes", HANDED_OVER.values(), ids=HANDED_OVER)
def test_structured_answer_is_the_output(attributes: dict[str, Any]) -> None:
    text = answer_of(seen(attributes).output).text
    assert text is not None
    assert json.loads(text) == ADDRESS


def test_structured_answer_is_text_if_only_the_tool_message_was_captured() -> None:
    assert answer_of(seen(gen_ai(PARTS[1:])).output).text == "street='Kai 4' zip='8006'"


def test_tool_that_carries_a_structured_answer_is_no_call() -> None:
    def raw(span_id: str, parent: str, at: int, attributes: dict[str, Any]) -> RawSpan:
        return RawSpan("a" * 32, span_id * 16, parent, "s", at * MS, (9 - at) * MS, attributes=attributes)

    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(PARTS[:1])}
    spans = (raw("b", "", 1, gen_ai(PARTS)), raw("c", "b" * 16, 2, model))
    trace = build_trace(Evidence(spans, (), "d"))
    assert trace is not None
    assert trace.tool_calls == ()
    assert json.loads(trace.output or "") == ADDRESS


@pytest.mark.parametrize(
    "output",
    [
        (Message("system", (Text("Be brief."),)),),
        (user("How much?"),),
        (Message("system", (Text("Be brief."),)), user("How much?")),
        (Message("tool", (Text("49"),)),),
        (Message("assistant", (Reasoning("Class B?"),)),),
        None,
    ],
)
def test_agent_without_its_own_text_answers_with_its_last_model_call(output: Any) -> None:
    spans = Spans()
    agent = spans.agent(input=(user("How much?"),), output=output)
    spans.llm(agent, [user("How much?")], "49 EUR.")
    assert turns(Tree(spans())).turns[-1].assistant == "49 EUR."


@pytest.mark.parametrize("key", ["final_output", "response", "answer", "final_answer", "generation", "result"])
def test_answer_field_is_the_answer_if_messages_only_repeat_the_question(key: str) -> None:
    span = seen(chain(messages=[{"role": "user", "content": "How much?"}], **{key: "49 EUR."}))
    assert answer_of(span.output).text == "49 EUR."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("finish", {"message": "49 EUR."}),
        ("attempt_completion", {"result": "49 EUR.", "command": "open a.html"}),
        ("complete_task", {"result": "49 EUR."}),
        ("task_complete", {"summary": "49 EUR."}),
        ("submit_final_answer", {"answer": "49 EUR.", "confidence": 0.9}),
        ("respond_to_user", {"message": "49 EUR."}),
    ],
)
def test_arguments_of_a_final_answer_tool_are_the_answer_and_no_call(name: str, arguments: dict[str, Any]) -> None:
    spans = Spans()
    spans.llm(spans.agent(), [user("How much?")], says(asks(name, arguments)))
    assert turns(Tree(spans())).turns[-1].assistant == "49 EUR."
    assert tool_calls(Tree(spans())) == ()


@pytest.mark.parametrize(("name", "arguments"), [("complete_task", {"id": 7}), ("submit_answer", {"answer": "49"})])
def test_tool_that_only_resembles_a_final_answer_tool_is_a_call(name: str, arguments: dict[str, Any]) -> None:
    spans = Spans()
    spans.llm(spans.agent(), [user("How much?")], says(asks(name, arguments)))
    assert [call.name for call in tool_calls(Tree(spans()))] == [name]


def test_empty_agent_output_is_an_empty_answer() -> None:
    spans = Spans()
    agent = spans.agent(input=(user("How much?"),), output=())
    spans.llm(agent, [user("How much?")], "49 EUR.")
    assert turns(Tree(spans())).turns[-1].assistant == ""


def test_model_call_that_ends_after_its_inner_agent_is_not_the_last() -> None:
    spans = Spans()
    agent = spans.agent(input=(user("How much?"),))
    first = spans.llm(agent, [user("How much?")], says(asks("price")), end_ns=90 * MS)
    spans.llm(spans.agent(first, "prices"), [user("How much?")], "49 EUR.", end_ns=80 * MS)
    assert turns(Tree(spans())).turns[-1].assistant == "49 EUR."


JOKE = says(asks("Joke", {"setup": "Why?", "punchline": "Two tired!"}))


def parsed(parser: str, tool_name: str = "search", error: str | None = None) -> Trace:
    """Return a run whose last call requests ``Joke``, followed by a parser and a tool."""
    spans = Spans()
    agent = spans.agent(input=(user("A joke!"),))
    spans.llm(agent, [user("A joke!")], JOKE)
    spans.add(Kind.STEP, agent, name=parser, error=error)
    spans.tool(agent, tool_name, result="done")
    return trace_of(spans(), "d", Closing())


@pytest.mark.parametrize(
    "parser",
    [
        "execute_task JsonOutputFunctionsParser",
        "JsonOutputToolsParser.task",
        "JsonOutputKeyToolsParser",
        "PydanticOutputFunctionsParser",
        "PydanticToolsParser",
        "StructuredOutputParser",
    ],
)
def test_tool_request_read_by_an_output_parser_is_the_answer(parser: str) -> None:
    trace = parsed(parser)
    assert json.loads(trace.output or "") == {"setup": "Why?", "punchline": "Two tired!"}
    assert not trace.ends_in_tool_call
    assert "Joke" not in [call.name for call in trace.tool_calls]


@pytest.mark.parametrize(
    ("parser", "tool_name", "error"),
    [
        ("ToolsAgentOutputParser", "search", None),
        ("StrOutputParser", "search", None),
        ("JsonOutputToolsParser", "Joke", None),
        ("JsonOutputToolsParser", "search", "not JSON"),
    ],
    ids=["parser of an agent", "parser of text", "the tool ran", "the parser failed"],
)
def test_tool_request_not_read_by_an_output_parser_stays_a_call(parser: str, tool_name: str, error: str | None) -> None:
    trace = parsed(parser, tool_name, error)
    assert trace.output is None
    assert "Joke" in [call.name for call in trace.tool_calls]


def tool(given: Any, made: Any, **more: Any) -> Span:
    sides = {"gen_ai.input.messages": json.dumps(given), "gen_ai.output.messages": json.dumps(made)}
    return seen({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "price", **sides, **more})


REQUEST = {"type": "tool_call", "id": "c1", "name": "price", "arguments": {"class": "B"}}
RESPONSE = {"type": "tool_call_response", "id": "c1", "response": {"eur": 49}}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([{"role": "assistant", "parts": [REQUEST]}], [{"role": "tool", "parts": [RESPONSE]}]),
        ([{"role": "tool", "parts": [REQUEST]}], [{"role": "tool", "parts": [RESPONSE]}]),
        (
            [{"role": "tool", "parts": [{"type": "text", "content": '{"class": "B"}'}]}],
            [{"role": "tool", "parts": [{"type": "text", "content": '{"eur": 49}'}]}],
        ),
        (
            [{"role": "tool", "content": '{"class": "B"}'}],
            [{"role": "tool", "content": '{"eur": 49}'}],
        ),
        (
            [{"role": "user", "parts": [{"type": "text", "content": '{"class": "B"}'}]}],
            [{"role": "assistant", "parts": [{"type": "text", "content": '{"eur": 49}'}]}],
        ),
    ],
)
def test_arguments_and_result_are_read_from_the_messages_of_a_tool_span(given: Any, made: Any) -> None:
    span = tool(given, made)
    assert span.kind is Kind.TOOL
    assert span.arguments is not None
    assert span.arguments.value == {"class": "B"}
    assert span.result is not None
    assert span.result.value == {"eur": 49}


@pytest.mark.parametrize(
    ("given", "made"),
    [([], []), ([{"role": "tool", "parts": [REQUEST]}], [{"role": "tool", "parts": [RESPONSE]}])],
)
def test_arguments_and_result_are_read_from_attributes_before_messages(given: Any, made: Any) -> None:
    span = tool(
        given, made, **{"gen_ai.tool.call.arguments": '{"class": "A"}', "gen_ai.tool.call.result": '{"eur": 90}'}
    )
    assert (span.arguments and span.arguments.value, span.result and span.result.value) == ({"class": "A"}, {"eur": 90})


@pytest.mark.parametrize("text", ["It is", "It is open. Come in."])
def test_chunks_of_a_streamed_answer_are_not_repeated(text: str) -> None:
    parts = [{"type": "text", "content": each} for each in (text, " today.", f"{text} today.")]
    for made in (
        [{"role": "assistant", "parts": parts, "finish_reason": "stop"}],
        [
            *({"role": "assistant", "parts": [part]} for part in parts[:2]),
            {"role": "assistant", "parts": parts[2:], "finish_reason": "stop"},
        ],
    ):
        chat = seen({"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(made)})
        assert answer_of(chat.output).text == f"{text} today."
